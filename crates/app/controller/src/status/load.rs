//! What cables carry, by the counters at both ends.

use fabric::{Plan, PortId};
use switch_model::observe::{Flow, Snapshot, flow};

/// What a cable carries: from its first end to the second, and back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkLoad {
    /// Its ends.
    pub name: String,
    /// Whether it carries at all; none if neither end says.
    pub running: Option<bool>,
    /// Its capacity; 0 if neither end says.
    pub speed_bps: u64,
    /// What it carries, there and back.
    pub rate_bps: [Option<u64>; 2],
    /// Bad frames at both ends, received and sent.
    pub errors: Option<u64>,
    /// Frames dropped at both ends, received and sent.
    pub discards: Option<u64>,
    /// PAUSE frames that the first end received and sent.
    pub pause: [Option<u64>; 2],
}

impl LinkLoad {
    /// The part of the capacity that is used one way, 0 to 1; none if either is unknown.
    pub fn load(&self, way: usize) -> Option<f64> {
        let rate_bps = self.rate_bps[way].filter(|_| self.speed_bps > 0)?;
        Some(rate_bps as f64 / self.speed_bps as f64)
    }
}

/// Every cable between switches, then those of hosts. What one end does not say, the other may.
pub(super) fn link_loads(plan: &Plan, before: &[Option<Snapshot>], after: &[Option<Snapshot>]) -> Vec<LinkLoad> {
    let flows: Vec<Vec<Option<Flow>>> = (before.iter().zip(after))
        .map(|pair| match pair {
            (Some(before), Some(after)) => flow(before, after),
            _ => Vec::new(),
        })
        .collect();
    let topology = &plan.topology;
    let at = |port: PortId| {
        let switch = topology.port(port).switch;
        *flows.get(switch.index())?.get(port.index() - topology.switch_ports(switch).start)?
    };
    let carried = |name: String, first: Option<Flow>, second: Option<Flow>| {
        let of = |flow: &Option<Flow>, what: fn(&Flow) -> [Option<u64>; 2]| flow.as_ref().map_or([None; 2], what);
        let rates = [of(&first, |flow| flow.rate_bps), of(&second, |flow| flow.rate_bps)];
        let sum = |what: fn(&Flow) -> [Option<u64>; 2]| {
            let counts = [of(&first, what), of(&second, what)];
            let known: Vec<u64> = counts.iter().flatten().flatten().copied().collect();
            (!known.is_empty()).then(|| known.iter().sum())
        };
        let ends = || [&first, &second].into_iter().flatten();
        LinkLoad {
            name,
            running: ends().map(|flow| flow.running).reduce(|one, other| one && other),
            speed_bps: ends().map(|flow| flow.speed_bps).filter(|speed| *speed > 0).min().unwrap_or(0),
            rate_bps: [rates[0][1].or(rates[1][0]), rates[0][0].or(rates[1][1])],
            errors: sum(|flow| flow.errors),
            discards: sum(|flow| flow.discards),
            pause: of(&first, |flow| flow.pause),
        }
    };
    let between = topology.links().iter().map(|link| {
        let name = format!("{} -- {}", topology.port_label(link.a), topology.port_label(link.b));
        carried(name, at(link.a), at(link.b))
    });
    let hosts = topology
        .hosts()
        .iter()
        .map(|host| carried(format!("{} -- {}", topology.port_label(host.port), host.name), at(host.port), None));
    between.chain(hosts).collect()
}
