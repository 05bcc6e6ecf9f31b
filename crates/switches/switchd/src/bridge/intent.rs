//! What managers have written as what a bridge of the kernel's holds, and back.

use std::collections::BTreeMap;

use crate::agent::{Config, Facts, StaticConfig, VlanConfig};
use bridge_mib::{
    AcceptableFrames, Enabled, IfStatus, PauseMode, PortList, RowStatus, StaticStatus,
    index::{StaticRow, VlanIndex},
};
use fabric::VlanId;

use super::kernel::{BridgeState, PortState, Row};

/// What the kernel holds, as a configuration; `named` is where names and what the kernel does not know come from.
pub(super) fn adopt(held: &BridgeState, facts: &Facts, named: &Config) -> Config {
    let mut config = named.clone();
    (config.stp_priority, config.ageing_s) = (held.stp_priority, held.ageing_s.clamp(10, 1_000_000));
    let mut members: BTreeMap<VlanId, [PortList; 2]> = BTreeMap::new();
    let insert = |list: &mut PortList, number: u32| {
        *list = PortList::of(list.iter().chain([number])).unwrap_or_default();
    };
    for ((number, facts), port) in (1..).zip(&facts.ports).zip(&mut config.ports) {
        let held = held_port(held, facts.if_index);
        port.admin = if held.up { IfStatus::Up } else { IfStatus::Down };
        port.alias = held.alias.clone().into_bytes();
        port.pause = held.pause.unwrap_or(PauseMode::Off);
        match held.pvid {
            Some(pvid) => (port.pvid, port.frames) = (pvid, AcceptableFrames::All),
            None => (port.pvid, port.frames) = (VlanId::MIN, AcceptableFrames::OnlyTagged),
        }
        for (vlan, untagged) in held.vlans {
            let [egress, plain] = members.entry(vlan).or_default();
            insert(egress, number);
            if untagged {
                insert(plain, number);
            }
        }
    }
    let stp = if held.stp { Enabled::Yes } else { Enabled::No };
    config.ports.iter_mut().for_each(|port| port.stp = stp);
    // VLANs without ports exist here alone: their names may be marks.
    config.vlans.retain(|index, _| index.0 == VlanId::MIN || !members.contains_key(&index.0));
    let names: BTreeMap<VlanIndex, Vec<u8>> =
        named.vlans.iter().map(|(index, vlan)| (*index, vlan.name.clone())).collect();
    for vlan in config.vlans.values_mut() {
        (vlan.egress, vlan.untagged) = (PortList::new(), PortList::new());
    }
    for (vlan, [egress, untagged]) in members {
        let index = VlanIndex(vlan);
        let name = names.get(&index).cloned().unwrap_or_else(|| format!("v{vlan}").into_bytes());
        let (forbidden, status) = (PortList::new(), RowStatus::Active);
        config.vlans.insert(index, VlanConfig { name, egress, forbidden, untagged, status, created_cs: 0 });
    }
    config.statics = (held.statics.iter())
        .filter_map(|(row, port)| {
            let row = static_row(*row);
            let ports = PortList::of([number(facts, *port)?]).unwrap_or_default();
            Some((row, StaticConfig { ports, status: StaticStatus::Permanent }))
        })
        .collect();
    config
}

/// The configuration after somebody else has changed what the kernel holds: only where that differs from what is
/// configured, since the kernel does not know everything.
pub(super) fn reconcile(config: &Config, facts: &Facts, held: &BridgeState) -> Config {
    let wanted = wanted(facts, config, held);
    let mut found = config.clone();
    for ((number, facts), port) in (1..).zip(&facts.ports).zip(&mut found.ports) {
        let (is, was) = (held_port(held, facts.if_index), held_port(&wanted, facts.if_index));
        if is.up != was.up {
            port.admin = if is.up { IfStatus::Up } else { IfStatus::Down };
        }
        if is.alias != was.alias {
            port.alias = is.alias.into_bytes();
        }
        if is.pause != was.pause {
            port.pause = is.pause.unwrap_or(PauseMode::Off);
        }
        if is.pvid != was.pvid {
            (port.pvid, port.frames) = match is.pvid {
                Some(pvid) => (pvid, AcceptableFrames::All),
                None => (VlanId::MIN, AcceptableFrames::OnlyTagged),
            };
        }
        let differs = |vlan: &&VlanId| is.vlans.get(*vlan) != was.vlans.get(*vlan);
        for vlan in is.vlans.keys().chain(was.vlans.keys()).filter(differs) {
            set_member(&mut found.vlans, *vlan, number, is.vlans.get(vlan).copied());
        }
    }
    let differs = |row: &&Row| held.statics.get(*row) != wanted.statics.get(*row);
    for row in held.statics.keys().chain(wanted.statics.keys()).filter(differs) {
        let exit = held.statics.get(row).and_then(|port| number(facts, *port));
        match exit.and_then(|number| PortList::of([number]).ok()) {
            Some(ports) => {
                found.statics.insert(static_row(*row), StaticConfig { ports, status: StaticStatus::Permanent });
            }
            None => {
                found.statics.remove(&static_row(*row));
            }
        }
    }
    if held.stp != wanted.stp {
        let stp = if held.stp { Enabled::Yes } else { Enabled::No };
        found.ports.iter_mut().for_each(|port| port.stp = stp);
    }
    if held.stp_priority != wanted.stp_priority {
        found.stp_priority = held.stp_priority;
    }
    if held.ageing_s != wanted.ageing_s {
        found.ageing_s = held.ageing_s.clamp(10, 1_000_000);
    }
    found
}

/// Makes a port a member of a VLAN, untagged or not, or none.
fn set_member(vlans: &mut BTreeMap<VlanIndex, VlanConfig>, vlan: VlanId, number: u32, untagged: Option<bool>) {
    let with = |list: &PortList, inside: bool| {
        let others = list.iter().filter(|other| *other != number);
        PortList::of(others.chain(inside.then_some(number))).unwrap_or_default()
    };
    let none = || VlanConfig {
        name: format!("v{vlan}").into_bytes(),
        egress: PortList::new(),
        forbidden: PortList::new(),
        untagged: PortList::new(),
        status: RowStatus::Active,
        created_cs: 0,
    };
    let row = vlans.entry(VlanIndex(vlan)).or_insert_with(none);
    if row.status != RowStatus::Active {
        // Of a VLAN that is not in force the kernel knows no ports.
        *row = VlanConfig { name: std::mem::take(&mut row.name), ..none() };
    }
    row.egress = with(&row.egress, untagged.is_some());
    row.untagged = with(&row.untagged, untagged == Some(true));
}

pub(super) fn held_port(held: &BridgeState, index: u32) -> PortState {
    held.ports.get(&index).cloned().unwrap_or_default()
}

/// The bridge port of a device.
pub(super) fn number(facts: &Facts, index: u32) -> Option<u32> {
    facts.ports.iter().position(|port| port.if_index == index).map(|at| at as u32 + 1)
}

pub(super) fn static_row((vlan, mac): Row) -> StaticRow {
    StaticRow { fdb: u32::from(vlan.get()), mac, receive_port: 0 }
}

/// What the kernel is to hold, where it holds `held`.
pub(super) fn wanted(facts: &Facts, config: &Config, held: &BridgeState) -> BridgeState {
    let ports = (1..).zip(&facts.ports).map(|(number, port)| {
        let held = held_port(held, port.if_index);
        (port.if_index, wanted_port(config, number, &held))
    });
    let statics = config.statics.keys().filter_map(|row| wanted_static(facts, config, row));
    BridgeState { ports: ports.collect(), statics: statics.collect(), ..wanted_options(config) }
}

pub(super) fn wanted_options(config: &Config) -> BridgeState {
    BridgeState {
        stp: config.ports.iter().any(|port| port.stp == Enabled::Yes),
        stp_priority: config.stp_priority,
        ageing_s: config.ageing_s,
        ..BridgeState::default()
    }
}

pub(super) fn wanted_port(config: &Config, number: u32, held: &PortState) -> PortState {
    let port = &config.ports[number as usize - 1];
    let members = config.active_vlans().filter(|(_, row)| row.egress.contains(number));
    let vlans: BTreeMap<VlanId, bool> = members.map(|(vlan, row)| (vlan, row.untagged.contains(number))).collect();
    PortState {
        up: port.admin == IfStatus::Up,
        alias: String::from_utf8_lossy(&port.alias).into_owned(),
        pvid: Some(port.pvid).filter(|pvid| port.frames == AcceptableFrames::All && vlans.contains_key(pvid)),
        // Off is what a port without PAUSE has.
        pause: Some(port.pause).filter(|mode| held.pause.is_some() || *mode != PauseMode::Off),
        vlans,
    }
}

pub(super) fn wanted_static(facts: &Facts, config: &Config, row: &StaticRow) -> Option<(Row, u32)> {
    let vlan = u16::try_from(row.fdb).ok().and_then(|id| VlanId::new(id).ok())?;
    let port = facts.ports.get(config.exit(row)? as usize - 1)?;
    Some(((vlan, row.mac), port.if_index))
}

#[cfg(test)]
mod tests {
    use crate::agent::{Limits, PortFacts, PortKind};
    use fabric::{Mac, Model};

    use super::*;

    fn facts() -> Facts {
        let port = |number: u32| PortFacts {
            name: format!("p{number}"),
            if_index: 10 * number,
            mac: Mac::local(number),
            kind: PortKind::Own,
        };
        let limits = Limits::of(&Model::generic());
        Facts { description: String::new(), address: Mac::local(0), ports: (1..=3).map(port).collect(), limits }
    }

    fn list(ports: &[u32]) -> PortList {
        PortList::of(ports.iter().copied()).expect("ports")
    }

    /// Whatever somebody does to the kernel's bridge, what is configured then is what it holds; and what the kernel does not
    /// know of stays.
    #[test]
    fn what_others_change_is_what_is_configured() {
        let vlan = |id| VlanId::new(id).expect("valid");
        let entry = |id, mac| (vlan(id), Mac::local(mac));
        let mut config = Config::factory(3);
        let row = |ports: &[u32], status| VlanConfig {
            name: b"mark".to_vec(),
            egress: list(ports),
            forbidden: PortList::new(),
            untagged: list(ports),
            status,
            created_cs: 7,
        };
        config.vlans.insert(VlanIndex(vlan(7)), row(&[1, 2], RowStatus::Active));
        config.vlans.insert(VlanIndex(vlan(8)), row(&[3], RowStatus::NotInService));
        config.vlans.insert(VlanIndex(vlan(9)), row(&[], RowStatus::Active));
        config.ports[0].pvid = vlan(7);
        config.ports[2].pvid = vlan(9);
        config
            .statics
            .insert(static_row(entry(7, 1)), StaticConfig { ports: list(&[2]), status: StaticStatus::DeleteOnReset });
        let held = wanted(&facts(), &config, &BridgeState::default());
        assert_eq!(reconcile(&config, &facts(), &held), config, "nobody has changed anything");
        type Does = fn(&mut BridgeState);
        let does: [Does; 12] = [
            |held| held.ports.get_mut(&10).expect("a port").up = false,
            |held| held.ports.get_mut(&20).expect("a port").alias = "to rack 7".to_owned(),
            |held| held.ports.get_mut(&10).expect("a port").pvid = None,
            |held| _ = held.ports.get_mut(&10).expect("a port").vlans.remove(&VlanId::MIN),
            |held| {
                let port = held.ports.get_mut(&10).expect("a port");
                (port.pvid, _) = (None, port.vlans.remove(&VlanId::new(7).expect("valid")));
            },
            |held| _ = held.ports.get_mut(&20).expect("a port").vlans.insert(VlanId::new(77).expect("valid"), false),
            |held| _ = held.ports.get_mut(&20).expect("a port").vlans.insert(VlanId::new(8).expect("valid"), true),
            |held| held.statics.clear(),
            |held| _ = held.statics.insert((VlanId::new(7).expect("valid"), Mac::local(5)), 10),
            |held| _ = held.statics.insert((VlanId::new(7).expect("valid"), Mac::local(1)), 10),
            |held| (held.stp, held.stp_priority, held.ageing_s) = (false, 4096, 60),
            // A port leaves the bridge.
            |held| _ = held.ports.remove(&20),
        ];
        for (at, change) in does.into_iter().enumerate() {
            let mut now = held.clone();
            change(&mut now);
            let found = reconcile(&config, &facts(), &now);
            assert_ne!(found, config, "{at}");
            let mut then = wanted(&facts(), &found, &now);
            then.ports.retain(|index, _| now.ports.contains_key(index));
            assert_eq!(then, now, "{at}");
            assert!(found.vlans.contains_key(&VlanIndex(vlan(9))), "the mark stays");
            assert_eq!(reconcile(&found, &facts(), &now), found, "{at}");
        }
    }

    #[test]
    fn what_is_held_is_what_was_wanted() {
        let vlan = |id| VlanId::new(id).expect("valid");
        let mut config = Config::factory(3);
        let row = |egress: &[u32], untagged: &[u32], status| VlanConfig {
            name: b"name".to_vec(),
            egress: list(egress),
            forbidden: PortList::new(),
            untagged: list(untagged),
            status,
            created_cs: 0,
        };
        config.vlans.insert(VlanIndex(vlan(7)), row(&[1, 2], &[1], RowStatus::Active));
        config.vlans.insert(VlanIndex(vlan(8)), row(&[3], &[3], RowStatus::NotInService));
        config.ports[0].pvid = vlan(7);
        // No member of its PVID's VLAN: the kernel has no PVID for that.
        config.ports[2].pvid = vlan(7);
        config.ports[1].admin = IfStatus::Down;
        config.ports[1].pause = PauseMode::Both;
        let entry = StaticRow { fdb: 7, mac: Mac::local(9), receive_port: 0 };
        config.statics.insert(entry, StaticConfig { ports: list(&[2]), status: StaticStatus::Permanent });
        // A port with PAUSE, and two without.
        let mut before = BridgeState::default();
        before.ports.insert(20, PortState { pause: Some(PauseMode::Off), ..PortState::default() });
        let held = wanted(&facts(), &config, &before);
        assert_eq!(held.ports[&10].pvid, Some(vlan(7)));
        assert_eq!(held.ports[&10].vlans, [(VlanId::MIN, true), (vlan(7), true)].into());
        assert_eq!(held.ports[&20].vlans, [(VlanId::MIN, true), (vlan(7), false)].into());
        assert_eq!((held.ports[&20].up, held.ports[&20].pause), (false, Some(PauseMode::Both)));
        assert_eq!((held.ports[&30].pvid, held.ports[&30].pause), (None, None));
        assert_eq!(held.statics, [((vlan(7), Mac::local(9)), 20)].into());

        let adopted = adopt(&held, &facts(), &Config::factory(3));
        assert_eq!(wanted(&facts(), &adopted, &held), held, "what is adopted changes nothing");
        assert_eq!(adopted.statics, config.statics);
        assert_eq!(adopted.ports[1], config.ports[1]);
        assert_eq!(adopted.ports[2].frames, AcceptableFrames::OnlyTagged);
        assert_eq!(adopted.vlans[&VlanIndex(vlan(7))].egress, list(&[1, 2]));
        assert!(!adopted.vlans.contains_key(&VlanIndex(vlan(8))));
    }
}
