//! LAGs, of the kernel's bonds or of the lab's own: every pair gets through, each frame once, and a member that is pulled costs
//! capacity, not the conversation.
//!
//! ```text
//!      n1 ═══ s0 ═══ s1 ─── n2        ═══ two cables as one, by LACP
//!              ╲      │
//!               s2 ───┘               n3 on s2
//! ```
//! `BESIDE=1` does the same with the cables of the LAG as links of their own between Linux bridges that learn and run spanning tree.

mod common;

use std::{
    net::{IpAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use common::{Guard, LAGS, StopOnDrop, lab_name, plan, setting, shell, skipped};
use fabric::{LinkId, Plan, Tree, format::native::parse_native};
use lab::{
    Backend, FailMode, Lab, LabError, LabOptions,
    delivery::{Probe, check},
    lag,
    layout::LagMethod,
    netns::within,
};

/// The bits of a port's state that LACP has for collecting and distributing.
const BOTH_WAYS: usize = 0x30;
/// How often a frame is sent.
const PERIOD: Duration = Duration::from_millis(2);
/// What is said before something is pulled.
const QUIET: Duration = Duration::from_secs(1);
/// And after it.
const LISTENING: Duration = Duration::from_secs(4);

#[test]
fn a_member_that_is_pulled_costs_capacity_and_no_conversation() {
    for backend in Backend::ALL.iter().copied().filter(|backend| !skipped(*backend)) {
        let topology = parse_native("lags.yaml", LAGS).expect("valid");
        // Every tree takes the LAG: a failure of it must not be healed by another tree.
        let trees = [vec![0, 1], vec![0, 2]];
        let cabling = topology.clone();
        let plan = plan(topology, |host| {
            let links = trees[host.index() % 2].iter().map(|link| LinkId::new(*link));
            Tree::new(&cabling, links.collect::<Vec<_>>()).expect("a tree")
        });
        let Some(lab) = up(&plan, backend) else { continue };
        let _speakers = Speakers::start(&lab.0);
        // A bond sends by a member before its partner has answered, and stops for a moment when it has.
        await_members(&lab.0);
        for &probe in Probe::ALL {
            let delivery = check(&lab.0, probe).expect("probes can be sent");
            println!("{backend}: {probe}: {} pairs in {:.2?}", delivery.pairs, delivery.elapsed);
            assert_eq!(delivery.faults, [], "{backend}: {probe}");
        }
        for (what, cable) in [
            ("the first of two cables between switches", "s0:p1"),
            ("the second of two cables between switches", "s0:p2"),
            ("the second of a host's cables", "s0:p6"),
        ] {
            let heard = talk(&lab.0, LISTENING, || lab.0.fail(cable, FailMode::Down).expect("a cable"));
            println!("{backend}, {:?}: {what} is pulled: {heard}", lab.0.layout().lags);
            heard.check(what);
            // Which conversation takes which member is the kernel's choice; LACP takes seconds to take a member in again.
            lab.0.heal(cable).expect("a cable");
            await_members(&lab.0);
        }
        assert_eq!(lab.0.status().expect("a status").unknown_floods(), 0, "{backend}");
    }
}

#[test]
fn the_same_cables_between_bridges_with_spanning_tree() {
    if std::env::var_os("BESIDE").is_none() || skipped(Backend::Bridge) {
        println!("skipped: BESIDE=1 runs it, where the kernel's bridge knows VLANs");
        return;
    }
    let alone = LAGS
        .replace("lag1: [p1, p2], lag2: [p5, p6]", "lag2: [p5, p6]")
        .replace("  s1: {lags: {lag1: [p1, p2]}}", "  s1: {}")
        .replace("  - s0:lag1 -- s1:lag1\n", "  - s0:p1 -- s1:p1\n  - s0:p2 -- s1:p2\n");
    let topology = parse_native("alone.yaml", &alone).expect("valid");
    let cabling = topology.clone();
    let path = [LinkId::new(0), LinkId::new(2)];
    let plan = plan(topology, |_| Tree::new(&cabling, path.to_vec()).expect("a tree"));
    let Some(lab) = up(&plan, Backend::Bridge) else { return };
    // s0 is the root, so that frames from n1 to n2 take the first cable to s1, and the second one is blocked.
    for (number, site) in lab.0.layout().switches.iter().enumerate() {
        let priority = if number == 0 { 0 } else { 32768 };
        let ports = site.ports.iter().filter(|port| port.lag.is_none()).filter_map(|port| port.device.as_deref());
        let enslave: String = ports.map(|port| format!("ip link set dev {port} master stp\n")).collect();
        let script = format!(
            "ip link delete dev br~\nip link add stp type bridge stp_state 1 forward_delay 400 hello_time 100 max_age 600 \
             priority {priority}\n{enslave}\
             ip link set stp up\n"
        );
        shell(&site.namespace, &script);
    }
    thread::sleep(SETTLING * setting("LAB_SLOWNESS", 1).min(2) as u32);
    let cable = "s0:p1";
    let after = SETTLING * setting("LAB_SLOWNESS", 1).min(2) as u32;
    let heard = talk(&lab.0, after, || lab.0.fail(cable, FailMode::Down).expect("a cable"));
    println!("spanning tree: {cable} is pulled: {heard}");
}

/// What spanning tree takes to forward, with the shortest timers that the standard has: twice four seconds, and some.
const SETTLING: Duration = Duration::from_secs(12);

/// LACP of a lab's own LAGs, on threads of this process.
struct Speakers {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), LabError>>>,
}

impl Speakers {
    fn start(lab: &Lab) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (name, flag) = (lab.layout().name.clone(), Arc::clone(&stop));
        let own = lab.layout().lags == LagMethod::Own;
        Self { stop, thread: own.then(|| thread::spawn(move || lag::serve(&name, &flag))) }
    }
}

impl Drop for Speakers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => {}
            // A panic inside a panic would hide both.
            wrong if thread::panicking() => println!("LACP: {wrong:?}"),
            wrong => panic!("LACP: {wrong:?}"),
        }
    }
}

/// A lab; none, with the reason, where neither the kernel nor the back end has LAGs.
fn up(plan: &Plan, backend: Backend) -> Option<Guard> {
    let rate_bps = setting("LAB_RATE_BPS", 1_000_000_000);
    let options = LabOptions { backend: Some(backend), rate_bps, ..LabOptions::new(lab_name("lag")) };
    match Lab::up(plan, &options, &mut |_| {}) {
        Ok(lab) => Some(Guard(lab)),
        Err(LabError::Missing(reason)) => {
            println!("skipped: {reason}");
            None
        }
        Err(error) => panic!("the lab comes up: {error}"),
    }
}

/// What came of frames that n1 sent to n2.
struct Heard {
    sent: u64,
    received: u64,
    twice: u64,
    /// The longest time without a frame.
    gap: Duration,
}

impl std::fmt::Display for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { sent, received, twice, gap } = self;
        write!(f, "{received} of {sent} frames arrive, {twice} twice; longest gap {} ms", gap.as_millis())
    }
}

impl Heard {
    fn check(&self, what: &str) {
        assert_eq!(self.twice, 0, "{what}: frames arrive twice");
        let most = GAP_MAX * setting("LAB_SLOWNESS", 1) as u32;
        assert!(self.gap < most, "{what}: nothing arrives for {:?}", self.gap);
        assert!(self.received * 10 > self.sent * 9 / setting("LAB_SLOWNESS", 1), "{what}: {self}");
    }
}

/// A member that has no carrier is out within a look of the kernel's, 10 ms; a busy machine takes longer.
const GAP_MAX: Duration = Duration::from_millis(300);

/// Sends numbered frames from n1 to n2, does something while they go, goes on for so long, and says what arrived.
fn talk(lab: &Lab, after: Duration, act: impl FnOnce()) -> Heard {
    let [near, far] = [0, 1].map(|host: usize| &lab.layout().hosts[host]);
    let bind = |address: IpAddr| move || UdpSocket::bind((address, 7100)).expect("a free port");
    let sending = within(&near.namespace, bind(near.address)).expect("a namespace");
    let receiving = within(&far.namespace, bind(far.address)).expect("a namespace");
    receiving.set_read_timeout(Some(Duration::from_millis(100))).expect("a socket");
    let (stop, target) = (AtomicBool::new(false), (far.address, 7100));
    thread::scope(|scope| {
        let _guard = StopOnDrop(&stop);
        let (sending, receiving, stop) = (&sending, &receiving, &stop);
        let sender = scope.spawn(move || {
            let (mut sent, mut due) = (0_u64, Instant::now());
            while !stop.load(Ordering::SeqCst) {
                // A send that fails while there is no way is a frame that does not arrive.
                let _ = sending.send_to(&sent.to_be_bytes(), target);
                sent += 1;
                due += PERIOD;
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            sent
        });
        let receiver = scope.spawn(move || {
            let (mut seen, mut twice, mut last, mut gap) =
                (std::collections::BTreeSet::new(), 0, None::<Instant>, Duration::ZERO);
            let mut bytes = [0; 64];
            while !stop.load(Ordering::SeqCst) {
                let Ok((8, _)) = receiving.recv_from(&mut bytes) else { continue };
                let number = u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
                twice += u64::from(!seen.insert(number));
                let now = Instant::now();
                gap = gap.max(last.map_or(Duration::ZERO, |last| now - last));
                last = Some(now);
            }
            // What never came back is a gap that lasts.
            gap = gap.max(last.map_or(QUIET, |last| last.elapsed().saturating_sub(Duration::from_millis(100))));
            (seen.len() as u64, twice, gap)
        });
        thread::sleep(QUIET);
        act();
        thread::sleep(after);
        stop.store(true, Ordering::SeqCst);
        let sent = sender.join().expect("it sends");
        let (received, twice, gap) = receiver.join().expect("it receives");
        Heard { sent, received, twice, gap }
    })
}

/// Waits until every LAG has all its members again.
fn await_members(lab: &Lab) {
    lag::await_active(lab).expect("LACP agrees");
    let since = Instant::now();
    let switches = lab.layout().switches.iter().map(|site| site.namespace.as_str());
    for namespace in switches.chain([lab.layout().hosts[0].namespace.as_str()]) {
        let agreed = || {
            let said = shell(namespace, "cat /proc/net/bonding/* 2>/dev/null || :\n");
            let numbers = |key: &str| -> Vec<usize> {
                said.lines().filter_map(|line| line.trim().strip_prefix(key)?.parse().ok()).collect()
            };
            // Both ends of every member collect and distribute, by what LACP says of their states.
            numbers("Number of ports: ").iter().all(|members| *members == 2)
                && numbers("port state: ").iter().all(|state| state & BOTH_WAYS == BOTH_WAYS)
        };
        while !agreed() {
            assert!(since.elapsed() < Duration::from_secs(30) * setting("LAB_SLOWNESS", 1) as u32, "{namespace}");
            thread::sleep(Duration::from_millis(100));
        }
    }
}
