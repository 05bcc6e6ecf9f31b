//! What `check --rendered` says of folders that somebody has been at.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A folder of the test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(word: &str) -> Self {
        let path = std::env::temp_dir().join(format!("espalier-rendered-{}-{word}", std::process::id()));
        fs::create_dir(&path).expect("a fresh folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays behind: {error}", self.0.display());
        }
    }
}

/// Runs the program; exit code, and both outputs together.
fn espalier(folder: &Path, arguments: &str) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_espalier"));
    let output = command.args(arguments.split(' ')).current_dir(folder).output().expect("the program runs");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text")).concat();
    (output.status.code().expect("it ends by itself"), said)
}

/// A square of Linux bridges, planned and rendered.
fn rendered(word: &str) -> Folder {
    let folder = Folder::new(word);
    for arguments in [
        "generate torus 4 --hosts-per-switch 1 -o ring.yaml",
        "plan ring.yaml --engine dor -o plan.json",
        "render plan.json --target linux-bridge -o switches",
    ] {
        let (code, said) = espalier(&folder.0, arguments);
        assert_eq!(code, 0, "{arguments}: {said}");
    }
    folder
}

/// Changes the first occurrence of a text in a file.
fn change(folder: &Folder, file: &str, from: &str, to: &str) {
    let path = folder.0.join("switches").join(file);
    let text = fs::read_to_string(&path).expect("a rendered file");
    assert!(text.contains(from), "{file} has no {from:?}:\n{text}");
    fs::write(&path, text.replacen(from, to, 1)).expect("it can be changed");
}

#[test]
fn an_mtu_that_no_file_sets_is_told() {
    let folder = rendered("mtu");
    let (code, said) = espalier(&folder.0, "render plan.json --target linux-bridge -o switches");
    assert!(code == 0 && !said.contains("MTU"), "{said}");
    for arguments in ["plan ring.yaml --engine dor --mtu 9000 -o jumbo.json", "check jumbo.json"] {
        let (code, said) = espalier(&folder.0, arguments);
        assert_eq!(code, 0, "{arguments}: {said}");
    }
    let (code, said) = espalier(&folder.0, "render jumbo.json --target linux-bridge -o switches");
    assert!(code == 0 && said.contains("set 9000 bytes or more on every port with a cable"), "{said}");
}

/// What `check --rendered` says to write has the switch pass.
#[test]
fn a_switch_that_snoops_is_refused_with_the_way_out() {
    let folder = rendered("snooping");
    let (code, said) = espalier(&folder.0, "render plan.json --target cisco-sb -o switches");
    assert_eq!(code, 0, "{said}");
    let checked = || espalier(&folder.0, "check plan.json --rendered switches");
    assert_eq!(checked().0, 0, "{}", checked().1);
    change(&folder, "s2.cfg", "no ip igmp snooping\n", "ip igmp snooping\n");
    let (code, said) = checked();
    assert_eq!(code, 2, "{said}");
    let harm = "IPv4 multicasts reach only ports that asked for them; write \"no ip igmp snooping\"";
    assert!(said.contains(": turns IGMP snooping on: ") && said.contains(harm), "{said}");
    change(&folder, "s2.cfg", "ip igmp snooping\n", "");
    let (code, said) = checked();
    assert_eq!(code, 2, "{said}");
    let from_the_factory = "nothing turns IGMP snooping off, which may be on from the factory: ";
    assert!(said.contains(&format!("{from_the_factory}{harm}")), "{said}");
    change(&folder, "s2.cfg", "no spanning-tree\n", "no ip igmp snooping\nno spanning-tree\n");
    assert_eq!(checked().0, 0, "{}", checked().1);
}

#[test]
fn what_was_changed_is_named() {
    // File, what is changed into what, exit code, and what must be said of it.
    let table = [
        ("s2.sh", "vid 3 pvid", "vid 2 pvid", 1, "fatal[plan-mismatch] s2:p3: has PVID 2"),
        ("s2.sh", "vlan add dev p2 vid 3\n", "", 2, "switches/s2.sh:27: port p2 is not in VLAN 3"),
        ("s2.sh", "replace 02:00:00:00:00:01", "replace 02:00:00:00:00:09", 1, "fatal[flood]"),
        ("s2.sh", "00:03 dev p3 master static vlan 2", "00:03 dev p1 master static vlan 2", 1, "fatal["),
        ("s1.sh", "vlan add dev p1 ", "vlan add dev p11 ", 2, "switches/s1.sh:23: the switch has no port p11"),
        ("s1.sh", "stp_state 0", "stp_state 1", 1, "fatal[plan-mismatch] s1: spanning tree stays on"),
        ("s0.sh", "ethtool -A p1 rx on tx on", "ethtool -A p1 rx off tx off", 1, "fatal[flow-control-mismatch]"),
        ("s0.sh", "link set dev p1 up\n", "", 1, "fatal["),
    ];
    for (number, (file, from, to, expected, said)) in table.into_iter().enumerate() {
        let folder = rendered(&format!("changed{number}"));
        assert_eq!(espalier(&folder.0, "check plan.json --rendered switches").0, 0);
        change(&folder, file, from, to);
        let (code, output) = espalier(&folder.0, "check plan.json --rendered switches");
        assert_eq!(code, expected, "{from:?} ▶ {to:?}: {output}");
        assert!(output.contains(said), "{from:?} ▶ {to:?} says nothing of {said:?}: {output}");
    }
}

#[test]
fn a_folder_of_another_plan_is_no_proof_of_this_one() {
    let folder = rendered("other");
    assert_eq!(espalier(&folder.0, "plan ring.yaml --engine tree -o plan.json").0, 0);
    let (code, output) = espalier(&folder.0, "check plan.json --rendered switches");
    assert_eq!(code, 1, "{output}");
    assert!(output.contains("switches: was rendered from another plan"), "{output}");
}

#[test]
fn rendering_again_leaves_nothing_of_before() {
    let folder = rendered("again");
    assert_eq!(espalier(&folder.0, "render plan.json --target networkd -o switches").0, 0);
    let mut left: Vec<String> = fs::read_dir(folder.0.join("switches"))
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    left.sort();
    assert_eq!(left, ["rendered.json", "s0", "s1", "s2", "s3"]);
    assert_eq!(espalier(&folder.0, "check plan.json --rendered switches").0, 0);
}
