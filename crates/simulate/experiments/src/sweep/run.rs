//! Making the rows that are not there yet, on all processors.

use std::{
    collections::BTreeMap,
    fs,
    num::NonZero,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use fabric::Plan;

use super::{
    description::Sweep,
    folder::{MANIFEST, ROWS},
    point::Point,
    rows::{self, GoOn},
    shard::Shard,
};
use crate::{Error, error::OnFile as _};

/// Which rows to make, and where.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What there is to simulate.
    pub sweep: &'a Sweep,
    /// The share of the rows to make.
    pub shard: Shard,
    /// The folder of the rows; it is made if it is not there, and rows that it has are kept.
    pub folder: &'a Path,
    /// How many rows are made at the same time, each by a thread.
    pub threads: NonZero<usize>,
}

/// Progress of a sweep, from the threads that make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Work begins.
    Begun {
        /// How many rows are to be made.
        rows: usize,
    },
    /// One row more is made.
    Made,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Rows of the shard.
    pub in_shard: usize,
    /// Rows that were made now.
    pub made: usize,
    /// Rows that were there before.
    pub kept: usize,
}

impl Ran {
    /// Rows that are still to be made, because it was not to go on.
    pub fn missing(&self) -> usize {
        self.in_shard - self.kept - self.made
    }
}

/// A plan that several rows need: made by the first that comes, and forgotten with the last.
struct Shared {
    plan: OnceLock<Result<Plan, String>>,
    /// Rows of this run that have yet to use it.
    left: AtomicUsize,
}

/// Plans by what they depend on.
type Plans<'a> = BTreeMap<(usize, &'a [String]), Arc<Shared>>;

/// Makes the rows of a shard that are not there yet. `go_on` is asked often, from several threads; once it says no, rows
/// that are not finished are given up.
///
/// # Errors
/// [`Error::File`] and [`Error::Write`], if the folder cannot be written to.
pub fn run(
    request: &Request<'_>,
    go_on: &(dyn Fn() -> bool + Sync),
    events: &(dyn Fn(Event) + Sync),
) -> Result<Ran, Error> {
    let Request { sweep, shard, folder, threads } = *request;
    fs::create_dir_all(folder.join(ROWS)).with_context(|| format!("make the folder {}", folder.display()))?;
    let digests: Vec<&str> = sweep.points.iter().map(|point| point.digest.as_str()).collect();
    let labels: Vec<String> = sweep.points.iter().map(|point| label(sweep, point)).collect();
    files::write(&folder.join(MANIFEST), |out| {
        writeln!(out, "{}", rows::header())?;
        digests.iter().zip(&labels).try_for_each(|(digest, label)| writeln!(out, "{digest}\t{label}"))
    })?;
    let own = |index: &usize| shard.has(*index);
    let row_file = |point: &Point| folder.join(ROWS).join(format!("{}.csv", point.digest));
    let mine: Vec<&Point> = (0..sweep.points.len()).filter(own).map(|index| &sweep.points[index]).collect();
    let missing: Vec<&Point> = mine.iter().copied().filter(|point| !row_file(point).exists()).collect();
    let kept = mine.len() - missing.len();
    let threads = threads.get().min(missing.len().max(1));
    let made = make(sweep, &missing, &row_file, threads, (go_on, events))?;
    Ok(Ran { in_shard: mine.len(), made, kept })
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
    (go_on, events): (GoOn<'_>, &(dyn Fn(Event) + Sync)),
) -> Result<usize, Error> {
    let mut users: BTreeMap<(usize, &[String]), usize> = BTreeMap::new();
    missing.iter().for_each(|point| *users.entry(point.plan_key()).or_default() += 1);
    let fresh = |left: usize| Arc::new(Shared { plan: OnceLock::new(), left: AtomicUsize::new(left) });
    let plans: Mutex<Plans<'_>> = Mutex::new(users.into_iter().map(|(key, count)| (key, fresh(count))).collect());
    let (next, made) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failure: Mutex<Option<files::WriteError>> = Mutex::new(None);
    events(Event::Begun { rows: missing.len() });
    let work = || {
        while go_on() {
            let Some(point) = missing.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let key = point.plan_key();
            let Some(shared) = plans.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned() else { return };
            let source = &sweep.sources[point.source];
            let plan = shared.plan.get_or_init(|| rows::plan(source, &point.values));
            let Some(row) = rows::row(source, point, plan, go_on) else { return };
            if let Err(error) = files::write(&row_file(point), |out| writeln!(out, "{row}")) {
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                // The others need not go on either.
                next.store(missing.len(), Ordering::Relaxed);
                return;
            }
            made.fetch_add(1, Ordering::Relaxed);
            events(Event::Made);
            if shared.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                plans.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
            }
        }
    };
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error.into()),
        None => Ok(made.into_inner()),
    }
}
