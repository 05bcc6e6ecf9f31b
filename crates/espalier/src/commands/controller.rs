//! What the verbs for real switches share: credentials, sessions, what a plan asks of each switch.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    path::Path,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use device::{
    SwitchConfig, Target,
    deploy::{Driver, Fault},
    format::{Keyring, parse_keyring},
    snmp::{Device, Patience, Session, Settings, UdpLink},
    ssh::{self, Login, OldAlgorithms},
};
use fabric::{Plan, SwitchId, VlanId, VlanSet};

use crate::{cli, failure::bad_input};

/// Reads the credentials, from a file that nobody else can read.
///
/// # Errors
/// Bad input.
pub(super) fn keyring(path: &Path) -> Result<Keyring> {
    use std::os::unix::fs::PermissionsExt as _;
    let way_out = "write one with a [default] table of user, auth-password and privacy-password; see docs/switches.md";
    let metadata = fs::metadata(path).map_err(|error| bad_input(format!("{}: {error}; {way_out}", path.display())))?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(bad_input(format!("{0}: others can read these credentials; chmod 600 {0}", path.display())));
    }
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse_keyring(&text, &|name| std::env::var(name).ok())
        .map_err(|error| bad_input(format!("{}: {error}", path.display())))
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

/// A switch that answers, by whichever way, or why it does not.
pub(super) type Connected = Result<Box<dyn Driver>, Fault>;

/// Connects to every switch of a plan, `devices[switch]`, some at a time: by its command line if the credentials name an
/// ssh-user for it, else by SNMP.
///
/// # Errors
/// Bad input if a switch has no management address.
pub(super) fn connect(plan: &Plan, reach: &cli::Reach) -> Result<Vec<Connected>> {
    let keyring = keyring(&reach.credentials)?;
    let topology = &plan.topology;
    let missing: Vec<&str> =
        topology.switches().iter().filter(|switch| switch.mgmt.is_none()).map(|switch| switch.name.as_str()).collect();
    if !missing.is_empty() {
        return Err(bad_input(format!(
            "no management address for {}; add mgmt: to them in the topology and plan again",
            missing.join(", ")
        )));
    }
    let mark_vlan = mark_vlan(plan);
    let old = |switch: &fabric::Switch| {
        keyring.login(&switch.name).is_some_and(|(login, _)| login.old_algorithms == OldAlgorithms::Accepted)
    };
    let weak: Vec<&str> =
        topology.switches().iter().filter(|switch| old(switch)).map(|switch| switch.name.as_str()).collect();
    if !weak.is_empty() {
        eprintln!(
            "espalier: weak algorithms are allowed toward {}: whoever sits in between may read along and change what is said",
            weak.join(", ")
        );
    }
    let one = |switch: SwitchId| {
        let (name, address) = (&topology.switch(switch).name, topology.switch(switch).mgmt);
        let address = address.ok_or_else(|| Fault::Refused("it has no management address".to_owned()))?;
        let ports: Vec<String> = topology.port_ids(switch).map(|port| topology.port(port).name.clone()).collect();
        if let Some((login, save)) = keyring.login(name) {
            let target = topology.switch(switch).model.syntax.as_deref().and_then(|name| name.parse().ok());
            let device = log_in(reach, address, login, target, &ports, Settings { mark_vlan, save })?;
            return Ok(Box::new(device) as Box<dyn Driver>);
        }
        let session = session(&keyring, reach, name, address)?;
        let save = keyring.access(name).map_or(device::snmp::SaveMethod::Unknown, |access| access.save);
        Ok(Box::new(Device::connect(session, &ports, Settings { mark_vlan, save })?) as Box<dyn Driver>)
    };
    Ok(at_once(topology.switch_ids().collect(), one))
}

/// The shortest time that a command line may be silent: it saves, or counts thousands of entries.
const COMMAND_LINE_PATIENCE_S_MIN: f64 = 10.0;

fn log_in(
    reach: &cli::Reach,
    address: IpAddr,
    login: &Login,
    target: Option<Target>,
    ports: &[String],
    settings: Settings,
) -> Result<ssh::Device, Fault> {
    let Some(target) = target else {
        return Err(Fault::Refused(
            "nobody knows its language; name its model in the topology, or leave ssh-user out of its credentials"
                .to_owned(),
        ));
    };
    let patience = (reach.timeout * f64::from(reach.attempts)).clamp(COMMAND_LINE_PATIENCE_S_MIN, 600.0);
    ssh::connect(address, login, target, ports, settings, Duration::from_secs_f64(patience))
}

/// Most sessions that are opened at once.
pub(super) const PARALLEL: usize = 32;

/// Does something for each item, some at a time; results in the items' order.
pub(super) fn at_once<T: Copy + Send + Sync, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let mut results = Vec::with_capacity(items.len());
    for batch in items.chunks(PARALLEL) {
        thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> = batch.iter().map(|item| scope.spawn(move || work(*item))).collect();
            for thread in threads {
                results.push(thread.join().expect("the work does not panic"));
            }
        });
    }
    results
}

/// What the plan asks of each switch.
pub(super) fn goals(plan: &Plan) -> Vec<SwitchConfig> {
    plan.devices.iter().map(|intent| SwitchConfig::of_intent(&plan.topology, intent)).collect()
}

/// The highest VLAN id that the plan leaves free, below those that switches keep for themselves.
fn mark_vlan(plan: &Plan) -> VlanId {
    let used: VlanSet = plan.trees.iter().map(|tree| tree.vlan).collect();
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
