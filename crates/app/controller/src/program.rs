//! Programs of the administrator's: run with a time limit, and what they say when they fail.
//!
//! A program is in a process group of its own, so that Ctrl-C at the terminal does not reach it, and so that whatever it has started is
//! killed with it.

use std::{
    io::{Read as _, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;

/// How soon it is seen that a program has ended.
const MOMENT: Duration = Duration::from_millis(20);
/// How long the rest of its messages is awaited once it has ended: another process may hold its standard error open.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Most of its standard error that is kept, in bytes.
const SAID_MAX: u64 = 64 << 10;

/// Why a program did not do what it was to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramFault {
    /// It could not be started, or not be waited for.
    #[error("{0}")]
    NotRun(String),
    /// It ended with another status than 0; the last line of its standard error follows.
    #[error("{0}")]
    Failed(String),
    /// It was killed, since it did not end in time.
    #[error("{program}: did not end within {} s", .limit.as_secs())]
    TooSlow {
        /// The program.
        program: String,
        /// How long it had.
        limit: Duration,
    },
    /// It was killed, since it was to stop.
    #[error("{0}: stopped before its end")]
    Stopped(String),
}

/// Runs a program with `input` as its standard input until it ends with status 0. It is killed after `limit`, and once `stop` says so.
///
/// # Errors
/// [`ProgramFault`].
pub fn run_program(
    words: &[String],
    input: &str,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<(), ProgramFault> {
    let (program, arguments) = words.split_first().ok_or_else(|| ProgramFault::NotRun("no program".to_owned()))?;
    let not_run = |error: std::io::Error| ProgramFault::NotRun(format!("{program}: {error}"));
    let mut command = Command::new(program);
    command.args(arguments).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = command.spawn().map_err(not_run)?;
    let since = Instant::now();
    let body = input.to_owned();
    // A program need not read all of it, or any.
    let writer = process.stdin.take().map(|mut input| thread::spawn(move || drop(input.write_all(body.as_bytes()))));
    let said = last_words(&mut process);
    let ended = loop {
        match process.try_wait() {
            Ok(Some(status)) if status.success() => break Ok(()),
            Ok(Some(status)) => {
                let said = said.recv_timeout(LAST_WORDS).unwrap_or_default();
                break Err(ProgramFault::Failed(format!("{program}: {status}{said}")));
            }
            Ok(None) if stop() => {
                break kill(&mut process).map_err(not_run).and(Err(ProgramFault::Stopped(program.clone())));
            }
            Ok(None) if since.elapsed() < limit => thread::sleep(MOMENT),
            Ok(None) => {
                let late = ProgramFault::TooSlow { program: program.clone(), limit };
                break kill(&mut process).map_err(not_run).and(Err(late));
            }
            Err(error) => break Err(not_run(error)),
        }
    };
    // With the program its pipe is gone.
    writer.map(thread::JoinHandle::join);
    ended
}

fn kill(process: &mut Child) -> std::io::Result<()> {
    let group = i32::try_from(process.id()).ok().and_then(Pid::from_raw);
    group.map_or(Ok(()), |group| kill_process_group(group, Signal::KILL).map_err(std::io::Error::from))?;
    process.wait().map(drop)
}

/// The last line that a program writes to its standard error, after a colon, once that is closed.
fn last_words(process: &mut Child) -> mpsc::Receiver<String> {
    let (tell, said) = mpsc::channel();
    if let Some(errors) = process.stderr.take() {
        thread::spawn(move || {
            let mut text = Vec::new();
            let mut kept = errors.take(SAID_MAX);
            let _ = kept.read_to_end(&mut text);
            // What comes behind is read and forgotten, so that the program need not wait.
            let _ = std::io::copy(&mut kept.into_inner(), &mut std::io::sink());
            let text = String::from_utf8_lossy(&text);
            let last = text.lines().rev().find(|line| !line.trim().is_empty());
            let _ = tell.send(last.map_or_else(String::new, |line| format!(": {}", line.trim())));
        });
    }
    said
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn shell(script: &str) -> Vec<String> {
        ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_program_does_what_it_is_to_by_ending_with_0() {
        let long = "x".repeat(1 << 20);
        let run = |script: &str, input: &str| run_program(&shell(script), input, Duration::from_secs(20), &|| false);
        assert_eq!(run("grep -q x", "x"), Ok(()));
        assert_eq!(run("true", &long), Ok(()));
        assert_eq!(run("yes | head -c 1000000 >&2", ""), Ok(()));
        for (script, expected) in [
            ("exit 3", "/bin/sh: exit status: 3"),
            (
                "echo one >&2; echo h3 does not answer >&2; echo >&2; exit 4",
                "/bin/sh: exit status: 4: h3 does not answer",
            ),
            ("kill -9 $$", "/bin/sh: signal: 9 (SIGKILL)"),
        ] {
            assert_eq!(run(script, &long).expect_err(script).to_string(), expected);
        }
        assert!(run_program(&["/no/such/program".to_owned()], "", LAST_WORDS, &|| false).is_err());
        assert!(run_program(&[], "", LAST_WORDS, &|| false).is_err());
    }

    #[test]
    fn what_takes_too_long_or_is_to_stop_is_killed_with_all_that_it_started() {
        let limit = Duration::from_millis(300);
        let late = run_program(&shell("sleep 60 & sleep 60"), "", limit, &|| false).expect_err("it sleeps");
        assert_eq!(late.to_string(), "/bin/sh: did not end within 0 s");
        let looks = Cell::new(0);
        let stop = || looks.replace(looks.get() + 1) > 3;
        let stopped = run_program(&shell("sleep 60"), "", Duration::from_secs(60), &stop).expect_err("it is stopped");
        assert_eq!(stopped, ProgramFault::Stopped("/bin/sh".to_owned()));
        // One whose child holds its standard error open is not waited for.
        let since = Instant::now();
        assert!(run_program(&shell("sleep 2 & exit 1"), "", limit, &|| false).is_err());
        assert!(since.elapsed() < Duration::from_secs(2));
    }
}
