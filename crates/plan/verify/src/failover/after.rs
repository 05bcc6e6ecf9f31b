//! One dead link, switch or group: who still sends over it after the stored switch-over, what the most loaded channel carries then,
//! and whether anything can wait for ever.
//!
//! ```text
//!   before        h0 in v2, h1 in v3      link 4 dies, h0 ▶ v7      after        h0 in v7, h1 in v3
//!   load after  = load before − h0's frames in v2 + h0's frames in v7
//!   over link 4 : v7 does not have it; v3 does, so h1's frames to whoever is beyond it are lost: a finding
//! ```
//! Nothing but the ports of dead links changes on the switches, and a frame that does not meet them goes on as before;
//! that frames get through on intact switches has been judged already, VLAN by VLAN.

use std::{collections::BTreeMap, sync::Arc};

use fabric::{
    Assignment, Certificate, ChannelId, Failure, FloodKind, HostId, HostRun, LinkId, PairRun, Proof, SwitchId,
    SwitchOver, TrafficMatrix, VlanId,
};

use super::forest::{Direction, Forest, Stream, Tracer};
use crate::{
    findings::{counted, listed},
    state::FabricState,
    unicast::Traffic,
};

/// What all failures are judged by.
pub(super) struct Before<'a> {
    pub(super) state: &'a FabricState<'a>,
    pub(super) assignment: &'a Assignment<VlanId>,
    pub(super) traffic: &'a Traffic,
    pub(super) forests: &'a BTreeMap<VlanId, Forest>,
    /// `hosts[switch]`.
    pub(super) hosts: Arc<[u32]>,
    /// What hosts receive from each other, if all do not send alike.
    received: Option<TrafficMatrix>,
}

/// What was found of one failure.
#[derive(Default)]
pub(super) struct After {
    /// How long the most loaded channel between switches takes, in demand on the fastest link.
    pub(super) time: f64,
    /// What hosts still send over what is dead.
    pub(super) lost: Vec<(String, String)>,
    /// Why the proof does not hold.
    pub(super) unproven: Vec<String>,
    /// Why it does not hold for what hosts send to everybody, or to addresses that no switch knows.
    pub(super) unproven_floods: Vec<String>,
}

impl<'a> Before<'a> {
    /// What all failures are judged by. Cost: O(hosts + demands).
    pub(super) fn new(
        state: &'a FabricState<'a>,
        assignment: &'a Assignment<VlanId>,
        traffic: &'a Traffic,
        forests: &'a BTreeMap<VlanId, Forest>,
    ) -> Self {
        let topology = state.topology;
        let hosts = topology.switch_ids().map(|switch| topology.hosts_of(switch).len() as u32).collect();
        let received = match &*state.traffic {
            fabric::Traffic::AllToAll => None,
            fabric::Traffic::Matrix(matrix) => Some(matrix.transposed()),
        };
        Self { state, assignment, traffic, forests, hosts, received }
    }

    /// Judges one switch-over; without one, everybody goes on as before.
    pub(super) fn judge(&self, failure: Failure, over: Option<&SwitchOver>, tracer: &mut Tracer) -> After {
        let mut after = After::default();
        let topology = self.state.topology;
        let dead = failure.links(topology);
        self.judge_unicast(failure, &dead, over, &mut after);
        self.judge_broadcasts(failure, &dead, over, &mut after);
        let mut load = self.traffic.load.clone();
        let time = |load: &[f64]| {
            let times = topology.channel_ids().zip(load).map(|(channel, load)| load * topology.slowness(channel));
            times.fold(0.0, f64::max)
        };
        let Some(over) = over else {
            after.time = time(&load);
            return after;
        };
        let (gone, new) = self.moved(over);
        for stream in &gone {
            let forest = &self.forests[&stream.vlan];
            tracer.trace(topology, forest, stream, |channel, demand, _| load[channel.index()] -= demand);
        }
        for stream in &new {
            let forest = &self.forests[&stream.vlan];
            tracer.trace(topology, forest, stream, |channel, demand, _| load[channel.index()] += demand);
        }
        after.time = time(&load);
        // While a group comes back member by member, its own hosts send through members.
        let idle: &[LinkId] = if matches!(failure, Failure::Group(_)) { &[] } else { &dead };
        self.judge_proof(idle, over, &new, tracer, &mut after);
        after
    }

    fn judge_unicast(&self, failure: Failure, dead: &[LinkId], over: Option<&SwitchOver>, after: &mut After) {
        let topology = self.state.topology;
        let assigned;
        let assignment = match over {
            Some(over) => {
                assigned = over.apply(self.assignment);
                &assigned
            }
            None => self.assignment,
        };
        let cut = |vlan: VlanId, one: SwitchId, other: SwitchId| {
            self.forests.get(&vlan).is_some_and(|forest| forest.crosses_any(dead, one, other))
        };
        let has = |vlan: VlanId| self.forests.get(&vlan).is_some_and(|forest| forest.is_hit(failure, dead));
        let is_left = |host: &HostId| !failure.takes(topology, topology.switch_of(*host));
        for host in topology.host_ids().filter(is_left) {
            let at = topology.switch_of(host);
            let others = || topology.host_ids().filter(|other| *other != host && is_left(other));
            let switch = |other: HostId| topology.switch_of(other);
            // Hosts with whom the frames that are this one's to choose go over what is dead.
            let (missed, how): (Vec<HostId>, &str) = match assignment {
                Assignment::Source(choice) if has(choice[host.index()]) => {
                    (others().filter(|other| cut(choice[host.index()], at, switch(*other))).collect(), "to")
                }
                Assignment::Destination { choice, .. } if has(choice[host.index()]) => {
                    (others().filter(|other| cut(choice[host.index()], at, switch(*other))).collect(), "from")
                }
                Assignment::Priority { choice, .. } if has(choice[host.index()]) => {
                    let chosen = |other: HostId| {
                        [(host, other), (other, host)].into_iter().any(|(from, to)| {
                            let vlan = assignment.unicast(from, to);
                            vlan == choice[host.index()] && cut(vlan, at, switch(other))
                        })
                    };
                    (others().filter(|other| chosen(*other)).collect(), "to or from")
                }
                Assignment::Pair { unicast, .. } => {
                    let runs = unicast[host.index()].iter().filter(|run| has(run.choice));
                    let lost = |run: &HostRun<VlanId>| {
                        let receivers = (run.first.index()..=run.last.index()).map(HostId::new);
                        let lost = |to: &HostId| *to != host && is_left(to) && cut(run.choice, at, switch(*to));
                        receivers.filter(lost).collect::<Vec<HostId>>()
                    };
                    (runs.flat_map(lost).collect(), "to")
                }
                _ => continue,
            };
            if !missed.is_empty() {
                let names = listed(missed.iter().map(|host| self.state.host_name(*host)));
                let message = format!("frames {how} {} still go over it: {names}", counted(missed.len(), "host"));
                after.lost.push((self.state.host_name(host).to_owned(), message));
            }
        }
    }

    fn judge_broadcasts(&self, failure: Failure, dead: &[LinkId], over: Option<&SwitchOver>, after: &mut After) {
        let topology = self.state.topology;
        let mut vlans: Vec<VlanId> = topology.host_ids().map(|host| self.assignment.broadcast(host)).collect();
        for run in over.into_iter().flat_map(|over| &over.hosts) {
            vlans[run.first.index()..=run.last.index()].fill(run.choice);
        }
        let is_left = |host: HostId| !failure.takes(topology, topology.switch_of(host));
        // Whether anybody is beyond what is dead is the same for all senders of a VLAN that are on the same sides of its links.
        let mut misses: BTreeMap<(VlanId, Vec<bool>), bool> = BTreeMap::new();
        for (host, vlan) in topology.host_ids().zip(vlans).filter(|(host, _)| is_left(*host)) {
            let hit = |forest: &&Forest| forest.is_hit(failure, dead);
            let Some(forest) = self.forests.get(&vlan).filter(hit) else { continue };
            let at = topology.switch_of(host);
            let side = |link: &LinkId| forest.crosses(*link, at, topology.tail(ChannelId::forward(*link)));
            let beyond = || {
                let mut others = topology.host_ids().filter(|other| is_left(*other));
                others.any(|other| forest.crosses_any(dead, at, topology.switch_of(other)))
            };
            if *misses.entry((vlan, dead.iter().map(side).collect())).or_insert_with(beyond) {
                let message = format!("its broadcasts in VLAN {vlan} still go over it");
                after.lost.push((self.state.host_name(host).to_owned(), message));
            }
        }
    }

    /// The streams that a switch-over ends, and those that take their place.
    fn moved(&self, over: &SwitchOver) -> (Vec<Stream>, Vec<Stream>) {
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        if let Assignment::Pair { .. } = self.assignment {
            // By sender and VLAN, before and after.
            let mut sets: [BTreeMap<(HostId, VlanId), Vec<HostId>>; 2] = Default::default();
            for &PairRun { source, run } in &over.pairs {
                for to in (run.first.index()..=run.last.index()).map(HostId::new).filter(|to| *to != source) {
                    for (set, vlan) in sets.iter_mut().zip([self.assignment.unicast(source, to), run.choice]) {
                        set.entry((source, vlan)).or_default().push(to);
                    }
                }
            }
            for (set, streams) in sets.into_iter().zip([&mut gone, &mut new]) {
                streams.extend(
                    set.into_iter().map(|((source, vlan), receivers)| {
                        self.stream(vlan, &[source], Direction::Outward, &receivers)
                    }),
                );
            }
            return (gone, new);
        }
        let moves = over
            .hosts
            .iter()
            .flat_map(|run| (run.first.index()..=run.last.index()).map(|host| (HostId::new(host), run.choice)));
        let moves: Vec<(HostId, VlanId, VlanId)> =
            moves.map(|(host, to)| (host, self.assignment.broadcast(host), to)).collect();
        self.owned(moves.iter().map(|(host, from, _)| (*host, *from)), &mut gone);
        self.owned(moves.iter().map(|(host, _, to)| (*host, *to)), &mut new);
        (gone, new)
    }

    /// The streams of hosts that choose a VLAN by their own address.
    fn owned(&self, choices: impl Iterator<Item = (HostId, VlanId)>, streams: &mut Vec<Stream>) {
        let topology = self.state.topology;
        let direction = match self.assignment {
            Assignment::Destination { .. } => Direction::Inward,
            _ => Direction::Outward,
        };
        let Assignment::Priority { priority, .. } = self.assignment else {
            let mut owners: BTreeMap<(VlanId, SwitchId), Vec<HostId>> = BTreeMap::new();
            choices.for_each(|(host, vlan)| owners.entry((vlan, topology.switch_of(host))).or_default().push(host));
            streams.extend(owners.into_iter().map(|((vlan, root), owners)| Stream {
                vlan,
                root,
                owners: owners.len() as u64,
                direction,
                peers: self.hosts.clone(),
                demand: self.demand(&owners, direction, |_| true),
            }));
            return;
        };
        for (host, vlan) in choices {
            let own = priority[host.index()];
            for direction in [Direction::Outward, Direction::Inward] {
                // On a tie the sender's choice counts.
                let is_chosen = |other: &HostId| {
                    let theirs = priority[other.index()];
                    *other != host && (theirs < own || (theirs == own && direction == Direction::Outward))
                };
                let peers: Vec<HostId> = topology.host_ids().filter(is_chosen).collect();
                streams.push(self.stream(vlan, &[host], direction, &peers));
            }
        }
    }

    /// What hosts of one switch and some peers, ascending, exchange one way.
    fn stream(&self, vlan: VlanId, owners: &[HostId], direction: Direction, peers: &[HostId]) -> Stream {
        let topology = self.state.topology;
        let mut counts = vec![0; topology.switches().len()];
        peers.iter().for_each(|peer| counts[topology.switch_of(*peer).index()] += 1);
        let demand = self.demand(owners, direction, |peer| peers.binary_search(&peer).is_ok());
        let (root, owners) = (topology.switch_of(owners[0]), owners.len() as u64);
        Stream { vlan, root, owners, direction, peers: counts.into(), demand }
    }

    /// `demand[switch]`: what owners send to peers there, or receive from them; none where all send alike.
    fn demand(&self, owners: &[HostId], direction: Direction, is_peer: impl Fn(HostId) -> bool) -> Option<Arc<[f64]>> {
        let (fabric::Traffic::Matrix(sent), Some(received)) = (&*self.state.traffic, &self.received) else {
            return None;
        };
        let topology = self.state.topology;
        let matrix = match direction {
            Direction::Outward => sent,
            Direction::Inward => received,
        };
        let mut demand = vec![0.0; topology.switches().len()];
        for &(peer, amount) in owners.iter().flat_map(|owner| matrix.sent_by(*owner)) {
            if is_peer(peer) {
                demand[topology.switch_of(peer).index()] += amount;
            }
        }
        Some(demand.into())
    }

    /// Judges why nothing can wait for ever; links that are dead carry nothing before and after.
    fn judge_proof(&self, dead: &[LinkId], over: &SwitchOver, new: &[Stream], tracer: &mut Tracer, after: &mut After) {
        let (state, topology) = (self.state, self.state.topology);
        let must_hold = state.plan.policy.flow_control.lanes().is_some();
        let further = state.plan.failover.as_ref().map_or(&[][..], |failover| &failover.numberings);
        let (certificate, streams) = match over.proof {
            Proof::Unneeded => {
                if must_hold {
                    after.unproven.push("nothing proves that no frame can wait for ever".to_owned());
                }
                return;
            }
            Proof::Certificate => (state.plan.certificate.as_ref(), Vec::new()),
            Proof::Numbering(number) => (further.get(number), Vec::new()),
            Proof::Drained(number) => (further.get(number), self.rest(over)),
        };
        let Some(certificate) = certificate else {
            after.unproven.push("the numbering that its proof names does not exist".to_owned());
            return;
        };
        let mut wrong: Option<String> = None;
        let mut climbs = |lane: usize, from: usize, to: usize| {
            let is_dead = [from, to].iter().any(|channel| dead.contains(&ChannelId::new(*channel).link()));
            if is_dead || wrong.is_some() {
                return;
            }
            let rank = certificate.rank.get(lane).filter(|rank| rank.len() == topology.channel_count());
            if rank.is_none_or(|rank| rank[from] >= rank[to]) {
                let label = |channel| topology.channel_label(fabric::ChannelId::new(channel));
                let (from, to) = (label(from), label(to));
                wrong = Some(format!("its numbering of lane {lane} does not rise from {from} to {to}"));
            }
        };
        if let Proof::Numbering(_) = over.proof {
            for (lane, dependencies) in self.traffic.lanes.iter().enumerate() {
                for (from, next) in dependencies.next.iter().enumerate() {
                    next.iter().for_each(|&to| climbs(lane, from, to as usize));
                }
            }
        }
        for stream in new.iter().chain(&streams) {
            let (forest, lane) = (&self.forests[&stream.vlan], usize::from(state.lane(stream.vlan)));
            tracer.trace(topology, forest, stream, |channel, _, before| {
                if let Some(before) = before {
                    climbs(lane, before.index(), channel.index());
                }
            });
        }
        after.unproven.extend(wrong);
        if must_hold {
            after.unproven_floods.extend(self.climbing_floods(dead, over, certificate, tracer).err());
        }
    }

    /// Whether what hosts that move flood respects a numbering, together with what all others flood and, unless the fabric
    /// is drained, with what was flooded before.
    ///
    /// # Errors
    /// The first dependency that does not.
    fn climbing_floods(
        &self,
        dead: &[LinkId],
        over: &SwitchOver,
        certificate: &Certificate,
        tracer: &mut Tracer,
    ) -> Result<(), String> {
        let (state, topology) = (self.state, self.state.topology);
        if FloodKind::ALL.iter().all(|kind| state.is_dropped(*kind)) {
            return Ok(());
        }
        let climbs = |lane: usize, from: ChannelId, to: ChannelId| {
            let rank = certificate.rank.get(lane).filter(|rank| rank.len() == topology.channel_count());
            let is_dead = [from, to].iter().any(|channel| dead.contains(&channel.link()));
            if is_dead || rank.is_some_and(|rank| rank[from.index()] < rank[to.index()]) {
                return Ok(());
            }
            let [from, to] = [from, to].map(|channel| topology.channel_label(channel));
            Err(format!(
                "unicast frames cannot block, but its numbering of lane {lane} does not cover broadcasts from {from} to {to}"
            ))
        };
        let traffic = self.traffic;
        let management = traffic.management.iter().chain(&traffic.agents).map(|dependencies| (0, dependencies));
        let is_drained = matches!(over.proof, Proof::Drained(_));
        let floods = traffic.spread_lanes.iter().enumerate().chain(traffic.unknown_lanes.iter().enumerate());
        for (lane, dependencies) in floods.filter(|_| !is_drained).chain(management) {
            for (from, next) in dependencies.next.iter().enumerate() {
                for &to in next {
                    climbs(lane, ChannelId::new(from), ChannelId::new(to as usize))?;
                }
            }
        }
        let everywhere: Arc<[u32]> = vec![1; topology.switches().len()].into();
        let moved = over
            .hosts
            .iter()
            .flat_map(|run| (run.first.index()..=run.last.index()).map(|host| (HostId::new(host), run.choice)));
        let mut vlans: BTreeMap<HostId, VlanId> = BTreeMap::new();
        if is_drained {
            vlans.extend(topology.host_ids().map(|host| (host, self.assignment.broadcast(host))));
        }
        vlans.extend(moved);
        let mut origins: Vec<(VlanId, SwitchId)> =
            vlans.into_iter().map(|(host, vlan)| (vlan, topology.switch_of(host))).collect();
        origins.sort_unstable();
        origins.dedup();
        for (vlan, root) in origins {
            let stream = Stream {
                vlan,
                root,
                owners: 1,
                direction: Direction::Outward,
                peers: Arc::clone(&everywhere),
                demand: None,
            };
            let (lane, mut outcome) = (usize::from(state.lane(vlan)), Ok(()));
            tracer.trace(topology, &self.forests[&vlan], &stream, |channel, _, before| {
                if let (Some(before), Ok(())) = (before, &outcome) {
                    outcome = climbs(lane, before, channel);
                }
            });
            outcome?;
        }
        Ok(())
    }

    /// What does not move. Hosts of a switch that failed count: it may come back.
    fn rest(&self, over: &SwitchOver) -> Vec<Stream> {
        let topology = self.state.topology;
        let mut streams = Vec::new();
        if let Assignment::Pair { .. } = self.assignment {
            let after = over.apply(self.assignment);
            let mut rest: BTreeMap<(HostId, VlanId), Vec<u32>> = BTreeMap::new();
            for source in topology.host_ids() {
                for to in topology.host_ids().filter(|to| *to != source) {
                    let vlan = after.unicast(source, to);
                    let peers = rest.entry((source, vlan)).or_insert_with(|| vec![0; topology.switches().len()]);
                    peers[topology.switch_of(to).index()] += 1;
                }
            }
            streams.extend(rest.into_iter().map(|((source, vlan), peers)| {
                let root = topology.switch_of(source);
                let (peers, direction) = (peers.into(), Direction::Outward);
                Stream { vlan, root, owners: 1, direction, peers, demand: None }
            }));
            return streams;
        }
        let moves = |host: &HostId| over.hosts.iter().any(|run| (run.first..=run.last).contains(host));
        let stay = topology.host_ids().filter(|host| !moves(host));
        self.owned(stay.map(|host| (host, self.assignment.broadcast(host))), &mut streams);
        streams
    }
}
