//! Writing: line by line, each built in memory and handed on, so that a large plan is never held twice.

use std::{collections::BTreeMap, io};

use sha2::{Digest, Sha256};

use super::{
    DIGEST_END, PLAN_VERSION,
    digest::{Hashing, hex},
    drain::drain_object,
    failover::write_failover,
    header,
    lines::{Quoted, commas, push_field, write_list},
    models::model_line,
    paths::write_paths,
    planes::planes_list,
    rows::row_lines,
    runs::{join_runs, push_run},
};
use crate::{
    Admin, Assignment, DeviceIntent, ETHERNET_MTU_BYTES, Flood, FlowControlMode, Group, HostId, InBand, IngressFilter,
    Learning, Lldp, Models, Plan, Policy, PortId, PortIntent, PortRole, Rails, Resilience, SpanningTree, StandbyEdge,
    Topology, Traffic, TrafficMatrix, VlanId, VlanSet, Weights, format::report::summary_fields,
};

/// Writes a plan file. The same plan gives the same bytes; a buffer is not needed.
///
/// # Errors
/// Those of `out`, and [`io::ErrorKind::InvalidData`] if a figure of the summary is no number.
pub fn write_plan(plan: &Plan, mut out: impl io::Write) -> io::Result<()> {
    let digest = plan_digest(plan)?;
    out.write_all(header(PLAN_VERSION).as_bytes())?;
    out.write_all(digest.as_bytes())?;
    out.write_all(DIGEST_END.as_bytes())?;
    write_body(plan, &mut out)?;
    out.flush()
}

/// The digest that a plan's file states: the SHA-256 of everything after it, in hexadecimal digits.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if a figure of the summary is no number.
pub fn plan_digest(plan: &Plan) -> io::Result<String> {
    let mut hasher = Hashing(Sha256::new());
    write_body(plan, &mut hasher)?;
    Ok(hex(&hasher.0.finalize()))
}

/// Everything after the digest.
fn write_body(plan: &Plan, out: &mut impl io::Write) -> io::Result<()> {
    let Plan {
        topology,
        policy,
        engine,
        trees,
        assignment,
        addresses,
        devices,
        certificate,
        bound,
        failover,
        paths,
        summary,
    } = plan;
    let mut figures = String::new();
    for (name, value) in summary_fields(summary) {
        if value.is_null() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("summary.{name} is not a number")));
        }
        push_field(&mut figures, name, value);
    }
    writeln!(out, "\"policy\":{{{}}},", policy_fields(policy))?;
    writeln!(out, "\"engine\":\"{engine}\",")?;
    write_list(out, "\"models\":[", Models::of(topology).iter().map(|model| model_line(model)), "],\n")?;
    write_topology(topology, out)?;
    if let Traffic::Matrix(matrix) = &policy.traffic {
        write_list(out, "\"traffic\":[", matrix_lines(matrix), "],\n")?;
    }
    if !policy.further_traffic.is_empty() {
        out.write_all(b"\"further_traffic\":[\n")?;
        for (number, matrix) in policy.further_traffic.iter().enumerate() {
            let end = if number + 1 < policy.further_traffic.len() { "],\n" } else { "]],\n" };
            write_list(out, "[", matrix_lines(matrix), end)?;
        }
    }
    let tree_lines = trees.iter().map(|tree| {
        let links = join_runs(tree.tree.links().iter().map(|link| link.index()));
        format!("{{\"vlan\":{},\"lane\":{},\"links\":\"{links}\"}}", tree.vlan, tree.lane)
    });
    write_list(out, "\"trees\":[", tree_lines, "],\n")?;
    write_assignment(assignment, out)?;
    let addresses: Vec<String> = addresses.iter().map(|address| format!("\"{address}\"")).collect();
    writeln!(out, "\"addresses\":[{}],", addresses.join(","))?;
    write_list(out, "\"devices\":[", devices.iter().map(|device| device_line(topology, device)), "],\n")?;
    match certificate {
        None => writeln!(out, "\"certificate\":null,")?,
        Some(certificate) => {
            let lanes = certificate.rank.iter().map(|ranks| format!("[{}]", commas(ranks)));
            write_list(out, "\"certificate\":{\"ranks\":[", lanes, "]},\n")?;
        }
    }
    writeln!(out, "\"bound\":{{\"lengths\":[{}]}},", commas(&bound.lengths))?;
    if let Some(failover) = failover {
        write_failover(failover, out)?;
    }
    if let Some(paths) = paths {
        write_paths(paths, out)?;
    }
    writeln!(out, "\"summary\":{{{figures}}}")?;
    out.write_all(b"}\n")
}

fn policy_fields(policy: &Policy) -> String {
    // A time limit does not change what is valid, and is left out; traffic needs lines of its own.
    let Policy {
        engine,
        tagging,
        flow_control,
        fdb,
        flood,
        storm_limit,
        vlans,
        vlans_max,
        subnet,
        mtu_bytes,
        rails,
        weights,
        seed,
        resilience,
        drain,
        planes,
        hops_max,
        paths_max,
        ..
    } = policy;
    let mut text = String::new();
    push_field(&mut text, "engine", Quoted(engine));
    push_field(&mut text, "tagging", Quoted(tagging));
    push_field(&mut text, "flow_control", Quoted(flow_control));
    push_field(&mut text, "fdb", Quoted(fdb));
    if *flood != Flood::Forward {
        push_field(&mut text, "flood", Quoted(flood));
    }
    if let Some(limit) = storm_limit {
        push_field(&mut text, "storm_limit", limit);
    }
    let (first, last, reserved) = (vlans.first, vlans.last, &vlans.reserved);
    push_field(&mut text, "vlans", format_args!("{{\"first\":{first},\"last\":{last},\"reserved\":\"{reserved}\"}}"));
    if let Some(vlans_max) = vlans_max {
        push_field(&mut text, "vlans_max", vlans_max);
    }
    push_field(&mut text, "subnet", Quoted(subnet));
    push_field(&mut text, "mtu_bytes", mtu_bytes);
    if *rails != Rails::Across {
        push_field(&mut text, "rails", Quoted(rails));
    }
    if *weights != Weights::Stated {
        push_field(&mut text, "weights", Quoted(weights));
    }
    push_field(&mut text, "seed", seed);
    if *resilience != Resilience::None {
        push_field(&mut text, "resilience", Quoted(resilience));
    }
    if !drain.is_empty() {
        push_field(&mut text, "drain", drain_object(drain));
    }
    if !planes.is_empty() {
        push_field(&mut text, "planes", planes_list(planes));
    }
    if let Some(hops_max) = hops_max {
        push_field(&mut text, "hops_max", hops_max);
    }
    if *paths_max != 1 {
        push_field(&mut text, "paths_max", paths_max);
    }
    text
}

fn write_topology(topology: &Topology, out: &mut impl io::Write) -> io::Result<()> {
    let switches = topology.switch_ids().map(|id| {
        let switch = topology.switch(id);
        let mut text = String::new();
        push_field(&mut text, "name", Quoted(&switch.name));
        push_field(&mut text, "model", Quoted(&switch.model.name));
        if let Some(mgmt) = switch.mgmt {
            push_field(&mut text, "mgmt", Quoted(mgmt));
        }
        if let Some(guid) = switch.guid {
            push_field(&mut text, "guid", Quoted(guid));
        }
        if !switch.identity.is_empty() {
            let mut items = String::new();
            for (key, item) in switch.identity.items() {
                // A maker may put anything into a serial number.
                push_field(&mut items, key, serde_json::Value::from(item));
            }
            push_field(&mut text, "id", format_args!("{{{items}}}"));
        }
        let ports: Vec<String> =
            topology.port_ids(id).map(|port| Quoted(&topology.port(port).name).to_string()).collect();
        push_field(&mut text, "ports", format_args!("[{}]", ports.join(",")));
        let lags = topology.port_ids(id).filter(|port| topology.port(*port).lag().is_some());
        let mut listed = String::new();
        for lag in lags {
            let members = topology.members(lag).map(|port| Quoted(&topology.port(port).name).to_string());
            let members = members.collect::<Vec<_>>().join(",");
            push_field(&mut listed, &topology.port(lag).name, format_args!("[{members}]"));
        }
        if !listed.is_empty() {
            push_field(&mut text, "lags", format_args!("{{{listed}}}"));
        }
        format!("{{{text}}}")
    });
    write_list(out, "\"topology\":{\"switches\":[", switches, "],\n")?;
    let links = topology.links().iter().map(|link| {
        let (a, b) = (Quoted(topology.port_label(link.a)), Quoted(topology.port_label(link.b)));
        format!("{{\"a\":{a},\"b\":{b},\"rate_bps\":{}}}", link.rate_bps)
    });
    write_list(out, "\"links\":[", links, "],\n")?;
    let hosts = topology.hosts().iter().map(|host| {
        let mut text = String::new();
        push_field(&mut text, "name", Quoted(&host.name));
        if host.edge {
            push_field(&mut text, "edge", true);
        } else {
            push_field(&mut text, "mac", Quoted(host.mac));
        }
        push_field(&mut text, "port", Quoted(topology.port_label(host.port)));
        push_field(&mut text, "rate_bps", host.rate_bps);
        if let Some(address) = host.address {
            push_field(&mut text, "address", Quoted(address));
        }
        if let Some(guid) = host.guid {
            push_field(&mut text, "guid", Quoted(guid));
        }
        let machine = &topology.machine(host.machine).name;
        if *machine != host.name {
            push_field(&mut text, "machine", Quoted(machine));
        }
        if let Some(rail) = host.rail {
            push_field(&mut text, "rail", rail);
        }
        if host.weight != 1 {
            push_field(&mut text, "weight", host.weight);
        }
        if topology.is_in_bond(host) {
            push_field(&mut text, "bond", Quoted("failover"));
        }
        if host.standby {
            push_field(&mut text, "standby", true);
        }
        if !host.further_macs.is_empty() {
            let macs: Vec<String> = host.further_macs.iter().map(|mac| Quoted(mac).to_string()).collect();
            push_field(&mut text, "macs", format_args!("[{}]", macs.join(",")));
        }
        if let Some(most) = host.learned_max {
            push_field(&mut text, "learned_max", most);
        }
        format!("{{{text}}}")
    });
    write_list(out, "\"hosts\":[", hosts, "]")?;
    let standby_edges = topology.standby_edges().iter().map(|StandbyEdge { name, port, rate_bps, macs }| {
        let mut text = String::new();
        push_field(&mut text, "name", Quoted(name));
        push_field(&mut text, "port", Quoted(topology.port_label(*port)));
        push_field(&mut text, "rate_bps", rate_bps);
        if !macs.is_empty() {
            let macs: Vec<String> = macs.iter().map(|mac| Quoted(mac).to_string()).collect();
            push_field(&mut text, "macs", format_args!("[{}]", macs.join(",")));
        }
        format!("{{{text}}}")
    });
    if standby_edges.len() > 0 {
        write_list(out, ",\"standby_edges\":[", standby_edges, "]")?;
    }
    let groups = topology.groups().iter().map(|Group { name, switches, links }| {
        let switches = join_runs(switches.iter().map(|switch| switch.index()));
        let links = join_runs(links.iter().map(|link| link.index()));
        format!("{{\"name\":{},\"switches\":\"{switches}\",\"links\":\"{links}\"}}", Quoted(name))
    });
    if groups.len() > 0 {
        write_list(out, ",\"groups\":[", groups, "]")?;
    }
    if let Some(InBand { vlan, controller }) = topology.in_band() {
        let controller = Quoted(topology.port_label(controller));
        write!(out, ",\"management\":{{\"vlan\":{vlan},\"controller\":{controller}")?;
        let return_ports = topology.return_ports().iter().map(|port| Quoted(topology.port_label(*port)).to_string());
        if return_ports.len() > 0 {
            write_list(out, ",\"return_ports\":[", return_ports, "]")?;
        }
        out.write_all(b"}")?;
    }
    out.write_all(b"},\n")
}

/// A line for each host that sends something.
fn matrix_lines(matrix: &TrafficMatrix) -> impl Iterator<Item = String> + '_ {
    let senders = HostId::all(matrix.hosts()).filter(|source| !matrix.sent_by(*source).is_empty());
    senders.map(|source| {
        let row = matrix.sent_by(source);
        let to = join_runs(row.iter().map(|entry| entry.0.index()));
        let demands: Vec<f64> = row.iter().map(|entry| entry.1).collect();
        format!("{{\"source\":{},\"to\":\"{to}\",\"demands\":[{}]}}", source.index(), commas(&demands))
    })
}

fn write_assignment(assignment: &Assignment<VlanId>, out: &mut impl io::Write) -> io::Result<()> {
    match assignment {
        Assignment::Source(vlans) => {
            writeln!(out, "\"assignment\":{{\"by\":\"source\",\"vlans\":[{}]}},", commas(vlans))
        }
        Assignment::Destination { choice, broadcast } => {
            let (vlans, apart) = (commas(choice), broadcast_apart(choice, broadcast));
            writeln!(out, "\"assignment\":{{\"by\":\"destination\",\"vlans\":[{vlans}]{apart}}},")
        }
        Assignment::Priority { choice, priority, broadcast } => {
            let (vlans, priorities) = (commas(choice), commas(priority));
            let apart = broadcast_apart(choice, broadcast);
            writeln!(
                out,
                "\"assignment\":{{\"by\":\"priority\",\"vlans\":[{vlans}],\"priorities\":[{priorities}]{apart}}},"
            )
        }
        Assignment::Pair { unicast, broadcast } => {
            writeln!(out, "\"assignment\":{{\"by\":\"pair\",\"broadcast\":[{}],", commas(broadcast))?;
            let sources = row_lines(unicast, ToString::to_string);
            write_list(out, "\"unicast\":[", sources, "]},\n")
        }
    }
}

/// What hosts send to everybody in, where that is not their own choice.
fn broadcast_apart(choice: &[VlanId], broadcast: &[VlanId]) -> String {
    if choice == broadcast { String::new() } else { format!(",\"broadcast\":[{}]", commas(broadcast)) }
}

fn device_line(topology: &Topology, device: &DeviceIntent) -> String {
    let mut text = String::new();
    push_field(&mut text, "switch", Quoted(&topology.switch(device.switch).name));
    let ports: Vec<String> = device.ports.iter().map(|port| port_object(topology, port)).collect();
    push_field(&mut text, "ports", format_args!("[{}]", ports.join(",")));
    // By VLAN, then by port: the runs of hosts.
    let mut tables: BTreeMap<VlanId, BTreeMap<PortId, String>> = BTreeMap::new();
    for run in &device.fdb {
        let hosts = tables.entry(run.vlan).or_default().entry(run.port).or_default();
        push_run(hosts, run.first.index(), run.last.index());
    }
    let tables: Vec<String> = (tables.iter())
        .map(|(vlan, ports)| {
            let mut text = String::new();
            for (port, hosts) in ports {
                push_field(&mut text, &topology.port(*port).name, Quoted(hosts));
            }
            format!("{{\"vlan\":{vlan},\"to\":{{{text}}}}}")
        })
        .collect();
    push_field(&mut text, "fdb", format_args!("[{}]", tables.join(",")));
    if !device.foreign.is_empty() {
        let entries = device.foreign.iter().map(|entry| {
            let port = Quoted(&topology.port(entry.port).name);
            format!("{{\"vlan\":{},\"mac\":\"{}\",\"port\":{port}}}", entry.vlan, entry.mac)
        });
        push_field(&mut text, "foreign", format_args!("[{}]", entries.collect::<Vec<_>>().join(",")));
    }
    if device.learning == Learning::On {
        push_field(&mut text, "learning", Quoted("on"));
    }
    if !device.classes.is_empty() {
        let classes: Vec<String> = device.classes.iter().map(|vlans| Quoted(vlans).to_string()).collect();
        push_field(&mut text, "classes", format_args!("[{}]", classes.join(",")));
    }
    if device.spanning_tree == SpanningTree::On {
        push_field(&mut text, "spanning_tree", Quoted("on"));
    }
    if device.lldp == Lldp::Off {
        push_field(&mut text, "lldp", Quoted("off"));
    }
    format!("{{{text}}}")
}

fn port_object(topology: &Topology, intent: &PortIntent) -> String {
    let PortIntent {
        port,
        role,
        admin,
        pvid,
        tagged,
        untagged,
        flow_control,
        mtu_bytes,
        ingress_filter,
        blocked,
        untagged_class,
        storm_limit,
        lag,
    } = intent;
    let mut text = String::new();
    push_field(&mut text, "port", Quoted(&topology.port(*port).name));
    match role {
        PortRole::Unused => push_field(&mut text, "role", "\"unused\""),
        PortRole::Controller => push_field(&mut text, "role", "\"controller\""),
        PortRole::Return => push_field(&mut text, "role", "\"return\""),
        PortRole::Host(host) => push_field(&mut text, "role", format_args!("\"host {}\"", host.index())),
        PortRole::Link(link) => push_field(&mut text, "role", format_args!("\"link {}\"", link.index())),
        PortRole::Member => push_field(&mut text, "role", "\"member\""),
    }
    match admin {
        Admin::Up => push_field(&mut text, "admin", "\"up\""),
        Admin::Down => push_field(&mut text, "admin", "\"down\""),
    }
    if let Some(pvid) = pvid {
        push_field(&mut text, "pvid", pvid);
    }
    let mut push_set = |name, vlans: &VlanSet| {
        if !vlans.is_empty() {
            push_field(&mut text, name, Quoted(vlans));
        }
    };
    push_set("tagged", tagged);
    push_set("untagged", untagged);
    match flow_control {
        FlowControlMode::Off => push_field(&mut text, "flow_control", "\"off\""),
        FlowControlMode::Pause => push_field(&mut text, "flow_control", "\"pause\""),
        FlowControlMode::Pfc { lanes } => push_field(&mut text, "flow_control", format_args!("\"pfc={lanes}\"")),
    }
    if *mtu_bytes != ETHERNET_MTU_BYTES {
        push_field(&mut text, "mtu_bytes", mtu_bytes);
    }
    if *ingress_filter == IngressFilter::Off {
        push_field(&mut text, "ingress_filter", Quoted("off"));
    }
    if !blocked.is_empty() {
        push_field(&mut text, "blocked", Quoted(blocked));
    }
    if *untagged_class != 0 {
        push_field(&mut text, "untagged_class", untagged_class);
    }
    if let Some(limit) = storm_limit {
        push_field(&mut text, "storm_limit", limit);
    }
    if let Some(lag) = lag {
        push_field(&mut text, "lag", Quoted(&topology.port(*lag).name));
    }
    format!("{{{text}}}")
}
