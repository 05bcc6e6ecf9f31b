//! `espalier lab`: a plan's fabric of namespaces.

use std::{
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Command, ExitCode},
    sync::atomic::AtomicBool,
};

use anyhow::{Context, Result};
use fabric::{
    FlowControl, Plan, Policy,
    format::{
        plan::{ReadMode, write_plan},
        table::Table,
    },
    format_rate,
};
use lab::{
    Backend, Carrier, FailMode, Lab, LabError, LabOptions, Managed, Start, Status, layout::Layout, rootless::Privilege,
};

use super::{Output, bars, measure, ping, say};
use crate::{
    cli::{self, BackendChoice, LabCommand, OwnModels},
    count::counted,
    failure::bad_input,
    files::{read_plan_file, read_topology},
};

pub(super) fn run(args: &cli::Lab, output: Output) -> Result<ExitCode> {
    let name = match &args.command {
        LabCommand::Down { lab: Some(name) } => name,
        _ => &args.name,
    };
    let of_root = match enter(&args.command, name)? {
        Entered::In(of_root) => of_root,
        Entered::Nowhere(of_root) => return outside(&args.command, name, &of_root, output),
    };
    match &args.command {
        LabCommand::Up { plan, own, rate, queue, backend, managed, factory, spread } => {
            let mut options = LabOptions {
                rate_bps: *rate,
                queue_bytes: *queue,
                backend: backend_of(*backend),
                spread: *spread,
                ..LabOptions::new(name)
            };
            if *managed || *factory {
                options.managed = Managed::Yes;
            }
            if *factory {
                options.start = Start::Factory;
            }
            // A lab that does not come up leaves no process behind either.
            up(plan, own, options, output).inspect_err(|_| drop(lab::rootless::release_unused()))?;
        }
        LabCommand::Agents => lab::managed::serve(name, &AtomicBool::new(false))?,
        LabCommand::Lacp => lab::lag::serve(name, &AtomicBool::new(false))?,
        LabCommand::Down { .. } => {
            lab::down(name)?;
            eprintln!("lab {name} is down");
        }
        LabCommand::List => list(&lab::list()?, &of_root, output)?,
        LabCommand::Status => show_status(&Lab::open(name)?, output)?,
        LabCommand::Exec { host, program } => return exec(&Lab::open(name)?, host, program),
        LabCommand::Fail { link, silent, loss } => {
            let mode = match (loss, silent) {
                (Some(loss_ppm), _) => FailMode::Lossy { loss_ppm: *loss_ppm },
                (None, true) => FailMode::Silent,
                (None, false) => FailMode::Down,
            };
            Lab::open(name)?.fail(link, mode)?;
        }
        LabCommand::Heal { link } => Lab::open(name)?.heal(link)?,
        LabCommand::Plug { port, other } => plug(&mut Lab::open(name)?, port, other, output)?,
        LabCommand::Ping => return ping::run(&Lab::open(name)?, output),
        LabCommand::Measure(args) => measure::run(&Lab::open(name)?, args, output)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Where labs are, for the caller, and which ones are root's where that is somebody else.
enum Entered {
    /// Root's place, or the caller's own, which this process has entered.
    In(Vec<String>),
    /// Nowhere: the caller is not root and has no lab.
    Nowhere(Vec<String>),
}

/// Enters the place of the caller's labs. Without root that is a user namespace, which the kernel allows only before any
/// thread starts, and which is made for `up` alone.
fn enter(command: &LabCommand, name: &str) -> Result<Entered> {
    // Seen before a user namespace is entered, which has labs of its own.
    let seen = lab::list()?;
    let privilege = match command {
        LabCommand::Up { .. } => Some(lab::rootless::acquire()?),
        _ => lab::rootless::join()?,
    };
    match privilege {
        Some(Privilege::Root) => Ok(Entered::In(Vec::new())),
        Some(Privilege::Namespace) => Ok(Entered::In(seen)),
        None if seen.iter().any(|of_root| of_root == name) && !matches!(command, LabCommand::List) => {
            Err(LabError::OfRoot { name: name.to_owned() }.into())
        }
        None => Ok(Entered::Nowhere(seen)),
    }
}

/// What a command says to whoever has no lab and no right to root's.
fn outside(command: &LabCommand, name: &str, of_root: &[String], output: Output) -> Result<ExitCode> {
    match command {
        LabCommand::List => list(&[], of_root, output)?,
        LabCommand::Down { .. } => eprintln!("lab {name} is down"),
        _ => return Err(LabError::NoSuchLab { name: name.to_owned(), known: Vec::new() }.into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn backend_of(choice: BackendChoice) -> Option<Backend> {
    match choice {
        BackendChoice::Auto => None,
        BackendChoice::Bridge => Some(Backend::Bridge),
        BackendChoice::Ebpf => Some(Backend::Ebpf),
    }
}

fn up(path: &Path, own: &OwnModels, options: LabOptions, output: Output) -> Result<()> {
    let (name, rate_bps, managed) = (options.name.clone(), options.rate_bps, options.managed);
    let plan = match options.start {
        Start::Planned => read_plan_file(path, ReadMode::Strict)?,
        Start::Factory => plan_or_topology(path, own)?,
    };
    let report = verify::check(&plan);
    if !report.is_deployable() {
        return Err(bad_input(format!("{}: the judge refuses this plan:\n{report}", path.display())));
    }
    let lab = build(&plan, options)?;
    let speaking = match managed {
        Managed::No => 0,
        Managed::Yes => manage(&lab)?,
    };
    let layout = lab.layout();
    match output {
        Output::Json => say!(
            "{}",
            serde_json::json!({
                "name": name, "switches": layout.switches.len(), "hosts": layout.hosts.len(),
                "backend": layout.backend.word(), "rate_bps": rate_bps, "management": management_json(layout),
            })
        ),
        Output::Person => {
            let what = match &layout.management {
                None => format!("try: espalier lab --name {name} measure all-to-all"),
                Some(management) => format!(
                    "{} LLDP; try: espalier lab --name {name} exec mgmt -- snmpwalk -v2c -c {} {} \
                     1.3.6.1.2.1.17",
                    match speaking {
                        1 => "1 host speaks".to_owned(),
                        _ => format!("{speaking} hosts speak"),
                    },
                    lab::managed::READ_COMMUNITY,
                    management.switches.first().map_or_else(String::new, |site| site.address.to_string())
                ),
            };
            eprintln!(
                "lab {name} is up: {} ({}), {}, {}; {what}",
                counted(layout.switches.len(), "switch"),
                layout.backend.word(),
                counted(layout.hosts.len(), "host"),
                format_rate(rate_bps)
            );
        }
    }
    Ok(())
}

/// Reads a plan, or a topology, whose hosts get the addresses that any plan would give them.
fn plan_or_topology(path: &Path, own: &OwnModels) -> Result<Plan> {
    match read_plan_file(path, ReadMode::Strict) {
        Ok(plan) => Ok(plan),
        Err(no_plan) if path.extension().is_some_and(|extension| extension == "json") => Err(no_plan),
        Err(_) => {
            // Only its addresses are used, so it asks as little as it can of the models.
            let any = Policy { flow_control: FlowControl::None, ..Policy::default() };
            Ok(planner::plan(&read_topology(path, own)?, &any, None)?)
        }
    }
}

/// Starts the agents of a lab's switches, or takes the lab down; how many hosts speak LLDP.
fn manage(lab: &Lab) -> Result<usize> {
    or_down(lab, lab::managed::start(lab, &mut this_program(lab, "agents")?))
}

/// This program, which does what a hidden command of a lab says.
fn this_program(lab: &Lab, command: &str) -> Result<Command> {
    let mut program = Command::new(std::env::current_exe().context("find this program")?);
    program.args(["lab", "--name", &lab.layout().name, command]);
    Ok(program)
}

/// Takes a lab down that has not become what it should.
fn or_down<T>(lab: &Lab, started: Result<T, LabError>) -> Result<T> {
    let name = &lab.layout().name;
    started.map_err(|cause| match lab::down(name) {
        Ok(()) => cause.into(),
        Err(left) => {
            lab::LabError::LeftBehind { name: name.clone(), cause: Box::new(cause), left: Box::new(left) }.into()
        }
    })
}

/// Builds a lab, and has its LAGs speak LACP, with a progress bar on standard error.
pub(super) fn build(plan: &Plan, options: LabOptions) -> Result<Lab> {
    let mut text = Vec::new();
    write_plan(plan, &mut text).context("write plan")?;
    let plan_text = Some(String::from_utf8(text).context("plan files are text")?);
    let options = LabOptions { plan_text, ..options };
    let bar = bars::building();
    let lab = Lab::up(plan, &options, &mut |progress| bars::show_building(&bar, progress));
    bar.finish_and_clear();
    let lab = lab?;
    or_down(&lab, lab::lag::start(&lab, &mut this_program(&lab, "lacp")?))?;
    Ok(lab)
}

fn management_json(layout: &Layout) -> serde_json::Value {
    let Some(management) = &layout.management else { return serde_json::Value::Null };
    let sites = layout.switches.iter().zip(&management.switches);
    let switches: serde_json::Map<String, serde_json::Value> =
        sites.map(|(switch, site)| (switch.name.clone(), site.address.to_string().into())).collect();
    serde_json::json!({ "namespace": management.namespace, "switches": switches })
}

fn list(names: &[String], of_root: &[String], output: Output) -> Result<()> {
    match output {
        Output::Json => say!("{}", serde_json::json!(names)),
        Output::Person => {
            for name in names {
                say!("{name}");
            }
            if names.is_empty() {
                eprintln!("no lab is up{}", if of_root.is_empty() { "" } else { " that is yours" });
            }
        }
    }
    if !of_root.is_empty() {
        eprintln!("labs of root: {} (sudo espalier lab list)", of_root.join(", "));
    }
    Ok(())
}

fn plug(lab: &mut Lab, port: &str, other: &str, output: Output) -> Result<()> {
    let ports = lab.plug(port, other)?;
    match output {
        Output::Json => say!(
            "{}",
            (ports.iter())
                .map(|plugged| serde_json::json!({ "port": plugged.port, "cable": plugged.cable }))
                .collect::<serde_json::Value>()
        ),
        Output::Person => {
            for plugged in &ports {
                match &plugged.cable {
                    Some(cable) => eprintln!("{}: cable {cable}", plugged.port),
                    None => eprintln!("{}: empty", plugged.port),
                }
            }
        }
    }
    Ok(())
}

/// Runs a program in a host and ends as a shell would: with the program's code, 128 and the number of the signal that ended
/// it, 127 if there is no such program, 126 if it cannot be run.
fn exec(lab: &Lab, host: &str, program: &[String]) -> Result<ExitCode> {
    let [name, args @ ..] = program else { return Err(bad_input("no program is named")) };
    let status = match lab.exec(host, name, args) {
        Err(LabError::NoProgram { program, why }) => {
            eprintln!("espalier: {}", LabError::NoProgram { program, why });
            return Ok(ExitCode::from(why.exit_code()));
        }
        status => status?,
    };
    let code = status.code().or_else(|| Some(128 + status.signal()?)).and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn show_status(lab: &Lab, output: Output) -> Result<()> {
    let status = lab.status()?;
    let up_s = status.up.as_secs_f64();
    if output == Output::Json {
        say!("{}", status_json(&status));
        return Ok(());
    }
    say!("lab {}: up {up_s:.0} s, switches played by {}", lab.layout().name, lab.layout().backend.word());
    let mut table = Table::new(["port", "link", "frames in", "out", "load out", "floods"]);
    for switch in &status.switches {
        for port in switch.ports.iter().filter(|port| port.carrier != Carrier::None) {
            let total = port.total();
            let load = port.rate_bps.map_or(0.0, |rate| total.out_bytes as f64 * 8.0 / up_s.max(1e-3) / rate as f64);
            table.row([
                format!("{}:{}", switch.name, port.name),
                if port.carrier == Carrier::Up { "up".to_owned() } else { "down".to_owned() },
                total.in_frames.to_string(),
                total.out_frames.to_string(),
                format!("{:.1} %", 100.0 * load),
                total.flooded_unknown.map_or("?".to_owned(), |floods| floods.to_string()),
            ]);
        }
    }
    say!("{table}");
    say!("unknown-unicast floods: {}", status.unknown_floods());
    let drops = status.drops();
    if drops.is_empty() {
        say!("drops: none");
    }
    for (reason, count) in drops {
        say!("drops, {}: {count}", reason.name());
    }
    Ok(())
}

fn status_json(status: &Status) -> serde_json::Value {
    let switches: Vec<_> = (status.switches.iter())
        .map(|switch| {
            let ports: Vec<_> = (switch.ports.iter())
                .map(|port| {
                    let total = port.total();
                    let carrier = match port.carrier {
                        Carrier::None => "none",
                        Carrier::Down => "down",
                        Carrier::Up => "up",
                    };
                    let drops: serde_json::Map<String, serde_json::Value> = (port.drops.iter().flatten())
                        .map(|(reason, count)| (reason.name().to_owned(), (*count).into()))
                        .collect();
                    serde_json::json!({
                        "port": port.name, "carrier": carrier, "rate_bps": port.rate_bps,
                        "in_frames": total.in_frames, "in_bytes": total.in_bytes,
                        "out_frames": total.out_frames, "out_bytes": total.out_bytes,
                        "flooded_unknown": total.flooded_unknown, "drops": drops,
                    })
                })
                .collect();
            serde_json::json!({ "switch": switch.name, "ports": ports })
        })
        .collect();
    serde_json::json!({
        "up_s": status.up.as_secs_f64(), "unknown_floods": status.unknown_floods(),
        "broadcasts": status.broadcasts(), "switches": switches
    })
}
