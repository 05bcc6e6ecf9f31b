//! Programs that have called and not asked yet: a program connects first and asks then, and nobody waits for it in between.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use ri2n_session::BrokerRequest;

use crate::line::Line;

/// How long a program may take to say what it wants.
const SILENT_MAX: Duration = Duration::from_secs(2);
/// Programs that may be about to ask; beyond, the one that called first is told to use plain TCP.
const ASKING_MAX: usize = 512;

/// A question, and the socket that came along.
type Question = (Line, BrokerRequest, Option<OwnedFd>);

#[derive(Default)]
pub(super) struct Asking {
    /// Those who called, first those who called first.
    lines: Vec<(Line, Instant)>,
}

impl Asking {
    /// The question of somebody who has just called, if it is there already.
    pub(super) fn add(&mut self, line: Line) -> Option<Question> {
        match line.question_now() {
            Ok(question) => question.map(|(request, socket)| (line, request, socket)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if self.lines.len() >= ASKING_MAX {
                    self.lines.remove(0);
                }
                self.lines.push((line, Instant::now()));
                None
            }
            Err(_) => None,
        }
    }

    /// What to wait for.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.lines.iter().map(|(line, _)| line.descriptor())
    }

    /// The questions of those that are ready, in the order of [`Self::descriptors`].
    pub(super) fn take(&mut self, ready: &[bool]) -> Vec<Question> {
        if !ready.contains(&true) {
            return Vec::new();
        }
        let lines = std::mem::take(&mut self.lines);
        let mut questions = Vec::new();
        for ((line, since), is_ready) in lines.into_iter().zip(ready) {
            if *is_ready {
                questions.extend(self.add(line));
            } else {
                self.lines.push((line, since));
            }
        }
        questions
    }

    /// Gives up those who say nothing.
    pub(super) fn forget_silent(&mut self, now: Instant) {
        self.lines.retain(|(_, since)| now.duration_since(*since) < SILENT_MAX);
    }
}
