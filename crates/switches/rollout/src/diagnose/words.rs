//! Diagnoses in sentences.

use std::time::Duration;

use fabric::{Assignment, Failure, HostId, LinkId, Plan, PortId, SwitchId, Topology, VlanId};

use super::{Cause, Consequence, Diagnosis, Remedy};
use crate::discover::Mismatch;
use switch_model::{SwitchConfig, driver::Fault, observe::SMALL_MTU_WAY_OUT};

/// How many of several things are named.
const NAMED_MAX: usize = 4;

/// A time as people say it: `2 s`, `2 min 5 s`, `3 h 10 min`, `5 days`.
pub fn span(time: Duration) -> String {
    let s = time.as_secs();
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        3600..172_800 => format!("{} h {} min", s / 3600, s / 60 % 60),
        _ => format!("{} days", s / 86_400),
    }
}

impl Diagnosis {
    /// What is wrong, in a sentence.
    pub fn sentence(&self, plan: &Plan) -> String {
        self.cause.sentence(plan, &self.consequences)
    }
}

impl Cause {
    /// One word for machines.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::SwitchDown { .. } => "switch-down",
            Self::Unreachable { .. } => "unreachable",
            Self::CableDown { .. } => "cable-down",
            Self::Lingering { .. } => "moved-without-failure",
            Self::Between { .. } => "standby-interrupted",
            Self::Miscabled(_) => "miscabled",
            Self::ForeignCable { .. } => "foreign-cable",
            Self::UnknownPort { .. } => "unknown-port",
            Self::Crowd { .. } => "several-neighbours",
            Self::OneWay { .. } => "heard-one-way",
            Self::NotHeardYet { .. } => "not-heard-yet",
            Self::NoNeighbour { .. } => "no-neighbour",
            Self::Drained { .. } => "drained",
            Self::Shut { .. } => "shut",
            Self::Reset { .. } => "reset",
            Self::OtherDeployment { .. } => "other-deployment",
            Self::Drifted { .. } => "differs",
            Self::SmallMtu { .. } => "small-mtu",
            Self::LagShort { .. } => "lag-short",
            Self::HostsDown { .. } => "hosts-down",
        }
    }

    /// Whether it is about cables rather than what switches hold.
    pub const fn is_of_cables(&self) -> bool {
        matches!(
            self,
            Self::CableDown { .. }
                | Self::Miscabled(_)
                | Self::ForeignCable { .. }
                | Self::UnknownPort { .. }
                | Self::Crowd { .. }
                | Self::OneWay { .. }
                | Self::NotHeardYet { .. }
                | Self::NoNeighbour { .. }
                | Self::LagShort { .. }
                | Self::Shut { .. }
        )
    }

    /// The switch that it is about, if it is about one.
    pub const fn switch(&self) -> Option<SwitchId> {
        match self {
            Self::SwitchDown { switch, .. }
            | Self::Unreachable { switch, .. }
            | Self::Reset { switch, .. }
            | Self::OtherDeployment { switch, .. }
            | Self::SmallMtu { switch, .. }
            | Self::Lingering { failure: Failure::Switch(switch), .. }
            | Self::Drifted { switch } => Some(*switch),
            _ => None,
        }
    }

    /// The cable that it is about, if it is about one.
    pub const fn link(&self) -> Option<LinkId> {
        match self {
            Self::CableDown { link, .. } | Self::Lingering { failure: Failure::Link(link), .. } => Some(*link),
            _ => None,
        }
    }

    fn sentence(&self, plan: &Plan, consequences: &[Consequence]) -> String {
        let topology = &plan.topology;
        let name = |switch: &SwitchId| topology.switch(*switch).name.as_str();
        let label = |port: &PortId| topology.port_label(*port);
        let lasting =
            |since: &Option<Duration>| since.map_or_else(String::new, |since| format!(" for {}", span(since)));
        match self {
            Self::SwitchDown { switch, fault: Fault::Silent } => {
                format!(
                    "{} does not answer and none of its cables has a carrier: it is off, or restarting",
                    name(switch)
                )
            }
            Self::SwitchDown { switch, fault } => {
                format!("{}: {fault}; none of its cables has a carrier", name(switch))
            }
            Self::Unreachable { switch, fault } => format!("{}: {fault}", name(switch)),
            Self::CableDown { link, at, since } => {
                let ends: Vec<String> = at.iter().map(label).collect();
                let who = match ends.as_slice() {
                    [one] => format!("no carrier at {one}{}: no cable, or the far end is off", lasting(since)),
                    _ => format!("no carrier at either end{}", lasting(since)),
                };
                format!("{} is down: {who}", topology.link_label(*link))
            }
            Self::Lingering { failure, since } => format!(
                "{} {}{}, and hosts' ports still hold what is stored for its failure",
                failure.label(topology),
                match failure {
                    Failure::Link(_) => "carries",
                    Failure::Switch(_) | Failure::Group(_) => "has a cable that carries",
                },
                lasting(since)
            ),
            Self::Between { hosts } => format!(
                "{} in the middle of a change that no standby finished: {}",
                counted(hosts.len(), "host port is", "host ports are"),
                ports(topology, hosts)
            ),
            Self::Miscabled(mismatch) => miscabled(mismatch, topology),
            Self::ForeignCable { ends: [a, b] } => {
                format!("a cable between {a} and {b}, which the plan does not have; unplug it, or plan again with it")
            }
            Self::UnknownPort { hears, neighbour, port } => {
                format!("{hears} hears {neighbour} at a port that it calls {port:?}, which is none of its names there")
            }
            Self::Crowd { hears, count } => {
                format!("{hears} hears {count} switches at once; is an unmanaged switch between them?")
            }
            Self::OneWay { hears, deaf } => {
                format!("{} hears {} by LLDP, but not the other way round", label(hears), label(deaf))
            }
            Self::NotHeardYet { links, up, interval } => format!(
                "{} not heard yet by LLDP (up for {}, LLDP every {}): {}",
                counted(links.len(), "cable is", "cables are"),
                span(*up),
                span(*interval),
                cables(topology, links)
            ),
            Self::NoNeighbour { links } => format!(
                "{} up, but neither end hears the other by LLDP: {}",
                counted(links.len(), "cable is", "cables are"),
                cables(topology, links)
            ),
            Self::Drained { switches } => {
                let names = switches.iter().map(name);
                format!(
                    "every port that the plan uses is administratively down on {}: {}; a deployment is under way, or was interrupted",
                    counted(switches.len(), "switch", "switches"),
                    first_few(names)
                )
            }
            Self::Shut { links } => format!(
                "{} administratively down at both ends, as deploy leaves cables that nothing confirms: {}",
                counted(links.len(), "cable is", "cables are"),
                cables(topology, links)
            ),
            Self::Reset { switch, up } => {
                let up = up.map_or_else(String::new, |up| format!(" (up for {})", span(up)));
                format!("{} holds nothing of the plan{up}: it was reset or replaced", name(switch))
            }
            Self::OtherDeployment { switch, found, others } => format!(
                "{} holds generation {} of the deployment and most others generation {}",
                name(switch),
                found.generation,
                others.generation
            ),
            Self::Drifted { switch } => {
                let count = consequences.iter().filter(|one| matches!(one, Consequence::Differs(_))).count();
                format!("{}: {} from the plan", name(switch), counted(count, "difference", "differences"))
            }
            Self::SmallMtu { ports, .. } => {
                let named = ports.iter().take(NAMED_MAX).map(|port| port.sentence(topology)).collect::<Vec<_>>();
                let further = match ports.len().saturating_sub(NAMED_MAX) {
                    0 => String::new(),
                    more => format!("; and {}", counted(more, "further port", "further ports")),
                };
                format!("{}{further}", named.join("; "))
            }
            Self::LagShort { lag, missing, members } => format!(
                "{}: {} of {members} members are up; without carrier: {}",
                topology.port_label(*lag),
                members - missing.len(),
                first_few(missing.iter().map(|port| topology.port(*port).name.as_str()))
            ),
            Self::HostsDown { hosts } => format!(
                "{} no carrier: off, or unplugged: {}",
                counted(hosts.len(), "host has", "hosts have"),
                first_few(hosts.iter().map(|host| topology.host(*host).name.as_str()))
            ),
        }
    }
}

impl Consequence {
    /// What follows, in a sentence. `config` is what the switch holds that a difference is of.
    pub fn sentence(&self, plan: &Plan, config: Option<&SwitchConfig>) -> String {
        let topology = &plan.topology;
        match self {
            Self::Links(links) => {
                format!("{} no carrier: {}", counted(links.len(), "cable has", "cables have"), cables(topology, links))
            }
            Self::CutOff(switches) => format!(
                "{} managed over it, and cannot be asked: {}",
                counted(switches.len(), "switch is", "switches are"),
                first_few(switches.iter().map(|switch| topology.switch(*switch).name.as_str()))
            ),
            Self::Hosts(hosts) => format!(
                "nothing is known of {}: {}",
                counted(hosts.len(), "host", "hosts"),
                first_few(hosts.iter().map(|host| topology.host(*host).name.as_str()))
            ),
            Self::InForce { failure, moved } => format!(
                "the plan's answer to the failure of {} is in force{}; nothing to do on the switches",
                failure.label(topology),
                held(plan, *failure, moved)
            ),
            Self::PartlyInForce { failure, moved, stopped, waiting } => format!(
                "the plan's answer to the failure of {} is in force on {} of {} host ports{}; {}{}; standby would move the others",
                failure.label(topology),
                moved.len(),
                moved.len() + stopped.len() + waiting.len(),
                held(plan, *failure, moved),
                match stopped.len() {
                    0 => String::new(),
                    _ => format!(
                        "{} untagged frames for now: {}, ",
                        counted(stopped.len(), "takes no", "take no"),
                        ports(topology, stopped)
                    ),
                },
                match waiting.len() {
                    0 => "none waits".to_owned(),
                    _ => format!(
                        "{} the plan's own PVID: {}",
                        counted(waiting.len(), "still holds", "still hold"),
                        ports(topology, waiting)
                    ),
                },
            ),
            Self::NotMoved { failure, waiting } => match waiting.len() {
                0 => format!("what hosts' ports hold for the failure of {} is not known", failure.label(topology)),
                count => format!(
                    "{} to move as the plan stored for the failure of {}: {}; no standby runs, or it has not moved them yet",
                    counted(count, "host port is", "host ports are"),
                    failure.label(topology),
                    ports(topology, waiting)
                ),
            },
            Self::AnswerForAnother { failure } => format!(
                "hosts' ports hold the answer to the failure of {}, and nothing is stored for two failures at once",
                failure.label(topology)
            ),
            Self::NotNeeded => "no frame needs it; nothing to do on the switches".to_owned(),
            Self::Divides => "nothing runs beside it: hosts on its two sides are cut off from each other".to_owned(),
            Self::NothingStored => {
                "the plan stores nothing for failures: pairs of hosts whose frames take it are cut off".to_owned()
            }
            Self::HostsChoose => "hosts tag their own frames, and leave it by themselves".to_owned(),
            Self::Differs(drift) => config.map_or_else(|| format!("{drift:?}"), |config| drift.sentence(config)),
        }
    }
}

impl Remedy {
    /// One word for machines.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::AskAgain(_) => "ask-again",
            Self::DeployAgain => "deploy-again",
            Self::AfterRepairs { .. } => "repair-first",
            Self::OwnCommands => "own-commands",
            Self::RaiseMtu => "raise-mtu",
            Self::Repair(_) => "repair",
            Self::StandbyAndRepair(_) => "start-standby-and-repair",
            Self::Standby => "start-standby",
            Self::Power(_) => "power",
            Self::Reach(_) => "reach",
            Self::Replug => "replug",
            Self::LookAtLldp => "look-at-lldp",
            Self::Confirm(_) => "confirm",
            Self::ResumeOrUndo => "resume-or-undo",
        }
    }

    /// What to do, in words; none where there is nothing to do or the cause says it.
    pub fn sentence(&self, plan: &Plan) -> Option<String> {
        let topology = &plan.topology;
        Some(match self {
            Self::Nothing | Self::Replug => return None,
            Self::AskAgain(after) => format!("ask again in {}", span(*after + Duration::from_secs(1))),
            Self::DeployAgain => "deploy again".to_owned(),
            Self::AfterRepairs { links, switches, plugs } => {
                let mut first = Vec::new();
                if !links.is_empty() {
                    first.push(format!("repair {}", cables(topology, links)));
                }
                if !switches.is_empty() {
                    let names = switches.iter().map(|switch| topology.switch(*switch).name.as_str());
                    first.push(format!("get {} to answer", first_few(names)));
                }
                if *plugs {
                    first.push("move the plugs to their ports".to_owned());
                }
                format!(
                    "first {}, then ask again: deploying now would move hosts onto what is broken, or not succeed",
                    first.join(", ")
                )
            }
            Self::OwnCommands => "set it by the switch's own commands".to_owned(),
            Self::RaiseMtu => SMALL_MTU_WAY_OUT.to_owned(),
            Self::Repair(link) => format!("repair or replace the cable {}", topology.link_label(*link)),
            Self::StandbyAndRepair(link) => format!(
                "start espalier standby if it does not run, then repair or replace the cable {}",
                topology.link_label(*link)
            ),
            Self::Standby => "start espalier standby if it does not run: it moves the hosts back".to_owned(),
            Self::Power(switch) => format!("power {} on, or replace it", topology.switch(*switch).name),
            Self::Reach(switch) => {
                let switch = topology.switch(*switch);
                let address = switch.mgmt.map_or_else(String::new, |address| format!(" {address}"));
                format!(
                    "see whether its management address{address} is right, its management port has a cable, and SNMP is on with these credentials"
                )
            }
            Self::LookAtLldp => {
                "turn LLDP on at both ends, or look for an unmanaged switch between them; one direction of the cable may be dead"
                    .to_owned()
            }
            Self::Confirm(link) => {
                let [a, b] = [topology.link(*link).a, topology.link(*link).b].map(|port| topology.port_label(port));
                format!(
                    "turn LLDP on at both ends and deploy the plan once more; where you know the plugs, add --trust-cabling {a}--{b}"
                )
            }
            Self::ResumeOrUndo => {
                "let the deployment end; if it was interrupted, finish it with espalier deploy --resume, or take it back with --undo"
                    .to_owned()
            }
        })
    }
}

fn miscabled(mismatch: &Mismatch, topology: &Topology) -> String {
    mismatch.sentence(topology)
}

/// `1 cable`, `2 cables`.
fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

fn first_few<S: AsRef<str>>(names: impl Iterator<Item = S>) -> String {
    let names: Vec<S> = names.collect();
    let shown = names.iter().take(NAMED_MAX).map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    match names.len().checked_sub(NAMED_MAX) {
        Some(more @ 1..) => format!("{shown} and {more} more"),
        _ => shown,
    }
}

fn cables(topology: &Topology, links: &[LinkId]) -> String {
    first_few(links.iter().map(|link| topology.link_label(*link)))
}

fn ports(topology: &Topology, hosts: &[HostId]) -> String {
    first_few(hosts.iter().map(|host| topology.port_label(topology.host(*host).port)))
}

/// Ports that hold another PVID than the plan's, and which.
fn held(plan: &Plan, failure: Failure, moved: &[HostId]) -> String {
    let stored = plan.failover.as_ref().and_then(|failover| failover.switch_over(failure));
    let vlan = |host: HostId| -> Option<VlanId> {
        let run = stored?.hosts.iter().find(|run| (run.first..=run.last).contains(&host))?;
        Some(run.choice)
    };
    let Assignment::Source(home) = &plan.assignment else { return String::new() };
    let port = |host: &HostId| {
        let label = plan.topology.port_label(plan.topology.host(*host).port);
        let vlan = vlan(*host).map_or_else(|| "?".to_owned(), |vlan| vlan.to_string());
        format!("{label} is on VLAN {vlan} instead of {}", home[host.index()])
    };
    if moved.is_empty() { String::new() } else { format!(" ({})", first_few(moved.iter().map(port))) }
}
