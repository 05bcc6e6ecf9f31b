//! What a host says of its bonds: the text of `/proc/net/bonding/bond0`, one file a bond.
//!
//! ```text
//! login1.bond0: Bonding Mode: fault-tolerance (active-backup)       sw1:swp5 ── eth0 ┐
//!               Slave Interface: eth0 … Slave Interface: eth1       sw2:swp5 ── eth1 ┘ a failover bond of login1
//! ```
//!
//! The host is named by the file, up to the last ending that begins with `bond`. Files of other formats say which cables it has;
//! a bond's ports are found among them by name, or by the address that they have while they are in no bond.
//!
//! Source: Linux, `Documentation/networking/bonding.rst`, which describes the fields.

use std::collections::BTreeSet;

use crate::{
    Mac,
    format::{
        cabling::{BondPort, Bundle, Cable, Device},
        diagnostic::{Diagnostics, Source, TextPosition, TextSpan},
    },
};

/// How such a file begins.
const BANNER: &str = "Ethernet Channel Bonding Driver";

/// Whether a text is one of these files.
pub(crate) fn is_bonding(text: &str) -> bool {
    text.trim_start().starts_with(BANNER)
}

/// A bond as its host describes it.
pub(crate) struct Bonding<'a> {
    host: String,
    mode: Mode,
    ports: Vec<Port>,
    /// The port that is active whenever it is up, or the one that was when the file was written.
    active: Option<String>,
    site: TextPosition<'a>,
}

#[derive(PartialEq, Eq)]
enum Mode {
    Lacp,
    Failover,
    Other(String),
}

struct Port {
    name: String,
    mac: Option<Mac>,
}

/// Reads one file. `host` is who it is about.
pub(crate) fn read<'a>(source: &'a Source<'a>, host: String, diagnostics: &mut Diagnostics) -> Option<Bonding<'a>> {
    let mut bonding = Bonding {
        host,
        mode: Mode::Other(String::new()),
        ports: Vec::new(),
        active: None,
        site: source.at(TextSpan::START),
    };
    let mut primary = None;
    for line in source.text().lines() {
        let Some((key, value)) = line.trim().split_once(": ").map(|(key, value)| (key, value.trim())) else { continue };
        match key {
            "Bonding Mode" if value.contains("802.3ad") => bonding.mode = Mode::Lacp,
            "Bonding Mode" if value.contains("active-backup") => bonding.mode = Mode::Failover,
            "Bonding Mode" => bonding.mode = Mode::Other(value.to_owned()),
            "Primary Slave" if value != "None" => primary = value.split_whitespace().next().map(str::to_owned),
            "Currently Active Slave" if value != "None" => bonding.active = Some(value.to_owned()),
            "Slave Interface" => bonding.ports.push(Port { name: value.to_owned(), mac: None }),
            "Permanent HW addr" => {
                if let Some(port) = bonding.ports.last_mut() {
                    port.mac = value.parse().ok();
                }
            }
            _ => {}
        }
    }
    bonding.active = primary.or(bonding.active);
    if bonding.ports.is_empty() {
        diagnostics.push(bonding.site.warning(format!("this bond of {} has no ports; it is left out", bonding.host)));
        return None;
    }
    Some(bonding)
}

/// Has the cables of a bond's ports lead to one LAG, or to the ports of one failover bond, whichever it is.
pub(crate) fn apply<'a>(
    bondings: &[Bonding<'a>],
    devices: &[Device<'a>],
    cables: &mut Vec<Cable<'a>>,
    diagnostics: &mut Diagnostics,
) {
    for bonding in bondings {
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let host = (devices.iter().position(|device| device.name == bonding.host))
            .or_else(|| devices.iter().position(|device| short(&device.name) == short(&bonding.host)));
        let Some(host) = host else {
            let warning = bonding
                .site
                .warning(format!("no file says where {} is plugged in; its bond is left out", bonding.host));
            diagnostics.push(warning.with_help("name the file after the host, as LLDP announces it: node01.bond0"));
            continue;
        };
        let own = bonding.plugs(host, cables);
        for plug in &own {
            cables[plug.cable].ends[plug.side].port.clone_from(&plug.port.name);
        }
        if own.len() < bonding.ports.len() {
            let (found, all) = (own.len(), bonding.ports.len());
            let warning = bonding
                .site
                .warning(format!("{found} of {all} ports of this bond of {} are plugged in here", bonding.host));
            diagnostics.push(warning.with_help("the others are left out"));
        }
        if own.len() < 2 {
            continue;
        }
        match &bonding.mode {
            Mode::Failover => bonding.make_failover(&own, cables),
            Mode::Lacp => bonding.make_lag(&own, devices, cables, diagnostics),
            Mode::Other(mode) => {
                let warning = bonding
                    .site
                    .warning(format!("a bond of mode {mode}: its ports are taken for ports without a bond"));
                diagnostics
                    .push(warning.with_help("802.3ad (bond: lacp) and active-backup (bond: failover) are known"));
            }
        }
    }
}

/// Where a bond's port is plugged in.
struct Plug<'b> {
    port: &'b Port,
    cable: usize,
    /// Which end of the cable it is.
    side: usize,
}

impl Bonding<'_> {
    /// The plugs of its ports, in the order of the bond.
    fn plugs(&self, host: usize, cables: &[Cable<'_>]) -> Vec<Plug<'_>> {
        let ends = || {
            let both =
                cables.iter().enumerate().flat_map(|(cable, of)| [0, 1].map(|side| (cable, side, &of.ends[side])));
            both.filter(|(_, _, end)| end.device == host)
        };
        let plug = |port: &'_ Port| {
            let named = ends().find(|(_, _, end)| end.port == port.name);
            let found = named.or_else(|| ends().find(|(_, _, end)| port.mac.is_some() && end.mac == port.mac))?;
            Some((found.0, found.1))
        };
        let mut seen = BTreeSet::new();
        let plugs = self.ports.iter().filter_map(|port| Some((port, plug(port)?)));
        plugs.filter(|(_, at)| seen.insert(*at)).map(|(port, (cable, side))| Plug { port, cable, side }).collect()
    }

    /// The address of the bond: that of its first port.
    fn mac(&self) -> Option<Mac> {
        self.ports.iter().find_map(|port| port.mac)
    }

    fn make_failover(&self, own: &[Plug<'_>], cables: &mut Vec<Cable<'_>>) {
        for plug in own {
            let end = &mut cables[plug.cable].ends[plug.side];
            end.mac = self.mac().or(end.mac);
            let is_active = self.active.as_ref() == Some(&plug.port.name);
            end.bond = Some(if is_active { BondPort::Active } else { BondPort::Standby });
        }
        // Ports of one bond stand beside each other.
        let place = own.iter().map(|plug| plug.cable).min().unwrap_or_default();
        let is_own = |at: usize| own.iter().any(|plug| plug.cable == at);
        let (bond, others): (Vec<_>, Vec<_>) =
            std::mem::take(cables).into_iter().enumerate().partition(|(at, _)| is_own(*at));
        let before = others.iter().filter(|(at, _)| *at < place).count();
        cables.extend(others.into_iter().map(|(_, cable)| cable));
        cables.splice(before..before, bond.into_iter().map(|(_, cable)| cable));
    }

    fn make_lag(
        &self,
        own: &[Plug<'_>],
        devices: &[Device<'_>],
        cables: &mut [Cable<'_>],
        diagnostics: &mut Diagnostics,
    ) {
        let switches: BTreeSet<usize> = own.iter().map(|plug| cables[plug.cable].ends[1 - plug.side].device).collect();
        if switches.len() > 1 {
            let names: Vec<&str> = switches.iter().map(|switch| devices[*switch].name.as_str()).collect();
            let message = format!("the bond of {} is a LAG over several switches, {}", self.host, names.join(" and "));
            diagnostics.push(self.site.error(message).with_help(
                "a LAG ends at one switch here: make the bond one of active-backup, or plug its ports into one switch",
            ));
            return;
        }
        let number =
            cables.iter().filter_map(|cable| cable.bundle).map(|bundle| bundle.number + 1).max().unwrap_or_default();
        for plug in own {
            let cable = &mut cables[plug.cable];
            cable.bundle = Some(Bundle { number, lags: [None, None] });
            let end = &mut cable.ends[plug.side];
            end.mac = self.mac().or(end.mac);
        }
    }
}
