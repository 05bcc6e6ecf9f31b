//! `espalier discover`: cables from what switches say.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    path::Path,
    process::ExitCode,
};

use anyhow::Result;
use drivers::snmp::{read_identity, read_station};
use fabric::{
    DEFAULT_RATE_BPS, Models, NAME_BYTES_MAX, PortId, PortNames, SwitchSpec, Topology, TopologyBuilder,
    format::native::write_native,
};
use rollout::discover::{Cabling, Evidence, Place, cabling};
use switch_model::{identity::Identity, station::Station};

use super::{
    Output,
    cables::{differences, doubt_sentence, label},
    controller,
    interrupt::{INTERRUPTED, Interrupt},
    say,
};
use crate::{
    cli,
    count::counted,
    failure::{FAILED, bad_input},
    files::{models, read_topology, write_file},
};

pub(super) fn run(args: &cli::Discover, output: Output) -> Result<ExitCode> {
    let expected = args.expect.as_deref().map(|path| read_topology(path, &args.own)).transpose()?;
    let asked = whom(args, expected.as_ref())?;
    let keyring = controller::keyring(&args.reach.credentials)?;
    let known = models(&args.own, args.output.as_deref().unwrap_or(Path::new("-")))?;
    if let Some(model) = &args.model {
        let spec = SwitchSpec { model: Some(model.clone()), mgmt: None };
        TopologyBuilder::with_models(known.clone())
            .add_switch("sw", spec)
            .map_err(|fault| bad_input(fault.to_string()))?;
    }
    let interrupt = Interrupt::watch()?;
    let answers = controller::at_once((0..asked.len()).collect(), args.reach.parallel, |at: usize| {
        let (name, address) = &asked[at];
        let key = name.clone().unwrap_or_else(|| address.to_string());
        let mut session =
            controller::session(&keyring, &args.reach, &key, *address).map_err(|fault| fault.to_string())?;
        session.set_cancel(interrupt.cancel());
        let ports = port_names(expected.as_ref(), name.as_deref(), &known, args.model.as_deref());
        let station = read_station(&mut session, name.as_deref(), &ports).map_err(|error| error.to_string())?;
        // A switch that does not say who it is has its cables all the same.
        Ok::<_, String>((station, read_identity(&mut session).unwrap_or_default()))
    });
    if interrupt.is_pressed() {
        match output {
            Output::Json => say!("{}", serde_json::json!({ "interrupted": true })),
            Output::Person => match &args.output {
                Some(path) => eprintln!("espalier: interrupted; {} is as it was", path.display()),
                None => eprintln!("espalier: interrupted; not every switch was asked"),
            },
        }
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let (mut stations, mut addresses, mut remarks) = (Vec::new(), Vec::new(), Vec::<String>::new());
    let mut identities = Vec::new();
    for ((_, address), answer) in asked.iter().zip(answers) {
        match answer {
            Ok((station, identity)) => {
                stations.push(station);
                identities.push(identity);
                addresses.push(*address);
            }
            Err(error) => remarks.push(format!("{address}: {error}")),
        }
    }
    distinct_names(&mut stations, &addresses);
    let cabling = cabling(&stations);
    match &expected {
        Some(expected) => remarks.extend(differences(expected, &stations, &cabling)),
        None => {
            remarks.extend(cabling.doubts.iter().map(|doubt| doubt_sentence(doubt, &stations)));
            let builder = TopologyBuilder::with_models(known);
            let found =
                topology_of(builder, &stations, &addresses, &identities, &cabling, args.model.as_deref(), &mut remarks);
            // Of no switch at all there is nothing to write.
            if let Some(topology) = found {
                let text = written(&topology, &remarks);
                match &args.output {
                    Some(path) => write_file(path, |out| out.write_all(text.as_bytes()))?,
                    None if output == Output::Person => say!("{}", text.trim_end()),
                    None => {}
                }
            }
        }
    }
    let (switches, links, hosts) = (stations.len(), cabling.links.len(), cabling.hosts.len());
    match output {
        Output::Json => {
            say!("{}", serde_json::json!({ "switches": switches, "links": links, "hosts": hosts, "remarks": remarks }))
        }
        Output::Person => {
            let [switches, links, hosts] =
                [(switches, "switch"), (links, "cable"), (hosts, "host")].map(|(count, one)| counted(count, one));
            eprintln!("{switches}, {links} between them, {hosts}");
            for remark in &remarks {
                eprintln!("  {remark}");
            }
        }
    }
    Ok(if remarks.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Addresses to ask, and names if they are known.
fn whom(args: &cli::Discover, expected: Option<&Topology>) -> Result<Vec<(Option<String>, IpAddr)>> {
    let known: BTreeMap<IpAddr, String> = expected
        .map(|topology| {
            topology.switches().iter().filter_map(|switch| Some((switch.mgmt?, switch.name.clone()))).collect()
        })
        .unwrap_or_default();
    if args.addresses.is_empty() {
        if known.is_empty() {
            return Err(bad_input("none of the expected switches has a management address; add mgmt: to them"));
        }
        return Ok(known.into_iter().map(|(address, name)| (Some(name), address)).collect());
    }
    Ok(args.addresses.iter().map(|address| (known.get(address).cloned(), *address)).collect())
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
fn distinct_names(stations: &mut [Station], addresses: &[IpAddr]) {
    stations.iter_mut().for_each(|station| station.name = usable(&station.name));
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for station in stations.iter() {
        *count.entry(station.name.clone()).or_default() += 1;
    }
    for (station, address) in stations.iter_mut().zip(addresses) {
        if station.name.is_empty() || count[&station.name] > 1 {
            station.name = usable(&address.to_string());
        }
    }
}

/// Names that ports are to have: those of the expected topology, or of the model.
fn port_names(expected: Option<&Topology>, switch: Option<&str>, models: &Models, model: Option<&str>) -> Vec<String> {
    if let Some((topology, switch)) = expected.and_then(|topology| Some((topology, topology.find_switch(switch?)?))) {
        return topology.port_ids(switch).map(|port| topology.port(port).name.clone()).collect();
    }
    match model.and_then(|model| models.by_name(model)).map(|model| model.ports.clone()) {
        Some(PortNames::Listed(names)) => names,
        Some(PortNames::Any) | None => Vec::new(),
    }
}

/// The topology, behind what is doubtful in it.
fn written(topology: &Topology, remarks: &[String]) -> String {
    let mut text = String::new();
    for remark in remarks {
        // What a switch says of itself may hold what some reader takes for the end of a line.
        let line: String =
            remark.chars().map(|c| if c.is_control() || "\u{2028}\u{2029}".contains(c) { ' ' } else { c }).collect();
        text.extend(["# doubt: ", &line, "\n"]);
    }
    text + &write_native(topology)
}

/// What was found, as a topology; what it cannot hold becomes a remark. None if there is no switch.
fn topology_of(
    mut builder: TopologyBuilder,
    stations: &[Station],
    addresses: &[IpAddr],
    identities: &[Identity],
    cabling: &Cabling,
    model: Option<&str>,
    remarks: &mut Vec<String>,
) -> Option<Topology> {
    let mut ports: BTreeMap<Place, PortId> = BTreeMap::new();
    for (at, (station, address)) in stations.iter().zip(addresses).enumerate() {
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
        if let Err(fault) = builder.set_switch_identity(switch, identities[at].for_topology()) {
            remarks.push(format!("{}: {fault}", station.name));
        }
        for (port, known) in station.ports.iter().enumerate() {
            match builder.add_port(switch, &known.name) {
                Ok(id) => {
                    ports.insert((at, port), id);
                }
                Err(fault) => remarks.push(format!("{}: {fault}", station.name)),
            }
        }
    }
    let place = |place: &Place| {
        let id = ports.get(place).copied();
        id.ok_or_else(|| format!("{}: its port is not in the topology", label(stations, *place)))
    };
    for (a, b) in &cabling.links {
        let link = place(a).and_then(|a| Ok((a, place(b)?)));
        let link = link.and_then(|(a, b)| builder.add_link(a, b, DEFAULT_RATE_BPS).map_err(|fault| fault.to_string()));
        remarks.extend(
            link.err()
                .map(|why| format!("the cable {} -- {} is left out: {why}", label(stations, *a), label(stations, *b))),
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
            eprintln!("  {} on {} is known by its address alone", name, label(stations, *at));
        }
        let added = place(at).and_then(|port| {
            builder.add_host(&name, host.mac, port, DEFAULT_RATE_BPS, None).map_err(|fault| fault.to_string())
        });
        remarks.extend(added.err().map(|why| format!("host {name} at {} is left out: {why}", label(stations, *at))));
    }
    let (topology, apart) = builder.finish_in_parts().ok()?;
    remarks.extend(apart.into_iter().map(|fault| fault.to_string()));
    Some(topology)
}

#[cfg(test)]
mod tests {
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
}
