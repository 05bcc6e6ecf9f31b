//! `espalier generate`: a topology of a well-known kind.

use std::process::ExitCode;

use anyhow::Result;
use fabric::generate::{Kind, Options, generate};

use super::{Output, say};
use crate::{
    cli,
    count::counted,
    failure::bad_input,
    files::{models, write_topology},
};

pub(super) fn run(args: &cli::Generate, output: Output) -> Result<ExitCode> {
    let kind = Kind::parse(&args.kind, &args.sizes).map_err(|error| bad_input(error.to_string()))?;
    let options = Options {
        hosts_per_switch: args.hosts_per_switch,
        nics: args.nics,
        rate_bps: args.rate,
        host_rate_bps: args.host_rate,
        model: args.model.clone(),
        models: models(&args.own, &args.output)?,
        shuffle: args.shuffle,
    };
    let topology = generate(&kind, &options).map_err(|error| bad_input(error.to_string()))?;
    write_topology(&topology, &args.output)?;
    let (switches, links, hosts) = (topology.switches().len(), topology.links().len(), topology.hosts().len());
    if output == Output::Json && args.output.as_os_str() != "-" {
        say!(
            "{}",
            serde_json::json!({ "kind": kind.to_string(), "switches": switches, "links": links, "hosts": hosts })
        );
    } else {
        let [switches, links, hosts] =
            [(switches, "switch"), (links, "link"), (hosts, "host")].map(|(n, one)| counted(n, one));
        eprintln!("{kind}: {switches}, {links}, {hosts}");
    }
    Ok(ExitCode::SUCCESS)
}
