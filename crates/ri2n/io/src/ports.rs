//! Which UDP ports a process takes: of a worker's socket, one an address family.

use crate::sys::{Socket, TellLocal};
use serde::{Deserialize, Serialize};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    ops::RangeInclusive,
};

/// Ports tried for one socket before there is none.
const TRIED_MAX: usize = 256;

/// An address family, and the ports that may be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ports {
    any: IpAddr,
    range: Option<RangeInclusive<u16>>,
}

impl Ports {
    /// Those for peers at addresses like this one.
    pub(crate) fn toward(peer: IpAddr, range: Option<&RangeInclusive<u16>>) -> Self {
        let any = if peer.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        Self { any, range: range.cloned() }
    }

    /// The first of them that is free.
    pub(crate) fn bind(&self) -> io::Result<Socket> {
        let Some(range) = &self.range else { return Socket::bind((self.any, 0).into(), TellLocal::No) };
        let mut last = io::Error::from(io::ErrorKind::AddrInUse);
        for port in range.clone().take(TRIED_MAX) {
            match Socket::bind((self.any, port).into(), TellLocal::No) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}
