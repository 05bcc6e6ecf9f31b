//! What SONiC makes of files: tables are merged into its database, patches and operations done to it, and the state is what is
//! then there.

use std::collections::BTreeMap;

use fabric::{Admin, FlowControlMode, VlanId, VlanSet};
use serde_json::{Map, Value, json};

use super::{MAPS, ORDER, tables};
use crate::{
    Target,
    console::take_flow_control,
    dialect::{PRIORITIES, are_apart},
    names::lag_spelt,
    text::{ERRORS_MAX, LineError, mac, vlan},
};
use switch_model::{LagMembership, PortConfig, PortLearning, Slot, SwitchConfig};

/// Rows by table and key, of any names.
type Database = BTreeMap<String, BTreeMap<String, Value>>;

/// When a file is told: addresses that go, then tables and patches, then addresses that come.
pub(super) fn turn(text: &str) -> u8 {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(steps)) if steps.iter().any(is_operation) => {
            if steps.iter().all(|step| step["OP"] == "DEL") {
                0
            } else {
                2
            }
        }
        _ => 1,
    }
}

/// Whether a step is one of `swssconfig`'s, and not of a patch.
fn is_operation(step: &Value) -> bool {
    step.get("OP").is_some()
}

/// Merges tables into the database, patches it or does operations to it, and takes the state from what is then there.
pub(super) fn read(text: &str, config: &mut SwitchConfig) -> Result<(), Vec<LineError>> {
    let last = text.lines().count().max(1);
    let parsed: Value = serde_json::from_str(text).map_err(|error| {
        vec![LineError { line: error.line().clamp(1, last), message: format!("not JSON: {error}") }]
    })?;
    let mut database: Database = tables(config).into_iter().map(|(table, rows)| (table.to_owned(), rows)).collect();
    let mut errors = Vec::new();
    let merged = match &parsed {
        Value::Object(tables) => merge(&mut database, tables),
        Value::Array(steps) => steps.iter().try_for_each(|step| match is_operation(step) {
            true => operate(&mut database, step),
            false => patch(&mut database, step),
        }),
        _ => Err(Wrong { table: String::new(), key: String::new(), message: "neither tables nor a patch".to_owned() }),
    };
    let operations = parsed.as_array().is_some_and(|steps| steps.iter().any(is_operation));
    let mut wrong = |Wrong { table, key, message }| {
        let line = match key.split_once('|').filter(|_| operations) {
            Some((vlan, mac)) => line_of(text, "", &format!("FDB_TABLE:{vlan}:{}", mac.replace(':', "-"))),
            None => line_of(text, &table, &key),
        };
        errors.push(LineError { line, message });
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

/// One operation of `swssconfig`: a row of FDB_TABLE is set or deleted.
fn operate(database: &mut Database, operation: &Value) -> Result<(), Wrong> {
    let row = operation.as_object().into_iter().flatten().find(|(key, _)| *key != "OP");
    let (name, fields) = row.map_or(("", &Value::Null), |(key, fields)| (key.as_str(), fields));
    let wrong = |message: &str| {
        let message = format!("{name:?}: {message}");
        Err(Wrong { table: String::new(), key: name.to_owned(), message })
    };
    let Some((vlan, mac)) = name.strip_prefix("FDB_TABLE:").and_then(|key| key.split_once(':')) else {
        return wrong("an operation is about one row of FDB_TABLE");
    };
    let key = format!("{vlan}|{}", mac.replace('-', ":"));
    let rows = database.entry("FDB".to_owned()).or_default();
    match operation["OP"].as_str() {
        Some("SET") if fields["type"] != "static" => wrong("its type is not static, so it would age"),
        Some("SET") => {
            rows.insert(key, json!({ "port": fields["port"] }));
            Ok(())
        }
        Some("DEL") if rows.remove(&key).is_none() => wrong("there is no such row"),
        Some("DEL") => Ok(()),
        _ => wrong("OP is neither SET nor DEL"),
    }
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
pub(super) fn fresh(ports: Vec<String>) -> SwitchConfig {
    let mut config = SwitchConfig::blank(ports);
    config.ports.iter_mut().for_each(|port| port.learning = PortLearning::Always);
    config
}

/// Takes the state from the database.
fn load(database: &Database, config: &mut SwitchConfig) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    *config = fresh(config.ports.iter().map(|port| port.name.clone()).collect());
    for table in ["VLAN", "PORTCHANNEL", "PORT", "PORTCHANNEL_MEMBER", "VLAN_MEMBER", "PORT_QOS_MAP", "FDB"] {
        for (key, row) in database.get(table).into_iter().flatten() {
            if let Err(message) = load_row(config, database, table, key, row) {
                wrong.push(Wrong { table: table.to_owned(), key: key.clone(), message });
            }
        }
    }
    for table in database.keys().filter(|table| *table != "FDB" && !ORDER.contains(&table.as_str())) {
        let message = format!("table {table} is not one that this reader knows");
        wrong.push(Wrong { table: table.clone(), key: String::new(), message });
    }
    for PortConfig { name, untagged, pvid, tagged, lag, .. } in &mut config.ports {
        if *lag != LagMembership::Alone && !(untagged.is_empty() && tagged.is_empty()) {
            let message = format!("port {name} is a member of a LAG, and so of no VLAN");
            wrong.push(Wrong { table: "VLAN_MEMBER".to_owned(), key: name.clone(), message });
        }
        if untagged.len() > 1 {
            let message = format!("port {name} is untagged in VLANs {untagged}; SONiC allows one");
            wrong.push(Wrong { table: "VLAN_MEMBER".to_owned(), key: name.clone(), message });
        }
        *pvid = untagged.iter().next();
    }
    take_flow_control(config);
    config.vlans.remove(VlanId::MIN);
    wrong
}

fn load_row(config: &mut SwitchConfig, database: &Database, table: &str, key: &str, row: &Value) -> Result<(), String> {
    let field = |name: &str| row[name].as_str().ok_or_else(|| format!("{table}|{key} lacks {name}"));
    let slot = |config: &SwitchConfig, name: &str| -> Result<Slot, String> {
        let slot = match lag_spelt(Some(Target::Sonic), name) {
            Some(lag) => config.slot(&lag.to_string()),
            None => config.slot(name).filter(|slot| config.port(*slot).lag_number().is_none()),
        };
        slot.ok_or_else(|| format!("the switch has no port {name}"))
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
        "PORTCHANNEL_MEMBER" => {
            let (lag, port) = key.split_once('|').ok_or("a member is called LAG|port")?;
            let (lag, port) = (slot(config, lag)?, slot(config, port)?);
            if !database.get("PORTCHANNEL").is_some_and(|rows| rows.keys().any(|key| slot(config, key) == Ok(lag))) {
                return Err(format!("table PORTCHANNEL has no row for {key}"));
            }
            config.ports[port.index()].lag = LagMembership::Of(lag);
        }
        "PORT" | "PORTCHANNEL" => {
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
