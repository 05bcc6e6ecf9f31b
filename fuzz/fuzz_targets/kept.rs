//! Any text as a file that the program keeps or is given: what switches held, the journal of a deployment, what an agent
//! saved, credentials, the configuration of `switchd`, a plan. What is read survives being written.
#![no_main]

use drivers::credentials::parse_keyring;
use fabric::{
    Mac, Model,
    format::plan::{ReadMode, read_plan, write_plan},
};
use rollout::journal::{parse_journal, write_journal};
use switch_model::format::{parse_observed, write_observed};
use switchd::{
    agent::{Facts, Limits, PortFacts, PortKind},
    saved::{parse_saved, write_saved},
    settings::parse_switchd,
};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(observed) = parse_observed(text) {
        assert_eq!(parse_observed(&write_observed(&observed)).expect("its own text"), observed);
    }
    if let Ok(journal) = parse_journal(text) {
        assert_eq!(parse_journal(&write_journal(&journal)).expect("its own text"), journal);
    }
    let facts = facts();
    if let Ok(saved) = parse_saved(&facts, text) {
        assert!(saved.ports.iter().all(|port| saved.is_active(port.pvid)));
        assert_eq!(parse_saved(&facts, &write_saved(&facts, &saved)).expect("its own text"), saved);
    }
    if let Ok(keyring) = parse_keyring(text, &|_| Some("from the environment".to_owned())) {
        let _ = (keyring.access("sw1"), keyring.login("sw1"));
    }
    let _ = parse_switchd(text);
    if let Ok(plan) = read_plan(text.as_bytes(), ReadMode::IgnoreDigest) {
        let mut written = Vec::new();
        write_plan(&plan, &mut written).expect("memory");
        assert_eq!(read_plan(&written, ReadMode::Strict).expect("its own text"), plan);
    }
});

fn facts() -> Facts {
    let port = |number: u32| PortFacts {
        name: format!("p{number}"),
        if_index: number,
        mac: Mac::local(number),
        kind: PortKind::Own,
    };
    Facts {
        description: String::new(),
        address: Mac::local(0xaa),
        ports: (1..=4).map(port).collect(),
        limits: Limits::of(&Model::generic()),
    }
}
