//! The kernel's bridge by netlink: what it holds, and the requests that lead from one state to another.
//!
//! ```text
//!   devices, VLANs, addresses ─┐
//!   PAUSE of each port        ─┴▶ State ─ difference ─▶ requests, 64 to a system call ─▶ acknowledged, or Refused
//! ```
//! A PVID is a flag of a membership there, so a port that is no member of its PVID's VLAN has none, which drops the same
//! frames. Ports go by their index, which stays when their names change.
//!
//! Source: `linux/rtnetlink.h`, `linux/neighbour.h`, `linux/if_bridge.h`.

use std::{collections::BTreeMap, io};

use bridge_mib::PauseMode;
use fabric::{Mac, VlanId};
use linux_net::netlink::{Netlink, NetlinkRequest, Refusal, attribute, attributes, emit, find, nest, number};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use nix::{errno::Errno, sys::socket::SockProtocol};

use super::error::{Context as _, SwitchdError};
use super::{
    links::{Bridge, DeviceRole, Link},
    pause::{Ethtool, Pause},
};

const FAMILY: u8 = libc::AF_BRIDGE as u8;
const IFINFO_LEN: usize = 16;
const NDMSG_LEN: usize = 12;
const MASTER: u16 = 10;
const LINKINFO: u16 = 18;
const ALIAS: u16 = 20;
const AF_SPEC: u16 = 26;
const EXT_MASK: u16 = 29;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
/// `RTEXT_FILTER_BRVLAN_COMPRESSED`.
const RANGES_OF_VLANS: u32 = 1 << 2;
/// `IFLA_BRIDGE_VLAN_INFO` and the flags of its values.
const VLAN_INFO: u16 = 2;
const PVID: u16 = 1 << 1;
const UNTAGGED: u16 = 1 << 2;
const RANGE_BEGIN: u16 = 1 << 3;
const RANGE_END: u16 = 1 << 4;
/// `NDA_*`, `NUD_*`, `NTF_MASTER`.
const LINK_ADDRESS: u16 = 2;
const VLAN: u16 = 5;
const NEIGHBOUR_MASTER: u16 = 9;
const NO_ARP: u16 = 0x40;
const PERMANENT: u16 = 0x80;
const OF_BRIDGE: u8 = 1 << 2;
/// Clock ticks of the kernel's interface are hundredths of a second.
const TICKS_PER_S: u32 = 100;

/// VLAN and address.
pub(super) type Row = (VlanId, Mac);

/// What a bridge holds, as far as a manager writes it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct BridgeState {
    /// By the port's index.
    pub(super) ports: BTreeMap<u32, PortState>,
    /// Static entries and the port that they lead to.
    pub(super) statics: BTreeMap<Row, u32>,
    pub(super) stp: bool,
    pub(super) stp_priority: u16,
    pub(super) ageing_s: u32,
}

/// What a port of a bridge holds.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct PortState {
    pub(super) up: bool,
    pub(super) alias: String,
    /// VLANs, and whether they leave without a tag.
    pub(super) vlans: BTreeMap<VlanId, bool>,
    pub(super) pvid: Option<VlanId>,
    /// None where the driver has no PAUSE.
    pub(super) pause: Option<PauseMode>,
}

/// What a bridge says of itself and its ports.
#[derive(Clone, Debug)]
pub(super) struct Links {
    pub(super) device: Link,
    pub(super) bridge: Bridge,
    /// Ascending by index.
    pub(super) ports: Vec<Link>,
}

/// What of a state the kernel would not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Bridge,
    Port(u32),
    /// A port's membership.
    Vlan(u32, VlanId),
    Pause(u32),
    /// An entry toward a port.
    Static(Row, u32),
}

/// Why a change was not made.
#[derive(Debug)]
pub(super) struct NotChanged {
    pub(super) subject: Subject,
    pub(super) errno: Errno,
    /// The kernel's own words, if it has any.
    pub(super) words: String,
}

/// A bridge of the namespace in which this was opened.
pub(super) struct Kernel {
    bridge: String,
    index: u32,
    route: Netlink,
    /// None where the kernel has none.
    ethtool: Option<Ethtool>,
}

impl Kernel {
    /// # Errors
    /// [`SwitchdError::Unsupported`] if there is no such bridge, or it does not filter VLANs, with the way out;
    /// [`SwitchdError::Io`] if the kernel cannot be asked.
    pub(super) fn open(bridge: &str) -> Result<Self, SwitchdError> {
        let route = Netlink::open(SockProtocol::NetlinkRoute).context("serve", bridge, "ask the kernel")?;
        let mut kernel = Self { bridge: bridge.to_owned(), index: 0, route, ethtool: Ethtool::open().ok() };
        kernel.index = kernel.links()?.device.index;
        Ok(kernel)
    }

    /// Reads the bridge and its ports, with counters.
    ///
    /// # Errors
    /// As [`Kernel::open`].
    pub(super) fn links(&mut self) -> Result<Links, SwitchdError> {
        let request = NetlinkRequest { kind: libc::RTM_GETLINK, flags: 0, body: vec![0; IFINFO_LEN] };
        let messages = self.route.dump(&request).context("serve", &self.bridge, "read devices")?;
        let all: Vec<Link> = messages.iter().filter_map(|message| Link::parse(message)).collect();
        let found = all.iter().find_map(|link| match &link.kind {
            DeviceRole::Bridge(bridge) if link.name == self.bridge => Some((link.clone(), **bridge)),
            _ => None,
        });
        let name = &self.bridge;
        let Some((device, bridge)) = found else {
            return Err(SwitchdError::Unsupported(format!(
                "there is no bridge {name}: ip link add name {name} type bridge vlan_filtering 1"
            )));
        };
        if !bridge.filters_vlans {
            return Err(SwitchdError::Unsupported(format!(
                "{name} does not filter VLANs: ip link set dev {name} type bridge vlan_filtering 1"
            )));
        }
        let mut ports: Vec<Link> = all.into_iter().filter(|link| link.bridge == Some(device.index)).collect();
        ports.sort_by_key(|port| port.index);
        Ok(Links { device, bridge, ports })
    }

    /// The bridge's index.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// Reads what the bridge holds.
    ///
    /// # Errors
    /// As [`Kernel::open`].
    pub(super) fn read(&mut self) -> Result<BridgeState, SwitchdError> {
        let mut state = self.read_ports()?;
        state.statics = self.read_statics(&state)?;
        Ok(state)
    }

    /// Reads all but static entries.
    ///
    /// # Errors
    /// As [`Kernel::open`].
    pub(super) fn read_ports(&mut self) -> Result<BridgeState, SwitchdError> {
        let Links { bridge, ports, .. } = self.links()?;
        let mut state = BridgeState {
            stp: bridge.stp,
            stp_priority: bridge.priority,
            ageing_s: bridge.ageing_cs / TICKS_PER_S,
            ..BridgeState::default()
        };
        for port in ports {
            let pause = self.pause(port.index).map(|pause| pause.mode);
            let held = PortState { up: port.up, alias: port.alias, pause, ..PortState::default() };
            state.ports.insert(port.index, held);
        }
        self.read_vlans(&mut state).context("serve", &self.bridge, "read VLANs")?;
        Ok(state)
    }

    /// Reads the static entries toward the ports of a state.
    ///
    /// # Errors
    /// As [`Kernel::open`].
    pub(super) fn read_statics(&mut self, of: &BridgeState) -> Result<BTreeMap<Row, u32>, SwitchdError> {
        let rows = self.addresses()?.into_iter();
        let ours = rows.filter(|(_, port, state)| is_static(*state) && of.ports.contains_key(port));
        Ok(ours.map(|(row, port, _)| (row, port)).collect())
    }

    fn read_vlans(&mut self, state: &mut BridgeState) -> io::Result<()> {
        let body = [link_header(0, 0, 0), emit(&[attribute(EXT_MASK, &RANGES_OF_VLANS.to_ne_bytes())])].concat();
        for message in self.route.dump(&NetlinkRequest { kind: libc::RTM_GETLINK, flags: 0, body })? {
            let Some(index) = message.get(4..8).and_then(number).map(|index| index as u32) else { continue };
            let Some(port) = state.ports.get_mut(&index) else { continue };
            let said = message.get(IFINFO_LEN..).unwrap_or_default();
            if find(said, MASTER).and_then(number) != Some(self.index.into()) {
                continue;
            }
            let mut begun = None;
            for (kind, value) in attributes(find(said, AF_SPEC).unwrap_or_default()) {
                let &[a, b, c, d] = value else { continue };
                let (flags, id) = (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]));
                if kind != VLAN_INFO {
                    continue;
                }
                if flags & RANGE_BEGIN != 0 {
                    begun = Some(id);
                    continue;
                }
                let first = begun.take().filter(|_| flags & RANGE_END != 0).unwrap_or(id);
                for vlan in (first..=id).filter_map(|id| VlanId::new(id).ok()) {
                    port.vlans.insert(vlan, flags & UNTAGGED != 0);
                    if flags & PVID != 0 {
                        port.pvid = Some(vlan);
                    }
                }
            }
        }
        Ok(())
    }

    /// Addresses that the bridge has learned, and where.
    ///
    /// # Errors
    /// [`SwitchdError::Io`].
    pub(super) fn learned(&mut self) -> Result<BTreeMap<Row, u32>, SwitchdError> {
        let rows = self.addresses()?.into_iter().filter(|(.., state)| state & (NO_ARP | PERMANENT) == 0);
        Ok(rows.map(|(row, port, _)| (row, port)).collect())
    }

    /// Every address of the bridge with a VLAN, its port and `NUD_*` state.
    fn addresses(&mut self) -> Result<Vec<(Row, u32, u16)>, SwitchdError> {
        let request = NetlinkRequest { kind: libc::RTM_GETNEIGH, flags: 0, body: neighbour_header(0, 0) };
        let messages = self.route.dump(&request).context("serve", &self.bridge, "read addresses")?;
        Ok(messages.iter().filter_map(|message| address(message, self.index)).collect())
    }

    /// What a port's driver says of PAUSE; none where it has none.
    pub(super) fn pause(&mut self, port: u32) -> Option<Pause> {
        self.ethtool.as_mut()?.pause(port)
    }

    /// Brings the bridge from one state to another, of the same ports: what leaves first, ports that open last.
    ///
    /// # Errors
    /// What was refused; what came before it has been done, and some of what comes after it may have been.
    pub(super) fn change(&mut self, before: &BridgeState, after: &BridgeState) -> Result<(), NotChanged> {
        let (mut requests, mut last) = (Vec::new(), Vec::new());
        let nothing = PortState::default();
        let pairs: Vec<(u32, &PortState, &PortState)> =
            after.ports.iter().map(|(port, new)| (*port, before.ports.get(port).unwrap_or(&nothing), new)).collect();
        for (port, old, new) in &pairs {
            match (old.up, new.up) {
                (true, false) => requests.push((Subject::Port(*port), set_flags(*port, 0))),
                (false, true) => last.push((Subject::Port(*port), set_flags(*port, libc::IFF_UP as u32))),
                _ => {}
            }
        }
        requests.extend(self.options(before, after).map(|request| (Subject::Bridge, request)));
        for (row, port) in before.statics.iter().filter(|(row, _)| !after.statics.contains_key(*row)) {
            requests.push((Subject::Static(*row, *port), forget(*row, *port)));
        }
        for (port, old, new) in &pairs {
            requests.extend(memberships(*port, old, new));
            if old.alias != new.alias {
                requests.push((Subject::Port(*port), set_alias(*port, &new.alias)));
            }
        }
        for (row, port) in after.statics.iter().filter(|(row, port)| before.statics.get(*row) != Some(*port)) {
            requests.push((Subject::Static(*row, *port), enter(*row, *port)));
        }
        self.carry_out(requests)?;
        for (port, old, new) in pairs {
            if let Some(mode) = new.pause.filter(|_| old.pause != new.pause) {
                let unknown = Refusal { at: 0, errno: Errno::EOPNOTSUPP, words: String::new() };
                let done = self.ethtool.as_mut().map_or(Err(unknown), |ethtool| ethtool.set_pause(port, mode));
                let kept = done.and_then(|()| match self.pause(port) {
                    Some(pause) if pause.mode == mode => Ok(()),
                    // A driver that accepts a mode that it does not have.
                    _ => Err(Refusal { at: 0, errno: Errno::EINVAL, words: "the driver did not keep it".to_owned() }),
                });
                kept.map_err(|Refusal { errno, words, .. }| NotChanged {
                    subject: Subject::Pause(port),
                    errno,
                    words,
                })?;
            }
        }
        self.carry_out(last)
    }

    fn carry_out(&mut self, requests: Vec<(Subject, NetlinkRequest)>) -> Result<(), NotChanged> {
        let (subjects, requests): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
        self.route.change(&requests).map_err(|Refusal { at, errno, words }| NotChanged {
            subject: subjects[at],
            errno,
            words,
        })
    }

    fn options(&self, before: &BridgeState, after: &BridgeState) -> Option<NetlinkRequest> {
        let mut data = Vec::new();
        if before.stp != after.stp {
            data.push(attribute(5, &u32::from(after.stp).to_ne_bytes()));
        }
        if before.stp_priority != after.stp_priority {
            data.push(attribute(6, &after.stp_priority.to_ne_bytes()));
        }
        if before.ageing_s != after.ageing_s {
            data.push(attribute(4, &(after.ageing_s.saturating_mul(TICKS_PER_S)).to_ne_bytes()));
        }
        let info = [nest(LINKINFO, &[attribute(INFO_KIND, b"bridge\0"), nest(INFO_DATA, &data)])];
        let body = [link_header(self.index, 0, 0), emit(&info)].concat();
        (!data.is_empty()).then_some(NetlinkRequest { kind: libc::RTM_NEWLINK, flags: 0, body })
    }
}

fn memberships(port: u32, old: &PortState, new: &PortState) -> Vec<(Subject, NetlinkRequest)> {
    let request = |kind: u16, vlan: VlanId, flags: u16| {
        let value = [flags.to_ne_bytes(), vlan.get().to_ne_bytes()].concat();
        let mut header = link_header(port, 0, 0);
        header[0] = FAMILY;
        let body = [header, emit(&[nest(AF_SPEC, &[attribute(VLAN_INFO, &value)])])].concat();
        (Subject::Vlan(port, vlan), NetlinkRequest { kind, flags: 0, body })
    };
    let gone = old.vlans.keys().filter(|vlan| !new.vlans.contains_key(vlan));
    let mut requests: Vec<_> = gone.map(|vlan| request(libc::RTM_DELLINK, *vlan, 0)).collect();
    // A membership that is said without the PVID's flag loses it, so the PVID's comes last.
    let mut anew: Vec<(VlanId, bool)> = (new.vlans.iter())
        .filter(|(vlan, untagged)| {
            let flagged = |port: &PortState| port.pvid == Some(**vlan);
            old.vlans.get(vlan) != Some(untagged) || flagged(old) != flagged(new)
        })
        .map(|(vlan, untagged)| (*vlan, *untagged))
        .collect();
    anew.sort_by_key(|(vlan, _)| new.pvid == Some(*vlan));
    requests.extend(anew.into_iter().map(|(vlan, untagged)| {
        let pvid = if new.pvid == Some(vlan) { PVID } else { 0 };
        request(libc::RTM_SETLINK, vlan, pvid | if untagged { UNTAGGED } else { 0 })
    }));
    requests
}

/// Flags `ifi_flags` and which of them are meant; for a list of VLANs the family says bridges.
fn link_header(index: u32, flags: u32, change: u32) -> Vec<u8> {
    let family = if index == 0 { FAMILY } else { 0 };
    let numbers = [index, flags, change].map(u32::to_ne_bytes).concat();
    [&[family, 0, 0, 0][..], &numbers].concat()
}

fn set_flags(port: u32, flags: u32) -> NetlinkRequest {
    NetlinkRequest { kind: libc::RTM_SETLINK, flags: 0, body: link_header(port, flags, libc::IFF_UP as u32) }
}

fn set_alias(port: u32, alias: &str) -> NetlinkRequest {
    let body = [link_header(port, 0, 0), emit(&[attribute(ALIAS, alias.as_bytes())])].concat();
    NetlinkRequest { kind: libc::RTM_SETLINK, flags: 0, body }
}

fn neighbour_header(port: u32, state: u16) -> Vec<u8> {
    [&[FAMILY, 0, 0, 0][..], &port.to_ne_bytes(), &state.to_ne_bytes(), &[OF_BRIDGE, 0]].concat()
}

fn neighbour(row: Row, port: u32, state: u16) -> Vec<u8> {
    let (vlan, mac) = row;
    let of = [attribute(LINK_ADDRESS, &mac.octets()), attribute(VLAN, &vlan.get().to_ne_bytes())];
    [neighbour_header(port, state), emit(&of)].concat()
}

fn enter(row: Row, port: u32) -> NetlinkRequest {
    NetlinkRequest { kind: libc::RTM_NEWNEIGH, flags: NLM_F_CREATE | NLM_F_REPLACE, body: neighbour(row, port, NO_ARP) }
}

fn forget(row: Row, port: u32) -> NetlinkRequest {
    NetlinkRequest { kind: libc::RTM_DELNEIGH, flags: 0, body: neighbour(row, port, NO_ARP) }
}

/// Whether an address of this state was entered by somebody, and does not age.
pub(super) fn is_static(state: u16) -> bool {
    state & NO_ARP != 0
}

/// The VLAN and address of a message, its port and `NUD_*` state, if it is of this bridge.
pub(super) fn address(message: &[u8], bridge: u32) -> Option<(Row, u32, u16)> {
    let port = number(message.get(4..8)?)? as u32;
    let state = number(message.get(8..10)?)? as u16;
    let said = message.get(NDMSG_LEN..)?;
    if number(find(said, NEIGHBOUR_MASTER)?)? != u64::from(bridge) {
        return None;
    }
    let mac = Mac::new(find(said, LINK_ADDRESS)?.try_into().ok()?);
    let vlan = VlanId::new(number(find(said, VLAN)?)? as u16).ok()?;
    Some(((vlan, mac), port, state))
}
