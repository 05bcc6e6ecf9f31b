//! The flow level: no frames, only rates, shared max-min fairly over the channels that device state leads through.
//!
//! Rates rise together until a channel is full; the flows on it keep their rate, the others rise on (progressive
//! filling, Bertsekas and Gallager, "Data Networks", 6.5). Channels are taken from a heap by the share that they would
//! give; a share only grows while others freeze, so a stale entry is put back where it belongs. Whenever flows end,
//! rates are shared anew, once for all that end together.
//!
//! ```text
//!   a ═══╗            c1 gives 1/2 to a and b; then c2 has 1/2 left, for c alone
//!   b ═══╩═ c1 ═══╦═ c2 ═
//!   c ════════════╝
//! ```
//! Cost of sharing: O(Σ hops of active flows + channels · log channels). Memory: linear in channels and in the flows of
//! one phase.

use std::{cmp::Reverse, collections::BinaryHeap};

use fabric::{Attachment, HostId, Plan, Topology};
use thiserror::Error;

use crate::{
    pattern::Pair,
    tables::{Tables, route},
};

/// Flows that end within this share of the time since the last change end together.
const TOGETHER: f64 = 1e-12;

/// Routes of a plan, as device state makes them, over numbered resources: each channel, then each host's cable out, then
/// each host's cable in.
pub struct FlowLevel<'a> {
    plan: &'a Plan,
    tables: Tables,
    /// `capacity[resource]`, in bits a second.
    capacity: Vec<f64>,
}

/// A pair that device state does not connect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no frame from {from} to {to} arrives: run `espalier check` on the plan")]
pub struct NoRoute {
    /// Who sends.
    pub from: String,
    /// To whom.
    pub to: String,
}

/// An amount of data from one host to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// Who sends.
    pub source: HostId,
    /// To whom.
    pub destination: HostId,
    /// How much, in bits.
    pub bits: f64,
}

/// What became of a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shared {
    /// `first_bps[transfer]`: the rate while all are there.
    pub first_bps: Vec<f64>,
    /// `seconds[transfer]`: when it ended.
    pub seconds: Vec<f64>,
    /// `carried[resource]`: bits.
    pub carried: Vec<f64>,
    /// How often rates were shared.
    pub solutions: u64,
}

impl<'a> FlowLevel<'a> {
    /// Compiles the device state of a plan.
    pub fn new(plan: &'a Plan) -> Self {
        let topology = &plan.topology;
        let channels = topology.channel_ids().map(|channel| topology.link(channel.link()).rate_bps as f64);
        let hosts = topology.hosts().iter().map(|host| host.rate_bps as f64);
        let capacity = channels.chain(hosts.clone()).chain(hosts).collect();
        Self { plan, tables: Tables::compile(plan), capacity }
    }

    /// How many resources there are.
    pub fn resources(&self) -> usize {
        self.capacity.len()
    }

    /// `capacity[resource]`, in bits a second.
    pub fn capacity_bps(&self) -> &[f64] {
        &self.capacity
    }

    /// What a resource is called.
    pub fn label(&self, resource: usize) -> String {
        let topology = &self.plan.topology;
        let (channels, hosts) = (topology.channel_count(), topology.hosts().len());
        if resource < channels {
            topology.channel_label(fabric::ChannelId::new(resource))
        } else if resource < channels + hosts {
            format!("{}, sending", topology.hosts()[resource - channels].name)
        } else {
            format!("{}, receiving", topology.hosts()[resource - channels - hosts].name)
        }
    }

    /// Appends the resources along the way from one host to another.
    ///
    /// # Errors
    /// If device state does not lead there.
    pub fn append_route(&self, source: HostId, destination: HostId, to: &mut Vec<u32>) -> Result<(), NoRoute> {
        let topology = &self.plan.topology;
        let (channels, hosts) = (topology.channel_count(), topology.hosts().len());
        let Some(ports) = route(self.plan, &self.tables, source, destination) else {
            let name = |host: HostId| topology.host(host).name.clone();
            return Err(NoRoute { from: name(source), to: name(destination) });
        };
        to.push((channels + source.index()) as u32);
        to.extend(ports.iter().filter_map(|port| channel_of(topology, *port)));
        to.push((channels + hosts + destination.index()) as u32);
        Ok(())
    }

    /// How many of the pairs cross each resource.
    ///
    /// # Errors
    /// If a pair is not connected.
    pub fn loads(&self, pairs: &[Pair]) -> Result<Vec<u32>, NoRoute> {
        let (mut loads, mut way) = (vec![0; self.resources()], Vec::new());
        for pair in pairs {
            way.clear();
            self.append_route(pair.source, pair.destination, &mut way)?;
            way.iter().for_each(|resource| loads[*resource as usize] += 1);
        }
        Ok(loads)
    }

    /// `rate[pair]` in bits a second when every host serves its receivers in turn and waits when one of them must wait, as
    /// datagram senders behind PAUSE do: a host's flows rise together and stop together. Pairs are grouped by source.
    ///
    /// # Errors
    /// If a pair is not connected.
    pub fn blocking_rates_bps(&self, pairs: &[Pair]) -> Result<Vec<f64>, NoRoute> {
        let (mut ways, mut starts, mut together) = (Vec::new(), vec![0], Vec::with_capacity(pairs.len()));
        let mut first = 0;
        for group in pairs.chunk_by(|a, b| a.source == b.source) {
            let last = first + group.len() as u32;
            for pair in group {
                self.append_route(pair.source, pair.destination, &mut ways)?;
                starts.push(ways.len() as u32);
                together.push(first..last);
            }
            first = last;
        }
        let mut sharing = Sharing::new(&self.capacity, &ways, &starts);
        sharing.together = together;
        sharing.share();
        Ok(sharing.rate)
    }

    /// Runs transfers that start together, to their ends.
    ///
    /// # Errors
    /// If a pair is not connected.
    pub fn run(&self, transfers: &[Transfer]) -> Result<Shared, NoRoute> {
        let (mut ways, mut starts) = (Vec::new(), vec![0]);
        for transfer in transfers {
            self.append_route(transfer.source, transfer.destination, &mut ways)?;
            starts.push(ways.len() as u32);
        }
        let bits: Vec<f64> = transfers.iter().map(|transfer| transfer.bits).collect();
        Ok(Sharing::new(&self.capacity, &ways, &starts).run(bits))
    }
}

fn channel_of(topology: &Topology, port: fabric::PortId) -> Option<u32> {
    match topology.port(port).attachment {
        Attachment::Link(link) => {
            let forward = topology.link(link).a == port;
            Some((2 * link.index() + usize::from(!forward)) as u32)
        }
        Attachment::Host(_) | Attachment::Nothing => None,
    }
}

/// Flows over resources, as arrays.
struct Sharing<'a> {
    capacity: &'a [f64],
    /// The resources of flow `f`: `ways[starts[f]..starts[f + 1]]`.
    ways: &'a [u32],
    starts: &'a [u32],
    /// The flows of resource `r`: `users[user_starts[r]..user_ends[r]]`, active ones only.
    users: Vec<u32>,
    user_starts: Vec<u32>,
    user_ends: Vec<u32>,
    left: Vec<f64>,
    open: Vec<u32>,
    rate: Vec<f64>,
    /// The sharing in which the flow's rate was last fixed.
    fixed: Vec<u32>,
    round: u32,
    heap: BinaryHeap<Reverse<(Share, u32)>>,
    /// `together[flow]`: flows whose rate stops rising when this one's does; empty if each stands alone.
    together: Vec<std::ops::Range<u32>>,
}

/// A non-negative rate, by size; its bits are ordered as it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Share(u64);

impl<'a> Sharing<'a> {
    fn new(capacity: &'a [f64], ways: &'a [u32], starts: &'a [u32]) -> Self {
        let (resources, flows) = (capacity.len(), starts.len() - 1);
        let mut user_starts = vec![0_u32; resources + 1];
        ways.iter().for_each(|resource| user_starts[*resource as usize + 1] += 1);
        (0..resources).for_each(|resource| user_starts[resource + 1] += user_starts[resource]);
        let mut user_ends = user_starts[..resources].to_vec();
        let mut users = vec![0; ways.len()];
        for flow in 0..flows {
            for resource in &ways[starts[flow] as usize..starts[flow + 1] as usize] {
                let end = &mut user_ends[*resource as usize];
                users[*end as usize] = flow as u32;
                *end += 1;
            }
        }
        Self {
            capacity,
            ways,
            starts,
            users,
            user_starts,
            user_ends,
            left: vec![0.0; resources],
            open: vec![0; resources],
            rate: vec![0.0; flows],
            fixed: vec![0; flows],
            round: 0,
            heap: BinaryHeap::with_capacity(resources),
            together: Vec::new(),
        }
    }

    fn run(mut self, bits: Vec<f64>) -> Shared {
        let flows = bits.len();
        let mut outcome = Shared { seconds: vec![0.0; flows], ..Shared::default() };
        let mut carried = vec![0.0; self.capacity.len()];
        for (flow, amount) in bits.iter().enumerate() {
            for resource in self.way(flow) {
                carried[*resource as usize] += amount;
            }
        }
        outcome.carried = carried;
        let mut rest = bits;
        let mut active: Vec<u32> = (0..flows as u32).collect();
        let mut now = 0.0;
        while !active.is_empty() {
            self.share();
            outcome.solutions += 1;
            if outcome.solutions == 1 {
                outcome.first_bps = self.rate.clone();
            }
            let step = active
                .iter()
                .map(|flow| rest[*flow as usize] / self.rate[*flow as usize])
                .fold(f64::INFINITY, f64::min);
            now += step;
            let slack = step.max(now * 1e-3) * TOGETHER;
            let mut ended = Vec::new();
            active.retain(|flow| {
                let (rest, rate) = (&mut rest[*flow as usize], self.rate[*flow as usize]);
                *rest -= rate * step;
                let is_over = *rest <= rate * slack;
                if is_over {
                    ended.push(*flow);
                }
                !is_over
            });
            for flow in ended {
                outcome.seconds[flow as usize] = now;
                self.remove(flow as usize);
            }
        }
        outcome
    }

    fn way(&self, flow: usize) -> &'a [u32] {
        &self.ways[self.starts[flow] as usize..self.starts[flow + 1] as usize]
    }

    /// Takes a flow out of its resources' lists.
    fn remove(&mut self, flow: usize) {
        for resource in self.way(flow) {
            let (start, end) = (self.user_starts[*resource as usize], &mut self.user_ends[*resource as usize]);
            let users = &mut self.users[start as usize..*end as usize];
            if let Some(at) = users.iter().position(|user| *user as usize == flow) {
                users[at] = users[users.len() - 1];
                *end -= 1;
            }
        }
    }

    /// Shares all capacity max-min fairly among the flows that are left.
    fn share(&mut self) {
        self.round += 1;
        self.heap.clear();
        for resource in 0..self.capacity.len() {
            let users = self.user_ends[resource] - self.user_starts[resource];
            self.open[resource] = users;
            self.left[resource] = self.capacity[resource];
            if users > 0 {
                let share = self.capacity[resource] / f64::from(users);
                self.heap.push(Reverse((Share(share.to_bits()), resource as u32)));
            }
        }
        while let Some(Reverse((Share(known), resource))) = self.heap.pop() {
            let at = resource as usize;
            if self.open[at] == 0 {
                continue;
            }
            let share = (self.left[at] / f64::from(self.open[at])).max(0.0);
            if share > f64::from_bits(known) * (1.0 + 1e-13) {
                self.heap.push(Reverse((Share(share.to_bits()), resource)));
                continue;
            }
            for slot in self.user_starts[at]..self.user_ends[at] {
                let flow = self.users[slot as usize] as usize;
                match self.together.get(flow).cloned() {
                    None => self.fix(flow, share),
                    Some(flows) => flows.for_each(|flow| self.fix(flow as usize, share)),
                }
            }
        }
    }

    /// A flow's rate rises no more.
    #[inline]
    fn fix(&mut self, flow: usize, share: f64) {
        if self.fixed[flow] == self.round {
            return;
        }
        self.fixed[flow] = self.round;
        self.rate[flow] = share;
        for other in &self.ways[self.starts[flow] as usize..self.starts[flow + 1] as usize] {
            self.left[*other as usize] -= share;
            self.open[*other as usize] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::rng::Rng;

    /// Rates are max-min fair if and only if every flow has a full resource on which nobody is faster.
    #[test]
    fn every_flow_has_its_bottleneck() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let resources = 2 + rng.below(12);
            let capacity: Vec<f64> = (0..resources).map(|_| 1.0 + rng.below(9) as f64).collect();
            let (mut ways, mut starts) = (Vec::new(), vec![0]);
            for _ in 0..1 + rng.below(40) {
                let mut way: Vec<u32> = (0..1 + rng.below(4)).map(|_| rng.below(resources) as u32).collect();
                way.sort_unstable();
                way.dedup();
                ways.extend(way);
                starts.push(ways.len() as u32);
            }
            let mut sharing = Sharing::new(&capacity, &ways, &starts);
            sharing.share();
            let users = |resource: u32| {
                let on = |flow: &usize| sharing.way(*flow).contains(&resource);
                (0..starts.len() - 1).filter(on).map(|flow| sharing.rate[flow]).collect::<Vec<f64>>()
            };
            for flow in 0..starts.len() - 1 {
                let is_bottleneck = |resource: &&u32| {
                    let rates = users(**resource);
                    let full = rates.iter().sum::<f64>() > capacity[**resource as usize] * (1.0 - 1e-9);
                    full && rates.iter().all(|rate| *rate <= sharing.rate[flow] * (1.0 + 1e-9))
                };
                assert!(sharing.way(flow).iter().any(|resource| is_bottleneck(&resource)), "seed {seed}, flow {flow}");
            }
            for (resource, capacity) in (0..).zip(&capacity) {
                let sum: f64 = users(resource).iter().sum();
                assert!(sum <= capacity * (1.0 + 1e-9), "seed {seed}: {sum}");
            }
        }
    }
}
