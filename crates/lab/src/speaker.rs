//! LACP on one node, a switch or a host: the state machines of its LAGs behind one packet socket.
//!
//! ```text
//!   links, LACPDUs ─▶ Speaker ─ MemberUse ─▶ the tables of the node's data plane
//! ```

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsRawFd, RawFd},
};

use fabric::Mac;
use linux_net::{
    links::LinkState,
    packet::{NeighbourProtocol, NeighbourSocket},
};
use switchd::lacp::{Lacpdu, Lag, Link, PortState};

/// A LAG as its node configures it.
#[derive(Clone, Debug)]
pub(crate) struct SpokenLag {
    /// The node's address in LACP.
    pub(crate) system: Mac,
    /// The LAG's key.
    pub(crate) key: u16,
    /// The members.
    pub(crate) members: Vec<SpokenMember>,
}

/// A member of a LAG.
#[derive(Clone, Debug)]
pub(crate) struct SpokenMember {
    /// Its device.
    pub(crate) device: String,
    /// The device's index.
    pub(crate) ifindex: u32,
    /// Its number in LACP.
    pub(crate) port: u16,
}

/// What a member does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct MemberUse {
    /// Frames may come in by it.
    pub(crate) collects: bool,
    /// Frames may leave by it.
    pub(crate) distributes: bool,
}

/// The speaker of one node.
pub(crate) struct Speaker {
    socket: NeighbourSocket,
    lags: Vec<Spoken>,
}

struct Spoken {
    config: SpokenLag,
    lag: Lag,
    /// `told[member]`: what the last poll said.
    told: Vec<MemberUse>,
    /// `downs[member]`: how often its device had lost its carrier at the last look.
    downs: Vec<u32>,
}

impl Speaker {
    /// Speaks for these LAGs in the calling thread's namespace; all links are down at first.
    ///
    /// # Errors
    /// What the kernel refused.
    pub(crate) fn open(lags: Vec<SpokenLag>) -> io::Result<Self> {
        let spoken = |config: SpokenLag| {
            let ports: Vec<u16> = config.members.iter().map(|member| member.port).collect();
            let lag = Lag::new(config.system, config.key, &ports);
            Spoken { told: vec![MemberUse::default(); ports.len()], downs: vec![0; ports.len()], lag, config }
        };
        Ok(Self {
            socket: NeighbourSocket::open(NeighbourProtocol::Lacp)?,
            lags: lags.into_iter().map(spoken).collect(),
        })
    }

    /// Takes over which members have carrier. `links` are the devices of the node; `is_up(lag, member)` says whether a member is
    /// administratively up. What follows from it takes effect with the next [`Speaker::poll`].
    pub(crate) fn handle_links(
        &mut self,
        now_ms: u64,
        links: &BTreeMap<String, LinkState>,
        is_up: &dyn Fn(usize, usize) -> bool,
    ) {
        for (number, spoken) in self.lags.iter_mut().enumerate() {
            for (member, config) in spoken.config.members.iter().enumerate() {
                let link = links.get(&config.device);
                let downs = link.map_or(0, |link| link.downs);
                if std::mem::replace(&mut spoken.downs[member], downs) != downs {
                    spoken.lag.handle_link(now_ms, member, Link::Down);
                }
                let carries = link.is_some_and(|link| link.carrier) && is_up(number, member);
                spoken.lag.handle_link(now_ms, member, if carries { Link::Up } else { Link::Down });
            }
        }
    }

    /// Receives and sends LACPDUs. Where the members of a LAG do something else than at the last poll, `write` is called with the
    /// LAG's position and [`Speaker::uses`] before the partner is told, so that what it sends then comes in.
    ///
    /// # Errors
    /// What the kernel refused, or `write`.
    pub(crate) fn poll(
        &mut self,
        now_ms: u64,
        write: &mut dyn FnMut(usize, &[MemberUse]) -> io::Result<()>,
    ) -> io::Result<()> {
        while let Some(heard) = self.socket.receive()? {
            let place = self.lags.iter().enumerate().find_map(|(lag, spoken)| {
                let member = spoken.config.members.iter().position(|member| member.ifindex == heard.ifindex)?;
                Some((lag, member))
            });
            if let (Some((lag, member)), Ok(pdu)) = (place, Lacpdu::decode(&heard.octets)) {
                self.lags[lag].lag.handle_pdu(now_ms, member, &pdu);
            }
        }
        for (number, spoken) in self.lags.iter_mut().enumerate() {
            let said = spoken.lag.poll(now_ms);
            let now: Vec<MemberUse> = (0..spoken.told.len()).map(|member| use_of(spoken.lag.state(member))).collect();
            if spoken.told != now {
                write(number, &now)?;
                spoken.told = now;
            }
            for (member, pdu) in said {
                self.socket.send(spoken.config.members[member].ifindex, spoken.config.system, &pdu.encode())?;
            }
        }
        Ok(())
    }

    /// What the members of a LAG do, as of the last poll.
    pub(crate) fn uses(&self, lag: usize) -> &[MemberUse] {
        &self.lags[lag].told
    }

    /// A LAG's state machine.
    pub(crate) fn lag(&self, lag: usize) -> &Lag {
        &self.lags[lag].lag
    }
}

impl AsRawFd for Speaker {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

fn use_of(state: PortState) -> MemberUse {
    MemberUse { collects: state.has(PortState::COLLECTING), distributes: state.has(PortState::DISTRIBUTING) }
}
