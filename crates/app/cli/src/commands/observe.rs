//! `espalier observe` and `check --observed`: what switches hold, written down and judged.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use fabric::{Finding, FindingKind, Plan, Severity, SwitchId, VlanId, VlanSet, format::plan::ReadMode};
use rollout::diagnose::{Moves, Standing, span};
use switch_model::{
    SwitchConfig, align,
    driver::Fault,
    format::{Observed, parse_observed, write_moment, write_observed},
    judge_flow_control,
    observe::{Drift, SMALL_MTU_WAY_OUT, drift, small_mtus},
};

use super::{
    Output,
    controller::{self, Ways},
    interrupt::{INTERRUPTED, Interrupt},
    say,
};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::read_plan_file,
};

pub(super) fn run(args: &cli::Observe, output: Output) -> Result<ExitCode> {
    let plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    let interrupt = Interrupt::watch()?;
    let ways = Ways::of(&plan, &args.reach, interrupt.cancel())?;
    fs::create_dir_all(&args.output).with_context(|| args.output.display().to_string())?;
    // Ports that the plan does not name are none of its business, unless they have to do with its VLANs.
    let vlans = controller::vlans_of(&controller::goals(&plan));
    let one = |switch: SwitchId| -> Result<Answer> {
        if interrupt.is_pressed() {
            return Ok(Answer::NotAsked);
        }
        let name = &plan.topology.switch(switch).name;
        let read = ways.connect(switch).and_then(|mut device| {
            ways.include_unmanaged(switch, &mut device, &vlans)?;
            device.driver().read()
        });
        let reading = match read {
            Ok(reading) => reading,
            Err(fault) => return Ok(Answer::Fault(fault)),
        };
        let observed = Observed {
            switch: name.clone(),
            taken_at: Some(now_s()),
            mark: reading.mark.map(|mark| mark.to_string()),
            state: reading.config,
        };
        let draft = Draft::write(args.output.join(file_name(switch.index(), name)), &write_observed(&observed))?;
        Ok(Answer::Held(draft, observed.state.ports.iter().map(|port| port.mtu_bytes).collect()))
    };
    let answers = controller::at_once(plan.topology.switch_ids().collect(), args.reach.parallel, one);
    let answers = answers.into_iter().collect::<Result<Vec<_>>>()?;
    let mut small = Vec::new();
    // What some switches hold now and others held some other time is no state that the fabric was ever in.
    if interrupt.is_pressed() {
        match output {
            Output::Json => say!("{}", serde_json::json!({ "observed": 0, "failed": [], "interrupted": true })),
            Output::Person => eprintln!("espalier: interrupted; {} is as it was", args.output.display()),
        }
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let mut failed = Vec::new();
    for (switch, answer) in plan.topology.switch_ids().zip(answers) {
        let name = &plan.topology.switch(switch).name;
        let fault = match answer {
            Answer::Held(draft, mtus) => {
                small.extend(small_mtus(&plan.devices[switch.index()], &mtus));
                draft.publish()?;
                continue;
            }
            Answer::Fault(fault) => fault.to_string(),
            Answer::NotAsked => "was not asked".to_owned(),
        };
        failed.push((name.clone(), fault));
        // What it held some other time is not what it holds.
        let stale = args.output.join(file_name(switch.index(), name));
        match fs::remove_file(&stale) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| stale.display().to_string());
            }
            _ => {}
        }
    }
    let seen = plan.topology.switches().len() - failed.len();
    match output {
        Output::Json => say!("{}", serde_json::json!({ "observed": seen, "failed": failed })),
        Output::Person => {
            say!("{seen} of {} switches observed into {}", plan.topology.switches().len(), args.output.display())
        }
    }
    for (name, fault) in &failed {
        eprintln!("espalier: {name} {fault}");
    }
    for port in &small {
        eprintln!("espalier: warning: {}; {SMALL_MTU_WAY_OUT}", port.sentence(&plan.topology));
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Seconds since 1970-01-01 UTC by this machine's clock.
fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// What came of one switch.
enum Answer {
    /// What it held, and the MTU of each port as far as it says.
    Held(Draft, Vec<Option<u16>>),
    Fault(Fault),
    /// Somebody asked to stop before.
    NotAsked,
}

/// A file under another name until all switches have been asked; one that is not published goes.
struct Draft {
    partial: PathBuf,
    path: PathBuf,
}

impl Draft {
    fn write(path: PathBuf, text: &str) -> Result<Self> {
        let mut partial = path.clone().into_os_string();
        partial.push(format!(".partial-{}", std::process::id()));
        let draft = Self { partial: partial.into(), path };
        fs::write(&draft.partial, text).with_context(|| format!("write {}", draft.partial.display()))?;
        Ok(draft)
    }

    fn publish(self) -> Result<()> {
        fs::rename(&self.partial, &self.path).with_context(|| format!("write {}", self.path.display()))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It is not there any more once it has been published.
        let _ = fs::remove_file(&self.partial);
    }
}

/// Names of switches may hold anything; those of files may not.
fn file_name(index: usize, name: &str) -> String {
    let safe: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    format!("{index:04}-{safe}.json")
}

/// Differences of one switch that are named.
const CAUSES_MAX: usize = 20;
/// How far apart switches may have been observed.
const APART_MAX: Duration = Duration::from_secs(600);

/// The VLANs that switches use, from the files that `observe` wrote of them; VLAN 1 is not among them.
///
/// # Errors
/// Bad input if the folder or a file of it cannot be read, or there is no file.
pub(super) fn observed_vlans(folder: &Path) -> Result<VlanSet> {
    let seen = read_folder(folder)?;
    if seen.is_empty() {
        return Err(bad_input(format!(
            "{}: there is no file of observe; observe PLAN -o {0} writes them",
            folder.display()
        )));
    }
    let mut used = VlanSet::new();
    for (_, observed) in seen.values() {
        used.extend(observed.state.vlans.iter().chain(observed.state.memberships().iter()));
        used.extend(observed.state.ports.iter().filter_map(|port| port.pvid));
    }
    used.remove(VlanId::MIN);
    Ok(used)
}

/// What `observe` wrote into a folder, by the switches' names, and into which files.
fn read_folder(folder: &Path) -> Result<BTreeMap<String, (PathBuf, Observed)>> {
    let mut seen: BTreeMap<String, (PathBuf, Observed)> = BTreeMap::new();
    let entries = fs::read_dir(folder).map_err(|error| bad_input(format!("{}: {error}", folder.display())))?;
    for entry in entries {
        let path = entry.with_context(|| folder.display().to_string())?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let observed = parse_observed(&text).map_err(|error| bad_input(format!("{}: {error}", path.display())))?;
            if let Some((other, _)) = seen.get(&observed.switch) {
                return Err(bad_input(format!(
                    "{} and {} both hold switch {}; remove the older one, or observe into another folder",
                    path.display(),
                    other.display(),
                    observed.switch
                )));
            }
            seen.insert(observed.switch.clone(), (path, observed));
        }
    }
    Ok(seen)
}

/// Replaces the plan's devices by what the switches said, and returns what can be said of each by itself.
///
/// # Errors
/// Bad input if the folder or a file of it cannot be read, or a switch is missing.
pub(super) fn replace_devices(plan: &mut Plan, folder: &Path) -> Result<Replaced> {
    let seen = read_folder(folder)?;
    let goals = controller::goals(plan);
    let moves = moves(plan, &goals, &seen);
    let moments: Vec<u64> = seen.values().filter_map(|(_, observed)| observed.taken_at).collect();
    let taken_at = moments.iter().min().copied().zip(moments.iter().max().copied());
    let mut findings: Vec<Finding> = taken_at.into_iter().filter_map(apart).collect();
    findings.extend(moves.finding(plan));
    for (switch, wanted) in plan.topology.switch_ids().zip(&goals) {
        let name = &plan.topology.switch(switch).name;
        let Some((_, observed)) = seen.get(name) else {
            return Err(bad_input(format!("{} holds nothing of switch {name}; observe it again", folder.display())));
        };
        let ports: Vec<String> = wanted.ports.iter().map(|port| port.name.clone()).collect();
        let further: Vec<String> = (observed.state.ports.iter().map(|port| port.name.clone()))
            .filter(|name| wanted.slot(name).is_none())
            .collect();
        let config = align(&observed.state, &ports);
        findings.extend(judge_flow_control(name, &config, wanted));
        // Settings have been judged; what frames make of the rest is for the judge, and this names the cause.
        let cause = |drift: &Drift| {
            !matches!(
                drift,
                Drift::SpanningTree { .. }
                    | Drift::IngressFilter { .. }
                    | Drift::FlowControl { .. }
                    | Drift::Floods { .. }
            )
        };
        let whole = align(&observed.state, &[&ports[..], &further].concat());
        let drifts = drift(&whole, &wanted.with_parked(&further));
        let unmoved = |drift: &&Drift| match drift {
            Drift::Pvid { port, .. } => !moves.explains(plan, switch, port.index()),
            _ => true,
        };
        findings.extend(drifts.iter().filter(|drift| cause(drift)).filter(unmoved).take(CAUSES_MAX).map(|drift| {
            Finding {
                severity: Severity::Warning,
                kind: FindingKind::PlanMismatch,
                subject: name.clone(),
                message: format!("{}; {}", drift.sentence(&whole), drift.remedy()),
            }
        }));
        plan.devices[switch.index()] = config.to_intent(&plan.topology, &plan.devices[switch.index()]);
    }
    Ok(Replaced { findings, taken_at })
}

/// What switches said in place of a plan's devices.
pub(super) struct Replaced {
    /// What can be said of each by itself.
    pub(super) findings: Vec<Finding>,
    /// When the first and the last of them said so, in seconds since 1970-01-01; none if no file says.
    pub(super) taken_at: Option<(u64, u64)>,
}

/// How long ago switches were observed, for a person.
pub(super) fn age_words((first, last): (u64, u64)) -> String {
    let ago = |moment: u64| span(Duration::from_secs(now_s().saturating_sub(moment)));
    let (first_ago, last_ago) = (ago(first), ago(last));
    let when = if first_ago == last_ago { first_ago } else { format!("{last_ago} to {first_ago}") };
    format!("{when} ago ({})", write_moment(last))
}

/// Switches that were observed at very different times.
fn apart((first, last): (u64, u64)) -> Option<Finding> {
    let apart = Duration::from_secs(last - first);
    (apart > APART_MAX).then(|| Finding {
        severity: Severity::Warning,
        kind: FindingKind::PlanMismatch,
        subject: "observation".to_owned(),
        message: format!(
            "the switches were observed up to {} apart, so the fabric may never have been in this state; observe again",
            span(apart)
        ),
    })
}

/// Which hosts' ports hold what the plan stored for a cable's failure.
fn moves(plan: &Plan, goals: &[SwitchConfig], seen: &BTreeMap<String, (PathBuf, Observed)>) -> Moved {
    let topology = &plan.topology;
    let found: Vec<Option<Option<VlanId>>> = (topology.hosts().iter())
        .map(|host| {
            let switch = topology.port(host.port).switch;
            let slot = host.port.index() - topology.switch_ports(switch).start;
            let (_, observed) = seen.get(&topology.switch(switch).name)?;
            let name = &goals[switch.index()].ports[slot].name;
            Some(observed.state.port(observed.state.slot(name)?).pvid)
        })
        .collect();
    Moved(Moves::find(plan, &found, &BTreeSet::new()))
}

struct Moved(Moves);

impl Moved {
    /// Whether a port differs because a failure's answer is in force.
    fn explains(&self, plan: &Plan, switch: SwitchId, slot: usize) -> bool {
        let ports = plan.topology.switch_ports(switch);
        if slot >= ports.len() {
            return false;
        }
        let port = fabric::PortId::new(ports.start + slot);
        self.0.explained().any(|host| plan.topology.host(host).port == port)
    }

    fn finding(&self, plan: &Plan) -> Option<Finding> {
        let message = match self.0.standing {
            Standing::For(link) | Standing::Lingering(link) => format!(
                "hosts' ports hold what the plan stored for the failure of {}: {} in all; nothing is wrong with these switches while that cable is \
                 down, see espalier status",
                plan.topology.link_label(link),
                self.0.moved.len()
            ),
            Standing::Between => {
                "hosts' ports are in the middle of a change of standby; see espalier status".to_owned()
            }
            Standing::Home => return None,
        };
        Some(Finding {
            severity: Severity::Note,
            kind: FindingKind::PlanMismatch,
            subject: "standby".to_owned(),
            message,
        })
    }
}
