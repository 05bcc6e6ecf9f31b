use super::{super::language::language, *};
use switch_model::{Slot, Snooping};

fn read(target: Target, text: &str, ports: &[&str]) -> Result<Running, String> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let names: Vec<String> = ports.iter().map(|name| (*name).to_owned()).collect();
    read_running(language(target).expect("spoken"), &lines, &names)
}

#[test]
fn comware_shows_much_that_is_no_business_of_ours() {
    let text = "#\n version 7.1.070, Release 3507P09\n#\n sysname sw1\n#\n irf mac-address persistent timer\n#\nvlan 1\n#\n\
        vlan 2 to 3\n#\nvlan 4093\n name esp-3-0000000a-0000000b\n#\n undo stp global enable\n#\n\
        interface NULL0\n#\ninterface Vlan-interface1\n ip address dhcp-alloc\n#\n\
        interface GigabitEthernet1/0/1\n port link-mode bridge\n port link-type hybrid\n undo port hybrid vlan 1\n \
        port hybrid vlan 2 to 3 untagged\n port hybrid pvid vlan 2\n mac-address static 0200-0000-0001 vlan 3\n#\n\
        interface GigabitEthernet1/0/2\n port link-mode bridge\n port access vlan 2\n#\nline vty 0 63\n authentication-mode scheme\n#\nreturn\n";
    let running = read(Target::Comware7, text, &["GigabitEthernet1/0/1"]).expect("understood");
    let config = &running.config;
    assert_eq!((config.ports.len(), config.entries.len()), (2, 1));
    assert_eq!(config.ports[1].name, "GigabitEthernet1/0/2");
    assert_eq!((config.vlans.to_string(), config.ports[0].untagged.to_string()), ("2-3".into(), "2-3".into()));
    assert_eq!(config.spanning_tree, SpanningTree::Off);
    assert_eq!(running.mark.map(|mark| mark.generation), Some(3));
    assert_eq!(running.mark_vlans.len(), 1);
    let tunnel = text.replace(" port link-type hybrid\n", " port link-type dot1q-tunnel\n");
    let error = read(Target::Comware7, &tunnel, &["GigabitEthernet1/0/1"]).expect_err("nobody knows what it does");
    assert!(error.contains("port link-type dot1q-tunnel") && error.contains("GigabitEthernet1/0/1"), "{error}");
}

#[test]
fn fastpath_has_blocks_in_blocks() {
    let text = "!Current Configuration:\n!\nvlan database\nvlan 2-3\nvlan 4093\nvlan name 4093 \"esp-1-00000001-00000002\"\nexit\n\
        configure\nline console\nserial timeout 160\nexit\nno spanning-tree\ninterface 0/1\nmtu 9216\nvlan ingressfilter\nvlan pvid 2\n\
        vlan participation include 2-3\nexit\ninterface vlan 1\nrouting\nexit\nexit\n";
    let running = read(Target::Fastpath, text, &["0/1"]).expect("understood");
    assert_eq!(running.config.ports[0].untagged.to_string(), "1-3");
    assert_eq!((running.config.spanning_tree, running.mark.is_some()), (SpanningTree::Off, true));
    assert_eq!(running.config.ports[0].mtu_bytes, Some(9198));
}

#[test]
fn routeros_has_settings_of_all_kinds_on_a_line() {
    let text = "# 2026-01-01 by RouterOS 7.1\n/interface bridge add comment=\"a b=c\" name=espalier protocol-mode=none vlan-filtering=yes\n\
        /interface bridge add name=office\n/interface bridge port add bridge=office interface=ether9\n\
        /interface ethernet set [ find default-name=ether1 ] comment=\"up link\" disabled=yes l2mtu=1500\n\
        /interface bridge port add bridge=espalier interface=ether1 pvid=2 \\\n    trusted=yes\n\
        /interface bridge vlan add bridge=espalier vlan-ids=2\n/ip address add address=192.0.2.1/24 interface=ether9\n\
        /system note set note=esp-1-00000001-00000002 show-at-login=no\n";
    let running = read(Target::RouterOs, text, &["ether1"]).expect("understood");
    let port = &running.config.ports[0];
    assert_eq!((port.admin, port.untagged.to_string()), (fabric::Admin::Down, "2".into()));
    assert_eq!(port.mtu_bytes, Some(1496));
    assert!(running.mark.is_some());
    assert!(
        read(
            Target::RouterOs,
            &text.replace("bridge=espalier interface=ether1", "bridge=office interface=ether1"),
            &["ether1"]
        )
        .is_err()
    );
    let factory = read(Target::RouterOs, "# empty\n", &["ether1"]).expect("understood");
    assert_eq!(factory.config, Target::RouterOs.factory(vec!["ether1".into()]));
}

#[test]
fn routeros_shows_bondings_before_ports() {
    let text = "/interface bridge add name=espalier protocol-mode=none vlan-filtering=yes\n\
        /interface bonding add comment=\"to the core\" lacp-rate=1sec min-links=1 mode=802.3ad name=lag1 slaves=ether1,ether2\n\
        /interface bonding add mode=active-backup name=uplink slaves=ether8,ether9\n\
        /interface bridge port add bridge=espalier frame-types=admit-only-vlan-tagged interface=lag1\n\
        /interface bridge vlan add bridge=espalier tagged=lag1 vlan-ids=2\n";
    let names = ["ether1", "ether2", "lag1"];
    let running = read(Target::RouterOs, text, &names).expect("understood");
    let lag = Slot::new(2);
    assert_eq!(running.config.members_of(lag).map(Slot::index).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(running.config.port(lag).tagged.to_string(), "2");
    for (from, to) in
        [("802.3ad", "balance-xor"), ("name=lag1", "name=bond1"), ("lacp-rate=1sec", "link-monitoring=none")]
    {
        assert!(read(Target::RouterOs, &text.replacen(from, to, 1), &names).is_err(), "{to}");
    }
}

#[test]
fn powerconnects_show_ranges() {
    let text = "interface range ethernet g(1-3,24)\nswitchport mode general\nexit\nvlan database\nvlan 2-3,4093\nexit\n\
        interface range ethernet g(1-2)\nswitchport general allowed vlan add 2-3 untagged\nswitchport general pvid 2\nexit\n\
        interface range ethernet g(3,24)\nswitchport general allowed vlan add 2-3 tagged\nshutdown\nexit\n\
        interface vlan 4093\nname esp-1-00000001-00000002\nexit\ninterface vlan 2\n\
        bridge address 02:00:00:00:00:01 ethernet g2 permanent\nexit\nno spanning-tree\ninterface vlan 1\nip address 192.0.2.1 255.255.255.0\nexit\n";
    let running = read(Target::PowerConnect, text, &["g1", "g2", "g3"]).unwrap_or_else(|error| panic!("{error}"));
    let ports = &running.config.ports;
    assert_eq!((ports[0].untagged.to_string(), ports[1].pvid.map(|vlan| vlan.get())), ("1-3".into(), Some(2)));
    assert_eq!((ports[2].tagged.to_string(), ports[2].admin), ("2-3".into(), fabric::Admin::Down));
    assert_eq!((running.config.entries.len(), running.mark.is_some()), (1, true));
    let broken = text.replace("g(3,24)", "g(3;24)");
    let error = read(Target::PowerConnect, &broken, &["g1", "g2", "g3"]).expect_err("half a range");
    assert!(error.contains("g(3;24)"), "{error}");
}

/// A port that takes tagged frames alone has no PVID, and bears one all the same. The switch does not remove its VLAN.
#[test]
fn a_pvid_that_is_left_is_known() {
    let vlan = |id| VlanId::new(id).expect("in range");
    let check = |target: Target, (first, second): (&str, &str), text: &str| {
        let running = read(target, text, &[first]).unwrap_or_else(|error| panic!("{target}: {error}"));
        let borne = [(first.to_owned(), vlan(2)), (second.to_owned(), vlan(3))];
        assert_eq!(running.pvids, BTreeMap::from(borne), "{target}");
        let pvids: Vec<Option<VlanId>> = running.config.ports.iter().map(|port| port.pvid).collect();
        // The second port is none of the plan's, and in the way by its number.
        assert_eq!(pvids, [None, Some(vlan(3))], "{target}");
    };
    let general = "vlan database\nvlan 2-3\nexit\ninterface gi1\nswitchport mode general\nswitchport general pvid 2\n\
        switchport general acceptable-frame-type tagged-only\nexit\ninterface gi2\nswitchport mode general\n\
        switchport general pvid 3\nswitchport general acceptable-frame-type tagged-only\nexit\n";
    check(Target::CiscoSb, ("gi1", "gi2"), general);
    let older = general.replace("interface gi", "interface ethernet g");
    check(Target::PowerConnect, ("g1", "g2"), &older);
    let native = "vlan database\n vlan 2 media ethernet state active\n vlan 3 media ethernet state active\n!\n\
        interface ethernet 1/1\n switchport native vlan 2\n switchport acceptable-frame-types tagged\n!\n\
        interface ethernet 1/2\n switchport native vlan 3\n switchport acceptable-frame-types tagged\n!\n";
    check(Target::EdgeCore, ("1/1", "1/2"), native);
    let fastpath = "vlan database\nvlan 2-3\nexit\nconfigure\ninterface 0/1\nvlan pvid 2\nvlan acceptframe vlanonly\nexit\n\
        interface 0/2\nvlan pvid 3\nvlan acceptframe vlanonly\nexit\nexit\n";
    check(Target::Fastpath, ("0/1", "0/2"), fastpath);
}

#[test]
fn small_business_switches_show_long_names() {
    let text = "vlan database\nvlan 2-3,4093\nexit\nhostname sw1\nno spanning-tree\n\
        mac address-table static 02:00:00:00:00:02 vlan 3 interface gigabitethernet1 permanent\ninterface vlan 1\n ip address 192.0.2.1 255.255.255.0\n!\n\
        interface vlan 4093\n name esp-1-00000001-00000002\n!\ninterface gigabitethernet1\n switchport mode general\n \
        switchport general allowed vlan add 2-3 untagged\n!\nmac address-table static 02:00:00:00:00:01 vlan 2 interface gigabitethernet1 permanent\n";
    let running = read(Target::CiscoSb, text, &["gi1"]).expect("understood");
    assert_eq!((running.config.ports[0].untagged.to_string(), running.config.entries.len()), ("1-3".into(), 2));
    assert_eq!((running.config.vlans.to_string(), running.mark_vlans.len()), ("2-3".into(), 1));
}

/// A language, its configuration with `PORT` set up as VLAN 20 untagged and PVID, VLAN 10 tagged, and how the switch and the
/// plan spell the port.
struct Sample {
    target: Target,
    text: &'static str,
    shown: &'static str,
    planned: &'static str,
}

const SAMPLES: [Sample; 8] = [
    Sample {
        target: Target::CiscoSb,
        text: "vlan database\nvlan 10,20\nexit\ninterface PORT\n switchport mode general\n switchport general allowed vlan add 10 tagged\n \
            switchport general allowed vlan add 20 untagged\n switchport general pvid 20\n!\n",
        shown: "GigabitEthernet1",
        planned: "gi1",
    },
    Sample {
        target: Target::PowerConnect,
        text: "vlan database\nvlan 10,20\nexit\ninterface ethernet PORT\nswitchport mode general\nswitchport general allowed vlan add 10 tagged\n\
            switchport general allowed vlan add 20 untagged\nswitchport general pvid 20\nexit\n",
        shown: "G1",
        planned: "g1",
    },
    Sample {
        target: Target::EdgeCore,
        text: "vlan database\n VLAN 10 name \"a b\" media ethernet\n VLAN 20 media ethernet state active\n!\ninterface ethernet PORT\n \
            switchport allowed vlan add 10 tagged\n switchport allowed vlan add 20 untagged\n switchport native vlan 20\n!\n",
        shown: "1/1",
        planned: "1/1",
    },
    Sample {
        target: Target::Fastpath,
        text: "vlan database\nvlan 10,20\nvlan name 10 \"a b\"\nexit\nconfigure\ninterface PORT\nvlan pvid 20\nvlan participation auto 1\n\
            vlan participation include 10,20\nvlan tagging 10\nexit\nexit\n",
        shown: "0/1",
        planned: "0/1",
    },
    Sample {
        target: Target::Comware7,
        text: "#\nvlan 10\n#\nvlan 20\n#\ninterface PORT\n port link-mode bridge\n port link-type hybrid\n undo port hybrid vlan 1\n \
            port hybrid vlan 10 tagged\n port hybrid vlan 20 untagged\n port hybrid pvid vlan 20\n#\nreturn\n",
        shown: "Ten-GigabitEthernet1/0/1",
        planned: "XGE1/0/1",
    },
    Sample {
        target: Target::Comware5,
        text: "#\nvlan 10\n#\nvlan 20\n#\ninterface PORT\n port link-type hybrid\n undo port hybrid vlan 1\n \
            port hybrid vlan 10 tagged\n port hybrid vlan 20 untagged\n port hybrid pvid vlan 20\n#\nreturn\n",
        shown: "GigabitEthernet1/0/1",
        planned: "GE1/0/1",
    },
    Sample {
        target: Target::Huawei,
        text: "#\nvlan batch 10 20\n#\ninterface PORT\n port link-type hybrid\n port hybrid pvid vlan 20\n undo port hybrid vlan 1\n \
            port hybrid tagged vlan 10\n port hybrid untagged vlan 20\n#\nreturn\n",
        shown: "GE1/0/1",
        planned: "GigabitEthernet1/0/1",
    },
    Sample {
        target: Target::Huawei,
        text: "#\nvlan batch 10 20\n#\ninterface PORT\n port link-type hybrid\n port hybrid pvid vlan 20\n undo port hybrid vlan 1\n \
            port hybrid tagged vlan 10\n port hybrid untagged vlan 20\n#\nreturn\n",
        shown: "10GE1/0/1",
        planned: "10GE1/0/1",
    },
];

fn is_read(sample: &Sample, before: &str, after: &str) -> Result<Running, String> {
    let text = format!("{before}{}{after}", sample.text.replace("PORT", sample.shown));
    let running = read(sample.target, &text, &[sample.planned])?;
    let port = &running.config.ports[0];
    let vlans = |set: &VlanSet| set.iter().map(VlanId::get).filter(|id| *id != 1).collect::<Vec<_>>();
    let found = (port.name.as_str(), port.pvid.map(VlanId::get), vlans(&port.tagged), vlans(&port.untagged));
    assert_eq!(found, (sample.planned, Some(20), vec![10], vec![20]), "{}: {text}", sample.target);
    Ok(running)
}

#[test]
fn a_port_is_found_by_whatever_name_the_switch_shows() {
    for sample in &SAMPLES {
        let running = is_read(sample, "", "").unwrap_or_else(|error| panic!("{}: {error}", sample.target));
        let spelt = running.spelt.get(sample.planned).map(String::as_str);
        assert_eq!(spelt, Some(sample.shown).filter(|shown| *shown != sample.planned), "{}", sample.target);
        assert!(running.unmentioned.is_empty());
    }
    // A kind that a switch which shows all of its ports does not show is none of its kinds.
    let cloud = SAMPLES[7].text.replace("PORT", "10GE1/0/1");
    let error = read(Target::Huawei, &cloud, &["GigabitEthernet1/0/1"]).expect_err("a CloudEngine's port is 10GE");
    assert!(error.contains("no port GigabitEthernet1/0/1") && error.contains("10GE1/0/1"), "{error}");
    // One that shows changes alone may have it: it has to be asked.
    let small = SAMPLES[0].text.replace("PORT", "GigabitEthernet1");
    let running = read(Target::CiscoSb, &small, &["gi1", "gi2", "te1"]).expect("understood");
    assert_eq!(running.unmentioned, ["gi2", "te1"]);
}

/// Lines that no plan is about, as blocks before and behind what is.
const FOREIGN_VIEWS: &[&str] = &[
    "stp region-configuration\n region-name R1\n instance 1 vlan 1 to 4094\n active region-configuration\n#\n",
    "acl number 4000\n rule 5 permit vlan-id 10\n#\ntraffic classifier c1 operator and\n if-match vlan-id 20\n#\n",
    "qos map vlan 10\n#\nvoice vlan mac-address 0001-e300-0000 mask ffff-ff00-0000\n#\nmanagement-vlan 20\n#\n",
    "interface Vlanif10\n ip address 192.0.2.1 255.255.255.0\n vrrp vrid 1 virtual-ip 192.0.2.254\n shutdown\n#\n",
    "interface Vlan-interface20\n shutdown\n#\ninterface NULL0\n#\ninterface MEth0/0/1\n shutdown\n#\n",
    "vlan 30\n description port hybrid vlan 10 interface GE1/0/1\n name shutdown\n igmp-snooping enable\n#\n",
    "header shell information \"\ninterface 10GE1/0/1\n shutdown\n undo vlan batch 10\n\"\n#\n",
    "header motd %\nvlan 10\n undo vlan 20\n%\n#\n",
    "pki domain d\n#\n-----BEGIN CERTIFICATE-----\nvlan 10\ninterface GE1/0/1\n-----END CERTIFICATE-----\n#\n",
    "multicast-vlan 10\n subvlan 20\n vlan 10\n#\nospf 1\n area 0.0.0.0\n  network 192.0.2.0 0.0.0.255\n#\naaa\n local-user x\n#\n",
    "mac-address aging-time 600\nmac-address static 0200-0000-0009 Eth-Trunk7 vlan 10\n#\nobserve-port 1 interface 10GE1/0/40\n#\n",
    "interface 10GE1/0/24\n port link-type trunk\n port trunk allow-pass vlan 10 20\n port vlan-mapping vlan 10 map-vlan 20\n qinq vlan-translation enable\n#\n",
    "interface GE1/0/24\n port link-type dot1q-tunnel\n voice-vlan 30 enable\n shutdown\n#\n",
    "interface Eth-Trunk7\n port link-type trunk\n port trunk allow-pass vlan 30\n#\nuser-interface vty 0 4\n protocol inbound ssh\n#\n",
];
const FOREIGN_SECTIONS: &[&str] = &[
    "spanning-tree mst configuration\n instance 1 vlan 1-4094\n name R1\nexit\n!\n",
    "voice vlan id 20\nvoice vlan oui-table add 0001e3 Siemens\nqos map vlan 10\nip dhcp snooping vlan 10\n!\n",
    "ip access-list extended vlan10\n permit ip any any vlan 10\nexit\n!\n",
    "banner login ^C\nvlan database\nno vlan 10\n^C\n!\n",
    "banner exec +\ninterface 1/1\n shutdown\n+\n!\n",
    "crypto certificate 1 import\n-----BEGIN CERTIFICATE-----\nvlan 10\ninterface GigabitEthernet1\n-----END CERTIFICATE-----\n!\n",
    "snmp-server host 192.0.2.9 vlan public\nlogging 192.0.2.1 description vlan\nip ssh server\nhostname vlan\n!\n",
    "line console\n speed 115200\nexit\n!\n",
    "class-map vlan10\n match vlan 10\nexit\n!\n",
];

#[test]
fn what_is_no_business_of_ours_is_skipped_wherever_it_stands() {
    for sample in &SAMPLES {
        let is_view = matches!(sample.target, Target::Comware7 | Target::Comware5 | Target::Huawei);
        let blocks = if is_view { FOREIGN_VIEWS } else { FOREIGN_SECTIONS };
        for block in blocks {
            for (before, after) in [(*block, ""), ("", *block)] {
                // FASTPATH's stands between `configure` and `exit`.
                let running = is_read(sample, before, after);
                let running = running.unwrap_or_else(|error| panic!("{}: {block:?}: {error}", sample.target));
                assert_eq!(running.unmentioned, Vec::<String>::new(), "{}: {block:?}", sample.target);
                let whole: Vec<u16> = running.config.vlans.iter().map(VlanId::get).filter(|id| *id != 30).collect();
                assert_eq!(whole, [10, 20], "{}: {block:?}", sample.target);
            }
        }
    }
}

/// Snooping counts that it shows, wherever it stands; on and off of one VLAN is skipped, since it needs the global command.
#[test]
fn snooping_that_is_on_is_seen() {
    for sample in &SAMPLES {
        let (igmp, mld, of_a_vlan) = match sample.target {
            Target::Comware7 | Target::Comware5 => {
                (" igmp-snooping\n#\n", " mld-snooping\n#\n", "vlan 30\n igmp-snooping enable\n#\n")
            }
            Target::Huawei => {
                ("igmp-snooping enable\n#\n", "mld-snooping enable\n#\n", "vlan 30\n igmp-snooping enable\n#\n")
            }
            Target::Fastpath => {
                ("configure\nset igmp\nexit\n", "configure\nset mld\nexit\n", "vlan database\nset igmp 30\nexit\n")
            }
            _ => ("ip igmp snooping\n!\n", "ipv6 mld snooping\n!\n", "ip igmp snooping vlan 30\n!\n"),
        };
        let seen = |before: &str, after: &str| -> Vec<Snooping> {
            let running = is_read(sample, before, after).unwrap_or_else(|error| panic!("{}: {error}", sample.target));
            running.config.snooping.into_iter().collect()
        };
        assert_eq!(seen("", ""), [], "{}", sample.target);
        for (before, after) in [(igmp, ""), ("", igmp)] {
            assert_eq!(seen(before, after), [Snooping::Igmp], "{}", sample.target);
        }
        assert_eq!(seen(mld, igmp), Snooping::ALL, "{}", sample.target);
        assert_eq!(seen("", of_a_vlan), [], "{}", sample.target);
    }
}

/// On a port of the plan's nothing about VLANs is skipped.
#[test]
fn what_is_not_understood_of_a_port_of_the_plan_s_is_an_error() {
    for sample in &SAMPLES {
        let lines: &[&str] = match sample.target {
            Target::Comware7 | Target::Comware5 | Target::Huawei => &[
                "port vlan-mapping vlan 10 map-vlan 20",
                "qinq enable",
                "eth-trunk 1",
                "port-isolate enable group 1",
                "port link-aggregation group 1",
            ],
            Target::Fastpath => &[
                "switchport protected 0",
                "vlan mapping 10 20",
                "addport 1/1",
                "switchport private-vlan host-association 10 20",
            ],
            _ => &[
                "no switchport",
                "switchport protected-port",
                "switchport mode customer",
                "switchport mode private-vlan host",
                "channel-group 1 mode auto",
            ],
        };
        for line in lines {
            let head = sample.text.lines().find(|line| line.contains("PORT")).expect("a port");
            let text = sample.text.replace(head, &format!("{head}\n {line}")).replace("PORT", sample.shown);
            let error = read(sample.target, &text, &[sample.planned]).expect_err(line);
            assert!(error.contains(line) && error.contains(sample.planned), "{}: {error}", sample.target);
        }
    }
}

/// A trunk outside the plan is seen in the VLANs that it is in, and never written to.
#[test]
fn a_trunk_of_others_is_seen_and_left_alone() {
    let vlan = |id| VlanId::new(id).expect("in range");
    for (sample, other, trunk, vlans) in [
        (6, "GE1/0/24", " port link-type trunk\n port trunk allow-pass vlan 10 300\n#\n", Some([10, 300])),
        (
            4,
            "GigabitEthernet1/0/9",
            " port link-type trunk\n undo port trunk permit vlan 1\n port trunk permit vlan 10 300\n#\n",
            Some([10, 300]),
        ),
        (0, "gi24", " switchport mode trunk\n switchport trunk allowed vlan add 10,300\n!\n", Some([10, 300])),
        (0, "te1", " switchport mode trunk\n!\n", None),
    ] {
        let running = is_read(&SAMPLES[sample], "", &format!("interface {other}\n{trunk}")).expect("understood");
        let port = &running.config.ports[1];
        assert_eq!(port.name, other);
        let expected = vlans.map_or_else(|| vec![vlan(2), vlan(4094)], |ids| ids.map(vlan).to_vec());
        assert!(expected.iter().all(|vlan| port.is_member(*vlan)), "{other}: {}", port.tagged);
        assert_eq!(port.is_member(vlan(77)), vlans.is_none(), "{other}");
        assert!(running.untouchable.contains_key(other), "{:?}", running.untouchable);
    }
    let trunk = "#\nvlan batch 10 20\n#\ninterface GE1/0/1\n port link-type trunk\n port trunk pvid vlan 20\n \
        undo port trunk allow-pass vlan 1\n port trunk allow-pass vlan 10 20 30\n#\n";
    let running = read(Target::Huawei, trunk, &["GE1/0/1"]).expect("a trunk can be read");
    let port = &running.config.ports[0];
    assert_eq!(
        (port.pvid, port.tagged.to_string(), port.untagged.to_string()),
        (Some(vlan(20)), "10".into(), "20".into())
    );
    assert_eq!(running.untouchable["GE1/0/1"], "port link-type trunk");
    // Not all ports of a private VLAN reach each other.
    let private =
        SAMPLES[4].text.replace("#\nvlan 10\n", "#\nvlan 10\n private-vlan isolated\n").replace("PORT", "XGE1/0/1");
    let error = read(Target::Comware7, &private, &["XGE1/0/1"]).expect_err("a private VLAN");
    assert!(error.contains("private-vlan isolated") && error.contains("VLAN 10"), "{error}");
    assert!(read(Target::Comware7, &private.replace("isolated\n", "isolated\n#\nvlan 99\n"), &["XGE1/0/2"]).is_ok());
}
