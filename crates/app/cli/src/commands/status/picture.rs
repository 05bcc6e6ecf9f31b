//! What `status` and `watch` show: what is wrong, and the load of every link.

use std::time::Duration;

use anyhow::Result;
use fabric::{Plan, PortId, SwitchId, format_rate};
use rollout::diagnose::{Cause, Consequence, Diagnosis, Remedy, Sight, Urgency, diagnose, span};
use serde_json::{Value, json};
use switch_model::{
    SwitchConfig,
    driver::Fault,
    observe::{Flow, Snapshot, flow},
};

use crate::{
    commands::{Output, say},
    table::Table,
};

/// Differences of one switch that a person is shown; the rest are counted.
const SHOWN_MAX: usize = 12;
/// Tables that are older are said to be.
const OLD: Duration = Duration::from_secs(5);

/// Everything that a status shows.
pub(super) struct Picture<'a> {
    plan: &'a Plan,
    /// `seen[switch]`.
    seen: Vec<Result<Sight, Fault>>,
    /// How long ago tables were read.
    ages: Vec<Option<Duration>>,
    diagnoses: Vec<Diagnosis>,
    links: Vec<Carried>,
}

/// What a cable carries: from its first end to the second, and back.
struct Carried {
    name: String,
    /// None if neither end says.
    running: Option<bool>,
    speed_bps: u64,
    rate_bps: [Option<u64>; 2],
    /// At both ends, received and sent.
    errors: Option<u64>,
    discards: Option<u64>,
    /// PAUSE frames that the first end received and sent.
    pause: [Option<u64>; 2],
}

impl<'a> Picture<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        goals: &[SwitchConfig],
        seen: Vec<Result<Sight, Fault>>,
        ages: Vec<Option<Duration>>,
        (before, after): (&[Option<Snapshot>], &[Option<Snapshot>]),
    ) -> Self {
        let diagnoses = diagnose(plan, goals, &seen);
        let flows: Vec<Vec<Option<Flow>>> = (before.iter().zip(after))
            .map(|pair| match pair {
                (Some(before), Some(after)) => flow(before, after),
                _ => Vec::new(),
            })
            .collect();
        Self { plan, seen, ages, diagnoses, links: links(plan, &flows) }
    }

    /// Whether nobody is needed and nothing is awaited.
    pub(super) fn is_sound(&self) -> bool {
        self.diagnoses.iter().all(|diagnosis| diagnosis.urgency == Urgency::Note)
    }

    /// Prints it.
    ///
    /// # Errors
    /// If standard output cannot be written to.
    pub(super) fn show(&self, output: Output) -> Result<()> {
        if output == Output::Json {
            say!("{}", self.json());
            return Ok(());
        }
        for diagnosis in &self.diagnoses {
            self.tell(diagnosis)?;
        }
        say!("{} of {} switches hold the plan", self.as_planned(), self.seen.len());
        let unasked = self.unasked();
        match unasked {
            0 if self.seen.iter().all(Result::is_ok)
                && !self.diagnoses.iter().any(|diagnosis| diagnosis.cause.is_of_cables()) =>
            {
                say!("cables between switches are as planned: {}", self.plan.topology.links().len());
            }
            0 => {}
            1 => say!("cables and counters of 1 switch are not known: no SNMP"),
            _ => say!("cables and counters of {unasked} switches are not known: no SNMP"),
        }
        if let Some(age) = self.ages.iter().flatten().max().filter(|age| **age >= OLD) {
            say!("tables were read {} ago at most; counters and states of ports now", span(*age));
        }
        self.show_links()
    }

    /// Switches that answer and do not differ from the plan without a reason.
    fn as_planned(&self) -> usize {
        let differs = |switch: SwitchId| {
            self.diagnoses.iter().any(|diagnosis| match &diagnosis.cause {
                Cause::Drained { switches } => switches.contains(&switch),
                cause => cause.switch() == Some(switch),
            })
        };
        self.plan.topology.switch_ids().filter(|switch| !differs(*switch)).count()
    }

    /// Switches that were asked by their command line, which says nothing of cables and counters.
    fn unasked(&self) -> usize {
        self.seen.iter().filter(|seen| seen.as_ref().is_ok_and(|sight| sight.station.is_none())).count()
    }

    fn tell(&self, diagnosis: &Diagnosis) -> Result<()> {
        let note = if diagnosis.urgency == Urgency::Note { "note: " } else { "" };
        say!("{note}{}", diagnosis.sentence(self.plan));
        let config = self.config_of(diagnosis);
        let consequences = self.shown(diagnosis);
        for consequence in consequences.iter().take(SHOWN_MAX) {
            say!("  {}", consequence.sentence(self.plan, config));
        }
        if consequences.len() > SHOWN_MAX {
            say!("  and {} more; --json has them all", consequences.len() - SHOWN_MAX);
        }
        if let Some(remedy) = diagnosis.remedy.sentence(self.plan) {
            say!("  to do: {remedy}");
        }
        Ok(())
    }

    /// Of a switch that holds nothing of the plan, every difference follows from that.
    fn shown<'d>(&self, diagnosis: &'d Diagnosis) -> &'d [Consequence] {
        if matches!(diagnosis.cause, Cause::Reset { .. }) { &[] } else { &diagnosis.consequences }
    }

    fn config_of(&self, diagnosis: &Diagnosis) -> Option<&SwitchConfig> {
        Some(&self.seen[diagnosis.cause.switch()?.index()].as_ref().ok()?.config)
    }

    fn show_links(&self) -> Result<()> {
        let mut table =
            Table::new(["link", "rate", "load", "load back", "errors", "discards", "PAUSE in", "PAUSE out"]);
        for link in &self.links {
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
        say!("{table}");
        Ok(())
    }

    fn json(&self) -> Value {
        let (plan, topology) = (self.plan, &self.plan.topology);
        let switches = topology.switch_ids().zip(&self.seen).zip(&self.ages);
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
        let links: Vec<Value> = (self.links.iter())
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
        let of_cables = self.diagnoses.iter().filter(|diagnosis| diagnosis.cause.is_of_cables());
        json!({
            "sound": self.is_sound(),
            "diagnoses": self.diagnoses.iter().map(|diagnosis| self.diagnosis_json(diagnosis)).collect::<Vec<_>>(),
            "switches": switches,
            "cables": of_cables.map(|diagnosis| diagnosis.sentence(plan)).collect::<Vec<_>>(),
            "unheard": self.unasked(), "links": links,
        })
    }

    /// Differences of one switch that nothing else explains, in sentences.
    fn differs(&self, switch: SwitchId) -> Vec<String> {
        let own = self.diagnoses.iter().filter(|diagnosis| diagnosis.cause.switch() == Some(switch));
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

impl Carried {
    /// The part of the capacity that is used, 0 to 1; none if either is unknown.
    fn load(&self, way: usize) -> Option<f64> {
        let rate_bps = self.rate_bps[way].filter(|_| self.speed_bps > 0)?;
        Some(rate_bps as f64 / self.speed_bps as f64)
    }
}

/// Every cable between switches, then those of hosts. What one end does not say, the other may.
fn links(plan: &Plan, flows: &[Vec<Option<Flow>>]) -> Vec<Carried> {
    let topology = &plan.topology;
    let at = |port: PortId| {
        let switch = topology.port(port).switch;
        *flows.get(switch.index())?.get(port.index() - topology.switch_ports(switch).start)?
    };
    let carried = |name: String, first: Option<Flow>, second: Option<Flow>| {
        let of = |flow: &Option<Flow>, what: fn(&Flow) -> [Option<u64>; 2]| flow.as_ref().map_or([None; 2], what);
        let rates = [of(&first, |flow| flow.rate_bps), of(&second, |flow| flow.rate_bps)];
        let sum = |what: fn(&Flow) -> [Option<u64>; 2]| {
            let counts = [of(&first, what), of(&second, what)];
            let known: Vec<u64> = counts.iter().flatten().flatten().copied().collect();
            (!known.is_empty()).then(|| known.iter().sum())
        };
        let ends = || [&first, &second].into_iter().flatten();
        Carried {
            name,
            running: ends().map(|flow| flow.running).reduce(|one, other| one && other),
            speed_bps: ends().map(|flow| flow.speed_bps).filter(|speed| *speed > 0).min().unwrap_or(0),
            rate_bps: [rates[0][1].or(rates[1][0]), rates[0][0].or(rates[1][1])],
            errors: sum(|flow| flow.errors),
            discards: sum(|flow| flow.discards),
            pause: of(&first, |flow| flow.pause),
        }
    };
    let between = topology.links().iter().map(|link| {
        let name = format!("{} -- {}", topology.port_label(link.a), topology.port_label(link.b));
        carried(name, at(link.a), at(link.b))
    });
    let hosts = topology
        .hosts()
        .iter()
        .map(|host| carried(format!("{} -- {}", topology.port_label(host.port), host.name), at(host.port), None));
    between.chain(hosts).collect()
}
