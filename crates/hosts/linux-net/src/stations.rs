//! Which MAC address is behind an IP address: of this machine's devices, and of its neighbours, in the calling thread's namespace.
//!
//! Source: rtnetlink(7), `linux/if_addr.h`, `linux/neighbour.h`.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use fabric::Mac;
use nix::sys::socket::SockProtocol;

use crate::netlink::{Netlink, NetlinkRequest, find, number};

/// `struct ifinfomsg`, `struct ifaddrmsg` and `struct ndmsg`: their octets, and where the device's number is.
const IFINFO: (usize, usize) = (16, 4);
const IFADDR: (usize, usize) = (8, 4);
const NEIGHBOUR: (usize, usize) = (12, 4);
/// `linux/neighbour.h`, which `libc` does not have.
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;

/// The IP addresses of this machine's devices that have a MAC address.
///
/// # Errors
/// If the kernel refuses.
pub fn addresses() -> io::Result<BTreeMap<IpAddr, Mac>> {
    let devices: BTreeMap<u64, Mac> = dump(libc::RTM_GETLINK, IFINFO)?
        .iter()
        .filter_map(|message| Some((message.device(IFINFO)?, mac(message.attribute(IFINFO, libc::IFLA_ADDRESS)?)?)))
        .collect();
    let address = |message: &Message| {
        // Of a point-to-point device IFA_ADDRESS is the peer's.
        let own =
            message.attribute(IFADDR, libc::IFA_LOCAL).or_else(|| message.attribute(IFADDR, libc::IFA_ADDRESS))?;
        Some((ip(own)?, *devices.get(&message.device(IFADDR)?)?))
    };
    Ok(dump(libc::RTM_GETADDR, IFADDR)?.iter().filter_map(address).collect())
}

/// The IP addresses of neighbours whose MAC addresses are known.
///
/// # Errors
/// If the kernel refuses.
pub fn neighbours() -> io::Result<BTreeMap<IpAddr, Mac>> {
    let neighbour = |message: &Message| {
        Some((ip(message.attribute(NEIGHBOUR, NDA_DST)?)?, mac(message.attribute(NEIGHBOUR, NDA_LLADDR)?)?))
    };
    Ok(dump(libc::RTM_GETNEIGH, NEIGHBOUR)?.iter().filter_map(neighbour).collect())
}

struct Message(Vec<u8>);

impl Message {
    fn device(&self, (_, at): (usize, usize)) -> Option<u64> {
        number(self.0.get(at..)?.get(..4)?)
    }

    fn attribute(&self, (length, _): (usize, usize), kind: u16) -> Option<&[u8]> {
        find(self.0.get(length..)?, kind)
    }
}

fn dump(kind: u16, (length, _): (usize, usize)) -> io::Result<Vec<Message>> {
    let request = NetlinkRequest { kind, flags: 0, body: vec![0; length] };
    Ok(Netlink::open(SockProtocol::NetlinkRoute)?.dump(&request)?.into_iter().map(Message).collect())
}

fn ip(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(octets).ok()?).into()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?).to_canonical()),
        _ => None,
    }
}

/// That of a station: neither the null address, which loopback has, nor a group's.
fn mac(octets: &[u8]) -> Option<Mac> {
    let octets = <[u8; 6]>::try_from(octets).ok()?;
    (octets != [0; 6] && octets[0] & 1 == 0).then(|| Mac::new(octets))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn loopback_has_no_station() {
        let own = addresses().expect("addresses");
        assert!(!own.contains_key(&IpAddr::from(Ipv4Addr::LOCALHOST)), "{own:?}");
        assert!(neighbours().expect("neighbours").keys().all(|ip| !ip.is_unspecified()));
    }

    proptest! {
        #[test]
        fn any_octets_are_read(octets in vec(any::<u8>(), 0..100), kind: u16) {
            let message = Message(octets.clone());
            for place in [IFINFO, IFADDR, NEIGHBOUR] {
                let _ = (message.device(place), message.attribute(place, kind));
            }
            let _ = (ip(&octets), mac(&octets));
        }
    }
}
