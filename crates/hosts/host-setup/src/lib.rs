//! What Linux needs on a machine with several ports in one fabric, so that traffic from a port's address leaves by that port
//! and no other port answers for the address.
//!
//! An address belongs to the machine, not to the port: by default each port answers ARP requests for every address (ARP
//! flux), and packets to one subnet leave by one port, whatever address they are from. Static entries then send the answers
//! to the wrong port.
//!
//! ```text
//!           ┌ eth0 10.0.0.1 ─ switch     who has 10.0.0.2?   default: eth0 and eth1 answer     here: eth1
//!  node01 ──┤
//!           └ eth1 10.0.0.2 ─ switch     from 10.0.0.2       default: leaves by eth0           here: by eth1
//! ```
//!
//! [`HostSetup`] holds the values, all of them from the plan. Renderings: [`shell script`](HostSetup::script),
//! [`systemd-networkd`](HostSetup::networkd), [`environment`](HostSetup::environment), and where the plan has planes
//! [`settings of RI2N`](HostSetup::ri2n).
//!
//! Source: Linux, Documentation/networking/ip-sysctl.rst (`arp_ignore`, `arp_announce`, `rp_filter`); ip-rule(8).
#![forbid(unsafe_code)]

mod environment;
mod networkd;
mod ri2n;
mod script;

use std::net::IpAddr;

use fabric::{HostIntent, Mac, MachineId, Plan, Rails, network_of};
use thiserror::Error;

/// Why a machine has no setup.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostSetupError {
    /// Linux has no network device of this name.
    #[error(
        "host {host}: Linux cannot have a network device {device:?} (1 to {DEVICE_BYTES_MAX} ASCII letters, digits and -_.+@#); name the \
         port under nics: as `ip link` shows it, and plan again"
    )]
    NotADevice {
        /// The host.
        host: String,
        /// What follows the machine's name and the slash.
        device: String,
    },
    /// A machine with one port needs nothing.
    #[error(
        "machine {0} has one port, for which Linux needs no such setup; leave --host out for all machines with several"
    )]
    OnePort(String),
    /// The ports of a failover bond have one address: the bond's.
    #[error(
        "machine {0} has a failover bond, whose ports have no addresses of their own; set the bond up as docs/howto/failover-bonds.md says"
    )]
    Bond(String),
}

/// The longest name of a Linux network device, in bytes (`IFNAMSIZ` less the final zero).
const DEVICE_BYTES_MAX: usize = 15;

/// The routing table of a machine's first port; the next port's is the next. Numbers to 255 are where Linux and people have
/// theirs. Rules have the same number as priority, before those of Linux (32766 and 32767).
const TABLE_FIRST: u32 = 1001;

/// What one machine with several ports needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSetup<'a> {
    machine: &'a str,
    digest: &'a str,
    rails: Rails,
    nics: Vec<Nic>,
    peers: Vec<ri2n::Peer<'a>>,
    /// VLANs of a pair of hosts, at most.
    paths: usize,
}

/// A port of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Nic {
    device: String,
    rail: Option<u8>,
    mac: Mac,
    address: IpAddr,
    prefix_bits: u8,
    mtu_bytes: u16,
    table: u32,
}

/// A file to be written: its name, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupFile {
    /// Relative to the machine's folder.
    pub name: String,
    /// The whole of it.
    pub text: String,
}

/// Whether a machine has several ports, each with addresses of its own.
pub fn needs_setup(plan: &Plan, machine: MachineId) -> bool {
    let mut hosts = plan.topology.machine(machine).hosts();
    hosts.len() > 1 && !hosts.any(|host| plan.topology.host(host).standby)
}

impl<'a> HostSetup<'a> {
    /// The setup of one machine of a plan; `digest` is the plan's, for comments.
    ///
    /// # Errors
    /// [`HostSetupError`].
    pub fn new(plan: &'a Plan, digest: &'a str, machine: MachineId) -> Result<Self, HostSetupError> {
        let fabric::Machine { name, .. } = plan.topology.machine(machine);
        let hosts = plan.topology.machine(machine).hosts();
        if hosts.len() < 2 {
            return Err(HostSetupError::OnePort(name.clone()));
        }
        if !needs_setup(plan, machine) {
            return Err(HostSetupError::Bond(name.clone()));
        }
        let nics = hosts.zip(TABLE_FIRST..).map(|(id, table)| {
            let host = plan.topology.host(id);
            let device = host.name.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')).unwrap_or(&host.name);
            if !is_device_name(device) {
                return Err(HostSetupError::NotADevice { host: host.name.clone(), device: device.to_owned() });
            }
            let HostIntent { mac, address, prefix_bits, mtu_bytes, .. } = plan.host_intent(id);
            Ok(Nic { device: device.to_owned(), rail: host.rail, mac, address, prefix_bits, mtu_bytes, table })
        });
        let (nics, peers) = (nics.collect::<Result<_, _>>()?, ri2n::peers(plan, machine));
        let paths = plan.summary.paths.as_ref().map_or(1, |paths| paths.paths_max);
        Ok(Self { machine: name, digest, rails: plan.policy.rails, nics, peers, paths })
    }

    /// The machine's name as the name of a folder.
    pub fn folder(&self) -> String {
        match self.machine {
            "." | ".." => self.machine.replace('.', "%2E"),
            name => name.replace('/', "%2F"),
        }
    }

    /// All renderings, as files of the machine's folder.
    pub fn files(&self) -> Vec<SetupFile> {
        let file = |name: &str, text: String| SetupFile { name: name.to_owned(), text };
        let mut files = vec![file("setup.sh", self.script()), file("environment", self.environment())];
        files.extend(self.networkd());
        files.extend(self.ri2n().map(|text| file("ri2n.toml", text)));
        files
    }

    /// Settings of RI2N with the links to every machine that has paths of its own to this one, and how many paths a pair of
    /// addresses has; none unless the plan has planes or path sets.
    pub fn ri2n(&self) -> Option<String> {
        let is_needed = !self.peers.is_empty() || self.paths > 1;
        is_needed.then(|| ri2n::settings(&self.origin(), &self.peers, self.paths))
    }

    fn origin(&self) -> String {
        format!("Machine {}, from plan {}", self.machine, self.digest)
    }

    fn has_ipv4(&self) -> bool {
        self.nics.iter().any(|nic| nic.address.is_ipv4())
    }

    fn devices(&self) -> String {
        self.nics.iter().map(|nic| nic.device.as_str()).collect::<Vec<_>>().join(",")
    }
}

impl Nic {
    /// The network that its address is in, as `address/bits`.
    fn network(&self) -> String {
        format!("{}/{}", network_of(self.address, self.prefix_bits), self.prefix_bits)
    }

    /// Name, rail and address, for a comment.
    fn label(&self) -> String {
        let rail = self.rail.map_or_else(String::new, |rail| format!(", rail {rail}"));
        format!("{}{rail}: {}", self.device, self.address)
    }
}

/// What each port's parameters under `net/ipv4/conf` must be, and why.
///
/// Source: Linux, Documentation/networking/ip-sysctl.rst.
const PARAMETERS: [(&str, u8, &str); 3] = [
    (
        "arp_ignore",
        1,
        "a port answers ARP requests for its own address alone. Linux's default, 0, answers for every address of the machine.",
    ),
    ("arp_announce", 2, "ARP requests state an address of the port that they leave by."),
    (
        "rp_filter",
        2,
        "a packet is accepted if its sender is reachable by any port (loose). Strict, 1, drops broadcasts at all ports but one.",
    ),
];

/// What else there is to know of [`PARAMETERS`].
const PARAMETERS_NOTE: &str = "The kernel takes the larger one of the port's value and of that of \"all\".";

fn is_device_name(name: &str) -> bool {
    let usable = |c: char| c.is_ascii_alphanumeric() || "-_.+@#".contains(c);
    (1..=DEVICE_BYTES_MAX).contains(&name.len()) && !matches!(name, "." | "..") && name.chars().all(usable)
}

#[cfg(test)]
mod tests;
