//! Switches that a dead cable of the management tree cuts off, where they are managed over their data ports.
//!
//! ```text
//!   controller ─ s1 ──x── s2 ─── s3      s2 and s3 do not answer since the cable before s2 is down
//! ```

use std::collections::{BTreeMap, BTreeSet};

use fabric::{LinkId, Plan, SwitchId, graph::breadth_first};

/// By cable that is down, the switches that do not answer and are reached over it: the first such cable on the way from the
/// controller counts. Nothing where management has a network of its own.
/// Cost: O(switches + links · log links).
pub(super) fn cut_off(
    plan: &Plan,
    down: &BTreeSet<LinkId>,
    answers: &dyn Fn(SwitchId) -> bool,
) -> BTreeMap<LinkId, Vec<SwitchId>> {
    let topology = &plan.topology;
    let Some(in_band) = topology.in_band() else { return BTreeMap::new() };
    let tree: BTreeSet<LinkId> = in_band.links(topology, &plan.devices).into_iter().collect();
    let root = topology.port(in_band.controller).switch;
    let found = breadth_first(topology.switches().len(), [root], |switch| {
        topology.neighbours(switch).filter(|(channel, _)| tree.contains(&channel.link()))
    });
    // The first cable that is down on the way to each switch.
    let mut cuts: BTreeMap<SwitchId, Option<LinkId>> = BTreeMap::new();
    for &switch in &found.order {
        let cut = found.inward[switch.index()].and_then(|channel| {
            let down_here = || Some(channel.link()).filter(|link| down.contains(link));
            cuts[&topology.tail(channel)].or_else(down_here)
        });
        cuts.insert(switch, cut);
    }
    let mut behind: BTreeMap<LinkId, Vec<SwitchId>> = BTreeMap::new();
    for (switch, cut) in cuts {
        if let Some(link) = cut.filter(|_| !answers(switch)) {
            behind.entry(link).or_default().push(switch);
        }
    }
    behind
}
