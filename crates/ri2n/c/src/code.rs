//! Error codes, as the header has them.

use std::{
    ffi::{CStr, c_int},
    io,
};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        $($(#[$doc])* pub const $name: c_int = $value;)*

        /// Every code: its name in the header less `RI2N_E`, and its value.
        pub const ALL: &[(&str, c_int)] = &[$((stringify!($name), $name)),*];

        /// What a code means.
        pub fn text(code: c_int) -> &'static CStr {
            match code {
                $($name => $text,)*
                0.. => c"no error",
                _ => c"unknown error",
            }
        }
    };
}

codes! {
    /// An argument is no valid value.
    INVAL = -1, c"invalid argument";
    /// It would have to wait.
    WOULDBLOCK = -2, c"it would have to wait";
    /// Nobody listens there.
    REFUSED = -3, c"nobody listens for RI2N there";
    /// Nobody answers.
    TIMEDOUT = -4, c"nobody answers";
    /// The peer ended the connection.
    RESET = -5, c"the peer ended the connection";
    /// This end ended the connection.
    ABORTED = -6, c"this end ended the connection";
    /// Sent after the end.
    PIPE = -7, c"sent after the end";
    /// The port is taken.
    ADDRINUSE = -8, c"the port is taken";
    /// No such address here.
    ADDRNOTAVAIL = -9, c"this machine does not have this address";
    /// Not allowed.
    ACCES = -10, c"not allowed, or the keys differ";
    /// No connection.
    NOTCONN = -11, c"not connected";
    /// A connection or listener already.
    ISCONN = -12, c"connected or listening already";
    /// Out of resources.
    NOMEM = -13, c"out of memory, descriptors or threads";
    /// No route.
    UNREACH = -14, c"no route to the address";
    /// A bad configuration file.
    CONFIG = -15, c"the configuration file cannot be read or understood";
    /// Any other failure.
    IO = -16, c"the system failed";
    /// A mistake of ours.
    BUG = -17, c"a mistake inside the library";
}

/// The code of a failure.
pub(crate) fn of(error: &io::Error) -> c_int {
    match error.kind() {
        io::ErrorKind::InvalidInput => INVAL,
        io::ErrorKind::WouldBlock => WOULDBLOCK,
        io::ErrorKind::ConnectionRefused => REFUSED,
        io::ErrorKind::TimedOut => TIMEDOUT,
        io::ErrorKind::ConnectionReset => RESET,
        io::ErrorKind::ConnectionAborted => ABORTED,
        io::ErrorKind::BrokenPipe => PIPE,
        io::ErrorKind::AddrInUse => ADDRINUSE,
        io::ErrorKind::AddrNotAvailable => ADDRNOTAVAIL,
        io::ErrorKind::PermissionDenied => ACCES,
        io::ErrorKind::NotConnected => NOTCONN,
        io::ErrorKind::OutOfMemory => NOMEM,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => UNREACH,
        _ => match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN) => NOMEM,
            _ => IO,
        },
    }
}
