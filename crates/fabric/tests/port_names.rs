//! Port names as switches have them, through every format that writes them and back.

use fabric::{
    DEFAULT_RATE_BPS, Mac, SwitchSpec, Topology, TopologyBuilder,
    format::{
        exchange::{Format, ImportOptions, export, import},
        native::{parse_native, write_native},
    },
    is_port_name,
};
use proptest::prelude::*;

/// Names that vendors' agents give in ifName and ifDescr.
const SEEN: [&str; 12] = [
    "TenGigabitEthernet 1/30",
    "1/1/11:3",
    "trunk: Down (eth5)",
    "port 1: Gigabit Copper",
    "Slot: 0 Port: 1 Gigabit - Level",
    "Unit 1, Port 2 [x]",
    "RMON Port  1 on unit 1",
    "a -- b @ 10gbit",
    "say \"1\" \\ 'two'",
    "#1",
    "null",
    "{x: y}",
];

/// Two switches with a cable, and a host, at ports of these names.
fn topology(names: [&str; 3]) -> Topology {
    let mut builder = TopologyBuilder::new();
    let a = builder.add_switch("a", SwitchSpec::default()).expect("fresh");
    let b = builder.add_switch("b", SwitchSpec::default()).expect("fresh");
    let pa = builder.add_port(a, names[0]).expect("a port");
    let pb = builder.add_port(b, names[1]).expect("a port");
    builder.add_link(pa, pb, DEFAULT_RATE_BPS * 10).expect("free");
    let free = builder.add_port(b, names[2]).expect("a port");
    builder.add_host("h", Mac::local(1), free, DEFAULT_RATE_BPS, None).expect("free");
    builder.finish().expect("connected")
}

fn names(topology: &Topology) -> Vec<String> {
    let link = topology.links()[0];
    [link.a, link.b, topology.hosts()[0].port].map(|port| topology.port_label(port)).to_vec()
}

#[test]
fn names_that_switches_have_pass_every_format() {
    for (at, name) in SEEN.iter().enumerate() {
        let other = SEEN[(at + 1) % SEEN.len()];
        let whole = topology([name, other, name]);
        for format in Format::ALL.into_iter().filter(|format| format.can_export()) {
            let text = export(format, &whole).expect("can be written");
            let back = import(format, &[("f", &text)], &ImportOptions::default());
            let back = back.unwrap_or_else(|error| panic!("{format} of {name:?}:\n{text}\n{error}"));
            assert_eq!(names(&back.topology), names(&whole), "{format} of {name:?}:\n{text}");
        }
    }
}

#[test]
fn names_that_no_line_can_hold_are_refused() {
    for name in ["", " g1", "g1 ", "g1\n", "a\u{1b}[2J", "a\tb", "a\u{202e}b", &"x".repeat(129)] {
        assert!(!is_port_name(name), "{name:?}");
    }
}

#[test]
fn quotes_are_for_names_with_spaces() {
    let text = "switches:\n  a:\n  b:\nlinks:\n  - a:\"Te 1/1\" -- b:\"say \\\"1\\\"\" @ 10gbit\nhosts:\n  h: {mac: \"02:00:00:00:00:01\", port: \"b:Te 1/2\"}\n";
    let topology = parse_native("t.yaml", text).expect("a topology");
    assert_eq!(names(&topology), ["a:Te 1/1", "b:say \"1\"", "b:Te 1/2"]);
    let wrong = "switches: {a: , b: }\nlinks:\n  - a:Te 1/1 -- b:2\n";
    let error = parse_native("t.yaml", wrong).expect_err("spaces divide").to_string();
    assert!(error.contains("sw1:\"Te 1/30\""), "{error}");
}

proptest! {
    #[test]
    fn any_name_that_is_one_reads_as_it_is_written(a in "[ -~é]{1,24}", b in "[ -~é]{1,24}") {
        prop_assume!(is_port_name(&a) && is_port_name(&b) && a != b);
        let whole = topology([&a, &b, &a]);
        let text = write_native(&whole);
        let back = parse_native("f", &text);
        prop_assert!(back.is_ok(), "{}\n{}", text, back.err().map(|error| error.to_string()).unwrap_or_default());
        prop_assert_eq!(back.ok(), Some(whole), "{}", text);
    }
}
