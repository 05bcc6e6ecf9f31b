//! What `espalier status` and `watch` print of a fabric, whoever polled it: what is wrong, and the load of every link.

use std::time::Duration;

use fabric::{Plan, SwitchId, format::table::Table, format_rate};
use rollout::diagnose::{Cause, Consequence, Diagnosis, Remedy, Urgency, span};
use serde_json::{Value, json};
use switch_model::SwitchConfig;

use crate::StatusReport;

/// Differences of one switch that a person is shown; the rest are counted.
const SHOWN_MAX: usize = 12;
/// Tables that are older are said to be.
const OLD: Duration = Duration::from_secs(5);

/// The lines of a report, for a person.
pub fn status_lines(plan: &Plan, report: &StatusReport) -> Vec<String> {
    Picture { plan, report }.lines()
}

/// A report as one JSON object, for machines.
pub fn status_json(plan: &Plan, report: &StatusReport) -> Value {
    Picture { plan, report }.json()
}

/// A report and the plan that it is about.
struct Picture<'a> {
    plan: &'a Plan,
    report: &'a StatusReport,
}

impl Picture<'_> {
    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.report.diagnoses.iter().flat_map(|diagnosis| self.told(diagnosis)).collect();
        lines.push(format!("{} of {} switches hold the plan", self.report.as_planned(), self.report.seen.len()));
        let unasked = self.report.unasked();
        match unasked {
            0 if self.report.seen.iter().all(Result::is_ok)
                && !self.report.diagnoses.iter().any(|diagnosis| diagnosis.cause.is_of_cables()) =>
            {
                lines.push(format!("cables between switches are as planned: {}", self.plan.topology.links().len()));
            }
            0 => {}
            1 => lines.push("cables and counters of 1 switch are not known: no SNMP".to_owned()),
            _ => lines.push(format!("cables and counters of {unasked} switches are not known: no SNMP")),
        }
        if let Some(age) = self.report.ages.iter().flatten().max().filter(|age| **age >= OLD) {
            lines.push(format!("tables were read {} ago at most; counters and states of ports now", span(*age)));
        }
        lines.extend(self.links().to_string().lines().map(str::to_owned));
        lines
    }

    fn told(&self, diagnosis: &Diagnosis) -> Vec<String> {
        let note = if diagnosis.urgency == Urgency::Note { "note: " } else { "" };
        let mut lines = vec![format!("{note}{}", diagnosis.sentence(self.plan))];
        let config = self.config_of(diagnosis);
        let consequences = self.shown(diagnosis);
        for consequence in consequences.iter().take(SHOWN_MAX) {
            lines.push(format!("  {}", consequence.sentence(self.plan, config)));
        }
        if consequences.len() > SHOWN_MAX {
            lines.push(format!("  and {} more; --json has them all", consequences.len() - SHOWN_MAX));
        }
        lines.extend(diagnosis.remedy.sentence(self.plan).map(|remedy| format!("  to do: {remedy}")));
        lines
    }

    /// Of a switch that holds nothing of the plan, every difference follows from that.
    fn shown<'d>(&self, diagnosis: &'d Diagnosis) -> &'d [Consequence] {
        if matches!(diagnosis.cause, Cause::Reset { .. }) { &[] } else { &diagnosis.consequences }
    }

    fn config_of(&self, diagnosis: &Diagnosis) -> Option<&SwitchConfig> {
        Some(&self.report.seen[diagnosis.cause.switch()?.index()].as_ref().ok()?.config)
    }

    fn links(&self) -> Table {
        let mut table =
            Table::new(["link", "rate", "load", "load back", "errors", "discards", "PAUSE in", "PAUSE out"]);
        for link in &self.report.links {
            let known = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
            let load =
                |way: usize| link.load(way).map_or_else(|| "?".to_owned(), |load| format!("{:.1} %", 100.0 * load));
            table.row([
                link.name.clone(),
                match link.running {
                    Some(true) => format_rate(link.speed_bps),
                    Some(false) => "down".to_owned(),
                    None => "?".to_owned(),
                },
                load(0),
                load(1),
                known(link.errors),
                known(link.discards),
                known(link.pause[0]),
                known(link.pause[1]),
            ]);
        }
        table
    }

    fn json(&self) -> Value {
        let (plan, topology) = (self.plan, &self.plan.topology);
        let switches = topology.switch_ids().zip(&self.report.seen).zip(&self.report.ages);
        let switches: Vec<Value> = switches
            .map(|((id, seen), age)| {
                let name = &topology.switch(id).name;
                match seen {
                    Ok(sight) => json!({
                        "switch": name, "generation": sight.mark.map(|mark| mark.generation), "fault": null,
                        "differs": self.differs(id), "read_s_ago": age.map(|age| age.as_secs_f64()),
                        "up_s": sight.up.map(|up| up.as_secs_f64()),
                    }),
                    Err(fault) => json!({ "switch": name, "fault": fault.to_string() }),
                }
            })
            .collect();
        let links: Vec<Value> = (self.report.links.iter())
            .map(|link| {
                json!({
                    "link": link.name, "running": link.running, "speed_bps": link.speed_bps,
                    "rate_bps": link.rate_bps[0], "rate_back_bps": link.rate_bps[1],
                    "load": link.load(0), "load_back": link.load(1),
                    "errors": link.errors, "discards": link.discards,
                    "pause_in": link.pause[0], "pause_out": link.pause[1],
                })
            })
            .collect();
        let of_cables = self.report.diagnoses.iter().filter(|diagnosis| diagnosis.cause.is_of_cables());
        json!({
            "sound": self.report.is_sound(),
            "diagnoses": self.report.diagnoses.iter().map(|diagnosis| self.diagnosis_json(diagnosis)).collect::<Vec<_>>(),
            "switches": switches,
            "cables": of_cables.map(|diagnosis| diagnosis.sentence(plan)).collect::<Vec<_>>(),
            "unheard": self.report.unasked(), "links": links,
        })
    }

    /// Differences of one switch that nothing else explains, in sentences.
    fn differs(&self, switch: SwitchId) -> Vec<String> {
        let own = self.report.diagnoses.iter().filter(|diagnosis| diagnosis.cause.switch() == Some(switch));
        let sentences = |diagnosis: &Diagnosis| -> Vec<String> {
            let config = self.config_of(diagnosis);
            diagnosis.consequences.iter().map(|consequence| consequence.sentence(self.plan, config)).collect()
        };
        own.flat_map(sentences).collect()
    }

    fn diagnosis_json(&self, diagnosis: &Diagnosis) -> Value {
        let (plan, config) = (self.plan, self.config_of(diagnosis));
        let urgency = match diagnosis.urgency {
            Urgency::Act => "act",
            Urgency::Wait => "wait",
            Urgency::Note => "note",
        };
        let sentences = diagnosis.consequences.iter().map(|consequence| consequence.sentence(plan, config));
        let remedy: &Remedy = &diagnosis.remedy;
        json!({
            "urgency": urgency, "cause": diagnosis.cause.word(), "text": diagnosis.sentence(plan),
            "switch": diagnosis.cause.switch().map(|switch| plan.topology.switch(switch).name.clone()),
            "link": diagnosis.cause.link().map(|link| plan.topology.link_label(link)),
            "consequences": sentences.collect::<Vec<_>>(),
            "remedy": { "kind": remedy.word(), "text": remedy.sentence(plan) },
        })
    }
}
