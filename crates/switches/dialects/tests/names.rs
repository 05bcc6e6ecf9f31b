//! When two spellings of a port's name mean one port: by vendors' examples, and over names that nobody thought of.

use std::collections::BTreeMap;

use dialects::{Target, canonical_port, near_ports, same_port};
use fabric::rng::Rng;

/// Spellings of one port each, by command line; no two lines of one command line are the same port.
const PORTS: &[(Option<Target>, &[&[&str]])] = &[
    (
        Some(Target::CiscoSb),
        &[
            &["gi1", "gigabitethernet1", "GigabitEthernet1", "GE1", "gigabitEthernet 1"],
            &["gi1/0/1", "GigabitEthernet1/0/1"],
            &["te1", "TenGigabitEthernet1", "tengigabitethernet 1"],
            &["fa1", "FastEthernet1"],
            &["Po1", "Port-Channel1", "lag1"],
            &["po3", "lag3"],
        ],
    ),
    (
        Some(Target::Huawei),
        &[
            &["GE1/0/1", "GigabitEthernet1/0/1", "gigabitethernet 1/0/1", "g1/0/1"],
            &["XGE1/0/1", "XGigabitEthernet1/0/1"],
            &["10GE1/0/1", "10ge 1/0/1"],
            &["40GE1/0/1"],
            &["Eth-Trunk1", "eth-trunk 1", "lag1"],
            &["Ethernet1", "Eth1"],
            &["MEth0/0/1"],
        ],
    ),
    (
        Some(Target::Comware7),
        &[
            &["GE1/0/1", "GigabitEthernet1/0/1", "GigabitEthernet 1/0/1"],
            &["XGE1/0/1", "Ten-GigabitEthernet1/0/1", "TenGigabitEthernet1/0/1"],
            &["FGE1/0/1", "FortyGigE1/0/1"],
            &["HGE1/0/1", "HundredGigE1/0/1"],
            &["Twenty-FiveGigE1/0/1", "WGE1/0/1"],
            &["M-GigabitEthernet1/0/1", "MGE1/0/1"],
            &["BAGG3", "Bridge-Aggregation3", "bridge-aggregation 3", "lag3"],
            &["XGE1/0/1:1", "Ten-GigabitEthernet1/0/1:1"],
        ],
    ),
    (
        Some(Target::Ios),
        &[
            &["Gi1/0/1", "GigabitEthernet1/0/1", "gi 1/0/1"],
            &["Te1/0/1", "TenGigabitEthernet1/0/1"],
            &["Tw1/0/1", "TwoGigabitEthernet1/0/1"],
            &["Twe1/0/1", "TwentyFiveGigE1/0/1"],
            &["Fo1/0/1", "FortyGigabitEthernet1/0/1"],
            &["Hu1/0/1", "HundredGigE1/0/1"],
            &["Eth1/1", "Ethernet1/1", "e1/1"],
            &["Po1", "Port-channel1", "lag1"],
            &["GigabitEthernet1/0/1.100", "Gi1/0/1.100"],
        ],
    ),
    (
        Some(Target::Eos),
        &[
            &["Et1", "Ethernet1", "ethernet 1"],
            &["Ma1", "Management1"],
            &["Et1/1", "Ethernet1/1"],
            &["Po3", "Port-Channel3", "lag3"],
            &["Po1000"],
        ],
    ),
    (Some(Target::EdgeCore), &[&["1/1", "Ethernet1/1", "Eth 1/ 1", "ethernet 1/1"], &["1/11"], &["1/10"]]),
    (Some(Target::TpLink), &[&["1/0/1", "gigabitEthernet 1/0/1", "Gi1/0/1", "ten-gigabitEthernet 1/0/1"]]),
    (Some(Target::Zyxel), &[&["1", "port-channel 1", "Port1", "interface port-channel 1"], &["11"]]),
    (
        Some(Target::PowerConnect),
        &[
            &["g1", "ethernet g1", "G1"],
            &["1/g1", "ethernet 1/g1"],
            &["port-channel 3", "ch3", "lag3"],
            &["xg1"],
            &["1/xg1"],
        ],
    ),
    (
        Some(Target::Fastpath),
        &[&["lag 3", "lag3"], &["0/1"], &["1/0/1", "1/0/ 1"], &["Gi1/0/1", "GigabitEthernet1/0/1"]],
    ),
    (Some(Target::Sonic), &[&["Ethernet0"], &["eth0"], &["Eth0"], &["Ethernet 0"]]),
    (Some(Target::Junos), &[&["ge-0/0/1"], &["xe-0/0/1"], &["et-0/0/1"], &["ge-0/0/1.0"], &["GE-0/0/1"]]),
    (Some(Target::LinuxBridge), &[&["eth0"], &["Eth0"], &["ETH0"]]),
    (Some(Target::RouterOs), &[&["ether1"], &["Ether1"], &["sfp-sfpplus1"]]),
    (
        None,
        &[
            &["Eth1/19", "Ethernet1/19", "ethernet 1/19"],
            &["gi1", "GigabitEthernet1"],
            &["TenGigabitEthernet 1/30", "Te1/30", "tengigabitethernet1/30"],
            &["fortyGigE 0/52", "Fo 0/52"],
            &["Port 1", "Port1"],
            &["port1"],
            &["Po1", "port-channel1", "Port-channel 1", "lag1"],
            &["PO0/1/0"],
            &["eth0"],
            &["Ethernet0"],
            &["Eth0"],
            &["ge-0/0/1"],
            &["GE0/0/1", "GigabitEthernet0/0/1"],
            &["10GE0/0/1"],
            &["40GE0/0/1"],
            &["1/1"],
            &["1"],
            &["p1"],
            &["P1"],
            &["ether1"],
            &["1/1/11:3"],
            &["1/1/11"],
        ],
    ),
];

#[test]
fn spellings_of_one_port_are_one_and_those_of_two_are_two() {
    for (target, ports) in PORTS {
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        for (index, spellings) in ports.iter().enumerate() {
            for name in *spellings {
                let before = names.insert(canonical_port(*target, name), index);
                assert!(before.is_none_or(|before| before == index), "{target:?}: {name} is another port's name");
                assert!(same_port(*target, spellings[0], name), "{target:?}: {} and {name}", spellings[0]);
            }
        }
        assert_eq!(names.len(), ports.len(), "{target:?}");
    }
}

/// Names of a switch as its vendor makes them: a chassis of some kinds of port, numbered in one way.
fn chassis(rng: &mut Rng) -> Vec<String> {
    const KINDS: &[&[&str]] = &[
        &["GigabitEthernet", "TenGigabitEthernet", "TwentyFiveGigE", "FortyGigabitEthernet", "Port-channel"],
        &["gi", "te", "po", "fa"],
        &["GE", "10GE", "25GE", "40GE", "100GE", "Eth-Trunk", "MEth"],
        &["GigabitEthernet", "XGigabitEthernet", "40GE", "Ethernet", "MultiGE"],
        &["GigabitEthernet", "Ten-GigabitEthernet", "FortyGigE", "HundredGigE", "M-GigabitEthernet"],
        &["Ethernet", "Management", "Port-Channel"],
        &["Ethernet", "eth", "PortChannel", "Loopback"],
        &["ge-", "xe-", "et-", "ae"],
        &["swp", "eth", "bond", "vlan"],
        &["ether", "sfp", "sfp-sfpplus", "qsfpplus1-"],
        &["g", "xg", "ch"],
        &["Port ", "Trunk "],
        &[""],
    ];
    let kinds = KINDS[rng.below(KINDS.len())];
    let depth = 1 + rng.below(3);
    let mut names = Vec::new();
    for kind in kinds {
        for port in 0..1 + rng.below(12) {
            let path: Vec<String> = (1..depth).map(|_| rng.below(2).to_string()).collect();
            let alone = ["eth", "Loopback", "bond", "vlan"].contains(kind);
            let path = if alone { &[] } else { path.as_slice() };
            let number = [path, &[port.to_string()]].concat().join("/");
            names.push(format!("{kind}{number}"));
        }
    }
    names.sort();
    names.dedup();
    names
}

fn targets() -> impl Iterator<Item = Option<Target>> {
    std::iter::once(None).chain(Target::ALL.iter().copied().map(Some))
}

/// The command lines that a chassis of these kinds may have; numbers alone are ports where numbers alone name them.
fn speaks(target: Option<Target>, names: &[String]) -> bool {
    let begins = |kind: &str| names.iter().any(|name| name.starts_with(kind));
    match target {
        Some(Target::EdgeCore | Target::Zyxel | Target::TpLink) => begins("0") || begins("1"),
        Some(Target::PowerConnect) => begins("xg"),
        // A SONiC switch's and a Linux machine's names count as they stand.
        Some(Target::Ios | Target::Eos | Target::CiscoSb | Target::Comware7 | Target::Comware5 | Target::Huawei) => {
            !(begins("eth") || begins("Trunk") || begins("ge-"))
        }
        _ => true,
    }
}

#[test]
fn no_two_ports_of_a_switch_become_one() {
    for seed in 0..2_000 {
        let names = chassis(&mut Rng::new(seed));
        for target in targets().filter(|target| speaks(*target, &names)) {
            let mut seen: BTreeMap<String, &str> = BTreeMap::new();
            for name in &names {
                if let Some(other) = seen.insert(canonical_port(target, name), name) {
                    panic!("seed {seed}, {target:?}: {name} and {other} become one port");
                }
            }
        }
    }
}

/// Reflexive, symmetric and transitive by the canonical form, if that is its own.
#[test]
fn a_canonical_form_is_its_own() {
    const PIECES: &[&str] = &[
        "Gi",
        "gigabitEthernet",
        "10",
        "GE",
        "X",
        "Ten-",
        "Eth",
        "Port",
        "-channel",
        " ",
        "  ",
        "/",
        ":",
        ".",
        "0",
        "1",
        "19",
        "g",
        "ethernet",
        "interface",
        "\u{212a}",
        "\u{130}",
        "é",
        "-",
        "_",
        "\t",
        "",
    ];
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed);
        let name: String = (0..rng.below(7)).map(|_| PIECES[rng.below(PIECES.len())]).collect();
        for target in targets() {
            let canonical = canonical_port(target, &name);
            assert_eq!(canonical_port(target, &canonical), canonical, "seed {seed}, {target:?}: {name:?}");
            assert!(same_port(target, &name, &canonical) && same_port(target, &canonical, &name), "seed {seed}");
        }
    }
}

#[test]
fn near_names_are_offered_best_first() {
    let known: Vec<String> = (1..=28).map(|number| format!("GigabitEthernet1/0/{number}")).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    assert_eq!(near_ports("Gi1/0/2", &known)[0], "GigabitEthernet1/0/2");
    assert_eq!(near_ports("1/0/7", &known)[0], "GigabitEthernet1/0/7");
    assert_eq!(near_ports("GigabitEthernt1/0/28", &known)[0], "GigabitEthernet1/0/28");
    assert_eq!(near_ports("swp07", &["Port6", "Port7", "Port17"]), ["Port7"]);
    assert_eq!(near_ports("uplink", &known), Vec::<String>::new());
    assert!(near_ports("GigabitEthernet1/0/99", &known).len() == 4);
    let endless = "x".repeat(1 << 20);
    assert_eq!(near_ports(&endless, &["p1"]), Vec::<String>::new());
}
