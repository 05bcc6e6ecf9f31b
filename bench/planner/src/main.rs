//! Walks every pair of hosts through routes that depend on the destination, and counts: whatever made them, the figures
//! are computed by the same few lines, which share no code with any planner.
//!
//! ```text
//! trace plan PLAN.json                  a destination-tagged plan: the tree of each host's VLAN, toward the host
//! trace lfts FABRIC.net LFTS.dump       what OpenSM has set on a fabric of ibsim
//! ```
//!
//! Prints one JSON object: `max_load` (ordered pairs of hosts over the busiest channel between switches), `avg_hops` (links
//! between switches, over ordered pairs of distinct hosts), `unreached` (pairs whose walk does not arrive), `lanes`,
//! `acyclic` (whether the channel dependency graph has no cycle, if all share one lane) and `acyclic_by_lane` (whether
//! each lane's has none, for plans that say who uses which).

use std::{
    collections::{BTreeMap, VecDeque},
    env, fs,
    process::ExitCode,
};

use serde_json::{Value, json};

type Fault = String;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let routes = match words.as_slice() {
        ["plan", plan] => read(plan).and_then(|text| of_plan(&text)),
        ["lfts", fabric, dump] => read(fabric).and_then(|fabric| of_lfts(&fabric, &read(dump)?)),
        _ => Err("usage: trace plan PLAN.json | trace lfts FABRIC.net LFTS.dump".to_owned()),
    };
    match routes {
        Ok(routes) => {
            println!("{}", routes.figures());
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("trace: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn read(path: &str) -> Result<String, Fault> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

/// Routes by destination.
struct Routes {
    switches: usize,
    /// By channel: the switches that it leaves and enters.
    channels: Vec<(usize, usize)>,
    /// By host: its switch.
    home: Vec<usize>,
    /// By destination host, then by switch: the channel to take.
    next: Vec<Vec<Option<usize>>>,
    /// By destination host.
    lane: Vec<usize>,
}

impl Routes {
    fn figures(&self) -> Value {
        let mut hosts_at = vec![0_u64; self.switches];
        self.home.iter().for_each(|&switch| hosts_at[switch] += 1);
        let lanes = self.lane.iter().max().map_or(1, |lane| lane + 1);
        let mut load = vec![0_u64; self.channels.len()];
        let mut after = vec![vec![Vec::new(); self.channels.len()]; lanes];
        let (mut hops, mut unreached) = (0, 0);
        for ((&home, next), &lane) in self.home.iter().zip(&self.next).zip(&self.lane) {
            for source in (0..self.switches).filter(|&source| source != home && hosts_at[source] > 0) {
                let (mut at, mut held) = (source, None);
                // A walk of more steps than switches goes round.
                for _ in 0..self.switches {
                    let Some(channel) = next[at].filter(|_| at != home) else { break };
                    load[channel] += hosts_at[source];
                    hops += hosts_at[source];
                    if let Some(held) = held {
                        let after: &mut Vec<usize> = &mut after[lane][held];
                        if !after.contains(&channel) {
                            after.push(channel);
                        }
                    }
                    (at, held) = (self.channels[channel].1, Some(channel));
                }
                if at != home {
                    unreached += hosts_at[source];
                }
            }
        }
        let together: Vec<Vec<usize>> = (0..self.channels.len())
            .map(|channel| after.iter().flat_map(|lane| lane[channel].iter().copied()).collect())
            .collect();
        let hosts = self.home.len() as u64;
        json!({
            "max_load": load.iter().max(),
            "avg_hops": hops as f64 / (hosts * hosts.saturating_sub(1)).max(1) as f64,
            "unreached": unreached,
            "lanes": lanes,
            "acyclic": is_acyclic(&together),
            "acyclic_by_lane": after.iter().all(|lane| is_acyclic(lane)),
        })
    }
}

/// Whether taking away what nothing leads to, again and again, leaves nothing (Kahn, 1962).
fn is_acyclic(after: &[Vec<usize>]) -> bool {
    let mut before = vec![0_usize; after.len()];
    after.iter().flatten().for_each(|&channel| before[channel] += 1);
    let mut free: Vec<usize> = (0..after.len()).filter(|&channel| before[channel] == 0).collect();
    let mut taken = 0;
    while let Some(channel) = free.pop() {
        taken += 1;
        for &other in &after[channel] {
            before[other] -= 1;
            if before[other] == 0 {
                free.push(other);
            }
        }
    }
    taken == after.len()
}

fn of_plan(text: &str) -> Result<Routes, Fault> {
    let plan: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let list = |value: &Value, name: &str| value[name].as_array().cloned().ok_or_else(|| format!("no list {name}"));
    let word = |value: &Value, name: &str| value[name].as_str().map(str::to_owned).ok_or_else(|| format!("no {name}"));
    let topology = &plan["topology"];
    let mut switch_of = BTreeMap::new();
    for switch in list(topology, "switches")? {
        switch_of.insert(word(&switch, "name")?, switch_of.len());
    }
    let at = |port: String| {
        let name = port.rsplit_once(':').map_or("", |(switch, _)| switch).to_owned();
        switch_of.get(&name).copied().ok_or_else(|| format!("no switch of port {port}"))
    };
    let mut channels = Vec::new();
    for link in list(topology, "links")? {
        let (a, b) = (at(word(&link, "a")?)?, at(word(&link, "b")?)?);
        channels.extend([(a, b), (b, a)]);
    }
    let home = (list(topology, "hosts")?.iter()).map(|host| at(word(host, "port")?)).collect::<Result<Vec<_>, _>>()?;
    if plan["assignment"]["by"] != "destination" {
        return Err("the plan is not tagged by destination".to_owned());
    }
    let mut trees: BTreeMap<u64, (usize, Vec<usize>)> = BTreeMap::new();
    for tree in list(&plan, "trees")? {
        let lane = tree["lane"].as_u64().ok_or("no lane")? as usize;
        trees.insert(tree["vlan"].as_u64().ok_or("no vlan")?, (lane, runs(&word(&tree, "links")?)?));
    }
    let (mut next, mut lane) = (Vec::new(), Vec::new());
    for (vlan, &home) in list(&plan["assignment"], "vlans")?.iter().zip(&home) {
        let (tree_lane, links) = vlan.as_u64().and_then(|vlan| trees.get(&vlan)).ok_or("a VLAN without a tree")?;
        next.push(toward(switch_of.len(), &channels, links, home));
        lane.push(*tree_lane);
    }
    Ok(Routes { switches: switch_of.len(), channels, home, next, lane })
}

/// `0-3,8` as numbers.
fn runs(text: &str) -> Result<Vec<usize>, Fault> {
    let number = |text: &str| text.parse::<usize>().map_err(|_| format!("{text:?} is no number"));
    let mut numbers = Vec::new();
    for run in text.split(',').filter(|run| !run.is_empty()) {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        numbers.extend(number(first)?..=number(last)?);
    }
    Ok(numbers)
}

/// By switch: the channel of a tree of links toward `root`.
fn toward(switches: usize, channels: &[(usize, usize)], links: &[usize], root: usize) -> Vec<Option<usize>> {
    let mut into = vec![Vec::new(); switches];
    for channel in links.iter().flat_map(|link| [2 * link, 2 * link + 1]) {
        into[channels[channel].1].push(channel);
    }
    let mut next = vec![None; switches];
    let mut queue = VecDeque::from([root]);
    while let Some(switch) = queue.pop_front() {
        for &channel in &into[switch] {
            let tail = channels[channel].0;
            if tail != root && next[tail].is_none() {
                next[tail] = Some(channel);
                queue.push_back(tail);
            }
        }
    }
    next
}

fn of_lfts(fabric: &str, dump: &str) -> Result<Routes, Fault> {
    let mut switch_of: BTreeMap<&str, usize> = BTreeMap::new();
    let mut host_of: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ports: Vec<(&str, usize, &str)> = Vec::new();
    let mut current = None;
    for line in fabric.lines() {
        let quoted = || line.split('"').nth(1).ok_or_else(|| format!("no name in {line:?}"));
        if line.starts_with("Switch") {
            switch_of.insert(quoted()?, switch_of.len());
            current = Some(quoted()?);
        } else if line.starts_with("Hca") {
            host_of.insert(quoted()?, host_of.len());
            current = None;
        } else if let Some(switch) = current.filter(|_| line.starts_with('[')) {
            let number = line[1..].split(']').next().and_then(|number| number.parse().ok());
            ports.push((switch, number.ok_or_else(|| format!("no port number in {line:?}"))?, quoted()?));
        }
    }
    let (mut channels, mut by_port, mut home) = (Vec::new(), BTreeMap::new(), vec![0; host_of.len()]);
    for (switch, port, far) in ports {
        let at = switch_of[switch];
        match (switch_of.get(far), host_of.get(far)) {
            (Some(&far), _) => {
                by_port.insert((at, port), channels.len());
                channels.push((at, far));
            }
            (None, Some(&host)) => home[host] = at,
            (None, None) => return Err(format!("{switch}[{port}] leads to {far}, which is nowhere")),
        }
    }
    let mut next = vec![vec![None; switch_of.len()]; host_of.len()];
    let mut at = None;
    for line in dump.lines() {
        let Some(name) = line.split('\'').nth(1) else { continue };
        if line.starts_with("Unicast") {
            at = Some(*switch_of.get(name).ok_or_else(|| format!("switch {name} is not in the fabric"))?);
        } else if let (Some(at), Some(&host), true) = (at, host_of.get(name), line.contains("Channel Adapter")) {
            let port = line.split_whitespace().nth(1).and_then(|port| port.parse().ok());
            next[host][at] = port.and_then(|port: usize| by_port.get(&(at, port)).copied());
        }
    }
    let lane = vec![0; host_of.len()];
    Ok(Routes { switches: switch_of.len(), channels, home, next, lane })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring of four switches with a host each; every frame goes clockwise.
    fn ring() -> Routes {
        let channels: Vec<(usize, usize)> = (0..4).map(|at| (at, (at + 1) % 4)).collect();
        let next = (0..4).map(|home| (0..4).map(|at| Some(at).filter(|&at| at != home)).collect()).collect();
        Routes { switches: 4, channels, home: vec![0, 1, 2, 3], next, lane: vec![0; 4] }
    }

    #[test]
    fn a_ring_is_counted_and_its_cycle_found() {
        let figures = ring().figures();
        assert_eq!((&figures["max_load"], &figures["avg_hops"]), (&json!(6), &json!(2.0)));
        assert_eq!((&figures["acyclic"], &figures["unreached"]), (&json!(false), &json!(0)));
    }

    #[test]
    fn lanes_break_the_cycle_and_a_hole_is_counted() {
        let mut routes = ring();
        routes.lane = vec![0, 0, 1, 1];
        let figures = routes.figures();
        assert_eq!((&figures["acyclic"], &figures["lanes"]), (&json!(false), &json!(2)));
        assert_eq!(figures["acyclic_by_lane"], json!(true));
        routes.next[0][3] = None;
        assert_eq!(routes.figures()["unreached"], json!(3));
    }

    #[test]
    fn a_plan_and_the_same_tables_give_the_same_figures() {
        let plan = r#"{"topology": {"switches": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
            "links": [{"a": "a:1", "b": "b:1"}, {"a": "b:2", "b": "c:1"}],
            "hosts": [{"port": "a:2"}, {"port": "c:2"}]},
            "trees": [{"vlan": 2, "lane": 0, "links": "0-1"}],
            "assignment": {"by": "destination", "vlans": [2, 2]}}"#;
        let fabric = "Hca\t1 \"h\"\n[1](0x1)\t\"a\"[2]\n\nHca\t1 \"i\"\n[1](0x2)\t\"c\"[2]\n\n\
            Switch\t2 \"a\"\n[1]\t\"b\"[1]\n[2]\t\"h\"[1]\nSwitch\t2 \"b\"\n[1]\t\"a\"[1]\n[2]\t\"c\"[1]\n\
            Switch\t2 \"c\"\n[1]\t\"b\"[2]\n[2]\t\"i\"[1]\n";
        let dump = "Unicast lids [0-5] of switch Lid 1 guid 0xa ('a'):\n0x0004 001 # Channel Adapter portguid 0x2: 'i'\n\
            Unicast lids [0-5] of switch Lid 2 guid 0xb ('b'):\n0x0003 001 # Channel Adapter portguid 0x1: 'h'\n\
            0x0004 002 # Channel Adapter portguid 0x2: 'i'\n\
            Unicast lids [0-5] of switch Lid 3 guid 0xc ('c'):\n0x0003 001 # Channel Adapter portguid 0x1: 'h'\n";
        let (plan, tables) =
            (of_plan(plan).expect("a plan").figures(), of_lfts(fabric, dump).expect("tables").figures());
        assert_eq!(plan, tables);
        assert_eq!((&plan["max_load"], &plan["avg_hops"], &plan["acyclic"]), (&json!(1), &json!(2.0), &json!(true)));
    }
}
