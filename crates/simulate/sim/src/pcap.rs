//! Captured frames as a pcap file, with the headers that the simulator knows of.
//!
//! Octets are those on the cable without preamble and frame check sequence. Payload is not simulated: it is zeros, and
//! only the first [`SNAP_BYTES`] octets of a frame are written, as with `tcpdump -s 128`.
//!
//! ```text
//!   Ethernet │ 802.1Q, priority = class │ IPv4 │ UDP                    datagrams, ports 49152… to 40000…
//!                                              │ TCP, time stamps      segments and acknowledgements; no handshake
//!                                              │ UDP 4791, BTH, AETH   go-back-N, as RoCEv2; 8 octets of trailer
//!   Ethernet │ MAC control: PAUSE, or priority flow control            from a made-up address of the switch's port
//! ```
//! Sources: the pcap file format (libpcap, `pcap-savefile(5)`, magic number of nanoseconds); IEEE 802.3 annex 31B and
//! 802.1Q clause 36; RFC 791, 768, 9293, 7323, 826; InfiniBand Architecture, annex A17.

use std::{
    io::{self, Write},
    net::{IpAddr, Ipv4Addr},
};

use fabric::{FlowControlMode, HostId, Plan, PortId};

use crate::{
    packet::{Captured, Carries, Direction, PacketConfig, Seen, SeenFrame},
    workload::{Transport, Workload},
};

/// Octets of each frame that are written.
pub const SNAP_BYTES: usize = 128;

/// Frame check sequence, which captures leave out.
const FCS_BYTES: u32 = 4;
/// Link type of Ethernet.
const ETHERNET: u32 = 1;
/// Time stamps are nanoseconds.
const MAGIC_NS: u32 = 0xa1b2_3c4d;
const FLOW_CONTROL_GROUP: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];
const BROADCAST: [u8; 6] = [0xff; 6];
const ROCE_PORT: u16 = 4791;

/// Writes the frames seen at one port, in their order.
///
/// # Errors
/// If the writer fails, or a host's address is not IPv4, as an error of kind `InvalidData`.
pub fn write_pcap(
    plan: &Plan,
    workload: &Workload,
    config: &PacketConfig,
    captured: &[Captured],
    port: PortId,
    out: &mut dyn Write,
) -> io::Result<()> {
    let stations = Stations::new(plan)?;
    out.write_all(&MAGIC_NS.to_le_bytes())?;
    out.write_all(&[2, 0, 4, 0])?;
    for word in [0, 0, SNAP_BYTES as u32, ETHERNET] {
        out.write_all(&word.to_le_bytes())?;
    }
    let mut bytes = Vec::with_capacity(SNAP_BYTES);
    for seen in captured.iter().filter(|seen| seen.port == port) {
        bytes.clear();
        let whole = match seen.what {
            Seen::Pause { class, quanta } => {
                write_pause(plan, seen, class, quanta, &mut bytes);
                64 - FCS_BYTES
            }
            Seen::Frame(frame) => {
                stations.write_frame(&frame, seen.at_ps, workload, config, &mut bytes);
                frame.bytes - FCS_BYTES + if frame.tag.is_some() { 4 } else { 0 }
            }
        };
        bytes.resize((whole as usize).min(SNAP_BYTES), 0);
        let ns = seen.at_ps / 1000;
        for word in [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, bytes.len() as u32, whole] {
            out.write_all(&word.to_le_bytes())?;
        }
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// What hosts are called on the cable.
struct Stations {
    of: Vec<([u8; 6], Ipv4Addr)>,
}

impl Stations {
    fn new(plan: &Plan) -> io::Result<Self> {
        let station = |host: HostId| {
            let intent = plan.host_intent(host);
            match intent.address {
                IpAddr::V4(address) => Ok((intent.mac.octets(), address)),
                IpAddr::V6(address) => {
                    let name = &plan.topology.host(host).name;
                    let why = format!("{name} has the address {address}, and captures are of IPv4 alone");
                    Err(io::Error::new(io::ErrorKind::InvalidData, why))
                }
            }
        };
        Ok(Self { of: plan.topology.host_ids().map(station).collect::<io::Result<_>>()? })
    }

    /// Headers of a frame, and no more payload than they need.
    fn write_frame(
        &self,
        frame: &SeenFrame,
        at_ps: u64,
        workload: &Workload,
        config: &PacketConfig,
        out: &mut Vec<u8>,
    ) {
        let (mac, address) = self.of[frame.source.index()];
        let (to_mac, to_address) =
            frame.destination.map_or((BROADCAST, Ipv4Addr::BROADCAST), |host| self.of[host.index()]);
        out.extend(to_mac);
        out.extend(mac);
        if let Some(tag) = frame.tag {
            out.extend(0x8100_u16.to_be_bytes());
            out.extend((u16::from(frame.class.min(7)) << 13 | tag.get()).to_be_bytes());
        }
        let flow = &workload.flows[frame.flow as usize];
        if matches!(frame.carries, Carries::ArpRequest | Carries::ArpReply) {
            let is_request = frame.carries == Carries::ArpRequest;
            let asked = if is_request { flow.destination } else { frame.destination };
            let (asked_mac, asked_address) = asked.map_or((BROADCAST, to_address), |host| self.of[host.index()]);
            out.extend([0x08, 0x06, 0, 1, 0x08, 0x00, 6, 4, 0, if is_request { 1 } else { 2 }]);
            out.extend(mac);
            out.extend(address.octets());
            out.extend(if is_request { [0; 6] } else { asked_mac });
            out.extend(asked_address.octets());
            return;
        }
        out.extend([0x08, 0x00]);
        let is_data = frame.carries == Carries::Data;
        let payload = match (is_data, flow.bytes) {
            (false, _) => 0,
            (true, None) => flow.payload_bytes,
            (true, Some(bytes)) => {
                let before = u64::from(frame.number) * u64::from(flow.payload_bytes);
                bytes.saturating_sub(before).min(u64::from(flow.payload_bytes)) as u32
            }
        };
        let (protocol, transport) = match flow.transport {
            Transport::Udp { .. } => (17, datagram(ephemeral(frame.flow), remote(frame.flow), payload)),
            Transport::Tcp(_) => (6, segment(frame, flow.payload_bytes, flow.bytes, at_ps, config)),
            Transport::GoBackN => (17, roce(frame, payload)),
        };
        let padding = if matches!(flow.transport, Transport::GoBackN) { 0 } else { payload };
        let length = 20 + transport.len() as u32 + padding;
        let ecn = match (config.ecn_bytes, frame.marked) {
            (_, true) => 3,
            (Some(_), false) if is_data => 2,
            _ => 0,
        };
        let mut header = [0_u8; 20];
        header[0] = 0x45;
        header[1] = ecn;
        header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        header[4..6].copy_from_slice(&(frame.number as u16).to_be_bytes());
        header[6] = 0x40;
        header[8] = 64;
        header[9] = protocol;
        header[12..16].copy_from_slice(&address.octets());
        header[16..20].copy_from_slice(&to_address.octets());
        let sum = checksum(0, &header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        out.extend(header);
        let at = out.len();
        out.extend(&transport);
        if protocol == 6 {
            // The payload's zeros add nothing to the sum but their number.
            let sum = [address.octets(), to_address.octets()].concat();
            let pseudo = u32::from(!checksum(6 + transport.len() as u32 + payload, &sum));
            let sum = checksum(pseudo, &transport);
            out[at + 16..at + 18].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

fn datagram(from: u16, to: u16, payload: u32) -> Vec<u8> {
    let length = 8 + payload as u16;
    // A checksum of 0 says that there is none.
    [from, to, length, 0].iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn segment(frame: &SeenFrame, payload_bytes: u32, bytes: Option<u64>, at_ps: u64, config: &PacketConfig) -> Vec<u8> {
    let offset = u64::from(frame.number) * u64::from(payload_bytes);
    let offset = 1 + bytes.map_or(offset, |bytes| offset.min(bytes)) as u32;
    let (here, there) = (ephemeral(frame.flow), remote(frame.flow));
    let us = |ps: u64| (ps / 1_000_000) as u32;
    let (ports, sequence, acknowledged, stamps) = match frame.carries {
        Carries::Data => ([here, there], offset, 1, [us(frame.born_ps), 0]),
        _ => ([there, here], 1, offset, [us(at_ps), us(frame.born_ps)]),
    };
    let mut out: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
    out.extend(sequence.to_be_bytes());
    out.extend(acknowledged.to_be_bytes());
    // Eight words of header; ACK, and ECE where a mark is echoed.
    out.extend([0x80, if frame.carries == Carries::MarkedAck { 0x50 } else { 0x10 }]);
    out.extend((config.window_bytes.min(0xffff) as u16).to_be_bytes());
    out.extend([0, 0, 0, 0, 1, 1, 8, 10]);
    out.extend(stamps.iter().flat_map(|stamp| stamp.to_be_bytes()));
    out
}

/// A base transport header with its payload and invariant check sequence, which is left zero.
fn roce(frame: &SeenFrame, payload: u32) -> Vec<u8> {
    let is_data = frame.carries == Carries::Data;
    let padding = (4 - payload % 4) % 4;
    let inner = if is_data { 12 + payload + padding + 4 } else { 12 + 4 + 4 };
    let mut out = datagram(ephemeral(frame.flow), ROCE_PORT, inner);
    // RC SEND only, or RC acknowledge of everything before `number`.
    let (operation, number) = if is_data { (0x04, frame.number) } else { (0x11, frame.number.wrapping_sub(1)) };
    out.extend([operation, 0x40 | (padding as u8) << 4, 0xff, 0xff, 0]);
    out.extend(&frame.flow.to_be_bytes()[1..]);
    out.push(if is_data { 0x80 } else { 0 });
    out.extend(&number.to_be_bytes()[1..]);
    if !is_data {
        out.push(0x1f);
        out.extend(&frame.number.to_be_bytes()[1..]);
    }
    out.resize(8 + inner as usize, 0);
    out
}

fn write_pause(plan: &Plan, seen: &Captured, class: u8, quanta: u16, out: &mut Vec<u8>) {
    // A port's own PAUSE carries its address; one that comes in, that of the port at the other end.
    let sender = match (seen.direction, plan.topology.port(seen.port).attachment) {
        (Direction::In, fabric::Attachment::Link(link)) => {
            let link = plan.topology.link(link);
            if link.a == seen.port { link.b } else { link.a }
        }
        _ => seen.port,
    };
    out.extend(FLOW_CONTROL_GROUP);
    out.extend([0x02, 0xfc]);
    out.extend((sender.index() as u32).to_be_bytes());
    let planned = plan.devices.iter().flat_map(|device| &device.ports).find(|port| port.port == sender);
    let is_pfc = class > 0 || planned.is_some_and(|port| matches!(port.flow_control, FlowControlMode::Pfc { .. }));
    out.extend([0x88, 0x08]);
    if is_pfc {
        out.extend([0x01, 0x01, 0, 1 << class.min(7)]);
        for priority in 0..8 {
            out.extend(if priority == class { quanta } else { 0 }.to_be_bytes());
        }
    } else {
        out.extend([0x00, 0x01]);
        out.extend(quanta.to_be_bytes());
    }
}

fn ephemeral(flow: u32) -> u16 {
    49_152 + (flow % 16_384) as u16
}

fn remote(flow: u32) -> u16 {
    40_000 + (flow / 16_384 % 8_192) as u16
}

/// The internet checksum (RFC 1071) of octets after a sum so far.
fn checksum(start: u32, bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    let mut sum = start + bytes.chunks(2).map(word).sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
