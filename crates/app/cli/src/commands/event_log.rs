//! What a command says while it watches the switches of a plan: a line an event, with the time since it began.

use std::time::Instant;

use anyhow::Result;
use controller::Words;
use fabric::Plan;
use serde_json::json;

use super::{Output, say};

/// Where events are told.
pub(super) struct EventLog<'a> {
    pub(super) plan: &'a Plan,
    output: Output,
    started: Instant,
}

impl<'a> EventLog<'a> {
    /// A log whose times count from now.
    pub(super) fn begin(plan: &'a Plan, output: Output) -> Self {
        Self { plan, output, started: Instant::now() }
    }

    /// Tells an event.
    pub(super) fn say(&self, words: &Words) -> Result<()> {
        let at = self.started.elapsed().as_secs_f64();
        let Words { kind, subject, text } = words;
        match self.output {
            Output::Person => say!("{at:9.2} s  {text}"),
            Output::Json => {
                let at_s = (at * 1e3).round() / 1e3;
                say!("{}", json!({ "at_s": at_s, "event": kind, "subject": subject, "text": text }));
            }
        }
        Ok(())
    }
}
