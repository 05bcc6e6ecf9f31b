//! Every text format against samples of the real thing, against its own writer, and against nonsense.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::IpAddr,
    path::PathBuf,
};

use fabric::{
    Guid, LagNumber, LinkId, Mac, SwitchId, SwitchIdentity, SwitchSpec, Topology, TopologyBuilder,
    format::{
        diagnostic::DIAGNOSTICS_MAX,
        exchange::{Format, ImportOptions, Imported, export, import},
        native::{parse_native, write_native},
    },
};
use proptest::{collection::vec, prelude::*, sample::select};

#[test]
fn every_mistake_of_a_native_file_is_reported_in_one_pass() {
    let wrong = parse_native("bad.yaml", &sample("bad.yaml")).expect_err("it is full of mistakes");
    assert_golden("bad.yaml.golden", &wrong.to_string());
}

/// A host without an address of its own has the first of those that are listed; the file that is written says so.
#[test]
fn the_first_listed_address_is_that_of_a_host_without_one() {
    let [a, b] = [Mac::local(7), Mac::local(3)];
    for (addresses, learned_max) in [
        (format!("[\"{a}\", \"{b}\"]"), None),
        (format!("[\"{a}\", \"{b}\", learned]"), Some(64)),
        (format!("[learned, \"{a}\", \"{b}\"]"), Some(64)),
    ] {
        let text = |facts: &str| format!("switches: {{s: {{}}}}\nhosts: {{vmhost: {{port: \"s:1\", {facts}}}}}\n");
        let topology =
            parse_native("f", &text(&format!("addresses: {addresses}"))).unwrap_or_else(|wrong| panic!("{wrong}"));
        let host = &topology.hosts()[0];
        assert_eq!((host.mac, &host.further_macs[..], host.learned_max), (a, &[b][..], learned_max), "{addresses}");
        assert_eq!(parse_native("f", &write_native(&topology)).expect("what was written"), topology);
        // With an address of its own, all of the list are further ones.
        let both = text(&format!("mac: \"{}\", addresses: {addresses}", Mac::local(9)));
        let topology = parse_native("f", &both).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!((topology.hosts()[0].mac, topology.hosts()[0].further_macs.len()), (Mac::local(9), 2));
    }
    // An uplink has none.
    let uplink = format!(
        "switches: {{s: {{}}}}\nhosts: {{h: {{port: \"s:1\", mac: \"{b}\"}}, up: {{kind: edge, port: \"s:2\", addresses: [\"{a}\"]}}}}\n"
    );
    let topology = parse_native("f", &uplink).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(topology.hosts()[1].further_macs, [a]);
}

/// Whatever format names management addresses, two switches of one address are refused, with the place of both.
#[test]
fn a_port_that_has_learned_all_it_may_is_copied_with_the_others() {
    let text = "switches: {a: {}}\nlinks: []\nhosts:\n  v1: {port: \"a:p1\", mac: \"02:00:00:00:00:01\", \
        addresses: learned, addresses-max: 2}\n";
    let topology = parse_native("f", text).expect("valid");
    let host = topology.learning_hosts().next().expect("one");
    let full = topology.with_learned(&[7, 8].map(|mac| (Mac::local(mac), host)).into());
    let copy = TopologyBuilder::of(&full).finish().expect("as good as the original");
    assert_eq!((&copy, copy.host(host).learned_max), (&full, Some(0)));
}

#[test]
fn an_address_that_two_switches_have_is_refused_in_every_format() {
    let check = |format: Format, text: &str, second: &str, first: &str| {
        let options = ImportOptions::default();
        let message = import(format, &[("a.txt", text)], &options).expect_err("an address of two switches").to_string();
        assert!(message.contains("management address 192.0.2.1 already belongs to switch a"), "{message}");
        assert!(message.contains(second) && message.contains(first), "{format:?}: {message}");
    };
    check(
        Format::Native,
        "switches:\n  a: {mgmt: 192.0.2.1}\n  b: {mgmt: 192.0.2.1}\nlinks:\n  - a:1 -- b:1\n",
        "a.txt:3:13",
        "first on line 2",
    );
    check(
        Format::Dot,
        "graph g {\n\"a\" [mgmt=\"192.0.2.1\", role=\"switch\"]\n\"b\" [mgmt=\"192.0.2.1\", role=\"switch\"]\n\"a\":\"1\" -- \"b\":\"1\"\n}\n",
        "a.txt:3:",
        "a has it in a.txt:2",
    );
    check(
        Format::Containerlab,
        "topology:\n  nodes:\n    a: {kind: bridge, labels: {espalier-mgmt: 192.0.2.1}}\n    b: {kind: bridge, labels: {espalier-mgmt: 192.0.2.1}}\n  links:\n    - endpoints: [\"a:1\", \"b:1\"]\n",
        "a.txt:4:",
        "a has it in a.txt:3",
    );
    let keys = "<graphml><key id=\"m\" for=\"node\" attr.name=\"mgmt\"/><graph edgedefault=\"undirected\">";
    check(
        Format::GraphMl,
        &format!(
            "{keys}\n<node id=\"a\"><data key=\"m\">192.0.2.1</data></node>\n<node id=\"b\"><data key=\"m\">192.0.2.1</data></node>\n<edge source=\"a\" target=\"b\" sourceport=\"1\" targetport=\"1\"/></graph></graphml>"
        ),
        "a.txt:3:",
        "a has it in a.txt:2",
    );
    // Two notations of one address.
    let mixed = "switches:\n  a: {mgmt: 192.0.2.1}\n  b: {mgmt: \"::ffff:192.0.2.1\"}\nlinks:\n  - a:1 -- b:1\n";
    assert!(
        parse_native("a.yaml", mixed).expect_err("one address").to_string().contains("already belongs to switch a")
    );
}

#[test]
fn a_ptm_file_is_read() {
    let hosts = ImportOptions { hosts: vec!["node*".to_owned()], ..ImportOptions::default() };
    let Imported { topology, warnings } = read(Format::Dot, "rack.dot", &hosts).expect("valid");
    assert_golden("rack.dot.golden", &format!("{}{warnings}", write_native(&topology)));
}

#[test]
fn lldp_files_are_merged() {
    let texts: Vec<(String, String)> =
        (1..=4).map(|number| (format!("lldp/sw{number}.json"), sample(&format!("lldp/sw{number}.json")))).collect();
    let files: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let Imported { topology, warnings } = import(Format::Lldp, &files, &ImportOptions::default()).expect("valid");
    assert!(warnings.is_empty(), "{warnings}");
    assert_golden("lldp/ring.golden", &write_native(&topology));
}

#[test]
fn a_missing_lldp_file_is_named() {
    let texts: Vec<(String, String)> =
        (1..=3).map(|number| (format!("sw{number}.json"), sample(&format!("lldp/sw{number}.json")))).collect();
    let files: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let Imported { topology, warnings } = import(Format::Lldp, &files, &ImportOptions::default()).expect("usable");
    assert_eq!(topology.links().len(), 4);
    let messages: Vec<&str> = warnings.items().iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "port sw1:swp2 sees switch sw4, of which there is no file",
            "port sw3:swp1 sees switch sw4, of which there is no file"
        ]
    );
}

#[test]
fn lldp_ends_that_disagree_are_errors_and_silent_ends_warnings() {
    let (sw1, sw2, sw3, sw4) =
        (sample("lldp/sw1.json"), sample("lldp/sw2.json"), sample("lldp/sw3.json"), sample("lldp/sw4.json"));
    // sw2 says that its port to sw1 leads to sw4, as if the cable had been moved between two collections.
    let moved = sw2.replace("\"value\": \"sw1\"", "\"value\": \"sw4\"");
    assert_ne!(moved, sw2);
    let files = [("sw1.json", sw1.as_str()), ("sw2.json", &moved), ("sw3.json", &sw3), ("sw4.json", &sw4)];
    let wrong = import(Format::Lldp, &files, &ImportOptions::default()).expect_err("contradictory");
    assert!(
        wrong.to_string().contains("port sw1:swp1 sees sw2:swp2, but that port sees sw4:swp1 (sw2.json:"),
        "{wrong}"
    );

    let deaf = "{\"lldp\": [{}]}";
    let files = [("sw1.json", sw1.as_str()), ("sw2.json", &sw2), ("sw3.json", &sw3), ("sw4.json", deaf)];
    let Imported { topology, warnings } = import(Format::Lldp, &files, &ImportOptions::default()).expect("usable");
    assert_eq!(topology.links().len(), 4);
    let warning = &warnings.items()[0];
    assert_eq!(warning.message, "port sw1:swp2 sees sw4:swp1, which does not see it");
    assert_eq!(warning.help.as_deref(), Some("the cable is believed; check that sw4 announces and listens there"));
}

#[test]
fn a_port_that_hears_two_neighbours_is_an_error_unless_it_is_ignored() {
    let heard = |port: &str, name: &str, far: &str| {
        format!(
            "{{\"name\": \"{port}\", \"chassis\": [{{\"name\": [{{\"value\": \"{name}\"}}]}}], \
             \"port\": [{{\"id\": [{{\"type\": \"ifname\", \"value\": \"{far}\"}}]}}]}}"
        )
    };
    let file = |heard: &[String]| format!("{{\"lldp\": [{{\"interface\": [{}]}}]}}", heard.join(","));
    let a = file(&[heard("swp1", "b", "swp1"), heard("eth0", "b", "eth0"), heard("eth0", "office", "7")]);
    let b = file(&[heard("swp1", "a.example.org", "swp1"), heard("eth0", "a", "eth0"), heard("eth0", "office", "8")]);
    let files = [("a.json", a.as_str()), ("b.json", b.as_str())];
    let wrong = import(Format::Lldp, &files, &ImportOptions::default()).expect_err("a shared segment");
    assert!(wrong.to_string().contains("port a:eth0 sees both b:eth0 and office:7"), "{wrong}");
    let options = ImportOptions { ignored_ports: vec!["eth*".to_owned()], ..ImportOptions::default() };
    let Imported { topology, .. } = import(Format::Lldp, &files, &options).expect("valid");
    assert_eq!((topology.switches().len(), topology.links().len(), topology.hosts().len()), (2, 1, 0));
}

/// Hosts announce the addresses that their ports have without the bond, and no file of LLDP says which of them is of what kind.
#[test]
fn bonds_are_what_hosts_say_of_them() {
    let heard = |port: &str, name: &str, id: (&str, &str), description: &str| {
        format!(
            "{{\"name\": \"{port}\", \"chassis\": [{{\"name\": [{{\"value\": \"{name}\"}}], \
             \"capability\": [{{\"type\": \"Bridge\", \"enabled\": {}}}]}}], \
             \"port\": [{{\"id\": [{{\"type\": \"{}\", \"value\": \"{}\"}}], \"descr\": [{{\"value\": \"{description}\"}}]}}]}}",
            name.starts_with("sw"),
            id.0,
            id.1
        )
    };
    let host = |port: &str, name: &str, last: u8, nic: &str| {
        heard(port, name, ("mac", &format!("02:00:00:00:00:{last:02x}")), nic)
    };
    let file = |heard: &[String]| format!("{{\"lldp\": [{{\"interface\": [{}]}}]}}", heard.join(","));
    let sw1 = file(&[
        heard("swp1", "sw2", ("ifname", "swp1"), ""),
        host("swp2", "login1.example.org", 0x11, "eth0"),
        host("swp3", "storage1", 0x21, "eth0"),
        host("swp4", "node01", 0x31, "eth0"),
        host("swp5", "storage1", 0x22, "eth1"),
    ]);
    let sw2 = file(&[
        heard("swp1", "sw1", ("ifname", "swp1"), ""),
        host("swp2", "login1.example.org", 0x12, ""),
        host("swp3", "storage1", 0x23, "eth2"),
    ]);
    let login1 = sample("lldp/login1.bond0");
    let storage1 = login1
        .replace("fault-tolerance (active-backup)", "IEEE 802.3ad Dynamic link aggregation")
        .replace("00:11", "00:21")
        .replace("00:12", "00:22");
    let with = |storage1: &str, host: &str| {
        let (login1_file, storage1_file) = (format!("dir/{host}.bond0"), "dir/storage1.bond0");
        let files = [("sw1.json", &*sw1), ("sw2.json", &*sw2), (&*login1_file, &*login1), (storage1_file, storage1)];
        import(Format::Lldp, &files, &ImportOptions::default())
    };
    let Imported { topology, warnings } = with(&storage1, "login1").expect("valid");
    assert!(warnings.is_empty(), "{warnings}");
    assert_golden("lldp/bonds.golden", &write_native(&topology));
    assert_eq!(parse_native("back", &write_native(&topology)).expect("what was written"), topology);

    let alone = import(Format::Lldp, &[("login1.bond0", &login1)], &ImportOptions::default());
    assert!(alone.expect_err("no cables").to_string().contains("login1.bond0:1:1: error: a bond alone is no cabling"));
    let wide = storage1.replace("Slave Interface: eth1", "Slave Interface: eth2");
    let wrong = with(&wide, "login1").expect_err("over two switches").to_string();
    assert!(wrong.contains("the bond of storage1 is a LAG over several switches, sw1 and sw2"), "{wrong}");
    let elsewhere = with(&storage1, "login2").expect("usable").warnings.to_string();
    assert!(elsewhere.contains("no file says where login2 is plugged in; its bond is left out"), "{elsewhere}");
    let balanced = storage1.replace("IEEE 802.3ad Dynamic link aggregation", "load balancing (round-robin)");
    let unknown = with(&balanced, "login1").expect("usable").warnings.to_string();
    assert!(unknown.contains("a bond of mode load balancing (round-robin): its ports are taken"), "{unknown}");
    let short = storage1.replace("Slave Interface: eth1", "Slave Interface: eth7").replace("00:22", "00:77");
    let short = with(&short, "login1").expect("usable").warnings.to_string();
    assert!(short.contains("1 of 2 ports of this bond of storage1 are plugged in here"), "{short}");
}

#[test]
fn the_varying_json_of_lldpcli_is_refused_with_advice() {
    let text = "{\"lldp\": {\"interface\": {\"swp1\": {}}}}";
    let wrong = import(Format::Lldp, &[("sw1.json", text)], &ImportOptions::default()).expect_err("not json0");
    assert!(wrong.to_string().contains("-f json0"), "{wrong}");
}

#[test]
fn an_ibnetdiscover_dump_is_read() {
    let Imported { topology, warnings } =
        read(Format::IbNetDiscover, "rack.ibnetdiscover", &ImportOptions::default()).expect("valid");
    assert_golden("rack.ibnetdiscover.golden", &format!("{}{warnings}", write_native(&topology)));
}

#[test]
fn infiniband_descriptions_become_distinct_names() {
    let text = "Switch 36 \"S-01\" # \"MF0;core:CS7500/L01/U1\" base port 0\n\
                [1] \"S-02\"[1] # \"MF0;core:CS7500/S01/U1\" lid 1 4xEDR\n\
                [2] \"H-0a\"[1](a1) # \"node01 mlx5_0\" lid 2 4xFDR10\n\
                \n\
                Switch 36 \"S-02\" # \"MF0;core:CS7500/S01/U1\" base port 0\n\
                [1][ext 3] \"S-01\"[1] # \"MF0;core:CS7500/L01/U1\" lid 3 4xEDR\n\
                [2] \"H-0b\"[1](b1) # \"Mellanox Technologies\" lid 4 4xEDR\n\
                [3] \"H-0c\"[1](c1) # \"Mellanox Technologies\" lid 5 4xEDR\n";
    let options = ImportOptions::default();
    let Imported { topology, .. } = import(Format::IbNetDiscover, &[("f", text)], &options).expect("valid");
    let names: Vec<&str> = topology.switches().iter().map(|switch| switch.name.as_str()).collect();
    assert_eq!(names, ["core-CS7500/L01/U1", "core-CS7500/S01/U1"]);
    let hosts: Vec<(&str, u64)> =
        topology.hosts().iter().map(|host| (host.name.as_str(), host.rate_bps / 1_000_000_000)).collect();
    assert_eq!(hosts, [("node01", 40), ("H-0b", 100), ("H-0c", 100)]);
}

#[test]
fn a_containerlab_file_is_read() {
    let Imported { topology, warnings } =
        read(Format::Containerlab, "lab.clab.yml", &ImportOptions::default()).expect("valid");
    assert_golden("lab.clab.yml.golden", &format!("{}{warnings}", write_native(&topology)));
}

#[test]
fn a_graph_without_ports_is_numbered() {
    let Imported { topology, warnings } =
        read(Format::GraphMl, "zoo.graphml", &ImportOptions::default()).expect("valid");
    assert_golden("zoo.graphml.golden", &format!("{}{warnings}", write_native(&topology)));
}

#[test]
fn samples_are_recognised() {
    for (name, format) in SAMPLES {
        assert_eq!(Format::detect(name, &sample(name)), Some(format), "{name}");
    }
}

#[test]
fn foreign_mistakes_are_named_with_their_line() {
    for (format, text, expected) in [
        (Format::Dot, "graph G {\n a:1 -- b:1\n a:1 -- c:1\n}", "f:3:4: error: port a:1 already carries"),
        (Format::Dot, "graph G {\n a:1 -- b\n}", "f:2:9: error: this end of the cable names no port"),
        (Format::Dot, "graph G {\n sw-1:1 -- sw-2:1\n}", "f:2:4: error: unexpected character '-'"),
        (Format::Dot, "graph G {\n a:1 -- {b c}\n}", "f:2:9: error: a cable joins two ports, not groups"),
        (Format::Dot, "graph G {\n a:1 -- b:1 \n/* x", "f:3:1: error: this comment never ends"),
        (Format::Dot, "graph G {\n a [mac=7]\n}", "f:2:9: error: 7 is not an Ethernet address"),
        (
            Format::Dot,
            "graph G {\n a:1 -- b:1;\n c:1 -- d:1\n}",
            "f:3:2: error: switch c cannot be reached from switch a",
        ),
        (
            Format::Containerlab,
            "topology:\n  nodes: {a: {}}\n  links:\n    - endpoints: [\"a:1\", \"aa:1\"]",
            "f:4:26: error: unknown node \"aa\"",
        ),
        (
            Format::Containerlab,
            "topology:\n  nodes: {a: {}}\n  links:\n    - [a, b]",
            "f:4:7: error: a link has two endpoints",
        ),
        (Format::Containerlab, "nodes: {}", "f:1:1: error: there is no section topology:"),
        (
            Format::GraphMl,
            "<graphml><graph>\n<node id=\"a\"/>\n<edge source=\"a\" target=\"b\"/>\n</graph></graphml>",
            "f:3:1: error: this edge's target \"b\" is no node",
        ),
        (Format::GraphMl, "<graphml><graph>\n<node id=\"a\">\n</graph>", "f:3:1: error: not XML"),
        (
            Format::GraphMl,
            "<graphml><graph>\n<node id=\"a\"/>\n<node id=\"a\"/><edge source=\"a\" target=\"a\"/></graph></graphml>",
            "f:3:1: error: node a is defined twice",
        ),
        (Format::GraphMl, "hello", "f:1:1: error: there is no graph element"),
        (Format::IbNetDiscover, "Switch 4 \"S-1\"\n[1] nonsense", "f:2:1: error: this is no port line"),
        (Format::IbNetDiscover, "[1] \"S-1\"[1]", "f:1:1: error: this port belongs to no Switch or Ca line"),
        (
            Format::Lldp,
            "{\"lldp\": [\n{\"interface\": [\n{\"rid\": 1}]}]}",
            "f:3:1: error: this neighbour was heard on a port without a name",
        ),
        (Format::Lldp, "{\"lldp\": \n", "f:2:1: error: not JSON"),
        (Format::Lldp, "{}", "f:1:1: error: there are neither neighbours nor a chassis"),
        (Format::Native, "switches: {a: {guid: 0x0}}", "f:1:22: error: 0x0 is not a GUID"),
        (
            Format::Native,
            "switches: {a: {guid: 0x7}}\nhosts: {h: {mac: 020000000001, port: \"a:1\", guid: 7}}",
            "f:2:51: error: GUID 0x0000000000000007 already belongs to switch a",
        ),
        (
            Format::IbNetDiscover,
            "Switch 4 \"S-1\"\n[1] \"H-2\"[1](3) # \"h\"\n[2] \"H-4\"[1](3) # \"i\"",
            "f:3:1: error: GUID 0x0000000000000003 already belongs to host h",
        ),
        (Format::Native, "switches: [a", "f:1:13: error: not YAML"),
        (Format::Native, "\rnt \rn", "f:2:1: error: expected sections"),
        (Format::Native, "hosts: {}", "f:1:1: error: there is no section switches:"),
        (Format::Native, "switches: {}", "f:1:11: error: there is no switch"),
        (Format::Native, "switches: {a: }\n---\nb: c", "f:2:1: error: a second document begins here"),
    ] {
        let wrong = import(format, &[("f", text)], &ImportOptions::default()).expect_err(text).to_string();
        assert!(wrong.contains(expected), "{text}\n{wrong}");
    }
}

#[test]
fn aliases_cost_what_they_are_written_with() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..40 {
        let items = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    bomb.push_str("switches: *a39\n");
    assert!(parse_native("f", &bomb).is_err());
    let ladder: String = (1..2000).map(|level| format!("a{level}: &a{level} [*a{}]\n", level - 1)).collect();
    let wrong = parse_native("f", &format!("a0: &a0 [x]\n{ladder}")).expect_err("too deep").to_string();
    assert!(wrong.contains("nested more than"), "{wrong}");
}

#[test]
fn a_flood_of_mistakes_is_cut_off() {
    let names: String = (0..3000).map(|number| format!("  switch{number}: {{modle: x}}\n")).collect();
    let links: String = (0..5000).map(|number| format!("  - swich{number}:1 -- switch{number}:2\n")).collect();
    let wrong = parse_native("f", &format!("switches:\n{names}links:\n{links}")).expect_err("all wrong");
    assert_eq!(wrong.items().len(), DIAGNOSTICS_MAX);
    assert!(wrong.omitted() > 5000 - DIAGNOSTICS_MAX, "{}", wrong.omitted());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_written_topology_is_read_back(topology in topologies()) {
        let text = write_native(&topology);
        let read = parse_native("f", &text).map_err(|wrong| TestCaseError::fail(format!("{wrong}\n{text}")))?;
        prop_assert_eq!(&read, &topology, "{}", text);
        prop_assert_eq!(write_native(&read), text);
    }

    #[test]
    fn an_exported_cabling_is_imported_back(topology in topologies(), format in select(EXPORTS.to_vec())) {
        let text = export(format, &topology).expect("an export format");
        prop_assert_eq!(Format::detect("f", &text), Some(format));
        let imported = import(format, &[("f", &text)], &ImportOptions::default())
            .map_err(|wrong| TestCaseError::fail(format!("{wrong}\n{text}")))?;
        prop_assert_eq!(cabling(&imported.topology), cabling(&topology), "{}", text);
        let surprising = imported.warnings.items().iter().find(|warning| !warning.message.starts_with("no device is known"));
        prop_assert!(surprising.is_none(), "{}", imported.warnings);
    }

    #[test]
    fn nonsense_is_refused_with_a_diagnostic(text in nonsense(), format in select(Format::ALL.to_vec())) {
        judge(format, &text)?;
    }

    #[test]
    fn damaged_files_are_read_or_refused(
        (name, format) in select(SAMPLES.to_vec()),
        cuts in vec((any::<prop::sample::Index>(), 0_usize..40, select(SCRAPS.to_vec())), 1..6),
    ) {
        let mut text: Vec<char> = sample(name).chars().collect();
        for (place, length, scrap) in cuts {
            let at = place.index(text.len());
            let end = (at + length).min(text.len());
            text.splice(at..end, scrap.chars());
        }
        judge(format, &text.into_iter().collect::<String>())?;
    }
}

const EXPORTS: [Format; 3] = [Format::Dot, Format::Containerlab, Format::GraphMl];

const SAMPLES: [(&str, Format); 9] = [
    ("lldp/login1.bond0", Format::Lldp),
    ("netbox.json", Format::NetBox),
    ("bad.yaml", Format::Native),
    ("rack.dot", Format::Dot),
    ("lldp/sw1.json", Format::Lldp),
    ("rack.ibnetdiscover", Format::IbNetDiscover),
    ("lab.clab.yml", Format::Containerlab),
    ("zoo.graphml", Format::GraphMl),
    ("lldp/sw2.json", Format::Lldp),
];

/// Pieces that mean something to some format.
const SCRAPS: [&str; 30] = [
    "",
    "\"",
    "{",
    "}",
    "[",
    "]",
    ":",
    " -- ",
    "->",
    "\n",
    "\t",
    "*a",
    "&a ",
    "#",
    "/*",
    "<",
    ">",
    "&",
    "&#0;",
    "\0",
    "é",
    "\u{2028}",
    "\\",
    "!!",
    "|",
    "? ",
    "<node id=\"x\">",
    "graph {",
    "\\ud800",
    "- ",
];

fn sample(name: &str) -> String {
    fs::read_to_string(sample_path(name)).unwrap_or_else(|error| panic!("testdata/{name}: {error}"))
}

fn sample_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn read(
    format: Format,
    name: &str,
    options: &ImportOptions,
) -> Result<Imported, fabric::format::diagnostic::Diagnostics> {
    import(format, &[(name, &sample(name))], options)
}

/// Compares with a file under testdata; `BLESS=1` writes it.
fn assert_golden(name: &str, text: &str) {
    if std::env::var_os("BLESS").is_some() {
        fs::write(sample_path(name), text).unwrap();
    }
    assert_eq!(text, sample(name), "testdata/{name} differs; BLESS=1 writes it anew");
}

/// A text is either a topology or refused with at least one error whose position is in the text.
fn judge(format: Format, text: &str) -> Result<(), TestCaseError> {
    let options = ImportOptions { hosts: vec!["n*".to_owned()], ..ImportOptions::default() };
    match import(format, &[("f", text)], &options) {
        Ok(imported) => {
            prop_assert_eq!(imported.warnings.errors(), 0);
            imported.warnings.to_string();
        }
        Err(wrong) => {
            prop_assert!(wrong.errors() > 0);
            let lines = text.replace("\r\n", "\n").split(['\n', '\r']).count();
            prop_assert!(wrong.items().iter().all(|item| (1..=lines).contains(&item.line)), "{}", wrong);
            wrong.to_string();
        }
    }
    Ok(())
}

fn nonsense() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        vec(any::<u8>(), 0..200).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        vec(select(SCRAPS.to_vec()), 0..60).prop_map(|scraps| scraps.concat()),
    ]
}

/// What must survive an export: everything but the order of ports and of groups.
fn cabling(topology: &Topology) -> impl PartialEq + std::fmt::Debug + use<> {
    let switches: Vec<_> = (topology.switches().iter())
        .map(|switch| (switch.name.clone(), switch.model.name.clone(), switch.mgmt))
        .collect();
    let links: Vec<_> =
        topology.link_ids().map(|link| (topology.link_label(link), topology.link(link).rate_bps)).collect();
    let hosts: Vec<_> = (topology.hosts().iter())
        .map(|host| (host.name.clone(), host.mac, topology.port_label(host.port), host.rate_bps, host.address))
        .collect();
    let groups: BTreeMap<_, _> = (topology.groups().iter())
        .map(|group| {
            let links: BTreeSet<_> = group.links.iter().map(|link| topology.link_label(*link)).collect();
            (group.name.clone(), (group.switches.clone(), links))
        })
        .collect();
    (switches, links, hosts, groups)
}

/// Names that other readers of YAML, DOT and XML would stumble over, and plain ones.
fn names() -> impl Strategy<Value = String> {
    let awkward = [
        "1",
        "0x10",
        "null",
        "on",
        "~",
        "true",
        "-",
        "--",
        "-x",
        "#x",
        "@",
        "a#b",
        "a--b",
        "1e3",
        "é",
        "日本",
        "x/1",
        "+1",
        "graph",
        "node",
        "edge",
        "subgraph",
        "strict",
        "host",
        "dummy",
        ".inf",
        "0o7",
        "1_000",
        "2026-01-01",
        "_",
        "No",
        "NULL",
        "switches",
        "a.b.c",
        "mgmt-net",
        "/*",
        "//",
        "<<",
    ];
    let usable = awkward.into_iter().filter(|name| name.chars().all(|c| c.is_alphanumeric() || "-_./+@#".contains(c)));
    prop_oneof![
        select(usable.map(str::to_owned).collect::<Vec<_>>()),
        "[a-zA-Z0-9_./+@#-]{1,12}",
        "[a-z]{2,5}[0-9]{1,3}",
    ]
}

prop_compose! {
    fn topologies()(
        names in vec(names(), 1..8),
        ports in vec(names(), 200),
        extra in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..12),
        hosts in vec((names(), any::<prop::sample::Index>(), any::<u32>(), 0_u8..3), 0..8),
        rates in vec(prop_oneof![Just(1_000_000_000_u64), 1..100_000_000_000_000_u64], 40),
        spare in vec(any::<prop::sample::Index>(), 0..4),
        facts in vec((0_u8..4, 0_u8..3), 8),
        machines in vec((0_u8..3, 0_u8..3, 0_u32..3), 8),
        groups in vec((names(), vec(any::<prop::sample::Index>(), 1..5)), 0..4),
    ) -> Topology {
        let mut builder = TopologyBuilder::new();
        let mut switches = Vec::new();
        for (name, (model, mgmt)) in names.iter().zip(facts) {
            let model = [None, Some("linux-bridge"), None, Some("powerconnect-5324")][usize::from(model)];
            let number = switches.len();
            let mgmt: Option<IpAddr> = [None, Some(format!("192.0.2.{number}")), Some(format!("fe80::{number}"))][usize::from(mgmt)].as_ref().map(|text| text.parse().unwrap());
            let spec = SwitchSpec { model: model.map(str::to_owned), mgmt };
            if let Ok(switch) = builder.add_switch(name, spec) {
                let item = |bit: usize, text: String| (number & bit != 0).then_some(text);
                let identity = SwitchIdentity {
                    chassis: item(1, format!("02:00:00:00:00:0{number}")),
                    engine: item(2, format!("8000{number}")),
                    serial: item(4, format!("\"TX\" {{é}}: {number} # \\")),
                };
                builder.set_switch_identity(switch, identity).unwrap();
                if let Some(guid) = Guid::new(switch.index() as u64 % 3 * 0xffff_ffff + switch.index() as u64) {
                    builder.set_switch_guid(switch, guid).unwrap();
                }
                switches.push((switch, model == Some("powerconnect-5324"), 0));
            }
        }
        let mut ports = ports.into_iter();
        let mut rates = rates.into_iter();
        let mut port = |builder: &mut TopologyBuilder, index: usize| {
            let (switch, listed, used) = &mut switches[index];
            *used += 1;
            let name = if *listed { format!("g{used}") } else { format!("{}{used}", ports.next()?.trim_end_matches(char::is_numeric)) };
            // By chance a name may be that of a LAG, which this one would be without members.
            let name = if LagNumber::of_port(&name).is_some() { format!("p{used}") } else { name };
            builder.add_port(*switch, &name).ok()
        };
        let count = builder_count(&names);
        // Ports without a cable, mentioned before all others.
        for index in spare {
            let _ = port(&mut builder, index.index(count));
        }
        let tree = (1..count).map(|index| (index, index / 2));
        let more: Vec<_> = extra.iter().map(|(a, b)| (a.index(count), b.index(count))).collect();
        for (a, b) in tree.chain(more) {
            if a == b {
                continue;
            }
            let rate_bps = rates.next().unwrap_or(1);
            if let (Some(a), Some(b)) = (port(&mut builder, a), port(&mut builder, b)) {
                builder.add_link(a, b, rate_bps).unwrap();
            }
        }
        let (mut machine, mut bond, mut last, mut has_edge) = (None, None, None, false);
        for (number, (name, index, mac, address)) in hosts.into_iter().enumerate() {
            let Some(port) = port(&mut builder, index.index(count)) else { continue };
            let address: Option<IpAddr> = match address {
                0 => None,
                1 => Some(format!("198.51.100.{}", number + 1).parse().unwrap()),
                _ => Some(format!("2001:db8::{number}").parse().unwrap()),
            };
            // A name or address that another host has is simply not used.
            // Some hosts stand alone, some begin a machine, some are a further port of the machine before.
            let (kind, rail, further) = machines[number];
            machine = match (kind, machine) {
                (0, _) => None,
                (2, Some(before)) => Some(before),
                _ => Some(format!("machine {number}").replace(' ', "-")),
            };
            let name = machine.as_ref().map_or(name, |machine| format!("{machine}/{number}"));
            // Some machines are failover bonds: further ports share the addresses of the first.
            let joins_bond = machine.is_some() && machine == bond;
            let begins_bond = machine.is_some() && machine != last && mac % 2 == 0;
            last.clone_from(&machine);
            // One host may be an uplink, and further ones are on standby beside it.
            let is_uplink = machine.is_none() && mac % 3 == 0;
            if is_uplink && has_edge {
                let Ok(edge) = builder.add_standby_edge(&name, port, rates.next().unwrap_or(1)) else { continue };
                let known = (0..further).map(|mac| Mac::new([6, 0, 0, 0, 255, (7 - mac) as u8]));
                known.for_each(|mac| builder.add_standby_mac(edge, mac).unwrap());
                continue;
            }
            let is_edge = is_uplink;
            let host = if is_edge {
                let Ok(host) = builder.add_edge(&name, port, rates.next().unwrap_or(1), address) else { continue };
                has_edge = true;
                host
            } else if joins_bond {
                let Ok(host) = builder.add_standby(&name, port, rates.next().unwrap_or(1)) else { continue };
                if rail % 2 == 1 {
                    builder.set_active(host);
                }
                host
            } else {
                let added = builder.add_host(&name, Mac::local(mac), port, rates.next().unwrap_or(1), address);
                let Ok(host) = added else { continue };
                machine.as_ref().map_or(Ok(()), |machine| builder.join_machine(machine)).unwrap();
                bond = machine.clone().filter(|_| begins_bond);
                host
            };
            // At some ports addresses are learned; those of bonds and uplinks are refused.
            if mac % 5 < 2 {
                let most = if mac % 5 == 0 { fabric::LEARNED_MAX_DEFAULT } else { 3 };
                let refused = builder.set_learned(host, most).is_err();
                assert_eq!(refused, is_edge || joins_bond);
            }
            if rail > 0 {
                builder.set_rail(host, rail);
            }
            if !joins_bond {
                builder.set_weight(host, (mac % 3) as u8);
            }
            for mac in 0..if joins_bond { 0 } else { further } {
                builder.add_mac(host, Mac::new([6, 0, 0, 0, number as u8, (7 - mac) as u8])).unwrap();
            }
            if let Some(guid) = Guid::new(number as u64 % 2 * (number as u64 + 0x5000_0000_0000_0000)) {
                builder.set_host_guid(host, guid).unwrap();
            }
        }
        let topology = builder.finish().unwrap();
        let mut builder = TopologyBuilder::of(&topology);
        for (name, members) in groups {
            let (switches, links) = (topology.switches().len(), topology.links().len());
            let mut own = (BTreeSet::new(), BTreeSet::new());
            for member in members {
                match member.index(switches + links) {
                    switch if switch < switches => own.0.insert(SwitchId::new(switch)),
                    link => own.1.insert(LinkId::new(link - switches)),
                };
            }
            let (switches, links): (Vec<_>, Vec<_>) = (own.0.into_iter().collect(), own.1.into_iter().collect());
            // A name that a switch or another group has is simply not used.
            let _ = builder.add_group(&name, &switches, &links);
        }
        builder.finish().unwrap()
    }
}

fn builder_count(names: &[String]) -> usize {
    let mut distinct = names.to_vec();
    distinct.sort();
    distinct.dedup();
    distinct.len()
}

/// A mistake in a file that has no other: what is named, where, and the way out.
#[test]
fn members_of_groups_are_switches_and_cables_between_them() {
    const FILE: &str = r#"switches:
  a: {lags: {lag1: [p1, p2]}}
  b: {lags: {lag1: [p1, p2]}}
links:
  - a:lag1 -- b:lag1
  - a:"Te 1/3" -- b:p3
hosts:
  h1: {mac: "02:00:00:00:00:01", port: "a:p9"}
groups:
  feed-a: [a]
  card-1: [b, "b:p3 -- a:\"Te 1/3\"", "a:lag1"]
"#;
    let topology = parse_native("groups.yaml", FILE).expect("valid");
    let names: Vec<&str> = topology.groups().iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["feed-a", "card-1"]);
    assert_eq!(topology.groups()[1].switches, [SwitchId::new(1)]);
    assert_eq!(topology.groups()[1].links, [0, 1].map(LinkId::new));
    let written = write_native(&topology);
    assert!(written.contains("  card-1: [b, \"a:lag1 -- b:lag1\", \"a:\\\"Te 1/3\\\" -- b:p3\"]\n"), "{written}");
    assert_eq!(parse_native("groups.yaml", &written), Ok(topology));
    for (from, to, expected) in [
        ("\"a:lag1\"]", "\"a:p9\"]", "the cable at a:p9 does not lead to a switch"),
        ("\"a:lag1\"]", "\"a:p1\"]", "a:p1 is a member of the LAG a:lag1, which fails as a whole"),
        ("\"a:lag1\"]", "\"a:p7\"]", "no cable is plugged into port p7 of switch a"),
        ("\"a:lag1\"]", "\"a:lag1 -- b:p3\"]", "there is no cable between a:lag1 and b:p3"),
        ("\"a:lag1\"]", "\"a:lag1\", \"b:lag1 -- a:lag1\"]", "b:lag1 -- a:lag1 is twice in group card-1"),
        ("feed-a: [a]", "feed-a: [h1]", "unknown switch h1"),
        ("feed-a: [a]", "feed-a: []", "group feed-a has no members"),
        ("feed-a: [a]", "card-1: [a]", "group card-1 is named twice"),
        ("feed-a: [a]", "b: [a]", "b is the name of a switch and of a group"),
        ("feed-a: [a]", "\"feed a\": [a]", "\"feed a\" is not a usable name"),
    ] {
        let text = FILE.replacen(from, to, 1);
        assert_ne!(text, FILE, "{from}");
        let message = parse_native("groups.yaml", &text).expect_err(to).to_string();
        assert!(message.contains(expected) && message.contains("groups.yaml:1"), "{to}: {message}");
        assert!(message.contains("help:"), "{to}: {message}");
    }
}

const LAGS: &str = r#"switches:
  a: {lags: {lag1: [p1, p2], lag7: [p9]}}
  b: {model: powerconnect-5324, lags: {lag2: [g1, g24], lag1: [g3]}}
links:
  - a:lag1 -- b:lag2 @ 10gbit
  - a:p3 -- b:g2
  - a:lag7 -- b:lag1
hosts:
  up: {kind: edge, port: "a:p8"}
machines:
  storage: {bond: lacp, mac: "02:00:00:00:00:01", ip: 192.0.2.9, addresses: ["02:00:00:00:01:01"],
    nics: {eth0: {port: "b:g5", rate: 10gbit}, eth1: {port: "b:g7", rate: 10gbit}}}
  other: {mac: "02:00:00:00:00:02", port: "b:g9"}
"#;

#[test]
fn lags_are_ports_with_members_whose_rates_add_up() {
    let topology = parse_native("lags.yaml", LAGS).expect("valid");
    let port = |label: &str| {
        let (switch, port) = label.split_once(':').expect("a label");
        topology.find_port(topology.find_switch(switch).expect("a switch"), port).expect("a port")
    };
    let members = |label| topology.members(port(label)).map(|port| topology.port_label(port)).collect::<Vec<_>>();
    assert_eq!(members("a:lag1"), ["a:p1", "a:p2"]);
    assert_eq!(members("b:lag2"), ["b:g1", "b:g24"]);
    // The bond gets the lowest number that is free on its switch.
    assert_eq!(members("b:lag3"), ["b:g5", "b:g7"]);
    let rates: Vec<u64> = topology.links().iter().map(|link| link.rate_bps / 1_000_000_000).collect();
    assert_eq!(rates, [20, 1, 1]);
    let storage = &topology.hosts()[1];
    assert_eq!((storage.name.as_str(), storage.rate_bps, storage.port), ("storage", 20_000_000_000, port("b:lag3")));
    let written = write_native(&topology);
    assert!(written.contains("lag1 -- b:lag2 @ 10gbit") && written.contains("rate: 10gbit"), "{written}");
    assert_eq!(parse_native("lags.yaml", &written), Ok(topology));
}

#[test]
fn mistakes_in_lags_are_named_with_their_lines() {
    for (from, to, expected) in [
        ("lag7: [p9]", "lag7: [p1]", "port a:p1 already carries a cable of a:lag1 (line 2)"),
        ("lag7: [p9]", "lag07: [p9]", "\"lag07\" is no LAG: they are lag1 to lag999"),
        ("lag7: [p9]", "lag7: p9", "expected the members of lag7, found"),
        ("lag7: [p9]", "lag7: [lag1]", "a:lag1 cannot be a member of a:lag7"),
        ("a:lag7 -- b:lag1", "a:lag8 -- b:lag1", "a:lag8 has no members"),
        ("a:lag7 -- b:lag1", "a:lag7 -- b:g3", "port b:g3 already carries a cable of b:lag1"),
        ("a:lag1 -- b:lag2", "a:lag1 -- b:g4", "a:lag1 has 2 cables, b:g4 has 1 cable"),
        ("port: \"b:g7\"", "port: \"a:p7\"", "its ports are on two switches"),
        ("port: \"b:g7\", rate: 10gbit", "port: \"b:g7\"", "have different rates"),
        ("port: \"b:g7\"", "port: \"b:g3\"", "port b:g3 already carries a cable of b:lag1"),
        ("bond: lacp", "bond: balance-rr", "a bond is lacp or failover"),
        ("bond: lacp,", "bond: lacp, port: \"b:g11\",", "so each port has its own port"),
    ] {
        let text = LAGS.replacen(from, to, 1);
        assert_ne!(text, LAGS, "{from}");
        let message = parse_native("lags.yaml", &text).expect_err(to).to_string();
        assert!(message.contains(expected), "{to}: {message}");
        assert!(message.contains("lags.yaml:"), "{message}");
    }
}
