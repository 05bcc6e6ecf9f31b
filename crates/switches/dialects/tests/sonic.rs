//! Tables for SONiC: their shapes, always; and by SONiC's own YANG models with libyang's `yanglint`, where both are there.
//!
//! `SONIC_YANG_MODELS=FOLDER` names a folder with the `.yang` files of sonic-buildimage's `src/sonic-yang-models` (those in
//! `yang-templates` rendered); `YANGLINT=PROGRAM` the program, if it is not on the path.

mod common;

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use common::{PlanSpec, named_topology, plan, render_all};
use dialects::{Target, TextFile, read_back};
use fabric::{EngineName, FdbMode, FlowControl, Mac, Tagging, VlanId};
use serde_json::{Map, Value, json};
use switch_model::SwitchConfig;

/// The maps: their module, and what they lead from and to.
const MAPS: [(&str, &str, &str, &str); 4] = [
    ("DOT1P_TO_TC_MAP", "sonic-dot1p-tc-map", "dot1p", "tc"),
    ("TC_TO_QUEUE_MAP", "sonic-tc-queue-map", "tc", "qindex"),
    ("TC_TO_PRIORITY_GROUP_MAP", "sonic-tc-priority-group-map", "tc", "pg"),
    ("MAP_PFC_PRIORITY_TO_QUEUE", "sonic-pfc-priority-queue-map", "pfc_priority", "qindex"),
];

/// A switch's files: CONFIG_DB's tables, and what `swssconfig` is given.
struct Rendered {
    label: String,
    database: Map<String, Value>,
    operations: Vec<Value>,
}

/// The full configuration of every switch of a torus, with and without lanes.
fn rendered() -> Vec<Rendered> {
    let mut all = Vec::new();
    for flow_control in [FlowControl::None, FlowControl::Pfc(2)] {
        let topology = named_topology(Target::Sonic, "torus 3x3", 1);
        let spec =
            PlanSpec { engine: EngineName::Balanced, tagging: Tagging::Source, fdb: FdbMode::Minimal, flow_control };
        let plan = plan(&topology, spec).expect("a torus can be planned");
        let texts = render_all(&plan, Target::Sonic);
        let json = |name: &str| -> Value { serde_json::from_slice(&texts.files[name]).expect("JSON") };
        for name in texts.files.keys().filter_map(|name| name.strip_suffix(".fdb-set.swssconfig")) {
            all.push(Rendered {
                label: format!("{flow_control:?} {name}"),
                database: json(&format!("{name}.json")).as_object().expect("tables").clone(),
                operations: json(&format!("{name}.fdb-set.swssconfig")).as_array().expect("a list").clone(),
            });
        }
    }
    assert_eq!(all.len(), 18);
    all
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
    for Rendered { label, database, .. } in rendered() {
        let mut rows = 0;
        for (table, key, row) in rows_of(&database) {
            assert_eq!(is_wrong(&database, table, key, row), None, "{label}: {table}|{key}: {row}");
            rows += 1;
        }
        assert!(rows > 20, "{label}: {rows} rows");
        for spoilt in ["VLAN", "VLAN_MEMBER"] {
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
    for Rendered { label, database, .. } in rendered() {
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

/// What `swssconfig` wants of an operation (`swssconfig.cpp` of sonic-swss): one row and what is done with it; and of a row of
/// FDB_TABLE (`fdborch.cpp`): a VLAN's name, an address with hyphens, a port that is a member, and the type.
#[test]
fn static_addresses_are_operations_for_swssconfig() {
    for Rendered { label, database, operations } in rendered() {
        assert!(!database.contains_key("FDB"), "{label}: no model has that table");
        assert!(operations.len() > 4, "{label}");
        let mut seen = BTreeSet::new();
        for operation in &operations {
            let fields = operation.as_object().expect("an object");
            let (key, row) = fields.iter().find(|(key, _)| *key != "OP").expect("a row");
            assert_eq!((fields.len(), &operation["OP"]), (2, &json!("SET")), "{label}: {operation}");
            let mut words = key.split(':');
            let (Some("FDB_TABLE"), Some(vlan), Some(mac), None) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                panic!("{label}: {key}");
            };
            assert!(mac.replace('-', ":").parse::<Mac>().is_ok() && !mac.contains(':'), "{label}: {key}");
            let member = format!("{vlan}|{}", row["port"].as_str().expect("a port"));
            assert!(database["VLAN_MEMBER"].get(&member).is_some(), "{label}: {member}");
            assert_eq!(*row, json!({ "port": row["port"], "type": "static" }), "{label}");
            assert!(seen.insert(key), "{label}: {key} twice");
        }
    }
}

fn read(config: &SwitchConfig, files: &[(&str, &str)]) -> Result<SwitchConfig, String> {
    let files: Vec<TextFile<'_>> = files.iter().map(|(name, text)| TextFile { name, text }).collect();
    read_back(Target::Sonic, &files, config.clone()).map_err(|errors| errors[0].to_string())
}

/// Both ways in which static addresses are told are read: rows of CONFIG_DB, and operations; each in its turn, whatever the files
/// are called.
#[test]
fn addresses_are_read_from_both_files() {
    let blank = Target::Sonic.factory(vec!["Ethernet0".to_owned()]);
    let tables = "{\"VLAN\": {\"Vlan2\": {\"vlanid\": \"2\"}},\n\"VLAN_MEMBER\": {\"Vlan2|Ethernet0\": {\"tagging_mode\": \"tagged\"}}}";
    let set =
        "[\n{\"FDB_TABLE:Vlan2:02-00-00-00-00-01\": {\"port\": \"Ethernet0\", \"type\": \"static\"}, \"OP\": \"SET\"}]";
    let del = "[\n{\"FDB_TABLE:Vlan2:02-00-00-00-00-01\": {}, \"OP\": \"DEL\"}]";
    let old = "{\"FDB\": {\"Vlan2|02:00:00:00:00:01\": {\"port\": \"Ethernet0\"}}}";
    let held = read(&blank, &[("a.json", set), ("b.json", tables)]).expect("understood");
    assert_eq!((held.entries.len(), held.ports[0].tagged.to_string()), (1, "2".to_owned()));
    assert_eq!(read(&blank, &[("a.json", tables), ("b.json", old)]), Ok(held.clone()));
    let gone = "[{\"op\": \"remove\", \"path\": \"/VLAN_MEMBER\"}, {\"op\": \"remove\", \"path\": \"/VLAN\"}]";
    assert_eq!(read(&held, &[("a.json", gone), ("b.json", del)]), Ok(blank.clone()));
    for (files, expect) in [
        (&[("a.json", set)][..], "a.json:2: table VLAN has no Vlan2"),
        (
            &[("a.json", tables), ("b.json", del)],
            "b.json:2: \"FDB_TABLE:Vlan2:02-00-00-00-00-01\": there is no such row",
        ),
        (
            &[("a.json", tables), ("b.json", &set.replace("static", "dynamic"))],
            "b.json:2: \"FDB_TABLE:Vlan2:02-00-00-00-00-01\": its type is not static, so it would age",
        ),
        (
            &[("a.json", tables), ("b.json", &set.replace("Ethernet0", "Ethernet9"))],
            "b.json:2: the switch has no port Ethernet9",
        ),
        (
            &[("a.json", tables), ("b.json", &set.replace("FDB_TABLE", "ROUTE_TABLE"))],
            "b.json:2: \"ROUTE_TABLE:Vlan2:02-00-00-00-00-01\": an operation is about one row of FDB_TABLE",
        ),
        (
            &[("a.json", tables), ("b.json", &set.replace("SET", "GET"))],
            "b.json:2: \"FDB_TABLE:Vlan2:02-00-00-00-00-01\": OP is neither SET nor DEL",
        ),
    ] {
        assert_eq!(read(&blank, files), Err(expect.to_owned()));
    }
}
