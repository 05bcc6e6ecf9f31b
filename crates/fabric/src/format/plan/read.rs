//! Reading: every value is judged where it stands, so that a plan that was read can be trusted like one that was made.
//!
//! What is judged here is whether the file *is* a plan: every number names something, every list has its length, trees
//! are trees. Whether it is a *good* plan, free of loops and floods, is for the judge to say.

use std::{collections::BTreeMap, net::IpAddr, str::FromStr};

use sha2::{Digest, Sha256};

use super::{
    DIGEST_END, PLAN_BYTES_MAX, PLAN_VERSION, PLAN_VERSION_MIN, PlanFileError, ReadMode,
    digest::hex,
    drain::drain,
    failover::failover,
    header,
    json::{Json, Located, Read},
    models::models,
    numbering::{LANES_MAX, numbering, per_channel},
    paths::{path_summary, paths, paths_max},
    planes::planes,
    rows::rows,
    runs::parse_runs,
};
use crate::{
    Admin, Assignment, Bound, Certificate, DEMAND_MAX, Demand, DeviceIntent, ETHERNET_MTU_BYTES, EngineName, Fault,
    FdbEntry, FdbRun, Flood, FloodSet, FlowControlMode, HostId, InBand, IngressFilter, Learning, LinkId, Lldp, Mac,
    Models, Plan, Policy, PortId, PortIntent, PortRole, Rails, Resilience, SpanningTree, StormLimit, Summary, SwitchId,
    SwitchIdentity, SwitchSpec, Topology, TopologyBuilder, Traffic, TrafficMatrix, Tree, VlanId, VlanPool, VlanSet,
    VlanTree, Weights,
};

/// Reads a plan file. Cost: O(bytes · log ports).
///
/// # Errors
/// [`PlanFileError`], naming the place in the file.
pub fn read_plan(text: &[u8], mode: ReadMode) -> Result<Plan, PlanFileError> {
    if text.len() > PLAN_BYTES_MAX {
        return Err(PlanFileError::TooLarge { bytes: text.len() });
    }
    let json: Json =
        serde_json::from_slice(text).map_err(|error| PlanFileError::NotJson { message: error.to_string() })?;
    let root = Located::root(&json);
    let version = root.optional("espalier_plan").ok().flatten().ok_or(PlanFileError::NotAPlan)?.whole()?;
    if !(PLAN_VERSION_MIN..=PLAN_VERSION).contains(&version) {
        return Err(PlanFileError::Version { found: version });
    }
    match mode {
        ReadMode::Strict => check_digest(text, version, root.field("digest")?.text()?)?,
        ReadMode::IgnoreDigest => {}
    }
    plan(&root, version)
}

fn check_digest(text: &[u8], version: u64, stated: &str) -> Read<()> {
    let before = [header(version).as_bytes(), stated.as_bytes(), DIGEST_END.as_bytes()].concat();
    // A file that does not begin as it is written was laid out anew; its digest is that of the whole.
    let body = text.strip_prefix(before.as_slice()).unwrap_or(text);
    let found = hex(&Sha256::digest(body));
    if found == stated {
        return Ok(());
    }
    Err(PlanFileError::Changed { stated: stated.chars().take(found.len()).collect(), found })
}

fn plan(root: &Located<'_>, version: u64) -> Read<Plan> {
    root.only(&[
        "espalier_plan",
        "digest",
        "policy",
        "engine",
        "models",
        "topology",
        "traffic",
        "further_traffic",
        "trees",
        "assignment",
        "addresses",
        "devices",
        "certificate",
        "bound",
        "failover",
        "paths",
        "summary",
    ])?;
    let models = if version < 3 { Models::built_in() } else { models(&root.field("models")?)? };
    let topology = topology(&root.field("topology")?, models)?;
    let engine_at = root.field("engine")?;
    let engine = engine_at.parsed()?;
    if engine == EngineName::Auto {
        return Err(engine_at.error("a finished plan names the engine that found its routes, never auto"));
    }
    let addresses_at = root.field("addresses")?;
    let addresses =
        addresses_at.items_for(topology.hosts().len(), "hosts")?.map(|at| at.parsed()).collect::<Read<_>>()?;
    let mut plan = Plan {
        policy: Policy {
            traffic: traffic(&topology, root)?,
            further_traffic: further_traffic(&topology, root)?,
            ..policy(&topology, &root.field("policy")?)?
        },
        engine,
        trees: trees(&topology, &root.field("trees")?)?,
        assignment: assignment(&topology, &root.field("assignment")?)?,
        addresses,
        devices: devices(&topology, &root.field("devices")?)?,
        certificate: certificate(&topology, &root.field("certificate")?)?,
        bound: bound(&topology, &root.field("bound")?)?,
        failover: root.optional("failover")?.map(|at| failover(&topology, &at)).transpose()?,
        paths: root.optional("paths")?.map(|at| paths(&topology, &at)).transpose()?,
        summary: summary(&root.field("summary")?, version)?,
        topology,
    };
    if version < 4 {
        state_what_was_implied(&mut plan);
    }
    if version < 5 {
        state_untagged_classes(&mut plan);
    }
    Ok(plan)
}

/// Up to version 4 the class of untagged frames stood in their VLAN's tree alone.
fn state_untagged_classes(plan: &mut Plan) {
    let Plan { policy, trees, devices, .. } = plan;
    for port in devices.iter_mut().flat_map(|device| &mut device.ports) {
        port.untagged_class = port.pvid.map_or(0, |pvid| policy.class_of(trees, pvid));
    }
}

/// Up to version 3 a VLAN's class stood in its tree alone, and an MTU in the policy alone.
fn state_what_was_implied(plan: &mut Plan) {
    let Plan { policy, trees, devices, .. } = plan;
    for device in devices {
        device.classes = policy.classes_of(trees, &device.vlans());
        for port in device.ports.iter_mut().filter(|port| matches!(port.role, PortRole::Host(_) | PortRole::Link(_))) {
            port.mtu_bytes = policy.port_mtu_bytes();
        }
    }
}

fn policy(topology: &Topology, at: &Located<'_>) -> Read<Policy> {
    at.only(&[
        "engine",
        "tagging",
        "flow_control",
        "fdb",
        "flood",
        "storm_limit",
        "vlans",
        "vlans_max",
        "subnet",
        "mtu_bytes",
        "rails",
        "weights",
        "seed",
        "resilience",
        "drain",
        "planes",
        "hops_max",
        "paths_max",
    ])?;
    let pool = at.field("vlans")?;
    pool.only(&["first", "last", "reserved"])?;
    let vlans = VlanPool {
        first: pool.field("first")?.vlan()?,
        last: pool.field("last")?.vlan()?,
        reserved: pool.field("reserved")?.parsed()?,
    };
    if vlans.first > vlans.last {
        return Err(pool.error(format!("the range {}-{} runs backwards", vlans.first, vlans.last)));
    }
    Ok(Policy {
        engine: at.field("engine")?.parsed()?,
        tagging: at.field("tagging")?.parsed()?,
        flow_control: at.field("flow_control")?.parsed()?,
        fdb: at.field("fdb")?.parsed()?,
        flood: at.optional("flood")?.map(|at| at.parsed()).transpose()?.unwrap_or(Flood::Forward),
        storm_limit: storm_limit(at)?,
        vlans,
        vlans_max: at.optional("vlans_max")?.map(|at| at.whole()).transpose()?,
        subnet: at.field("subnet")?.parsed()?,
        mtu_bytes: at.field("mtu_bytes")?.whole()?,
        traffic: Traffic::AllToAll,
        further_traffic: Vec::new(),
        rails: at.optional("rails")?.map(|at| at.parsed()).transpose()?.unwrap_or(Rails::Across),
        weights: at.optional("weights")?.map(|at| at.parsed()).transpose()?.unwrap_or(Weights::Stated),
        seed: at.field("seed")?.whole()?,
        resilience: at.optional("resilience")?.map(|at| at.parsed()).transpose()?.unwrap_or(Resilience::None),
        drain: at.optional("drain")?.map(|at| drain(topology, &at)).transpose()?.unwrap_or_default(),
        planes: at.optional("planes")?.map(|at| planes(topology, &at)).transpose()?.unwrap_or_default(),
        hops_max: at.optional("hops_max")?.map(|at| at.whole()).transpose()?,
        paths_max: at.optional("paths_max")?.map(|at| paths_max(&at)).transpose()?.unwrap_or(1),
        time_limit: None,
    })
}

fn topology(at: &Located<'_>, models: Models) -> Read<Topology> {
    at.only(&["switches", "links", "hosts", "standby_edges", "groups", "management"])?;
    let mut builder = TopologyBuilder::with_models(models);
    // By `switch:port`, which is unique since names hold no colon.
    let mut ports: BTreeMap<String, PortId> = BTreeMap::new();
    let mut order: Vec<(SwitchId, String)> = Vec::new();
    let switches_at = at.field("switches")?;
    for at in switches_at.items()? {
        at.only(&["name", "model", "mgmt", "guid", "id", "ports", "lags"])?;
        let name = at.field("name")?.text()?;
        let model = Some(at.field("model")?.text()?.to_owned());
        let mgmt = optional_address(&at, "mgmt")?;
        let switch = builder.add_switch(name, SwitchSpec { model, mgmt }).map_err(|fault| refused(&at, &fault))?;
        if let Some(at) = at.optional("guid")? {
            builder.set_switch_guid(switch, at.parsed()?).map_err(|fault| refused(&at, &fault))?;
        }
        if let Some(at) = at.optional("id")? {
            at.only(&["chassis", "engine", "serial"])?;
            let item = |key| at.optional(key)?.map(|at| at.text().map(str::to_owned)).transpose();
            let identity =
                SwitchIdentity { chassis: item("chassis")?, engine: item("engine")?, serial: item("serial")? };
            builder.set_switch_identity(switch, identity).map_err(|fault| refused(&at, &fault))?;
        }
        for at in at.field("ports")?.items()? {
            let port = at.text()?;
            let id = builder.add_port(switch, port).map_err(|fault| refused(&at, &fault))?;
            if ports.insert(format!("{name}:{port}"), id).is_some() {
                return Err(at.error(format!("switch {name} has two ports {port}")));
            }
            order.push((switch, port.to_owned()));
        }
        if let Some(lags) = at.optional("lags")? {
            let named = |at: &Located<'_>, port: &str| {
                let found = ports.get(&format!("{name}:{port}")).copied();
                found.ok_or_else(|| at.error(format!("switch {name} has no port {port}")))
            };
            for (lag, members) in lags.fields()? {
                let lag = named(&members, lag)?;
                for at in members.items()? {
                    let member = named(&at, at.text()?)?;
                    builder.add_to_lag(lag, member).map_err(|fault| refused(&at, &fault))?;
                }
            }
        }
    }
    let port = |at: Located<'_>| {
        let label = at.text()?;
        ports.get(label).copied().ok_or_else(|| at.error(format!("there is no port {label:?}; write switch:port")))
    };
    for at in at.field("links")?.items()? {
        at.only(&["a", "b", "rate_bps"])?;
        let (a, b) = (port(at.field("a")?)?, port(at.field("b")?)?);
        builder.add_link(a, b, rate_bps(&at)?).map_err(|fault| refused(&at, &fault))?;
    }
    let mut bonds = Bonds::default();
    for at in at.field("hosts")?.items()? {
        let port = port(at.field("port")?)?;
        read_host(&at, port, &mut builder, &mut bonds)?;
    }
    if let Some(edges) = at.optional("standby_edges")? {
        for at in edges.items()? {
            read_standby_edge(&at, port(at.field("port")?)?, &mut builder)?;
        }
    }
    if let Some(groups) = at.optional("groups")? {
        let counts = (switches_at.items()?.len(), at.field("links")?.items()?.len());
        for at in groups.items()? {
            read_group(&at, counts, &mut builder)?;
        }
    }
    if let Some(at) = at.optional("management")? {
        at.only(&["vlan", "controller", "return_ports"])?;
        let in_band = InBand { vlan: at.field("vlan")?.vlan()?, controller: port(at.field("controller")?)? };
        builder.set_in_band(in_band).map_err(|fault| refused(&at, &fault))?;
        if let Some(ports) = at.optional("return_ports")? {
            for at in ports.items()? {
                builder.add_return_port(port(at)?).map_err(|fault| refused(&at, &fault))?;
            }
        }
    }
    let topology = builder.finish().map_err(|faults| match faults.first() {
        Some(fault) => refused(at, fault),
        None => at.error("the cabling is refused"),
    })?;
    if topology.hosts().iter().zip(&bonds.standby).any(|(host, standby)| host.standby != *standby) {
        return Err(at.field("hosts")?.error("of the ports of a bond one is active, and all others are on standby"));
    }
    let built = topology.ports().iter().map(|port| (port.switch, port.name.as_str()));
    if !built.eq(order.iter().map(|(switch, name)| (*switch, name.as_str()))) {
        return Err(switches_at.error("a switch does not list all ports of its model in front-panel order"));
    }
    Ok(topology)
}

fn refused(at: &Located<'_>, fault: &Fault) -> PlanFileError {
    match fault.help() {
        Some(help) => at.error(format!("{fault}: {help}")),
        None => at.error(fault),
    }
}

fn rate_bps(at: &Located<'_>) -> Read<u64> {
    let rate = at.field("rate_bps")?;
    match rate.whole()? {
        0 => Err(rate.error("a cable's rate is at least 1 bit/s")),
        rate_bps => Ok(rate_bps),
    }
}

/// The ports of failover bonds, as they are read.
#[derive(Default)]
struct Bonds {
    /// Machine and address of the port that was read last, if it is one of a bond.
    last: Option<(String, Option<Mac>)>,
    /// Standby or not, by the words of every host.
    standby: Vec<bool>,
}

fn read_host(at: &Located<'_>, port: PortId, builder: &mut TopologyBuilder, bonds: &mut Bonds) -> Read<()> {
    at.only(&[
        "name",
        "mac",
        "port",
        "rate_bps",
        "address",
        "guid",
        "machine",
        "rail",
        "weight",
        "macs",
        "bond",
        "standby",
        "edge",
        "learned_max",
    ])?;
    let (name, rate_bps) = (at.field("name")?.text()?, rate_bps(at)?);
    let edge = at.optional("edge")?.map(|at| at.truth()).transpose()?.unwrap_or(false);
    let mac = if edge { None } else { Some(at.field("mac")?.parsed::<Mac>()?) };
    let machine = at.optional("machine")?.map(|at| at.text()).transpose()?;
    let standby = at.optional("standby")?.map(|at| at.truth()).transpose()?.unwrap_or(false);
    let bond = match at.optional("bond")? {
        None => None,
        Some(bond) if bond.text()? == "failover" => machine.map(|machine| (machine.to_owned(), mac)),
        Some(bond) => return Err(bond.error("there is no such bond, only failover")),
    };
    let host = if bond.is_some() && bond == bonds.last {
        let host = builder.add_standby(name, port, rate_bps).map_err(|fault| refused(at, &fault))?;
        if !standby {
            builder.set_active(host);
        }
        host
    } else {
        let address = optional_address(at, "address")?;
        let host = match mac {
            Some(mac) => builder.add_host(name, mac, port, rate_bps, address),
            None => builder.add_edge(name, port, rate_bps, address),
        };
        let host = host.map_err(|fault| refused(at, &fault))?;
        if let Some(at) = at.optional("machine")? {
            builder.join_machine(at.text()?).map_err(|fault| refused(&at, &fault))?;
        }
        if let Some(at) = at.optional("macs")? {
            for at in at.items()? {
                builder.add_mac(host, at.parsed()?).map_err(|fault| refused(&at, &fault))?;
            }
        }
        host
    };
    if let Some(at) = at.optional("guid")? {
        builder.set_host_guid(host, at.parsed()?).map_err(|fault| refused(&at, &fault))?;
    }
    if let Some(at) = at.optional("rail")? {
        builder.set_rail(host, at.whole()?);
    }
    if let Some(at) = at.optional("weight")? {
        builder.set_weight(host, at.whole()?);
    }
    if let Some(at) = at.optional("learned_max")? {
        builder.set_learned(host, at.whole()?).map_err(|fault| refused(&at, &fault))?;
    }
    bonds.last = bond;
    bonds.standby.push(standby);
    Ok(())
}

fn read_standby_edge(at: &Located<'_>, port: PortId, builder: &mut TopologyBuilder) -> Read<()> {
    at.only(&["name", "port", "rate_bps", "macs"])?;
    let added = builder.add_standby_edge(at.field("name")?.text()?, port, rate_bps(at)?);
    let edge = added.map_err(|fault| refused(at, &fault))?;
    if let Some(macs) = at.optional("macs")? {
        for at in macs.items()? {
            builder.add_standby_mac(edge, at.parsed()?).map_err(|fault| refused(&at, &fault))?;
        }
    }
    Ok(())
}

/// A group of a topology of so many switches and links.
fn read_group(at: &Located<'_>, (switches, links): (usize, usize), builder: &mut TopologyBuilder) -> Read<()> {
    at.only(&["name", "switches", "links"])?;
    let numbers = |key, what, count| -> Read<Vec<usize>> {
        let at = at.field(key)?;
        let runs = parse_runs(at.text()?, what, count).map_err(|error| at.error(error))?;
        Ok(runs.into_iter().flat_map(|(first, last)| first..=last).collect())
    };
    let switches: Vec<SwitchId> = numbers("switches", "switch", switches)?.into_iter().map(SwitchId::new).collect();
    let links: Vec<LinkId> = numbers("links", "link", links)?.into_iter().map(LinkId::new).collect();
    let added = builder.add_group(at.field("name")?.text()?, &switches, &links);
    added.map(drop).map_err(|fault| refused(at, &fault))
}

fn optional_address(at: &Located<'_>, name: &str) -> Read<Option<IpAddr>> {
    at.optional(name)?.map(|at| at.parsed()).transpose()
}

fn traffic(topology: &Topology, root: &Located<'_>) -> Read<Traffic> {
    let Some(at) = root.optional("traffic")? else { return Ok(Traffic::AllToAll) };
    matrix(topology, &at).map(Traffic::Matrix)
}

fn further_traffic(topology: &Topology, root: &Located<'_>) -> Read<Vec<TrafficMatrix>> {
    let Some(at) = root.optional("further_traffic")? else { return Ok(Vec::new()) };
    at.items()?.map(|at| matrix(topology, &at)).collect()
}

fn matrix(topology: &Topology, traffic_at: &Located<'_>) -> Read<TrafficMatrix> {
    let hosts = topology.hosts().len();
    let mut demands: Vec<Demand> = Vec::new();
    for at in traffic_at.items()? {
        at.only(&["source", "to", "demands"])?;
        let source_at = at.field("source")?;
        let source = HostId::new(source_at.index("host", hosts)?);
        if demands.last().is_some_and(|before| before.source >= source) {
            return Err(source_at.error("senders ascend, one line each"));
        }
        let to_at = at.field("to")?;
        let runs = parse_runs(to_at.text()?, "host", hosts).map_err(|error| to_at.error(error))?;
        let count: usize = runs.iter().map(|(first, last)| last - first + 1).sum();
        let to = runs.into_iter().flat_map(|(first, last)| (first..=last).map(HostId::new));
        for (destination, at) in to.zip(at.field("demands")?.items_for(count, "receivers")?) {
            let amount = at.number()?;
            // What is zero is left out, so that the same matrix is always the same bytes.
            if amount <= 0.0 || amount > DEMAND_MAX || destination == source {
                return Err(at.error(format!("a demand is more than 0, at most {DEMAND_MAX:e}, and for another host")));
            }
            demands.push(Demand { source, destination, amount });
        }
    }
    TrafficMatrix::new(hosts, demands).map_err(|error| traffic_at.error(error))
}

fn trees(topology: &Topology, at: &Located<'_>) -> Read<Vec<VlanTree>> {
    let mut trees: Vec<VlanTree> = Vec::new();
    for at in at.items()? {
        at.only(&["vlan", "lane", "links"])?;
        let vlan_at = at.field("vlan")?;
        let vlan = vlan_at.vlan()?;
        if trees.last().is_some_and(|before| before.vlan >= vlan) {
            return Err(vlan_at.error("trees ascend by VLAN, one each"));
        }
        let lane_at = at.field("lane")?;
        let lane = lane_at.whole()?;
        if lane >= LANES_MAX {
            return Err(lane_at.error(format!("lanes run from 0 to {}", LANES_MAX - 1)));
        }
        let links_at = at.field("links")?;
        let runs =
            parse_runs(links_at.text()?, "link", topology.links().len()).map_err(|error| links_at.error(error))?;
        let count: usize = runs.iter().map(|(first, last)| last - first + 1).sum();
        // Before the runs are written out: a tree of every link is short to write and long to hold.
        if count >= topology.switches().len() {
            let switches = topology.switches().len();
            return Err(links_at.error(format!("{count} links among {switches} switches close a cycle")));
        }
        let links = runs.into_iter().flat_map(|(first, last)| (first..=last).map(LinkId::new));
        let tree = Tree::new(topology, links).map_err(|error| links_at.error(error))?;
        trees.push(VlanTree { vlan, lane, tree });
    }
    Ok(trees)
}

fn assignment(topology: &Topology, at: &Located<'_>) -> Read<Assignment<VlanId>> {
    let hosts = topology.hosts().len();
    let vlans =
        |name: &str| -> Read<Vec<VlanId>> { at.field(name)?.items_for(hosts, "hosts")?.map(|at| at.vlan()).collect() };
    let or_broadcast = |choice: &[VlanId]| -> Read<Vec<VlanId>> {
        if at.optional("broadcast")?.is_some() { vlans("broadcast") } else { Ok(choice.to_vec()) }
    };
    let by = at.field("by")?;
    match by.text()? {
        "source" => {
            at.only(&["by", "vlans"])?;
            Ok(Assignment::Source(vlans("vlans")?))
        }
        "destination" => {
            at.only(&["by", "vlans", "broadcast"])?;
            let choice = vlans("vlans")?;
            Ok(Assignment::Destination { broadcast: or_broadcast(&choice)?, choice })
        }
        "priority" => {
            at.only(&["by", "vlans", "priorities", "broadcast"])?;
            let priorities = at.field("priorities")?;
            let priority = priorities.items_for(hosts, "hosts")?.map(|at| at.whole()).collect::<Read<_>>()?;
            let choice = vlans("vlans")?;
            Ok(Assignment::Priority { broadcast: or_broadcast(&choice)?, choice, priority })
        }
        "pair" => {
            at.only(&["by", "broadcast", "unicast"])?;
            let unicast = rows(hosts, &at.field("unicast")?, "VLAN", |at| at.vlan())?;
            Ok(Assignment::Pair { unicast, broadcast: vlans("broadcast")? })
        }
        other => Err(by.error(format!("{other:?} is none of source, destination, priority, pair"))),
    }
}

fn devices(topology: &Topology, at: &Located<'_>) -> Read<Vec<DeviceIntent>> {
    let items = at.items_for(topology.switches().len(), "switches")?;
    items.zip(topology.switch_ids()).map(|(at, switch)| device(topology, switch, &at)).collect()
}

fn device(topology: &Topology, switch: SwitchId, at: &Located<'_>) -> Read<DeviceIntent> {
    at.only(&["switch", "ports", "fdb", "foreign", "learning", "classes", "spanning_tree", "lldp"])?;
    let name_at = at.field("switch")?;
    let expected = &topology.switch(switch).name;
    if name_at.text()? != expected {
        return Err(name_at.error(format!("devices come in the order of switches, and here is {expected}'s place")));
    }
    let by_name: BTreeMap<&str, PortId> =
        topology.port_ids(switch).map(|port| (topology.port(port).name.as_str(), port)).collect();
    let find = |at: &Located<'_>, name: &str| {
        by_name.get(name).copied().ok_or_else(|| at.error(format!("switch {expected} has no port {name:?}")))
    };
    let ports_at = at.field("ports")?;
    let ports = (ports_at.items_for(by_name.len(), "ports")?.zip(topology.port_ids(switch)))
        .map(|(at, port)| port_intent(topology, port, &at))
        .collect::<Read<_>>()?;
    let fdb_at = at.field("fdb")?;
    let mut fdb: Vec<FdbRun> = Vec::new();
    for at in fdb_at.items()? {
        at.only(&["vlan", "to"])?;
        let vlan_at = at.field("vlan")?;
        let vlan = vlan_at.vlan()?;
        if fdb.last().is_some_and(|before| before.vlan >= vlan) {
            return Err(vlan_at.error("tables ascend by VLAN, one each"));
        }
        let start = fdb.len();
        for (name, at) in at.field("to")?.fields()? {
            let port = find(&at, name)?;
            let runs = parse_runs(at.text()?, "host", topology.hosts().len()).map_err(|error| at.error(error))?;
            fdb.extend(runs.into_iter().map(|(first, last)| FdbRun {
                vlan,
                first: HostId::new(first),
                last: HostId::new(last),
                port,
            }));
        }
        let table = &mut fdb[start..];
        table.sort_unstable();
        if let Some(pair) = table.windows(2).find(|pair| pair[1].first <= pair[0].last) {
            let host = pair[1].first.index();
            return Err(at.error(format!("host {host} has two entries")));
        }
    }
    let mut foreign = Vec::new();
    if let Some(at) = at.optional("foreign")? {
        for at in at.items()? {
            at.only(&["vlan", "mac", "port"])?;
            let port_at = at.field("port")?;
            let port = find(&port_at, port_at.text()?)?;
            foreign.push(FdbEntry { vlan: at.field("vlan")?.vlan()?, mac: at.field("mac")?.parsed()?, port });
        }
    }
    let learning =
        switched(at, "learning")?.map_or_else(Learning::default, |on| if on { Learning::On } else { Learning::Off });
    let spanning_tree = switched(at, "spanning_tree")?
        .map_or_else(SpanningTree::default, |on| if on { SpanningTree::On } else { SpanningTree::Off });
    let classes = match at.optional("classes")? {
        None => Vec::new(),
        Some(at) => {
            let classes = at.items()?.map(|at| at.parsed::<VlanSet>()).collect::<Read<Vec<_>>>()?;
            if classes.len() > usize::from(LANES_MAX) {
                return Err(at.error(format!("there are at most {LANES_MAX} priority classes")));
            }
            classes
        }
    };
    let lldp = match switched(at, "lldp")? {
        None | Some(true) => Lldp::On,
        Some(false) => Lldp::Off,
    };
    Ok(DeviceIntent { switch, ports, fdb, foreign, learning, classes, spanning_tree, lldp })
}

/// A field that is `on` or `off`; none if it is left out.
fn switched(at: &Located<'_>, name: &str) -> Read<Option<bool>> {
    let Some(at) = at.optional(name)? else { return Ok(None) };
    match at.text()? {
        "on" => Ok(Some(true)),
        "off" => Ok(Some(false)),
        other => Err(at.error(format!("{other:?} is neither on nor off"))),
    }
}

fn port_intent(topology: &Topology, port: PortId, at: &Located<'_>) -> Read<PortIntent> {
    at.only(&[
        "port",
        "role",
        "admin",
        "pvid",
        "tagged",
        "untagged",
        "flow_control",
        "mtu_bytes",
        "ingress_filter",
        "blocked",
        "untagged_class",
        "storm_limit",
        "lag",
    ])?;
    let name_at = at.field("port")?;
    let expected = &topology.port(port).name;
    if name_at.text()? != expected {
        return Err(name_at.error(format!("ports come in the order of the switch, and here is {expected}'s place")));
    }
    let set = |name| Ok(at.optional(name)?.map(|at| at.parsed::<VlanSet>()).transpose()?.unwrap_or_default());
    let admin_at = at.field("admin")?;
    Ok(PortIntent {
        port,
        role: role(topology, &at.field("role")?)?,
        admin: match admin_at.text()? {
            "up" => Admin::Up,
            "down" => Admin::Down,
            other => return Err(admin_at.error(format!("{other:?} is none of up, down"))),
        },
        pvid: at.optional("pvid")?.map(|at| at.vlan()).transpose()?,
        tagged: set("tagged")?,
        untagged: set("untagged")?,
        flow_control: flow_control(&at.field("flow_control")?)?,
        mtu_bytes: at.optional("mtu_bytes")?.map(|at| at.whole()).transpose()?.unwrap_or(ETHERNET_MTU_BYTES),
        ingress_filter: match switched(at, "ingress_filter")? {
            None | Some(true) => IngressFilter::On,
            Some(false) => IngressFilter::Off,
        },
        blocked: at.optional("blocked")?.map(|at| at.parsed()).transpose()?.unwrap_or(FloodSet::NONE),
        untagged_class: match at.optional("untagged_class")? {
            None => 0,
            Some(at) => match at.whole()? {
                class if class < LANES_MAX => class,
                _ => return Err(at.error(format!("priority classes are 0 to {}", LANES_MAX - 1))),
            },
        },
        storm_limit: storm_limit(at)?,
        lag: at.optional("lag")?.map(|at| own_lag(topology, port, &at)).transpose()?,
    })
}

/// A LAG of the switch that a port is on.
fn own_lag(topology: &Topology, port: PortId, at: &Located<'_>) -> Read<PortId> {
    let name = at.text()?;
    let mut own = topology.port_ids(topology.port(port).switch);
    let found = own.find(|port| topology.port(*port).name == name && topology.port(*port).lag().is_some());
    found.ok_or_else(|| at.error(format!("the switch has no LAG {name:?}")))
}

/// A limit for floods, if there is one.
fn storm_limit(at: &Located<'_>) -> Read<Option<StormLimit>> {
    let Some(at) = at.optional("storm_limit")? else { return Ok(None) };
    let limit = StormLimit::new(at.whole()?);
    limit.map(Some).ok_or_else(|| at.error("storm limits are 1 to 99 percent".to_owned()))
}

fn role(topology: &Topology, at: &Located<'_>) -> Read<PortRole> {
    let text = at.text()?;
    let numbered = |what: &str, count: usize| -> Option<usize> {
        let digits = text.strip_prefix(what)?.strip_prefix(' ')?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| usize::from_str(digits).ok()).flatten().filter(|&number| number < count)
    };
    match text {
        "unused" => return Ok(PortRole::Unused),
        "controller" => return Ok(PortRole::Controller),
        "return" => return Ok(PortRole::Return),
        "member" => return Ok(PortRole::Member),
        _ => {}
    }
    let host = numbered("host", topology.hosts().len()).map(|number| PortRole::Host(HostId::new(number)));
    let link = || numbered("link", topology.links().len()).map(|number| PortRole::Link(LinkId::new(number)));
    host.or_else(link).ok_or_else(|| {
        at.error(format!(
            "{text:?} is none of unused, controller, return, member, and host or link with the number of one that there is"
        ))
    })
}

fn flow_control(at: &Located<'_>) -> Read<FlowControlMode> {
    match at.text()? {
        "off" => Ok(FlowControlMode::Off),
        "pause" => Ok(FlowControlMode::Pause),
        text => {
            let lanes = text.strip_prefix("pfc=").and_then(|number| number.parse().ok());
            match lanes.filter(|lanes| (1..=LANES_MAX).contains(lanes)) {
                Some(lanes) => Ok(FlowControlMode::Pfc { lanes }),
                None => Err(at.error(format!("{text:?} is none of off, pause, pfc=1 … pfc={LANES_MAX}"))),
            }
        }
    }
}

fn certificate(topology: &Topology, at: &Located<'_>) -> Read<Option<Certificate>> {
    if at.is_null() {
        return Ok(None);
    }
    numbering(topology, at).map(Some)
}

fn bound(topology: &Topology, at: &Located<'_>) -> Read<Bound> {
    at.only(&["lengths"])?;
    Ok(Bound { lengths: per_channel(topology, &at.field("lengths")?)? })
}

fn summary(at: &Located<'_>, version: u64) -> Read<Summary> {
    let whole = |name| at.field(name)?.whole::<usize>();
    let number = |name| at.field(name)?.number();
    let summary = Summary {
        switches: whole("switches")?,
        hosts: whole("hosts")?,
        links: whole("links")?,
        vlans: whole("vlans")?,
        lanes: whole("lanes")?,
        avg_switches_per_path: number("avg_switches_per_path")?,
        avg_hops: number("avg_hops")?,
        max_switches_per_path: whole("max_switches_per_path")?,
        max_channel_load: number("max_channel_load")?,
        max_channel_time: number(if version == 1 { "max_channel_load" } else { "max_channel_time" })?,
        load_bound: number("load_bound")?,
        load_gap: number("load_gap")?,
        deadlock_free: at.field("deadlock_free")?.truth()?,
        fdb_entries_max: whole("fdb_entries_max")?,
        fdb_entries_total: whole("fdb_entries_total")?,
        paths: at.optional("paths_max")?.is_some().then(|| path_summary(at)).transpose()?,
    };
    let known = crate::format::report::summary_fields(&summary);
    at.only(&known.iter().map(|(name, _)| *name).collect::<Vec<_>>())?;
    Ok(summary)
}
