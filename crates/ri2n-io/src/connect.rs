//! Connecting: the handshake, then a link for each pair of addresses that reach each other.

use crate::{
    config::{Config, LinkChoice, LinkPair},
    interfaces::{LocalAddress, local_addresses},
    listener::{allowed, random, unspecified},
    shared::Shared,
    status::Role,
    sys::{self, Block, MESSAGES, Socket, TellLocal},
};
use ri2n::{
    LINKS_MAX, Path, Time,
    handshake::{ADDRESS_UNLISTED, Client, ConnectError, Connected},
    wire::handshake::{ADDRESSES_MAX, Address},
};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

/// How long one of several addresses is tried before the next.
const ADDRESS_PATIENCE: Duration = Duration::from_millis(200);

/// Connects to the first of the server's addresses that answers.
pub(crate) fn connect(servers: &[SocketAddr], config: &Config) -> io::Result<Arc<Shared>> {
    let first =
        servers.first().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no address to connect to"))?;
    let servers: Vec<SocketAddr> =
        servers.iter().copied().filter(|server| server.is_ipv4() == first.is_ipv4()).collect();
    let socket = Socket::bind((unspecified(first.ip()), 0).into(), TellLocal::No)?;
    let ours = allowed(config, first.ip())?;
    let told: Vec<Address> = ours.iter().map(|local| local.address).take(ADDRESSES_MAX).collect();
    let mut client = Client::new(random()?, config.settings(), config.protection(), told);
    let (mut connected, server) = shake_hands(&socket, &mut client, &servers, config)?;
    let port = socket.local_addr()?.port();
    let local_ip =
        connected.connection.links().first().and_then(|link| link.path.local).unwrap_or(unspecified(server.ip()));
    add_links(sys::now(), &mut connected, config, server.ip(), local_ip, &ours)?;
    Shared::new(socket, Role::Client, (SocketAddr::new(local_ip, port), server), connected.connection)
}

fn shake_hands(
    socket: &Socket,
    client: &mut Client,
    servers: &[SocketAddr],
    config: &Config,
) -> io::Result<(Connected, SocketAddr)> {
    let deadline = sys::now() + config.connect_timeout;
    let mut refused = Vec::new();
    let mut last_error = io::Error::from(io::ErrorKind::TimedOut);
    for server in servers.iter().cycle() {
        let now = sys::now();
        if now >= deadline || refused.len() == servers.len() {
            break;
        }
        if refused.contains(server) {
            continue;
        }
        let path = match first_path(*server, config) {
            Ok(path) => path,
            Err(error) => {
                refused.push(*server);
                last_error = error;
                continue;
            }
        };
        let turn = if servers.len() == 1 { deadline } else { deadline.min(now + ADDRESS_PATIENCE) };
        client.restart();
        match try_one(socket, client, path, turn) {
            Ok(Some(connected)) => return Ok((connected, *server)),
            Ok(None) => last_error = client.doubtful().map_or(last_error, refusal),
            Err(error) => {
                refused.push(*server);
                last_error = error;
            }
        }
    }
    Err(last_error)
}

fn try_one(socket: &Socket, client: &mut Client, path: Path, until: Time) -> io::Result<Option<Connected>> {
    loop {
        let now = sys::now();
        if let Some(error) = client.poll_failure(now) {
            return Err(refusal(error));
        }
        if now >= until {
            return Ok(None);
        }
        if let Some(question) = client.poll_transmit(now) {
            match socket.send_to(&path, question) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Err(error),
                Err(error) if error.raw_os_error() == Some(libc::ENETUNREACH) => return Err(error),
                // A full queue or a neighbour that is not known yet: asked again.
                Err(_) => {}
            }
        }
        let _ = sys::wait_readable([socket.fd()], Some(client.poll_timeout().min(until).since(now)));
        let connected = sys::with_inbox(|inbox| -> io::Result<Option<Connected>> {
            match socket.receive(inbox, Block::Never, MESSAGES) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    while socket.take_unreachable(inbox).is_some() {}
                    return Err(error);
                }
                Err(_) => return Ok(None),
            }
            for message in inbox.messages() {
                for datagram in message.bytes.chunks(message.segment) {
                    if let Some(connected) = client.handle_datagram(sys::now(), path, datagram).map_err(refusal)? {
                        return Ok(Some(connected));
                    }
                }
            }
            Ok(None)
        })?;
        if connected.is_some() {
            return Ok(connected);
        }
    }
}

fn refusal(error: ConnectError) -> io::Error {
    let kind = match error {
        ConnectError::Version(_) | ConnectError::Full => io::ErrorKind::ConnectionRefused,
        ConnectError::Guard => io::ErrorKind::PermissionDenied,
    };
    io::Error::new(kind, error)
}

/// How to reach the server first: as the system would, or by the pair that names it.
fn first_path(server: SocketAddr, config: &Config) -> io::Result<Path> {
    let local = match &config.links {
        LinkChoice::Pairs(pairs) => match pairs.iter().find(|pair| pair.remote == server.ip()) {
            Some(pair) => pair.local,
            None => Socket::source_toward(server)?,
        },
        LinkChoice::Automatic | LinkChoice::Addresses(_) => Socket::source_toward(server)?,
    };
    let interface = interface_of(local, &local_addresses()?);
    Ok(Path { local: Some(local), interface, remote: server })
}

fn interface_of(ip: IpAddr, ours: &[LocalAddress]) -> u32 {
    ours.iter().find(|local| local.address.ip == ip && !local.is_loopback).map_or(0, |local| local.interface)
}

fn add_links(
    now: Time,
    connected: &mut Connected,
    config: &Config,
    first_remote: IpAddr,
    first_local: IpAddr,
    ours: &[LocalAddress],
) -> io::Result<()> {
    let theirs = &connected.addresses;
    let pairs = match &config.links {
        LinkChoice::Pairs(pairs) => pairs.clone(),
        LinkChoice::Automatic | LinkChoice::Addresses(_) => {
            matching_pairs(ours, theirs, LinkPair { local: first_local, remote: first_remote })
        }
    };
    let all = local_addresses()?;
    for pair in
        pairs.into_iter().filter(|pair| pair.local != first_local || pair.remote != first_remote).take(LINKS_MAX - 1)
    {
        let index = theirs.iter().position(|address| address.ip == pair.remote);
        let mtu_of = |address: Option<&Address>| address.map_or(u16::MAX, Address::datagram_max);
        let local = all.iter().find(|local| local.address.ip == pair.local).map(|local| &local.address);
        let datagram_max = mtu_of(local).min(mtu_of(index.map(|index| &theirs[index])));
        let remote = SocketAddr::new(pair.remote, connected.port);
        let path = Path { local: Some(pair.local), interface: interface_of(pair.local, &all), remote };
        let listed = index.map_or(ADDRESS_UNLISTED, |index| index as u8);
        connected.connection.add_link(now, path, listed, datagram_max);
    }
    Ok(())
}

/// One link for each of our interfaces: its address and the server's in the same subnet, no address of the server twice.
fn matching_pairs(ours: &[LocalAddress], theirs: &[Address], first: LinkPair) -> Vec<LinkPair> {
    let mut interfaces =
        vec![ours.iter().find(|local| local.address.ip == first.local).map_or(0, |local| local.interface)];
    let mut remotes = vec![first.remote];
    let mut pairs = Vec::new();
    for local in ours {
        let is_ours = |ip: IpAddr| ours.iter().any(|local| local.address.ip == ip);
        let remote = theirs
            .iter()
            .find(|theirs| local.address.reaches(theirs.ip) && !is_ours(theirs.ip) && !remotes.contains(&theirs.ip));
        if let Some(remote) = remote.filter(|_| !interfaces.contains(&local.interface)) {
            interfaces.push(local.interface);
            remotes.push(remote.ip);
            pairs.push(LinkPair { local: local.address.ip, remote: remote.ip });
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_paired_by_subnet() {
        let address = |ip: &str| Address { ip: ip.parse().unwrap(), prefix: 24, mtu: 1500 };
        let local = |ip, interface| LocalAddress { address: address(ip), interface, is_loopback: false };
        let ours = [
            local("10.0.0.1", 2),
            local("10.0.1.1", 3),
            local("10.0.1.9", 3),
            local("172.17.0.1", 4),
            local("10.0.5.1", 5),
        ];
        let theirs = [address("10.0.0.2"), address("10.0.1.2"), address("172.17.0.1"), address("10.0.9.2")];
        let first = LinkPair { local: ours[0].address.ip, remote: theirs[0].ip };
        let second = LinkPair { local: ours[1].address.ip, remote: theirs[1].ip };
        assert_eq!(matching_pairs(&ours, &theirs, first), [second]);
    }
}
