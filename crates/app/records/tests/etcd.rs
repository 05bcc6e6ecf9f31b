//! What is etcd's own among the stores: users, certificates, installations beside each other, and what interrupted commits leave behind.

mod common;

use std::{
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use common::{Cluster, Folder};
use records::{
    Change, Commit, Condition, EtcdConfig, EtcdCredentials, EtcdHistory, EtcdRecords, EtcdTls, Records as _,
    RecordsError,
};

/// For clusters that do not answer.
const SHORT: Duration = Duration::from_millis(500);

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
    let config = cluster.config();
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
    assert_eq!(store.clean_up().expect("it can be cleaned up"), 0, "not before its time");
    // Who has no patience removes the blob, and the records of all writers, which are idle.
    drop(cluster.open(&EtcdConfig { abandoned_after: Duration::ZERO, ..config.clone() }));
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
    let cleaner = cluster.open(&config);
    let store = cluster.open(&EtcdConfig { prefix: config.prefix, ..cluster.config() });
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
fn the_history_is_compacted_while_others_read() {
    let Some(cluster) = Cluster::single() else { return };
    let history = EtcdHistory::Compact { every: Duration::from_millis(100) };
    let config = EtcdConfig { history, ..cluster.config() };
    let (writer, reader) = (cluster.open(&config), cluster.open(&config));
    let put =
        |number: u8| writer.commit(&[], &[Change::put("long", vec![number; 2 << 20])]).expect("it can be written");
    let Commit::Done(first) = put(0) else { panic!("it has no condition") };
    thread::scope(|scope| {
        let writes = scope.spawn(|| {
            for number in 1..15 {
                put(number);
            }
        });
        while !writes.is_finished() {
            let found = reader.get("long").expect("it can be read").expect("it is there").value;
            assert!(found.len() == 2 << 20 && found.iter().all(|&byte| byte == found[0]), "a mixture");
        }
    });
    let old = Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args(["--endpoints", &config.endpoints[0], "get", "x", "--rev", &first.to_string()])
        .output()
        .expect("etcdctl");
    let said = String::from_utf8_lossy(&old.stderr);
    assert!(said.contains("has been compacted"), "{said}");
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
    let config = EtcdConfig {
        endpoints: vec!["http://127.0.0.1:1".to_owned(), silent.clone()],
        request_max: SHORT,
        ..EtcdConfig::default()
    };
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
    let refused = EtcdRecords::open(&EtcdConfig { tls: anonymous, request_max: SHORT, ..config.clone() })
        .map(drop)
        .expect_err("no certificate");
    assert!(matches!(refused, RecordsError::EtcdUnreachable { .. }), "{refused}");
    let unsigned = EtcdTls { ca_file: None, ..config.tls.clone() };
    if let Err(refused) =
        EtcdRecords::open(&EtcdConfig { tls: unsigned, request_max: SHORT, ..config.clone() }).map(drop)
    {
        println!("by the system's authorities: {refused}");
    } else {
        panic!("the system knows no such authority");
    }
    let missing = EtcdTls { ca_file: Some(file("none.pem")), client: None };
    let refused = EtcdRecords::open(&EtcdConfig { tls: missing, ..config }).map(drop).expect_err("no file");
    assert!(refused.to_string().contains("none.pem"), "{refused}");
}
