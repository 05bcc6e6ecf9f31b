//! Printing to standard error, whose reader may have gone away: that is no fault of a command, and keeps none from its end.
//!
//! The standard library's `eprintln!` panics when standard error cannot be written to. These shadow it in the whole program.

/// Prints a line to standard error if anybody reads it.
macro_rules! eprintln {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), $($arg)*);
    }};
}

/// Prints to standard error if anybody reads it.
macro_rules! eprint {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr().lock(), $($arg)*);
    }};
}
