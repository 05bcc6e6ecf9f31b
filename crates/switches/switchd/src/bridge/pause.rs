//! PAUSE of a device, which its driver sets: ethtool's generic netlink.
//!
//! ```text
//! genlmsghdr (command, version, 0, 0) │ header: index, flags │ receive, send │ statistics: sent, received
//! ```
//! A mode is forced, as RFC 3635 has it for ports that do not negotiate: a plan says what both ends do. Where a driver
//! insists on negotiating, the mode is what it offers.
//!
//! Source: `linux/ethtool_netlink.h`, `linux/genetlink.h`; IEEE 802.3 clause 31.

use std::io;

use bridge_mib::PauseMode;
use linux_net::netlink::{Netlink, NetlinkRequest, Refusal, attribute, emit, find, nest, number};
use netlink_packet_core::DefaultNla;
use nix::sys::socket::SockProtocol;

/// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_ID`, `CTRL_ATTR_FAMILY_NAME`.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// `ETHTOOL_MSG_PAUSE_GET` and `_SET`.
const GET: u8 = 21;
const SET: u8 = 22;
/// `ETHTOOL_A_PAUSE_*`.
const HEADER: u16 = 1;
const NEGOTIATED: u16 = 2;
const RECEIVE: u16 = 3;
const SEND: u16 = 4;
const STATS: u16 = 5;
/// `ETHTOOL_A_HEADER_*`, `ETHTOOL_FLAG_STATS`.
const DEVICE: u16 = 1;
const FLAGS: u16 = 3;
const WITH_STATS: u32 = 1 << 2;
/// `ETHTOOL_A_PAUSE_STAT_*`.
const SENT: u16 = 2;
const RECEIVED: u16 = 3;
const GENERIC_LEN: usize = 4;

/// The kernel's ethtool.
pub(super) struct Ethtool {
    netlink: Netlink,
    family: u16,
}

/// What a driver says of PAUSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pause {
    pub(super) mode: PauseMode,
    /// PAUSE frames received and sent, where the driver counts them.
    pub(super) frames: [u64; 2],
}

impl Ethtool {
    /// # Errors
    /// If the kernel has no ethtool by netlink (before 5.6).
    pub(super) fn open() -> io::Result<Self> {
        let mut netlink = Netlink::open(SockProtocol::NetlinkGeneric)?;
        let answer = netlink.ask(&generic(CONTROL, GET_FAMILY, &[attribute(FAMILY_NAME, b"ethtool\0")]))?;
        let family = answer.get(GENERIC_LEN..).and_then(|said| find(said, FAMILY_ID)).and_then(number);
        let family = family.and_then(|id| u16::try_from(id).ok());
        Ok(Self { netlink, family: family.ok_or(io::ErrorKind::Unsupported)? })
    }

    /// What a device does now; none if its driver has no PAUSE.
    pub(super) fn pause(&mut self, device: u32) -> Option<Pause> {
        let answer = self.netlink.ask(&generic(self.family, GET, &[header(device, WITH_STATS)])).ok()?;
        answer.get(GENERIC_LEN..).and_then(parse)
    }

    /// # Errors
    /// The driver's refusal.
    pub(super) fn set_pause(&mut self, device: u32, mode: PauseMode) -> Result<(), Refusal> {
        let receives = matches!(mode, PauseMode::Receive | PauseMode::Both);
        let sends = matches!(mode, PauseMode::Transmit | PauseMode::Both);
        let mut wanted =
            vec![header(device, 0), attribute(RECEIVE, &[receives.into()]), attribute(SEND, &[sends.into()])];
        let offered = generic(self.family, SET, &wanted);
        wanted.push(attribute(NEGOTIATED, &[0]));
        let forced = self.netlink.change(&[generic(self.family, SET, &wanted)]);
        forced.or_else(|_| self.netlink.change(&[offered]))
    }
}

fn header(device: u32, flags: u32) -> DefaultNla {
    nest(HEADER, &[attribute(DEVICE, &device.to_ne_bytes()), attribute(FLAGS, &flags.to_ne_bytes())])
}

fn generic(family: u16, command: u8, attributes: &[DefaultNla]) -> NetlinkRequest {
    NetlinkRequest { kind: family, flags: 0, body: [&[command, 1, 0, 0][..], &emit(attributes)].concat() }
}

fn parse(said: &[u8]) -> Option<Pause> {
    let does = |kind: u16| Some(number(find(said, kind)?)? != 0);
    let mode = match (does(RECEIVE)?, does(SEND)?) {
        (false, false) => PauseMode::Off,
        (false, true) => PauseMode::Transmit,
        (true, false) => PauseMode::Receive,
        (true, true) => PauseMode::Both,
    };
    let stats = find(said, STATS).unwrap_or_default();
    let count = |kind: u16| find(stats, kind).and_then(number).unwrap_or_default();
    Some(Pause { mode, frames: [count(RECEIVED), count(SENT)] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drivers_say_is_read() {
        let counts = [attribute(SENT, &5_u64.to_ne_bytes()), attribute(RECEIVED, &9_u64.to_ne_bytes())];
        let said = |receives: u8, sends: u8| {
            emit(&[header(3, 0), attribute(RECEIVE, &[receives]), attribute(SEND, &[sends]), nest(STATS, &counts)])
        };
        assert_eq!(parse(&said(1, 1)), Some(Pause { mode: PauseMode::Both, frames: [9, 5] }));
        assert_eq!(parse(&said(0, 1)).map(|pause| pause.mode), Some(PauseMode::Transmit));
        assert_eq!(parse(&said(1, 0)).map(|pause| pause.mode), Some(PauseMode::Receive));
        assert_eq!(parse(&emit(&[header(3, 0)])), None);
        let silent = emit(&[attribute(RECEIVE, &[0]), attribute(SEND, &[0])]);
        assert_eq!(parse(&silent), Some(Pause { mode: PauseMode::Off, frames: [0, 0] }));
    }
}
