//! Leases over every store: at most one holder at a time by the holders' own clocks, whatever is done in whatever order; what a former
//! holder commits is refused; a lease that nobody renews is taken over.

mod common;

use std::{sync::Arc, time::Duration};

use common::{Cluster, Folder};
use proptest::{prelude::*, test_runner::TestRunner};
use records::{
    Acquired, Change, Clock as _, Commit, Condition, Held, Lease, ManualClock, MemoryRecords, RATE_MARGIN, Record,
    Records, RecordsError, SqliteRecords,
};

const CONTENDERS: usize = 3;
const TTL: Duration = Duration::from_secs(3);

/// One process, whose clock began somewhere and runs a little fast or slow.
struct Contender {
    clock: Arc<ManualClock>,
    lease: Lease,
    held: Option<Held>,
    /// Leases that it had.
    former: Vec<Held>,
    /// Its clock's rate, in thousandths.
    rate: u32,
}

#[derive(Clone, Debug)]
enum Step {
    Acquire(usize),
    Renew(usize),
    Release(usize),
    /// It ends without a word, and another one of the same name begins.
    Restart(usize),
    /// It commits under its newest fence, or under an older one.
    Commit(usize, bool),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..CONTENDERS).prop_map(Step::Acquire),
        3 => (0..CONTENDERS).prop_map(Step::Renew),
        1 => (0..CONTENDERS).prop_map(Step::Release),
        1 => (0..CONTENDERS).prop_map(Step::Restart),
        2 => (0..CONTENDERS, any::<bool>()).prop_map(|(who, newest)| Step::Commit(who, newest)),
        3 => (0_u64..4_000).prop_map(Step::Wait),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..60)
}

fn new_lease(store: &Arc<dyn Records>, clock: &Arc<ManualClock>, who: usize) -> Lease {
    Lease::new(Arc::clone(store), Arc::clone(clock) as _, "writer", format!("host{who}"), TTL)
}

/// Carries steps out; each time at most one contender claims the lease.
fn one_at_a_time(store: &Arc<dyn Records>, steps: &[Step]) {
    // As far apart as the margin allows: (1000 + 30) / (1000 - 30) is just below 1 + 1/16.
    let drift = 30;
    assert!((1_000 + drift) * RATE_MARGIN < (1_000 - drift) * (RATE_MARGIN + 1));
    let mut contenders: Vec<Contender> = (0..CONTENDERS)
        .map(|who| {
            let clock = Arc::new(ManualClock::default());
            clock.advance(Duration::from_secs(1_000 * who as u64));
            let lease = new_lease(store, &clock, who);
            let rate = [1_000, 1_000 - drift, 1_000 + drift][who];
            Contender { clock, lease, held: None, former: Vec::new(), rate }
        })
        .collect();
    // Who acquired it last, and has not released it.
    let mut owner: Option<usize> = None;
    for step in steps {
        match *step {
            Step::Acquire(who) => {
                let contender = &mut contenders[who];
                match contender.lease.acquire().expect("it can be written") {
                    Acquired::Held(held) => {
                        let is_same = contender.held.as_ref().is_some_and(|before| before.fence() == held.fence());
                        if !is_same {
                            contender.former.extend(contender.held.take());
                        }
                        contender.held = Some(held);
                        owner = Some(who);
                    }
                    Acquired::Taken { holder, .. } => {
                        let expected = owner.map(|owner| format!("host{owner}"));
                        assert_eq!(Some(holder), expected, "whoever acquired it last");
                    }
                }
            }
            Step::Renew(who) => {
                let contender = &mut contenders[who];
                if let Some(held) = contender.held.take() {
                    match contender.lease.renew(&held).expect("it can be written") {
                        Some(renewed) => {
                            assert_eq!(owner, Some(who), "only the owner can renew");
                            contender.held = Some(renewed);
                        }
                        None => {
                            assert_ne!(owner, Some(who), "the owner can renew");
                            contender.former.push(held);
                        }
                    }
                }
            }
            Step::Release(who) => {
                let contender = &mut contenders[who];
                if let Some(held) = contender.held.take() {
                    contender.former.push(held.clone());
                    contender.lease.release(held).expect("it can be written");
                    if owner == Some(who) {
                        owner = None;
                        assert_eq!(contender.lease.holder().expect("it can be read"), None);
                    }
                }
            }
            Step::Restart(who) => {
                let contender = &mut contenders[who];
                contender.former.extend(contender.held.take());
                contender.lease = new_lease(store, &contender.clock, who);
            }
            Step::Commit(who, newest) => {
                let contender = &contenders[who];
                let held = if newest { contender.held.as_ref() } else { contender.former.last() };
                if let Some(held) = held {
                    let done = store.commit(&[held.fence()], &[Change::put("work", who.to_string())]);
                    let is_fenced = matches!(done.expect("it can be written"), Commit::Conflict(_));
                    if newest {
                        assert_eq!(is_fenced, owner != Some(who));
                    }
                    let now = contender.clock.now();
                    assert!(!(is_fenced && newest && held.outlasts(now, Duration::ZERO)), "refused within its time");
                }
            }
            Step::Wait(ms) => {
                for contender in &contenders {
                    contender.clock.advance(Duration::from_micros(ms * u64::from(contender.rate)));
                }
            }
        }
        let claims = |contender: &&Contender| {
            contender.held.as_ref().is_some_and(|held| held.outlasts(contender.clock.now(), Duration::ZERO))
        };
        assert!(contenders.iter().filter(claims).count() <= 1, "two holders");
    }
    // Whoever goes on asking has it in the end.
    for contender in &contenders {
        contender.clock.advance(TTL);
    }
    let asking = &mut contenders[0];
    if let Acquired::Taken { retry_in, .. } = asking.lease.acquire().expect("it can be written") {
        asking.clock.advance(retry_in);
        let acquired = asking.lease.acquire().expect("it can be written");
        assert!(matches!(acquired, Acquired::Held(_)), "{acquired:?} after {retry_in:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn in_memory_one_holds_at_a_time(steps in steps()) {
        let store: Arc<dyn Records> = Arc::new(MemoryRecords::default());
        one_at_a_time(&store, &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn in_a_file_one_holds_at_a_time(steps in steps()) {
        let folder = Folder::new();
        let store: Arc<dyn Records> = Arc::new(SqliteRecords::open(&folder.file()).expect("it opens"));
        one_at_a_time(&store, &steps);
    }
}

#[test]
fn in_a_cluster_one_holds_at_a_time() {
    let Some(cluster) = Cluster::single() else { return };
    let mut runner = TestRunner::new(ProptestConfig { cases: 32, ..ProptestConfig::default() });
    let ran = runner.run(&steps(), |steps| {
        let store: Arc<dyn Records> = Arc::new(cluster.open(&cluster.config()));
        one_at_a_time(&store, &steps);
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn what_is_no_lease_is_refused_with_a_way_out() {
    let store: Arc<dyn Records> = Arc::new(MemoryRecords::default());
    store.commit(&[], &[Change::put("lease/writer", "x")]).expect("it can be written");
    let mut lease = new_lease(&store, &Arc::default(), 0);
    let refused = lease.acquire().expect_err("it is refused");
    assert!(refused.to_string().starts_with("the lease lease/writer cannot be understood"), "{refused}");
}

/// Takes its time for each commit.
struct Slow {
    records: MemoryRecords,
    clock: Arc<ManualClock>,
}

const SLOWNESS: Duration = Duration::from_millis(700);

impl Records for Slow {
    fn get(&self, key: &str) -> Result<Option<Record>, RecordsError> {
        self.records.get(key)
    }

    fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Record)>, RecordsError> {
        self.records.list(prefix, after, limit)
    }

    fn commit(&self, conditions: &[Condition], changes: &[Change]) -> Result<Commit, RecordsError> {
        self.clock.advance(SLOWNESS);
        self.records.commit(conditions, changes)
    }
}

#[test]
fn time_counts_from_before_a_request() {
    let clock = Arc::new(ManualClock::default());
    let store: Arc<dyn Records> = Arc::new(Slow { records: MemoryRecords::default(), clock: Arc::clone(&clock) });
    let mut lease = new_lease(&store, &clock, 0);
    let start = clock.now();
    let Ok(Acquired::Held(held)) = lease.acquire() else { panic!("it is free") };
    assert_eq!(held.until(), start.after(TTL));
    let left = TTL - SLOWNESS;
    assert!(held.outlasts(clock.now(), left - Duration::from_millis(1)) && !held.outlasts(clock.now(), left));
    let renewed = lease.renew(&held).expect("it can be written").expect("it is held");
    assert_eq!(renewed.until(), start.after(SLOWNESS + TTL));
}
