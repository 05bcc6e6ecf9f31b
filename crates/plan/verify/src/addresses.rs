//! The hosts' IP addresses: one for each, all in the subnet whose prefix the hosts are given.
//!
//! ```text
//!   10.0.0.0/8   h0 10.0.0.1   h1 10.0.0.1 ▶ twice   h2 192.0.2.7 ▶ outside: no route to it
//! ```

use std::{collections::BTreeMap, net::IpAddr};

use fabric::{FindingKind, HostId, Plan};

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
        if !is_station(plan, address) {
            let message = format!("has {address}, which is no station of {}", plan.policy.subnet);
            // The person who wrote the address may have a router for it; an address that was made up must fit.
            if stated.is_some() {
                findings.warn(FindingKind::BadAddress, || (name.clone(), message));
            } else {
                findings.fatal(FindingKind::BadAddress, || (name.clone(), message));
            }
        }
    }
}

fn is_station(plan: &Plan, address: IpAddr) -> bool {
    let IpAddr::V4(address) = address else { return false };
    let subnet = plan.policy.subnet;
    let hosts = u32::MAX.checked_shr(u32::from(subnet.prefix_bits)).unwrap_or(0);
    let (network, address) = (u32::from(subnet.network), u32::from(address));
    address & !hosts == network & !hosts && address & hosts != 0 && address & hosts != hosts
}
