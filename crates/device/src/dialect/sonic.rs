//! SONiC, as tables of CONFIG_DB: hosts tag their own frames.
//!
//! ```text
//!   {"VLAN": {"Vlan2": {"vlanid": "2"}},
//!    "VLAN_MEMBER": {"Vlan2|Ethernet0": {"tagging_mode": "tagged"}},
//!    "FDB": {"Vlan2|02:00:00:00:00:01": {"port": "Ethernet0"}},
//!    "DOT1P_TO_TC_MAP": {"espalier": {"0": "0", "1": "1", …}},
//!    "PORT_QOS_MAP": {"Ethernet0": {"dot1p_to_tc_map": "espalier", …, "pfc_enable": "0,1"}},
//!    "PORT": {"Ethernet0": {"admin_status": "up"}}}
//! ```
//! A full configuration is merged by `config load`; a difference is a JSON patch (RFC 6902) for `config apply-patch`, which
//! has no empty tables, so that a table comes and goes with its rows. A port is down unless it says otherwise, and no
//! spanning tree runs. JSON has no comments, so what the file is stands in another beside it. Static addresses by table
//! `FDB` are as new as SONiC#2468; nobody has tried it here.
//!
//! A frame's class follows from the maps of the port where it enters; a port without them puts every frame into class
//! and queue 0. So where there is priority flow control, four maps lead each of the eight priorities to the class, the
//! queue and the buffers of its own number. Sources: YANG models of sonic-buildimage, `qosorch.cpp` of sonic-swss,
//! `saiport.h` of SAI.

use std::{collections::BTreeMap, io, io::Write as _};

use fabric::{Admin, Basis, FlowControlMode, VlanId, VlanSet};
use serde_json::{Map, Value, json};

use super::{
    Ability, Dialect, FileErrors, Full, Learns, Output, PRIORITIES, TextFile, Traits, Untagged, are_apart, is_word,
    read_only,
};
use crate::{
    PortConfig, PortLearning, Slot, SwitchConfig,
    change::{Change, Stage},
    text::{ERRORS_MAX, LineError, mac, vlan},
};

/// The language.
pub(super) struct Sonic;

/// Rows by table and key, of any names.
type Database = BTreeMap<String, BTreeMap<String, Value>>;

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
            Stage::Open => write_tables(out, &tables(change.after)),
            Stage::Step => write_patch(out, &tables(change.before), &tables(change.after)),
        }
    }

    fn read(&self, files: &[TextFile<'_>], config: &mut SwitchConfig) -> Result<(), FileErrors> {
        let own = files.iter().copied().enumerate().filter(|(_, file)| file.name.ends_with(".json"));
        let (places, texts): (Vec<usize>, Vec<TextFile<'_>>) = own.unzip();
        read_only(&texts, |text| read(text, config)).map_err(|errors| {
            let among_all = |(file, error)| (places.get(file).copied().unwrap_or_default(), error);
            errors.into_iter().map(among_all).collect()
        })
    }
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
    for port in &config.ports {
        for (set, mode) in [(&port.tagged, "tagged"), (&port.untagged, "untagged")] {
            for vlan in set.iter() {
                row("VLAN_MEMBER", format!("Vlan{vlan}|{}", port.name), json!({ "tagging_mode": mode }));
            }
        }
        let status = if port.admin == Admin::Up { "up" } else { "down" };
        row("PORT", port.name.clone(), json!({ "admin_status": status }));
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
        row("FDB", format!("Vlan{vlan}|{mac}"), json!({ "port": config.port(slot).name }));
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

/// The order in which rows go and come: entries before memberships before VLANs on the way out, the other way round on
/// the way in.
const ORDER: [&str; 9] =
    ["VLAN", "VLAN_MEMBER", MAPS[0].1, MAPS[1].1, MAPS[2].1, MAPS[3].1, "PORT_QOS_MAP", "FDB", "PORT"];

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

/// Merges tables into the database, or patches it, and takes the state from what is then there.
fn read(text: &str, config: &mut SwitchConfig) -> Result<(), Vec<LineError>> {
    let last = text.lines().count().max(1);
    let parsed: Value = serde_json::from_str(text).map_err(|error| {
        vec![LineError { line: error.line().clamp(1, last), message: format!("not JSON: {error}") }]
    })?;
    let mut database: Database = tables(config).into_iter().map(|(table, rows)| (table.to_owned(), rows)).collect();
    let mut errors = Vec::new();
    let merged = match &parsed {
        Value::Object(tables) => merge(&mut database, tables),
        Value::Array(steps) => steps.iter().try_for_each(|step| patch(&mut database, step)),
        _ => Err(Wrong { table: String::new(), key: String::new(), message: "neither tables nor a patch".to_owned() }),
    };
    let mut wrong = |Wrong { table, key, message }| {
        errors.push(LineError { line: line_of(text, &table, &key), message });
    };
    if let Err(error) = merged {
        wrong(error);
    } else {
        load(&database, config).into_iter().take(ERRORS_MAX).for_each(wrong);
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The line of a row: the first that mentions its key, from where its table is named on.
fn line_of(text: &str, table: &str, key: &str) -> usize {
    let names = |line: &str| !table.is_empty() && line.split(['"', '/']).any(|word| word == table);
    let from = text.lines().position(names).unwrap_or(0);
    let down = text.lines().skip(from).position(|line| line.contains(key)).unwrap_or(0);
    from + down + 1
}

/// What is wrong, and the row that it is about.
struct Wrong {
    table: String,
    key: String,
    message: String,
}

fn merge(database: &mut Database, tables: &Map<String, Value>) -> Result<(), Wrong> {
    for (table, rows) in tables {
        let rows = rows.as_object().ok_or_else(|| {
            let message = format!("{table} is no table");
            Wrong { table: table.clone(), key: String::new(), message }
        })?;
        let to = database.entry(table.clone()).or_default();
        to.extend(rows.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    Ok(())
}

/// One step of a patch: a table, or a row of one.
fn patch(database: &mut Database, step: &Value) -> Result<(), Wrong> {
    let path = step["path"].as_str().unwrap_or_default();
    let about = |message: &str| {
        let message = format!("{path:?}: {message}");
        Wrong { table: String::new(), key: path.to_owned(), message }
    };
    let wrong = |message: &str| Err(about(message));
    let mut names = path.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"));
    let (Some(table), key, None) = (names.next(), names.next(), names.next()) else {
        return wrong("a step is about a table or one of its rows");
    };
    let value = || step["value"].as_object().cloned();
    match (step["op"].as_str(), key) {
        (Some("remove"), None) => match database.remove(&table) {
            Some(_) => Ok(()),
            None => wrong("there is no such table"),
        },
        (Some("remove"), Some(key)) => {
            let rows = database.entry(table).or_default();
            match rows.remove(&key) {
                Some(_) if rows.is_empty() => wrong("the last row goes with its table: remove that"),
                Some(_) => Ok(()),
                None => wrong("there is no such row"),
            }
        }
        (Some("add" | "replace"), None) => {
            let rows = value().ok_or_else(|| about("it is given no rows"))?;
            database.insert(table, rows.into_iter().collect());
            Ok(())
        }
        (Some(op @ ("add" | "replace")), Some(key)) => {
            let row = value().ok_or_else(|| about("it is given no row"))?;
            match database.get_mut(&table) {
                Some(rows) if op == "replace" && !rows.contains_key(&key) => wrong("there is no such row to replace"),
                Some(rows) => {
                    rows.insert(key, Value::Object(row));
                    Ok(())
                }
                None => wrong("its table is not there"),
            }
        }
        _ => wrong("no operation that this reader knows"),
    }
}

/// Ports of which the database says nothing: they learn, as it has no words for anything else.
fn fresh(ports: Vec<String>) -> SwitchConfig {
    let mut config = SwitchConfig::blank(ports);
    config.ports.iter_mut().for_each(|port| port.learning = PortLearning::Always);
    config
}

/// Takes the state from the database.
fn load(database: &Database, config: &mut SwitchConfig) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    *config = fresh(config.ports.iter().map(|port| port.name.clone()).collect());
    for table in ["VLAN", "PORT", "VLAN_MEMBER", "PORT_QOS_MAP", "FDB"] {
        for (key, row) in database.get(table).into_iter().flatten() {
            if let Err(message) = load_row(config, database, table, key, row) {
                wrong.push(Wrong { table: table.to_owned(), key: key.clone(), message });
            }
        }
    }
    for table in database.keys().filter(|table| !ORDER.contains(&table.as_str())) {
        let message = format!("table {table} is not one that this reader knows");
        wrong.push(Wrong { table: table.clone(), key: String::new(), message });
    }
    for PortConfig { name, untagged, pvid, .. } in &mut config.ports {
        if untagged.len() > 1 {
            let message = format!("port {name} is untagged in VLANs {untagged}; SONiC allows one");
            wrong.push(Wrong { table: "VLAN_MEMBER".to_owned(), key: name.clone(), message });
        }
        *pvid = untagged.iter().next();
    }
    config.vlans.remove(VlanId::MIN);
    wrong
}

fn load_row(config: &mut SwitchConfig, database: &Database, table: &str, key: &str, row: &Value) -> Result<(), String> {
    let field = |name: &str| row[name].as_str().ok_or_else(|| format!("{table}|{key} lacks {name}"));
    let slot = |config: &SwitchConfig, name: &str| -> Result<Slot, String> {
        config.slot(name).ok_or_else(|| format!("the switch has no port {name}"))
    };
    let number = |config: &SwitchConfig, name: &str| -> Result<VlanId, String> {
        let number = vlan(name.strip_prefix("Vlan").ok_or_else(|| format!("{name:?} is no VLAN's name"))?)?;
        if config.vlans.contains(number) { Ok(number) } else { Err(format!("table VLAN has no {name}")) }
    };
    match table {
        "VLAN" => {
            let id = vlan(field("vlanid")?)?;
            if key != format!("Vlan{id}") {
                return Err(format!("{key} has the id {id}"));
            }
            config.vlans.extend(VlanSet::from_iter([id]).iter());
        }
        "PORT" => {
            let slot = slot(config, key)?;
            config.ports[slot.index()].admin = match row["admin_status"].as_str() {
                Some("up") => Admin::Up,
                Some("down") | None => Admin::Down,
                Some(other) => return Err(format!("admin_status {other:?} is neither up nor down")),
            };
        }
        "VLAN_MEMBER" => {
            let (name, port) = key.split_once('|').ok_or("a member is called VLAN|port")?;
            let (vlan, slot) = (number(config, name)?, slot(config, port)?);
            let port = &mut config.ports[slot.index()];
            match field("tagging_mode")? {
                "tagged" => port.tagged.insert(vlan),
                "untagged" => port.untagged.insert(vlan),
                other => return Err(format!("tagging_mode {other:?} is neither tagged nor untagged")),
            };
        }
        "PORT_QOS_MAP" => {
            let slot = slot(config, key)?;
            let classes: Vec<&str> = field("pfc_enable")?.split(',').collect();
            let in_order = classes.iter().enumerate().all(|(index, class)| *class == index.to_string());
            if !in_order || classes.len() > 8 {
                return Err(format!("the lossless classes {} are not 0, 1, … in order", classes.join(",")));
            }
            let lanes = classes.len() as u8;
            for (name, of) in MAPS {
                let map = database.get(of).and_then(|maps| maps.get(field(name).ok()?));
                if !are_apart(map.map_or(Ok([0; PRIORITIES]), numbers)?, lanes) {
                    return Err(format!("port {key}: {name} does not keep priorities 0 to {} apart", lanes - 1));
                }
            }
            let known = |name: &String| name == "pfc_enable" || MAPS.iter().any(|(field, _)| field == name);
            if let Some(name) = row.as_object().and_then(|fields| fields.keys().find(|name| !known(name))) {
                return Err(format!(
                    "port {key}: {name} may put frames into another class than that of their priority"
                ));
            }
            config.ports[slot.index()].flow_control = FlowControlMode::Pfc { lanes };
        }
        _ => {
            let (name, address) = key.split_once('|').ok_or("an entry is called VLAN|address")?;
            let (vlan, slot) = (number(config, name)?, slot(config, field("port")?)?);
            config.entries.insert((vlan, mac(address)?), slot);
        }
    }
    Ok(())
}

/// What a map leads each priority to; those that it does not name go to 0.
fn numbers(map: &Value) -> Result<[u8; PRIORITIES], String> {
    let mut numbers = [0; PRIORITIES];
    for (from, to) in map.as_object().into_iter().flatten() {
        let place = from.parse().ok().and_then(|from: usize| numbers.get_mut(from));
        let number = to.as_str().and_then(|to| to.parse().ok());
        let (Some(place), Some(number)) = (place, number) else {
            return Err(format!("a map leads {from:?} to {to}"));
        };
        *place = number;
    }
    Ok(numbers)
}
