//! Switches, cables and hosts, from what switches say of themselves and of their neighbours.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use drivers::{
    credentials::Keyring,
    snmp::{read_identity, read_station},
};
use fabric::{DEFAULT_RATE_BPS, LagNumber, Models, NAME_BYTES_MAX, PortId, SwitchSpec, Topology, TopologyBuilder};
use rollout::discover::{Cabling, Evidence, PortPosition, cabling};
use switch_model::{identity::Identity, station::Station};

use crate::{CancellationToken, ConnectOptions, connect::session, parallel::at_once};

/// A switch to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its management address.
    pub address: IpAddr,
    /// Its name, if known. Its credentials are looked up by this name, else by the address.
    pub name: Option<String>,
    /// The names of its ports, if known.
    pub ports: Vec<String>,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// Switches that answered, with names that differ.
    pub switches: Vec<FoundSwitch>,
    /// Those that did not, and why.
    pub failed: Vec<(IpAddr, String)>,
    /// The cables between them, and the hosts.
    pub cabling: Cabling,
}

/// A switch that answered.
#[derive(Clone, Debug)]
pub struct FoundSwitch {
    /// Where.
    pub address: IpAddr,
    /// What it says of itself and of its neighbours.
    pub station: Station,
    /// Who it is, as far as it says.
    pub identity: Identity,
}

/// What was found, as a topology.
#[derive(Clone, Debug)]
pub struct FoundTopology {
    /// The topology.
    pub topology: Topology,
    /// Remarks on what was found but is not in the topology.
    pub remarks: Vec<String>,
    /// Hosts that are known by a learned address alone, and where.
    pub by_address: Vec<(String, String)>,
}

/// Reads the neighbours of switches. Returns `None` if the token asked to stop.
pub fn discover(
    asked: &[Asked],
    (keyring, options): (&Keyring, &ConnectOptions),
    token: &CancellationToken,
) -> Option<Discovery> {
    let answers = at_once(asked.iter().collect(), options.parallel, |asked: &Asked| {
        let key = asked.name.clone().unwrap_or_else(|| asked.address.to_string());
        let mut session = session(keyring, options, &key, asked.address).map_err(|fault| fault.to_string())?;
        session.set_cancel(token.for_requests());
        let station =
            read_station(&mut session, asked.name.as_deref(), &asked.ports).map_err(|error| error.to_string())?;
        // A switch that does not say who it is has its cables all the same.
        Ok::<_, String>((station, read_identity(&mut session).unwrap_or_default()))
    });
    if token.is_cancelled() {
        return None;
    }
    let (mut switches, mut failed) = (Vec::new(), Vec::new());
    for (Asked { address, .. }, answer) in asked.iter().zip(answers) {
        match answer {
            Ok((station, identity)) => switches.push(FoundSwitch { address: *address, station, identity }),
            Err(error) => failed.push((*address, error)),
        }
    }
    Some(Discovery::new(switches, failed))
}

impl Discovery {
    /// Compares what switches said; `failed` are those that did not answer, and why.
    pub fn new(switches: Vec<FoundSwitch>, failed: Vec<(IpAddr, String)>) -> Self {
        let mut discovery = Self { switches, failed, cabling: Cabling::default() };
        distinct_names(&mut discovery.switches);
        discovery.cabling = cabling(&discovery.stations());
        discovery
    }

    /// What each switch says of itself, `[switch]`.
    pub fn stations(&self) -> Vec<Station> {
        self.switches.iter().map(|switch| switch.station.clone()).collect()
    }

    /// What was found, as a topology of switches of this model. None if there is no switch.
    pub fn topology(&self, models: Models, model: Option<&str>) -> Option<FoundTopology> {
        let (mut remarks, mut by_address) = (Vec::new(), Vec::new());
        let builder = TopologyBuilder::with_models(models);
        let topology = topology_of(&self.switches, &self.cabling, model, builder, &mut remarks, &mut by_address)?;
        Some(FoundTopology { topology, remarks, by_address })
    }
}

/// What a port is called: its switch, and its name there.
fn label(found: &[FoundSwitch], (switch, port): PortPosition) -> String {
    let station = &found[switch].station;
    format!("{}:{}", station.name, station.ports[port].name)
}

/// A name as topologies take it: what a switch or host says of itself may hold anything.
fn usable(name: &str) -> String {
    let letter = |c: char| if c.is_alphanumeric() || "-_./+@#".contains(c) { c } else { '-' };
    let mut name: String = name.trim().chars().map(letter).take(NAME_BYTES_MAX).collect();
    while name.len() > NAME_BYTES_MAX {
        name.pop();
    }
    if name.chars().any(char::is_alphanumeric) { name } else { String::new() }
}

/// Switches that share a name, or have none, get their address as one.
fn distinct_names(found: &mut [FoundSwitch]) {
    found.iter_mut().for_each(|switch| switch.station.name = usable(&switch.station.name));
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for FoundSwitch { station, .. } in found.iter() {
        *count.entry(station.name.clone()).or_default() += 1;
    }
    for FoundSwitch { address, station, .. } in found {
        if station.name.is_empty() || count[&station.name] > 1 {
            station.name = usable(&address.to_string());
        }
    }
}

/// What was found, as a topology; what it cannot hold becomes a remark. None if there is no switch.
fn topology_of(
    found: &[FoundSwitch],
    cabling: &Cabling,
    model: Option<&str>,
    mut builder: TopologyBuilder,
    remarks: &mut Vec<String>,
    by_address: &mut Vec<(String, String)>,
) -> Option<Topology> {
    let mut ports: BTreeMap<PortPosition, PortId> = BTreeMap::new();
    for (at, FoundSwitch { address, station, identity }) in found.iter().enumerate() {
        let spec = SwitchSpec { model: model.map(str::to_owned), mgmt: Some(*address) };
        let switch = match builder.add_switch(&station.name, spec) {
            Ok(switch) => switch,
            Err(fault) => {
                remarks.push(format!("{address}: {fault}"));
                // A model that is not known is one of no listed ports.
                let Ok(switch) = builder.switch(&station.name) else { continue };
                switch
            }
        };
        if let Err(fault) = builder.set_switch_identity(switch, identity.for_topology()) {
            remarks.push(format!("{}: {fault}", station.name));
        }
        let is_lag = |port: usize| station.ports.iter().any(|member| member.lag == Some(port));
        for (port, known) in station.ports.iter().enumerate() {
            let added = match is_lag(port) {
                true => builder.add_lag(switch, LagNumber::at_end_of(&known.name)),
                false => builder.add_port(switch, &known.name),
            };
            match added {
                Ok(id) => {
                    ports.insert((at, port), id);
                }
                Err(fault) => remarks.push(format!("{}: {fault}", station.name)),
            }
        }
        let members = station.ports.iter().enumerate().filter_map(|(port, known)| Some((port, known.lag?)));
        for (member, lag) in members {
            let (Some(lag), Some(member)) = (ports.get(&(at, lag)), ports.get(&(at, member))) else { continue };
            if let Err(fault) = builder.add_to_lag(*lag, *member) {
                remarks.push(format!("{}: {fault}", station.name));
            }
        }
    }
    let place = |place: &PortPosition| {
        let id = ports.get(place).copied();
        id.ok_or_else(|| format!("{}: its port is not in the topology", label(found, *place)))
    };
    let mut linked: BTreeSet<[PortId; 2]> = BTreeSet::new();
    for (a, b) in &cabling.links {
        // The first cable of a LAG that is heard stands for all of them.
        let ends = place(a).and_then(|a| Ok([a, place(b)?].map(|port| builder.logical_port(port))));
        if ends.as_ref().is_ok_and(|ends| !linked.insert(*ends)) {
            continue;
        }
        let link = ends.and_then(|[a, b]| {
            let rate_bps = builder.cables_at(a) as u64 * DEFAULT_RATE_BPS;
            let checked = builder.check_ends(a, b).and_then(|()| builder.add_link(a, b, rate_bps));
            checked.map_err(|fault| fault.to_string())
        });
        remarks.extend(
            link.err().map(|why| format!("the cable {} -- {} is left out: {why}", label(found, *a), label(found, *b))),
        );
    }
    let mut names: BTreeSet<String> = BTreeSet::new();
    for (at, host) in &cabling.hosts {
        let named = host.name.as_deref().map(usable).filter(|name| !name.is_empty());
        let plain = named.unwrap_or_else(|| format!("host-{}", host.mac.to_string().replace(':', "")));
        let mut name = plain.clone();
        let mut number = 2;
        while !names.insert(name.clone()) {
            name = format!("{plain}-{number}");
            number += 1;
        }
        if host.evidence == Evidence::Learned {
            by_address.push((name.clone(), label(found, *at)));
        }
        let added = place(at).and_then(|port| {
            let rate_bps = builder.cables_at(port) as u64 * DEFAULT_RATE_BPS;
            builder.add_host(&name, host.mac, port, rate_bps, None).map_err(|fault| fault.to_string())
        });
        remarks.extend(added.err().map(|why| format!("host {name} at {} is left out: {why}", label(found, *at))));
    }
    let (topology, apart) = builder.finish_in_parts().ok()?;
    remarks.extend(apart.into_iter().map(|fault| fault.to_string()));
    Some(topology)
}

#[cfg(test)]
mod tests {
    use switch_model::station::StationPort;

    use super::*;

    #[test]
    fn names_that_switches_give_themselves_become_names_of_a_topology() {
        for (said, name) in [
            ("sw1", "sw1"),
            ("Core Switch (rack 7)", "Core-Switch--rack-7-"),
            ("a\x1b[2Jb:c~d", "a--2Jb-c-d"),
            ("  ", ""),
            ("()", ""),
        ] {
            assert_eq!(usable(said), name);
        }
        let long = usable(&"é".repeat(1000));
        assert!(TopologyBuilder::new().add_switch(&long, SwitchSpec::default()).is_ok());
    }

    /// Two switches with a LAG of two cables, one of which is heard, and a host on a LAG.
    #[test]
    fn lags_of_switches_become_lags_of_the_topology() {
        let port =
            |name: &str, lag: Option<usize>| StationPort { name: name.to_owned(), lag, ..StationPort::default() };
        let switch = |name: &str, last: u8, ports: Vec<StationPort>| FoundSwitch {
            address: std::net::IpAddr::from([192, 0, 2, last]),
            station: Station { name: name.to_owned(), ports, ..Station::default() },
            identity: Identity::default(),
        };
        let members = |lag: &str| vec![port(lag, None), port("e1", Some(0)), port("e2", Some(0))];
        let mut first = members("Po3");
        first.extend([port("Po4", None), port("e3", Some(3)), port("e4", Some(3)), port("Po9", None)]);
        let found = vec![switch("a", 1, first), switch("b", 2, members("ae1"))];
        let host = |mac| rollout::discover::FoundHost { mac, name: Some("n1".to_owned()), evidence: Evidence::Lldp };
        let cabling = Cabling {
            links: [((0, 1), (1, 2)), ((0, 2), (1, 1))].into_iter().collect(),
            hosts: [((0, 3), host(fabric::Mac::local(1)))].into_iter().collect(),
            doubts: Vec::new(),
        };
        let (mut remarks, mut by_address) = (Vec::new(), Vec::new());
        let builder = TopologyBuilder::new();
        let topology = topology_of(&found, &cabling, None, builder, &mut remarks, &mut by_address).expect("switches");
        assert_eq!(remarks, Vec::<String>::new());
        assert_eq!(topology.links().len(), 1);
        assert_eq!(topology.link_label(fabric::LinkId::new(0)), "a:lag3 -- b:lag1");
        assert_eq!(topology.links()[0].rate_bps, 2 * DEFAULT_RATE_BPS);
        let [host] = topology.hosts() else { panic!("{:?}", topology.hosts()) };
        assert_eq!((topology.port_label(host.port).as_str(), host.rate_bps), ("a:lag4", 2 * DEFAULT_RATE_BPS));
        // A LAG without members is a port that nothing is known of.
        assert!(topology.find_port(fabric::SwitchId::new(0), "Po9").is_some());
    }
}
