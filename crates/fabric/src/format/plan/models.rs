//! The capabilities that a plan was made for, as data inside it: whoever reads the plan needs no other file, and one that
//! was made for other limits than a model has now still says which.

use super::{
    json::{Located, Read},
    lines::{Quoted, push_field},
};
use crate::{Basis, FloodSet, Model, Models, PortNames, format::model::FACTS};

const FIELDS: [&str; 17] = [
    "name",
    "description",
    "basis",
    "basis_of",
    "object_ids",
    "ports",
    "max_vlans",
    "static_macs",
    "total_macs",
    "hybrid_ports",
    "independent_vlan_learning",
    "pause",
    "pfc_classes",
    "blocks_floods",
    "storm_control",
    "max_lags",
    "speaks",
];

/// A model as a line.
pub(super) fn model_line(model: &Model) -> String {
    let mut text = String::new();
    let list = |words: &[String]| words.iter().map(|word| escaped(word)).collect::<Vec<_>>().join(",");
    push_field(&mut text, "name", Quoted(&model.name));
    push_field(&mut text, "description", escaped(&model.description));
    push_field(&mut text, "basis", Quoted(model.basis.word()));
    let mut bases = String::new();
    for (fact, basis) in &model.basis_of {
        push_field(&mut bases, fact, Quoted(basis.word()));
    }
    push_field(&mut text, "basis_of", format_args!("{{{bases}}}"));
    push_field(&mut text, "object_ids", format_args!("[{}]", list(&model.object_ids)));
    if let PortNames::Listed(names) = &model.ports {
        push_field(&mut text, "ports", format_args!("[{}]", list(names)));
    }
    push_field(&mut text, "max_vlans", model.vlans_max);
    push_field(&mut text, "static_macs", model.static_entries_max);
    push_field(&mut text, "total_macs", model.total_entries_max);
    push_field(&mut text, "hybrid_ports", model.hybrid_ports);
    push_field(&mut text, "independent_vlan_learning", model.independent_vlan_learning);
    push_field(&mut text, "pause", model.pause);
    push_field(&mut text, "pfc_classes", model.pfc_classes);
    if !model.blocks_floods.is_empty() {
        push_field(&mut text, "blocks_floods", Quoted(model.blocks_floods));
    }
    if model.storm_control {
        push_field(&mut text, "storm_control", true);
    }
    if let Some(lags_max) = model.lags_max {
        push_field(&mut text, "max_lags", lags_max);
    }
    let mut spoken = String::new();
    for (key, value) in [("syntax", &model.syntax), ("save", &model.save)] {
        if let Some(value) = value {
            push_field(&mut spoken, key, escaped(value));
        }
    }
    push_field(&mut text, "speaks", format_args!("{{{spoken}}}"));
    format!("{{{text}}}")
}

/// The models of a plan.
pub(super) fn models(at: &Located<'_>) -> Read<Models> {
    let models = at.items()?.map(|at| model(&at)).collect::<Read<Vec<_>>>()?;
    if models.windows(2).any(|pair| pair[0].name >= pair[1].name) {
        return Err(at.error("models ascend by name, one each"));
    }
    Ok(Models::only(models.into_iter().map(Into::into)))
}

fn model(at: &Located<'_>) -> Read<Model> {
    at.only(&FIELDS)?;
    let texts = |at: Located<'_>| at.items()?.map(|at| Ok(at.text()?.to_owned())).collect::<Read<Vec<String>>>();
    let spoken = at.field("speaks")?;
    spoken.only(&["syntax", "save"])?;
    let word = |name| Ok(spoken.optional(name)?.map(|at| at.text()).transpose()?.map(str::to_owned));
    let bases_at = at.field("basis_of")?;
    bases_at.only(&FACTS)?;
    let mut basis_of =
        bases_at.fields()?.map(|(fact, at)| Ok((fact.to_owned(), basis(&at)?))).collect::<Read<Vec<_>>>()?;
    basis_of.sort();
    let model = Model {
        name: at.field("name")?.text()?.to_owned(),
        description: at.field("description")?.text()?.to_owned(),
        basis: basis(&at.field("basis")?)?,
        basis_of,
        object_ids: texts(at.field("object_ids")?)?,
        syntax: word("syntax")?,
        save: word("save")?,
        ports: at.optional("ports")?.map(texts).transpose()?.map_or(PortNames::Any, PortNames::Listed),
        vlans_max: at.field("max_vlans")?.whole()?,
        static_entries_max: at.field("static_macs")?.whole()?,
        total_entries_max: at.field("total_macs")?.whole()?,
        hybrid_ports: at.field("hybrid_ports")?.truth()?,
        independent_vlan_learning: at.field("independent_vlan_learning")?.truth()?,
        pause: at.field("pause")?.truth()?,
        pfc_classes: at.field("pfc_classes")?.whole()?,
        blocks_floods: at.optional("blocks_floods")?.map(|at| at.parsed()).transpose()?.unwrap_or(FloodSet::NONE),
        storm_control: at.optional("storm_control")?.map(|at| at.truth()).transpose()?.unwrap_or(false),
        lags_max: at.optional("max_lags")?.map(|at| at.whole()).transpose()?,
    };
    model.validate().map_err(|message| at.error(message))?;
    Ok(model)
}

fn basis(at: &Located<'_>) -> Read<Basis> {
    let word = at.text()?;
    Basis::ALL
        .into_iter()
        .find(|basis| basis.word() == word)
        .ok_or_else(|| at.error("a fact is tested, probed, manual or untested"))
}

/// A text as JSON, whatever is in it.
fn escaped(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
