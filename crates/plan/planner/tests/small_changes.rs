//! A host that comes, goes or moves, a cable or a switch that is lost and comes back: only what must change does.
//!
//! What must change are entries for addresses that came, went or moved, and entries of VLANs whose tree lost a cable. All
//! others keep their port, whatever the options, except where a proof against deadlock forces more.
//!
//! Requests cover every pair of values of any two options; `ESPALIER_COMBINATIONS=N` takes every Nth of all 28,800
//! combinations.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{
    Cabling,
    covering::{every_pair, every_row},
    named::{Named, matrix_by_address},
};
use fabric::{
    FdbMode, FlowControl, Mac, Plan, Policy, Resilience, Tagging, Topology, Traffic, VlanId,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use planner::{PlanError, StepLimit, better_anew, is_better_anew, plan_with};

const FABRICS: [(&str, &str); 9] = [
    ("torus", "3x3"),
    ("torus", "4x4"),
    ("torus", "5x1"),
    ("mesh", "3x3"),
    ("fat-tree", "k=4"),
    ("hypercube", "3"),
    ("hyperx", "3x3"),
    ("dragonfly", "a=2,h=1,p=1"),
    ("random-regular", "n=10,d=3"),
];

/// What happens to a cabling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    HostAdded,
    HostRemoved,
    HostMoved,
    CableLost,
    SwitchLost,
}

use Change::*;
const CHANGES: [Change; 5] = [HostAdded, HostRemoved, HostMoved, CableLost, SwitchLost];
const FLOW_CONTROLS: [FlowControl; 3] = [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)];
const CAPS: [Option<usize>; 2] = [None, Some(4)];

/// How many values each option has, in the order of [`Case::of`].
const VALUES: [usize; 9] = [12, CHANGES.len(), 5, FLOW_CONTROLS.len(), 2, 2, CAPS.len(), 2, 2];

struct Case {
    cabling: Named,
    change: Change,
    managed: bool,
    policy: Policy,
    matrix: bool,
}

impl Case {
    fn of(row: &[usize]) -> Self {
        let [fabric, change, tagging, flow_control, fdb, resilience, cap, managed, matrix] = *row else {
            panic!("a value of each option")
        };
        let topology = match FABRICS.get(fabric) {
            Some((kind, size)) => {
                let words: Vec<String> = size.split(',').map(str::to_owned).collect();
                let kind = Kind::parse(kind, &words).expect("a valid size");
                generate(&kind, &Options { hosts_per_switch: None, ..Options::default() }).expect("a sane size")
            }
            None => {
                let seed = fabric as u64;
                Cabling::random(8, 7, &mut Rng::new(seed)).topology().expect("connected")
            }
        };
        let policy = Policy {
            tagging: Tagging::ALL[tagging],
            flow_control: FLOW_CONTROLS[flow_control],
            fdb: [FdbMode::Minimal, FdbMode::Full][fdb],
            resilience: [Resilience::None, Resilience::OneLink][resilience],
            vlans_max: CAPS[cap],
            ..Policy::default()
        };
        Self {
            cabling: Named::of(&topology),
            change: CHANGES[change],
            managed: managed == 1,
            policy,
            matrix: matrix == 1,
        }
    }

    fn topology(&self, cabling: &Named) -> Option<Topology> {
        cabling.topology(self.managed)
    }

    /// A plan after little search; none if so few VLANs do not let one be ready for failures.
    fn plan(&self, cabling: &Named, previous: Option<&Plan>, what: &str) -> Option<Plan> {
        let topology = self.topology(cabling).expect("in one part");
        let traffic = if self.matrix { matrix_by_address(&topology) } else { Traffic::AllToAll };
        let policy = Policy { traffic, ..self.policy.clone() };
        match plan_with(&topology, &policy, previous, &mut StepLimit::new(2)) {
            Ok(plan) => Some(plan),
            Err(PlanError::TooManyVlansForResilience { .. }) => None,
            Err(error) => panic!("{what}: {error}"),
        }
    }

    /// The cabling after the change; none if nothing of the kind leaves it in one part.
    fn changed(&self, rng: &mut Rng) -> Option<Named> {
        let mut tries = (0..32).map(|_| {
            let mut next = self.cabling.clone();
            let switch = next.switches[rng.below(next.switches.len())].clone();
            let host = rng.below(next.hosts.len());
            match self.change {
                HostAdded => next.hosts.push(("new".to_owned(), Mac::local(0xabcdef), (switch, "new".to_owned()))),
                HostRemoved => drop(next.hosts.remove(host)),
                HostMoved => next.hosts[host].2 = (switch, "new".to_owned()),
                CableLost => drop(next.links.remove(rng.below(next.links.len()))),
                SwitchLost => next = next.without_switch(1 + rng.below(next.switches.len() - 1)),
            }
            next
        });
        tries.find(|next| self.topology(next).is_some())
    }
}

type Entries = BTreeMap<(String, VlanId, Mac), String>;

/// `port[switch, VLAN, address]`, all by their names.
fn entries(plan: &Plan) -> Entries {
    let topology = &plan.topology;
    let of = |device: &fabric::DeviceIntent| {
        let switch = topology.switch(device.switch).name.clone();
        let entries = device.fdb_entries(topology);
        entries.map(|entry| ((switch.clone(), entry.vlan, entry.mac), topology.port(entry.port).name.clone())).collect()
    };
    plan.devices.iter().flat_map(|device| -> Vec<_> { of(device) }).collect()
}

/// Addresses that came, went or moved.
fn changed_hosts(before: &Named, after: &Named) -> BTreeSet<Mac> {
    let hosts =
        |cabling: &Named| -> BTreeSet<(String, Mac, (String, String))> { cabling.hosts.iter().cloned().collect() };
    hosts(before).symmetric_difference(&hosts(after)).map(|(_, mac, _)| *mac).collect()
}

/// VLANs of a plan whose tree has a cable that a cabling has not.
fn broken(plan: &Plan, after: &Named) -> BTreeSet<VlanId> {
    let left: BTreeSet<(String, String)> =
        (after.links.iter()).map(|(a, b, _)| (format!("{}:{}", a.0, a.1), format!("{}:{}", b.0, b.1))).collect();
    let is_left = |link: &fabric::LinkId| {
        let link = plan.topology.link(*link);
        left.contains(&(plan.topology.port_label(link.a), plan.topology.port_label(link.b)))
    };
    plan.trees.iter().filter(|tree| !tree.tree.links().iter().all(is_left)).map(|tree| tree.vlan).collect()
}

#[derive(Debug, Default)]
struct Tally {
    cases: usize,
    /// Where something moved that need not have, though a proof against deadlock had to hold.
    forced: usize,
    /// Where the most loaded link takes longer than before and than anew, each by so much that planning anew
    /// is advised: what did not change stays, so a host that came is reached along the trees that are there.
    worse: usize,
}

#[test]
fn only_what_must_changes() {
    let every: Option<usize> =
        std::env::var("ESPALIER_COMBINATIONS").ok().map(|every| every.parse().expect("a number"));
    let rows = match every {
        Some(every) => every_row(&VALUES).into_iter().step_by(every).collect(),
        None => every_pair(&VALUES, 1),
    };
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for row in rows {
        let case = Case::of(&row);
        let Some(after) = case.changed(&mut Rng::new(7)) else { continue };
        let what = format!("{row:?}, {:?}", case.change);
        let Some(first) = case.plan(&case.cabling, None, &what) else { continue };
        let Some(next) = case.plan(&after, Some(&first), &what) else { continue };
        let tally = tallies.entry(format!("{:?}", case.change)).or_default();
        case.judge((&case.cabling, &first), (&after, &next), tally, &what);
        let Some(back) = case.plan(&case.cabling, Some(&next), &what) else { continue };
        let tally = tallies.entry(format!("{:?}, and back", case.change)).or_default();
        case.judge((&after, &next), (&case.cabling, &back), tally, &what);
    }
    eprintln!("{tallies:#?}");
    let sum = |count: fn(&Tally) -> usize| tallies.values().map(count).sum::<usize>();
    let (cases, forced, worse) = (sum(|tally| tally.cases), sum(|tally| tally.forced), sum(|tally| tally.worse));
    assert!(cases > 100 && tallies.len() == 2 * CHANGES.len(), "{cases} cases");
    assert!(50 * forced <= cases, "{forced} of {cases}");
    assert!(7 * worse <= cases, "{worse} of {cases}");
}

impl Case {
    /// Judges a plan that was made of another one after a small change.
    fn judge(&self, (before, old): (&Named, &Plan), (after, new): (&Named, &Plan), tally: &mut Tally, what: &str) {
        let report = verify::check(new);
        assert!(report.is_deployable(), "{what}\n{report}");
        let again = self.plan(after, Some(new), what);
        assert!(again.is_some_and(|again| again == *new), "{what}: planned once more, it is another plan");
        tally.cases += 1;
        let moved = needless_moves((before, old), (after, new));
        if !moved.is_empty() {
            assert!(self.policy.flow_control != FlowControl::None, "{what}: {moved:?}");
            eprintln!("forced: {what}: {} entries", moved.len());
            tally.forced += 1;
        }
        if let Some(fresh) = self.plan(after, None, what) {
            let [now, was, anew] = [new, old, &fresh].map(|plan| plan.summary.max_channel_time);
            if is_better_anew(new, &fresh) && is_better_anew(new, old) {
                eprintln!("worse: {what}: {was} before, {now} now, {anew} anew");
                assert!(better_anew(new, &mut StepLimit::new(2)).is_some(), "{what}: nothing is said");
                tally.worse += 1;
            }
        }
    }
}

/// Entries that lead to another port, though their address stayed where it was and their VLAN's tree lost no cable.
fn needless_moves((before, old): (&Named, &Plan), (after, new): (&Named, &Plan)) -> Vec<(String, VlanId, Mac)> {
    let (changed, broken, now) = (changed_hosts(before, after), broken(old, after), entries(new));
    let must_stay = |(_, vlan, mac): &(String, VlanId, Mac)| !broken.contains(vlan) && !changed.contains(mac);
    let moved =
        entries(old).into_iter().filter(|(key, port)| must_stay(key) && now.get(key).is_some_and(|now| now != port));
    moved.map(|(key, _)| key).collect()
}
