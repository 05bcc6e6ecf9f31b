//! Events and results in words: what kind each is and of what, for machines, and a sentence for people.

use fabric::{Assignment, Failure, HostId, LinkId, Plan, PortId, SwitchId, SwitchOver, Topology};
use rollout::{
    addresses::{AddressNotice, MOVES_MAX, MOVES_WITHIN},
    bonds::BondNotice,
    standby::{ActiveVlans, Prepared, StandbyNotice},
};
use switch_model::{driver::Fault, sight::End};

use crate::{AddressesEvent, AddressesResult, Disagreement, StandbyEvent, StandbyResult, count::counted};

/// Something that happened, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// What kind of thing it is.
    pub kind: &'static str,
    /// What it is about: a switch, link, host or address.
    pub subject: Option<String>,
    /// A sentence.
    pub text: String,
}

fn words(kind: &'static str, subject: Option<&str>, text: impl Into<String>) -> Words {
    Words { kind, subject: subject.map(str::to_owned), text: text.into() }
}

fn name(plan: &Plan, switch: SwitchId) -> &str {
    &plan.topology.switch(switch).name
}

fn waiting(plan: &Plan, switch: SwitchId, fault: &Fault) -> Words {
    let name = name(plan, switch);
    words("waiting", Some(name), format!("waiting for {name}: {fault}"))
}

fn failing(plan: &Plan, switch: SwitchId, fault: &Fault) -> Words {
    let name = name(plan, switch);
    words("fault", Some(name), format!("{name}: {fault}"))
}

fn answers(plan: &Plan, switch: SwitchId) -> Words {
    let name = name(plan, switch);
    words("answers", Some(name), format!("{name} answers again"))
}

/// A port by the names that the topology has for it.
pub fn port_words(topology: &Topology, (switch, slot): End) -> String {
    let ports = topology.switch_ports(switch);
    let name = &topology.switch(switch).name;
    match slot.index() < ports.len() {
        true => format!("{name}:{}", topology.port(PortId::new(ports.start + slot.index())).name),
        false => format!("{name}: a port that the plan does not name"),
    }
}

impl StandbyEvent {
    /// The event in words; none if it is not for people.
    pub fn words(&self, plan: &Plan) -> Option<Words> {
        Some(match self {
            Self::Failure(..) => return None,
            Self::Waits(switch, fault) => waiting(plan, *switch, fault),
            Self::Ready { prepared, bonds } => ready(plan, *prepared, *bonds),
            Self::Fault(switch, fault) => failing(plan, *switch, fault),
            Self::Answers(switch) => answers(plan, *switch),
            Self::Notice(notice) => standby_notice(plan, notice),
            Self::Bond(notice) => bond_notice(plan, notice),
        })
    }
}

fn ready(plan: &Plan, Prepared { links, switches, groups, stopped }: Prepared, bonds: usize) -> Words {
    let care = match stopped {
        0 => String::new(),
        _ => format!("; for {stopped} of them hosts that move are stopped for a moment"),
    };
    let (of, of_switches) = (plan.topology.links().len(), plan.topology.switches().len());
    let cables = match &plan.failover {
        Some(_) if groups > 0 => {
            let of_groups = plan.topology.groups().len();
            format!(
                "any of {links} cables of {of}, {switches} switches of {of_switches} or {groups} groups of {of_groups}{care}"
            )
        }
        Some(_) if switches > 0 => {
            format!("any of {links} cables of {of} or {switches} switches of {of_switches}{care}")
        }
        Some(_) => format!("any of {links} cables of {of}{care}"),
        None => String::new(),
    };
    let bonds = match bonds {
        0 => String::new(),
        _ => format!("the active port of {}", counted(bonds, "failover bond")),
    };
    let of_what: Vec<String> = [cables, bonds].into_iter().filter(|words| !words.is_empty()).collect();
    words("ready", None, format!("standing by for the failure of {}", of_what.join(", and of ")))
}

fn bond_notice(plan: &Plan, notice: &BondNotice) -> Words {
    let topology = &plan.topology;
    let port = |host: HostId| {
        let host = topology.host(host);
        (host.name.as_str(), topology.port_label(host.port))
    };
    match *notice {
        BondNotice::Moves { from, to } => {
            let ((from, _), (to, at)) = (port(from), port(to));
            let text = format!("{to} at {at} takes over from {from}: entries for its addresses turn there");
            words("bond-moves", Some(to), text)
        }
        BondNotice::Sends { from, to } => {
            let ((from, _), (to, at)) = (port(from), port(to));
            let text =
                format!("{to} at {at} sends instead of {from}, which is up: entries for its addresses turn there");
            words("bond-moves", Some(to), text)
        }
        BondNotice::Down(active) => {
            let (name, at) = port(active);
            let machine = &topology.machine(topology.host(active).machine).name;
            let text =
                format!("{name} at {at} is down, and no other port of {machine} is up: {machine} is unreachable");
            words("bond-down", Some(name), text)
        }
    }
}

fn standby_notice(plan: &Plan, notice: &StandbyNotice) -> Words {
    let of_link = |kind, link: LinkId, text: &dyn Fn(&str) -> String| {
        let label = plan.topology.link_label(link);
        words(kind, Some(&label), text(&label))
    };
    let of_failure = |kind, failure: Failure, text: &dyn Fn(&str) -> String| {
        let label = failure.label(&plan.topology);
        words(kind, Some(&label), text(&label))
    };
    let moved = |failure: Failure| {
        let over = plan.failover.as_ref().and_then(|failover| failover.switch_over(failure));
        let stays = || "no frame between other hosts passes it".to_owned();
        over.map_or_else(stays, |over| moved_words(plan, over))
    };
    match *notice {
        StandbyNotice::Failed(failure) => {
            of_failure("failed", failure, &|label| format!("{label} is down: {}", moved(failure)))
        }
        StandbyNotice::Missed(link) => {
            of_link("failed", link, &|label| format!("{label} is down, which no frame needs"))
        }
        StandbyNotice::Dividing(link) => of_link("divided", link, &|label| {
            format!("{label} is down, and nothing runs beside it: hosts are cut off from each other")
        }),
        StandbyNotice::Second(failure) => of_failure("second", failure, &|label| {
            format!("{label} is down as well, and nothing is stored for two: mend either, or plan again")
        }),
        StandbyNotice::Healed(link) => of_link("healed", link, &|label| format!("{label} carries again")),
        StandbyNotice::KeptOut(link, failures, hold) => of_link("kept-out", link, &|label| {
            format!(
                "{label} has failed {failures} times in a row: hosts return to it once it has carried for {} s",
                hold.as_secs_f64()
            )
        }),
        StandbyNotice::Admitted(link) => {
            of_link("admitted", link, &|label| format!("{label} has carried for long enough to be used again"))
        }
        StandbyNotice::Holds(ActiveVlans::Planned) => words("home", None, "all hosts send as the plan has it"),
        StandbyNotice::Holds(ActiveVlans::Backup(failure)) => {
            of_failure("over", failure, &|label| format!("hosts have switched over, away from {label}"))
        }
        StandbyNotice::Holds(ActiveVlans::Gathering) => {
            words("gathering", None, "hosts that were found in the middle of a change are stopped, and go home")
        }
        StandbyNotice::Holds(ActiveVlans::Stopped(failure)) => of_failure("stopped", failure, &|label| {
            format!("hosts that {label} concerns are stopped until their frames are gone")
        }),
        StandbyNotice::CannotStop(failure, switch) | StandbyNotice::Waits(failure, switch) => {
            let (name, label) = (name(plan, switch), failure.label(&plan.topology));
            let text = format!(
                "{name} does not do what {label} asks for, and without it nothing may change; the next try is in a minute"
            );
            words("waits", Some(name), text)
        }
    }
}

/// How many hosts, or pairs of them, a switch-over moves.
pub fn moved_words(plan: &Plan, over: &SwitchOver) -> String {
    let count = |runs: &mut dyn Iterator<Item = (HostId, HostId)>| -> usize {
        runs.map(|(first, last)| last.index() - first.index() + 1).sum()
    };
    let hosts = count(&mut over.hosts.iter().map(|run| (run.first, run.last)));
    let of = plan.topology.hosts().len();
    match plan.assignment {
        Assignment::Pair { .. } => {
            let pairs = count(&mut over.pairs.iter().map(|pair| (pair.run.first, pair.run.last)));
            format!("{pairs} of {} pairs switch over, and the broadcasts of {hosts} of {of} hosts", of * (of - 1))
        }
        _ => format!("{hosts} of {of} hosts switch over"),
    }
}

impl StandbyResult {
    /// How it ended, in words; none if it was asked to stop before anything began.
    pub fn words(&self, plan: &Plan) -> Option<Words> {
        Some(match self {
            Self::Interrupted => return None,
            Self::Unprepared(why) => words("unprepared", None, why.to_string()),
            Self::Left(active) => left(plan, *active),
            Self::Disagreement(why) => words("disagreement", None, why.sentence(plan, "stand by then")),
            Self::Superseded(switch, mark) => {
                let name = name(plan, *switch);
                words("ended", Some(name), format!("{name} was set up by somebody else, {mark}: this standby ends"))
            }
            Self::Untagged(switch) => {
                let name = name(plan, *switch);
                let text = format!(
                    "{name} bears no deployment tag any more, so nobody knows what it holds: this standby ends; deploy the plan, and stand by then"
                );
                words("untagged", Some(name), text)
            }
            Self::Foreign(host, pvid) => {
                let name = &plan.topology.host(*host).name;
                let pvid =
                    pvid.map_or_else(|| "takes no untagged frames".to_owned(), |vlan| format!("has PVID {vlan}"));
                let text = format!(
                    "the port of {name} {pvid}, as no switch-over of the plan has it; deploy the plan, and stand by then"
                );
                words("foreign", Some(name), text)
            }
        })
    }
}

fn left(plan: &Plan, active: ActiveVlans) -> Words {
    match active {
        ActiveVlans::Planned => words("left", None, "ended; all hosts send as the plan has it"),
        ActiveVlans::Gathering => words("left", None, "ended in the middle of a change; start it again soon"),
        ActiveVlans::Backup(failure) | ActiveVlans::Stopped(failure) => {
            let label = failure.label(&plan.topology);
            let text = format!("ended in the middle of what the failure of {label} asks for; start it again soon");
            words("left", Some(&label), text)
        }
    }
}

impl Disagreement {
    /// Why the switches do not hold the plan, and the way out; `then` is what to do after that.
    pub fn sentence(&self, plan: &Plan, then: &str) -> String {
        let name = |switch: SwitchId| name(plan, switch);
        let way_out = "espalier status with this plan says why and what to do first";
        match self {
            Self::NoTag(switch) => {
                format!("{} bears no deployment tag; deploy the plan, and {then}", name(*switch))
            }
            Self::UnderWay(switch, mark) => format!(
                "{} is in the middle of a deployment ({mark}); end it where it was begun with espalier deploy --resume; {way_out}",
                name(*switch)
            ),
            Self::Tags([(first, one), (second, other)]) => format!(
                "{} and {} bear tags of different deployments, {one} and {other}; {way_out}",
                name(*first),
                name(*second)
            ),
            Self::Differs(switch, sentence) => {
                format!("{} does not hold the plan: {sentence}; {way_out}", name(*switch))
            }
        }
    }
}

/// A port as people know it: `vmhost1 (sw1:g4)`.
fn port(plan: &Plan, host: HostId) -> String {
    let host = plan.topology.host(host);
    format!("{} ({})", host.name, plan.topology.port_label(host.port))
}

impl AddressesEvent {
    /// It in words, one thing or two.
    pub fn words(&self, plan: &Plan) -> Vec<Words> {
        vec![match self {
            Self::Waits(switch, fault) => waiting(plan, *switch, fault),
            Self::Ready { ports, known, late } => {
                let known = counted(*known, "address");
                let text = format!("{} with learned addresses; {known} recorded", counted(*ports, "port"));
                let ready = words("ready", None, text);
                if *late == 0 {
                    return vec![ready];
                }
                let pairs = counted(*late, "pair");
                let text = format!(
                    "a move is noticed only after the first port's switch has aged the address out, for {pairs} of ports"
                );
                return vec![ready, words("late", None, text)];
            }
            Self::Fault(switch, fault) => failing(plan, *switch, fault),
            Self::Answers(switch) => answers(plan, *switch),
            Self::Notice(notice) => address_notice(plan, notice),
            Self::Holds(addresses) => {
                let text = format!("every switch holds the entries of {}", counted(*addresses, "learned address"));
                words("holds", None, text)
            }
        }]
    }
}

fn address_notice(plan: &Plan, notice: &AddressNotice) -> Words {
    let port = |host: HostId| port(plan, host);
    let (kind, mac, text) = match notice {
        AddressNotice::Appears(mac, at) => {
            ("appears", mac, format!("{mac} is behind {}: entries are written", port(*at)))
        }
        AddressNotice::Moves { mac, from, to } => {
            ("moves", mac, format!("{mac} has moved from {} to {}: its entries turn", port(*from), port(*to)))
        }
        AddressNotice::Gone(mac, at) => {
            ("gone", mac, format!("{mac} is not heard behind {} any more: its entries are removed", port(*at)))
        }
        AddressNotice::Full(mac, at) => {
            let most = plan.topology.host(*at).learned_max.unwrap_or(0);
            let text = format!(
                "{mac} is behind {}, which has its {} already, and is not entered; raise addresses-max and plan again",
                port(*at),
                counted(most, "learned address")
            );
            ("full", mac, text)
        }
        AddressNotice::Twice(mac, ports) => {
            let ports: Vec<String> = ports.iter().map(|at| port(*at)).collect();
            let text =
                format!("{mac} is behind {} at the same time: no entry changes until one is left", ports.join(" and "));
            ("twice", mac, text)
        }
        AddressNotice::Duplicate(mac, [at, other]) => {
            let text = format!(
                "{mac} has moved {MOVES_MAX} times within {} s, so two machines have it, behind {} and {}: its entries stay at {}",
                MOVES_WITHIN.as_secs(),
                port(*at),
                port(*other),
                plan.topology.host(*at).name
            );
            ("duplicate", mac, text)
        }
        AddressNotice::Planned(mac, owner, hosts) => {
            let hosts: Vec<String> = hosts.iter().map(|at| port(*at)).collect();
            let text = format!(
                "{mac} is behind {}, but the plan has it behind {}: nothing changes; give one of the two another address",
                hosts.join(" or "),
                port(*owner)
            );
            ("planned", mac, text)
        }
    };
    words(kind, Some(&mac.to_string()), text)
}

impl AddressesResult {
    /// How it ended, in words; none if it was asked to stop and everything is entered.
    pub fn words(&self, plan: &Plan) -> Option<Words> {
        Some(match self {
            Self::Interrupted => return None,
            Self::Left(_, behind) if behind.is_empty() => return None,
            Self::Left(_, behind) => {
                let names: Vec<&str> = behind.iter().map(|switch| name(plan, *switch)).collect();
                let names = names.join(", ");
                words("left", None, format!("ended; entries are missing on {names}: start it again"))
            }
            Self::Nothing(why) => words("nothing", None, why.to_string()),
            Self::Unfit(finding) => words(
                "unfit",
                None,
                format!(
                    "with as many addresses as its ports may learn, the plan is not fit: {finding}; plan it again with this version"
                ),
            ),
            Self::Disagreement(why) => words("disagreement", None, why.sentence(plan, "start this then")),
            Self::Superseded(switch, mark) => {
                let name = name(plan, *switch);
                let text = format!("{name} was set up by another deployment, {mark}: no more entries are written");
                words("ended", Some(name), text)
            }
            Self::Untagged(switch) => {
                let name = name(plan, *switch);
                let text =
                    format!("{name} bears no deployment tag any more: no more entries are written; deploy the plan");
                words("untagged", Some(name), text)
            }
        })
    }
}
