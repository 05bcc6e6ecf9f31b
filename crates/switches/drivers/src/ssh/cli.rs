//! A vendor's command line: the running configuration is read through the dialect, differences are said line by line.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use fabric::{LagNumber, VlanId};

use super::{
    Channel, Login,
    backend::{Armed, CliBackend},
    language::{Language, refusal},
    running::read_running,
    terminal::Terminal,
};
use crate::snmp::SaveMethod;
use dialects::{Memory, names::no_such_port, write_transition};
use switch_model::{
    SwitchConfig,
    driver::{Fault, Reading},
    mark::Mark,
};

/// Most lines of an answer that says no.
const REFUSAL_LINES_MAX: usize = 4;
/// How long a switch may take to start.
const RESTART_TIME_MAX: Duration = Duration::from_secs(300);

/// What a switch was found to say of its ports.
#[derive(Debug, Default)]
pub(super) struct PortsFound {
    /// How it spells those that the plan spells otherwise.
    spelt: BTreeMap<String, String>,
    /// Those that are not to be written to, and the line that says so.
    untouchable: BTreeMap<String, String>,
    /// Those that it has though its configuration does not mention them.
    there: BTreeSet<String>,
}

/// A switch with a command line.
pub(super) struct Cli<D, C> {
    pub(super) dial: D,
    pub(super) terminal: Option<Terminal<C>>,
    pub(super) language: &'static Language,
    pub(super) login: Login,
    pub(super) names: Vec<String>,
    pub(super) mark_vlan: VlanId,
    pub(super) mark_vlans: BTreeSet<VlanId>,
    /// PVIDs that ports were read with, whether untagged frames get in or not.
    pub(super) pvids: BTreeMap<String, VlanId>,
    /// What it showed of how ports are spelt and which are not to be written to.
    pub(super) found: PortsFound,
    pub(super) save: SaveMethod,
    pub(super) patience: Duration,
    /// The name that stood in its prompt.
    pub(super) called: Option<String>,
}

impl<C: Channel, D: FnMut() -> Result<C, Fault> + Send> Cli<D, C> {
    /// Does something in a conversation. One that fails is given up: nobody knows in which mode it is.
    fn with<T>(&mut self, work: impl FnOnce(&mut Terminal<C>, &Language) -> Result<T, Fault>) -> Result<T, Fault> {
        let mut terminal = match self.terminal.take() {
            Some(terminal) => terminal,
            None => self.open()?,
        };
        let result = work(&mut terminal, self.language);
        if result.is_ok() {
            self.terminal = Some(terminal);
        }
        result
    }

    /// Logs in, into the mode in which configurations are shown.
    pub(super) fn open(&mut self) -> Result<Terminal<C>, Fault> {
        let mut terminal = Terminal::login((self.dial)()?, &self.login, self.patience, self.language.questions)?;
        self.called = Some(terminal.name().to_owned());
        if let Some(command) = self.language.privilege {
            if terminal.prompt_ends('>')? {
                terminal.say_with_password(command, self.login.enable_password.as_deref())?;
                if terminal.prompt_ends('>')? {
                    return Err(Fault::Refused(
                        "its privileged mode wants another password; give enable-password in its credentials"
                            .to_owned(),
                    ));
                }
            }
        }
        for line in self.language.prepare {
            terminal.say(line)?;
        }
        Ok(terminal)
    }

    /// The lines that leave a mark.
    fn marking(&self, mark: Mark) -> Vec<String> {
        let mut lines = (self.language.mark)(self.mark_vlan, mark);
        let old = self.mark_vlans.iter().filter(|vlan| **vlan != self.mark_vlan);
        lines.extend(old.flat_map(|vlan| (self.language.unmark)(*vlan)));
        lines
    }

    /// The lines that lead from one state to another.
    fn changing(&self, before: &SwitchConfig, after: &SwitchConfig) -> Result<Vec<String>, Fault> {
        let changes = before.ports.iter().zip(&after.ports).filter(|(before, after)| before != after);
        self.may_touch(changes.map(|(before, _)| before.name.as_str()))?;
        let mut memory = Memory::default();
        let (before, after) = (self.spell(self.bearing(before, after)), self.spell(after.clone()));
        write_transition(self.language.target, &before, &after, &mut memory)
            .map_err(|error| Fault::Refused(error.to_string()))?;
        let lines = memory.files.values().flat_map(|text| {
            String::from_utf8_lossy(text).lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
        });
        Ok(lines.filter(|line| !line.is_empty()).collect())
    }

    /// Refuses ports of which not everything is understood.
    fn may_touch<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<(), Fault> {
        let mut found = names.filter_map(|name| Some((name, self.found.untouchable.get(name)?)));
        found.next().map_or(Ok(()), |(name, line)| {
            Err(Fault::Refused(format!(
                "port {name} says {line:?}, which Espalier does not set and would not know how to restore; bring the port \
                 to its factory settings by hand first, or keep it out of the plan's VLANs"
            )))
        })
    }

    /// A state with ports spelt as the switch spells them.
    fn spell(&self, mut config: SwitchConfig) -> SwitchConfig {
        for port in &mut config.ports {
            if let Some(spelt) = self.found.spelt.get(&port.name) {
                port.name.clone_from(spelt);
            }
        }
        config
    }

    /// Asks for ports that the running configuration does not mention, once each.
    fn look_for(&mut self, unmentioned: &[String], config: &SwitchConfig) -> Result<(), Fault> {
        for name in unmentioned {
            // A LAG that it does not mention has no members, or is not made yet.
            let is_lag = LagNumber::of_port(name).is_some();
            if is_lag
                || self.found.there.contains(name)
                || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:".contains(c))
            {
                continue;
            }
            let answer = self.with(|terminal, language| terminal.say(&(language.ask_port)(name)))?;
            // What is long is an answer, whatever words are in it.
            if answer.len() <= REFUSAL_LINES_MAX && refusal(&answer).is_some() {
                let shown = config
                    .ports
                    .iter()
                    .map(|port| port.name.as_str())
                    .filter(|known| !unmentioned.iter().any(|name| name == known));
                return Err(Fault::Refused(no_such_port(name, shown)));
            }
            self.found.there.insert(name.clone());
        }
        Ok(())
    }

    /// The state that it is to leave, with the PVIDs that ports bear of VLANs which go, though no untagged frame gets in:
    /// they are taken back as if they counted, since a switch does not remove a VLAN that is a port's PVID.
    fn bearing(&self, before: &SwitchConfig, after: &SwitchConfig) -> SwitchConfig {
        let goes = |vlan: &VlanId| before.vlans.contains(*vlan) && !after.vlans.contains(*vlan);
        let mut bearing = before.clone();
        for (port, goal) in bearing.ports.iter_mut().zip(&after.ports) {
            if (port.pvid, goal.pvid) == (None, None) {
                port.pvid = self.pvids.get(&port.name).copied().filter(goes);
            }
        }
        bearing
    }

    /// Lines with the way to where rendered text is understood, and back.
    fn framed(&self, lines: Vec<String>) -> Vec<String> {
        if lines.is_empty() {
            return lines;
        }
        let around = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        [around(self.language.enter), lines, around(self.language.leave)].concat()
    }

    /// Says lines where configurations are shown.
    fn say_each(&mut self, lines: &[String]) -> Result<(), Fault> {
        self.with(|terminal, _| {
            for line in lines {
                let answer = terminal.say(line)?;
                if let Some(why) = refusal(&answer) {
                    return Err(Fault::Refused(format!("to {line:?} it says {why:?}")));
                }
            }
            Ok(())
        })
    }

    /// Says lines where rendered text is understood.
    fn configure(&mut self, lines: Vec<String>) -> Result<(), Fault> {
        if lines.is_empty() {
            return Ok(());
        }
        let lines = self.framed(lines);
        self.say_each(&lines)
    }
}

impl<C: Channel, D: FnMut() -> Result<C, Fault> + Send> CliBackend for Cli<D, C> {
    fn read(&mut self) -> Result<(SwitchConfig, Option<Mark>), Fault> {
        let names = self.names.clone();
        let running = self.with(|terminal, language| {
            let lines = terminal.say(language.show)?;
            match refusal(&lines).filter(|_| lines.len() <= REFUSAL_LINES_MAX) {
                Some(why) => Err(Fault::Refused(format!(
                    "to {:?} it says {why:?}, so it does not speak {}, the language of its model",
                    language.show, language.target
                ))),
                None => read_running(language, &lines, &names).map_err(Fault::Refused),
            }
        })?;
        self.look_for(&running.unmentioned, &running.config)?;
        (self.mark_vlans, self.pvids) = (running.mark_vlans, running.pvids);
        (self.found.spelt, self.found.untouchable) = (running.spelt, running.untouchable);
        Ok((running.config, running.mark))
    }

    fn mark(&mut self, mark: Mark) -> Result<(), Fault> {
        self.configure(self.marking(mark))
    }

    fn include(&mut self, names: &[String]) {
        self.names.extend_from_slice(names);
    }

    fn called(&self) -> Option<&str> {
        self.called.as_deref()
    }

    /// It goes back by a restart, to what was saved last: the state before this stage, or the drained one.
    fn arm(&mut self, _: &Reading, _: &SwitchConfig, guard: Duration) -> Result<Option<Armed>, Fault> {
        let Some(restart) = &self.language.restart else { return Ok(None) };
        let minutes = guard.as_secs().div_ceil(60).max(1);
        self.say_each(&[(restart.arm)(minutes)])?;
        Ok(Some(Armed { after: Duration::from_secs(60 * minutes), takes_max: RESTART_TIME_MAX }))
    }

    /// One that answers again has restarted.
    fn has_returned(&mut self) -> Result<bool, Fault> {
        self.read().map(|_| true)
    }

    fn disarm(&mut self) -> Result<(), Fault> {
        let Some(restart) = &self.language.restart else { return Ok(()) };
        self.say_each(&[restart.disarm.to_owned()])
    }

    fn write(&mut self, before: &SwitchConfig, after: &SwitchConfig) -> Result<(), Fault> {
        self.configure(self.changing(before, after)?)
    }

    fn rehearse(&self, before: &SwitchConfig, after: &SwitchConfig, mark: Option<Mark>) -> Result<Vec<String>, Fault> {
        let mut lines = mark.map_or_else(Vec::new, |mark| self.framed(self.marking(mark)));
        lines.extend(self.framed(self.changing(before, after)?));
        Ok(lines)
    }

    fn save(&mut self) -> Result<(), Fault> {
        if self.save == SaveMethod::ByHand {
            return Ok(());
        }
        let lines: Vec<String> = self.language.save.iter().map(|line| (*line).to_owned()).collect();
        self.say_each(&lines)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{super::language::language, *};
    use crate::ssh::Arrived;
    use dialects::{Target, TextFile};

    struct Nobody;

    impl Channel for Nobody {
        fn send(&mut self, _: &[u8]) -> io::Result<()> {
            unreachable!("nothing is said")
        }

        fn receive(&mut self, _: Duration) -> io::Result<Arrived> {
            unreachable!("nothing is awaited")
        }

        fn complaint(&mut self) -> Fault {
            Fault::Silent
        }
    }

    /// What is said is told to a switch that remembers the PVID, and refuses to remove the VLAN of one.
    #[test]
    fn a_port_that_bears_an_old_pvid_keeps_no_vlan() {
        let (old, kept) = (VlanId::new(2).expect("in range"), VlanId::new(3).expect("in range"));
        let cases = [
            (Target::PowerConnect, "g1", "interface ethernet g1\nswitchport general pvid 2\nexit\n"),
            (Target::CiscoSb, "gi1", "interface gi1\nswitchport general pvid 2\nexit\n"),
            (Target::EdgeCore, "1/1", "interface ethernet 1/1\n switchport native vlan 2\nexit\n"),
            (Target::Fastpath, "0/1", "configure\ninterface 0/1\nvlan pvid 2\nexit\nexit\n"),
        ];
        for (target, name, bear) in cases {
            let mut before = SwitchConfig::blank([name.to_owned()]);
            before.vlans = [old, kept].into_iter().collect();
            before.ports[0].tagged = before.vlans.clone();
            let mut after = before.clone();
            after.vlans.remove(old);
            after.ports[0].tagged.remove(old);
            let mut cli = Cli {
                dial: || -> Result<Nobody, Fault> { Err(Fault::Silent) },
                terminal: None,
                language: language(target).expect("spoken"),
                login: Login::default(),
                names: vec![name.to_owned()],
                mark_vlan: VlanId::MAX,
                mark_vlans: BTreeSet::new(),
                pvids: BTreeMap::new(),
                found: PortsFound::default(),
                save: SaveMethod::Unknown,
                patience: Duration::ZERO,
                called: None,
            };
            let told = |cli: &Cli<_, _>| {
                let text = format!("{bear}{}\n", cli.changing(&before, &after).expect("it has words").join("\n"));
                // The port takes tagged frames alone, as it did, so that what it bears does not show.
                dialects::read_back(target, &[TextFile { name: "", text: &text }], before.clone())
            };
            let refused = told(&cli).expect_err("the VLAN is a port's own");
            assert!(refused.iter().any(|error| error.message.contains("still the PVID")), "{target}: {refused:?}");
            cli.pvids.insert(name.to_owned(), old);
            assert_eq!(told(&cli), Ok(after.clone()), "{target}");
            // One of a VLAN that stays is left alone.
            cli.pvids.insert(name.to_owned(), kept);
            assert_eq!(cli.bearing(&before, &after), before, "{target}");
        }
    }
}
