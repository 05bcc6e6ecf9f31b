//! How failures leave the program: a message that names the way out, and the exit code that design promises.

use std::{fmt, io::Write as _, process::ExitCode};

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
    let bad_request = matches!(error.downcast_ref(), Some(controller::Error::Request(_)))
        || error.downcast_ref().is_some_and(experiments::Error::is_of_request);
    if json {
        let diagnostics = match bad_input {
            Some(BadInput::Diagnostics(diagnostics)) => diagnostics.to_json(),
            _ => serde_json::json!([]),
        };
        let object = serde_json::json!({ "error": words(error), "diagnostics": diagnostics });
        let _ = writeln!(std::io::stdout().lock(), "{object}");
    }
    match bad_input {
        Some(BadInput::Diagnostics(diagnostics)) => eprint!("{diagnostics}"),
        _ => eprintln!("espalier: {}", words(error)),
    }
    ExitCode::from(if bad_input.is_some() || bad_request { BAD_INPUT } else { FAILED })
}

/// An error and its causes, outermost first, none of them said twice: a cause that the error before it quotes, or that
/// repeats the error before it, adds nothing.
pub(crate) fn words(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if said.is_empty() || cause.strip_prefix(said.as_str()).is_some_and(|rest| rest.starts_with(": ")) {
            said = cause;
        } else if !said.ends_with(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said
}

/// Whether the reader of our output went away, as `head` does: no failure of ours.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn no_cause_is_said_twice() {
        let check = |error: anyhow::Error, expect: &str| assert_eq!(words(&error), expect);
        check(anyhow!("no space left"), "no space left");
        check(anyhow!("no space left").context("write a/b"), "write a/b: no space left");
        check(anyhow!("no space left").context("write a/b: no space left"), "write a/b: no space left");
        check(anyhow!("write a/b: no space left").context("write a/b"), "write a/b: no space left");
        check(anyhow!("a/b: full").context("a/b: full").context("render"), "render: a/b: full");
    }
}
