//! What `discover`, `observe` and `enrol` advise when they refuse, or doubt, is true: each advice is followed here, and work goes
//! on. Those of `deploy` are in `deployments.rs` and `ssh.rs`, those of `lab` in `lab.rs`.

mod closet;

use std::{
    fs,
    process::{Command, Stdio},
    sync::atomic::Ordering,
    thread,
    time::Duration,
};

use closet::{Closet, Folder, LIMITS, ROOMY, ring, run};

const PLAN: &str = "espalier plan ring.yaml --flow-control none --engine tree -o plan.json";
const DISCOVER: &str = "espalier discover 127.0.7.1 127.0.7.2 127.0.7.3 127.0.7.4 -o found.yaml";

/// Runs a command that must say all of this.
fn says(folder: &Folder, closet: &Closet, command: &str, expect: &[&str]) -> String {
    let told = run(folder, closet, command);
    for words in expect {
        assert!(told.contains(words), "{command}: no {words:?} in {told}");
    }
    told
}

/// Runs a command that must succeed.
fn works(folder: &Folder, closet: &Closet, command: &str) -> String {
    let told = run(folder, closet, command);
    assert!(!told.lines().any(|line| line.starts_with("? ")), "{command}: {told}");
    told
}

#[test]
fn of_discover() {
    let folder = Folder::new("advice-discover");
    let closet = Closet::open(LIMITS);
    // Nobody of that community answers: give the right one.
    folder.prepare(&ring());
    folder.write("credentials.toml", "[default]\ncommunity = \"wrong\"\n");
    says(
        &folder,
        &closet,
        DISCOVER,
        &["127.0.7.2: no answer to", "is the address right, SNMP on, and the community or user known to it?", "? 1"],
    );
    // Credentials that are nobody's: give a default.
    folder.write("credentials.toml", "[switches.x]\ncommunity = \"private\"\n");
    says(&folder, &closet, DISCOVER, &["no credentials for 127.0.7.1, and no [default] in the file", "? 1"]);
    folder.prepare(&ring());
    // Switches that were not asked: name their addresses as well.
    let told = says(
        &folder,
        &closet,
        "espalier discover 127.0.7.1 -o found.yaml",
        &[
            "s0:p1 hears s1 (port p2), a switch or router that was not asked; name its address to discover as well",
            "? 1",
        ],
    );
    assert!(told.contains("1 switch, 0 cables between them"), "{told}");
    let told = works(&folder, &closet, DISCOVER);
    assert!(told.contains("4 switches, 4 cables between them"), "{told}");
    // Expected switches without addresses: add mgmt:.
    let bare: String = ring().lines().map(|line| line.split(" {mgmt").next().unwrap_or("").to_owned() + "\n").collect();
    folder.write("bare.yaml", &bare);
    says(
        &folder,
        &closet,
        "espalier discover --expect bare.yaml",
        &["none of the expected switches has a management address; add mgmt: to them", "? 2"],
    );
    let told = run(&folder, &closet, "espalier discover --expect ring.yaml");
    assert!(told.contains("4 switches, 4 cables between them"), "{told}");
}

#[test]
fn of_observe() {
    let folder = Folder::new("advice-observe");
    let closet = Closet::open(ROOMY);
    // No address: add mgmt: to them in the topology and plan again.
    folder.prepare(&ring().replace("  s2: {mgmt: 127.0.7.3}", "  s2:"));
    works(&folder, &closet, PLAN);
    let observe = "espalier observe plan.json -o seen";
    says(
        &folder,
        &closet,
        observe,
        &["no management address for s2; add mgmt: to them in the topology and plan again", "? 2"],
    );
    folder.prepare(&ring());
    works(&folder, &closet, PLAN);
    // No file: observe PLAN -o FOLDER writes them.
    fs::create_dir(folder.0.join("seen")).expect("a folder");
    let avoid = "espalier plan ring.yaml --flow-control none --avoid-vlans-of seen -o other.json";
    says(&folder, &closet, avoid, &["seen: there is no file of observe; observe PLAN -o seen writes them", "? 2"]);
    works(&folder, &closet, observe);
    works(&folder, &closet, avoid);
    works(&folder, &closet, "espalier deploy plan.json");
    works(&folder, &closet, observe);
    let check = "espalier check plan.json --observed seen";
    works(&folder, &closet, check);
    // One that is missing: observe it again.
    let file = folder.0.join("seen/0002-s2.json");
    let text = fs::read_to_string(&file).expect("a file");
    fs::remove_file(&file).expect("it is there");
    says(&folder, &closet, check, &["seen holds nothing of switch s2; observe it again", "? 2"]);
    works(&folder, &closet, observe);
    works(&folder, &closet, check);
    // Two of one: remove the older one.
    let copy = folder.0.join("seen/copy.json");
    fs::write(&copy, &text).expect("a file");
    says(
        &folder,
        &closet,
        check,
        &["both hold switch s2; remove the older one, or observe into another folder", "? 2"],
    );
    says(&folder, &closet, "espalier observe plan.json -o elsewhere", &["4 of 4 switches observed into elsewhere"]);
    works(&folder, &closet, "espalier check plan.json --observed elsewhere");
    fs::remove_file(&copy).expect("it is there");
    works(&folder, &closet, check);
    // Read at another time: observe again.
    let year = text.find("\"20").map(|at| text[at + 1..at + 5].to_owned()).expect("a moment");
    fs::write(&file, text.replacen(&format!("\"{year}-"), "\"2020-", 1)).expect("a file");
    says(&folder, &closet, check, &["so the fabric may never have been in this state; observe again"]);
    works(&folder, &closet, observe);
    let told = works(&folder, &closet, check);
    assert!(!told.contains("observe again"), "{told}");
    // Something else than the plan: what is said of it is true, and mends it.
    closet.do_it("s1 dot1qPvid.3 = 1");
    works(&folder, &closet, observe);
    says(&folder, &closet, check, &["s1: port p3 has PVID none instead of 2; deploy again", "? 1"]);
    works(&folder, &closet, "espalier deploy plan.json");
    works(&folder, &closet, observe);
    works(&folder, &closet, check);
}

#[test]
fn of_credentials() {
    let folder = Folder::new("advice-credentials");
    let closet = Closet::open(LIMITS);
    folder.prepare(&ring());
    fs::remove_file(folder.0.join("credentials.toml")).expect("it is there");
    says(
        &folder,
        &closet,
        DISCOVER,
        &[
            "credentials.toml: No such file",
            "write one with a [default] table of user, auth-password and privacy-password",
            "? 2",
        ],
    );
    let text = "[default]\nuser = \"admin\"\nauth = \"sha256\"\nauth-password = \"authentication\"\nprivacy-password = \"privacy-too\"\n";
    fs::write(folder.0.join("credentials.toml"), text).expect("a file");
    let told =
        says(&folder, &closet, DISCOVER, &["others can read these credentials; chmod 600 credentials.toml", "? 2"]);
    let advice = told.split("; ").nth(1).and_then(|rest| rest.lines().next()).expect("an advice");
    works(&folder, &closet, advice);
    works(&folder, &closet, DISCOVER);
}

#[test]
fn of_enrol() {
    let folder = Folder::new("advice-enrol");
    let closet = Closet::open(LIMITS);
    folder.prepare(&ring());
    // A port that is not there: one of those that are.
    let said = "127.0.7.1: it has no port p9; its ports are p1, p2, p3, p4";
    says(&folder, &closet, "espalier enrol 127.0.7.1 --at p9", &[said, "? 1"]);
    let told = works(&folder, &closet, "espalier enrol 127.0.7.1 --at p4 --max-vlans 4 --max-entries 4");
    // A bound that was reached: its option asks for more.
    assert!(told.contains("4 at least; --max-vlans asks for more"), "{told}");
    assert!(told.contains("4 at least; --max-entries asks for more"), "{told}");
    let told = works(&folder, &closet, "espalier enrol 127.0.7.1 --at p4 --max-vlans 64 --max-entries 64");
    assert!(!told.contains("asks for more"), "{told}");
    // One that was killed in the middle: clean up first.
    closet.do_it("s0 freezes");
    let mut enrolling = Command::new(env!("CARGO_BIN_EXE_espalier"))
        .args(["enrol", "127.0.7.1", "--port", &closet.port.to_string(), "--timeout", "60"])
        .current_dir(&folder.0)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    while !closet.silent[0].load(Ordering::SeqCst) {
        assert!(enrolling.try_wait().expect("a process").is_none(), "it ended before it was killed");
        thread::sleep(Duration::from_millis(5));
    }
    enrolling.kill().expect("it runs");
    enrolling.wait().expect("it ends");
    closet.do_it("s0 speaks");
    let told = says(
        &folder,
        &closet,
        "espalier enrol 127.0.7.1",
        &["holds the ledger of an interrupted enrolment of 127.0.7.1; clean up first: espalier enrol --clean", "? 2"],
    );
    let advice = told.split("clean up first: ").nth(1).and_then(|rest| rest.lines().next()).expect("a command");
    works(&folder, &closet, advice);
    works(&folder, &closet, "espalier enrol 127.0.7.1");
}
