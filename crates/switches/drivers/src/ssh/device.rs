//! A switch by SSH in a deployment's driver seat: what is read, written and saved, each behind a fence.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::IpAddr,
    time::{Duration, Instant},
};

use fabric::VlanSet;
use sha2::{Digest as _, Sha256};

use super::{
    Login, OpenSsh,
    attended::{Attended, Attention},
    backend::{Armed, CliBackend},
    cli::{Cli, PortsFound},
    language::{known, language},
    linux::Linux,
    transport::Wanted,
};
use crate::snmp::Settings;
use cancel::Cancel;
use dialects::Target;
use switch_model::{
    PortLearning, SwitchConfig,
    driver::{Addresses, Driver, Fault, Fence, Reading},
    format::{Observed, write_observed},
    mark::Mark,
    sight::Sight,
    unmanaged::{in_the_way, without_others},
};

/// A switch by its command line.
pub struct Device {
    backend: Box<dyn CliBackend>,
    /// How many ports are read and written; any others that it has come behind them.
    named: usize,
    /// What it held when it was read last.
    held: Option<SwitchConfig>,
    attention: Attention,
    /// Who is asked what its ports hear and count.
    watcher: Option<Box<dyn Driver>>,
}

/// Why a command line cannot be used, and the name in its prompt if it got so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoLogin {
    /// Why not.
    pub fault: Fault,
    /// What the switch calls itself.
    pub called: Option<String>,
}

impl From<Fault> for NoLogin {
    fn from(fault: Fault) -> Self {
        Self { fault, called: None }
    }
}

/// Logs in to a switch. `names` are its ports, as the topology names them; `patience` is how long it may be silent; whoever
/// holds `cancel` can have requests end early.
///
/// # Errors
/// [`NoLogin`], with the way out where a host key, an algorithm or a password is refused.
pub fn connect(
    address: IpAddr,
    login: &Login,
    target: Target,
    names: &[String],
    settings: Settings,
    patience: Duration,
    cancel: &Cancel,
) -> Result<Device, NoLogin> {
    let (names, dialled, named) = (names.to_vec(), login.clone(), names.len());
    let attention = Attention::default();
    attention.set_cancel(cancel.clone());
    let heeds = attention.clone();
    let attended = move |way| Attended::new(way, heeds.clone());
    if target == Target::LinuxBridge {
        let dial = move || OpenSsh::open(address, &dialled, &dialled.user, Wanted::Shell, patience).map(&attended);
        let mut linux = Linux { dial, shell: None, names, save: settings.save, patience };
        linux.greet()?;
        return Ok(Device { backend: Box::new(linux), named, held: None, attention, watcher: None });
    }
    let language = language(target).ok_or_else(|| {
        Fault::Refused(format!(
            "its language, {target}, is not spoken over SSH; these are: {}. Render it instead",
            known()
        ))
    })?;
    let user = format!("{}{}", login.user, language.login_suffix);
    let dial = move || OpenSsh::open(address, &dialled, &user, Wanted::Terminal, patience).map(&attended);
    let mut cli = Cli {
        dial,
        terminal: None,
        language,
        login: login.clone(),
        names,
        mark_vlan: settings.mark_vlan,
        mark_vlans: BTreeSet::new(),
        pvids: BTreeMap::new(),
        found: PortsFound::default(),
        save: settings.save,
        patience,
        called: None,
    };
    // So that a wrong password is known before anything happens.
    cli.terminal = Some(cli.open().map_err(|fault| NoLogin { fault, called: cli.called.clone() })?);
    Ok(Device { backend: Box::new(cli), named, held: None, attention, watcher: None })
}

impl Device {
    /// From now on `watcher` is asked what the ports hear and count, which a command line does not say: the same switch over
    /// SNMP, connected for the same ports in the same order.
    pub fn watch_by(&mut self, watcher: Box<dyn Driver>) {
        self.watcher = Some(watcher);
    }

    fn read_fenced(&mut self) -> Result<Reading, Fault> {
        let (whole, mark) = self.backend.read()?;
        let config = without_others(whole, self.named);
        self.held = Some(config.clone());
        let fence = fence(&config, mark);
        Ok(Reading { config, mark, fence })
    }

    /// The name that the switch gives itself, if its command line has one.
    pub fn called(&self) -> Option<&str> {
        self.backend.called()
    }

    /// What the switch held when it was read last.
    pub fn held(&self) -> Option<&SwitchConfig> {
        self.held.as_ref()
    }

    /// The lines that [`Driver::write`] would say to a switch that was found with the mark `found`; none is said.
    ///
    /// # Errors
    /// [`Fault`], where its language has no words for a state.
    pub fn rehearse(
        &self,
        before: &SwitchConfig,
        after: &SwitchConfig,
        mark: Mark,
        found: Option<Mark>,
    ) -> Result<Vec<String>, Fault> {
        // What a deployment writes begins with all that it leaves as it is (`SwitchConfig::take_unwritable_of`).
        let mut before = before.clone();
        before.take_unwritable_of(after);
        self.backend.rehearse(&before, after, Some(mark).filter(|mark| found != Some(*mark)))
    }

    fn check(&mut self, fence: Fence) -> Result<Reading, Fault> {
        let reading = self.read_fenced()?;
        if reading.fence == fence { Ok(reading) } else { Err(Fault::Fenced) }
    }

    fn change(&mut self, before: &SwitchConfig, after: &SwitchConfig, mark: Option<Mark>) -> Result<(), Fault> {
        if let Some(mark) = mark {
            self.backend.mark(mark)?;
        }
        if before != after { self.backend.write(before, after) } else { Ok(()) }
    }

    /// Awaits a switch that is cut off until it has gone back, which it begins at `due` at the latest.
    fn await_return(&mut self, due: Instant, takes_max: Duration) -> Fault {
        loop {
            let answer = self.backend.has_returned();
            if self.attention.is_hurried() {
                return Fault::Silent;
            }
            if let Some(fault) = returned(&answer, Instant::now().checked_duration_since(due), takes_max) {
                return fault;
            }
            std::thread::sleep(GUARD_LOOK);
        }
    }
}

/// What becomes of a switch that answers so whether it has gone back, so long after it should have begun to; none while
/// there is hope.
fn returned(answer: &Result<bool, Fault>, late: Option<Duration>, takes_max: Duration) -> Option<Fault> {
    match (answer, late) {
        // It may be about to.
        (_, None) => None,
        (Ok(true), Some(_)) => Some(Fault::Reverted),
        (Ok(false) | Err(_), Some(late)) => (late >= takes_max).then_some(Fault::Silent),
    }
}

impl Driver for Device {
    fn read(&mut self) -> Result<Reading, Fault> {
        self.attention.begin();
        self.read_fenced()
    }

    fn look(&mut self, addresses: Addresses) -> Result<Sight, Fault> {
        self.watcher.as_mut().map_or_else(|| Ok(Sight::default()), |watcher| watcher.look(addresses))
    }

    fn set_cancel(&mut self, cancel: &Cancel) {
        self.attention.set_cancel(cancel.clone());
        if let Some(watcher) = &mut self.watcher {
            watcher.set_cancel(cancel);
        }
    }

    fn write(
        &mut self,
        before: &SwitchConfig,
        after: &SwitchConfig,
        mark: Mark,
        held: Fence,
        guard: Option<Duration>,
    ) -> Result<Fence, Fault> {
        self.attention.begin();
        let reading = self.check(held)?;
        let fresh = (held != fence(&as_read(before, &reading.config), Some(mark))).then_some(mark);
        let armed = match guard {
            Some(guard) => self.backend.arm(&reading, after, guard)?,
            None => None,
        };
        let armed = armed.map(|Armed { after, takes_max }| (Instant::now() + after + GUARD_MARGIN, takes_max));
        let held = as_read(after, &reading.config);
        let done = self.change(before, after, fresh);
        match (armed, done) {
            (None, done) => done?,
            (Some((due, takes_max)), Err(Fault::Silent)) => return Err(self.await_return(due, takes_max)),
            (Some((due, takes_max)), done) => {
                // Whoever asked to stop wants the switch to stay as it is as well.
                self.attention.begin();
                match self.backend.disarm() {
                    Ok(()) => done?,
                    Err(_) => return Err(self.await_return(due, takes_max)),
                }
            }
        }
        Ok(fence(&held, Some(mark)))
    }

    fn save(&mut self, fence: Fence) -> Result<Fence, Fault> {
        self.attention.begin();
        self.check(fence)?;
        self.backend.save()?;
        Ok(fence)
    }

    fn unmanaged(&mut self, vlans: &VlanSet) -> Result<Vec<String>, Fault> {
        self.attention.begin();
        let (whole, _) = self.backend.read()?;
        Ok(in_the_way(&whole, self.named, vlans))
    }

    fn include(&mut self, names: &[String]) -> Result<(), Fault> {
        self.attention.begin();
        self.backend.include(names);
        self.named += names.len();
        let (whole, _) = self.backend.read()?;
        let there: BTreeSet<&str> = whole.ports.iter().map(|port| port.name.as_str()).collect();
        if let Some(name) = names.iter().find(|name| !there.contains(name.as_str())) {
            return Err(Fault::Refused(format!("it has no further port named {name}")));
        }
        self.held = Some(without_others(whole, self.named));
        Ok(())
    }
}

/// How much later than it says a switch that is cut off may begin to go back.
const GUARD_MARGIN: Duration = Duration::from_secs(3);
/// How far apart it is asked meanwhile.
const GUARD_LOOK: Duration = Duration::from_secs(1);

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").finish_non_exhaustive()
    }
}

/// A state as it is read from a switch that was found like this: ports that always learn do so in every state, and MTUs and LLDP
/// stay.
fn as_read(state: &SwitchConfig, found: &SwitchConfig) -> SwitchConfig {
    let mut state = SwitchConfig { lldp: found.lldp, ..state.clone() };
    for (port, found) in state.ports.iter_mut().zip(&found.ports) {
        if found.learning == PortLearning::Always {
            port.learning = PortLearning::Always;
        }
        port.mtu_bytes = found.mtu_bytes;
    }
    state
}

/// The state itself, in few bits.
fn fence(config: &SwitchConfig, mark: Option<Mark>) -> Fence {
    let observed = Observed {
        switch: String::new(),
        taken_at: None,
        mark: mark.map(|mark| mark.to_string()),
        state: config.clone(),
    };
    let digest = Sha256::digest(write_observed(&observed).as_bytes());
    Fence(digest.iter().take(8).fold(0, |fence, byte| fence << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cancel::Since;
    use switch_model::observe::Count;

    /// One that answers before its time has not gone back yet, and one that restarts is silent for a while.
    #[test]
    fn a_switch_that_goes_back_is_given_its_time() {
        let minute = Duration::from_secs(60);
        let check = |answer: Result<bool, Fault>, late: Option<u64>, expect: Option<Fault>| {
            assert_eq!(returned(&answer, late.map(Duration::from_secs), minute), expect, "{answer:?} {late:?}");
        };
        check(Ok(true), None, None);
        check(Err(Fault::Silent), None, None);
        check(Ok(true), Some(0), Some(Fault::Reverted));
        check(Ok(false), Some(59), None);
        check(Ok(false), Some(60), Some(Fault::Silent));
        check(Err(Fault::Silent), Some(59), None);
        check(Err(Fault::Silent), Some(60), Some(Fault::Silent));
    }

    /// One that is written to by its command line alone.
    struct Silent;

    impl CliBackend for Silent {
        fn read(&mut self) -> Result<(SwitchConfig, Option<Mark>), Fault> {
            Err(Fault::Silent)
        }
        fn include(&mut self, _: &[String]) {}
        fn mark(&mut self, _: Mark) -> Result<(), Fault> {
            Err(Fault::Silent)
        }
        fn arm(&mut self, _: &Reading, _: &SwitchConfig, _: Duration) -> Result<Option<Armed>, Fault> {
            Ok(None)
        }
        fn has_returned(&mut self) -> Result<bool, Fault> {
            Ok(true)
        }
        fn disarm(&mut self) -> Result<(), Fault> {
            Ok(())
        }
        fn write(&mut self, _: &SwitchConfig, _: &SwitchConfig) -> Result<(), Fault> {
            Err(Fault::Silent)
        }
        fn rehearse(&self, _: &SwitchConfig, _: &SwitchConfig, _: Option<Mark>) -> Result<Vec<String>, Fault> {
            Ok(Vec::new())
        }
        fn save(&mut self) -> Result<(), Fault> {
            Err(Fault::Silent)
        }
    }

    /// The same switch over SNMP, which counts; it ends early when somebody asks to stop.
    struct Counting(Cancel, Since);

    impl Driver for Counting {
        fn read(&mut self) -> Result<Reading, Fault> {
            Err(Fault::Refused("it is only looked at".to_owned()))
        }
        fn write(
            &mut self,
            _: &SwitchConfig,
            _: &SwitchConfig,
            _: Mark,
            _: Fence,
            _: Option<Duration>,
        ) -> Result<Fence, Fault> {
            Err(Fault::Refused("it is only looked at".to_owned()))
        }
        fn save(&mut self, _: Fence) -> Result<Fence, Fault> {
            Err(Fault::Refused("it is only looked at".to_owned()))
        }
        fn look(&mut self, addresses: Addresses) -> Result<Sight, Fault> {
            if self.0.is_stopped(self.1) {
                return Err(Fault::Stopped);
            }
            let learned = (addresses == Addresses::Read).then(Vec::new);
            Ok(Sight { running: vec![true], flooded: vec![Count::Wide(7)], learned, ..Sight::default() })
        }
        fn unmanaged(&mut self, _: &VlanSet) -> Result<Vec<String>, Fault> {
            Ok(Vec::new())
        }
        fn include(&mut self, _: &[String]) -> Result<(), Fault> {
            Ok(())
        }
        fn set_cancel(&mut self, cancel: &Cancel) {
            (self.0, self.1) = (cancel.clone(), cancel.now());
        }
    }

    #[test]
    fn a_switch_that_answers_over_snmp_as_well_is_watched_that_way() {
        let backend = Box::new(Silent);
        let mut device = Device { backend, named: 1, held: None, attention: Attention::default(), watcher: None };
        assert_eq!(device.look(Addresses::Read), Ok(Sight::default()), "a command line says nothing of that");
        device.watch_by(Box::new(Counting(Cancel::default(), Since::default())));
        let seen = device.look(Addresses::Skip).expect("it answers");
        assert_eq!((seen.flooded, seen.learned), (vec![Count::Wide(7)], None));
        assert_eq!(device.look(Addresses::Read).expect("it answers").learned, Some(Vec::new()));
        let cancel = Cancel::default();
        device.set_cancel(&cancel);
        assert!(device.look(Addresses::Skip).is_ok());
        cancel.stop();
        assert_eq!(device.look(Addresses::Skip), Err(Fault::Stopped));
    }
}
