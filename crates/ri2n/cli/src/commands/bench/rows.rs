//! Bytes received in each hundredth of a second.

use anyhow::Context;
use std::{fmt::Write, path::Path};

/// Seconds of a row.
const STEP_S: f64 = 0.01;

/// Rows being collected.
pub(super) struct Rows {
    began_s: f64,
    done: Vec<u64>,
    current: u64,
}

impl Rows {
    /// Starts at a moment of CLOCK_MONOTONIC.
    pub(super) fn new(began_s: f64) -> Self {
        Self { began_s, done: Vec::new(), current: 0 }
    }

    /// Bytes arrived at this moment; none only moves time on.
    pub(super) fn add(&mut self, now_s: f64, bytes: u64) {
        let row = ((now_s - self.began_s) / STEP_S).max(0.0) as usize;
        while self.done.len() < row {
            self.done.push(std::mem::take(&mut self.current));
        }
        self.current += bytes;
    }

    pub(super) fn finish(mut self) -> Finished {
        self.done.push(self.current);
        Finished { began_s: self.began_s, bytes: self.done }
    }
}

/// Rows of a transfer.
pub(super) struct Finished {
    pub(super) began_s: f64,
    /// Bytes in each [`STEP_S`] seconds.
    pub(super) bytes: Vec<u64>,
}

impl Finished {
    /// A line a row: the end of the row in seconds of CLOCK_MONOTONIC, and bytes.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let mut text = String::new();
        for (row, bytes) in self.bytes.iter().enumerate() {
            let _ = writeln!(text, "{:.4} {bytes}", self.began_s + (row + 1) as f64 * STEP_S);
        }
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    pub(super) fn step_s(&self) -> f64 {
        STEP_S
    }
}
