//! Switches that a dead cable of the management tree cuts off, where they are managed over their data ports.
//!
//! ```text
//!   controller ─ s1 ──x── s2 ─── s3      s2 and s3 do not answer since the cable before s2 is down
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fabric::{LinkId, Plan, SwitchId};

/// By cable that is down, the switches that do not answer and are reached over it: the first such cable on the way from the
/// controller counts. Nothing where management has a network of its own. Cost: O(switches + links).
pub(super) fn cut_off(
    plan: &Plan,
    down: &BTreeSet<LinkId>,
    answers: &dyn Fn(SwitchId) -> bool,
) -> BTreeMap<LinkId, Vec<SwitchId>> {
    let topology = &plan.topology;
    let Some(in_band) = topology.in_band() else { return BTreeMap::new() };
    let mut next: BTreeMap<SwitchId, Vec<(LinkId, SwitchId)>> = BTreeMap::new();
    for id in in_band.links(topology, &plan.devices) {
        let link = topology.link(id);
        let [a, b] = [link.a, link.b].map(|port| topology.port(port).switch);
        next.entry(a).or_default().push((id, b));
        next.entry(b).or_default().push((id, a));
    }
    let root = topology.port(in_band.controller).switch;
    // The first cable that is down on the way to each switch.
    let mut cuts: BTreeMap<SwitchId, Option<LinkId>> = BTreeMap::from([(root, None)]);
    let mut queue = VecDeque::from([root]);
    while let Some(at) = queue.pop_front() {
        let cut = cuts[&at];
        for (link, to) in next.get(&at).into_iter().flatten() {
            if !cuts.contains_key(to) {
                cuts.insert(*to, cut.or_else(|| down.contains(link).then_some(*link)));
                queue.push_back(*to);
            }
        }
    }
    let mut behind: BTreeMap<LinkId, Vec<SwitchId>> = BTreeMap::new();
    for (switch, cut) in cuts {
        if let Some(link) = cut.filter(|_| !answers(switch)) {
            behind.entry(link).or_default().push(switch);
        }
    }
    behind
}
