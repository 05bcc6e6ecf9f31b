//! Socket addresses as bytes: family, port, address, scope.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use crate::KNOCK_SOURCE;

/// Size of an encoded address; an absent one has the same size.
pub const ADDRESS_BYTES: usize = 1 + 2 + 16 + 4;

const ABSENT: u8 = 0;
const V4: u8 = 4;
const V6: u8 = 6;

/// Whether a connection from this address may be a broker's knock; the broker itself knows for certain.
///
/// A listener of IPv6 sees IPv4 mapped. IPv6 has one loopback address alone, so there anything from it may be a knock.
pub fn is_knock(address: &SocketAddr) -> bool {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => ip == KNOCK_SOURCE,
        IpAddr::V6(ip) => ip.is_loopback(),
    }
}

pub(crate) fn put(address: Option<SocketAddr>, bytes: &mut [u8; ADDRESS_BYTES]) {
    *bytes = [0; ADDRESS_BYTES];
    let Some(address) = address else { return };
    bytes[1..3].copy_from_slice(&address.port().to_le_bytes());
    match address {
        SocketAddr::V4(v4) => {
            bytes[0] = V4;
            bytes[3..7].copy_from_slice(&v4.ip().octets());
        }
        SocketAddr::V6(v6) => {
            bytes[0] = V6;
            bytes[3..19].copy_from_slice(&v6.ip().octets());
            bytes[19..23].copy_from_slice(&v6.scope_id().to_le_bytes());
        }
    }
}

/// `None` if the bytes are no address, not even an absent one.
pub(crate) fn get(bytes: &[u8; ADDRESS_BYTES]) -> Option<Option<SocketAddr>> {
    let port = u16::from_le_bytes([bytes[1], bytes[2]]);
    let mut ip = [0; 16];
    ip.copy_from_slice(&bytes[3..19]);
    match bytes[0] {
        ABSENT => Some(None),
        V4 => Some(Some(SocketAddrV4::new(Ipv4Addr::new(ip[0], ip[1], ip[2], ip[3]), port).into())),
        V6 => {
            let scope = u32::from_le_bytes([bytes[19], bytes[20], bytes[21], bytes[22]]);
            Some(Some(SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope).into()))
        }
        _ => None,
    }
}
