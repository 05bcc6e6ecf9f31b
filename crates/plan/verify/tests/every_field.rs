//! Every field of every intent is damaged in every way that its type allows, and each damage is found.
//!
//! ```text
//!   plan ▶ file ▶ JSON of its devices ▶ one value changed ▶ read ▶ refused, or judged: there is a new finding
//! ```
//! The fields are walked in the JSON; what a file leaves out at its default is put in first (`explicit`), by patterns that
//! name every field, so that a new one does not compile until it is there. A value is replaced by each one that stands
//! under the same key anywhere, and by its neighbours: a set with one VLAN less or more, a number one higher or lower, the
//! other words of its kind. Lists lose, repeat and turn round their elements, and objects lose their fields and get others.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Wish, clos, plan, ring, topology};
use fabric::{
    Admin, DeviceIntent, FdbMode, Finding, Flood, FlowControl, IngressFilter, Learning, Lldp, Plan, PortIntent,
    SpanningTree, StormLimit, Tagging,
    format::plan::{ReadMode, read_plan, write_plan},
};
use serde_json::{Value, json};
use verify::check;

/// A damage that no finding has to name, and why.
struct Exemption {
    why: &'static str,
    covers: fn(&Damage<'_>) -> bool,
}

const EXEMPTIONS: &[Exemption] = &[
    Exemption {
        why: "no frame enters a port that is down, whatever it filters",
        covers: |damage| {
            damage.key() == "ingress_filter" && damage.port(|port| port.admin == Admin::Down && port.tagged.is_empty())
        },
    },
    Exemption {
        why: "with entries for every host everywhere, some are met by no frame of the plan, and may point anywhere",
        covers: |damage| damage.plan.policy.fdb == FdbMode::Full && damage.path.iter().any(|step| step == "fdb"),
    },
];

/// One changed value: where, and in which plan.
struct Damage<'a> {
    plan: &'a Plan,
    path: Vec<String>,
    to: String,
}

impl Damage<'_> {
    /// The name of the innermost field.
    fn key(&self) -> &str {
        self.path.iter().rev().find(|step| step.parse::<usize>().is_err()).map_or("", String::as_str)
    }

    fn port(&self, is: impl Fn(&PortIntent) -> bool) -> bool {
        let [device, field, port, ..] = &self.path[..] else { return false };
        let index = |step: &str| step.parse::<usize>().expect("an index");
        field == "ports" && is(&self.plan.devices[index(device)].ports[index(port)])
    }
}

/// A file's device with every field in it.
fn explicit(device: &DeviceIntent, mut value: Value) -> Value {
    let DeviceIntent { switch: _, ports, fdb: _, foreign: _, learning, classes: _, spanning_tree, lldp } = device;
    value["learning"] = json!(if *learning == Learning::On { "on" } else { "off" });
    value["spanning_tree"] = json!(if *spanning_tree == SpanningTree::On { "on" } else { "off" });
    value["lldp"] = json!(if *lldp == Lldp::On { "on" } else { "off" });
    for list in ["foreign", "classes"] {
        if value.get(list).is_none() {
            value[list] = json!([]);
        }
    }
    for (at, port) in ports.iter().enumerate() {
        let PortIntent {
            port: _,
            role: _,
            admin: _,
            pvid: _,
            tagged: _,
            untagged: _,
            flow_control: _,
            mtu_bytes,
            ingress_filter,
            blocked,
            untagged_class,
            storm_limit: _,
            lag: _,
        } = port;
        let value = &mut value["ports"][at];
        value["mtu_bytes"] = json!(mtu_bytes);
        value["ingress_filter"] = json!(if *ingress_filter == IngressFilter::On { "on" } else { "off" });
        value["blocked"] = json!(blocked.to_string());
        value["untagged_class"] = json!(untagged_class);
        for set in ["tagged", "untagged"] {
            if value.get(set).is_none() {
                value[set] = json!("");
            }
        }
    }
    value
}

fn file(plan: &Plan) -> Value {
    let mut text = Vec::new();
    write_plan(plan, &mut text).expect("a plan that can be written");
    serde_json::from_slice(&text).expect("JSON")
}

/// The plan of a file with these devices; none if it is refused.
fn read(file: &Value, devices: &Value) -> Option<Plan> {
    let mut file = file.clone();
    file["devices"] = devices.clone();
    read_plan(&serde_json::to_vec(&file).expect("JSON"), ReadMode::IgnoreDigest).ok()
}

/// Every value that stands under a key, by key.
fn collect(value: &Value, key: &str, pool: &mut BTreeMap<String, BTreeSet<String>>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, key, pool)),
        Value::Object(fields) => {
            for (name, field) in fields {
                pool.entry(names_of(key)).or_default().insert(name.clone());
                collect(field, name, pool);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            pool.entry(key.to_owned()).or_default().insert(value.to_string());
        }
    }
}

/// Where the pool has the names of fields of the objects under a key.
fn names_of(key: &str) -> String {
    format!("names of {key}")
}

/// What a value could be instead, by its type.
fn neighbours(value: &Value) -> Vec<Value> {
    match value {
        Value::Number(number) => {
            let number = number.as_u64().expect("intents hold whole numbers");
            vec![json!(number + 1), json!(number.saturating_sub(1)), json!(0), json!(u16::MAX)]
        }
        Value::String(text) => {
            const WORDS: [&[&str]; 5] = [
                &["on", "off"],
                &["up", "down"],
                &["off", "pause", "pfc=1", "pfc=2", "pfc=8"],
                &["unused", "controller", "host 0", "link 0"],
                &["none", "unknown-unicast", "multicast", "broadcast", "unknown-unicast,multicast,broadcast"],
            ];
            let kind = WORDS.iter().filter(|words| words.contains(&text.as_str()));
            let mut others: Vec<Value> = kind.flat_map(|words| words.iter().map(|word| json!(word))).collect();
            if text.chars().all(|sign| sign.is_ascii_digit() || "-,".contains(sign)) {
                let comma = if text.is_empty() { "" } else { "," };
                let added = ["2", "3", "4", "5", "4094"].map(|vlan| json!(format!("{text}{comma}{vlan}")));
                others.extend(added);
                // Without its first and without its last run.
                let runs: Vec<&str> = text.split(',').collect();
                others.extend([json!(runs[1..].join(",")), json!(runs[..runs.len() - 1].join(","))]);
                // Without the first member of its first run.
                if let Some((first, rest)) = text.split_once('-') {
                    others.extend(first.parse::<u32>().map(|first| json!(format!("{}-{rest}", first + 1))));
                }
            }
            others
        }
        Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_) => Vec::new(),
    }
}

/// Calls `damage` with every version of `root` in which one value below `path` is another; `at` is the value there.
fn damage_all(
    at: &Value,
    key: &str,
    path: &mut Vec<String>,
    pool: &BTreeMap<String, BTreeSet<String>>,
    damage: &mut impl FnMut(&[String], Option<Value>),
) {
    match at {
        Value::Array(items) => {
            for index in 0..items.len() {
                path.push(index.to_string());
                damage_all(&items[index], key, path, pool, damage);
                path.pop();
                let mut fewer = items.clone();
                fewer.remove(index);
                damage(path, Some(Value::Array(fewer)));
                let mut more = items.clone();
                more.insert(index, items[index].clone());
                damage(path, Some(Value::Array(more)));
            }
            if items.len() > 1 {
                damage(path, Some(items.iter().rev().cloned().collect()));
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                path.push(key.clone());
                damage(path, None);
                damage_all(field, key, path, pool, damage);
                path.pop();
            }
            // One that has another's name, as an entry that points to another port.
            for name in fields.keys() {
                for other in pool.get(&names_of(key)).into_iter().flatten().filter(|other| !fields.contains_key(*other))
                {
                    let mut renamed = fields.clone();
                    let field = renamed.remove(name).expect("it is there");
                    renamed.insert(other.clone(), field);
                    damage(path, Some(Value::Object(renamed)));
                }
            }
            // A field that only others of its kind have, as a PVID.
            let absent =
                ["pvid", "storm_limit"].into_iter().filter(|name| key == "ports" && !fields.contains_key(*name));
            for name in absent {
                path.push(name.to_owned());
                for value in pool.get(name).into_iter().flatten() {
                    damage(path, Some(serde_json::from_str(value).expect("JSON")));
                }
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let seen = pool.get(key).into_iter().flatten();
            let seen = seen.map(|value| serde_json::from_str(value).expect("JSON"));
            let others: BTreeSet<String> =
                seen.chain(neighbours(at)).filter(|other| other != at).map(|other: Value| other.to_string()).collect();
            for other in others {
                damage(path, Some(serde_json::from_str(&other).expect("JSON")));
            }
        }
    }
}

/// Puts a value at a path, or takes the field away.
fn put(root: &mut Value, path: &[String], value: Option<Value>) {
    let (last, way) = path.split_last().expect("not the root");
    let mut at = root;
    for step in way {
        at = match at {
            Value::Array(items) => &mut items[step.parse::<usize>().expect("an index")],
            other => &mut other[step.as_str()],
        };
    }
    match (at, value) {
        (Value::Array(items), Some(value)) => items[last.parse::<usize>().expect("an index")] = value,
        (Value::Object(fields), Some(value)) => _ = fields.insert(last.clone(), value),
        (Value::Object(fields), None) => _ = fields.remove(last),
        (at, value) => unreachable!("{at} cannot take {value:?}"),
    }
}

/// The plans that are damaged, small but with every kind of field in use.
fn plans() -> Vec<(&'static str, Plan)> {
    let small = || topology(&[2, 1, 0], &[(0, 1), (1, 2), (2, 0)]);
    let lanes = Wish { flow_control: FlowControl::Pfc(5), ..Wish::switch_tagged() };
    vec![
        ("switch-tagged", plan(&clos(), Wish::switch_tagged())),
        ("by source", plan(&small(), Wish::tagged_by(Tagging::Source))),
        ("by pair", plan(&small(), Wish::tagged_by(Tagging::Pair))),
        ("classes", plan(&ring(), lanes)),
        ("every entry", plan(&small(), Wish { fdb: FdbMode::Full, ..Wish::switch_tagged() })),
        ("drop", plan(&small(), Wish { flood: Flood::Drop, ..Wish::switch_tagged() })),
        ("drop all", plan(&small(), Wish { flood: Flood::DropAll, ..Wish::tagged_by(Tagging::Pair) })),
        ("storm control", plan(&small(), Wish { storm_limit: StormLimit::new(5), ..Wish::switch_tagged() })),
        ("learning", plan(&topology(&[2, 0], &[(0, 1)]), Wish { fdb: FdbMode::Learned, ..Wish::switch_tagged() })),
    ]
}

#[test]
fn every_damage_to_every_field_is_found() {
    let mut pool = BTreeMap::new();
    for (_, plan) in &plans() {
        for (device, value) in plan.devices.iter().zip(file(plan)["devices"].as_array().expect("devices")) {
            collect(&explicit(device, value.clone()), "", &mut pool);
        }
    }
    let (mut damages, mut refused, mut missed) = (0, 0, Vec::new());
    let mut fields: BTreeSet<String> = BTreeSet::new();
    let mut needed = vec![0_usize; EXEMPTIONS.len()];
    for (name, plan) in &plans() {
        let (file, sound) = (file(plan), check(plan));
        let written = file["devices"].as_array().expect("devices");
        let devices: Value =
            plan.devices.iter().zip(written).map(|(device, value)| explicit(device, value.clone())).collect();
        assert_eq!(read(&file, &devices).as_ref(), Some(plan), "{name}: what is put in is what was left out");
        damage_all(&devices, "", &mut Vec::new(), &pool, &mut |path, value| {
            if path.is_empty() {
                return;
            }
            let to = value.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
            let damage = Damage { plan, path: path.to_vec(), to };
            let mut damaged = devices.clone();
            put(&mut damaged, path, value);
            damages += 1;
            fields.insert(damage.key().to_owned());
            let Some(read) = read(&file, &damaged) else {
                refused += 1;
                return;
            };
            let is_new = |finding: &Finding| !sound.findings().contains(finding);
            if read == *plan || check(&read).findings().iter().any(is_new) {
                return;
            }
            match EXEMPTIONS.iter().position(|exemption| (exemption.covers)(&damage)) {
                Some(at) => needed[at] += 1,
                None => missed.push(format!("{name}: {} ▶ {}", damage.path.join("."), damage.to)),
            }
        });
    }
    eprintln!("{damages} damages, {refused} refused by the reader, exempt {needed:?}; fields: {fields:?}");
    assert!(missed.is_empty(), "{} of {damages} are not found:\n{}", missed.len(), missed.join("\n"));
    assert!(damages > 9_000, "{damages}");
    for (exemption, count) in EXEMPTIONS.iter().zip(needed) {
        assert!(count > 0, "an exemption that nothing needs: {}", exemption.why);
    }
}
