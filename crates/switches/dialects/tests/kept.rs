//! Differences of files: what a running bridge is told and what the files say from then on are the same, are the new plan,
//! and no more than what changes.

mod common;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use common::{PlanSpec, lag_topology, named_topology, plan};
use dialects::{Difference, Memory, RenderRequest, Target, TargetChoice, TextFile, read_back};
use fabric::{EngineName, FdbMode, FlowControl, Plan, Tagging, Topology};
use switch_model::{Phase, PortConfig, SwitchConfig, align};

const KEEPERS: [Target; 2] = [Target::Networkd, Target::Ifupdown2];

/// Files by name, without folders.
type Files = BTreeMap<String, String>;

fn plans(target: Target, shape: &str) -> (Plan, Plan) {
    let topology = named_topology(target, shape, 1);
    (made(&topology, EngineName::Tree), made(&topology, EngineName::Balanced))
}

/// Between these plans a LAG of `s0` gets another member, one goes, and one comes.
fn lag_plans(target: Target) -> (Plan, Plan) {
    let topologies = (lag_topology(target, [1, 2], "lag2", [5, 6]), lag_topology(target, [2, 5], "lag3", [6, 7]));
    (made(&topologies.0, EngineName::Tree), made(&topologies.1, EngineName::Balanced))
}

fn made(topology: &Topology, engine: EngineName) -> Plan {
    let flow_control = if engine == EngineName::Tree { FlowControl::None } else { FlowControl::Pause };
    let spec = PlanSpec { engine, tagging: Tagging::Switch, fdb: FdbMode::Minimal, flow_control };
    plan(topology, spec).expect("a plan")
}

/// The files of one switch: in full, or phase by phase.
fn rendered(plan: &Plan, target: Target, switch: &str, since: Option<&Plan>) -> Vec<(Option<Phase>, Files)> {
    let mut memory = Memory::default();
    let request = RenderRequest {
        plan,
        digest: "new",
        target: TargetChoice::Named(target),
        switch: Some(switch),
        since: since.map(|plan| Difference { plan, digest: "old" }),
    };
    let parts = dialects::render(&request, &mut memory).expect("it can be said");
    let text = |file: &String| String::from_utf8(memory.files[file].clone()).expect("text");
    let own = |file: &String| (file.rsplit('/').next().expect("a name").to_owned(), text(file));
    parts.iter().map(|part| (part.phase, part.files.iter().map(own).collect())).collect()
}

fn read(target: Target, files: &Files, start: SwitchConfig) -> Result<SwitchConfig, String> {
    let texts: Vec<TextFile<'_>> = files.iter().map(|(name, text)| TextFile { name, text }).collect();
    read_back(target, &texts, start)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// What a file says, without the head that names the plan.
fn body(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
}

fn state(plan: &Plan, switch: &str) -> SwitchConfig {
    let switch = plan.topology.find_switch(switch).expect("a switch of the plan");
    // LLDP is another program's matter here.
    SwitchConfig { lldp: None, ..SwitchConfig::of_intent(&plan.topology, &plan.devices[switch.index()]) }
}

fn names(plan: &Plan, switch: &str) -> Vec<String> {
    state(plan, switch).ports.into_iter().map(|port| port.name).collect()
}

/// The old plan's state of a switch with the ports of both plans, those that only the old one knows last.
fn with_ports_of_both(old: &Plan, new: &Plan, switch: &str) -> SwitchConfig {
    let (before, after) = (state(old, switch), state(new, switch));
    let gone = before.ports.iter().filter(|port| after.slot(&port.name).is_none());
    let names: Vec<String> = after.ports.iter().chain(gone).map(|port| port.name.clone()).collect();
    align(&before, &names)
}

/// Runs a script where commands only say what they were told and files go into a folder, and returns what was said.
fn run(folder: &Path, files: &Files, fails: &str) -> (bool, String) {
    let (bin, part) = (folder.join("bin"), folder.join("part"));
    let _ = fs::remove_dir_all(&part);
    fs::create_dir_all(&bin).and_then(|()| fs::create_dir_all(&part)).expect("folders");
    for (name, text) in files {
        fs::write(part.join(name), text).expect("a file");
    }
    let root = folder.display();
    for name in ["ip", "bridge", "ethtool", "networkctl", "systemctl", "ifreload", "install", "rm", "grep"] {
        let does = match name {
            // The last word is the place.
            "install" => format!(
                "shift 2\nfor place; do :; done\nmkdir -p {root}/root$place\nwhile [ $# -gt 1 ]; do cp \"$1\" {root}/root$place; shift; done\n"
            ),
            "rm" => format!("shift\nfor file; do /bin/rm {root}/root$file; done\n"),
            "grep" => "exit 1\n".to_owned(),
            "ip" | "bridge" => "[ \"$2\" != - ] || cat\n".to_owned(),
            _ => String::new(),
        };
        let fault = if name == fails { "exit 1\n" } else { "" };
        let path = bin.join(name);
        fs::write(&path, format!("#!/bin/sh\necho \"{name} $*\" >>{root}/said\n{fault}{does}")).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    }
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let done = Command::new("/bin/sh").arg(part.join("change.sh")).env("PATH", path).output().expect("a shell");
    let said = fs::read_to_string(folder.join("said")).unwrap_or_default();
    (done.status.success(), said + &String::from_utf8_lossy(&done.stderr))
}

fn folder(word: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("espalier-kept-{}-{word}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Files in place by the path that the script gives them.
fn tree(folder: &Path) -> Files {
    let mut files = Files::new();
    let mut due = vec![folder.to_owned()];
    while let Some(next) = due.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                due.push(path);
            } else {
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                assert_eq!(files.insert(name, body(&fs::read_to_string(&path).expect("a file"))), None, "one place");
            }
        }
    }
    files
}

#[test]
fn a_shell_puts_the_new_plans_files_where_the_old_ones_were_and_no_others() {
    let cases =
        KEEPERS.iter().flat_map(|target| [(*target, plans(*target, "torus 3x3")), (*target, lag_plans(*target))]);
    for (target, (old, new)) in cases {
        for switch in new.topology.switches().iter().step_by(4).map(|switch| switch.name.as_str()) {
            let folder = folder(&format!("{target}-{switch}"));
            let whole = |plan: &Plan| rendered(plan, target, switch, None).remove(0).1;
            // The switch runs the old plan.
            let place = |name: &str| match (target, name) {
                (_, "espalier-fdb.service") => "root/etc/systemd/system",
                (Target::Networkd, _) => "root/etc/systemd/network",
                (_, "espalier.intf") => "root/etc/network/interfaces.d",
                _ => "root/etc/network",
            };
            for (name, text) in whole(&old) {
                fs::create_dir_all(folder.join(place(&name))).expect("a folder");
                fs::write(folder.join(place(&name)).join(name), text).expect("a file");
            }
            let mut config = with_ports_of_both(&old, &new, switch);
            for (phase, files) in rendered(&new, target, switch, Some(&old)) {
                let before = tree(&folder.join("root"));
                for (name, text) in files.iter().filter(|(name, _)| *name != "change.sh") {
                    assert_ne!(before.get(name), Some(&body(text)), "{target} {phase:?}: {name} is as it was");
                }
                let (fine, said) = run(&folder, &files, "");
                assert!(fine, "{target} {phase:?}: {said}");
                config = read(target, &files, config).unwrap_or_else(|error| panic!("{target} {phase:?}: {error}"));
                // What would count after a restart now is what runs now.
                let names = config.ports.iter().map(|port| port.name.clone()).collect();
                let booted = read(target, &tree(&folder.join("root")), target.factory(names));
                assert_eq!(booted.as_ref(), Ok(&config), "{target} {phase:?}");
            }
            let (config, wanted) = (align(&config, &names(&new, switch)), state(&new, switch));
            assert_eq!(config, wanted, "{target}");
            let wanted: Files = whole(&new).into_iter().map(|(name, text)| (name, body(&text))).collect();
            assert_eq!(tree(&folder.join("root")), wanted, "{target}");
            fs::remove_dir_all(&folder).expect("gone");
        }
    }
}

#[test]
fn files_stay_as_they_were_if_the_bridge_refuses() {
    for target in KEEPERS {
        let (old, new) = plans(target, "torus 4");
        let folder = folder(&format!("{target}-refused"));
        let (_, files) = rendered(&new, target, "s1", Some(&old)).remove(0);
        let (fine, said) = run(&folder, &files, "bridge");
        assert!(!fine && !said.contains("install"), "{target}: {said}");
        assert!(tree(&folder.join("root")).is_empty(), "{target}");
        fs::remove_dir_all(&folder).expect("gone");
    }
}

#[test]
fn ports_that_the_new_plan_does_not_know_lose_their_files() {
    for target in KEEPERS {
        let (old, new) = (plans(target, "mesh 3"), plans(target, "mesh 2"));
        let parts = rendered(&new.1, target, "s1", Some(&old.1));
        let (phase, files) = parts.last().expect("something changes");
        assert_eq!(*phase, Some(Phase::Free));
        let script = &files["change.sh"];
        match target {
            Target::Networkd => assert!(script.contains("rm -f /etc/systemd/network/20-"), "{script}"),
            _ => assert!(files.contains_key("espalier.intf"), "{script}"),
        }
        let after = state(&new.1, "s1");
        let mut config = with_ports_of_both(&old.1, &new.1, "s1");
        assert!(config.ports.len() > after.ports.len(), "a port goes");
        for PortConfig { name: port, .. } in &config.ports[after.ports.len()..] {
            assert!(script.contains(&format!("vlan del dev {port} ")), "{script}");
            // networkd puts a port back into the bridge, VLANs and all, that leaves it before its file is forgotten.
            assert!(!script.contains("nomaster"), "{script}");
        }
        for (phase, files) in &parts {
            config = read(target, files, config).unwrap_or_else(|error| panic!("{target} {phase:?}: {error}"));
        }
        assert_eq!(align(&config, &names(&new.1, "s1")), after, "{target}");
    }
}

/// Takes lines out and puts words in, everywhere: it is refused, or changes nothing that the files and the bridge do not say
/// alike.
#[test]
fn whatever_is_tampered_with_in_a_difference_is_found() {
    let cases = KEEPERS
        .iter()
        .flat_map(|target| [(*target, "s1", plans(*target, "torus 4")), (*target, "s0", lag_plans(*target))]);
    for (target, switch, (old, new)) in cases {
        let (mut refused, mut harmless) = (0, 0);
        let mut config = with_ports_of_both(&old, &new, switch);
        for (phase, files) in rendered(&new, target, switch, Some(&old)) {
            let honest = read(target, &files, config.clone()).expect("honest");
            for (name, text) in &files {
                let lines: Vec<&str> = text.lines().collect();
                for at in (0..lines.len()).filter(|at| !lines[*at].starts_with('#')) {
                    let other = |line: &str| {
                        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
                        let digit = words.iter_mut().rev().find(|word| word.ends_with(|c: char| c.is_ascii_digit()))?;
                        let last = digit.pop().expect("a digit");
                        digit.push(if last == '1' { '2' } else { '1' });
                        Some(words.join(" "))
                    };
                    for line in [Some(String::new()), other(lines[at])].into_iter().flatten() {
                        let mut changed = lines.clone();
                        changed[at] = &line;
                        let mut files = files.clone();
                        files.insert(name.clone(), changed.join("\n") + "\n");
                        match read(target, &files, config.clone()) {
                            Err(_) => refused += 1,
                            Ok(read) => {
                                assert_eq!(
                                    read,
                                    honest,
                                    "{target} {phase:?} {name}:{}: {:?} ▶ {line:?}",
                                    at + 1,
                                    lines[at]
                                );
                                harmless += 1;
                            }
                        }
                    }
                }
            }
            config = honest;
        }
        // What is left are descriptions, and settings that no state has.
        assert!(refused > 2 * harmless, "{target}: {refused} refused, {harmless} harmless");
    }
}
