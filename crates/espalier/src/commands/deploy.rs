//! `espalier deploy`: a plan on its switches, all of them or none.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, Result};
use device::{
    SwitchConfig,
    deploy::{
        Deployment, Direction, Driver as _, Event, Fault, Journal, Management, Order, Outcome, Reason, Surroundings,
        Way, edits, run as run_deployment,
    },
    format::{parse_journal, write_journal},
};
use fabric::{
    Plan, SwitchId,
    format::plan::{ReadMode, plan_digest},
};
use signal_hook::{consts::SIGINT, flag};

use super::{Output, controller, say};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::read_plan_file,
};

pub(super) fn run(args: &cli::Deploy, output: Output) -> Result<ExitCode> {
    let plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    let report = verify::check(&plan);
    if !report.is_deployable() {
        return Err(bad_input(format!("{} is not fit to deploy; see espalier check", args.plan.display())));
    }
    let mut devices = controller::connect(&plan, &args.reach)?;
    if args.dry_run {
        return dry_run(&plan, devices, output);
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
    let digest = plan_digest(&plan)?;
    let order = Order {
        goals: controller::goals(&plan),
        way: if args.undo { Way::Undo } else { Way::Drained },
        digest: u32::from_str_radix(digest.get(..8).unwrap_or("0"), 16).unwrap_or(0),
        nonce: controller::fresh_number() as u32,
        generation: if args.take_over { None } else { state.generation()? },
        resume,
        management: Management::OutOfBand,
        sequence: plan.topology.switch_ids().collect(),
        parallel_max: args.parallel,
    };
    let interrupted = Arc::new(AtomicBool::new(false));
    flag::register(SIGINT, Arc::clone(&interrupted)).context("watch for Ctrl-C")?;
    let mut deployment = Deployment::new(&plan.topology, order);
    let mut scene = Scene { plan: &plan, state: &state, interrupted };
    let outcome = run_deployment(&mut deployment, &mut devices, &mut scene);
    match &outcome {
        Outcome::Deployed { mark, .. } => state.finish(Some(mark.generation))?,
        Outcome::RolledBack { .. } => state.finish(None)?,
        _ => {}
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

fn sound(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Deployed { unsaved, doubts, .. } => unsaved.is_empty() && doubts.is_empty(),
        _ => false,
    }
}

/// Reads every switch and prints what would be written.
fn dry_run(plan: &Plan, devices: Vec<controller::Connected>, output: Output) -> Result<ExitCode> {
    let mut failed = false;
    let mut all = Vec::new();
    for ((switch, device), goal) in plan.topology.switch_ids().zip(devices).zip(controller::goals(plan)) {
        let name = &plan.topology.switch(switch).name;
        match device.and_then(|mut device| device.read()) {
            Ok(reading) => {
                let writes = edits(&reading.config, &goal);
                if output == Output::Person {
                    say!("{name}: {} writes", writes.len());
                    for edit in &writes {
                        say!("  {}", edit.sentence(&goal));
                    }
                }
                all.push(serde_json::json!({
                    "switch": name,
                    "writes": writes.iter().map(|edit| edit.sentence(&goal)).collect::<Vec<_>>(),
                }));
            }
            Err(fault) => {
                failed = true;
                eprintln!("espalier: {name} {fault}");
            }
        }
    }
    if output == Output::Json {
        say!("{}", serde_json::json!({ "switches": all }));
    }
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// The judge, the journal and the person before the screen.
struct Scene<'a> {
    plan: &'a Plan,
    state: &'a State,
    interrupted: Arc<AtomicBool>,
}

impl Surroundings for Scene<'_> {
    fn judge(&mut self, devices: &[SwitchConfig]) -> Result<(), String> {
        let mut plan = self.plan.clone();
        for ((switch, config), device) in self.plan.topology.switch_ids().zip(devices).zip(&mut plan.devices) {
            *device = config.to_intent(&self.plan.topology, switch);
        }
        let report = verify::check(&plan);
        match report.findings().iter().find(|finding| finding.severity == fabric::Severity::Fatal) {
            None => Ok(()),
            Some(finding) => Err(format!("{}: {}", finding.subject, finding.message)),
        }
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
        self.interrupted.load(Ordering::SeqCst)
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
}

impl State {
    fn open(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let lock = folder.join("lock");
        for _ in 0..2 {
            match fs::File::create_new(&lock) {
                Ok(mut file) => {
                    write!(file, "{}", std::process::id()).with_context(|| lock.display().to_string())?;
                    return Ok(Self { folder: folder.to_owned() });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    let owner = fs::read_to_string(&lock).unwrap_or_default();
                    if !owner.is_empty() && Path::new("/proc").join(owner.trim()).exists() {
                        return Err(bad_input(format!(
                            "a deployment is under way from here (process {owner}); wait for it, or use another --state"
                        )));
                    }
                    // Its process is gone.
                    fs::remove_file(&lock).with_context(|| lock.display().to_string())?;
                }
                Err(error) => return Err(error).with_context(|| lock.display().to_string()),
            }
        }
        Err(bad_input(format!("somebody else takes {} all the time", lock.display())))
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

    /// Writes the journal beside its place, to the disk, and moves it there.
    fn record(&self, journal: &Journal) -> Result<()> {
        let (path, draft) = (self.folder.join("journal.json"), self.folder.join("journal.json.new"));
        let mut file = fs::File::create(&draft).with_context(|| draft.display().to_string())?;
        file.write_all(write_journal(journal).as_bytes()).with_context(|| draft.display().to_string())?;
        file.sync_all().with_context(|| draft.display().to_string())?;
        fs::rename(&draft, &path).with_context(|| path.display().to_string())
    }

    fn finish(&self, generation: Option<u32>) -> Result<()> {
        if let Some(generation) = generation {
            let path = self.folder.join("generation");
            fs::write(&path, format!("{generation}\n")).with_context(|| path.display().to_string())?;
        }
        match fs::remove_file(self.folder.join("journal.json")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context("remove the journal"),
            _ => Ok(()),
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // If that fails, the next deployment sees that its process is gone.
        let _ = fs::remove_file(self.folder.join("lock"));
    }
}
