//! The words of `reproduce`.

use std::path::PathBuf;

use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use experiments::reproduce::Figure;
use fabric::parse_rate;

/// The name of all figures together.
const ALL: &str = "all";
const ALL_DESCRIPTION: &str = "each of them";

/// Recompute a table or figure of the papers beside the printed numbers.
#[derive(Args)]
#[command(after_help = help())]
pub(crate) struct Reproduce {
    /// What to reproduce; see the list below.
    #[arg(value_name = "NAME", value_parser = figures(), hide_possible_values = true)]
    pub(crate) figures: Figures,
    /// By the simulator, or in the lab: on this machine's kernel with real programs.
    #[arg(long = "in", value_enum, default_value_t = Place::Simulator, value_name = "WHERE")]
    pub(crate) in_place: Place,
    /// In the lab: rate of a host's cable.
    #[arg(long, value_parser = parse_rate, allow_hyphen_values = true, default_value = "20mbit")]
    pub(crate) rate: u64,
    /// Draw it, too: .svg or .png; for `all` a folder, a file each.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// For NAS benchmarks: a folder with cg.B, mg.B and lu.B, each a folder of SimGrid's complete traces, a file a rank,
    /// instead of the folded ones.
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: Option<PathBuf>,
    /// For NAS benchmarks: nanoseconds that a flop of the traces takes; the papers' processors were slower than today's.
    #[arg(long, default_value_t = 4.0, value_name = "NS", value_parser = super::numbers::real(0.0..=1e9))]
    pub(crate) ns_per_flop: f64,
    /// For fig8: write the values, for plots.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

/// What is reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figures {
    /// One figure.
    One(Figure),
    /// One after the other.
    All,
}

/// Names of figures, and [`ALL`].
fn figures() -> impl TypedValueParser<Value = Figures> {
    let of_figure = |figure: Figure| PossibleValue::new(figure.name()).help(figure.description());
    let names = Figure::all().map(of_figure).chain([PossibleValue::new(ALL).help(ALL_DESCRIPTION)]);
    PossibleValuesParser::new(names).map(|name| Figure::named(&name).map_or(Figures::All, Figures::One))
}

/// Where something is reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    /// In simulated time.
    Simulator,
    /// On namespaces of this machine: fig7, fig8 (by Open MPI, a sort and hpcc, where they are installed), miura-fig6.
    Lab,
}

fn help() -> String {
    let mut help = "What there is:\n".to_owned();
    let figures = Figure::all().map(|figure| (figure.name(), figure.description()));
    for (name, description) in figures.chain([(ALL, ALL_DESCRIPTION)]) {
        help.push_str(&format!("  {name:<13} {description}\n"));
    }
    help.push_str(
        "\nTraces of six NAS benchmarks come with the program. Exit code 1 means that a number or a statement \
         of the paper is not as it should be here.\n\nExamples:\n  espalier reproduce table3\n  \
         espalier reproduce fig7 --plot fig7.svg\n  \
         espalier reproduce all --plot figures\n  espalier reproduce all --in lab\n",
    );
    help
}
