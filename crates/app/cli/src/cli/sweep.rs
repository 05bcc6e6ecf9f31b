//! The words of `sweep`.

use std::{num::NonZero, path::PathBuf};

use clap::{Args, Subcommand};
use experiments::sweep::{Filter, Shard};

/// Simulate topologies, patterns and parameters in all combinations, on all processors.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier sweep sweep.toml -o rows\n  \
    espalier sweep sweep.toml -o rows --shard 2/8         # on the second of eight machines\n  \
    espalier sweep merge rows -o rows.csv\n  \
    espalier sweep plot rows.csv --x hosts --y goodput_mean_mbps --by topology -o rows.svg\n\n\
    A sweep that was stopped or killed goes on where it was: give the same command again. A Slurm array:\n  \
    srun espalier sweep sweep.toml -o /shared/rows --shard $((SLURM_ARRAY_TASK_ID + 1))/$SLURM_ARRAY_TASK_COUNT\n\n\
    The description, each value one or a list:\n  \
    [[topology]]\n  kind = \"torus\"\n  size = [\"4x4\", \"8x8\"]\n  hosts-per-switch = 1\n  [[topology]]\n  \
    file = \"cluster.yaml\"\n  [plan]\n  engine = [\"tree\", \"balanced\"]\n  [simulate]\n  level = \"flow\"\n  \
    pattern = [\"all-to-all\", \"transpose\"]")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Sweep {
    #[command(subcommand)]
    pub(crate) verb: Option<SweepVerb>,
    /// What to sweep over, as TOML.
    #[arg(value_name = "DESCRIPTION", required = true)]
    pub(crate) description: Option<PathBuf>,
    /// Folder for the rows, each a file from the moment that it is finished.
    #[arg(short, long, value_name = "DIR", required = true)]
    pub(crate) output: Option<PathBuf>,
    /// Only every N-th row, from the I-th on: for N machines.
    #[arg(long, value_name = "I/N", default_value = "1/1", allow_hyphen_values = true)]
    pub(crate) shard: Shard,
    /// Rows at a time; as many as there are processors unless given.
    #[arg(short, long, value_name = "N", value_parser = jobs)]
    pub(crate) jobs: Option<NonZero<usize>>,
}

#[derive(Subcommand)]
pub(crate) enum SweepVerb {
    /// Put the rows of all shards into one table.
    #[command(after_help = "Example: espalier sweep merge rows-1 rows-2 rows-3 -o rows.csv\n\n\
        The same bytes whatever the order in which rows were made. Exit code 1 means that rows are missing.")]
    Merge {
        /// Folders of rows.
        #[arg(required = true, value_name = "DIR")]
        folders: Vec<PathBuf>,
        /// Where to write; standard output unless given.
        #[arg(short, long, value_name = "FILE", default_value = "-")]
        output: PathBuf,
        /// Write what there is, even if rows are missing.
        #[arg(long)]
        partial: bool,
    },
    /// Draw one column of the table over another.
    #[command(after_help = "Example: espalier sweep plot rows.csv --x hosts --y goodput_mean_mbps --by engine \
        --where pattern=all-to-all -o rows.svg\n\n\
        Rows that agree in all of these are averaged. Numbers give lines, words give bars.")]
    Plot {
        /// The table.
        table: PathBuf,
        /// The column along the bottom.
        #[arg(long, value_name = "COLUMN")]
        x: String,
        /// The column along the side.
        #[arg(long, value_name = "COLUMN")]
        y: String,
        /// A line or a colour for each value of this column.
        #[arg(long, value_name = "COLUMN")]
        by: Option<String>,
        /// Only rows with this value. May be repeated.
        #[arg(long = "where", value_name = "COLUMN=VALUE", value_parser = filter)]
        filters: Vec<Filter>,
        /// Where to draw: .svg or .png.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
}

fn jobs(text: &str) -> Result<NonZero<usize>, String> {
    super::numbers::count(1..=65_536)(text)
        .and_then(|jobs| NonZero::new(jobs).ok_or_else(|| "it must be 1 at least".to_owned()))
}

fn filter(text: &str) -> Result<Filter, String> {
    let (column, value) = text.split_once('=').ok_or("name a column and its value, as in level=flow")?;
    Ok(Filter { column: column.to_owned(), value: value.to_owned() })
}
