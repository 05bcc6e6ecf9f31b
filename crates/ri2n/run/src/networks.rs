//! Which destinations are worth asking for RI2N: those of the cluster's own networks.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use nix::{ifaddrs::getifaddrs, net::if_::InterfaceFlags, sys::socket::SockaddrStorage};
pub use ri2n_io::{NotAPrefix, Prefix};

/// The destinations that RI2N is tried for; all others are reached by plain TCP without a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Networks {
    /// The networks that this machine has an address in.
    Attached,
    /// These.
    Listed(Vec<Prefix>),
}

/// Where a destination is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// This machine.
    Here,
    /// A network that RI2N is tried in.
    Within,
    /// Another network.
    Elsewhere,
}

impl Networks {
    /// Whether RI2N is tried for `destination`; this machine's own addresses never are.
    pub fn contain(&self, destination: IpAddr) -> bool {
        self.place(destination) == Place::Within
    }

    /// Where a destination is.
    pub fn place(&self, destination: IpAddr) -> Place {
        let destination = destination.to_canonical();
        let own = own_networks();
        if destination.is_loopback()
            || destination.is_unspecified()
            || own.iter().any(|prefix| prefix.address() == destination)
        {
            return Place::Here;
        }
        let is_within = match self {
            Self::Attached => own.iter().any(|prefix| prefix.contains(destination)),
            Self::Listed(prefixes) => prefixes.iter().any(|prefix| prefix.contains(destination)),
        };
        if is_within && !destination.is_multicast() { Place::Within } else { Place::Elsewhere }
    }
}

/// How long an answer of the system about addresses and routes is good: a thousand connections within that time do not ask it a
/// thousand times.
const KEPT_FOR: Duration = Duration::from_millis(500);
/// Destinations whose answer is kept.
const KEPT_MAX: usize = 1024;

/// The address that this machine would speak to `destination` from, as it was at most [`KEPT_FOR`] ago.
pub(crate) fn source_for(destination: SocketAddr) -> std::io::Result<IpAddr> {
    static KEPT: Mutex<BTreeMap<IpAddr, (Instant, IpAddr)>> = Mutex::new(BTreeMap::new());
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, source)) = kept().get(&destination.ip()).filter(|(at, _)| at.elapsed() < KEPT_FOR) {
        return Ok(*source);
    }
    let source = ask_source_for(destination)?;
    let mut kept = kept();
    if kept.len() >= KEPT_MAX {
        kept.clear();
    }
    kept.insert(destination.ip(), (Instant::now(), source));
    Ok(source)
}

fn ask_source_for(destination: SocketAddr) -> std::io::Result<IpAddr> {
    let any: SocketAddr =
        if destination.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { "[::]:0".parse().expect("an address") };
    let socket = std::net::UdpSocket::bind(any)?;
    socket.connect(destination)?;
    Ok(socket.local_addr()?.ip())
}

/// This machine's addresses on ports that are up, with the width of their networks, as they were at most [`KEPT_FOR`] ago.
pub(crate) fn own_networks() -> Arc<[Prefix]> {
    static KEPT: Mutex<Option<(Instant, Arc<[Prefix]>)>> = Mutex::new(None);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    match &*kept {
        Some((at, known)) if at.elapsed() < KEPT_FOR => Arc::clone(known),
        _ => {
            let known: Arc<[Prefix]> = ask_own_networks().into();
            *kept = Some((Instant::now(), Arc::clone(&known)));
            known
        }
    }
}

fn ask_own_networks() -> Vec<Prefix> {
    let Ok(interfaces) = getifaddrs() else { return Vec::new() };
    interfaces
        .filter(|interface| interface.flags.contains(InterfaceFlags::IFF_UP))
        .filter_map(|interface| {
            let address = ip(&interface.address?)?;
            let bits = match ip(&interface.netmask?)? {
                IpAddr::V4(mask) => u32::from(mask).count_ones(),
                IpAddr::V6(mask) => u128::from(mask).count_ones(),
            };
            Prefix::new(address, bits as u8)
        })
        .collect()
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    address
        .as_sockaddr_in()
        .map(|v4| IpAddr::V4(v4.ip()))
        .or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_never_asked() {
        let everything = Networks::Listed(vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()]);
        for own in own_networks().iter() {
            assert!(!everything.contain(own.address()), "{own}");
        }
        assert!(!everything.contain("127.0.0.1".parse().unwrap()));
        assert!(!everything.contain("::ffff:127.0.0.1".parse().unwrap()));
        let elsewhere: IpAddr = "192.0.2.1".parse().unwrap();
        assert_eq!(everything.contain(elsewhere), own_networks().iter().all(|own| own.address() != elsewhere));
    }
}
