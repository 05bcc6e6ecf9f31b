//! A fabric whose cables fail and heal while its switches answer or not: whatever the standby has them do, no frame that is
//! on its way can be in a cycle of waiting, and once things rest, hosts send where the plan says.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use fabric::{
    Assignment, ChannelId, Failure, FlowControl, Group, GroupId, HostId, LinkId, Plan, Policy, Proof, Resilience,
    SwitchId, Tagging, Topology, TopologyBuilder, VlanId,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use proptest::prelude::*;
use rollout::standby::{
    ActiveVlans, HoldDown, LinkHealth, PastFailures, Standby, StandbyNotice, Unprepared, link_health,
};

const TICK: Duration = Duration::from_millis(250);
const HOLD: Duration = Duration::from_secs(5);
const DRAIN: Duration = Duration::from_secs(1);
/// How long frames stay on their way at most; shorter than what is waited for.
const LIFETIME: Duration = Duration::from_millis(700);

fn ready(shape: &str, policy: Policy) -> Plan {
    let (family, sizes) = shape.split_once(' ').expect("a family and its sizes");
    let kind = Kind::parse(family, &sizes.split(' ').map(str::to_owned).collect::<Vec<_>>()).expect("a kind");
    let topology = generate(&kind, &Options::default()).expect("a topology");
    planner::plan(&topology, &Policy { resilience: Resilience::OneLink, ..policy }, None).expect("a plan")
}

/// A fabric that does what it is told, when it hears it.
struct Fabric<'a> {
    plan: &'a Plan,
    now: Duration,
    pvid: Vec<Option<VlanId>>,
    /// By host: VLANs that it sent in before, and until when.
    before: Vec<Vec<(VlanId, Duration)>>,
    dead: BTreeSet<LinkId>,
    /// Switches all of whose cables are dead.
    isolated: BTreeSet<SwitchId>,
    silent: BTreeSet<SwitchId>,
    routes: BTreeMap<(SwitchId, VlanId), Vec<(usize, usize)>>,
}

impl<'a> Fabric<'a> {
    fn new(plan: &'a Plan) -> Self {
        let Assignment::Source(home) = &plan.assignment else { panic!("switch-tagged") };
        Self {
            plan,
            now: Duration::ZERO,
            pvid: home.iter().copied().map(Some).collect(),
            before: vec![Vec::new(); home.len()],
            dead: BTreeSet::new(),
            isolated: BTreeSet::new(),
            silent: BTreeSet::new(),
            routes: BTreeMap::new(),
        }
    }

    fn running(&self) -> Vec<Option<Vec<bool>>> {
        let topology = &self.plan.topology;
        let port = |port| match topology.port(port).attachment {
            fabric::Attachment::Link(link) => !self.dead.contains(&link),
            _ => true,
        };
        let switch = |switch: SwitchId| {
            (!self.silent.contains(&switch)).then(|| topology.port_ids(switch).map(port).collect::<Vec<bool>>())
        };
        topology.switch_ids().map(switch).collect()
    }

    /// A switch loses its power.
    fn power_off(&mut self, switch: SwitchId) {
        let topology = &self.plan.topology;
        self.dead.extend(Failure::Switch(switch).links(topology));
        self.silent.insert(switch);
        self.isolated.insert(switch);
        // What its hosts had sent is still under way.
        for host in topology.hosts_of(switch) {
            self.before[host.index()].extend(self.pvid[host.index()].map(|pvid| (pvid, self.now + LIFETIME)));
        }
    }

    /// All members of a group fail.
    fn fail_group(&mut self, group: GroupId) {
        let Group { switches, links, .. } = self.plan.topology.group(group);
        self.dead.extend(links);
        switches.iter().for_each(|switch| self.power_off(*switch));
        // A switch all of whose cables fail with the group goes on by itself.
        let cables = Failure::Group(group).links(&self.plan.topology);
        assert!(cables.iter().all(|link| self.dead.contains(link)));
    }

    fn set(&mut self, host: HostId, pvid: Option<VlanId>) {
        let old = std::mem::replace(&mut self.pvid[host.index()], pvid);
        // What is sent on a switch without a cable that carries does not leave it.
        let leaves = !self.isolated.contains(&self.plan.topology.switch_of(host));
        if let Some(old) = old.filter(|_| leaves) {
            self.before[host.index()].push((old, self.now + LIFETIME));
        }
    }

    /// Channels that frames from a switch hold while they wait for another, in one VLAN.
    fn waits(&mut self, from: SwitchId, vlan: VlanId) -> &[(usize, usize)] {
        let plan = self.plan;
        self.routes.entry((from, vlan)).or_insert_with(|| {
            let topology = &plan.topology;
            let tree = &plan.trees.iter().find(|tree| tree.vlan == vlan).expect("a VLAN of the plan").tree;
            let rooted = tree.rooted_at(topology, from);
            let mut waits = Vec::new();
            for to in topology.host_ids().map(|host| topology.switch_of(host)).filter(|to| *to != from) {
                let path = rooted.path_to(topology, to);
                waits.extend(path.windows(2).map(|pair| (pair[0].index(), pair[1].index())));
            }
            waits
        })
    }

    /// Whether frames that are on their way may wait for each other in a circle. A dead cable's port takes whatever comes.
    fn may_freeze(&mut self) -> bool {
        let topology = &self.plan.topology;
        let mut next: BTreeMap<(u8, usize), BTreeSet<usize>> = BTreeMap::new();
        let lane = |vlan| self.plan.trees.iter().find(|tree| tree.vlan == vlan).expect("a VLAN of the plan").lane;
        let now = self.now;
        let mut sending: BTreeSet<(SwitchId, VlanId, u8)> = BTreeSet::new();
        for host in topology.host_ids() {
            let late = self.before[host.index()].iter().filter(|(_, until)| *until > now).map(|(vlan, _)| *vlan);
            let leaves = !self.isolated.contains(&topology.switch_of(host));
            for vlan in self.pvid[host.index()].filter(|_| leaves).into_iter().chain(late) {
                sending.insert((topology.switch_of(host), vlan, lane(vlan)));
            }
        }
        let dead = self.dead.clone();
        for (switch, vlan, lane) in sending {
            for &(from, to) in self.waits(switch, vlan) {
                if ![from, to].iter().any(|channel| dead.contains(&ChannelId::new(*channel).link())) {
                    next.entry((lane, from)).or_default().insert(to);
                }
            }
        }
        // Channels that wait for nobody are taken away until none is left, or only circles are.
        loop {
            let waiting: BTreeSet<(u8, usize)> = next.keys().copied().collect();
            let count: usize = next.values().map(BTreeSet::len).sum();
            for ((lane, _), set) in &mut next {
                set.retain(|to| waiting.contains(&(*lane, *to)));
            }
            next.retain(|_, set| !set.is_empty());
            if next.is_empty() {
                return false;
            }
            if next.values().map(BTreeSet::len).sum::<usize>() == count {
                return true;
            }
        }
    }

    /// One turn of whoever carries out what the standby says. A switch is `deaf` if it answers but takes no change.
    fn turn(&mut self, standby: &mut Standby, deaf: &BTreeSet<SwitchId>) -> Vec<StandbyNotice> {
        let topology = &self.plan.topology;
        let links = link_health(topology, &self.running());
        standby.handle_links(self.now, &links, &self.silent);
        let mut behind = BTreeSet::new();
        for host in topology.host_ids() {
            let (wanted, switch) = (standby.pvid(host), topology.switch_of(host));
            if self.pvid[host.index()] == wanted {
                continue;
            }
            if self.silent.contains(&switch) || deaf.contains(&switch) {
                behind.insert(switch);
                continue;
            }
            self.set(host, wanted);
            assert!(!self.may_freeze(), "at {:?}, {:?}, after host {}", self.now, standby.active(), host.index());
        }
        standby.handle_held(self.now, &behind, &self.silent);
        self.now += TICK;
        std::iter::from_fn(|| standby.poll_notice()).collect()
    }
}

/// The cables for which something is stored, and why that may mix with what was before.
fn overs(plan: &Plan) -> Vec<(LinkId, Proof)> {
    let link = |over: &fabric::SwitchOver| match over.failure {
        Failure::Link(link) => Some((link, over.proof)),
        Failure::Switch(_) | Failure::Group(_) => None,
    };
    plan.failover.as_ref().expect("ready").switch_overs.iter().filter_map(link).collect()
}

/// The PVIDs that are stored for a failure.
fn stored(plan: &Plan, failure: Failure) -> Vec<Option<VlanId>> {
    let over = plan.failover.as_ref().and_then(|failover| failover.switch_over(failure)).expect("stored");
    let Assignment::Source(after) = over.apply(&plan.assignment) else { panic!("switch-tagged") };
    after.into_iter().map(Some).collect()
}

#[test]
fn each_cable_is_left_and_taken_again() {
    let plan = ready("torus 3x3", Policy::default());
    for (link, _) in overs(&plan) {
        let (mut standby, mut fabric) =
            (Standby::new(&plan, HoldDown::new(HOLD), DRAIN).expect("ready"), Fabric::new(&plan));
        let home = fabric.pvid.clone();
        assert!(fabric.turn(&mut standby, &BTreeSet::new()).is_empty());
        fabric.dead.insert(link);
        let mut notices = Vec::new();
        for _ in 0..12 {
            notices.extend(fabric.turn(&mut standby, &BTreeSet::new()));
        }
        assert_eq!(notices.first(), Some(&StandbyNotice::Failed(Failure::Link(link))));
        assert_eq!(notices.last(), Some(&StandbyNotice::Holds(ActiveVlans::Backup(Failure::Link(link)))));
        assert_eq!(fabric.pvid, stored(&plan, Failure::Link(link)));
        fabric.dead.clear();
        let mut notices = Vec::new();
        for _ in 0..40 {
            notices.extend(fabric.turn(&mut standby, &BTreeSet::new()));
        }
        assert_eq!(notices.first(), Some(&StandbyNotice::Healed(link)));
        assert_eq!(notices.last(), Some(&StandbyNotice::Holds(ActiveVlans::Planned)));
        assert_eq!(fabric.pvid, home);
    }
}

/// Its cables are seen to die one after the other, or all at once; the answer to the first of them gives way to that for the
/// switch. It comes back cable by cable, and hosts go home once all of them have carried for the hold.
#[test]
fn each_switch_is_left_and_taken_again() {
    let ready = |flow_control| {
        let policy = Policy { resilience: Resilience::OneSwitch, flow_control, ..Policy::default() };
        let kind = Kind::parse("torus", &["3x3".to_owned()]).expect("a kind");
        let topology = generate(&kind, &Options::default()).expect("a topology");
        planner::plan(&topology, &policy, None).expect("a plan")
    };
    let mut moving = 0;
    for plan in [ready(FlowControl::None), ready(FlowControl::Pause)] {
        for (switch, at_once) in plan.topology.switch_ids().flat_map(|switch| [(switch, false), (switch, true)]) {
            let failure = Failure::Switch(switch);
            if plan.failover.as_ref().and_then(|failover| failover.switch_over(failure)).is_none() {
                continue;
            }
            let links = failure.links(&plan.topology);
            let (mut standby, mut fabric) =
                (Standby::new(&plan, HoldDown::new(HOLD), DRAIN).expect("ready"), Fabric::new(&plan));
            let home = fabric.pvid.clone();
            let mut notices = Vec::new();
            for (turn, link) in links.iter().enumerate() {
                fabric.dead.insert(*link);
                // The switch itself answers no more once somebody has noticed.
                if turn > 0 || at_once {
                    fabric.silent.insert(switch);
                }
                if !at_once {
                    notices.extend(fabric.turn(&mut standby, &BTreeSet::new()));
                }
            }
            for _ in 0..60 {
                notices.extend(fabric.turn(&mut standby, &BTreeSet::new()));
            }
            assert!(notices.contains(&StandbyNotice::Failed(failure)), "{notices:?}");
            assert_eq!(notices.last(), Some(&StandbyNotice::Holds(ActiveVlans::Backup(failure))), "{notices:?}");
            if at_once {
                assert_eq!(notices[0], StandbyNotice::Failed(failure), "its cables are not told of one by one");
            }
            let wanted = stored(&plan, failure);
            let elsewhere = plan.topology.host_ids().filter(|host| plan.topology.switch_of(*host) != switch);
            for host in elsewhere {
                assert_eq!(fabric.pvid[host.index()], wanted[host.index()], "host {}", host.index());
                moving += usize::from(wanted[host.index()] != home[host.index()]);
            }
            // It answers, and then its cables carry, one after the other.
            fabric.silent.clear();
            notices.extend(fabric.turn(&mut standby, &BTreeSet::new()));
            for link in &links {
                let before = fabric.pvid.clone();
                fabric.dead.remove(link);
                notices.extend(fabric.turn(&mut standby, &BTreeSet::new()));
                assert_eq!(standby.active(), ActiveVlans::Backup(failure), "it is not all back");
                let others = plan.topology.host_ids().filter(|host| plan.topology.switch_of(*host) != switch);
                others.for_each(|host| assert_eq!(fabric.pvid[host.index()], before[host.index()]));
            }
            for _ in 0..60 {
                notices.extend(fabric.turn(&mut standby, &BTreeSet::new()));
            }
            assert_eq!(notices.last(), Some(&StandbyNotice::Holds(ActiveVlans::Planned)), "{notices:?}");
            assert_eq!(fabric.pvid, home);
        }
    }
    assert!(moving > 20, "{moving}");
}

/// Members of a group are seen to die one after the other, or all at once, and nobody sees a cable between two of them; the answers for less give way to that for the group. Of its
/// switches, those that come back first wait for the others.
#[test]
fn each_group_is_left_and_taken_again() {
    let kind = Kind::parse("torus", &["4x4".to_owned()]).expect("a kind");
    let topology = with_feeds(&generate(&kind, &Options::default()).expect("a topology"));
    let mut answered = 0;
    for flow_control in [FlowControl::Pause, FlowControl::Pfc(2)] {
        let policy = Policy { resilience: Resilience::OneGroup, flow_control, ..Policy::default() };
        let plan = planner::plan(&topology, &policy, None).expect("a plan");
        for (group, at_once) in topology.group_ids().flat_map(|group| [(group, false), (group, true)]) {
            let failure = Failure::Group(group);
            if plan.failover.as_ref().and_then(|failover| failover.switch_over(failure)).is_none() {
                continue;
            }
            answered += 1;
            let links = failure.links(&topology);
            let is_left = |host: &HostId| !failure.takes(&topology, topology.switch_of(*host));
            let (mut standby, mut fabric) =
                (Standby::new(&plan, HoldDown::new(HOLD), DRAIN).expect("ready"), Fabric::new(&plan));
            let home = fabric.pvid.clone();
            let mut notices = Vec::new();
            for link in links.iter().filter(|_| !at_once) {
                fabric.dead.insert(*link);
                notices.extend(fabric.turn(&mut standby, &BTreeSet::new()));
            }
            fabric.fail_group(group);
            for _ in 0..80 {
                notices.extend(fabric.turn(&mut standby, &BTreeSet::new()));
            }
            assert!(notices.contains(&StandbyNotice::Failed(failure)), "{notices:?}");
            assert_eq!(notices.last(), Some(&StandbyNotice::Holds(ActiveVlans::Backup(failure))), "{notices:?}");
            if at_once {
                assert_eq!(notices[0], StandbyNotice::Failed(failure), "its members are not told of one by one");
            }
            let wanted = stored(&plan, failure);
            for host in topology.host_ids().filter(is_left) {
                assert_eq!(fabric.pvid[host.index()], wanted[host.index()], "host {}", host.index());
            }
            fabric.silent.clear();
            notices.extend(fabric.turn(&mut standby, &BTreeSet::new()));
            fabric.isolated.clear();
            for link in &links {
                fabric.dead.remove(link);
                notices.extend(fabric.turn(&mut standby, &BTreeSet::new()));
                assert_eq!(standby.active(), ActiveVlans::Backup(failure), "it is not all back");
            }
            for _ in 0..60 {
                notices.extend(fabric.turn(&mut standby, &BTreeSet::new()));
            }
            assert_eq!(notices.last(), Some(&StandbyNotice::Holds(ActiveVlans::Planned)), "{notices:?}");
            assert_eq!(fabric.pvid, home);
        }
    }
    assert!(answered >= 12, "{answered}");
}

/// Any two cables die one after the other, and heal in the same order.
#[test]
fn any_two_cables_are_left_and_taken_again_one_by_one() {
    let kind = Kind::parse("torus", &["3x3".to_owned()]).expect("a kind");
    let topology = generate(&kind, &Options::default()).expect("a topology");
    let policy = Policy { resilience: Resilience::TwoLinks, ..Policy::default() };
    let plan = planner::plan(&topology, &policy, None).expect("a plan");
    let mut answered = 0;
    for group in plan.topology.group_ids() {
        let failure = Failure::Group(group);
        let [first, second] = failure.links(&plan.topology)[..] else { panic!("two links") };
        let has = |failure| plan.failover.as_ref().is_some_and(|failover| failover.switch_over(failure).is_some());
        if ![failure, Failure::Link(first), Failure::Link(second)].into_iter().all(has) {
            continue;
        }
        answered += 1;
        let (mut standby, mut fabric) =
            (Standby::new(&plan, HoldDown::new(HOLD), DRAIN).expect("ready"), Fabric::new(&plan));
        let home = fabric.pvid.clone();
        let mut settle = |fabric: &mut Fabric<'_>, expected: ActiveVlans| {
            for _ in 0..80 {
                fabric.turn(&mut standby, &BTreeSet::new());
            }
            assert_eq!(standby.active(), expected, "group {}", group.index());
        };
        fabric.dead.insert(first);
        settle(&mut fabric, ActiveVlans::Backup(Failure::Link(first)));
        fabric.dead.insert(second);
        settle(&mut fabric, ActiveVlans::Backup(failure));
        assert_eq!(fabric.pvid, stored(&plan, failure));
        fabric.dead.remove(&first);
        settle(&mut fabric, ActiveVlans::Backup(Failure::Link(second)));
        fabric.dead.remove(&second);
        settle(&mut fabric, ActiveVlans::Planned);
        assert_eq!(fabric.pvid, home);
    }
    assert!(answered > 100, "{answered}");
}

/// No frame between others meets the two switches at the end of a row. Hosts that have switched over for one of their cables go home
/// once both are dead.
#[test]
fn hosts_stay_for_a_group_that_no_frame_between_others_meets() {
    let kind = Kind::parse("mesh", &["4x1".to_owned()]).expect("a kind");
    let row = generate(&kind, &Options::default()).expect("a topology");
    let mut builder = TopologyBuilder::of(&row);
    // A second cable beside each, so that cables may fail one by one.
    for link in row.links().to_vec() {
        let [a, b] = [link.a, link.b].map(|port| row.port(port).switch);
        let [a, b] =
            [a, b].map(|switch| builder.add_port(switch, &format!("x{}", link.a.index())).expect("a fresh port"));
        builder.add_link(a, b, link.rate_bps).expect("free ports");
    }
    builder.add_group("end", &[SwitchId::new(2), SwitchId::new(3)], &[]).expect("a fresh name");
    let topology = builder.finish().expect("connected");
    let policy = Policy { resilience: Resilience::OneGroup, ..Policy::default() };
    let plan = planner::plan(&topology, &policy, None).expect("a plan");
    let failure = Failure::Group(GroupId::new(0));
    let failover = plan.failover.as_ref().expect("ready");
    assert!(
        failover.switch_over(failure).is_none() && failover.summary.groups.is_some_and(|groups| groups.covered == 1)
    );
    let (mut standby, mut fabric) =
        (Standby::new(&plan, HoldDown::new(HOLD), DRAIN).expect("ready"), Fabric::new(&plan));
    let home = fabric.pvid.clone();
    let mut notices = Vec::new();
    for link in failure.links(&topology) {
        fabric.dead.insert(link);
        notices.extend(fabric.turn(&mut standby, &BTreeSet::new()));
    }
    assert!(notices.contains(&StandbyNotice::Failed(failure)), "{notices:?}");
    fabric.fail_group(GroupId::new(0));
    for _ in 0..40 {
        fabric.turn(&mut standby, &BTreeSet::new());
    }
    assert_eq!(standby.active(), ActiveVlans::Planned);
    for host in topology.host_ids().filter(|host| !failure.takes(&topology, topology.switch_of(*host))) {
        assert_eq!(fabric.pvid[host.index()], home[host.index()]);
    }
    // Another cable fails meanwhile: its answer is in force, whatever else is dead.
    let other = LinkId::new(0);
    fabric.dead.insert(other);
    for _ in 0..40 {
        fabric.turn(&mut standby, &BTreeSet::new());
    }
    assert_eq!(standby.active(), ActiveVlans::Backup(Failure::Link(other)));
}

#[test]
fn a_cable_that_flaps_does_not_move_hosts_twice() {
    let plan = ready("torus 3x3", Policy::default());
    let link = overs(&plan)[0].0;
    let (mut standby, mut fabric) =
        (Standby::new(&plan, HoldDown::new(HOLD), DRAIN).expect("ready"), Fabric::new(&plan));
    let mut moved = 0;
    for tick in 0..80 {
        if tick % 4 == 0 && !fabric.dead.remove(&link) {
            fabric.dead.insert(link);
        }
        let before = fabric.pvid.clone();
        fabric.turn(&mut standby, &BTreeSet::new());
        moved += usize::from(before != fabric.pvid);
    }
    assert_eq!(moved, 1);
}

#[test]
fn a_cable_that_fails_again_and_again_is_kept_out_for_longer_and_longer() {
    let plan = ready("torus 3x3", Policy::default());
    let link = overs(&plan)[0].0;
    let hold = HoldDown { least: HOLD, limit: 2, most: 8 * HOLD };
    let (mut standby, mut fabric) = (Standby::new(&plan, hold, DRAIN).expect("ready"), Fabric::new(&plan));
    let home = fabric.pvid.clone();
    let nobody = BTreeSet::new();
    let (mut waited, mut kept_out) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        fabric.dead.insert(link);
        let mut notices = Vec::new();
        for _ in 0..12 {
            notices.extend(fabric.turn(&mut standby, &nobody));
        }
        assert_eq!(standby.active(), ActiveVlans::Backup(Failure::Link(link)));
        fabric.dead.clear();
        let since = fabric.now;
        while standby.active() == ActiveVlans::Backup(Failure::Link(link)) {
            assert_ne!(fabric.pvid, home, "hosts stay away from it");
            notices.extend(fabric.turn(&mut standby, &nobody));
        }
        waited.push((fabric.now - since).as_secs());
        while fabric.pvid != home {
            notices.extend(fabric.turn(&mut standby, &nobody));
        }
        kept_out.extend(notices.iter().filter_map(|notice| match notice {
            StandbyNotice::KeptOut(_, failures, hold) => Some((*failures, hold.as_secs())),
            _ => None,
        }));
        let admitted = notices.iter().filter(|notice| **notice == StandbyNotice::Admitted(link)).count();
        assert_eq!(admitted, usize::from(waited.len() > 2), "{notices:?}");
    }
    assert_eq!(waited, [5, 5, 10, 20, 40, 40]);
    assert_eq!(kept_out, [(3, 10), (4, 20), (5, 40), (6, 40)]);
    // Once it has carried for twice the longest hold-down, it begins anew.
    fabric.now += 2 * hold.most;
    fabric.turn(&mut standby, &nobody);
    fabric.dead.insert(link);
    let notices = fabric.turn(&mut standby, &nobody);
    assert_eq!(notices.first(), Some(&StandbyNotice::Failed(Failure::Link(link))));
    assert!(!notices.iter().any(|notice| matches!(notice, StandbyNotice::KeptOut(..))));
}

#[test]
fn a_cable_that_is_kept_out_is_not_used_while_another_answer_ends_or_another_standby_begins() {
    let plan = ready("torus 3x3", Policy::default());
    let (flapping, other) = (overs(&plan)[0].0, overs(&plan)[5].0);
    let nobody = BTreeSet::new();
    let hold = HoldDown { least: HOLD, limit: 2, most: 100 * HOLD };
    let (mut standby, mut fabric) = (Standby::new(&plan, hold, DRAIN).expect("ready"), Fabric::new(&plan));
    standby.remember(&BTreeMap::from([(flapping, PastFailures { in_a_row: 5, is_kept_out: true })]));
    // It carries, and is kept out all the same.
    for _ in 0..12 {
        fabric.turn(&mut standby, &nobody);
    }
    assert_eq!(standby.active(), ActiveVlans::Backup(Failure::Link(flapping)));
    // What is dead is worse.
    fabric.dead.insert(other);
    for _ in 0..24 {
        fabric.turn(&mut standby, &nobody);
    }
    assert_eq!(standby.active(), ActiveVlans::Backup(Failure::Link(other)));
    fabric.dead.clear();
    for _ in 0..40 {
        fabric.turn(&mut standby, &nobody);
    }
    assert_eq!(standby.active(), ActiveVlans::Backup(Failure::Link(flapping)));
    for _ in 0..4 * 40 {
        fabric.turn(&mut standby, &nobody);
    }
    assert_eq!(standby.active(), ActiveVlans::Planned);
}

#[test]
fn failures_that_an_earlier_standby_counted_are_counted_on() {
    let plan = ready("torus 3x3", Policy::default());
    let (link, nobody) = (overs(&plan)[0].0, BTreeSet::new());
    let hold = HoldDown { least: HOLD, limit: 2, most: 100 * HOLD };
    let (mut standby, mut fabric) = (Standby::new(&plan, hold, DRAIN).expect("ready"), Fabric::new(&plan));
    standby.remember(&BTreeMap::from([(link, PastFailures { in_a_row: 2, is_kept_out: false })]));
    for _ in 0..12 {
        fabric.turn(&mut standby, &nobody);
    }
    assert_eq!((standby.active(), standby.poll_failure()), (ActiveVlans::Planned, None));
    fabric.dead.insert(link);
    let notices = fabric.turn(&mut standby, &nobody);
    assert_eq!(standby.poll_failure(), Some((link, 3)));
    assert!(notices.contains(&StandbyNotice::KeptOut(link, 3, 2 * HOLD)), "{notices:?}");
}

#[test]
fn a_second_failure_is_said_and_waits_for_the_first_to_heal() {
    let plan = ready("torus 3x3", Policy::default());
    let (first, second) = (overs(&plan)[0].0, overs(&plan)[5].0);
    let (mut standby, mut fabric) =
        (Standby::new(&plan, HoldDown::new(HOLD), DRAIN).expect("ready"), Fabric::new(&plan));
    fabric.dead.insert(first);
    for _ in 0..12 {
        fabric.turn(&mut standby, &BTreeSet::new());
    }
    fabric.dead.insert(second);
    let notices = fabric.turn(&mut standby, &BTreeSet::new());
    assert_eq!(notices, [StandbyNotice::Second(Failure::Link(second))]);
    assert_eq!(standby.active(), ActiveVlans::Backup(Failure::Link(first)));
    fabric.dead.remove(&first);
    for _ in 0..24 {
        fabric.turn(&mut standby, &BTreeSet::new());
    }
    assert_eq!(standby.active(), ActiveVlans::Backup(Failure::Link(second)));
}

#[test]
fn what_an_earlier_standby_left_is_taken_up() {
    let plan = ready("torus 3x3", Policy::default());
    let link = overs(&plan)[2].0;
    let mut fabric = Fabric::new(&plan);
    let mut first = Standby::new(&plan, HoldDown::new(HOLD), DRAIN).expect("ready");
    fabric.dead.insert(link);
    for _ in 0..12 {
        fabric.turn(&mut first, &BTreeSet::new());
    }
    let take_up = |fabric: &Fabric| {
        let mut second = Standby::new(&plan, HoldDown::new(HOLD), DRAIN).expect("ready");
        second.take_up(&fabric.pvid, &fabric.dead)
    };
    assert_eq!(take_up(&fabric), Ok(ActiveVlans::Backup(Failure::Link(link))));
    assert_eq!(take_up(&Fabric::new(&plan)), Ok(ActiveVlans::Planned));
    // Somebody else's doing.
    fabric.pvid[4] = VlanId::new(4000).ok();
    assert_eq!(take_up(&fabric), Err(HostId::new(4)));
}

#[test]
fn plans_without_anything_stored_are_refused() {
    let kind = Kind::parse("torus", &["3x3".to_owned()]).expect("a kind");
    let topology = generate(&kind, &Options::default()).expect("a topology");
    let plan = |tagging, resilience| {
        planner::plan(&topology, &Policy { tagging, resilience, ..Policy::default() }, None).expect("a plan")
    };
    let refusal = |plan: Plan| Standby::new(&plan, HoldDown::new(HOLD), DRAIN).err();
    assert_eq!(refusal(plan(Tagging::Switch, Resilience::None)), Some(Unprepared::NothingStored));
    assert_eq!(refusal(plan(Tagging::Source, Resilience::OneLink)), Some(Unprepared::HostsChoose));
    assert_eq!(refusal(plan(Tagging::Pair, Resilience::OneLink)), Some(Unprepared::HostsChoose));
    assert_eq!(refusal(plan(Tagging::Switch, Resilience::OneLink)), None);
}

#[test]
fn either_end_knows_that_a_cable_is_dead() {
    let plan = ready("torus 3x3", Policy::default());
    let mut fabric = Fabric::new(&plan);
    fabric.dead.insert(LinkId::new(0));
    let seen = |fabric: &Fabric| link_health(&plan.topology, &fabric.running())[0];
    assert_eq!(seen(&fabric), LinkHealth::Down);
    let link = plan.topology.link(LinkId::new(0));
    let ends = [link.a, link.b].map(|port| plan.topology.port(port).switch);
    fabric.silent.insert(ends[0]);
    assert_eq!(seen(&fabric), LinkHealth::Down);
    fabric.silent.insert(ends[1]);
    assert_eq!(seen(&fabric), LinkHealth::Unknown);
    fabric.silent.remove(&ends[0]);
    fabric.dead.clear();
    assert_eq!(seen(&fabric), LinkHealth::Up);
}

/// The same with groups: two power feeds, of which one has a cable beside its switches, a line card, and a feed within another.
fn with_feeds(topology: &Topology) -> Topology {
    let mut builder = TopologyBuilder::of(topology);
    let switches = |numbers: &[usize]| numbers.iter().copied().map(SwitchId::new).collect::<Vec<_>>();
    let links = |numbers: &[usize]| numbers.iter().copied().map(LinkId::new).collect::<Vec<_>>();
    for (name, members, cables) in [
        ("feed-a", switches(&[0, 1]), links(&[])),
        ("feed-b", switches(&[4, 8]), links(&[2])),
        ("card-3", switches(&[]), links(&[3, 5])),
        ("feed-b1", switches(&[8]), links(&[2])),
    ] {
        builder.add_group(name, &members, &cables).expect("a fresh name");
    }
    builder.finish().expect("as connected as before")
}

/// Plans with every kind of proof, made once.
fn plans() -> &'static [Plan] {
    static PLANS: std::sync::OnceLock<Vec<Plan>> = std::sync::OnceLock::new();
    PLANS.get_or_init(|| {
        let mut plans = Vec::new();
        for shape in
            ["torus 3x3", "torus 4x4", "random-regular n=10,d=3,seed=3", "random-regular n=12,d=4,seed=1", "mesh 3x3"]
        {
            for (flow_control, vlans_max) in
                [(FlowControl::Pause, None), (FlowControl::Pause, Some(14)), (FlowControl::Pfc(2), None)]
            {
                let (family, sizes) = shape.split_once(' ').expect("a family and its sizes");
                let kind = Kind::parse(family, &[sizes.to_owned()]).expect("a kind");
                let topology = generate(&kind, &Options::default()).expect("a topology");
                for resilience in [Resilience::OneLink, Resilience::OneSwitch, Resilience::OneGroup] {
                    let policy = Policy { resilience, flow_control, vlans_max, ..Policy::default() };
                    let grouped = with_feeds(&topology);
                    let topology = if resilience.protects_groups() { &grouped } else { &topology };
                    plans.extend(planner::plan(topology, &policy, None));
                }
            }
        }
        plans
    })
}

#[test]
fn the_plans_have_every_kind_of_proof() {
    let overs = plans().iter().flat_map(|plan| &plan.failover.as_ref().expect("ready").switch_overs);
    let kind = |failure| match failure {
        Failure::Link(_) => "link",
        Failure::Switch(_) => "switch",
        Failure::Group(_) => "group",
    };
    let proofs: BTreeSet<(&str, &str)> = overs
        .map(|over| (kind(over.failure), over.proof))
        .map(|(of, proof)| {
            (
                of,
                match proof {
                    Proof::Unneeded => "unneeded",
                    Proof::Certificate => "certificate",
                    Proof::Numbering(_) => "numbering",
                    Proof::Drained(_) => "drained",
                },
            )
        })
        .collect();
    for of in ["link", "switch", "group"] {
        let has = |kind| proofs.contains(&(of, kind));
        assert!(["certificate", "numbering", "drained"].into_iter().all(has), "{proofs:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// One cable, switch or group at a time fails and heals, switches fall silent or deaf: nothing can ever freeze, and in the end
    /// all is as the plan says. A switch that comes back answers before its cables carry.
    #[test]
    fn nothing_freezes_and_all_comes_right(which in any::<prop::sample::Index>(), seed in any::<u64>()) {
        let plan = which.get(plans());
        let (mut standby, mut fabric) = (Standby::new(plan, HoldDown::new(HOLD), DRAIN).expect("ready"), Fabric::new(plan));
        let mut rng = Rng::new(seed);
        let home = fabric.pvid.clone();
        let failures: Vec<Failure> =
            plan.failover.as_ref().expect("ready").switch_overs.iter().map(|over| over.failure).collect();
        let fail = |fabric: &mut Fabric<'_>, failure| match failure {
            Failure::Link(link) => drop(fabric.dead.insert(link)),
            Failure::Switch(switch) => fabric.power_off(switch),
            Failure::Group(group) => fabric.fail_group(group),
        };
        let switches = plan.topology.switches().len();
        let mut deaf = BTreeSet::new();
        for _ in 0..400 {
            match rng.below(40) {
                0 => {
                    let back = std::mem::take(&mut fabric.isolated);
                    if !back.is_empty() {
                        fabric.silent.retain(|switch| !back.contains(switch));
                        deaf.retain(|switch| !back.contains(switch));
                        fabric.isolated = back;
                        fabric.turn(&mut standby, &deaf);
                    }
                    // Its cables carry one after the other, or all at once.
                    fabric.isolated.clear();
                    let slowly = rng.below(2) == 0;
                    while slowly && fabric.dead.pop_first().is_some() {
                        fabric.turn(&mut standby, &deaf);
                        prop_assert!(!fabric.may_freeze());
                    }
                    fabric.dead.clear();
                }
                1 if fabric.dead.is_empty() => fail(&mut fabric, failures[rng.below(failures.len())]),
                2 => {
                    fabric.silent.insert(SwitchId::new(rng.below(switches)));
                }
                3 => fabric.silent.clear(),
                4 => {
                    deaf.insert(SwitchId::new(rng.below(switches)));
                }
                5 => deaf.clear(),
                // Whoever carries things out is killed, and starts again.
                6 if fabric.silent.is_empty() => {
                    standby = Standby::new(plan, HoldDown::new(HOLD), DRAIN).expect("ready");
                    standby.take_up(&fabric.pvid, &fabric.dead).expect("what a standby left");
                }
                _ => {}
            }
            fabric.turn(&mut standby, &deaf);
            prop_assert!(!fabric.may_freeze());
        }
        fabric.silent.clear();
        fabric.turn(&mut standby, &BTreeSet::new());
        (fabric.isolated, fabric.dead) = (BTreeSet::new(), BTreeSet::new());
        let failure = failures[rng.below(failures.len())];
        fail(&mut fabric, failure);
        fabric.silent.clear();
        for dead in [true, false] {
            if !dead {
                (fabric.isolated, fabric.dead) = (BTreeSet::new(), BTreeSet::new());
            }
            for _ in 0..400 {
                fabric.turn(&mut standby, &BTreeSet::new());
            }
            let wanted = if dead { stored(plan, failure) } else { home.clone() };
            prop_assert_eq!(&fabric.pvid, &wanted);
        }
    }
}
