//! What a command says while it watches the switches of a plan: a line an event, with the time since it began.

use std::time::Instant;

use anyhow::Result;
use fabric::{Plan, SwitchId};
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

    /// Tells an event: what kind it is and of what, for machines, and in words.
    pub(super) fn say(&self, event: &str, subject: Option<&str>, words: &str) -> Result<()> {
        let at = self.started.elapsed().as_secs_f64();
        match self.output {
            Output::Person => say!("{at:9.2} s  {words}"),
            Output::Json => {
                let at_s = (at * 1e3).round() / 1e3;
                say!("{}", json!({ "at_s": at_s, "event": event, "subject": subject, "text": words }));
            }
        }
        Ok(())
    }

    /// The name of a switch.
    pub(super) fn switch(&self, switch: SwitchId) -> &str {
        &self.plan.topology.switch(switch).name
    }
}
