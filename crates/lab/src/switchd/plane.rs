//! A kernel's bridge as an agent's data plane.

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    time::{Duration, Instant},
};

use device::{
    agent::{
        Change, Config, Counters, DataPlane, Facts, Limits, PortFacts, PortSensor, Refused, Sensors, StaticConfig,
        StpPortSensor, StpSensor, VlanConfig, bridge_id,
    },
    lldp::{Announcement, Neighbourhood, bridge_announcement},
    mib::{
        AcceptableFrames, Enabled, IfStatus, LldpAdmin, PortList, RowStatus, StaticStatus, StpState,
        index::{FdbRow, StaticRow, VlanIndex},
    },
};
use fabric::{Mac, Model, VlanId};
use serde_json::Value;

use super::kernel::{self, Links, PortState, State, name};
use crate::{
    LabError,
    managed::wire::{Ears, Speech, drain, link_events, wait},
};

/// How long counters may be old: they take two processes to read.
const COUNTERS_AGE_MAX: Duration = Duration::from_secs(1);
/// How many announcements may be lost before a neighbour counts as gone.
const LLDP_HOLD: u16 = 4;

/// The bridge, its ports, and what is heard there.
pub(super) struct Plane {
    bridge: String,
    facts: Facts,
    /// What the kernel holds, as far as it is known.
    held: State,
    links: Links,
    ears: Ears,
    events: OwnedFd,
    neighbourhood: Neighbourhood,
    lldp: Vec<LldpAdmin>,
    name: Vec<u8>,
    interval_s: u16,
    announce_at_ms: u64,
    up_cs: u32,
    changed_cs: Vec<u32>,
    read_at: Option<Instant>,
}

/// The hardware, as the kernel names it.
///
/// # Errors
/// [`LabError::Unsupported`] for a bridge that is missing, does not filter, or has no ports.
pub(super) fn facts(bridge: &str) -> Result<Facts, LabError> {
    let links = kernel::links(bridge)?;
    if links.ports.is_empty() {
        return Err(LabError::Unsupported(format!("{bridge} has no ports: ip link set dev eth1 master {bridge}")));
    }
    let mac = |link: &Value| {
        let text = link["address"].as_str().unwrap_or_default();
        text.parse::<Mac>().map_err(|error| LabError::Unsupported(format!("{}: {text} is {error}", name(link))))
    };
    let port = |link: &Value| {
        let if_index = link["ifindex"].as_u64().unwrap_or(0) as u32;
        Ok(PortFacts { name: name(link), if_index, mac: mac(link)? })
    };
    let model = Model::by_name("linux-bridge").unwrap_or_else(Model::generic);
    Ok(Facts {
        description: format!("Linux bridge {bridge}, by espalier switchd {}", env!("CARGO_PKG_VERSION")),
        address: mac(&links.bridge)?,
        ports: links.ports.iter().map(port).collect::<Result<_, LabError>>()?,
        limits: Limits::of(&model),
    })
}

/// What the kernel holds, as a configuration; `named` is where names and what the kernel does not know come from.
///
/// # Errors
/// As [`kernel::read`].
pub(super) fn adopt(bridge: &str, facts: &Facts, named: &Config) -> Result<Config, LabError> {
    let held = kernel::read(bridge)?;
    let mut config = named.clone();
    (config.stp_priority, config.ageing_s) = (held.stp_priority, held.ageing_s.clamp(10, 1_000_000));
    let mut members: BTreeMap<VlanId, [PortList; 2]> = BTreeMap::new();
    let insert = |list: &mut PortList, number: u32| {
        *list = PortList::of(list.iter().chain([number])).unwrap_or_default();
    };
    for ((number, facts), port) in (1..).zip(&facts.ports).zip(&mut config.ports) {
        let held = held_port(&held, &facts.name);
        port.admin = if held.up { IfStatus::Up } else { IfStatus::Down };
        port.alias = held.alias.clone().into_bytes();
        match held.pvid {
            Some(pvid) => (port.pvid, port.frames) = (pvid, AcceptableFrames::All),
            None => (port.pvid, port.frames) = (VlanId::MIN, AcceptableFrames::OnlyTagged),
        }
        for (vlan, untagged) in held.vlans {
            let [egress, plain] = members.entry(vlan).or_default();
            insert(egress, number);
            if untagged {
                insert(plain, number);
            }
        }
    }
    let stp = if held.stp { Enabled::Yes } else { Enabled::No };
    config.ports.iter_mut().for_each(|port| port.stp = stp);
    // VLANs without ports exist here alone: their names may be marks.
    config.vlans.retain(|index, _| index.0 == VlanId::MIN || !members.contains_key(&index.0));
    let names: BTreeMap<VlanIndex, Vec<u8>> =
        named.vlans.iter().map(|(index, vlan)| (*index, vlan.name.clone())).collect();
    for vlan in config.vlans.values_mut() {
        (vlan.egress, vlan.untagged) = (PortList::new(), PortList::new());
    }
    for (vlan, [egress, untagged]) in members {
        let index = VlanIndex(vlan);
        let name = names.get(&index).cloned().unwrap_or_else(|| format!("v{vlan}").into_bytes());
        let (forbidden, status) = (PortList::new(), RowStatus::Active);
        config.vlans.insert(index, VlanConfig { name, egress, forbidden, untagged, status, created_cs: 0 });
    }
    let number = |name: &str| facts.ports.iter().position(|port| port.name == *name).map(|at| at as u32 + 1);
    config.statics = (held.statics.iter())
        .filter_map(|((vlan, mac), port)| {
            let row = StaticRow { fdb: u32::from(vlan.get()), mac: *mac, receive_port: 0 };
            let ports = PortList::of([number(port)?]).unwrap_or_default();
            Some((row, StaticConfig { ports, status: StaticStatus::Permanent }))
        })
        .collect();
    Ok(config)
}

fn held_port(held: &State, name: &str) -> PortState {
    held.ports.get(name).cloned().unwrap_or_default()
}

/// What the kernel is to hold.
fn wanted(facts: &Facts, config: &Config) -> State {
    let mut state = State {
        stp: config.ports.iter().any(|port| port.stp == Enabled::Yes),
        stp_priority: config.stp_priority,
        ageing_s: config.ageing_s,
        ..State::default()
    };
    for ((number, facts), port) in (1..).zip(&facts.ports).zip(&config.ports) {
        let mut vlans = BTreeMap::new();
        for (vlan, row) in config.active_vlans().filter(|(_, row)| row.egress.contains(number)) {
            vlans.insert(vlan, row.untagged.contains(number));
        }
        let pvid = Some(port.pvid).filter(|pvid| port.frames == AcceptableFrames::All && vlans.contains_key(pvid));
        let alias = String::from_utf8_lossy(&port.alias).into_owned();
        state.ports.insert(facts.name.clone(), PortState { up: port.admin == IfStatus::Up, alias, vlans, pvid });
    }
    for row in config.statics.keys() {
        if let Some((key, port)) = wanted_static(facts, config, row) {
            state.statics.insert(key, port);
        }
    }
    state
}

fn wanted_static(facts: &Facts, config: &Config, row: &StaticRow) -> Option<((VlanId, Mac), String)> {
    let vlan = u16::try_from(row.fdb).ok().and_then(|id| VlanId::new(id).ok())?;
    let port = facts.ports.get(config.exit(row)? as usize - 1)?;
    Some(((vlan, row.mac), port.name.clone()))
}

impl Plane {
    /// Opens what needs rights; the bridge is not touched.
    ///
    /// # Errors
    /// If there is no such bridge, or packet sockets are not allowed.
    pub(super) fn new(bridge: &str, facts: &Facts, config: &Config, interval_s: u16) -> Result<Self, LabError> {
        let socket =
            |source| LabError::Io { operation: "serve", device: bridge.to_owned(), step: "open LLDP's socket", source };
        Ok(Self {
            bridge: bridge.to_owned(),
            facts: facts.clone(),
            held: kernel::read(bridge)?,
            links: kernel::links(bridge)?,
            ears: Ears::open(Speech::Lldp).map_err(socket)?,
            events: link_events().map_err(socket)?,
            neighbourhood: Neighbourhood::default(),
            lldp: config.ports.iter().map(|port| port.lldp).collect(),
            name: config.name.clone(),
            interval_s,
            announce_at_ms: 0,
            up_cs: 0,
            changed_cs: vec![0; facts.ports.len()],
            read_at: None,
        })
    }

    /// Waits until something is there to do; whether `udp` can be read.
    pub(super) fn wait(&self, udp: RawFd, time: Duration) -> io::Result<bool> {
        let [udp, ..] = wait([udp, self.ears.as_raw_fd(), self.events.as_raw_fd()], time)?;
        Ok(udp)
    }

    /// Does what there is to do on the ports.
    pub(super) fn poll(&mut self, now_ms: u64, up_cs: u32) -> io::Result<()> {
        self.up_cs = up_cs;
        if drain(&self.events) {
            self.read_at = None;
            if let Ok(links) = kernel::links(&self.bridge) {
                self.take_links(links);
            }
        }
        while let Some(heard) = self.ears.hear()? {
            let port = self.facts.ports.iter().position(|port| port.if_index == heard.ifindex);
            let listens = |port: &usize| matches!(self.lldp[*port], LldpAdmin::RxOnly | LldpAdmin::TxAndRx);
            if let (Some(port), Ok(said)) = (port.filter(listens), Announcement::decode(&heard.octets)) {
                self.neighbourhood.handle_announcement(now_ms, up_cs, port as u32 + 1, said);
            }
        }
        self.neighbourhood.handle_tick(now_ms, up_cs);
        if now_ms >= self.announce_at_ms {
            self.announce_at_ms = now_ms + u64::from(self.interval_s) * 1000;
            for (number, port) in self.facts.ports.iter().enumerate() {
                if self.runs(number) && matches!(self.lldp[number], LldpAdmin::TxOnly | LldpAdmin::TxAndRx) {
                    let (chassis, about) = (self.facts.address.octets(), self.facts.description.as_bytes());
                    let alias = held_port(&self.held, &port.name).alias.into_bytes();
                    let ttl_s = self.interval_s.saturating_mul(LLDP_HOLD);
                    let said = bridge_announcement(chassis, &self.name, about, &port.name, &alias, ttl_s);
                    self.ears.say(port.if_index, port.mac, &said.encode())?;
                }
            }
        }
        Ok(())
    }

    fn link(&self, number: usize) -> Option<&Value> {
        self.links.ports.iter().find(|link| name(link) == self.facts.ports[number].name)
    }

    fn runs(&self, number: usize) -> bool {
        self.link(number).is_some_and(|link| link["operstate"] == "UP")
    }

    fn take_links(&mut self, links: Links) {
        let before: Vec<bool> = (0..self.facts.ports.len()).map(|number| self.runs(number)).collect();
        self.links = links;
        for (number, ran) in before.into_iter().enumerate() {
            if self.runs(number) != ran {
                self.changed_cs[number] = self.up_cs;
                if ran {
                    self.neighbourhood.handle_down(self.up_cs, number as u32 + 1);
                }
            }
        }
    }

    fn read(&mut self, sensors: &mut Sensors) -> Result<(), LabError> {
        let links = kernel::links(&self.bridge)?;
        self.take_links(links);
        sensors.ports = (0..self.facts.ports.len()).map(|number| self.port_sensor(number)).collect();
        let number = |name: &str| self.facts.ports.iter().position(|port| port.name == *name);
        sensors.learned = (kernel::learned(&self.bridge)?.into_iter())
            .filter_map(|((vlan, mac), port)| {
                Some((FdbRow { fdb: u32::from(vlan.get()), mac }, number(&port)? as u32 + 1))
            })
            .collect();
        let own = bridge_id(self.held.stp_priority, self.facts.address);
        let options = &self.links.bridge["linkinfo"]["info_data"];
        sensors.stp = StpSensor {
            root: options["root_id"].as_str().and_then(identifier).unwrap_or(own),
            root_cost: options["root_path_cost"].as_u64().unwrap_or(0) as u32,
            root_port: options["root_port"].as_u64().unwrap_or(0) as u32,
            max_age_cs: options["max_age"].as_u64().unwrap_or(2000) as u32,
            hello_cs: options["hello_time"].as_u64().unwrap_or(200) as u32,
            forward_delay_cs: options["forward_delay"].as_u64().unwrap_or(1500) as u32,
            changes: 0,
            changed_cs: 0,
        };
        Ok(())
    }

    fn port_sensor(&self, number: usize) -> PortSensor {
        let Some(link) = self.link(number) else {
            return PortSensor { oper: IfStatus::Down, changed_cs: self.changed_cs[number], ..PortSensor::default() };
        };
        let count = |direction: &str, key: &str| link["stats64"][direction][key].as_u64().unwrap_or(0);
        let slave = &link["linkinfo"]["info_slave_data"];
        let multicast = count("rx", "multicast");
        let counters = Counters {
            in_octets: count("rx", "bytes"),
            in_unicast: count("rx", "packets").saturating_sub(multicast),
            in_multicast: multicast,
            in_discards: count("rx", "dropped"),
            in_errors: count("rx", "errors"),
            out_octets: count("tx", "bytes"),
            out_frames: count("tx", "packets"),
            out_discards: count("tx", "dropped"),
            out_errors: count("tx", "errors"),
            ..Counters::default()
        };
        let identifier = |key: &str| slave[key].as_str().and_then(identifier).unwrap_or([0; 8]);
        PortSensor {
            oper: if self.runs(number) { IfStatus::Up } else { IfStatus::Down },
            changed_cs: self.changed_cs[number],
            speed_bps: speed_bps(&self.facts.ports[number].name),
            mtu_bytes: link["mtu"].as_u64().unwrap_or(1500) as u32,
            counters,
            stp: StpPortSensor {
                state: match slave["state"].as_str() {
                    Some("forwarding") => StpState::Forwarding,
                    Some("blocking") => StpState::Blocking,
                    Some("listening") => StpState::Listening,
                    Some("learning") => StpState::Learning,
                    _ => StpState::Disabled,
                },
                cost: slave["cost"].as_u64().unwrap_or(0) as u32,
                designated_root: identifier("root_id"),
                designated_cost: slave["designated_cost"].as_u64().unwrap_or(0) as u32,
                designated_bridge: identifier("bridge_id"),
                designated_port: (slave["designated_port"].as_u64().unwrap_or(0) as u16).to_be_bytes(),
                forward_transitions: 0,
            },
        }
    }

    fn carry_out(&mut self, config: &Config, changes: &[Change]) -> Result<(), LabError> {
        self.name.clone_from(&config.name);
        self.lldp = config.ports.iter().map(|port| port.lldp).collect();
        let rows: Option<Vec<StaticRow>> =
            changes.iter().map(|change| if let Change::Static(row) = change { Some(*row) } else { None }).collect();
        // Tables of thousands of entries are written one by one: only those are looked at.
        let (before, after) = match rows {
            None => (self.held.clone(), wanted(&self.facts, config)),
            Some(rows) => {
                let empty = |state: &State| State { ports: BTreeMap::new(), statics: BTreeMap::new(), ..state.clone() };
                let (mut before, mut after) = (empty(&self.held), empty(&self.held));
                for row in rows {
                    let Some(vlan) = u16::try_from(row.fdb).ok().and_then(|id| VlanId::new(id).ok()) else { continue };
                    if let Some(port) = self.held.statics.get(&(vlan, row.mac)) {
                        before.statics.insert((vlan, row.mac), port.clone());
                    }
                    after.statics.extend(wanted_static(&self.facts, config, &row));
                }
                (before, after)
            }
        };
        kernel::change(&self.bridge, &before, &after)?;
        for key in before.statics.keys() {
            self.held.statics.remove(key);
        }
        self.held.statics.extend(after.statics);
        if !after.ports.is_empty() {
            self.held.ports = after.ports;
            (self.held.stp, self.held.stp_priority, self.held.ageing_s) =
                (after.stp, after.stp_priority, after.ageing_s);
        }
        Ok(())
    }
}

impl DataPlane for Plane {
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
            eprintln!("espalier: {error}");
            // Whatever has been done of it, the next change begins from what the kernel holds.
            if let Ok(held) = kernel::read(&self.bridge) {
                self.held = held;
            }
            Refused(error.to_string())
        })
    }
}

/// `8000.02:00:00:00:00:01` as octets.
fn identifier(text: &str) -> Option<[u8; 8]> {
    let (priority, mac) = text.split_once('.')?;
    let mac = mac.parse::<Mac>().ok()?;
    Some(bridge_id(u16::from_str_radix(priority, 16).ok()?, mac))
}

fn speed_bps(device: &str) -> u64 {
    let megabits = std::fs::read_to_string(format!("/sys/class/net/{device}/speed")).ok();
    megabits.and_then(|text| text.trim().parse::<u64>().ok()).map_or(10_000_000_000, |megabits| megabits * 1_000_000)
}
