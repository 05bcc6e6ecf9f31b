//! What the survey before a deployment found, as JSON.

use controller::{Looked, Route};
use fabric::LinkId;
use serde_json::{Value, json};

/// The survey as JSON.
pub(super) fn survey_json(looked: &Looked, route: &Route) -> Value {
    let topology = &route.topology;
    let state = |link: &LinkId| match link {
        link if looked.trusted.contains(link) => "trusted",
        link if looked.awaited.contains(link) => "looked at when it opens",
        link if looked.kept.contains(link) => "in service",
        link if looked.shut.contains(link) => "shut",
        _ => "unused",
    };
    let unconfirmed: Vec<Value> = (looked.survey.unconfirmed.iter())
        .map(|(link, why)| {
            json!({ "cable": topology.link_label(*link), "why": why.sentence(topology), "state": state(link) })
        })
        .collect();
    let misfits: Vec<String> = looked.survey.misfits.iter().map(|misfit| misfit.sentence(topology)).collect();
    let notes: Vec<String> = looked.survey.notes.iter().map(|note| note.sentence(topology)).collect();
    let small = looked.small_mtus.iter().map(|port| {
        json!({
            "port": topology.port_label(port.port), "found_bytes": port.found_bytes, "needed_bytes": port.needed_bytes,
        })
    });
    json!({
        "small_mtus": small.collect::<Vec<_>>(),
        "cables": topology.links().len(), "confirmed": looked.survey.confirmed.len(), "unconfirmed": unconfirmed,
        "misfits": misfits, "notes": notes, "unfit": looked.unfit,
    })
}
