//! The tables of `docs/devices.md` are those of the models and drivers, and that of `docs/quirks.md` is the quirks'; `BLESS=1 cargo test -p drivers --test docs` rewrites them.

use std::{fmt::Write, fs, path::Path};

use bridge_mib::quirks::{Learned, QUIRKS, Quirk};
use dialects::Target;
use fabric::{Basis, FloodSet, Model};

#[test]
fn the_tables_are_up_to_date() {
    judge("devices.md", |text| between(&between(text, "drivers", &drivers()), "models", &models()));
    judge("quirks.md", |text| between(text, "quirks", &quirks()));
}

fn judge(page: &str, fresh: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs").join(page);
    let text = fs::read_to_string(&path).expect("the page");
    let fresh = fresh(&text);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, fresh).expect("the page can be written");
    } else {
        assert!(text == fresh, "docs/{page} is not up to date: BLESS=1 cargo test -p drivers --test docs");
    }
}

fn quirks() -> String {
    let mut table =
        String::from("| quirk | seen at | what they do | what is done | learned from |\n|---|---|---|---|---|\n");
    for Quirk { name, seen_at, does, answer, learned } in QUIRKS {
        let source = match learned {
            Learned::Recordings => "recordings",
            Learned::Guide => "MIB or guide",
        };
        writeln!(table, "| `{name}` | {seen_at} | {does} | {answer} | {source} |").expect("a string");
    }
    table
}

/// The text with what stands between two marks replaced.
fn between(text: &str, mark: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- end of {mark} -->"));
    let (head, rest) = text.split_once(&begin).expect("the mark");
    let (_, tail) = rest.split_once(&end).expect("the end");
    format!("{head}{begin}{table}{end}{tail}")
}

fn drivers() -> String {
    let mut table = String::from(
        "| target | driver | hosts may leave tagging to it | blocks floods | storm control | turns LLDP on |\n|---|---|---|---|---|---|\n",
    );
    for &target in Target::ALL {
        let mark = |yes: bool| if yes { "yes" } else { "no" };
        let hybrid = mark(target.has_hybrid_ports());
        let blocks = floods(target.blocks_floods());
        let (storm, lldp) = (mark(target.has_storm_control()), mark(target.has_lldp()));
        writeln!(table, "| `{target}` | {} | {hybrid} | {blocks} | {storm} | {lldp} |", target.basis().word())
            .expect("a string");
    }
    table
}

/// Kinds of floods, in few words.
fn floods(kinds: FloodSet) -> String {
    match kinds {
        FloodSet::NONE => "no".to_owned(),
        FloodSet::ALL => "all".to_owned(),
        some => some.to_string().replace(',', ", "),
    }
}

fn models() -> String {
    let mut table = String::from(
        "| model | VLANs | static entries | all entries | hybrid ports | PAUSE | PFC classes | blocks floods | storm control | speaks |\n",
    );
    table.push_str("|---|---|---|---|---|---|---|---|---|---|\n");
    for model in Model::built_in() {
        let sign = |fact: &str| match model.basis_of(fact) {
            Basis::Tested => " ✓",
            Basis::Probed => " ᵖ",
            Basis::Manual => " ᵐ",
            Basis::Untested => "",
        };
        let mark = |yes: bool| if yes { "yes" } else { "no" };
        writeln!(
            table,
            "| `{}` | {}{} | {}{} | {}{} | {}{} | {}{} | {}{} | {}{} | {}{} | {} |",
            model.name,
            model.vlans_max,
            sign("max-vlans"),
            model.static_entries_max,
            sign("static-macs"),
            model.total_entries_max,
            sign("total-macs"),
            mark(model.hybrid_ports),
            sign("hybrid-ports"),
            mark(model.pause),
            sign("pause"),
            model.pfc_classes,
            sign("pfc-classes"),
            floods(model.blocks_floods),
            if model.blocks_floods.is_empty() { "" } else { sign("blocks-floods") },
            mark(model.storm_control),
            if model.storm_control { sign("storm-control") } else { "" },
            model.syntax.as_deref().unwrap_or("nothing that a driver writes"),
        )
        .expect("a string");
    }
    table
}

#[test]
fn every_model_speaks_a_language_that_there_is() {
    for model in Model::built_in() {
        if let Some(syntax) = &model.syntax {
            assert!(syntax.parse::<Target>().is_ok(), "{}: {syntax}", model.name);
            let target: Target = syntax.parse().expect("a target");
            assert_eq!(target.has_hybrid_ports(), model.hybrid_ports, "{}", model.name);
            let unsaid = model.blocks_floods.without(target.blocks_floods());
            assert!(unsaid.is_empty(), "{}: {unsaid}", model.name);
            assert!(!model.storm_control || target.has_storm_control(), "{}", model.name);
        }
    }
}
