//! Hosts that tag their own frames: the tables that they hold, and the program that hands tables out, one host after the other.
//!
//! ```text
//!   hand out state 1    h2: 1   h0: 1   h3: 0   h1: 0      the program failed, or ended with the daemon, after two hosts
//! ```
//! A host reads what the program is given: the text of an interim configuration, or a plan.

use std::collections::BTreeMap;

use controller::HostsState;
use espalierd::manager::Manager;
use fabric::{Mac, Plan};
use rollout::deploy::Reason;
use tagging::{Config, Spread, TaggingTable};

use crate::{
    pairs,
    world::{Died, World},
};

/// How long the program takes for each host, at most.
const EACH_MS: usize = 200;

/// What hosts that tag hold, by station address. A host that holds no table leaves tagging to its switch.
pub(crate) type HostTables = BTreeMap<Mac, TaggingTable>;

/// How the program ends before every host holds the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramEnd {
    /// A host does not answer.
    Fails,
    /// The daemon is killed, and the program with it.
    Killed,
}

/// What `hosts_program` does with a state, while the daemon waits for it.
///
/// # Errors
/// [`Died`], if the daemon is no more.
///
/// # Panics
/// If a pair is cut that a hitless change may not cut.
pub(crate) fn hand_out(world: &mut World, manager: &Manager, state: &HostsState) -> Result<Result<(), Reason>, Died> {
    let mut tables: Vec<(Mac, TaggingTable)> = tables(state).into_iter().collect();
    world.rng.shuffle(&mut tables);
    let early = world.program_end(tables.len());
    for (at, (mac, table)) in tables.into_iter().enumerate() {
        match early {
            Some((after, ProgramEnd::Fails)) if after == at => {
                world.say(|| format!("the program for hosts fails after {at}"));
                world.count("programs for hosts that failed");
                return Ok(Err(Reason::Hosts(format!("{mac} does not answer"))));
            }
            Some((after, ProgramEnd::Killed)) if after == at => {
                world.say(|| format!("the daemon is killed after {at} hosts have changed"));
                world.count("programs for hosts that ended with the daemon");
                return Err(Died { until_ms: world.now_ms() + 1_000 });
            }
            _ => {}
        }
        let takes_ms = 1 + world.rng.below(EACH_MS) as u64;
        world.pass(manager, world.now_ms() + takes_ms)?;
        if manager.is_stopping() {
            return Ok(Err(Reason::Interrupted));
        }
        world.fabric.set_table(mac, table);
        pairs::none_cut(&world.fabric, "after a host changed its table");
    }
    world.count("states that all hosts got from the program");
    Ok(Ok(()))
}

/// Somebody hands out the tables of a plan to which the daemon has brought the switches, but not the hosts.
pub(crate) fn hand_out_by_hand(world: &mut World, plan: &Plan) {
    for (mac, table) in tables_of_plan(plan) {
        world.fabric.set_table(mac, table);
    }
}

fn tables(state: &HostsState) -> HostTables {
    match state {
        HostsState::Plan(plan) => tables_of_plan(plan),
        HostsState::Interim(config) => {
            let read = Config::parse("tagger.conf", &config.text()).expect("hosts can read it");
            read.hosts.keys().map(|mac| (*mac, read.table(*mac).expect("a host that it lists"))).collect()
        }
    }
}

/// Hosts spread flows where the plan gives pairs several paths. Empty if the switches tag.
fn tables_of_plan(plan: &Plan) -> HostTables {
    let spread = if plan.paths.is_some() { Spread::Flow } else { Spread::First };
    let table = |host| tagging::plan::table(plan, host, spread);
    let hosts = plan.topology.host_ids().filter_map(|host| Some((host, table(host)?)));
    hosts.flat_map(|(host, table)| plan.topology.host(host).macs().map(move |mac| (mac, table.clone()))).collect()
}
