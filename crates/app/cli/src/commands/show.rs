//! `espalier show`: a plan explained to a person.

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::Result;
use fabric::{
    Attachment, DeviceIntent, FloodSet, HostId, HostTagging, Plan, PortRole, SwitchId, Topology, VlanId,
    format::{plan::ReadMode, report::summary_json, table::Table},
};
use verify::{Receiver, walk};

use super::{
    Output,
    plan::{add_options, print_summary},
    say,
};
use crate::{cli, failure::bad_input, files::read_plan_file};

pub(super) fn run(args: &cli::Show, output: Output) -> Result<ExitCode> {
    let plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    let cli::Subject { host, route, vlan, switch, failure, failures, paths, since } = &args.subject;
    if let Some(name) = host {
        show_host(&plan, find_host(&plan.topology, name)?, output)?;
    } else if let Some([from, to]) = route.as_deref() {
        show_route(&plan, find_host(&plan.topology, from)?, find_host(&plan.topology, to)?, output)?;
    } else if let Some([from, to]) = paths.as_deref() {
        show_paths(&plan, find_host(&plan.topology, from)?, find_host(&plan.topology, to)?, output)?;
    } else if let Some(vlan) = *vlan {
        show_vlan(&plan, vlan, output)?;
    } else if let Some(name) = switch {
        show_switch(&plan, find_switch(&plan.topology, name)?, output)?;
    } else if let Some(parts) = failure {
        super::failure::show(&plan, parts, output)?;
    } else if *failures {
        super::outage::show_all(&plan, output)?;
    } else if let Some(old) = since {
        super::since::show(&read_plan_file(old, ReadMode::Strict)?, &plan, output)?;
    } else {
        show_plan(&plan, output)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show_plan(plan: &Plan, output: Output) -> Result<()> {
    if output == Output::Json {
        let mut summary = summary_json(&plan.summary);
        add_options(plan, &mut summary);
        say!("{}", serde_json::json!({ "engine": plan.engine.word(), "summary": summary }));
        return Ok(());
    }
    print_summary(plan, &verify::judge(plan))?;
    say!();
    let mut table = Table::new(["VLAN", "lane", "links", "senders"]);
    for tree in &plan.trees {
        let senders = plan.topology.host_ids().filter(|host| plan.assignment.broadcast(*host) == tree.vlan).count();
        let cells = [tree.lane.to_string(), tree.tree.links().len().to_string(), senders.to_string()];
        table.row(std::iter::once(tree.vlan.to_string()).chain(cells));
    }
    say!("{table}");
    Ok(())
}

fn show_host(plan: &Plan, host: HostId, output: Output) -> Result<()> {
    let topology = &plan.topology;
    let intent = plan.host_intent(host);
    let name = &topology.host(host).name;
    let macs: Vec<String> = topology.host(host).macs().map(|mac| mac.to_string()).collect();
    let vlan = plan.assignment.broadcast(host);
    let tagger = match intent.tagging {
        HostTagging::BySwitch => "its switch",
        HostTagging::ByHost => "the host itself",
    };
    let ways: Vec<(HostId, VlanId, usize)> = (topology.host_ids())
        .filter(|other| *other != host)
        .map(|other| {
            let vlan = plan.assignment.unicast(host, other);
            (other, vlan, path_switches(plan, vlan, host, other))
        })
        .collect();
    if output == Output::Json {
        let ways: Vec<_> = (ways.iter())
            .map(|(to, vlan, switches)| {
                serde_json::json!({ "to": topology.host(*to).name, "vlan": vlan.get(), "switches": switches })
            })
            .collect();
        say!(
            "{}",
            serde_json::json!({
                "host": name, "machine": topology.machine(topology.host(host).machine).name, "rail": topology.host(host).rail,
               "weight": topology.host(host).weight,
                "mac": intent.mac.to_string(), "macs": macs, "address": intent.address.to_string(),
                "port": topology.port_label(topology.host(host).port), "vlan": vlan.get(), "routes": ways,
            })
        );
        return Ok(());
    }
    let fabric::Host { machine, rail, weight, .. } = topology.host(host);
    let machine = &topology.machine(*machine).name;
    let of_machine = if machine == name { String::new() } else { format!(", a port of machine {machine}") };
    let on_rail = rail.map_or_else(String::new, |rail| format!(", rail {rail}"));
    let weighing = if *weight == 1 { String::new() } else { format!(", weight {weight}") };
    say!(
        "host {name}: {} at {}{of_machine}{on_rail}{weighing}",
        macs.join(", "),
        topology.port_label(topology.host(host).port)
    );
    say!("address {}/{}, MTU {}", intent.address, intent.prefix_bits, intent.mtu_bytes);
    say!("frames are tagged by {tagger}; broadcasts go out in VLAN {vlan}");
    let mut table = Table::new(["to", "VLAN", "switches"]);
    for (to, vlan, switches) in ways {
        table.row([topology.host(to).name.clone(), vlan.to_string(), switches.to_string()]);
    }
    say!("{table}");
    Ok(())
}

/// Switches on the way of a frame in the tree of its VLAN.
fn path_switches(plan: &Plan, vlan: VlanId, from: HostId, to: HostId) -> usize {
    let topology = &plan.topology;
    let rooted = plan.tree(vlan).map(|tree| tree.tree.rooted_at(topology, topology.switch_of(from)));
    rooted.map_or(0, |rooted| rooted.path_to(topology, topology.switch_of(to)).len() + 1)
}

fn show_route(plan: &Plan, from: HostId, to: HostId, output: Output) -> Result<()> {
    let walk = walk(plan, from, Receiver::Host(to));
    let lines = walk.lines(&plan.topology);
    match output {
        Output::Json => say!("{}", serde_json::json!({ "steps": lines, "outcome": walk.outcome(&plan.topology) })),
        Output::Person => {
            for line in lines {
                say!("{line}");
            }
        }
    }
    Ok(())
}

/// The VLANs of a pair, the assigned one first, with the links between switches of each path.
fn show_paths(plan: &Plan, from: HostId, to: HostId, output: Output) -> Result<()> {
    let topology = &plan.topology;
    let assigned = plan.assignment.unicast(from, to);
    let set = plan.paths.as_ref().map_or(&[][..], |paths| paths.of(from, to));
    let others = set.iter().copied().filter(|vlan| *vlan != assigned);
    let links = |vlan: VlanId| -> Vec<String> {
        let rooted = plan.tree(vlan).map(|tree| tree.tree.rooted_at(topology, topology.switch_of(from)));
        let path = rooted.map_or_else(Vec::new, |rooted| rooted.path_to(topology, topology.switch_of(to)));
        path.into_iter().map(|channel| topology.channel_label(channel)).collect()
    };
    let paths: Vec<(VlanId, Vec<String>)> =
        std::iter::once(assigned).chain(others).map(|vlan| (vlan, links(vlan))).collect();
    if output == Output::Json {
        let paths: Vec<_> =
            (paths.iter()).map(|(vlan, links)| serde_json::json!({ "vlan": vlan.get(), "links": links })).collect();
        say!("{}", serde_json::json!({ "paths": paths }));
        return Ok(());
    }
    let mut table = Table::new(["VLAN", "hops", "links"]);
    for (vlan, links) in paths {
        table.row([vlan.to_string(), links.len().to_string(), links.join(", ")]);
    }
    say!("{table}");
    Ok(())
}

fn show_vlan(plan: &Plan, vlan: VlanId, output: Output) -> Result<()> {
    let topology = &plan.topology;
    let Some(tree) = plan.tree(vlan) else {
        let known: fabric::VlanSet = plan.trees.iter().map(|tree| tree.vlan).collect();
        return Err(bad_input(format!("the plan has no VLAN {vlan}; it has {known}")));
    };
    let senders: Vec<&str> = (topology.host_ids())
        .filter(|host| plan.assignment.broadcast(*host) == vlan)
        .map(|host| topology.host(host).name.as_str())
        .collect();
    if output == Output::Json {
        let links: Vec<String> = tree.tree.links().iter().map(|link| topology.link_label(*link)).collect();
        say!("{}", serde_json::json!({ "vlan": vlan.get(), "lane": tree.lane, "links": links, "senders": senders }));
        return Ok(());
    }
    say!("VLAN {vlan}, lane {}: {} links", tree.lane, tree.tree.links().len());
    say!("senders: {}", if senders.is_empty() { "none by default".to_owned() } else { senders.join(" ") });
    let root =
        senders.first().and_then(|name| topology.find_host(name)).map_or(SwitchId::new(0), |h| topology.switch_of(h));
    let rooted = tree.tree.rooted_at(topology, root);
    let mut stack = vec![(root, String::new(), String::new())];
    while let Some((switch, branch, indent)) = stack.pop() {
        let via = rooted.inward[switch.index()].map_or(String::new(), |channel| {
            format!(
                "  ({} to {})",
                topology.port(topology.tail_port(channel)).name,
                topology.port(topology.head_port(channel)).name
            )
        });
        say!("{branch}{}{via}", topology.switch(switch).name);
        let below: Vec<SwitchId> = (topology.channels_from(switch).iter())
            .map(|channel| (topology.head(*channel), *channel))
            .filter(|(head, channel)| rooted.inward[head.index()] == Some(*channel))
            .map(|(head, _)| head)
            .collect();
        for (index, &next) in below.iter().enumerate().rev() {
            let (branch, indented) = if index + 1 == below.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            stack.push((next, format!("{indent}{branch}"), format!("{indent}{indented}")));
        }
    }
    Ok(())
}

fn show_switch(plan: &Plan, switch: SwitchId, output: Output) -> Result<()> {
    let topology = &plan.topology;
    let device = &plan.devices[switch.index()];
    let mut table = Table::new(["port", "to", "PVID", "untagged", "tagged", "entries"]);
    let mut rows = Vec::new();
    for port in &device.ports {
        let to = match topology.port(port.port).attachment {
            Attachment::Nothing => {
                let edge = topology.standby_edge_at(port.port);
                match (topology.role_without_cable(port.port), edge) {
                    (PortRole::Controller, _) => "the controller".to_owned(),
                    (PortRole::Return, _) => "a switch that is left out".to_owned(),
                    (_, Some(edge)) => format!("{} (on standby)", edge.name),
                    (_, None) => "-".to_owned(),
                }
            }
            Attachment::Host(host) => topology.host(host).name.clone(),
            Attachment::Member(lag) => topology.port(lag).name.clone(),
            Attachment::Link(link) => {
                let fabric::Link { a, b, .. } = *topology.link(link);
                topology.port_label(if a == port.port { b } else { a })
            }
        };
        let runs = device.fdb.iter().filter(|run| run.port == port.port);
        let entries: usize = runs.map(|run| run.len(topology)).sum();
        let pvid = port.pvid.map_or("-".to_owned(), |vlan| vlan.to_string());
        let mut row = serde_json::json!({
            "port": topology.port(port.port).name, "to": to, "role": role_word(port.role),
            "pvid": port.pvid.map(VlanId::get), "untagged": port.untagged.to_string(),
            "tagged": port.tagged.to_string(), "entries": entries,
        });
        if let Attachment::Link(link) = topology.port(port.port).attachment {
            let groups = topology.groups().iter().filter(|group| !group.is_link_pair() && group.links.contains(&link));
            let groups: Vec<&str> = groups.map(|group| group.name.as_str()).collect();
            if !groups.is_empty() {
                row["groups"] = groups.into();
            }
        }
        if !port.blocked.is_empty() {
            row["blocked"] = port.blocked.to_string().into();
        }
        if let Some(limit) = port.storm_limit {
            row["storm_limit"] = limit.percent().into();
        }
        if port.untagged_class != 0 {
            row["untagged_class"] = port.untagged_class.into();
        }
        rows.push(row);
        table.row([
            topology.port(port.port).name.clone(),
            to,
            pvid,
            port.untagged.to_string(),
            port.tagged.to_string(),
            entries.to_string(),
        ]);
    }
    let (name, model) = (&topology.switch(switch).name, &topology.switch(switch).model);
    let groups = topology.groups().iter().filter(|group| group.switches.contains(&switch));
    let groups: Vec<&str> = groups.map(|group| group.name.as_str()).collect();
    match output {
        Output::Json => {
            let mut object = serde_json::json!({
                "switch": name, "model": model.name, "static_entries": device.fdb_len(topology), "ports": rows
            });
            if !groups.is_empty() {
                object["groups"] = groups.into();
            }
            say!("{object}");
        }
        Output::Person => {
            say!("switch {name} ({}): {} static entries", model.description, device.fdb_len(topology));
            if !groups.is_empty() {
                say!("groups: {}", groups.join(", "));
            }
            say!("{table}");
            for (blocked, ports) in by_blocked(topology, device) {
                say!("blocked floods: {blocked} on {ports}");
            }
        }
    }
    Ok(())
}

/// Ports by the floods that they do not let out, for a person; those that let all out are left out.
fn by_blocked(topology: &Topology, device: &DeviceIntent) -> BTreeMap<FloodSet, String> {
    let mut by_blocked: BTreeMap<FloodSet, String> = BTreeMap::new();
    for port in device.ports.iter().filter(|port| !port.blocked.is_empty()) {
        let names = by_blocked.entry(port.blocked).or_default();
        let comma = if names.is_empty() { "" } else { ", " };
        names.push_str(comma);
        names.push_str(&topology.port(port.port).name);
    }
    by_blocked
}

fn role_word(role: PortRole) -> &'static str {
    match role {
        PortRole::Unused => "unused",
        PortRole::Controller => "controller",
        PortRole::Return => "return",
        PortRole::Host(_) => "host",
        PortRole::Link(_) => "link",
        PortRole::Member => "member",
    }
}

fn find_host(topology: &Topology, name: &str) -> Result<HostId> {
    topology.find_host(name).ok_or_else(|| {
        let known = topology.hosts().iter().map(|host| host.name.as_str());
        bad_input(format!("the plan has no host {name}; it has {}", some(known)))
    })
}

fn find_switch(topology: &Topology, name: &str) -> Result<SwitchId> {
    topology.find_switch(name).ok_or_else(|| {
        let known = topology.switches().iter().map(|switch| switch.name.as_str());
        bad_input(format!("the plan has no switch {name}; it has {}", some(known)))
    })
}

/// The first few names.
fn some<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const SHOWN_MAX: usize = 8;
    let more = if names.len() > SHOWN_MAX { ", …" } else { "" };
    let shown: Vec<&str> = names.take(SHOWN_MAX).collect();
    format!("{}{more}", shown.join(", "))
}
