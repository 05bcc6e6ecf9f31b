//! `espalier reproduce`: the papers' tables and figures beside the printed numbers.

mod guarded_lab;
mod progress;
mod shown;

use std::{fs, path::Path, process::ExitCode};

use anyhow::{Context, Result};
use experiments::reproduce::{Figure, LabSettings, Replay, Reproduction, Request, Testbed, reproduce};

use self::{guarded_lab::GuardedLab, progress::Progress, shown::print};
use super::{Output, say};
use crate::{
    cli::{self, Figures},
    failure::FAILED,
    files::write_file,
    pictures::{check_name, write_picture},
};

pub(super) fn run(args: &cli::Reproduce, output: Output) -> Result<ExitCode> {
    let lab = match args.in_place {
        cli::Place::Simulator => None,
        cli::Place::Lab => {
            // Before any thread starts.
            lab::rootless::acquire()?;
            Some(GuardedLab::new()?)
        }
    };
    match args.figures {
        Figures::All => all(args, lab.as_ref(), output),
        Figures::One(figure) => one(figure, args, lab.as_ref(), output),
    }
}

/// Reproduces one figure, and draws it where that is asked for.
fn one(figure: Figure, args: &cli::Reproduce, lab: Option<&GuardedLab>, output: Output) -> Result<ExitCode> {
    if let Some(path) = &args.plot {
        check_name(path)?;
    }
    let found = reproduced(figure, args, lab)?;
    if let Some(path) = &args.plot {
        write_picture(path, &found.chart.draw())?;
    }
    match output {
        Output::Json => say!("{}", shown::json(&found)),
        Output::Person => print(&found)?,
    }
    Ok(exit_code(found.agrees()))
}

/// Reproduces one figure after the other, with a plot of each in a folder where that is asked for.
fn all(args: &cli::Reproduce, lab: Option<&GuardedLab>, output: Output) -> Result<ExitCode> {
    if let Some(folder) = &args.plot {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    let (mut agree, mut json) = (true, serde_json::Map::new());
    for figure in Figure::all().filter(|figure| lab.is_none() || figure.is_in_lab()) {
        let name = figure.name();
        let shown = match reproduced(figure, args, lab) {
            Ok(found) => {
                agree &= found.agrees();
                show_one_of_all(name, &found, args.plot.as_deref(), output)?;
                shown::json(&found)
            }
            // What comes after it may still be had.
            Err(error) => match error.downcast_ref() {
                Some(experiments::Error::Unavailable(reason)) => {
                    eprintln!("espalier: {name} SKIPPED: {reason}");
                    serde_json::json!({ "skipped": reason.to_string() })
                }
                _ => {
                    agree = false;
                    eprintln!("espalier: {name} FAILED: {error:#}");
                    serde_json::json!({ "failed": format!("{error:#}") })
                }
            },
        };
        json.insert(name.to_owned(), shown);
    }
    if output == Output::Json {
        say!("{}", serde_json::Value::Object(json));
    }
    Ok(exit_code(agree))
}

fn show_one_of_all(name: &str, found: &Reproduction, plots: Option<&Path>, output: Output) -> Result<()> {
    if let Some(folder) = plots {
        write_picture(&folder.join(format!("{name}.svg")), &found.chart.draw())?;
    }
    if output == Output::Person {
        print(found)?;
        say!();
    }
    Ok(())
}

/// Reproduces a figure with progress bars on standard error, and writes its CSV where that is asked for.
fn reproduced(figure: Figure, args: &cli::Reproduce, lab: Option<&GuardedLab>) -> Result<Reproduction> {
    let testbed = match lab {
        None => Testbed::Simulator,
        Some(lab) => Testbed::Lab(LabSettings { name: lab.name(), rate_bps: args.rate }),
    };
    let replay = Replay { traces: args.traces.as_deref(), ns_per_flop: args.ns_per_flop };
    let progress = Progress::default();
    let found = reproduce(&Request { figure, testbed, replay }, &|event| progress.show(event));
    if let Some(lab) = lab {
        lab.wait_if_interrupted();
    }
    let found = found?;
    if let Some((path, csv)) = args.csv.as_ref().zip(found.csv.as_ref()) {
        write_file(path, |out| out.write_all(csv.as_bytes()))?;
    }
    Ok(found)
}

fn exit_code(agrees: bool) -> ExitCode {
    if agrees { ExitCode::SUCCESS } else { ExitCode::from(FAILED) }
}
