//! What follows from what switches said, before anything is called a cause: the state of every cable, which hosts moved, what
//! differs without a reason.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use fabric::{
    Admin, Assignment, Attachment, Failure, HostId, LinkId, Plan, PortId, SwitchId, Tagging, VlanId, dividing_links,
};

use super::{Cause, Consequence, LLDP_INTERVAL, LLDP_INTERVALS, Moves, Remedy, Sight, Standing, cut_off::cut_off};
use crate::discover::{Doubt, Mismatch, PortPosition, cabling, compare};
use switch_model::{
    PortConfig, SwitchConfig,
    driver::Fault,
    mark::Mark,
    observe::{Drift, drift},
    station::Station,
};

/// What the ends of a cable say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    /// The plan leaves it shut, or nobody who would know answers.
    Unknown,
    /// It carries, since when at its younger end.
    Up { since: Option<Duration> },
    /// An end that should be up is administratively down.
    Shut,
    /// An end that is up has no carrier.
    Down { at: Vec<PortId>, since: Option<Duration> },
}

/// What LLDP says, ports of the plan's.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    pub(super) mismatches: Vec<Mismatch>,
    /// What cannot be compared with the plan.
    pub(super) doubts: Vec<Cause>,
    pub(super) one_way: Vec<(PortId, PortId)>,
    /// Cables that carry, and nobody is heard.
    pub(super) unheard: Vec<LinkId>,
    /// The same, for so short a time that it says nothing yet: up, LLDP's interval.
    pub(super) young: Vec<(LinkId, Duration, Duration)>,
}

pub(super) struct Evidence<'a> {
    pub(super) plan: &'a Plan,
    goals: &'a [SwitchConfig],
    pub(super) seen: &'a [Result<Sight, Fault>],
    /// `links[link]`.
    pub(super) links: Vec<LinkState>,
    /// Switches that do not answer, and none of whose cables carries.
    pub(super) dead_switches: BTreeSet<SwitchId>,
    dividing: BTreeSet<LinkId>,
    /// By cable of the management tree that is down: switches behind it that do not answer.
    cut_off: BTreeMap<LinkId, Vec<SwitchId>>,
    pub(super) moves: Moves,
    /// Cables that the plan uses, shut at both ends of switches that are in service.
    pub(super) shut: BTreeSet<LinkId>,
    /// `drifts[switch]`, without those that a failure or a shut cable explains.
    pub(super) drifts: Vec<Vec<Drift>>,
}

impl<'a> Evidence<'a> {
    pub(super) fn new(plan: &'a Plan, goals: &'a [SwitchConfig], seen: &'a [Result<Sight, Fault>]) -> Self {
        let topology = &plan.topology;
        assert_eq!((goals.len(), seen.len()), (topology.switches().len(), topology.switches().len()));
        let mut evidence = Self {
            plan,
            goals,
            seen,
            links: Vec::new(),
            dead_switches: BTreeSet::new(),
            cut_off: BTreeMap::new(),
            dividing: dividing_links(topology).into_iter().collect(),
            moves: Moves { standing: Standing::Home, moved: Vec::new(), stopped: Vec::new(), waiting: Vec::new() },
            shut: BTreeSet::new(),
            drifts: Vec::new(),
        };
        evidence.links = topology.link_ids().map(|link| evidence.link_state(link)).collect();
        let is_dead = |switch: &SwitchId| {
            let known = evidence.links_of(*switch).filter(|link| evidence.links[link.index()] != LinkState::Unknown);
            let mut known = known.map(|link| matches!(evidence.links[link.index()], LinkState::Down { .. })).peekable();
            seen[switch.index()].is_err() && known.peek().is_some() && known.all(|down| down)
        };
        evidence.dead_switches = topology.switch_ids().filter(is_dead).collect();
        let live: BTreeSet<LinkId> =
            evidence.down_links().into_iter().filter(|link| !evidence.is_of_dead_switch(*link)).collect();
        evidence.cut_off = cut_off(plan, &live, &|switch| !matches!(seen[switch.index()], Err(Fault::Silent)));
        let found: Vec<Option<Option<VlanId>>> = topology.host_ids().map(|host| evidence.host_pvid(host)).collect();
        evidence.moves = Moves::find(plan, &found, &evidence.down_links());
        let drained = evidence.drained();
        evidence.shut = topology.link_ids().filter(|link| evidence.is_shut(*link, &drained)).collect();
        evidence.drifts = topology.switch_ids().map(|switch| evidence.unexplained(switch)).collect();
        evidence
    }

    fn slot(&self, port: PortId) -> (SwitchId, usize) {
        let switch = self.plan.topology.port(port).switch;
        (switch, port.index() - self.plan.topology.switch_ports(switch).start)
    }

    fn wanted(&self, port: PortId) -> &PortConfig {
        let (switch, slot) = self.slot(port);
        &self.goals[switch.index()].ports[slot]
    }

    fn found(&self, port: PortId) -> Option<&PortConfig> {
        let (switch, slot) = self.slot(port);
        self.seen[switch.index()].as_ref().ok().map(|sight| &sight.config.ports[slot])
    }

    /// Whether a port carries and since when; none if nobody knows.
    fn carries(&self, port: PortId) -> Option<(bool, Option<Duration>)> {
        let (switch, slot) = self.slot(port);
        let sight = self.seen[switch.index()].as_ref().ok()?;
        sight.ports.get(slot).map(|port| (port.running, port.since))
    }

    fn host_pvid(&self, host: HostId) -> Option<Option<VlanId>> {
        Some(self.found(self.plan.topology.host(host).port)?.pvid)
    }

    fn ends(&self, link: LinkId) -> [PortId; 2] {
        let link = self.plan.topology.link(link);
        [link.a, link.b]
    }

    /// Whether the plan uses a cable.
    fn is_used(&self, link: LinkId) -> bool {
        self.ends(link).iter().all(|port| self.wanted(*port).admin == Admin::Up)
    }

    fn link_state(&self, link: LinkId) -> LinkState {
        let ends = self.ends(link);
        let carried: Vec<(PortId, bool, Option<Duration>)> = ends
            .iter()
            .filter_map(|port| self.carries(*port).map(|(running, since)| (*port, running, since)))
            .collect();
        if !self.is_used(link) || carried.is_empty() {
            return LinkState::Unknown;
        }
        if ends.iter().any(|port| self.found(*port).is_some_and(|port| port.admin == Admin::Down)) {
            return LinkState::Shut;
        }
        let at: Vec<PortId> = carried.iter().filter(|(_, running, _)| !running).map(|(port, _, _)| *port).collect();
        if at.is_empty() {
            let since = carried.iter().filter_map(|(_, _, since)| *since).min();
            return LinkState::Up { since };
        }
        let since = carried.iter().filter(|(_, running, _)| !running).filter_map(|(_, _, since)| *since).max();
        LinkState::Down { at, since }
    }

    fn links_of(&self, switch: SwitchId) -> impl Iterator<Item = LinkId> + '_ {
        let topology = &self.plan.topology;
        topology.port_ids(switch).filter_map(|port| match topology.port(port).attachment {
            Attachment::Link(link) => Some(link),
            Attachment::Host(_) | Attachment::Nothing | Attachment::Member(_) => None,
        })
    }

    /// Cables that the plan uses and that have no carrier.
    fn down_links(&self) -> BTreeSet<LinkId> {
        let down = |link: &LinkId| matches!(self.links[link.index()], LinkState::Down { .. });
        self.plan.topology.link_ids().filter(down).collect()
    }

    pub(super) fn down_links_of(&self, switch: SwitchId) -> Vec<LinkId> {
        let down = self.down_links();
        self.links_of(switch).filter(|link| down.contains(link)).collect()
    }

    pub(super) fn is_of_dead_switch(&self, link: LinkId) -> bool {
        self.ends(link).iter().any(|port| self.dead_switches.contains(&self.slot(*port).0))
    }

    /// Whether a switch does not answer because the management tree is cut before it.
    pub(super) fn is_cut_off(&self, switch: SwitchId) -> bool {
        self.cut_off.values().flatten().any(|behind| *behind == switch) && !self.dead_switches.contains(&switch)
    }

    pub(super) fn cut_off_by(&self, link: LinkId) -> Option<Consequence> {
        let behind = self.cut_off.get(&link)?.iter().filter(|switch| self.is_cut_off(**switch));
        let behind: Vec<SwitchId> = behind.copied().collect();
        (!behind.is_empty()).then_some(Consequence::CutOff(behind))
    }

    pub(super) fn carried_for(&self, link: LinkId) -> Option<Duration> {
        match self.links[link.index()] {
            LinkState::Up { since } => since,
            LinkState::Unknown | LinkState::Shut | LinkState::Down { .. } => None,
        }
    }

    /// What a cable's failure does to hosts, and what to do.
    pub(super) fn answer(&self, link: LinkId) -> (Consequence, Remedy) {
        let repair = Remedy::Repair(link);
        if self.plan.policy.drain.links.contains(&link) {
            return (Consequence::NotNeeded, repair);
        }
        if self.plan.policy.tagging != Tagging::Switch || !matches!(self.plan.assignment, Assignment::Source(_)) {
            return (Consequence::HostsChoose, repair);
        }
        let Some(failover) = &self.plan.failover else { return (Consequence::NothingStored, repair) };
        if self.dividing.contains(&link) {
            return (Consequence::Divides, repair);
        }
        let failure = Failure::Link(link);
        if failover.switch_over(failure).is_none() {
            return (Consequence::NotNeeded, repair);
        }
        match self.moves.standing {
            Standing::For(other) if other == failure || self.is_in_group(link, other) => {
                let (consequence, to_be_moved) = self.own_answer(other);
                (consequence, if to_be_moved { Remedy::StandbyAndRepair(link) } else { repair })
            }
            Standing::For(other) => (Consequence::AnswerForAnother { failure: other }, repair),
            // Nothing is known of its hosts.
            Standing::Home | Standing::Lingering(_) | Standing::Between => {
                (Consequence::NotMoved { failure, waiting: Vec::new() }, repair)
            }
        }
    }

    /// Whether a failure is that of a group, and a cable fails with it.
    fn is_in_group(&self, link: LinkId, failure: Failure) -> bool {
        matches!(failure, Failure::Group(_)) && failure.links(&self.plan.topology).contains(&link)
    }

    /// How far the answer to a failure is in force, and whether hosts are to be moved for it.
    fn own_answer(&self, failure: Failure) -> (Consequence, bool) {
        let Moves { moved, stopped, waiting, .. } = self.moves.clone();
        // The answer to one failure may lead over a second one's cable: then nobody is to be moved.
        let own = failure.links(&self.plan.topology);
        let alone = self.down_links().iter().all(|link| own.contains(link));
        let to_be_moved = alone && self.standby_begins();
        if waiting.is_empty() && stopped.is_empty() {
            (Consequence::InForce { failure, moved }, false)
        } else if moved.is_empty() && stopped.is_empty() {
            (Consequence::NotMoved { failure, waiting }, to_be_moved)
        } else {
            (Consequence::PartlyInForce { failure, moved, stopped, waiting }, to_be_moved)
        }
    }

    /// What hosts elsewhere do about a dead switch, or a group that it fails with.
    pub(super) fn answer_for_switch(&self, switch: SwitchId) -> Option<Consequence> {
        let topology = &self.plan.topology;
        match self.moves.standing {
            Standing::For(failure)
                if failure.takes(topology, switch)
                    || failure.links(topology).iter().all(|link| self.links_of(switch).any(|own| own == *link)) =>
            {
                let (consequence, _) = self.own_answer(failure);
                Some(consequence)
            }
            _ => None,
        }
    }

    /// Whether `standby` begins here: wherever a switch holds something else than the plan, it refuses.
    pub(super) fn standby_begins(&self) -> bool {
        self.shut.is_empty() && self.drifts.iter().all(Vec::is_empty)
    }

    /// Whether both ends of a cable that the plan uses are administratively down, though their switches are in service.
    fn is_shut(&self, link: LinkId, drained: &[SwitchId]) -> bool {
        let is_down = |port: PortId| self.found(port).is_some_and(|port| port.admin == Admin::Down);
        let serves = |port: PortId| {
            let (switch, _) = self.slot(port);
            !drained.contains(&switch) && !self.is_reset(switch)
        };
        self.is_used(link) && self.ends(link).iter().all(|port| is_down(*port) && serves(*port))
    }

    /// Differences that no failure explains.
    fn unexplained(&self, switch: SwitchId) -> Vec<Drift> {
        let Ok(sight) = &self.seen[switch.index()] else { return Vec::new() };
        let goal = &self.goals[switch.index()];
        let further = sight.config.ports[goal.ports.len()..].iter().map(|port| &port.name);
        let topology = &self.plan.topology;
        let moved: BTreeSet<usize> = (self.moves.explained())
            .map(|host| self.slot(topology.host(host).port))
            .filter(|(at, _)| *at == switch)
            .map(|(_, slot)| slot)
            .collect();
        let shut: BTreeSet<usize> = (self.shut.iter())
            .flat_map(|link| self.ends(*link).map(|port| self.slot(port)))
            .filter(|(at, _)| *at == switch)
            .map(|(_, slot)| slot)
            .collect();
        let reasonless = |drift: &Drift| match drift {
            Drift::Pvid { port, .. } => !moved.contains(&port.index()),
            Drift::Admin { port, .. } => !shut.contains(&port.index()),
            _ => true,
        };
        drift(&sight.config, &goal.with_parked(further)).into_iter().filter(reasonless).collect()
    }

    /// Switches whose every port that the plan uses is administratively down, if there are several; one may be somebody's
    /// intention.
    pub(super) fn drained(&self) -> Vec<SwitchId> {
        let topology = &self.plan.topology;
        let kept: BTreeSet<LinkId> = topology
            .in_band()
            .map_or_else(BTreeSet::new, |in_band| in_band.links(topology, &self.plan.devices).into_iter().collect());
        let matters = |port: &PortId| {
            let of_management = match topology.port(*port).attachment {
                Attachment::Link(link) => kept.contains(&link),
                Attachment::Host(_) => false,
                Attachment::Member(_) => false,
                Attachment::Nothing => true,
            };
            !of_management && self.wanted(*port).admin == Admin::Up
        };
        let is_drained = |switch: &SwitchId| {
            let mut ports = topology.port_ids(*switch).filter(matters).peekable();
            ports.peek().is_some() && ports.all(|port| self.found(port).is_some_and(|port| port.admin == Admin::Down))
        };
        let drained: Vec<SwitchId> = topology.switch_ids().filter(is_drained).collect();
        if drained.len() > 1 { drained } else { Vec::new() }
    }

    /// Whether a switch holds nothing of what the plan wants.
    pub(super) fn is_reset(&self, switch: SwitchId) -> bool {
        let (Ok(sight), goal) = (&self.seen[switch.index()], &self.goals[switch.index()]) else { return false };
        let shares = |vlan: VlanId| goal.vlans.contains(vlan);
        sight.mark.is_none()
            && !goal.vlans.is_empty()
            && !sight.config.vlans.iter().any(shares)
            && !sight.config.entries.keys().any(|key| goal.entries.contains_key(key))
    }

    /// The tag that most switches bear.
    pub(super) fn usual_mark(&self) -> Option<Mark> {
        let mut counts: BTreeMap<(u32, u32), (usize, Mark)> = BTreeMap::new();
        for mark in self.seen.iter().filter_map(|seen| seen.as_ref().ok()?.mark) {
            counts.entry((mark.generation, mark.digest)).or_insert((0, mark)).0 += 1;
        }
        counts.into_values().max_by_key(|(count, mark)| (*count, *mark)).map(|(_, mark)| mark)
    }

    /// Deploying the plan again, or what comes first.
    pub(super) fn deploying(&self, plugs: bool) -> Remedy {
        let links: Vec<LinkId> = self.down_links().into_iter().collect();
        let silent = self.plan.topology.switch_ids().filter(|switch| self.seen[switch.index()].is_err());
        let switches: Vec<SwitchId> = silent.collect();
        if !links.is_empty() || !switches.is_empty() || plugs {
            Remedy::AfterRepairs { links, switches, plugs }
        } else if let Some(link) = self.shut.first() {
            // Nobody knows whether it would carry, and deploying moves hosts back onto it.
            Remedy::Confirm(*link)
        } else {
            Remedy::DeployAgain
        }
    }

    /// Members of a LAG that have no carrier although their ports are up; none where nobody knows.
    pub(super) fn missing_members(&self, lag: PortId) -> Vec<PortId> {
        let is_missing = |port: &PortId| {
            let open = self.found(*port).is_some_and(|port| port.admin == Admin::Up);
            open && self.carries(*port).is_some_and(|(running, _)| !running)
        };
        self.plan.topology.members(lag).filter(is_missing).collect()
    }

    /// Hosts whose ports are up and have no carrier.
    pub(super) fn hosts_down(&self) -> Vec<HostId> {
        let topology = &self.plan.topology;
        let off = |host: &HostId| {
            let port = topology.host(*host).port;
            let open = self.found(port).is_some_and(|port| port.admin == Admin::Up);
            open && self.carries(port).is_some_and(|(running, _)| !running)
        };
        topology.host_ids().filter(off).collect()
    }

    /// What LLDP says of cables that carry.
    pub(super) fn neighbours(&self) -> Neighbours {
        let topology = &self.plan.topology;
        let stations: Vec<Station> = self.seen.iter().filter_map(|seen| seen.as_ref().ok()?.station.clone()).collect();
        let port = |(station, port): PortPosition| {
            let station = &stations[station];
            topology.find_port(topology.find_switch(&station.name)?, &station.ports[port].name)
        };
        let cables = cabling(&stations);
        let pairs = cables.links.iter().filter_map(|(a, b)| Some((port(*a)?, port(*b)?)));
        let found: Vec<(PortId, PortId)> = pairs.collect();
        let one_way: Vec<(PortId, PortId)> = (cables.doubts.iter())
            .filter_map(|doubt| match doubt {
                Doubt::OneWay { hears, deaf } => Some((port(*hears)?, port(*deaf)?)),
                _ => None,
            })
            .collect();
        let label = |(station, port): PortPosition| {
            format!("{}:{}", stations[station].name, stations[station].ports[port].name)
        };
        let doubt = |doubt: &Doubt| match doubt {
            Doubt::UnknownPort { hears, switch, port } => Some(Cause::UnknownPort {
                hears: label(*hears),
                neighbour: stations[*switch].name.clone(),
                port: port.clone(),
            }),
            Doubt::Crowd { hears, count } => Some(Cause::Crowd { hears: label(*hears), count: *count }),
            _ => None,
        };
        let foreign = cables.links.iter().filter(|(a, b)| port(*a).is_none() || port(*b).is_none());
        let foreign = foreign.map(|(a, b)| Cause::ForeignCable { ends: [label(*a), label(*b)] });
        let mut neighbours = Neighbours {
            doubts: cables.doubts.iter().filter_map(doubt).chain(foreign).collect(),
            ..Neighbours::default()
        };
        for mismatch in compare(topology, &found) {
            let Mismatch::Missing { ends: (a, b) } = mismatch else {
                neighbours.mismatches.push(mismatch);
                continue;
            };
            let link = match topology.port(a).attachment {
                Attachment::Link(link) => link,
                Attachment::Host(_) | Attachment::Nothing | Attachment::Member(_) => continue,
            };
            // Whoever did not answer says nothing about its cables, and one without carrier is told as that.
            let asked = [a, b].iter().all(|port| self.hears(*port));
            let LinkState::Up { since } = self.links[link.index()] else { continue };
            let half = one_way.iter().find(|(hears, deaf)| [(a, b), (b, a)].contains(&(*hears, *deaf)));
            let interval = self.interval(a).max(self.interval(b));
            match (since, half) {
                _ if !asked => {}
                (Some(up), _) if up < interval * LLDP_INTERVALS => neighbours.young.push((link, up, interval)),
                (_, Some(half)) => neighbours.one_way.push(*half),
                (_, None) => neighbours.unheard.push(link),
            }
        }
        neighbours
    }

    fn hears(&self, port: PortId) -> bool {
        let (switch, _) = self.slot(port);
        self.seen[switch.index()].as_ref().is_ok_and(|sight| sight.station.is_some())
    }

    fn interval(&self, port: PortId) -> Duration {
        let (switch, _) = self.slot(port);
        let told = self.seen[switch.index()].as_ref().ok().and_then(|sight| sight.lldp_interval);
        told.unwrap_or(LLDP_INTERVAL)
    }
}
