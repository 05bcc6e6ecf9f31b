//! From what was found to a model, and what a plan may ask of it.

use fabric::{Basis, FloodSet, Model, PortNames, format::model::parse_model};

use super::{Capabilities, End, Identity};

/// What is believed of a switch before it is probed: what probes do not reach comes from here.
#[derive(Clone, Copy, Debug)]
pub enum Base<'a> {
    /// A model that is known.
    Known(&'a Model),
    /// None.
    Nothing,
}

/// VLANs that every switch of a fabric holds beside the plan's: VLAN 1, and the one whose name is a deployment's mark.
const VLANS_BESIDE: usize = 2;

/// The model that a probe found, and remarks on it for the file's head.
pub fn model_of(name: &str, identity: &Identity, found: &Capabilities, base: Base<'_>) -> (Model, Vec<String>) {
    let known = match base {
        Base::Known(model) => Some(model),
        Base::Nothing => None,
    };
    let mut basis_of: Vec<(String, Basis)> = ["max-vlans", "static-macs", "hybrid-ports", "independent-vlan-learning"]
        .map(|fact| (fact.to_owned(), Basis::Probed))
        .to_vec();
    // What was not probed keeps what it rested on.
    let mut keep = |fact: &str| basis_of.extend(known.map(|known| (fact.to_owned(), known.basis_of(fact))));
    // How large the table is, nothing standard says; what it was seen to hold is a lower bound.
    let seen = found.statics.held.max(identity.learned as usize);
    let total = known.map_or(0, |known| known.total_entries_max).max(seen);
    for fact in ["total-macs", "blocks-floods", "syntax", "save"] {
        keep(fact);
    }
    match identity.pfc_classes {
        Some(_) => basis_of.push(("pfc-classes".to_owned(), Basis::Probed)),
        None => basis_of.extend(known.map(|known| ("pfc-classes".to_owned(), known.basis_of("pfc-classes")))),
    }
    let pause = match (&found.pause, known) {
        (Some(verdict), _) => {
            basis_of.push(("pause".to_owned(), Basis::Probed));
            verdict.able
        }
        (None, Some(known)) => {
            basis_of.push(("pause".to_owned(), known.basis_of("pause")));
            known.pause
        }
        (None, None) => false,
    };
    basis_of.retain(|(fact, basis)| {
        let there = |text: Option<&String>| text.is_some();
        *basis != Basis::Untested
            && match fact.as_str() {
                "syntax" => there(known.and_then(|known| known.syntax.as_ref())),
                "save" => there(known.and_then(|known| known.save.as_ref())),
                _ => true,
            }
    });
    basis_of.sort();
    let mut model = Model {
        name: name.to_owned(),
        description: description(identity, known),
        basis: Basis::Untested,
        basis_of,
        object_ids: identity.object_id.clone().into_iter().collect(),
        syntax: known.and_then(|known| known.syntax.clone()),
        save: known.and_then(|known| known.save.clone()),
        ports: PortNames::Listed(identity.ports.iter().map(|port| port.name.clone()).collect()),
        vlans_max: found.vlans.held.saturating_sub(VLANS_BESIDE).max(1),
        static_entries_max: found.statics.held,
        total_entries_max: total,
        hybrid_ports: found.hybrid_ports.able,
        independent_vlan_learning: found.independent_vlan_learning.able,
        pause,
        pfc_classes: identity.pfc_classes.unwrap_or_else(|| known.map_or(0, |known| known.pfc_classes)),
        blocks_floods: known.map_or(FloodSet::NONE, |known| known.blocks_floods),
        storm_control: known.is_some_and(|known| known.storm_control),
        lags_max: known.and_then(|known| known.lags_max),
    };
    // Names that no topology can write are left to people.
    if parse_model(&fabric::format::model::write_model(&model, &[])).is_err() {
        model.ports = PortNames::Any;
    }
    let remarks = remarks(identity, found, known);
    (model, remarks)
}

fn description(identity: &Identity, known: Option<&Model>) -> String {
    let said: String = identity.description.chars().map(|c| if c.is_control() { ' ' } else { c }).take(120).collect();
    match known {
        Some(known) => known.description.clone(),
        None if said.trim().is_empty() => "a switch that does not say what it is".to_owned(),
        None => said.trim().to_owned(),
    }
}

fn remarks(identity: &Identity, found: &Capabilities, known: Option<&Model>) -> Vec<String> {
    let mut remarks = vec!["Found by `espalier enrol`, by writing to one switch and reading back. Probed:".to_owned()];
    let mut say = |text: String| remarks.push(format!("  {text}"));
    say(format!("hybrid ports: {}", found.hybrid_ports.why));
    say(format!("filtering tables: {}", found.independent_vlan_learning.why));
    let end = |end: End, option: &str| match end {
        End::Full => "and not one more".to_owned(),
        End::Bound => format!("at least: more were not asked for ({option})"),
    };
    say(format!(
        "VLANs: {} {}; two are not a plan's: VLAN 1, and the mark of a deployment",
        found.vlans.held,
        end(found.vlans.end, "--max-vlans")
    ));
    if let Some(stated) = identity.vlans_stated {
        say(format!("       it says itself that it holds {stated}"));
    }
    say(format!("static entries: {} {}", found.statics.held, end(found.statics.end, "--max-entries")));
    say(match &found.pause {
        Some(verdict) => format!("PAUSE: {}", verdict.why),
        None => "PAUSE: cannot be probed here".to_owned(),
    });
    if let Some(classes) = identity.pfc_classes {
        say(format!("priority flow control: every port says (DCBX) that it has {classes} classes; none was tried"));
    }
    if identity.learned_discards > 0 {
        say(format!(
            "all entries: it had no room for an address {} times since it started, and knows {} now; how many fit cannot \
             be asked",
            identity.learned_discards, identity.learned
        ));
    }
    remarks.push(match (known, identity.pfc_classes) {
        (Some(known), _) => format!("Everything else is what is believed of {}.", known.name),
        (None, None) => "Everything else is not known; priority flow control is taken to be absent.".to_owned(),
        (None, Some(_)) => "Everything else is not known.".to_owned(),
    });
    remarks
}

/// A model that two switches of one make both keep to: of every fact the weaker.
#[must_use]
pub fn weakest(one: &Model, other: &Model) -> Model {
    Model {
        vlans_max: one.vlans_max.min(other.vlans_max),
        static_entries_max: one.static_entries_max.min(other.static_entries_max),
        total_entries_max: one.total_entries_max.min(other.total_entries_max),
        hybrid_ports: one.hybrid_ports && other.hybrid_ports,
        independent_vlan_learning: one.independent_vlan_learning && other.independent_vlan_learning,
        pause: one.pause && other.pause,
        pfc_classes: one.pfc_classes.min(other.pfc_classes),
        blocks_floods: one.blocks_floods.and(other.blocks_floods),
        storm_control: one.storm_control && other.storm_control,
        lags_max: one.lags_max.into_iter().chain(other.lags_max).min(),
        ports: if one.ports == other.ports { one.ports.clone() } else { PortNames::Any },
        ..one.clone()
    }
}

/// What a plan may ask of a model, in the words of `espalier plan`.
pub fn advice(model: &Model) -> Vec<String> {
    if !model.independent_vlan_learning {
        return vec!["no plan: its VLANs share a filtering table, so they cannot route".to_owned()];
    }
    let mut advice = vec![match model.hybrid_ports {
        true => "--tagging switch, or any other".to_owned(),
        false => {
            "--tagging source, destination, source-destination or pair: hosts tag, since a port is untagged in one \
                  VLAN alone"
                .to_owned()
        }
    }];
    advice.push(format!(
        "at most {} VLANs, and {} static entries on a switch",
        model.vlans_max, model.static_entries_max
    ));
    advice.push(match (model.pause, model.pfc_classes) {
        (true, 0) => "--flow-control pause or none".to_owned(),
        (false, 0) => "--flow-control none".to_owned(),
        (true, classes) => format!("--flow-control pause, none, or pfc=1 to pfc={classes}"),
        (false, classes) => format!("--flow-control none, or pfc=1 to pfc={classes}"),
    });
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_bounds_of_lags_the_lower_one_holds_and_a_bound_holds_where_one_switch_has_none() {
        let [none, four, eight] =
            [None, Some(4), Some(8)].map(|lags_max| Model { lags_max, ..(*Model::generic()).clone() });
        for one in [&none, &four, &eight] {
            for other in [&none, &four, &eight] {
                let expect = if [one.lags_max, other.lags_max].contains(&Some(4)) {
                    Some(4)
                } else {
                    one.lags_max.or(other.lags_max)
                };
                assert_eq!(weakest(one, other).lags_max, expect, "{:?} and {:?}", one.lags_max, other.lags_max);
            }
        }
        assert_eq!(weakest(&four, &four), four);
    }
}
