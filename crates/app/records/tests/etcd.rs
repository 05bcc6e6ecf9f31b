//! Three members of etcd under faults: commits and leases while members are killed, stopped and restarted; users, certificates; what
//! interrupted commits leave behind.
//!
//! `ESPALIER_ETCD_FAULTS` is the number of faults (3), `SEED` chooses them; `ESPALIER_ETCD_TAKEOVERS` is the number of holders that
//! fail (6).

mod common;

use std::{
    collections::BTreeMap,
    path::Path,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use common::{Cluster, Folder, number};
use records::{
    Acquired, BootTime, Change, Clock as _, Commit, Condition, EtcdConfig, EtcdCredentials, EtcdRecords, EtcdTls,
    Lease, Record, Records, RecordsError, SystemClock,
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

/// Does something bad to a member, mostly to the leader, and puts it right.
fn fault(cluster: &mut Cluster, random: &mut Random) {
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

/// Adds to counters, each time with an entry of its own in the same commit, until it is told to stop.
fn add_until(store: &EtcdRecords, writer: usize, stop: &AtomicBool, seed: u64) -> Seen {
    let mut random = Random(seed | 1);
    let mut seen = Seen::default();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
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
    let faults = number("ESPALIER_ETCD_FAULTS", 3);
    let Some(mut cluster) = Cluster::start(3) else { return };
    let config = cluster.config();
    let stores = [cluster.open(&config), cluster.open(&config)];
    let stop = AtomicBool::new(false);
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
            fault(&mut cluster, &mut random);
        }
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().expect("a writer")).collect()
    });
    let store = cluster.open(&config);
    let mut entries: BTreeMap<String, u64> = BTreeMap::new();
    let mut total = 0;
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
        total += seen.acknowledged;
    }
    for (key, record) in store.list("counter/", None, 10).expect("it can be read") {
        assert_eq!(entries.get(&key), Some(&count(Some(&record))), "{key}");
    }
    assert!(total > 100 * faults.min(3), "only {total} commits");
}

/// A holder's claim, by its own clock.
#[derive(Clone, Copy)]
struct Claim {
    who: usize,
    from: BootTime,
    until: BootTime,
}

const TTL: Duration = Duration::from_millis(1_500);

/// Asks for the lease again and again, holds it for a while, and fails, without a word or by stopping for too long.
fn contend(records: &Arc<dyn Records>, who: usize, left: &AtomicU64, claims: &Mutex<Vec<Claim>>, refused: &AtomicU64) {
    let clock = SystemClock;
    let mut lease = Lease::new(Arc::clone(records), Arc::new(clock), "writer", format!("host{who}"), TTL);
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
            thread::sleep(TTL / 5);
            match lease.renew(&held) {
                Ok(Some(renewed)) => held = renewed,
                Ok(None) => break,
                Err(_) => {}
            }
        }
        claims.lock().expect("claims").push(Claim { who, from, until: held.until() });
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok();
        // It stops, and wakes believing nothing has happened: its commit is refused if somebody else has acquired the lease.
        thread::sleep(TTL * 2);
        if let Ok(Commit::Conflict(_)) = records.commit(&[held.fence()], &[Change::put("work", who.to_string())]) {
            refused.fetch_add(1, Ordering::Relaxed);
        }
        lease = Lease::new(Arc::clone(records), Arc::new(clock), "writer", format!("host{who}"), TTL);
    }
}

#[test]
fn a_lease_has_one_holder_at_a_time_while_members_fail() {
    let takeovers = number("ESPALIER_ETCD_TAKEOVERS", 6);
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
            fault(&mut cluster, &mut random);
        }
    });
    let mut claims = claims.into_inner().expect("claims");
    claims.sort_by_key(|claim| claim.from);
    let mut waits = Vec::new();
    for pair in claims.windows(2) {
        let (before, next) = (pair[0], pair[1]);
        let overlap = before.until.since(next.from);
        assert!(overlap.is_zero(), "host{} and host{} for {overlap:?}", before.who, next.who);
        waits.push(next.from.since(before.until));
    }
    waits.sort();
    println!(
        "{} holders failed, SEED={}, time to live {} ms; after the end of the last holder's time the next one had the lease within {} ms \
         (median) and {} ms (worst); {} commits of former holders refused",
        waits.len(),
        number("SEED", 1),
        TTL.as_millis(),
        waits[waits.len() / 2].as_millis(),
        waits[waits.len() - 1].as_millis(),
        refused.into_inner()
    );
}

/// All keys of an installation, in etcd's own words.
fn keys(config: &EtcdConfig) -> Vec<String> {
    let listed = Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args(["--endpoints", &config.endpoints[0], "get", "--prefix", &config.prefix, "--keys-only"])
        .output();
    let text = String::from_utf8(listed.expect("etcdctl").stdout).expect("text");
    text.lines().filter_map(|line| line.strip_prefix(&config.prefix)).map(str::to_owned).collect()
}

fn etcdctl(config: &EtcdConfig, arguments: &[&str]) {
    let ran = Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args(["--endpoints", &config.endpoints[0]])
        .args(arguments)
        .output()
        .expect("etcdctl");
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn nothing_is_left_of_values_that_are_replaced_or_were_never_committed() {
    let Some(cluster) = Cluster::single() else { return };
    let config = EtcdConfig { abandoned_after: Duration::from_millis(300), ..cluster.config() };
    let store = cluster.open(&config);
    let family = |name: &str| keys(&config).iter().filter(|key| key.starts_with(name)).count();
    let long = |number: u8| Change::put("long", vec![number; 1 << 20]);
    for number in 0..3 {
        store.commit(&[], &[long(number)]).expect("it can be written");
        assert_eq!((family("blobs/"), family("chunks/")), (1, 2));
    }
    let conflict = store.commit(&[Condition::absent("long")], &[long(3)]).expect("it can be refused");
    assert!(matches!(conflict, Commit::Conflict(_)));
    assert_eq!((family("blobs/"), family("chunks/")), (1, 2));

    // What a writer leaves that ends between its chunks and its commit.
    etcdctl(&config, &["put", &format!("{}blobs/0a", config.prefix), "long"]);
    etcdctl(&config, &["put", &format!("{}chunks/0a/000000", config.prefix), "x"]);
    // Writers that end leave their record.
    drop(cluster.open(&config));
    drop(cluster.open(&config));
    assert_eq!((family("blobs/"), family("chunks/"), family("writers/")), (2, 3, 3));
    store.clean_up().expect("it can be cleaned up");
    assert_eq!((family("blobs/"), family("writers/")), (2, 3), "not before its time");
    thread::sleep(Duration::from_millis(300));
    // Two writers, one blob, and the record of this writer itself, which was idle as well.
    assert_eq!(store.clean_up().expect("it can be cleaned up"), 4);
    assert_eq!((family("blobs/"), family("chunks/"), family("writers/")), (1, 2, 0));
    assert_eq!(store.get("long").expect("it can be read").expect("it is there").value, vec![2; 1 << 20]);
    let done = store.commit(&[], &[Change::delete("long")]).expect("a writer without a record makes a new one");
    assert!(matches!(done, Commit::Done(_)));
    assert_eq!((family("blobs/"), family("chunks/"), family("writers/")), (0, 0, 1));
}

#[test]
fn a_commit_whose_chunks_are_removed_uploads_them_again() {
    let Some(cluster) = Cluster::single() else { return };
    let config = EtcdConfig { abandoned_after: Duration::ZERO, ..cluster.config() };
    let (store, cleaner) = (cluster.open(&cluster.config()), cluster.open(&config));
    let config = EtcdConfig { prefix: config.prefix, ..cluster.config() };
    drop(store);
    let store = cluster.open(&config);
    let stop = AtomicBool::new(false);
    let removed = AtomicU64::new(0);
    thread::scope(|scope| {
        let (cleaner, stop, removed) = (&cleaner, &stop, &removed);
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                removed.fetch_add(cleaner.clean_up().expect("it can be cleaned up") as u64, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(40));
            }
        });
        for number in 0..20_u8 {
            let done = store.commit(&[], &[Change::put("long", vec![number; 600_000])]);
            // A cleaner with so little patience may win often.
            if done.is_ok() {
                let found = store.get("long").expect("it can be read").expect("it is there");
                assert!(found.value == vec![number; 600_000], "{number}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(removed.into_inner() > 0, "nothing was removed");
}

#[test]
fn installations_and_newer_layouts_are_kept_apart() {
    let Some(cluster) = Cluster::single() else { return };
    let (one, other) = (cluster.config(), cluster.config());
    let (first, second) = (cluster.open(&one), cluster.open(&other));
    first.commit(&[], &[Change::put("a", "1")]).expect("it can be written");
    assert_eq!(second.get("a").expect("it can be read"), None);
    assert_eq!(second.list("", None, 10).expect("it can be read"), []);

    // A newer version while this one runs: nothing is written any more.
    etcdctl(&one, &["put", &format!("{}format", one.prefix), "2"]);
    let refused = first.commit(&[], &[Change::put("a", "2")]).expect_err("it is newer");
    assert!(matches!(refused, RecordsError::NewerEtcd { found: 2, known: 1, .. }), "{refused}");
    let refused = EtcdRecords::open(&one).map(drop).expect_err("it is newer");
    assert!(matches!(refused, RecordsError::NewerEtcd { found: 2, known: 1, .. }), "{refused}");
    etcdctl(&other, &["put", &format!("{}format", other.prefix), "hello"]);
    let refused = EtcdRecords::open(&other).map(drop).expect_err("it is none of ours");
    assert!(refused.to_string().ends_with("which espalierd did not write; name another prefix"), "{refused}");
    // All keys gone: as if it were new.
    etcdctl(&one, &["del", "--prefix", &one.prefix]);
    first.commit(&[Condition::absent("a")], &[Change::put("a", "3")]).expect("it can be written");
}

#[test]
fn nobody_who_answers_is_an_error_with_a_way_out() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = format!("http://{}", silent.local_addr().expect("an address"));
    let config =
        EtcdConfig { endpoints: vec!["http://127.0.0.1:1".to_owned(), silent.clone()], ..EtcdConfig::default() };
    let refused = EtcdRecords::open(&config).map(drop).expect_err("nobody answers");
    let text = refused.to_string();
    assert!(matches!(refused, RecordsError::EtcdUnreachable { .. }), "{text}");
    assert!(text.ends_with(&format!("etcdctl --endpoints=http://127.0.0.1:1,{silent} endpoint health")), "{text}");

    for endpoints in [vec![], vec!["10.0.0.1:2379".to_owned()]] {
        let refused = EtcdRecords::open(&EtcdConfig { endpoints, ..EtcdConfig::default() }).map(drop);
        assert!(matches!(refused, Err(RecordsError::EtcdConfig { .. })));
    }
}

#[test]
fn users_have_passwords() {
    let Some(mut cluster) = Cluster::single() else { return };
    let config = cluster.config();
    drop(cluster.open(&config));
    for arguments in [
        &["user", "add", "root:secret"][..],
        &["user", "grant-role", "root", "root"],
        &["user", "add", "espalier:trellis"],
        &["role", "add", "espalier"],
        &["role", "grant-permission", "espalier", "readwrite", &config.prefix, "--prefix=true"],
        &["user", "grant-role", "espalier", "espalier"],
        &["auth", "enable"],
    ] {
        etcdctl(&config, arguments);
    }
    let with = |user: &str, password: &str| {
        let credentials = EtcdCredentials { user: user.to_owned(), password: password.to_owned() };
        EtcdConfig { credentials: Some(credentials), ..config.clone() }
    };
    let refused = EtcdRecords::open(&config).map(drop).expect_err("no user").to_string();
    assert!(refused.ends_with("configure them"), "{refused}");
    let refused = EtcdRecords::open(&with("espalier", "wrong")).map(drop).expect_err("no user").to_string();
    assert!(refused.contains("invalid user ID or password"), "{refused}");
    let elsewhere = EtcdConfig { prefix: "/elsewhere/".to_owned(), ..with("espalier", "trellis") };
    let refused = EtcdRecords::open(&elsewhere).map(drop).expect_err("no rights").to_string();
    assert!(refused.ends_with("below the prefix"), "{refused}");

    let store = cluster.open(&with("espalier", "trellis"));
    store.commit(&[], &[Change::put("a", vec![1; 600_000])]).expect("it can be written");
    // A member that was restarted knows no token any more.
    cluster.kill(0);
    cluster.run(0);
    let found = loop {
        if let Ok(found) = store.get("a") {
            break found;
        }
    };
    assert_eq!(found.expect("it is there").value.len(), 600_000);
    store.commit(&[], &[Change::put("a", "2")]).expect("it can be written");
}

/// A certificate of its own authority, by openssl.
fn certify(folder: &Path, name: &str, usage: &str) {
    let script = format!(
        "set -e; cd '{}'; \
         [ -e ca.pem ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem \
             -days 2 -subj /CN=ca -addext basicConstraints=critical,CA:TRUE; \
         openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}; \
         printf 'subjectAltName=IP:127.0.0.1\\nextendedKeyUsage={usage}\\n' > {name}.ext; \
         openssl x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out {name}.pem -days 2 -extfile {name}.ext",
        folder.display()
    );
    let ran = Command::new("sh").args(["-c", &script]).output().expect("sh");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn members_and_clients_have_certificates() {
    if Command::new("openssl").arg("version").output().is_err() {
        println!("skipped: needs openssl");
        return;
    }
    let folder = Folder::new();
    certify(folder.path(), "server", "serverAuth,clientAuth");
    certify(folder.path(), "client", "clientAuth");
    let file = |name: &str| folder.path().join(name);
    let option = |name: &str, path: &str| format!("--{name}={}", file(path).display());
    let options = [
        option("cert-file", "server.pem"),
        option("key-file", "server.key"),
        option("trusted-ca-file", "ca.pem"),
        "--client-cert-auth".to_owned(),
        "--election-timeout=100".to_owned(),
        "--heartbeat-interval=10".to_owned(),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let Some(cluster) = Cluster::start_with("https", Folder::new(), &options, 1) else { return };
    let client = Some((file("client.pem"), file("client.key")));
    let tls = EtcdTls { ca_file: Some(file("ca.pem")), client };
    let config = EtcdConfig { tls, ..cluster.config() };
    let store = cluster.open(&config);
    store.commit(&[], &[Change::put("a", vec![1; 600_000])]).expect("it can be written");
    assert_eq!(store.get("a").expect("it can be read").expect("it is there").value.len(), 600_000);

    let anonymous = EtcdTls { client: None, ..config.tls.clone() };
    let refused =
        EtcdRecords::open(&EtcdConfig { tls: anonymous, ..config.clone() }).map(drop).expect_err("no certificate");
    assert!(matches!(refused, RecordsError::EtcdUnreachable { .. }), "{refused}");
    let unsigned = EtcdTls { ca_file: None, ..config.tls.clone() };
    if let Err(refused) = EtcdRecords::open(&EtcdConfig { tls: unsigned, ..config.clone() }).map(drop) {
        println!("by the system's authorities: {refused}");
    } else {
        panic!("the system knows no such authority");
    }
    let missing = EtcdTls { ca_file: Some(file("none.pem")), client: None };
    let refused = EtcdRecords::open(&EtcdConfig { tls: missing, ..config }).map(drop).expect_err("no file");
    assert!(refused.to_string().contains("none.pem"), "{refused}");
}
