//! What to do when a cable, a switch or a group of both dies: for every such failure a switch-over that is stored, so that nothing has to be
//! computed.
//!
//! ```text
//!   link 7 dies     h0, h1 ▶ VLAN 12   h5 ▶ VLAN 3     every VLAN is on the switches already: only PVIDs change,
//!   link 8 dies     h2 ▶ VLAN 12                       or, where hosts tag, what hosts put on their frames
//!   switch 3 dies   h0 ▶ VLAN 9, a tree in which switch 3 is a leaf: no frame between others passes it
//!   group 0 dies    h0, h7 ▶ VLAN 9, a tree in which no frame between others passes a switch or a cable of the group
//! ```
//! A port's class of untagged frames changes with its PVID, to the lane of the new VLAN.

use std::sync::Arc;

use crate::{
    Assignment, Certificate, ChannelId, Group, GroupId, HostId, HostRun, LinkId, SwitchId, Topology, VlanId, VlanSet,
    graph::breadth_first,
};

/// A part of the fabric that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// A link between switches.
    Link(LinkId),
    /// A switch with all its links and hosts.
    Switch(SwitchId),
    /// All members of a named group together.
    Group(GroupId),
}

/// What to do when one part fails, whichever it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failover {
    /// At most one a failure, ascending, links first, then switches, then groups. A failure that has none is either not missed by any frame between the
    /// hosts that are left, or nothing can replace what fails: see [`dividing_links`], [`dividing_switches`] and [`dividing_groups`].
    pub switch_overs: Vec<SwitchOver>,
    /// Numberings of channels beyond the plan's own certificate, for switch-overs that do not respect that.
    pub numberings: Vec<Certificate>,
    /// What it claims of itself.
    pub summary: FailoverSummary,
}

/// What changes when one part fails. Switches keep all their VLANs and entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchOver {
    /// What failed.
    pub failure: Failure,
    /// Hosts, ascending, and the VLAN that they choose from now on: for everything that they choose by their own
    /// address, and for what they send to everybody. By pair: only for what they send to everybody.
    pub hosts: Vec<HostRun<VlanId>>,
    /// By pair: what senders use toward some receivers from now on, ascending by sender and receiver.
    pub pairs: Vec<PairRun>,
    /// Why no frame can wait for ever.
    pub proof: Proof,
}

/// What one sender uses toward consecutive receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairRun {
    /// The sender.
    pub source: HostId,
    /// Its receivers, and the VLAN.
    pub run: HostRun<VlanId>,
}

/// Why a fabric cannot deadlock while and after hosts switch over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proof {
    /// Nothing needs to be proven: without flow control frames are dropped and never wait.
    Unneeded,
    /// The plan's own certificate: all routes before and after respect it, in whatever mixture, and so do those of all
    /// other switch-overs with this proof.
    Certificate,
    /// The further numbering of this position: all routes before and after respect it, in whatever mixture, if what crosses
    /// dead links is left out.
    Numbering(usize),
    /// The further numbering of this position is respected by the routes after the switch-over. Hosts stop sending until
    /// the fabric is empty, and then switch over.
    Drained(usize),
}

/// What a plan claims of its switch-overs; `check` recomputes every figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailoverSummary {
    /// Links whose failure every pair of hosts survives.
    pub links_covered: usize,
    /// Links whose failure no plan can survive: hosts on both sides, and no other way.
    pub links_dividing: usize,
    /// What it claims of switches, if it is ready for the failure of one.
    pub switches: Option<PartCoverage>,
    /// What it claims of named groups, if it is ready for the failure of one.
    pub groups: Option<PartCoverage>,
    /// Switch-overs for which the fabric must be drained first.
    pub drained: usize,
    /// How long the most loaded channel between switches takes after the worst failure, in demand on the fastest link, as
    /// [`Summary::max_channel_time`](crate::Summary::max_channel_time). Hosts of a switch that failed count as if they went on.
    pub max_channel_time: f64,
    /// VLANs that carry frames only after a failure.
    pub vlans_extra: usize,
    /// Static entries of those VLANs in the whole fabric.
    pub fdb_entries_extra: usize,
}

/// How many switches, or groups, may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartCoverage {
    /// Those whose failure every pair of hosts elsewhere survives.
    pub covered: usize,
    /// Those whose failure no plan can survive: see [`dividing_switches`] and [`dividing_groups`].
    pub dividing: usize,
}

impl Eq for FailoverSummary {}

impl Failure {
    /// Whether frames from elsewhere that go on through a channel are lost by the failure. What goes to a dead switch's own
    /// hosts is lost with them, so the channels that lead there do not count.
    pub fn blocks(self, topology: &Topology, channel: ChannelId) -> bool {
        match self {
            Self::Link(link) => channel.link() == link,
            Self::Switch(switch) => topology.tail(channel) == switch,
            Self::Group(group) => {
                let Group { switches, links, .. } = topology.group(group);
                let fails = |switch: SwitchId| switches.binary_search(&switch).is_ok();
                let carries = !fails(topology.tail(channel)) && links.binary_search(&channel.link()).is_err();
                !carries && !fails(topology.head(channel))
            }
        }
    }

    /// The links that carry nothing any more, ascending.
    pub fn links(self, topology: &Topology) -> Vec<LinkId> {
        let of_switch = |switch: SwitchId| topology.channels_from(switch).iter().map(|channel| channel.link());
        let mut links: Vec<LinkId> = match self {
            Self::Link(link) => vec![link],
            Self::Switch(switch) => of_switch(switch).collect(),
            Self::Group(group) => {
                let Group { switches, links, .. } = topology.group(group);
                switches.iter().flat_map(|switch| of_switch(*switch)).chain(links.iter().copied()).collect()
            }
        };
        links.sort_unstable();
        links.dedup();
        links
    }

    /// Of these links those with an end at a switch that is left, ascending: what lies between switches that fail together, nobody sees.
    pub fn outer_links(self, topology: &Topology) -> Vec<LinkId> {
        let is_left = |channel: ChannelId| !self.takes(topology, topology.tail(channel));
        let has_end = |link: &LinkId| is_left(ChannelId::forward(*link)) || is_left(ChannelId::backward(*link));
        self.links(topology).into_iter().filter(has_end).collect()
    }

    /// Whether hosts of a switch fail as well.
    pub fn takes(self, topology: &Topology, switch: SwitchId) -> bool {
        match self {
            Self::Link(_) => false,
            Self::Switch(dead) => dead == switch,
            Self::Group(group) => topology.group(group).switches.binary_search(&switch).is_ok(),
        }
    }

    /// As people write it: `sw1:g23 -- sw2:g23`, `sw1`, or the name of the group.
    pub fn label(self, topology: &Topology) -> String {
        match self {
            Self::Link(link) => topology.link_label(link),
            Self::Switch(switch) => topology.switch(switch).name.clone(),
            Self::Group(group) => topology.group(group).name.clone(),
        }
    }
}

impl Failover {
    /// Every VLAN that some switch-over sends frames to.
    pub fn vlans(&self) -> VlanSet {
        let hosts = self.switch_overs.iter().flat_map(|over| over.hosts.iter().map(|run| run.choice));
        let pairs = self.switch_overs.iter().flat_map(|over| over.pairs.iter().map(|pair| pair.run.choice));
        hosts.chain(pairs).collect()
    }

    /// The switch-over for a failure. Cost: O(log failures).
    pub fn switch_over(&self, failure: Failure) -> Option<&SwitchOver> {
        self.switch_overs.binary_search_by_key(&failure, |over| over.failure).ok().map(|at| &self.switch_overs[at])
    }
}

impl SwitchOver {
    /// What hosts choose after the switch-over, given what they chose before.
    ///
    /// # Panics
    /// If it names hosts that the assignment does not have.
    pub fn apply(&self, before: &Assignment<VlanId>) -> Assignment<VlanId> {
        let mut after = before.clone();
        let fill = |choices: &mut [VlanId]| {
            for run in &self.hosts {
                choices[run.first.index()..=run.last.index()].fill(run.choice);
            }
        };
        match &mut after {
            Assignment::Source(choice) => fill(choice),
            // What a host sends to everybody goes along.
            Assignment::Destination { choice, broadcast } | Assignment::Priority { choice, broadcast, .. } => {
                fill(choice);
                fill(broadcast);
            }
            Assignment::Pair { unicast, broadcast } => {
                for PairRun { source, run } in &self.pairs {
                    overlay(Arc::make_mut(&mut unicast[source.index()]), *run);
                }
                fill(broadcast);
            }
        }
        after
    }
}

/// Replaces what a sender's runs say of some receivers.
fn overlay(runs: &mut Vec<HostRun<VlanId>>, new: HostRun<VlanId>) {
    let before = runs.iter().filter(|run| run.first < new.first).map(|run| {
        let last = run.last.min(HostId::new(new.first.index() - 1));
        HostRun { last, ..*run }
    });
    let after = runs.iter().filter(|run| run.last > new.last).map(|run| {
        let first = run.first.max(HostId::new(new.last.index() + 1));
        HostRun { first, ..*run }
    });
    let laid = before.chain([new]).chain(after).collect();
    *runs = laid;
}

/// Links that alone tie two parts of the fabric together, with hosts in both, ascending. No plan survives the failure
/// of one of them. Cost: O(switches + links).
///
/// The lowest point that a depth-first search can reach from below a link without it tells whether there is another way
/// (R. Tarjan, "A note on finding the bridges of a graph", 1974).
pub fn dividing_links(topology: &Topology) -> Vec<LinkId> {
    let switches = topology.switches().len();
    let mut dividing = Vec::new();
    let mut entered = vec![usize::MAX; switches];
    let mut lowest = vec![usize::MAX; switches];
    let mut hosts: Vec<usize> = topology.switch_ids().map(|switch| topology.hosts_of(switch).len()).collect();
    let mut clock = 0;
    // A switch, the channel by which it was entered, and how many of its channels have been followed.
    let mut stack = Vec::new();
    if let Some(start) = topology.switch_ids().next() {
        (entered[start.index()], lowest[start.index()]) = (0, 0);
        stack.push((start, None, 0));
    }
    while let Some((at, inward, followed)) = stack.last_mut() {
        let (here, inward) = (*at, *inward);
        if let Some(&channel) = topology.channels_from(here).get(*followed) {
            *followed += 1;
            let head = topology.head(channel);
            if inward.is_some_and(|inward: crate::ChannelId| inward.link() == channel.link()) {
                continue;
            }
            if entered[head.index()] == usize::MAX {
                clock += 1;
                (entered[head.index()], lowest[head.index()]) = (clock, clock);
                stack.push((head, Some(channel), 0));
            } else {
                lowest[here.index()] = lowest[here.index()].min(entered[head.index()]);
            }
        } else {
            stack.pop();
            let Some(inward) = inward else { continue };
            let parent = topology.tail(inward);
            lowest[parent.index()] = lowest[parent.index()].min(lowest[here.index()]);
            hosts[parent.index()] += hosts[here.index()];
            let below = hosts[here.index()];
            if lowest[here.index()] > entered[parent.index()] && below > 0 && below < topology.hosts().len() {
                dividing.push(inward.link());
            }
        }
    }
    dividing.sort_unstable();
    dividing
}

/// Switches without which hosts of other switches do not reach each other, ascending. No plan survives the failure of one of
/// them. Cost: O(switches · (switches + links)).
pub fn dividing_switches(topology: &Topology) -> Vec<SwitchId> {
    let divides = |dead: &SwitchId| {
        let lived_in = |switch: &SwitchId| switch != dead && !topology.hosts_of(*switch).is_empty();
        let Some(start) = topology.switch_ids().find(lived_in) else { return false };
        let found = breadth_first(topology.switches().len(), [start], |switch| {
            topology.neighbours(switch).filter(|(_, head)| head != dead)
        });
        !topology.switch_ids().filter(lived_in).all(|switch| found.has_reached(switch))
    };
    topology.switch_ids().filter(divides).collect()
}

/// Groups without which hosts elsewhere do not reach each other, ascending. No plan survives the failure of one of them.
/// Cost: O(groups · (switches + links) · log members).
pub fn dividing_groups(topology: &Topology) -> Vec<GroupId> {
    let divides = |group: &GroupId| {
        let failure = Failure::Group(*group);
        let lived_in = |switch: &SwitchId| !failure.takes(topology, *switch) && !topology.hosts_of(*switch).is_empty();
        let Some(start) = topology.switch_ids().find(lived_in) else { return false };
        let found = breadth_first(topology.switches().len(), [start], |switch| {
            topology
                .neighbours(switch)
                .filter(|(channel, head)| !failure.takes(topology, *head) && !failure.blocks(topology, *channel))
        });
        !topology.switch_ids().filter(lived_in).all(|switch| found.has_reached(switch))
    };
    topology.group_ids().filter(divides).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::native::parse_native;

    fn vlan(id: u16) -> VlanId {
        VlanId::new(id).expect("valid")
    }

    fn run(first: usize, last: usize, id: u16) -> HostRun<VlanId> {
        HostRun { first: HostId::new(first), last: HostId::new(last), choice: vlan(id) }
    }

    #[test]
    fn runs_are_laid_over_others() {
        for (new, expect) in [
            (run(0, 9, 7), vec![run(0, 9, 7)]),
            (run(0, 0, 7), vec![run(0, 0, 7), run(1, 3, 2), run(4, 9, 3)]),
            (run(2, 5, 7), vec![run(0, 1, 2), run(2, 5, 7), run(6, 9, 3)]),
            (run(3, 3, 7), vec![run(0, 2, 2), run(3, 3, 7), run(4, 9, 3)]),
            (run(9, 9, 7), vec![run(0, 3, 2), run(4, 8, 3), run(9, 9, 7)]),
            (run(4, 9, 7), vec![run(0, 3, 2), run(4, 9, 7)]),
        ] {
            let mut runs = vec![run(0, 3, 2), run(4, 9, 3)];
            overlay(&mut runs, new);
            assert_eq!(runs, expect);
        }
    }

    #[test]
    fn links_divide_only_where_hosts_are_on_both_sides_and_nothing_runs_beside_them() {
        let cabling = "switches: {a: {}, b: {}, c: {}, d: {}, e: {}, f: {}}\nlinks:\n  - a:1 -- b:1\n  - b:2 -- c:1\n  \
            - c:2 -- a:2\n  - c:3 -- d:1\n  - d:2 -- e:1\n  - d:3 -- e:2\n  - e:3 -- f:1\nhosts:\n  \
            h0: {mac: \"02:00:00:00:00:01\", port: \"a:9\"}\n  h1: {mac: \"02:00:00:00:00:02\", port: \"e:9\"}\n";
        let topology = parse_native("test", cabling).expect("a cabling");
        assert_eq!(dividing_links(&topology), [LinkId::new(3)]);
        // Hosts are on a and e: d ties them together, and so does c; those two themselves do not count.
        assert_eq!(dividing_switches(&topology), [SwitchId::new(2), SwitchId::new(3)]);
    }
}
