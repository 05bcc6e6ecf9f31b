//! Three members of etcd that are killed, stopped and restarted, with commits and leases meanwhile.
//!
//! `ESPALIER_ETCD_FAULTS` is the number of faults (2), `SEED` chooses them; `ESPALIER_ETCD_TAKEOVERS` is the number of holders that
//! fail (4), `ESPALIER_ETCD_TTL_MS` their lease's time to live (1500).

mod common;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use common::{Cluster, number};
use records::{
    Acquired, BootTime, Change, Clock as _, Commit, Condition, EtcdRecords, Lease, Record, Records, RecordsError,
    SystemClock,
};
use rustix::process::Signal;

/// xorshift64*
struct Random(u64);

impl Random {
    fn new() -> Self {
        let seed = number("SEED", 1);
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % end
    }
}

/// How many members fail at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// The others go on.
    One,
    /// Now and then two, for longer than a request is tried.
    Majority,
}

/// Does something bad to a member, mostly to the leader, and puts it right.
fn fault(cluster: &mut Cluster, random: &mut Random, extent: Extent) {
    if extent == Extent::Majority && random.below(5) == 0 {
        let spared = random.below(cluster.members.len() as u64) as usize;
        let pause = Duration::from_millis(500 + random.below(7_500));
        println!("SIGSTOP of all members but {spared}, SIGCONT after {} ms", pause.as_millis());
        let others: Vec<usize> = (0..cluster.members.len()).filter(|&member| member != spared).collect();
        others.iter().for_each(|&member| cluster.signal(member, Signal::STOP));
        thread::sleep(pause);
        others.iter().for_each(|&member| cluster.signal(member, Signal::CONT));
        thread::sleep(Duration::from_millis(1_500));
        return;
    }
    let leader = cluster.leader();
    let victim = match leader {
        Some(leader) if random.below(4) > 0 => leader,
        _ => random.below(cluster.members.len() as u64) as usize,
    };
    let role = if leader == Some(victim) { "leader" } else { "member" };
    let pause = Duration::from_millis(500 + random.below(2_000));
    if random.below(2) == 0 {
        println!("kill -9 of the {role} {victim}, started again after {} ms", pause.as_millis());
        cluster.kill(victim);
        thread::sleep(pause);
        cluster.run(victim);
    } else {
        println!("SIGSTOP of the {role} {victim}, SIGCONT after {} ms", pause.as_millis());
        cluster.signal(victim, Signal::STOP);
        thread::sleep(pause);
        cluster.signal(victim, Signal::CONT);
    }
    thread::sleep(Duration::from_millis(500 + random.below(1_000)));
}

fn count(record: Option<&Record>) -> u64 {
    record.map_or(0, |record| String::from_utf8_lossy(&record.value).parse().expect("a number"))
}

/// What a writer has seen of its commits.
#[derive(Default)]
struct Seen {
    acknowledged: u64,
    conflicts: u64,
    unknown: u64,
    unknown_made: u64,
    longest: Duration,
}

/// However slow the machine, a writer makes so many commits.
const COMMITS_MIN: u64 = 100;

/// Adds to counters, each time with an entry of its own in the same commit, until it is told to stop.
fn add_until(store: &EtcdRecords, writer: usize, stop: &AtomicBool, seed: u64) -> Seen {
    let mut random = Random(seed | 1);
    let mut seen = Seen::default();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) || seen.acknowledged < COMMITS_MIN {
        let counter = format!("counter/{}", random.below(4));
        let entry = format!("entry/{writer}/{number:08}");
        let Ok(found) = store.get(&counter) else { continue };
        let conditions = [Condition::unchanged(counter.as_str(), found.as_ref()), Condition::absent(entry.as_str())];
        // Now and then it comes with a value that goes in chunks.
        let value = vec![7; if random.below(20) == 0 { 700_000 } else { 10 }];
        let changes = [
            Change::put(counter.as_str(), (count(found.as_ref()) + 1).to_string()),
            Change::put(entry.as_str(), counter.as_str()),
            Change::put(format!("value/{writer}"), value),
        ];
        let start = Instant::now();
        let result = store.commit(&conditions, &changes);
        seen.longest = seen.longest.max(start.elapsed());
        match result {
            Ok(Commit::Done(_)) => {
                seen.acknowledged += 1;
                number += 1;
            }
            Ok(Commit::Conflict(key)) => {
                assert_eq!(key, counter, "nobody else writes this entry, and it was not written twice");
                seen.conflicts += 1;
            }
            Err(RecordsError::Unknown { .. }) => {
                seen.unknown += 1;
                // After a commit of the same store it is settled.
                while store.commit(&[], &[]).is_err() {}
                let made = loop {
                    if let Ok(found) = store.get(&entry) {
                        break found.is_some();
                    }
                };
                if made {
                    seen.unknown_made += 1;
                    number += 1;
                }
            }
            // Nothing was changed.
            Err(_) => {}
        }
    }
    seen
}

#[test]
fn members_that_fail_lose_no_commit_and_repeat_none() {
    let faults = number("ESPALIER_ETCD_FAULTS", 2);
    let Some(mut cluster) = Cluster::start(3) else { return };
    let config = cluster.config();
    let stores = [cluster.open(&config), cluster.open(&config)];
    let (start, stop) = (Instant::now(), AtomicBool::new(false));
    println!("{faults} faults, SEED={}", number("SEED", 1));
    let seen: Vec<Seen> = thread::scope(|scope| {
        let (stores, stop) = (&stores, &stop);
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                scope.spawn(move || add_until(&stores[writer], writer, stop, number("SEED", 1) + writer as u64))
            })
            .collect();
        let mut random = Random::new();
        for _ in 0..faults {
            fault(&mut cluster, &mut random, Extent::Majority);
        }
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().expect("a writer")).collect()
    });
    println!("two writers for {} ms", start.elapsed().as_millis());
    let store = cluster.open(&config);
    let mut entries: BTreeMap<String, u64> = BTreeMap::new();
    for (writer, seen) in seen.iter().enumerate() {
        let prefix = format!("entry/{writer}/");
        let found = store.list(&prefix, None, usize::MAX).expect("it can be read");
        println!(
            "writer {writer}: {} commits acknowledged, {} conflicts, {} of unknown outcome of which {} were made; the longest took {} ms",
            seen.acknowledged,
            seen.conflicts,
            seen.unknown,
            seen.unknown_made,
            seen.longest.as_millis()
        );
        assert_eq!(found.len() as u64, seen.acknowledged + seen.unknown_made, "entries of writer {writer}");
        for (number, (key, record)) in found.iter().enumerate() {
            assert_eq!(*key, format!("{prefix}{number:08}"));
            *entries.entry(String::from_utf8_lossy(&record.value).into_owned()).or_default() += 1;
        }
    }
    for (key, record) in store.list("counter/", None, 10).expect("it can be read") {
        assert_eq!(entries.get(&key), Some(&count(Some(&record))), "{key}");
    }
}

/// A holder's claim, by its own clock.
#[derive(Clone, Copy)]
struct Claim {
    who: usize,
    from: BootTime,
    until: BootTime,
}

fn ttl() -> Duration {
    Duration::from_millis(number("ESPALIER_ETCD_TTL_MS", 1_500))
}

/// Asks for the lease again and again, holds it for a while, and fails, without a word or by stopping for too long.
fn contend(records: &Arc<dyn Records>, who: usize, left: &AtomicU64, claims: &Mutex<Vec<Claim>>, refused: &AtomicU64) {
    let clock = SystemClock;
    let mut lease = Lease::new(Arc::clone(records), Arc::new(clock), "writer", format!("host{who}"), ttl());
    let mut random = Random(who as u64 * 77 + 1);
    while left.load(Ordering::Relaxed) > 0 {
        let Ok(Acquired::Held(mut held)) = lease.acquire() else {
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        let from = clock.now();
        let work = Instant::now();
        let work_max = Duration::from_millis(300 + random.below(900));
        while work.elapsed() < work_max {
            thread::sleep(ttl() / 5);
            match lease.renew(&held) {
                Ok(Some(renewed)) => held = renewed,
                Ok(None) => break,
                Err(_) => {}
            }
        }
        claims.lock().expect("claims").push(Claim { who, from, until: held.until() });
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok();
        // It stops, and wakes believing nothing has happened: its commit is refused if somebody else has acquired the lease.
        thread::sleep(ttl() * 2);
        if let Ok(Commit::Conflict(_)) = records.commit(&[held.fence()], &[Change::put("work", who.to_string())]) {
            refused.fetch_add(1, Ordering::Relaxed);
        }
        lease = Lease::new(Arc::clone(records), Arc::new(clock), "writer", format!("host{who}"), ttl());
    }
}

#[test]
fn a_lease_has_one_holder_at_a_time_while_members_fail() {
    let takeovers = number("ESPALIER_ETCD_TAKEOVERS", 4);
    let Some(mut cluster) = Cluster::start(3) else { return };
    let config = cluster.config();
    let stores: Vec<Arc<dyn Records>> = (0..3).map(|_| Arc::new(cluster.open(&config)) as Arc<dyn Records>).collect();
    let (left, refused) = (AtomicU64::new(takeovers), AtomicU64::new(0));
    let claims = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (who, records) in stores.iter().enumerate() {
            let (left, claims, refused) = (&left, &claims, &refused);
            scope.spawn(move || contend(records, who, left, claims, refused));
        }
        let mut random = Random::new();
        while left.load(Ordering::Relaxed) > 0 {
            fault(&mut cluster, &mut random, Extent::One);
        }
    });
    let mut claims = claims.into_inner().expect("claims");
    claims.sort_by_key(|claim| claim.from);
    let mut waits = Vec::new();
    for pair in claims.windows(2) {
        let (before, next) = (pair[0], pair[1]);
        let overlap = before.until.since(next.from);
        assert!(overlap.is_zero(), "host{} and host{} for {overlap:?}", before.who, next.who);
        // Since its last renewal was sent.
        waits.push(next.from.since(before.until) + ttl());
    }
    waits.sort();
    println!(
        "{} holders failed, SEED={}, time to live {} ms; from a holder's last renewal until the next one had the lease: {} ms \
         (median), {} ms (worst); {} commits of former holders refused",
        waits.len(),
        number("SEED", 1),
        ttl().as_millis(),
        waits[waits.len() / 2].as_millis(),
        waits[waits.len() - 1].as_millis(),
        refused.into_inner()
    );
}
