//! Connections to switches: sessions over SNMP and command lines over SSH, by what the credentials say of each.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use cancel::Cancel;
use dialects::Target;
use drivers::{
    credentials::Keyring,
    snmp::{Device, SaveMethod, Settings, read_description, read_identity},
    ssh::{self, Login, NoLogin, OldAlgorithms},
};
use fabric::{Plan, SwitchId, Topology, VlanId, VlanSet};
use rollout::survey::other_answers;
use snmp::{Patience, Session, UdpLink};
use switch_model::{driver::Fault, identity::Identity, sight::SurveyReply};

use crate::{
    Error,
    goals::mark_vlan,
    number::fresh_number,
    parallel::at_once,
    reached::{Connected, Reached, each_device},
};

/// How requests to switches are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// The UDP port of their SNMP agents.
    pub port: u16,
    /// Timeout of a request.
    pub timeout: Duration,
    /// Tries per request.
    pub attempts: u32,
    /// How many switches are contacted at once.
    pub parallel: usize,
}

/// Opens a session with one switch.
///
/// # Errors
/// If nothing is known of it, or no socket opens.
pub(crate) fn session(
    keyring: &Keyring,
    options: &ConnectOptions,
    switch: &str,
    address: IpAddr,
) -> Result<Session<UdpLink>, Fault> {
    let Some(access) = keyring.access(switch) else {
        return Err(Fault::Refused(format!("no credentials for {switch}, and no [default] in the file")));
    };
    let link = UdpLink::open(SocketAddr::new(address, options.port))
        .map_err(|error| Fault::Refused(format!("no socket toward {address}: {error}")))?;
    let patience = Patience { timeout: options.timeout, attempts: options.attempts };
    Ok(Session::new(link, access.credentials.clone(), patience, fresh_number()))
}

/// The switches of a topology, and the way to each: its command line if the credentials name an ssh-user for a switch, else
/// SNMP.
pub struct Fabric<'a> {
    topology: &'a Topology,
    mark_vlan: VlanId,
    keyring: &'a Keyring,
    options: &'a ConnectOptions,
    cancel: Cancel,
}

impl<'a> Fabric<'a> {
    /// The switches of a plan. Whoever holds `cancel` can have requests end early.
    ///
    /// # Errors
    /// [`Error::Request`], if a switch has no management address.
    pub fn of(
        plan: &'a Plan,
        keyring: &'a Keyring,
        options: &'a ConnectOptions,
        cancel: Cancel,
    ) -> Result<Self, Error> {
        Self::new(&plan.topology, mark_vlan(plan), keyring, options, cancel)
    }

    /// The switches of a topology; deployment tags are left in `mark_vlan`. Whoever holds `cancel` can have requests end early.
    ///
    /// # Errors
    /// [`Error::Request`], if a switch has no management address.
    pub fn new(
        topology: &'a Topology,
        mark_vlan: VlanId,
        keyring: &'a Keyring,
        options: &'a ConnectOptions,
        cancel: Cancel,
    ) -> Result<Self, Error> {
        all_have_addresses(topology)?;
        Ok(Self { topology, mark_vlan, keyring, options, cancel })
    }

    /// How many switches are contacted at once.
    pub fn parallel(&self) -> usize {
        self.options.parallel
    }

    /// Names of switches toward which weak algorithms are allowed, so that whoever sits in between may read along and change
    /// what is said.
    pub fn weak(&self) -> Vec<&str> {
        let old = |switch: &&fabric::Switch| {
            let login = self.keyring.login(&switch.name);
            login.is_some_and(|(login, _)| login.old_algorithms == OldAlgorithms::Accepted)
        };
        self.topology.switches().iter().filter(old).map(|switch| switch.name.as_str()).collect()
    }

    /// Connects to one switch.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn connect(&self, switch: SwitchId) -> Connected {
        let Some((login, save)) = self.keyring.login(&self.topology.switch(switch).name) else {
            return self.by_snmp(switch);
        };
        let done = self.log_in(switch, login, save);
        done.map(Reached::CommandLine).map_err(|why| self.explain(switch, why.called.as_deref(), why.fault))
    }

    fn by_snmp(&self, switch: SwitchId) -> Connected {
        let done = self.connect_by_snmp(switch);
        done.map(|device| Reached::Snmp(Box::new(device))).map_err(|fault| self.explain(switch, None, fault))
    }

    fn log_in(&self, switch: SwitchId, login: &Login, save: SaveMethod) -> Result<ssh::Device, NoLogin> {
        let Self { topology, mark_vlan, options, .. } = self;
        let address = address_of(topology, switch)?;
        let target: Option<Target> = topology.switch(switch).model.syntax.as_deref().and_then(|name| name.parse().ok());
        let target = target.ok_or_else(|| {
            Fault::Refused(
                "its command-line language is not known; name its model in the topology, or leave ssh-user out of its credentials"
                    .to_owned(),
            )
        })?;
        let patience = (options.timeout * options.attempts).clamp(COMMAND_LINE_PATIENCE_MIN, PATIENCE_MAX);
        let settings = Settings { mark_vlan: *mark_vlan, save };
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
        let mut session = session(self.keyring, self.options, name, address).ok()?;
        session.set_cancel(self.cancel.clone());
        let identity = read_identity(&mut session).ok()?;
        let description = read_description(&mut session).ok()?;
        Some((identity, description))
    }

    /// Has a switch include the unmanaged ports that have to do with these VLANs; their names.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn include_unmanaged(
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
    pub fn include_all_unmanaged(&self, devices: &mut [Connected], vlans: &VlanSet) -> Vec<Vec<String>> {
        each_device(devices, self.options.parallel, |at, device| {
            self.include_unmanaged(SwitchId::new(at), device, vlans)
        })
    }

    /// Connects to one switch to look at it: by SNMP if the credentials know how and it answers, since what it counts and
    /// whom it hears is not asked otherwise, else by its command line.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn connect_to_look(&self, switch: SwitchId) -> Connected {
        let (name, keyring) = (&self.topology.switch(switch).name, self.keyring);
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
    pub fn survey(&self, switch: SwitchId, device: &mut Reached) -> Result<Option<SurveyReply>, Fault> {
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

    /// Connects to one switch by SNMP, whatever the credentials say of its command line.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn connect_by_snmp(&self, switch: SwitchId) -> Result<Device<UdpLink>, Fault> {
        let Self { topology, mark_vlan, keyring, options, cancel } = self;
        by_snmp(keyring, topology, switch, *mark_vlan, options, cancel.clone())
    }

    /// Connects to every switch, `devices[switch]`, some at a time.
    pub fn connect_all(&self) -> Vec<Connected> {
        at_once(self.topology.switch_ids().collect(), self.options.parallel, |switch| self.connect(switch))
    }
}

fn all_have_addresses(topology: &Topology) -> Result<(), Error> {
    let missing: Vec<&str> =
        topology.switches().iter().filter(|switch| switch.mgmt.is_none()).map(|switch| switch.name.as_str()).collect();
    if !missing.is_empty() {
        return Err(Error::Request(format!(
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
    options: &ConnectOptions,
    cancel: Cancel,
) -> Result<Device<UdpLink>, Fault> {
    let name = &topology.switch(switch).name;
    let mut session = session(keyring, options, name, address_of(topology, switch)?)?;
    session.set_cancel(cancel);
    // What the administrator says comes first, then what is known of the model.
    let told = keyring.access(name).map(|access| access.save).filter(|save| *save != SaveMethod::Unknown);
    let known = topology.switch(switch).model.save.as_deref().and_then(SaveMethod::by_name);
    let save = told.or(known).unwrap_or(SaveMethod::Unknown);
    Device::connect(session, &port_names(topology, switch), Settings { mark_vlan, save })
}

/// Shortest timeout of a command line, which may be saving, or counting thousands of entries.
const COMMAND_LINE_PATIENCE_MIN: Duration = Duration::from_secs(10);
/// Longest timeout of any request.
const PATIENCE_MAX: Duration = Duration::from_secs(600);
