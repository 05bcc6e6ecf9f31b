//! NetBox, both ways: what its REST API answers is read, and what is written for its bulk import comes back by its REST API.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use fabric::{
    LagNumber, Mac, Topology, TopologyBuilder,
    format::{
        exchange::{Format, ImportOptions, Imported, import},
        native::write_native,
        netbox::write_netbox,
    },
    generate::{Kind, Options, generate},
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn sample_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn sample() -> String {
    fs::read_to_string(sample_path("netbox.json")).expect("testdata/netbox.json")
}

fn read(files: &[(&str, &str)], options: &ImportOptions) -> Imported {
    import(Format::NetBox, files, options).unwrap_or_else(|wrong| panic!("{wrong}"))
}

#[test]
fn a_site_is_read() {
    let Imported { topology, warnings } = read(&[("netbox.json", &sample())], &ImportOptions::default());
    let text = format!("{}{warnings}", write_native(&topology));
    let path = sample_path("netbox.json.golden");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &text).expect("the file can be written");
    }
    let golden = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(text, golden, "testdata/netbox.json.golden differs; BLESS=1 writes it anew");
}

#[test]
fn pages_and_lists_in_several_files_are_one_site() {
    let whole: Value = serde_json::from_str(&sample()).expect("JSON");
    let expected = read(&[("netbox.json", &sample())], &ImportOptions::default()).topology;
    let interfaces = whole["interfaces"]["results"].as_array().expect("a list");
    let (count, half) = (interfaces.len(), interfaces.len() / 2);
    let page = |part: &[Value]| json!({"count": count, "next": null, "previous": null, "results": part}).to_string();
    // The first page again, as when pages are saved while the site grows.
    let (first, again, second) = (page(&interfaces[..half]), page(&interfaces[..half + 1]), page(&interfaces[half..]));
    let devices = whole["devices"]["results"].to_string();
    let rest = json!({"mac_addresses": whole["mac-addresses"], "ip_addresses": whole["ip-addresses"]}).to_string();
    let files =
        [("d.json", devices.as_str()), ("1.json", &first), ("2.json", &again), ("3.json", &second), ("r.json", &rest)];
    assert_eq!(read(&files, &ImportOptions::default()).topology, expected);
    let files = [("d.json", devices.as_str()), ("1.json", &first), ("r.json", &rest)];
    let wrong = import(Format::NetBox, &files, &ImportOptions::default()).expect_err("a page is missing").to_string();
    assert!(
        wrong.contains(&format!("1.json:1:1: error: these files have {half} of {count} objects of /dcim/interfaces/")),
        "{wrong}"
    );
}

#[test]
fn roles_say_which_devices_are_switches() {
    let options = ImportOptions { switch_roles: vec!["LEAF*".to_owned()], ..ImportOptions::default() };
    let Imported { topology, .. } = read(&[("f", &sample())], &options);
    let names: Vec<&str> = topology.switches().iter().map(|switch| switch.name.as_str()).collect();
    assert_eq!(names, ["leaf-1", "leaf-2"]);
    assert!(topology.find_host("spine1/1/1").is_some());
}

#[test]
fn mistakes_are_named_with_their_line() {
    let device = |id: u64, role: &str| json!({"id": id, "name": format!("d{id}"), "device_type": {"slug": "generic"}, "role": {"slug": role}});
    let interface = |id: u64, device: u64, far: Value| json!({"id": id, "device": {"id": device}, "name": format!("p{id}"), "type": {"value": "1000base-t"}, "connected_endpoints": far});
    let devices = json!([device(1, "switch"), device(2, "switch")]);
    let check = |text: String, expected: &str| {
        let wrong = import(Format::NetBox, &[("f", &text)], &ImportOptions::default()).expect_err(&text).to_string();
        assert!(wrong.contains(expected), "{text}\n{wrong}");
    };
    check("{".to_owned(), "f:1:1: error: not JSON");
    check("{\"detail\": \"Invalid token\"}".to_owned(), "error: this is a refusal of NetBox: Invalid token");
    check("{\"sites\": []}".to_owned(), "f:1:1: error: this is no page, no list and no object of lists of NetBox's");
    check("\n{\"devices\": 7}".to_owned(), "f:2:13: error: expected a list of objects, found a word");
    check("[{\"id\": 1}]".to_owned(), "f:1:2: error: what kind of object this is cannot be told");
    check("[{\"device_type\": {}}]".to_owned(), "f:1:2: error: this object has no id");
    check(json!({"devices": devices}).to_string(), "error: there are no interfaces in these files");
    check(
        json!({"devices": devices, "interfaces": [{"id": 1}]}).to_string(),
        "this interface has no name or no device",
    );
    let breakout = json!([{"id": 3, "device": {"id": 2}}, {"id": 4, "device": {"id": 2}}]);
    check(
        json!({"devices": devices, "interfaces": [interface(7, 1, breakout)]}).to_string(),
        "error: d1:p7 leads to 2 interfaces",
    );
    let mut wrong_mac = interface(7, 1, Value::Null);
    wrong_mac["mac_address"] = json!("02:00");
    check(
        json!({"devices": devices, "interfaces": [wrong_mac]}).to_string(),
        "error: 02:00 is not an Ethernet address",
    );
    for (field, value, bounds) in [
        ("espalier_weight", json!(256), "from 0 to 255 (found 256)"),
        ("espalier_addresses_max", json!(0), "from 1 to 4095 (found 0)"),
        ("espalier_rail", json!("left"), "from 0 to 255 (found left)"),
    ] {
        let mut wrong = interface(7, 1, Value::Null);
        wrong["custom_fields"] = json!({ field: value });
        let text = json!({"devices": devices, "interfaces": [wrong]}).to_string();
        check(text, &format!("error: {field} is a number {bounds}"));
    }
    // What is behind a patch panel is in the interfaces alone.
    let mut brief = interface(7, 1, Value::Null);
    brief.as_object_mut().expect("an object").remove("connected_endpoints");
    let ends = |kind: &str| json!([{"object_type": kind, "object_id": 7, "object": {"id": 7, "name": "front 1", "device": {"id": 9}}}]);
    let cable = json!({"id": 1, "a_terminations": ends("dcim.frontport"), "b_terminations": ends("dcim.interface")});
    check(
        json!({"devices": devices, "interfaces": [brief], "cables": [cable]}).to_string(),
        "error: the cable at d1:p7 ends at front 1, which is no interface",
    );
}

/// Interfaces that do not say where they lead are joined by the list of cables, of both forms that NetBox has had.
#[test]
fn cables_join_interfaces_that_do_not_say_where_they_lead() {
    let device = |id: u64, role: &str| json!({"id": id, "name": format!("d{id}"), "device_type": {"slug": "generic"}, "device_role": {"slug": role}});
    let interface = |id: u64, device: u64| json!({"id": id, "device": {"id": device}, "name": format!("p{id}"), "type": "10gbase-x-sfpp"});
    let object = |id: u64| json!({"id": id, "name": format!("p{id}")});
    let new = json!({"id": 1, "status": {"value": "connected"},
        "a_terminations": [{"object_type": "dcim.interface", "object_id": 1, "object": object(1)}],
        "b_terminations": [{"object_type": "dcim.interface", "object_id": 2, "object": object(2)}]});
    let old = json!({"id": 2, "status": {"value": "connected"}, "termination_a_type": "dcim.interface", "termination_a_id": 3,
        "termination_a": object(3), "termination_b_type": "dcim.interface", "termination_b_id": 4, "termination_b": object(4)});
    let site = json!({
        "devices": [device(1, "switch"), device(2, "switch"), device(3, "server")],
        "interfaces": [interface(1, 1), interface(2, 2), interface(3, 2), interface(4, 3)],
        "cables": [new, old],
    });
    let Imported { topology, .. } = read(&[("f", &site.to_string())], &ImportOptions::default());
    assert_eq!(topology.link_label(topology.link_ids().next().expect("a link")), "d1:p1 -- d2:p2");
    assert_eq!(topology.links()[0].rate_bps, 10_000_000_000);
    assert_eq!(
        (topology.hosts()[0].name.as_str(), topology.port_label(topology.hosts()[0].port)),
        ("d3", "d2:p3".to_owned())
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_for_netbox_comes_back(
        (kind, nics) in prop::sample::select(vec![("torus 3x3", 3), ("clos 4x2", 2), ("mesh 2x2", 1), ("tree fanout=2,depth=2", 1), ("hypercube 2", 4)]),
        hosts in 1_usize..4,
        rates in (prop::sample::select(vec![1_000_000_000, 25_000_000_000, 7_000_000]), prop::sample::select(vec![100_000_000, 2_500_000_000])),
        further in prop::collection::vec(0_usize..4, 0..5),
        shuffle in any::<Option<u64>>(),
        custom in prop::collection::vec(any::<u8>(), 0..6),
        groups in prop::collection::vec((prop::collection::btree_set(0_usize..4, 0..3), prop::collection::btree_set(0_usize..8, 0..4)), 0..4),
    ) {
        let (word, sizes) = kind.split_once(' ').expect("a kind and sizes");
        let kind = Kind::parse(word, &[sizes.to_owned()]).expect("a known kind");
        let nics = (nics > 1).then_some(nics);
        let options = Options { hosts_per_switch: Some(hosts), nics, rate_bps: rates.0, host_rate_bps: Some(rates.1), shuffle, ..Options::default() };
        let plain = generate(&kind, &options).expect("a sane size");
        let hosts_in_all = plain.hosts().len();
        let mut builder = TopologyBuilder::of(&plain);
        for (number, host) in further.iter().enumerate() {
            builder.add_mac(fabric::HostId::new(*host % hosts_in_all), Mac::new([0x52, 0x54, 0, 0, 0, number as u8])).expect("a fresh address");
        }
        // Ports of one machine with one address are a failover bond, of which the first is the active one.
        let [a, b] = ["nas1", "nas2"].map(|name| builder.add_port(fabric::SwitchId::new(0), name).expect("a fresh port"));
        builder.add_host("nas/eno1", Mac::new([6, 0, 0, 0, 0, 1]), a, rates.1, None).expect("a fresh host");
        builder.join_machine("nas").expect("the first");
        builder.add_standby("nas/eno2", b, rates.1).expect("beside it");
        // A LAG between the first two switches, and one for a host.
        let mut lag = |switch: usize, members: &[&str]| {
            let switch = fabric::SwitchId::new(switch);
            let lag = builder.add_lag(switch, LagNumber::new(7)).expect("a free number");
            for name in members {
                let member = builder.add_port(switch, name).expect("a fresh port");
                builder.add_to_lag(lag, member).expect("a free port");
            }
            lag
        };
        let (x, y) = (lag(0, &["bundle1", "bundle2", "bundle3"]), lag(1, &["bundle1", "bundle2", "bundle3"]));
        let bonded = lag(0, &["bond1", "bond2"]);
        let bundle = builder.add_link(x, y, 3 * rates.0).expect("free ports");
        builder.add_host("bonded", Mac::new([6, 0, 0, 0, 0, 2]), bonded, 2 * rates.1, None).expect("a fresh host");
        // Addresses that are learned, rails and weights, also of the LAG.
        for (host, number) in (0..hosts_in_all).zip(custom) {
            let host = fabric::HostId::new(host);
            match number % 4 {
                0 => builder.set_rail(host, number),
                1 => builder.set_weight(host, number),
                2 => builder.set_learned(host, 1 + usize::from(number)).expect("no bond"),
                _ => {}
            }
        }
        let bonded = fabric::HostId::new(hosts_in_all + 2);
        builder.set_weight(bonded, 8);
        builder.set_learned(bonded, 5).expect("a LAG is one port");
        // Groups of switches and links, also of the LAG.
        for (number, (switches, links)) in groups.iter().enumerate() {
            let switches: Vec<_> = switches.iter().filter(|switch| **switch < plain.switches().len()).map(|switch| fabric::SwitchId::new(*switch)).collect();
            let links = links.iter().filter(|link| **link < plain.links().len()).map(|link| fabric::LinkId::new(*link));
            let links: Vec<_> = links.chain((number % 2 == 1).then_some(bundle)).collect();
            if !switches.is_empty() || !links.is_empty() {
                builder.add_group(&format!("card-{number}"), &switches, &links).expect("a fresh name");
            }
        }
        let topology = builder.finish().expect("as before");
        let answers = answers(&write_netbox(&topology, "Room 7"));
        let read = import(Format::NetBox, &[("f", &answers)], &ImportOptions::default())
            .map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
        prop_assert_eq!(cabling(&read.topology), cabling(&topology));
        prop_assert_eq!(named_groups(&read.topology), named_groups(&topology));
    }
}

/// What NetBox carries: switches with their models, links, and hosts with their machines, addresses, ports, rails, weights and bounds of
/// learned addresses.
fn cabling(topology: &Topology) -> (Vec<String>, Vec<String>, Vec<String>) {
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    let switches = topology.switches().iter().map(|switch| format!("{} {}", switch.name, switch.model.name)).collect();
    let links = topology.links().iter().map(|link| {
        let mut ends = [topology.port_label(link.a), topology.port_label(link.b)];
        ends.sort();
        format!("{} {} {}", ends[0], ends[1], link.rate_bps)
    });
    let hosts = topology.hosts().iter().map(|host| {
        let macs: Vec<String> = host.macs().map(|mac| mac.to_string()).collect();
        let (machine, port) = (&topology.machine(host.machine).name, topology.port_label(host.port));
        let custom = (host.rail, host.weight, host.learned_max);
        format!("{} {machine} {port} {} {} {custom:?}", host.name, macs.join(" "), host.rate_bps)
    });
    (sorted(switches), sorted(links.collect()), sorted(hosts.collect()))
}

/// The groups of a topology by name: switches and links by theirs.
fn named_groups(topology: &Topology) -> BTreeMap<String, BTreeSet<String>> {
    let members = |group: &fabric::Group| {
        let switches = group.switches.iter().map(|id| topology.switch(*id).name.clone());
        let links = group.links.iter().map(|id| {
            let link = topology.link(*id);
            let mut ends = [topology.port_label(link.a), topology.port_label(link.b)];
            ends.sort();
            ends.join(" -- ")
        });
        switches.chain(links).collect()
    };
    topology.groups().iter().map(|group| (group.name.clone(), members(group))).collect()
}

/// Groups are named at either end of a cable, or at one cable of a LAG.
#[test]
fn groups_are_read_from_either_end() {
    let device = |id: u64, groups: Value| {
        json!({"id": id, "name": format!("d{id}"), "device_type": {"slug": "generic"}, "role": {"slug": "switch"},
            "custom_fields": {"espalier_groups": groups}})
    };
    let interface = |id: u64, far: u64, lag: Option<&str>, groups: Value| {
        json!({"id": id, "device": {"id": 1 + (id - 1) % 2}, "name": format!("p{id}"), "type": {"value": "1000base-t"},
            "lag": lag.map(|name| json!({"name": name})), "connected_endpoints": [{"id": far}], "custom_fields": {"espalier_groups": groups}})
    };
    let site = |groups: Value| {
        json!({
            "devices": [device(1, json!("feed-a  feed-b feed-a")), device(2, Value::Null)],
            "interfaces": [
                interface(1, 2, None, json!("card-1")),
                interface(2, 1, None, json!("card-2 card-1")),
                interface(3, 4, Some("lag3"), Value::Null),
                interface(4, 3, Some("lag3"), Value::Null),
                interface(5, 6, Some("lag3"), groups),
                interface(6, 5, Some("lag3"), json!("")),
            ],
        })
        .to_string()
    };
    let topology = read(&[("f", &site(json!("card-3")))], &ImportOptions::default()).topology;
    let expected = [
        ("feed-a", "d1"),
        ("feed-b", "d1"),
        ("card-1", "d1:p1 -- d2:p2"),
        ("card-2", "d1:p1 -- d2:p2"),
        ("card-3", "d1:lag3 -- d2:lag3"),
    ];
    let expected = expected.map(|(group, member)| (group.to_owned(), BTreeSet::from([member.to_owned()])));
    assert_eq!(named_groups(&topology), BTreeMap::from(expected));
    let wrong = import(Format::NetBox, &[("f", &site(json!(["card-3"])))], &ImportOptions::default());
    let wrong = wrong.expect_err("a list").to_string();
    assert!(wrong.contains("error: espalier_groups is names of groups, separated by spaces (found a list)"), "{wrong}");
    let taken = import(Format::NetBox, &[("f", &site(json!("d2")))], &ImportOptions::default());
    assert!(taken.expect_err("a switch's name").to_string().contains("d2"));
}

/// A model of NetBox: loads the files as its import pages do, by names, and answers as its REST API does, by numbers.
fn answers(files: &[fabric::format::netbox::NetBoxFile]) -> String {
    let rows = |name: &str| -> Vec<BTreeMap<String, String>> {
        let file = files.iter().find(|file| file.name.ends_with(name)).unwrap_or_else(|| panic!("{name}"));
        let mut lines = file.text.lines();
        let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
        let row = |line: &str| {
            // Commas between quotes are none between fields.
            let outside = line.split('"').enumerate().map(|(at, part)| match at % 2 {
                0 => part.replace(',', "\t"),
                _ => part.to_owned(),
            });
            let line: String = outside.collect();
            let fields: Vec<&str> = line.split('\t').collect();
            assert_eq!(fields.len(), header.len(), "{line}");
            header.iter().map(|name| (*name).to_owned()).zip(fields.iter().map(|field| (*field).to_owned())).collect()
        };
        lines.map(row).collect()
    };
    let known = |name: &str| rows(name).iter().map(|row| row["name"].clone()).collect::<Vec<_>>();
    let (sites, makers, roles) = (known("sites.csv"), known("manufacturers.csv"), known("roles.csv"));
    let kinds = files.iter().find(|file| file.name.ends_with(".yaml")).expect("device types").text.clone();
    let mut device_ids = BTreeMap::new();
    let mut devices = Vec::new();
    for row in rows("devices.csv") {
        assert!(sites.contains(&row["site"]) && makers.contains(&row["manufacturer"]) && roles.contains(&row["role"]));
        assert!(kinds.contains(&format!("  model: \"{}\"\n", row["device_type"])), "{kinds}");
        let id = devices.len() + 1;
        assert_eq!(device_ids.insert(row["name"].clone(), id), None, "a name of two devices: {}", row["name"]);
        devices.push(json!({
            "id": id, "name": row["name"], "device_type": {"slug": row["device_type"]}, "role": {"name": row["role"]},
            "custom_fields": {"espalier_groups": row.get("cf_espalier_groups").filter(|groups| !groups.is_empty())},
        }));
    }
    let mut interface_ids = BTreeMap::new();
    let mut interfaces: Vec<Value> = Vec::new();
    let custom = files.iter().any(|file| file.name.ends_with("custom-fields.csv"));
    let custom = if custom { rows("custom-fields.csv") } else { Vec::new() };
    let known_columns: BTreeSet<String> = ["device", "name", "type", "speed", "lag"]
        .map(str::to_owned)
        .into_iter()
        .chain(custom.iter().map(|field| format!("cf_{}", field["name"])))
        .collect();
    for row in rows("interfaces.csv") {
        let id = interfaces.len() + 1;
        let device = device_ids[&row["device"]];
        assert_eq!(interface_ids.insert((row["device"].clone(), row["name"].clone()), id), None, "{row:?}");
        let lag = row.get("lag").filter(|lag| !lag.is_empty());
        if let Some(lag) = lag {
            assert!(interface_ids.contains_key(&(row["device"].clone(), lag.clone())), "no such LAG yet: {row:?}");
        }
        assert!(row.keys().all(|column| known_columns.contains(column)), "a field that nobody has made: {row:?}");
        let value = |field: &BTreeMap<String, String>| -> Value {
            if field["type"] == "text" {
                assert_eq!(field["object_types"], "dcim.device,dcim.interface");
                let text = &row[&format!("cf_{}", field["name"])];
                return if text.is_empty() { Value::Null } else { json!(text) };
            }
            let Ok(value) = row[&format!("cf_{}", field["name"])].parse::<u64>() else { return Value::Null };
            let bound = |name: &str| field[name].parse::<u64>().expect("a number");
            assert_eq!((field["type"].as_str(), field["object_types"].as_str()), ("integer", "dcim.interface"));
            assert!((bound("validation_minimum")..=bound("validation_maximum")).contains(&value), "{row:?}");
            json!(value)
        };
        let custom: serde_json::Map<String, Value> =
            custom.iter().map(|field| (field["name"].clone(), value(field))).collect();
        interfaces.push(json!({
            "custom_fields": custom, "lag": lag.map(|name| json!({"name": name})), "id": id, "device": {"id": device, "name": row["device"]}, "name": row["name"], "type": {"value": row["type"]},
            "speed": row["speed"].parse::<u64>().ok(), "connected_endpoints": null, "mac_addresses": [],
        }));
    }
    for row in rows("mac-addresses.csv") {
        let interface = &mut interfaces[interface_ids[&(row["device"].clone(), row["interface"].clone())] - 1];
        let address = json!({"mac_address": row["mac_address"]});
        if row["is_primary"] == "true" {
            interface["primary_mac_address"] = address.clone();
        }
        interface["mac_addresses"].as_array_mut().expect("a list").push(address);
    }
    for row in rows("cables.csv") {
        let side = |side: &str| {
            interface_ids[&(row[&format!("side_{side}_device")].clone(), row[&format!("side_{side}_name")].clone())]
        };
        for (near, far) in [(side("a"), side("b")), (side("b"), side("a"))] {
            let peer =
                json!([{"id": far, "device": interfaces[far - 1]["device"], "name": interfaces[far - 1]["name"]}]);
            assert!(interfaces[near - 1]["connected_endpoints"].is_null(), "two cables at one interface: {row:?}");
            interfaces[near - 1]["connected_endpoints"] = peer;
            interfaces[near - 1]["connected_endpoints_type"] = json!("dcim.interface");
            interfaces[near - 1]["connected_endpoints_reachable"] = json!(true);
        }
    }
    json!({"devices": devices, "interfaces": {"count": interfaces.len(), "results": interfaces}}).to_string()
}
