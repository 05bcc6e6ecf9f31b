//! Counts the connections that are not RI2N, and says why: a connection without redundancy or authentication is never silent.
//!
//! ```text
//!  connect ─ RI2N fails because of [`Why`] ─▶ [`Fallback`] ─▶ plain TCP, counted   or   refused with an error number, counted
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::{IpAddr, SocketAddr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ri2n_io::{ConnectError, Fallback};
use serde::{Deserialize, Serialize};

use crate::sockets;

/// Peers and reasons that are counted one by one; those beyond are counted together, as the unspecified address.
const ENTRIES_MAX: usize = 1024;
/// How often the log repeats a refusal of the same peer for the same reason.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Why a connection to another machine is not RI2N.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Why {
    /// The destination is in none of the networks that RI2N is tried in.
    OtherNetwork,
    /// The peer's UDP port is closed.
    NotSpoken,
    /// The peer did not answer within the patience.
    Silent,
    /// Only one end has a key, or the keys differ.
    KeysDiffer,
    /// The peer speaks another version of the protocol.
    OtherVersion,
    /// The peer has no room for another connection.
    PeerFull,
    /// This broker holds as many streams as it can.
    Full,
    /// The peer's broker has nobody to give the connection to.
    NotAccepted,
    /// The system has no way to the peer: its error number.
    Unreachable(i32),
    /// The target of a proxy, which it reaches by plain TCP alone for clients of RI2N.
    ProxyTarget,
}

impl Why {
    /// The reason for which connecting by RI2N failed.
    pub(crate) fn of(error: &std::io::Error) -> Self {
        let refusal = error.get_ref().and_then(|source| source.downcast_ref::<ConnectError>());
        match (refusal, error.kind(), error.raw_os_error()) {
            (Some(ConnectError::Guard), ..) => Self::KeysDiffer,
            (Some(ConnectError::Version(_)), ..) => Self::OtherVersion,
            (Some(ConnectError::Full), ..) => Self::PeerFull,
            (None, std::io::ErrorKind::ConnectionRefused, _) => Self::NotSpoken,
            (None, std::io::ErrorKind::TimedOut, _) | (None, _, None) => Self::Silent,
            (None, _, Some(errno)) => Self::Unreachable(errno),
        }
    }

    /// The error number of a `connect` that is refused for this reason.
    pub(crate) fn errno(self) -> i32 {
        match self {
            Self::NotSpoken | Self::NotAccepted | Self::OtherVersion | Self::PeerFull => libc::ECONNREFUSED,
            Self::Silent => libc::ETIMEDOUT,
            Self::KeysDiffer | Self::ProxyTarget | Self::OtherNetwork => libc::EACCES,
            Self::Full => libc::ENOBUFS,
            Self::Unreachable(errno) => errno,
        }
    }

    /// One word for machines.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::OtherNetwork => "other-network",
            Self::NotSpoken => "not-spoken",
            Self::Silent => "silent",
            Self::KeysDiffer => "keys-differ",
            Self::OtherVersion => "other-version",
            Self::PeerFull => "peer-full",
            Self::Full => "full",
            Self::NotAccepted => "not-accepted",
            Self::Unreachable(_) => "unreachable",
            Self::ProxyTarget => "proxy-target",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherNetwork => "the destination is in no network that RI2N is tried in",
            Self::NotSpoken => "the peer does not listen for RI2N",
            Self::Silent => "the peer does not answer RI2N",
            Self::KeysDiffer => "the passphrases or keys of the two ends differ, or only one end has one or encrypts",
            Self::OtherVersion => "the peer speaks another version of RI2N",
            Self::PeerFull => "the peer takes no more connections",
            Self::Full => "this broker holds as many streams as it can",
            Self::NotAccepted => "no program under RI2N accepts the connection at the peer",
            Self::Unreachable(errno) => {
                return write!(f, "the peer cannot be reached by RI2N: {}", std::io::Error::from_raw_os_error(*errno));
            }
            Self::ProxyTarget => "this proxy reaches its target by plain TCP",
        })
    }
}

/// Connections to one peer that are not RI2N for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The peer; unspecified: many peers.
    pub peer: IpAddr,
    /// Why they are not RI2N.
    pub why: Why,
    /// How many were made by plain TCP.
    pub plain: u64,
    /// How many were refused.
    pub refused: u64,
}

/// Counts by peer and reason, and clients of plain TCP by port. One a process.
#[derive(Debug, Default)]
pub struct Ledger {
    state: Mutex<Tallies>,
}

#[derive(Debug, Default)]
struct Tallies {
    entries: BTreeMap<(IpAddr, Why), Counts>,
    /// Ports that programs listen at.
    ports: BTreeSet<u16>,
}

#[derive(Debug, Default)]
struct Counts {
    plain: u64,
    refused: u64,
    told: Option<Instant>,
}

/// What becomes of a connection that cannot be RI2N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Plain TCP carries it.
    Plain,
    /// It fails with this error number; `is_news` if the log should say so.
    Refused { errno: i32, is_news: bool },
}

impl Ledger {
    /// Decides about a connection to `peer` that cannot be RI2N, and counts it.
    pub(crate) fn judge(&self, fallback: Fallback, peer: SocketAddr, why: Why, now: Instant) -> Verdict {
        // Traffic of other networks is none of RI2N's business, whatever the settings.
        let is_plain = match (fallback, why) {
            (_, Why::OtherNetwork) | (Fallback::PlainTcp, _) => true,
            (Fallback::Never, _) | (Fallback::WithoutKeys, Why::KeysDiffer) => false,
            (Fallback::WithoutKeys, _) => true,
        };
        let mut state = self.lock();
        let mut key = (peer.ip().to_canonical(), why);
        if state.entries.len() >= ENTRIES_MAX && !state.entries.contains_key(&key) {
            key.0 = std::net::Ipv4Addr::UNSPECIFIED.into();
        }
        let counts = state.entries.entry(key).or_default();
        if is_plain {
            counts.plain += 1;
            return Verdict::Plain;
        }
        counts.refused += 1;
        let is_news = counts.told.is_none_or(|told| now.saturating_duration_since(told) >= TOLD_EVERY);
        if is_news {
            counts.told = Some(now);
        }
        Verdict::Refused { errno: why.errno(), is_news }
    }

    /// Notes the ports that programs listen at.
    pub(crate) fn note_ports(&self, ports: BTreeSet<u16>) {
        self.lock().ports = ports;
    }

    /// All counts, by peer and reason.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let entry = |(key, counts): (&(IpAddr, Why), &Counts)| Entry {
            peer: key.0,
            why: key.1,
            plain: counts.plain,
            refused: counts.refused,
        };
        self.lock().entries.iter().map(entry).collect()
    }

    /// Begins with the counts of an earlier program of this process.
    pub(crate) fn resume(&self, entries: Vec<Entry>) {
        let counts =
            |entry: Entry| ((entry.peer, entry.why), Counts { plain: entry.plain, refused: entry.refused, told: None });
        self.lock().entries = entries.into_iter().map(counts).collect();
    }

    /// Clients of plain TCP that are connected now, by port; nothing if the kernel does not tell. It looks through all connections
    /// of this network namespace.
    #[must_use]
    pub fn clients(&self) -> BTreeMap<u16, u64> {
        let ports = self.lock().ports.clone();
        if ports.is_empty() { BTreeMap::new() } else { sockets::clients(&ports).unwrap_or_default() }
    }

    fn lock(&self) -> MutexGuard<'_, Tallies> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(k: u32) -> SocketAddr {
        SocketAddr::from((std::net::Ipv4Addr::from(0x0a00_0000 + k), 80))
    }

    #[test]
    fn settings_decide_what_stands_in() {
        let now = Instant::now();
        let all = [Why::NotSpoken, Why::Silent, Why::KeysDiffer, Why::Full, Why::Unreachable(libc::ENETUNREACH)];
        for (fallback, plain) in [
            (Fallback::PlainTcp, &all[..]),
            (Fallback::WithoutKeys, &[Why::NotSpoken, Why::Silent, Why::Full, Why::Unreachable(libc::ENETUNREACH)]),
            (Fallback::Never, &[]),
        ] {
            for why in all {
                let verdict = Ledger::default().judge(fallback, peer(1), why, now);
                assert_eq!(verdict == Verdict::Plain, plain.contains(&why), "{fallback:?}, {why:?}: {verdict:?}");
            }
            assert_eq!(Ledger::default().judge(fallback, peer(1), Why::OtherNetwork, now), Verdict::Plain);
        }
    }

    #[test]
    fn refusals_are_told_once_a_minute_and_all_are_counted() {
        let (ledger, now) = (Ledger::default(), Instant::now());
        let told = |at| match ledger.judge(Fallback::Never, peer(1), Why::KeysDiffer, at) {
            Verdict::Refused { errno, is_news } => {
                assert_eq!(errno, libc::EACCES);
                is_news
            }
            Verdict::Plain => panic!("a key is required"),
        };
        assert!(told(now) && !told(now) && !told(now + TOLD_EVERY / 2) && told(now + TOLD_EVERY));
        assert_eq!(ledger.entries(), [Entry { peer: peer(1).ip(), why: Why::KeysDiffer, plain: 0, refused: 4 }]);
        let later = Ledger::default();
        later.resume(ledger.entries());
        assert_eq!(later.entries(), ledger.entries());
    }

    #[test]
    fn many_peers_are_counted_together() {
        let (ledger, now) = (Ledger::default(), Instant::now());
        for k in 0..ENTRIES_MAX as u32 + 50 {
            ledger.judge(Fallback::PlainTcp, peer(k), Why::Silent, now);
        }
        let entries = ledger.entries();
        assert_eq!(entries.len(), ENTRIES_MAX + 1);
        assert_eq!((entries[0].peer.is_unspecified(), entries[0].plain), (true, 50));
    }
}
