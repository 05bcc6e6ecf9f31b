//! Learned addresses as a state machine, over model switches that learn where they have no entry: random machines that come, move, go and
//! have the address of another, and edits that reach the switches in any order.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use fabric::{Attachment, HostId, Mac, Plan, Policy, PortId, Resilience, SwitchId, TopologyBuilder, VlanId, rng::Rng};
use planner::{StepLimit, plan_with};
use rollout::addresses::{
    AddressNotice, Addresses, LearnedPlan, LearnedRow, MOVES_MAX, MOVES_WITHIN, NothingToLearn, Places, TABLE_AGE_MAX,
    complete, parse_record, with_learned, with_most, write_record,
};
use switch_model::{Entries, Slot, SwitchConfig};

const MOST: usize = 3;
const AGE: Duration = Duration::from_secs(30);
/// How long the model switches keep what they have learned.
const AGEING: Duration = Duration::from_secs(300);

/// A ring of four switches and a chord, a plain host at each, and hypervisors at three of them, two at the first.
fn plan(seed: u64) -> Plan {
    let mut builder = TopologyBuilder::new();
    let ids: Vec<_> = (0..4).map(|n| builder.add_switch(&format!("s{n}"), Default::default()).unwrap()).collect();
    for (a, b) in [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)] {
        let a = builder.add_port(ids[a], &format!("to{b}")).unwrap();
        let b = builder.add_port(ids[b], &format!("{}", a.index())).unwrap();
        builder.add_link(a, b, 1_000_000_000).unwrap();
    }
    for (n, switch) in ids.iter().enumerate() {
        let port = builder.add_port(*switch, "host").unwrap();
        builder.add_host(&format!("h{n}"), Mac::local(n as u32 + 1), port, 1_000_000_000, None).unwrap();
    }
    for (n, switch) in [0, 1, 0, 2].into_iter().enumerate() {
        let port = builder.add_port(ids[switch], &format!("vm{n}")).unwrap();
        let mac = Mac::local(11 + n as u32);
        let host = builder.add_host(&format!("vmhost{n}"), mac, port, 1_000_000_000, None).unwrap();
        builder.set_learned(host, MOST).unwrap();
    }
    let policy = Policy { seed, vlans_max: (seed % 2 == 1).then_some(3), ..Policy::default() };
    plan_with(&builder.finish().unwrap(), &policy, None, &mut StepLimit::new(2)).unwrap()
}

/// What one switch does: static entries, and what it has learned where it has none.
#[derive(Clone, Default)]
struct Table {
    fixed: Entries,
    learned: BTreeMap<(VlanId, Mac), (Slot, Duration)>,
}

struct Model<'a> {
    plan: &'a Plan,
    tables: Vec<Table>,
}

impl<'a> Model<'a> {
    fn new(plan: &'a Plan) -> Self {
        let fixed = |device| SwitchConfig::of_intent(&plan.topology, device).entries;
        Self { plan, tables: plan.devices.iter().map(|d| Table { fixed: fixed(d), ..Table::default() }).collect() }
    }

    fn slot(&self, port: PortId) -> (SwitchId, Slot) {
        let switch = self.plan.topology.port(port).switch;
        (switch, Slot::new(port.index() - self.plan.topology.switch_ports(switch).start))
    }

    /// Sends a frame from behind a host's port; returns the hosts that receive it, once for each copy, and whether it was flooded by some
    /// switch. `None` as receiver is a broadcast.
    fn send(&mut self, now: Duration, from: HostId, source: Mac, to: Option<Mac>) -> (Vec<HostId>, bool) {
        let vlan = self.plan.assignment.broadcast(from);
        let (mut received, mut flooded) = (Vec::new(), false);
        let mut queue = vec![self.slot(self.plan.topology.host(from).port)];
        let mut visits = vec![0; self.tables.len()];
        while let Some((switch, by)) = queue.pop() {
            visits[switch.index()] += 1;
            assert!(visits[switch.index()] == 1, "a frame comes to a switch twice");
            let table = &mut self.tables[switch.index()];
            if !table.fixed.contains_key(&(vlan, source)) {
                table.learned.insert((vlan, source), (by, now));
            }
            let members = self.plan.devices[switch.index()].ports.iter().enumerate();
            let members: Vec<Slot> =
                members.filter(|(_, port)| port.is_member(vlan)).map(|(at, _)| Slot::new(at)).collect();
            let learned = |key| table.learned.get(&key).filter(|(_, at)| now - *at < AGEING).map(|(slot, _)| *slot);
            let out = to.and_then(|mac| table.fixed.get(&(vlan, mac)).copied().or_else(|| learned((vlan, mac))));
            flooded |= out.is_none() && to.is_some();
            let outs = out.map_or(members, |slot| vec![slot]);
            for slot in outs.into_iter().filter(|slot| *slot != by) {
                let port = PortId::new(self.plan.topology.switch_ports(switch).start + slot.index());
                match self.plan.topology.port(port).attachment {
                    Attachment::Host(host) => received.push(host),
                    Attachment::Link(link) => {
                        let ends = self.plan.topology.link(link);
                        queue.push(self.slot(if ends.a == port { ends.b } else { ends.a }));
                    }
                    Attachment::Nothing | Attachment::Member(_) => {}
                }
            }
        }
        let distinct: BTreeSet<HostId> = received.iter().copied().collect();
        assert_eq!(distinct.len(), received.len(), "a frame is received twice");
        (received, flooded)
    }

    /// The rows that are learned, of the VLANs that are asked for.
    fn rows(&self, now: Duration, vlans: &BTreeSet<VlanId>) -> Vec<Option<Vec<LearnedRow>>> {
        let of = |table: &Table| {
            let fresh = table.learned.iter().filter(|(key, (_, at))| {
                now - *at < AGEING && vlans.contains(&key.0) && !table.fixed.contains_key(key)
            });
            Some(fresh.map(|((vlan, mac), (at, _))| LearnedRow { vlan: *vlan, mac: *mac, at: *at }).collect())
        };
        self.tables.iter().map(of).collect()
    }

    /// One edit: an entry, or none any more.
    fn set(&mut self, switch: SwitchId, key: (VlanId, Mac), slot: Option<Slot>) {
        let table = &mut self.tables[switch.index()];
        table.learned.remove(&key);
        match slot {
            Some(slot) => _ = table.fixed.insert(key, slot),
            None => _ = table.fixed.remove(&key),
        }
    }
}

/// The edits of all switches toward what they are to hold, in any order.
fn edits(model: &Model<'_>, addresses: &Addresses, rng: &mut Rng) -> Vec<(SwitchId, (VlanId, Mac), Option<Slot>)> {
    let owned: BTreeSet<Mac> = model.plan.topology.all_owners().into_keys().collect();
    let mut edits = Vec::new();
    for switch in model.plan.topology.switch_ids() {
        let (fixed, wanted) = (&model.tables[switch.index()].fixed, addresses.entries(switch));
        let gone = fixed.keys().filter(|key| !owned.contains(&key.1) && !wanted.contains_key(key));
        edits.extend(gone.map(|key| (switch, *key, None)));
        let set = wanted.iter().filter(|(key, slot)| fixed.get(key) != Some(slot));
        edits.extend(set.map(|(key, slot)| (switch, *key, Some(*slot))));
    }
    for at in (1..edits.len()).rev() {
        edits.swap(at, rng.below(at + 1));
    }
    edits
}

/// One round of whoever watches; whether entries changed. Between edits machines go on sending, so the invariants of `Model::send` hold for every mixture.
fn round(
    now: Duration,
    model: &mut Model<'_>,
    addresses: &mut Addresses,
    rng: &mut Rng,
    traffic: &[(HostId, Mac)],
) -> bool {
    let rows = model.rows(now, addresses.places().vlans());
    let changed = addresses.handle_tables(now, &rows);
    let hosts: Vec<HostId> = model.plan.topology.host_ids().collect();
    for (switch, key, slot) in edits(model, addresses, rng) {
        model.set(switch, key, slot);
        if let Some((_, mac)) = traffic.get(rng.below(traffic.len().max(1))) {
            let from = hosts[rng.below(hosts.len())];
            model.send(now, from, model.plan.topology.host(from).mac, Some(*mac));
        }
    }
    for switch in model.plan.topology.switch_ids() {
        let stale = addresses.stale(switch);
        for (key, slot) in stale.iter().filter(|(key, _)| !addresses.entries(switch).contains_key(key)) {
            model.set(switch, *key, Some(*slot));
            model.set(switch, *key, None);
        }
        addresses.handle_removed(now, switch, &stale);
    }
    changed
}

fn ports(plan: &Plan) -> Vec<HostId> {
    plan.topology.learning_hosts().collect()
}

fn notices(addresses: &mut Addresses) -> Vec<AddressNotice> {
    std::iter::from_fn(|| addresses.poll_notice()).collect()
}

#[test]
fn whatever_machines_do_no_frame_loops_or_comes_twice_and_known_addresses_are_reached_without_floods() {
    let (mut moves, mut gone, mut full, mut checked, mut compared) = (0, 0, 0, 0, 0);
    for seed in 0..12 {
        let plan = plan(seed);
        let ports = ports(&plan);
        assert!(verify::check(&with_most(&plan)).is_deployable(), "{}", verify::check(&with_most(&plan)));
        let mut rng = Rng::new(seed);
        let mut model = Model::new(&plan);
        let mut addresses = Addresses::new(&plan, &BTreeMap::new(), AGE).unwrap();
        // Where each machine is, if it runs.
        let mut machines: Vec<(Mac, Option<HostId>)> = (0..8).map(|n| (Mac::local(100 + n), None)).collect();
        let mut now = Duration::from_secs(1);
        let mut history = Vec::new();
        for step in 0..150 {
            let at = rng.below(machines.len());
            let place = match rng.below(4) {
                0 => None,
                _ => Some(ports[rng.below(ports.len())]),
            };
            machines[at].1 = place;
            // A machine that stops is silent for longer than switches remember it; the others go on.
            let pauses = if place.is_none() { 8 } else { 3 };
            let mut quiet = 0;
            for round_of_step in 0.. {
                if round_of_step >= pauses && quiet >= 2 {
                    break;
                }
                assert!(round_of_step < 40, "it does not settle");
                now += if place.is_none() { Duration::from_secs(50) } else { TABLE_AGE_MAX };
                let running: Vec<(HostId, Mac)> =
                    machines.iter().filter_map(|(mac, host)| Some(((*host)?, *mac))).collect();
                for (host, mac) in &running {
                    model.send(now, *host, *mac, None);
                }
                let changed = round(now, &mut model, &mut addresses, &mut rng, &running);
                quiet = if changed { 0 } else { quiet + 1 };
            }
            let (known, what) = (addresses.known(), format!("seed {seed}, step {step}"));
            for notice in notices(&mut addresses) {
                history.push((step, notice.clone()));
                match notice {
                    AddressNotice::Moves { .. } => moves += 1,
                    AddressNotice::Gone(..) => gone += 1,
                    AddressNotice::Full(..) => full += 1,
                    AddressNotice::Appears(..) => {}
                    other => panic!("{what}: {other:?}"),
                }
            }
            for port in &ports {
                assert!(known.values().filter(|at| *at == port).count() <= MOST, "{what}");
            }
            let running = |mac: &Mac| machines.iter().find(|(own, _)| own == mac).and_then(|(_, host)| *host);
            for (mac, at) in &known {
                // One that was refused at a full port stays entered where it was.
                let Some(host) = running(mac).filter(|host| host == at) else { continue };
                checked += 1;
                for from in plan.topology.host_ids().filter(|from| *from != host) {
                    let (received, flooded) = model.send(now, from, plan.topology.host(from).mac, Some(*mac));
                    assert_eq!((received, flooded), (vec![host], false), "{what}: {mac} from {from:?}");
                }
            }
            for (mac, host) in machines.iter().filter_map(|(mac, host)| Some((*mac, (*host)?))) {
                let crowded = known.values().filter(|at| **at == host).count() == MOST;
                assert!(
                    known.get(&mac) == Some(&host) || crowded,
                    "{what}: {mac} is behind {host:?}: {known:?}: {:?}",
                    history
                        .iter()
                        .filter(|(_, notice)| format!("{notice:?}").contains(&mac.to_string()))
                        .collect::<Vec<_>>()
                );
            }
            // What switches hold is the plan with these addresses, and fit; as configurations that are read back as well.
            let judged = with_learned(&plan, &known);
            assert!(verify::check(&judged).is_deployable(), "{what}: {}", verify::check(&judged));
            let config = |(device, table): (&fabric::DeviceIntent, &Table)| {
                let config = SwitchConfig::of_intent(&plan.topology, device);
                Some(SwitchConfig { entries: table.fixed.clone(), ..config })
            };
            let mut held: Vec<Option<SwitchConfig>> = plan.devices.iter().zip(&model.tables).map(config).collect();
            complete(&plan, &known, &mut held);
            let settled = held.iter().zip(&judged.devices).filter(|_| !addresses.is_searching());
            for (config, device) in settled {
                compared += 1;
                let wanted = SwitchConfig::of_intent(&judged.topology, device);
                assert_eq!(config.as_ref().unwrap().entries, wanted.entries, "{what}");
            }
        }
    }
    assert!(
        moves > 300 && gone > 100 && full > 20 && checked > 2_000 && compared > 3_000,
        "{moves} {gone} {full} {checked} {compared}"
    );
}

/// A fabric in which nobody has anything, and the first two ports.
fn fresh(plan: &Plan) -> (Addresses, Model<'_>, [HostId; 2]) {
    let ports = ports(plan);
    (Addresses::new(plan, &BTreeMap::new(), AGE).unwrap(), Model::new(plan), [ports[0], ports[1]])
}

#[test]
fn an_address_that_moves_too_often_is_a_duplicate_and_its_entries_stay() {
    let plan = plan(0);
    let (mut addresses, mut model, [one, other]) = fresh(&plan);
    let (mac, mut rng, mut now) = (Mac::local(100), Rng::new(1), Duration::from_secs(1));
    let mut seen = Vec::new();
    for turn in 0..40 {
        let from = if turn % 2 == 0 { one } else { other };
        for _ in 0..2 {
            now += Duration::from_secs(1);
            model.send(now, from, mac, None);
            round(now, &mut model, &mut addresses, &mut rng, &[]);
            seen.extend(notices(&mut addresses));
        }
    }
    let moves = seen.iter().filter(|notice| matches!(notice, AddressNotice::Moves { .. })).count();
    assert_eq!(moves, MOVES_MAX - 1, "{seen:?}");
    assert!(matches!(seen.last(), Some(AddressNotice::Duplicate(..))), "{seen:?}");
    // Once it has been left alone for a while, it may move again.
    now += MOVES_WITHIN + AGEING;
    let at = addresses.known()[&mac];
    let away = if at == one { other } else { one };
    for _ in 0..3 {
        model.send(now, away, mac, None);
        round(now, &mut model, &mut addresses, &mut rng, &[]);
        now += TABLE_AGE_MAX;
    }
    assert_eq!(addresses.known().get(&mac), Some(&away));
}

#[test]
fn an_address_that_is_first_heard_at_two_ports_is_refused_until_one_is_left() {
    let plan = plan(0);
    let (mut addresses, mut model, [one, other]) = fresh(&plan);
    let (mac, mut rng, mut now) = (Mac::local(100), Rng::new(1), Duration::from_secs(1));
    for _ in 0..3 {
        now += TABLE_AGE_MAX;
        model.send(now, one, mac, None);
        model.send(now, other, mac, None);
        round(now, &mut model, &mut addresses, &mut rng, &[]);
        assert!(addresses.known().is_empty(), "{:?}", addresses.known());
    }
    assert_eq!(notices(&mut addresses), [AddressNotice::Twice(mac, [one, other].into())], "told once");
    for _ in 0..2 {
        now += TABLE_AGE_MAX;
        model.send(now, other, mac, None);
        round(now, &mut model, &mut addresses, &mut rng, &[]);
    }
    assert_eq!(addresses.known().get(&mac), Some(&other));
}

#[test]
fn an_address_of_the_plan_is_left_where_the_plan_has_it() {
    let plan = plan(0);
    let (mut addresses, mut model, [one, _]) = fresh(&plan);
    let owner = plan.topology.find_host("h3").unwrap();
    let mut rng = Rng::new(1);
    for now in 1..4 {
        model.send(Duration::from_secs(now), one, plan.topology.host(owner).mac, None);
        round(Duration::from_secs(now), &mut model, &mut addresses, &mut rng, &[]);
    }
    assert!(addresses.known().is_empty());
    let mac = plan.topology.host(owner).mac;
    match &notices(&mut addresses)[..] {
        [AddressNotice::Planned(told, at, hosts)] => {
            assert_eq!((*told, *at, hosts.contains(&one), hosts.contains(&owner)), (mac, owner, true, false));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_record_is_read_back_and_says_what_no_longer_fits() {
    let plan = plan(0);
    let ports = ports(&plan);
    let known: BTreeMap<Mac, HostId> = [(Mac::local(100), ports[0]), (Mac::local(101), ports[2])].into();
    let text = write_record(&plan.topology, &known);
    let record = parse_record(&plan.topology, &text).unwrap();
    assert_eq!((record.known, record.strange), (known, Vec::new()));
    let moved = text.replace("vmhost0", "h0");
    let record = parse_record(&plan.topology, &moved).unwrap();
    assert_eq!(record.strange, [(Mac::local(100), "h0".to_owned())], "it learns none");
    for (from, to) in [("\"version\":1", "\"version\":2"), ("02:00:00:00:00:64", "02:00:00:00:00:65"), ("mac", "nic")] {
        assert!(parse_record(&plan.topology, &text.replace(from, to)).is_err(), "{from}");
    }
    // A restart knows what was recorded, but for what ports have no room for.
    let many = (0..2 * MOST as u32).map(|n| (Mac::local(100 + n), ports[0])).collect();
    assert_eq!(Addresses::new(&plan, &many, AGE).unwrap().known().len(), MOST);
}

#[test]
fn a_plan_with_stored_answers_to_failures_is_fit_with_learned_addresses() {
    let plain = plan(0);
    let policy = Policy { resilience: Resilience::OneLink, ..plain.policy.clone() };
    let plan = plan_with(&plain.topology, &policy, None, &mut StepLimit::new(2)).unwrap();
    assert!(plan.failover.as_ref().is_some_and(|failover| failover.summary.fdb_entries_extra > 0));
    let ports = ports(&plan);
    for plan in [with_most(&plan), with_learned(&plan, &[(Mac::local(100), ports[0])].into())] {
        assert!(verify::check(&plan).is_deployable(), "{}", verify::check(&plan));
    }
    // Senders may be in any VLAN that the plan has stored: every planned entry is written, but for the port's own.
    let places = Places::of(&plan).unwrap();
    let known = [(Mac::local(100), ports[1])].into();
    let left: usize = plan.topology.switch_ids().map(|switch| places.left_out(switch, &known).len()).sum();
    assert!(left <= 1, "{left}");
}

#[test]
fn a_plan_without_learned_addresses_says_why() {
    let learning = plan(0);
    let mut builder = TopologyBuilder::new();
    let switch = builder.add_switch("s0", Default::default()).unwrap();
    let port = builder.add_port(switch, "p").unwrap();
    builder.add_host("h", Mac::local(1), port, 1_000_000_000, None).unwrap();
    let plain = plan_with(&builder.finish().unwrap(), &Policy::default(), None, &mut StepLimit::new(1)).unwrap();
    assert_eq!(Places::of(&plain).err(), Some(NothingToLearn::NoPort));
    for (policy, why) in [
        (Policy { tagging: fabric::Tagging::Pair, ..Policy::default() }, NothingToLearn::HostsChoose),
        (Policy { fdb: fabric::FdbMode::Learned, ..Policy::default() }, NothingToLearn::SwitchesLearn),
    ] {
        let plan = Plan { policy, ..learning.clone() };
        assert_eq!(Places::of(&plan).err(), Some(why));
    }
}

#[test]
fn a_deployment_writes_the_entries_that_are_kept_for_addresses_and_judges_them_all() {
    let mut rng = Rng::new(7);
    let mut left_out = 0;
    for seed in 0..20 {
        let plan = plan(seed);
        let ports = ports(&plan);
        let mut known: BTreeMap<Mac, HostId> =
            (0..8).map(|n| (Mac::local(100 + n), ports[rng.below(ports.len())])).collect();
        // The plan has this one elsewhere, and this port learns none.
        known.insert(Mac::local(1), ports[0]);
        known.insert(Mac::local(99), plan.topology.host_ids().next().unwrap());
        let addresses = Addresses::new(&plan, &known, AGE).unwrap();
        let learned = LearnedPlan::new(&plan, &known);
        assert_eq!(*learned.known(), addresses.known(), "seed {seed}");
        let goals = learned.goals();
        for (switch, goal) in plan.topology.switch_ids().zip(&goals) {
            let mut wanted = SwitchConfig::of_intent(&plan.topology, &plan.devices[switch.index()]);
            wanted.entries.extend(addresses.entries(switch));
            assert_eq!(*goal, wanted, "seed {seed}");
            left_out += addresses.places().left_out(switch, learned.known()).len();
        }
        assert_eq!(learned.as_held(&goals), with_learned(&plan, learned.known()), "seed {seed}");
        // An entry that leads elsewhere is the judge's to find.
        let (switch, key) = (goals.iter().enumerate())
            .find_map(|(at, goal)| Some((at, *goal.entries.keys().find(|key| learned.known().contains_key(&key.1))?)))
            .unwrap();
        let mut wrong = goals.clone();
        let slot = wrong[switch].entries[&key];
        let other = plan.devices[switch].ports.iter().enumerate().map(|(at, _)| Slot::new(at)).find(|at| *at != slot);
        wrong[switch].entries.insert(key, other.unwrap());
        assert!(!verify::check(&learned.as_held(&wrong)).is_deployable(), "seed {seed}");
    }
    assert!(left_out > 100, "{left_out}");
    let plain = LearnedPlan::new(&plan(0), &BTreeMap::new());
    assert_eq!(*plain.plan(), plan(0));
}

/// While a host has switched over, its switch has entries in every VLAN that it sends in, and learns nothing of it.
#[test]
fn addresses_behind_a_host_that_has_switched_over_do_not_age() {
    let plan = plan(0);
    let host = plan.topology.learning_hosts().next().unwrap();
    let switch = plan.topology.switch_of(host);
    let known = BTreeMap::from([(Mac::local(100), host)]);
    let mut addresses = Addresses::new(&plan, &known, AGE).unwrap();
    let pvids = |vlan: Option<VlanId>| vec![vlan; plan.topology.switch_ports(switch).len()];
    let nothing = vec![Some(Vec::new()); plan.topology.switches().len()];
    addresses.handle_pvids(switch, &pvids(None));
    for times in [0, 2, 4] {
        addresses.handle_tables(AGE * times, &nothing);
        assert_eq!(addresses.known(), known);
    }
    let own = addresses.places().vlan(host);
    addresses.handle_pvids(switch, &pvids(own));
    addresses.handle_tables(AGE * 5, &nothing);
    assert_eq!(addresses.known(), known);
    addresses.handle_tables(AGE * 6, &nothing);
    assert!(addresses.known().is_empty());
}
