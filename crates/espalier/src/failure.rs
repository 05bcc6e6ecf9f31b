//! How failures leave the program: a message that names the way out, and the exit code that design promises.

use std::{fmt, process::ExitCode};

use fabric::format::diagnostic::Diagnostics;

/// Findings or failure.
pub(crate) const FAILED: u8 = 1;
/// Usage or bad input.
pub(crate) const BAD_INPUT: u8 = 2;

/// The input, not the program or the network, is at fault.
#[derive(Debug)]
pub(crate) enum BadInput {
    /// One thing is wrong.
    Message(String),
    /// A file has diagnostics.
    Diagnostics(Diagnostics),
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(message) => f.write_str(message),
            Self::Diagnostics(diagnostics) => diagnostics.fmt(f),
        }
    }
}

impl std::error::Error for BadInput {}

/// Bad input with a message.
pub(crate) fn bad_input(message: impl Into<String>) -> anyhow::Error {
    BadInput::Message(message.into()).into()
}

/// Prints an error to standard error, and for `--json` as an object to standard output as well.
pub(crate) fn report(error: &anyhow::Error, json: bool) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    let bad_input = error.downcast_ref::<BadInput>();
    if json {
        let diagnostics = match bad_input {
            Some(BadInput::Diagnostics(diagnostics)) => diagnostics.to_json(),
            _ => serde_json::json!([]),
        };
        println!("{}", serde_json::json!({ "error": format!("{error:#}"), "diagnostics": diagnostics }));
    }
    match bad_input {
        Some(BadInput::Diagnostics(diagnostics)) => eprint!("{diagnostics}"),
        _ => eprintln!("espalier: {error:#}"),
    }
    ExitCode::from(if bad_input.is_some() { BAD_INPUT } else { FAILED })
}

/// Whether the reader of our output went away, as `head` does: no failure of ours.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
