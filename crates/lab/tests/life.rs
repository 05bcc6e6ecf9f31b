//! A lab's life: up, used from elsewhere, cut and mended, down without a trace.

mod common;

use std::time::Instant;

use common::{Guard, Shape, grid, lab_name, plan, ring, setting, skipped};
use fabric::{DEFAULT_RATE_BPS, Mac, SwitchSpec, TopologyBuilder, Tree};
use lab::{
    Backend, FailMode, Lab, LabError, LabOptions,
    delivery::{Probe, check},
};

fn options(word: &str, backend: Backend) -> LabOptions {
    LabOptions { backend: Some(backend), ..LabOptions::new(lab_name(word)) }
}

fn nothing_is_left_of(name: &str) {
    let left: Vec<String> = std::fs::read_dir("/run/netns")
        .map(|entries| entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
        .unwrap_or_default();
    let prefix = format!("esp-{name}-");
    assert!(left.iter().all(|namespace| !namespace.starts_with(&prefix)), "{left:?}");
    assert!(!std::path::Path::new("/run/espalier/lab").join(name).exists());
    assert!(!std::path::Path::new("/sys/fs/bpf/espalier").join(name).exists());
}

#[test]
fn sixteen_switches_come_up_and_go_down_in_time() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let options = options("time", backend);
        let plan = grid(setting("LAB_SIDE", 4) as usize, Shape::Torus);
        let since = Instant::now();
        let lab = Lab::up(&plan, &options, &mut |_| {}).expect("the lab comes up");
        let up = since.elapsed();
        let since = Instant::now();
        let status = lab.status().expect("a status");
        let read = since.elapsed();
        assert_eq!(status.switches.len(), plan.devices.len());
        let since = Instant::now();
        lab.down().expect("the lab goes down");
        let down = since.elapsed();
        println!("{backend}: up {up:.2?}, status {read:.2?}, down {down:.2?}");
        nothing_is_left_of(&options.name);
        // An emulated machine may take longer.
        let slowness = setting("LAB_SLOWNESS", 1);
        assert!(up.as_secs() < 10 * slowness && down.as_secs() < 5 * slowness);
    }
}

#[test]
fn programs_run_in_hosts_and_pass_their_exit_code_on() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let lab = Guard::up(&ring(4), &options("exec", backend));
        let text = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
        assert_eq!(lab.0.exec("n1", "sh", &text(&["-c", "exit 7"])).expect("it starts").code(), Some(7));
        assert!(matches!(lab.0.exec("n9", "true", &[]), Err(LabError::NoSuchHost { .. })));
        let shown = lab.0.command("n1", "ip", &text(&["-br", "addr", "show", "eth0"])).expect("a host").output();
        let shown = String::from_utf8(shown.expect("it runs").stdout).expect("text");
        assert!(shown.contains("10.0.0.1/8"), "{shown}");
    }
}

#[test]
fn two_labs_coexist_and_a_name_is_taken_once() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let (one, other) = (options("one", backend), options("other", backend));
        let first = Guard::up(&ring(4), &one);
        let second =
            Lab::up(&ring(3), &LabOptions { plan_text: Some("the plan".to_owned()), ..other.clone() }, &mut |_| {})
                .expect("another name is free");
        assert_eq!(second.plan_text().expect("readable").as_deref(), Some("the plan"));
        assert!(matches!(Lab::up(&ring(4), &one, &mut |_| {}), Err(LabError::NameInUse { .. })));
        assert!(matches!(Lab::open(&format!("{}x", one.name)), Err(LabError::NoSuchLab { .. })));
        let names = lab::list().expect("a list");
        assert!(names.contains(&one.name) && names.contains(&other.name), "{names:?}");
        second.down().expect("the lab goes down");
        nothing_is_left_of(&other.name);
        assert_eq!(Lab::open(&one.name).expect("it stays").layout(), first.0.layout());
    }
}

/// Words that iproute2 has a meaning for, whole or abbreviated, where the name of a device may stand.
const WORDS: [&str; 12] =
    ["a", "dev", "up", "peer", "type", "master", "netns", "name", "help", "mtu", "down", "permanent"];

#[test]
fn ports_may_be_called_what_iproute2_has_words_for() {
    let mut builder = TopologyBuilder::new();
    let [one, other] = ["s0", "s1"].map(|name| builder.add_switch(name, SwitchSpec::default()).expect("a fresh name"));
    let cable = [(one, "dev"), (other, "a")].map(|(at, name)| builder.add_port(at, name).expect("a fresh name"));
    builder.add_link(cable[0], cable[1], DEFAULT_RATE_BPS).expect("free ports");
    let mut number = 0;
    for (at, taken) in [(one, "dev"), (other, "a")] {
        for word in WORDS.into_iter().filter(|word| *word != taken) {
            number += 1;
            let port = builder.add_port(at, word).expect("a fresh name");
            builder.add_host(&format!("n{number}"), Mac::local(number), port, DEFAULT_RATE_BPS, None).expect("free");
        }
    }
    let topology = builder.finish().expect("connected");
    let cabling = topology.clone();
    let plan = plan(topology, |_| Tree::new(&cabling, cabling.link_ids()).expect("a tree"));
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let lab = Guard::up(&plan, &options("words", backend));
        let devices: Vec<&str> = lab.0.layout().switches[0].ports.iter().filter_map(|p| p.device.as_deref()).collect();
        assert!(WORDS.iter().all(|word| devices.contains(word)), "{devices:?}");
        assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, []);
        for mode in [FailMode::Down, FailMode::Silent, FailMode::Lossy { loss_ppm: 1_000_000 }] {
            lab.0.fail("s0:dev -- s1:a", mode).expect("it can be cut");
            assert_ne!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, [], "{mode:?}");
            lab.0.heal("s0:dev -- s1:a").expect("it can be mended");
        }
        assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, []);
    }
}

#[test]
fn down_ends_programs_and_is_idempotent() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let options = options("twice", backend);
        let lab = Lab::up(&ring(3), &options, &mut |_| {}).expect("the lab comes up");
        let mut sleeper = lab.command("n1", "sleep", &["600".to_owned()]).expect("a host").spawn().expect("it starts");
        // Until it has entered its namespace it could not be found there.
        let network = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).expect("it lives");
        while network(&sleeper.id().to_string()) == network("self") {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        lab::down(&options.name).expect("the lab goes down");
        assert!(sleeper.wait().expect("it was started").code().is_none(), "a signal ended it");
        lab::down(&options.name).expect("nothing to do");
        nothing_is_left_of(&options.name);
    }
}

#[test]
fn a_lab_that_fails_half_way_leaves_nothing() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        // The shaper refuses a cable without a queue, and that shows only when nodes are made.
        let options = LabOptions { queue_bytes: 0, ..options("half", backend) };
        let mut steps = Vec::new();
        let error =
            Lab::up(&ring(3), &options, &mut |progress| steps.push(progress.step)).expect_err("no queue at all");
        assert!(matches!(error, LabError::Tool { tool: "tc", .. }), "{error}");
        assert!(steps.contains(&lab::Step::Nodes), "{steps:?}");
        nothing_is_left_of(&options.name);
    }
}

#[test]
fn down_clears_what_a_crash_left() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let options = options("crash", backend);
        let state = std::path::Path::new("/run/espalier/lab").join(&options.name);
        // What is missing depends on when the builder died: the mark, the layout, or the state directory as a whole.
        for missing in ["finished", "layout.json", "."] {
            Lab::up(&ring(3), &options, &mut |_| {}).expect("the lab comes up");
            let gone = state.join(missing);
            let removed = if missing == "." { std::fs::remove_dir_all(&state) } else { std::fs::remove_file(gone) };
            removed.expect("it was there");
            let open = Lab::open(&options.name).map(drop);
            assert!(
                matches!(open, Err(LabError::Unfinished { .. } | LabError::NoSuchLab { .. })),
                "{missing}: {open:?}"
            );
            let again = Lab::up(&ring(3), &options, &mut |_| {}).map(drop);
            assert!(matches!(again, Err(LabError::NameInUse { .. })), "{missing}: {again:?}");
            lab::down(&options.name).expect("the lab goes down");
            nothing_is_left_of(&options.name);
        }
    }
}
