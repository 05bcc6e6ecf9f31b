//! Connections and links as told to people and to metrics.

use ri2n::{Connection, Health, KeyId, LinkReport, StreamState, Time};
use serde::{Deserialize, Serialize};
use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// Which end of a connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// It connected.
    Client,
    /// It accepted.
    Server,
}

/// A connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionStatus {
    /// The same number at both ends; no secret.
    pub id: u64,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// Who connected.
    pub role: Role,
    /// What guards the packets: `none`, `checksum`, `authenticated` or `encrypted`.
    pub protection: &'static str,
    /// Which key does, if one does.
    pub key: Option<KeyId>,
    /// How far the stream is.
    pub state: StreamState,
    /// Stream bytes sent for the first time.
    pub bytes_sent: u64,
    /// Stream bytes that the peer has without a hole.
    pub bytes_acked: u64,
    /// Stream bytes that this end has without a hole.
    pub bytes_received: u64,
    /// Datagrams dropped since their token, tag or form was wrong.
    pub rejected: u64,
    /// How old the connection is.
    pub age: Duration,
    /// How long ago the last believed packet arrived.
    pub silent_for: Duration,
    /// The links, ascending.
    pub links: Vec<LinkStatus>,
}

/// A link.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LinkStatus {
    /// Its number, the same at both ends.
    pub id: u8,
    /// Our address, if it is fixed.
    pub local: Option<IpAddr>,
    /// The peer's address and the connection's port there.
    pub remote: SocketAddr,
    /// Which of the source ports between the same two addresses it has ([`Config::paths`](crate::Config)): zero is the
    /// connection's own.
    pub entropy: u8,
    /// Data leave on the usable links of the lowest number; zero unless configured.
    pub priority: u8,
    /// What is thought of it.
    pub health: Health,
    /// Bits a second delivered of late.
    pub rate_bps: u64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Smallest round-trip time of late.
    pub rtt_min: Duration,
    /// Share of packets that arrived of late.
    pub delivery_ratio: f64,
    /// Largest UDP payload in use.
    pub datagram_size: u16,
    /// Bytes that may be in flight.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets given up.
    pub packets_lost: u64,
    /// Packets that arrived.
    pub packets_received: u64,
    /// Stream bytes sent, repetitions included.
    pub bytes_sent: u64,
    /// Stream bytes received, repetitions included.
    pub bytes_received: u64,
    /// How often it was suspected or down.
    pub suspicions: u64,
}

impl From<LinkReport> for LinkStatus {
    fn from(link: LinkReport) -> Self {
        Self {
            id: link.id.0,
            local: link.path.local,
            remote: link.path.remote,
            entropy: link.path.entropy,
            priority: link.priority,
            health: link.health,
            rate_bps: link.rate_bps,
            rtt: link.rtt,
            rtt_min: link.rtt_min,
            delivery_ratio: link.delivery_ratio,
            datagram_size: link.datagram_size,
            window: link.window,
            in_flight: link.in_flight,
            packets_sent: link.packets_sent,
            packets_lost: link.packets_lost,
            packets_received: link.packets_received,
            bytes_sent: link.bytes_sent,
            bytes_received: link.bytes_received,
            suspicions: link.suspicions,
        }
    }
}

impl ConnectionStatus {
    pub(crate) fn of(connection: &Connection, role: Role, local: SocketAddr, peer: SocketAddr, now: Time) -> Self {
        let (bytes_sent, bytes_acked, bytes_received) = connection.progress();
        Self {
            id: connection.id(),
            local,
            peer,
            role,
            protection: connection.seal().word(),
            key: connection.key(),
            state: connection.state(),
            bytes_sent,
            bytes_acked,
            bytes_received,
            rejected: connection.rejected(),
            age: now.since(connection.opened_at()),
            silent_for: now.since(connection.heard_at()),
            links: connection.links().into_iter().map(LinkStatus::from).collect(),
        }
    }
}
