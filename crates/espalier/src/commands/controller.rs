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
    SwitchConfig,
    deploy::Fault,
    format::{Keyring, parse_keyring},
    snmp::{Device, Patience, Session, Settings, UdpLink},
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

/// Connects to every switch of a plan, `devices[switch]`, some at a time.
///
/// # Errors
/// Bad input if a switch has no management address.
pub(super) fn connect(plan: &Plan, reach: &cli::Reach) -> Result<Vec<Result<Device<UdpLink>, Fault>>> {
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
    let one = |switch: SwitchId| {
        let (name, address) = (&topology.switch(switch).name, topology.switch(switch).mgmt);
        let address = address.ok_or_else(|| Fault::Refused("it has no management address".to_owned()))?;
        let session = session(&keyring, reach, name, address)?;
        let ports: Vec<String> = topology.port_ids(switch).map(|port| topology.port(port).name.clone()).collect();
        let save = keyring.access(name).map_or(device::snmp::SaveMethod::Unknown, |access| access.save);
        Device::connect(session, &ports, Settings { mark_vlan, save })
    };
    Ok(at_once(topology.switch_ids().collect(), one))
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
