//! Traffic: what hosts send and receive, averaged over a window, and whether a plan for it would load links less.
//!
//! ```text
//!   polls ─ rates of hosts' ports and of links ─▶ window ─ averages ─▶ matrix (gravity model) ─ plan ─▶ load before and after
//! ```
//! Pure: the time is an argument. Counters of ports say how much each host exchanges, not with whom: the matrix is an estimate, and is
//! used only where it explains the load that was measured.

use controller::LinkLoad;
use fabric::{Plan, Policy, Traffic, gravity};

/// The least reduction of the maximum load, as a part of it, for which a plan is reported or proposed.
pub const GAIN_MIN: f64 = 0.15;
/// The reduction below which a report or proposal is withdrawn.
pub const GAIN_KEPT: f64 = 0.075;
/// The least load of the most loaded link for which a plan is considered.
pub const LOAD_MIN: f64 = 0.3;
/// The largest difference between the estimated and the measured maximum load, as a part of the measured one.
pub const MISS_MAX: f64 = 0.25;

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
    let estimate = gravity(&measured.sent_bps, &measured.received_bps).map_err(|error| error.to_string())?;
    let policy = Policy { traffic: Traffic::Matrix(estimate.matrix), ..held.policy.clone() };
    let present = Plan { policy: policy.clone(), ..held.clone() };
    let before = max_load(&present);
    if (before - measured.max_load).abs() > MISS_MAX * measured.max_load {
        return Ok(None);
    }
    let plan = planner::plan(&held.topology, &policy, Some(held)).map_err(|error| error.to_string())?;
    let after = max_load(&plan);
    Ok(Some(Replanned { plan, load: [before, after] }))
}

/// The load of a plan's most loaded link between switches under the policy's traffic, a matrix in bit/s: 1 is the link's rate.
fn max_load(plan: &Plan) -> f64 {
    let fastest_bps = plan.topology.rate_max_bps() as f64;
    planner::channel_times(plan).into_iter().fold(0.0, f64::max) / fastest_bps
}
