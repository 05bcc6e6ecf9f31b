//! Which pairs of switches are worth a cable, from lower bounds alone.
//!
//! Channel lengths that prove a bound for the cabling prove one for the cabling with a further cable as well, whatever length
//! the cable's two channels get: none, and paths over it are shorter; the distance between its ends, and no path is shorter,
//! but there is more to be filled. The larger of the two is what the maximum load comes to at least with that cable. A cable
//! between switches at distance 0, which lie on one side of every cut that binds, lowers neither.
//!
//! ```text
//!   a─b─c ══ d─e─f    the lengths are 1 on the joint and 0 elsewhere: b─e has its ends at distance 1, a─c at distance 0
//! ```
//! The same is computed for the lengths 1 everywhere, which say how many hops a cable saves.

use fabric::{
    SwitchId, Topology,
    graph::{breadth_first, dijkstra},
    rng::Rng,
};

use crate::demand::Demand;

/// Most pairs that are looked at more closely than by the distance between their ends.
const SHORTLIST_MAX: usize = 1024;
/// Most work for that, in pairs of switches times candidates.
const WORK_MAX: usize = 200_000_000;
/// Most switches for which all distances are kept.
const SWITCHES_MAX: usize = 2048;

/// Two switches that a cable could join.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) ends: [SwitchId; 2],
    /// The sum of the distances from one end to the other and back, in the lengths of the bound.
    pub(super) span: u64,
    /// No routing has a lower maximum load with this cable, as far as the two sets of lengths prove.
    pub(super) floor: f64,
    /// How much demand times hops a cable saves.
    pub(super) saved: f64,
    /// Random: which pairs of equal span are kept.
    tie_break: u64,
}

/// What candidates are ranked by.
pub(super) struct RankingInput<'a> {
    pub(super) topology: &'a Topology,
    pub(super) demand: &'a Demand,
    /// `lengths[channel]`: those of the bound.
    pub(super) lengths: &'a [u32],
    /// Decides which pairs of equal span are kept.
    pub(super) seed: u64,
}

/// The most promising pairs of `ends`, best first, and how many pairs there are. Cost: two searches from each end, and up to
/// [`WORK_MAX`] for the shortlist.
pub(super) fn candidates(input: &RankingInput<'_>, ends: &[SwitchId]) -> (Vec<Candidate>, usize) {
    let mut list = Vec::new();
    let mut pairs = 0;
    for (at, &from) in ends.iter().enumerate() {
        let [there, back] = [Way::There, Way::Back].map(|way| distances(input, from, way));
        for &to in &ends[at + 1..] {
            pairs += 1;
            let tie_break = Rng::new(input.seed ^ ((from.index() as u64) << 32 | to.index() as u64)).next_u64();
            let span = there[to.index()].saturating_add(back[to.index()]);
            list.push(Candidate { ends: [from, to], span, floor: 0.0, saved: 0.0, tie_break });
        }
        if list.len() > 8 * SHORTLIST_MAX {
            keep_widest(&mut list, SHORTLIST_MAX);
        }
    }
    let switches = input.topology.switches().len();
    keep_widest(&mut list, (WORK_MAX / (switches * switches).max(1)).clamp(16, SHORTLIST_MAX));
    if switches <= SWITCHES_MAX {
        prove_floors(input, &mut list);
    }
    list.sort_by(|a, b| {
        let by_bound = a.floor.total_cmp(&b.floor).then(b.span.cmp(&a.span));
        by_bound.then(b.saved.total_cmp(&a.saved)).then(a.ends.cmp(&b.ends))
    });
    (list, pairs)
}

fn keep_widest(list: &mut Vec<Candidate>, most: usize) {
    list.sort_unstable_by_key(|candidate| (std::cmp::Reverse(candidate.span), candidate.tie_break));
    list.truncate(most);
}

/// Which way a distance is measured.
#[derive(Clone, Copy)]
enum Way {
    There,
    Back,
}

/// The distances from a switch to all, or back, in the lengths of the bound.
fn distances(input: &RankingInput<'_>, from: SwitchId, way: Way) -> Vec<u64> {
    let RankingInput { topology, lengths, .. } = *input;
    let found = dijkstra(topology.switches().len(), [(from, 0_u64)], |switch, so_far| {
        topology.neighbours(switch).map(move |(channel, head)| {
            let channel = match way {
                Way::There => channel,
                Way::Back => channel.reverse(),
            };
            (channel, head, so_far + u64::from(lengths[channel.index()]))
        })
    });
    found.cost
}

/// Computes what both sets of lengths prove for each candidate.
fn prove_floors(input: &RankingInput<'_>, list: &mut [Candidate]) {
    let RankingInput { topology, demand, lengths, .. } = *input;
    let switches = topology.switches().len();
    let slowness: Vec<f64> = topology.channel_ids().map(|channel| topology.slowness(channel)).collect();
    let bound_capacity: f64 = lengths.iter().zip(&slowness).map(|(length, slow)| f64::from(*length) / slow).sum();
    let hops_capacity: f64 = slowness.iter().map(|slow| 1.0 / slow).sum();
    let far: Vec<Vec<f64>> = (topology.switch_ids())
        .map(|from| distances(input, from, Way::There).into_iter().map(|distance| distance as f64).collect())
        .collect();
    let hops: Vec<Vec<f64>> = (topology.switch_ids())
        .map(|from| {
            let found = breadth_first(switches, [from], |switch| topology.neighbours(switch));
            topology.switch_ids().map(|to| found.distance(to).map_or(f64::INFINITY, f64::from)).collect()
        })
        .collect();
    let mut row = vec![0.0; switches];
    let flows: Vec<(usize, Vec<(usize, f64)>)> = (demand.sources().into_iter())
        .map(|source| {
            demand.row(source, &mut row);
            let sent = row.iter().copied().enumerate().filter(|(_, amount)| *amount > 0.0);
            (source.index(), sent.collect())
        })
        .collect();
    let covered = |distance: &dyn Fn(usize, usize) -> f64| -> f64 {
        let of = |(source, sent): &(usize, Vec<(usize, f64)>)| {
            sent.iter().map(|(to, amount)| amount * distance(*source, *to)).sum::<f64>()
        };
        flows.iter().map(of).sum()
    };
    let (far_now, hops_now) = (covered(&|s, d| far[s][d]), covered(&|s, d| hops[s][d]));
    let prove = |covered: f64, capacity: f64| if capacity > 0.0 { covered / capacity } else { 0.0 };
    for candidate in list {
        let [a, b] = candidate.ends.map(SwitchId::index);
        let over = |table: &[Vec<f64>], s: usize, d: usize, length: f64| {
            let there = table[s][a] + length + table[b][d];
            let back = table[s][b] + length + table[a][d];
            table[s][d].min(there).min(back)
        };
        let far_over = covered(&|s, d| over(&far, s, d, 0.0));
        let hops_over = covered(&|s, d| over(&hops, s, d, 1.0));
        candidate.saved = hops_now - hops_over;
        candidate.floor = prove(far_now, bound_capacity + candidate.span as f64)
            .max(prove(far_over, bound_capacity))
            .max(prove(hops_over, hops_capacity + 2.0));
    }
}
