//! One page that says whether everything is as planned, without a line of JavaScript.

use std::fmt::Write as _;

use crate::documents::{Event, Proposal, Severity, Status, TargetState, Way};
use crate::manager::short;

/// The page.
pub(super) fn page(status: &Status) -> String {
    let mut body = String::new();
    let critical = status.events.iter().filter(|event| event.severity == Severity::Critical).count();
    let (class, headline) = match (critical, &status.target) {
        (_, None) => ("note", "No plan yet: espalierd propose PLAN".to_owned()),
        (0, _) => ("fine", format!("{} of {} switches hold the plan", status.as_planned, status.switches)),
        (1, _) => ("critical", "1 thing needs a person".to_owned()),
        (count, _) => ("critical", format!("{count} things need a person")),
    };
    let _ = write!(body, "<h1 class=\"{class}\">{}</h1>", escaped(&headline));
    if let Some(target) = &status.target {
        let state = match target.state {
            TargetState::Pending => "is being deployed",
            TargetState::Deployed => "is deployed",
            TargetState::Failed => "was not deployed",
        };
        let _ = write!(
            body,
            "<p>Target {} (plan {}, approved by {}) {state}. Doing: {}.</p>",
            target.number,
            escaped(short(&target.plan)),
            escaped(&target.by),
            escaped(&status.doing)
        );
    }
    section(&mut body, "Events", &status.events, event);
    section(&mut body, "Proposals", &status.proposals, proposal);
    section(&mut body, "Maintenance", &status.maintenance, |mark| {
        format!("<p><b>{}</b> {} ({})</p>", escaped(&mark.subject), escaped(&mark.reason), escaped(&mark.by))
    });
    links(&mut body, status);
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"10\"><title>espalierd</title><style>{STYLE}</style></head><body>{body}</body></html>"
    )
}

const STYLE: &str = "body{font:16px/1.4 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
.critical{color:#a00}.fine{color:#063}.note{color:#555}table{border-collapse:collapse}td,th{padding:.1rem .8rem .1rem 0;text-align:left}\
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}.critical{color:#f77}.fine{color:#7d9}}";

fn section<T>(body: &mut String, title: &str, things: &[T], one: impl Fn(&T) -> String) {
    if !things.is_empty() {
        let _ = write!(body, "<h2>{title}</h2>");
        things.iter().for_each(|thing| body.push_str(&one(thing)));
    }
}

fn event(event: &Event) -> String {
    let class = match event.severity {
        Severity::Critical => "critical",
        Severity::Warning | Severity::Note => "note",
    };
    let mut text = format!("<p class=\"{class}\">{}", escaped(&event.message));
    if event.times > 1 {
        let _ = write!(text, " ({} times)", event.times);
    }
    if let Some(remedy) = &event.remedy {
        let _ = write!(text, "<br>To do: {}", escaped(remedy));
    }
    text.push_str("</p>");
    if !event.consequences.is_empty() {
        text.push_str("<ul>");
        for consequence in &event.consequences {
            let _ = write!(text, "<li>{}</li>", escaped(consequence));
        }
        text.push_str("</ul>");
    }
    text
}

fn proposal(proposal: &Proposal) -> String {
    let effect = &proposal.effect;
    let how = match (proposal.way, effect.steps) {
        (Way::Hitless, Some(steps)) => format!("under traffic, in {steps} steps"),
        (Way::Hitless, None) => "under traffic".to_owned(),
        (Way::Drained, _) => "with ports administratively down meanwhile".to_owned(),
    };
    let before = effect.max_channel_time_before.map_or_else(String::new, |before| format!("{before:.3} before, "));
    format!(
        "<p><b>{}</b> {} (by {}): {} switches change, {how}; maximum channel time {before}{:.3} after. \
         <code>espalierd approve {}</code></p>",
        proposal.id,
        escaped(&proposal.reason),
        escaped(&proposal.by),
        effect.switches_changed,
        effect.max_channel_time_after,
        proposal.id
    )
}

fn links(body: &mut String, status: &Status) {
    if status.links.is_empty() {
        return;
    }
    body.push_str("<h2>Links</h2><table><tr><th>Link</th><th>Up</th><th>Load</th><th>In reverse</th></tr>");
    let load = |part: Option<f64>| part.map_or_else(|| "?".to_owned(), |part| format!("{:.1} %", 100.0 * part));
    for link in &status.links {
        let up = match link.up {
            Some(true) => "yes",
            Some(false) => "<b class=\"critical\">no</b>",
            None => "?",
        };
        let _ = write!(
            body,
            "<tr><td>{}</td><td>{up}</td><td>{}</td><td>{}</td></tr>",
            escaped(&link.link),
            load(link.load[0]),
            load(link.load[1])
        );
    }
    body.push_str("</table>");
}

/// Text that is text in HTML, whatever is in it: names come from switches.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::LinkStatus;

    #[test]
    fn names_are_text() {
        let link = LinkStatus {
            link: "<script>\"s\"'&".to_owned(),
            up: Some(false),
            load: [None; 2],
            errors: None,
            discards: None,
        };
        let page = page(&Status { links: vec![link], ..Status::default() });
        assert!(page.contains("&lt;script&gt;&quot;s&quot;&#39;&amp;") && !page.contains("<script>"), "{page}");
    }
}
