//! Documents for people.

use std::time::{Duration, UNIX_EPOCH};

use controller::count::counted;

use crate::{
    documents::{
        AuditEntry, Delivery, Event, LinkHistory, LinkSummary, LoadSample, Maintenance, Proposal, ProposalState,
        Severity, Status, Target, TargetState, Way,
    },
    manager::short,
};

/// The last second of the year 9999.
const YEAR_9999_S: u64 = 253_402_300_799;

/// A moment as people write it: `2026-11-26 19:17:01 UTC`.
pub fn moment(at_s: u64) -> String {
    timestamp(at_s).replace('T', " ").replace('Z', " UTC")
}

/// A moment by RFC 3339: `2026-11-26T19:17:01Z`.
pub fn timestamp(at_s: u64) -> String {
    // What lies beyond its years is no moment of a controller's.
    let known = UNIX_EPOCH + Duration::from_secs(at_s.min(YEAR_9999_S));
    humantime::format_rfc3339_seconds(known).to_string()
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
    if status.heartbeats > 0 {
        let hosts = counted(status.heartbeats, "host");
        lines.push(format!("heartbeats of {hosts}; {} between hosts fail", counted(status.paths_failing, "path")));
    }
    for open in &status.events {
        lines.extend(event(open));
    }
    lines.extend(status.proposals.iter().map(proposal));
    lines.extend(status.maintenance.iter().map(maintenance));
    if status.deliveries_failed > 0 {
        lines.push(format!("{} notifications could not be delivered: espalierd deliveries", status.deliveries_failed));
    }
    let is_fine = status.events.iter().all(|event| event.severity != Severity::Critical)
        && status.target.as_ref().is_none_or(|target| target.state != TargetState::Failed);
    (lines, is_fine)
}

/// Loads of links, the most loaded first.
pub fn summaries(links: &[LinkSummary]) -> Vec<String> {
    let line = |link: &LinkSummary| loads(link.mean, link.max, &link.link);
    std::iter::once(HEADER.to_owned()).chain(links.iter().map(line)).collect()
}

/// The loads of a link, oldest first.
pub fn history(history: &LinkHistory) -> Vec<String> {
    let line = |sample: &LoadSample| loads(sample.mean, sample.max, &moment(sample.at_s));
    std::iter::once(HEADER.to_owned()).chain(history.samples.iter().map(line)).collect()
}

/// Above the columns of [`loads`].
const HEADER: &str = " mean -> <-    max  -> <-";

/// The mean and the maximum load, from the first end to the second and in reverse.
fn loads(mean: [Option<f64>; 2], max: [Option<f64>; 2], of: &str) -> String {
    let percent = |load: Option<f64>| load.map_or_else(|| "?".to_owned(), |load| format!("{:.0} %", 100.0 * load));
    let [mean_there, mean_back] = mean.map(percent);
    let [max_there, max_back] = max.map(percent);
    format!("{mean_there:>6} {mean_back:>6} {max_there:>6} {max_back:>6}  {of}")
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

/// Lines for a change of an event; none for the end of an event that was over when it was recorded.
pub fn change(word: &str, changed: &Event) -> Vec<String> {
    let mut lines = match changed.cleared_s {
        Some(cleared_s) if cleared_s == changed.last_s && word == "cleared" => return Vec::new(),
        Some(_) if word == "cleared" => vec![format!("{} (since {})", changed.message, moment(changed.first_s))],
        _ => event(changed),
    };
    lines[0].insert_str(0, &format!("{word}: "));
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

/// A delivery in one line.
pub fn delivery(delivery: &Delivery) -> String {
    let Delivery { id, to, at_s, tries, next_s, failure, .. } = delivery;
    let attempts = counted(*tries as usize, "attempt");
    let state = match next_s {
        Some(next_s) => format!("{attempts}, the next at {}", moment(*next_s)),
        None => format!("failed after {attempts}; espalierd deliveries --retry {id}"),
    };
    let why = failure.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    format!("delivery {id} to {to} of {}, {state}{why}", moment(*at_s))
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
            (u64::MAX, "9999-12-31 23:59:59 UTC"),
            (1_795_720_621, "2026-11-26 19:17:01 UTC"),
        ] {
            assert_eq!(moment(at_s), expected);
        }
    }
}
