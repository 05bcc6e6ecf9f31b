//! Deployments by the command line that do not go straight on, each ended as the program itself advises.

mod closet;

use std::{
    process::{Command, Stdio},
    sync::atomic::Ordering,
    thread,
    time::Duration,
};

use closet::{Closet, Folder, ROOMY, held, learning_ring, ring, run};

/// A program that is killed in the middle leaves a journal, and the next one says how to go on: each command that it names does.
#[test]
fn a_killed_deployment_goes_on_or_back_as_it_is_told() {
    for way in ["--resume", "--undo"] {
        let folder = Folder::new(&format!("killed{way}"));
        let closet = Closet::open(ROOMY);
        folder.prepare(&ring());
        let told = run(&folder, &closet, "espalier plan ring.yaml --flow-control none --engine tree -o plan.json");
        assert!(told.contains("fit to deploy"), "{told}");
        let before = held(&folder, &closet, "before");
        closet.do_it("s2 traps");
        let port = closet.port.to_string();
        let mut deploying = Command::new(env!("CARGO_BIN_EXE_espalier"))
            .args(["deploy", "plan.json", "--port", &port, "--timeout", "60", "--attempts", "2"])
            .current_dir(&folder.0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program runs");
        while !closet.silent[2].load(Ordering::SeqCst) {
            assert!(deploying.try_wait().expect("a process").is_none(), "it ended before it was killed");
            thread::sleep(Duration::from_millis(5));
        }
        deploying.kill().expect("it runs");
        deploying.wait().expect("it ends");
        closet.do_it("s2 speaks");
        let told = run(&folder, &closet, "espalier deploy plan.json");
        let advice = "go on with espalier deploy plan.json --resume, or take it back with --undo";
        assert!(told.contains(advice) && told.ends_with("? 2\n"), "{told}");
        let told = run(&folder, &closet, &format!("espalier deploy plan.json {way}"));
        if way == "--resume" {
            assert!(told.starts_with("4 of 4 switches hold the plan"), "{told}");
            assert!(run(&folder, &closet, "espalier status plan.json").starts_with("4 of 4 switches hold the plan"));
        } else {
            assert!(told.starts_with("rolled back: every switch holds what it held before"), "{told}");
            assert_eq!(held(&folder, &closet, "after"), before);
        }
        // Nothing is left to go on with, and it says so; a plain deployment begins.
        let told = run(&folder, &closet, &format!("espalier deploy plan.json {way}"));
        assert!(told.contains("there is nothing to go on with or to take back"), "{told}");
        let told = run(&folder, &closet, "espalier deploy plan.json");
        assert!(told.starts_with("4 of 4 switches hold the plan") || told.contains("nothing was written"), "{told}");
    }
}

/// A storm turns a deployment back, or, where it comes up on the way back, leaves everything shut. Each message names the ports,
/// and what it advises leads on once the loop is gone.
#[test]
fn a_storm_s_advice_leads_on_once_the_loop_is_gone() {
    let shows = ["02:00:00:00:00:4d moves to and fro between s1:p2 and s1:p1 (", "look for a loop through a cable"];
    for way in ["--undo", "--resume"] {
        let folder = Folder::new(&format!("storm{way}"));
        let closet = Closet::open(ROOMY);
        folder.prepare(&ring());
        let plan = "espalier plan ring.yaml --flow-control none --engine tree";
        run(&folder, &closet, &format!("{plan} -o plan.json"));
        run(&folder, &closet, &format!("{plan} --vlans 40-60 -o other.json"));
        closet.do_it("s1 storms");
        let told = run(&folder, &closet, "espalier deploy plan.json");
        assert!(told.starts_with("rolled back: ") && shows.iter().all(|words| told.contains(words)), "{told}");
        assert!(told.contains("and deploy again") && told.ends_with("? 1\n"), "{told}");
        closet.do_it("s1 calms");
        let told = run(&folder, &closet, "espalier deploy plan.json");
        assert!(told.starts_with("4 of 4 switches hold the plan"), "{told}");
        let before = held(&folder, &closet, "before");

        closet.do_it("s1 storms");
        let told = run(&folder, &closet, "espalier deploy other.json");
        assert!(told.starts_with("turned back:") && shows.iter().all(|words| told.contains(words)), "{told}");
        for words in ["are shut and stay so:", "  s1:p2 s1:p1 s1:p3\n", "  s3:p2 s3:p1 s3:p3\n", "? 1\n"] {
            assert!(told.contains(words), "no {words:?} in {told}");
        }
        let advice = "once it is gone, espalier deploy other.json --undo opens the ports again, and --resume goes on to the plan";
        assert!(told.contains(advice), "{told}");
        // As long as the loop is there, it ends the same way.
        let told = run(&folder, &closet, "espalier deploy other.json --undo");
        assert!(told.contains("are shut and stay so:") && told.contains("other.json --undo opens"), "{told}");
        closet.do_it("s1 calms");
        let told = run(&folder, &closet, &format!("espalier deploy other.json {way}"));
        match way {
            "--undo" => {
                assert!(told.starts_with("rolled back: every switch holds what it held before"), "{told}");
                assert_eq!(held(&folder, &closet, "after"), before);
            }
            _ => assert!(told.starts_with("4 of 4 switches hold the plan"), "{told}"),
        }
    }
}

/// A switch with another chassis is refused, with the command that takes it as a replacement; and the line for the topology
/// that this one prints makes the next deployment know it.
#[test]
fn a_replaced_switch_is_taken_as_the_refusal_says() {
    let folder = Folder::new("replaced");
    let closet = Closet::open(ROOMY);
    let known = ring().replace("s3: {mgmt: 127.0.7.4}", "s3: {mgmt: 127.0.7.4, id: {chassis: \"02:00:00:00:00:99\"}}");
    folder.prepare(&known);
    let plan = "espalier plan ring.yaml --flow-control none --engine tree -o plan.json";
    run(&folder, &closet, plan);
    let told = run(&folder, &closet, "espalier deploy plan.json");
    assert!(
        told.contains("s3: another switch answers at 127.0.7.4: its chassis identifier is not the topology's"),
        "{told}"
    );
    assert!(told.contains("if s3 was replaced: deploy --replaced s3") && told.ends_with("? 1\n"), "{told}");
    let wrong = run(&folder, &closet, "espalier deploy plan.json --replaced s9");
    assert!(wrong.contains("--replaced s9: the plan has no such switch; it has s0, s1, s2, s3"), "{wrong}");
    let told = run(&folder, &closet, "espalier deploy plan.json --replaced s3");
    assert!(told.contains("4 of 4 switches hold the plan"), "{told}");
    let note = told.split("so that the topology knows it: ").nth(1).and_then(|rest| rest.split(" there,").next());
    let note = note.unwrap_or_else(|| panic!("no line for the topology: {told}"));
    folder.write("ring.yaml", &known.replace("id: {chassis: \"02:00:00:00:00:99\"}", note));
    let told = run(&folder, &closet, &format!("{plan} --previous plan.json"));
    assert!(told.contains("fit to deploy"), "{told}");
    let told = run(&folder, &closet, "espalier deploy plan.json");
    assert!(told.contains("every switch holds the plan already") && !told.contains('?'), "{told}");
}

/// Addresses exchanged between switches whose ports have other names: the error says who answers at each, and what to do mends it.
#[test]
fn exchanged_addresses_of_switches_with_other_ports_are_said() {
    let folder = Folder::new("exchanged");
    let closet = Closet::open_with(ROOMY, ["p", "p", "p", "e"]);
    let right = ring().replace("s3:p", "s3:e");
    let exchanged = right
        .replace("s2: {mgmt: 127.0.7.3}", "s2: {mgmt: 127.0.7.4}")
        .replace("s3: {mgmt: 127.0.7.4}", "s3: {mgmt: 127.0.7.3}");
    folder.prepare(&exchanged);
    run(&folder, &closet, "espalier plan ring.yaml --flow-control none --engine tree -o plan.json");
    for command in ["espalier observe plan.json -o seen", "espalier deploy plan.json"] {
        let told = run(&folder, &closet, command);
        for expect in [
            "s3 answers at 127.0.7.4 (sysName s3, chassis 02:00:00:01:03:00",
            "\"Wiredrawer 4, version 3\"), where the plan has s2",
            "s2 answers at 127.0.7.3",
            "correct mgmt: of both in the topology and plan again, or give s2 its address 127.0.7.4 back",
        ] {
            assert!(told.contains(expect), "{command}: no {expect:?} in {told}");
        }
    }
    folder.write("ring.yaml", &right);
    run(&folder, &closet, "espalier plan ring.yaml --flow-control none --engine tree -o plan.json");
    assert_eq!(run(&folder, &closet, "espalier observe plan.json -o seen"), "4 of 4 switches observed into seen\n");
}

/// Entries of learned addresses stay through a deployment from scratch, a hitless change, and one that the switches turn back; where
/// nothing is recorded they go.
#[test]
fn entries_of_learned_addresses_stay_through_deployments() {
    let folder = Folder::new("learned");
    let closet = Closet::open(ROOMY);
    folder.prepare(&learning_ring());
    let plan = "espalier plan ring.yaml --flow-control none";
    run(&folder, &closet, &format!("{plan} -o plan.json"));
    run(&folder, &closet, "espalier deploy plan.json");
    let bare = held(&folder, &closet, "bare");
    closet.do_it("s1 hears 02:00:00:00:0a:01");
    closet.do_it("s3 hears 02:00:00:00:0a:02");
    let told = run(&folder, &closet, "espalier addresses plan.json");
    assert!(told.contains("every switch holds the entries of 2 learned addresses"), "{told}");
    let with = held(&folder, &closet, "with");
    assert_ne!(with, bare);
    // From scratch: nothing is to be done, since the switches hold what it would write.
    let told = run(&folder, &closet, "espalier deploy plan.json");
    assert!(told.contains("entries of 2 learned addresses are kept") && told.contains("nothing was written"), "{told}");
    // A hitless change to the same trees under other VLANs, and back.
    run(&folder, &closet, &format!("{plan} --vlans 40-80 -o other.json"));
    let told = run(&folder, &closet, "espalier deploy other.json --since plan.json");
    assert!(told.starts_with("4 of 4 switches hold the plan"), "{told}");
    assert!(told.contains("entries of 2 learned addresses are kept"), "{told}");
    let record = |name: &str| std::fs::read_to_string(folder.0.join(name)).expect("a record");
    assert_eq!(record("other.addresses.json"), record("plan.addresses.json"));
    let told = run(&folder, &closet, "espalier status other.json");
    assert!(told.starts_with("4 of 4 switches hold the plan"), "{told}");
    let told = run(&folder, &closet, "espalier deploy plan.json --since other.json");
    assert!(told.starts_with("4 of 4 switches hold the plan"), "{told}");
    assert_eq!(held(&folder, &closet, "again"), with);
    // A record elsewhere, with ports down meanwhile.
    std::fs::rename(folder.0.join("plan.addresses.json"), folder.0.join("mine.json")).expect("a record");
    std::fs::remove_file(folder.0.join("other.addresses.json")).expect("a record");
    let told = run(&folder, &closet, "espalier deploy other.json --addresses mine.json");
    assert!(told.starts_with("4 of 4 switches hold the plan"), "{told}");
    assert_eq!(record("other.addresses.json"), record("mine.json"));
    let told = run(&folder, &closet, "espalier deploy plan.json --since other.json --addresses mine.json");
    assert!(told.starts_with("4 of 4 switches hold the plan"), "{told}");
    assert_eq!(held(&folder, &closet, "elsewhere"), with);
    let told = run(&folder, &closet, "espalier deploy plan.json --addresses nothing.json");
    assert!(told.contains("nothing.json") && told.ends_with("? 2\n"), "{told}");
    // Nothing is recorded: the entries go.
    std::fs::remove_file(folder.0.join("plan.addresses.json")).expect("a record");
    let told = run(&folder, &closet, "espalier deploy plan.json");
    assert!(told.starts_with("4 of 4 switches hold the plan") && !told.contains("learned address"), "{told}");
    assert_eq!(held(&folder, &closet, "after"), bare);
}
