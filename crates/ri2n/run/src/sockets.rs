//! The sockets of TCP of this network namespace, as the kernel tells of them (sock_diag(7)).

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsRawFd, OwnedFd},
};

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::{
    SockDiagMessage,
    constants::{AF_INET, AF_INET6, IPPROTO_TCP},
    inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags},
};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, setsockopt, socket,
    sockopt::ReceiveTimeout,
};
use nix::sys::time::{TimeVal, TimeValLike};

/// Bytes of an answer at once; the kernel fills no more than 32 KiB.
const ANSWER_BYTES: usize = 64 << 10;
/// How long the kernel may take.
const ANSWER_SECONDS: i64 = 1;

/// Whose a connection is whose handshake is through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It waits in the listener's queue.
    Nobody,
    /// A program has accepted it.
    Program,
}

/// Where programs listen.
///
/// # Errors
/// If the kernel does not tell.
pub(crate) fn listeners() -> io::Result<BTreeSet<SocketAddr>> {
    let mut found = BTreeSet::new();
    dump(&StateFlags::LISTEN, |near, _| _ = found.insert(near))?;
    Ok(found)
}

/// How many connections of other machines each of these ports has.
///
/// # Errors
/// If the kernel does not tell.
pub(crate) fn clients(ports: &BTreeSet<u16>) -> io::Result<BTreeMap<u16, u64>> {
    let mut found = BTreeMap::new();
    dump(&StateFlags::ESTABLISHED, |near, far| {
        if is_client(ports, near, far) {
            *found.entry(near.port()).or_default() += 1;
        }
    })?;
    Ok(found)
}

fn is_client(ports: &BTreeSet<u16>, near: SocketAddr, far: SocketAddr) -> bool {
    ports.contains(&near.port()) && !far.ip().is_loopback() && far.ip() != near.ip()
}

/// Whose the connection between two addresses is, seen from `near`; none if there is none.
///
/// # Errors
/// If the kernel does not tell.
pub(crate) fn owner(near: SocketAddr, far: SocketAddr) -> io::Result<Option<Owner>> {
    let mut id = SocketId::new_v4();
    (id.source_address, id.source_port) = (near.ip(), near.port());
    (id.destination_address, id.destination_port) = (far.ip(), far.port());
    id.cookie = [0xff; 8];
    let mut found = None;
    let asked = ask(near.is_ipv4(), &StateFlags::all(), id, 0, |response| {
        found = Some(if response.header.inode == 0 { Owner::Nobody } else { Owner::Program });
    });
    match asked {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        result => result.map(|()| found),
    }
}

/// All connections and listeners in some states: near and far address.
fn dump(states: &StateFlags, mut each: impl FnMut(SocketAddr, SocketAddr)) -> io::Result<()> {
    for is_ipv4 in [true, false] {
        let id = if is_ipv4 { SocketId::new_v4() } else { SocketId::new_v6() };
        ask(is_ipv4, states, id, NLM_F_DUMP, |response| {
            let id = &response.header.socket_id;
            each(address(id.source_address, id.source_port), address(id.destination_address, id.destination_port));
        })?;
    }
    Ok(())
}

fn address(ip: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(ip.to_canonical(), port)
}

fn ask(
    is_ipv4: bool,
    states: &StateFlags,
    socket_id: SocketId,
    flags: u16,
    mut each: impl FnMut(&InetResponse),
) -> io::Result<()> {
    let kernel =
        socket(AddressFamily::Netlink, SockType::Datagram, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkSockDiag)?;
    setsockopt(&kernel, ReceiveTimeout, &TimeVal::seconds(ANSWER_SECONDS))?;
    let request = InetRequest {
        family: if is_ipv4 { AF_INET } else { AF_INET6 },
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::empty(),
        states: states.clone(),
        socket_id,
    };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    sendto(kernel.as_raw_fd(), &bytes, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let mut answer = vec![0; ANSWER_BYTES];
    while read_answer(&kernel, &mut answer, &mut each)? == More::Follows {}
    Ok(())
}

#[derive(PartialEq, Eq)]
enum More {
    Follows,
    No,
}

fn read_answer(kernel: &OwnedFd, answer: &mut [u8], each: &mut impl FnMut(&InetResponse)) -> io::Result<More> {
    let length = recv(kernel.as_raw_fd(), answer, MsgFlags::empty())?;
    let mut rest = &answer[..length];
    let mut more = More::No;
    while !rest.is_empty() {
        let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        match message.payload {
            NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => each(&response),
            NetlinkPayload::Done(_) => return Ok(More::No),
            NetlinkPayload::Error(error) => return error.code.map_or(Ok(More::No), |_| Err(error.to_io())),
            _ => {}
        }
        if message.header.flags & libc::NLM_F_MULTI as u16 != 0 {
            more = More::Follows;
        }
        // Messages begin at multiples of four.
        let taken = (message.header.length as usize).next_multiple_of(4);
        rest = rest.get(taken..).unwrap_or_default();
    }
    Ok(more)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn listeners_come_and_go() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(any) else { continue };
            let address = listener.local_addr().unwrap();
            assert!(listeners().unwrap().contains(&address));
            drop(listener);
            assert!(!listeners().unwrap().contains(&address));
        }
    }

    #[test]
    fn a_connection_is_nobodys_until_a_program_accepts_it() {
        for any in ["127.0.0.1:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(any) else { continue };
            let near = SocketAddr::new("127.0.0.1".parse().unwrap(), listener.local_addr().unwrap().port());
            let client = TcpStream::connect(near).unwrap();
            let far = client.local_addr().unwrap();
            assert_eq!(owner(near, far).unwrap(), Some(Owner::Nobody), "{any}");
            let accepted = listener.accept().unwrap();
            assert_eq!(owner(near, far).unwrap(), Some(Owner::Program), "{any}");
            drop((accepted, client));
        }
        let nowhere = "127.0.0.1:1".parse().unwrap();
        assert_eq!(owner(nowhere, nowhere).unwrap(), None);
    }

    #[test]
    fn clients_of_other_machines_are_counted() {
        let ports = BTreeSet::from([80]);
        let counted = |near: &str, far: &str| is_client(&ports, near.parse().unwrap(), far.parse().unwrap());
        assert!(counted("10.1.0.2:80", "10.1.0.1:4000") && counted("10.2.0.2:80", "10.1.0.1:4001"));
        // Of another port, knocks, connections within the machine, and those that programs of the session made.
        assert!(!counted("10.1.0.2:81", "10.1.0.1:4002") && !counted("127.0.0.1:80", "127.82.73.50:4000"));
        assert!(!counted("10.1.0.2:80", "10.1.0.2:4000") && !counted("10.1.0.2:5000", "10.1.0.1:80"));
    }

    #[test]
    fn many_sockets_fill_several_answers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = listener.local_addr().unwrap();
        let held: Vec<(TcpStream, TcpStream)> =
            (0..400).map(|_| (TcpStream::connect(near).unwrap(), listener.accept().unwrap().0)).collect();
        let mut ends = BTreeSet::new();
        dump(&StateFlags::ESTABLISHED, |here, there| {
            if here == near {
                ends.insert(there);
            }
        })
        .unwrap();
        assert_eq!(ends, held.iter().map(|(client, _)| client.local_addr().unwrap()).collect());
    }
}
