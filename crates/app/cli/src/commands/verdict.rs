//! What the judge says of a plan, for a person and as JSON.

use anyhow::Result;
use fabric::{Report, Severity};
use verify::{Deadlock, FrameKind, Judgement, kinds_words};

use super::say;
use crate::count::counted;

/// Findings shown to a person; the rest are counted.
const FINDINGS_SHOWN_MAX: usize = 40;

/// What the judge found, for a person.
pub(super) fn print_report(report: &Report) -> Result<()> {
    let [fatal, warnings, notes] = [Severity::Fatal, Severity::Warning, Severity::Note].map(|s| report.count(s));
    let verdict = if fatal == 0 { "fit to deploy" } else { "UNFIT to deploy" };
    say!("judge            {verdict}: {fatal} fatal, {}, {}", counted(warnings, "warning"), counted(notes, "note"));
    for finding in report.findings().iter().take(FINDINGS_SHOWN_MAX) {
        say!("  {finding}");
    }
    if let Some(more) = report.findings().len().checked_sub(FINDINGS_SHOWN_MAX).filter(|more| *more > 0) {
        say!("  … and {more} more; --json lists all");
    }
    Ok(())
}

/// Which frames can block each other, as the first line, if there are any.
pub(super) fn print_open(deadlock: &Deadlock) -> Result<()> {
    if let Deadlock::Waits { open, .. } = deadlock {
        if !open.is_empty() {
            say!("deadlock         NOT proven free: {} can block", kinds_words(open));
        }
    }
    Ok(())
}

/// Which frames the proof against deadlock covers, for programs.
pub(super) fn deadlock_json(judgement: &Judgement) -> serde_json::Value {
    let names = |kinds: &[FrameKind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>();
    let mut object = match &judgement.deadlock {
        Deadlock::NothingWaits => serde_json::json!({ "proven": true, "covered": [], "open": [] }),
        Deadlock::Waits { covered, open } => {
            serde_json::json!({ "proven": open.is_empty(), "covered": names(covered), "open": names(open) })
        }
    };
    if !judgement.dropped.is_empty() {
        object["dropped"] = names(&judgement.dropped).into();
    }
    object
}
