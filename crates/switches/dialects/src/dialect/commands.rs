//! The order in which commands are given, the same for all command languages.
//!
//! ```text
//!   shut ─▶ remove entries ─▶ leave LAGs ─▶ make VLANs, LAGs ─▶ ports: join, PVID, leave ─▶ join LAGs ─▶ remove LAGs
//!        ─▶ set entries ─▶ remove VLANs ─▶ LLDP on, snooping and spanning tree off ─▶ open
//! ```
//! A port joins VLANs and gets its PVID before it leaves others, because switches reset the PVID of a port that leaves its
//! VLAN, and refuse PVIDs of VLANs that a port is not in. Entries need the membership of their port. Spanning tree goes
//! while the ports are shut. A port joins a LAG when it is in no VLAN any more, and leaves it before it is in any. Classes are served before ports have priority flow control, and until none has it.

use std::{collections::BTreeSet, io};

use fabric::{Lldp, Mac, VlanId, VlanSet};

use super::{Dialect, Folder, Output, lags_made, lags_removed};
use switch_model::{
    PortConfig, Slot, Snooping, SwitchConfig,
    change::{Change, PortChange, Stage},
};

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
    /// Makes a LAG of a state; said only where it is not there by itself.
    fn make_lag(&self, _out: &mut dyn Folder, _lag: Slot, _after: &SwitchConfig) -> io::Result<()> {
        Ok(())
    }
    /// Removes a LAG without members; said only where it is not there by itself.
    fn remove_lag(&self, _out: &mut dyn Folder, _lag: &str) -> io::Result<()> {
        Ok(())
    }
    /// Has a port that is in no VLAN be a member of a LAG that has been given its VLANs; said only where there are LAGs.
    fn join_lag(&self, _out: &mut dyn Folder, _port: &PortConfig, _lag: &PortConfig) -> io::Result<()> {
        Ok(())
    }
    /// Has a member of a LAG be a port of its own, in no VLAN; said only where there are LAGs. `lag` is as it was.
    fn leave_lag(&self, _out: &mut dyn Folder, _port: &PortConfig, _lag: &PortConfig) -> io::Result<()> {
        Ok(())
    }
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
    let is_made = commands.traits().lags.are_made();
    let made: Vec<Slot> = lags_made(change).filter(|_| is_made).collect();
    let removed: Vec<Slot> = lags_removed(change).filter(|_| is_made).collect();
    // A LAG begins as the switch makes it.
    let mut before = change.before.clone();
    for lag in &made {
        before.ports[lag.index()] = commands.factory(vec![change.after.port(*lag).name.clone()]).ports.remove(0);
    }
    let change = &Change { before: &before, ..*change };
    let shut = change.shut().collect::<Vec<&str>>();
    if !shut.is_empty() {
        commands.shut(out, &shut)?;
    }
    let unset: Vec<Entry<'_>> = change.entries_unset().collect();
    if !unset.is_empty() {
        commands.unset(out, &unset)?;
    }
    for port in change.ports() {
        if let Some(lag) = port.leaves_lag() {
            commands.leave_lag(out, port.before, change.before.port(lag))?;
        }
    }
    let vlans = change.vlans_made();
    if !vlans.is_empty() {
        commands.make_vlans(out, &vlans)?;
    }
    for lag in &made {
        commands.make_lag(out, *lag, change.after)?;
    }
    if change.starts_classes() {
        commands.serve_classes(out)?;
    }
    // Of some nothing changes but their LAG.
    for port in change.ports().filter(PortChange::changes_settings) {
        commands.port(out, &port)?;
    }
    for port in change.ports() {
        if let Some(lag) = port.joins_lag() {
            commands.join_lag(out, port.after, change.after.port(lag))?;
        }
    }
    for lag in &removed {
        commands.remove_lag(out, &change.after.port(*lag).name)?;
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
    let snooping = commands.traits().snooping;
    let stopped = change.snooping_stopped().collect::<BTreeSet<Snooping>>();
    let said = snooping.in_full.iter().filter(|_| change.stage == Stage::Prepare).copied();
    for stopped in said.filter(|said| !change.after.snooping.contains(said)).chain(stopped).collect::<BTreeSet<_>>() {
        if let Some(off) = snooping.off(stopped) {
            writeln!(out, "{off}")?;
        }
    }
    for on in change.snooping_started().filter_map(|started| snooping.on(started)) {
        writeln!(out, "{on}")?;
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
