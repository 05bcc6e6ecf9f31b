//! Planes as a list of a plan file's policy: the switches of each, as runs: `["0-2,6","3-5"]`.

use super::{
    json::{Located, Read},
    runs::{join_runs, parse_runs},
};
use crate::{Planes, Topology};

/// Writes the list.
pub(super) fn planes_list(planes: &Planes) -> String {
    let runs = |plane: usize| {
        let switches = planes.by_switch().iter().enumerate().filter(|(_, of)| usize::from(**of) == plane);
        format!("\"{}\"", join_runs(switches.map(|(switch, _)| switch)))
    };
    format!("[{}]", (0..planes.count()).map(runs).collect::<Vec<_>>().join(","))
}

/// Reads the list, in which each switch is named once.
pub(super) fn planes(topology: &Topology, at: &Located<'_>) -> Read<Planes> {
    let count = topology.switches().len();
    let mut plane = vec![u8::MAX; count];
    let lists = at.items()?;
    if lists.len() > Planes::COUNT_MAX {
        return Err(at.error(format!("{} planes, where there may be {}", lists.len(), Planes::COUNT_MAX)));
    }
    for (number, at) in lists.enumerate() {
        let runs = parse_runs(at.text()?, "switch", count).map_err(|error| at.error(error))?;
        for switch in runs.into_iter().flat_map(|(first, last)| first..=last) {
            if std::mem::replace(&mut plane[switch], number as u8) != u8::MAX {
                return Err(at.error(format!("switch {switch} is in two planes")));
            }
        }
    }
    match plane.iter().position(|plane| *plane == u8::MAX) {
        Some(switch) => Err(at.error(format!("switch {switch} is in no plane; leave the list out for none at all"))),
        None => Ok(Planes::new(plane)),
    }
}
