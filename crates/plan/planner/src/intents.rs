//! Intents: every port's and every forwarding table's complete desired state.
//!
//! A switch needs an entry for a host in a VLAN only where a frame of that VLAN can be on its way to that host. Those
//! places are exactly the channels of the VLAN's fans, so one pass a fan marks, for each channel of the tree, the
//! hosts that lie beyond it; `full` marks all hosts beyond every channel instead. With `learned` there are no entries.

use std::ops::Range;

use fabric::{
    Admin, Assignment, Attachment, ChannelId, DeviceIntent, ETHERNET_MTU_BYTES, FdbMode, FdbRun, FlowControl,
    FlowControlMode, HostId, IngressFilter, Learning, Policy, PortIntent, PortRole, Tagging, Topology, VlanId, VlanSet,
    VlanTree,
};

use crate::{
    fan::{Direction, Fan, for_each_fan_of},
    host_set::HostSet,
    replan::Standing,
    resilience::OwnedFan,
    routing::Routing,
    threads::with_each,
};

/// What carries traffic, and when.
pub(crate) struct Carrying<'a> {
    /// Ascending by VLAN.
    pub(crate) trees: &'a [VlanTree],
    /// Who uses which.
    pub(crate) assignment: &'a Assignment<VlanId>,
    /// What flows beside what is assigned, ascending by tree: after a failure, or along further paths.
    pub(crate) further: &'a [OwnedFan],
    /// VLANs whose entries are those of a previous plan.
    pub(crate) standing: Option<&'a Standing<'a>>,
}

/// The complete desired state of every switch: `intents[switch]`.
/// Cost: O(fans · switches · hosts / 64) time, shared by `threads`; memory beyond the result is
/// O(threads · switches · hosts / 64).
pub(crate) fn intents(
    topology: &Topology,
    policy: &Policy,
    carrying: &Carrying<'_>,
    threads: usize,
) -> Vec<DeviceIntent> {
    let Carrying { trees, assignment, standing, .. } = *carrying;
    let mut devices = ports(topology, policy, trees, assignment);
    if policy.fdb != FdbMode::Learned {
        let position = |vlan| trees.binary_search_by_key(&vlan, |tree| tree.vlan).expect("an assigned VLAN has a tree");
        let routing = Routing {
            trees: trees.iter().map(|tree| tree.tree.clone()).collect(),
            assignment: assignment.map(position),
            numbering: None,
            lane: None,
        };
        let share = trees.len().div_ceil(threads.max(1)).max(1);
        let starts = (0..trees.len()).step_by(share);
        let mut parts: Vec<(Range<usize>, Vec<Vec<FdbRun>>)> =
            starts.map(|start| (start..(start + share).min(trees.len()), Vec::new())).collect();
        with_each(threads, &mut parts, |(part, tables)| *tables = entries(topology, policy, carrying, &routing, part));
        for (_, tables) in parts {
            for (device, table) in devices.iter_mut().zip(tables) {
                if device.fdb.is_empty() {
                    device.fdb = table;
                } else {
                    device.fdb.extend(table);
                }
            }
        }
    }
    if let Some(standing) = standing {
        with_each(threads, &mut devices, |device| standing.add_to(device.switch, &mut device.fdb));
    }
    devices
}

/// What some trees' VLANs take in the table of each switch, without those that stand.
fn entries(
    topology: &Topology,
    policy: &Policy,
    carrying: &Carrying<'_>,
    routing: &Routing,
    part: &Range<usize>,
) -> Vec<Vec<FdbRun>> {
    let Carrying { trees, further, standing, .. } = *carrying;
    let stands = |tree: usize| standing.is_some_and(|standing| standing.has(trees[tree].vlan));
    let mut tables = vec![Vec::new(); topology.switches().len()];
    let mut marks = Marks::new(topology);
    if policy.fdb == FdbMode::Full {
        for tree in part.clone().filter(|tree| !stands(*tree)) {
            marks.add_all(topology, &trees[tree]);
            marks.emit(topology, &trees[tree], &mut tables);
        }
        return tables;
    }
    let mut further = further[further.partition_point(|fan| fan.tree < part.start)..].iter().peekable();
    let mut finish = |tree: usize, marks: &mut Marks| {
        while let Some(fan) = further.next_if(|fan| fan.tree == tree) {
            let OwnedFan { tree, root, direction, ref owners, ref peers } = *fan;
            marks.add_fan(topology, routing, &Fan { tree, root, direction, owners, peers });
        }
        marks.emit(topology, &trees[tree], &mut tables);
    };
    let mut current = part.start;
    for_each_fan_of(topology, routing, part, |fan| {
        (current..fan.tree).for_each(|tree| finish(tree, &mut marks));
        current = fan.tree;
        if !stands(fan.tree) {
            marks.add_fan(topology, routing, fan);
        }
    });
    (current..part.end).for_each(|tree| finish(tree, &mut marks));
    tables
}

/// Port roles, PVIDs and memberships; tables still empty.
pub(crate) fn ports(
    topology: &Topology,
    policy: &Policy,
    trees: &[VlanTree],
    assignment: &Assignment<VlanId>,
) -> Vec<DeviceIntent> {
    let mut on_link = vec![VlanSet::new(); topology.links().len()];
    let mut on_switch = vec![VlanSet::new(); topology.switches().len()];
    for tree in trees {
        for &link in tree.tree.links() {
            on_link[link.index()].insert(tree.vlan);
            for port in [topology.link(link).a, topology.link(link).b] {
                on_switch[topology.port(port).switch.index()].insert(tree.vlan);
            }
        }
        if tree.tree.links().is_empty() {
            on_switch.iter_mut().for_each(|vlans| vlans.extend([tree.vlan]));
        }
    }
    let flow_control = match policy.flow_control {
        FlowControl::None => FlowControlMode::Off,
        FlowControl::Pause => FlowControlMode::Pause,
        FlowControl::Pfc(lanes) => FlowControlMode::Pfc { lanes },
    };
    let port_intent = |port| {
        let nothing = VlanSet::new;
        let (role, admin, pvid, tagged, untagged) = match topology.port(port).attachment {
            Attachment::Nothing => (PortRole::Unused, Admin::Down, None, nothing(), nothing()),
            Attachment::Member(_) => (PortRole::Member, Admin::Up, None, nothing(), nothing()),
            Attachment::Link(link) => (PortRole::Link(link), Admin::Up, None, on_link[link.index()].clone(), nothing()),
            Attachment::Host(host) => {
                let vlans = on_switch[topology.switch_of(host).index()].clone();
                match policy.tagging {
                    Tagging::Switch => {
                        (PortRole::Host(host), Admin::Up, Some(assignment.broadcast(host)), nothing(), vlans)
                    }
                    Tagging::Pair | Tagging::Source | Tagging::Destination | Tagging::SourceDestination => {
                        (PortRole::Host(host), Admin::Up, None, vlans, nothing())
                    }
                }
            }
        };
        let flow_control = if role == PortRole::Unused { FlowControlMode::Off } else { flow_control.clone() };
        let mtu_bytes = if role == PortRole::Unused { ETHERNET_MTU_BYTES } else { policy.port_mtu_bytes() };
        let ingress_filter = IngressFilter::On;
        let blocked = policy.blocked_at(topology, port);
        let untagged_class = pvid.map_or(0, |pvid| policy.class_of(trees, pvid));
        let storm_limit = if matches!(role, PortRole::Host(_)) { policy.storm_limit } else { None };
        PortIntent {
            port,
            role,
            admin,
            pvid,
            tagged,
            untagged,
            flow_control,
            mtu_bytes,
            ingress_filter,
            blocked,
            untagged_class,
            storm_limit,
            lag: Some(topology.logical_port(port)).filter(|lag| *lag != port),
        }
    };
    (topology.switch_ids())
        .map(|switch| {
            let ports = topology.port_ids(switch).map(port_intent).collect();
            let learning = if policy.fdb == FdbMode::Learned { Learning::On } else { Learning::Off };
            let mut device = DeviceIntent { ports, learning, ..DeviceIntent::blank(switch) };
            device.classes = policy.classes_of(trees, &device.vlans());
            device
        })
        .collect()
}

/// Hosts that frames of one VLAN can be heading for, beyond each channel and at each switch.
struct Marks {
    /// `beyond[channel]`.
    beyond: Vec<HostSet>,
    /// `local[switch]`: hosts of the switch itself.
    local: Vec<HostSet>,
    /// Channels and switches with marks, each once; `is_marked[channel]`, `has_hosts[switch]`.
    channels: Vec<ChannelId>,
    switches: Vec<usize>,
    is_marked: Vec<bool>,
    has_hosts: Vec<bool>,
    /// `start[switch]`: where the entries of the tree begin that is being emitted, if there are any yet.
    start: Vec<Option<usize>>,
    /// Scratch: `below[switch]`, what lies at or beyond it.
    below: Vec<HostSet>,
}

impl Marks {
    fn new(topology: &Topology) -> Self {
        let (hosts, switches) = (topology.hosts().len(), topology.switches().len());
        let none = HostSet::empty(hosts);
        Self {
            beyond: vec![none.clone(); topology.channel_count()],
            local: vec![none.clone(); switches],
            channels: Vec::new(),
            switches: Vec::new(),
            is_marked: vec![false; topology.channel_count()],
            has_hosts: vec![false; switches],
            start: vec![None; switches],
            below: vec![none; switches],
        }
    }

    fn add_fan(&mut self, topology: &Topology, routing: &Routing, fan: &Fan<'_>) {
        let rooted = routing.trees[fan.tree].rooted_at(topology, fan.root);
        for &switch in &rooted.order {
            self.below[switch.index()].clear();
        }
        for &switch in rooted.order.iter().rev() {
            let here = switch.index();
            let alone = |host: &HostId| switch == fan.root && *fan.owners == [*host];
            for &host in topology.hosts_of(switch).iter().filter(|host| fan.peers.contains(**host) && !alone(host)) {
                self.below[here].insert(host);
                if fan.direction == Direction::Outward {
                    self.mark_local(here, host);
                }
            }
            match (fan.direction, rooted.inward[here]) {
                (Direction::Outward, Some(channel)) => self.mark_beyond(channel, here),
                (Direction::Inward, inward) if !self.below[here].is_empty() => match inward.map(ChannelId::reverse) {
                    None => fan.owners.iter().for_each(|owner| self.mark_local(here, *owner)),
                    Some(channel) => {
                        self.mark(channel);
                        fan.owners.iter().for_each(|owner| self.beyond[channel.index()].insert(*owner));
                    }
                },
                (Direction::Outward, None) | (Direction::Inward, _) => {}
            }
            if let Some(channel) = rooted.inward[here] {
                let (parent, child) = two(&mut self.below, topology.tail(channel).index(), here);
                parent.union(child);
            }
        }
    }

    /// Marks every host beyond every channel of a tree.
    fn add_all(&mut self, topology: &Topology, tree: &VlanTree) {
        let Some(&first) = tree.tree.links().first() else {
            for switch in topology.switch_ids() {
                topology.hosts_of(switch).iter().for_each(|host| self.mark_local(switch.index(), *host));
            }
            return;
        };
        let root = topology.tail(ChannelId::forward(first));
        let rooted = tree.tree.rooted_at(topology, root);
        for &switch in &rooted.order {
            self.below[switch.index()].clear();
        }
        for &switch in rooted.order.iter().rev() {
            for &host in topology.hosts_of(switch) {
                self.below[switch.index()].insert(host);
                self.mark_local(switch.index(), host);
            }
            if let Some(channel) = rooted.inward[switch.index()] {
                self.mark_beyond(channel, switch.index());
                let (parent, child) = two(&mut self.below, topology.tail(channel).index(), switch.index());
                parent.union(child);
            }
        }
        let all = self.below[root.index()].clone();
        for &switch in &rooted.order {
            if let Some(channel) = rooted.inward[switch.index()] {
                let back = channel.reverse();
                self.mark(back);
                self.beyond[back.index()].union(&all);
                self.beyond[back.index()].subtract(&self.below[switch.index()]);
            }
        }
    }

    fn mark(&mut self, channel: ChannelId) {
        if !std::mem::replace(&mut self.is_marked[channel.index()], true) {
            self.channels.push(channel);
        }
    }

    fn mark_local(&mut self, switch: usize, host: HostId) {
        if !std::mem::replace(&mut self.has_hosts[switch], true) {
            self.switches.push(switch);
        }
        self.local[switch].insert(host);
    }

    fn mark_beyond(&mut self, channel: ChannelId, switch: usize) {
        self.mark(channel);
        self.beyond[channel.index()].union(&self.below[switch]);
    }

    /// Turns the marks into entries of the tree's VLAN, and forgets them.
    fn emit(&mut self, topology: &Topology, tree: &VlanTree, tables: &mut [Vec<FdbRun>]) {
        let vlan = tree.vlan;
        let mut touched: Vec<usize> = Vec::with_capacity(self.switches.len());
        let mut touch = |switch: usize, entries: usize, start: &mut Vec<Option<usize>>| {
            if start[switch].is_none() {
                start[switch] = Some(entries);
                touched.push(switch);
            }
        };
        for channel in self.channels.drain(..) {
            let port = topology.tail_port(channel);
            let switch = topology.port(port).switch.index();
            touch(switch, tables[switch].len(), &mut self.start);
            let runs = self.beyond[channel.index()].runs().map(|(first, last)| FdbRun { vlan, first, last, port });
            tables[switch].extend(runs);
            self.beyond[channel.index()].clear();
            self.is_marked[channel.index()] = false;
        }
        for switch in self.switches.drain(..) {
            touch(switch, tables[switch].len(), &mut self.start);
            let hosts =
                self.local[switch].runs().flat_map(|(first, last)| (first.index()..=last.index()).map(HostId::new));
            let run = |host| FdbRun { vlan, first: host, last: host, port: topology.host(host).port };
            tables[switch].extend(hosts.map(run));
            self.local[switch].clear();
            self.has_hosts[switch] = false;
        }
        for switch in touched {
            let start = self.start[switch].take().expect("it was touched");
            tables[switch][start..].sort_unstable();
        }
    }
}

/// Two different elements of a slice, the first to be changed.
fn two<T>(items: &mut [T], changed: usize, read: usize) -> (&mut T, &T) {
    if changed < read {
        let (low, high) = items.split_at_mut(read);
        (&mut low[changed], &high[0])
    } else {
        let (low, high) = items.split_at_mut(changed);
        (&mut high[0], &low[read])
    }
}
