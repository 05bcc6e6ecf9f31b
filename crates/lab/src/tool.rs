//! Runs iproute2 in batches: one process a namespace and tool, however many commands.
//!
//! A tool dies with the program that runs it, so that a lab that is killed while it is built does not go on being built.

use std::{
    io::Write,
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
};

use nix::sys::{prctl::set_pdeathsig, signal::Signal};

use crate::{LabError, error::Context, netns};

/// One batch for one tool in one namespace.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    pub(crate) tool: &'static str,
    /// None is the namespace of the caller.
    pub(crate) namespace: Option<&'a str>,
    /// One command a line.
    pub(crate) script: String,
}

/// Where a batch belongs, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchOrigin<'a> {
    pub(crate) operation: &'static str,
    pub(crate) device: &'a str,
    pub(crate) step: &'static str,
}

/// Runs a batch; stops at the first command that fails.
///
/// # Errors
/// [`LabError::Tool`] with the tool's own words and the command that failed; [`LabError::Io`] if the tool cannot be run.
pub(crate) fn run_batch(batch: &Batch<'_>, place: BatchOrigin<'_>) -> Result<(), LabError> {
    if batch.script.is_empty() {
        return Ok(());
    }
    feed(batch.tool, &["-batch", "-"], batch.namespace, &batch.script, place).map(drop)
}

/// Runs one command and returns what it prints.
///
/// # Errors
/// As [`run_batch`].
pub(crate) fn output(
    tool: &'static str,
    args: &[&str],
    namespace: Option<&str>,
    place: BatchOrigin<'_>,
) -> Result<Vec<u8>, LabError> {
    feed(tool, args, namespace, "", place)
}

/// Runs one command in a namespace and reads the JSON that it prints.
///
/// # Errors
/// As [`run_batch`], and [`LabError::Tool`] if what it prints is none.
pub(crate) fn output_json(
    tool: &'static str,
    args: &[&str],
    namespace: &str,
    place: BatchOrigin<'_>,
) -> Result<serde_json::Value, LabError> {
    let text = output(tool, args, Some(namespace), place)?;
    serde_json::from_slice(&text).map_err(|error| LabError::Tool {
        operation: place.operation,
        device: place.device.to_owned(),
        step: place.step,
        tool,
        message: format!("{} printed no JSON: {error}", args.join(" ")),
    })
}

fn feed(
    tool: &'static str,
    args: &[&str],
    namespace: Option<&str>,
    input: &str,
    place: BatchOrigin<'_>,
) -> Result<Vec<u8>, LabError> {
    let BatchOrigin { operation, device, step } = place;
    let run = || {
        let mut command = Command::new(tool);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: one system call, which is safe between fork and exec; this thread waits for the tool.
        unsafe { command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?)) };
        let mut child = command.spawn().map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                LabError::Missing(format!("the program {tool} is missing: apt-get install iproute2"))
            }
            _ => LabError::Io { operation, device: device.to_owned(), step, source },
        })?;
        // Both tools read all of their input before they say anything long, so writing first cannot block for good.
        let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().context(operation, device, step)?;
        if output.status.success() {
            written.context(operation, device, step)?;
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(LabError::Tool { operation, device: device.to_owned(), step, tool, message: blame(&said, input) })
    };
    match namespace {
        None => run(),
        Some(name) => netns::within(name, run).context(operation, device, "enter namespace")?,
    }
}

/// What the tool said, with the line of the batch that it stumbled over.
fn blame(said: &str, input: &str) -> String {
    let mut message: Vec<&str> = said.lines().filter(|line| !line.starts_with("Command failed")).collect();
    let line = said.lines().find_map(|line| line.strip_prefix("Command failed -:")?.trim().parse::<usize>().ok());
    if let Some(command) = line.and_then(|line| input.lines().nth(line.saturating_sub(1))) {
        message.push("at");
        message.push(command);
    }
    message.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failing_command_is_named() {
        let said = "RTNETLINK answers: File exists\nCommand failed -:2\n";
        assert_eq!(blame(said, "link add a\nlink add b\n"), "RTNETLINK answers: File exists at link add b");
        assert_eq!(blame("no such tool", ""), "no such tool");
    }
}
