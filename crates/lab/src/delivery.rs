//! Who receives what: echo between all pairs, and group frames that must reach every host they should exactly once.
//!
//! Each check sends one probe a host (or pair) through the real stacks and counts copies where they arrive. Copies are
//! waited for until all expected ones are there and a moment longer, so that a duplicate shows too.
//!
//! ```text
//!            n1 sends once      n2   n3   n4
//! expected   (audience of n1)   1    1    1
//! counted                       1    2    0   → two faults: n3 twice, n4 missing
//! ```
//!
//! Source: RFC 792 and RFC 4443 (echo), RFC 5227 (ARP probe), RFC 2131 (DHCP from 0.0.0.0), RFC 2365 (multicast scope).

use std::{
    fmt, io,
    mem::MaybeUninit,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6},
    thread,
    time::{Duration, Instant},
};

use fabric::Mac;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::{
    Lab, LabError,
    error::Context,
    layout::{HostSite, Layout},
    netns,
};

/// A kind of frame whose delivery is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// Echo from every host to every other's IP address.
    Ping,
    /// Echo to every other's IPv6 link-local address, which neighbour discovery has to find.
    PingLinkLocal,
    /// An ARP probe for another host: heard by the whole audience, answered by its owner alone.
    Arp,
    /// A DHCP discovery's frame: UDP from 0.0.0.0, port 68, to 255.255.255.255, port 67.
    Dhcp,
    /// A datagram to an IP multicast group that every host has joined.
    Multicast,
    /// A frame to every further station address of every other host, as of its virtual machines: heard behind that host's port
    /// alone.
    Addresses,
}

impl Probe {
    /// Every kind, in the order in which they are worth trying.
    pub const ALL: &'static [Self] =
        &[Self::Ping, Self::PingLinkLocal, Self::Arp, Self::Dhcp, Self::Multicast, Self::Addresses];

    /// Whether a lab has anything to check.
    pub fn is_meant_for(self, layout: &Layout) -> bool {
        self != Self::Addresses || layout.hosts.iter().any(|host| !host.further_macs.is_empty())
    }

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::PingLinkLocal => "ping-link-local",
            Self::Arp => "arp",
            Self::Dhcp => "dhcp",
            Self::Multicast => "multicast",
            Self::Addresses => "addresses",
        }
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// How a check went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// What was sent.
    pub probe: Probe,
    /// Ordered pairs that were looked at: all of them.
    pub pairs: usize,
    /// Those that did not get what they should, ascending.
    pub faults: Vec<Misdelivery>,
    /// How long it took.
    pub elapsed: Duration,
}

/// A pair that did not get what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misdelivery {
    /// Who sent.
    pub source: String,
    /// Who should, or should not, have received.
    pub destination: String,
    /// Copies that should have arrived (of an echo: answers).
    pub expected: u32,
    /// Copies that did.
    pub copies: u32,
}

/// How long to go on listening for duplicates once everything has arrived.
const SETTLE: Duration = Duration::from_millis(150);

/// How long to wait for what is missing.
const PATIENCE: Duration = Duration::from_secs(3);

/// Most packets of one socket before the others have their turn, and the clock.
const PACKETS_AT_ONCE: usize = 1024;

/// Marks our probes among other traffic.
const TOKEN: [u8; 8] = *b"espalier";

const DHCP_SERVER_PORT: u16 = 67;
const DHCP_CLIENT_PORT: u16 = 68;
/// EtherType of local experiments (IEEE 802, clause 9.2.4).
const EXPERIMENTAL: u16 = 0x88b5;
const MULTICAST_PORT: u16 = 47_411;
const MULTICAST_V4: Ipv4Addr = Ipv4Addr::new(239, 255, 77, 1);
const MULTICAST_V6: Ipv6Addr = Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0, 0x4d01);

/// Checks the delivery of one kind of frame between all hosts.
///
/// # Errors
/// [`LabError::Io`] if sockets cannot be made or used; frames that go astray are faults in the result.
pub fn check(lab: &Lab, probe: Probe) -> Result<Delivery, LabError> {
    let since = Instant::now();
    let layout = lab.layout();
    let (expected, copies) = match probe {
        Probe::Ping => ping(layout, |host| SocketAddr::new(host.address, 0))?,
        Probe::PingLinkLocal => ping(layout, |host| SocketAddr::V6(SocketAddrV6::new(link_local(host), 0, 0, 0)))?,
        Probe::Arp => arp(layout)?,
        Probe::Dhcp => dhcp(layout)?,
        Probe::Multicast => multicast(layout)?,
        Probe::Addresses => addresses(layout)?,
    };
    let name = |host: usize| layout.hosts[host].name.clone();
    let count = layout.hosts.len();
    let all = (0..count).flat_map(|source| (0..count).map(move |destination| (source, destination)));
    // A host's answers to ARP are counted for the host and itself.
    let counted =
        |(source, destination): &(usize, usize)| source == destination || layout.exchange(*source, *destination);
    let pairs: Vec<(usize, usize)> = all.filter(counted).collect();
    let between_hosts = pairs.iter().filter(|(source, destination)| source != destination).count();
    let faults = (pairs.into_iter())
        .map(|(source, destination)| {
            (source, destination, expected.at(source, destination), copies.at(source, destination))
        })
        .filter(|(.., expected, copies)| expected != copies)
        .map(|(source, destination, expected, copies)| Misdelivery {
            source: name(source),
            destination: name(destination),
            expected,
            copies,
        })
        .collect();
    Ok(Delivery { probe, pairs: between_hosts, faults, elapsed: since.elapsed() })
}

/// A number for every ordered pair of hosts.
#[derive(Clone, PartialEq, Eq)]
struct Counts {
    hosts: usize,
    counts: Vec<u32>,
}

impl Counts {
    fn new(hosts: usize) -> Self {
        Self { hosts, counts: vec![0; hosts * hosts] }
    }

    /// What every host's group frames should give: a copy for each member of its audience.
    fn of_audiences(layout: &Layout) -> Self {
        let mut counts = Self::new(layout.hosts.len());
        for (source, host) in layout.hosts.iter().enumerate() {
            let heard = host.audience.iter().filter(|destination| layout.exchange(source, **destination));
            heard.for_each(|destination| counts.add(source, *destination));
        }
        counts
    }

    fn at(&self, source: usize, destination: usize) -> u32 {
        self.counts[source * self.hosts + destination]
    }

    fn add(&mut self, source: usize, destination: usize) {
        self.counts[source * self.hosts + destination] += 1;
    }

    fn covers(&self, other: &Self) -> bool {
        self.counts.iter().zip(&other.counts).all(|(own, other)| own >= other)
    }
}

/// Echo between all ordered pairs; what is unanswered is asked again, as people's ping does, but an answer that comes
/// twice counts twice.
fn ping(layout: &Layout, target: impl Fn(&HostSite) -> SocketAddr) -> Result<(Counts, Counts), LabError> {
    let hosts = layout.hosts.len();
    let mut expected = Counts::new(hosts);
    (0..hosts)
        .flat_map(|a| (0..hosts).map(move |b| (a, b)))
        .filter(|(a, b)| layout.exchange(*a, *b))
        .for_each(|(a, b)| expected.add(a, b));
    let targets: Vec<SocketAddr> = layout.hosts.iter().map(target).collect();
    let sockets = in_hosts(layout, "open echo socket", |host, index| {
        let (domain, protocol) = match targets[index] {
            SocketAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
            SocketAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
        };
        let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
        socket.bind_device(Some(host.device.as_bytes()))?;
        Ok(socket)
    })?;
    let mut answered = Counts::new(hosts);
    for round in 0..3_u8 {
        for (source, socket) in sockets.iter().enumerate() {
            for (destination, target) in targets.iter().enumerate() {
                if expected.at(source, destination) > answered.at(source, destination) {
                    let request = echo_request(target, source, destination, round);
                    // What cannot be sent shows as unanswered.
                    let _ = socket.send_to(&request, &SockAddr::from(*target));
                }
            }
        }
        // The last round is as patient as it gets; the others only give lost frames another try.
        let patience = if round == 2 { PATIENCE } else { PATIENCE / 3 };
        let note = |counts: &mut Counts, host: usize, packet: &[u8]| {
            if let Some((source, destination)) = echo_answer(packet, targets[host], round)
                .filter(|(source, destination)| *source == host && *destination < hosts)
            {
                counts.add(source, destination);
            }
        };
        collect(&sockets, &mut answered, &expected, patience, note).context("check", &layout.name, "receive echo")?;
        if answered.covers(&expected) {
            break;
        }
    }
    Ok((expected, answered))
}

/// `type code checksum identifier sequence`, then token, source, destination, round.
fn echo_request(target: &SocketAddr, source: usize, destination: usize, round: u8) -> Vec<u8> {
    let kind = if target.is_ipv4() { 8 } else { 128 };
    let mut packet = vec![kind, 0, 0, 0];
    packet.extend((source as u16).to_be_bytes());
    packet.extend((destination as u16).to_be_bytes());
    packet.extend(TOKEN);
    packet.extend((source as u16).to_be_bytes());
    packet.extend((destination as u16).to_be_bytes());
    packet.extend([round, 0]);
    // The kernel computes it for IPv6, where it covers addresses.
    if target.is_ipv4() {
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    packet
}

/// Source and destination of an answer to one of our requests of this round; a late one of an earlier round is no
/// duplicate.
fn echo_answer(packet: &[u8], target: SocketAddr, round: u8) -> Option<(usize, usize)> {
    // IPv4 raw sockets deliver the IP header too.
    let (start, kind) = if target.is_ipv4() { (usize::from(packet.first()? & 0x0f) * 4, 0) } else { (0, 129) };
    let answer = packet.get(start..)?;
    (answer.first() == Some(&kind) && answer.get(8..16)? == TOKEN && answer.get(20) == Some(&round)).then_some(())?;
    Some((usize::from(u16_at(answer, 16)?), usize::from(u16_at(answer, 18)?)))
}

/// Every host asks for the next member of its audience. The requests are counted; an answer counts for the pair
/// (asker, asker), so that one answer in all is expected there.
fn arp(layout: &Layout) -> Result<(Counts, Counts), LabError> {
    let mut expected = Counts::of_audiences(layout);
    let sockets = in_hosts(layout, "open packet socket", |host, _| packet_socket(host, libc::ETH_P_ARP as u16))?;
    let macs = macs(layout);
    for (source, host) in layout.hosts.iter().enumerate() {
        let heard = || host.audience.iter().filter(|other| layout.exchange(source, **other));
        let after = heard().find(|other| **other > source).or(heard().next());
        let Some(IpAddr::V4(address)) = after.map(|target| layout.hosts[*target].address) else { continue };
        expected.add(source, source);
        let mut frame = ethernet(Mac::BROADCAST, macs[source], libc::ETH_P_ARP as u16);
        frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
        frame.extend(macs[source].octets());
        frame.extend([0; 4]);
        frame.extend([0; 6]);
        frame.extend(address.octets());
        send_frame(host, &sockets[source], &frame).context("check", &host.name, "send ARP probe")?;
    }
    let note = |counts: &mut Counts, host: usize, frame: &[u8]| {
        let (Some(operation), Some(sender), Some(from)) = (u16_at(frame, 20), frame.get(22..28), frame.get(28..32))
        else {
            return;
        };
        let is_sender = |at: &usize| macs[*at].octets() == sender && !layout.hosts[*at].standby;
        let Some(sender) = (0..macs.len()).find(is_sender) else { return };
        match operation {
            // The kernel's own requests carry the sender's address.
            1 if from == [0; 4] && sender != host => counts.add(sender, host),
            2 if frame.get(38..42) == Some(&[0; 4]) && sender != host => counts.add(host, host),
            _ => {}
        }
    };
    let mut counts = Counts::new(layout.hosts.len());
    collect(&sockets, &mut counts, &expected, PATIENCE, note).context("check", &layout.name, "receive ARP")?;
    Ok((expected, counts))
}

fn dhcp(layout: &Layout) -> Result<(Counts, Counts), LabError> {
    let expected = Counts::of_audiences(layout);
    let sockets = in_hosts(layout, "open UDP port 67", |host, _| {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        socket.bind_device(Some(host.device.as_bytes()))?;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, DHCP_SERVER_PORT)).into())?;
        Ok(socket)
    })?;
    let senders = in_hosts(layout, "open packet socket", |host, _| packet_socket(host, 0))?;
    for ((source, mac), socket) in macs(layout).into_iter().enumerate().zip(&senders) {
        let mut frame = ethernet(Mac::BROADCAST, mac, libc::ETH_P_IP as u16);
        frame.extend(datagram(source));
        let host = &layout.hosts[source];
        if host.standby {
            continue;
        }
        send_frame(host, socket, &frame).context("check", &host.name, "send broadcast")?;
    }
    let mut counts = Counts::new(layout.hosts.len());
    collect(&sockets, &mut counts, &expected, PATIENCE, note_token).context(
        "check",
        &layout.name,
        "receive broadcast",
    )?;
    Ok((expected, counts))
}

/// An IPv4 header, a UDP header without checksum, and the token.
fn datagram(source: usize) -> Vec<u8> {
    let payload = token(source);
    let total = 28 + payload.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend(Ipv4Addr::UNSPECIFIED.octets());
    packet.extend(Ipv4Addr::BROADCAST.octets());
    let sum = checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(DHCP_CLIENT_PORT.to_be_bytes());
    packet.extend(DHCP_SERVER_PORT.to_be_bytes());
    packet.extend((8 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}

fn multicast(layout: &Layout) -> Result<(Counts, Counts), LabError> {
    let expected = Counts::of_audiences(layout);
    let sockets = in_hosts(layout, "join multicast group", |host, _| {
        let domain = if host.address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        socket.bind_device(Some(host.device.as_bytes()))?;
        socket.set_reuse_address(true)?;
        if host.address.is_ipv4() {
            let interface = socket2::InterfaceIndexOrAddress::Index(host.ifindex);
            socket.bind(&SocketAddr::from((MULTICAST_V4, MULTICAST_PORT)).into())?;
            socket.join_multicast_v4_n(&MULTICAST_V4, &interface)?;
        } else {
            socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, MULTICAST_PORT)).into())?;
            socket.join_multicast_v6(&MULTICAST_V6, host.ifindex)?;
        }
        Ok(socket)
    })?;
    let senders = in_hosts(layout, "open sender", |host, _| {
        let domain = if host.address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        socket.bind_device(Some(host.device.as_bytes()))?;
        if let IpAddr::V4(address) = host.address {
            // A standby port has no address, and says nothing.
            if !host.standby {
                socket.set_multicast_if_v4(&address)?;
            }
            socket.set_multicast_loop_v4(false)?;
        } else {
            socket.set_multicast_if_v6(host.ifindex)?;
            socket.set_multicast_loop_v6(false)?;
        }
        Ok(socket)
    })?;
    let active = layout.hosts.iter().zip(&senders).enumerate().filter(|(_, (host, _))| !host.standby);
    for (source, (host, socket)) in active {
        let group = if host.address.is_ipv4() { IpAddr::V4(MULTICAST_V4) } else { IpAddr::V6(MULTICAST_V6) };
        let group = SockAddr::from(SocketAddr::new(group, MULTICAST_PORT));
        socket.send_to(&token(source), &group).context("check", &host.name, "send to group")?;
    }
    let mut counts = Counts::new(layout.hosts.len());
    collect(&sockets, &mut counts, &expected, PATIENCE, note_token).context("check", &layout.name, "receive group")?;
    Ok((expected, counts))
}

/// Sockets see every frame that comes to a host's device, for whatever address: a frame that floods is counted as well.
fn addresses(layout: &Layout) -> Result<(Counts, Counts), LabError> {
    let sockets = in_hosts(layout, "open packet socket", |host, _| packet_socket(host, EXPERIMENTAL))?;
    let (macs, count) = (macs(layout), layout.hosts.len());
    let mut expected = Counts::new(count);
    for (source, host) in layout.hosts.iter().enumerate() {
        for destination in (0..count).filter(|destination| layout.exchange(source, *destination)) {
            for mac in &layout.hosts[destination].further_macs {
                let mut frame = ethernet(mac.parse().unwrap_or(Mac::BROADCAST), macs[source], EXPERIMENTAL);
                frame.extend(token(source));
                expected.add(source, destination);
                send_frame(host, &sockets[source], &frame).context("check", &host.name, "send frame")?;
            }
        }
    }
    let mut counts = Counts::new(count);
    // What a host sends itself comes by its socket, too.
    let note = |counts: &mut Counts, host: usize, frame: &[u8]| {
        if frame.get(6..12) != Some(&macs[host].octets()) {
            note_token(counts, host, frame.get(14..).unwrap_or_default());
        }
    };
    collect(&sockets, &mut counts, &expected, PATIENCE, note).context("check", &layout.name, "receive frames")?;
    Ok((expected, counts))
}

/// A socket in every host, in order.
fn in_hosts(
    layout: &Layout,
    step: &'static str,
    open: impl Fn(&HostSite, usize) -> io::Result<Socket> + Sync,
) -> Result<Vec<Socket>, LabError> {
    (layout.hosts.iter().enumerate())
        .map(|(index, host)| {
            netns::within(&host.namespace, || open(host, index))
                .and_then(|socket| socket)
                .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
                .context("check", &host.name, step)
        })
        .collect()
}

/// Reads everything that arrives until the counts cover what is expected and a while has passed, or patience ends.
fn collect(
    sockets: &[Socket],
    counts: &mut Counts,
    expected: &Counts,
    patience: Duration,
    note: impl Fn(&mut Counts, usize, &[u8]),
) -> io::Result<()> {
    let mut buffer = [MaybeUninit::<u8>::uninit(); 2048];
    let since = Instant::now();
    let mut complete: Option<Instant> = None;
    while since.elapsed() < patience && complete.is_none_or(|at| at.elapsed() < SETTLE) {
        for (host, socket) in sockets.iter().enumerate() {
            // A storm would keep one socket busy for ever.
            for _ in 0..PACKETS_AT_ONCE {
                let length = match socket.recv_from(&mut buffer) {
                    Ok((length, _)) => length,
                    Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock) => break,
                    // An ICMP error about a probe, or an interruption: the probe will be missing.
                    Err(error) if error.kind() != io::ErrorKind::PermissionDenied => break,
                    Err(error) => return Err(error),
                };
                // SAFETY: the kernel has written the first `length` bytes.
                let packet = unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), length) };
                note(counts, host, packet);
            }
        }
        if complete.is_none() && counts.covers(expected) {
            complete = Some(Instant::now());
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn note_token(counts: &mut Counts, host: usize, payload: &[u8]) {
    if let Some(source) = payload.strip_prefix(&TOKEN).and_then(|rest| u16_at(rest, 0)).map(usize::from) {
        if source < counts.hosts {
            counts.add(source, host);
        }
    }
}

fn token(source: usize) -> Vec<u8> {
    [&TOKEN[..], &(source as u16).to_be_bytes()].concat()
}

fn macs(layout: &Layout) -> Vec<Mac> {
    layout.hosts.iter().map(|host| host.mac.parse().unwrap_or(Mac::new([0; 6]))).collect()
}

/// The address that follows from a station address (RFC 4291, appendix A).
fn link_local(host: &HostSite) -> Ipv6Addr {
    let [a, b, c, d, e, f] = host.mac.parse().unwrap_or(Mac::new([0; 6])).octets();
    let pair = |high: u8, low: u8| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(0xfe80, 0, 0, 0, pair(a ^ 2, b), pair(c, 0xff), pair(0xfe, d), pair(e, f))
}

fn ethernet(destination: Mac, source: Mac, kind: u16) -> Vec<u8> {
    [&destination.octets()[..], &source.octets(), &kind.to_be_bytes()].concat()
}

/// A socket that sees whole frames of one protocol on the host's device; protocol 0 only sends.
fn packet_socket(host: &HostSite, protocol: u16) -> io::Result<Socket> {
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(i32::from(protocol.to_be()))))?;
    socket.bind(&device_address(host, protocol)?)?;
    Ok(socket)
}

fn send_frame(host: &HostSite, socket: &Socket, frame: &[u8]) -> io::Result<()> {
    socket.send_to(frame, &device_address(host, 0)?).map(drop)
}

fn device_address(host: &HostSite, protocol: u16) -> io::Result<SockAddr> {
    // SAFETY: the closure fills in a complete sockaddr_ll, which fits in sockaddr_storage, and says how long it is.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            let address = storage.cast::<libc::sockaddr_ll>();
            (*address).sll_family = libc::AF_PACKET as u16;
            (*address).sll_protocol = protocol.to_be();
            (*address).sll_ifindex = host.ifindex as i32;
            *length = size_of::<libc::sockaddr_ll>() as u32;
            Ok(())
        })?
    };
    Ok(address)
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_packet_with_its_checksum_is_zero() {
        let packet = datagram(7);
        assert_eq!(checksum(&packet[..20]), 0);
        let target = "10.0.0.1:0".parse().expect("an address");
        assert_eq!(checksum(&echo_request(&target, 1, 2, 0)), 0);
    }

    /// Every packet that is read brings another, as in a fabric with a loop.
    #[test]
    fn a_storm_is_listened_to_no_longer_than_silence() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let socket = std::net::UdpSocket::bind(any).expect("a socket");
        let place = socket.local_addr().expect("an address");
        let more = std::net::UdpSocket::bind(any).expect("a socket");
        let again = || more.send_to(b"x", place).expect("room for one");
        again();
        socket.set_nonblocking(true).expect("a socket");
        let (mut counts, mut expected) = (Counts::new(1), Counts::new(1));
        expected.add(0, 0);
        let note = |_: &mut Counts, _: usize, _: &[u8]| _ = again();
        collect(&[socket.into()], &mut counts, &expected, Duration::from_millis(20), note).expect("it ends");
        assert_eq!(counts.at(0, 0), 0);
    }

    #[test]
    fn an_answer_names_its_pair() {
        let target: SocketAddr = "10.0.0.1:0".parse().expect("an address");
        let mut answer = vec![0x45; 20];
        answer.extend(echo_request(&target, 3, 5, 1));
        assert_eq!(echo_answer(&answer, target, 1), None, "a request is no answer");
        answer[20] = 0;
        assert_eq!(echo_answer(&answer, target, 1), Some((3, 5)));
        assert_eq!(echo_answer(&answer, target, 0), None, "an answer of another round");
        assert_eq!(echo_answer(&answer[..30], target, 1), None);
    }
}
