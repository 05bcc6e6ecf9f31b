//! What is drained, as an object of a plan file's policy: `{"links":"0,2-3","switches":"1"}`.

use super::{
    json::{Located, Read},
    runs::{join_runs, parse_runs},
};
use crate::{Drain, LinkId, SwitchId, Topology};

/// Writes the object.
pub(super) fn drain_object(drain: &Drain) -> String {
    let links = join_runs(drain.links.iter().map(|link| link.index()));
    let switches = join_runs(drain.switches.iter().map(|switch| switch.index()));
    format!("{{\"links\":\"{links}\",\"switches\":\"{switches}\"}}")
}

/// Reads the object; one that drains nothing is refused, since it is left out.
pub(super) fn drain(topology: &Topology, at: &Located<'_>) -> Read<Drain> {
    at.only(&["links", "switches"])?;
    let numbers = |key, what, count| -> Read<Vec<usize>> {
        let at = at.field(key)?;
        let runs = parse_runs(at.text()?, what, count).map_err(|error| at.error(error))?;
        Ok(runs.into_iter().flat_map(|(first, last)| first..=last).collect())
    };
    let links = numbers("links", "link", topology.links().len())?;
    let switches = numbers("switches", "switch", topology.switches().len())?;
    let drain = Drain {
        links: links.into_iter().map(LinkId::new).collect(),
        switches: switches.into_iter().map(SwitchId::new).collect(),
    };
    if drain.is_empty() {
        return Err(at.error("it drains nothing; leave it out"));
    }
    Ok(drain)
}
