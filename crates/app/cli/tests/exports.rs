//! What `export` writes for other simulators, read back by readers of those formats that know nothing of the writers.

mod folder;

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use folder::Folder;

/// Routers and nodes as BookSim reads them: each line a router, then words and numbers in pairs.
fn read_anynet(text: &str) -> (BTreeSet<(usize, usize)>, BTreeMap<usize, usize>) {
    let (mut links, mut router_of) = (BTreeSet::new(), BTreeMap::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let pairs: Vec<(&str, usize)> =
            words.chunks(2).map(|pair| (pair[0], pair[1].parse().expect("a number"))).collect();
        assert_eq!(pairs[0].0, "router", "{line}");
        for (kind, number) in &pairs[1..] {
            match *kind {
                "node" => assert_eq!(router_of.insert(*number, pairs[0].1), None, "{line}"),
                "router" => assert!(links.insert((pairs[0].1.min(*number), pairs[0].1.max(*number))), "{line}"),
                other => panic!("{other}: {line}"),
            }
        }
    }
    (links, router_of)
}

#[test]
fn anynet_has_every_link_and_host() {
    let folder = Folder::new("anynet");
    for (kind, hosts) in [("torus 4x4", 2), ("random-regular n=12,d=3,seed=1", 1), ("clos 4x4", 4)] {
        folder.succeed(&format!("generate {kind} --hosts-per-switch {hosts} -o fabric.yaml"));
        folder.succeed("export fabric.yaml --to booksim -o fabric.anynet");
        let (links, router_of) = read_anynet(&folder.read("fabric.anynet"));
        // The native format names cables as "- a:p -- b:q", and hosts with their port.
        let native = folder.read("fabric.yaml");
        let mut names: Vec<&str> = Vec::new();
        let section = |name: &str| {
            let after = native.split(&format!("\n{name}:\n")).nth(1).unwrap_or_else(|| {
                native.strip_prefix(&format!("{name}:\n")).unwrap_or_else(|| panic!("no {name} in\n{native}"))
            });
            after.lines().take_while(|line| line.starts_with(' ')).map(str::trim).collect::<Vec<_>>()
        };
        let switches = section("switches");
        names.extend(switches.iter().map(|line| line.split(':').next().expect("a name")));
        let number = |port: &str| {
            let name = port.rsplit_once(':').expect("a port").0;
            names.iter().position(|known| *known == name).unwrap_or_else(|| panic!("{name}"))
        };
        let cables: BTreeSet<(usize, usize)> = section("links")
            .iter()
            .map(|line| {
                let (a, b) = line.trim_start_matches("- ").trim_matches('"').split_once(" -- ").expect("a cable");
                (number(a).min(number(b)), number(a).max(number(b)))
            })
            .collect();
        assert_eq!(links, cables, "{kind}");
        let hosts: Vec<String> = section("hosts").iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(router_of.len(), hosts.len(), "{kind}");
        if let Some(booksim) = booksim() {
            judge_with_booksim(&folder, &booksim, hosts.len());
        }
    }
}

/// The simulator itself, where it was built.
fn booksim() -> Option<String> {
    let named = std::env::var("BOOKSIM").ok();
    if named.is_none() {
        eprintln!("SKIPPED: BookSim; name its program in BOOKSIM");
    }
    named
}

fn judge_with_booksim(folder: &Folder, booksim: &str, nodes: usize) {
    folder.write(
        "config",
        "topology = anynet;\nrouting_function = min;\nnetwork_file = fabric.anynet;\nnum_vcs = 4;\n\
         traffic = uniform;\ninjection_rate = 0.01;\nsample_period = 200;\nmax_samples = 5;\n",
    );
    let output = Command::new(booksim).arg("config").current_dir(folder.path()).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let listed = text.lines().filter(|line| line.starts_with("Node ")).count();
    assert!(text.contains("Overall Traffic Statistics") && listed == nodes, "{listed} of {nodes} nodes:\n{text}");
}

/// Source, destination, bytes, the barrier that starts it, the barrier that it fires.
type Connection = (usize, usize, u64, Option<usize>, Option<usize>);

/// A connection matrix as htsim reads it.
struct Connections {
    nodes: usize,
    flows: Vec<Connection>,
    /// `barriers[id]`: how often it must be fired.
    barriers: BTreeMap<usize, usize>,
}

fn read_connections(text: &str) -> Connections {
    let mut read = Connections { nodes: 0, flows: Vec::new(), barriers: BTreeMap::new() };
    let (mut promised, mut triggers, mut ids) = (0, 0, BTreeSet::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| {
            words.iter().position(|known| *known == word).map(|at| words[at + 1].parse::<u64>().expect("a number"))
        };
        match words[0] {
            "Nodes" => read.nodes = words[1].parse().expect("a number"),
            "Connections" => promised = words[1].parse().expect("a number"),
            "Triggers" => triggers = words[1].parse().expect("a number"),
            "trigger" => {
                assert!(words.contains(&"barrier"), "{line}");
                let count = number("count").expect("a count") as usize;
                assert_eq!(read.barriers.insert(number("id").expect("an id") as usize, count), None, "{line}");
            }
            flow => {
                let (from, to) = flow.split_once("->").expect("a flow");
                let id = number("id").expect("an id");
                assert!(id > 0 && ids.insert(id), "{line}");
                assert!(words.contains(&"start") != words.contains(&"trigger"), "{line}");
                let (from, to) = (from.parse().expect("a number"), to.parse().expect("a number"));
                let size = number("size").expect("a size");
                assert!(size <= i32::MAX as u64);
                let barrier = |word: &str| number(word).map(|id| id as usize);
                read.flows.push((from, to, size, barrier("trigger"), barrier("recv_done_trigger")));
            }
        }
    }
    assert_eq!((read.flows.len(), read.barriers.len()), (promised, triggers));
    read
}

#[test]
fn connection_matrices_hold_the_pattern_and_its_phases() {
    let folder = Folder::new("htsim");
    folder.succeed("generate clos 4x4 -o clos.yaml");
    folder.succeed("export clos.yaml --to htsim --pattern all-to-all --bytes 2000000 -o all.cm");
    let all = read_connections(&folder.read("all.cm"));
    assert_eq!((all.nodes, all.flows.len(), all.barriers.len()), (16, 240, 0));
    let pairs: BTreeSet<(usize, usize)> = all.flows.iter().map(|flow| (flow.0, flow.1)).collect();
    assert!(pairs.len() == 240 && pairs.iter().all(|(from, to)| from != to && from.max(to) < &16));
    assert!(all.flows.iter().all(|flow| flow.2 == 2_000_000));

    folder.succeed("export clos.yaml --to htsim --pattern all-to-all-phased -o phased.cm");
    let phased = read_connections(&folder.read("phased.cm"));
    assert_eq!((phased.flows.len(), phased.barriers.len()), (240, 14));
    for (barrier, count) in &phased.barriers {
        let fire = phased.flows.iter().filter(|flow| flow.4 == Some(*barrier)).count();
        let wait = phased.flows.iter().filter(|flow| flow.3 == Some(*barrier)).count();
        assert_eq!((fire, wait), (*count, 16), "barrier {barrier}");
    }
    let (code, _, error) = folder.run("export clos.yaml --to htsim --bytes 3000000000");
    assert!(code == 2 && error.contains("htsim reads at most 2147483647 bytes a transfer"), "{error}");
}

#[test]
fn leaves_and_spines_are_a_topology_and_nothing_else_is() {
    let folder = Folder::new("topo");
    folder.succeed("generate clos 4x2 --hosts-per-switch 8 --rate 10gbit --host-rate 1gbit -o clos.yaml");
    let text = folder.succeed("export clos.yaml --to htsim-topology");
    let values: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(
        values,
        [
            "Nodes 32",
            "Tiers 2",
            "Podsize 32",
            "Tier 0",
            "Downlink_speed_Gbps 1",
            "Radix_Down 8",
            "Radix_Up 2",
            "Downlink_Latency_ns 10000",
            "Switch_Latency_ns 0",
            "Tier 1",
            "Downlink_speed_Gbps 10",
            "Radix_Down 4",
            "Downlink_Latency_ns 10000",
            "Switch_Latency_ns 0",
        ]
    );
    folder.succeed("generate torus 4x4 -o torus.yaml");
    let (code, _, error) = folder.run("export torus.yaml --to htsim-topology");
    assert!(code == 2 && error.contains("every switch has hosts, so there are no spines"), "{error}");
}
