//! `espalier discover`: cables from what switches say.

use std::{collections::BTreeMap, net::IpAddr, path::Path, process::ExitCode};

use anyhow::Result;
use controller::{Asked, discover};
use fabric::{Models, PortNames, SwitchSpec, Topology, TopologyBuilder, format::native::write_native};

use super::{
    Output,
    cables::{differences, doubt_sentence},
    interrupt::{INTERRUPTED, Interrupt},
    reach, say,
    through::Through,
};
use crate::{
    cli,
    count::counted,
    failure::{FAILED, bad_input},
    files::{models, read_topology, write_file},
};

pub(super) fn run(args: &cli::Discover, controller: &cli::Controller, output: Output) -> Result<ExitCode> {
    let through = Through::of(controller)?;
    let expected = args.expect.as_deref().map(|path| read_topology(path, &args.own)).transpose()?;
    let addresses = match &through {
        Some(through) if args.addresses.is_empty() && expected.is_none() => {
            let addresses = through.plan(None)?.topology.switches().iter().filter_map(|switch| switch.mgmt).collect();
            whom(addresses, None)?
        }
        _ => whom(args.addresses.clone(), expected.as_ref())?,
    };
    let known = models(&args.own, args.output.as_deref().unwrap_or(Path::new("-")))?;
    if let Some(model) = &args.model {
        let spec = SwitchSpec { model: Some(model.clone()), mgmt: None };
        TopologyBuilder::with_models(known.clone())
            .add_switch("sw", spec)
            .map_err(|fault| bad_input(fault.to_string()))?;
    }
    let ask = |(name, address): (Option<String>, IpAddr)| {
        let ports = port_names(expected.as_ref(), name.as_deref(), &known, args.model.as_deref());
        Asked { address, name, ports }
    };
    let asked: Vec<Asked> = addresses.into_iter().map(ask).collect();
    let found = match through {
        Some(through) => Some(through.discover(&asked)?),
        None => {
            let keyring = reach::keyring(&args.reach)?;
            discover(&asked, (&keyring, &reach::options(&args.reach)), &Interrupt::watch()?.token())
        }
    };
    let Some(found) = found else {
        match output {
            Output::Json => say!("{}", serde_json::json!({ "interrupted": true })),
            Output::Person => match &args.output {
                Some(path) => eprintln!("espalier: interrupted; {} is as it was", path.display()),
                None => eprintln!("espalier: interrupted; not every switch was asked"),
            },
        }
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let mut remarks: Vec<String> = found.failed.iter().map(|(address, why)| format!("{address}: {why}")).collect();
    let (stations, cabling) = (found.stations(), &found.cabling);
    match &expected {
        Some(expected) => remarks.extend(differences(expected, &stations, cabling)),
        None => {
            remarks.extend(cabling.doubts.iter().map(|doubt| doubt_sentence(doubt, &stations)));
            // Of no switch at all there is nothing to write.
            if let Some(found) = found.topology(known, args.model.as_deref()) {
                for (name, place) in &found.by_address {
                    eprintln!("  {name} on {place} is known by its address alone");
                }
                remarks.extend(found.remarks);
                let text = written(&found.topology, &remarks);
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
fn whom(addresses: Vec<IpAddr>, expected: Option<&Topology>) -> Result<Vec<(Option<String>, IpAddr)>> {
    let known: BTreeMap<IpAddr, String> = expected
        .map(|topology| {
            topology.switches().iter().filter_map(|switch| Some((switch.mgmt?, switch.name.clone()))).collect()
        })
        .unwrap_or_default();
    if addresses.is_empty() {
        if expected.is_none() {
            return Err(bad_input("name the management addresses of the switches, or expected cables with --expect"));
        }
        if known.is_empty() {
            return Err(bad_input("none of the expected switches has a management address; add mgmt: to them"));
        }
        return Ok(known.into_iter().map(|(address, name)| (Some(name), address)).collect());
    }
    Ok(addresses.into_iter().map(|address| (known.get(&address).cloned(), address)).collect())
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
