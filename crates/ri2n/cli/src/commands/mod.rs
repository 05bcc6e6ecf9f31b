//! One file a verb.

pub(crate) mod bench;
pub(crate) mod keys;
pub(crate) mod proxy;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod status;
