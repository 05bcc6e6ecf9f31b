//! A whole plan in the switches' languages, one switch in memory at a time.
//!
//! ```text
//!   full         s0.cfg  s1.cfg …                         from the factory's state: drained, set up, then opened
//!   difference   1-retract/s0.cfg  2-fill/s0.cfg …        from the previous plan's, phase by phase
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use fabric::{Admin, Basis, DeviceIntent, Plan, PortRole, SwitchId, VlanSet};

use crate::{
    Folder, Part, RenderError, Target,
    dialect::{Full, Output},
};
use switch_model::{
    Phase, Reach, SwitchConfig, align,
    change::{Change, Stage},
    phases,
};

/// Which language each switch gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetChoice {
    /// The one that its model speaks.
    Auto,
    /// This one, all of them.
    Named(Target),
}

/// A plan that switches run now.
#[derive(Clone, Copy, Debug)]
pub struct Difference<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Its digest.
    pub digest: &'a str,
}

/// What to render.
#[derive(Clone, Copy, Debug)]
pub struct RenderRequest<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Its digest, which every file states.
    pub digest: &'a str,
    /// The languages.
    pub target: TargetChoice,
    /// One switch only; all of them if none.
    pub switch: Option<&'a str>,
    /// The plan that the switches run; none for full configurations.
    pub since: Option<Difference<'a>>,
}

/// Renders a plan and says which files it wrote.
///
/// Cost: linear in what is written; memory is one switch's tables.
///
/// # Errors
/// [`RenderError`], before anything of the switch that it is about is written.
pub fn render(request: &RenderRequest<'_>, folder: &mut dyn Folder) -> Result<Vec<Part>, RenderError> {
    let topology = &request.plan.topology;
    let switches: Vec<SwitchId> = match request.switch {
        None => topology.switch_ids().collect(),
        Some(name) => {
            vec![topology.find_switch(name).ok_or_else(|| RenderError::UnknownSwitch { name: name.to_owned() })?]
        }
    };
    let surviving: VlanSet = request.plan.trees.iter().map(|tree| tree.vlan).collect();
    // Everything is refused before anything is written.
    let targets: Vec<Target> =
        switches.iter().map(|switch| target(request.plan, *switch, request.target)).collect::<Result<_, _>>()?;
    let mut folder = Recorder { inner: folder, file: String::new(), files: Vec::new() };
    let mut parts = Vec::new();
    for (&switch, &target) in switches.iter().zip(&targets) {
        let name = &topology.switch(switch).name;
        let intent = &request.plan.devices[switch.index()];
        let goal = SwitchConfig::of_intent(topology, intent);
        target.refuse(name, &goal)?;
        refuse_classes(target, name, intent, &goal)?;
        let job = Job { request, switch, target };
        let previous = request.since.and_then(|since| {
            let old = since.plan.topology.find_switch(name)?;
            Some((since, &since.plan.devices[old.index()]))
        });
        match previous {
            None if request.since.is_some() => {
                // A switch that the previous plan does not know is set up in full before any other leads to it.
                let stem = format!("{}/{}", Phase::Retract.folder(), file_name(name));
                job.full(&goal, &stem, Some(Phase::Retract), &mut folder, &mut parts)?;
            }
            None => job.full(&goal, &file_name(name), None, &mut folder, &mut parts)?,
            Some((since, intent)) => job.difference(since, intent, goal, &surviving, &mut folder, &mut parts)?,
        }
    }
    Ok(parts)
}

/// Refuses a priority for untagged frames: no language here has words for it.
fn refuse_classes(target: Target, switch: &str, intent: &DeviceIntent, goal: &SwitchConfig) -> Result<(), RenderError> {
    match intent.ports.iter().position(|port| port.untagged_class != 0) {
        None => Ok(()),
        Some(port) => Err(RenderError::Inexpressible {
            switch: switch.to_owned(),
            port: goal.ports[port].name.clone(),
            target: target.name(),
            what: "a priority for untagged frames, which tells their VLAN's lane".to_owned(),
            way_out: "let hosts tag: plan with --tagging source",
        }),
    }
}

/// Writes the full configuration of one switch, without a head.
///
/// # Errors
/// [`RenderError`].
pub fn write_full(target: Target, goal: &SwitchConfig, folder: &mut dyn Folder) -> Result<(), RenderError> {
    target.refuse("switch", goal)?;
    write_steps(target, &[], "switch", Steps::Full(goal), folder)
        .map_err(|source| RenderError::Write { file: "switch".to_owned(), source })
}

/// Writes what takes one switch from one state to another, without a head.
///
/// # Errors
/// [`RenderError`].
///
/// # Panics
/// If the two states do not have the same ports.
pub fn write_change(
    target: Target,
    before: &SwitchConfig,
    after: &SwitchConfig,
    folder: &mut dyn Folder,
) -> Result<(), RenderError> {
    assert_eq!(before.ports.len(), after.ports.len(), "both states are of one switch");
    target.refuse("switch", after)?;
    write_steps(target, &[], "switch", Steps::Difference(before, after, after.ports.len()), folder)
        .map_err(|source| RenderError::Write { file: "switch".to_owned(), source })
}

/// Writes what takes one switch from one state to another, the factory's VLAN 1 and spanning tree included, without a
/// head: what a plan may not ask, but a switch that gets back what it held.
///
/// # Errors
/// [`RenderError`].
///
/// # Panics
/// If the two states do not have the same ports.
pub fn write_transition(
    target: Target,
    before: &SwitchConfig,
    after: &SwitchConfig,
    folder: &mut dyn Folder,
) -> Result<(), RenderError> {
    assert_eq!(before.ports.len(), after.ports.len(), "both states are of one switch");
    target.refuse_ports("switch", after)?;
    write_steps(target, &[], "switch", Steps::Difference(before, after, after.ports.len()), folder)
        .map_err(|source| RenderError::Write { file: "switch".to_owned(), source })
}

/// What a file says.
#[derive(Clone, Copy)]
enum Steps<'a> {
    /// Everything.
    Full(&'a SwitchConfig),
    /// What takes one state to another, after which the switch has the first so many ports.
    Difference(&'a SwitchConfig, &'a SwitchConfig, usize),
}

/// Writes the files of one switch.
fn write_steps(
    target: Target,
    head: &[String],
    stem: &str,
    steps: Steps<'_>,
    folder: &mut dyn Folder,
) -> io::Result<()> {
    let dialect = target.dialect();
    let traits = dialect.traits();
    let mut out = Output { folder, stem, head };
    match traits.comment {
        Some(_) if traits.full == Full::AsState => {}
        Some(comment) => out.begin(&format!("{stem}.{}", traits.extension), comment)?,
        None => {
            out.begin(&format!("{stem}.txt"), "")?;
            out.folder.begin(&format!("{stem}.{}", traits.extension))?;
        }
    }
    let mut write = |before, after, stage, kept| dialect.write(&Change { before, after, stage, kept }, &mut out);
    match steps {
        Steps::Difference(before, after, kept) => write(before, after, Stage::Step, kept),
        Steps::Full(goal) => {
            let factory = target.factory(goal.ports.iter().map(|port| port.name.clone()).collect());
            let kept = goal.ports.len();
            if traits.full == Full::AsState {
                return write(&factory, goal, Stage::Prepare, kept);
            }
            let mut drained = goal.clone();
            drained.ports.iter_mut().for_each(|port| port.admin = Admin::Down);
            write(&factory, &drained, Stage::Prepare, kept)?;
            write(&drained, goal, Stage::Open, kept)
        }
    }
}

/// The language of a switch.
fn target(plan: &Plan, switch: SwitchId, choice: TargetChoice) -> Result<Target, RenderError> {
    let TargetChoice::Named(target) = choice else {
        let switch = plan.topology.switch(switch);
        let syntax = switch.model.syntax.as_deref();
        return syntax
            .and_then(|name| name.parse().ok())
            .ok_or_else(|| RenderError::NoSyntax { switch: switch.name.clone(), model: switch.model.name.clone() });
    };
    Ok(target)
}

/// One switch to be rendered.
struct Job<'a> {
    request: &'a RenderRequest<'a>,
    switch: SwitchId,
    target: Target,
}

impl Job<'_> {
    fn name(&self) -> &str {
        &self.request.plan.topology.switch(self.switch).name
    }

    fn full(
        &self,
        goal: &SwitchConfig,
        stem: &str,
        phase: Option<Phase>,
        folder: &mut Recorder<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<(), RenderError> {
        let head = self.head("full configuration, for a switch on which nothing is set up");
        self.write(&head, stem, Steps::Full(goal), folder)?;
        self.record(phase, folder, parts);
        Ok(())
    }

    fn difference(
        &self,
        since: Difference<'_>,
        intent: &DeviceIntent,
        goal: SwitchConfig,
        surviving: &VlanSet,
        folder: &mut Recorder<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<(), RenderError> {
        let own = goal.ports.len();
        let (before, after, reach) = self.both(since.plan, intent, goal);
        // Where ports have files, those of ports that the new plan does not know go with the last step.
        let forgets = self.target.dialect().traits().full == Full::AsState && own < after.ports.len();
        if before == after && !forgets {
            return Ok(());
        }
        self.target.refuse(self.name(), &before)?;
        let states = phases(&before, &after, &reach, surviving);
        // On the way a port may be untagged in two VLANs, which some languages cannot say.
        for state in &states {
            self.target.refuse_ports(self.name(), state).map_err(|refused| match refused {
                RenderError::Inexpressible { switch, port, target, what, .. } => {
                    let way_out = "render without --since, or let hosts tag: plan with --tagging source";
                    RenderError::Inexpressible { switch, port, target, what: format!("{what} on the way"), way_out }
                }
                other => other,
            })?;
        }
        self.check_room(&before, &states[1])?;
        let mut now = &before;
        for (phase, next) in Phase::ALL.into_iter().zip(&states) {
            let last = phase == Phase::Free;
            if now != next || (last && forgets) {
                let what = format!(
                    "difference since plan {}, phase {}: finish it on every switch before any begins the next",
                    since.digest,
                    phase.folder()
                );
                let stem = format!("{}/{}", phase.folder(), file_name(self.name()));
                let kept = if last { own } else { after.ports.len() };
                self.write(&self.head(&what), &stem, Steps::Difference(now, next, kept), folder)?;
                self.record(Some(phase), folder, parts);
            }
            now = next;
        }
        Ok(())
    }

    /// Both states of the switch with the same ports, those that only the previous plan knows last, and where they lead.
    fn both(
        &self,
        previous: &Plan,
        intent: &DeviceIntent,
        goal: SwitchConfig,
    ) -> (SwitchConfig, SwitchConfig, Vec<Reach>) {
        let before = SwitchConfig::of_intent(&previous.topology, intent);
        let known: BTreeSet<&str> = goal.ports.iter().map(|port| port.name.as_str()).collect();
        let mut names: Vec<String> = goal.ports.iter().map(|port| port.name.clone()).collect();
        names.extend(before.ports.iter().map(|port| port.name.clone()).filter(|name| !known.contains(name.as_str())));
        let mut links = BTreeSet::new();
        let now = &self.request.plan.devices[self.switch.index()];
        for (topology, intent) in [(&previous.topology, intent), (&self.request.plan.topology, now)] {
            let linked = intent.ports.iter().filter(|port| matches!(port.role, PortRole::Link(_)));
            links.extend(linked.map(|port| topology.port(port.port).name.as_str()));
        }
        let reach = |name: &String| if links.contains(name.as_str()) { Reach::Switch } else { Reach::Rim };
        let reach = names.iter().map(reach).collect();
        (align(&before, &names), align(&goal, &names), reach)
    }

    fn check_room(&self, before: &SwitchConfig, filled: &SwitchConfig) -> Result<(), RenderError> {
        let switch = self.request.plan.topology.switch(self.switch);
        let refuse = |what, need, limit| {
            let (switch, model) = (switch.name.clone(), switch.model.name.clone());
            Err(RenderError::NoRoom { switch, model, what, need, limit })
        };
        let (need, limit) = (filled.vlans.len(), switch.model.vlans_max);
        if need > limit && need > before.vlans.len() {
            return refuse("VLANs", need, limit);
        }
        let (need, limit) = (filled.entries.len(), switch.model.static_entries_max);
        if need > limit && need > before.entries.len() {
            return refuse("static entries", need, limit);
        }
        Ok(())
    }

    fn head(&self, what: &str) -> Vec<String> {
        let switch = self.request.plan.topology.switch(self.switch);
        let trust = match self.target.basis() {
            Basis::Tested => "tested: what it writes has carried traffic",
            Basis::Manual => "manual: written from the vendor's manual, never tried on the device",
            Basis::Probed => "probed: what it writes was read back from a switch",
            Basis::Untested => "untested: parts of it are believed, and none was tried on the device",
        };
        vec![
            format!("switch {} ({}), written by espalier for {}", switch.name, switch.model.name, self.target),
            format!("plan {}", self.request.digest),
            what.to_owned(),
            format!("driver {trust}"),
        ]
    }

    fn write(
        &self,
        head: &[String],
        stem: &str,
        steps: Steps<'_>,
        folder: &mut Recorder<'_>,
    ) -> Result<(), RenderError> {
        write_steps(self.target, head, stem, steps, folder)
            .map_err(|source| RenderError::Write { file: folder.file.clone(), source })
    }

    fn record(&self, phase: Option<Phase>, folder: &mut Recorder<'_>, parts: &mut Vec<Part>) {
        let files = std::mem::take(&mut folder.files);
        parts.push(Part { switch: self.name().to_owned(), target: self.target, phase, files });
    }
}

/// A switch's name as that of a file: the only character of a name that a file's cannot have is `/`.
fn file_name(switch: &str) -> String {
    match switch {
        "." | ".." => switch.replace('.', "%2E"),
        _ => switch.replace('/', "%2F"),
    }
}

/// Notes which files were begun.
struct Recorder<'a> {
    inner: &'a mut dyn Folder,
    file: String,
    files: Vec<String>,
}

impl Folder for Recorder<'_> {
    fn begin(&mut self, name: &str) -> io::Result<()> {
        name.clone_into(&mut self.file);
        self.files.push(name.to_owned());
        self.inner.begin(name)
    }
}

impl io::Write for Recorder<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A folder in memory: text by file name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The files.
    pub files: BTreeMap<String, Vec<u8>>,
    now: String,
}

impl Folder for Memory {
    fn begin(&mut self, name: &str) -> io::Result<()> {
        name.clone_into(&mut self.now);
        self.files.insert(name.to_owned(), Vec::new());
        Ok(())
    }
}

impl io::Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.files.get_mut(&self.now) {
            Some(file) => {
                file.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            None => Err(io::Error::other("no file is begun")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
