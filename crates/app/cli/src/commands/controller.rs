//! What the verbs for real switches share: credentials, sessions, what a plan asks of each switch.

use std::{
    fs,
    io::Read as _,
    net::{IpAddr, SocketAddr},
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::Mutex,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use bridge_mib::objects::binding_text;
use cancel::Cancel;
use dialects::Target;
use drivers::{
    credentials::{Keyring, parse_keyring},
    snmp::{Device, SaveMethod, Settings, read_description, read_identity},
    ssh::{self, Login, NoLogin, OldAlgorithms},
};
use fabric::{Plan, SwitchId, Topology, VlanId, VlanSet};
use rollout::survey::other_answers;
use snmp::{Patience, Session, UdpLink};
use switch_model::{
    SwitchConfig,
    driver::{Driver, Fault},
    identity::Identity,
    mark::Mark,
    sight::SurveyReply,
};

use crate::{cli, failure::bad_input};

/// Most bytes of a file of credentials.
const CREDENTIALS_LEN_MAX: u64 = 16 << 20;

/// Reads the credentials, from a file that nobody else can read or has written. It is opened once: what is judged is what is
/// read, whatever the name comes to mean meanwhile.
///
/// # Errors
/// Bad input.
pub(super) fn keyring(path: &Path) -> Result<Keyring> {
    let way_out = "write one with a [default] table of user, auth-password and privacy-password; see docs/switches.md";
    let file = fs::File::open(path).map_err(|error| bad_input(format!("{}: {error}; {way_out}", path.display())))?;
    let metadata = file.metadata().with_context(|| path.display().to_string())?;
    is_private(metadata.uid(), metadata.mode(), rustix::process::geteuid().as_raw())
        .map_err(|why| bad_input(format!("{0}: {why} {0}", path.display())))?;
    let mut text = String::new();
    file.take(CREDENTIALS_LEN_MAX).read_to_string(&mut text).with_context(|| path.display().to_string())?;
    parse_keyring(&text, &|name| std::env::var(name).ok())
        .map_err(|error| bad_input(format!("{}: {error}", path.display())))
}

/// Whether a file of this owner and mode holds what only user `us` has written and can read; if not, why, and the command that
/// mends it, less the file's name. Root's files are trusted: root can do anything anyway.
fn is_private(owner: u32, mode: u32, us: u32) -> Result<(), String> {
    if owner != us && owner != 0 {
        return Err(format!(
            "these credentials belong to user {owner}, who can change them and decide where you log in; chown {us}"
        ));
    }
    if mode & 0o077 != 0 {
        return Err("others can read these credentials; chmod 600".to_owned());
    }
    Ok(())
}

/// Opens a session with one switch.
///
/// # Errors
/// If nothing is known of it, or no socket opens.
pub(super) fn session(
    keyring: &Keyring,
    reach: &cli::Reach,
    switch: &str,
    address: IpAddr,
) -> Result<Session<UdpLink>, Fault> {
    let Some(access) = keyring.access(switch) else {
        return Err(Fault::Refused(format!("no credentials for {switch}, and no [default] in the file")));
    };
    let link = UdpLink::open(SocketAddr::new(address, reach.port))
        .map_err(|error| Fault::Refused(format!("no socket toward {address}: {error}")))?;
    let patience =
        Patience { timeout: Duration::from_secs_f64(reach.timeout.clamp(0.01, 600.0)), attempts: reach.attempts };
    Ok(Session::new(link, access.credentials.clone(), patience, fresh_number()))
}

/// A switch that answers, by whichever way.
#[derive(Debug)]
pub(super) enum Reached {
    Snmp(Box<Device<UdpLink>>),
    CommandLine(ssh::Device),
}

/// What would be said to a switch: SETs or lines, whichever way it is reached by.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) sets: Vec<String>,
    pub(super) lines: Vec<String>,
}

/// A switch, or why it does not answer.
pub(super) type Connected = Result<Reached, Fault>;

impl Reached {
    /// What would take the switch from one state to another and leave a mark, where `found` is there.
    ///
    /// # Errors
    /// [`Fault`], where a state cannot be had.
    pub(super) fn rehearse(
        &mut self,
        before: &SwitchConfig,
        after: &SwitchConfig,
        mark: Mark,
        found: Option<Mark>,
    ) -> Result<Said, Fault> {
        match self {
            Self::Snmp(device) => {
                let sets = device.rehearse(before, after, mark)?;
                let text = |set: &Vec<_>| set.iter().map(binding_text).collect::<Vec<_>>().join("  ");
                Ok(Said { sets: sets.iter().map(text).collect(), lines: Vec::new() })
            }
            Self::CommandLine(device) => {
                Ok(Said { sets: Vec::new(), lines: device.rehearse(before, after, mark, found)? })
            }
        }
    }

    /// From now on it may be silent for so long before it counts as lost, where management frames take the way that is
    /// being changed.
    pub(super) fn set_patience(&mut self, total: Duration) {
        if let Self::Snmp(device) = self {
            device.set_patience(total);
        }
    }

    /// From now on whoever holds this token can have requests to the switch end early.
    pub(super) fn set_cancel(&mut self, cancel: &Cancel) {
        self.driver().set_cancel(cancel);
    }

    /// The switch, whichever way it is reached by.
    pub(super) fn driver(&mut self) -> &mut dyn Driver {
        match self {
            Self::Snmp(device) => device.as_mut(),
            Self::CommandLine(device) => device,
        }
    }
}

/// Switches as a deployment takes them.
pub(super) fn drivers(devices: &mut [Connected]) -> Vec<Result<&mut dyn Driver, Fault>> {
    devices.iter_mut().map(|device| device.as_mut().map(Reached::driver).map_err(|fault| fault.clone())).collect()
}

/// Has switches include the unmanaged ports of these names, `[switch]`.
pub(super) fn include_named(devices: &mut [Connected], names: &[Vec<String>], parallel: usize) {
    each_device(devices, parallel, |at, device| device.driver().include(&names[at]));
}

/// Does something with every switch that answers, so many at a time; one that fails is one that does not.
pub(super) fn each_device<R: Send + Default>(
    devices: &mut [Connected],
    parallel: usize,
    work: impl Fn(usize, &mut Reached) -> Result<R, Fault> + Sync,
) -> Vec<R> {
    at_once(devices.iter_mut().enumerate().collect(), parallel, |(at, device): (usize, &mut Connected)| {
        match device.as_mut().map(|reached| work(at, reached)) {
            Ok(Ok(result)) => result,
            Ok(Err(fault)) => {
                *device = Err(fault);
                R::default()
            }
            Err(_) => R::default(),
        }
    })
}

/// Every VLAN that these states know, VLAN 1 only if a port is to be in it.
pub(super) fn vlans_of<'a>(configs: impl IntoIterator<Item = &'a SwitchConfig>) -> VlanSet {
    let known = |config: &SwitchConfig| config.vlans.iter().chain(config.memberships().iter()).collect::<Vec<_>>();
    configs.into_iter().flat_map(known).collect()
}

/// The ways to the switches of a topology: by its command line if the credentials name an ssh-user for a switch, else by
/// SNMP.
pub(super) struct Ways<'a> {
    topology: &'a Topology,
    mark_vlan: VlanId,
    keyring: Keyring,
    reach: &'a cli::Reach,
    cancel: Cancel,
}

impl<'a> Ways<'a> {
    /// The ways to a plan's switches. Whoever holds `cancel` can have requests end early.
    ///
    /// # Errors
    /// Bad input if a switch has no management address, or the credentials cannot be read.
    pub(super) fn of(plan: &'a Plan, reach: &'a cli::Reach, cancel: Cancel) -> Result<Self> {
        Self::new(&plan.topology, mark_vlan(plan), reach, cancel)
    }

    /// The ways to a topology's switches; deployment tags are left in `mark_vlan`. Whoever holds `cancel` can have requests end
    /// early.
    ///
    /// # Errors
    /// Bad input if a switch has no management address, or the credentials cannot be read.
    pub(super) fn new(
        topology: &'a Topology,
        mark_vlan: VlanId,
        reach: &'a cli::Reach,
        cancel: Cancel,
    ) -> Result<Self> {
        let keyring = keyring(&reach.credentials)?;
        warn_of_weak_algorithms(topology, &keyring);
        all_have_addresses(topology)?;
        Ok(Self { topology, mark_vlan, keyring, reach, cancel })
    }

    /// Connects to one switch.
    ///
    /// # Errors
    /// [`Fault`].
    pub(super) fn connect(&self, switch: SwitchId) -> Connected {
        let Some((login, save)) = self.keyring.login(&self.topology.switch(switch).name) else {
            return self.by_snmp(switch);
        };
        let done = self.log_in(switch, login, save);
        done.map(Reached::CommandLine).map_err(|why| self.explain(switch, why.called.as_deref(), why.fault))
    }

    fn by_snmp(&self, switch: SwitchId) -> Connected {
        let Self { topology, mark_vlan, keyring, reach, cancel } = self;
        let done = by_snmp(keyring, topology, switch, *mark_vlan, reach, cancel.clone());
        done.map(|device| Reached::Snmp(Box::new(device))).map_err(|fault| self.explain(switch, None, fault))
    }

    fn log_in(&self, switch: SwitchId, login: &Login, save: SaveMethod) -> Result<ssh::Device, NoLogin> {
        let Self { topology, mark_vlan, reach, .. } = self;
        let address = address_of(topology, switch)?;
        let target: Option<Target> = topology.switch(switch).model.syntax.as_deref().and_then(|name| name.parse().ok());
        let target = target.ok_or_else(|| {
            Fault::Refused(
                "nobody knows its language; name its model in the topology, or leave ssh-user out of its credentials"
                    .to_owned(),
            )
        })?;
        let patience = (reach.timeout * f64::from(reach.attempts)).clamp(COMMAND_LINE_PATIENCE_S_MIN, 600.0);
        let (patience, settings) = (Duration::from_secs_f64(patience), Settings { mark_vlan: *mark_vlan, save });
        ssh::connect(address, login, target, &port_names(topology, switch), settings, patience, &self.cancel)
    }

    /// Adds to a refusal that another switch than the plan's answers at the address, if what it says of itself shows that:
    /// over SNMP, or what it is `called` in its prompt.
    fn explain(&self, switch: SwitchId, called: Option<&str>, fault: Fault) -> Fault {
        let Fault::Refused(why) = &fault else { return fault };
        let asked = self.ask_who(switch);
        let (found, description) =
            asked.unwrap_or_else(|| (Identity { system: called.map(str::to_owned), ..Identity::default() }, None));
        match other_answers(self.topology, switch, &found, description.as_deref()) {
            Some(cause) => Fault::Refused(format!("{cause} (what failed: {why})")),
            None => fault,
        }
    }

    /// What the switch at an address says of itself over SNMP, and its sysDescr; none if it does not answer that.
    fn ask_who(&self, switch: SwitchId) -> Option<(Identity, Option<String>)> {
        let name = &self.topology.switch(switch).name;
        let address = address_of(self.topology, switch).ok()?;
        self.keyring.access(name)?;
        let mut session = session(&self.keyring, self.reach, name, address).ok()?;
        session.set_cancel(self.cancel.clone());
        let identity = read_identity(&mut session).ok()?;
        let description = read_description(&mut session).ok()?;
        Some((identity, description))
    }

    /// Has a switch include the unmanaged ports that have to do with these VLANs; their names.
    ///
    /// # Errors
    /// [`Fault`].
    pub(super) fn include_unmanaged(
        &self,
        switch: SwitchId,
        device: &mut Reached,
        vlans: &VlanSet,
    ) -> Result<Vec<String>, Fault> {
        let driver = device.driver();
        let names = driver.unmanaged(vlans).and_then(|names| driver.include(&names).map(|()| names));
        names.map_err(|fault| match device {
            Reached::Snmp(_) => fault,
            Reached::CommandLine(device) => self.explain(switch, device.called(), fault),
        })
    }

    /// The same for all switches, `[switch]`. One that cannot say is one that does not answer.
    pub(super) fn include_all_unmanaged(&self, devices: &mut [Connected], vlans: &VlanSet) -> Vec<Vec<String>> {
        each_device(devices, self.reach.parallel, |at, device| self.include_unmanaged(SwitchId::new(at), device, vlans))
    }

    /// Connects to one switch to look at it: by SNMP if the credentials know how and it answers, since what it counts and
    /// whom it hears is not asked otherwise, else by its command line.
    ///
    /// # Errors
    /// [`Fault`].
    pub(super) fn connect_to_look(&self, switch: SwitchId) -> Connected {
        let (name, keyring) = (&self.topology.switch(switch).name, &self.keyring);
        if keyring.access(name).is_none() && keyring.login(name).is_some() {
            return self.connect(switch);
        }
        match self.by_snmp(switch) {
            Err(Fault::Silent) if keyring.login(name).is_some() => self.connect(switch),
            found => found,
        }
    }

    /// Reads who a switch is, whom it hears and which of its ports are up; none if it is reached by its command line alone,
    /// which does not say. One that answers over SNMP as well is watched that way from now on.
    ///
    /// # Errors
    /// [`Fault`].
    pub(super) fn survey(&self, switch: SwitchId, device: &mut Reached) -> Result<Option<SurveyReply>, Fault> {
        let name = &self.topology.switch(switch).name;
        match device {
            Reached::Snmp(device) => device.survey(name).map(Some),
            Reached::CommandLine(_) if self.keyring.access(name).is_none() => Ok(None),
            Reached::CommandLine(device) => match self.by_snmp(switch) {
                Ok(Reached::Snmp(mut watcher)) => {
                    let reply = watcher.survey(name)?;
                    device.watch_by(watcher);
                    Ok(Some(reply))
                }
                // It may answer by its command line alone.
                Ok(Reached::CommandLine(_)) | Err(Fault::Silent) => Ok(None),
                Err(fault) => Err(fault),
            },
        }
    }

    /// Connects to every switch, `devices[switch]`, some at a time.
    pub(super) fn connect_all(&self) -> Vec<Connected> {
        at_once(self.topology.switch_ids().collect(), self.reach.parallel, |switch| self.connect(switch))
    }
}

/// Connects to one switch of a plan by SNMP.
///
/// # Errors
/// [`Fault`].
pub(super) fn connect_one(
    plan: &Plan,
    keyring: &Keyring,
    switch: SwitchId,
    reach: &cli::Reach,
) -> Result<Device<UdpLink>, Fault> {
    by_snmp(keyring, &plan.topology, switch, mark_vlan(plan), reach, Cancel::default())
}

/// Where a tag would be left if no switch bore one yet: what has been left is found wherever it is.
fn mark_vlan(plan: &Plan) -> VlanId {
    let management = plan.topology.in_band().map(|in_band| in_band.vlan);
    free_vlan(&plan.trees.iter().map(|tree| tree.vlan).chain(management).collect())
}

fn all_have_addresses(topology: &Topology) -> Result<()> {
    let missing: Vec<&str> =
        topology.switches().iter().filter(|switch| switch.mgmt.is_none()).map(|switch| switch.name.as_str()).collect();
    if !missing.is_empty() {
        return Err(bad_input(format!(
            "no management address for {}; add mgmt: to them in the topology and plan again",
            missing.join(", ")
        )));
    }
    Ok(())
}

fn address_of(topology: &Topology, switch: SwitchId) -> Result<IpAddr, Fault> {
    topology.switch(switch).mgmt.ok_or_else(|| Fault::Refused("it has no management address".to_owned()))
}

fn port_names(topology: &Topology, switch: SwitchId) -> Vec<String> {
    topology.port_ids(switch).map(|port| topology.port(port).name.clone()).collect()
}

fn by_snmp(
    keyring: &Keyring,
    topology: &Topology,
    switch: SwitchId,
    mark_vlan: VlanId,
    reach: &cli::Reach,
    cancel: Cancel,
) -> Result<Device<UdpLink>, Fault> {
    let name = &topology.switch(switch).name;
    let mut session = session(keyring, reach, name, address_of(topology, switch)?)?;
    session.set_cancel(cancel);
    // What the administrator says comes first, then what is known of the model.
    let told = keyring.access(name).map(|access| access.save).filter(|save| *save != SaveMethod::Unknown);
    let known = topology.switch(switch).model.save.as_deref().and_then(SaveMethod::by_name);
    let save = told.or(known).unwrap_or(SaveMethod::Unknown);
    Device::connect(session, &port_names(topology, switch), Settings { mark_vlan, save })
}

fn warn_of_weak_algorithms(topology: &Topology, keyring: &Keyring) {
    let old = |switch: &&fabric::Switch| {
        keyring.login(&switch.name).is_some_and(|(login, _)| login.old_algorithms == OldAlgorithms::Accepted)
    };
    let weak: Vec<&str> = topology.switches().iter().filter(old).map(|switch| switch.name.as_str()).collect();
    if !weak.is_empty() {
        eprintln!(
            "espalier: weak algorithms are allowed toward {}: whoever sits in between may read along and change what is said",
            weak.join(", ")
        );
    }
}

/// The shortest time that a command line may be silent: it saves, or counts thousands of entries.
const COMMAND_LINE_PATIENCE_S_MIN: f64 = 10.0;

/// Does something with each item, at most so many at a time; results in the items' order. One that takes long holds only
/// its own place.
pub(super) fn at_once<T: Send, R: Send>(items: Vec<T>, parallel: usize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let workers = items.len().min(parallel.max(1));
    let queue = Mutex::new(items.into_iter().enumerate());
    let worker = || {
        let mut done = Vec::new();
        loop {
            // Nobody holds the queue while something is done.
            let next = queue.lock().expect("taking the next does not panic").next();
            let Some((at, item)) = next else { return done };
            done.push((at, work(item)));
        }
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("the work does not panic")).collect()
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// What the plan asks of each switch.
pub(super) fn goals(plan: &Plan) -> Vec<SwitchConfig> {
    plan.devices.iter().map(|intent| SwitchConfig::of_intent(&plan.topology, intent)).collect()
}

/// The highest VLAN id that is left free, below those that switches keep for themselves.
pub(super) fn free_vlan(used: &VlanSet) -> VlanId {
    let free = (2..=4093).rev().filter_map(|id| VlanId::new(id).ok()).find(|vlan| !used.contains(*vlan));
    free.unwrap_or(VlanId::MAX)
}

/// A number that no other run draws.
pub(super) fn fresh_number() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u64(nanos);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn credentials_are_of_their_owner_alone() {
        for (owner, mode, us) in
            [(1000, 0o100_600, 1000), (1000, 0o100_400, 1000), (0, 0o100_600, 1000), (0, 0o100_700, 0)]
        {
            assert_eq!(is_private(owner, mode, us), Ok(()), "{owner} {mode:o} {us}");
        }
        for mode in [0o100_640, 0o100_604, 0o100_620, 0o100_610, 0o100_666] {
            assert!(is_private(1000, mode, 1000).is_err_and(|why| why.ends_with("chmod 600")), "{mode:o}");
        }
        for (owner, us) in [(1001, 1000), (65_534, 0), (1000, 0)] {
            assert!(is_private(owner, 0o100_600, us).is_err_and(|why| why.ends_with(&format!("chown {us}"))));
        }
    }

    /// What the way out says is enough; where the owner can be changed, another's file is refused.
    #[test]
    fn a_file_of_credentials_is_judged_as_it_is_opened() {
        let path = std::env::temp_dir().join(format!("espalier-credentials-{}.toml", std::process::id()));
        let set_mode = |mode: u32| {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
        };
        fs::write(&path, "[default]\ncommunity = \"private\"\n").expect("a file");
        set_mode(0o644);
        let refused = keyring(&path).expect_err("others can read it").to_string();
        assert!(refused.ends_with(&format!("chmod 600 {}", path.display())), "{refused}");
        set_mode(0o600);
        assert!(keyring(&path).is_ok());
        match std::os::unix::fs::chown(&path, Some(65_534), None) {
            Ok(()) => {
                let refused = keyring(&path).expect_err("it is another user's").to_string();
                assert!(refused.contains("belong to user 65534"), "{refused}");
            }
            Err(error) => eprintln!("SKIPPED: a file of another user: {error}; run the tests as root"),
        }
        fs::remove_file(&path).expect("ours");
    }

    /// The first waits until all the others are done: with a place for it and one for them it is in nobody's way.
    #[test]
    fn one_that_takes_long_holds_only_its_own_place() {
        let (busy, busiest, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |item: usize| {
            busiest.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            while item == 0 && done.load(Ordering::SeqCst) < 99 {
                thread::yield_now();
            }
            done.fetch_add(1, Ordering::SeqCst);
            busy.fetch_sub(1, Ordering::SeqCst);
            10 * item
        };
        assert_eq!(at_once((0..100).collect(), 2, work), (0..100).map(|item| 10 * item).collect::<Vec<_>>());
        assert_eq!(busiest.load(Ordering::SeqCst), 2);
        assert_eq!(at_once(vec![7, 8], 0, |item| item), [7, 8], "at least one at a time");
        assert!(at_once(Vec::<u8>::new(), 5, |item| item).is_empty());
    }
}
