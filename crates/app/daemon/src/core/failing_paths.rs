//! Paths between hosts that fail, folded to the cables that explain them.
//!
//! ```text
//!   h0 ─ s0 ═══ s1 ─ h1        h0 reports: toward s2 by VLAN 2 fails, by VLAN 3 not; toward s1 nothing fails
//!         ╲     ║              VLAN 2 takes s0 ═ s1 ═ s2, VLAN 3 s0 ─ s2
//!          ╲─── s2 ─ h2        s0 ═ s1 carries other paths that do not fail, so s1 ═ s2 explains it
//! ```
//! Taggers test a path for each VLAN and other switch, connections of RI2N those between their hosts; its cables are those of the VLAN's tree. A cable explains failing paths if more than
//! half of the tested paths over it fail, a switch's hosts if all paths toward them do, or all that they test. The explanation of most paths is taken first,
//! one all of whose paths fail before others, and so on with the paths that remain. What explains the same paths equally well
//! cannot be told apart. Pure.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{HostId, LinkId, Plan, SwitchId, VlanId, VlanSet};

/// A path that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailingPath {
    /// Who tests it.
    pub from: HostId,
    /// A host on the switch that it leads to.
    pub toward: HostId,
    /// The VLAN.
    pub vlan: VlanId,
}

/// What a host reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// The host.
    pub host: HostId,
    /// The VLANs in which it tests the paths to all other switches that have hosts.
    pub vlans: VlanSet,
    /// Further paths that it tests: the VLAN, and the switch.
    pub further: BTreeSet<(VlanId, SwitchId)>,
    /// Those paths that fail; all others do not.
    pub failing: Vec<FailingPath>,
}

impl Tested {
    fn tests(&self, vlan: VlanId, site: SwitchId) -> bool {
        self.vlans.contains(vlan) || self.further.contains(&(vlan, site))
    }
}

/// Something that explains why paths fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Explanation {
    /// A cable loses frames.
    Link(LinkId),
    /// The hosts of a switch are not reached.
    HostsOf(SwitchId),
    /// The hosts of a switch reach nobody.
    FromHostsOf(SwitchId),
}

/// Failing paths with one explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// What explains them; several explanations cannot be told apart.
    pub causes: Vec<Explanation>,
    /// The paths, in order.
    pub paths: Vec<FailingPath>,
}

/// Failing paths by what explains them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// Those that something explains, the explanation of most paths first.
    pub suspicions: Vec<Suspicion>,
    /// Those that nothing explains: over each of their cables more paths work than fail.
    pub unexplained: Vec<FailingPath>,
}

/// What is known to be down; paths over it are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownDown {
    /// Cables between switches.
    pub links: BTreeSet<LinkId>,
    /// Hosts whose cable is down.
    pub hosts: BTreeSet<HostId>,
}

/// How often something was tested.
#[derive(Clone, Copy, Default)]
struct Tally {
    failing: usize,
    all: usize,
}

impl Tally {
    fn add(&mut self, failing: usize, all: usize) {
        self.failing += failing;
        self.all += all;
    }

    fn is_total(self) -> bool {
        self.failing > 0 && self.failing == self.all
    }
}

/// How often each possible cause was tested.
struct Tallies {
    /// `links[link]`.
    links: Vec<Tally>,
    /// `toward[switch]`, `from[switch]`.
    toward: Vec<Tally>,
    from: Vec<Tally>,
}

impl Tallies {
    fn of(&self, cause: Explanation) -> Tally {
        match cause {
            Explanation::Link(link) => self.links[link.index()],
            Explanation::HostsOf(switch) => self.toward[switch.index()],
            Explanation::FromHostsOf(switch) => self.from[switch.index()],
        }
    }

    fn explain(&self, cause: Explanation) -> bool {
        let tally = self.of(cause);
        tally.is_total() || matches!(cause, Explanation::Link(_)) && 2 * tally.failing > tally.all
    }
}

/// Folds what hosts report. Cost: O(switches² · VLANs · length + failing paths · length · suspicions), and nothing if no path fails.
pub fn fold(plan: &Plan, reports: &[Tested], down: &KnownDown) -> Folded {
    let mut folded = Folded::default();
    if reports.iter().all(|report| report.failing.is_empty()) {
        return folded;
    }
    let (tallies, mut rest) = tested(plan, reports, down);
    loop {
        let mut explained: BTreeMap<Explanation, BTreeSet<FailingPath>> = BTreeMap::new();
        for (path, causes) in &rest {
            for cause in causes.iter().filter(|cause| tallies.explain(**cause)) {
                explained.entry(*cause).or_default().insert(*path);
            }
        }
        let rank = |cause: &Explanation, paths: &BTreeSet<FailingPath>| (tallies.of(*cause).is_total(), paths.len());
        let Some(best) = explained.iter().map(|(cause, paths)| rank(cause, paths)).max() else { break };
        explained.retain(|cause, paths| rank(cause, paths) == best);
        let paths = explained.values().next().cloned().unwrap_or_default();
        explained.retain(|_, found| *found == paths);
        rest.retain(|path, _| !paths.contains(path));
        folded
            .suspicions
            .push(Suspicion { causes: explained.into_keys().collect(), paths: paths.into_iter().collect() });
    }
    folded.unexplained = rest.into_keys().collect();
    folded
}

/// How often each possible cause was tested, and what may explain each failing path. Hosts of one switch have their paths in common.
fn tested(plan: &Plan, reports: &[Tested], down: &KnownDown) -> (Tallies, BTreeMap<FailingPath, Vec<Explanation>>) {
    let topology = &plan.topology;
    // A switch is tested as long as one of its hosts can answer.
    let answering = topology.host_ids().filter(|host| !down.hosts.contains(host));
    let sites: BTreeSet<SwitchId> = answering.map(|host| topology.switch_of(host)).collect();
    let mut by_home: BTreeMap<SwitchId, Vec<&Tested>> = BTreeMap::new();
    for report in reports.iter().filter(|report| !down.hosts.contains(&report.host)) {
        by_home.entry(topology.switch_of(report.host)).or_default().push(report);
    }
    let none = |count: usize| vec![Tally::default(); count];
    let switches = topology.switches().len();
    let mut tallies = Tallies { links: none(topology.links().len()), toward: none(switches), from: none(switches) };
    let mut rest = BTreeMap::new();
    for (home, reports) in by_home {
        let mut failing: BTreeMap<(VlanId, SwitchId), BTreeSet<FailingPath>> = BTreeMap::new();
        for path in reports.iter().flat_map(|report| &report.failing) {
            failing.entry((path.vlan, topology.switch_of(path.toward))).or_default().insert(*path);
        }
        for tree in &plan.trees {
            let tested = |site: SwitchId| reports.iter().filter(|report| report.tests(tree.vlan, site)).count();
            let mut tested: Vec<(SwitchId, usize)> =
                sites.iter().filter(|site| **site != home).map(|site| (*site, tested(*site))).collect();
            tested.retain(|(_, all)| *all > 0);
            if tested.is_empty() {
                continue;
            }
            let rooted = tree.tree.rooted_at(topology, home);
            for (site, all) in tested {
                let links: Vec<LinkId> = rooted.path_to(topology, site).iter().map(|channel| channel.link()).collect();
                if links.is_empty() || links.iter().any(|link| down.links.contains(link)) {
                    continue;
                }
                let failed = failing.get(&(tree.vlan, site));
                let count = failed.map_or(0, |paths| paths.len().min(all));
                links.iter().for_each(|link| tallies.links[link.index()].add(count, all));
                tallies.toward[site.index()].add(count, all);
                tallies.from[home.index()].add(count, all);
                let links = links.into_iter().map(Explanation::Link);
                let causes: Vec<Explanation> =
                    links.chain([Explanation::HostsOf(site), Explanation::FromHostsOf(home)]).collect();
                rest.extend(failed.into_iter().flatten().map(|path| (*path, causes.clone())));
            }
        }
    }
    (tallies, rest)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use fabric::{
        Policy,
        generate::{Kind, Options, generate},
    };
    use proptest::prelude::*;

    use super::*;

    static TORUS: LazyLock<Plan> = LazyLock::new(|| {
        let kind = Kind::parse("torus", &["4x4".to_owned()]).expect("a size");
        let topology = generate(&kind, &Options::default()).expect("a torus");
        planner::plan(&topology, &Policy::default(), None).expect("a plan")
    });

    /// What hosts report while cables lose everything, and hosts of some switches are gone.
    fn reports(plan: &Plan, by: &[HostId], dead: &BTreeSet<LinkId>, gone: &BTreeSet<SwitchId>) -> Vec<Tested> {
        let topology = &plan.topology;
        let vlans: VlanSet = plan.trees.iter().map(|tree| tree.vlan).collect();
        let report = |host: &HostId| {
            let home = topology.switch_of(*host);
            let mut failing = Vec::new();
            for tree in &plan.trees {
                let rooted = tree.tree.rooted_at(topology, home);
                for toward in topology.host_ids().filter(|toward| topology.switch_of(*toward) != home) {
                    let site = topology.switch_of(toward);
                    let path = rooted.path_to(topology, site);
                    if gone.contains(&site) || path.iter().any(|channel| dead.contains(&channel.link())) {
                        failing.push(FailingPath { from: *host, toward, vlan: tree.vlan });
                    }
                }
            }
            Tested { host: *host, vlans: vlans.clone(), further: BTreeSet::new(), failing }
        };
        let talks = |host: &&HostId| !gone.contains(&topology.switch_of(**host));
        by.iter().filter(talks).map(report).collect()
    }

    fn all_hosts() -> Vec<HostId> {
        TORUS.topology.host_ids().collect()
    }

    #[test]
    fn a_cable_that_loses_everything_is_found_and_nothing_else_is_suspected() {
        for link in TORUS.topology.link_ids() {
            let found = reports(&TORUS, &all_hosts(), &BTreeSet::from([link]), &BTreeSet::new());
            let folded = fold(&TORUS, &found, &KnownDown::default());
            let causes: Vec<_> = folded.suspicions.iter().map(|suspicion| suspicion.causes.clone()).collect();
            assert_eq!(causes, [[Explanation::Link(link)]]);
            assert!(folded.unexplained.is_empty());
            // Once switches say so, nothing is left to explain.
            let known = KnownDown { links: BTreeSet::from([link]), ..KnownDown::default() };
            assert_eq!(fold(&TORUS, &found, &known), Folded::default());
        }
    }

    /// Pairs that talk test one path each, in the plan's VLAN.
    #[test]
    fn a_cable_is_found_by_those_who_talk_over_it() {
        let topology = &TORUS.topology;
        let talk = |host: HostId, toward: HostId| {
            let (vlan, site) = (TORUS.assignment.unicast(host, toward), topology.switch_of(toward));
            let rooted = TORUS.tree(vlan).expect("a tree").tree.rooted_at(topology, topology.switch_of(host));
            (vlan, site, rooted.path_to(topology, site))
        };
        for dead in topology.link_ids() {
            let report = |host: HostId| {
                let others = topology.host_ids().filter(|toward| *toward != host);
                let all: Vec<_> = others.map(|toward| (toward, talk(host, toward))).collect();
                let failing = all.iter().filter(|(_, (_, _, path))| path.iter().any(|channel| channel.link() == dead));
                Tested {
                    host,
                    vlans: VlanSet::new(),
                    further: all.iter().map(|(_, (vlan, site, _))| (*vlan, *site)).collect(),
                    failing: failing
                        .map(|(toward, (vlan, ..))| FailingPath { from: host, toward: *toward, vlan: *vlan })
                        .collect(),
                }
            };
            let reports: Vec<Tested> = topology.host_ids().map(report).collect();
            let folded = fold(&TORUS, &reports, &KnownDown::default());
            let causes: Vec<_> = folded.suspicions.iter().map(|suspicion| suspicion.causes.clone()).collect();
            assert_eq!(causes, [[Explanation::Link(dead)]]);
        }
    }

    #[test]
    fn hosts_that_are_gone_are_no_fault_of_cables() {
        for switch in TORUS.topology.switch_ids() {
            let found = reports(&TORUS, &all_hosts(), &BTreeSet::new(), &BTreeSet::from([switch]));
            let folded = fold(&TORUS, &found, &KnownDown::default());
            let causes: Vec<_> = folded.suspicions.iter().map(|suspicion| suspicion.causes.clone()).collect();
            assert_eq!(causes, [[Explanation::HostsOf(switch)]]);
            let down = TORUS.topology.host_ids().filter(|host| TORUS.topology.switch_of(*host) == switch).collect();
            assert_eq!(fold(&TORUS, &found, &KnownDown { hosts: down, ..KnownDown::default() }), Folded::default());
        }
    }

    /// A path that fails now and then: over each of its cables more paths work than fail.
    #[test]
    fn a_single_path_among_many_that_work_is_left_unexplained() {
        let mut found = reports(&TORUS, &all_hosts(), &BTreeSet::new(), &BTreeSet::new());
        let path = FailingPath { from: HostId::new(0), toward: HostId::new(10), vlan: TORUS.trees[0].vlan };
        found[0].failing.push(path);
        assert_eq!(
            fold(&TORUS, &found, &KnownDown::default()),
            Folded { suspicions: Vec::new(), unexplained: vec![path] }
        );
    }

    proptest! {
        /// Every failing path is explained once or named as unexplained, by nothing that works; with all hosts reporting, cables all of
        /// whose paths fail are enough to explain everything.
        #[test]
        fn what_fails_is_explained_by_what_fails(
            by in prop::collection::btree_set(0_usize..16, 1..=16),
            dead in prop::collection::btree_set(0_usize..32, 0..4),
            gone in prop::collection::btree_set(0_usize..16, 0..3),
        ) {
            let dead: BTreeSet<LinkId> = dead.into_iter().map(LinkId::new).collect();
            let gone: BTreeSet<SwitchId> = gone.into_iter().map(SwitchId::new).collect();
            let by: Vec<HostId> = by.into_iter().map(HostId::new).collect();
            let found = reports(&TORUS, &by, &dead, &gone);
            let folded = fold(&TORUS, &found, &KnownDown::default());
            let all: BTreeSet<FailingPath> = found.iter().flat_map(|report| report.failing.iter().copied()).collect();
            let mut named = BTreeSet::new();
            for suspicion in &folded.suspicions {
                prop_assert!(!suspicion.causes.is_empty() && !suspicion.paths.is_empty());
                for path in &suspicion.paths {
                    prop_assert!(named.insert(*path), "each path has one explanation");
                }
            }
            prop_assert_eq!(&named, &all);
            // Everything that fails has a cause all of whose paths fail, so nothing is left over.
            prop_assert!(folded.unexplained.is_empty());
            let one = dead.len() + gone.len() == 1 && by.len() == 16;
            prop_assert!(!one || folded.suspicions.len() <= 1);
        }
    }
}
