//! Traffic: what hosts send and receive, averaged over a window, and whether a plan for it would load links less.
//!
//! ```text
//!   polls ─ rates of hosts' ports and of links ─▶ window ─ averages ─▶ matrix ─ plan ─▶ load before and after
//!   heartbeats ─ bytes of hosts by destination ─────────────────────────┘
//! ```
//! Pure: the time is an argument. Counters of ports say how much each host exchanges, not with whom: what hosts do not count themselves is
//! estimated by the gravity model, and the matrix is used only where it explains the load that was measured.

use std::collections::BTreeMap;

use controller::LinkLoad;
use fabric::{Demand, HostId, Plan, Policy, Traffic, TrafficMatrix, gravity};

use planner::StepLimit;

use super::heartbeats::SentBits;

/// The least reduction of the maximum load, as a part of it, for which a plan is reported or proposed.
pub const GAIN_MIN: f64 = 0.15;
/// The reduction below which a report or proposal is withdrawn.
pub const GAIN_KEPT: f64 = 0.075;
/// The least load of the most loaded link for which a plan is considered.
pub const LOAD_MIN: f64 = 0.3;
/// The largest difference between the estimated and the measured maximum load, as a part of the measured one.
pub const MISS_MAX: f64 = 0.25;
/// The least part of a window for which a host's counters must be known to be used.
pub const COUNTED_MIN: f64 = 0.5;

/// Rates of a plan's hosts and links, summed up over a window of time.
#[derive(Clone, Debug, Default)]
pub struct TrafficWindow {
    begun_s: Option<u64>,
    last_s: u64,
    /// Seconds of which rates are known.
    known_s: f64,
    /// `hosts[host]`: bits sent and received.
    hosts: Vec<[f64; 2]>,
    /// `links[link]`: bits from the first end to the second and in reverse, as parts of the rate that the topology states.
    links: Vec<[f64; 2]>,
}

/// Averages over a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// `sent_bps[host]`.
    pub sent_bps: Vec<f64>,
    /// `received_bps[host]`.
    pub received_bps: Vec<f64>,
    /// The load of the most loaded link between switches, as a part of the rate that the topology states.
    pub max_load: f64,
    /// What hosts that count it send to each other, in bit/s.
    pub counted_bps: BTreeMap<HostId, BTreeMap<HostId, f64>>,
}

impl Measured {
    /// The same, with what hosts of the plan counted in a window as long as this.
    #[must_use]
    pub fn with_counted(self, plan: &Plan, window_s: u64, sent: &BTreeMap<fabric::Mac, SentBits>) -> Self {
        let by_mac = plan.topology.hosts_by_mac();
        let mut counted_bps: BTreeMap<HostId, BTreeMap<HostId, f64>> = BTreeMap::new();
        let is_known = |sent: &SentBits| sent.seconds > 0.0 && sent.seconds >= COUNTED_MIN * window_s as f64;
        for (mac, sent) in sent.iter().filter(|(_, sent)| is_known(sent)) {
            let Some(from) = by_mac.get(mac) else { continue };
            let row = counted_bps.entry(*from).or_default();
            for (to, bits) in &sent.bits {
                if let Some(to) = by_mac.get(to).filter(|to| *to != from) {
                    *row.entry(*to).or_default() += bits / sent.seconds;
                }
            }
        }
        Self { counted_bps, ..self }
    }

    /// Who sends what to whom, in bit/s: as hosts count it, and of the others by the gravity model.
    ///
    /// # Errors
    /// If nothing was sent.
    pub fn matrix(&self) -> Result<TrafficMatrix, String> {
        let mut demands: Vec<Demand> = Vec::new();
        let (mut sent, mut received) = (self.sent_bps.clone(), self.received_bps.clone());
        for (source, row) in &self.counted_bps {
            sent[source.index()] = 0.0;
            for (destination, amount) in row.iter().filter(|(_, amount)| **amount > 0.0) {
                demands.push(Demand { source: *source, destination: *destination, amount: *amount });
                received[destination.index()] = (received[destination.index()] - amount).max(0.0);
            }
        }
        let is_rest = |rates: &[f64]| rates.iter().any(|rate| *rate > 0.0);
        if demands.is_empty() || is_rest(&sent) && is_rest(&received) {
            let estimate = gravity(&sent, &received).map_err(|error| error.to_string())?;
            demands.extend(estimate.matrix.demands());
        }
        TrafficMatrix::new(self.sent_bps.len(), demands).map_err(|error| error.to_string())
    }
}

/// A plan for measured traffic.
#[derive(Clone, Debug)]
pub struct Replanned {
    /// The plan.
    pub plan: Plan,
    /// The load of the most loaded link between switches by the estimate: with the present plan, and with this one; 0 to 1.
    pub load: [f64; 2],
}

impl Replanned {
    /// The reduction of the maximum load, as a part of the present one.
    pub fn gain(&self) -> f64 {
        1.0 - self.load[1] / self.load[0]
    }
}

impl TrafficWindow {
    /// Takes what was polled at `now_s`: `links` are those of the plan's topology, then the cables of its hosts.
    pub fn add(&mut self, now_s: u64, plan: &Plan, links: &[LinkLoad]) {
        let (link_count, host_count) = (plan.topology.links().len(), plan.topology.hosts().len());
        if self.hosts.len() != host_count || self.links.len() != link_count || self.begun_s.is_none() {
            *self = Self {
                begun_s: Some(now_s),
                last_s: now_s,
                known_s: 0.0,
                hosts: vec![[0.0; 2]; host_count],
                links: vec![[0.0; 2]; link_count],
            };
            return;
        }
        let seconds = now_s.saturating_sub(self.last_s) as f64;
        self.last_s = now_s;
        if links.iter().all(|link| link.rate_bps == [None; 2]) {
            return;
        }
        self.known_s += seconds;
        let (between, hosts) = links.split_at(link_count.min(links.len()));
        // The planner knows the rates of the topology, whatever ports have negotiated.
        for ((sum, load), link) in self.links.iter_mut().zip(between).zip(plan.topology.links()) {
            for (part, rate_bps) in sum.iter_mut().zip(load.rate_bps) {
                *part += rate_bps.unwrap_or(0) as f64 / link.rate_bps as f64 * seconds;
            }
        }
        for ([sent, received], cable) in self.hosts.iter_mut().zip(hosts) {
            let [to_host, from_host] = cable.rate_bps.map(|rate_bps| rate_bps.unwrap_or(0) as f64 * seconds);
            *sent += from_host;
            *received += to_host;
        }
    }

    /// The averages, once the window is as long as this; the next one begins.
    pub fn take(&mut self, now_s: u64, window_s: u64) -> Option<Measured> {
        let begun_s = self.begun_s?;
        if now_s < begun_s + window_s || self.known_s == 0.0 {
            return None;
        }
        let average = |sum: f64| sum / self.known_s;
        let measured = Measured {
            sent_bps: self.hosts.iter().map(|[sent, _]| average(*sent)).collect(),
            received_bps: self.hosts.iter().map(|[_, received]| average(*received)).collect(),
            max_load: self.links.iter().flatten().copied().map(average).fold(0.0, f64::max),
            counted_bps: BTreeMap::new(),
        };
        *self = Self { begun_s: Some(now_s), last_s: now_s, known_s: 0.0, ..std::mem::take(self) };
        self.hosts.fill([0.0; 2]);
        self.links.fill([0.0; 2]);
        Some(measured)
    }
}

/// A plan for measured traffic, as little changed as can be from the present one; none where links are loaded too little for it to
/// matter, or the estimate does not explain their load.
///
/// # Errors
/// Why there is no plan.
pub fn plan_for(held: &Plan, measured: &Measured) -> Result<Option<Replanned>, String> {
    if measured.max_load < LOAD_MIN {
        return Ok(None);
    }
    let policy = Policy { traffic: Traffic::Matrix(measured.matrix()?), ..held.policy.clone() };
    let present = Plan { policy: policy.clone(), ..held.clone() };
    let before = max_load(&present);
    if (before - measured.max_load).abs() > MISS_MAX * measured.max_load {
        return Ok(None);
    }
    let replanned = |plan: Plan| Replanned { load: [before, max_load(&plan)], plan };
    // A change to it is free of deadlock, which counts more than what another plan would gain beyond.
    let mut steps = StepLimit::by_request(&held.topology, &policy);
    let within = planner::plan_within_order(&held.topology, &policy, held, &mut steps).map(replanned);
    if let Some(within) = within.ok().filter(|within| within.gain() >= GAIN_MIN) {
        return Ok(Some(within));
    }
    let plan = planner::plan(&held.topology, &policy, Some(held)).map_err(|error| error.to_string())?;
    Ok(Some(replanned(plan)))
}

/// The load of a plan's most loaded link between switches under the policy's traffic, a matrix in bit/s: 1 is the link's rate.
fn max_load(plan: &Plan) -> f64 {
    let fastest_bps = plan.topology.rate_max_bps() as f64;
    planner::channel_times(plan).into_iter().fold(0.0, f64::max) / fastest_bps
}

#[cfg(test)]
mod tests {
    use fabric::{
        Mac, TrafficMatrix,
        generate::{Kind, Options, generate},
    };

    use super::*;

    fn torus() -> Plan {
        let kind = Kind::parse("torus", &["4x4".to_owned()]).expect("a size");
        let options = Options { rate_bps: 1_000_000_000, ..Options::default() };
        planner::plan(&generate(&kind, &options).expect("a torus"), &Policy::default(), None).expect("a plan")
    }

    /// Pairs of distinct hosts whose frames cross one channel.
    fn crossing(plan: &Plan) -> Vec<(HostId, HostId)> {
        let hosts = plan.topology.hosts().len();
        let mut by_channel: BTreeMap<usize, Vec<(HostId, HostId)>> = BTreeMap::new();
        for (source, destination) in HostId::all(hosts).flat_map(|from| HostId::all(hosts).map(move |to| (from, to))) {
            if source == destination {
                continue;
            }
            let matrix =
                TrafficMatrix::new(hosts, vec![Demand { source, destination, amount: 1.0 }]).expect("a matrix");
            let policy = Policy { traffic: Traffic::Matrix(matrix), ..plan.policy.clone() };
            let times = planner::channel_times(&Plan { policy, ..plan.clone() });
            for (channel, _) in times.iter().enumerate().filter(|(_, time)| **time > 0.0) {
                let pairs = by_channel.entry(channel).or_default();
                if pairs.iter().all(|(from, to)| *from != source && *to != destination) {
                    pairs.push((source, destination));
                }
            }
        }
        by_channel.into_values().max_by_key(Vec::len).expect("a channel")
    }

    /// Two pairs of hosts share a link: totals of hosts do not show it, what hosts count by destination does.
    #[test]
    fn counters_of_hosts_show_what_totals_do_not() {
        let plan = torus();
        let pairs: Vec<_> = crossing(&plan).into_iter().take(2).collect();
        assert_eq!(pairs.len(), 2);
        let rate_bps = 450e6;
        let hosts = plan.topology.hosts().len();
        let (mut sent_bps, mut received_bps) = (vec![0.0; hosts], vec![0.0; hosts]);
        let mut sent: BTreeMap<Mac, SentBits> = BTreeMap::new();
        for (from, to) in &pairs {
            sent_bps[from.index()] = rate_bps;
            received_bps[to.index()] = rate_bps;
            let bits = BTreeMap::from([(plan.topology.host(*to).mac, 600.0 * rate_bps)]);
            sent.insert(plan.topology.host(*from).mac, SentBits { seconds: 600.0, bits });
        }
        let totals = Measured { sent_bps, received_bps, max_load: 0.9, counted_bps: BTreeMap::new() };
        assert_eq!(totals.matrix().expect("a matrix").len(), 4, "each may have sent to each");
        let counted = totals.clone().with_counted(&plan, 600, &sent);
        assert_eq!(counted.matrix().expect("a matrix").len(), 2);
        let replanned = plan_for(&plan, &counted).expect("a plan").expect("links are loaded less");
        assert!((replanned.load[0] - 0.9).abs() < 0.01 && replanned.gain() >= GAIN_MIN, "{:?}", replanned.load);
        // Counters of a small part of the window are no measurement.
        sent.values_mut().for_each(|sent| sent.seconds = 200.0);
        assert_eq!(totals.clone().with_counted(&plan, 600, &sent), totals);
    }

    /// What hosts count is taken from what others may have sent to the same destinations.
    #[test]
    fn the_rest_is_estimated() {
        let counted = BTreeMap::from([(HostId::new(0), BTreeMap::from([(HostId::new(1), 30.0)]))]);
        let measured = Measured {
            sent_bps: vec![30.0, 0.0, 10.0],
            received_bps: vec![0.0, 40.0, 0.0],
            max_load: 1.0,
            counted_bps: counted,
        };
        let matrix = measured.matrix().expect("a matrix");
        assert_eq!(matrix.demand(HostId::new(0), HostId::new(1)), 30.0);
        assert!((matrix.demand(HostId::new(2), HostId::new(1)) - 10.0).abs() < 1e-9);
    }
}
