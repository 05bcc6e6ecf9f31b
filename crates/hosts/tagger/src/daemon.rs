//! Watches the paths of a tagged device: sends probes, hears replies, moves destinations. One thread, one socket.
//!
//! ```text
//!   poll ─ replies ─▶ Health ─ changes ─▶ Paths::reroute ─▶ the kernel's table
//!        └ due probes ◀──┘         every 250 ms: which paths carry traffic, by the table's counters
//!   with flow placement, every 100 ms: flows ─▶ Placement ─ a move ─▶ the kernel, ─ long flows ─▶ all hosts
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    time::{Duration, Instant},
};

use fabric::{Mac, VlanId};
use nix::{
    poll::{PollFd, PollFlags, ppoll},
    sys::{
        signal::SigSet,
        socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, setsockopt, socket, sockopt},
        time::TimeSpec,
    },
};

use crate::{
    TaggerError,
    device::{SentTo, Tagged},
    error::Context,
    health::{Activity, Health, PathId, Settings, Verdict, Why},
    layout::{PROBE_PRIORITY, PROBE_TYPE},
    links::Links,
    paths::Paths,
    placer::Placer,
    table::{Route, TaggingTable},
    wire::{self, ProbeFields, ProbeMessage},
};

/// How often traffic is looked at, to know which paths carry it.
const LOOK: Duration = Duration::from_millis(250);
/// Longest sleep, so that a request to end is heard.
const NAP: Duration = Duration::from_millis(50);
/// Room for the replies of a second in which the daemon has no processor.
const RECEIVE_BYTES: usize = 2 << 20;

/// Most hosts that are warned at once.
const WARNED_MAX: usize = 64;

/// What the daemon tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The path's VLAN.
    pub vlan: VlanId,
    /// A host at its end.
    pub toward: Mac,
    /// What it is now.
    pub verdict: Verdict,
    /// Destinations whose VLANs were changed for it.
    pub moved: usize,
}

/// A device with all that watching it needs open.
pub struct Prepared<'a> {
    tagged: &'a Tagged,
    socket: OwnedFd,
}

/// Opens the socket, which needs CAP_NET_RAW and CAP_NET_ADMIN, and the table in force, which needs CAP_SYS_ADMIN.
/// Afterwards [`run`] needs neither.
///
/// # Errors
/// If the socket, or a map, is refused.
pub fn prepare(tagged: &Tagged) -> Result<Prepared<'_>, TaggerError> {
    tagged.table()?;
    let socket = open_socket(tagged.ifindex()).at(tagged.device(), "open the probes' socket")?;
    Ok(Prepared { tagged, socket })
}

/// Watches until `stop` returns true, then puts the table back as it was given. Places flows where `links` are given. Where
/// another process replaces the table meanwhile, a process without capabilities cannot open the new one: that is an error, and
/// whoever keeps the daemon starts it again.
///
/// # Errors
/// If a map is refused, or the socket fails.
pub fn run(
    prepared: &Prepared<'_>,
    base: &TaggingTable,
    paths: &Paths,
    settings: Settings,
    links: Option<Links>,
    stop: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(Notice),
) -> Result<(), TaggerError> {
    let Prepared { tagged, socket } = prepared;
    let start = Instant::now();
    let now_ns = || start.elapsed().as_nanos() as u64;
    let session = std::process::id() ^ tagged.ifindex() as u32;
    let mut watch = Watch {
        tagged,
        base,
        paths,
        socket,
        health: Health::new(settings, &paths.groups(), 0),
        placer: links.map(|links| Placer::new(tagged.mac(), links, session)),
        group: base.group.clone(),
        turns: vec![0; paths.sites()],
        session,
        looked_ns: 0,
        seen: BTreeMap::new(),
        talking: Vec::new(),
    };
    let mut next_look = start;
    while !stop() {
        let due_ns = watch.health.due_ns().into_iter().chain(watch.placer.as_ref().map(Placer::due_ns)).min();
        let due = due_ns.map_or(NAP, |due_ns| Duration::from_nanos(due_ns.saturating_sub(now_ns())));
        watch.wait(due.min(NAP)).at(tagged.device(), "wait for replies")?;
        watch.hear(&now_ns).at(tagged.device(), "read replies")?;
        watch.carry_out(tell)?;
        while let Some(probe) = watch.health.poll_probe(now_ns()) {
            watch.send(probe.path, probe.sequence, now_ns()).at(tagged.device(), "send a probe")?;
        }
        watch.carry_out(tell)?;
        watch.place(now_ns())?;
        if Instant::now() >= next_look {
            watch.look(now_ns())?;
            next_look = Instant::now() + LOOK;
        }
    }
    let routes = paths.reroute(base, |_| true);
    tagged.set_routes(routes.iter().map(|(mac, route)| (*mac, route))).map(drop)
}

struct Watch<'a> {
    tagged: &'a Tagged,
    base: &'a TaggingTable,
    paths: &'a Paths,
    socket: &'a OwnedFd,
    health: Health,
    placer: Option<Placer>,
    /// Where broadcasts go, by the table in force when it was looked at last.
    group: Option<Route>,
    /// How often each switch's target was replaced.
    turns: Vec<usize>,
    session: u32,
    /// When there was no reply waiting.
    looked_ns: u64,
    /// Frames counted for each destination.
    seen: BTreeMap<Mac, u64>,
    /// Destinations that were sent to lately.
    talking: Vec<Mac>,
}

impl Watch<'_> {
    fn wait(&self, longest: Duration) -> io::Result<()> {
        let mut descriptors = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut descriptors, Some(TimeSpec::from_duration(longest)), Some(SigSet::empty())) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn hear(&mut self, now_ns: &dyn Fn() -> u64) -> io::Result<()> {
        let mut frame = [0; 512];
        loop {
            match recv(self.socket.as_raw_fd(), &mut frame, MsgFlags::MSG_DONTWAIT) {
                Ok(length) => match wire::read(self.tagged.mac(), &frame[..length]) {
                    Some(ProbeMessage::Reply(probe)) if probe.session == self.session => {
                        self.health.handle_reply(now_ns(), self.looked_ns, probe.path as usize, probe.sequence);
                    }
                    Some(ProbeMessage::Warning { from, vlan }) => {
                        self.paths.path(from, vlan).into_iter().for_each(|path| self.health.handle_warning(path));
                    }
                    Some(ProbeMessage::Flows { from, flows }) => {
                        if let Some(placer) = &mut self.placer {
                            placer.handle_flows(now_ns(), from, flows);
                        }
                    }
                    Some(ProbeMessage::Reply(_)) | None => {}
                },
                Err(nix::Error::EAGAIN) => {
                    self.looked_ns = now_ns();
                    return Ok(());
                }
                // The device went down; it may come up again.
                Err(nix::Error::ENETDOWN | nix::Error::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A probe that cannot be sent is a lost one, unless there is no device any more: one that comes again under its name
    /// is another, with programs still to be hung.
    fn send(&self, path: usize, sequence: u32, sent_ns: u64) -> io::Result<()> {
        let (vlan, site) = self.paths.describe(path);
        let own = self.tagged.mac();
        let target = self.paths.target(own, site, self.turns[site]);
        let probe = ProbeFields { vlan, session: self.session, path: path as u32, sequence, sent_ns };
        self.emit(&wire::request(own, target, &probe))
    }

    fn emit(&self, frame: &[u8]) -> io::Result<()> {
        match nix::sys::socket::send(self.socket.as_raw_fd(), frame, MsgFlags::MSG_DONTWAIT) {
            Err(error @ (nix::Error::ENXIO | nix::Error::ENODEV)) => Err(error.into()),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Carries changed verdicts out. A switch none of whose paths answers may just have a dead target: another is asked.
    fn carry_out(&mut self, tell: &mut dyn FnMut(Notice)) -> Result<(), TaggerError> {
        let (mut changed, mut failed) = (Vec::new(), BTreeSet::new());
        while let Some(change) = self.health.poll_change() {
            let (vlan, site) = self.paths.describe(change.path);
            let toward = self.paths.target(self.tagged.mac(), site, self.turns[site]);
            changed.push(Notice { vlan, toward, verdict: change.verdict, moved: 0 });
            // Late is by comparison with this host's other paths.
            if matches!(change.verdict, Verdict::Sick(Why::Silent | Why::Lossy)) {
                failed.insert(change.path);
            }
            let mut of_site = self.paths.groups().into_iter().enumerate().filter(|(_, group)| *group == site);
            if change.verdict != Verdict::Healthy
                && of_site.all(|(path, _)| self.health.verdict(path) != Verdict::Healthy)
            {
                self.turns[site] += 1;
                self.health.forget_outstanding(site);
            }
        }
        let Some(last) = changed.len().checked_sub(1) else { return Ok(()) };
        let routes = self.routes();
        changed[last].moved = self.tagged.set_routes(routes.iter().map(|(mac, route)| (*mac, route)))?;
        self.warn(&failed, &routes).at(self.tagged.device(), "send a warning")?;
        changed.into_iter().for_each(tell);
        Ok(())
    }

    /// Where frames go by the verdicts there are.
    fn routes(&self) -> Vec<(Mac, Route)> {
        let fit = self.health.fit();
        self.paths.reroute(self.base, |path| fit[path])
    }

    /// Tells hosts that frames were sent to over paths that failed, by paths that did not: their frames come the same way, and
    /// both ends should leave it at once.
    fn warn(&self, failed: &BTreeSet<PathId>, routes: &[(Mac, Route)]) -> io::Result<()> {
        let hosts = routes.iter().filter(|(mac, _)| self.talking.contains(mac));
        let warnings = hosts.flat_map(|(mac, route)| {
            let sound = |path: &PathId| self.health.verdict(*path) == Verdict::Healthy;
            let by = self.paths.of_route(*mac, route).find(sound).map(|path| self.paths.describe(path).0);
            let sick = failed.iter().map(|path| self.paths.describe(*path).0);
            let sick = sick.filter(|vlan| self.paths.path(*mac, *vlan).is_some_and(|path| failed.contains(&path)));
            by.into_iter().flat_map(move |by| sick.clone().map(move |sick| (*mac, by, sick)))
        });
        for (mac, by, sick) in warnings.take(WARNED_MAX) {
            self.emit(&wire::warning(self.tagged.mac(), mac, by, sick))?;
        }
        Ok(())
    }

    /// Moves a flow and announces long flows, when either is due.
    fn place(&mut self, now_ns: u64) -> Result<(), TaggerError> {
        let Some(placer) = &mut self.placer else { return Ok(()) };
        if let Some(flows) = placer.look(self.tagged, now_ns)? {
            if let Some(group) = &self.group {
                let frame = wire::announcement(self.tagged.mac(), group.choices()[0], &flows);
                self.emit(&frame).at(self.tagged.device(), "announce flows")?;
            }
        }
        Ok(())
    }

    /// Finds the paths that carry traffic. A path that is to carry it again when it heals counts too.
    fn look(&mut self, now_ns: u64) -> Result<(), TaggerError> {
        let (table, sent) = self.tagged.destinations()?;
        if let Some(placer) = &mut self.placer {
            placer.set_routes(&table, &sent);
        }
        self.group.clone_from(&table.group);
        let mut active = vec![Activity::Idle; self.paths.groups().len()];
        self.talking.clear();
        for SentTo { mac, frames, .. } in sent {
            if self.seen.insert(mac, frames).is_some_and(|before| before == frames) {
                continue;
            }
            self.talking.push(mac);
            let routes = [table.destinations.get(&mac), self.base.destinations.get(&mac)];
            for path in routes.into_iter().flatten().flat_map(|route| self.paths.of_route(mac, route)) {
                active[path] = Activity::Active;
            }
        }
        for (path, activity) in active.into_iter().enumerate() {
            self.health.set_activity(now_ns, path, activity);
        }
        // Somebody may have replaced the table, and the verdicts with it.
        let healthy = |path| self.health.verdict(path) == Verdict::Healthy;
        if !(0..self.paths.groups().len()).all(healthy) {
            self.tagged.set_routes(self.routes().iter().map(|(mac, route)| (*mac, route)))?;
        }
        Ok(())
    }
}

fn open_socket(ifindex: i32) -> io::Result<OwnedFd> {
    // Protocol 0 hears nothing until it is bound, so no frame of another device slips in.
    let opened = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&opened, sockopt::Priority, &(PROBE_PRIORITY as i32))?;
    setsockopt(&opened, sockopt::RcvBufForce, &RECEIVE_BYTES)?;
    // SAFETY: all-zero bytes are a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = PROBE_TYPE.to_be();
    address.sll_ifindex = ifindex;
    // SAFETY: the address is live and has the size that is told.
    let bound = unsafe {
        libc::bind(opened.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as libc::socklen_t)
    };
    if bound < 0 { Err(io::Error::last_os_error()) } else { Ok(opened) }
}
