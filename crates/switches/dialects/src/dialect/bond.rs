//! A LAG of a Linux machine: a bonding device in mode 802.3ad, called as in the topology.
//!
//! ```text
//!   link add name lag3 type bond mode 802.3ad …     link set dev p1 nomaster
//!   link set dev p1 down                            link del dev lag3
//!   link set dev p1 master lag3
//! ```
//! The kernel's rules: a device joins a bond while it is down, and leaves the bridge that it was in; the bond brings it up, and
//! closes it again when it leaves. A bond has no PAUSE of its own: its members have it. Source: `bond_main.c` of Linux, and
//! `Documentation/networking/bonding.rst`.

use std::{io, io::Write as _};

use fabric::{Admin, FloodSet, VlanSet};

use super::{kernel_bridge::Ports, lags_made, lags_removed, remove_lag};
use switch_model::{LagMembership, PortLearning, Slot, change::Change};

/// How a bond speaks LACP: actively, every second; frames between two hosts take one member.
const OPTIONS: &str = "mode 802.3ad miimon 100 lacp_rate fast xmit_hash_policy layer2+3";
/// What a bond may divide frames among its members by.
const HASH_POLICIES: [&str; 5] = ["layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4"];

/// The commands that take ports out of bonds, and make bonds that are new; the first of a change.
pub(super) fn begin(change: &Change<'_>, ip: &mut Vec<u8>) -> io::Result<()> {
    for port in change.ports().filter(|port| port.leaves_lag().is_some()) {
        writeln!(ip, "link set dev {} nomaster", port.name())?;
    }
    for lag in lags_made(change) {
        writeln!(ip, "link add name {} type bond {OPTIONS}", change.after.port(lag).name)?;
    }
    Ok(())
}

/// The commands that put ports into bonds, and remove bonds that nobody needs; when ports have left their VLANs.
pub(super) fn end(change: &Change<'_>, ip: &mut Vec<u8>) -> io::Result<()> {
    for port in change.ports() {
        let name = port.name();
        if let Some(lag) = port.joins_lag() {
            writeln!(ip, "link set dev {name} down\nlink set dev {name} master {}", change.after.port(lag).name)?;
            if port.after.admin == Admin::Down {
                writeln!(ip, "link set dev {name} down")?;
            }
        } else if port.leaves_lag().is_some() && port.after.admin == Admin::Up && port.before.admin == Admin::Up {
            writeln!(ip, "link set dev {name} up")?;
        }
    }
    for lag in lags_removed(change) {
        writeln!(ip, "link del dev {}", change.before.port(lag).name)?;
    }
    Ok(())
}

/// What a text says of a bond, whatever its words for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BondSettings {
    lacp: bool,
    watches_carrier: bool,
}

impl BondSettings {
    /// Its mode.
    pub(super) fn mode(&mut self, mode: &str) {
        self.lacp = matches!(mode, "802.3ad" | "4");
    }

    /// How often it looks at the carriers of its members, in milliseconds.
    pub(super) fn miimon(&mut self, interval_ms: &str) {
        self.watches_carrier = interval_ms.parse().is_ok_and(|ms: u32| ms > 0);
    }

    /// How often it speaks LACP, by one of these words.
    pub(super) fn lacp_rate(rate: &str, words: &[&str]) -> Result<(), String> {
        let known = words.contains(&rate);
        known.then_some(()).ok_or_else(|| format!("{rate:?} is no LACP rate: they are {}", words.join(", ")))
    }

    /// Its hash policy.
    pub(super) fn hash_policy(policy: &str) -> Result<(), String> {
        let known = HASH_POLICIES.contains(&policy);
        known
            .then_some(())
            .ok_or_else(|| format!("{policy:?} is no hash policy: they are {}", HASH_POLICIES.join(", ")))
    }

    /// Refuses a bond that speaks no LACP, or sends frames to members without carrier.
    pub(super) fn check(self, name: &str) -> Result<(), String> {
        if !self.lacp {
            return Err(format!("{name} is not in mode 802.3ad, so it speaks no LACP"));
        }
        if !self.watches_carrier {
            return Err(format!("{name} has no MII monitoring, so it does not notice when a member loses its carrier"));
        }
        Ok(())
    }
}

impl Ports<'_> {
    /// A line of `ip` about a bond, if it is one.
    pub(super) fn bond(&mut self, words: &[&str]) -> Option<Result<(), String>> {
        match words {
            ["link", "add", "name", name, "type", "bond", options @ ..] => Some(self.make_bond(name, options)),
            ["link", "del" | "delete", "dev", name] => Some(self.remove_bond(name)),
            ["link", "set", "dev", name, "nomaster"] => Some(self.free(name)),
            ["link", "set", "dev", name, "master", lag] if self.bonds.iter().any(|bond| self.is_called(*bond, lag)) => {
                Some(self.enslave(name, lag))
            }
            _ => None,
        }
    }

    fn is_called(&self, bond: Slot, name: &str) -> bool {
        self.config.port(bond).name == name
    }

    fn make_bond(&mut self, name: &str, options: &[&str]) -> Result<(), String> {
        let mut settings = BondSettings::default();
        for pair in options.chunks(2) {
            match pair {
                ["mode", mode] => settings.mode(mode),
                ["miimon", interval] => settings.miimon(interval),
                ["lacp_rate", rate] => BondSettings::lacp_rate(rate, &["slow", "fast"])?,
                ["xmit_hash_policy", policy] => BondSettings::hash_policy(policy)?,
                _ => {}
            }
        }
        settings.check(name)?;
        self.add_bond(name).map(|_| ())
    }

    /// Adds a bond without members.
    pub(super) fn add_bond(&mut self, name: &str) -> Result<Slot, String> {
        let slot = self.slot(name)?;
        if self.config.port(slot).lag_number().is_none() {
            return Err(format!("{name} is no LAG: they are lag1 and so on"));
        }
        if self.bonds.contains(&slot) {
            return Err(format!("there is a device {name} already"));
        }
        self.bonds.push(slot);
        Ok(slot)
    }

    /// The bond of this name that a port is said to be a member of.
    pub(super) fn bond_of(&self, port: Slot, bond: &str) -> Result<Slot, String> {
        let name = &self.config.port(port).name;
        if self.config.port(port).lag_number().is_some() {
            return Err(format!("{name} is a bond itself"));
        }
        let slot = self.slot(bond)?;
        let known = self.bonds.contains(&slot);
        known.then_some(slot).ok_or_else(|| format!("port {name} is a member of {bond}, which nothing makes"))
    }

    /// Removes a bond, with its place in the bridge.
    pub(super) fn remove_bond(&mut self, name: &str) -> Result<(), String> {
        let slot = self.slot(name)?;
        if !self.bonds.contains(&slot) {
            return Err(format!("there is no bond {name}"));
        }
        remove_lag(self.config, slot)?;
        self.bonds.retain(|bond| *bond != slot);
        Ok(())
    }

    /// Removes a bond if there is one; its members are closed.
    pub(super) fn remove_any_bond(&mut self, name: &str) -> Result<(), String> {
        let slot = self.slot(name)?;
        if !self.bonds.contains(&slot) {
            return Ok(());
        }
        for member in self.config.members_of(slot).collect::<Vec<_>>() {
            let port = &mut self.config.ports[member.index()];
            (port.lag, port.admin) = (LagMembership::Alone, Admin::Down);
        }
        self.remove_bond(name)
    }

    fn free(&mut self, name: &str) -> Result<(), String> {
        let slot = self.slot(name)?;
        let port = &mut self.config.ports[slot.index()];
        if matches!(port.lag, LagMembership::Of(_)) {
            (port.lag, port.admin) = (LagMembership::Alone, Admin::Down);
            return Ok(());
        }
        self.leave_bridge(name)
    }

    fn enslave(&mut self, name: &str, lag: &str) -> Result<(), String> {
        let (slot, lag) = (self.slot(name)?, self.slot(lag)?);
        let port = self.config.port(slot);
        if port.lag_number().is_some() {
            return Err(format!("{name} is a bond itself"));
        }
        if port.admin == Admin::Up {
            return Err(format!("port {name} cannot join a bond while it is up"));
        }
        if !port.members().is_empty() {
            return Err(format!("port {name} would leave the bridge with VLANs {}", port.members()));
        }
        self.leave_bridge(name)?;
        let port = &mut self.config.ports[slot.index()];
        (port.lag, port.admin) = (LagMembership::Of(lag), Admin::Up);
        (port.pvid, port.tagged, port.untagged) = (None, VlanSet::new(), VlanSet::new());
        (port.learning, port.blocked) = (PortLearning::Off, Some(FloodSet::NONE));
        Ok(())
    }
}
