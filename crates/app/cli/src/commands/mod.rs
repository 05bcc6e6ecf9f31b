//! One file a verb.

mod addresses;
mod bars;
mod booksim;
mod cables;
mod cablings;
mod check;
mod demo;
mod deploy;
mod discover;
mod drain;
mod drive;
mod enrol;
mod event_log;
mod explain;
mod export;
mod failure;
mod generate;
mod heartbeats;
mod htsim;
mod import;
mod interrupt;
mod lab;
mod loads;
mod measure;
mod observe;
mod outage;
mod outputs;
mod pareto;
mod parts;
mod patience;
mod ping;
mod plan;
mod plan_picture;
mod planes;
mod price;
mod processors;
mod reach;
mod render;
mod rendered;
mod reproduce;
mod serve;
mod shell;
mod show;
mod simgrid;
mod simulate;
mod simulate_job;
mod simulate_options;
mod simulate_spread;
mod since;
mod standby;
mod status;
mod suggest_cables;
mod sweep;
mod switchd;
mod tagger;
mod through;
mod traffic;
mod verdict;

use std::process::ExitCode;

use anyhow::Result;

use crate::{
    cli::{Cli, Command},
    failure::bad_input,
};

/// How results are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// Text.
    Person,
    /// One JSON object.
    Json,
}

/// Runs a command.
///
/// # Errors
/// Whatever keeps it from its result.
pub(crate) fn run(cli: Cli) -> Result<ExitCode> {
    let output = if cli.json { Output::Json } else { Output::Person };
    if cli.controller.url.is_some() && !cli.command.asks_controllers() {
        return Err(bad_input(
            "--controller is for deploy, status, watch, observe, discover, tagger run and heartbeats; espalierd stands by and enters learned addresses by itself, and \
             espalierd events, history and proposals show what it does",
        ));
    }
    match cli.command {
        Command::Generate(args) => generate::run(&args, output),
        Command::Import(args) => import::run(&args, output),
        Command::Traffic(args) => traffic::run(&args, output),
        Command::Plan(args) => plan::run(&args, output),
        Command::Check(args) => check::run(&args, output),
        Command::Discover(args) => discover::run(&args, &cli.controller, output),
        Command::Enrol(args) => enrol::run(&args, output),
        Command::Deploy(args) => deploy::run(&args, &cli.controller, output),
        Command::Observe(args) => observe::run(&args, &cli.controller, output),
        Command::Status(args) => status::run(&args, &cli.controller, output),
        Command::Watch(args) => status::watch(&args, &cli.controller, output),
        Command::Standby(args) => standby::run(&args, output),
        Command::Addresses(args) => addresses::run(&args, output),
        Command::Show(args) => show::run(&args, output),
        Command::Export(args) => export::run(&args),
        Command::Render(args) => render::run(&args, output),
        Command::Serve(args) => serve::run(&args),
        Command::Lab(args) => lab::run(&args, output),
        Command::Simulate(args) => simulate::run(&args, output),
        Command::Sweep(args) => sweep::run(&args, output),
        Command::Tagger(args) => tagger::run(&args, &cli.controller, output),
        Command::Heartbeats(args) => heartbeats::run(&args, &cli.controller),
        Command::Switchd(args) => switchd::run(&args),
        Command::Reproduce(args) => reproduce::run(&args, output),
        Command::Demo(args) => demo::run(&args, output),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
    }
}

/// Prints a line to standard output; a reader that went away is an error like any other.
macro_rules! say {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        writeln!(std::io::stdout().lock(), $($arg)*)?
    }};
}
pub(crate) use say;
