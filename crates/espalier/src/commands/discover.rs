//! `espalier discover`: cables from what switches say.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    path::Path,
    process::ExitCode,
};

use anyhow::Result;
use device::{
    discover::{Cabling, Evidence, Place, Station, cabling},
    identity::Identity,
    snmp::{read_identity, read_station},
};
use fabric::{
    DEFAULT_RATE_BPS, NAME_BYTES_MAX, PortId, SwitchSpec, Topology, TopologyBuilder, format::native::write_native,
};

use super::{
    Output,
    cables::{differences, doubt_sentence, label},
    controller, say,
};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::{models, read_topology, write_topology},
};

pub(super) fn run(args: &cli::Discover, output: Output) -> Result<ExitCode> {
    let expected = args.expect.as_deref().map(|path| read_topology(path, &args.own)).transpose()?;
    let asked = whom(args, expected.as_ref())?;
    let keyring = controller::keyring(&args.reach.credentials)?;
    let answers = controller::at_once((0..asked.len()).collect(), args.reach.parallel, |at: usize| {
        let (name, address) = &asked[at];
        let key = name.clone().unwrap_or_else(|| address.to_string());
        let mut session =
            controller::session(&keyring, &args.reach, &key, *address).map_err(|fault| fault.to_string())?;
        let station = read_station(&mut session, name.as_deref()).map_err(|error| error.to_string())?;
        // A switch that does not say who it is has its cables all the same.
        Ok::<_, String>((station, read_identity(&mut session).unwrap_or_default()))
    });
    let (mut stations, mut addresses, mut silent) = (Vec::new(), Vec::new(), Vec::<String>::new());
    let mut identities = Vec::new();
    for ((_, address), answer) in asked.iter().zip(answers) {
        match answer {
            Ok((station, identity)) => {
                stations.push(station);
                identities.push(identity);
                addresses.push(*address);
            }
            Err(error) => silent.push(format!("{address}: {error}")),
        }
    }
    distinct_names(&mut stations, &addresses);
    let cabling = cabling(&stations);
    let mut remarks: Vec<String> = silent;
    match &expected {
        Some(expected) => remarks.extend(differences(expected, &stations, &cabling)),
        None => {
            remarks.extend(cabling.doubts.iter().map(|doubt| doubt_sentence(doubt, &stations)));
            let models = models(&args.own, args.output.as_deref().unwrap_or(Path::new("-")))?;
            let builder = TopologyBuilder::with_models(models);
            let topology = topology_of(builder, &stations, &addresses, &identities, &cabling, args.model.as_deref())?;
            match &args.output {
                Some(path) => write_topology(&topology, path)?,
                None if output == Output::Person => say!("{}", write_native(&topology).trim_end()),
                None => {}
            }
        }
    }
    let (switches, links, hosts) = (stations.len(), cabling.links.len(), cabling.hosts.len());
    match output {
        Output::Json => {
            say!("{}", serde_json::json!({ "switches": switches, "links": links, "hosts": hosts, "remarks": remarks }))
        }
        Output::Person => {
            eprintln!("{switches} switches, {links} cables between them, {hosts} hosts");
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

fn topology_of(
    mut builder: TopologyBuilder,
    stations: &[Station],
    addresses: &[IpAddr],
    identities: &[Identity],
    cabling: &Cabling,
    model: Option<&str>,
) -> Result<Topology> {
    let fault = |fault: fabric::Fault| bad_input(fault.to_string());
    let mut ports: BTreeMap<Place, PortId> = BTreeMap::new();
    for (at, (station, address)) in stations.iter().zip(addresses).enumerate() {
        let spec = SwitchSpec { model: model.map(str::to_owned), mgmt: Some(*address) };
        let switch = builder.add_switch(&station.name, spec).map_err(fault)?;
        builder.set_switch_identity(switch, identities[at].for_topology()).map_err(fault)?;
        for (port, known) in station.ports.iter().enumerate() {
            ports.insert((at, port), builder.add_port(switch, &known.name).map_err(fault)?);
        }
    }
    for (a, b) in &cabling.links {
        builder.add_link(ports[a], ports[b], DEFAULT_RATE_BPS).map_err(fault)?;
    }
    let mut names: BTreeSet<String> = BTreeSet::new();
    for (place, host) in &cabling.hosts {
        let named = host.name.as_deref().map(usable).filter(|name| !name.is_empty());
        let plain = named.unwrap_or_else(|| format!("host-{}", host.mac.to_string().replace(':', "")));
        let mut name = plain.clone();
        let mut number = 2;
        while !names.insert(name.clone()) {
            name = format!("{plain}-{number}");
            number += 1;
        }
        if host.evidence == Evidence::Learned {
            eprintln!("  {} on {} is known by its address alone", name, label(stations, *place));
        }
        builder.add_host(&name, host.mac, ports[place], DEFAULT_RATE_BPS, None).map_err(fault)?;
    }
    builder.finish().map_err(|faults| bad_input(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))
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
