//! The hosts' IP addresses: one for each; IPv4 addresses in the subnet whose prefix the hosts are given, IPv6 addresses in the
//! /64 of the first one.
//!
//! ```text
//!   10.0.0.0/8     h0 10.0.0.1   h1 10.0.0.1 ▶ twice   h2 192.0.2.7 ▶ outside: no route to it
//!   fd00::/64      h3 fd00::1    h4 fd00:1::2 ▶ outside
//! ```

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
};

use fabric::{FindingKind, HostId, IPV6_PREFIX_BITS, Plan};

use crate::findings::Findings;

/// Judges every host's address.
pub(crate) fn judge(plan: &Plan, findings: &mut Findings) {
    let (given, hosts) = (plan.addresses.len(), plan.topology.hosts().len());
    if given != hosts {
        findings.fatal(FindingKind::IncompleteState, || {
            ("addresses".to_owned(), format!("{given} addresses for {hosts} hosts"))
        });
    }
    let mut owners: BTreeMap<IpAddr, HostId> = BTreeMap::new();
    let network = plan.addresses.iter().find_map(|address| match address {
        IpAddr::V6(address) => Some(network_of(*address)),
        IpAddr::V4(_) => None,
    });
    for (host, &address) in plan.topology.host_ids().zip(&plan.addresses) {
        let (name, stated) = (&plan.topology.host(host).name, plan.topology.host(host).address);
        // The ports of a bond have one address.
        let is_bonds = |other: &HostId| {
            let [one, other] = [host, *other].map(|id| plan.topology.host(id));
            one.machine == other.machine && plan.topology.is_in_bond(one)
        };
        if let Some(other) = owners.insert(address, host).filter(|other| !is_bonds(other)) {
            let other = &plan.topology.host(other).name;
            findings.fatal(FindingKind::BadAddress, || (name.clone(), format!("has {address}, as {other} does")));
        }
        if let Some(stated) = stated.filter(|stated| *stated != address) {
            findings.fatal(FindingKind::BadAddress, || {
                (name.clone(), format!("gets {address}, though the cabling file states {stated}"))
            });
        }
        // Addresses that are made up are IPv4 addresses.
        let network = network.filter(|_| stated.is_some());
        if !is_station(plan, address, network) {
            let subnet = match (address, network) {
                (IpAddr::V6(_), Some(network)) => format!("{network}/{IPV6_PREFIX_BITS}"),
                _ => plan.policy.subnet.to_string(),
            };
            let message = format!("has {address}, which is no station of {subnet}");
            // The person who wrote the address may have a router for it; an address that was made up must fit.
            if stated.is_some() {
                findings.warn(FindingKind::BadAddress, || (name.clone(), message));
            } else {
                findings.fatal(FindingKind::BadAddress, || (name.clone(), message));
            }
        }
    }
}

fn network_of(address: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(address) & (u128::MAX << (128 - u32::from(IPV6_PREFIX_BITS))))
}

/// Whether a host can have the address: `network` is that of the first IPv6 address.
fn is_station(plan: &Plan, address: IpAddr, network: Option<Ipv6Addr>) -> bool {
    let address = match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(address) => {
            let is_unicast = !(address.is_multicast() || address.is_unspecified() || address.is_loopback());
            // A link-local address is of a port alone: no program finds the host by it without the port's name.
            return is_unicast && !address.is_unicast_link_local() && network == Some(network_of(address));
        }
    };
    let subnet = plan.policy.subnet;
    let hosts = u32::MAX.checked_shr(u32::from(subnet.prefix_bits)).unwrap_or(0);
    let (network, address) = (u32::from(subnet.network), u32::from(address));
    address & !hosts == network & !hosts && address & hosts != 0 && address & hosts != hosts
}
