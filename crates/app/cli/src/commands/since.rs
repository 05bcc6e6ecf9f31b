//! `espalier show NEW --since OLD`: what changes from one plan to the next, and in which steps.

use anyhow::Result;
use fabric::{FdbRun, FlowControlMode, Host, HostTable, Plan, Topology, VlanId};
use serde_json::{Value, json};
use transition::{
    Deadlock, Difference, EntryCounts, Frames, Part, Presence, SettingDifference, Step, SwitchChange, Transition,
};

use super::{Output, say};
use crate::count::abridged;

/// Devices named in one line; the rest are counted.
const NAMES_MAX: usize = 8;

pub(super) fn show(previous: &Plan, next: &Plan, output: Output) -> Result<()> {
    let difference = transition::difference(previous, next);
    let transition = transition::steps(previous, next);
    if output == Output::Json {
        let mut object = json!({ "difference": difference_json(&difference) });
        match &transition {
            Ok(transition) => {
                let steps = transition.steps.iter().map(|step| step_json(&transition.topology, step));
                object["steps"] = steps.collect();
                object["deadlock"] = deadlock_json(transition.deadlock);
            }
            Err(error) => object["error"] = error.to_string().into(),
        }
        say!("{object}");
        return Ok(());
    }
    say!("{difference}");
    let transition = transition?;
    if transition.steps.is_empty() {
        say!("nothing to do");
    }
    for (number, step) in transition.steps.iter().enumerate() {
        say!("{}", step_line(&transition, number + 1, step));
    }
    if transition.steps.is_empty() {
        return Ok(());
    }
    match transition.deadlock {
        Deadlock::NothingWaits => {}
        Deadlock::Impossible(Frames::All) => say!("deadlock         proven free in every step"),
        Deadlock::Impossible(Frames::Unicast) => say!("deadlock         proven free in every step for unicast alone"),
        Deadlock::Unproven => {
            say!(
                "deadlock         NOT proven free while hosts change VLANs: frames of both plans may block each other;"
            );
            say!("                 plan again with --previous and --keep-order for a change that is proven")
        }
    }
    Ok(())
}

/// Which frames cannot wait for each other for ever on the way; where nothing waits, that is proven of all.
fn deadlock_json(deadlock: Deadlock) -> Value {
    let (proven, covered) = match deadlock {
        Deadlock::NothingWaits | Deadlock::Impossible(Frames::All) => (true, "all"),
        Deadlock::Impossible(Frames::Unicast) => (false, "unicast"),
        Deadlock::Unproven => (false, "none"),
    };
    json!({ "proven": proven, "covered": covered })
}

/// One step for a person: `2. fill (round 1): 3 switches (s0, s1, s2), 12 ports, 40 entries set`.
fn step_line(transition: &Transition, number: usize, step: &Step) -> String {
    let topology = &transition.topology;
    let (mut names, mut ports, mut set, mut unset, mut hosts) = (Vec::new(), 0, 0, 0, 0);
    let count = |runs: &[FdbRun]| runs.iter().map(|run| run.len(topology)).sum::<usize>();
    for part in &step.parts {
        match part {
            Part::Switch(change) => {
                names.push(topology.switch(change.switch).name.as_str());
                ports += change.ports.len();
                set += count(&change.set);
                unset += count(&change.unset) + change.foreign_unset.len();
            }
            Part::Host(host, _) => {
                names.push(topology.host(*host).name.as_str());
                hosts += 1;
            }
        }
    }
    let what = match (hosts, names.len()) {
        (hosts, parts) if hosts == parts => "hosts take other tables".to_owned(),
        (0, _) => format!("{ports} ports, {set} entries set, {unset} removed"),
        _ => format!("{ports} ports, {set} entries set, {unset} removed; hosts take other tables"),
    };
    let names = abridged(&names, ", ", NAMES_MAX);
    let (kind, round) = (step.kind.word(), step.round);
    format!("{number}. {kind} (round {round}) on {names}: {what}")
}

/// A difference as an object.
pub(super) fn difference_json(difference: &Difference) -> Value {
    let switches: Vec<Value> = (difference.switches.iter())
        .map(|switch| {
            let ports: Vec<Value> = (switch.ports.iter())
                .map(|port| {
                    let mut object = json!({
                        "port": port.name,
                        "tagged_added": port.tagged_added.to_string(),
                        "tagged_removed": port.tagged_removed.to_string(),
                        "untagged_added": port.untagged_added.to_string(),
                        "untagged_removed": port.untagged_removed.to_string(),
                    });
                    if let Some((before, after)) = port.pvid {
                        object["pvid"] = json!({ "before": before.map(VlanId::get), "after": after.map(VlanId::get) });
                    }
                    if !port.settings.is_empty() {
                        object["settings"] = settings_json(&port.settings);
                    }
                    object
                })
                .collect();
            let presence = match switch.presence {
                Presence::Both => "both",
                Presence::Added => "added",
                Presence::Removed => "removed",
            };
            let entries = entries_json(&switch.entries);
            let settings = settings_json(&switch.settings);
            json!({
                "switch": switch.name, "presence": presence, "entries": entries, "settings": settings, "ports": ports,
            })
        })
        .collect();
    json!({
        "switches_changed": difference.switches_changed(),
        "switches_common": difference.switches_common,
        "vlans_added": difference.vlans_added.to_string(),
        "vlans_removed": difference.vlans_removed.to_string(),
        "pvids_changed": difference.pvids_changed,
        "entries": entries_json(&difference.entries),
        "entries_share_touched": difference.entries.share_touched(),
        "switches": switches,
    })
}

fn settings_json(settings: &[SettingDifference]) -> Value {
    let one = |setting: &SettingDifference| json!({ "setting": setting.name, "before": setting.before, "after": setting.after });
    settings.iter().map(one).collect()
}

fn entries_json(entries: &EntryCounts) -> Value {
    let EntryCounts { added, removed, changed, kept } = *entries;
    json!({ "added": added, "removed": removed, "changed": changed, "kept": kept })
}

fn step_json(topology: &Topology, step: &Step) -> Value {
    let parts: Vec<Value> = (step.parts.iter())
        .map(|part| match part {
            Part::Switch(change) => switch_json(topology, change),
            Part::Host(host, table) => {
                json!({ "host": topology.host(*host).name, "table": table_json(topology, table) })
            }
        })
        .collect();
    json!({ "kind": step.kind.word(), "round": step.round, "parts": parts })
}

fn switch_json(topology: &Topology, change: &SwitchChange) -> Value {
    let ports: Vec<Value> = (change.ports.iter())
        .map(|port| {
            json!({
                "port": topology.port(port.port).name,
                "admin": match port.admin { fabric::Admin::Up => "up", fabric::Admin::Down => "down" },
                "flow_control": flow_control_word(&port.flow_control),
                "mtu_bytes": port.mtu_bytes,
                "blocked": port.blocked.to_string(),
                "storm_limit": port.storm_limit.map(fabric::StormLimit::percent),
                "untagged_class": port.untagged_class,
                "pvid": port.pvid.map(VlanId::get),
                "join_tagged": port.join_tagged.to_string(),
                "join_untagged": port.join_untagged.to_string(),
                "leave": port.leave.to_string(),
            })
        })
        .collect();
    let entries = |runs: &[FdbRun]| -> Vec<Value> {
        (runs.iter())
            .map(|run| {
                let hosts = &topology.hosts()[run.first.index()..=run.last.index()];
                let macs: Vec<String> = hosts.iter().flat_map(Host::macs).map(|mac| mac.to_string()).collect();
                json!({ "vlan": run.vlan.get(), "port": topology.port(run.port).name, "macs": macs })
            })
            .collect()
    };
    let foreign: Vec<Value> = (change.foreign_unset.iter())
        .map(|entry| {
            let (vlan, port) = (entry.vlan.get(), &topology.port(entry.port).name);
            json!({ "vlan": vlan, "port": port, "macs": [entry.mac.to_string()] })
        })
        .collect();
    let mut object = json!({
        "switch": topology.switch(change.switch).name,
        "ports": ports,
        "set": entries(&change.set),
        "unset": entries(&change.unset).into_iter().chain(foreign).collect::<Vec<_>>(),
    });
    if let Some(classes) = &change.classes {
        object["classes"] = classes.iter().map(ToString::to_string).collect();
    }
    object
}

fn flow_control_word(mode: &FlowControlMode) -> String {
    match mode {
        FlowControlMode::Off => "off".to_owned(),
        FlowControlMode::Pause => "pause".to_owned(),
        FlowControlMode::Pfc { lanes } => format!("pfc={lanes}"),
    }
}

fn table_json(topology: &Topology, table: &HostTable) -> Value {
    let name = |host: fabric::HostId| topology.host(host).name.as_str();
    let unicast: Vec<Value> = (table.unicast.iter())
        .map(|run| json!({ "first": name(run.first), "last": name(run.last), "vlan": run.choice.get() }))
        .collect();
    let paths: Vec<Value> = (table.paths.iter())
        .map(|run| {
            let vlans: Vec<u16> = run.choice.iter().map(|vlan| vlan.get()).collect();
            json!({ "first": name(run.first), "last": name(run.last), "vlans": vlans })
        })
        .collect();
    let receives = table.receives.to_string();
    json!({ "broadcast": table.broadcast.map(VlanId::get), "unicast": unicast, "paths": paths, "receives": receives })
}
