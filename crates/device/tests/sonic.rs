//! Tables for SONiC: their shapes, always; and by SONiC's own YANG models with libyang's `yanglint`, where both are there.
//!
//! `SONIC_YANG_MODELS=FOLDER` names a folder with the `.yang` files of sonic-buildimage's `src/sonic-yang-models` (those in
//! `yang-templates` rendered); `YANGLINT=PROGRAM` the program, if it is not on the path.

mod common;

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use common::{PlanSpec, named_topology, plan, render_all};
use device::Target;
use fabric::{EngineName, FdbMode, FlowControl, Mac, Tagging, VlanId};
use serde_json::{Map, Value, json};

/// Tables that have no model in sonic-yang-models: `config apply-patch` takes them with `-n` only.
const WITHOUT_MODEL: [&str; 1] = ["FDB"];
/// The maps: their module, and what they lead from and to.
const MAPS: [(&str, &str, &str, &str); 4] = [
    ("DOT1P_TO_TC_MAP", "sonic-dot1p-tc-map", "dot1p", "tc"),
    ("TC_TO_QUEUE_MAP", "sonic-tc-queue-map", "tc", "qindex"),
    ("TC_TO_PRIORITY_GROUP_MAP", "sonic-tc-priority-group-map", "tc", "pg"),
    ("MAP_PFC_PRIORITY_TO_QUEUE", "sonic-pfc-priority-queue-map", "pfc_priority", "qindex"),
];

/// The full configuration of every switch of a torus, with and without lanes.
fn databases() -> Vec<(String, Map<String, Value>)> {
    let mut databases = Vec::new();
    for flow_control in [FlowControl::None, FlowControl::Pfc(2)] {
        let topology = named_topology(Target::Sonic, "torus 3x3", 1);
        let spec =
            PlanSpec { engine: EngineName::Balanced, tagging: Tagging::Source, fdb: FdbMode::Minimal, flow_control };
        let plan = plan(&topology, spec).expect("a torus can be planned");
        let texts = render_all(&plan, Target::Sonic);
        for (name, text) in texts.files.iter().filter(|(name, _)| name.ends_with(".json")) {
            let database: Value = serde_json::from_slice(text).expect("JSON");
            databases.push((format!("{flow_control:?} {name}"), database.as_object().expect("tables").clone()));
        }
    }
    assert_eq!(databases.len(), 18);
    databases
}

/// What a row has to be, by the Configuration.md of sonic-buildimage; none if it is.
fn is_wrong(database: &Map<String, Value>, table: &str, key: &str, row: &Value) -> Option<&'static str> {
    let Some(fields) = row.as_object() else { return Some("a row has fields") };
    let has = |names: &[&str]| fields.keys().map(String::as_str).eq(names.iter().copied());
    let word = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_there = |table: &str, key: &str| database.get(table).is_some_and(|rows| rows.get(key).is_some());
    let is_vlan = |name: &str| name.strip_prefix("Vlan").is_some_and(|id| id.parse::<VlanId>().is_ok());
    let is_map = |name: &str| MAPS.iter().any(|(table, ..)| *table == name);
    let right = match table {
        "VLAN" => has(&["vlanid"]) && is_vlan(key) && key == format!("Vlan{}", word("vlanid")),
        "VLAN_MEMBER" => key.split_once('|').is_some_and(|(vlan, port)| {
            is_there("VLAN", vlan)
                && is_there("PORT", port)
                && has(&["tagging_mode"])
                && word("tagging_mode") == "tagged"
        }),
        "PORT" => has(&["admin_status"]) && ["up", "down"].contains(&word("admin_status")),
        "FDB" => key.split_once('|').is_some_and(|(vlan, mac)| {
            let member = format!("{vlan}|{}", word("port"));
            has(&["port"]) && mac.parse::<Mac>().is_ok() && is_there("VLAN_MEMBER", &member)
        }),
        "PORT_QOS_MAP" => {
            let classes: BTreeSet<&str> = word("pfc_enable").split(',').collect();
            let maps = ["dot1p_to_tc_map", "pfc_to_queue_map", "tc_to_pg_map", "tc_to_queue_map"];
            is_there("PORT", key)
                && classes == BTreeSet::from(["0", "1"])
                && maps.iter().all(|map| MAPS.iter().any(|(table, ..)| is_there(table, word(map))))
        }
        table if is_map(table) => {
            (0..8).all(|number| word(&number.to_string()) == number.to_string()) && fields.len() == 8
        }
        _ => return Some("no table that is rendered"),
    };
    (!right).then_some("not as SONiC wants it")
}

#[test]
fn rows_have_the_shapes_that_sonic_wants() {
    for (label, database) in databases() {
        let mut rows = 0;
        for (table, key, row) in rows_of(&database) {
            assert_eq!(is_wrong(&database, table, key, row), None, "{label}: {table}|{key}: {row}");
            rows += 1;
        }
        assert!(rows > 20, "{label}: {rows} rows");
        for spoilt in ["VLAN", "VLAN_MEMBER", "FDB"] {
            let mut other = database.clone();
            let rows = other[spoilt].as_object_mut().expect("a table");
            let key = rows.keys().next().expect("a row").clone();
            let row = rows.remove(&key).expect("it is there");
            rows.insert(key.replace(['0', '1', '2', '3', '4'], "x"), row);
            let found = rows_of(&other).any(|(table, key, row)| is_wrong(&other, table, key, row).is_some());
            assert!(found, "{label}: a spoilt row of {spoilt} is seen");
        }
    }
}

fn rows_of(database: &Map<String, Value>) -> impl Iterator<Item = (&String, &String, &Value)> {
    database
        .iter()
        .flat_map(|(table, rows)| rows.as_object().expect("a table").iter().map(move |(key, row)| (table, key, row)))
}

/// A database as an instance of the models, less what has none.
fn instance(database: &Map<String, Value>) -> Value {
    let mut all = Map::new();
    let mut put = |module: &str, table: &str, rows: Vec<Value>| {
        let name = format!("{module}:{module}");
        all.entry(name).or_insert_with(|| json!({}))[table] = json!({ format!("{table}_LIST"): rows });
    };
    let with = |row: &Value, more: Value| {
        let mut row = row.as_object().cloned().unwrap_or_default();
        row.extend(more.as_object().cloned().unwrap_or_default());
        Value::Object(row)
    };
    for (table, rows) in database {
        let rows: Vec<(&String, &Value)> = rows.as_object().expect("a table").iter().collect();
        let number = |word: &str| word.parse::<u64>().map_or_else(|_| json!(word), |number| json!(number));
        match table.as_str() {
            // What a port is made of stands in the database already; the models demand it.
            "PORT" => {
                let port = |(lane, (name, row)): (usize, &(&String, &Value))| {
                    with(row, json!({ "name": name, "lanes": lane.to_string(), "speed": 100_000 }))
                };
                put("sonic-port", table, rows.iter().enumerate().map(port).collect());
            }
            "VLAN" => {
                let vlan = |(name, row): &(&String, &Value)| {
                    with(row, json!({ "name": name, "vlanid": number(row["vlanid"].as_str().unwrap_or("")) }))
                };
                put("sonic-vlan", table, rows.iter().map(vlan).collect());
            }
            "VLAN_MEMBER" => {
                let member = |(key, row): &(&String, &Value)| {
                    let (name, port) = key.split_once('|').expect("two names");
                    with(row, json!({ "name": name, "port": port }))
                };
                put("sonic-vlan", table, rows.iter().map(member).collect());
            }
            "PORT_QOS_MAP" => {
                let map = |(name, row): &(&String, &Value)| with(row, json!({ "ifname": name }));
                put("sonic-port-qos-map", table, rows.iter().map(map).collect());
            }
            name if WITHOUT_MODEL.contains(&name) => {}
            name => {
                let (_, module, from, to) = MAPS.iter().find(|(map, ..)| *map == name).expect("a map");
                // A traffic class as a key is a number, everything else is text.
                let key = |word: &str| if *from == "tc" { number(word) } else { json!(word) };
                let map = |(name, row): &(&String, &Value)| {
                    let steps = row.as_object().expect("a map").iter();
                    let steps: Vec<Value> = steps.map(|(a, b)| json!({ *from: key(a), *to: b })).collect();
                    json!({ "name": name, table: steps })
                };
                put(module, table, rows.iter().map(map).collect());
            }
        }
    }
    Value::Object(all)
}

/// What yanglint says of an instance; nothing if it is valid.
fn lint(program: &str, models: &Path, instance: &Value) -> Result<(), String> {
    let data = std::env::temp_dir().join(format!("espalier-sonic-{}.json", std::process::id()));
    fs::write(&data, instance.to_string()).expect("a file");
    let mut modules: Vec<_> = fs::read_dir(models)
        .expect("the models' folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yang"))
        .collect();
    modules.sort();
    assert!(!modules.is_empty(), "{} has no .yang files", models.display());
    let output = Command::new(program).arg("-p").arg(models).args(["-t", "config"]).args(modules).arg(&data).output();
    let output = output.expect("yanglint runs");
    fs::remove_file(&data).expect("ours");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let errors: Vec<&str> = said.lines().filter(|line| line.contains("err")).collect();
    if output.status.success() && errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
}

#[test]
fn sonic_s_own_models_take_what_is_rendered() {
    let program = std::env::var("YANGLINT").unwrap_or_else(|_| "yanglint".to_owned());
    let Ok(models) = std::env::var("SONIC_YANG_MODELS") else {
        eprintln!(
            "SKIPPED: SONiC's YANG models: set SONIC_YANG_MODELS to a folder with sonic-yang-models' .yang files"
        );
        return;
    };
    if Command::new(&program).arg("--version").output().is_err() {
        eprintln!(
            "SKIPPED: SONiC's YANG models: {program} is missing (apt-get install libyang2-tools, or set YANGLINT)"
        );
        return;
    }
    let models = Path::new(&models);
    for (label, database) in databases() {
        let whole = instance(&database);
        assert_eq!(lint(&program, models, &whole), Ok(()), "{label}");
        // One that is not valid is seen, or the program sees nothing.
        let mut spoilt = database;
        let vlans = spoilt["VLAN"].as_object_mut().expect("a table");
        let row = vlans.values_mut().next().expect("a VLAN");
        row["vlanid"] = json!("5000");
        assert!(lint(&program, models, &instance(&spoilt)).is_err(), "{label}: VLAN 5000 is none");
    }
}

/// The recipe of `docs/devices.md` makes of table `FDB` what `swssconfig` takes: an operation for each entry.
#[test]
fn the_recipe_for_static_addresses_works() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/devices.md");
    let docs = fs::read_to_string(docs).expect("the page");
    let program = docs.split("jq '[.FDB").nth(1).and_then(|rest| rest.split('\'').next()).expect("the recipe");
    if Command::new("jq").arg("--version").output().is_err() {
        eprintln!("SKIPPED: the recipe for SONiC's static addresses: jq is missing (apt-get install jq)");
        return;
    }
    let (label, database) = databases().swap_remove(0);
    let path = std::env::temp_dir().join(format!("espalier-swss-{}.json", std::process::id()));
    fs::write(&path, Value::Object(database.clone()).to_string()).expect("a file");
    let output = Command::new("jq").arg(format!("[.FDB{program}")).arg(&path).output().expect("jq runs");
    fs::remove_file(&path).expect("ours");
    let operations: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let operations = operations.as_array().expect("a list");
    let entries = database["FDB"].as_object().expect("a table");
    assert_eq!(operations.len(), entries.len(), "{label}");
    for (operation, (key, row)) in operations.iter().zip(entries) {
        let (vlan, mac) = key.split_once('|').expect("two names");
        let table = format!("FDB_TABLE:{vlan}:{}", mac.replace(':', "-"));
        assert_eq!(operation["OP"], "SET");
        assert_eq!(operation[&table], json!({ "port": row["port"], "type": "static" }), "{key}");
    }
}
