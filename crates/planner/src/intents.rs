//! Intents: every port's and every forwarding table's complete desired state.
//!
//! A switch needs an entry for a host in a VLAN only where a frame of that VLAN can be on its way to that host. Those
//! places are exactly the channels of the VLAN's fans, so one pass a fan marks, for each channel of the tree, the
//! hosts that lie beyond it; `full` marks all hosts beyond every channel instead. With `learned` there are no entries.

use fabric::{
    Admin, Assignment, Attachment, ChannelId, DeviceIntent, FdbMode, FdbRun, FlowControl, FlowControlMode, HostId,
    Learning, Policy, PortIntent, PortRole, Tagging, Topology, VlanId, VlanSet, VlanTree,
};

use crate::{
    fan::{Direction, Fan, for_each_fan},
    host_set::HostSet,
    replan::Standing,
    resilience::BackupFan,
    routing::Routing,
};

/// The complete desired state of every switch: `intents[switch]`. `backup` is what flows only after a failure, ascending
/// by tree; entries of `standing` VLANs are copied.
/// Cost: O(fans · switches · hosts / 64) time; memory beyond the result is O(switches · hosts / 64).
pub(crate) fn intents(
    topology: &Topology,
    policy: &Policy,
    trees: &[VlanTree],
    assignment: &Assignment<VlanId>,
    backup: &[BackupFan],
    standing: Option<&Standing<'_>>,
) -> Vec<DeviceIntent> {
    let mut devices = ports(topology, policy, trees, assignment);
    let position = |vlan| trees.binary_search_by_key(&vlan, |tree| tree.vlan).expect("an assigned VLAN has a tree");
    let routing = Routing {
        trees: trees.iter().map(|tree| tree.tree.clone()).collect(),
        assignment: assignment.map(position),
        numbering: None,
        lane: None,
    };
    let stands: Vec<bool> = trees.iter().map(|tree| standing.is_some_and(|standing| standing.has(tree.vlan))).collect();
    let mut marks = Marks::new(topology);
    match policy.fdb {
        FdbMode::Minimal => {
            let mut backup = backup.iter().peekable();
            let mut finish = |tree: usize, marks: &mut Marks, devices: &mut Vec<DeviceIntent>| {
                while let Some(fan) = backup.next_if(|fan| fan.tree == tree) {
                    let BackupFan { tree, root, direction, ref owners, ref peers } = *fan;
                    marks.add_fan(topology, &routing, &Fan { tree, root, direction, owners, peers });
                }
                marks.emit(topology, &trees[tree], devices);
            };
            let mut current = 0;
            for_each_fan(topology, &routing, |fan| {
                for tree in current..fan.tree {
                    finish(tree, &mut marks, &mut devices);
                }
                current = fan.tree;
                if !stands[fan.tree] {
                    marks.add_fan(topology, &routing, fan);
                }
            });
            for tree in current..trees.len() {
                finish(tree, &mut marks, &mut devices);
            }
        }
        FdbMode::Full => {
            for (tree, _) in trees.iter().zip(&stands).filter(|(_, stands)| !**stands) {
                marks.add_all(topology, tree);
                marks.emit(topology, tree, &mut devices);
            }
        }
        FdbMode::Learned => {}
    }
    if let Some(standing) = standing {
        devices.iter_mut().for_each(|device| standing.add_to(device.switch, &mut device.fdb));
    }
    devices
}

/// Port roles, PVIDs and memberships; tables still empty.
fn ports(
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
        PortIntent { port, role, admin, pvid, tagged, untagged, flow_control }
    };
    (topology.switch_ids())
        .map(|switch| DeviceIntent {
            switch,
            ports: topology.port_ids(switch).map(port_intent).collect(),
            fdb: Vec::new(),
            foreign: Vec::new(),
            learning: if policy.fdb == FdbMode::Learned { Learning::On } else { Learning::Off },
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
    here: HostSet,
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
            below: vec![none.clone(); switches],
            here: none,
        }
    }

    fn add_fan(&mut self, topology: &Topology, routing: &Routing, fan: &Fan<'_>) {
        let rooted = routing.trees[fan.tree].rooted_at(topology, fan.root);
        for &switch in &rooted.order {
            self.below[switch.index()].clear();
        }
        for &switch in rooted.order.iter().rev() {
            self.here.clear();
            let peers = topology.hosts_of(switch).iter().filter(|host| fan.peers.contains(**host));
            peers.for_each(|host| self.here.insert(*host));
            if let ([only], true) = (fan.owners, switch == fan.root) {
                self.here.remove(*only);
            }
            self.below[switch.index()].union(&self.here);
            match fan.direction {
                Direction::Outward => {
                    self.mark_local(switch.index());
                    if let Some(channel) = rooted.inward[switch.index()] {
                        self.mark_beyond(channel, switch.index());
                    }
                }
                Direction::Inward if self.below[switch.index()].runs().next().is_some() => {
                    self.here.clear();
                    fan.owners.iter().for_each(|owner| self.here.insert(*owner));
                    match rooted.inward[switch.index()] {
                        None => self.mark_local(switch.index()),
                        Some(channel) => {
                            self.mark(channel.reverse());
                            self.beyond[channel.reverse().index()].union(&self.here);
                        }
                    }
                }
                Direction::Inward => {}
            }
            if let Some(channel) = rooted.inward[switch.index()] {
                let (parent, child) = two(&mut self.below, topology.tail(channel).index(), switch.index());
                parent.union(child);
            }
        }
    }

    /// Marks every host beyond every channel of a tree.
    fn add_all(&mut self, topology: &Topology, tree: &VlanTree) {
        let Some(&first) = tree.tree.links().first() else {
            for switch in topology.switch_ids() {
                self.here.clear();
                topology.hosts_of(switch).iter().for_each(|host| self.here.insert(*host));
                self.mark_local(switch.index());
            }
            return;
        };
        let root = topology.tail(ChannelId::forward(first));
        let rooted = tree.tree.rooted_at(topology, root);
        for &switch in &rooted.order {
            self.below[switch.index()].clear();
        }
        for &switch in rooted.order.iter().rev() {
            self.here.clear();
            topology.hosts_of(switch).iter().for_each(|host| self.here.insert(*host));
            self.below[switch.index()].union(&self.here);
            self.mark_local(switch.index());
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

    fn mark_local(&mut self, switch: usize) {
        if !std::mem::replace(&mut self.has_hosts[switch], true) {
            self.switches.push(switch);
        }
        self.local[switch].union(&self.here);
    }

    fn mark_beyond(&mut self, channel: ChannelId, switch: usize) {
        self.mark(channel);
        self.beyond[channel.index()].union(&self.below[switch]);
    }

    /// Turns the marks into entries of the tree's VLAN, and forgets them.
    fn emit(&mut self, topology: &Topology, tree: &VlanTree, devices: &mut [DeviceIntent]) {
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
            touch(switch, devices[switch].fdb.len(), &mut self.start);
            let runs = self.beyond[channel.index()].runs().map(|(first, last)| FdbRun { vlan, first, last, port });
            devices[switch].fdb.extend(runs);
            self.beyond[channel.index()].clear();
            self.is_marked[channel.index()] = false;
        }
        for switch in self.switches.drain(..) {
            touch(switch, devices[switch].fdb.len(), &mut self.start);
            let hosts =
                self.local[switch].runs().flat_map(|(first, last)| (first.index()..=last.index()).map(HostId::new));
            let run = |host| FdbRun { vlan, first: host, last: host, port: topology.host(host).port };
            devices[switch].fdb.extend(hosts.map(run));
            self.local[switch].clear();
            self.has_hosts[switch] = false;
        }
        for switch in touched {
            let start = self.start[switch].take().expect("it was touched");
            devices[switch].fdb[start..].sort_unstable();
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
