//! The order in which commands are given, the same for all command languages.
//!
//! ```text
//!   shut ─▶ remove entries ─▶ make VLANs ─▶ ports: join, PVID, leave ─▶ set entries ─▶ remove VLANs ─▶ LLDP on, spanning tree off ─▶ open
//! ```
//! A port joins VLANs and gets its PVID before it leaves others, because switches reset the PVID of a port that leaves its
//! VLAN, and refuse PVIDs of VLANs that a port is not in. Entries need the membership of their port. Spanning tree goes
//! while the ports are shut. Classes are served before ports have priority flow control, and until none has it.

use std::io;

use fabric::{Lldp, Mac, VlanId, VlanSet};

use super::{Dialect, Folder, Output};
use switch_model::change::{Change, PortChange};

/// An entry: VLAN, address, and port.
pub(super) type Entry<'a> = (VlanId, Mac, &'a str);

/// How a language says each thing.
pub(super) trait Commands: Dialect {
    /// Takes ports out of service.
    fn shut(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()>;
    /// Puts ports into service.
    fn open(&self, out: &mut dyn Folder, ports: &[&str]) -> io::Result<()>;
    /// Makes VLANs.
    fn make_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()>;
    /// Removes VLANs.
    fn remove_vlans(&self, out: &mut dyn Folder, vlans: &VlanSet) -> io::Result<()>;
    /// Changes a port's VLANs, PVID and flow control.
    fn port(&self, out: &mut dyn Folder, change: &PortChange<'_>) -> io::Result<()>;
    /// Has every frame served in the class of its priority; said only where ports may have priority flow control.
    fn serve_classes(&self, _out: &mut dyn Folder) -> io::Result<()> {
        Ok(())
    }
    /// Has frames served in the factory's classes again.
    fn forget_classes(&self, _out: &mut dyn Folder) -> io::Result<()> {
        Ok(())
    }
    /// Sets entries.
    fn set(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()>;
    /// Removes entries.
    fn unset(&self, out: &mut dyn Folder, entries: &[Entry<'_>]) -> io::Result<()>;
    /// Turns spanning tree off.
    fn stop_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()>;
    /// Turns spanning tree on again.
    fn start_spanning_tree(&self, out: &mut dyn Folder) -> io::Result<()>;
}

/// Gives all commands of a change, in order.
pub(super) fn give(commands: &dyn Commands, change: &Change<'_>, to: &mut Output<'_>) -> io::Result<()> {
    let out = &mut *to.folder;
    let shut = change.shut().collect::<Vec<&str>>();
    if !shut.is_empty() {
        commands.shut(out, &shut)?;
    }
    let unset: Vec<Entry<'_>> = change.entries_unset().collect();
    if !unset.is_empty() {
        commands.unset(out, &unset)?;
    }
    let made = change.vlans_made();
    if !made.is_empty() {
        commands.make_vlans(out, &made)?;
    }
    if change.starts_classes() {
        commands.serve_classes(out)?;
    }
    for port in change.ports() {
        commands.port(out, &port)?;
    }
    if change.stops_classes() {
        commands.forget_classes(out)?;
    }
    let set: Vec<Entry<'_>> = change.entries_set().collect();
    if !set.is_empty() {
        commands.set(out, &set)?;
    }
    let gone = change.vlans_gone();
    if !gone.is_empty() {
        commands.remove_vlans(out, &gone)?;
    }
    if let (Some(lldp), Some([on, off])) = (change.lldp(), commands.traits().lldp) {
        writeln!(out, "{}", if lldp == Lldp::On { on } else { off })?;
    }
    if change.stops_spanning_tree() {
        commands.stop_spanning_tree(out)?;
    }
    if change.starts_spanning_tree() {
        commands.start_spanning_tree(out)?;
    }
    let opened: Vec<&str> = change.opened().collect();
    if !opened.is_empty() {
        commands.open(out, &opened)?;
    }
    Ok(())
}

/// Entries grouped by port, in order of first mention; each group in the order given.
pub(super) fn by_port<'a>(entries: &[Entry<'a>]) -> Vec<(&'a str, Vec<Entry<'a>>)> {
    let mut position = std::collections::BTreeMap::new();
    let mut groups: Vec<(&str, Vec<Entry<'_>>)> = Vec::new();
    for entry in entries {
        let at = *position.entry(entry.2).or_insert_with(|| {
            groups.push((entry.2, Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(*entry);
    }
    groups
}
