//! Printing to standard output and standard error, whose reader may have gone away: that is no fault of a command, and keeps
//! none from its end.
//!
//! The standard library's macros panic when they cannot write. These shadow them in the whole program.

/// Prints a line to standard error if anybody reads it.
macro_rules! eprintln {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), $($arg)*);
    }};
}

/// Prints a line to standard output if anybody reads it.
macro_rules! println {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout().lock(), $($arg)*);
    }};
}

/// Prints to standard output if anybody reads it.
macro_rules! print {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stdout().lock(), $($arg)*);
    }};
}
