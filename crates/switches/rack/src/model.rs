//! One model switch: an agent over a data plane that forwards nothing.

use std::{
    net::UdpSocket,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use bridge_mib::{IfStatus, LldpChassisSubtype, LldpPortSubtype, index::Neighbour};
use fabric::{Mac, PortId, SwitchId};
use switchd::agent::{
    Access, Change, Config, DataPlane, Engine, Facts, HybridPorts, Learning, Limits, NeighbourInfo, PortFacts,
    PortKind, Refused, Rights, Sensors, Server, Switch,
};

use crate::{COMMUNITY, room::Room};

/// How soon an agent notices that it is to end, or that it has no power.
const MOMENT: Duration = Duration::from_millis(100);
/// For how long links have been up when an agent starts: neighbours that are not heard by then are not there.
const UP_SINCE: Duration = Duration::from_secs(60);
/// Interface number of the first port.
const IF_INDEX_FIRST: u32 = 101;
/// Chassis MACs are octets of their own, so that nothing else has them.
const CHASSIS: [u8; 2] = [2, 0x21];
/// All frames are of this size, and unicast.
const FRAME_OCTETS: u64 = 1518;
/// Capability "bridge" of LLDP.
const BRIDGE: u16 = 4;

fn chassis(switch: SwitchId) -> Mac {
    let [a, b] = (switch.index() as u16).to_be_bytes();
    Mac::new([CHASSIS[0], CHASSIS[1], a, b, 0, 0])
}

/// Answers as a switch until `stop`. After each time without power it starts anew, with what it saved.
pub(crate) fn serve(switch: SwitchId, socket: &UdpSocket, room: &Arc<Room>, stop: &AtomicBool) {
    let ports: Vec<PortId> = room.topology().port_ids(switch).collect();
    let mut saved = Config::factory(ports.len());
    saved.name = room.topology().switch(switch).name.clone().into_bytes();
    for boots in 1_u16.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        if let Some(config) = run(switch, socket, (&ports, saved.clone(), boots), room, stop) {
            saved = config;
        }
        while !room.is_on(switch) && !stop.load(Ordering::SeqCst) {
            drain(socket);
            thread::sleep(MOMENT);
        }
    }
}

/// Takes what came while nobody was there.
fn drain(socket: &UdpSocket) {
    // A socket that cannot do so keeps what came, and answers late.
    if socket.set_nonblocking(true).is_ok() {
        let mut lost = [0; 1];
        while socket.recv(&mut lost).is_ok() {}
        let _ = socket.set_nonblocking(false);
    }
}

/// Answers from a start until the power goes; returns what was saved last. None if it could not start.
fn run(
    switch: SwitchId,
    socket: &UdpSocket,
    (ports, saved, boots): (&[PortId], Config, u16),
    room: &Arc<Room>,
    stop: &AtomicBool,
) -> Option<Config> {
    let topology = room.topology();
    let address = chassis(switch);
    let [.., a, b, _, _] = address.octets();
    let engine_id = [0x80, 0, 0x1f, 0x88, 4, b'r', a, b];
    let port_facts = |(number, port): (u32, &PortId)| {
        let [.., low] = number.to_be_bytes();
        let [c0, c1, s0, s1, ..] = address.octets();
        PortFacts {
            name: topology.port(*port).name.clone(),
            if_index: IF_INDEX_FIRST + number,
            mac: Mac::new([c0, c1, s0, s1, 1, low]),
            kind: PortKind::Own,
        }
    };
    let facts = Facts {
        description: "Model switch of a rack".to_owned(),
        address,
        ports: (0..).zip(ports).map(port_facts).collect(),
        limits: Limits {
            vlans_max: 4094,
            statics_max: 65_536,
            hybrid: HybridPorts::Allowed,
            learning: Learning::Independent,
            pfc_classes: 0,
        },
    };
    let plane = Model { room: Arc::clone(room), ports: ports.to_vec() };
    let access = Access { communities: vec![(COMMUNITY.as_bytes().to_vec(), Rights::Write)], users: Vec::new() };
    let mut model = Switch::new(facts, saved, plane, &engine_id, i32::from(boots), 0);
    // A model carries everything out.
    model.apply_all().ok()?;
    let since = Instant::now().checked_sub(UP_SINCE).unwrap_or_else(Instant::now);
    let mut server =
        Server::new(Engine::new(model, access, &engine_id, u64::from(boots)), socket.try_clone().ok()?, since);
    while room.is_on(switch) && !stop.load(Ordering::SeqCst) {
        if server.step(MOMENT).is_err() {
            break;
        }
    }
    Some(server.engine().responder().saved().clone())
}

/// A data plane that forwards nothing.
struct Model {
    room: Arc<Room>,
    ports: Vec<PortId>,
}

impl DataPlane for Model {
    fn observe(&mut self, up_cs: u32, sensors: &mut Sensors) {
        let topology = self.room.topology();
        sensors.neighbours.rows.clear();
        for ((number, port), plug) in (1_u32..).zip(&self.ports).zip(self.room.plugs(self.ports.iter().copied())) {
            let sensor = &mut sensors.ports[number as usize - 1];
            let oper = if plug.carries { IfStatus::Up } else { IfStatus::Down };
            if sensor.oper != oper {
                (sensor.oper, sensor.changed_cs, sensors.neighbours.changed_cs) = (oper, up_cs, up_cs);
            }
            [sensor.counters.in_octets, sensor.counters.out_octets] = plug.octets;
            sensor.counters.in_unicast = plug.octets[0] / FRAME_OCTETS;
            sensor.speed_bps = match topology.port(*port).attachment {
                fabric::Attachment::Link(link) => topology.link(link).rate_bps,
                fabric::Attachment::Host(host) => topology.host(host).rate_bps,
                fabric::Attachment::Nothing | fabric::Attachment::Member(_) => sensor.speed_bps,
            };
            if let Some(far) = plug.far.filter(|_| plug.carries) {
                let neighbour = Neighbour { time_mark: 0, local_port: number, index: 1 };
                sensors.neighbours.rows.insert(neighbour, self.speaker(far));
            }
        }
    }

    fn apply(&mut self, config: &Config, changes: &[Change]) -> Result<(), Refused> {
        if changes != [Change::All] {
            self.room.count_write();
        }
        let shut = |(port, config): (&PortId, &switchd::agent::PortConfig)| (*port, config.admin == IfStatus::Down);
        self.room.set_shut(self.ports.iter().zip(&config.ports).map(shut));
        Ok(())
    }
}

impl Model {
    /// What the switch at the other end says of itself.
    fn speaker(&self, far: PortId) -> NeighbourInfo {
        let topology = self.room.topology();
        let port = topology.port(far);
        NeighbourInfo {
            chassis_subtype: LldpChassisSubtype::Mac,
            chassis_id: chassis(port.switch).octets().to_vec(),
            port_subtype: LldpPortSubtype::Name,
            port_id: port.name.clone().into_bytes(),
            port_description: Vec::new(),
            system_name: topology.switch(port.switch).name.clone().into_bytes(),
            system_description: Vec::new(),
            capabilities: BRIDGE,
            capabilities_enabled: BRIDGE,
        }
    }
}
