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
mod measure;
mod miura;
mod miura_fig7;
mod network;
mod npb;
mod reproduction;
mod table2;
mod table3;

use std::process::ExitCode;

use anyhow::Result;

use self::reproduction::Reproduction;
use super::Output;
use crate::{cli, plot::check_name};

pub(super) fn run(args: &cli::Reproduce, output: Output) -> Result<ExitCode> {
    if let Some(path) = &args.plot {
        check_name(path)?;
    }
    reproduce(&args.name, args)?.show(output, args.plot.as_deref())
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
