//! A rack of model switches: each answers SNMP on a loopback address of its own, as a managed switch would that is cabled as a
//! topology says.
//!
//! ```text
//!   topology ─▶ Rack ─ 127.21.0.1 ─ agent ─ Model ┐
//!                    ─ 127.21.0.2 ─ agent ─ Model ┼─ Room: who is on, which cables are cut, which ports are up
//!                    ─ …                          ┘        └─▶ carriers, neighbours by LLDP, counters
//! ```
//! Models forward no frames. What managers read and write is real: the agents are those of the lab's switches. Nothing here
//! needs root, so that a controller can be tried, tested and measured anywhere.
#![forbid(unsafe_code)]

mod model;
mod room;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use fabric::{LinkId, SwitchId, Topology, TopologyBuilder};

use crate::room::Room;

/// The community with which models are read and written.
pub const COMMUNITY: &str = "private";
/// Tries to find a UDP port that is free on all addresses.
const TRIES_MAX: usize = 100;

/// Model switches that answer until the rack is dropped.
pub struct Rack {
    port: u16,
    room: Arc<Room>,
    stop: Arc<AtomicBool>,
    agents: Vec<JoinHandle<()>>,
}

impl Rack {
    /// Has every switch of a topology answer at its management address, which must be one of this machine; all at one port that is
    /// free.
    ///
    /// # Errors
    /// If the topology has LAGs, a switch has no management address, or no socket opens there.
    pub fn open(topology: &Topology) -> io::Result<Self> {
        if topology.has_lags() {
            return Err(io::Error::other("model switches know no LAGs"));
        }
        let addresses = topology.switches().iter().map(|switch| {
            let missing = || io::Error::other(format!("switch {} has no management address", switch.name));
            switch.mgmt.ok_or_else(missing)
        });
        let addresses: Vec<IpAddr> = addresses.collect::<Result<_, _>>()?;
        let (port, sockets) = sockets(&addresses)?;
        let room = Arc::new(Room::new(topology.clone()));
        let stop = Arc::new(AtomicBool::new(false));
        let agents = topology.switch_ids().zip(sockets).map(|(switch, socket)| {
            let (room, stop) = (Arc::clone(&room), Arc::clone(&stop));
            thread::spawn(move || model::serve(switch, &socket, &room, &stop))
        });
        let agents = agents.collect();
        Ok(Self { port, room, stop, agents })
    }

    /// The UDP port of all agents.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts a cable: neither end has a carrier.
    pub fn cut(&self, link: LinkId) {
        self.room.set_cut(link, true);
    }

    /// Mends a cable.
    pub fn mend(&self, link: LinkId) {
        self.room.set_cut(link, false);
    }

    /// Turns a switch off: it answers nothing, and its cables have no carrier.
    pub fn turn_off(&self, switch: SwitchId) {
        self.room.set_power(switch, false);
    }

    /// Turns a switch on: it starts with what it saved.
    pub fn turn_on(&self, switch: SwitchId) {
        self.room.set_power(switch, true);
    }

    /// Changes of configurations that managers made, on all switches.
    pub fn writes(&self) -> usize {
        self.room.writes()
    }

    /// What frames there are from now on, in bit/s, which ports count: `channels[channel]` on each direction of each link, and what
    /// each host sends and receives, `hosts[host]`.
    ///
    /// # Panics
    /// If there is not one for every channel and host.
    pub fn carry(&self, channels: &[f64], hosts: &[[f64; 2]]) {
        self.room.carry(channels, hosts);
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for agent in self.agents.drain(..) {
            // One that panicked has said so.
            let _ = agent.join();
        }
    }
}

/// The topology with a loopback address for each switch, instead of what it has.
///
/// # Panics
/// Never: a topology has fewer switches than that network has addresses.
pub fn on_loopback(topology: &Topology) -> Topology {
    let mut builder = TopologyBuilder::of(topology);
    for (number, switch) in (1_u16..).zip(topology.switch_ids()) {
        let [high, low] = number.to_be_bytes();
        let address = IpAddr::V4(Ipv4Addr::new(127, 21, high, low));
        builder.set_switch_mgmt(switch, address).expect("a fresh address");
    }
    builder.finish().expect("addresses change nothing else")
}

/// A socket at each address, all with one port that is free.
fn sockets(addresses: &[IpAddr]) -> io::Result<(u16, Vec<UdpSocket>)> {
    let (first, others) = addresses.split_first().ok_or_else(|| io::Error::other("no switch"))?;
    let mut last = None;
    for _ in 0..TRIES_MAX {
        let socket = UdpSocket::bind((*first, 0))?;
        let port = socket.local_addr()?.port();
        match others.iter().map(|address| UdpSocket::bind((*address, port))).collect::<io::Result<Vec<_>>>() {
            Ok(rest) => return Ok((port, std::iter::once(socket).chain(rest).collect())),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::other("no port is free")))
}
