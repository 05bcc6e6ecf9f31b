//! The flow level: no frames, only rates, shared max-min fairly over the channels that device state leads through.
//!
//! ```text
//!   device state ──▶ ways over resources ──▶ sharing: rates, and who ends first ──▶ sharing anew …
//! ```
//! With [`Spread::Ideal`] a pair has a way for each VLAN of its path set, and splits over them as suits all.

mod cables;
mod ideal;
mod levels;
mod sharing;

use fabric::{Attachment, HostId, Plan, Topology};
use thiserror::Error;

pub use self::ideal::TOLERANCE;
use self::{cables::Cables, sharing::Sharing};
use crate::{
    lag::{FlowHash, numbers},
    pattern::Pair,
    spread::{Spread, SpreadError},
    tables::{Tables, route},
};

/// Routes that are found between two looks at whether to go on.
const ROUTES_A_LOOK: usize = 4096;

/// Routes of a plan, as device state makes them, over numbered resources: each channel, then each host's cable out, then
/// each host's cable in, then each cable of each of them that is a LAG. A flow takes one cable of a LAG.
pub struct FlowLevel<'a> {
    plan: &'a Plan,
    tables: Tables,
    cables: Cables,
    /// `capacity[resource]`, in bits a second.
    capacity: Vec<f64>,
    spread: Spread,
    hash: FlowHash,
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

/// How far a phase is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Transfers that have ended.
    pub ended: usize,
    /// Simulated time since its start.
    pub seconds: f64,
}

/// What became of a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shared {
    /// `first_bps[transfer]`: the rate while all are there.
    pub first_bps: Vec<f64>,
    /// `seconds[transfer]`: when it ended.
    pub seconds: Vec<f64>,
    /// `carried[resource]`: bits; those of a LAG are the sum of its cables'.
    pub carried: Vec<f64>,
    /// How often rates were shared.
    pub solutions: u64,
}

impl<'a> FlowLevel<'a> {
    /// Compiles the device state of a plan, of whose path sets each pair uses the assigned VLAN alone.
    pub fn new(plan: &'a Plan) -> Self {
        Self::compile(plan, Spread::One)
    }

    /// The same where pairs spread over their path sets.
    ///
    /// # Errors
    /// If the flow level does not know that spread, or the plan has no path sets.
    pub fn with_spread(plan: &'a Plan, spread: Spread) -> Result<Self, SpreadError> {
        spread.check_flow(plan)?;
        Ok(Self::compile(plan, spread))
    }

    pub(crate) fn compile(plan: &'a Plan, spread: Spread) -> Self {
        let topology = &plan.topology;
        let channels = topology.channel_ids().map(|channel| topology.link(channel.link()).rate_bps as f64);
        let hosts = topology.hosts().iter().map(|host| host.rate_bps as f64);
        let mut capacity = channels.chain(hosts.clone()).chain(hosts).collect();
        let cables = Cables::of(topology, &mut capacity);
        Self { plan, tables: Tables::compile(plan), cables, capacity, spread, hash: FlowHash::of(topology) }
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
        if let Some((lag, number)) = self.cables.lag(resource as u32) {
            let (near, far) = cables::ends(topology, lag);
            let member = |port| topology.members(port).nth(number).map_or(port, |member| member);
            return match far {
                Some(far) => format!("{} -> {}", topology.port_label(member(near)), topology.port_label(member(far))),
                None => format!("{} by {}", self.label(lag as usize), topology.port_label(member(near))),
            };
        }
        if resource < channels {
            topology.channel_label(fabric::ChannelId::new(resource))
        } else if resource < channels + hosts {
            format!("{}, sending", topology.hosts()[resource - channels].name)
        } else {
            format!("{}, receiving", topology.hosts()[resource - channels - hosts].name)
        }
    }

    /// Appends the resources along the way from one host to another in the assigned VLAN; a LAG stands for whichever of its
    /// cables a flow takes.
    ///
    /// # Errors
    /// If device state does not lead there.
    pub fn append_route(&self, source: HostId, destination: HostId, to: &mut Vec<u32>) -> Result<(), NoRoute> {
        let (tag, _) = self.tables.host_tag(self.plan, source, Some(destination));
        self.append_tagged((source, destination), tag, to)
    }

    /// The same for frames with a tag.
    fn append_tagged(
        &self,
        (source, destination): (HostId, HostId),
        tag: u16,
        to: &mut Vec<u32>,
    ) -> Result<(), NoRoute> {
        let topology = &self.plan.topology;
        let (channels, hosts) = (topology.channel_count(), topology.hosts().len());
        let Some(ports) = route(self.plan, &self.tables, (source, destination), tag) else {
            let name = |host: HostId| topology.host(host).name.clone();
            return Err(NoRoute { from: name(source), to: name(destination) });
        };
        to.push((channels + source.index()) as u32);
        to.extend(ports.iter().filter_map(|port| channel_of(topology, *port)));
        to.push((channels + hosts + destination.index()) as u32);
        Ok(())
    }

    /// The same with the path and the cables of LAGs that a flow takes, the `number`-th from this sender to this receiver.
    pub(crate) fn append_way(
        &self,
        (source, destination): (HostId, HostId),
        number: u32,
        to: &mut Vec<u32>,
    ) -> Result<(), NoRoute> {
        let start = to.len();
        match self.spread {
            Spread::Flow => {
                let tags = self.tables.path_tags(self.plan, source, destination);
                let tag = tags[self.hash.path((source, destination), number, tags.len())];
                self.append_tagged((source, destination), tag, to)?;
            }
            _ => self.append_route(source, destination, to)?,
        }
        self.cables.choose((source, destination), number, &mut to[start..]);
        Ok(())
    }

    /// The ways of a flow over all paths of its pair.
    fn ways(&self, (source, destination): (HostId, HostId), number: u32) -> Result<ideal::Paths, NoRoute> {
        let way = |tag| {
            let mut way = Vec::new();
            self.append_tagged((source, destination), tag, &mut way)?;
            self.cables.choose((source, destination), number, &mut way);
            Ok(way)
        };
        let mut ways: ideal::Paths =
            self.tables.path_tags(self.plan, source, destination).into_iter().map(way).collect::<Result<_, _>>()?;
        ways.sort_unstable();
        ways.dedup();
        Ok(ways)
    }

    /// `numbers[flow]` where paths or cables depend on them, else empty.
    fn numbers(&self, flows: impl Iterator<Item = (HostId, HostId)>) -> Vec<u32> {
        if self.spread == Spread::One { self.cables.numbers(flows) } else { numbers(flows) }
    }

    /// How many pairs cross each resource if each splits evenly over its path set: whole numbers where a pair has one path.
    ///
    /// # Errors
    /// If a pair is not connected in one of its VLANs.
    pub fn even_loads(&self, pairs: &[Pair]) -> Result<Vec<f64>, NoRoute> {
        let mut loads = vec![0.0; self.resources()];
        let numbers = numbers(pairs.iter().map(|pair| (pair.source, pair.destination)));
        for (pair, number) in pairs.iter().zip(numbers) {
            let ways = self.ways((pair.source, pair.destination), number)?;
            for way in &ways {
                way.iter().for_each(|resource| loads[*resource as usize] += 1.0 / ways.len() as f64);
            }
        }
        self.add_up(&mut loads);
        Ok(loads)
    }

    /// Adds what cables carry to what their LAGs do: `carried[resource]`.
    pub(crate) fn add_up<T: Copy + std::ops::AddAssign>(&self, carried: &mut [T]) {
        self.cables.add_up(carried);
    }

    /// How many of the pairs cross each resource.
    ///
    /// # Errors
    /// If a pair is not connected.
    pub fn loads(&self, pairs: &[Pair]) -> Result<Vec<u32>, NoRoute> {
        let (mut loads, mut way) = (vec![0; self.resources()], Vec::new());
        let numbers = self.numbers(pairs.iter().map(|pair| (pair.source, pair.destination)));
        for (index, pair) in pairs.iter().enumerate() {
            way.clear();
            let number = numbers.get(index).copied().unwrap_or(0);
            self.append_way((pair.source, pair.destination), number, &mut way)?;
            way.iter().for_each(|resource| loads[*resource as usize] += 1);
        }
        self.add_up(&mut loads);
        Ok(loads)
    }

    /// `rate[pair]` in bits a second when every host serves its receivers in turn and waits when one of them must wait, as
    /// datagram senders behind PAUSE do: a host's flows rise together and stop together. Pairs are grouped by source.
    ///
    /// # Errors
    /// If a pair is not connected.
    pub fn blocking_rates_bps(&self, pairs: &[Pair]) -> Result<Vec<f64>, NoRoute> {
        let (mut ways, mut starts, mut together) = (Vec::new(), vec![0], Vec::with_capacity(pairs.len()));
        let numbers = self.numbers(pairs.iter().map(|pair| (pair.source, pair.destination)));
        let mut first = 0;
        for group in pairs.chunk_by(|a, b| a.source == b.source) {
            let last = first + group.len() as u32;
            for (pair, index) in group.iter().zip(first as usize..) {
                let number = numbers.get(index).copied().unwrap_or(0);
                self.append_way((pair.source, pair.destination), number, &mut ways)?;
                starts.push(ways.len() as u32);
                together.push(first..last);
            }
            first = last;
        }
        let mut sharing = Sharing::new(&self.capacity, &ways, &starts);
        sharing.together = together;
        sharing.share(&[]);
        Ok(sharing.rate)
    }

    /// Runs transfers that start together, to their ends.
    ///
    /// # Errors
    /// If a pair is not connected.
    pub fn run(&self, transfers: &[Transfer]) -> Result<Shared, NoRoute> {
        let shared = self.run_while(transfers, &mut |_| true)?;
        Ok(shared.unwrap_or_else(|| unreachable!("nobody stopped it")))
    }

    /// The same for as long as `go_on` says yes; nothing comes of a phase that it stops. It is asked each time rates have
    /// been shared, and from time to time before that, so it should be quick.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_while(
        &self,
        transfers: &[Transfer],
        go_on: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Option<Shared>, NoRoute> {
        if self.spread == Spread::Ideal {
            return self.run_ideal(transfers, go_on);
        }
        let (mut ways, mut starts) = (Vec::new(), vec![0]);
        let numbers = self.numbers(transfers.iter().map(|transfer| (transfer.source, transfer.destination)));
        for (index, transfer) in transfers.iter().enumerate() {
            if index % ROUTES_A_LOOK == 0 && !go_on(Progress { ended: 0, seconds: 0.0 }) {
                return Ok(None);
            }
            let number = numbers.get(index).copied().unwrap_or(0);
            self.append_way((transfer.source, transfer.destination), number, &mut ways)?;
            starts.push(ways.len() as u32);
        }
        let bits: Vec<f64> = transfers.iter().map(|transfer| transfer.bits).collect();
        let mut shared = Sharing::new(&self.capacity, &ways, &starts).run(bits, go_on);
        if let Some(shared) = &mut shared {
            self.add_up(&mut shared.carried);
        }
        Ok(shared)
    }

    fn run_ideal(
        &self,
        transfers: &[Transfer],
        go_on: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Option<Shared>, NoRoute> {
        let numbers = numbers(transfers.iter().map(|transfer| (transfer.source, transfer.destination)));
        let ways = (transfers.iter().zip(numbers))
            .map(|(transfer, number)| self.ways((transfer.source, transfer.destination), number));
        let ways: Vec<ideal::Paths> = ways.collect::<Result<_, _>>()?;
        let bits: Vec<f64> = transfers.iter().map(|transfer| transfer.bits).collect();
        let mut shared = ideal::run(&self.capacity, &ways, &bits, go_on);
        if let Some(shared) = &mut shared {
            self.add_up(&mut shared.carried);
        }
        Ok(shared)
    }
}

fn channel_of(topology: &Topology, port: fabric::PortId) -> Option<u32> {
    match topology.port(port).attachment {
        Attachment::Link(link) => {
            let forward = topology.link(link).a == port;
            Some((2 * link.index() + usize::from(!forward)) as u32)
        }
        Attachment::Host(_) | Attachment::Nothing | Attachment::Member(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use fabric::{
        FlowControl, Policy, Tagging,
        generate::{Kind, Options, generate},
    };

    use super::*;
    use crate::pattern::Pattern;

    /// On a planned torus no pair could have more while all others keep what they have.
    #[test]
    fn no_pair_has_less_than_others_leave_it() {
        let kind = Kind::parse("torus", &["5x5".to_owned()]).expect("a kind");
        let topology = generate(&kind, &Options::default()).expect("a sane size");
        let policy =
            Policy { paths_max: 4, flow_control: FlowControl::None, tagging: Tagging::Source, ..Policy::default() };
        let plan = planner::plan(&topology, &policy, None).expect("a plan");
        let level = FlowLevel::with_spread(&plan, Spread::Ideal).expect("path sets");
        for seed in 1..4 {
            let pairs = Pattern::Permutation.pairs(&topology, seed).expect("any number of hosts");
            let ways = pairs.iter().map(|pair| level.ways((pair.source, pair.destination), 0).expect("routes"));
            let ways: Vec<ideal::Paths> = ways.collect();
            let all: Vec<&ideal::Paths> = ways.iter().collect();
            let share = |held: &[Option<f64>]| {
                ideal::share(&level.capacity, &all, held, &mut || true).expect("nobody stops it").rate
            };
            let rates = share(&vec![None; all.len()]);
            for pair in 0..all.len() {
                let mut held: Vec<Option<f64>> =
                    rates.iter().map(|rate| Some(rate * (1.0 - 1e-3 * TOLERANCE))).collect();
                held[pair] = None;
                let alone = share(&held)[pair];
                assert!(
                    alone <= rates[pair] * (1.0 + 2.0 * TOLERANCE),
                    "seed {seed}, pair {pair}: {alone} over {}",
                    rates[pair]
                );
            }
        }
    }
}
