//! Loads of links over the last day, in a SQLite file of their own. Losing it does no harm, so nothing waits for the disk.
//!
//! ```text
//!   every poll ─▶ a row, kept for an hour
//!        └ those of five minutes ─▶ a row of their means and maxima, kept for a day
//! ```
//! A row has the loads of all links: 4-byte floats, NaN where a load is unknown, in the order of a layout, which names the links.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use thiserror::Error;

use crate::documents::{LinkHistory, LinkStatus, LinkSummary, LoadSample};

/// Marks the file as ours, in the header of the SQLite file: "EspH".
const APPLICATION: i64 = 0x4573_7048;
/// The format; a file of another one is begun anew.
const FORMAT: i64 = 1;
/// Seconds that the means and maxima are of.
const SPAN_S: u64 = 300;
/// For how long polls are kept, and means and maxima.
const POLLS_KEPT_S: u64 = 3600;
const SPANS_KEPT_S: u64 = 24 * 3600;

const POLLS: i64 = 0;
const SPANS: i64 = 1;

const TABLES: &str = "
    DROP TABLE IF EXISTS layouts;
    DROP TABLE IF EXISTS rows;
    CREATE TABLE layouts (id INTEGER PRIMARY KEY, links TEXT NOT NULL UNIQUE);
    CREATE TABLE rows (kind INTEGER, at_s INTEGER, layout INTEGER, loads BLOB, PRIMARY KEY (kind, at_s)) WITHOUT ROWID;
";

/// Why the history cannot be read or written.
#[derive(Debug, Error)]
#[error("{path}: {source}; without it nothing but past loads is missing")]
pub struct HistoryError {
    path: PathBuf,
    #[source]
    source: rusqlite::Error,
}

/// Loads of links over the last day.
pub struct History {
    path: PathBuf,
    connection: Mutex<Connection>,
}

/// The mean and the maximum of a link's load, each way.
#[derive(Clone, Copy, Debug)]
struct Load {
    mean: [f32; 2],
    max: [f32; 2],
}

/// A row, with the names of its links.
struct Row<'a> {
    kind: i64,
    at_s: u64,
    links: &'a [String],
    /// `loads[link]`.
    loads: Vec<Load>,
}

/// What a row has for a link.
const FIELDS: [usize; 2] = [2, 4];

impl History {
    /// Opens the file, and makes it if there is none.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        let open = || -> Result<Connection, rusqlite::Error> {
            let connection = Connection::open(path)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "OFF")?;
            let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            if (number("application_id")?, number("user_version")?) != (APPLICATION, FORMAT) {
                connection.execute_batch(TABLES)?;
                connection.pragma_update(None, "application_id", APPLICATION)?;
                connection.pragma_update(None, "user_version", FORMAT)?;
            }
            Ok(connection)
        };
        let connection = open().map_err(|source| HistoryError { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), connection: Mutex::new(connection) })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_file(&self, source: rusqlite::Error) -> HistoryError {
        HistoryError { path: self.path.clone(), source }
    }

    /// Adds a poll.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn add(&self, now_s: u64, links: &[LinkStatus]) -> Result<(), HistoryError> {
        let names: Vec<&str> = links.iter().map(|link| link.link.as_str()).collect();
        let names = serde_json::to_string(&names).expect("names are JSON");
        let loads = links.iter().flat_map(|link| link.load.map(|load| load.map_or(f32::NAN, |load| load as f32)));
        let loads: Vec<u8> = loads.flat_map(f32::to_le_bytes).collect();
        let mut connection = self.connection();
        let add = |connection: &mut Connection| -> Result<(), rusqlite::Error> {
            let transaction = connection.transaction()?;
            transaction.execute("INSERT OR IGNORE INTO layouts (links) VALUES (?1)", params![names])?;
            let layout: i64 =
                transaction.query_row("SELECT id FROM layouts WHERE links = ?1", params![names], |row| row.get(0))?;
            insert(&transaction, (POLLS, now_s, layout), &loads)?;
            fold(&transaction, now_s / SPAN_S * SPAN_S, layout)?;
            for (kind, kept_s) in [(POLLS, POLLS_KEPT_S), (SPANS, SPANS_KEPT_S)] {
                // Where the clock was set back, rows are of a time to come.
                transaction.execute(
                    "DELETE FROM rows WHERE kind = ?1 AND (at_s < ?2 OR at_s > ?3)",
                    params![kind, now_s.saturating_sub(kept_s), now_s],
                )?;
            }
            transaction.execute("DELETE FROM layouts WHERE id NOT IN (SELECT layout FROM rows)", [])?;
            transaction.commit()
        };
        add(&mut connection).map_err(|source| self.in_file(source))
    }

    /// The loads of a link since a moment; none if no row has the link.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn of(&self, link: &str, since_s: u64) -> Result<Option<LinkHistory>, HistoryError> {
        let mut samples = Vec::new();
        let mut is_known = false;
        self.each(since_s, &mut |row| {
            let Some(at) = row.links.iter().position(|name| name == link) else { return };
            is_known = true;
            let Load { mean, max } = row.loads[at];
            let known = |value: f32| Some(f64::from(value)).filter(|value| !value.is_nan());
            let over_s = if row.kind == SPANS { SPAN_S } else { 0 };
            samples.push(LoadSample { at_s: row.at_s, over_s, mean: mean.map(known), max: max.map(known) });
        })?;
        Ok(is_known.then(|| LinkHistory { link: link.to_owned(), samples }))
    }

    /// The mean and the maximum load of every link since a moment, the greatest maximum first.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn summary(&self, since_s: u64) -> Result<Vec<LinkSummary>, HistoryError> {
        /// Sum of means, how many, maximum: each way.
        type Totals = [(f64, u32, f32); 2];
        let mut totals: BTreeMap<String, Totals> = BTreeMap::new();
        self.each(since_s, &mut |row| {
            for (name, load) in row.links.iter().zip(&row.loads) {
                if !totals.contains_key(name) {
                    totals.insert(name.clone(), Totals::default());
                }
                let Some(totals) = totals.get_mut(name) else { continue };
                for (way, total) in totals.iter_mut().enumerate() {
                    if !load.mean[way].is_nan() {
                        *total = (total.0 + f64::from(load.mean[way]), total.1 + 1, total.2.max(load.max[way]));
                    }
                }
            }
        })?;
        let summary = |(link, totals): (String, Totals)| LinkSummary {
            link,
            mean: totals.map(|(sum, count, _)| (count > 0).then(|| sum / f64::from(count))),
            max: totals.map(|(_, count, max)| (count > 0).then_some(f64::from(max))),
        };
        let mut all: Vec<LinkSummary> = totals.into_iter().map(summary).collect();
        let greatest = |link: &LinkSummary| link.max.iter().flatten().copied().fold(0.0, f64::max);
        all.sort_by(|one, other| greatest(other).total_cmp(&greatest(one)));
        Ok(all)
    }

    /// Hands every row since a moment on, oldest first: means and maxima, then the polls that none of them covers.
    fn each(&self, since_s: u64, take: &mut dyn FnMut(&Row<'_>)) -> Result<(), HistoryError> {
        let connection = self.connection();
        let mut read = || -> Result<(), rusqlite::Error> {
            let mut layouts: BTreeMap<i64, Vec<String>> = BTreeMap::new();
            let mut named = connection.prepare("SELECT id, links FROM layouts")?;
            for layout in named.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))? {
                let (id, links) = layout?;
                layouts.insert(id, serde_json::from_str(&links).unwrap_or_default());
            }
            let covered_s: Option<u64> = connection
                .query_row("SELECT max(at_s) FROM rows WHERE kind = ?1", params![SPANS], |row| row.get(0))
                .optional()?
                .flatten();
            let polls_since_s = since_s.max(covered_s.map_or(0, |at_s| at_s + SPAN_S));
            let mut rows = connection.prepare(
                "SELECT kind, at_s, layout, loads FROM rows \
                 WHERE (kind = ?1 AND at_s >= ?2) OR (kind = ?3 AND at_s >= ?4) ORDER BY at_s",
            )?;
            let mut rows = rows.query(params![SPANS, since_s, POLLS, polls_since_s])?;
            while let Some(row) = rows.next()? {
                let (kind, at_s, layout): (i64, u64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let Some(links) = layouts.get(&layout) else { continue };
                let loads = parse(kind, row.get_ref(3)?.as_blob()?);
                // A row that is shorter than its layout was cut off.
                if loads.len() == links.len() {
                    take(&Row { kind, at_s, links, loads });
                }
            }
            Ok(())
        };
        read().map_err(|source| self.in_file(source))
    }
}

fn insert(
    transaction: &Transaction<'_>,
    (kind, at_s, layout): (i64, u64, i64),
    loads: &[u8],
) -> Result<(), rusqlite::Error> {
    transaction
        .execute("INSERT OR REPLACE INTO rows VALUES (?1, ?2, ?3, ?4)", params![kind, at_s, layout, loads])
        .map(drop)
}

/// Makes a row of means and maxima of the polls before `until_s` that none covers yet, those of one span and layout.
fn fold(transaction: &Transaction<'_>, until_s: u64, layout: i64) -> Result<(), rusqlite::Error> {
    let from_s = until_s.saturating_sub(SPAN_S);
    let is_there: bool = transaction.query_row(
        "SELECT EXISTS (SELECT 1 FROM rows WHERE kind = ?1 AND at_s = ?2)",
        params![SPANS, from_s],
        |row| row.get(0),
    )?;
    if is_there {
        return Ok(());
    }
    let mut polls =
        transaction.prepare("SELECT loads FROM rows WHERE kind = ?1 AND at_s >= ?2 AND at_s < ?3 AND layout = ?4")?;
    let mut polls = polls.query(params![POLLS, from_s, until_s, layout])?;
    // Sum, count and maximum of each way of each link.
    let mut totals: Vec<[(f32, u32, f32); 2]> = Vec::new();
    while let Some(row) = polls.next()? {
        let loads = parse(POLLS, row.get_ref(0)?.as_blob()?);
        totals.resize(loads.len(), [(0.0, 0, 0.0); 2]);
        for (total, load) in totals.iter_mut().zip(loads) {
            for (total, load) in total.iter_mut().zip(load.mean).filter(|(_, load)| !load.is_nan()) {
                *total = (total.0 + load, total.1 + 1, total.2.max(load));
            }
        }
    }
    if totals.is_empty() {
        return Ok(());
    }
    let mean = |(sum, count, _): (f32, u32, f32)| if count == 0 { f32::NAN } else { sum / count as f32 };
    let max = |(_, count, max): (f32, u32, f32)| if count == 0 { f32::NAN } else { max };
    let fields = totals.into_iter().flat_map(|[there, back]| [mean(there), mean(back), max(there), max(back)]);
    let loads: Vec<u8> = fields.flat_map(f32::to_le_bytes).collect();
    insert(transaction, (SPANS, from_s, layout), &loads)
}

/// The loads of a row, `loads[link]`.
fn parse(kind: i64, blob: &[u8]) -> Vec<Load> {
    let floats: Vec<f32> =
        blob.chunks_exact(4).map(|part| f32::from_le_bytes([part[0], part[1], part[2], part[3]])).collect();
    let fields = FIELDS[usize::from(kind == SPANS)];
    let load = |fields: &[f32]| {
        let mean = [fields[0], fields[1]];
        Load { mean, max: if fields.len() > 2 { [fields[2], fields[3]] } else { mean } }
    };
    floats.chunks_exact(fields).map(load).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, there: Option<f64>, back: Option<f64>) -> LinkStatus {
        LinkStatus { link: name.to_owned(), up: Some(true), load: [there, back], errors: None, discards: None }
    }

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("espalierd-history-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir(&path).expect("a fresh folder");
            Self(path)
        }

        fn file(&self) -> PathBuf {
            self.0.join("history.sqlite")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_day_is_kept_at_falling_resolution() {
        let scratch = Scratch::new("day");
        let history = History::open(&scratch.file()).expect("a fresh file");
        // Two days of polls; the load is the hour of the day in per cent, with a peak in each fifth minute.
        let start_s = 1_800_000_000 / SPAN_S * SPAN_S;
        let mut now_s = start_s;
        while now_s < start_s + 2 * SPANS_KEPT_S {
            let hour = (now_s - start_s) / 3600 % 24;
            let load = if now_s % SPAN_S == 0 { 0.9 } else { hour as f64 / 100.0 };
            history
                .add(now_s, &[link("a -- b", Some(load), None), link("b -- c", Some(0.01), Some(0.02))])
                .expect("room");
            now_s += 30;
        }
        let found = history.of("a -- b", 0).expect("a file").expect("a known link");
        let spans = found.samples.iter().filter(|sample| sample.over_s == SPAN_S).count() as u64;
        assert_eq!(spans, SPANS_KEPT_S / SPAN_S - 1, "one for each five minutes of a day but those that are not over");
        assert!(found.samples.len() as u64 - spans <= SPAN_S / 30 + 1, "polls that no span covers");
        assert!(found.samples.windows(2).all(|pair| pair[0].at_s < pair[1].at_s));
        let span = found.samples.iter().find(|sample| sample.over_s == SPAN_S).expect("spans");
        let hour = (span.at_s - start_s) / 3600 % 24;
        let mean = (9.0 * hour as f64 / 100.0 + 0.9) / 10.0;
        assert!((span.mean[0].expect("known") - mean).abs() < 1e-4, "{span:?}, {mean}");
        assert!((span.max[0].expect("known") - 0.9).abs() < 1e-4);
        assert_eq!((span.mean[1], span.max[1]), (None, None), "what was not known is not");
        let summary = history.summary(now_s - 3600).expect("a file");
        assert_eq!(summary.iter().map(|link| link.link.as_str()).collect::<Vec<_>>(), ["a -- b", "b -- c"]);
        assert!((summary[1].mean[1].expect("known") - 0.02).abs() < 1e-4);
        assert_eq!(history.of("c -- d", 0).expect("a file"), None);
        assert!(std::fs::metadata(scratch.file()).expect("a file").len() < 1 << 20);
    }

    #[test]
    fn plans_and_clocks_change_and_files_are_those_of_others() {
        let scratch = Scratch::new("change");
        std::fs::write(scratch.file(), "not a database, but long enough to be taken for one if nobody looked")
            .expect("room");
        assert!(History::open(&scratch.file()).is_err());
        std::fs::remove_file(scratch.file()).expect("it is there");
        let history = History::open(&scratch.file()).expect("a fresh file");
        history.add(1_000_000, &[link("a -- b", Some(0.5), Some(0.5))]).expect("room");
        history.add(1_000_030, &[link("b -- c", Some(0.7), None), link("a -- b", Some(0.1), None)]).expect("room");
        let samples = history.of("a -- b", 0).expect("a file").expect("known").samples;
        let loads: Vec<f64> = samples.iter().filter_map(|sample| sample.mean[0]).collect();
        assert!((loads[0] - 0.5).abs() < 1e-6 && (loads[1] - 0.1).abs() < 1e-6, "{loads:?}");
        // The clock is set back by two hours: nothing is of a time to come.
        history.add(992_800, &[link("a -- b", Some(0.3), None)]).expect("room");
        assert_eq!(history.of("a -- b", 0).expect("a file").expect("known").samples.len(), 1);
        assert_eq!(history.of("b -- c", 0).expect("a file"), None);
        drop(history);
        assert_eq!(History::open(&scratch.file()).expect("its own file").summary(0).expect("a file").len(), 1);
    }
}
