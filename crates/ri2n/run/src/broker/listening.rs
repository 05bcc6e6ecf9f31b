//! Where programs listen, and how a stream gets to each of them.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use ri2n_io::{Listener, SavedListener};
use serde::{Deserialize, Serialize};

use super::{Broker, warn};

/// A UDP port that is listened at, for all of the session's TCP listeners of that port.
pub(super) struct Listening {
    pub(super) listener: Arc<Listener>,
    /// Where programs listen for TCP.
    pub(super) addresses: BTreeMap<SocketAddr, Delivery>,
}

/// The same, written down.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedListening {
    pub(super) port: u16,
    pub(super) listener: SavedListener,
    pub(super) addresses: Vec<(SocketAddr, Delivery)>,
}

/// How a stream gets to a program that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Delivery {
    /// The preload library claims it.
    Claim(Acceptor),
    /// The program knows nothing: the knock itself carries the data.
    Relay,
}

/// Whether a program accepts by the preload library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Acceptor {
    /// It has claimed no stream so far.
    Unknown,
    /// It has claimed one.
    Claims,
}

impl Listening {
    /// Which of the listeners a peer means that wants `target`: where it listens, and where it is reached from here.
    pub(super) fn find(&self, target: SocketAddr) -> Option<(SocketAddr, SocketAddr, Delivery)> {
        let serves = |address: &SocketAddr| match (address.ip(), target.ip()) {
            (IpAddr::V4(own), IpAddr::V4(wanted)) => own.is_unspecified() || own == wanted,
            (IpAddr::V6(own), wanted) => own.is_unspecified() || wanted == own,
            (IpAddr::V4(_), IpAddr::V6(_)) => false,
        };
        self.addresses.iter().find(|(address, _)| serves(address)).map(|(address, delivery)| {
            let ip = match (address.ip().is_unspecified(), target.ip()) {
                (false, _) => address.ip(),
                (true, IpAddr::V4(_)) => Ipv4Addr::LOCALHOST.into(),
                (true, IpAddr::V6(_)) => Ipv6Addr::LOCALHOST.into(),
            };
            (*address, SocketAddr::new(ip, target.port()), *delivery)
        })
    }
}

/// A program has claimed a stream of its listener.
pub(super) fn note_claim(broker: &Broker, listener: SocketAddr) {
    let mut table = broker.table();
    let listening = table.listening.get_mut(&listener.port());
    if let Some(delivery) = listening.and_then(|listening| listening.addresses.get_mut(&listener)) {
        *delivery = Delivery::Claim(Acceptor::Claims);
    }
}

/// A program accepts without the preload library: its peers connect by plain TCP from now on.
pub(super) fn leave_to_tcp(broker: &Broker, listener: SocketAddr) {
    let mut table = broker.table();
    let Some(listening) = table.listening.get_mut(&listener.port()) else { return };
    if listening.addresses.remove(&listener).is_none() {
        return;
    }
    if listening.addresses.is_empty() {
        listening.listener.close();
        table.listening.remove(&listener.port());
    }
    drop(table);
    warn(&format!(
        "the program listening at {listener} accepts connections without the preload library (static program, io_uring or raw system call); its peers use plain TCP"
    ));
}
