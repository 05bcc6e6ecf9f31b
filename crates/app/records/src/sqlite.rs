//! Records in one SQLite file: a write-ahead log, one writer, every commit on the disk before it is acknowledged.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rusqlite::{
    Connection, Error, ErrorCode, OptionalExtension as _, Transaction, TransactionBehavior, backup::Backup, params,
};

use crate::{Change, Commit, Condition, Record, Records, RecordsError, check_lengths, end_of};

/// Marks the file as ours, in the header of the SQLite file: "EspC".
const APPLICATION: i64 = 0x4573_7043;
/// The format that is written, and the newest that is read.
const FORMAT: i64 = 1;
/// How long a commit waits for one of another process, such as a backup.
const BUSY_MAX: Duration = Duration::from_secs(5);
/// Pages of a backup that are copied before others get their turn.
const BACKUP_PAGES: i32 = 256;

/// Tables of the first format.
const TABLES: &str = "
    CREATE TABLE records (key TEXT PRIMARY KEY, revision INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE commits (revision INTEGER NOT NULL);
    INSERT INTO commits VALUES (0);
";

/// Records in a file.
#[derive(Debug)]
pub struct SqliteRecords {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl SqliteRecords {
    /// Opens the file, and makes it if there is none; only its owner can read it.
    ///
    /// # Errors
    /// [`RecordsError::Foreign`], [`RecordsError::Newer`], [`RecordsError::Sqlite`].
    pub fn open(path: &Path) -> Result<Self, RecordsError> {
        let in_file = |source| describe(path, source);
        let mut connection = Connection::open(path).map_err(in_file)?;
        connection.busy_timeout(BUSY_MAX).map_err(in_file)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(in_file)?;
        let number = |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let (application, found) =
            (number("application_id").map_err(in_file)?, number("user_version").map_err(in_file)?);
        let tables: i64 =
            transaction.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0)).map_err(in_file)?;
        match application {
            APPLICATION if found > FORMAT => {
                return Err(RecordsError::Newer { path: path.to_owned(), found, known: FORMAT });
            }
            APPLICATION => {}
            0 if tables == 0 => {
                let made = transaction
                    .execute_batch(TABLES)
                    .and_then(|()| transaction.pragma_update(None, "application_id", APPLICATION))
                    .and_then(|()| transaction.pragma_update(None, "user_version", FORMAT));
                made.map_err(in_file)?;
            }
            _ => return Err(RecordsError::Foreign { path: path.to_owned() }),
        }
        transaction.commit().map_err(in_file)?;
        // WAL lets a backup read while commits go on; FULL puts each commit on the disk before it is acknowledged.
        let set = connection
            .pragma_update(None, "journal_mode", "WAL")
            .and_then(|()| connection.pragma_update(None, "synchronous", "FULL"));
        set.map_err(in_file)?;
        Ok(Self { path: path.to_owned(), connection: Mutex::new(connection) })
    }

    /// Copies everything to another file, while commits go on.
    ///
    /// # Errors
    /// [`RecordsError`] of the other file.
    pub fn back_up(&self, to: &Path) -> Result<(), RecordsError> {
        let in_file = |source| describe(to, source);
        let mut target = Connection::open(to).map_err(in_file)?;
        let connection = self.connection();
        let backup = Backup::new(&connection, &mut target).map_err(in_file)?;
        backup.run_to_completion(BACKUP_PAGES, Duration::ZERO, None).map_err(in_file)
    }

    /// Bounds the size of the file, in bytes: a commit beyond it fails as on a full disk.
    ///
    /// # Errors
    /// [`RecordsError::Sqlite`].
    pub fn bound(&self, bytes: u64) -> Result<(), RecordsError> {
        let connection = self.connection();
        let page: i64 = connection
            .pragma_query_value(None, "page_size", |row| row.get(0))
            .map_err(|source| self.describe(source))?;
        let pages = (bytes / page.unsigned_abs().max(1)).max(1);
        connection
            .pragma_update_and_check(None, "max_page_count", pages as i64, |_| Ok(()))
            .map_err(|source| self.describe(source))
    }

    /// One that panicked has left no transaction behind: dropping one takes it back.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn describe(&self, source: Error) -> RecordsError {
        describe(&self.path, source)
    }
}

fn describe(path: &Path, source: Error) -> RecordsError {
    match source.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => RecordsError::Full { path: path.to_owned() },
        Some(ErrorCode::NotADatabase) => RecordsError::Foreign { path: path.to_owned() },
        _ => RecordsError::Sqlite { path: path.to_owned(), source },
    }
}

impl Records for SqliteRecords {
    fn get(&self, key: &str) -> Result<Option<Record>, RecordsError> {
        let connection = self.connection();
        let mut query = connection
            .prepare_cached("SELECT value, revision FROM records WHERE key = ?1")
            .map_err(|source| self.describe(source))?;
        let found = query.query_row([key], |row| Ok(Record { value: row.get(0)?, revision: row.get(1)? }));
        found.optional().map_err(|source| self.describe(source))
    }

    fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Record)>, RecordsError> {
        let connection = self.connection();
        // Keys compare as bytes, SQLite's BINARY; the end of a prefix may be no UTF-8 itself.
        let query = "SELECT key, value, revision FROM records
            WHERE key >= ?1 AND (?2 IS NULL OR key > ?2) AND (?3 IS NULL OR CAST(key AS BLOB) < ?3)
            ORDER BY key LIMIT ?4";
        let read = || {
            let mut query = connection.prepare_cached(query)?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = query.query_map(params![prefix, after, end_of(prefix), limit], |row| {
                Ok((row.get(0)?, Record { value: row.get(1)?, revision: row.get(2)? }))
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|source| self.describe(source))
    }

    fn commit(&self, conditions: &[Condition], changes: &[Change]) -> Result<Commit, RecordsError> {
        check_lengths(conditions, changes)?;
        let mut connection = self.connection();
        let mut write = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for condition in conditions {
                if revision_of(&transaction, &condition.key)? != condition.revision {
                    return Ok(Commit::Conflict(condition.key.clone()));
                }
            }
            let revision: u64 =
                transaction
                    .query_row("UPDATE commits SET revision = revision + 1 RETURNING revision", [], |row| row.get(0))?;
            for change in changes {
                make(&transaction, change, revision)?;
            }
            transaction.commit()?;
            Ok(Commit::Done(revision))
        };
        write().map_err(|source| self.describe(source))
    }
}

fn revision_of(transaction: &Transaction<'_>, key: &str) -> rusqlite::Result<Option<u64>> {
    let mut query = transaction.prepare_cached("SELECT revision FROM records WHERE key = ?1")?;
    query.query_row([key], |row| row.get(0)).optional()
}

fn make(transaction: &Transaction<'_>, change: &Change, revision: u64) -> rusqlite::Result<()> {
    match change {
        Change::Put { key, value } => {
            let mut put = transaction.prepare_cached("INSERT OR REPLACE INTO records VALUES (?1, ?2, ?3)")?;
            put.execute(params![key, revision, value])?;
        }
        Change::Delete { key } => {
            transaction.prepare_cached("DELETE FROM records WHERE key = ?1")?.execute([key])?;
        }
    }
    Ok(())
}
