//! What changes from one plan to the next, switch by switch, for people and programs to look at.
//!
//! ```text
//!   s0   2: VLANs +7 -3     9: PVID 3 ▶ 7     entries +4 -4, 2 turned, of 96
//!   all  1 of 8 switches, 1 PVID, 10 of 768 entries: 1.3 %
//! ```
//! Both plans are laid on the cabling that is there now (`stage.rs`), switches, ports and hosts matched by
//! name and entries by address, and compared in one sweep. Switches that only one plan knows stand apart: nothing on
//! them is *changed*.

use std::fmt;

use fabric::{
    Admin, DeviceIntent, FlowControlMode, IngressFilter, Learning, Lldp, Plan, PortIntent, SpanningTree, VlanId,
    VlanSet,
};

use crate::{stage::Stage, table};

/// What changes from one plan to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Switches on which something changes, and those that only one plan knows, in the order of the next plan's
    /// topology, those that are gone last.
    pub switches: Vec<SwitchDifference>,
    /// Switches that both plans know.
    pub switches_common: usize,
    /// VLANs that only the next plan has.
    pub vlans_added: VlanSet,
    /// VLANs that only the previous plan has.
    pub vlans_removed: VlanSet,
    /// PVIDs that change on switches that both plans know.
    pub pvids_changed: usize,
    /// Static entries, on switches that both plans know.
    pub entries: EntryCounts,
}

/// Which of the two plans know a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// Both.
    Both,
    /// Only the next one: it is new.
    Added,
    /// Only the previous one: it is gone.
    Removed,
}

/// What changes on one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchDifference {
    /// Its name.
    pub name: String,
    /// Which plans know it.
    pub presence: Presence,
    /// Ports on which something changes, in the switch's order.
    pub ports: Vec<PortDifference>,
    /// Settings of the whole switch that change.
    pub settings: Vec<SettingDifference>,
    /// Its static entries.
    pub entries: EntryCounts,
}

/// What changes on one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortDifference {
    /// Its name.
    pub name: String,
    /// VLANs that it joins with a tag.
    pub tagged_added: VlanSet,
    /// VLANs that it leaves where it had a tag.
    pub tagged_removed: VlanSet,
    /// VLANs that it joins without a tag.
    pub untagged_added: VlanSet,
    /// VLANs that it leaves where it had none.
    pub untagged_removed: VlanSet,
    /// Its PVID before and after, if that changes.
    pub pvid: Option<(Option<VlanId>, Option<VlanId>)>,
    /// What else of it changes.
    pub settings: Vec<SettingDifference>,
}

/// A setting that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingDifference {
    /// Which, in words.
    pub name: &'static str,
    /// Its value in the previous plan.
    pub before: String,
    /// Its value in the next plan.
    pub after: String,
}

/// How many static entries change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EntryCounts {
    /// Only in the next plan.
    pub added: usize,
    /// Only in the previous plan.
    pub removed: usize,
    /// In both, through another port.
    pub changed: usize,
    /// In both, the same.
    pub kept: usize,
}

impl EntryCounts {
    /// Entries that somebody has to write or remove.
    pub const fn touched(&self) -> usize {
        self.added + self.removed + self.changed
    }

    /// Entries of the previous plan.
    pub const fn before(&self) -> usize {
        self.removed + self.changed + self.kept
    }

    /// Touched entries in relation to those of the previous plan; of none before, all are touched.
    pub fn share_touched(&self) -> f64 {
        match (self.touched(), self.before()) {
            (0, _) => 0.0,
            (_, 0) => 1.0,
            (touched, before) => touched as f64 / before as f64,
        }
    }

    fn add(&mut self, other: &Self) {
        self.added += other.added;
        self.removed += other.removed;
        self.changed += other.changed;
        self.kept += other.kept;
    }
}

/// Compares two plans. Cost: O(entry runs + VLANs · ports), and O(entries) to match hosts.
pub fn difference(previous: &Plan, next: &Plan) -> Difference {
    let Stage { topology, before, after, relation } = Stage::set(previous, next);
    let mut switches = Vec::new();
    let (mut switches_common, mut pvids_changed, mut total) = (0, 0, EntryCounts::default());
    for (old, new) in before.devices.iter().zip(&after.devices) {
        let mut ports = Vec::new();
        for (one, other) in old.ports.iter().zip(&new.ports) {
            let only = |these: &VlanSet, those: &VlanSet| these.iter().filter(|v| !those.contains(*v)).collect();
            let difference = PortDifference {
                name: topology.port(one.port).name.clone(),
                tagged_added: only(&other.tagged, &one.tagged),
                tagged_removed: only(&one.tagged, &other.tagged),
                untagged_added: only(&other.untagged, &one.untagged),
                untagged_removed: only(&one.untagged, &other.untagged),
                pvid: (one.pvid != other.pvid).then_some((one.pvid, other.pvid)),
                settings: changed(port_settings(&topology, one), port_settings(&topology, other)),
            };
            if !difference.is_empty() {
                ports.push(difference);
            }
        }
        let mut entries = EntryCounts { removed: old.foreign.len(), ..EntryCounts::default() };
        table::sweep(&old.fdb, &new.fdb, |run, before, after| {
            let count = run.len(&topology);
            match (before, after) {
                (Some(one), Some(other)) if one == other => entries.kept += count,
                (Some(_), Some(_)) => entries.changed += count,
                (Some(_), None) => entries.removed += count,
                (None, _) => entries.added += count,
            }
        });
        let presence = match relation.switch_from[old.switch.index()] {
            Some(_) => Presence::Both,
            None => Presence::Added,
        };
        if presence == Presence::Both {
            switches_common += 1;
            pvids_changed += ports.iter().filter(|port| port.pvid.is_some()).count();
            total.add(&entries);
        }
        let settings = changed(switch_settings(old), switch_settings(new));
        let same = ports.is_empty() && settings.is_empty() && entries.touched() == 0;
        if presence != Presence::Both || !same {
            let name = topology.switch(old.switch).name.clone();
            switches.push(SwitchDifference { name, presence, ports, settings, entries });
        }
    }
    for device in &previous.devices {
        let name = &previous.topology.switch(device.switch).name;
        if topology.find_switch(name).is_none() {
            let entries = EntryCounts { removed: device.fdb_len(&previous.topology), ..EntryCounts::default() };
            let presence = Presence::Removed;
            let (ports, settings) = (Vec::new(), Vec::new());
            switches.push(SwitchDifference { name: name.clone(), presence, ports, settings, entries });
        }
    }
    let vlans = |plan: &Plan, other: &Plan| {
        plan.trees.iter().map(|tree| tree.vlan).filter(|vlan| other.tree(*vlan).is_none()).collect()
    };
    Difference {
        switches,
        switches_common,
        vlans_added: vlans(next, previous),
        vlans_removed: vlans(previous, next),
        pvids_changed,
        entries: total,
    }
}

impl PortDifference {
    fn is_empty(&self) -> bool {
        let sets = [&self.tagged_added, &self.tagged_removed, &self.untagged_added, &self.untagged_removed];
        sets.iter().all(|set| set.is_empty()) && self.pvid.is_none() && self.settings.is_empty()
    }
}

/// The settings of a port beside its VLANs, named, in words.
fn port_settings(topology: &fabric::Topology, intent: &PortIntent) -> Vec<(&'static str, String)> {
    let PortIntent {
        port: _,
        role: _,
        admin,
        pvid: _,
        tagged: _,
        untagged: _,
        flow_control,
        mtu_bytes,
        ingress_filter,
        blocked,
        untagged_class,
        storm_limit,
        lag,
    } = intent;
    let flow_control = match flow_control {
        FlowControlMode::Off => "off".to_owned(),
        FlowControlMode::Pause => "pause".to_owned(),
        FlowControlMode::Pfc { lanes } => format!("pfc={lanes}"),
    };
    vec![
        ("state", if *admin == Admin::Up { "up" } else { "down" }.to_owned()),
        ("flow control", flow_control),
        ("MTU", mtu_bytes.to_string()),
        ("ingress filter", on_off(*ingress_filter == IngressFilter::On)),
        ("blocked floods", blocked.to_string()),
        ("class of untagged frames", untagged_class.to_string()),
        ("storm control", storm_limit.map_or_else(|| "off".to_owned(), |limit| format!("{limit} %"))),
        ("LAG", lag.map_or_else(|| "none".to_owned(), |lag| topology.port(lag).name.clone())),
    ]
}

/// The settings of a switch beside its ports and entries, named, in words.
fn switch_settings(intent: &DeviceIntent) -> Vec<(&'static str, String)> {
    let DeviceIntent { switch: _, ports: _, fdb: _, foreign: _, learning, classes, spanning_tree, lldp } = intent;
    let classes: Vec<String> = classes.iter().map(|vlans| format!("{{{vlans}}}")).collect();
    vec![
        ("learning", on_off(*learning == Learning::On)),
        ("priority classes", if classes.is_empty() { "none".to_owned() } else { classes.join(" ") }),
        ("spanning tree", on_off(*spanning_tree == SpanningTree::On)),
        ("LLDP", on_off(*lldp == Lldp::On)),
    ]
}

fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

fn changed(before: Vec<(&'static str, String)>, after: Vec<(&'static str, String)>) -> Vec<SettingDifference> {
    let differ = before.into_iter().zip(after).filter(|((_, before), (_, after))| before != after);
    differ.map(|((name, before), (_, after))| SettingDifference { name, before, after }).collect()
}

impl fmt::Display for SettingDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} to {}", self.name, self.before, self.after)
    }
}

impl Difference {
    /// Switches that both plans know and on which something changes.
    pub fn switches_changed(&self) -> usize {
        self.switches.iter().filter(|switch| switch.presence == Presence::Both).count()
    }
}

impl fmt::Display for EntryCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} added, {} removed, {} turned, {} kept", self.added, self.removed, self.changed, self.kept)
    }
}

impl fmt::Display for PortDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port {}:", self.name)?;
        for (sign, set, how) in [
            ('+', &self.tagged_added, "tagged"),
            ('-', &self.tagged_removed, "tagged"),
            ('+', &self.untagged_added, "untagged"),
            ('-', &self.untagged_removed, "untagged"),
        ] {
            if !set.is_empty() {
                write!(f, " {sign}{{{set}}} {how}")?;
            }
        }
        if let Some((before, after)) = self.pvid {
            let word = |pvid: Option<VlanId>| pvid.map_or_else(|| "none".to_owned(), |vlan| vlan.to_string());
            write!(f, " PVID {} to {}", word(before), word(after))?;
        }
        self.settings.iter().try_for_each(|setting| write!(f, "; {setting}"))
    }
}

impl fmt::Display for Difference {
    /// A line for the whole, then one for each switch and port on which something changes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (changed, common) = (self.switches_changed(), self.switches_common);
        let (touched, before) = (self.entries.touched(), self.entries.before());
        let percent = 100.0 * self.entries.share_touched();
        writeln!(
            f,
            "{changed} of {common} switches change: {} new VLANs, {} gone, {} PVIDs, {touched} of {before} entries ({percent:.2} %)",
            self.vlans_added.len(),
            self.vlans_removed.len(),
            self.pvids_changed
        )?;
        for switch in &self.switches {
            let what = match switch.presence {
                Presence::Both => "",
                Presence::Added => " (new)",
                Presence::Removed => " (gone)",
            };
            writeln!(f, "switch {}{what}: entries {}", switch.name, switch.entries)?;
            for setting in &switch.settings {
                writeln!(f, "  {setting}")?;
            }
            for port in &switch.ports {
                writeln!(f, "  {port}")?;
            }
        }
        Ok(())
    }
}
