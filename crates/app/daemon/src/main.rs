//! The daemon, and the commands that ask it.
#![forbid(unsafe_code)]

mod cli;

use std::{
    fs,
    io::{self, IsTerminal as _, Write as _},
    path::Path,
    process::ExitCode,
};

use api_client::{Ask as Question, encoded};
use clap::{CommandFactory as _, Parser as _};
use espalierd::{
    api::routes::openapi,
    config::Config,
    demo::{DemoRequest, Switches, demo},
    documents::{
        AuditEntry, Delivery, Event, LinkHistory, LinkSummary, Maintenance, MaintenanceRequest, Proposal,
        ProposalState, Status, Target,
    },
    service::{self, Checked},
    show,
};
use serde::Serialize;

use crate::cli::{Ask, Cli, Command, Numbered};

/// Something needs a person, or the daemon refuses.
const REFUSED: u8 = 1;
/// The configuration or a file is bad.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(config) => {
            log();
            service::run(&config.path).map(|()| ExitCode::SUCCESS).map_err(|why| (BAD_INPUT, why))
        }
        Command::CheckConfig(config) => check(&config.path),
        Command::Restore { file, config } => restore(&config.path, &file),
        Command::Demo { topology, plan, lab, page, counters } => {
            let switches = if lab { Switches::Lab } else { Switches::Models };
            let request =
                DemoRequest { topology: topology.as_deref(), plan: plan.as_deref(), switches, page, counters };
            demo(&request).map(|()| ExitCode::SUCCESS).map_err(|why| (REFUSED, why))
        }
        Command::Openapi => print(&openapi()),
        Command::Man { directory } => {
            man(&directory).map_err(|error| (REFUSED, format!("{}: {error}", directory.display())))
        }
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "espalierd", &mut io::stdout());
            Ok(ExitCode::SUCCESS)
        }
        command => ask(command).map_err(|why| (REFUSED, why)),
    };
    done.unwrap_or_else(|(code, why)| {
        eprintln!("espalierd: {why}");
        ExitCode::from(code)
    })
}

/// Messages go to standard error: to a person's terminal, or to the journal.
fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("ESPALIERD_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_writer(io::stderr);
    // The journal has times of its own.
    match std::env::var_os("JOURNAL_STREAM") {
        Some(_) => lines.without_time().with_ansi(false).init(),
        None => lines.with_ansi(io::stderr().is_terminal()).init(),
    }
}

/// Writes a manual page for each command.
fn man(directory: &Path) -> io::Result<ExitCode> {
    fs::create_dir_all(directory)?;
    let command = Cli::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, directory)?;
    Ok(ExitCode::SUCCESS)
}

type Done = Result<ExitCode, (u8, String)>;

fn check(path: &Path) -> Done {
    Checked::read(path).map_err(|why| (BAD_INPUT, why))?;
    print(&format!("{}: fine\n", path.display()))
}

fn restore(config: &Path, file: &Path) -> Done {
    let config = Config::read(config).map_err(|why| (BAD_INPUT, why))?;
    let old = service::restore(&config, file).map_err(|why| (REFUSED, why))?;
    print(&format!("restored; what was there before is in {}\n", old.display()))
}

fn print(text: &str) -> Done {
    // Whoever reads may go away.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

/// Prints a document, for machines or for people.
fn show<T: Serialize>(asked: &Ask, document: &T, lines: impl FnOnce(&T) -> Vec<String>) {
    let mut text = match asked.json {
        true => serde_json::to_string(document).unwrap_or_default(),
        false => lines(document).join("\n"),
    };
    if !text.is_empty() {
        text.push('\n');
        let _ = io::stdout().write_all(text.as_bytes());
    }
}

fn ask(command: Command) -> Result<ExitCode, String> {
    let post_proposal = |Numbered { ask, .. }: &Numbered, path: String| -> Result<ExitCode, String> {
        let proposal: Proposal = ask.endpoint()?.document(Question::post(&path, Vec::new()))?;
        show(ask, &proposal, |proposal| vec![show::proposal(proposal)]);
        Ok(ExitCode::SUCCESS)
    };
    match command {
        Command::Status(ask) => {
            let status: Status = ask.endpoint()?.document(Question::get("/v1/status"))?;
            let (lines, is_fine) = show::status(&status);
            show(&ask, &status, |_| lines);
            return Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) });
        }
        Command::Events { follow: false, ask } => {
            let mut events: Vec<Event> = ask.endpoint()?.document(Question::get("/v1/events"))?;
            events.reverse();
            show(&ask, &events, |events| events.iter().flat_map(show::event).collect());
        }
        Command::Events { follow: true, ask } => follow(&ask)?,
        Command::Propose { plan, reason, ask } => {
            let text = fs::read(&plan).map_err(|error| format!("{}: {error}", plan.display()))?;
            let path = format!("/v1/proposals?reason={}", encoded(&reason));
            let proposal: Proposal = ask
                .endpoint()?
                .document(Question::post(&path, text))
                .map_err(|why| format!("{}: {why}", plan.display()))?;
            show(&ask, &proposal, |proposal| vec![show::proposal(proposal)]);
        }
        Command::Proposals { all, ask } => {
            let mut proposals: Vec<Proposal> = ask.endpoint()?.document(Question::get("/v1/proposals"))?;
            proposals.retain(|proposal| all || proposal.state == ProposalState::Open);
            show(&ask, &proposals, |proposals| proposals.iter().map(show::proposal).collect());
        }
        Command::Approve(numbered) => {
            return post_proposal(&numbered, format!("/v1/proposals/{}/approve", numbered.number));
        }
        Command::Withdraw(numbered) => {
            return post_proposal(&numbered, format!("/v1/proposals/{}/withdraw", numbered.number));
        }
        Command::Rollback(numbered) => return post_proposal(&numbered, format!("/v1/rollback/{}", numbered.number)),
        Command::Targets(ask) => {
            let targets: Vec<Target> = ask.endpoint()?.document(Question::get("/v1/targets"))?;
            show(&ask, &targets, |targets| targets.iter().map(show::target).collect());
        }
        Command::Retry(ask) => {
            let target: Target = ask.endpoint()?.document(Question::post("/v1/target/retry", Vec::new()))?;
            show(&ask, &target, |target| vec![show::target(target)]);
        }
        Command::PutBack { switch, ask } => {
            let path = format!("/v1/put-back/{}", encoded(&switch));
            ask.endpoint()?.ask(Question::post(&path, Vec::new()), &mut |_| {})?;
        }
        Command::Maintain { end: Some(id), ask, .. } => {
            let path = format!("/v1/maintenance/{id}");
            ask.endpoint()?.ask(Question::delete(&path), &mut |_| {})?;
        }
        Command::Maintain { subject, reason, minutes, drain, end: None, ask } => {
            let request = MaintenanceRequest {
                subject: subject.unwrap_or_default(),
                reason,
                for_s: minutes.map(|minutes| 60 * minutes),
                drain,
            };
            let body = serde_json::to_vec(&request).map_err(|error| error.to_string())?;
            let mark: Maintenance = ask.endpoint()?.document(Question::post("/v1/maintenance", body))?;
            show(&ask, &mark, |mark| vec![show::maintenance(mark)]);
        }
        Command::Deliveries { retry: Some(id), ask, .. } => {
            let path = format!("/v1/deliveries/{id}/retry");
            let delivery: Delivery = ask.endpoint()?.document(Question::post(&path, Vec::new()))?;
            show(&ask, &delivery, |delivery| vec![show::delivery(delivery)]);
        }
        Command::Deliveries { forget: Some(id), ask, .. } => {
            ask.endpoint()?.ask(Question::delete(&format!("/v1/deliveries/{id}")), &mut |_| {})?;
        }
        Command::Deliveries { ask, .. } => {
            let deliveries: Vec<Delivery> = ask.endpoint()?.document(Question::get("/v1/deliveries"))?;
            show(&ask, &deliveries, |deliveries| deliveries.iter().map(show::delivery).collect());
        }
        Command::History { link: None, hours, ask } => {
            let path = format!("/v1/history?hours={hours}");
            let links: Vec<LinkSummary> = ask.endpoint()?.document(Question::get(&path))?;
            show(&ask, &links, |links| show::summaries(links));
        }
        Command::History { link: Some(link), hours, ask } => {
            let path = format!("/v1/history/{}?hours={hours}", encoded(&link));
            let history: LinkHistory = ask.endpoint()?.document(Question::get(&path))?;
            show(&ask, &history, show::history);
        }
        Command::Audit(ask) => {
            let mut entries: Vec<AuditEntry> = ask.endpoint()?.document(Question::get("/v1/audit"))?;
            entries.reverse();
            show(&ask, &entries, |entries| entries.iter().map(show::audit).collect());
        }
        Command::Backup { file, ask } => {
            let mut bytes = Vec::new();
            ask.endpoint()?.ask(Question::get("/v1/backup"), &mut |part| bytes.extend_from_slice(part))?;
            fs::write(&file, bytes).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        Command::Run(_)
        | Command::CheckConfig(_)
        | Command::Restore { .. }
        | Command::Demo { .. }
        | Command::Openapi
        | Command::Man { .. }
        | Command::Completions { .. } => unreachable!("these ask no daemon"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints changes of events as they come.
fn follow(asked: &Ask) -> Result<(), String> {
    asked.endpoint()?.follow("/v1/events/stream", &mut |change, event| {
        if asked.json {
            let _ = writeln!(io::stdout(), "{{\"change\":\"{change}\",\"event\":{event}}}");
        } else if let Ok(event) = serde_json::from_str::<Event>(event) {
            for line in show::change(change, &event) {
                let _ = writeln!(io::stdout(), "{line}");
            }
        }
    })
}
