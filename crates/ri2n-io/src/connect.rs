//! Connecting: the handshake, which a worker drives, then a link for each pair of addresses that reach each other.

use crate::{
    config::{Config, LinkChoice, LinkPair},
    dial::{self, Goal},
    interfaces::{LocalAddress, interface_of, local_addresses},
    shared::Shared,
};
use ri2n::{
    LINKS_MAX, Path, Time,
    handshake::{ADDRESS_UNLISTED, Connected},
    wire::handshake::Address,
};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, mpsc},
};

/// Connects to the first of the server's addresses that answers.
pub(crate) fn connect(servers: &[SocketAddr], config: &Config) -> io::Result<Arc<Shared>> {
    wait_for(servers, config, Goal::Connection)?.ok_or_else(|| io::ErrorKind::TimedOut.into())
}

/// Whether a server answers at one of its addresses.
pub(crate) fn is_answered(servers: &[SocketAddr], config: &Config) -> io::Result<bool> {
    Ok(wait_for(servers, config, Goal::Answer).is_ok())
}

fn wait_for(servers: &[SocketAddr], config: &Config, goal: Goal) -> io::Result<Option<Arc<Shared>>> {
    let (send, receive) = mpsc::sync_channel(1);
    let done = Box::new(move |result| {
        // Nobody waits any more if the caller has panicked.
        let _ = send.send(result);
    });
    dial::begin(servers, config, goal, done)?;
    receive.recv().unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Adds a link for each pair of addresses but the first, which the handshake has proven.
///
/// # Errors
/// If our addresses are not known.
pub(crate) fn add_links(
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
