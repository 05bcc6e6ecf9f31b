//! Balanced routes on any cabling: search for the lowest maximum channel load, free of deadlock where that is asked for.
//!
//! There is one search: a *demand* takes an *order* of channels, *moves* lower the load from one of several *starts*, and a
//! *schedule* says how sharply and for how long.
//!
//! | | files |
//! |---|---|
//! | demand: who uses a tree | `forest.rs` a source each; `senders.rs` senders that share one; `pairs.rs` pairs that choose one |
//! | order: which turns are allowed | any; `order.rs` sifted toward wanted turns; `bent_order.rs` as far as turns in use allow; `anneal.rs` from nothing |
//! | moves: what a sweep changes | `search.rs` subtrees; `branch.rs` branches of shared trees; a sender or a pair to another tree |
//! | starts: what a search begins with | `starts/`, a file each |
//! | schedule: every number | `schedule.rs` |
//! | price: what a move lowers | `price.rs`, exponential in the load, for all demands |
//!
//! The loop is `improve.rs` for every demand. Around it, `contest.rs` lets starts with a tree for each source compete
//! for slices of time, and `pack/` adds shared trees one by one up to the cap on VLANs. Whatever happens, there is a
//! valid plan from the first moment on: all work is counted in steps (`work.rs`), and each start is taken only if it is
//! better.
//!
//! ```text
//!            starts ─▶ candidate ─▶ sweep of moves ─▶ best so far? ─▶ accept ─▶ cool ─┐
//!   structured, updown     ▲           │ prices of the demand,                        │ next prices,
//!   annealed, images       │           │ turns that the order allows                  │ order bent or sifted
//!   split, spread, …       └───────────┴──────────────────────────────────────────────┘ by the schedule
//! ```

mod alternate;
mod anneal;
mod bent_order;
mod branch;
mod build;
mod contest;
mod converter;
mod depth;
mod forest;
mod improve;
mod lone;
mod net;
mod order;
mod pack;
mod pairs;
mod price;
mod rank;
mod schedule;
mod search;
mod senders;
mod shape;
mod share;
mod shared_trees;
mod starts;
mod state;
mod symmetry;
mod work;

use fabric::{FlowControl, Policy, Tagging, Topology, Traffic};

use crate::{
    StepLimit, Watch,
    bound::bound,
    cap::{self, Rules},
    confined::Confined,
    demand::Demand,
    engine::tree,
    measure::Measure,
    merge::merge,
    number,
    routing::Routing,
    watch::Shortened,
};

pub(crate) use self::lone::Grower;
use self::{
    contest::Contest,
    net::Net,
    share::Sharing,
    starts::{
        seed::{self, Ask},
        structured,
    },
    work::Work,
};

/// Most entries of a table by source and switch; where more were needed, routes of other engines are all there is.
const TABLE_MAX: usize = 1 << 25;

/// Whether sources have to share trees, and the search sees to that itself; where trees are confined, it does not.
pub(crate) fn shares_trees(topology: &Topology, policy: &Policy) -> bool {
    let sources = topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()).count();
    is_simple(policy, sources)
        && !is_confined(policy)
        && policy.tagging != Tagging::SourceDestination
        && sources * topology.switches().len() <= TABLE_MAX
        && number::capacity(topology, policy) < sources
}

/// Whether trees keep to planes or to a limit on hops: then there is one for every source, or what is left of those.
fn is_confined(policy: &Policy) -> bool {
    !policy.planes.is_empty() || policy.hops_max.is_some()
}

/// Shared trees are searched for by how many hosts there are, which says nothing of a matrix: there they only compete.
fn is_simple(policy: &Policy, sources: usize) -> bool {
    policy.traffic == Traffic::AllToAll && sources > 1
}

/// The best routes that the watch leaves time for, then those of other engines, best first, and last a single tree, which
/// fits any limit. `bound` is a time of the most loaded channel that no routing can go below, in demand on the fastest link.
pub(crate) fn route(topology: &Topology, policy: &Policy, bound: f64, watch: &mut dyn Watch) -> Vec<Routing> {
    let sharing = Sharing::new(topology, policy);
    let net = Net::new(topology, sharing.pairs_per_unit).confined(Confined::by(topology, policy));
    let with_hosts = net.hosts.iter().filter(|hosts| **hosts > 0).count();
    let mut routings = if with_hosts * net.switches <= TABLE_MAX {
        search(topology, policy, &net, &sharing, bound, with_hosts, watch)
    } else {
        let of = |ask| seed::routings(topology, policy, ask).into_iter().map(|(_, routing)| routing);
        of(Ask::Structured).chain(of(Ask::Updown)).collect()
    };
    routings.push(merge(topology, tree::route(topology)));
    routings
}

/// The best routes within given orders of channels, `rank[lane][channel]`, that the watch leaves time for; none where the orders leave
/// a switch unreachable, or the network is too large to search.
pub(crate) fn route_within(
    topology: &Topology,
    policy: &Policy,
    rank: &[Vec<u32>],
    bound: f64,
    watch: &mut dyn Watch,
) -> Option<Routing> {
    let sharing = Sharing::new(topology, policy);
    let net = Net::new(topology, sharing.pairs_per_unit).confined(Confined::by(topology, policy));
    let with_hosts = net.hosts.iter().filter(|hosts| **hosts > 0).count();
    if with_hosts * net.switches > TABLE_MAX {
        return None;
    }
    let mut contest = Contest::new(topology, policy, &net, &sharing, bound);
    let rank = rank.iter().map(|rank| net.by_number(rank)).collect();
    contest.run_within(rank, &mut Work::new(watch));
    contest.finish().into_iter().next()
}

/// Trees that sources share as if all sent as much to all, in a part of the steps.
fn shared_alike(topology: &Topology, policy: &Policy, sources: usize, watch: &mut dyn Watch) -> Option<Routing> {
    let alike = Policy { traffic: Traffic::AllToAll, ..policy.clone() };
    let sharing = Sharing::new(topology, &alike);
    let net = Net::new(topology, sharing.pairs_per_unit);
    let least = bound(topology, &Demand::new(topology, &alike.traffic), watch.threads()).load;
    let mut watch = Shortened::new(watch, StepLimit::by_size(topology));
    search(topology, &alike, &net, &sharing, least, sources, &mut watch).into_iter().next()
}

/// A tree for every source, and where there are too few, or pairs may choose, routes that share trees before those.
fn search(
    topology: &Topology,
    policy: &Policy,
    net: &Net,
    sharing: &Sharing<'_>,
    bound: f64,
    sources: usize,
    watch: &mut dyn Watch,
) -> Vec<Routing> {
    let trees = number::capacity(topology, policy);
    let is_confined = is_confined(policy);
    let perfect = structured::perfect_by_pair(topology, policy, trees, bound);
    if let Some(perfect) = perfect.filter(|perfect| net.confined.holds(topology, perfect)) {
        return vec![perfect];
    }
    let mut contest = Contest::new(topology, policy, net, sharing, bound);
    if is_confined || !is_simple(policy, sources) || !pack::applies(policy, sources, trees) {
        // All-to-all is its own likeness.
        let by_matrix = policy.traffic != Traffic::AllToAll;
        let scarce = !is_confined && by_matrix && trees < sources && policy.tagging != Tagging::SourceDestination;
        let shared = if scarce { shared_alike(topology, policy, sources, watch) } else { None };
        contest.run(&mut Work::new(watch));
        let mut routings = contest.finish();
        // What is left of a tree for every source may be worse, though those were made for this matrix.
        let rules = if policy.flow_control == FlowControl::None { Rules::Any } else { Rules::Increasing };
        let left =
            routings.first().and_then(|own| cap::fit(topology, &policy.traffic, own, trees, (rules, &net.confined)));
        let time = |routing: &Routing| {
            Measure::of(topology, &policy.traffic, &routing.clone().tagged(topology, policy.tagging)).time_max
        };
        let better = |shared: &Routing| left.as_ref().is_none_or(|left| time(shared) < time(left));
        routings.splice(0..0, shared.filter(better));
        return routings;
    }
    let steps = pack::steps_before(topology, policy, sources, trees);
    contest.run(&mut Work::new(&mut Shortened::new(watch, steps)));
    let mut routings = contest.finish();
    let limits = pack::Limits { trees, bound };
    let packed = pack::pack(topology, policy, net, &limits, &routings, &mut Work::new(watch));
    routings.splice(0..0, packed);
    routings
}
