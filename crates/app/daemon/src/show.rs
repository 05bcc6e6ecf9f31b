//! Documents for people.

use crate::{
    documents::{AuditEntry, Event, Maintenance, Proposal, ProposalState, Severity, Status, Target, TargetState, Way},
    manager::short,
};

/// A moment as people write it: `2026-11-26 19:17:01 UTC`.
pub fn moment(at_s: u64) -> String {
    let (days, s) = (at_s / 86_400, at_s % 86_400);
    let (year, month, day) = date_of(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", s / 3600, s % 3600 / 60, s % 60)
}

/// The civil date of a day since 1970-01-01. Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn date_of(days: u64) -> (u64, u64, u64) {
    // Eras of 400 years begin with March of year 0.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + 400 * era + u64::from(month <= 2), month, day)
}

/// The fabric as it was polled last; whether nothing needs a person.
pub fn status(status: &Status) -> (Vec<String>, bool) {
    let mut lines = Vec::new();
    match &status.target {
        None => lines.push("no plan yet: espalierd propose PLAN".to_owned()),
        Some(found) => {
            lines.push(target(found));
            match status.polled_s {
                Some(at_s) => lines.push(format!(
                    "{} of {} switches hold the plan, at {}",
                    status.as_planned,
                    status.switches,
                    moment(at_s)
                )),
                None => lines.push(format!("{}; the switches have not been polled since", status.doing)),
            }
        }
    }
    for open in &status.events {
        lines.extend(event(open));
    }
    lines.extend(status.proposals.iter().map(proposal));
    lines.extend(status.maintenance.iter().map(maintenance));
    let is_fine = status.events.iter().all(|event| event.severity != Severity::Critical)
        && status.target.as_ref().is_none_or(|target| target.state != TargetState::Failed);
    (lines, is_fine)
}

/// A target in one line.
pub fn target(target: &Target) -> String {
    let state = match target.state {
        TargetState::Pending => "being deployed".to_owned(),
        TargetState::Deployed => "deployed".to_owned(),
        TargetState::Failed => format!("failed: {}", target.note.as_deref().unwrap_or("no reason is known")),
    };
    format!(
        "target {}: plan {}, proposal {}, approved by {} at {}; {state}",
        target.number,
        short(&target.plan),
        target.proposal,
        target.by,
        moment(target.at_s)
    )
}

/// An event in some lines.
pub fn event(event: &Event) -> Vec<String> {
    let severity = match event.severity {
        Severity::Critical => "critical",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let times = if event.times > 1 { format!(" ({} times)", event.times) } else { String::new() };
    let cleared = match (event.cleared_s, event.gone_s) {
        (Some(at_s), _) => format!(", cleared {}", moment(at_s)),
        (None, Some(at_s)) => format!(", gone {}, but it may return", moment(at_s)),
        (None, None) => String::new(),
    };
    let maintenance = event.maintenance.as_ref().map_or_else(String::new, |why| format!(" [maintenance: {why}]"));
    let first = moment(event.first_s);
    let mut lines = vec![format!("{severity}: {}{times}{maintenance} (since {first}{cleared})", event.message)];
    lines.extend(event.consequences.iter().map(|consequence| format!("  {consequence}")));
    lines.extend(event.remedy.iter().map(|remedy| format!("  to do: {remedy}")));
    lines
}

/// A proposal in one line.
pub fn proposal(proposal: &Proposal) -> String {
    let effect = &proposal.effect;
    let how = match proposal.way {
        Way::Hitless => format!("hitless, {} steps", effect.steps.unwrap_or(0)),
        Way::Drained => match &effect.drained_because {
            Some(why) => format!("with ports administratively down meanwhile, since {why}"),
            None => "with ports administratively down meanwhile".to_owned(),
        },
    };
    let before = effect.max_channel_time_before.map_or_else(String::new, |before| format!(" (now {before:.3})"));
    let state = match proposal.state {
        ProposalState::Open => format!("open; espalierd approve {}", proposal.id),
        ProposalState::Approved => "approved".to_owned(),
        ProposalState::Withdrawn => "withdrawn".to_owned(),
        ProposalState::Stale => "stale".to_owned(),
    };
    let reason = if proposal.reason.is_empty() { "no reason given" } else { &proposal.reason };
    format!(
        "proposal {} by {}: {reason}; {} switches and {} entries change, {how}; maximum channel time {:.3}{before}; {state}",
        proposal.id, proposal.by, effect.switches_changed, effect.entries_changed, effect.max_channel_time_after
    )
}

/// A maintenance mark in one line.
pub fn maintenance(mark: &Maintenance) -> String {
    let until = mark.until_s.map_or_else(|| "until removed".to_owned(), |at_s| format!("until {}", moment(at_s)));
    let drain = if mark.drain { ", drained" } else { "" };
    format!("maintenance {} of {} by {}, {until}{drain}: {}", mark.id, mark.subject, mark.by, mark.reason)
}

/// An audit entry in one line.
pub fn audit(entry: &AuditEntry) -> String {
    format!("{}  {}  {}", moment(entry.at_s), entry.who, entry.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (at_s, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
            (1_795_720_621, "2026-11-26 19:17:01 UTC"),
        ] {
            assert_eq!(moment(at_s), expected);
        }
    }
}
