//! LAGs of an unmanaged lab are the kernel's bonds where it has some, which speak LACP: of a switch's ports, and of a host's
//! devices. Elsewhere they are the lab's own (`lag.rs`).
//!
//! ```text
//! esp-demo-sw1/lag1 (bond) ┬ p21 ═ p21 ┬ lag1 (bond) esp-demo-sw2         esp-demo-sw1/lag2 ┬ p5 ═ eth0.0 ┬ eth0 esp-demo-storage
//!                          └ p22 ═ p22 ┘                                                    └ p6 ═ eth0.1 ┘
//! ```
//! A bond is made with the index of its port, so that the switch program and the bridge find it as they find any other port's.

use std::{fmt::Write as _, fs, io, thread};

use fabric::LagNumber;
use nix::sched::{CloneFlags, unshare};

use crate::{
    LabError,
    error::Context,
    layout::{HostSite, LagMethod, Layout, PortSite, Shut, SwitchSite},
    table::PORT_IFINDEX_BASE,
    tool::{Batch, BatchOrigin, run_batch},
};

/// How a bond of the lab chooses, and how soon it notices: carriers are looked at every 10 ms, and LACP times out after three seconds.
const OPTIONS: &str = "mode 802.3ad miimon 10 lacp_rate fast xmit_hash_policy layer3+4 ad_select bandwidth";

/// Whether the kernel has bonds.
///
/// # Errors
/// Why not, in the words of iproute2.
pub(crate) fn probe() -> Result<(), LabError> {
    let place = BatchOrigin { operation: "up", device: "bond", step: "make a bond" };
    // In a namespace that goes with the thread.
    thread::scope(|scope| {
        let attempt = || {
            unshare(CloneFlags::CLONE_NEWNET).context("up", "bond", "make a namespace")?;
            let script = format!("link add name probe type bond {OPTIONS}\n");
            run_batch(&Batch { tool: "ip", namespace: None, script }, place)
        };
        scope.spawn(attempt).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The commands that make the bonds of a switch, whose members are there already.
pub(crate) fn switch_script(site: &SwitchSite) -> String {
    let mut script = String::new();
    for (number, port) in site.ports.iter().enumerate().filter(|(_, port)| is_bond(port)) {
        let Some(device) = &port.device else { continue };
        let _ =
            writeln!(script, "link add name {device} index {} type bond {OPTIONS}", PORT_IFINDEX_BASE + number as u32);
        let members = site.ports.iter().filter(|member| member.lag == Some(number));
        members.filter_map(|member| member.device.as_deref()).for_each(|member| script += &enslave(member, device));
    }
    script
}

/// The commands that make the bond of a host, whose members are there already.
pub(crate) fn host_script(site: &HostSite) -> String {
    if site.members.is_empty() {
        return String::new();
    }
    let HostSite { device, ifindex, members, .. } = site;
    let bond = format!("link add name {device} index {ifindex} type bond {OPTIONS}\n");
    members.iter().fold(bond, |script, member| script + &enslave(&member.device, device))
}

/// A bond in service, and where it is.
pub(crate) struct BondSite<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) device: &'a str,
    /// How many members it has.
    pub(crate) members: usize,
}

/// The bonds of a lab whose ports are not shut.
pub(crate) fn bonds(layout: &Layout) -> Vec<BondSite<'_>> {
    if layout.lags == LagMethod::Own {
        return Vec::new();
    }
    let of_switch =
        |site: &'_ SwitchSite, number: usize| site.ports.iter().filter(|port| port.lag == Some(number)).count();
    let mut bonds = Vec::new();
    for site in &layout.switches {
        for (number, port) in site.ports.iter().enumerate().filter(|(_, port)| is_bond(port) && port.shut == Shut::No) {
            let Some(device) = port.device.as_deref() else { continue };
            bonds.push(BondSite { namespace: &site.namespace, device, members: of_switch(site, number) });
        }
    }
    let hosts = layout.hosts.iter().filter(|host| !host.members.is_empty());
    bonds.extend(hosts.map(|host| BondSite {
        namespace: &host.namespace,
        device: &host.device,
        members: host.members.len(),
    }));
    bonds
}

/// How many members of a bond LACP has agreed on with the far end, in the calling thread's namespace.
///
/// Source: Linux, Documentation/networking/bonding.rst, 5.4 (`/proc/net/bonding`).
pub(crate) fn agreed(device: &str) -> io::Result<usize> {
    let text = fs::read_to_string(format!("/proc/thread-self/net/bonding/{device}"))?;
    Ok(agreed_in(&text))
}

fn agreed_in(text: &str) -> usize {
    let value = |key: &str| text.lines().find_map(|line| Some(line.trim().strip_prefix(key)?.trim()));
    let has_partner = value("Partner Mac Address:").is_some_and(|mac| mac != "00:00:00:00:00:00");
    value("Number of ports:").and_then(|count| count.parse().ok()).filter(|_| has_partner).unwrap_or(0)
}

/// Whether a port is a LAG.
pub(crate) fn is_bond(port: &PortSite) -> bool {
    LagNumber::of_port(&port.name).is_some()
}

/// A bond takes in what is down, and raises it.
fn enslave(member: &str, bond: &str) -> String {
    format!("link set dev {member} down\nlink set dev {member} master {bond}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_count_once_the_far_end_has_answered() {
        let text = "Bonding Mode: IEEE 802.3ad Dynamic link aggregation\n802.3ad info\nActive Aggregator Info:\n\tAggregator ID: 1\n\t\
                    Number of ports: 2\n\tPartner Mac Address: 02:00:00:00:00:07\n\nSlave Interface: p1\nMII Status: up\n";
        assert_eq!(agreed_in(text), 2);
        assert_eq!(agreed_in(&text.replace("02:00:00:00:00:07", "00:00:00:00:00:00")), 0);
        assert_eq!(agreed_in("Bonding Mode: fault-tolerance (active-backup)\n"), 0);
    }
}
