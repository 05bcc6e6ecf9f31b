//! SONiC, as tables of CONFIG_DB: hosts tag their own frames.
//!
//! ```text
//!   {"VLAN": {"Vlan2": {"vlanid": "2"}},
//!    "VLAN_MEMBER": {"Vlan2|Ethernet0": {"tagging_mode": "tagged"}},
//!    "DOT1P_TO_TC_MAP": {"espalier": {"0": "0", "1": "1", …}},
//!    "PORT_QOS_MAP": {"Ethernet0": {"dot1p_to_tc_map": "espalier", …, "pfc_enable": "0,1"}},
//!    "PORT": {"Ethernet0": {"admin_status": "up"}}}
//!
//!   [{"FDB_TABLE:Vlan2:02-00-00-00-00-01": {"port": "Ethernet0", "type": "static"}, "OP": "SET"}]
//! ```
//! A full configuration is merged by `config load`; a difference is a JSON patch (RFC 6902) for `config apply-patch`, which
//! has no empty tables, so that a table comes and goes with its rows. A LAG is a row `PortChannel3` of PORTCHANNEL, each member one of
//! PORTCHANNEL_MEMBER, and `teamd` speaks LACP for it. A port is down unless it says otherwise, and no
//! spanning tree runs. JSON has no comments, so what the file is stands in another beside it.
//!
//! Static addresses stand in files of their own, for `swssconfig`, which writes them into APPL_DB: CONFIG_DB's table `FDB` has
//! no YANG model, so that a patch with it is refused whole, and no consumer before SONiC#2468. Those that go are told before
//! a patch, those that come behind it, since an address belongs to a member of its VLAN. The reader knows both ways.
//!
//! A frame's class follows from the maps of the port where it enters; a port without them puts every frame into class
//! and queue 0. So where there is priority flow control, four maps lead each of the eight priorities to the class, the
//! queue and the buffers of its own number. Sources: YANG models of sonic-buildimage, `qosorch.cpp` of sonic-swss,
//! `saiport.h` of SAI.

mod reader;

use std::{collections::BTreeMap, io, io::Write as _};

use fabric::{Admin, Basis, FloodSet, FlowControlMode, VlanSet};
use serde_json::{Map, Value, json};

use self::reader::{fresh, read, turn};
use super::{
    Ability, Dialect, FileErrors, Full, Lags, Learns, Output, PRIORITIES, SnoopingWords, StormControl, TextFile,
    Traits, Untagged, is_word, read_only, stands,
};
use crate::{Target, names::spelt};
use switch_model::{
    Entries, LagMembership, Slot, SwitchConfig,
    change::{Change, Stage},
};

/// The language.
pub(super) struct Sonic;

/// Rows by table and key.
type Tables = BTreeMap<&'static str, BTreeMap<String, Value>>;

/// The maps by which a port finds a frame's class, queue and buffers, and the queue that a PAUSE of one class stops:
/// the port's field, and the table.
const MAPS: [(&str, &str); 4] = [
    ("dot1p_to_tc_map", "DOT1P_TO_TC_MAP"),
    ("tc_to_queue_map", "TC_TO_QUEUE_MAP"),
    ("tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP"),
    ("pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE"),
];

/// What each of the maps is called.
const MAP: &str = "espalier";

impl Dialect for Sonic {
    fn traits(&self) -> Traits {
        Traits {
            comment: None,
            extension: "json",
            untagged: Untagged::Native,
            pause: Ability::Lacks,
            priority_flow_control: Ability::Has,
            full: Full::InSteps,
            learning: Learns::Always,
            blocks: FloodSet::NONE,
            storm_control: StormControl::Lacks,
            lags: Lags::Made,
            lldp: None,
            snooping: SnoopingWords::NONE,
            port_name: (|name| is_word(name) && !name.contains('/'), "Ethernet0"),
            basis: Basis::Untested,
        }
    }

    fn factory(&self, ports: Vec<String>) -> SwitchConfig {
        fresh(ports)
    }

    fn write(&self, change: &Change<'_>, out: &mut Output<'_>) -> io::Result<()> {
        match change.stage {
            // The database is merged as a whole, so there is nothing to open afterwards.
            Stage::Prepare => Ok(()),
            Stage::Open => {
                write_tables(out, &modelled(change.after))?;
                write_operations(out, Operation::Set, change.after, &change.after.entries)
            }
            Stage::Step => {
                let (before, after) = (change.before, change.after);
                write_patch(out, &modelled(before), &modelled(after))?;
                let gone = before.entries.iter().filter(|(key, _)| !after.entries.contains_key(key));
                write_operations(out, Operation::Del, before, &gone.map(|(key, slot)| (*key, *slot)).collect())?;
                let fresh = after.entries.iter().filter(|(key, slot)| before.entries.get(key) != Some(*slot));
                write_operations(out, Operation::Set, after, &fresh.map(|(key, slot)| (*key, *slot)).collect())
            }
        }
    }

    fn read(&self, files: &[TextFile<'_>], config: &mut SwitchConfig) -> Result<(), FileErrors> {
        let own = files
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, file)| [".json", SWSSCONFIG].iter().any(|ending| file.name.ends_with(ending)));
        let mut own: Vec<(usize, TextFile<'_>)> = own.collect();
        own.sort_by_key(|(_, file)| turn(file.text));
        if own.is_empty() {
            return read_only(&[], |_| Ok(()));
        }
        for (at, file) in own {
            read(file.text, config)
                .map_err(|errors| errors.into_iter().map(|error| (at, error)).collect::<FileErrors>())?;
        }
        Ok(())
    }
}

/// How the names of files for `swssconfig` end; `.json` is CONFIG_DB, which `config load` takes.
pub(crate) const SWSSCONFIG: &str = ".swssconfig";

/// What `swssconfig` does with rows of APPL_DB.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Set,
    Del,
}

/// The file's part of a name, and the list of operations; no file if there is none.
fn write_operations(
    out: &mut Output<'_>,
    operation: Operation,
    config: &SwitchConfig,
    entries: &Entries,
) -> io::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let (word, part) = match operation {
        Operation::Set => ("SET", "fdb-set"),
        Operation::Del => ("DEL", "fdb-del"),
    };
    let name = format!("{}.{part}{SWSSCONFIG}", out.stem);
    out.folder.begin(&name)?;
    writeln!(out, "[")?;
    for (index, ((vlan, mac), slot)) in entries.iter().enumerate() {
        let key = json!(format!("FDB_TABLE:Vlan{vlan}:{}", mac.to_string().replace(':', "-")));
        let fields = match operation {
            Operation::Set => json!({ "port": spelt(Target::Sonic, &config.port(*slot).name), "type": "static" }),
            Operation::Del => json!({}),
        };
        let comma = if index + 1 < entries.len() { "," } else { "" };
        writeln!(out, "  {{{key}: {fields}, \"OP\": {}}}{comma}", json!(word))?;
    }
    writeln!(out, "]")
}

/// The tables that have a YANG model: all but the static addresses.
fn modelled(config: &SwitchConfig) -> Tables {
    let mut tables = tables(config);
    tables.remove("FDB");
    tables
}

/// The rows that say what a switch is.
fn tables(config: &SwitchConfig) -> Tables {
    let mut tables = Tables::new();
    let mut row = |table, key: String, value| {
        tables.entry(table).or_default().insert(key, value);
    };
    // VLAN 1 is not there by itself.
    let vlans: VlanSet = config.vlans.iter().chain(config.memberships().iter()).collect();
    for vlan in vlans.iter() {
        row("VLAN", format!("Vlan{vlan}"), json!({ "vlanid": vlan.to_string() }));
    }
    for (index, port) in config.ports.iter().enumerate() {
        let name = spelt(Target::Sonic, &port.name).into_owned();
        for (set, mode) in [(&port.tagged, "tagged"), (&port.untagged, "untagged")] {
            for vlan in set.iter() {
                row("VLAN_MEMBER", format!("Vlan{vlan}|{name}"), json!({ "tagging_mode": mode }));
            }
        }
        let status = if port.admin == Admin::Up { "up" } else { "down" };
        if port.lag_number().is_some() {
            // Its members have the classes.
            if stands(config, Slot::new(index)) {
                row("PORTCHANNEL", name, json!({ "admin_status": status }));
            }
            continue;
        }
        row("PORT", name, json!({ "admin_status": status }));
        if let LagMembership::Of(lag) = port.lag {
            let lag = spelt(Target::Sonic, &config.port(lag).name);
            row("PORTCHANNEL_MEMBER", format!("{lag}|{}", port.name), json!({}));
        }
        if let FlowControlMode::Pfc { lanes } = port.flow_control {
            let classes: Vec<String> = (0..lanes).map(|class| class.to_string()).collect();
            let mut fields = json!({ "pfc_enable": classes.join(",") });
            MAPS.iter().for_each(|(field, _)| fields[field] = json!(MAP));
            row("PORT_QOS_MAP", port.name.clone(), fields);
        }
    }
    if config.has_classes() {
        let same = |priority: usize| (priority.to_string(), json!(priority.to_string()));
        let map: Map<String, Value> = (0..PRIORITIES).map(same).collect();
        MAPS.iter().for_each(|(_, table)| row(table, MAP.to_owned(), json!(map)));
    }
    for (&(vlan, mac), &slot) in &config.entries {
        row("FDB", format!("Vlan{vlan}|{mac}"), json!({ "port": spelt(Target::Sonic, &config.port(slot).name) }));
    }
    tables
}

fn write_tables(out: &mut Output<'_>, tables: &Tables) -> io::Result<()> {
    writeln!(out, "{{")?;
    for (index, (table, rows)) in tables.iter().enumerate() {
        writeln!(out, "  {}: {{", json!(table))?;
        for (index, (key, value)) in rows.iter().enumerate() {
            let comma = if index + 1 < rows.len() { "," } else { "" };
            writeln!(out, "    {}: {value}{comma}", json!(key))?;
        }
        writeln!(out, "  }}{}", if index + 1 < tables.len() { "," } else { "" })?;
    }
    writeln!(out, "}}")
}

/// The order in which rows come, and the other way round in which they go: a port leaves its VLANs before it joins a LAG.
const ORDER: [&str; 10] = [
    "PORTCHANNEL",
    "PORTCHANNEL_MEMBER",
    "VLAN",
    "VLAN_MEMBER",
    MAPS[0].1,
    MAPS[1].1,
    MAPS[2].1,
    MAPS[3].1,
    "PORT_QOS_MAP",
    "PORT",
];

fn write_patch(out: &mut Output<'_>, before: &Tables, after: &Tables) -> io::Result<()> {
    let none = BTreeMap::new();
    let rows = |tables: &'_ Tables, table: &str| tables.get(table).cloned().unwrap_or_else(|| none.clone());
    let mut steps: Vec<Value> = Vec::new();
    // A table of which no row stays goes as a whole: it must not be empty in between.
    let goes = |old: &BTreeMap<String, Value>, new: &BTreeMap<String, Value>| {
        !old.is_empty() && !old.keys().any(|key| new.contains_key(key))
    };
    for table in ORDER.iter().rev() {
        let (old, new) = (rows(before, table), rows(after, table));
        if goes(&old, &new) {
            steps.push(json!({ "op": "remove", "path": format!("/{table}") }));
        } else {
            let gone = old.keys().filter(|key| !new.contains_key(*key));
            steps.extend(gone.map(|key| json!({ "op": "remove", "path": format!("/{table}/{key}") })));
        }
    }
    for table in ORDER {
        let (old, new) = (rows(before, table), rows(after, table));
        if (old.is_empty() || goes(&old, &new)) && !new.is_empty() {
            let whole: Map<String, Value> = new.into_iter().collect();
            steps.push(json!({ "op": "add", "path": format!("/{table}"), "value": whole }));
        } else {
            let fresh = new.iter().filter(|(key, value)| old.get(*key) != Some(*value));
            steps.extend(fresh.map(|(key, value)| match old.get(key) {
                Some(_) => json!({ "op": "replace", "path": format!("/{table}/{key}"), "value": value }),
                None => json!({ "op": "add", "path": format!("/{table}/{key}"), "value": value }),
            }));
        }
    }
    writeln!(out, "[")?;
    for (index, step) in steps.iter().enumerate() {
        writeln!(out, "  {step}{}", if index + 1 < steps.len() { "," } else { "" })?;
    }
    writeln!(out, "]")
}
