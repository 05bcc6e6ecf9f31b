//! Heartbeats of hosts: failing paths folded to cables, and hosts that are not heard any more.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{HostId, Mac, Plan, SwitchId};

use super::{Inner, Manager, Refused, concerns, is_marked, kinds};
use crate::{
    archive::ArchiveError,
    core::{
        events::Condition,
        failing_paths::{Explanation, FailingPath, Folded, KnownDown, Suspicion, Tested, fold},
        heartbeats::{Beat, Heartbeats, Loss, SentBits, Source},
        hysteresis::Hysteresis,
    },
    documents::{Maintenance, Severity},
    show::moment,
};

/// Consequences that are named; the rest are counted.
const NAMED_MAX: usize = 20;
/// Intervals for which paths must fail until it is an event.
const RISE: u64 = 2;
/// Intervals for which they must not fail until it is over.
const FALL: u64 = 3;

/// What is known from heartbeats.
#[derive(Default)]
pub(super) struct Hosts {
    beats: Heartbeats,
    suspicions: Hysteresis<Condition>,
    judged_s: Option<u64>,
    /// Paths that fail, by what hosts said last.
    pub(super) failing: usize,
}

impl Hosts {
    /// Number of hosts whose last heartbeat counts.
    pub(super) fn count(&self, now_s: u64) -> usize {
        self.beats.fresh(now_s).map(|beat| beat.host).collect::<BTreeSet<Mac>>().len()
    }

    /// What hosts sent since this was asked last.
    pub(super) fn take_sent(&mut self) -> BTreeMap<Mac, SentBits> {
        self.beats.take_sent()
    }
}

impl Manager {
    /// Takes a heartbeat.
    ///
    /// # Errors
    /// [`Refused::NotFound`], if no switch of the plan has the host; [`ArchiveError`].
    pub fn heartbeat(&self, beat: Beat) -> Result<(), Refused> {
        let now_s = self.now_s();
        {
            let mut inner = self.inner();
            let is_of = |plan: &Plan| plan.topology.hosts().iter().any(|host| host.macs().any(|mac| mac == beat.host));
            if !inner.held.as_ref().is_some_and(|(_, plan)| is_of(plan)) {
                return Err(Refused::NotFound(format!("the plan that the switches hold has no host {}", beat.host)));
            }
            inner.hosts.beats.take(now_s, beat);
            // However many hosts there are, their paths are folded once a second.
            if inner.hosts.judged_s == Some(now_s) {
                return Ok(());
            }
        }
        let marks = self.marks(now_s)?;
        Ok(self.judge_heartbeats(&mut self.inner(), now_s, &marks)?)
    }

    /// Says what follows from heartbeats by now, and from those that are missing.
    pub(super) fn judge_heartbeats(
        &self,
        inner: &mut Inner,
        now_s: u64,
        marks: &[Maintenance],
    ) -> Result<(), ArchiveError> {
        let conditions = inner.heartbeat_conditions(now_s, marks);
        self.record(inner, now_s, conditions, &|kind| [kinds::PATHS, kinds::CEASED].contains(&kind))
    }
}

impl Inner {
    fn heartbeat_conditions(&mut self, now_s: u64, marks: &[Maintenance]) -> Vec<Condition> {
        let Some((_, plan)) = self.held.clone() else { return Vec::new() };
        let by_mac = plan.topology.hosts_by_mac();
        self.hosts.judged_s = Some(now_s);
        self.hosts.beats.forget(now_s, |host| by_mac.contains_key(&host));
        let down = self.known_down(&plan);
        let mut losses: BTreeMap<FailingPath, Loss> = BTreeMap::new();
        let mut every_s = 1;
        let reports: Vec<Tested> = (self.hosts.beats.fresh(now_s))
            .map(|beat| {
                let from = by_mac[&beat.host];
                every_s = every_s.max(beat.every_s);
                let known = beat.failing.iter().filter_map(|((vlan, toward), loss)| {
                    Some((FailingPath { from, toward: *by_mac.get(toward)?, vlan: *vlan }, *loss))
                });
                let mut known: Vec<(FailingPath, Loss)> = known.collect();
                let mut further = BTreeSet::new();
                for (toward, loss) in &beat.tested {
                    // An address that the plan does not know is none of its paths.
                    let Some(toward) = by_mac.get(toward).copied().filter(|toward| *toward != from) else { continue };
                    let vlan = plan.assignment.unicast(from, toward);
                    further.insert((vlan, plan.topology.switch_of(toward)));
                    known.extend(loss.map(|loss| (FailingPath { from, toward, vlan }, loss)));
                }
                losses.extend(known.iter().copied());
                let failing = known.into_iter().map(|(path, _)| path).collect();
                Tested { host: from, vlans: beat.vlans.clone(), further, failing }
            })
            .collect();
        self.hosts.failing = losses.len();
        let folded = fold(&plan, &reports, &down);
        let seen = suspected(&plan, &folded, &losses, marks);
        let mut conditions = self.hosts.suspicions.see(now_s, seen, (RISE * every_s, FALL * every_s));
        conditions.extend(self.ceased(now_s, &plan, &by_mac, &down, marks));
        conditions
    }

    /// What the last poll found to be down.
    fn known_down(&self, plan: &Plan) -> KnownDown {
        let links = self.polls.last.as_ref().map_or(&[][..], |last| &last.links);
        let is_down = |at: usize| links.get(at).is_some_and(|link| link.up == Some(false));
        let count = plan.topology.links().len();
        KnownDown {
            links: plan.topology.link_ids().filter(|link| is_down(link.index())).collect(),
            hosts: plan.topology.host_ids().filter(|host| is_down(count + host.index())).collect(),
        }
    }

    /// Hosts that are not heard any more, as one condition: often they have a cause in common, such as their network.
    fn ceased(
        &self,
        now_s: u64,
        plan: &Plan,
        by_mac: &BTreeMap<Mac, HostId>,
        down: &KnownDown,
        marks: &[Maintenance],
    ) -> Option<Condition> {
        let ceased = self.hosts.beats.ceased(now_s);
        let ceased = ceased.filter_map(|(mac, source, at_s)| Some((*by_mac.get(&mac)?, source, at_s)));
        let name = |host: HostId| plan.topology.host(host).name.as_str();
        let hosts: Vec<(HostId, Source, u64)> =
            ceased.filter(|(host, ..)| !down.hosts.contains(host) && !is_marked(marks, name(*host))).collect();
        let (first, ..) = hosts.first()?;
        let of = |source: &Source| match source {
            Source::Tagger => "",
            Source::Ri2n => " of its connections of RI2N",
        };
        let since = |(host, source, at_s): &(HostId, Source, u64)| {
            format!("{}: the last one{} came at {}", name(*host), of(source), moment(*at_s))
        };
        Some(Condition {
            kind: kinds::CEASED.to_owned(),
            subject: String::new(),
            severity: Severity::Warning,
            message: match hosts.len() {
                1 => format!("{} sends no heartbeats any more; what it said of its paths is forgotten", name(*first)),
                count => format!("{count} hosts send no heartbeats any more; what they said of their paths is forgotten"),
            },
            consequences: named(hosts.iter().map(since).collect()),
            remedy: Some(
                "see whether espalier tagger run --controller or espalier heartbeats runs on these hosts; a host that is gone for good is forgotten after a day"
                    .to_owned(),
            ),
            maintenance: None,
        })
    }
}

/// The first of some lines, and how many more there are.
fn named(mut lines: Vec<String>) -> Vec<String> {
    if let Some(more) = lines.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        lines.truncate(NAMED_MAX);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// What is said of failing paths, by subject.
fn suspected(
    plan: &Plan,
    Folded { suspicions, unexplained }: &Folded,
    losses: &BTreeMap<FailingPath, Loss>,
    marks: &[Maintenance],
) -> BTreeMap<String, Condition> {
    let (topology, mut found) = (&plan.topology, BTreeMap::new());
    let host = |host: HostId| topology.host(host).name.as_str();
    let sentence = |path: &FailingPath| {
        let loss = if losses.get(path) == Some(&Loss::All) { "no frame arrives" } else { "frames are lost" };
        format!("{} to {} in VLAN {}: {loss}", host(path.from), host(path.toward), path.vlan)
    };
    let mut say = |subject: String, message: String, remedy: Option<String>, paths: &[FailingPath]| {
        let mark = marks.iter().find(|mark| concerns(mark, &subject));
        // What nothing explains gives a person nothing to do.
        let is_silent = remedy.is_some() && paths.iter().any(|path| losses.get(path) == Some(&Loss::All));
        let condition = Condition {
            kind: kinds::PATHS.to_owned(),
            severity: match mark {
                Some(_) => Severity::Note,
                None if is_silent => Severity::Critical,
                None => Severity::Warning,
            },
            message,
            consequences: named(paths.iter().map(sentence).collect()),
            remedy,
            maintenance: mark.map(|mark| mark.reason.clone()),
            subject: subject.clone(),
        };
        found.insert(subject, condition);
    };
    let hosts_of = |switch: SwitchId| -> Vec<&str> {
        topology.host_ids().filter(|host| topology.switch_of(*host) == switch).map(host).collect()
    };
    for Suspicion { causes, paths } in suspicions {
        let label = |cause: &Explanation| match cause {
            Explanation::Link(link) => topology.link_label(*link),
            Explanation::HostsOf(switch) => format!("hosts of {}", topology.switch(*switch).name),
            Explanation::FromHostsOf(switch) => format!("frames from hosts of {}", topology.switch(*switch).name),
        };
        let labels: Vec<String> = causes.iter().map(label).collect();
        let subject = labels.join(" or ");
        let count = failing(paths.len());
        match &causes[..] {
            [cause @ (Explanation::HostsOf(switch) | Explanation::FromHostsOf(switch))] => {
                let (name, hosts) = (&topology.switch(*switch).name, hosts_of(*switch).join(", "));
                let what = match cause {
                    Explanation::FromHostsOf(_) => "reach no others",
                    _ => "are not reached by others",
                };
                let message = format!("hosts at {name} ({hosts}) {what}, although their ports are up: {count}");
                let remedy = format!("see whether {hosts} run, and espalier tagger on them");
                say(subject, message, Some(remedy), paths);
            }
            [Explanation::Link(link)] => {
                let link = topology.link_label(*link);
                let message = format!("{link} loses frames although it is up: {count} over it");
                let remedy = format!(
                    "replace the cable or the transceivers of {link}; until then espalierd maintain '{link}' --drain proposes a plan without it"
                );
                say(subject, message, Some(remedy), paths);
            }
            _ => {
                let message =
                    format!("one of these loses frames although all are up: {}; {count} over it", labels.join(", "));
                say(
                    subject,
                    message,
                    Some("examine the cables one by one; heartbeats of more hosts tell them apart".to_owned()),
                    paths,
                );
            }
        }
    }
    if !unexplained.is_empty() {
        let message = format!("{}, and no cable explains it", failing(unexplained.len()));
        say(UNEXPLAINED.to_owned(), message, None, unexplained);
    }
    found
}

/// The subject of paths that nothing explains.
const UNEXPLAINED: &str = "paths";

fn failing(paths: usize) -> String {
    match paths {
        1 => "1 path between hosts fails".to_owned(),
        count => format!("{count} paths between hosts fail"),
    }
}
