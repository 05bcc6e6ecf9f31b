//! `espalier deploy`: a plan on its switches, all of them or none.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use device::{
    SwitchConfig, align,
    deploy::{
        Deployment, Direction, Event, Fault, Journal, Management, Mark, Order, Outcome, Reason, Surroundings, Way,
        edits, far_first, run as run_deployment,
    },
    format::{parse_journal, write_journal},
};
use fabric::{
    DeviceIntent, Plan, SwitchId, Topology, VlanId, VlanSet,
    format::plan::{ReadMode, plan_digest},
};
use planner::Part;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use super::{
    Output,
    controller::{self, Reached, Said, Ways},
    interrupt::Interrupt,
    say,
};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::read_plan_file,
};

/// Bounds of how long a switch may be cut off before it takes a change back.
const DEADLINE_MIN: Duration = Duration::from_secs(2);
const DEADLINE_MAX: Duration = Duration::from_secs(3600);

pub(super) fn run(args: &cli::Deploy, output: Output) -> Result<ExitCode> {
    let plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    let report = verify::check(&plan);
    if !report.is_deployable() {
        return Err(bad_input(format!("{} is not fit to deploy; see espalier check", args.plan.display())));
    }
    let route = Route::new(&plan, args)?;
    let parallel = args.reach.parallel;
    let mut devices = Ways::new(&route.topology, route.mark_vlan(), &args.reach)?.connect_all();
    let digest = plan_digest(&plan)?;
    let digest = u32::from_str_radix(digest.get(..8).unwrap_or("0"), 16).unwrap_or(0);
    if args.dry_run {
        let parked = controller::adopt_strangers(&mut devices, &route.vlans(), parallel);
        tell_parked(&route, &parked);
        return dry_run(&route, devices, &parked, digest, parallel, output);
    }
    let state = State::open(&args.state)?;
    let resume = match (args.resume || args.undo, state.journal()?) {
        (true, None) => return Err(bad_input(format!("{} holds no interrupted deployment", args.state.display()))),
        (false, Some(_)) => {
            return Err(bad_input(format!(
                "{} holds an interrupted deployment; go on with --resume, or take it back with --undo",
                args.state.display()
            )));
        }
        (_, journal) => journal,
    };
    // One that was interrupted has them in its journal: they may be parked already.
    let parked = match &resume {
        Some(journal) => {
            let names =
                further_ports(&route, journal).map_err(|why| bad_input(format!("{}: {why}", args.state.display())))?;
            controller::adopt_named(&mut devices, &names, parallel);
            names
        }
        None => controller::adopt_strangers(&mut devices, &route.vlans(), parallel),
    };
    tell_parked(&route, &parked);
    let Route { topology, goals, way, management, sequence } = route;
    let guard = Duration::try_from_secs_f64(args.deadline)
        .map_err(|_| bad_input("--deadline takes seconds, such as 90"))?
        .clamp(DEADLINE_MIN, DEADLINE_MAX);
    if management != Management::OutOfBand {
        devices.iter_mut().flatten().for_each(|device| device.set_patience(guard));
    }
    let mut order = Order {
        goals,
        way,
        digest,
        nonce: controller::fresh_number() as u32,
        generation: if args.take_over { None } else { state.generation()? },
        claims: state.claims()?,
        resume,
        management,
        guard: Some(guard),
        sequence,
        parallel_max: parallel,
    };
    order.park(&parked);
    let interrupt = Interrupt::watch_in_order()?;
    let mut deployment = Deployment::new(&topology, order);
    let mut scene = Scene { plan: &plan, state: &state, interrupt };
    let outcome = run_deployment(&mut deployment, controller::drivers(&mut devices), &mut scene);
    match &outcome {
        Outcome::Deployed { .. } | Outcome::RolledBack { .. } => {
            state.know(deployment.mark_left())?;
            state.finish()?;
        }
        // What was claimed and then left alone bears our mark all the same.
        Outcome::Refused(_) | Outcome::Stranded { .. } => state.know(deployment.mark_left())?,
        Outcome::Unchanged | Outcome::Stale { .. } | Outcome::Superseded { .. } => {}
    }
    let (word, fine) = (word(&outcome), matches!(&outcome, Outcome::Unchanged) || sound(&outcome));
    let lines = sentences(&plan, &outcome, args);
    match output {
        Output::Json => say!("{}", serde_json::json!({ "outcome": word, "messages": lines })),
        Output::Person => {
            for line in &lines {
                say!("{line}");
            }
        }
    }
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Says which ports go out of service that the plan says nothing of.
fn tell_parked(route: &Route, parked: &[Vec<String>]) {
    for (switch, names) in route.topology.switches().iter().zip(parked).filter(|(_, names)| !names.is_empty()) {
        eprintln!(
            "espalier: {}: no port of the plan, but in VLANs that it is about: {}; taken out of them, and shut",
            switch.name,
            names.join(", ")
        );
    }
}

/// The ports in a journal that the plan does not name.
///
/// # Errors
/// Why the journal is not of this plan's switches.
fn further_ports(route: &Route, journal: &Journal) -> Result<Vec<Vec<String>>, String> {
    let way_out = "resume or undo with the plan that was interrupted";
    if journal.backup.len() != route.goals.len() {
        return Err(format!(
            "the interrupted deployment was of {} switches, and the plan has {}; {way_out}",
            journal.backup.len(),
            route.goals.len()
        ));
    }
    let one = |((switch, goal), backup): ((&fabric::Switch, &SwitchConfig), &Arc<SwitchConfig>)| {
        let known = |config: &SwitchConfig, name: &str| config.slot(name).is_some();
        if let Some(port) = goal.ports.iter().find(|port| !known(backup, &port.name)) {
            return Err(format!("the interrupted deployment did not know {}:{}; {way_out}", switch.name, port.name));
        }
        let further = backup.ports.iter().filter(|port| !known(goal, &port.name));
        Ok(further.map(|port| port.name.clone()).collect())
    };
    route.topology.switches().iter().zip(&route.goals).zip(&journal.backup).map(one).collect()
}

fn sound(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Deployed { unsaved, doubts, .. } => unsaved.is_empty() && doubts.is_empty(),
        _ => false,
    }
}

/// Where the switches are to get, and how.
struct Route {
    /// The cabling, with the ports of both plans where there are two.
    topology: Topology,
    goals: Vec<SwitchConfig>,
    way: Way,
    management: Management,
    sequence: Vec<SwitchId>,
}

impl Route {
    /// # Errors
    /// Bad input if the old plan cannot be read, or no live change leads from it to the new one.
    fn new(plan: &Plan, args: &cli::Deploy) -> Result<Self> {
        let Some(since) = &args.since else {
            let way = if args.undo { Way::Undo } else { Way::Drained };
            return Ok(Self {
                topology: plan.topology.clone(),
                goals: controller::goals(plan),
                way,
                management: Management::of(&plan.topology, &plan.devices),
                sequence: far_first(&plan.topology, &plan.devices),
            });
        };
        let old = read_plan_file(since, ReadMode::Strict)?;
        let transition = planner::steps(&old, plan).map_err(|error| bad_input(error.to_string()))?;
        let topology = transition.topology;
        let config = |device: &DeviceIntent| SwitchConfig::of_intent(&topology, device);
        let management = Management::of(&topology, &transition.goal.devices);
        if management != Management::of(&topology, &transition.start.devices) {
            return Err(bad_input(
                "the plans manage the switches by different cables; plan with --previous, which keeps the old ones, or \
                 deploy without --since"
                    .to_owned(),
            ));
        }
        let sequence = far_first(&topology, &transition.goal.devices);
        let start: Vec<SwitchConfig> = transition.start.devices.iter().map(config).collect();
        let goals: Vec<SwitchConfig> = transition.goal.devices.iter().map(config).collect();
        let (mut state, mut stages) = (transition.start, Vec::new());
        for step in &transition.steps {
            let mut stage = BTreeMap::new();
            for part in &step.parts {
                match part {
                    Part::Host(..) => {
                        return Err(bad_input(
                            "hosts tag their frames in these plans, and must change their tables between two steps, \
                             which deploy cannot see to; deploy without --since"
                                .to_owned(),
                        ));
                    }
                    Part::Switch(change) => {
                        planner::apply(part, &mut state);
                        stage.insert(change.switch, config(&state.devices[change.switch.index()]));
                    }
                }
            }
            stages.push(stage);
        }
        Ok(Self { goals, way: Way::Live { start, stages }, topology, management, sequence })
    }

    /// Every VLAN on the whole way, that of management included.
    fn vlans(&self) -> VlanSet {
        let mut used = controller::vlans_of(&self.goals);
        if let Way::Live { start, stages } = &self.way {
            used.extend(controller::vlans_of(start.iter().chain(stages.iter().flat_map(BTreeMap::values))).iter());
        }
        if let Management::InBand { vlan, .. } = self.management {
            used.insert(vlan);
        }
        used
    }

    /// The highest VLAN id that stays free on the whole way.
    fn mark_vlan(&self) -> VlanId {
        controller::free_vlan(&self.vlans())
    }

    /// The states that a switch passes through, the last one included, and what they are called.
    fn states(&self, switch: SwitchId, found: &SwitchConfig, parked: &[String]) -> Vec<(String, SwitchConfig)> {
        let goal = &self.goals[switch.index()].with_parked(parked);
        match &self.way {
            Way::Live { stages, .. } => (stages.iter().zip(1..))
                .filter_map(|(stage, number)| {
                    Some((format!("live step {number}"), stage.get(&switch)?.with_parked(parked)))
                })
                .collect(),
            Way::Drained | Way::Undo if found == goal => Vec::new(),
            Way::Drained | Way::Undo => vec![
                ("drain".to_owned(), self.management.shut(switch, found)),
                ("configure".to_owned(), self.management.shut(switch, goal)),
                ("open".to_owned(), goal.clone()),
            ],
        }
    }
}

/// Reads every switch and prints every SET that would be sent.
fn dry_run(
    route: &Route,
    devices: Vec<controller::Connected>,
    parked: &[Vec<String>],
    digest: u32,
    parallel: usize,
    output: Output,
) -> Result<ExitCode> {
    let mut failed = false;
    let mut all = Vec::new();
    let switches = route.topology.switch_ids().zip(devices).zip(parked).collect();
    let one = |((switch, device), parked): ((SwitchId, controller::Connected), &Vec<String>)| {
        device.and_then(|device| rehearse(route, switch, device, parked, digest))
    };
    for (switch, rehearsed) in route.topology.switches().iter().zip(controller::at_once(switches, parallel, one)) {
        let name = &switch.name;
        match rehearsed {
            Ok(stages) => {
                if output == Output::Person {
                    let writes = stages.iter().map(|stage| stage.edits.len()).sum::<usize>();
                    let count = |of: fn(&Rehearsed) -> usize| stages.iter().map(of).sum::<usize>();
                    let said = match (count(|stage| stage.said.sets.len()), count(|stage| stage.said.lines.len())) {
                        (0, 0) => String::new(),
                        (0, lines) => format!(" in {lines} lines"),
                        (sets, _) => format!(" in {sets} SETs"),
                    };
                    say!("{name}: {writes} writes{said}");
                }
                for stage in &stages {
                    if output == Output::Person {
                        say!("  {}:", stage.name);
                        for edit in &stage.edits {
                            say!("    {edit}");
                        }
                        for set in &stage.said.sets {
                            say!("    set {set}");
                        }
                        for line in &stage.said.lines {
                            say!("    > {line}");
                        }
                    }
                    all.push(serde_json::json!({
                        "switch": name, "stage": stage.name, "writes": stage.edits, "sets": stage.said.sets,
                        "lines": stage.said.lines,
                    }));
                }
            }
            Err(fault) => {
                failed = true;
                eprintln!("espalier: {name} {fault}");
            }
        }
    }
    if output == Output::Json {
        say!("{}", serde_json::json!({ "stages": all }));
    }
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// What one stage does to one switch.
struct Rehearsed {
    name: String,
    edits: Vec<String>,
    said: Said,
}

fn rehearse(
    route: &Route,
    switch: SwitchId,
    mut device: Reached,
    parked: &[String],
    digest: u32,
) -> Result<Vec<Rehearsed>, Fault> {
    let reading = device.driver().read()?;
    // The nonce is drawn when it is done.
    let generation = reading.mark.map_or(0, |mark| mark.generation).saturating_add(1);
    let mark = Mark { generation, nonce: 0, digest };
    let (mut found, mut found_mark) = (reading.config, reading.mark);
    let mut stages = Vec::new();
    for (name, state) in route.states(switch, &found, parked) {
        let said = device.rehearse(&found, &state, mark, found_mark)?;
        found_mark = Some(mark);
        stages.push(Rehearsed {
            name,
            edits: edits(&found, &state).iter().map(|edit| edit.sentence(&state)).collect(),
            said,
        });
        found = state;
    }
    Ok(stages)
}

/// The judge, the journal and the person before the screen.
struct Scene<'a> {
    plan: &'a Plan,
    state: &'a State,
    interrupt: Interrupt,
}

impl Surroundings for Scene<'_> {
    fn judge(&mut self, devices: &[SwitchConfig]) -> Result<(), String> {
        let mut plan = self.plan.clone();
        let topology = &self.plan.topology;
        for ((switch, config), device) in topology.switch_ids().zip(devices).zip(&mut plan.devices) {
            // On the way from another plan there may be ports that this one does not name.
            let ports: Vec<String> = topology.port_ids(switch).map(|port| topology.port(port).name.clone()).collect();
            *device = align(config, &ports).to_intent(topology, switch);
        }
        let report = verify::check(&plan);
        match report.findings().iter().find(|finding| finding.severity == fabric::Severity::Fatal) {
            None => Ok(()),
            Some(finding) => Err(format!("{}: {}", finding.subject, finding.message)),
        }
    }

    fn note(&mut self, mark: Mark) -> Result<(), String> {
        self.state.note(mark).map_err(|error| format!("{error:#}"))
    }

    fn record(&mut self, journal: &Journal) -> Result<(), String> {
        self.state.record(journal).map_err(|error| format!("{error:#}"))
    }

    fn tell(&mut self, event: &Event) {
        let name = |switch: &SwitchId| self.plan.topology.switch(*switch).name.as_str();
        match event {
            Event::Begun { stage, direction, switches } => {
                let back = if *direction == Direction::Back { " (back)" } else { "" };
                let whom = if *switches > 0 { format!(", {switches} switches") } else { String::new() };
                eprintln!("{stage}{back}{whom}");
            }
            Event::Done(..) => {}
            Event::Failed(stage, switch, fault) => eprintln!("  {stage}: {} {fault}", name(switch)),
            Event::Turned(_) => eprintln!("turning back: every switch gets what it held before"),
        }
    }

    fn interrupted(&mut self) -> bool {
        self.interrupt.is_pressed()
    }
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Unchanged => "unchanged",
        Outcome::Deployed { .. } => "deployed",
        Outcome::Stale { .. } => "stale",
        Outcome::Superseded { .. } => "superseded",
        Outcome::Refused(_) => "refused",
        Outcome::RolledBack { .. } => "rolled-back",
        Outcome::Stranded { .. } => "stranded",
    }
}

/// The outcome and the way on, for a person.
fn sentences(plan: &Plan, outcome: &Outcome, args: &cli::Deploy) -> Vec<String> {
    let name = |switch: SwitchId| plan.topology.switch(switch).name.clone();
    let faults = |faults: &[(SwitchId, Fault)]| -> Vec<String> {
        faults.iter().map(|(switch, fault)| format!("  {}: {fault}", name(*switch))).collect()
    };
    let reason = |reason: &Reason| -> Vec<String> {
        match reason {
            Reason::Faults(stage, list) => {
                let mut lines = vec![format!("  at the stage \"{stage}\":")];
                lines.extend(faults(list));
                lines
            }
            Reason::Elsewhere(switch, what) => vec![
                format!("  {} does not hold the old plan: {what}", name(*switch)),
                "  deploy the old plan again, or this one without --since".to_owned(),
            ],
            Reason::NoWay(switch, port) => vec![
                format!("  {}:{port} does not carry the management VLAN yet, and {} would be lost", name(*switch), name(*switch)),
                "  put the port into it by hand, far switches first; switches as they leave the factory have all ports in VLAN 1"
                    .to_owned(),
            ],
            Reason::Unfit(what) => vec![format!("  the judge found the switches unfit: {what}")],
            Reason::NoJournal(what) => vec![format!("  the journal could not be written: {what}")],
            Reason::Interrupted => vec!["  it was asked to stop".to_owned()],
        }
    };
    let plan_file = args.plan.display();
    let mut lines = Vec::new();
    match outcome {
        Outcome::Unchanged => lines.push("every switch holds the plan already; nothing was written".to_owned()),
        Outcome::Deployed { mark, unsaved, doubts } => {
            let count = plan.topology.switches().len();
            lines.push(format!("{} of {count} switches hold the plan: generation {}", count - doubts.len(), mark.generation));
            if !doubts.is_empty() {
                lines.push("these do not, and their ports are shut; deploy again once they answer:".to_owned());
                lines.extend(faults(doubts));
            }
            if !unsaved.is_empty() {
                lines.push("these hold it, but would come back from a restart with their ports shut; save them:".to_owned());
                lines.extend(faults(unsaved));
            }
        }
        Outcome::Stale { switch, found } => lines.push(format!(
            "{} was set up by somebody else since (generation {}); nothing was written. Plan again from what is there, or go ahead with --take-over",
            name(*switch),
            found.generation
        )),
        Outcome::Superseded { switch, by } => lines.push(format!(
            "another deployment (generation {}) took over at {}; this one has stopped and left the rest to it",
            by.generation,
            name(*switch)
        )),
        Outcome::Refused(why) => {
            lines.push("nothing was changed:".to_owned());
            lines.extend(reason(why));
        }
        Outcome::RolledBack { reason: why, unsaved } => {
            lines.push("rolled back: every switch holds what it held before".to_owned());
            lines.extend(reason(why));
            if !unsaved.is_empty() {
                lines.push("these could not save it; save them:".to_owned());
                lines.extend(faults(unsaved));
            }
        }
        Outcome::Stranded { reason: why, lost } => {
            lines.push("rolled back, but for these switches, whose neighbours keep their ports toward them shut:".to_owned());
            lines.extend(faults(lost));
            lines.extend(reason(why));
            lines.push(format!("once they answer: espalier deploy {plan_file} --undo, or --resume to go on"));
        }
    }
    lines
}

/// The folder that holds lock, journal and generation.
struct State {
    folder: PathBuf,
    /// Held until the program ends, however it does.
    _lock: fs::File,
}

impl State {
    fn open(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let path = folder.join("lock");
        let shown = || path.display().to_string();
        // The file stays: whoever removed it might remove the next one's.
        let mut lock =
            fs::File::options().read(true).write(true).create(true).truncate(false).open(&path).with_context(shown)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let owner = fs::read_to_string(&path).unwrap_or_default();
                return Err(bad_input(format!(
                    "a deployment is under way from here (process {}); wait for it, or use another --state",
                    owner.trim()
                )));
            }
            Err(error) => return Err(std::io::Error::from(error)).with_context(shown),
        }
        lock.set_len(0).and_then(|()| write!(lock, "{}", std::process::id())).with_context(shown)?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// Puts a file where a crash leaves either the old one or the new one.
    fn put(&self, name: &str, text: &str) -> Result<()> {
        let (path, draft) = (self.folder.join(name), self.folder.join(format!("{name}.new")));
        let written = (|| {
            let mut file = fs::File::create(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            self.sync()
        })();
        written.with_context(|| path.display().to_string())
    }

    /// Has the disk know which files there are.
    fn sync(&self) -> std::io::Result<()> {
        fs::File::open(&self.folder)?.sync_all()
    }

    fn journal(&self) -> Result<Option<Journal>> {
        let path = self.folder.join("journal.json");
        match fs::read_to_string(&path) {
            Ok(text) => {
                parse_journal(&text).map(Some).map_err(|error| bad_input(format!("{}: {error}", path.display())))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    fn generation(&self) -> Result<Option<u32>> {
        let path = self.folder.join("generation");
        match fs::read_to_string(&path) {
            Ok(text) => match text.trim().parse() {
                Ok(generation) => Ok(Some(generation)),
                Err(_) => Err(bad_input(format!("{}: {:?} is no generation", path.display(), text.trim()))),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    fn record(&self, journal: &Journal) -> Result<()> {
        self.put("journal.json", &write_journal(journal))
    }

    /// Marks that deployments from here were about to leave, and then died or were stopped.
    fn claims(&self) -> Result<Vec<Mark>> {
        let path = self.folder.join("claims");
        match fs::read_to_string(&path) {
            // A last line that is cut off is of a mark that was never left.
            Ok(text) => Ok(text.lines().filter_map(|line| line.parse().ok()).collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    /// Remembers a mark that is about to be left, on the disk.
    fn note(&self, mark: Mark) -> Result<()> {
        let path = self.folder.join("claims");
        if self.claims()?.contains(&mark) {
            return Ok(());
        }
        let open = fs::File::options().create(true).append(true).open(&path);
        let mut file = open.with_context(|| path.display().to_string())?;
        file.write_all(format!("\n{mark}\n").as_bytes()).with_context(|| path.display().to_string())?;
        file.sync_all().and_then(|()| self.sync()).with_context(|| path.display().to_string())
    }

    /// Remembers the generation of a mark as our own, and with it those that went before.
    fn know(&self, mark: Option<Mark>) -> Result<()> {
        let Some(Mark { generation, .. }) = mark else { return Ok(()) };
        self.put("generation", &format!("{generation}\n"))?;
        let claims = self.folder.join("claims");
        match fs::remove_file(&claims) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| claims.display().to_string())
            }
            _ => Ok(()),
        }
    }

    fn finish(&self) -> Result<()> {
        match fs::remove_file(self.folder.join("journal.json")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context("remove the journal"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_deployment_at_a_time_and_a_dead_one_blocks_nobody() {
        let folder = std::env::temp_dir().join(format!("espalier-lock-{}", std::process::id()));
        let first = State::open(&folder).expect("free");
        let refused = State::open(&folder).map(drop).expect_err("taken").to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        drop(first);
        // One that died left its number, which some other process has by now, or nothing yet.
        for left in [std::process::id().to_string(), String::new()] {
            fs::write(folder.join("lock"), left).expect("a file");
            drop(State::open(&folder).expect("nobody holds it"));
        }
        fs::remove_dir_all(&folder).expect("a folder");
    }
}
