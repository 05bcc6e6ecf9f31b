//! A program that is run for each delivery, which it reads from its standard input.

use std::{
    io::Write as _,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::NotDelivered;
use crate::documents::Delivery;

/// How soon it is seen that the program has ended.
const MOMENT: Duration = Duration::from_millis(20);

/// Runs a program, which accepts the delivery by exiting with 0 in time.
pub(super) fn run(words: &[String], delivery: &Delivery, timeout: Duration) -> Result<(), NotDelivered> {
    let (program, arguments) = words.split_first().ok_or_else(|| NotDelivered::now("no program"))?;
    let in_it = |error: std::io::Error| NotDelivered::now(format!("{program}: {error}"));
    let started =
        Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut process = started.map_err(in_it)?;
    let since = Instant::now();
    let body = delivery.body.clone();
    // A program need not read all of it, or any.
    let writer = process.stdin.take().map(|mut input| thread::spawn(move || drop(input.write_all(body.as_bytes()))));
    let ended = loop {
        match process.try_wait() {
            Ok(None) if since.elapsed() < timeout => thread::sleep(MOMENT),
            Ok(None) => {
                let killed = process.kill().and_then(|()| process.wait());
                let why = format!("{program}: did not end within {} s", timeout.as_secs());
                break killed.map_err(in_it).and(Err(NotDelivered::now(why)));
            }
            Ok(Some(status)) if status.success() => break Ok(()),
            Ok(Some(status)) => break Err(NotDelivered::now(format!("{program}: {status}"))),
            Err(error) => break Err(in_it(error)),
        }
    };
    // With the program its pipe is gone.
    writer.map(thread::JoinHandle::join);
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(body: &str) -> Delivery {
        let (to, failure) = ("program".to_owned(), None);
        Delivery { id: 1, to, body: body.to_owned(), at_s: 0, tries: 0, next_s: Some(0), failure }
    }

    fn shell(script: &str) -> Vec<String> {
        ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_program_accepts_by_exiting_with_0() {
        let long = "x".repeat(1 << 20);
        let second = Duration::from_secs(1);
        assert!(run(&shell("grep -q x"), &delivery("x"), second).is_ok());
        assert!(run(&shell("true"), &delivery(&long), second).is_ok());
        for (script, expected) in
            [("exit 3", "exit status: 3"), ("sleep 5", "did not end within"), ("kill -9 $$", "signal")]
        {
            let why = run(&shell(script), &delivery(&long), Duration::from_millis(300)).expect_err(script).why;
            assert!(why.contains(expected), "{script}: {why}");
        }
        assert!(run(&["/no/such/program".to_owned()], &delivery(""), second).is_err());
    }
}
