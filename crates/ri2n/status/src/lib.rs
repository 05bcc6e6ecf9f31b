//! Lets every process that uses RI2N be asked for its connections, and asks them.
//!
//! A process that serves its status has a socket in the runtime directory, named by its process number. Whoever connects gets
//! one JSON object and the end of the stream. `ri2n status` asks all of them; a socket whose process is gone is removed.
//!
//! ```text
//!  /run/ri2n/4711.sock ─▶ {"version": 1, "process": 4711, "program": "…", "connections": [{…, "links": [{…}]}]}
//! ```
#![forbid(unsafe_code)]

mod ask;
mod report;
mod serve;

pub use ask::ask_all;
pub use report::{Connection, Link, Plain, PlainPeer, PlainPort, Report, prometheus, text};
pub use serve::{Serving, serve};

use std::{env, path::PathBuf};

/// The environment variable that names another runtime directory.
pub const DIRECTORY_VARIABLE: &str = "RI2N_RUNTIME_DIRECTORY";

/// Where processes of this user serve their status: `/run/ri2n` for root, else `ri2n` in the user's runtime directory.
pub fn directory() -> PathBuf {
    if let Some(directory) = env::var_os(DIRECTORY_VARIABLE) {
        return directory.into();
    }
    let user = nix::unistd::geteuid();
    match env::var_os("XDG_RUNTIME_DIR") {
        _ if user.is_root() => "/run/ri2n".into(),
        Some(runtime) => PathBuf::from(runtime).join("ri2n"),
        None => format!("/tmp/ri2n-{user}").into(),
    }
}
