//! `espalier export`: the cabling in another tool's format, or a plan's forwarding tables.

use std::{io::Write as _, path::Path, process::ExitCode};

use anyhow::{Context as _, Result};
use dialects::{Folder as _, RenderRequest, TargetChoice, write_ansible};
use fabric::{
    Machine, MachineId, Plan, Topology,
    format::{
        exchange::{Format, UnknownFormat, export},
        netbox::write_netbox,
        plan::{ReadMode, plan_digest},
    },
};
use host_setup::{HostSetup, needs_setup};
use infiniband::{forwarding_tables, write_ibsim, write_opensm};
use sim::pattern::Pattern;

use super::{
    booksim::{Unsaid, unsaid_by_anynet, write_anynet},
    htsim::{BYTES_MAX, LeafSpine, write_connections},
    plan_picture::{load_picture, tree_picture},
    render::{Disk, publish_rendered, stage_rendered},
    simgrid::write_simgrid,
};
use crate::{
    cli,
    count::counted,
    failure::bad_input,
    files::{read_plan_file, read_topology, write_file},
    pictures::write_picture,
};

pub(super) fn run(args: &cli::Export) -> Result<ExitCode> {
    let is_plan = args.file.extension().is_some_and(|extension| extension == "json");
    match (args.to.as_str(), is_plan) {
        ("opensm", true) => export_opensm(&read_plan_file(&args.file, ReadMode::Strict)?, args)?,
        ("simgrid", true) => {
            let plan = read_plan_file(&args.file, ReadMode::Strict)?;
            write_file(&args.output, |out| write_simgrid(&plan, out))?;
        }
        ("simgrid", false) => {
            return Err(bad_input("routes come from a plan file, which ends in .json; plan first"));
        }
        ("booksim", _) => {
            let topology = topology_of(args, is_plan)?;
            warn_of_anynet(&topology);
            write_file(&args.output, |out| write_anynet(&topology, out))?;
        }
        ("htsim", _) => export_htsim(args, is_plan)?,
        ("htsim-topology", _) => {
            let shape = LeafSpine::recognise(&topology_of(args, is_plan)?).map_err(|why| {
                bad_input(format!(
                    "{}: htsim builds its own fat trees, and this is none of two tiers: {why}; --to htsim writes the \
                     traffic alone",
                    args.file.display()
                ))
            })?;
            write_file(&args.output, |out| shape.write(out))?;
        }
        ("svg", true) => {
            let plan = read_plan_file(&args.file, ReadMode::Strict)?;
            let picture = match args.vlan {
                Some(vlan) => tree_picture(&plan, vlan)?,
                None => load_picture(&plan)?,
            };
            if args.output == Path::new("-") {
                write_file(&args.output, |out| out.write_all(picture.to_svg().as_bytes()))?;
            } else {
                write_picture(&args.output, &picture)?;
            }
        }
        ("svg", false) => {
            return Err(bad_input("a picture shows loads or a tree, which come from a plan file; plan first"));
        }
        ("host-setup", true) => export_host_setup(&read_plan_file(&args.file, ReadMode::Strict)?, args)?,
        ("host-setup", false) => {
            return Err(bad_input("hosts' addresses come from a plan file, which ends in .json; plan first"));
        }
        ("netbox", _) => export_netbox(&topology_of(args, is_plan)?, args)?,
        ("ansible", true) => export_ansible(&read_plan_file(&args.file, ReadMode::Strict)?, args)?,
        ("ansible", false) => {
            return Err(bad_input("what switches are told comes from a plan file, which ends in .json; plan first"));
        }
        ("opensm", false) => {
            return Err(bad_input("forwarding tables come from a plan file, which ends in .json; plan first"));
        }
        _ => export_topology(&topology_of(args, is_plan)?, args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The cabling, of a plan or by itself, with the groups that people have named alone.
fn topology_of(args: &cli::Export, is_plan: bool) -> Result<Topology> {
    if is_plan {
        Ok(read_plan_file(&args.file, ReadMode::Strict)?.topology.without_link_pairs())
    } else {
        read_topology(&args.file, &args.own)
    }
}

/// The traffic of a pattern.
fn export_htsim(args: &cli::Export, is_plan: bool) -> Result<()> {
    if args.bytes > BYTES_MAX {
        return Err(bad_input(format!("--bytes {}: htsim reads at most {BYTES_MAX} bytes a transfer", args.bytes)));
    }
    let (topology, pairs) = if is_plan && args.pattern == Pattern::Worst {
        let plan = read_plan_file(&args.file, ReadMode::Strict)?;
        let pairs = args.pattern.pairs_of(&plan, args.seed);
        (plan.topology, pairs)
    } else {
        let topology = topology_of(args, is_plan)?;
        let pairs = args.pattern.pairs(&topology, args.seed);
        (topology, pairs)
    };
    let pairs = pairs.map_err(|error| bad_input(error.to_string()))?;
    write_file(&args.output, |out| write_connections(&topology, &pairs, args.bytes, out))
}

fn warn_of_anynet(topology: &Topology) {
    let Unsaid { parallel, rates_differ } = unsaid_by_anynet(topology);
    if parallel > 0 {
        eprintln!("anynet joins two routers once: {parallel} parallel cables are left out");
    }
    if rates_differ {
        eprintln!("anynet knows no rates: all cables count as equal");
    }
}

fn export_topology(topology: &Topology, args: &cli::Export) -> Result<()> {
    if args.to == "ibsim" {
        return write_file(&args.output, |mut out| write_ibsim(topology, &mut out));
    }
    let format: Format = args.to.parse().map_err(|error: UnknownFormat| {
        bad_input(format!(
            "{error}; or opensm, ibsim, simgrid, booksim, htsim, htsim-topology, netbox, ansible, host-setup or svg"
        ))
    })?;
    let text = export(format, topology).ok_or_else(|| {
        let known: Vec<&str> =
            Format::ALL.iter().filter(|format| format.can_export()).map(|format| format.name()).collect();
        bad_input(format!(
            "{} can only be read; formats to write: {}, opensm, ibsim, simgrid, booksim, htsim, htsim-topology, netbox, ansible, host-setup, svg",
            format.name(),
            known.join(", ")
        ))
    })?;
    write_file(&args.output, |out| out.write_all(text.as_bytes()))
}

/// Inventory, playbook, and the switches' configurations in a folder.
fn export_ansible(plan: &Plan, args: &cli::Export) -> Result<()> {
    if args.output == Path::new("-") {
        return Err(bad_input("Ansible needs several files: name a folder with -o"));
    }
    let digest = plan_digest(plan)?;
    let request = RenderRequest { plan, digest: &digest, target: TargetChoice::Auto, switch: None, since: None };
    let files = args.output.join("files");
    let (manifest, rendered) = stage_rendered(&request, &files)?;
    let mut folder = Disk::new(args.output.clone())?;
    write_ansible(plan, &digest, &manifest.parts, &mut folder)?;
    folder.flush()?;
    publish_rendered(rendered, &files)?;
    folder.finish()?;
    Ok(())
}

/// Files for NetBox's import pages.
fn export_netbox(topology: &Topology, args: &cli::Export) -> Result<()> {
    if args.output == Path::new("-") {
        return Err(bad_input("NetBox imports several files, one after the other: name a folder with -o"));
    }
    let addresses = topology.hosts().iter().filter(|host| host.address.is_some()).count()
        + topology.switches().iter().filter(|switch| switch.mgmt.is_some()).count();
    let edges = topology.hosts().iter().filter(|host| host.edge).count();
    let left_out = [
        (addresses, "IP addresses of switches and hosts"),
        (edges, "kinds of hosts (edge)"),
        (topology.standby_edges().len(), "edge ports on standby"),
    ];
    for (count, what) in left_out {
        if count > 0 {
            eprintln!("{what} are left out: {count}");
        }
    }
    let mut folder = Disk::new(args.output.clone())?;
    for file in write_netbox(topology, &args.site) {
        folder.begin(file.name)?;
        folder.write_all(file.text.as_bytes())?;
    }
    folder.finish().with_context(|| format!("write {}", args.output.display()))
}

/// A folder for each machine with several ports, or for the one that is named.
fn export_host_setup(plan: &Plan, args: &cli::Export) -> Result<()> {
    if args.output == Path::new("-") {
        return Err(bad_input("each machine gets several files: name a folder with -o"));
    }
    let machines = || plan.topology.machines().iter().zip((0..).map(MachineId::new));
    let names = || machines().filter(|(_, id)| needs_setup(plan, *id)).map(|(machine, _)| machine.name.as_str());
    let digest = plan_digest(plan)?;
    let is_meant = |(machine, id): &(&Machine, MachineId)| {
        args.host.as_ref().map_or_else(|| needs_setup(plan, *id), |name| machine.name == *name)
    };
    let ids: Vec<MachineId> = machines().filter(is_meant).map(|(_, id)| id).collect();
    let setups = ids.iter().map(|id| HostSetup::new(plan, &digest, *id)).collect::<Result<Vec<_>, _>>();
    let setups = setups.map_err(|error| bad_input(error.to_string()))?;
    if setups.is_empty() {
        let with = names().take(NAMES_MAX).collect::<Vec<_>>().join(", ");
        let has = match (names().count(), with.as_str()) {
            (0, _) => "no machine of the plan has several ports with addresses of their own; others need no such setup"
                .to_owned(),
            (count, with) if count > NAMES_MAX => format!("machines with several ports are {with} …"),
            (_, with) => format!("machines with several ports are {with}"),
        };
        let host = args
            .host
            .as_ref()
            .map_or_else(String::new, |name| format!("--host {name}: the plan has no such machine; "));
        return Err(bad_input(format!("{}: {host}{has}", args.file.display())));
    }
    let mut folder = Disk::new(args.output.clone())?;
    for setup in &setups {
        for file in setup.files() {
            folder.begin(&format!("{}/{}", setup.folder(), file.name))?;
            folder.write_all(file.text.as_bytes())?;
        }
    }
    folder.finish().with_context(|| format!("write {}", args.output.display()))?;
    eprintln!("{} in {}", counted(setups.len(), "machine"), args.output.display());
    Ok(())
}

/// Most names of machines in a message.
const NAMES_MAX: usize = 8;

fn export_opensm(plan: &Plan, args: &cli::Export) -> Result<()> {
    let tables = forwarding_tables(plan).map_err(|error| bad_input(error.to_string()))?;
    if tables.missing() > 0 {
        eprintln!(
            "{} entries that only switches without hosts would need are left out: each would close a cycle on one lane",
            tables.missing()
        );
    }
    write_file(&args.output, |mut out| write_opensm(&plan.topology, &tables, &mut out))
}
