//! What is wrong with a fabric, from what its switches say: causes, each with its consequences and with advice that does
//! not hurt.
//!
//! ```text
//!   configuration found ─ drift ─┐
//!   ports up or down, since when ┼─▶ links ─▶ hosts that moved ─▶ causes: a dead cable, a dead switch, swapped plugs, …
//!   neighbours heard by LLDP ────┘                                 └─ consequences of a cause are told with it
//! ```
//! A difference from the plan is not always a fault: while a cable is down, `standby` has hosts' ports hold the PVIDs that
//! the plan stored for exactly that. Deploying would move those hosts back onto the dead cable, so it is never advised while
//! a cable that the plan uses is down, a plug is in the wrong port, or a switch does not answer.
//!
//! Nothing is read here, and no clock: whoever asks the switches tells how long ago ports changed.

mod cut_off;
mod evidence;
mod moves;
mod said;
mod words;

use std::{collections::BTreeSet, time::Duration};

use fabric::{Attachment, LinkId, Plan, PortId, SwitchId};

use switch_model::{
    SwitchConfig,
    driver::Fault,
    mark::Mark,
    observe::{Drift, small_mtus},
    station::Station,
};

use evidence::{Evidence, LinkState};
pub use moves::{Moves, Standing};
pub use said::{Cause, Consequence, Diagnosis, Remedy, Urgency};
pub use words::span;

/// What one switch said.
#[derive(Clone, Debug)]
pub struct Sight {
    /// What it holds; behind the ports of the plan, further ones that have to do with the plan's VLANs.
    pub config: SwitchConfig,
    /// Its deployment tag.
    pub mark: Option<Mark>,
    /// Whom it hears by LLDP; none of a switch that is asked by its command line.
    pub station: Option<Station>,
    /// `ports[slot]`: the plan's ports; empty of a switch that is asked by its command line.
    pub ports: Vec<PortSight>,
    /// Time between two of its LLDP announcements; none if it does not say.
    pub lldp_interval: Option<Duration>,
    /// Since its management started; none if it does not say.
    pub up: Option<Duration>,
}

/// What a switch said of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSight {
    /// Whether the cable carries (operational state up).
    pub running: bool,
    /// Since when, if the switch says so.
    pub since: Option<Duration>,
}

/// How often switches announce themselves if they do not say.
const LLDP_INTERVAL: Duration = Duration::from_secs(30);
/// How many intervals a cable must carry before a neighbour that is not heard counts as missing.
const LLDP_INTERVALS: u32 = 3;

/// Finds what is wrong, most urgent first. `goals[switch]` is what the plan wants, `seen[switch]` what was said.
///
/// # Panics
/// If there is not one of each for every switch of the plan, or a switch said something of fewer ports than it has.
pub fn diagnose(plan: &Plan, goals: &[SwitchConfig], seen: &[Result<Sight, Fault>]) -> Vec<Diagnosis> {
    let evidence = Evidence::new(plan, goals, seen);
    let mut found = switches_down(&evidence);
    found.extend(cables_down(&evidence));
    let cabling = cabling(&evidence);
    let plugs = cabling.iter().any(|diagnosis| matches!(diagnosis.cause, Cause::Miscabled(_)));
    found.extend(standing(&evidence, plugs));
    found.extend(cabling);
    found.extend(shut(&evidence, plugs));
    found.extend(drifted(&evidence, plugs));
    found.extend(small(plan, seen));
    found.extend(lags_short(&evidence));
    let off = evidence.hosts_down();
    if !off.is_empty() {
        let cause = Cause::HostsDown { hosts: off };
        found.push(Diagnosis { urgency: Urgency::Note, cause, consequences: Vec::new(), remedy: Remedy::Nothing });
    }
    found.sort_by_key(|diagnosis| diagnosis.urgency);
    found
}

/// LAGs of which some members carry and some do not; one that carries nothing is a cable that is down, or a host.
fn lags_short(evidence: &Evidence<'_>) -> Vec<Diagnosis> {
    let topology = &evidence.plan.topology;
    let lags = (0..topology.ports().len()).map(PortId::new).filter(|port| topology.port(*port).lag().is_some());
    let short = lags.filter_map(|lag| {
        let (members, missing) = (topology.members(lag).count(), evidence.missing_members(lag));
        (!missing.is_empty() && missing.len() < members).then_some((lag, Cause::LagShort { lag, missing, members }))
    });
    let remedy = |lag: PortId| match topology.port(lag).attachment {
        Attachment::Link(link) => Remedy::Repair(link),
        Attachment::Host(_) | Attachment::Nothing | Attachment::Member(_) => Remedy::Nothing,
    };
    let diagnosis =
        |(lag, cause)| Diagnosis { urgency: Urgency::Act, cause, consequences: Vec::new(), remedy: remedy(lag) };
    short.map(diagnosis).collect()
}

fn switches_down(evidence: &Evidence<'_>) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    for (switch, seen) in evidence.plan.topology.switch_ids().zip(evidence.seen) {
        let Err(fault) = seen else { continue };
        if evidence.is_cut_off(switch) {
            continue;
        }
        let down = evidence.down_links_of(switch);
        let is_dead = evidence.dead_switches.contains(&switch);
        let mut consequences = Vec::new();
        if !down.is_empty() {
            consequences.push(Consequence::Links(down));
        }
        let hosts = evidence.plan.topology.hosts_of(switch).to_vec();
        if !hosts.is_empty() {
            consequences.push(Consequence::Hosts(hosts));
        }
        let fault = fault.clone();
        if is_dead {
            consequences.extend(evidence.answer_for_switch(switch));
        }
        let (cause, remedy) = match (&fault, is_dead) {
            (_, true) => (Cause::SwitchDown { switch, fault }, Remedy::Power(switch)),
            (Fault::Silent, false) => (Cause::Unreachable { switch, fault }, Remedy::Reach(switch)),
            // What it says names the way out.
            (_, false) => (Cause::Unreachable { switch, fault }, Remedy::Nothing),
        };
        found.push(Diagnosis { urgency: Urgency::Act, cause, consequences, remedy });
    }
    found
}

fn cables_down(evidence: &Evidence<'_>) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    for (link, state) in evidence.plan.topology.link_ids().zip(&evidence.links) {
        let LinkState::Down { at, since } = state else { continue };
        if evidence.is_of_dead_switch(link) {
            continue;
        }
        let (consequence, remedy) = evidence.answer(link);
        found.push(Diagnosis {
            urgency: Urgency::Act,
            cause: Cause::CableDown { link, at: at.clone(), since: *since },
            consequences: std::iter::once(consequence).chain(evidence.cut_off_by(link)).collect(),
            remedy,
        });
    }
    found
}

/// Hosts that are not where the plan has them although all cables carry.
fn standing(evidence: &Evidence<'_>, plugs: bool) -> Option<Diagnosis> {
    let Moves { standing, moved, stopped, .. } = &evidence.moves;
    let (cause, consequences) = match standing {
        Standing::Lingering(failure) => {
            let since =
                failure.links(&evidence.plan.topology).iter().filter_map(|link| evidence.carried_for(*link)).min();
            let consequence = Consequence::InForce { failure: *failure, moved: moved.clone() };
            (Cause::Lingering { failure: *failure, since }, vec![consequence])
        }
        Standing::Between => {
            let mut hosts = [moved.as_slice(), stopped.as_slice()].concat();
            hosts.sort_unstable();
            (Cause::Between { hosts }, Vec::new())
        }
        Standing::Home | Standing::For(_) => return None,
    };
    let remedy = if evidence.standby_begins() { Remedy::Standby } else { evidence.deploying(plugs) };
    Some(Diagnosis { urgency: Urgency::Act, cause, consequences, remedy })
}

/// Cables that wait for somebody to confirm them.
fn shut(evidence: &Evidence<'_>, plugs: bool) -> Option<Diagnosis> {
    let links: Vec<LinkId> = evidence.shut.iter().copied().collect();
    if links.is_empty() {
        return None;
    }
    let remedy = evidence.deploying(plugs);
    Some(Diagnosis { urgency: Urgency::Act, cause: Cause::Shut { links }, consequences: Vec::new(), remedy })
}

/// What LLDP says against the plan, of cables that carry.
fn cabling(evidence: &Evidence<'_>) -> Vec<Diagnosis> {
    let act = |cause, remedy| Diagnosis { urgency: Urgency::Act, cause, consequences: Vec::new(), remedy };
    let neighbours = evidence.neighbours();
    let mut found: Vec<Diagnosis> = Vec::new();
    found.extend(neighbours.mismatches.into_iter().map(|mismatch| act(Cause::Miscabled(mismatch), Remedy::Replug)));
    found.extend(neighbours.doubts.into_iter().map(|cause| act(cause, Remedy::Nothing)));
    found.extend(
        neighbours.one_way.into_iter().map(|(hears, deaf)| act(Cause::OneWay { hears, deaf }, Remedy::LookAtLldp)),
    );
    if !neighbours.unheard.is_empty() {
        found.push(act(Cause::NoNeighbour { links: neighbours.unheard }, Remedy::LookAtLldp));
    }
    let youngest = neighbours.young.iter().map(|(_, up, _)| *up).min();
    let interval = neighbours.young.iter().map(|(_, _, interval)| *interval).max();
    if let (Some(up), Some(interval)) = (youngest, interval) {
        let links = neighbours.young.iter().map(|(link, _, _)| *link).collect();
        found.push(Diagnosis {
            urgency: Urgency::Wait,
            cause: Cause::NotHeardYet { links, up, interval },
            consequences: Vec::new(),
            remedy: Remedy::AskAgain((interval * LLDP_INTERVALS).saturating_sub(up)),
        });
    }
    found
}

/// Switches with ports that drop the hosts' largest packets.
fn small<'a>(plan: &'a Plan, seen: &'a [Result<Sight, Fault>]) -> impl Iterator<Item = Diagnosis> + 'a {
    plan.devices.iter().zip(seen).filter_map(|(device, seen)| {
        let found: Vec<Option<u16>> = seen.as_ref().ok()?.config.ports.iter().map(|port| port.mtu_bytes).collect();
        let (switch, ports) = (device.switch, small_mtus(device, &found));
        (!ports.is_empty()).then(|| Diagnosis {
            urgency: Urgency::Act,
            cause: Cause::SmallMtu { switch, ports },
            consequences: Vec::new(),
            remedy: Remedy::RaiseMtu,
        })
    })
}

fn drifted(evidence: &Evidence<'_>, plugs: bool) -> Vec<Diagnosis> {
    let remedy = evidence.deploying(plugs);
    let drained: Vec<SwitchId> = evidence.drained();
    let mut found = Vec::new();
    if !drained.is_empty() {
        found.push(Diagnosis {
            urgency: Urgency::Act,
            cause: Cause::Drained { switches: drained.clone() },
            consequences: Vec::new(),
            remedy: Remedy::ResumeOrUndo,
        });
    }
    let usual = evidence.usual_mark();
    let drained: BTreeSet<SwitchId> = drained.into_iter().collect();
    for switch in evidence.plan.topology.switch_ids().filter(|switch| !drained.contains(switch)) {
        let Ok(sight) = &evidence.seen[switch.index()] else { continue };
        let drifts = &evidence.drifts[switch.index()];
        if drifts.is_empty() {
            continue;
        }
        let cause = match (sight.mark, usual) {
            _ if evidence.is_reset(switch) => Cause::Reset { switch, up: sight.up },
            (Some(found), Some(others)) if (found.generation, found.digest) != (others.generation, others.digest) => {
                Cause::OtherDeployment { switch, found, others }
            }
            _ => Cause::Drifted { switch },
        };
        let by_hand = drifts.iter().all(Drift::is_beyond_snmp);
        found.push(Diagnosis {
            urgency: Urgency::Act,
            cause,
            consequences: drifts.iter().cloned().map(Consequence::Differs).collect(),
            remedy: if by_hand { Remedy::OwnCommands } else { remedy.clone() },
        });
    }
    found
}
