//! `deploy --dry-run`: every SET or line that would be sent, and none is.

use std::process::ExitCode;

use anyhow::Result;
use device::deploy::{Fault, Mark, edits};
use fabric::SwitchId;

use super::{
    super::{
        Output,
        controller::{self, Reached, Said},
        say,
    },
    route::Route,
};
use crate::failure::FAILED;

/// Reads every switch and prints every SET that would be sent.
pub(super) fn dry_run(
    route: &Route,
    devices: Vec<controller::Connected>,
    parked: &[Vec<String>],
    digest: u32,
    parallel: usize,
    output: Output,
) -> Result<ExitCode> {
    let mut failed = false;
    let mut all = Vec::new();
    let switches = route.topology.switch_ids().zip(devices).zip(parked).collect();
    let one = |((switch, device), parked): ((SwitchId, controller::Connected), &Vec<String>)| {
        device.and_then(|device| rehearse(route, switch, device, parked, digest))
    };
    for (switch, rehearsed) in route.topology.switches().iter().zip(controller::at_once(switches, parallel, one)) {
        let name = &switch.name;
        match rehearsed {
            Ok(stages) => {
                if output == Output::Person {
                    let writes = stages.iter().map(|stage| stage.edits.len()).sum::<usize>();
                    let count = |of: fn(&Rehearsed) -> usize| stages.iter().map(of).sum::<usize>();
                    let said = match (count(|stage| stage.said.sets.len()), count(|stage| stage.said.lines.len())) {
                        (0, 0) => String::new(),
                        (0, lines) => format!(" in {lines} lines"),
                        (sets, _) => format!(" in {sets} SETs"),
                    };
                    say!("{name}: {writes} writes{said}");
                }
                for stage in &stages {
                    if output == Output::Person {
                        say!("  {}:", stage.name);
                        for edit in &stage.edits {
                            say!("    {edit}");
                        }
                        for set in &stage.said.sets {
                            say!("    set {set}");
                        }
                        for line in &stage.said.lines {
                            say!("    > {line}");
                        }
                    }
                    all.push(serde_json::json!({
                        "switch": name, "stage": stage.name, "writes": stage.edits, "sets": stage.said.sets,
                        "lines": stage.said.lines,
                    }));
                }
            }
            Err(fault) => {
                failed = true;
                eprintln!("espalier: {name} {fault}");
            }
        }
    }
    if output == Output::Json {
        say!("{}", serde_json::json!({ "stages": all }));
    }
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// What one stage does to one switch.
struct Rehearsed {
    name: String,
    edits: Vec<String>,
    said: Said,
}

fn rehearse(
    route: &Route,
    switch: SwitchId,
    mut device: Reached,
    parked: &[String],
    digest: u32,
) -> Result<Vec<Rehearsed>, Fault> {
    let reading = device.driver().read()?;
    // The nonce is drawn when it is done.
    let generation = reading.mark.map_or(0, |mark| mark.generation).saturating_add(1);
    let mark = Mark { generation, nonce: 0, digest };
    let (mut found, mut found_mark) = (reading.config, reading.mark);
    let mut stages = Vec::new();
    for (name, state) in route.states(switch, &found, parked) {
        let said = device.rehearse(&found, &state, mark, found_mark)?;
        found_mark = Some(mark);
        stages.push(Rehearsed {
            name,
            edits: edits(&found, &state).iter().map(|edit| edit.sentence(&state)).collect(),
            said,
        });
        found = state;
    }
    Ok(stages)
}
