//! Every dialect reads what it writes, from any state to any other, and refuses what it cannot say.

use dialects::{
    Folder, Memory, RenderError, Target, TextFile, read_among_others, read_back, refuse_snooping, write_change,
    write_full, write_transition,
};
use fabric::{Admin, FlowControlMode, IngressFilter, Mac, SpanningTree, VlanId, VlanSet};
use proptest::prelude::*;
use switch_model::{LagMembership, PortConfig, PortLearning, Reach, Slot, Snooping, SwitchConfig, phases};

/// Port names of each language.
fn port_names(target: Target, count: usize) -> Vec<String> {
    let name = |number: usize| match target {
        Target::LinuxBridge | Target::Networkd | Target::Ifupdown2 | Target::OpenVswitch => format!("swp{number}"),
        Target::PowerConnect => format!("g{number}"),
        Target::CiscoSb => format!("gi{number}"),
        Target::EdgeCore => format!("1/{number}"),
        Target::Comware7 | Target::Comware5 | Target::Huawei => format!("GigabitEthernet1/0/{number}"),
        Target::Zyxel => number.to_string(),
        Target::TpLink => format!("1/0/{number}"),
        Target::Fastpath => format!("0/{number}"),
        Target::RouterOs => format!("ether{number}"),
        Target::Sonic | Target::Eos => format!("Ethernet{number}"),
        Target::Ios => format!("GigabitEthernet0/{number}"),
        Target::Junos => format!("ge-0/0/{number}"),
    };
    (1..=count).map(name).collect()
}

/// A VLAN of a plan: 2 to 4094, in clusters so that there are ranges.
fn vlan() -> impl Strategy<Value = VlanId> {
    prop_oneof![4 => 2_u16..14, 2 => 100_u16..108, 1 => 2_u16..4095].prop_map(|id| VlanId::new(id).expect("valid"))
}

/// What a port is told; how much of it a language can say is decided later.
#[derive(Clone, Debug)]
struct Wish {
    members: Vec<(VlanId, bool)>,
    pvid: Option<usize>,
    up: bool,
    flow_control: u8,
    learns: bool,
}

fn wish() -> impl Strategy<Value = Wish> {
    (
        proptest::collection::vec((vlan(), any::<bool>()), 0..12),
        proptest::option::of(0..12_usize),
        any::<bool>(),
        0..5_u8,
        any::<bool>(),
    )
        .prop_map(|(members, pvid, up, flow_control, learns)| Wish { members, pvid, up, flow_control, learns })
}

/// Physical ports of a switch.
const PORTS: usize = 6;
/// Its LAGs, in languages that have them.
const LAGS: [&str; 2] = ["lag1", "lag3"];
/// Most members of a LAG.
const MEMBERS_MAX: usize = 4;

/// What a switch is told: wishes for its ports and LAGs, entries, and the LAG that each port is to be a member of, if it is one.
#[derive(Clone, Debug)]
struct State {
    wishes: Vec<Wish>,
    entries: Vec<(usize, usize, u32)>,
    members: Vec<usize>,
}

fn state() -> impl Strategy<Value = State> {
    let ports = PORTS + LAGS.len();
    let entries = proptest::collection::vec((0..ports, 0..12_usize, 1..9_u32), 0..20);
    // Every third port is a member, and every third switch has no LAG at all.
    let members = prop_oneof![
        2 => proptest::collection::vec(0..3 * LAGS.len(), PORTS),
        1 => Just(vec![LAGS.len(); PORTS]),
    ];
    (proptest::collection::vec(wish(), ports), entries, members).prop_map(|(wishes, entries, members)| State {
        wishes,
        entries,
        members,
    })
}

/// Ports of each language, and LAGs where it has them.
fn all_names(target: Target) -> Vec<String> {
    let mut names = port_names(target, PORTS);
    names.extend(LAGS.iter().filter(|_| target.has_lags()).map(|lag| (*lag).to_owned()));
    names
}

/// The wishes as far as the language can say them.
fn config(target: Target, State { wishes, entries, members }: &State) -> SwitchConfig {
    let mut config = SwitchConfig::blank(all_names(target));
    for (port, lag) in members.iter().enumerate().filter(|(_, lag)| **lag < LAGS.len() && target.has_lags()) {
        let lag = Slot::new(PORTS + lag);
        if config.members_of(lag).count() < MEMBERS_MAX {
            config.ports[port].lag = LagMembership::Of(lag);
        }
    }
    let needs_members = matches!(target, Target::Ifupdown2 | Target::RouterOs);
    let empty = |lag: &Slot| needs_members && config.members_of(*lag).next().is_none();
    let absent: Vec<Slot> = (PORTS..config.ports.len()).map(Slot::new).filter(empty).collect();
    for (at, (port, wish)) in config.ports.iter_mut().zip(wishes).enumerate() {
        if absent.contains(&Slot::new(at)) {
            continue;
        }
        let is_member = port.lag != LagMembership::Alone;
        for &(vlan, tagged) in wish.members.iter().filter(|_| !is_member) {
            let single = !target.has_hybrid_ports() && !port.untagged.is_empty();
            if !port.is_member(vlan) {
                if tagged || single {
                    port.tagged.insert(vlan)
                } else {
                    port.untagged.insert(vlan)
                };
            }
        }
        let members: Vec<VlanId> = port.members().iter().collect();
        port.pvid = if target.has_hybrid_ports() {
            wish.pvid.and_then(|at| members.get(at % members.len().max(1)).copied())
        } else {
            port.untagged.iter().next()
        };
        port.admin = if wish.up { Admin::Up } else { Admin::Down };
        port.flow_control = match (wish.flow_control, target) {
            (1, Target::Sonic) | (2, Target::Sonic | Target::Eos) => FlowControlMode::Pfc { lanes: 3 },
            (3, Target::Sonic | Target::Eos) => FlowControlMode::Pfc { lanes: 8 },
            (1, Target::Ios) => FlowControlMode::Off,
            (1, _) => FlowControlMode::Pause,
            _ => FlowControlMode::Off,
        };
        // A port in no VLAN has nobody to learn of.
        port.learning = match (target, wish.learns && !port.members().is_empty()) {
            (Target::OpenVswitch, _) => PortLearning::Off,
            (Target::LinuxBridge | Target::Networkd | Target::Ifupdown2 | Target::RouterOs, true) => PortLearning::On,
            (Target::LinuxBridge | Target::Networkd | Target::Ifupdown2 | Target::RouterOs, false) => PortLearning::Off,
            _ => PortLearning::Always,
        };
    }
    // Members have the flow control of their LAG; a LAG without any has none.
    for lag in (PORTS..config.ports.len()).map(Slot::new) {
        let members: Vec<Slot> = config.members_of(lag).collect();
        if members.is_empty() {
            config.ports[lag.index()].flow_control = FlowControlMode::Off;
        }
        let mode = config.port(lag).flow_control.clone();
        members.iter().for_each(|member| config.ports[member.index()].flow_control = mode.clone());
    }
    for &(port, member, host) in entries.iter().filter(|(port, ..)| *port < config.ports.len()) {
        let members: Vec<VlanId> = config.ports[port].members().iter().collect();
        if let Some(vlan) = members.get(member % members.len().max(1)) {
            config.entries.entry((*vlan, Mac::local(host))).or_insert(Slot::new(port));
        }
    }
    config.vlans = config.memberships();
    config
}

fn texts(memory: &Memory) -> Vec<(String, String)> {
    let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).expect("text");
    memory.files.iter().map(|(name, bytes)| (name.clone(), text(bytes))).collect()
}

fn read(target: Target, memory: &Memory, start: SwitchConfig) -> SwitchConfig {
    let texts = texts(memory);
    let files: Vec<TextFile<'_>> = texts.iter().map(|(name, text)| TextFile { name, text }).collect();
    read_back(target, &files, start).unwrap_or_else(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        panic!("{target}: {}\n{texts:#?}", errors.join("\n"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_full_configuration_says_everything(wishes in state()) {
        for &target in Target::ALL {
            let goal = config(target, &wishes);
            let mut memory = Memory::default();
            write_full(target, &goal, &mut memory).expect("it can be said");
            let names = goal.ports.iter().map(|port| port.name.clone()).collect();
            let back = read(target, &memory, target.factory(names));
            prop_assert_eq!(&back, &goal, "{}\n{:#?}", target, texts(&memory));
        }
    }

    #[test]
    fn a_difference_leads_from_any_state_to_any_other(before in state(), after in state()) {
        for &target in Target::ALL {
            let (before, after) = (config(target, &before), config(target, &after));
            let mut full = Memory::default();
            write_full(target, &before, &mut full).expect("it can be said");
            let names = before.ports.iter().map(|port| port.name.clone()).collect();
            let start = read(target, &full, target.factory(names));
            let mut step = Memory::default();
            write_change(target, &before, &after, &mut step).expect("it can be said");
            let back = read(target, &step, start);
            prop_assert_eq!(&back, &after, "{}\n{:#?}\n{:#?}", target, before, texts(&step));
        }
    }

    /// Ports leave LAGs and VLANs before they join others, phase by phase.
    #[test]
    fn every_phase_of_a_change_is_read_back(before in state(), after in state()) {
        for &target in Target::ALL.iter().filter(|target| target.has_lags()) {
            let (mut now, after) = (config(target, &before), config(target, &after));
            for next in phases(&now.clone(), &after, &vec![Reach::Rim; after.ports.len()], &after.vlans) {
                let mut step = Memory::default();
                // On the way a port may be untagged in two VLANs, which some languages cannot say.
                if let Err(error) = write_change(target, &now, &next, &mut step) {
                    prop_assert!(!target.has_hybrid_ports(), "{}", error);
                    break;
                }
                // Where VLANs need no making, those without ports are none.
                let mut back = read(target, &step, now.clone());
                back.vlans.clone_from(&next.vlans);
                prop_assert_eq!(&back, &next, "{}\n{:#?}\n{:#?}", target, now, texts(&step));
                now = back;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// The way of a deployment that turns back: shut as it is, the new state, shut as it was, open.
    #[test]
    fn a_switch_gets_back_what_it_held_in_the_box(wishes in state()) {
        for target in [
            Target::LinuxBridge, Target::PowerConnect, Target::CiscoSb, Target::EdgeCore, Target::Comware7, Target::Comware5,
            Target::Huawei, Target::Zyxel, Target::TpLink, Target::Fastpath, Target::RouterOs,
        ] {
            let goal = config(target, &wishes);
            let factory = target.factory(goal.ports.iter().map(|port| port.name.clone()).collect());
            let shut = |config: &SwitchConfig| {
                let mut shut = config.clone();
                shut.ports.iter_mut().for_each(|port| port.admin = Admin::Down);
                shut
            };
            let mut now = factory.clone();
            for next in [shut(&factory), shut(&goal), goal.clone(), shut(&goal), shut(&factory), factory.clone()] {
                let mut step = Memory::default();
                write_transition(target, &now, &next, &mut step).expect("it can be said");
                let back = read(target, &step, now);
                prop_assert_eq!(&back, &next, "{}\n{:#?}", target, texts(&step));
                now = back;
            }
        }
    }
}

/// A port that is untagged in two VLANs.
fn hybrid(target: Target) -> SwitchConfig {
    let mut config = SwitchConfig::blank(port_names(target, 1));
    let both: VlanSet = "2-3".parse().expect("a set");
    let vlan = VlanId::new(2).expect("valid");
    config.ports[0] =
        PortConfig { pvid: Some(vlan), untagged: both.clone(), admin: Admin::Up, ..config.ports[0].clone() };
    config.vlans = both;
    config
}

fn refusal(target: Target, config: &SwitchConfig) -> Option<RenderError> {
    write_full(target, config, &mut Memory::default()).err()
}

#[test]
fn what_a_language_cannot_say_is_refused_with_a_way_out() {
    for &target in Target::ALL {
        let refused = refusal(target, &hybrid(target));
        assert_eq!(refused.is_none(), target.has_hybrid_ports(), "{target}");
        if let Some(error) = refused {
            assert!(error.to_string().ends_with("plan with --tagging source"), "{error}");
        }
        let mut config = SwitchConfig::blank(port_names(target, 1));
        config.ports[0].flow_control = FlowControlMode::Pfc { lanes: 2 };
        let refused = refusal(target, &config).map(|error| error.to_string());
        match target {
            Target::Sonic | Target::Eos => assert_eq!(refused, None),
            _ => assert!(refused.is_some_and(|error| error.contains("--flow-control pause")), "{target}"),
        }
        config.ports[0].flow_control = FlowControlMode::Pause;
        let refused = refusal(target, &config).map(|error| error.to_string());
        match target {
            Target::Sonic | Target::Ios => assert!(refused.is_some_and(|error| error.contains("--flow-control none"))),
            _ => assert_eq!(refused, None, "{target}"),
        }
        let mut config = SwitchConfig::blank(["lag1".to_owned()]);
        config.ports[0].admin = Admin::Up;
        let refused = refusal(target, &config).map(|error| error.to_string());
        match target {
            Target::EdgeCore | Target::Zyxel => {
                assert!(refused.is_some_and(|error| error.ends_with("without lags: in the topology")))
            }
            Target::Ifupdown2 | Target::RouterOs => {
                assert!(refused.is_some_and(|error| error.ends_with("under lags: in the topology")))
            }
            _ => assert_eq!(refused, None, "{target}"),
        }
    }
}

#[test]
fn vlan_1_is_refused_where_every_port_is_in_it() {
    for &target in Target::ALL {
        let mut config = SwitchConfig::blank(port_names(target, 1));
        config.ports[0].tagged = "1-2".parse().expect("a set");
        config.vlans = "2".parse().expect("a set");
        // RouterOS has no bridge at first, and puts each port of a new one into VLAN 1.
        let starts_empty = target.factory(port_names(target, 1)).memberships().is_empty();
        let takes_it = starts_empty && target != Target::RouterOs;
        assert_eq!(refusal(target, &config).is_none(), takes_it, "{target}");
        if takes_it {
            let mut memory = Memory::default();
            write_full(target, &config, &mut memory).expect("it is not refused");
            let now = read(target, &memory, target.factory(port_names(target, 1)));
            assert_eq!(now.ports[0].tagged, config.ports[0].tagged, "{target}");
        }
    }
}

#[test]
fn port_names_that_a_switch_does_not_have_are_refused() {
    for &target in Target::ALL {
        let config = SwitchConfig::blank(["no such port".to_owned()]);
        assert!(matches!(refusal(target, &config), Some(RenderError::PortName { .. })), "{target}");
    }
    let config = SwitchConfig::blank(["p1".to_owned()]);
    let error = refusal(Target::Zyxel, &config).expect("ports are numbers").to_string();
    assert!(error.contains("named like 1:"), "{error}");
}

/// Reads one text from the factory's state.
fn told(target: Target, text: &str) -> Result<SwitchConfig, Vec<String>> {
    let start = target.factory(port_names(target, 2));
    read_back(target, &[TextFile { name: "f", text }], start)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn set(text: &str) -> VlanSet {
    text.parse().expect("a set")
}

#[test]
fn a_port_that_nobody_told_anything_is_in_vlan_1() {
    for &target in Target::ALL {
        let names = port_names(target, 1);
        let factory = target.factory(names);
        if factory.memberships().is_empty() {
            continue;
        }
        let config = told(target, "").expect("an empty text is fine");
        assert_eq!((config.ports[0].pvid, &config.ports[0].untagged), (Some(VlanId::MIN), &set("1")), "{target}");
        assert_eq!((config.spanning_tree, config.ports[0].admin), (SpanningTree::On, Admin::Up), "{target}");
    }
}

#[test]
fn memberships_of_another_mode_do_not_count() {
    let text = "vlan database\nvlan 2-3\nexit\ninterface ethernet g1\n\
                switchport general allowed vlan add 2-3 untagged\nswitchport general pvid 2\nexit\n";
    let config = told(Target::PowerConnect, text).expect("valid");
    assert_eq!((config.ports[0].pvid, &config.ports[0].untagged), (Some(VlanId::MIN), &set("1")));
    let config = told(Target::PowerConnect, &text.replace("pvid 2", "pvid 2\nswitchport mode general")).expect("valid");
    assert_eq!((config.ports[0].pvid.map(VlanId::get), &config.ports[0].untagged), (Some(2), &set("1-3")));
    let text = "vlan 2 to 3\ninterface GigabitEthernet1/0/1\n port hybrid vlan 2 3 untagged\n quit\n";
    assert_eq!(told(Target::Comware7, text).expect("valid").ports[0].untagged, set("1"));
}

#[test]
fn a_trunk_allows_every_vlan_until_it_is_told_which() {
    let text = "vlan 2-3\ninterface Ethernet1\n switchport mode trunk\n exit\n";
    let config = told(Target::Eos, text).expect("valid");
    assert_eq!((&config.ports[0].tagged, &config.ports[0].untagged), (&set("2-3"), &set("1")));
    let config =
        told(Target::Eos, &text.replace("trunk\n", "trunk\n switchport trunk allowed vlan 3,9\n")).expect("valid");
    assert_eq!((&config.ports[0].tagged, config.ports[0].pvid), (&set("3"), None));
}

#[test]
fn the_kernel_forgets_a_pvid_that_is_said_without_the_flag() {
    let text = "ip -batch - <<'EOF'\nlink add name espalier type bridge vlan_filtering 1 vlan_default_pvid 0 \
                mcast_snooping 0\nEOF\n\
                bridge -batch - <<'EOF'\nvlan add dev swp1 vid 2 pvid untagged\nvlan add dev swp1 vid 2-3\nEOF\n";
    let config = told(Target::LinuxBridge, text).expect("valid");
    assert_eq!((config.ports[0].pvid, &config.ports[0].tagged), (None, &set("2-3")));
    for wrong in
        ["fdb replace 02:00:00:00:00:01 dev swp1 master vlan 2", "fdb add 02:00:00:00:00:01 dev swp1 static vlan 2"]
    {
        let text = text.replace("vlan add dev swp1 vid 2-3", wrong);
        assert!(told(Target::LinuxBridge, &text).is_err_and(|errors| errors[0].starts_with("f:6: without")), "{wrong}");
    }
}

/// Spanning tree in user space and multicast snooping, which no plan has.
#[test]
fn a_bridge_that_blocks_ports_or_picks_receivers_is_refused() {
    for target in [Target::LinuxBridge, Target::Networkd, Target::Ifupdown2, Target::RouterOs] {
        let mut memory = Memory::default();
        write_full(target, &hybrid(target), &mut memory).expect("it can be said");
        let texts = texts(&memory);
        let told = |change: &dyn Fn(&str) -> String| {
            let changed: Vec<(String, String)> =
                texts.iter().map(|(name, text)| (name.clone(), change(text))).collect();
            let files: Vec<TextFile<'_>> = changed.iter().map(|(name, text)| TextFile { name, text }).collect();
            read_back(target, &files, target.factory(port_names(target, 1)))
        };
        told(&str::to_owned).expect("as it was written");
        let mut tried = 0;
        for (off, on) in [
            ("stp_state 0", "stp_state 2"),
            ("mcast_snooping 0", "mcast_snooping 1"),
            (" mcast_snooping 0", ""),
            ("MulticastSnooping=no", "MulticastSnooping=yes"),
            ("bridge-mcsnoop 0", "bridge-mcsnoop 1"),
            ("igmp-snooping=no", "igmp-snooping=yes"),
        ] {
            if texts.iter().any(|(_, text)| text.contains(off)) {
                assert!(told(&|text: &str| text.replace(off, on)).is_err(), "{target}: {on}");
                tried += 1;
            }
        }
        assert!(tried > 0, "{target}: nothing says that it is off");
        assert!(!SNOOPING.iter().any(|(other, ..)| *other == target), "{target}");
    }
}

/// Of each command line: what its full configuration says of IGMP snooping, commands that turn IGMP and MLD snooping on, and
/// whether a switch may have IGMP snooping on from the factory.
const SNOOPING: [(Target, &str, [&str; 2], bool); 11] = [
    (Target::PowerConnect, "no ip igmp snooping", ["ip igmp snooping", "ipv6 mld snooping"], true),
    (Target::CiscoSb, "no ip igmp snooping", ["ip igmp snooping", "ipv6 mld snooping"], true),
    (Target::EdgeCore, "no ip igmp snooping", ["ip igmp snooping", "ipv6 mld snooping"], true),
    (Target::Comware7, "undo igmp-snooping", ["igmp-snooping", "mld-snooping"], false),
    (Target::Comware5, "undo igmp-snooping", ["igmp-snooping enable", "mld-snooping"], false),
    (Target::Huawei, "undo igmp-snooping enable", ["igmp-snooping enable", "mld-snooping enable"], false),
    (Target::TpLink, "no ip igmp snooping", ["ip igmp snooping", "ipv6 mld snooping"], false),
    (Target::Fastpath, "no set igmp", ["set igmp", "set mld"], true),
    (Target::Eos, "no ip igmp snooping", ["default ip igmp snooping", "mld snooping"], true),
    (Target::Ios, "no ip igmp snooping", ["ip igmp snooping", "ipv6 mld snooping"], true),
    (
        Target::Junos,
        "delete protocols igmp-snooping",
        ["set protocols igmp-snooping vlan default", "set protocols mld-snooping vlan all"],
        true,
    ),
];

#[test]
fn a_switch_that_snoops_is_refused_at_the_line_that_has_it_snoop() {
    for (target, off, on, from_the_factory) in SNOOPING {
        let mut goal = SwitchConfig { vlans: set("2-3"), ..SwitchConfig::blank(port_names(target, 2)) };
        goal.ports.iter_mut().for_each(|port| port.learning = PortLearning::Always);
        let mut memory = Memory::default();
        write_full(target, &goal, &mut memory).expect("it can be said");
        let text = texts(&memory).remove(0).1;
        let check = |text: &str| {
            let files = [TextFile { name: "f", text }];
            let read = read_among_others(target, &files, &target.factory(port_names(target, 2)));
            let (config, skipped) = read.unwrap_or_else(|errors| panic!("{target}: {errors:?} in\n{text}"));
            assert_eq!(skipped, [], "{target}: {text}");
            assert_eq!(SwitchConfig { snooping: goal.snooping.clone(), ..config.clone() }, goal, "{target}: {text}");
            refuse_snooping(target, &files, &config)
                .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(check(&text), Ok(()), "{target}");
        let off_line = text.lines().position(|line| line == off).unwrap_or_else(|| panic!("{target}: no {off:?}"));
        let with = |line: &str| text.replace(&format!("{off}\n"), line);
        let lost = check(&with(""));
        match from_the_factory {
            false => assert_eq!(lost, Ok(()), "{target}"),
            true => {
                let errors = lost.expect_err("nothing turns it off");
                let last = text.lines().count() - 1;
                assert!(errors[0].starts_with(&format!("f:{last}: nothing turns IGMP snooping off")), "{errors:?}");
                assert!(errors[0].contains(off), "{target}: {errors:?}");
            }
        }
        for (on, name) in on.into_iter().zip(["IGMP", "MLD"]) {
            // Comware 7 turns MLD snooping off a line later.
            let text = with(&format!("{off}\n{on}\n")).replace("undo mld-snooping\n", "");
            let errors = check(&text).expect_err(on);
            assert!(errors[0].starts_with(&format!("f:{}: turns {name} snooping on: ", off_line + 2)), "{errors:?}");
            assert!(errors[0].contains("reach only ports that asked for them; write \""), "{target}: {errors:?}");
            assert_eq!(errors.len(), 1, "{target}: {errors:?}");
            // What is turned off again later is off.
            if name == "IGMP" {
                assert_eq!(check(&with(&format!("{on}\n{off}\n"))), Ok(()), "{target}");
            }
        }
    }
}

/// From any snooping to any other, as a deployment turns it off and turns back.
#[test]
fn snooping_is_turned_off_and_on_again() {
    let states = [vec![], vec![Snooping::Igmp], vec![Snooping::Mld], Snooping::ALL.to_vec()];
    for (target, ..) in SNOOPING {
        for (before, after) in states.iter().flat_map(|before| states.iter().map(move |after| (before, after))) {
            let of = |snooping: &[Snooping]| SwitchConfig {
                snooping: snooping.iter().copied().collect(),
                ..SwitchConfig::blank(port_names(target, 1))
            };
            let (before, after) = (of(before), of(after));
            let mut memory = Memory::default();
            write_transition(target, &before, &after, &mut memory).expect("it has words");
            assert_eq!(read(target, &memory, before.clone()), after, "{target}: {:?}", texts(&memory));
            let says_nothing = texts(&memory).iter().all(|(_, text)| text.is_empty());
            assert_eq!(says_nothing, before == after, "{target}: {:?}", texts(&memory));
        }
    }
}

#[test]
fn a_routeros_port_is_in_the_vlan_of_its_pvid_by_itself() {
    let text = "/interface bridge add name=espalier protocol-mode=none vlan-filtering=yes\n\
                /interface bridge port\nadd bridge=espalier interface=ether1 pvid=7\nadd bridge=espalier interface=ether2\n\
                /interface bridge vlan\nadd bridge=espalier vlan-ids=7\n";
    let config = told(Target::RouterOs, text).expect("valid");
    assert_eq!((&config.ports[0].untagged, &config.ports[1].untagged), (&set("7"), &set("1")));
}

#[test]
fn ports_that_do_not_filter_at_ingress_say_so() {
    let text = "vlan 2\n fixed 1\n exit\n";
    let config = told(Target::Zyxel, text).expect("valid");
    assert!(config.ports.iter().all(|port| port.ingress_filter == IngressFilter::Off), "{config:?}");
    assert_eq!(config.spanning_tree, SpanningTree::On);
}

/// What a switch of two lossless classes is told: its file's name and text.
fn two_lanes(target: Target) -> (String, String) {
    let mut config = target.factory(port_names(target, 2));
    for port in &mut config.ports {
        (port.pvid, port.untagged, port.tagged) = (None, VlanSet::new(), set("2"));
        (port.admin, port.flow_control) = (Admin::Up, FlowControlMode::Pfc { lanes: 2 });
    }
    config.vlans = set("2");
    let mut memory = Memory::default();
    write_full(target, &config, &mut memory).expect("it can be said");
    texts(&memory).into_iter().find(|(name, _)| !name.ends_with(".txt")).expect("a file")
}

#[test]
fn priorities_that_are_not_kept_apart_are_refused() {
    let table: &[(Target, &str, &str, &str)] = &[
        (Target::Eos, "qos map cos 0 to traffic-class 0\n", "", "classes 1,1,2,3,4,5,6,7 do not keep"),
        (Target::Eos, "qos map cos 1 to traffic-class 1\n", "", "classes 0,0,2,3,4,5,6,7 do not keep"),
        (Target::Eos, "cos 7 to traffic-class 7", "cos 5 7 to traffic-class 1", "classes 0,1,2,3,4,1,6,1 do not keep"),
        (Target::Eos, "cos 1 to traffic-class 1", "cos 8 to traffic-class 1", "\"8\" is no number from 0 to 7"),
        (Target::Eos, " qos trust cos\n", "", "has lossless classes, and does not go by"),
        (Target::Eos, "trust cos", "trust dscp", "has lossless classes, and does not go by"),
        (Target::Eos, " priority-flow-control on\n", "", "in classes with gaps"),
        (Target::Eos, "priority 0 no-drop", "priority 0 drop", "in classes with gaps"),
        (Target::Sonic, "\"1\":\"1\"", "\"1\":\"0\"", "does not keep priorities 0 to 1 apart"),
        (Target::Sonic, "\"6\":\"6\"", "\"6\":\"1\"", "does not keep priorities 0 to 1 apart"),
        (Target::Sonic, ",\"7\":\"7\"", "", "does not keep priorities 0 to 1 apart"),
        (Target::Sonic, "\"2\":\"2\"", "\"2\":\"two\"", "a map leads \"2\" to \"two\""),
        (Target::Sonic, "\"espalier\": {", "\"other\": {", "does not keep priorities 0 to 1 apart"),
        (Target::Sonic, "_map\":\"espalier\"", "_map\":\"other\"", "does not keep priorities 0 to 1 apart"),
        (Target::Sonic, "\"dot1p_to_tc_map\"", "\"dscp_to_tc_map\"", "does not keep priorities 0 to 1 apart"),
        (Target::Sonic, "\"pfc_enable\"", "\"dscp_to_tc_map\":\"x\",\"pfc_enable\"", "dscp_to_tc_map may put frames"),
    ];
    for &(target, from, to, expected) in table {
        let (name, text) = two_lanes(target);
        let places: Vec<usize> = text.match_indices(from).map(|(at, _)| at).collect();
        assert!(!places.is_empty(), "{target}: nothing says {from:?}");
        for at in places {
            let changed = format!("{}{}", &text[..at], text[at..].replacen(from, to, 1));
            let start = target.factory(port_names(target, 2));
            let errors = read_back(target, &[TextFile { name: &name, text: &changed }], start).expect_err(expected);
            assert!(errors[0].message.contains(expected), "{target}: {from:?} ▶ {to:?}: {}", errors[0]);
            assert_eq!(errors[0].file, name);
            let line = changed.lines().nth(errors[0].line - 1).expect("a line of the text");
            assert!(target == Target::Eos || line.contains("pfc_enable"), "{}: {line:?}", errors[0]);
        }
    }
}

#[test]
fn priorities_without_a_lane_may_share_a_class() {
    let (eos, sonic) = (two_lanes(Target::Eos), two_lanes(Target::Sonic));
    for (target, (name, text), from, to) in [
        (Target::Eos, eos, "qos map cos 7 to traffic-class 7", "qos map cos 4 5 6 7 to traffic-class 2"),
        (Target::Sonic, sonic, "\"7\":\"7\"", "\"7\":\"2\""),
    ] {
        let text = text.replace(from, to);
        let start = target.factory(port_names(target, 2));
        let config = read_back(target, &[TextFile { name: &name, text: &text }], start).expect("lanes are apart");
        assert_eq!(config.ports[1].flow_control, FlowControlMode::Pfc { lanes: 2 }, "{target}");
    }
}

#[test]
fn a_port_keeps_no_classes_for_later() {
    let (name, text) = two_lanes(Target::Eos);
    let end = |lines: &str| {
        let text = format!("{text}interface Ethernet1\n{lines} exit\n");
        let start = Target::Eos.factory(port_names(Target::Eos, 2));
        read_back(Target::Eos, &[TextFile { name: &name, text: &text }], start)
            .map(|mut c| c.ports.remove(0).flow_control)
    };
    assert!(end(" no priority-flow-control\n").is_err());
    let off = " priority-flow-control priority 0 drop\n no priority-flow-control priority 1 no-drop\n";
    assert_eq!(end(&format!(" no priority-flow-control\n{off}")), Ok(FlowControlMode::Off));
}

#[test]
fn errors_name_file_line_and_reason() {
    let table: &[(Target, &str, &str)] = &[
        (Target::PowerConnect, "! x\ninterface ethernet g9\n", "f:2: the switch has no port g9; names like it: g1, g2"),
        (
            Target::PowerConnect,
            "interface ethernet g1\nswitchport general pvid 7\n",
            "f:2: VLAN 7 does not exist here: nothing above makes it",
        ),
        (Target::CiscoSb, "\nvlan datebase\n", "f:2: \"vlan datebase\" is no command that this reader knows"),
        (Target::Comware7, "vlan 4095\n", "f:1: 4095 is not a VLAN id: they run from 1 to 4094"),
        (
            Target::Huawei,
            "vlan batch 2\nmac-address static 0200-0000-001 GigabitEthernet1/0/1 vlan 2\n",
            "f:2: \"0200-0000-001\" is not an Ethernet address: write six hexadecimal octets, such as 02:00:00:00:00:01",
        ),
        (Target::Zyxel, "vlan 2\n fixed 1-9\n", "f:2: the switch has no port 3; names like it: 1, 2"),
        (Target::Fastpath, "vlan 2\n", "f:1: \"vlan 2\" is no command that this reader knows"),
        (
            Target::EdgeCore,
            "vlan database\n vlan 2 media ethernet\nexit\nmac-address-table static 02-00-00-00-00-01 interface ethernet 1/1 vlan 2\n",
            "f:4: port 1/1 is no member of VLAN 2, so it can hold no address there",
        ),
        (
            Target::RouterOs,
            "/interface bridge port add bridge=espalier interface=ether1 colour=red\n",
            "f:1: colour=red is not understood",
        ),
        (Target::Sonic, "{\"VLAN\": {\n\"Vlan2\": {}}}\n", "f:2: VLAN|Vlan2 lacks vlanid"),
        (Target::Sonic, "{\n\"VLAN\"", "f:2: not JSON: EOF while parsing an object at line 2 column 6"),
        (Target::OpenVswitch, "ip link set dev swp9 up\n", "f:1: the switch has no port swp9"),
        (Target::LinuxBridge, "ip -batch - <<'EOF'\n", "f:1: the batch has no EOF"),
        (
            Target::Ifupdown2,
            "auto swp1\niface swp1\n bridge-colour red\n",
            "espalier.intf:3: \"bridge-colour red\" is no command that this reader knows",
        ),
        (
            Target::Junos,
            "set vlans espalier-2 vlan-id 2\n\nset vlans espalier-3 switch-options interface ge-0/0/1.0 static-mac 02:00:00:00:00:01\n",
            "f:3: there is no VLAN called espalier-3",
        ),
    ];
    for &(target, text, expected) in table {
        let file = match target {
            Target::Sonic => "f.json",
            Target::Ifupdown2 => "espalier.intf",
            _ => "f",
        };
        let start = target.factory(port_names(target, 2));
        let errors = read_back(target, &[TextFile { name: file, text }], start).expect_err(expected);
        assert_eq!(errors[0].to_string().replace("f.json", "f"), expected, "{target}");
    }
}

#[test]
fn errors_of_json_are_not_those_of_the_text_beside_it() {
    let files = [TextFile { name: "s.txt", text: "what it is\n" }, TextFile { name: "s.json", text: "{\n\"x\": 1}\n" }];
    let errors = read_back(Target::Sonic, &files, Target::Sonic.factory(Vec::new())).expect_err("x is no table");
    assert_eq!(errors[0].to_string(), "s.json:2: x is no table");
}

#[test]
fn a_folder_in_memory_wants_a_file_first() {
    let mut memory = Memory::default();
    assert!(std::io::Write::write(&mut memory, b"x").is_err());
    memory.begin("f").expect("memory");
    assert!(std::io::Write::write(&mut memory, b"x").is_ok());
}

/// Lines of others among those of a rendered file, in every language that can leave a line out: they are skipped and told, and
/// the rest is read as it would be without them.
#[test]
fn lines_of_others_are_skipped_and_told() {
    // Text, and how many runs of lines are told; those about a port outside the plan name it.
    let view = "stp region-configuration\n instance 1 vlan 2 to 9\n quit\nvoice vlan mac-address 0001-e300-0000\n\
        interface GigabitEthernet9/0/9\n port link-type trunk\n quit\nheader motd %\nvlan 7\n%\n";
    let section =
        "spanning-tree mst configuration\n instance 1 vlan 2-9\nexit\nqos map vlan 7\nbanner motd ^C\nvlan 7\n^C\n";
    for &target in Target::ALL {
        let (lines, told, port) = match target {
            Target::Comware7 | Target::Comware5 | Target::Huawei => (view.to_owned(), 5, Some("GigabitEthernet9/0/9")),
            Target::PowerConnect => (format!("{section}interface ethernet g99\nshutdown\nexit\n"), 4, Some("g99")),
            Target::EdgeCore => (format!("{section}interface ethernet 9/9\n shutdown\nexit\n"), 4, Some("9/9")),
            Target::CiscoSb => {
                (format!("{section}interface GigabitEthernet99\n shutdown\nexit\n"), 4, Some("GigabitEthernet99"))
            }
            Target::Eos | Target::Ios => {
                (format!("{section}interface GigabitEthernet99\n shutdown\nexit\n"), 5, Some("GigabitEthernet99"))
            }
            Target::Zyxel => {
                ("snmp-server community vlan\ninterface port-channel 99\n  pvid 7\n  exit\n".to_owned(), 2, Some("99"))
            }
            Target::TpLink => (
                "ip dhcp snooping vlan 7\ninterface gigabitEthernet 9/9/9\n  shutdown\nexit\n".to_owned(),
                2,
                Some("9/9/9"),
            ),
            Target::Fastpath => {
                ("configure\nqos map vlan 7\ninterface 9/9\nvlan pvid 7\nexit\nexit\n".to_owned(), 2, Some("9/9"))
            }
            Target::RouterOs => ("/ip address add address=192.0.2.1/24 interface=ether1\n".to_owned(), 1, None),
            Target::Junos => (
                "set system host-name vlan\nset interfaces ge-9/9/9 unit 0 family ethernet-switching vlan members 7\n"
                    .to_owned(),
                2,
                None,
            ),
            Target::Sonic | Target::LinuxBridge | Target::Networkd | Target::Ifupdown2 | Target::OpenVswitch => {
                continue;
            }
        };
        let names = port_names(target, 3);
        let (mut plain, mut after) = (target.factory(names.clone()), target.factory(names.clone()));
        after.ports[1].admin = Admin::Down;
        let mut memory = Memory::default();
        write_transition(target, &plain, &after, &mut memory).expect("it has words");
        let own: String = memory.files.values().map(|text| String::from_utf8_lossy(text)).collect();
        plain = target.factory(names);
        for text in [format!("{lines}{own}"), format!("{own}{lines}")] {
            let files = [TextFile { name: "f", text: &text }];
            let read = read_among_others(target, &files, &plain);
            let (config, foreign) = read.unwrap_or_else(|errors| panic!("{target}: {errors:?} in\n{text}"));
            assert_eq!(config, after, "{target}: {text}");
            assert_eq!(foreign.len(), told, "{target}: {foreign:?} in\n{text}");
            assert_eq!(foreign.iter().find_map(|lines| lines.port.as_deref()), port, "{target}");
            for lines in &foreign {
                assert_eq!(text.lines().nth(lines.line - 1).map(str::trim), Some(lines.text.as_str()), "{target}");
            }
            assert!(
                read_back(target, &files, plain.clone()).is_err(),
                "{target}: the strict reader takes no such lines"
            );
        }
    }
}

#[test]
fn tables_and_ports_of_others_are_skipped_and_told() {
    let text = "{\n\"NTP_SERVER\": {\n\"192.0.2.1\": {}},\n\"VLAN\": {\n\"Vlan2\": {\"vlanid\": \"2\"}},\n\"VLAN_MEMBER\": {\n\
        \"Vlan2|Ethernet1\": {\"tagging_mode\": \"tagged\"},\n\"Vlan2|Ethernet99\": {\"tagging_mode\": \"tagged\"}},\n\
        \"PORT\": {\n\"Ethernet1\": {\"admin_status\": \"up\"},\n\"Ethernet99\": {\"admin_status\": \"up\"}}}\n";
    let files = [TextFile { name: "f.json", text }];
    let start = Target::Sonic.factory(port_names(Target::Sonic, 1));
    let (config, foreign) = read_among_others(Target::Sonic, &files, &start).expect("understood");
    assert_eq!((config.ports[0].tagged.to_string(), config.ports[0].admin), ("2".to_owned(), Admin::Up));
    let told: Vec<(usize, Option<&str>)> = foreign.iter().map(|lines| (lines.line, lines.port.as_deref())).collect();
    assert_eq!(told, [(2, None), (8, None), (11, Some("Ethernet99"))]);
    let wrong = text.replace("\"vlanid\": \"2\"", "\"vlanid\": \"3\"");
    let errors =
        read_among_others(Target::Sonic, &[TextFile { name: "f.json", text: &wrong }], &start).expect_err("an id");
    assert_eq!(errors[0].to_string(), "f.json:5: Vlan2 has the id 3");
}
