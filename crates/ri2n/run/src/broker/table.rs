//! What a broker remembers.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::{IpAddr, SocketAddr},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use ri2n_session::Verdict;
use serde::{Deserialize, Serialize};

use super::{STREAMS_MAX, announced::Announced, listening::Listening, tuning::Tuned};
use crate::express::Express;

/// Connections that failed or were reset of which the error is remembered.
const FAILURES_MAX: usize = 1024;
/// Peers of which it is remembered whether they speak RI2N.
const PEERS_MAX: usize = 4096;

/// Knocks that nobody claimed in time which are remembered.
const TAKEN_MAX: usize = 256;

/// How long a peer that refused is not asked again: a server may be started under RI2N at any time.
const REFUSED_FOR: Duration = Duration::from_secs(1);
/// How long a peer that was silent is not asked again by those who would have to wait: asking costs the whole patience.
pub(super) const SILENT_FOR: Duration = Duration::from_secs(30);
/// How long a peer that spoke RI2N is given more patience.
const SPOKE_FOR: Duration = Duration::from_secs(3600);

/// What is known of an address and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Peer {
    /// It spoke RI2N.
    Speaks,
    /// It said that it does not.
    Refused,
    /// It said nothing.
    Silent,
}

#[derive(Default)]
pub(super) struct Table {
    /// Questions that are being answered.
    pub(super) questions: usize,
    /// Streams that stand or are being made.
    pub(super) streams: usize,
    /// Who waits for one of them to end.
    pub(super) waiting_for_room: usize,
    last_id: u64,
    pending: BTreeSet<u64>,
    failures: VecDeque<(u64, i32)>,
    peers: BTreeMap<SocketAddr, (Peer, Instant)>,
    /// All addresses of machines that spoke RI2N, by each of them.
    addresses: BTreeMap<IpAddr, Arc<[IpAddr]>>,
    /// Peers that were silent, and are asked again in the background.
    pub(super) watched: BTreeSet<SocketAddr>,
    /// By UDP port.
    pub(super) listening: BTreeMap<u16, Listening>,
    /// Addresses that programs' ends of streams have.
    pub(super) ports: BTreeSet<SocketAddr>,
    /// By the address that the knock comes from.
    pub(super) announced: BTreeMap<SocketAddr, Announced>,
    /// Knocks that were accepted and not claimed in time, the latest last, and whose listeners they were at.
    taken: VecDeque<(SocketAddr, SocketAddr)>,
    /// What programs have set of their connections, by number.
    pub(super) tuned: BTreeMap<u64, Tuned>,
    /// Of streams that can have early copies, by their number.
    express: BTreeMap<u64, Weak<Express>>,
}

/// The saved part of the table that belongs to no connection.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedTable {
    last_id: u64,
    failures: Vec<(u64, i32)>,
    /// What is known of peers, and for how long.
    peers: Vec<(SocketAddr, Peer, Duration)>,
    addresses: Vec<(IpAddr, Vec<IpAddr>)>,
    taken: Vec<(SocketAddr, SocketAddr)>,
}

impl Table {
    /// Saves the part that belongs to no connection. Connections that are being established count as failed.
    pub(super) fn save(&self, now: Instant) -> SavedTable {
        let failed = self.pending.iter().map(|id| (*id, libc::ECONNABORTED));
        let peers =
            self.peers.iter().map(|(address, (peer, until))| (*address, *peer, until.saturating_duration_since(now)));
        SavedTable {
            last_id: self.last_id,
            failures: self.failures.iter().copied().chain(failed).collect(),
            peers: peers.collect(),
            addresses: self.addresses.iter().map(|(address, all)| (*address, all.to_vec())).collect(),
            taken: self.taken.iter().copied().collect(),
        }
    }

    /// A table with this saved part.
    pub(super) fn resume(saved: SavedTable, now: Instant) -> Self {
        Self {
            last_id: saved.last_id,
            failures: saved.failures.into(),
            peers: saved.peers.into_iter().map(|(address, peer, left)| (address, (peer, now + left))).collect(),
            addresses: saved.addresses.into_iter().map(|(address, all)| (address, all.into())).collect(),
            taken: saved.taken.into(),
            ..Self::default()
        }
    }

    /// Counts a new stream, unless there are too many.
    pub(super) fn new_stream(&mut self) -> Option<u64> {
        if self.streams >= STREAMS_MAX {
            return None;
        }
        self.streams += 1;
        Some(self.next_id())
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn begin_pending(&mut self, id: u64) {
        self.pending.insert(id);
    }

    /// The pending connection stands, or failed.
    pub(super) fn end_pending(&mut self, id: u64, failure: Option<i32>) {
        self.pending.remove(&id);
        if let Some(errno) = failure {
            self.note_failure(id, errno);
        }
    }

    /// A connection failed, or was reset; the first reason counts.
    pub(super) fn note_failure(&mut self, id: u64, errno: i32) {
        if self.failures.iter().any(|(failed, _)| *failed == id) {
            return;
        }
        if self.failures.len() == FAILURES_MAX {
            self.failures.pop_front();
        }
        self.failures.push_back((id, errno));
    }

    /// Remembers for early copies a stream that stands now.
    pub(super) fn note_express(&mut self, id: u64, express: &Arc<Express>) {
        if self.express.len() >= STREAMS_MAX {
            self.express.retain(|_, express| express.strong_count() > 0);
        }
        self.express.insert(id, Arc::downgrade(express));
    }

    /// What a stream needs for early copies, if it can have them and still stands.
    pub(super) fn express(&self, id: u64) -> Option<Arc<Express>> {
        self.express.get(&id)?.upgrade()
    }

    /// What became of a connection; one that is not pending and has not failed stands, or stood.
    pub(super) fn state(&self, id: u64) -> Verdict {
        if self.pending.contains(&id) {
            return Verdict::Pending;
        }
        let failure = self.failures.iter().find(|(failed, _)| *failed == id);
        failure.map_or(Verdict::Ready, |(_, errno)| Verdict::Failed(*errno))
    }

    pub(super) fn peer(&self, address: SocketAddr, now: Instant) -> Option<Peer> {
        self.peers.get(&address).filter(|(_, until)| *until > now).map(|(peer, _)| *peer)
    }

    /// Remembers a knock that was accepted and not claimed.
    pub(super) fn note_taken(&mut self, knock: SocketAddr, listener: SocketAddr) {
        if self.taken.len() == TAKEN_MAX {
            self.taken.pop_front();
        }
        self.taken.push_back((knock, listener));
    }

    /// At which listener a knock was that is claimed too late.
    pub(super) fn taken(&mut self, knock: SocketAddr) -> Option<SocketAddr> {
        let at = self.taken.iter().rposition(|(taken, _)| *taken == knock)?;
        self.taken.remove(at).map(|(_, listener)| listener)
    }

    /// Learns at which addresses a machine is reached.
    pub(super) fn note_addresses(&mut self, addresses: &[IpAddr]) {
        if self.addresses.len() + addresses.len() > PEERS_MAX {
            self.addresses.clear();
        }
        let all: Arc<[IpAddr]> = addresses.into();
        self.addresses.extend(addresses.iter().map(|address| (*address, Arc::clone(&all))));
    }

    /// Where a server is reached: at the address that was named, and where else its machine is.
    pub(super) fn servers(&self, target: SocketAddr) -> Vec<SocketAddr> {
        let others = self.addresses.get(&target.ip()).into_iter().flat_map(|all| all.iter());
        let others = others.filter(|other| **other != target.ip()).map(|other| SocketAddr::new(*other, target.port()));
        std::iter::once(target).chain(others).collect()
    }

    pub(super) fn note_peer(&mut self, address: SocketAddr, peer: Peer, now: Instant) {
        if self.peers.len() >= PEERS_MAX {
            self.peers.retain(|_, (_, until)| *until > now);
        }
        if self.peers.len() >= PEERS_MAX {
            self.peers.pop_first();
        }
        let lasts = match peer {
            Peer::Speaks => SPOKE_FOR,
            Peer::Refused => REFUSED_FOR,
            Peer::Silent => SILENT_FOR,
        };
        self.peers.insert(address, (peer, now + lasts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_peer_ends() {
        let (mut table, now) = (Table::default(), Instant::now());
        let peer: SocketAddr = "10.0.0.1:80".parse().unwrap();
        assert_eq!(table.peer(peer, now), None);
        table.note_peer(peer, Peer::Refused, now);
        assert_eq!(table.peer(peer, now + REFUSED_FOR / 2), Some(Peer::Refused));
        assert_eq!(table.peer(peer, now + REFUSED_FOR), None);
    }

    #[test]
    fn everything_is_bounded() {
        let (mut table, now) = (Table::default(), Instant::now());
        for k in 0..PEERS_MAX + 100 {
            table.note_peer(SocketAddr::from(([10, 0, (k >> 8) as u8, k as u8], 80)), Peer::Silent, now);
        }
        assert_eq!(table.peers.len(), PEERS_MAX);
        for k in 0..PEERS_MAX as u32 {
            let pair = [IpAddr::from((10 << 24 | k).to_be_bytes()), IpAddr::from((11 << 24 | k).to_be_bytes())];
            table.note_addresses(&pair);
            let servers = table.servers(SocketAddr::new(pair[1], 80));
            assert_eq!(servers, [pair[1], pair[0]].map(|ip| SocketAddr::new(ip, 80)));
        }
        assert!(table.addresses.len() <= PEERS_MAX);
        for id in 0..FAILURES_MAX as u64 + 100 {
            table.begin_pending(id);
            assert_eq!(table.state(id), Verdict::Pending);
            table.end_pending(id, Some(111));
            assert_eq!(table.state(id), Verdict::Failed(111));
        }
        assert_eq!(table.failures.len(), FAILURES_MAX);
        let address = |port: usize| SocketAddr::from(([127, 0, 0, 1], port as u16));
        for port in 0..TAKEN_MAX + 100 {
            table.note_taken(address(port), address(port + 1));
        }
        assert_eq!(table.taken(address(99)), None);
        assert_eq!((table.taken(address(100)), table.taken(address(100))), (Some(address(101)), None));
        assert!((0..STREAMS_MAX).all(|_| table.new_stream().is_some()));
        assert_eq!(table.new_stream(), None);
    }
}
