//! Switches that learn: the first exchange floods, the next ones do not, and after silence it begins anew.
//!
//! ```text
//!   first echo    request to all of the tree, answer by the way that it taught     floods
//!   further ones  by what both have taught                                          none
//!   after ageing  as at first                                                       floods, then none
//! ```
//! Floods are the switches' own counts of frames for one host that left by more than one port.

mod common;

use std::{process::Command, thread, time::Duration};

use common::{Guard, lab_name, setting, skipped};
use fabric::{
    FdbMode, Plan, Policy, Tagging,
    generate::{Kind, Options, generate},
};
use lab::{
    Backend, LabOptions,
    delivery::{Probe, check},
    measure::{Load, Pattern, measure},
};

fn torus() -> Plan {
    let kind = Kind::parse("torus", &["3x3".to_owned()]).expect("a known family");
    let topology = generate(&kind, &Options::default()).expect("a sane size");
    let policy = Policy { tagging: Tagging::SourceDestination, fdb: FdbMode::Learned, ..Policy::default() };
    let plan = planner::plan(&topology, &policy, None).expect("both directions share a VLAN");
    assert!(verify::check(&plan).is_deployable() && plan.trees.len() > 1);
    plan
}

#[test]
fn floods_end_with_the_first_exchange_and_come_back_after_silence() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        // Longer than a whole round of echoes takes on a busy machine.
        let ageing_s = setting("LAB_AGEING_S", 20) as u32;
        let plan = torus();
        let options = LabOptions {
            backend: Some(backend),
            ageing_s,
            rate_bps: setting("LAB_RATE_BPS", 50_000_000),
            ..LabOptions::new(lab_name("learn"))
        };
        let lab = Guard::up(&plan, &options);
        let floods = || lab.0.status().expect("a status").unknown_floods();
        let mut seen = floods();
        let mut since = |what: &str| {
            let now = floods();
            println!("{backend}: {what}: {} floods", now - seen);
            now - std::mem::replace(&mut seen, now)
        };
        let exchange = || assert_eq!(check(&lab.0, Probe::Ping).expect("probes are sent").faults, [], "{backend}");
        // The first host decides the VLAN, in which the last one, who asks in its own, has not been heard.
        let (first, last) = (&lab.0.layout().hosts[0], lab.0.layout().hosts.last().expect("hosts"));
        let words = ["netns", "exec", &last.namespace, "ping", "-c1", "-W5", &first.address.to_string()];
        assert!(Command::new("ip").args(words).output().expect("ip runs").status.success(), "{backend}");
        assert!(since("first exchange") > 0, "{backend}: nothing is known at first");
        exchange();
        since("exchange of all");
        exchange();
        assert_eq!(since("second exchange"), 0, "{backend}");
        let load = Load::new(Pattern::AllToAll, 20_000);
        let measured = measure(&lab.0, &load, &mut |_| {}).expect("it runs");
        assert!(measured.pairs.iter().all(|pair| pair.received_bytes == load.bytes_per_pair), "{backend}");
        assert_eq!(since("all-to-all"), 0, "{backend}");
        thread::sleep(Duration::from_secs(u64::from(ageing_s) + 2));
        exchange();
        assert!(since("after silence") > 0, "{backend}: what has aged is forgotten");
        exchange();
        assert_eq!(since("once more"), 0, "{backend}");
    }
}
