//! The same properties of every store of records: a map beside it, many writers, crashes, a full disk, other files.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use proptest::prelude::*;
use records::{Change, Commit, Condition, KEY_LEN_MAX, MemoryRecords, Record, Records, RecordsError, SqliteRecords};

/// A folder of the test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::SeqCst);
        let path = std::env::temp_dir().join(format!("espalier-records-{}-{number}", std::process::id()));
        fs::create_dir(&path).expect("a fresh folder");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("records.sqlite")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One thing that is done to a store.
#[derive(Clone, Debug)]
enum Step {
    Commit { conditions: Vec<(String, Claim)>, changes: Vec<Change> },
    List { prefix: String, after: Option<String>, limit: usize },
    Reopen,
}

/// What a condition says of its record.
#[derive(Clone, Copy, Debug)]
enum Claim {
    AsItIs,
    Absent,
    Older,
}

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "a/1", "a/10", "a/2", "a\u{10ffff}", "b", "b/é", "ÿ"]).prop_map(str::to_owned)
}

fn step() -> impl Strategy<Value = Step> {
    let claim = prop::sample::select(vec![Claim::AsItIs, Claim::AsItIs, Claim::AsItIs, Claim::Absent, Claim::Older]);
    let change = prop_oneof![
        3 => (key(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(key, value)| Change::Put { key, value }),
        1 => key().prop_map(|key| Change::Delete { key }),
    ];
    let prefix = prop::sample::select(vec!["", "a", "a/", "a/1", "b", "\u{10ffff}", "ÿ"]).prop_map(str::to_owned);
    prop_oneof![
        4 => (prop::collection::vec((key(), claim), 0..3), prop::collection::vec(change, 0..4))
            .prop_map(|(conditions, changes)| Step::Commit { conditions, changes }),
        2 => (prefix, prop::option::of(key()), 0_usize..6)
            .prop_map(|(prefix, after, limit)| Step::List { prefix, after, limit }),
        1 => Just(Step::Reopen),
    ]
}

/// Carries steps out on a store and on a map.
fn agrees(mut store: Box<dyn Records>, reopen: &dyn Fn(Box<dyn Records>) -> Box<dyn Records>, steps: &[Step]) {
    let mut map: BTreeMap<String, Record> = BTreeMap::new();
    let mut revision = 0;
    for step in steps {
        match step {
            Step::Commit { conditions, changes } => {
                let claimed = |(key, claim): &(String, Claim)| {
                    let found = map.get(key).map(|record| record.revision);
                    let revision = match claim {
                        Claim::AsItIs => found,
                        Claim::Absent => None,
                        Claim::Older => Some(found.map_or(1, |revision| revision.saturating_sub(1))),
                    };
                    Condition { key: key.clone(), revision }
                };
                let conditions: Vec<Condition> = conditions.iter().map(claimed).collect();
                let failed = conditions
                    .iter()
                    .find(|condition| map.get(&condition.key).map(|record| record.revision) != condition.revision);
                let expected = match failed {
                    Some(condition) => Commit::Conflict(condition.key.clone()),
                    None => {
                        revision += 1;
                        for change in changes {
                            match change.clone() {
                                Change::Put { key, value } => map.insert(key, Record { value, revision }),
                                Change::Delete { key } => map.remove(&key),
                            };
                        }
                        Commit::Done(revision)
                    }
                };
                assert_eq!(store.commit(&conditions, changes).expect("it can be written"), expected);
            }
            Step::List { prefix, after, limit } => {
                let expected: Vec<(String, Record)> = (map.iter())
                    .filter(|(key, _)| key.starts_with(prefix) && after.as_ref().is_none_or(|after| *key > after))
                    .take(*limit)
                    .map(|(key, record)| (key.clone(), record.clone()))
                    .collect();
                assert_eq!(store.list(prefix, after.as_deref(), *limit).expect("it can be read"), expected);
            }
            Step::Reopen => store = reopen(store),
        }
        for key in ["a", "a/1", "b/é", "c"] {
            assert_eq!(store.get(key).expect("it can be read").as_ref(), map.get(key), "{key}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn memory_is_a_map(steps in prop::collection::vec(step(), 1..40)) {
        agrees(Box::new(MemoryRecords::default()), &|store| store, &steps);
    }

    #[test]
    fn a_file_is_a_map_that_outlasts_its_process(steps in prop::collection::vec(step(), 1..40)) {
        let folder = Folder::new();
        let open = || -> Box<dyn Records> { Box::new(SqliteRecords::open(&folder.file()).expect("it opens")) };
        agrees(open(), &|store| { drop(store); open() }, &steps);
    }
}

/// Writers that read, add one and write back, each retrying where another was faster: no addition is lost.
fn count_together(stores: &[&dyn Records]) {
    const EACH: u64 = 50;
    let number = |record: Option<&Record>| {
        record.map_or(0, |record| String::from_utf8_lossy(&record.value).parse::<u64>().expect("a number"))
    };
    thread::scope(|scope| {
        for store in stores {
            scope.spawn(move || {
                for _ in 0..EACH {
                    loop {
                        let found = store.get("count").expect("it can be read");
                        let next = (number(found.as_ref()) + 1).to_string();
                        let condition = Condition::unchanged("count", found.as_ref());
                        let done = store.commit(&[condition], &[Change::put("count", next)]);
                        if matches!(done.expect("it can be written"), Commit::Done(_)) {
                            break;
                        }
                    }
                }
            });
        }
    });
    let total = stores[0].get("count").expect("it can be read");
    assert_eq!(number(total.as_ref()), EACH * stores.len() as u64);
}

#[test]
fn many_writers_lose_nothing() {
    let memory = MemoryRecords::default();
    count_together(&[&memory.clone(), &memory.clone(), &memory.clone(), &memory]);
    let folder = Folder::new();
    let open = || SqliteRecords::open(&folder.file()).expect("it opens");
    let (one, other) = (open(), open());
    count_together(&[&one, &one, &other, &other]);
}

/// The other half of the next test: writes numbers until it is killed, and says each once it is acknowledged.
#[test]
fn write_until_killed() {
    let Some(path) = std::env::var_os("ESPALIER_RECORDS_CHILD") else { return };
    let store = SqliteRecords::open(&PathBuf::from(path)).expect("it opens");
    for number in 1..1_000_000_u64 {
        let pair = [Change::put("one", number.to_string()), Change::put("two", number.to_string())];
        store.commit(&[], &pair).expect("it can be written");
        println!("acknowledged {number}");
    }
}

#[test]
fn what_is_acknowledged_outlasts_a_kill() {
    use std::io::{BufRead as _, BufReader};
    for kills in [3, 17, 60] {
        let folder = Folder::new();
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["write_until_killed", "--exact", "--nocapture"])
            .env("ESPALIER_RECORDS_CHILD", folder.file())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut acknowledged = 0_u64;
        let mut killed = false;
        for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
            let line = line.expect("text");
            if let Some((_, number)) = line.split_once("acknowledged ") {
                acknowledged = number.parse().expect("a number");
            }
            if acknowledged >= kills && !killed {
                child.kill().expect("it runs");
                killed = true;
            }
        }
        child.wait().expect("it ends");
        let store = SqliteRecords::open(&folder.file()).expect("it opens");
        let read = |key: &str| -> u64 {
            let record = store.get(key).expect("it can be read").expect("it was written");
            String::from_utf8_lossy(&record.value).parse().expect("a number")
        };
        assert!(acknowledged >= kills && read("one") >= acknowledged, "{} < {acknowledged}", read("one"));
        assert_eq!(read("one"), read("two"), "half of a commit");
    }
}

#[test]
fn a_full_disk_loses_nothing_and_what_is_deleted_makes_room() {
    let folder = Folder::new();
    let store = SqliteRecords::open(&folder.file()).expect("it opens");
    store.bound(64 << 10).expect("a bound");
    let block = vec![7; 8 << 10];
    let mut written = 0;
    let full = loop {
        match store.commit(&[], &[Change::put(format!("block/{written}"), block.clone())]) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 20, "there is no end of the disk");
    };
    assert!(matches!(full, RecordsError::Full { .. }), "{full}");
    assert!(full.to_string().ends_with("make room there"), "{full}");
    assert_eq!(store.list("block/", None, 100).expect("it can be read").len(), written);
    store.commit(&[], &[Change::delete("block/0")]).expect("deleting needs no room");
    store.commit(&[], &[Change::put("block/new", block)]).expect("there is room again");
}

#[test]
fn backups_open_and_other_files_are_refused() {
    let folder = Folder::new();
    let store = SqliteRecords::open(&folder.file()).expect("it opens");
    store.commit(&[], &[Change::put("a", "1")]).expect("it can be written");
    let copy = folder.0.join("copy.sqlite");
    store.back_up(&copy).expect("it can be copied");
    store.commit(&[], &[Change::put("a", "2")]).expect("it can be written");
    let restored = SqliteRecords::open(&copy).expect("it opens");
    assert_eq!(restored.get("a").expect("it can be read").expect("it is there").value, b"1");

    let text = folder.0.join("text");
    fs::write(
        &text,
        "no SQLite file, whatever its name: it is long enough to be one, and it begins with other bytes. ".repeat(20),
    )
    .expect("written");
    let refused = SqliteRecords::open(&text).expect_err("it is none of ours");
    assert!(matches!(refused, RecordsError::Foreign { .. }), "{refused}");

    let other = folder.0.join("other.sqlite");
    rusqlite::Connection::open(&other).and_then(|file| file.execute_batch("CREATE TABLE t (x)")).expect("a file");
    let refused = SqliteRecords::open(&other).expect_err("it is none of ours");
    assert!(matches!(refused, RecordsError::Foreign { .. }), "{refused}");

    drop(restored);
    rusqlite::Connection::open(&copy).and_then(|file| file.pragma_update(None, "user_version", 99)).expect("a file");
    let refused = SqliteRecords::open(&copy).expect_err("it is newer");
    assert!(matches!(refused, RecordsError::Newer { found: 99, known: 1, .. }), "{refused}");
}

#[test]
fn keys_have_bounds() {
    for store in [&MemoryRecords::default() as &dyn Records] {
        for key in [String::new(), "x".repeat(KEY_LEN_MAX + 1)] {
            let refused = store.commit(&[], &[Change::put(key, "")]).expect_err("it is refused");
            assert!(matches!(refused, RecordsError::Key { .. }), "{refused}");
        }
        store.commit(&[], &[Change::put("x".repeat(KEY_LEN_MAX), "")]).expect("the longest");
    }
}
