//! `espalier reproduce`: the papers' tables and figures from real plans, beside the printed numbers.
//!
//! ```text
//!   network   the papers' cablings and plans ──┐
//!   measure   their benchmarks, simulated ─────┼─▶ one file a table or figure ─▶ Reproduction: table, notes, JSON, plot
//!   npb       traces of real programs ─────────┘
//! ```

mod eicker;
mod fig4;
mod fig5;
mod fig7;
mod fig8;
mod fig8_lab;
mod hpcc;
mod in_lab;
mod integer_sort;
mod measure;
mod miura;
mod miura_fig7;
mod mpi;
mod network;
mod npb;
mod reproduction;
mod table2;
mod table3;

use std::{fs, process::ExitCode};

use anyhow::{Context, Result};

use self::reproduction::{Reproduction, Verdict};
use super::{Output, say};
use crate::{
    cli::{self, REPRODUCTIONS},
    failure::bad_input,
    pictures::{check_name, write_picture},
};

/// What the lab can do of the papers.
const IN_LAB: [&str; 3] = ["fig7", "fig8", "miura-fig6"];

pub(super) fn run(args: &cli::Reproduce, output: Output) -> Result<ExitCode> {
    if args.in_place == cli::Place::Lab {
        // Before any thread starts.
        lab::rootless::acquire()?;
    }
    if args.name == "all" {
        return all(args, output);
    }
    if let Some(path) = &args.plot {
        check_name(path)?;
    }
    match reproduced(&args.name, args)? {
        Found::Here(found) => found.show(output, args.plot.as_deref()),
        Found::Skipped(reason) => Err(bad_input(reason)),
    }
}

/// One after the other, with a plot of each in a folder where that is asked for.
fn all(args: &cli::Reproduce, output: Output) -> Result<ExitCode> {
    if let Some(folder) = &args.plot {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    let (mut verdict, mut json) = (Verdict::Fine, serde_json::Map::new());
    let names = REPRODUCTIONS.map(|(name, _)| name);
    let names = names.into_iter().filter(|name| args.in_place == cli::Place::Simulator || IN_LAB.contains(name));
    for name in names {
        let found = match reproduced(name, args) {
            Ok(Found::Here(found)) => found,
            Ok(Found::Skipped(reason)) => {
                eprintln!("espalier: {name} SKIPPED: {reason}");
                json.insert(name.to_owned(), serde_json::json!({ "skipped": reason }));
                continue;
            }
            // What comes after it may still be had.
            Err(error) => {
                eprintln!("espalier: {name} FAILED: {error:#}");
                json.insert(name.to_owned(), serde_json::json!({ "failed": format!("{error:#}") }));
                verdict = Verdict::Disagrees;
                continue;
            }
        };
        if let Some(folder) = &args.plot {
            write_picture(&folder.join(format!("{name}.svg")), &found.chart.draw())?;
        }
        if output == Output::Person {
            found.print()?;
            say!();
        }
        if found.verdict == Verdict::Disagrees {
            verdict = Verdict::Disagrees;
        }
        json.insert(name.to_owned(), found.json);
    }
    if output == Output::Json {
        say!("{}", serde_json::Value::Object(json));
    }
    Ok(verdict.exit_code())
}

/// A reproduction, or why there is none on this machine.
enum Found {
    Here(Reproduction),
    Skipped(String),
}

fn reproduced(name: &str, args: &cli::Reproduce) -> Result<Found> {
    if args.in_place == cli::Place::Simulator {
        return Ok(Found::Here(reproduce(name, args)?));
    }
    if name == "fig8" {
        if let Some(wanted) = fig8_lab::wanted() {
            return Ok(Found::Skipped(wanted));
        }
    }
    Ok(match name {
        "fig7" => Found::Here(in_lab::fig_7(args)?),
        "fig8" => Found::Here(fig8_lab::reproduce(args)?),
        "miura-fig6" => Found::Here(in_lab::miura_fig_6(args)?),
        _ => Found::Skipped(format!("the lab does {}; the others are simulated", IN_LAB.join(", "))),
    })
}

fn reproduce(name: &str, args: &cli::Reproduce) -> Result<Reproduction> {
    match name {
        "table2" => table2::reproduce(),
        "table3" => table3::reproduce(),
        "fig4" => fig4::reproduce(),
        "fig5" => fig5::reproduce(),
        "fig7" => fig7::reproduce(),
        "fig8" => fig8::reproduce(args, fig8::Version::English),
        "ja-fig5" => fig7::reproduce_ja(),
        "ja-fig6" => fig8::reproduce(args, fig8::Version::Japanese),
        "eicker144" => eicker::prototype(),
        "eicker528" => eicker::forecast(),
        "miura-fig5" => miura::fig_5(),
        "miura-table2" => miura::table_2(),
        "miura-fig6" => miura::fig_6(),
        "miura-fig7" => miura_fig7::reproduce(args),
        name => unreachable!("{name} is not offered"),
    }
}
