//! The judge: re-derives what happens to every frame from device state alone, and never calls the planner.
//!
//! ```text
//!   plan.devices ──▶ state ──┬─▶ ports, entries, limits      what each switch is told, by itself
//!   (and the hosts'          ├─▶ hygiene                     what is set and serves nothing
//!                            ├─▶ classes                     the priority class of each VLAN
//!    tagging tables)         ├─▶ spread    per VLAN          broadcasts and unknown destinations
//!                            ├─▶ unicast   per VLAN          every ordered pair of hosts
//!                            └─▶ walk                        one frame, step by step, for people
//!   unicast ──▶ load, hops, dependencies ──▶ deadlock, summary
//! ```
//!
//! A plan that is ready for failures is judged failure by failure as well (`failover.rs`).
//!
//! [`check`] reads the desired state of the switches (and, where hosts tag their own frames, the assignment that is
//! their tagging table), moves frames through it by the rules of 802.1Q, and only then compares what it saw with the
//! plan's trees, certificate, bound and summary. [`walk`](walk()) explains a single frame by the same rules, and
//! [`check_state`] judges a fabric on its way from one plan to another.
//!
//! Switches that learn are judged in the state that they come to: with what they know once every host has been heard in
//! every VLAN that it sends in (`learned.rs`).
//!
//! What is [`Fatal`](fabric::Severity::Fatal): a frame that would loop, be lost, be flooded although its receiver is
//! known, or reach the wrong host; a cycle of dependencies where flow control can block; state that no switch can take;
//! and a plan that says of itself what is not so. A known receiver's flood is fatal because it carries every pair's
//! traffic to every host, which is exactly what a plan promises not to do. A destination that no host owns floods
//! inside its VLAN's tree by design and is no finding as long as it ends and reaches no host twice.
#![forbid(unsafe_code)]

mod addresses;
mod agreement;
mod bound;
mod classes;
mod deadlock;
mod demand;
mod drain;
mod entries;
mod failover;
mod findings;
mod further;
mod hops;
mod hygiene;
mod in_band;
mod lags;
mod learned;
mod limits;
mod live;
mod losses;
mod path_sets;
mod permutations;
mod planes;
mod ports;
mod read;
mod receiver;
mod spread;
mod standby_edges;
mod state;
mod summary;
mod unicast;
mod view;
mod walk;
mod wire;

use fabric::{Failover, FindingKind, Plan, Report};

pub use failover::time_after;
pub use findings::FINDINGS_PER_KIND_MAX;
pub use live::{Live, LiveCheck, check_state};
pub use losses::{Losses, Outage, links_lost_at_most, losses, switch_losses};
pub use receiver::Receiver;
pub use state::Loss;
pub use walk::{Arrival, Copies, Decision, Disposition, Exit, Form, Step, WALK_STEPS_MAX, Walk, walk};
pub use wire::{Deadlock, FrameKind, kinds_words};

use crate::{
    demand::{Coverage, Demand},
    findings::Findings,
    path_sets::SeenPaths,
    read::read_state,
    state::FabricState,
    unicast::Traffic,
    view::View,
};

/// Judges a plan. It is deployable if and only if the report holds nothing fatal.
///
/// Cost: for each VLAN its ports, its static entries and, for every destination, the switches on the way there;
/// memory beyond the plan's own is linear in the topology. A report holds at most [`FINDINGS_PER_KIND_MAX`] findings
/// of one kind and severity, and one more that counts the rest. It takes one thread; [`check_with`] takes more.
pub fn check(plan: &Plan) -> Report {
    check_with(plan, 1)
}

/// Judges a plan as [`check`] does, by at most so many threads. What is found does not depend on how many there are: link
/// failures are judged at the same time, everything else one after the other.
pub fn check_with(plan: &Plan, threads: usize) -> Report {
    judge_with(plan, threads).report
}

/// What the judge says of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What it found.
    pub report: Report,
    /// Whether frames can wait for each other for ever.
    pub deadlock: Deadlock,
    /// Floods that no switch sends on: every port between switches blocks them. Ascending.
    pub dropped: Vec<FrameKind>,
}

/// Judges a plan as [`check`] does, and says which frames its proof against deadlock covers.
pub fn judge(plan: &Plan) -> Judgement {
    judge_with(plan, 1)
}

/// Judges a plan as [`judge`] does, by at most so many threads.
pub fn judge_with(plan: &Plan, threads: usize) -> Judgement {
    let mut findings = Findings::default();
    let state = read_state(plan, &mut findings);
    ports::judge(&state, &mut findings);
    hygiene::judge(&state, &mut findings);
    lags::judge(&state, &mut findings);
    standby_edges::judge(&state, &mut findings);
    classes::judge(&state, &mut findings);
    entries::judge(&state, &mut findings);
    limits::judge(&state, &mut findings);
    learned::judge(&state, &mut findings);
    drain::judge(&state, &mut findings);
    let mut paths = SeenPaths::read(&state, &mut findings);
    planes::judge(&state, paths.as_ref().map(|paths| paths.sets), &mut findings);
    addresses::judge(plan, &mut findings);
    let traffic = judge_frames(&state, paths.as_mut(), &mut findings);
    let plans = further::plans(plan, &mut findings);
    let further = further::states(&plans);
    hops::judge(&state, &traffic.long, &mut findings);
    let (proof, mut deadlock) = deadlock::judge(&state, &traffic, &mut findings);
    let bound = bound::judge(&state, &further, &mut findings);
    summary::judge(&state, &traffic, &further, proof, bound, &mut findings);
    if let Some(paths) = paths.filter(|_| traffic.coverage == Coverage::Whole) {
        paths.judge(&state, &mut findings);
        permutations::judge(&state, &paths, &mut findings);
    }
    if let Some(floods) = failover::judge(&state, &traffic, &further, threads, &mut findings) {
        deadlock.add_switch_overs(floods);
    }
    let dropped = deadlock::dropped(&state);
    Judgement { report: findings.into_report(), deadlock, dropped }
}

/// Walks every frame, VLAN by VLAN, so that only one VLAN's view is in memory at a time.
fn judge_frames(state: &FabricState<'_>, mut paths: Option<&mut SeenPaths<'_>>, findings: &mut Findings) -> Traffic {
    let mut traffic = Traffic::new(state);
    let mut demand = Demand::read(state, findings, &mut traffic.coverage);
    // What hosts send in further VLANs: another traffic, with a router of its own, since a router meets each VLAN once.
    let mut further = Traffic::new(state);
    let mut further_demand = paths.as_ref().map(|paths| Demand::further(state, paths.sets));
    let mut further_router = unicast::Router::new(state);
    let mut router = unicast::Router::new(state);
    let mut budget = walk::Budget::default();
    let standby = state.plan.failover.as_ref().map(Failover::vlans).unwrap_or_default();
    let mut vlans = state.vlans.clone();
    vlans.extend(demand.vlans());
    vlans.extend(further_demand.iter().flat_map(Demand::vlans));
    agreement::judge_plan(state, findings);
    vlans.extend(state.topology.in_band().map(|in_band| in_band.vlan));
    for vlan in vlans.iter() {
        let view = View::of(state, vlan);
        if let Some(in_band) = state.topology.in_band().filter(|in_band| in_band.vlan == vlan) {
            in_band::judge(state, &view, in_band, &mut traffic, findings);
            continue;
        }
        agreement::judge_vlan(state, &view, findings);
        let is_sent_in = |demand: &Demand<'_>| demand.is_sent_in(vlan);
        let is_used = is_sent_in(&demand) || further_demand.as_ref().is_some_and(is_sent_in);
        hygiene::judge_vlan(state, &view, is_used, &standby, findings);
        spread::judge(state, &view, &demand, &mut budget, &mut traffic, findings);
        router.judge(state, &view, &mut demand, &mut budget, &mut traffic, findings);
        if let (Some(paths), Some(demand)) = (&mut paths, &mut further_demand) {
            further_router.judge(state, &view, demand, &mut budget, &mut further, findings);
            paths.see(state, &view);
        }
    }
    traffic.join(further);
    if budget.is_spent() {
        findings.note(FindingKind::LimitExceeded, || {
            let message = "so many frames stray that not all were followed; mend what is found and check again";
            ("check".to_owned(), message.to_owned())
        });
    }
    let hosts = state.topology.hosts().len() as u64;
    let pairs = hosts * hosts.saturating_sub(1);
    if traffic.coverage == Coverage::Whole && traffic.pairs != pairs {
        traffic.coverage = Coverage::Partial;
        findings.fatal(FindingKind::IncompleteState, || {
            let followed = traffic.pairs;
            ("assignment".to_owned(), format!("it sends frames of {followed} pairs of hosts, where there are {pairs}"))
        });
    }
    traffic
}
