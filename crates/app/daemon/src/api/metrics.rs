//! Metrics for Prometheus, made anew from the status at each scrape.
//!
//! Cardinality: three series for each link, one for each severity of events, and fifteen others.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use crate::documents::{Severity, Status, TargetState};

/// The media type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Number = Gauge<f64, AtomicU64>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LinkLabels {
    link: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectionLabels {
    link: String,
    direction: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SeverityLabels {
    severity: &'static str,
}

/// The metrics of a status.
pub fn metrics(status: &Status) -> String {
    let mut registry = Registry::with_prefix("espalierd");
    let mut number = |name: &str, help: &str, value: f64| {
        let gauge = Number::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    };
    let is_deployed = status.target.as_ref().is_some_and(|target| target.state == TargetState::Deployed);
    number(
        "target",
        "Number of the target, 0 if there is none",
        status.target.as_ref().map_or(0, |target| target.number) as f64,
    );
    number("target_deployed", "Whether the switches hold the target", f64::from(u8::from(is_deployed)));
    number("switches", "Switches of the target's plan", status.switches as f64);
    number("switches_as_planned", "Switches that answer and hold the plan", status.as_planned as f64);
    number("links_kept_out", "Links that are kept out of use, since they flap", status.kept_out.len() as f64);
    number("heartbeat_hosts", "Hosts that send heartbeats", status.heartbeats as f64);
    number("paths_failing", "Paths between hosts that fail, by the heartbeats", status.paths_failing as f64);
    number("proposals_open", "Proposals that wait for approval", status.proposals.len() as f64);
    number("maintenance", "Maintenance marks in force", status.maintenance.len() as f64);
    number("deliveries_pending", "Notifications that are to be delivered", status.deliveries_pending as f64);
    number("deliveries_failed", "Notifications that could not be delivered", status.deliveries_failed as f64);
    number("polled_timestamp_seconds", "When all switches were polled last", status.polled_s.unwrap_or(0) as f64);
    let took = Number::default();
    took.set(status.poll_took_s);
    registry.register_with_unit("poll", "How long the last poll of all switches took", Unit::Seconds, took);

    let events = Family::<SeverityLabels, Number>::default();
    for (severity, word) in [(Severity::Critical, "critical"), (Severity::Warning, "warning"), (Severity::Note, "note")]
    {
        let count = status.events.iter().filter(|event| event.severity == severity).count();
        events.get_or_create(&SeverityLabels { severity: word }).set(count as f64);
    }
    registry.register("events_open", "Events that last, by severity", events);

    let (up, load) = (Family::<LinkLabels, Number>::default(), Family::<DirectionLabels, Number>::default());
    for link in &status.links {
        if let Some(is_up) = link.up {
            up.get_or_create(&LinkLabels { link: link.link.clone() }).set(f64::from(u8::from(is_up)));
        }
        for (direction, part) in ["forward", "reverse"].into_iter().zip(link.load) {
            if let Some(part) = part {
                load.get_or_create(&DirectionLabels { link: link.link.clone(), direction }).set(part);
            }
        }
    }
    registry.register("link_up", "Whether the link carries", up);
    registry.register_with_unit(
        "link_load",
        "Used part of the link's capacity, 0 to 1",
        Unit::Other("ratio".to_owned()),
        load,
    );
    let mut text = String::new();
    encode(&mut text, &registry).expect("text takes all that is written");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::LinkStatus;

    /// Alerts and the dashboard ask for metrics that there are.
    #[test]
    fn alerts_and_the_dashboard_name_metrics_that_there_are() {
        let link =
            LinkStatus { link: "a".to_owned(), up: Some(true), load: [Some(0.5); 2], errors: None, discards: None };
        let text = metrics(&Status { links: vec![link], ..Status::default() });
        let known: Vec<&str> = text.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
        for named in [include_str!("../../monitoring/rules.yml"), include_str!("../../monitoring/grafana.json")] {
            let words = named.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
            let metrics: Vec<&str> = words.filter(|word| word.starts_with("espalierd_")).collect();
            assert!(!metrics.is_empty());
            for metric in metrics {
                assert!(known.contains(&metric), "there is no metric {metric}");
            }
        }
    }

    #[test]
    fn a_link_is_three_series() {
        let link = LinkStatus {
            link: "s0:p1 -- s1:\"p2\"".to_owned(),
            up: Some(true),
            load: [Some(0.25), None],
            errors: None,
            discards: None,
        };
        let text = metrics(&Status { switches: 4, links: vec![link], ..Status::default() });
        for line in [
            "espalierd_switches 4.0",
            "espalierd_target 0.0",
            "espalierd_link_up{link=\"s0:p1 -- s1:\\\"p2\\\"\"} 1.0",
            "espalierd_link_load_ratio{link=\"s0:p1 -- s1:\\\"p2\\\"\",direction=\"forward\"} 0.25",
            "espalierd_events_open{severity=\"critical\"} 0.0",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
