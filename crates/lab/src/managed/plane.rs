//! The eBPF switch as an agent's data plane: what managers write goes into its tables, what its ports hear goes to
//! spanning tree and LLDP, and what those decide goes back into the tables.
//!
//! Plugs are moved and cables break while it runs: whenever devices change, it reads the lab's layout again if that has
//! changed, and takes a link that was down in between for one that went down, even if it never saw it so.
//!
//! A LAG is a port without a device. It runs while LACP has a member of it in use, spanning tree governs it, and BPDUs go by
//! its members; LLDP speaks on the members.

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    time::{Duration, Instant},
};

use bridge_mib::{
    AcceptableFrames, Enabled, IfStatus, LldpAdmin, StpState,
    index::{FdbRow, PortVlan, VlanIndex},
};
use fabric::VlanId;
use switchd::{
    agent::{
        Change, Config, Counters, DataPlane, Facts, LacpSensor, PortConfig, PortKind, PortSensor, Refused, Sensors,
        StpPortSensor, StpSensor, VlanConfig, bridge_id,
    },
    lldp::{Announcement, Neighbourhood, Sighting, Transmitter, bridge_announcement},
    stp::{Bpdu, Bridge, Effect, Link, Timers},
};

use crate::{
    LabError,
    directory::Current,
    ebpf::{
        Tables,
        lag::{LagSite, LagTables, lags},
    },
    lag::spoken_by_switch,
    layout::{Cable, Layout, SwitchSite},
    shaper::port_mtu_bytes,
    speaker::Speaker,
    status::queue_drops,
    table::{LagPart, Learning, Members, PORT_IFINDEX_BASE, PortEntry, Relay, Service},
    tool::{Batch, BatchOrigin, run_batch},
};
use linux_net::{
    links,
    packet::{NeighbourProtocol, NeighbourSocket, drain, link_events, wait},
};

/// How often a device announces itself, and for how long that holds.
const LLDP_INTERVAL_MS: u64 = 1000;
const LLDP_TTL_S: u16 = 4;
/// How long counters may be old: short, so that a storm shows within the time that a deployment watches.
const COUNTERS_AGE_MAX: Duration = Duration::from_millis(40);
/// How long queues' counters, which take a process to read, may be old.
const QUEUES_AGE_MAX: Duration = Duration::from_secs(2);
/// Bytes of a frame that its counters leave out: the check sequence.
const CHECK_BYTES: u64 = 4;

/// One switch of a lab.
pub(super) struct Plane {
    tables: Tables,
    /// The lab's layout, which others change.
    current: Current,
    /// The switch's position in it.
    switch: usize,
    site: SwitchSite,
    /// `down_cables[port]`: whether there is a cable that is broken so that it has no carrier.
    down_cables: Vec<bool>,
    facts: Facts,
    /// The VLAN in which the switch itself takes part, by a port behind those that people know.
    own_vlan: Option<VlanId>,
    rates: Vec<u64>,
    /// `mtus_bytes[port]`: the largest packet, as the device of the port has it.
    mtus_bytes: Vec<u32>,
    stp: Bridge,
    neighbourhood: Neighbourhood,
    stp_socket: NeighbourSocket,
    lldp_socket: NeighbourSocket,
    lags: Vec<LagSite>,
    /// Speaks for `lags`, in the same order.
    speaker: Speaker,
    lag_tables: LagTables,
    events: OwnedFd,
    ports: Vec<PortConfig>,
    name: Vec<u8>,
    ageing_s: u32,
    stp_priority: u16,
    running: Vec<bool>,
    /// `seen[port]`: how often a plug was moved there, and how often its device had lost its carrier, at the last look.
    seen: Vec<(u32, u32)>,
    changed_cs: Vec<u32>,
    transmitter: Transmitter,
    now_ms: u64,
    up_cs: u32,
    read_at: Option<Instant>,
    queues_at: Option<Instant>,
    queue_drops: BTreeMap<String, u64>,
}

/// What can be read.
pub(super) struct Ready {
    pub(super) udp: bool,
}

impl Plane {
    /// The ports of a switch, in whose namespace the calling thread is.
    pub(super) fn new(
        layout: &Layout,
        switch: usize,
        facts: &Facts,
        config: &Config,
        (tables, lag_tables): (Tables, LagTables),
    ) -> io::Result<Self> {
        let site = &layout.switches[switch];
        let (rates, down_cables) = cables(layout, switch);
        let count = facts.ports.len();
        let ports = stp_ports(&config.ports, &rates);
        let id = bridge_id(config.stp_priority, facts.address);
        let mut plane = Self {
            tables,
            current: Current::of(&layout.name),
            switch,
            rates,
            down_cables,
            mtus_bytes: vec![u32::from(port_mtu_bytes(layout.mtu_bytes())); count],
            stp: Bridge::new(id, &ports, Timers::SHORT, 0),
            neighbourhood: Neighbourhood::default(),
            stp_socket: NeighbourSocket::open(NeighbourProtocol::Stp)?,
            lldp_socket: NeighbourSocket::open(NeighbourProtocol::Lldp)?,
            lags: lags(site),
            speaker: Speaker::open(spoken_by_switch(site, switch))?,
            lag_tables,
            events: link_events()?,
            ports: config.ports.clone(),
            name: config.name.clone(),
            ageing_s: config.ageing_s,
            stp_priority: config.stp_priority,
            running: vec![false; count],
            seen: vec![(0, 0); count],
            changed_cs: vec![0; count],
            transmitter: Transmitter::new(count, LLDP_INTERVAL_MS),
            now_ms: 0,
            up_cs: 0,
            read_at: None,
            queues_at: None,
            queue_drops: BTreeMap::new(),
            facts: facts.clone(),
            own_vlan: (layout.management.as_ref())
                .and_then(|management| management.in_band.as_ref())
                .and_then(|in_band| VlanId::new(in_band.vlan).ok()),
            site: site.clone(),
        };
        plane.look_at_links()?;
        Ok(plane)
    }

    /// Waits until something is there to do; whether `udp` can be read.
    pub(super) fn wait(&self, udp: RawFd, time: Duration) -> io::Result<Ready> {
        let [stp, lldp] = [&self.stp_socket, &self.lldp_socket].map(AsRawFd::as_raw_fd);
        let fds = [udp, stp, lldp, self.speaker.as_raw_fd(), self.events.as_raw_fd()];
        let [udp, ..] = wait(fds, time)?;
        Ok(Ready { udp })
    }

    /// Does what there is to do on the ports.
    pub(super) fn poll(&mut self, now_ms: u64, up_cs: u32) -> io::Result<()> {
        (self.now_ms, self.up_cs) = (now_ms, up_cs);
        if drain(&self.events) {
            self.look_at_links()?;
        }
        self.speak_lacp()?;
        while let Some(heard) = self.stp_socket.receive()? {
            let port = self.port_of(heard.ifindex).and_then(|port| self.entered_by(port));
            if let (Some(port), Ok(bpdu)) = (port, Bpdu::decode(&heard.octets)) {
                let effects = self.stp.handle_bpdu(now_ms, port, &bpdu);
                self.perform(effects)?;
            }
        }
        while let Some(heard) = self.lldp_socket.receive()? {
            let listens = |port: &usize| matches!(self.ports[*port].lldp, LldpAdmin::RxOnly | LldpAdmin::TxAndRx);
            let port = self.port_of(heard.ifindex).filter(listens);
            if let (Some(port), Ok(said)) = (port, Announcement::decode(&heard.octets)) {
                if self.neighbourhood.handle_announcement(now_ms, up_cs, port as u32 + 1, said) == Sighting::New {
                    self.transmitter.handle_neighbour(now_ms, port);
                }
            }
        }
        // What was heard comes before what was not.
        let effects = self.stp.handle_tick(now_ms);
        self.perform(effects)?;
        self.neighbourhood.handle_tick(now_ms, up_cs);
        for number in self.transmitter.poll_due(now_ms) {
            self.announce(number)?;
        }
        Ok(())
    }

    /// `running[port]`: whether each port has a carrier.
    pub(super) fn running(&self) -> &[bool] {
        &self.running
    }

    fn announce(&self, number: usize) -> io::Result<()> {
        let (port, config) = (&self.facts.ports[number], &self.ports[number]);
        if !matches!(config.lldp, LldpAdmin::TxOnly | LldpAdmin::TxAndRx) {
            return Ok(());
        }
        let description = self.facts.description.as_bytes();
        let chassis = self.facts.address.octets();
        let said = bridge_announcement(chassis, &self.name, description, &port.name, &config.alias, LLDP_TTL_S);
        self.lldp_socket.send(port.if_index, port.mac, &said.encode())
    }

    fn port_of(&self, ifindex: u32) -> Option<usize> {
        let number = ifindex.checked_sub(PORT_IFINDEX_BASE)? as usize;
        (number < self.ports.len()).then_some(number)
    }

    /// The bridge port that a BPDU has come in by: the LAG of a member that collects; none for a member that does not.
    fn entered_by(&self, port: usize) -> Option<usize> {
        match self.place_in_lag(port) {
            None => Some(port),
            Some((lag, member)) => self.speaker.uses(lag)[member].collects.then_some(self.lags[lag].port),
        }
    }

    /// The port by whose device the switch's own frames leave a bridge port: a member of a LAG that distributes, if any does.
    fn leaves_by(&self, port: usize) -> Option<usize> {
        let Some(lag) = self.lags.iter().position(|lag| lag.port == port) else { return Some(port) };
        let member = self.speaker.uses(lag).iter().position(|of| of.distributes)?;
        Some(self.lags[lag].members[member])
    }

    /// The LAG that a port is a member of, and which member, by their positions.
    fn place_in_lag(&self, port: usize) -> Option<(usize, usize)> {
        let member = |lag: &LagSite| lag.members.iter().position(|member| *member == port);
        self.lags.iter().enumerate().find_map(|(number, lag)| Some((number, member(lag)?)))
    }

    /// Whether a port is administratively up, and its LAG where it is a member of one.
    fn is_up(&self, number: usize) -> bool {
        let lag = self.site.ports[number].lag.unwrap_or(number);
        [number, lag].iter().all(|port| self.ports[*port].admin == IfStatus::Up)
    }

    /// Hears and speaks LACP, and has LAGs run while they have members in use.
    fn speak_lacp(&mut self) -> io::Result<()> {
        let (tables, lags) = (&self.lag_tables, &self.lags);
        let mut changed = Vec::new();
        self.speaker.poll(self.now_ms, &mut |lag, uses| {
            changed.push((lags[lag].port, uses.iter().any(|of| of.distributes)));
            tables.set(&lags[lag], uses).map_err(io::Error::other)
        })?;
        for (port, running) in changed {
            match (std::mem::replace(&mut self.running[port], running), running) {
                (true, false) => self.link_down(port)?,
                (false, true) => self.link_up(port),
                _ => {}
            }
            self.govern(port)?;
        }
        Ok(())
    }

    /// Which cables carry, and which have not carried in between.
    fn look_at_links(&mut self) -> io::Result<()> {
        self.look_at_cables()?;
        let links = links::dump()?;
        let raised: Vec<bool> = (0..self.ports.len()).map(|number| self.is_up(number)).collect();
        self.speaker.handle_links(self.now_ms, &links, &|lag, member| raised[self.lags[lag].members[member]]);
        self.speak_lacp()?;
        for number in 0..self.ports.len() {
            if self.facts.ports[number].kind == PortKind::Lag {
                continue;
            }
            let port = &self.site.ports[number];
            let link = port.device.as_deref().and_then(|device| links.get(device));
            let running = link.is_some_and(|link| link.running);
            if let Some(link) = link {
                self.mtus_bytes[number] = link.mtu_bytes;
            }
            let seen = (port.plugged, link.map_or(0, |link| link.downs));
            let ran = std::mem::replace(&mut self.running[number], running);
            if std::mem::replace(&mut self.seen[number], seen) != seen && ran && running {
                self.link_down(number)?;
                self.link_up(number);
            } else if ran && !running {
                self.link_down(number)?;
            } else if !ran && running {
                self.link_up(number);
            }
            self.govern(number)?;
        }
        Ok(())
    }

    fn link_down(&mut self, number: usize) -> io::Result<()> {
        self.changed_cs[number] = self.up_cs;
        self.neighbourhood.handle_down(self.up_cs, number as u32 + 1);
        self.transmitter.handle_link_down(number);
        self.tables.forget_at(number as u16).map_err(io::Error::other)?;
        let effects = self.stp.handle_link(self.now_ms, number, Link::Down);
        self.perform(effects)
    }

    fn link_up(&mut self, number: usize) {
        self.changed_cs[number] = self.up_cs;
        if self.facts.ports[number].kind != PortKind::Lag {
            self.transmitter.handle_link_up(self.now_ms, number);
        }
    }

    /// Takes over what others have done to the cables.
    fn look_at_cables(&mut self) -> io::Result<()> {
        let Some(layout) = self.current.changed() else { return Ok(()) };
        (self.rates, self.down_cables) = cables(&layout, self.switch);
        self.site.clone_from(&layout.switches[self.switch]);
        let id = bridge_id(self.stp_priority, self.facts.address);
        let effects = self.stp.handle_settings(self.now_ms, id, &stp_ports(&self.ports, &self.rates));
        self.perform(effects)
    }

    /// Tells spanning tree of a port.
    fn govern(&mut self, number: usize) -> io::Result<()> {
        let config = &self.ports[number];
        let is_member = self.site.ports[number].lag.is_some();
        let link = match (self.running[number] && config.admin == IfStatus::Up && !is_member, config.stp) {
            (false, _) => Link::Down,
            (true, Enabled::Yes) => Link::Governed,
            (true, Enabled::No) => Link::Free,
        };
        let effects = self.stp.handle_link(self.now_ms, number, link);
        self.perform(effects)
    }

    fn perform(&mut self, effects: Vec<Effect>) -> io::Result<()> {
        for effect in effects {
            match effect {
                Effect::Send(number, bpdu) => {
                    let Some(device) = self.leaves_by(number) else { continue };
                    let (port, device) = (&self.facts.ports[number], &self.facts.ports[device]);
                    self.stp_socket.send(device.if_index, port.mac, &bpdu.encode())?;
                }
                Effect::State(number, _) => self.write_port(number).map_err(io::Error::other)?,
                Effect::Forget => self.tables.forget().map_err(io::Error::other)?,
            }
        }
        Ok(())
    }

    fn write_port(&self, number: usize) -> Result<(), LabError> {
        let config = &self.ports[number];
        let governed = config.stp == Enabled::Yes;
        let state = self.stp.state(number);
        let learns = !governed || matches!(state, StpState::Learning | StpState::Forwarding);
        let entry = PortEntry {
            pvid: (config.frames == AcceptableFrames::All).then_some(config.pvid),
            service: if self.is_up(number) { Service::Up } else { Service::Down },
            relay: if governed && state != StpState::Forwarding { Relay::Block } else { Relay::Forward },
            learning: if learns { Learning::For { ageing_s: self.ageing_s } } else { Learning::Off },
            // The standard MIBs have no object for it.
            blocked_floods: fabric::FloodSet::NONE,
            part: match self.facts.ports[number].kind {
                PortKind::Own => LagPart::None,
                PortKind::Lag => LagPart::Lag,
                PortKind::Member { lag } => LagPart::Member(lag as u16 - 1),
            },
        };
        self.tables.set_port(number as u16, &entry)
    }

    fn write_vlan(&self, config: &Config, vlan: VlanId) -> Result<(), LabError> {
        let row = config.vlans.get(&VlanIndex(vlan)).filter(|_| config.is_active(vlan));
        let mut members = row.map(members);
        if let Some(members) = members.as_mut().filter(|_| self.own_vlan == Some(vlan)) {
            members.untagged.insert(self.ports.len() as u16);
        }
        self.tables.set_vlan(vlan, members.as_ref())
    }

    fn carry_out(&mut self, config: &Config, change: Change) -> Result<(), LabError> {
        match change {
            Change::All => {
                let vlan_of = |fdb: VlanId, mac| {
                    let row = bridge_mib::index::StaticRow { fdb: u32::from(fdb.get()), mac, receive_port: 0 };
                    config.statics.contains_key(&row)
                };
                self.tables.retain(|vlan| config.is_active(vlan), vlan_of)?;
                self.carry_out(config, Change::Bridge)?;
                for vlan in config.vlans.keys() {
                    self.write_vlan(config, vlan.0)?;
                }
                for row in config.statics.keys() {
                    self.carry_out(config, Change::Static(*row))?;
                }
                (1..=self.ports.len() as u32)
                    .try_for_each(|port| self.carry_out(config, Change::Port(bridge_mib::BridgePort(port))))
            }
            Change::Bridge => {
                self.name.clone_from(&config.name);
                self.stp_priority = config.stp_priority;
                let id = bridge_id(config.stp_priority, self.facts.address);
                let effects = self.stp.handle_settings(self.now_ms, id, &stp_ports(&config.ports, &self.rates));
                self.perform(effects).map_err(|error| self.error("speak", error))?;
                if std::mem::replace(&mut self.ageing_s, config.ageing_s) != config.ageing_s {
                    (0..self.ports.len()).try_for_each(|number| self.write_port(number))?;
                }
                Ok(())
            }
            Change::Vlan(vlan) => self.write_vlan(config, vlan),
            Change::Port(port) => {
                let number = port.0 as usize - 1;
                let old = std::mem::replace(&mut self.ports[number], config.ports[number].clone());
                if old.admin != self.ports[number].admin {
                    // A cable that breaks or is mended meanwhile would find the port half-way.
                    let _held = self.current.hold();
                    self.look_at_cables().map_err(|error| self.error("read the layout", error))?;
                    // The members of a LAG are shut with it.
                    let members = self.lags.iter().find(|lag| lag.port == number).map(|lag| lag.members.clone());
                    for device in members.into_iter().flatten().chain([number]) {
                        self.shut(device)?;
                        self.write_port(device)?;
                    }
                }
                if (old.stp_cost, old.stp_priority) != (self.ports[number].stp_cost, self.ports[number].stp_priority) {
                    self.carry_out(config, Change::Bridge)?;
                }
                self.govern(number).map_err(|error| self.error("speak", error))?;
                self.write_port(number)
            }
            Change::Static(row) => {
                let vlan = u16::try_from(row.fdb).ok().and_then(|id| VlanId::new(id).ok());
                let port = config.exit(&row).map(|port| port as u16 - 1);
                vlan.map_or(Ok(()), |vlan| self.tables.set_static(vlan, row.mac, port))
            }
        }
    }

    /// Raises the device of a port, or takes it down, as the port's configuration says. A broken cable stays down.
    fn shut(&self, number: usize) -> Result<(), LabError> {
        let Some(device) = &self.site.ports[number].device else { return Ok(()) };
        let raised = self.is_up(number) && !self.down_cables[number];
        let word = if raised { "up" } else { "down" };
        let script = format!("link set dev {device} {word}\n");
        let place = BatchOrigin { operation: "serve", device: &self.site.name, step: "shut port" };
        run_batch(&Batch { tool: "ip", namespace: None, script }, place)
    }

    fn error(&self, step: &'static str, source: io::Error) -> LabError {
        LabError::Io { operation: "serve", device: self.site.name.clone(), step, source }
    }

    fn read(&mut self, sensors: &mut Sensors) -> Result<(), LabError> {
        let count = self.ports.len();
        let (traffic, drops) = (self.tables.traffic()?, self.tables.drops(count)?);
        if self.queues_at.is_none_or(|at| at.elapsed() > QUEUES_AGE_MAX) {
            for (device, drops) in queue_drops(&self.site)? {
                // While a plug is moved its old device is gone and not yet counted.
                let known = self.queue_drops.entry(device).or_default();
                *known = drops.max(*known);
            }
            self.queues_at = Some(Instant::now());
        }
        let mut counters = vec![Counters::default(); count];
        sensors.vlan_frames.clear();
        for ((port, vlan), seen) in &traffic {
            let (Some(sum), Ok(vlan)) = (counters.get_mut(usize::from(*port)), VlanId::new(*vlan)) else { continue };
            let (multicast, broadcast) = (seen.flooded_multicast.unwrap_or(0), seen.flooded_broadcast.unwrap_or(0));
            sum.in_octets += seen.in_bytes + CHECK_BYTES * seen.in_frames;
            sum.in_multicast += multicast;
            sum.in_broadcast += broadcast;
            sum.in_unicast += seen.in_frames.saturating_sub(multicast + broadcast);
            sum.out_octets += seen.out_bytes + CHECK_BYTES * seen.out_frames;
            sum.out_frames += seen.out_frames;
            // Members are no bridge ports.
            if self.site.ports[usize::from(*port)].lag.is_none() {
                let row = PortVlan { port: u32::from(*port) + 1, vlan };
                sensors.vlan_frames.insert(row, [seen.in_frames, seen.out_frames]);
            }
        }
        for (number, (sum, drops)) in counters.iter_mut().zip(&drops).enumerate() {
            sum.in_discards = drops.values().sum();
            let device = self.site.ports[number].device.as_ref();
            sum.out_discards = device.and_then(|device| self.queue_drops.get(device).copied()).unwrap_or(0);
        }
        sensors.ports = (0..count).map(|number| self.port_sensor(number, counters[number])).collect();
        let learned = self.tables.learned()?;
        sensors.learned = (learned.into_iter())
            .map(|((vlan, mac), port)| (FdbRow { fdb: u32::from(vlan.get()), mac }, u32::from(port) + 1))
            .collect();
        Ok(())
    }

    fn port_sensor(&self, number: usize, counters: Counters) -> PortSensor {
        let claim = self.stp.claim(number);
        PortSensor {
            oper: if self.running[number] { IfStatus::Up } else { IfStatus::Down },
            changed_cs: self.changed_cs[number],
            speed_bps: self.speed_bps(number),
            mtu_bytes: self.mtus_bytes[number],
            counters,
            pause: None,
            stp: StpPortSensor {
                state: self.stp.state(number),
                cost: path_cost(self.rates[number]),
                designated_root: claim.root.to_be_bytes(),
                designated_cost: claim.cost,
                designated_bridge: claim.bridge.to_be_bytes(),
                designated_port: claim.port.to_be_bytes(),
                forward_transitions: self.stp.forward_transitions(number),
            },
            lacp: self.place_in_lag(number).map_or_else(LacpSensor::default, |(lag, member)| {
                let lag = self.speaker.lag(lag);
                LacpSensor { actor: lag.state(member), partner: lag.partner_state(member) }
            }),
        }
    }

    /// The capacity of a port; of a LAG, that of the members that distribute.
    fn speed_bps(&self, number: usize) -> u64 {
        let Some(lag) = self.lags.iter().position(|lag| lag.port == number) else { return self.rates[number] };
        let members = self.lags[lag].members.iter().zip(self.speaker.uses(lag));
        members.filter(|(_, of)| of.distributes).map(|(member, _)| self.rates[*member]).sum()
    }
}

impl DataPlane for Plane {
    fn observe(&mut self, up_cs: u32, sensors: &mut Sensors) {
        sensors.neighbours.clone_from(self.neighbourhood.table());
        for (number, port) in sensors.ports.iter_mut().enumerate().take(self.ports.len()) {
            port.oper = if self.running[number] { IfStatus::Up } else { IfStatus::Down };
            port.speed_bps = self.speed_bps(number);
        }
        if self.read_at.is_some_and(|at| at.elapsed() < COUNTERS_AGE_MAX) {
            return;
        }
        self.read_at = Some(Instant::now());
        // Counters that cannot be read stay as they were.
        let _ = self.read(sensors);
        let timers = self.stp.timers();
        let (changes, changed_ms) = self.stp.changes();
        sensors.stp = StpSensor {
            root: self.stp.root(),
            root_cost: self.stp.root_cost(),
            root_port: self.stp.root_port().map_or(0, |port| port as u32 + 1),
            max_age_cs: timers.max_age_ms / 10,
            hello_cs: timers.hello_ms / 10,
            forward_delay_cs: timers.forward_delay_ms / 10,
            changes,
            changed_cs: up_cs.saturating_sub((self.now_ms.saturating_sub(changed_ms) / 10) as u32),
        };
    }

    fn apply(&mut self, config: &Config, changes: &[Change]) -> Result<(), Refused> {
        changes
            .iter()
            .try_for_each(|change| self.carry_out(config, *change))
            .map_err(|error| Refused::commit_failed(error.to_string()))
    }
}

fn members(row: &VlanConfig) -> Members {
    let mut members = Members::default();
    for port in row.egress.iter() {
        let set = if row.untagged.contains(port) { &mut members.untagged } else { &mut members.tagged };
        set.insert(port as u16 - 1);
    }
    members
}

/// The rates of a switch's ports, of a LAG that of all members, and whether their cables are down.
fn cables(layout: &Layout, switch: usize) -> (Vec<u64>, Vec<bool>) {
    let site = &layout.switches[switch];
    let ends = layout.cables.iter().flat_map(|cable| [(&cable.a, cable), (&cable.b, cable)]);
    let cables: BTreeMap<u32, &Cable> =
        ends.filter(|(end, _)| end.namespace == site.namespace).map(|(end, cable)| (end.ifindex, cable)).collect();
    let ports = || (PORT_IFINDEX_BASE..).take(site.ports.len()).map(|ifindex| cables.get(&ifindex));
    let mut rates: Vec<u64> = ports().map(|cable| cable.map_or(layout.rate_bps, |cable| cable.rate_bps)).collect();
    for lag in lags(site) {
        rates[lag.port] = lag.members.iter().map(|member| rates[*member]).sum();
    }
    (rates, ports().map(|cable| cable.is_some_and(|cable| cable.is_down())).collect())
}

/// Identifiers and costs of ports in spanning tree.
fn stp_ports(ports: &[PortConfig], rates: &[u64]) -> Vec<(u16, u32)> {
    (1_u16..)
        .zip(ports.iter().zip(rates))
        .map(|(number, (port, rate_bps))| {
            let cost = port.stp_cost.unwrap_or_else(|| path_cost(*rate_bps));
            // Eight bits of priority, eight of number (IEEE 802.1D-1998, 8.5.5.1).
            (u16::from(port.stp_priority) << 8 | number & 0xff, cost)
        })
        .collect()
}

/// What a rate adds to a way (IEEE 802.1D-1998, table 8-5).
fn path_cost(rate_bps: u64) -> u32 {
    match rate_bps / 1_000_000 {
        0..=4 => 250,
        5..=10 => 100,
        11..=16 => 62,
        17..=100 => 19,
        101..=1000 => 4,
        1001..=10_000 => 2,
        _ => 1,
    }
}
