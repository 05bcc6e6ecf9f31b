//! Deadlock on the way: frames of both plans are on the wire together, and those of one may wait for those of the other.
//!
//! ```text
//!   old   h0: s0 ▶ s1 ▶ s2    h1: s1 ▶ s2 ▶ s3       neither plan closes a cycle, but while h0 and h1 send by the old
//!   new   h2: s2 ▶ s3 ▶ s0    h3: s3 ▶ s0 ▶ s1       one and h2 and h3 by the new one, all four wait for each other
//! ```
//! A *window* is all that may be on the wire while one step is taken: every host sends by the state before the step or by
//! the one after it, and the links of a VLAN are those that it has in either. They close no cycle (`lib.rs`), so a frame has
//! one way to where it ends, whatever mixture the switches hold: at its receiver, or where an entry leads nowhere or has
//! been turned. Nothing waits for ever in a window if the channel dependencies of all those ways close no cycle, class by
//! class. Frames of the step before have left by then: a window that cannot block comes to its end.
//!
//! Cost of a window: O(hosts · VLANs · switches), where many hosts of a switch send alike O(hosts²).

use std::collections::{BTreeMap, BTreeSet};

use fabric::{
    Admin, Attachment, ChannelId, FloodSet, HostId, Plan, PortId, SwitchId, Topology, VlanId, VlanSet,
    graph::{Arc, TopologicalOrder},
};

use super::{FabricState, table};

/// Frames that cannot wait for each other for ever, whatever mixture of two plans switches and hosts hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Frames {
    /// Those from every host to every other one.
    Unicast,
    /// Those, what spreads through a VLAN (broadcast, multicast, unknown addresses), and management over data ports.
    All,
}

/// Whether frames can wait for each other for ever on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadlock {
    /// Nothing waits: switches drop what they cannot buffer.
    NothingWaits,
    /// These cannot.
    Impossible(Frames),
    /// While hosts change VLANs, even unicast frames may, for all that is known.
    Unproven,
}

/// What frames may wait for, on one cabling.
pub(crate) struct Waits<'a> {
    pub(super) topology: &'a Topology,
    /// Priority classes that wait apart.
    classes: usize,
    /// Whether frames that spread through a VLAN are looked at.
    spreads: bool,
    /// The VLAN of management over data ports, if that is looked at.
    management: Option<VlanId>,
}

/// The links of a VLAN: `next[switch]`.
type Forest = Vec<Vec<(ChannelId, SwitchId)>>;

/// Where frames of one host end in one VLAN.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ends {
    /// At these switches: `set[switch]`.
    At(Vec<bool>),
    /// Wherever its links lead.
    Everywhere,
}

/// Frames that wait alike: from a switch, in a VLAN, to some switches.
pub(super) type Flow = (SwitchId, VlanId, Ends);

/// What carries frames while one step is taken.
pub(super) struct Window {
    forests: BTreeMap<VlanId, Forest>,
    /// The switches at which frames for a host may end beside its own: their entries for it lead out of the VLAN's links, or
    /// elsewhere in one state than in the other.
    astray: BTreeMap<(VlanId, HostId), Vec<SwitchId>>,
    /// The classes in which switches may have a VLAN's frames wait.
    classes: BTreeMap<VlanId, BTreeSet<usize>>,
}

impl<'a> Waits<'a> {
    /// What may wait between two plans; none where switches drop what they cannot buffer.
    pub(crate) fn between(previous: &Plan, next: &Plan, topology: &'a Topology, frames: Frames) -> Option<Self> {
        let classes = [previous, next].iter().filter_map(|plan| plan.policy.flow_control.lanes()).max()?;
        let all = frames == Frames::All;
        let spreads = all && [previous, next].iter().any(|plan| plan.policy.flood.blocked() != FloodSet::ALL);
        let management = topology.in_band().filter(|_| all).map(|in_band| in_band.vlan);
        Some(Self { topology, classes: usize::from(classes), spreads, management })
    }

    /// Whether frames may wait for each other for ever while the fabric goes from one state to the other.
    pub(crate) fn may_block(&self, before: &FabricState, after: &FabricState) -> bool {
        let window = self.window(before, after);
        let senders = [before, after].into_iter().flat_map(|state| self.topology.host_ids().map(move |h| (state, h)));
        let sent = senders.flat_map(|(state, host)| self.sent(&window, state, host));
        let flows: BTreeSet<Flow> = sent.chain(self.managed()).collect();
        let mut order = self.no_arcs();
        flows.iter().any(|flow| order.insert_all(&self.arcs(&window, flow)).is_none())
    }

    /// No dependency yet.
    pub(super) fn no_arcs(&self) -> TopologicalOrder {
        TopologicalOrder::by_number(&vec![0; self.topology.channel_count() * self.classes])
    }

    /// What carries frames between two states.
    pub(super) fn window(&self, before: &FabricState, after: &FabricState) -> Window {
        let carries = |port: PortId| -> VlanSet {
            let up = [before, after].map(|state| state.port(self.topology, port));
            up.into_iter().filter(|intent| intent.admin == Admin::Up).flat_map(|intent| intent.tagged.iter()).collect()
        };
        let carried: Vec<VlanSet> = (self.topology.links().iter())
            .map(|link| {
                let (a, b) = (carries(link.a), carries(link.b));
                a.iter().filter(|vlan| b.contains(*vlan)).collect()
            })
            .collect();
        let mut forests: BTreeMap<VlanId, Forest> = BTreeMap::new();
        for (id, vlan) in
            self.topology.link_ids().zip(&carried).flat_map(|(id, vlans)| vlans.iter().map(move |v| (id, v)))
        {
            let forest = forests.entry(vlan).or_insert_with(|| vec![Vec::new(); self.topology.switches().len()]);
            for channel in [ChannelId::forward(id), ChannelId::backward(id)] {
                forest[self.topology.tail(channel).index()].push((channel, self.topology.head(channel)));
            }
        }
        let mut astray: BTreeMap<(VlanId, HostId), Vec<SwitchId>> = BTreeMap::new();
        for (before, after) in before.devices.iter().zip(&after.devices) {
            table::sweep(&before.fdb, &after.fdb, |run, old, new| {
                let leads_on = |port: PortId| match self.topology.port(port).attachment {
                    Attachment::Link(link) => carried[link.index()].contains(run.vlan),
                    Attachment::Host(host) => (run.first, run.last) == (host, host),
                    Attachment::Nothing | Attachment::Member(_) => false,
                };
                let turned = old.is_some() && new.is_some() && old != new;
                if turned || !old.into_iter().chain(new).all(leads_on) {
                    for host in (run.first.index()..=run.last.index()).map(HostId::new) {
                        astray.entry((run.vlan, host)).or_default().push(before.switch);
                    }
                }
            });
        }
        let mut classes: BTreeMap<VlanId, BTreeSet<usize>> = BTreeMap::new();
        for device in before.devices.iter().chain(&after.devices) {
            for (class, vlans) in device.classes.iter().enumerate() {
                vlans.iter().for_each(|vlan| {
                    classes.entry(vlan).or_default().insert(class.min(self.classes - 1));
                });
            }
        }
        Window { forests, astray, classes }
    }

    /// What a host sends.
    pub(super) fn sent(&self, window: &Window, state: &FabricState, host: HostId) -> Vec<Flow> {
        let mut receivers: BTreeMap<VlanId, Vec<HostId>> = BTreeMap::new();
        let spread = match &state.tables {
            None => {
                let vlan = state.port(self.topology, self.topology.host(host).port).pvid;
                vlan.into_iter().for_each(|vlan| receivers.entry(vlan).or_default().extend(self.topology.host_ids()));
                vlan
            }
            Some(tables) => {
                let table = &tables[host.index()];
                let assigned = table.unicast.iter().map(|run| (run.choice, run.first, run.last));
                let further = table.paths.iter().flat_map(|run| run.choice.iter().map(|v| (*v, run.first, run.last)));
                for (vlan, first, last) in assigned.chain(further) {
                    let hosts = (first.index()..=last.index()).map(HostId::new);
                    receivers.entry(vlan).or_default().extend(hosts);
                }
                table.broadcast
            }
        };
        let from = self.topology.switch_of(host);
        let mut ends: BTreeMap<VlanId, Ends> =
            receivers.into_iter().map(|(vlan, hosts)| (vlan, self.ends(window, vlan, hosts))).collect();
        if let Some(vlan) = spread.filter(|_| self.spreads) {
            ends.insert(vlan, Ends::Everywhere);
        }
        ends.into_iter().map(|(vlan, ends)| (from, vlan, ends)).collect()
    }

    /// Where frames for some hosts end in a VLAN.
    pub(super) fn ends(&self, window: &Window, vlan: VlanId, hosts: impl IntoIterator<Item = HostId>) -> Ends {
        let mut switches = vec![false; self.topology.switches().len()];
        for host in hosts {
            switches[self.topology.switch_of(host).index()] = true;
            let astray = window.astray.get(&(vlan, host)).into_iter().flatten();
            astray.for_each(|switch| switches[switch.index()] = true);
        }
        Ends::At(switches)
    }

    /// What the controller and the switches send each other.
    pub(super) fn managed(&self) -> impl Iterator<Item = Flow> + '_ {
        let from = self.management.into_iter().flat_map(|vlan| self.topology.switch_ids().map(move |s| (s, vlan)));
        from.map(|(switch, vlan)| (switch, vlan, Ends::Everywhere))
    }

    /// What frames of a flow may hold, and what they wait for meanwhile.
    pub(super) fn arcs(&self, window: &Window, (from, vlan, ends): &Flow) -> Vec<Arc> {
        let Some(forest) = window.forests.get(vlan) else { return Vec::new() };
        // Every switch that is reached: the place of the one before it, and the channel from there.
        let mut reached: Vec<(SwitchId, usize, Option<ChannelId>)> = vec![(*from, 0, None)];
        let mut seen = vec![false; self.topology.switches().len()];
        seen[from.index()] = true;
        let mut at = 0;
        while at < reached.len() {
            for &(channel, next) in &forest[reached[at].0.index()] {
                if !std::mem::replace(&mut seen[next.index()], true) {
                    reached.push((next, at, Some(channel)));
                }
            }
            at += 1;
        }
        let ends_at = |switch: SwitchId| match ends {
            Ends::At(switches) => switches[switch.index()],
            Ends::Everywhere => true,
        };
        let first_class = BTreeSet::from([0]);
        let classes = window.classes.get(vlan).unwrap_or(&first_class);
        let node = |channel: ChannelId, class: usize| (channel.index() * self.classes + class) as u32;
        let mut crossed = vec![false; reached.len()];
        let mut arcs = Vec::new();
        for (place, &(switch, before, channel)) in reached.iter().enumerate().skip(1).rev() {
            if !crossed[place] && !ends_at(switch) {
                continue;
            }
            crossed[before] = true;
            if let (Some(held), Some(wanted)) = (reached[before].2, channel) {
                let pairs = classes.iter().flat_map(|a| classes.iter().map(move |b| (*a, *b)));
                arcs.extend(pairs.map(|(a, b)| (node(held, a), node(wanted, b))));
            }
        }
        arcs
    }
}
