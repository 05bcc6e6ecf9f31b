//! A kernel's bridge as an agent's data plane.

use std::{
    io,
    os::fd::{AsRawFd, RawFd},
    time::{Duration, Instant},
};

use crate::{
    agent::{
        Change, Config, Counters, DataPlane, Facts, LacpSensor, Limits, PortFacts, PortKind, PortSensor, Refused,
        Sensors, StpPortSensor, StpSensor,
    },
    lldp::{Announcement, Neighbourhood, Sighting, Transmitter, bridge_announcement},
};
use bridge_mib::{BridgePort, IfStatus, LldpAdmin, StpState, index::FdbRow};
use fabric::{Model, VlanId};
use nix::errno::Errno;
use snmp::wire::ErrorStatus;

use super::error::SwitchdError;
use super::{
    events::{Doubts, Events},
    intent::{held_port, number, reconcile, static_row, wanted, wanted_options, wanted_port, wanted_static},
    kernel::{BridgeState, Kernel, Links, NotChanged, Subject},
    links::{DeviceRole, Link},
};
use linux_net::packet::{NeighbourProtocol, NeighbourSocket, wait};

/// How long counters may be old.
const COUNTERS_AGE_MAX: Duration = Duration::from_secs(1);
/// How long devices that have changed may go unread.
const LINKS_AGE_MAX: Duration = Duration::from_millis(100);
/// How many announcements may be lost before a neighbour counts as gone.
const LLDP_HOLD: u16 = 4;

/// The bridge, its ports, and what is heard there.
pub(super) struct Plane {
    bridge: String,
    facts: Facts,
    kernel: Kernel,
    /// What the kernel holds, as far as it is known.
    held: BridgeState,
    links: Links,
    socket: NeighbourSocket,
    events: Events,
    /// What of it somebody else may have changed.
    doubts: Doubts,
    neighbourhood: Neighbourhood,
    transmitter: Transmitter,
    lldp: Vec<LldpAdmin>,
    name: Vec<u8>,
    interval_s: u16,
    now_ms: u64,
    up_cs: u32,
    changed_cs: Vec<u32>,
    read_at: Option<Instant>,
    links_at: Instant,
    links_changed: bool,
}

/// The hardware, as the kernel names it.
///
/// # Errors
/// [`SwitchdError::Unsupported`] for a bridge without ports; as [`Kernel::open`].
pub(super) fn facts(bridge: &str, kernel: &mut Kernel) -> Result<Facts, SwitchdError> {
    let links = kernel.links()?;
    if links.ports.is_empty() {
        return Err(SwitchdError::Unsupported(format!("{bridge} has no ports: ip link set dev eth1 master {bridge}")));
    }
    let port =
        |link: &Link| PortFacts { name: link.name.clone(), if_index: link.index, mac: link.mac, kind: PortKind::Own };
    let model = Model::by_name("linux-bridge").unwrap_or_else(Model::generic);
    Ok(Facts {
        description: format!("Linux bridge {bridge}, by espalier switchd {}", env!("CARGO_PKG_VERSION")),
        address: links.device.mac,
        ports: links.ports.iter().map(port).collect(),
        limits: Limits::of(&model),
    })
}

impl Plane {
    /// Opens what needs rights; the bridge is not touched.
    ///
    /// # Errors
    /// If there is no such bridge any more, or packet sockets are not allowed.
    pub(super) fn new(
        bridge: &str,
        mut kernel: Kernel,
        facts: &Facts,
        config: &Config,
        interval_s: u16,
    ) -> Result<Self, SwitchdError> {
        let socket = |source| SwitchdError::Io {
            operation: "serve",
            device: bridge.to_owned(),
            step: "open LLDP's socket",
            source,
        };
        // Listened to before the first look, so that nothing happens in between.
        let events = Events::open(kernel.index()).map_err(socket)?;
        let mut plane = Self {
            bridge: bridge.to_owned(),
            facts: facts.clone(),
            held: kernel.read()?,
            links: kernel.links()?,
            kernel,
            socket: NeighbourSocket::open(NeighbourProtocol::Lldp).map_err(socket)?,
            events,
            doubts: Doubts::default(),
            neighbourhood: Neighbourhood::default(),
            transmitter: Transmitter::new(facts.ports.len(), u64::from(interval_s) * 1000),
            lldp: config.ports.iter().map(|port| port.lldp).collect(),
            name: config.name.clone(),
            interval_s,
            now_ms: 0,
            up_cs: 0,
            changed_cs: vec![0; facts.ports.len()],
            read_at: None,
            links_at: Instant::now(),
            links_changed: false,
        };
        for number in (0..plane.facts.ports.len()).filter(|number| plane.runs(*number)).collect::<Vec<_>>() {
            plane.transmitter.handle_link_up(0, number);
        }
        Ok(plane)
    }

    /// Waits until something is there to do; whether `udp` can be read.
    pub(super) fn wait(&self, udp: RawFd, time: Duration) -> io::Result<bool> {
        let [udp, ..] = wait([udp, self.socket.as_raw_fd(), self.events.as_raw_fd()], time)?;
        Ok(udp)
    }

    /// Does what there is to do on the ports.
    pub(super) fn poll(&mut self, now_ms: u64, up_cs: u32) -> io::Result<()> {
        (self.now_ms, self.up_cs) = (now_ms, up_cs);
        self.listen();
        // A manager that opens hundreds of ports one by one makes as many events.
        if self.links_changed && self.links_at.elapsed() >= LINKS_AGE_MAX {
            if let Ok(links) = self.kernel.links() {
                self.take_links(links);
            }
        }
        while let Some(heard) = self.socket.receive()? {
            let port = self.facts.ports.iter().position(|port| port.if_index == heard.ifindex);
            let listens = |port: &usize| matches!(self.lldp[*port], LldpAdmin::RxOnly | LldpAdmin::TxAndRx);
            if let (Some(port), Ok(said)) = (port.filter(listens), Announcement::decode(&heard.octets)) {
                if self.neighbourhood.handle_announcement(now_ms, up_cs, port as u32 + 1, said) == Sighting::New {
                    self.transmitter.handle_neighbour(now_ms, port);
                }
            }
        }
        self.neighbourhood.handle_tick(now_ms, up_cs);
        for number in self.transmitter.poll_due(now_ms) {
            if matches!(self.lldp[number], LldpAdmin::TxOnly | LldpAdmin::TxAndRx) {
                let port = &self.facts.ports[number];
                let (chassis, about) = (self.facts.address.octets(), self.facts.description.as_bytes());
                let alias = held_port(&self.held, port.if_index).alias.into_bytes();
                let ttl_s = self.interval_s.saturating_mul(LLDP_HOLD);
                let said = bridge_announcement(chassis, &self.name, about, &port.name, &alias, ttl_s);
                self.socket.send(port.if_index, port.mac, &said.encode())?;
            }
        }
        Ok(())
    }

    /// Takes in what the kernel has told since.
    fn listen(&mut self) {
        let told = self.events.hear(&self.held.statics);
        if told.ports {
            self.read_at = None;
            self.links_changed = true;
        }
        self.doubts.extend(told);
    }

    fn link(&self, number: usize) -> Option<&Link> {
        let index = self.facts.ports[number].if_index;
        self.links.ports.binary_search_by_key(&index, |link| link.index).ok().map(|at| &self.links.ports[at])
    }

    fn runs(&self, number: usize) -> bool {
        self.link(number).is_some_and(|link| link.runs)
    }

    fn take_links(&mut self, links: Links) {
        let before: Vec<bool> = (0..self.facts.ports.len()).map(|number| self.runs(number)).collect();
        self.links = links;
        (self.links_at, self.links_changed) = (Instant::now(), false);
        for (number, ran) in before.into_iter().enumerate() {
            if self.runs(number) != ran {
                self.changed_cs[number] = self.up_cs;
                if ran {
                    self.neighbourhood.handle_down(self.up_cs, number as u32 + 1);
                    self.transmitter.handle_link_down(number);
                } else {
                    self.transmitter.handle_link_up(self.now_ms, number);
                }
            }
        }
    }

    fn read(&mut self, sensors: &mut Sensors) -> Result<(), SwitchdError> {
        let links = self.kernel.links()?;
        self.take_links(links);
        sensors.ports = (0..self.facts.ports.len()).map(|number| self.port_sensor(number)).collect();
        sensors.learned = (self.kernel.learned()?.into_iter())
            .filter_map(|((vlan, mac), port)| {
                Some((FdbRow { fdb: u32::from(vlan.get()), mac }, number(&self.facts, port)?))
            })
            .collect();
        let bridge = &self.links.bridge;
        sensors.stp = StpSensor {
            root: bridge.root,
            root_cost: bridge.root_cost,
            root_port: u32::from(bridge.root_port),
            max_age_cs: bridge.max_age_cs,
            hello_cs: bridge.hello_cs,
            forward_delay_cs: bridge.forward_delay_cs,
            changes: 0,
            changed_cs: 0,
        };
        Ok(())
    }

    fn port_sensor(&mut self, number: usize) -> PortSensor {
        let Some(link) = self.link(number).cloned() else {
            return PortSensor { oper: IfStatus::Down, changed_cs: self.changed_cs[number], ..PortSensor::default() };
        };
        let tree = match link.kind {
            DeviceRole::Port(tree) => tree,
            DeviceRole::Bridge(_) | DeviceRole::Other => Default::default(),
        };
        let paused = held_port(&self.held, link.index).pause.and_then(|_| self.kernel.pause(link.index));
        let traffic = link.traffic;
        let [in_pause, out_pause] = paused.map_or([0; 2], |pause| pause.frames);
        let counters = Counters {
            in_octets: traffic.octets[0],
            in_unicast: traffic.frames[0].saturating_sub(traffic.multicast),
            in_multicast: traffic.multicast,
            in_discards: traffic.dropped[0],
            in_errors: traffic.errors[0],
            out_octets: traffic.octets[1],
            out_frames: traffic.frames[1],
            out_discards: traffic.dropped[1],
            out_errors: traffic.errors[1],
            in_pause,
            out_pause,
            ..Counters::default()
        };
        PortSensor {
            oper: if link.runs { IfStatus::Up } else { IfStatus::Down },
            changed_cs: self.changed_cs[number],
            speed_bps: speed_bps(&link.name),
            mtu_bytes: link.mtu_bytes,
            counters,
            pause: paused.map(|pause| pause.mode),
            stp: StpPortSensor {
                state: match tree.state {
                    1 => StpState::Listening,
                    2 => StpState::Learning,
                    3 => StpState::Forwarding,
                    4 => StpState::Blocking,
                    _ => StpState::Disabled,
                },
                cost: tree.cost,
                designated_root: tree.root,
                designated_cost: u32::from(tree.designated_cost),
                designated_bridge: tree.bridge,
                designated_port: tree.designated_port.to_be_bytes(),
                forward_transitions: 0,
            },
            lacp: LacpSensor::default(),
        }
    }

    fn carry_out(&mut self, config: &Config, changes: &[Change]) -> Result<(), NotChanged> {
        self.name.clone_from(&config.name);
        self.lldp = config.ports.iter().map(|port| port.lldp).collect();
        let (before, after) = self.difference(config, changes);
        self.kernel.change(&before, &after)?;
        self.held.ports.extend(after.ports);
        for row in before.statics.keys() {
            self.held.statics.remove(row);
        }
        self.held.statics.extend(after.statics);
        (self.held.stp, self.held.stp_priority, self.held.ageing_s) = (after.stp, after.stp_priority, after.ageing_s);
        Ok(())
    }

    /// What is held and what is wanted of everything that a change may touch. Hundreds of ports and thousands of entries
    /// are written one by one: only those are looked at.
    fn difference(&self, config: &Config, changes: &[Change]) -> (BridgeState, BridgeState) {
        if changes.contains(&Change::All) {
            return (self.held.clone(), wanted(&self.facts, config, &self.held));
        }
        let BridgeState { stp, stp_priority, ageing_s, .. } = self.held;
        let mut before = BridgeState { stp, stp_priority, ageing_s, ..BridgeState::default() };
        let mut after = wanted_options(config);
        let ports = self.facts.ports.len() as u32;
        for change in changes {
            let touched = match change {
                Change::Port(port) => port.0..=port.0,
                Change::Vlan(_) => 1..=ports,
                Change::Static(row) => {
                    let Some(vlan) = u16::try_from(row.fdb).ok().and_then(|id| VlanId::new(id).ok()) else { continue };
                    let key = (vlan, row.mac);
                    before.statics.extend(self.held.statics.get(&key).map(|port| (key, *port)));
                    after.statics.extend(wanted_static(&self.facts, config, row));
                    continue;
                }
                Change::All | Change::Bridge => continue,
            };
            for number in touched {
                let index = self.facts.ports[number as usize - 1].if_index;
                let held = before.ports.entry(index).or_insert_with(|| held_port(&self.held, index));
                after.ports.entry(index).or_insert_with(|| wanted_port(config, number, held));
            }
        }
        (before, after)
    }
}

impl DataPlane for Plane {
    fn found(&mut self, config: &Config) -> Option<Config> {
        self.listen();
        if !self.doubts.any() {
            return None;
        }
        // What cannot be read now stays in doubt.
        let ports = if self.doubts.ports { Some(self.kernel.read_ports().ok()?) } else { None };
        let of = ports.as_ref().unwrap_or(&self.held);
        let statics = if self.doubts.statics { Some(self.kernel.read_statics(of).ok()?) } else { None };
        self.doubts = Doubts::default();
        let mut changed = false;
        if let Some(mut ports) = ports {
            // What a card does about PAUSE may have been negotiated, and is told apart from what it was told to do.
            for (index, port) in &mut ports.ports {
                port.pause = self.held.ports.get(index).map_or(port.pause, |held| held.pause);
            }
            let statics = std::mem::take(&mut self.held.statics);
            changed |= ports != self.held;
            self.held = BridgeState { statics, ..ports };
        }
        if let Some(statics) = statics {
            changed |= statics != self.held.statics;
            self.held.statics = statics;
        }
        if !changed {
            return None;
        }
        let found = reconcile(config, &self.facts, &self.held);
        (found != *config).then_some(found)
    }

    fn observe(&mut self, _: u32, sensors: &mut Sensors) {
        sensors.neighbours.clone_from(self.neighbourhood.table());
        if self.read_at.is_some_and(|at| at.elapsed() < COUNTERS_AGE_MAX) {
            return;
        }
        self.read_at = Some(Instant::now());
        // Counters that cannot be read stay as they were.
        let _ = self.read(sensors);
    }

    fn apply(&mut self, config: &Config, changes: &[Change]) -> Result<(), Refused> {
        self.carry_out(config, changes).map_err(|error| {
            // Whatever has been done of it, the next change begins from what the kernel holds.
            if let Ok(held) = self.kernel.read() {
                self.held = held;
            }
            let refused = self.refused(&error);
            // Whoever read standard error may be gone; the bridge is served all the same.
            let words = format!("espalier: serve {}: {refused}\n", self.bridge);
            let _ = io::Write::write_all(&mut io::stderr().lock(), words.as_bytes());
            refused
        })
    }
}

impl Plane {
    /// A refusal of the kernel's as an agent's: what it was about, and which status says so.
    fn refused(&self, error: &NotChanged) -> Refused {
        let name = |index: u32| match number(&self.facts, index) {
            Some(number) => self.facts.ports[number as usize - 1].name.clone(),
            None => format!("device {index}"),
        };
        let port = |index: u32| number(&self.facts, index).map(|number| Change::Port(BridgePort(number)));
        let (what, change) = match error.subject {
            Subject::Bridge => ("the bridge".to_owned(), Some(Change::Bridge)),
            Subject::Port(index) => (format!("port {}", name(index)), port(index)),
            Subject::Vlan(index, vlan) => (format!("VLAN {vlan} of port {}", name(index)), Some(Change::Vlan(vlan))),
            Subject::Pause(index) => (format!("PAUSE of port {}", name(index)), port(index)),
            Subject::Static(row, index) => (
                format!("static entry {} in VLAN {} toward port {}", row.1, row.0, name(index)),
                Some(Change::Static(static_row(row))),
            ),
        };
        let words = if error.words.is_empty() { String::new() } else { format!(" ({})", error.words) };
        Refused { why: format!("{what}: {}{words}", error.errno.desc()), status: status(error.errno), change }
    }
}

/// What RFC 3416 (4.2.5) calls the kernel's refusals.
fn status(errno: Errno) -> ErrorStatus {
    match errno {
        // No room in a table, for now or for good.
        Errno::ENOSPC | Errno::ENOMEM | Errno::ENOBUFS | Errno::E2BIG | Errno::EMFILE => {
            ErrorStatus::ResourceUnavailable
        }
        // It cannot be together with what is there: an entry toward a port that is no member, one that exists already.
        Errno::EINVAL | Errno::EEXIST | Errno::ENOENT | Errno::EBUSY | Errno::ERANGE => ErrorStatus::InconsistentValue,
        // The driver has no such thing.
        Errno::EOPNOTSUPP => ErrorStatus::NotWritable,
        // The device is gone.
        Errno::ENODEV | Errno::ENXIO => ErrorStatus::InconsistentName,
        Errno::EPERM | Errno::EACCES => ErrorStatus::NoAccess,
        _ => ErrorStatus::CommitFailed,
    }
}

fn speed_bps(device: &str) -> u64 {
    let megabits = std::fs::read_to_string(format!("/sys/class/net/{device}/speed")).ok();
    megabits.and_then(|text| text.trim().parse::<u64>().ok()).map_or(10_000_000_000, |megabits| megabits * 1_000_000)
}
