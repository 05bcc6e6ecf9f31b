//! Real plans in every language, read back and judged; and texts that were tampered with, which the judge must find.

mod common;

use std::collections::BTreeSet;

use common::{PlanSpec, lag_topology, named_topology, parts, plan, read_all, render_all};
use dialects::{Difference, Memory, RenderRequest, Target, TargetChoice, TextFile, read_back};
use fabric::{
    Admin, EngineName, FdbMode, FindingKind, Flood, FlowControl, InBand, Lldp, Plan, Policy, PortRole, Severity,
    StormLimit, SwitchId, Tagging, Topology, TopologyBuilder, VlanId, rng::Rng,
};
use switch_model::{Phase, PortLearning, SwitchConfig, align, judge_flow_control};

/// Topologies and the engines that fit them.
const FABRICS: [(&str, &[EngineName]); 4] = [
    ("torus 4", &[EngineName::Balanced, EngineName::Updown, EngineName::Tree]),
    ("mesh 2x3", &[EngineName::Dor, EngineName::Updown]),
    ("fat-tree 2,4,2", &[EngineName::Clos, EngineName::Balanced]),
    ("random-regular n=6,d=3,seed=2", &[EngineName::Balanced]),
];

/// The flow control that a language has words for.
fn flow_control(target: Target) -> FlowControl {
    match target {
        Target::Sonic | Target::Eos => FlowControl::Pfc(2),
        Target::Ios => FlowControl::None,
        _ => FlowControl::Pause,
    }
}

#[test]
fn every_language_says_every_plan() {
    let mut judged = 0;
    for &target in Target::ALL {
        for (shape, engines) in FABRICS {
            let topology = named_topology(target, shape, 2);
            for &engine in engines {
                for &tagging in Tagging::ALL {
                    if tagging == Tagging::Switch && !target.has_hybrid_ports() {
                        continue;
                    }
                    for &fdb in FdbMode::ALL {
                        // Rules go by static entries alone.
                        if fdb == FdbMode::Learned && target == Target::OpenVswitch {
                            continue;
                        }
                        let spec = PlanSpec { engine, tagging, fdb, flow_control: flow_control(target) };
                        let Some(plan) = plan(&topology, spec) else { continue };
                        let label = format!("{target}, {shape}, {engine}, {tagging}, {fdb}");
                        let text = render_all(&plan, target);
                        let read = read_all(&plan, target, &text).unwrap_or_else(|error| panic!("{label}: {error}"));
                        let of_plan: Vec<String> =
                            verify::check(&plan).findings().iter().map(ToString::to_string).collect();
                        assert!(of_plan.iter().all(|finding| finding.starts_with("note")), "{label}: {of_plan:?}");
                        assert_eq!(judge(&plan, &read), of_plan, "{label}");
                        judged += 1;
                    }
                }
            }
        }
    }
    assert!(judged > 900, "{judged} plans");
}

/// A plan of four switches in a ring whose switches drop or limit floods, or not.
fn flooding(target: Target, flood: Flood, storm_limit: Option<StormLimit>) -> Plan {
    let tagging = if target.has_hybrid_ports() { Tagging::Switch } else { Tagging::Source };
    let policy = Policy { tagging, flow_control: flow_control(target), flood, storm_limit, ..Policy::default() };
    planner::plan(&named_topology(target, "torus 4", 1), &policy, None).expect("generic switches can")
}

/// A language that has words for it says which floods do not leave a port and how many may enter, in full and from plan to
/// plan; without such a line the judge finds what is read unfit; other languages refuse.
#[test]
fn floods_that_are_dropped_or_limited_are_said_or_refused() {
    let (mut said, mut refused, mut cut) = (0, 0, 0);
    let limits = [StormLimit::new(1), StormLimit::new(35)];
    for &target in Target::ALL {
        let forwarding = flooding(target, Flood::Forward, None);
        let plain = render_all(&forwarding, target);
        let can_block = |flood: Flood| flood.blocked().without(target.blocks_floods()).is_empty();
        let dropped =
            [Flood::Drop, Flood::DropAll].map(|flood| (flood, None, can_block(flood), "plan with --flood forward"));
        let limited =
            limits.map(|limit| (Flood::Forward, limit, target.has_storm_control(), "plan without --storm-control"));
        for (flood, limit, can, way_out) in dropped.into_iter().chain(limited) {
            let (plan, label) = (flooding(target, flood, limit), format!("{target}, {flood}, {limit:?}"));
            if !can {
                let named = TargetChoice::Named(target);
                let request = RenderRequest { plan: &plan, digest: "x", target: named, switch: None, since: None };
                let error = dialects::render(&request, &mut Memory::default()).expect_err(&label).to_string();
                assert!(error.ends_with(way_out), "{label}: {error}");
                refused += 1;
                continue;
            }
            let texts = render_all(&plan, target);
            let read = read_all(&plan, target, &texts).unwrap_or_else(|error| panic!("{label}: {error}"));
            assert_eq!(judge(&plan, &read), Vec::<String>::new(), "{label}");
            for (old, new) in [(&forwarding, &plan), (&plan, &forwarding)] {
                said += walk_phases(target, old, new, &label);
            }
            for (file, text) in parts(&texts, "s0") {
                let before = String::from_utf8(plain.files[&file].clone()).expect("text");
                let lines: Vec<&str> = text.lines().collect();
                for at in (0..lines.len()).filter(|at| !before.lines().any(|line| line == lines[*at])) {
                    let mut fewer = lines.clone();
                    fewer.remove(at);
                    let mut texts = texts.clone();
                    texts.files.insert(file.clone(), (fewer.join("\n") + "\n").into_bytes());
                    let found = read_all(&plan, target, &texts).map(|read| judge(&plan, &read));
                    assert!(found.is_err() || found.is_ok_and(|found| !found.is_empty()), "{label}: {:?}", lines[at]);
                    cut += 1;
                }
            }
        }
    }
    assert!(said > 100 && refused > 20 && cut > 60, "{said} states, {refused} refused, {cut} lines");
}

/// Every language that has words for LLDP turns it on, and reads whether it is on.
#[test]
fn lldp_is_turned_on_where_a_language_has_words_for_it() {
    for &target in Target::ALL {
        let plan = flooding(target, Flood::Forward, None);
        let texts = render_all(&plan, target);
        let read = read_all(&plan, target, &texts).unwrap_or_else(|error| panic!("{target}: {error}"));
        let wanted = target.has_lldp().then_some(Lldp::On);
        assert!(read.1.iter().all(|config| config.lldp == wanted), "{target}");
        let mut off = texts.clone();
        for text in off.files.values_mut() {
            let lines = String::from_utf8(text.clone()).expect("text");
            let lines = lines.lines().filter(|line| !line.contains("lldp"));
            *text = lines.map(|line| format!("{line}\n")).collect::<String>().into_bytes();
        }
        let read = read_all(&plan, target, &off).unwrap_or_else(|error| panic!("{target}: {error}"));
        assert!(read.1.iter().all(|config| config.lldp.is_none()), "{target}");
    }
}

/// A plan whose switches are managed over its cables, by a controller on the last port of the first switch.
fn in_band(topology: &Topology, vlan: u16) -> Topology {
    let mut builder = TopologyBuilder::of(topology);
    let first = SwitchId::new(0);
    // A free port of a name like the others'.
    let name = &topology.port(topology.port_ids(first).next().expect("a port")).name;
    let digits = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let controller = builder.add_port(first, &format!("{}20", &name[..digits])).expect("a port of such a name");
    builder.set_in_band(InBand { vlan: VlanId::new(vlan).expect("valid"), controller }).expect("a free port");
    builder.finish().expect("still a topology")
}

#[test]
fn every_language_says_the_management_vlan() {
    let mut said = 0;
    for &target in Target::ALL {
        for vlan in [1, 100] {
            let topology = in_band(&named_topology(target, "torus 4", 1), vlan);
            let tagging = if target.has_hybrid_ports() { Tagging::Switch } else { Tagging::Pair };
            let (engine, fdb) = (EngineName::Balanced, FdbMode::Minimal);
            let plan = plan(&topology, PlanSpec { engine, tagging, fdb, flow_control: flow_control(target) });
            let plan = plan.expect("a plan");
            let label = format!("{target}, VLAN {vlan}");
            let mut text = Memory::default();
            let named = TargetChoice::Named(target);
            let request =
                RenderRequest { plan: &plan, digest: "0123456789abcdef", target: named, switch: None, since: None };
            match dialects::render(&request, &mut text) {
                Ok(_) => said += 1,
                // Languages in which every port is in VLAN 1 until told otherwise have no words for a tree of it.
                Err(error) if vlan == 1 && error.to_string().contains("VLAN 1") => continue,
                Err(error) => panic!("{label}: {error}"),
            }
            let read = read_all(&plan, target, &text).unwrap_or_else(|error| panic!("{label}: {error}"));
            let of_plan: Vec<String> = verify::check(&plan).findings().iter().map(ToString::to_string).collect();
            assert!(of_plan.iter().all(|finding| finding.starts_with("note")), "{label}: {of_plan:?}");
            assert_eq!(judge(&plan, &read), of_plan, "{label}");
            let links = |plan: &Plan| topology.in_band().expect("in band").links(&topology, &plan.devices);
            assert_eq!(links(&read.0), links(&plan), "{label}");
            assert_eq!(links(&plan).len(), 3, "{label}: a tree of four switches");
        }
    }
    assert!(said > Target::ALL.len(), "some languages have words for VLAN 1: {said}");
}

/// What the judge finds in what was read, at its worst first.
fn judge(honest: &Plan, read: &(Plan, Vec<SwitchConfig>)) -> Vec<String> {
    let (plan, configs) = read;
    let settings =
        plan.topology.switches().iter().zip(configs).zip(&honest.devices).flat_map(|((switch, config), intent)| {
            judge_flow_control(&switch.name, config, &SwitchConfig::of_intent(&honest.topology, intent))
        });
    let mut found: Vec<String> = settings.map(|finding| finding.to_string()).collect();
    found.extend(verify::check(plan).findings().iter().map(ToString::to_string));
    found
}

/// A way to tamper with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tampering {
    Remove,
    OtherVlan,
    OtherMac,
    OtherPort,
}

#[test]
fn the_judge_finds_what_was_tampered_with() {
    let with_lags = Target::ALL.iter().filter(|target| target.has_lags());
    let with_lags = with_lags.map(|target| (*target, lag_topology(*target, [1, 2], "lag2", [5, 6])));
    let plain = Target::ALL.iter().map(|target| (*target, named_topology(*target, "torus 4", 1)));
    for (target, topology) in plain.chain(with_lags) {
        let tagging = if target.has_hybrid_ports() { Tagging::Switch } else { Tagging::Pair };
        let spec = PlanSpec {
            engine: EngineName::Balanced,
            tagging,
            fdb: FdbMode::Minimal,
            flow_control: flow_control(target),
        };
        let plan = plan(&topology, spec).expect("a plan");
        let texts = render_all(&plan, target);
        let (_, honest) = read_all(&plan, target, &texts).expect("honest");
        let mut found = BTreeSet::new();
        for (file, text) in parts(&texts, "s0") {
            let lines: Vec<&str> = text.lines().collect();
            for at in 0..lines.len() {
                for way in [Tampering::Remove, Tampering::OtherVlan, Tampering::OtherMac, Tampering::OtherPort] {
                    let Some(line) = tamper(&plan, target, way, lines[at]) else { continue };
                    let mut changed: Vec<&str> = lines.clone();
                    changed[at] = &line;
                    let mut texts = texts.clone();
                    texts.files.insert(file.clone(), (changed.join("\n") + "\n").into_bytes());
                    let label = format!("{target} {file}:{}: {:?} ▶ {line:?}", at + 1, lines[at]);
                    let Ok(read) = read_all(&plan, target, &texts) else {
                        found.insert((way, "refused"));
                        continue;
                    };
                    if matters(&honest[0], &read.1[0]) {
                        assert!(!judge(&plan, &read).is_empty(), "{label} is not found");
                        found.insert((way, "judged"));
                    }
                }
            }
        }
        // Languages that call LAGs otherwise than topologies may name no port of the plan but a member of one.
        let has_lags = topology.ports().iter().any(|port| fabric::LagNumber::of_port(&port.name).is_some());
        let ways = [Tampering::Remove, Tampering::OtherVlan, Tampering::OtherMac, Tampering::OtherPort];
        for way in ways.into_iter().filter(|way| !has_lags || *way != Tampering::OtherPort) {
            assert!(found.contains(&(way, "judged")), "{target}: {way:?} was never tried: {found:?}");
        }
    }
}

/// Whether two states of a switch differ in what the judge judges: everything but how a port that is down filters.
fn matters(honest: &SwitchConfig, read: &SwitchConfig) -> bool {
    let differs = |(a, b): (&switch_model::PortConfig, &switch_model::PortConfig)| {
        let in_service = a.admin == Admin::Up || b.admin == Admin::Up;
        (a.admin, a.pvid, &a.tagged, &a.untagged, &a.flow_control, a.lag)
            != (b.admin, b.pvid, &b.tagged, &b.untagged, &b.flow_control, b.lag)
            || (in_service && a.ingress_filter != b.ingress_filter)
    };
    honest.ports.iter().zip(&read.ports).any(differs)
        || honest.entries != read.entries
        || honest.spanning_tree != read.spanning_tree
}

/// A line with one thing wrong; none if it has no such thing.
fn tamper(plan: &Plan, target: Target, way: Tampering, line: &str) -> Option<String> {
    let swap = |from: String, to: String| line.contains(&from).then(|| line.replacen(&from, &to, 1));
    match way {
        // A JSON text without a line is no JSON, so the row is emptied instead of the line.
        Tampering::Remove if target == Target::Sonic => line.contains(": {\"").then(|| {
            let (key, _) = line.split_once(": {").expect("a row");
            format!("{}: {{}},", key.replace("\": ", "x\": "))
        }),
        Tampering::Remove => Some(String::new()),
        // A member's name holds the VLAN's, so one that stays in the table is needed.
        Tampering::OtherVlan if target == Target::Sonic => {
            let of = |tree: &fabric::VlanTree| format!("\"Vlan{}|", tree.vlan);
            let [first, second, ..] = &plan.trees[..] else { return None };
            swap(of(first), of(second))
        }
        Tampering::OtherVlan => {
            let numbers: Vec<String> = plan.trees.iter().map(|tree| tree.vlan.to_string()).collect();
            let is_vlan = |word: &&str| numbers.iter().any(|number| number == word);
            let separators = [' ', '=', ':', ',', '"', '|', '-'];
            let vlan_words = ["vlan", "vid", "pvid", "Vlan", "VLAN", "PVID", "Egress", "fixed"];
            if !vlan_words.iter().any(|word| line.contains(word)) {
                return None;
            }
            let place = line.rsplit(separators).find(is_vlan)?;
            let other = numbers.iter().find(|number| number.as_str() != place)?;
            let at = line.rfind(place)?;
            Some(format!("{}{other}{}", &line[..at], &line[at + place.len()..]))
        }
        Tampering::OtherMac => {
            let macs: Vec<String> = plan.topology.hosts().iter().map(|host| host.mac.to_string()).collect();
            let spell = |mac: &str| {
                let bare = mac.replace(':', "");
                let four = |sign: &str| format!("{}{sign}{}{sign}{}", &bare[..4], &bare[4..8], &bare[8..]);
                [mac.to_owned(), mac.replace(':', "-"), mac.to_uppercase(), four("-"), four(".")]
            };
            (0..macs.len()).find_map(|at| {
                let other = &macs[(at + 1) % macs.len()];
                spell(&macs[at]).into_iter().zip(spell(other)).find_map(|(from, to)| swap(from, to))
            })
        }
        Tampering::OtherPort => {
            let ports = &plan.devices[0].ports;
            let wired = ports.iter().filter(|port| port.role != PortRole::Unused);
            let names: Vec<&str> = wired.map(|port| plan.topology.port(port.port).name.as_str()).collect();
            let place = names.iter().find(|name| {
                line.split([' ', '=', ':', ',', '"', '|'])
                    .any(|word| word == **name || word.strip_suffix(".0") == Some(name))
            })?;
            let other = names.iter().find(|name| *name != place)?;
            let at = line.rfind(place)?;
            Some(format!("{}{other}{}", &line[..at], &line[at + place.len()..]))
        }
    }
}

#[test]
fn differences_lead_from_plan_to_plan_and_never_close_a_cycle() {
    let shapes = ["torus 4", "torus 3x3", "random-regular n=8,d=3,seed=5"];
    let mut states = 0;
    for &target in Target::ALL {
        let tagging = if target.has_hybrid_ports() { Tagging::Switch } else { Tagging::Source };
        for (shape, (old, new)) in shapes.into_iter().zip([
            (EngineName::Tree, EngineName::Balanced),
            (EngineName::Updown, EngineName::Balanced),
            (EngineName::Balanced, EngineName::Updown),
        ]) {
            let topology = named_topology(target, shape, 1);
            let spec = |engine| PlanSpec { engine, tagging, fdb: FdbMode::Minimal, flow_control: flow_control(target) };
            let (old, new) = (plan(&topology, spec(old)).expect("a plan"), plan(&topology, spec(new)).expect("a plan"));
            states += walk_phases(target, &old, &new, &format!("{target}, {shape}"));
        }
    }
    assert!(states > 500, "{states} states");
}

/// Ports that only the plan before names are shut and in no VLAN in the end, in every language; a switch that does not remove
/// a VLAN that is still a port's PVID is none the worse for it.
#[test]
fn ports_that_a_plan_names_no_more_go_out_of_service() {
    let mut parked = 0;
    for &target in Target::ALL {
        let tagging = if target.has_hybrid_ports() { Tagging::Switch } else { Tagging::Source };
        let spec = |engine| PlanSpec { engine, tagging, fdb: FdbMode::Minimal, flow_control: flow_control(target) };
        let made = |engine, hosts| plan(&named_topology(target, "torus 4", hosts), spec(engine)).expect("a plan");
        for (old, new) in [(EngineName::Balanced, EngineName::Tree), (EngineName::Tree, EngineName::Balanced)] {
            let (old, new) = (made(old, 2), made(new, 1));
            let mut memory = Memory::default();
            let request = RenderRequest {
                plan: &new,
                digest: "new",
                target: TargetChoice::Named(target),
                switch: Some("s2"),
                since: Some(Difference { plan: &old, digest: "old" }),
            };
            let parts = dialects::render(&request, &mut memory).unwrap_or_else(|error| panic!("{target}: {error}"));
            let state = |plan: &Plan| {
                let switch = plan.topology.find_switch("s2").expect("a switch of the plan");
                let mut config = SwitchConfig::of_intent(&plan.topology, &plan.devices[switch.index()]);
                config.lldp = config.lldp.filter(|_| target.has_lldp());
                if target.factory(vec![String::new()]).ports[0].learning == PortLearning::Always {
                    config.ports.iter_mut().for_each(|port| port.learning = PortLearning::Always);
                }
                config
            };
            let (mut now, goal) = (state(&old), state(&new));
            let own: Vec<String> = goal.ports.iter().map(|port| port.name.clone()).collect();
            let further = now.ports.iter().map(|port| port.name.clone()).filter(|name| !own.contains(name));
            let all: Vec<String> = own.iter().cloned().chain(further).collect();
            assert!(all.len() > own.len(), "{target}: the old plan names more");
            now = align(&now, &all);
            for part in &parts {
                let texts: Vec<(&str, String)> = (part.files.iter())
                    .map(|file| (file.as_str(), String::from_utf8(memory.files[file].clone()).expect("text")))
                    .collect();
                let files: Vec<TextFile<'_>> = texts.iter().map(|(name, text)| TextFile { name, text }).collect();
                now = read_back(target, &files, now)
                    .unwrap_or_else(|errors| panic!("{target}, {:?}: {errors:?}", part.phase));
            }
            assert_eq!(align(&now, &own), goal, "{target}");
            for port in now.ports.iter().filter(|port| !own.contains(&port.name)) {
                assert!(port.members().is_empty() && port.pvid.is_none(), "{target}: {port:?}");
                assert_eq!(port.admin, fabric::Admin::Down, "{target}: {port:?}");
                parked += 1;
            }
        }
    }
    assert!(parked > 20, "{parked} ports");
}

/// Applies the phases switch by switch, in an order drawn anew for each, judging every state on the way.
fn walk_phases(target: Target, old: &Plan, new: &Plan, label: &str) -> usize {
    let mut memory = Memory::default();
    let request = RenderRequest {
        plan: new,
        digest: "new",
        target: TargetChoice::Named(target),
        switch: None,
        since: Some(Difference { plan: old, digest: "old" }),
    };
    let parts = dialects::render(&request, &mut memory).unwrap_or_else(|error| panic!("{label}: {error}"));
    let topology = &new.topology;
    let configs = |plan: &Plan| -> Vec<SwitchConfig> {
        // What always learns does so whatever the plan says.
        let always = target.factory(vec![String::new()]).ports[0].learning == PortLearning::Always;
        let mut configs: Vec<SwitchConfig> =
            plan.devices.iter().map(|device| SwitchConfig::of_intent(&plan.topology, device)).collect();
        configs.iter_mut().for_each(|config| config.lldp = config.lldp.filter(|_| target.has_lldp()));
        let ports = configs.iter_mut().flat_map(|config| &mut config.ports);
        ports.filter(|_| always).for_each(|port| port.learning = PortLearning::Always);
        configs
    };
    let (mut now, goal) = (configs(old), configs(new));
    let mut rng = Rng::new(7);
    let mut states = 0;
    for phase in Phase::ALL {
        let mut due: Vec<_> = parts.iter().filter(|part| part.phase == Some(phase)).collect();
        rng.shuffle(&mut due);
        for part in due {
            let switch = topology.find_switch(&part.switch).expect("a switch of the plan");
            let texts: Vec<(&str, String)> = (part.files.iter())
                .map(|file| (file.as_str(), String::from_utf8(memory.files[file].clone()).expect("text")))
                .collect();
            let files: Vec<TextFile<'_>> = texts.iter().map(|(name, text)| TextFile { name, text }).collect();
            let config = now[switch.index()].clone();
            now[switch.index()] =
                read_back(target, &files, config).unwrap_or_else(|errors| panic!("{label}: {errors:?}"));
            states += 1;
            let devices: Vec<_> =
                now.iter().zip(&new.devices).map(|(now, wanted)| now.to_intent(topology, wanted)).collect();
            let live = verify::Live { topology, devices: &devices, tables: None, judged: &[] };
            let loops = |kind| matches!(kind, FindingKind::Loop | FindingKind::BroadcastLoop | FindingKind::NotATree);
            let report = verify::check_state(&live).report;
            let found: Vec<_> = report
                .findings()
                .iter()
                .filter(|finding| finding.severity == Severity::Fatal && loops(finding.kind))
                .collect();
            assert!(found.is_empty(), "{label}, {phase:?} on {}: {found:?}", part.switch);
        }
    }
    for (switch, (now, goal)) in now.iter().zip(&goal).enumerate() {
        let names: Vec<String> = goal.ports.iter().map(|port| port.name.clone()).collect();
        assert_eq!(&align(now, &names), goal, "{label}, switch {switch}");
    }
    states
}

/// Untagged frames have the priority that a port gives them, which is 0 where no language says otherwise.
#[test]
fn untagged_frames_of_a_later_lane_are_refused() {
    for target in [Target::Sonic, Target::Eos] {
        let spec = PlanSpec {
            engine: EngineName::Tree,
            tagging: Tagging::Switch,
            fdb: FdbMode::Minimal,
            flow_control: FlowControl::Pfc(2),
        };
        let mut plan = plan(&named_topology(target, "torus 4", 1), spec).expect("a single tree");
        let render = |plan: &Plan| {
            let named = TargetChoice::Named(target);
            let request = RenderRequest { plan, digest: "x", target: named, switch: None, since: None };
            dialects::render(&request, &mut Memory::default()).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!((plan.trees.len(), plan.trees[0].lane, render(&plan)), (1, 0, Ok(())));
        plan.trees[0].lane = 1;
        for device in &mut plan.devices {
            device.classes.swap(0, 1);
            device.ports.iter_mut().for_each(|port| port.untagged_class = u8::from(port.pvid.is_some()));
        }
        let error = render(&plan).expect_err("nobody can say it");
        assert!(error.contains("a priority for untagged frames") && error.ends_with("--tagging source"), "{error}");
    }
}

#[test]
fn unchanged_plans_have_no_difference() {
    let topology = named_topology(Target::Comware7, "torus 4", 1);
    let spec = PlanSpec {
        engine: EngineName::Balanced,
        tagging: Tagging::Switch,
        fdb: FdbMode::Minimal,
        flow_control: FlowControl::Pause,
    };
    let plan = plan(&topology, spec).expect("a plan");
    let request = RenderRequest {
        plan: &plan,
        digest: "x",
        target: TargetChoice::Named(Target::Comware7),
        switch: None,
        since: Some(Difference { plan: &plan, digest: "x" }),
    };
    let mut memory = Memory::default();
    assert_eq!(dialects::render(&request, &mut memory).expect("fine"), []);
    assert!(memory.files.is_empty());
}
