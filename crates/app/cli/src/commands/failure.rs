//! `espalier show PLAN --failure PARTS`: what hosts do when a link, a switch or a named group fails, and what that costs; of other
//! parts, or where nothing is stored, what is lost.

use std::collections::BTreeMap;

use anyhow::Result;
use controller::moved_words;
use fabric::{
    Assignment, Failover, Failure, FlowControl, Group, GroupId, HostId, Plan, Proof, SwitchOver, VlanId,
    dividing_groups, dividing_links, dividing_switches,
    format::{
        report::load_json,
        table::{Table, amount},
    },
};
use serde_json::json;
use verify::Outage;

use super::{Output, loads::load_words, outage, parts::parts_named, say};
use crate::count::abridged;

/// Hosts named in one row; the rest are counted.
const NAMES_MAX: usize = 12;

pub(super) fn show(plan: &Plan, parts: &[String], output: Output) -> Result<()> {
    let topology = &plan.topology;
    let (switches, links) = parts_named(topology, "--failure", parts)?;
    let outage = Outage { switches, links };
    let prepared = plan.failover.as_ref().and_then(|failover| Some((prepared_for(plan, &outage, failover)?, failover)));
    let Some((failure, failover)) = prepared else { return outage::show(plan, &outage, output) };
    let (divides, kind, others) = match failure {
        Failure::Link(link) => (dividing_links(topology).contains(&link), "link", "hosts"),
        Failure::Switch(switch) => (dividing_switches(topology).contains(&switch), "switch", "other hosts"),
        Failure::Group(group) => (dividing_groups(topology).contains(&group), "group", "other hosts"),
    };
    let over = failover.switch_over(failure);
    let time = verify::time_after(plan, failure);
    let moves = over.map_or_else(Vec::new, |over| moves(plan, over));
    if output == Output::Json {
        let moves: Vec<_> = (moves.iter())
            .map(|Move { from, to, hosts, pairs }| {
                let hosts: Vec<&str> = hosts.iter().map(|host| topology.host(*host).name.as_str()).collect();
                let mut object = json!({ "from": from.map(VlanId::get), "to": to.get(), "hosts": hosts });
                if *pairs > 0 {
                    object["pairs"] = (*pairs).into();
                }
                object
            })
            .collect();
        say!(
            "{}",
            json!({
                kind: failure.label(topology), "survived": !divides, "moves": moves,
                "proof": over.map(|over| proof_word(over.proof)), "max_channel_time": time.filter(|_| !divides).map(load_json),
            })
        );
        return Ok(());
    }
    let label = failure.label(topology);
    if divides {
        say!("without {label} {others} are cut off from each other: no other path exists");
        return Ok(());
    }
    let Some(over) = over else {
        match failure {
            Failure::Link(_) => say!("without {label} nothing changes: no frame needs it"),
            Failure::Switch(_) | Failure::Group(_) => {
                say!("without {label} nothing changes for other hosts: none of their frames passes it")
            }
        }
        return Ok(());
    };
    say!("without {label} {}", moved_words(plan, over));
    say!("proof            {}", proof_words(over.proof, plan.policy.flow_control));
    if let Some(time) = time {
        let before = amount(plan.summary.max_channel_time);
        let counted = match failure {
            Failure::Link(_) => "",
            Failure::Switch(_) => ", with the traffic of its own hosts",
            Failure::Group(group) if topology.group(group).switches.is_empty() => "",
            Failure::Group(_) => ", with the traffic of its own hosts",
        };
        say!("max load         {}; {before} while all links are up{counted}", load_words(plan, time));
    }
    let by_pair = matches!(plan.assignment, Assignment::Pair { .. });
    let mut table = Table::new(["from VLAN", "to VLAN", if by_pair { "pairs" } else { "hosts" }, "of"]);
    for Move { from, to, hosts, pairs } in &moves {
        let names: Vec<&str> = hosts.iter().map(|host| topology.host(*host).name.as_str()).collect();
        let count = if by_pair { *pairs } else { hosts.len() };
        let from = from.map_or_else(|| "several".to_owned(), |vlan| vlan.to_string());
        table.row([from, to.to_string(), count.to_string(), abridged(&names, " ", NAMES_MAX)]);
    }
    say!("{table}");
    Ok(())
}

/// The one failure that parts are, if the plan is ready for its kind.
fn prepared_for(plan: &Plan, outage: &Outage, failover: &Failover) -> Option<Failure> {
    let is_whole = |group: &GroupId| {
        let Group { switches, links, .. } = plan.topology.group(*group);
        outage.switches.iter().eq(switches) && outage.links.iter().eq(links)
    };
    let group = plan.topology.group_ids().filter(|_| failover.summary.groups.is_some()).find(is_whole);
    if let Some(group) = group {
        return Some(Failure::Group(group));
    }
    let parts = outage.switches.len() + outage.links.len();
    match (outage.switches.first(), outage.links.first()) {
        (None, Some(link)) if parts == 1 => Some(Failure::Link(*link)),
        (Some(switch), None) if parts == 1 && failover.summary.switches.is_some() => Some(Failure::Switch(*switch)),
        _ => None,
    }
}

/// Choices that change alike.
struct Move {
    /// None: by pair, from wherever they were.
    from: Option<VlanId>,
    to: VlanId,
    hosts: Vec<HostId>,
    /// By pair: how many receivers in all.
    pairs: usize,
}

fn moves(plan: &Plan, over: &SwitchOver) -> Vec<Move> {
    let mut moves: BTreeMap<(Option<VlanId>, VlanId), (Vec<HostId>, usize)> = BTreeMap::new();
    if let Assignment::Pair { .. } = plan.assignment {
        for pair in &over.pairs {
            let (hosts, pairs) = moves.entry((None, pair.run.choice)).or_default();
            if hosts.last() != Some(&pair.source) {
                hosts.push(pair.source);
            }
            *pairs += pair.run.last.index() - pair.run.first.index() + 1;
        }
    } else {
        for run in &over.hosts {
            for host in (run.first.index()..=run.last.index()).map(HostId::new) {
                moves.entry((plan.assignment.own(host), run.choice)).or_default().0.push(host);
            }
        }
    }
    moves.into_iter().map(|((from, to), (hosts, pairs))| Move { from, to, hosts, pairs }).collect()
}

fn proof_word(proof: Proof) -> &'static str {
    match proof {
        Proof::Unneeded => "unneeded",
        Proof::Certificate => "certificate",
        Proof::Numbering(_) => "numbering",
        Proof::Drained(_) => "drained",
    }
}

fn proof_words(proof: Proof, flow_control: FlowControl) -> String {
    match proof {
        Proof::Unneeded => format!("none is needed: with flow control {flow_control} no frame waits for another"),
        Proof::Certificate => "the plan's certificate covers it: hosts may switch over one by one".to_owned(),
        Proof::Numbering(number) => {
            format!("further numbering {number} covers the routes before and after: hosts may switch over one by one")
        }
        Proof::Drained(number) => {
            format!("further numbering {number} covers the routes after: let the fabric run empty, then switch over")
        }
    }
}
