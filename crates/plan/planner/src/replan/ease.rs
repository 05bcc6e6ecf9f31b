//! Easing: a second pass over mended trees, while a channel is busier than any was before.
//!
//! Mending hangs what a cable cut off from the first other cable that will do, so that many trees may meet at the same one.
//! Any cable between the two pieces would do as well, and the VLAN still changes in place. So, as long as the most loaded
//! channel carries frames from one piece to the other of some tree, such a tree is tied elsewhere, where all channels that
//! it burdens stay below that peak.
//!
//! ```text
//!   near ══a══▶ far     3 trees are tied by a, none by b or c: a carries 3 ▶ 2 ▶ 1, b and c one each
//!        ──b──▶
//!        ──c──▶
//! ```
//! Of trees that need a new VLAN anyway any branch beyond the most loaded channel may be tied elsewhere. What each way costs is
//! in `joint.rs`. It is local search: each tie lowers a most loaded channel and makes no other as busy, so it ends.

use fabric::ChannelId;

use super::{
    joint::{Joint, Limits, Mended, NOTHING},
    mend::Mender,
};

/// Branches beyond a channel that are looked at at a time, of a tree whose VLAN is a new one.
const BRANCHES_MAX: usize = 32;
/// Ties that are known at a time.
const JOINTS_MAX: usize = 1024;
/// How often ties are looked at, over all trees.
const LOOKS_MAX: usize = 512;
/// Ways for which a new numbering is tried, over all trees.
const TRIES_MAX: usize = 64;

/// Ties trees elsewhere until no channel is busier than `load_enough`, in the mender's unit, or nothing helps, changing at
/// most `entries_max` entries for it. Cost: O(flows · switches + channels) for each of a bounded number of looks.
pub(crate) fn ease(mender: &mut Mender<'_>, trees: &mut [Mended<'_>], load_enough: f64, entries_max: usize) -> usize {
    let too_busy = |mender: &Mender<'_>| mender.busiest().filter(|(_, peak)| *peak > load_enough * (1.0 + NOTHING));
    if too_busy(mender).is_none() {
        return entries_max;
    }
    let mut limits = Limits { load_enough, entries: entries_max, looks: LOOKS_MAX, tries: TRIES_MAX };
    let mut joints: Vec<Joint> =
        (0..trees.len()).flat_map(|tree| Joint::all_of(mender, tree, &trees[tree])).take(JOINTS_MAX).collect();
    while let Some((busiest, peak)) = too_busy(mender) {
        let mut users: Vec<(f64, usize)> = joints.iter().map(|joint| joint.part(busiest)).zip(0..).collect();
        users.retain(|(part, _)| *part > 0.0);
        users.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(a.cmp(b)));
        let retied = users
            .into_iter()
            .map(|(_, at)| &joints[at])
            .find(|joint| joint.retie(mender, &mut trees[joint.tree], peak, &mut limits));
        let retied = retied.map(|joint| joint.tree).or_else(|| {
            let mut fresh = trees.iter_mut().enumerate().filter(|(_, tree)| !tree.in_place);
            fresh.find_map(|(at, tree)| regraft(mender, at, tree, (busiest, peak), &mut limits).then_some(at))
        });
        let Some(tree) = retied else { break };
        joints.retain(|joint| joint.tree != tree);
        joints.extend(Joint::all_of(mender, tree, &trees[tree]));
    }
    limits.entries
}

/// Ties a branch that passes the most loaded channel elsewhere, of a tree that has a new VLAN whatever becomes of it.
fn regraft(
    mender: &mut Mender<'_>,
    number: usize,
    tree: &mut Mended<'_>,
    (busiest, peak): (ChannelId, f64),
    limits: &mut Limits,
) -> bool {
    if tree.links.binary_search(&busiest.link()).is_err() {
        return false;
    }
    mender.spread_out(tree.links);
    let mut branches = vec![busiest, busiest.reverse()];
    let mut at = 0;
    while at < branches.len() && branches.len() < BRANCHES_MAX {
        let (from, head) = (branches[at], mender.topology.head(branches[at]));
        branches.extend(mender.beside[head.index()].iter().filter(|channel| channel.link() != from.link()));
        at += 1;
    }
    branches[1..].iter().any(|branch| {
        limits.look() && {
            let joint = Joint::new(mender, number, tree.links, branch.link(), tree.flows);
            joint.part(busiest) > 0.0 && joint.retie(mender, tree, peak, limits)
        }
    })
}

#[cfg(test)]
mod tests {
    use fabric::{
        EngineName, FdbMode, FlowControl, Plan, Policy, Tagging, Topology, TopologyBuilder,
        generate::{Kind, Options, generate},
    };

    use super::super::{APART_SHARE_MAX, EASED_SHARE_MAX, SecondPass};

    /// The topology less one link; none if that parts it.
    fn without_link(topology: &Topology, link: usize) -> Option<Topology> {
        let mut builder = TopologyBuilder::new();
        let mut ports = Vec::new();
        for id in topology.switch_ids() {
            let switch = builder.add_switch(&topology.switch(id).name, Default::default()).expect("a fresh name");
            ports.extend(
                topology.port_ids(id).map(|p| builder.add_port(switch, &topology.port(p).name).expect("fresh")),
            );
        }
        for (_, cable) in topology.links().iter().enumerate().filter(|(number, _)| *number != link) {
            builder.add_link(ports[cable.a.index()], ports[cable.b.index()], cable.rate_bps).expect("free ports");
        }
        builder.add_hosts_of(topology, |_, host| Some(ports[host.port.index()])).expect("free ports");
        builder.finish().ok()
    }

    #[test]
    fn a_second_pass_never_makes_the_busiest_channel_busier_and_touches_little_more() {
        let (mut eased, mut alike, mut worse_before, mut tight_tables, mut much_worse) = (0, 0, 0, 0, 0);
        for (kind, size) in [
            ("torus", "4x4"),
            ("torus", "5x5"),
            ("torus", "3x4x3"),
            ("mesh", "4x4"),
            ("hypercube", "4"),
            ("hyperx", "4x3"),
            ("fat-tree", "k=4"),
            ("dragonfly", "a=4,h=2"),
            ("random-regular", "n=18,d=4,seed=3"),
        ] {
            let words: Vec<String> = size.split(',').map(str::to_owned).collect();
            let whole = generate(&Kind::parse(kind, &words).expect("a valid size"), &Options::default()).expect("sane");
            for (turn, tagging) in Tagging::ALL.iter().copied().enumerate() {
                for (engine, flow_control) in [
                    (EngineName::Auto, FlowControl::Pause),
                    (EngineName::Auto, FlowControl::None),
                    (EngineName::Updown, FlowControl::Pfc(2)),
                    (EngineName::Dor, FlowControl::Pause),
                ] {
                    let fdb = [FdbMode::Minimal, FdbMode::Full][turn % 2];
                    let policy = Policy { engine, flow_control, tagging, fdb, ..Policy::default() };
                    let few_steps = &mut crate::StepLimit::new(2);
                    let Ok(before) = crate::plan_with(&whole, &policy, None, few_steps) else { continue };
                    for link in [0, 5, whole.links().len() - 1] {
                        let Some(less) = without_link(&whole, link) else { continue };
                        let again = |second| crate::again::mended(&less, &policy, &before, second, 1);
                        let Some(plain) = again(SecondPass::None) else { continue };
                        let second = again(SecondPass::Ease).expect("tables and VLANs are no limit");
                        let at = format!("{kind} {size} less {link}, {policy:?}");
                        let peaks = [&plain, &second].map(|plan| plan.summary.max_channel_time);
                        assert!(peaks[1] <= peaks[0], "{at}: {peaks:?}");
                        let touched = |plan: &Plan| transition::difference(&before, plan).entries;
                        let more = touched(&second).touched().saturating_sub(touched(&plain).touched());
                        let is_much_worse = crate::is_better_anew(&plain, &before);
                        // Of a tree that is grown anew, what was there goes and what is new comes.
                        let share =
                            if is_much_worse { EASED_SHARE_MAX + 2.0 * APART_SHARE_MAX } else { EASED_SHARE_MAX };
                        let most = share * touched(&plain).before() as f64;
                        assert!(more as f64 <= most, "{at}: {more} more, {most} at most");
                        let added = |plan: &Plan| transition::difference(&before, plan).vlans_added;
                        assert!(is_much_worse || added(&plain) == added(&second), "{at}");
                        much_worse += usize::from(is_much_worse && peaks[1] < peaks[0]);
                        assert_eq!(plain.summary.deadlock_free, second.summary.deadlock_free, "{at}");
                        let findings = [&plain, &second].map(|plan| verify::check(plan).findings().len());
                        assert!(findings[1] <= findings[0], "{at}: {}", verify::check(&second));
                        let largest = [&plain, &second].map(|plan| plan.summary.fdb_entries_max);
                        if largest[1] > largest[0] {
                            let mut tight = TopologyBuilder::of(&less);
                            tight.change_models(|model| model.static_entries_max = largest[0]);
                            let tight = tight.finish().expect("only the models differ");
                            assert!(
                                crate::again::mended(&tight, &policy, &before, SecondPass::Ease, 1).is_none(),
                                "{at}"
                            );
                            let next = crate::plan_with(&tight, &policy, Some(&before), few_steps).expect("it fits");
                            assert_eq!(next.summary, plain.summary, "{at}: mended all the same");
                            tight_tables += 1;
                        }
                        worse_before += usize::from(peaks[0] > before.summary.max_channel_time);
                        eased += usize::from(peaks[1] < peaks[0]);
                        alike += 1;
                    }
                }
            }
        }
        eprintln!(
            "{eased} eased of {worse_before} that got busier, of {alike}, {much_worse} of them much busier; {tight_tables} with \
             tight tables"
        );
        assert!(
            3 * eased > worse_before && worse_before > 100 && much_worse > 30 && tight_tables > 0,
            "{eased} of {worse_before} of {alike}"
        );
    }
}
