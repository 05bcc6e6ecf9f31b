//! Commits whose answer is lost or whose request is late: through a proxy that holds requests back, or keeps answers.

mod common;

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use common::Cluster;
use records::{Change, Commit, Condition, EtcdConfig, Records, RecordsError};

/// Enough for one try that is not answered, and one more.
const SHORT: Duration = Duration::from_millis(1_200);

/// What the proxy does with a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Pass,
    /// The member gets it once the test says so.
    Hold,
    /// The member gets it; its answer is lost.
    Keep,
}

/// Before a member: one connection for each request.
struct Proxy {
    url: String,
    state: Arc<State>,
    address: std::net::SocketAddr,
}

struct State {
    member: String,
    mode: Mutex<Mode>,
    /// Requests that are held back, and whether they may go on.
    held: Mutex<(usize, bool)>,
    changed: Condvar,
    ends: AtomicBool,
}

impl Proxy {
    fn before(endpoint: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State {
            member: endpoint.trim_start_matches("http://").to_owned(),
            mode: Mutex::new(Mode::Pass),
            held: Mutex::new((0, false)),
            changed: Condvar::new(),
            ends: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.ends.load(Ordering::Relaxed) {
                    break;
                }
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.serve(client.expect("a connection")));
            }
        });
        Self { url: format!("http://{address}"), state, address }
    }

    fn set(&self, mode: Mode) {
        *self.state.mode.lock().expect("a mode") = mode;
    }

    /// Lets the requests go on that are held back; returns how many, once the member has answered them.
    fn release(&self) -> usize {
        self.set(Mode::Pass);
        let mut held = self.state.held.lock().expect("a count");
        let count = held.0;
        held.1 = true;
        self.state.changed.notify_all();
        while held.0 > 0 {
            held = self.state.changed.wait(held).expect("a count");
        }
        held.1 = false;
        count
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.ends.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl State {
    fn serve(&self, mut client: TcpStream) {
        let Some(request) = read_request(&mut client) else { return };
        let is_commit = request.starts_with(b"POST /v3/kv/txn");
        let mode = if is_commit { *self.mode.lock().expect("a mode") } else { Mode::Pass };
        if mode == Mode::Hold {
            let mut held = self.held.lock().expect("a count");
            held.0 += 1;
            while !held.1 {
                held = self.changed.wait(held).expect("a count");
            }
        }
        let answer = self.forward(&request);
        match mode {
            Mode::Pass => {
                let _ = client.write_all(&answer);
            }
            Mode::Keep => {}
            Mode::Hold => {
                self.held.lock().expect("a count").0 -= 1;
                self.changed.notify_all();
            }
        }
        let _ = client.shutdown(Shutdown::Both);
    }

    fn forward(&self, request: &[u8]) -> Vec<u8> {
        let mut member = TcpStream::connect(&self.member).expect("a member");
        let line = request.iter().position(|&byte| byte == b'\n').expect("a line") + 1;
        let closing = [&request[..line], b"Connection: close\r\n", &request[line..]].concat();
        member.write_all(&closing).expect("a member");
        let mut answer = Vec::new();
        member.read_to_end(&mut answer).expect("an answer");
        answer
    }
}

/// A request with its body.
fn read_request(client: &mut TcpStream) -> Option<Vec<u8>> {
    let mut request = Vec::new();
    let mut part = [0; 4096];
    loop {
        if let Some(end) = request.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
            let len = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            if request.len() >= end + 4 + len.unwrap_or(0) {
                return Some(request);
            }
        }
        match client.read(&mut part) {
            Ok(0) | Err(_) => return None,
            Ok(len) => request.extend(&part[..len]),
        }
    }
}

/// A store that asks the proxy first and the member itself next, and one that only knows the member.
fn stores(cluster: &Cluster, proxy: &Proxy) -> (Box<dyn Records>, Box<dyn Records>) {
    let config = cluster.config();
    let other = cluster.open(&config);
    let through = EtcdConfig { endpoints: vec![proxy.url.clone(), cluster.endpoints()[0].clone()], ..config };
    (Box::new(cluster.open(&through)), Box::new(other))
}

fn value(store: &dyn Records, key: &str) -> Option<String> {
    let found = store.get(key).expect("it can be read");
    found.map(|record| String::from_utf8(record.value).expect("text"))
}

#[test]
fn a_commit_whose_answer_is_lost_is_made_once() {
    let Some(cluster) = Cluster::single() else { return };
    let proxy = Proxy::before(&cluster.endpoints()[0]);
    let (store, other) = stores(&cluster, &proxy);
    let Commit::Done(before) = store.commit(&[], &[Change::put("n", "0")]).expect("it can be written") else {
        panic!()
    };
    proxy.set(Mode::Keep);
    let condition = Condition { key: "n".to_owned(), revision: Some(before) };
    let done = store.commit(&[condition], &[Change::put("n", "1")]).expect("its outcome is known");
    let found = other.get("n").expect("it can be read").expect("it is there");
    assert_eq!((found.value.as_slice(), Commit::Done(found.revision)), (&b"1"[..], done));
}

#[test]
fn a_commit_without_conditions_whose_answer_is_lost_is_made_once() {
    let Some(cluster) = Cluster::single() else { return };
    let proxy = Proxy::before(&cluster.endpoints()[0]);
    let (store, other) = stores(&cluster, &proxy);
    proxy.set(Mode::Keep);
    // etcd counts every change.
    let Commit::Done(before) = other.commit(&[], &[]).expect("it can be written") else { panic!() };
    let done = store.commit(&[], &[Change::put("m", "1")]).expect("its outcome is known");
    assert_eq!(done, Commit::Done(before + 1));
    assert_eq!(other.commit(&[], &[]).expect("it can be written"), Commit::Done(before + 2));
}

#[test]
fn a_commit_that_comes_late_is_not_made_again() {
    let Some(cluster) = Cluster::single() else { return };
    let proxy = Proxy::before(&cluster.endpoints()[0]);
    let (store, other) = stores(&cluster, &proxy);
    proxy.set(Mode::Hold);
    // No condition of the caller's keeps the copy from being made.
    let done = store.commit(&[], &[Change::put("n", "1")]).expect("the other endpoint answers");
    assert!(matches!(done, Commit::Done(_)));
    other.commit(&[], &[Change::put("n", "2")]).expect("it can be written");
    assert_eq!(proxy.release(), 1);
    assert_eq!(value(&*other, "n").as_deref(), Some("2"));
}

#[test]
fn a_conflict_stays_one_when_a_copy_comes_late() {
    let Some(cluster) = Cluster::single() else { return };
    let proxy = Proxy::before(&cluster.endpoints()[0]);
    let (store, other) = stores(&cluster, &proxy);
    other.commit(&[], &[Change::put("lock", "")]).expect("it can be written");
    proxy.set(Mode::Hold);
    let done =
        store.commit(&[Condition::absent("lock")], &[Change::put("n", "1")]).expect("the other endpoint answers");
    assert_eq!(done, Commit::Conflict("lock".to_owned()));
    // Now the condition holds, for the copy that is still on its way.
    other.commit(&[], &[Change::delete("lock")]).expect("it can be written");
    assert_eq!(proxy.release(), 1);
    assert_eq!(value(&*other, "n"), None);
}

#[test]
fn an_unknown_outcome_is_said_to_be_so_and_settled_by_the_next_commit() {
    let Some(cluster) = Cluster::single() else { return };
    let proxy = Proxy::before(&cluster.endpoints()[0]);
    let config = cluster.config();
    let other = cluster.open(&config);
    let store = cluster.open(&EtcdConfig { endpoints: vec![proxy.url.clone()], request_max: SHORT, ..config });
    for (mode, expected) in [(Mode::Keep, Some("1")), (Mode::Hold, None)] {
        proxy.set(mode);
        let unknown = store.commit(&[], &[Change::put("n", "1")]).expect_err("nobody answers");
        assert!(matches!(unknown, RecordsError::Unknown { .. }), "{unknown}");
        assert!(unknown.to_string().ends_with("read the records again before it is repeated"), "{unknown}");
        proxy.set(Mode::Pass);
        let done = store.commit(&[], &[Change::put("other", "1")]).expect("it can be written");
        assert!(matches!(done, Commit::Done(_)));
        // What comes now is too late.
        assert_eq!(proxy.release() > 0, mode == Mode::Hold);
        thread::sleep(Duration::from_millis(50));
        assert_eq!(value(&other, "n").as_deref(), expected, "{mode:?}");
        other.commit(&[], &[Change::delete("n")]).expect("it can be written");
    }
}
