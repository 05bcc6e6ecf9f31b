//! A switch by SSH in a deployment's driver seat: what is read, written and saved, each behind a fence.

use std::{
    collections::BTreeSet,
    fmt,
    net::IpAddr,
    time::{Duration, Instant},
};

use sha2::{Digest as _, Sha256};

use super::{
    Login, OpenSsh,
    cli::Cli,
    language::{known, language},
    linux::Linux,
    transport::Wanted,
};
use crate::{
    SwitchConfig, Target,
    deploy::{Driver, Fault, Fence, Mark, Reading},
    format::{Observed, write_observed},
    snmp::Settings,
};

/// How a switch is spoken to.
pub(super) trait Tongue: Send {
    /// Reads the whole state.
    fn read(&mut self) -> Result<(SwitchConfig, Option<Mark>), Fault>;
    /// Leaves a mark.
    fn mark(&mut self, mark: Mark) -> Result<(), Fault>;
    /// Has it go back from `after` to what it holds, `before`, unless it is told otherwise in time; whether it can.
    fn arm(&mut self, before: &Reading, after: &SwitchConfig, guard: Duration) -> Result<bool, Fault>;
    /// Whether it has gone back, all the way.
    fn has_returned(&mut self) -> Result<bool, Fault>;
    /// Tells it to stay as it is.
    fn disarm(&mut self) -> Result<(), Fault>;
    /// Brings it from one state to another.
    fn write(&mut self, before: &SwitchConfig, after: &SwitchConfig) -> Result<(), Fault>;
    /// What would be said to leave a mark, if one is given, and to bring it from one state to another.
    fn rehearse(&self, before: &SwitchConfig, after: &SwitchConfig, mark: Option<Mark>) -> Result<Vec<String>, Fault>;
    /// Makes the running state the one that it starts with.
    fn save(&mut self) -> Result<(), Fault>;
}

/// A switch by its command line.
pub struct Device {
    tongue: Box<dyn Tongue>,
}

/// Logs in to a switch. `names` are its ports, as the topology names them; `patience` is how long it may be silent.
///
/// # Errors
/// [`Fault`], with the way out where a host key, an algorithm or a password is refused.
pub fn connect(
    address: IpAddr,
    login: &Login,
    target: Target,
    names: &[String],
    settings: Settings,
    patience: Duration,
) -> Result<Device, Fault> {
    let (names, dialled) = (names.to_vec(), login.clone());
    if target == Target::LinuxBridge {
        let dial = move || OpenSsh::open(address, &dialled, &dialled.user, Wanted::Shell, patience);
        let mut linux = Linux { dial, shell: None, names, save: settings.save, patience };
        linux.greet()?;
        return Ok(Device { tongue: Box::new(linux) });
    }
    let language = language(target).ok_or_else(|| {
        Fault::Refused(format!(
            "its language, {target}, is not spoken over SSH; these are: {}. Render it instead",
            known()
        ))
    })?;
    let user = format!("{}{}", login.user, language.login_suffix);
    let dial = move || OpenSsh::open(address, &dialled, &user, Wanted::Terminal, patience);
    let mut cli = Cli {
        dial,
        terminal: None,
        language,
        login: login.clone(),
        names,
        mark_vlan: settings.mark_vlan,
        mark_vlans: BTreeSet::new(),
        save: settings.save,
        patience,
    };
    // So that a wrong password is known before anything happens.
    cli.terminal = Some(cli.open()?);
    Ok(Device { tongue: Box::new(cli) })
}

impl Device {
    fn look(&mut self) -> Result<Reading, Fault> {
        let (config, mark) = self.tongue.read()?;
        let fence = fence(&config, mark);
        Ok(Reading { config, mark, fence })
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
        self.tongue.rehearse(before, after, Some(mark).filter(|mark| found != Some(*mark)))
    }

    fn check(&mut self, fence: Fence) -> Result<Reading, Fault> {
        let reading = self.look()?;
        if reading.fence == fence { Ok(reading) } else { Err(Fault::Fenced) }
    }

    fn change(&mut self, before: &SwitchConfig, after: &SwitchConfig, mark: Option<Mark>) -> Result<(), Fault> {
        if let Some(mark) = mark {
            self.tongue.mark(mark)?;
        }
        if before != after { self.tongue.write(before, after) } else { Ok(()) }
    }

    /// Awaits a switch that is cut off until it has gone back.
    fn await_return(&mut self, until: Instant) -> Fault {
        loop {
            let answer = self.tongue.has_returned();
            let late = Instant::now().saturating_duration_since(until);
            match answer {
                Ok(true) if !late.is_zero() => return Fault::Reverted,
                // It is at it.
                Ok(_) if late < RETURN_TIME_MAX => {}
                Err(_) if late.is_zero() => {}
                Ok(_) | Err(_) => return Fault::Silent,
            }
            std::thread::sleep(GUARD_LOOK);
        }
    }
}

impl Driver for Device {
    fn read(&mut self) -> Result<Reading, Fault> {
        self.look()
    }

    fn write(
        &mut self,
        before: &SwitchConfig,
        after: &SwitchConfig,
        mark: Mark,
        held: Fence,
        guard: Option<Duration>,
    ) -> Result<Fence, Fault> {
        let reading = self.check(held)?;
        let fresh = (held != fence(before, Some(mark))).then_some(mark);
        let armed = match guard {
            Some(guard) if self.tongue.arm(&reading, after, guard)? => Some(Instant::now() + guard + GUARD_MARGIN),
            _ => None,
        };
        let done = self.change(before, after, fresh);
        match (armed, done) {
            (None, done) => done?,
            (Some(until), Err(Fault::Silent)) => return Err(self.await_return(until)),
            (Some(until), done) => match self.tongue.disarm() {
                Ok(()) => done?,
                Err(_) => return Err(self.await_return(until)),
            },
        }
        Ok(fence(after, Some(mark)))
    }

    fn save(&mut self, fence: Fence) -> Result<Fence, Fault> {
        self.check(fence)?;
        self.tongue.save()?;
        Ok(fence)
    }
}

/// How much longer a switch that is cut off is awaited than it takes to go back, which may be a restart.
const GUARD_MARGIN: Duration = Duration::from_secs(3);
/// How long going back itself may take.
const RETURN_TIME_MAX: Duration = Duration::from_secs(60);
/// How far apart it is asked meanwhile.
const GUARD_LOOK: Duration = Duration::from_secs(1);

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").finish_non_exhaustive()
    }
}

/// The state itself, in few bits.
fn fence(config: &SwitchConfig, mark: Option<Mark>) -> Fence {
    let observed = Observed {
        switch: String::new(),
        taken_at: String::new(),
        mark: mark.map(|mark| mark.to_string()),
        state: config.clone(),
    };
    let digest = Sha256::digest(write_observed(&observed).as_bytes());
    Fence(digest.iter().take(8).fold(0, |fence, byte| fence << 8 | u64::from(*byte)))
}
