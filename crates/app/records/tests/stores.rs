//! The same properties of every store of records: a map beside it, many writers, crashes, a full disk, other files.

mod common;

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    thread,
};

use common::{Cluster, Folder};
use proptest::{prelude::*, test_runner::TestRunner};
use records::{
    CHANGES_MAX, CONDITIONS_MAX, Change, Commit, Condition, EtcdConfig, EtcdRecords, KEY_LEN_MAX, MemoryRecords,
    Record, Records, RecordsError, SqliteRecords, VALUE_LEN_MAX,
};

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

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..40)
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
                let done = store.commit(&conditions, changes).expect("it can be written");
                match (failed, &done) {
                    (Some(condition), _) => assert_eq!(done, Commit::Conflict(condition.key.clone())),
                    (None, Commit::Conflict(_)) => panic!("every condition holds: {done:?}"),
                    (None, &Commit::Done(now)) => {
                        assert!(now > revision, "revisions grow: {revision}, {now}");
                        revision = now;
                        for change in changes {
                            match change.clone() {
                                Change::Put { key, value } => map.insert(key, Record { value, revision }),
                                Change::Delete { key } => map.remove(&key),
                            };
                        }
                    }
                }
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
    fn memory_is_a_map(steps in steps()) {
        agrees(Box::new(MemoryRecords::default()), &|store| store, &steps);
    }

    #[test]
    fn a_file_is_a_map_that_outlasts_its_process(steps in steps()) {
        let folder = Folder::new();
        let open = || -> Box<dyn Records> { Box::new(SqliteRecords::open(&folder.file()).expect("it opens")) };
        agrees(open(), &|store| { drop(store); open() }, &steps);
    }
}

#[test]
fn a_cluster_is_a_map() {
    let Some(cluster) = Cluster::single() else { return };
    let mut runner = TestRunner::new(ProptestConfig { cases: 32, ..ProptestConfig::default() });
    let ran = runner.run(&steps(), |steps| {
        let config = cluster.config();
        let open = || -> Box<dyn Records> { Box::new(cluster.open(&config)) };
        agrees(
            open(),
            &|store| {
                drop(store);
                open()
            },
            &steps,
        );
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
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
    let Some(cluster) = Cluster::single() else { return };
    let config = cluster.config();
    let (one, other) = (cluster.open(&config), cluster.open(&config));
    count_together(&[&one, &one, &other, &other]);
}

/// A cluster by the URL of a member, or a file.
fn open_place(place: &str) -> Box<dyn Records> {
    if !place.starts_with("http") {
        return Box::new(SqliteRecords::open(&PathBuf::from(place)).expect("it opens"));
    }
    let config = EtcdConfig { endpoints: vec![place.to_owned()], ..EtcdConfig::default() };
    Box::new(EtcdRecords::open(&config).expect("it opens"))
}

/// The other half of the next test: writes numbers until it is killed, and says each once it is acknowledged.
#[test]
fn write_until_killed() {
    let Ok(place) = std::env::var("ESPALIER_RECORDS_CHILD") else { return };
    let store = open_place(&place);
    for number in 1..1_000_000_u64 {
        let pair = [Change::put("one", number.to_string()), Change::put("two", number.to_string())];
        store.commit(&[], &pair).expect("it can be written");
        println!("acknowledged {number}");
    }
}

#[test]
fn what_is_acknowledged_outlasts_a_kill() {
    for kills in [3, 17, 60] {
        let folder = Folder::new();
        outlasts_a_kill(&folder.file().to_string_lossy(), kills);
    }
    let Some(cluster) = Cluster::single() else { return };
    cluster.open(&EtcdConfig { endpoints: cluster.endpoints(), ..EtcdConfig::default() });
    for kills in [3, 17, 60] {
        outlasts_a_kill(&cluster.endpoints()[0], kills);
    }
}

fn outlasts_a_kill(place: &str, kills: u64) {
    use std::io::{BufRead as _, BufReader};
    let cleared = [Change::delete("one"), Change::delete("two")];
    open_place(place).commit(&[], &cleared).expect("it can be written");
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["write_until_killed", "--exact", "--nocapture"])
        .env("ESPALIER_RECORDS_CHILD", place)
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
    let store = open_place(place);
    let read = |key: &str| -> u64 {
        let record = store.get(key).expect("it can be read").expect("it was written");
        String::from_utf8_lossy(&record.value).parse().expect("a number")
    };
    assert!(acknowledged >= kills && read("one") >= acknowledged, "{} < {acknowledged}", read("one"));
    assert_eq!(read("one"), read("two"), "half of a commit");
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
    let copy = folder.path().join("copy.sqlite");
    store.back_up(&copy).expect("it can be copied");
    store.commit(&[], &[Change::put("a", "2")]).expect("it can be written");
    let restored = SqliteRecords::open(&copy).expect("it opens");
    assert_eq!(restored.get("a").expect("it can be read").expect("it is there").value, b"1");

    let text = folder.path().join("text");
    fs::write(
        &text,
        "no SQLite file, whatever its name: it is long enough to be one, and it begins with other bytes. ".repeat(20),
    )
    .expect("written");
    let refused = SqliteRecords::open(&text).expect_err("it is none of ours");
    assert!(matches!(refused, RecordsError::Foreign { .. }), "{refused}");

    let other = folder.path().join("other.sqlite");
    rusqlite::Connection::open(&other).and_then(|file| file.execute_batch("CREATE TABLE t (x)")).expect("a file");
    let refused = SqliteRecords::open(&other).expect_err("it is none of ours");
    assert!(matches!(refused, RecordsError::Foreign { .. }), "{refused}");

    drop(restored);
    rusqlite::Connection::open(&copy).and_then(|file| file.pragma_update(None, "user_version", 99)).expect("a file");
    let refused = SqliteRecords::open(&copy).expect_err("it is newer");
    assert!(matches!(refused, RecordsError::Newer { found: 99, known: 1, .. }), "{refused}");
}

/// Does the same to an empty store of each kind.
fn with_each(check: &dyn Fn(Arc<dyn Records>)) {
    check(Arc::new(MemoryRecords::default()));
    let folder = Folder::new();
    check(Arc::new(SqliteRecords::open(&folder.file()).expect("it opens")));
    let Some(cluster) = Cluster::single() else { return };
    check(Arc::new(cluster.open(&cluster.config())));
}

#[test]
fn keys_and_commits_have_bounds() {
    with_each(&|store| {
        for key in [String::new(), "x".repeat(KEY_LEN_MAX + 1)] {
            let refused = store.commit(&[], &[Change::put(key, "")]).expect_err("it is refused");
            assert!(matches!(refused, RecordsError::Key { .. }), "{refused}");
        }
        store.commit(&[], &[Change::put("x".repeat(KEY_LEN_MAX), "")]).expect("the longest");

        let key = |number: usize| format!("{number:03}{}", "k".repeat(KEY_LEN_MAX - 3));
        let conditions: Vec<Condition> = (0..=CONDITIONS_MAX).map(|number| Condition::absent(key(number))).collect();
        // The value at which etcd's records are longest.
        let changes: Vec<Change> =
            (0..=CHANGES_MAX).map(|number| Change::put(key(number), vec![7; 16 << 10])).collect();
        for (conditions, changes) in [(&conditions[..], &changes[..1]), (&conditions[..1], &changes[..])] {
            let refused = store.commit(conditions, changes).expect_err("it is refused");
            assert!(matches!(refused, RecordsError::Commit { .. }), "{refused}");
        }
        let done = store.commit(&conditions[..CONDITIONS_MAX], &changes[..CHANGES_MAX]).expect("the most");
        assert!(matches!(done, Commit::Done(_)), "{done:?}");
        assert_eq!(store.list("0", None, 1_000).expect("it can be read").len(), CHANGES_MAX);
        let changes: Vec<Change> =
            (0..CHANGES_MAX).map(|number| Change::put(key(number), vec![8; (16 << 10) + 1])).collect();
        let conflict = store.commit(&conditions[..CONDITIONS_MAX], &changes).expect("it can be refused");
        assert_eq!(conflict, Commit::Conflict(key(0)));
        store.commit(&[], &changes).expect("it can be written");
        let all = store.list("0", None, 1_000).expect("it can be read");
        assert!(all.len() == CHANGES_MAX && all.iter().all(|(_, record)| record.value == vec![8; (16 << 10) + 1]));
    });
}

#[test]
fn values_are_as_long_as_they_may_be() {
    with_each(&|store| {
        let value =
            |len: usize, seed: usize| -> Vec<u8> { (0..len).map(|at| (at * 31 + at / 977 + seed) as u8).collect() };
        for len in [0, 1, (16 << 10) + 1, 512 << 10, (512 << 10) + 1, 3 << 20, VALUE_LEN_MAX] {
            let long = value(len, len);
            store.commit(&[], &[Change::put("long", long.clone())]).expect("it can be written");
            assert!(store.get("long").expect("it can be read").expect("it is there").value == long, "{len}");
        }
        let refused = store.commit(&[], &[Change::put("long", vec![0; VALUE_LEN_MAX + 1])]).expect_err("it is refused");
        assert!(matches!(refused, RecordsError::Value { .. }), "{refused}");
    });
}

#[test]
fn readers_of_values_that_are_replaced_see_one_of_them() {
    with_each(&|store| {
        const LEN: usize = 1_200_000;
        const WRITES: u8 = 20;
        let put = |number: u8| {
            let changes = [Change::put("a", vec![number; LEN]), Change::put("b", vec![number; 20_000])];
            store.commit(&[], &changes).expect("it can be written");
        };
        put(0);
        thread::scope(|scope| {
            let writer = scope.spawn(|| (1..=WRITES).for_each(put));
            let mut last = 0;
            while !writer.is_finished() {
                let found = store.get("a").expect("it can be read").expect("it is there").value;
                assert!(found.len() == LEN && found.iter().all(|&byte| byte == found[0]), "a mixture");
                assert!(found[0] >= last, "an older value than before");
                last = found[0];
                let both = store.list("", None, 2).expect("it can be read");
                assert_eq!(both[0].1.value[0], both[1].1.value[0], "half of a commit");
            }
        });
        assert_eq!(store.get("a").expect("it can be read").expect("it is there").value[0], WRITES);
    });
}

#[test]
fn lists_of_many_records_are_of_one_moment() {
    with_each(&|store| {
        const WRITES: u64 = 200;
        // What changes together lies far apart.
        for number in 0..200 {
            store.commit(&[], &[Change::put(format!("k{number:03}/fixed"), "-")]).expect("it can be written");
        }
        let put = |number: u64| {
            let changes: Vec<Change> =
                (0..200).step_by(10).map(|at| Change::put(format!("k{at:03}/moves"), number.to_string())).collect();
            store.commit(&[], &changes).expect("it can be written");
        };
        put(0);
        thread::scope(|scope| {
            let writer = scope.spawn(|| (1..=WRITES).for_each(put));
            while !writer.is_finished() {
                let all = store.list("k", None, usize::MAX).expect("it can be read");
                assert_eq!(all.len(), 220);
                let mut moving = all.iter().filter(|(key, _)| key.ends_with("/moves")).map(|(_, record)| record);
                let first = moving.next().expect("it is there");
                assert!(moving.all(|record| record == first), "half of a commit");
            }
        });
    });
}
