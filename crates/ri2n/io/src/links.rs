//! Which links a connection has: those of its beginning, and those of addresses that come and go later.
//!
//! ```text
//!  address of ours comes   ─▶ client: a link for each new pair, in the place of one whose address is gone
//!  address of ours goes    ─▶ its links are down until it is back
//!  server's address comes  ─▶ ADDRESS frame ─▶ client: as above
//! ```
//! With `paths = K` a pair of addresses has K links, which differ by their source ports. Every pair gets its first link before any pair
//! gets a second, so pairs share the numbers of links evenly.

use crate::{
    config::{LinkChoice, LinkPair},
    interfaces::{LocalAddress, interface_of},
};
use ri2n::{
    Carrier, Connection, Health, LinkReport, LinkTerms, Path, Time, handshake::ADDRESS_UNLISTED,
    wire::handshake::Address,
};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// What an end must know to make links, at first and later.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reach {
    choice: LinkChoice,
    /// The peer, by whose family our addresses are chosen.
    peer: IpAddr,
    server: Option<ServerReach>,
}

/// What only a client knows.
#[derive(Debug, Serialize, Deserialize)]
struct ServerReach {
    addresses: Vec<Address>,
    port: u16,
    /// Links of a pair of addresses.
    paths: u8,
    /// Addresses that the server had.
    gone: Vec<IpAddr>,
}

impl Reach {
    pub(crate) fn of_server(choice: LinkChoice, client: IpAddr) -> Self {
        Self { choice, peer: client, server: None }
    }

    pub(crate) fn of_client(choice: LinkChoice, peer: IpAddr, paths: u8, addresses: Vec<Address>, port: u16) -> Self {
        Self { choice, peer, server: Some(ServerReach { addresses, port, paths, gone: Vec::new() }) }
    }

    /// Has a connection follow the addresses of both ends. `all` are ours.
    pub(crate) fn follow(&mut self, now: Time, connection: &mut Connection, all: &[LocalAddress]) {
        let ours = allowed(&self.choice, self.peer, all);
        match &mut self.server {
            Some(server) => {
                server.take_offers(connection.take_offers());
                server.add_links(now, connection, &self.choice, &ours, all);
            }
            None => {
                let present: Vec<IpAddr> = all.iter().map(|local| local.address.ip).collect();
                for local in ours {
                    connection.offer(local.address, local.interface, &present);
                }
            }
        }
        note_gone(now, connection, all);
    }
}

impl ServerReach {
    fn take_offers(&mut self, offers: Vec<(u8, Address)>) {
        for (index, address) in offers {
            let count = self.addresses.len();
            match self.addresses.get_mut(usize::from(index)) {
                Some(place) => self.gone.push(std::mem::replace(place, address).ip),
                None if usize::from(index) == count => self.addresses.push(address),
                None => continue,
            }
            self.gone.retain(|gone| *gone != address.ip);
        }
        self.gone.sort_unstable();
        self.gone.dedup();
    }

    fn add_links(
        &self,
        now: Time,
        connection: &mut Connection,
        choice: &LinkChoice,
        ours: &[LocalAddress],
        all: &[LocalAddress],
    ) {
        let links = connection.links();
        let (mut stale, good): (Vec<LinkReport>, Vec<LinkReport>) =
            links.into_iter().partition(|link| self.gone.contains(&link.path.remote.ip()) || !has_address(link, all));
        // Links of named pairs stay as they are; other stale links move to new addresses.
        let (pairs, staying) = match choice {
            LinkChoice::Pairs(pairs) => (pairs.clone(), stale.clone()),
            LinkChoice::Automatic | LinkChoice::Addresses(_) => {
                ([present_pairs(&good), matching_pairs(ours, &self.addresses, &good)].concat(), Vec::new())
            }
        };
        let mut further: Vec<&LinkReport> = good.iter().filter(|link| link.path.entropy > 0).collect();
        further.sort_by_key(|link| link.path.entropy);
        for (entropy, pair) in (0..self.paths).flat_map(|entropy| pairs.iter().map(move |pair| (entropy, pair))) {
            let is_same = |link: &LinkReport| is_between(link, pair) && link.path.entropy == entropy;
            if good.iter().chain(&staying).any(is_same) {
                continue;
            }
            let (path, terms) = self.link(pair, entropy, all);
            let shares = |link: &LinkReport| {
                let is_near = link.path.local == Some(pair.local) || link.path.remote.ip() == pair.remote;
                link.path.entropy == entropy && is_near
            };
            let successor = stale.iter().position(shares);
            if successor.is_none() && connection.add_link(now, path, terms).is_some() {
                continue;
            }
            // A pair's first link replaces a stale link, or a further link of another pair, if there is no free number.
            let last = if entropy == 0 { stale.len().checked_sub(1) } else { None };
            let old = successor.or(last).map(|old| stale.swap_remove(old).id);
            let old = old.or_else(|| if entropy == 0 { further.pop().map(|link| link.id) } else { None });
            if let Some(old) = old {
                connection.move_link(now, old, path, terms);
            }
        }
    }

    fn link(&self, pair: &LinkPair, entropy: u8, all: &[LocalAddress]) -> (Path, LinkTerms) {
        let index = self.addresses.iter().position(|address| address.ip == pair.remote);
        let local = all.iter().find(|local| local.address.ip == pair.local).map(|local| local.address);
        let ends = [local, index.map(|index| self.addresses[index])];
        let datagram_max = ends.iter().flatten().map(Address::datagram_max).min().unwrap_or(u16::MAX);
        let theirs = ends[1].map_or(0, |address| address.priority);
        let terms = LinkTerms {
            address: index.map_or(ADDRESS_UNLISTED, |index| index as u8),
            datagram_max,
            priority: pair.priority.max(theirs),
        };
        let remote = SocketAddr::new(pair.remote, self.port);
        (Path { local: Some(pair.local), interface: interface_of(pair.local, all), entropy, remote }, terms)
    }
}

/// Links of addresses that we no longer have are down; those of addresses that are back are asked again at once.
fn note_gone(now: Time, connection: &mut Connection, all: &[LocalAddress]) {
    for link in connection.links() {
        let carrier = if has_address(&link, all) { Carrier::Up } else { Carrier::Down };
        if (carrier == Carrier::Down) != (link.health == Health::Down) {
            connection.handle_carrier(now, link.id, carrier);
        }
    }
}

/// Whether we have the address that a link is from, at the interface that it had; of loopback addresses, a whole network is ours.
fn has_address(link: &LinkReport, all: &[LocalAddress]) -> bool {
    let Some(ip) = link.path.local else { return true };
    let is_here = |local: &LocalAddress| link.path.interface == 0 || local.interface == link.path.interface;
    ip.is_loopback() || all.iter().any(|local| local.address.ip == ip && is_here(local))
}

/// Those of our addresses that links to this peer may use, each with its priority.
pub(crate) fn allowed(choice: &LinkChoice, peer: IpAddr, all: &[LocalAddress]) -> Vec<LocalAddress> {
    let is_near =
        |local: &&LocalAddress| local.address.ip.is_ipv4() == peer.is_ipv4() && local.is_loopback == peer.is_loopback();
    let with_priority = |local: &LocalAddress| {
        let priority = choice.priority_of(local.address.ip)?;
        Some(LocalAddress { address: Address { priority, ..local.address }, ..*local })
    };
    all.iter().filter(is_near).filter_map(with_priority).collect()
}

fn is_between(link: &LinkReport, pair: &LinkPair) -> bool {
    (link.path.local, link.path.remote.ip()) == (Some(pair.local), pair.remote)
}

/// The pairs of addresses that have links.
fn present_pairs(links: &[LinkReport]) -> Vec<LinkPair> {
    let mut pairs: Vec<LinkPair> = Vec::new();
    for link in links {
        let pair = |local| LinkPair { local, remote: link.path.remote.ip(), priority: link.priority };
        pairs.extend(link.path.local.map(pair).filter(|_| !pairs.iter().any(|known| is_between(link, known))));
    }
    pairs
}

/// A link more for each of our interfaces that has none: its address and the server's in the same subnet, no address of the server
/// twice.
fn matching_pairs(ours: &[LocalAddress], theirs: &[Address], links: &[LinkReport]) -> Vec<LinkPair> {
    let interface = |link: &LinkReport| ours.iter().find(|local| Some(local.address.ip) == link.path.local);
    let mut interfaces: Vec<u32> = links.iter().filter_map(interface).map(|local| local.interface).collect();
    let mut remotes: Vec<IpAddr> = links.iter().map(|link| link.path.remote.ip()).collect();
    let mut pairs = Vec::new();
    for local in ours {
        let is_ours = |ip: IpAddr| ours.iter().any(|local| local.address.ip == ip);
        let remote = theirs
            .iter()
            .find(|theirs| local.address.reaches(theirs.ip) && !is_ours(theirs.ip) && !remotes.contains(&theirs.ip));
        if let Some(remote) = remote.filter(|_| !interfaces.contains(&local.interface)) {
            interfaces.push(local.interface);
            remotes.push(remote.ip);
            pairs.push(LinkPair { local: local.address.ip, remote: remote.ip, priority: local.address.priority });
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use ri2n::{
        Batch, Settings,
        handshake::{Client, Protection, Response, Server, Terms},
    };

    const NOW: Time = Time::from_nanos(50_000_000_000);

    fn address(ip: &str) -> Address {
        Address { ip: ip.parse().unwrap(), prefix: 24, mtu: 1500, priority: 0 }
    }

    fn local(ip: &str, interface: u32) -> LocalAddress {
        LocalAddress { address: address(ip), interface, is_loopback: false }
    }

    /// Both ends of a connection from 10.0.0.1 to 10.0.0.2, whose server has these addresses.
    fn connected(ours: &[LocalAddress], theirs: &[Address], choice: LinkChoice) -> (Connection, Reach, Connection) {
        connected_by(ours, theirs, choice, 1)
    }

    /// The same with several links a pair of addresses.
    fn connected_by(
        ours: &[LocalAddress],
        theirs: &[Address],
        choice: LinkChoice,
        paths: u8,
    ) -> (Connection, Reach, Connection) {
        let protection = Protection::default();
        let told = allowed(&choice, theirs[0].ip, ours).iter().map(|local| local.address).collect();
        let mut client = Client::new([1; 32], Settings::default(), protection.clone(), told);
        let mut server = Server::new([2; 32], protection);
        let from = SocketAddr::new(ours[0].address.ip, 7);
        let path = Path { local: Some(from.ip()), interface: 0, entropy: 0, remote: SocketAddr::new(theirs[0].ip, 7) };
        let hello = client.poll_transmit(NOW).unwrap().to_vec();
        let Response::Reply(cookie) = server.handle_datagram(NOW, from, &hello) else { panic!("a cookie is due") };
        assert!(client.handle_datagram(NOW, path, &cookie).unwrap().is_none());
        let open = client.poll_transmit(NOW).unwrap().to_vec();
        let Response::Open(opening) = server.handle_datagram(NOW, from, &open) else { panic!("the cookie is good") };
        let offered = theirs.iter().map(|address| (*address, 1)).collect();
        let terms = Terms { seed: [3; 32], port: 9, local: Some(theirs[0].ip), offered, settings: Settings::default() };
        let (theirs, accept) = server.accept(NOW, *opening, terms);
        let connected = client.handle_datagram(NOW, path, &accept).unwrap().unwrap();
        let mut reach = Reach::of_client(choice, path.remote.ip(), paths, connected.addresses, connected.port);
        let mut connection = connected.connection;
        reach.follow(NOW, &mut connection, ours);
        (connection, reach, theirs)
    }

    fn ends(connection: &Connection) -> Vec<(String, String, u8)> {
        let end = |link: &LinkReport| {
            (link.path.local.unwrap().to_string(), link.path.remote.ip().to_string(), link.priority)
        };
        connection.links().iter().map(end).collect()
    }

    fn named(expected: &[(&str, &str, u8)]) -> Vec<(String, String, u8)> {
        expected.iter().map(|(a, b, priority)| ((*a).to_owned(), (*b).to_owned(), *priority)).collect()
    }

    #[test]
    fn interfaces_are_paired_by_subnet() {
        let ours = [
            local("10.0.0.1", 2),
            local("10.0.1.1", 3),
            local("10.0.1.9", 3),
            local("172.17.0.1", 4),
            local("10.0.5.1", 5),
        ];
        let theirs = [address("10.0.0.2"), address("10.0.1.2"), address("172.17.0.1"), address("10.0.9.2")];
        let (client, ..) = connected(&ours, &theirs, LinkChoice::Automatic);
        assert_eq!(ends(&client), named(&[("10.0.0.1", "10.0.0.2", 0), ("10.0.1.1", "10.0.1.2", 0)]));
    }

    #[test]
    fn a_link_has_the_larger_priority_of_its_ends() {
        let ours = [local("10.0.0.1", 2), local("10.0.1.1", 3), local("10.0.2.1", 4)];
        let mut theirs = [address("10.0.0.2"), address("10.0.1.2"), address("10.0.2.2")];
        theirs[2].priority = 5;
        let choice = crate::Config::from_text(
            "links = [{local = '10.0.0.0/16'}, {local = '10.0.1.0/24', backup = true}, {local = '10.0.2.0/24', priority = 3}]",
        );
        let (client, ..) = connected(&ours, &theirs, choice.unwrap().links);
        let expected = [("10.0.0.1", "10.0.0.2", 0), ("10.0.1.1", "10.0.1.2", 1), ("10.0.2.1", "10.0.2.2", 5)];
        assert_eq!(ends(&client), named(&expected));
    }

    #[test]
    fn links_follow_addresses_that_come_and_go_at_either_end() {
        let first = local("10.0.0.1", 2);
        let (mut client, mut reach, mut server) = connected(&[first], &[address("10.0.0.2")], LinkChoice::Automatic);
        assert_eq!(client.links().len(), 1);
        // An interface more at the client is of no use before the server has one in its network too.
        let ours = [first, local("10.0.1.1", 3)];
        reach.follow(NOW, &mut client, &ours);
        assert_eq!(client.links().len(), 1);
        let theirs = [local("10.0.0.2", 2), local("10.0.1.2", 3)];
        let mut offering = Reach::of_server(LinkChoice::Automatic, first.address.ip);
        offering.follow(NOW, &mut server, &theirs);
        deliver(&mut server, &mut client);
        reach.follow(NOW, &mut client, &ours);
        assert_eq!(ends(&client), named(&[("10.0.0.1", "10.0.0.2", 0), ("10.0.1.1", "10.0.1.2", 0)]));
        // Without its address a link is down; with another of the same network it goes on by that, under its number.
        reach.follow(NOW, &mut client, &[first]);
        assert_eq!(client.links()[1].health, Health::Down);
        reach.follow(NOW, &mut client, &[first, local("10.0.1.7", 3)]);
        assert_eq!(ends(&client), named(&[("10.0.0.1", "10.0.0.2", 0), ("10.0.1.7", "10.0.1.2", 0)]));
        // So it does when the server's address is another.
        let theirs = [local("10.0.0.2", 2), local("10.0.1.8", 3)];
        offering.follow(NOW, &mut server, &theirs);
        deliver(&mut server, &mut client);
        reach.follow(NOW, &mut client, &[first, local("10.0.1.7", 3)]);
        assert_eq!(ends(&client), named(&[("10.0.0.1", "10.0.0.2", 0), ("10.0.1.7", "10.0.1.8", 0)]));
        // An interface that was taken out and put in again has another index.
        let theirs = [local("10.0.0.2", 2), local("10.0.1.8", 9)];
        offering.follow(NOW, &mut server, &theirs);
        reach.follow(NOW, &mut client, &[first, local("10.0.1.7", 8)]);
        assert_eq!(ends(&client), named(&[("10.0.0.1", "10.0.0.2", 0), ("10.0.1.7", "10.0.1.8", 0)]));
        assert_eq!(client.links()[1].path.interface, 8);
        // However often they change, there are no more links than interfaces.
        for host in 10..60_u8 {
            reach.follow(NOW, &mut client, &[first, local(&format!("10.0.1.{host}"), 3)]);
            assert_eq!(client.links().len(), 2);
        }
    }

    #[test]
    fn pairs_share_the_links_that_differ_by_their_ports() {
        let links = |connection: &Connection| -> Vec<(u32, u8)> {
            let mut links: Vec<(u32, u8)> =
                connection.links().iter().map(|link| (link.path.interface.max(2), link.path.entropy)).collect();
            links.sort_unstable();
            links
        };
        let (first, second) = (local("10.0.0.1", 2), local("10.0.1.1", 3));
        let theirs = [address("10.0.0.2"), address("10.0.1.2")];
        let (client, ..) = connected_by(&[first], &theirs, LinkChoice::Automatic, 3);
        assert_eq!(links(&client), [(2, 0), (2, 1), (2, 2)]);
        let (client, ..) = connected_by(&[first, second], &theirs, LinkChoice::Automatic, 8);
        let four_each: Vec<(u32, u8)> = [2, 3].iter().flat_map(|at| (0..4).map(|entropy| (*at, entropy))).collect();
        assert_eq!(links(&client), four_each);
        // An interface that comes later has a link, in the place of the first one's last.
        let (mut client, mut reach, _) = connected_by(&[first], &theirs, LinkChoice::Automatic, 8);
        for _ in 0..3 {
            reach.follow(NOW, &mut client, &[first, second]);
            let seven: Vec<(u32, u8)> = (0..7).map(|entropy| (2, entropy)).chain([(3, 0)]).collect();
            assert_eq!(links(&client), seven);
        }
        // With another address of the network all links go on by that.
        let (mut client, mut reach, _) = connected_by(&[first], &theirs, LinkChoice::Automatic, 4);
        reach.follow(NOW, &mut client, &[local("10.0.0.9", 2)]);
        let moved: Vec<String> =
            client.links().iter().map(|link| format!("{} {}", link.path.local.unwrap(), link.path.entropy)).collect();
        assert_eq!(moved, ["10.0.0.9 0", "10.0.0.9 1", "10.0.0.9 2", "10.0.0.9 3"]);
    }

    /// Carries what one end has to send to the other.
    fn deliver(from: &mut Connection, to: &mut Connection) {
        let mut batch = Batch::default();
        while from.poll_transmit(NOW, &mut batch) {
            for datagram in batch.datagrams(from) {
                let arrival = ri2n::Arrival { at: NOW, from: SocketAddr::new(address("10.0.0.2").ip, 9) };
                to.handle_datagram(NOW, arrival, &datagram);
            }
        }
    }
}
