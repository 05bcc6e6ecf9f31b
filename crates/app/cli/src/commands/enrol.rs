//! `espalier enrol`: what switches really can do, as model files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::IpAddr,
    path::Path,
    process::ExitCode,
};

use anyhow::{Context, Result};
use bridge_mib::objects::binding_text;
use controller::{Cleaned, FolderStore, Store as _, clean_switches, enrol_switches, fresh_number, rehearse_enrolment};
use drivers::credentials::Keyring;
use enrol::{Base, Capabilities, End, Enrolment, ProbeRequest, Room, advice, model_of, weakest};
use fabric::{Model, Models, format::model::write_model};

use super::{Output, interrupt::Interrupt, reach, say};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::{models, write_file},
};

pub(super) fn run(args: &cli::Enrol, output: Output) -> Result<ExitCode> {
    let keyring = reach::keyring(&args.reach)?;
    if args.clean {
        return clean_up(args, &keyring, output);
    }
    // One's own models may be those of the folder that is written to.
    let known = models(&args.own, &args.output.join("any"))?;
    let known = if args.own.models.is_none() { models_in(&args.output, known)? } else { known };
    if let Some(name) = &args.base {
        known.by_name(name).ok_or_else(|| bad_input(format!("--base: there is no model {name}")))?;
    }
    let store = FolderStore::shared(&args.state);
    let kept: BTreeSet<IpAddr> = store.ledgers()?.iter().map(|ledger| ledger.address.ip()).collect();
    let unfinished: Vec<String> =
        args.addresses.iter().filter(|address| kept.contains(address)).map(IpAddr::to_string).collect();
    if !unfinished.is_empty() {
        return Err(bad_input(format!(
            "{} holds the ledger of an interrupted enrolment of {}; clean up first: espalier enrol --clean",
            args.state.display(),
            unfinished.join(", ")
        )));
    }
    if args.dry_run {
        return dry_run(args, &keyring, output);
    }
    // The second Ctrl-C ends the program; the ledgers stay for --clean.
    let interrupt = Interrupt::watch()?;
    let results = enrol_switches(
        &args.addresses,
        &request(args),
        (&keyring, &reach::options(&args.reach)),
        &store,
        &interrupt.token(),
        &|address, step| eprintln!("{address}: {step}"),
    );
    report(args, &known, results, output)
}

/// The models of a folder, if there is one, before the others.
fn models_in(folder: &Path, others: Models) -> Result<Models> {
    if !folder.is_dir() {
        return Ok(others);
    }
    models(&cli::OwnModels { models: Some(folder.to_owned()) }, Path::new("-"))
}

fn request(args: &cli::Enrol) -> ProbeRequest {
    ProbeRequest {
        ports: args.ports.clone(),
        vlans_max: args.max_vlans,
        entries_max: args.max_entries,
        nonce: fresh_number() as u32,
    }
}

/// Prints every SET of a probe of switches that take everything.
fn dry_run(args: &cli::Enrol, keyring: &Keyring, output: Output) -> Result<ExitCode> {
    let mut failed = false;
    let mut all = Vec::new();
    for &address in &args.addresses {
        // The number is drawn when it is done.
        let request = ProbeRequest { nonce: 0, ..request(args) };
        let rehearsed = rehearse_enrolment(address, &request, (keyring, &reach::options(&args.reach)));
        match rehearsed {
            Ok((enrolment, written)) => {
                let sets: Vec<String> =
                    (written.iter()).map(|set| set.iter().map(binding_text).collect::<Vec<_>>().join("  ")).collect();
                if output == Output::Person {
                    say!("{address}: {}", enrolment.identity.description);
                    say!("  at {}: {} SETs if it takes everything", enrolment.ports.join(" and "), sets.len());
                    for set in &sets {
                        say!("  set {set}");
                    }
                }
                all.push(serde_json::json!({ "switch": address, "ports": enrolment.ports, "sets": sets }));
            }
            Err(error) => {
                failed = true;
                eprintln!("espalier: {address}: {error}");
            }
        }
    }
    if output == Output::Json {
        say!("{}", serde_json::json!({ "rehearsed": all }));
    }
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// Prints what was found, and writes a model for every make.
fn report(
    args: &cli::Enrol,
    known: &Models,
    results: Vec<Result<Enrolment, String>>,
    output: Output,
) -> Result<ExitCode> {
    let mut failed = false;
    let mut found: BTreeMap<String, (Model, Vec<String>, Vec<IpAddr>)> = BTreeMap::new();
    let mut switches = Vec::new();
    for (&address, result) in args.addresses.iter().zip(results) {
        let mut object = serde_json::json!({ "address": address });
        let enrolment = match result {
            Ok(enrolment) => enrolment,
            Err(error) => {
                failed = true;
                eprintln!("espalier: {address}: {error}");
                object["error"] = error.into();
                switches.push(object);
                continue;
            }
        };
        failed |= enrolment.found.is_err() || !enrolment.left.is_empty();
        let base = match &args.base {
            Some(name) => known.by_name(name),
            None => enrolment.identity.object_id.as_deref().and_then(|id| known.by_object_id(id)),
        };
        if output == Output::Person {
            introduce(address, &enrolment, base.as_deref())?;
        }
        object["description"] = enrolment.identity.description.clone().into();
        object["object_id"] = enrolment.identity.object_id.clone().into();
        object["sets"] = enrolment.sets.into();
        match &enrolment.found {
            Err(trouble) => {
                eprintln!("espalier: {address}: {trouble}; no model is written of it");
                object["error"] = trouble.to_string().into();
            }
            Ok(capabilities) => {
                let name = name_of(args, &enrolment, base.as_deref());
                let base = base.as_deref().map_or(Base::Nothing, Base::Known);
                let (model, remarks) = model_of(&name, &enrolment.identity, capabilities, base);
                if output == Output::Person {
                    tell(capabilities)?;
                }
                object["model"] = name.clone().into();
                found
                    .entry(name)
                    .and_modify(|(all, _, addresses)| {
                        *all = weakest(all, &model);
                        addresses.push(address);
                    })
                    .or_insert((model, remarks, vec![address]));
            }
        }
        let left: Vec<String> = enrolment.left.iter().map(|rest| format!("{address}: NOT CLEANED: {rest}")).collect();
        let remarks = enrolment.remarks.iter().map(|remark| format!("{address}: {remark}"));
        left.iter().cloned().chain(remarks).for_each(|line| eprintln!("espalier: {line}"));
        object["left"] = enrolment.left.clone().into();
        switches.push(object);
    }
    let mut written = Vec::new();
    for (name, (model, mut remarks, addresses)) in found {
        if addresses.len() > 1 {
            remarks
                .push(format!("The weakest of {} switches, of which the lines above are the first.", addresses.len()));
        }
        let path = args.output.join(format!("{name}.toml"));
        let text = write_model(&model, &remarks);
        fs::create_dir_all(&args.output).with_context(|| args.output.display().to_string())?;
        write_file(&path, |out| out.write_all(text.as_bytes()))?;
        if output == Output::Person {
            say!("model {name}, in {}: a plan may ask for", path.display());
            for line in advice(&model) {
                say!("  {line}");
            }
        }
        written.push(serde_json::json!({
            "model": name, "file": path, "advice": advice(&model), "switches": addresses,
            "max_vlans": model.vlans_max, "static_macs": model.static_entries_max, "hybrid_ports": model.hybrid_ports,
            "independent_vlan_learning": model.independent_vlan_learning, "pause": model.pause,
        }));
    }
    if output == Output::Json {
        say!("{}", serde_json::json!({ "switches": switches, "models": written }));
    }
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn introduce(address: IpAddr, enrolment: &Enrolment, base: Option<&Model>) -> Result<()> {
    let identity = &enrolment.identity;
    let unnamed = "which does not say what it is";
    let said = if identity.description.is_empty() { unnamed } else { &identity.description };
    say!("{address}: {said}");
    let make = identity.object_id.as_deref().unwrap_or("of no make");
    let bridge = identity.address.map_or_else(|| "of no address".to_owned(), |mac| mac.to_string());
    say!(
        "  is              {make}, bridge {bridge}, {} ports; known as {}",
        identity.ports.len(),
        base.map_or("nothing", |m| &m.name)
    );
    say!("  was probed      at {}, by {} SETs", enrolment.ports.join(" and "), enrolment.sets);
    Ok(())
}

fn tell(found: &Capabilities) -> Result<()> {
    let word = |able: bool| if able { "yes" } else { "no" };
    let (hybrid, tables) = (&found.hybrid_ports, &found.independent_vlan_learning);
    say!("  hybrid ports    {}: {}", word(hybrid.able), hybrid.why);
    say!("  a table a VLAN  {}: {}", word(tables.able), tables.why);
    match &found.pause {
        Some(pause) => say!("  PAUSE           {}: {}", word(pause.able), pause.why),
        None => say!("  PAUSE           not known: it cannot be probed here"),
    }
    let room = |room: &Room, option: &str| match room.end {
        End::Full => format!("{}", room.held),
        End::Bound => format!("{} at least; {option} asks for more", room.held),
    };
    say!("  VLANs           {}", room(&found.vlans, "--max-vlans"));
    say!("  static entries  {}", room(&found.statics, "--max-entries"));
    let whole = if found.whole_rows { "" } else { "; a VLAN is made bare, and filled by a second message" };
    say!("  messages        {} rows written, {} read at once{whole}", found.statics.batch, found.repetitions);
    Ok(())
}

/// Longest name that is made of what a switch says.
const NAME_LEN_MAX: usize = 40;

/// What the model is to be called: as it was told, as it is known, or after what the switch says.
fn name_of(args: &cli::Enrol, enrolment: &Enrolment, base: Option<&Model>) -> String {
    if let Some(name) = args.name.as_deref().or(base.map(|base| base.name.as_str())) {
        return name.to_owned();
    }
    let words = enrolment.identity.description.to_lowercase();
    let words: Vec<&str> = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut name = String::new();
    for word in words {
        if name.len() + word.len() >= NAME_LEN_MAX {
            break;
        }
        name.push_str(if name.is_empty() { "" } else { "-" });
        name.push_str(word);
    }
    if name.is_empty() { "enrolled".to_owned() } else { name }
}

/// Takes back what interrupted probes have left: of the switches that are named, or of all that the folder knows.
fn clean_up(args: &cli::Enrol, keyring: &Keyring, output: Output) -> Result<ExitCode> {
    let store = FolderStore::shared(&args.state);
    let cleaned = clean_switches(&args.addresses, (keyring, &reach::options(&args.reach)), &store)?;
    for Cleaned { switch, left } in &cleaned {
        match (output, left.is_empty()) {
            (Output::Person, true) => say!("{switch}: nothing of the probe is left"),
            (Output::Person, false) => {
                left.iter().for_each(|rest| eprintln!("espalier: {switch}: NOT CLEANED: {rest}"))
            }
            (Output::Json, _) => {}
        }
    }
    match output {
        Output::Json => {
            let object = |Cleaned { switch, left }: &Cleaned| serde_json::json!({ "switch": switch, "left": left });
            say!("{}", serde_json::json!({ "cleaned": cleaned.iter().map(object).collect::<Vec<_>>() }));
        }
        Output::Person if cleaned.is_empty() => {
            say!("nothing to clean: {} holds no ledger of a probe", args.state.display())
        }
        Output::Person => {}
    }
    let failed = cleaned.iter().any(|cleaned| !cleaned.left.is_empty());
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}
