//! Making the rows that are not there yet, on all processors.

use std::{
    collections::BTreeMap,
    fs,
    num::NonZero,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::{Context, Result};
use fabric::Plan;
use indicatif::{ProgressBar, ProgressStyle};

use super::{
    super::{
        Output,
        interrupt::{INTERRUPTED, Interrupt},
        say,
    },
    description::{self, Sweep},
    merge::{MANIFEST, ROWS},
    point::Point,
    rows,
};
use crate::{cli::Shard, files::write_file};

/// A plan that several rows need: made by the first that comes, and forgotten with the last.
struct Shared {
    plan: OnceLock<Result<Plan, String>>,
    /// Rows of this run that have yet to use it.
    left: AtomicUsize,
}

/// Plans by what they depend on.
type Plans<'a> = BTreeMap<(usize, &'a [String]), Arc<Shared>>;

pub(super) fn run(
    path: &Path,
    folder: &Path,
    shard: Shard,
    jobs: Option<NonZero<usize>>,
    output: Output,
) -> Result<ExitCode> {
    let sweep = description::read(path)?;
    let interrupt = Interrupt::watch()?;
    fs::create_dir_all(folder.join(ROWS)).with_context(|| format!("make the folder {}", folder.display()))?;
    let digests: Vec<&str> = sweep.points.iter().map(|point| point.digest.as_str()).collect();
    let labels: Vec<String> = sweep.points.iter().map(|point| label(&sweep, point)).collect();
    write_file(&folder.join(MANIFEST), |out| {
        writeln!(out, "{}", rows::header())?;
        digests.iter().zip(&labels).try_for_each(|(digest, label)| writeln!(out, "{digest}\t{label}"))
    })?;
    let own = |index: &usize| shard.has(*index);
    let row_file = |point: &Point| folder.join(ROWS).join(format!("{}.csv", point.digest));
    let mine: Vec<&Point> = (0..sweep.points.len()).filter(own).map(|index| &sweep.points[index]).collect();
    let missing: Vec<&Point> = mine.iter().copied().filter(|point| !row_file(point).exists()).collect();
    let kept = mine.len() - missing.len();
    let threads = jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZero::get);
    let made = make(&sweep, &missing, &row_file, threads.min(missing.len().max(1)), &interrupt)?;
    let total = sweep.points.len();
    match output {
        Output::Json => say!(
            "{}",
            serde_json::json!({ "rows": total, "in_shard": mine.len(), "made": made, "kept": kept,
                "interrupted": interrupt.is_pressed() })
        ),
        Output::Person if shard.of == 1 => say!("{total} rows: {made} made, {kept} there before"),
        Output::Person => {
            say!("{} of {total} rows in this shard: {made} made, {kept} there before", mine.len());
        }
    }
    if made < missing.len() {
        eprintln!("espalier: stopped by Ctrl-C, {} rows to go: the same command goes on", missing.len() - made);
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a person calls a point: where it differs from the defaults.
fn label(sweep: &Sweep, point: &Point) -> String {
    let [topology, hosts] = sweep.sources[point.source].columns();
    let mut words = vec![topology];
    if hosts != "usual" && hosts != "as cabled" {
        words.push(format!("hosts_per_switch={hosts}"));
    }
    let changed = super::point::AXES.iter().zip(&point.values).filter(|(axis, value)| axis.default != value.as_str());
    words.extend(changed.map(|(axis, value)| format!("{}={value}", axis.column)));
    words.join(" ").replace(['\n', '\t'], " ")
}

/// Makes rows on several threads; how many.
fn make(
    sweep: &Sweep,
    missing: &[&Point],
    row_file: &(dyn Fn(&Point) -> PathBuf + Sync),
    threads: usize,
    interrupt: &Interrupt,
) -> Result<usize> {
    let mut users: BTreeMap<(usize, &[String]), usize> = BTreeMap::new();
    missing.iter().for_each(|point| *users.entry(point.plan_key()).or_default() += 1);
    let fresh = |left: usize| Arc::new(Shared { plan: OnceLock::new(), left: AtomicUsize::new(left) });
    let plans: Mutex<Plans<'_>> = Mutex::new(users.into_iter().map(|(key, count)| (key, fresh(count))).collect());
    let (next, made) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failure: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    let style = ProgressStyle::with_template("{elapsed} [{bar:40}] {pos} of {len} rows, {eta} left");
    let bar = ProgressBar::new(missing.len() as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let work = || {
        while !interrupt.is_pressed() {
            let Some(point) = missing.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let key = point.plan_key();
            let Some(shared) = plans.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned() else { return };
            let source = &sweep.sources[point.source];
            let plan = shared.plan.get_or_init(|| rows::plan(source, &point.values));
            let Some(row) = rows::row(source, point, plan, interrupt) else { return };
            if let Err(error) = write_file(&row_file(point), |out| writeln!(out, "{row}")) {
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                // The others need not go on either.
                next.store(missing.len(), Ordering::Relaxed);
                return;
            }
            made.fetch_add(1, Ordering::Relaxed);
            bar.inc(1);
            if shared.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                plans.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
            }
        }
    };
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    bar.finish_and_clear();
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(made.into_inner()),
    }
}
