//! A Linux bridge whose state is kept in files, which a program of the system reads when the machine starts.
//!
//! ```text
//!   full         s0/10-espalier.netdev  s0/20-swp1.network  …         every file
//!   difference   2-fill/s0/20-swp1.network  2-fill/s0/change.sh       files that change, and what is to be done
//! ```
//! `change.sh` changes the running bridge first, by the commands of [`super::linux_bridge`] and in their order; then it puts
//! files into place and takes away those that nobody needs; then it tells the program, which finds everything as its files
//! say and touches nothing. A port that the plan names no longer is shut, loses its VLANs and its file; it stays a port of the
//! bridge until the next start, since networkd puts one back that is taken out before the file is forgotten.
//! The programs alone would not do: networkd before version 257 never takes a port out of a VLAN,
//! no version removes entries, and both work on their own time; ifupdown2 takes VLANs away and gives them back when a PVID
//! moves, and removes no entries either.
//!
//! A difference is read as both: what the commands make of the running state, and what the files say once they are in
//! place. They must agree, for the one counts now and the other after the next start.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    io::Write as _,
};

use fabric::VlanId;

use super::{
    FileErrors, Output, TextFile,
    kernel_bridge::Ports,
    linux_bridge::{self, Script},
};
use crate::text::{LineError, interpret};
use switch_model::{
    SwitchConfig,
    change::{Change, Stage},
};

/// The script of a difference.
const SCRIPT: &str = "change.sh";

/// A file of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// Its name.
    pub(super) name: String,
    /// What it says.
    pub(super) text: String,
}

/// A program that keeps a bridge's state in files.
pub(super) trait Keeper {
    /// The VLAN that the bridge puts new ports into.
    fn default_pvid(&self) -> Option<VlanId>;
    /// Every file of a state of the first so many ports.
    fn files(&self, config: &SwitchConfig, ports: usize) -> Vec<Kept>;
    /// The folder that a file belongs into.
    fn place(&self, name: &str) -> &'static str;
    /// The command by which a program learns of a file.
    fn told(&self, name: &str) -> Option<&'static str>;
    /// A condition that must hold before anything is done.
    fn guard(&self) -> Option<&'static str>;
    /// Reads files in the place of those that said `config`.
    fn read(&self, read: &Reading<'_>, config: &mut SwitchConfig) -> Result<(), FileErrors>;
}

/// Files that are to be read.
pub(super) struct Reading<'a> {
    /// The files, with their positions.
    pub(super) files: Vec<(usize, TextFile<'a>)>,
    /// Names of files that are no more.
    pub(super) removed: BTreeSet<String>,
    /// Whether these files are all there are.
    pub(super) extent: Extent,
}

/// Whether files are all that a switch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// A full configuration.
    Whole,
    /// The files that change.
    Part,
}

/// The lines that enter static entries, for `bridge -batch`.
pub(super) fn entries(config: &SwitchConfig) -> String {
    let line = |(&(vlan, mac), &slot): (&(VlanId, fabric::Mac), &switch_model::Slot)| {
        let name = &config.port(slot).name;
        format!("fdb replace {mac} dev {name} master static vlan {vlan}\n")
    };
    config.entries.iter().map(line).collect()
}

/// Reads a file of static entries in the place of all there were.
pub(super) fn read_entries(text: &str, ports: &mut Ports<'_>) -> Result<(), Vec<LineError>> {
    ports.config.entries.clear();
    interpret(text, "#", |words| ports.bridge(words))
}

/// A file's name without its folders.
pub(super) fn base(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, base)| base)
}

/// Writes all files, or those that change and the script.
pub(super) fn write(keeper: &dyn Keeper, change: &Change<'_>, out: &mut Output<'_>) -> io::Result<()> {
    let folder = out.stem.to_owned();
    let after = keeper.files(change.after, change.kept);
    let before = match change.stage {
        Stage::Step => keeper.files(change.before, change.before.ports.len()),
        Stage::Prepare | Stage::Open => Vec::new(),
    };
    let changed: Vec<&Kept> = after.iter().filter(|file| !before.contains(file)).collect();
    for file in &changed {
        out.begin(&format!("{folder}/{}", file.name), "#")?;
        out.write_all(file.text.as_bytes())?;
    }
    if change.stage != Stage::Step {
        return Ok(());
    }
    let stays = |old: &&Kept| after.iter().any(|file| file.name == old.name);
    let gone: Vec<&Kept> = before.iter().filter(|old| !stays(old)).collect();
    out.begin(&format!("{folder}/{SCRIPT}"), "#")?;
    if let Some(guard) = keeper.guard().filter(|_| !changed.is_empty()) {
        writeln!(out, "{guard}")?;
    }
    linux_bridge::write(change, keeper.default_pvid(), out)?;
    if !changed.is_empty() {
        writeln!(out, "cd -- \"$(dirname -- \"$0\")\"")?;
    }
    let places: BTreeSet<&str> = changed.iter().map(|file| keeper.place(&file.name)).collect();
    for place in places {
        let own = changed.iter().filter(|file| keeper.place(&file.name) == place);
        let names: Vec<&str> = own.map(|file| file.name.as_str()).collect();
        writeln!(out, "install -m 644 {} {place}", names.join(" "))?;
    }
    for file in &gone {
        writeln!(out, "rm -f {}{}", keeper.place(&file.name), file.name)?;
    }
    let told: BTreeSet<&str> = changed.iter().chain(&gone).filter_map(|file| keeper.told(&file.name)).collect();
    for command in told {
        writeln!(out, "{command}")?;
    }
    Ok(())
}

/// Reads all files, or those that change and the script.
pub(super) fn read(keeper: &dyn Keeper, files: &[TextFile<'_>], config: &mut SwitchConfig) -> Result<(), FileErrors> {
    let is_script = |file: &TextFile<'_>| base(file.name) == SCRIPT;
    let (scripts, kept): (Vec<_>, Vec<_>) = files.iter().copied().enumerate().partition(|(_, file)| is_script(file));
    let [(at, script)] = scripts[..] else {
        return keeper.read(&Reading { files: kept, removed: BTreeSet::new(), extent: Extent::Whole }, config);
    };
    let wrong = |line, message| vec![(at, LineError { line, message })];
    let mut said = config.clone();
    let mut done = Done::default();
    let ports = Ports::new(true, keeper.default_pvid(), config);
    let mut commands = Script::new(ports);
    let outcome = interpret(script.text, "#", |words| {
        if commands.in_batch() { commands.line(words) } else { done.line(keeper, words, &mut commands) }
    });
    let end = commands.end(script.text);
    outcome.and(end).map_err(|errors| errors.into_iter().map(|error| (at, error)).collect::<FileErrors>())?;
    let names: BTreeSet<&str> = kept.iter().map(|(_, file)| base(file.name)).collect();
    if let Some(name) = names.iter().find(|name| !done.installed.contains_key(**name)) {
        return Err(wrong(1, format!("{name} is put nowhere")));
    }
    for (name, place) in &done.installed {
        if !names.contains(name.as_str()) {
            return Err(wrong(1, format!("there is no file {name} to put into {place}")));
        }
        if *place != keeper.place(name) {
            return Err(wrong(1, format!("nobody reads {name} in {place}: it belongs into {}", keeper.place(name))));
        }
    }
    for name in done.installed.keys().chain(&done.removed) {
        if let Some(command) = keeper.told(name).filter(|command| !done.told.contains(*command)) {
            return Err(wrong(1, format!("nobody is told of {name}: {command:?} is missing")));
        }
    }
    if !done.guarded && keeper.guard().is_some() && !done.installed.is_empty() {
        return Err(wrong(1, "the condition that keeps ports up is missing".to_owned()));
    }
    keeper.read(&Reading { files: kept, removed: done.removed, extent: Extent::Part }, &mut said)?;
    agree(config, &said).map_err(|message| wrong(1, message))
}

/// What a script does other than to the bridge.
#[derive(Default)]
struct Done {
    commands: usize,
    guarded: bool,
    /// Whether the first failure ends it.
    strict: bool,
    entered: bool,
    /// Files that are put into place, and where.
    installed: BTreeMap<String, String>,
    removed: BTreeSet<String>,
    /// Commands by which programs learned of what was done before.
    told: BTreeSet<String>,
}

impl Done {
    fn line(&mut self, keeper: &dyn Keeper, words: &[&str], script: &mut Script<'_>) -> Result<(), String> {
        self.commands += 1;
        let line = words.join(" ");
        match words {
            _ if keeper.guard() == Some(line.as_str()) => {
                if self.commands > 1 {
                    return Err("the condition comes too late: it must be the first command".to_owned());
                }
                self.guarded = true;
            }
            ["cd", "--", ..] if line == "cd -- \"$(dirname -- \"$0\")\"" => self.entered = true,
            ["set", "-eu"] => self.strict = true,
            ["install", "-m", "644", names @ .., place] => {
                if !self.strict {
                    return Err("files must not change if the bridge refused: set -eu is missing".to_owned());
                }
                if !self.entered {
                    return Err("the files stand beside the script, and it has not gone there".to_owned());
                }
                self.told.clear();
                self.installed.extend(names.iter().map(|name| ((*name).to_owned(), (*place).to_owned())));
            }
            ["rm", "-f", path] => {
                let name = base(path);
                if *path != format!("{}{name}", keeper.place(name)) {
                    return Err(format!("{path} is no file of this switch"));
                }
                self.told.clear();
                self.removed.insert(name.to_owned());
            }
            ["networkctl" | "systemctl" | "ifreload", ..] => {
                self.told.insert(line);
            }
            _ => return script.line(words),
        }
        Ok(())
    }
}

/// Whether a bridge that runs and what is said of it are the same.
fn agree(running: &SwitchConfig, said: &SwitchConfig) -> Result<(), String> {
    const WHY: &str = "the files, which count when the machine starts next, say something else than the commands";
    if let Some((port, _)) = running.ports.iter().zip(&said.ports).find(|(port, said)| port != said) {
        return Err(format!("port {}: {WHY}", port.name));
    }
    if let Some((vlan, mac)) = (running.entries.iter().find(|(key, slot)| said.entries.get(*key) != Some(*slot)))
        .or_else(|| said.entries.iter().find(|(key, _)| !running.entries.contains_key(*key)))
        .map(|(key, _)| key)
    {
        return Err(format!("the entry for {mac} in VLAN {vlan}: {WHY}"));
    }
    if running.spanning_tree != said.spanning_tree {
        return Err(format!("spanning tree: {WHY}"));
    }
    Ok(())
}
