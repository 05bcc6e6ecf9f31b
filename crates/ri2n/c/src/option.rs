//! Numbers of options, as the header has them.

use std::ffi::c_int;

/// How long to try to connect.
pub(crate) const CONNECT_TIMEOUT: c_int = 1;
/// How long all links may be silent.
pub(crate) const OUTAGE_DEADLINE: c_int = 2;
/// How long the peer may be silent.
pub(crate) const KEEPALIVE: c_int = 3;
/// How long receiving waits.
pub(crate) const RECEIVE_TIMEOUT: c_int = 4;
/// How long sending waits.
pub(crate) const SEND_TIMEOUT: c_int = 5;
/// Bytes sent and not acknowledged.
pub(crate) const SEND_BUFFER: c_int = 6;
/// Bytes arrived and not read.
pub(crate) const RECEIVE_BUFFER: c_int = 7;
/// Links of the connection.
pub(crate) const LINKS: c_int = 8;
/// Links that deliver.
pub(crate) const LINKS_GOOD: c_int = 9;
