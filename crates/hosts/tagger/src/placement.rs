//! Flow placement: moves a host's long flows off links that other long flows fill.
//!
//! ```text
//!   kernel ─ bytes of each flow ─▶ Placement ─ move: flow 17 to its second VLAN ─▶ kernel
//!   long flows of other hosts ───▶     └─ long flows of this host ─▶ all hosts
//! ```
//! Every host announces its long flows to all others: the destination and the VLAN of each. From these and the plan each host knows the
//! load of every link, if every long flow sends as much as ports allow: a port's rate, divided by the long flows that leave it, or by
//! those that enter it where they are more. A host moves a flow if another VLAN's most loaded link is less loaded than that of its own.
//! Every host decides for itself; three rules keep hosts from reacting to each other without end:
//!
//! - A flow whose links carry all demands stays.
//! - Otherwise it moves with probability one half in each look, so that of two flows that share a link one stays. A look moves one flow
//!   at most, the fastest first.
//! - A flow that moved stays for two announcements, so that all hosts have heard of it.
//!
//! The kernel moves the flow during its first pause of [`PAUSE_NS`], so its frames stay in order. A flow that does not pause within
//! [`PATIENCE_NS`] moves anyway, and its frames may be reordered once.
//!
//! Source: Al-Fares et al., NSDI 2010 (Hedera: demands of long flows by what ports allow, and where to place them); Kabbani et al., CoNEXT
//! 2014 (hosts move their flows without a controller).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use fabric::{Mac, VlanId, rng::Rng};

use crate::links::{Channel, Links};

const MS: u64 = 1_000_000;

/// Interval between looks at all flows.
pub const LOOK_NS: u64 = 100 * MS;
/// Interval between announcements of a host that has long flows, in a fabric of up to 250 hosts. Each further host makes it longer, so
/// that a host hears at most [`ANNOUNCEMENTS_PER_S`].
const ANNOUNCE_NS: u64 = 250 * MS;
const ANNOUNCEMENTS_PER_S: u64 = 1000;
/// Announced flows are forgotten after this many intervals.
const STALE_INTERVALS: u64 = 4;
#[cfg(test)]
const STALE_NS: u64 = STALE_INTERVALS * ANNOUNCE_NS;
/// A long flow has sent at least this many bytes,
const LONG_BYTES: u64 = 1 << 20;
/// and sends at least one part in this many of the host's rate.
const LONG_PART: u64 = 16;
/// The load of a link, in percent of its rate, above which it slows flows down.
const FULL_PERCENT: u64 = 105;
/// A flow moves if the load of its most loaded link falls by at least one part in this many.
const GAIN_PART: u64 = 10;
/// A flow that should move does so with a probability of one in this many, in each look.
const ODDS: usize = 2;
/// How long a flow stays after a move, in intervals between announcements.
const HOLD_INTERVALS: u64 = 2;
/// The pause during which a flow moves.
pub const PAUSE_NS: u64 = MS / 2;
/// How long a move waits for such a pause.
pub const PATIENCE_NS: u64 = 20 * MS;

/// A flow as the kernel counts it, and the VLANs of its route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSample {
    /// Its slot in the kernel's map.
    pub slot: u32,
    /// When it began; another flow in the same slot began at another time.
    pub began_ns: u64,
    /// Bytes sent since then.
    pub bytes: u64,
    /// Its destination.
    pub to: Mac,
    /// Its VLAN: an index into `vlans`.
    pub choice: usize,
    /// The VLANs of its route.
    pub vlans: Vec<VlanId>,
}

/// Moves a flow to another VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The flow's slot.
    pub slot: u32,
    /// The index of the VLAN in its route.
    pub choice: usize,
}

/// The long flows of a host, and those of the others.
#[derive(Clone, Debug)]
pub struct Placement {
    own: Mac,
    links: Links,
    announce_ns: u64,
    flows: BTreeMap<u32, Flow>,
    /// What this host announces: the destination and the VLAN of each long flow.
    long: Vec<(Mac, VlanId)>,
    /// The long flows of other hosts, and when they were heard of.
    announced: BTreeMap<Mac, (u64, Vec<(Mac, VlanId)>)>,
    next_announcement_ns: u64,
    looked_ns: Option<u64>,
    rng: Rng,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    began_ns: u64,
    bytes: u64,
    /// Bits a second, smoothed.
    rate_bps: u64,
    held_until_ns: u64,
}

/// The demands of long flows, and the loads that they make.
struct Demand<'a> {
    links: &'a Links,
    /// Long flows that leave and enter each host's port.
    leaving: BTreeMap<Mac, u64>,
    entering: BTreeMap<Mac, u64>,
    load_bps: Vec<u64>,
}

impl Placement {
    /// A host without flows. `seed` determines its random choices.
    pub fn new(own: Mac, links: Links, seed: u64) -> Self {
        let heard_of_all_ns = links.hosts() as u64 * 1_000_000_000 / ANNOUNCEMENTS_PER_S;
        Self {
            own,
            links,
            announce_ns: ANNOUNCE_NS.max(heard_of_all_ns),
            flows: BTreeMap::new(),
            long: Vec::new(),
            announced: BTreeMap::new(),
            next_announcement_ns: 0,
            looked_ns: None,
            rng: Rng::new(seed),
        }
    }

    /// Another host has these long flows.
    pub fn handle_flows(&mut self, now_ns: u64, from: Mac, flows: Vec<(Mac, VlanId)>) {
        // Hosts of the plan alone, so that memory is bounded.
        if self.links.port_bps(from).is_some() {
            self.announced.insert(from, (now_ns, flows));
        }
    }

    /// The long flows to announce, when it is time to.
    pub fn poll_announcement(&mut self, now_ns: u64) -> Option<Vec<(Mac, VlanId)>> {
        let is_due = !self.long.is_empty() && now_ns >= self.next_announcement_ns;
        is_due.then(|| {
            self.next_announcement_ns = now_ns + self.announce_ns;
            self.long.clone()
        })
    }

    /// The flow that is to move, if any; to be called every [`LOOK_NS`] with all flows.
    /// Cost: O(flows · log flows + long flows of all hosts · hops).
    pub fn look(&mut self, now_ns: u64, samples: &[FlowSample]) -> Option<Move> {
        let span_ns = self.looked_ns.replace(now_ns).map_or(0, |before| now_ns.saturating_sub(before));
        self.count(now_ns, span_ns, samples);
        let stale_ns = STALE_INTERVALS * self.announce_ns;
        self.announced.retain(|_, (heard_ns, _)| now_ns.saturating_sub(*heard_ns) <= stale_ns);
        let total_bps: u64 = self.flows.values().map(|flow| flow.rate_bps).sum();
        let is_long = |sample: &&FlowSample| {
            let rate_bps = self.flows[&sample.slot].rate_bps;
            let has_path = sample.choice < sample.vlans.len();
            has_path && sample.bytes >= LONG_BYTES && rate_bps > 0 && rate_bps >= total_bps / LONG_PART
        };
        let mut long: Vec<&FlowSample> = samples.iter().filter(is_long).collect();
        long.sort_by_key(|sample| (Reverse(self.flows[&sample.slot].rate_bps), sample.slot));
        self.long = long.iter().map(|sample| (sample.to, sample.vlans[sample.choice])).collect();
        let own = self.long.iter().map(|(to, vlan)| (self.own, *to, *vlan));
        let others =
            self.announced.iter().flat_map(|(from, (_, flows))| flows.iter().map(|(to, vlan)| (*from, *to, *vlan)));
        let demand = Demand::of(&self.links, own.chain(others));
        for sample in long {
            let flow = self.flows.get_mut(&sample.slot).expect("counted above");
            let Some(choice) = demand.better(self.own, sample).filter(|_| now_ns >= flow.held_until_ns) else {
                continue;
            };
            if self.rng.below(ODDS) == 0 {
                flow.held_until_ns = now_ns + HOLD_INTERVALS * self.announce_ns;
                // The next look finds it in its new VLAN, and all hosts hear of that.
                self.next_announcement_ns = now_ns + LOOK_NS;
                return Some(Move { slot: sample.slot, choice });
            }
        }
        None
    }

    /// Brings rates up to date, and forgets flows that ended.
    fn count(&mut self, now_ns: u64, span_ns: u64, samples: &[FlowSample]) {
        let slots: BTreeSet<u32> = samples.iter().map(|sample| sample.slot).collect();
        self.flows.retain(|slot, _| slots.contains(slot));
        for sample in samples {
            let known = self.flows.get(&sample.slot).filter(|flow| flow.began_ns == sample.began_ns).copied();
            let next = match known {
                Some(flow) if span_ns > 0 => {
                    let bits = 8 * u128::from(sample.bytes.saturating_sub(flow.bytes));
                    let rate_bps = (bits * 1_000_000_000 / u128::from(span_ns)) as u64;
                    Flow { bytes: sample.bytes, rate_bps: flow.rate_bps.midpoint(rate_bps), ..flow }
                }
                Some(flow) => flow,
                None => Flow { began_ns: sample.began_ns, bytes: sample.bytes, rate_bps: 0, held_until_ns: now_ns },
            };
            self.flows.insert(sample.slot, next);
        }
    }
}

impl<'a> Demand<'a> {
    /// Of flows: sender, receiver, VLAN.
    fn of(links: &'a Links, flows: impl Iterator<Item = (Mac, Mac, VlanId)>) -> Self {
        let flows: Vec<(Mac, Mac, VlanId)> = flows.collect();
        let mut demand =
            Self { links, leaving: BTreeMap::new(), entering: BTreeMap::new(), load_bps: vec![0; links.channels()] };
        for (from, to, _) in &flows {
            *demand.leaving.entry(*from).or_default() += 1;
            *demand.entering.entry(*to).or_default() += 1;
        }
        for (from, to, vlan) in flows {
            let bps = demand.bps(from, to);
            for channel in links.path(from, to, vlan).unwrap_or_default() {
                demand.load_bps[channel] += bps;
            }
        }
        demand
    }

    /// What a flow sends if no link between switches limits it.
    fn bps(&self, from: Mac, to: Mac) -> u64 {
        let part = |flows: &BTreeMap<Mac, u64>, host: Mac| {
            self.links.port_bps(host).unwrap_or(0) / flows.get(&host).copied().unwrap_or(1).max(1)
        };
        part(&self.leaving, from).min(part(&self.entering, to))
    }

    /// The VLAN of a flow's route whose most loaded link is the least loaded one, if the flow gains by it.
    fn better(&self, from: Mac, sample: &FlowSample) -> Option<usize> {
        let bps = self.bps(from, sample.to);
        let path = |choice: usize| self.links.path(from, sample.to, sample.vlans[choice]);
        let own = path(sample.choice)?;
        // Percent of the most loaded link with this flow on the path, and the sum over all links.
        let load = |path: &[Channel]| {
            let percent = |channel: &Channel| {
                let added_bps = if own.contains(channel) { 0 } else { bps };
                (self.load_bps[*channel] + added_bps).saturating_mul(100) / self.links.capacity_bps(*channel).max(1)
            };
            (path.iter().map(percent).max().unwrap_or(0), path.iter().map(percent).sum::<u64>())
        };
        let (now_percent, _) = load(&own);
        let others = (0..sample.vlans.len()).filter(|choice| *choice != sample.choice);
        let (((best_percent, _), _), choice) =
            others.filter_map(|choice| path(choice).map(|path| ((load(&path), choice), choice))).min()?;
        let gains = best_percent + now_percent / GAIN_PART <= now_percent;
        (now_percent > FULL_PERCENT && gains).then_some(choice)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::links::{Port, Up};

    const LINK_BPS: u64 = 1_000_000_000;
    /// Hosts of a leaf.
    const HOSTS: usize = 4;

    fn mac(host: usize) -> Mac {
        Mac::local(host as u32 + 1)
    }

    fn vlan(spine: usize) -> VlanId {
        VlanId::new(spine as u16 + 2).expect("in range")
    }

    /// A VLAN for each spine, rooted there; links of one rate.
    fn leaves_and_spines(leaves: usize, spines: usize) -> Links {
        let channel = |leaf: usize, spine: usize| 2 * (leaf * spines + spine);
        let tree = |spine: usize| {
            let leaf = |leaf: usize| {
                let up = channel(leaf, spine);
                Some(Up { parent: leaves + spine, up, down: up + 1, depth: 1 })
            };
            (0..leaves).map(leaf).chain(std::iter::repeat_n(None, spines)).collect()
        };
        Links {
            ports: (0..HOSTS * leaves)
                .map(|host| (mac(host), Port { switch: host / HOSTS, rate_bps: LINK_BPS }))
                .collect(),
            capacity_bps: vec![LINK_BPS; 2 * leaves * spines],
            trees: (0..spines).map(|spine| (vlan(spine), tree(spine))).collect(),
        }
    }

    /// Hosts that each send one bulk flow, look every 100 ms, and hear each other's announcements 250 ms apart.
    struct Game {
        hosts: Vec<Placement>,
        links: Links,
        spines: usize,
        receivers: Vec<usize>,
        choices: Vec<usize>,
        moves: usize,
        looks: u64,
    }

    impl Game {
        fn new(seed: u64, leaves: usize, spines: usize) -> Self {
            let links = leaves_and_spines(leaves, spines);
            let count = HOSTS * leaves;
            let mut rng = fabric::rng::Rng::new(seed);
            let mut receivers: Vec<usize> = (0..count).collect();
            for at in (1..count).rev() {
                receivers.swap(at, rng.below(at + 1));
            }
            Self {
                hosts: (0..count).map(|host| Placement::new(mac(host), links.clone(), seed + host as u64)).collect(),
                links,
                spines,
                receivers,
                choices: (0..count).map(|_| rng.below(spines)).collect(),
                moves: 0,
                looks: 0,
            }
        }

        /// The mean rate of all hosts, if flows share links evenly.
        fn share(&self) -> f64 {
            let path = |host: usize| {
                self.links.path(mac(host), mac(self.receivers[host]), vlan(self.choices[host])).expect("connected")
            };
            let mut flows = vec![0_u32; self.links.channels()];
            (0..self.hosts.len()).flat_map(path).for_each(|channel| flows[channel] += 1);
            let rate = |host: usize| 1.0 / path(host).into_iter().map(|at| flows[at]).max().unwrap_or(1).max(1) as f64;
            (0..self.hosts.len()).map(rate).sum::<f64>() / self.hosts.len() as f64
        }

        fn pass(&mut self, looks: u64) {
            for _ in 0..looks {
                self.looks += 1;
                let now_ns = self.looks * LOOK_NS;
                for host in 0..self.hosts.len() {
                    let sample = FlowSample {
                        slot: 7,
                        began_ns: 1,
                        bytes: self.looks * LONG_BYTES,
                        to: mac(self.receivers[host]),
                        choice: self.choices[host],
                        vlans: (0..self.spines).map(vlan).collect(),
                    };
                    if let Some(order) = self.hosts[host].look(now_ns, &[sample]) {
                        self.choices[host] = order.choice;
                        self.moves += 1;
                    }
                    if let Some(flows) = self.hosts[host].poll_announcement(now_ns) {
                        let others = self.hosts.iter_mut().enumerate().filter(|(other, _)| *other != host);
                        others.for_each(|(_, other)| other.handle_flows(now_ns, mac(host), flows.clone()));
                    }
                }
            }
        }
    }

    #[test]
    fn flows_that_share_a_link_find_idle_ones() {
        let (mut before, mut after, mut moves) = (0.0, 0.0, 0);
        for seed in 1..=20 {
            let mut game = Game::new(seed, 4, 4);
            before += game.share() / 20.0;
            game.pass(50);
            after += game.share() / 20.0;
            moves += game.moves;
        }
        println!("{before:.3} of the optimum at first, {after:.3} after 5 s, {moves} moves of 320 flows");
        assert!(after > 0.95, "{before:.3} at first, {after:.3} after 5 s");
    }

    #[test]
    fn nothing_moves_where_nothing_gets_faster() {
        for (seed, spines) in [(1, 1), (2, 2), (3, 4)] {
            let mut game = Game::new(seed, 4, spines);
            game.pass(100);
            let moves = game.moves;
            game.pass(500);
            assert!(game.moves - moves <= 4, "{spines} spines: {} moves after the first 10 s", game.moves - moves);
        }
    }

    #[test]
    fn flows_that_a_port_limits_stay() {
        // Four flows to one receiver: its port is the bottleneck, not the link that they share.
        let links = leaves_and_spines(2, 4);
        let mut placement = Placement::new(mac(0), links, 1);
        for look in 1..50 {
            let now_ns = look * LOOK_NS;
            for other in 1..4 {
                placement.handle_flows(now_ns, mac(other), vec![(mac(5), vlan(0))]);
            }
            assert_eq!(placement.look(now_ns, &[sample(1, look * LONG_BYTES, 5)]), None);
        }
    }

    #[test]
    fn the_long_flow_moves_and_the_short_one_stays() {
        let mut placement = Placement::new(mac(0), leaves_and_spines(2, 4), 1);
        let order = (1..50).find_map(|look| {
            let now_ns = look * LOOK_NS;
            placement.handle_flows(now_ns, mac(1), vec![(mac(6), vlan(0))]);
            placement.look(now_ns, &[sample(1, look * 2 * LONG_BYTES, 5), sample(2, look * LONG_BYTES / 100, 5)])
        });
        let order = order.expect("two flows share the link to spine 0");
        assert!(order.slot == 1 && order.choice != 0, "{order:?}");
    }

    #[test]
    fn hosts_that_fall_silent_are_forgotten() {
        let mut placement = Placement::new(mac(0), leaves_and_spines(2, 4), 1);
        placement.handle_flows(0, mac(1), vec![(mac(6), vlan(0))]);
        for look in STALE_NS / LOOK_NS + 1..100 {
            assert_eq!(placement.look(look * LOOK_NS, &[sample(1, look * LONG_BYTES, 5)]), None);
        }
    }

    fn sample(slot: u32, bytes: u64, to: usize) -> FlowSample {
        FlowSample { slot, began_ns: 1, bytes, to: mac(to), choice: 0, vlans: (0..4).map(vlan).collect() }
    }

    proptest! {
        #[test]
        fn any_samples_are_taken(
            events in proptest::collection::vec(
                (0_u64..2000, 0_u32..4, 0_u64..1 << 40, 0_usize..9, 0_usize..9, 0_usize..12), 0..200)
        ) {
            let mut placement = Placement::new(mac(0), leaves_and_spines(2, 4), 1);
            let mut now_ns = 0_u64;
            for (span_ms, slot, bytes, choice, vlans, to) in events {
                now_ns += span_ms * MS;
                placement.handle_flows(now_ns, mac(to), vec![(mac(choice), vlan(vlans)); vlans]);
                let vlans: Vec<VlanId> = (0..vlans).map(vlan).collect();
                let sample = FlowSample { slot, began_ns: bytes % 3, bytes, to: mac(to), choice, vlans };
                if let Some(order) = placement.look(now_ns, std::slice::from_ref(&sample)) {
                    prop_assert!(order.choice < sample.vlans.len() && order.choice != choice);
                }
                prop_assert!(placement.poll_announcement(now_ns).is_none_or(|flows| flows.len() <= 1));
            }
        }
    }
}
