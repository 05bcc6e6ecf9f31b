//! Waits until a built lab carries its first frame.
//!
//! The kernel does not use a cable at the moment when both ends are up. It notes the carrier, and looks at its notes at most
//! once a second: until then a device's queue is one that drops, and a bridge's port is disabled. `IFF_RUNNING` says that the
//! kernel has looked.
//!
//! Source: `net/core/link_watch.c`.

use std::{
    collections::{BTreeMap, BTreeSet},
    io, thread,
    time::{Duration, Instant},
};

use linux_net::links::links;

use crate::{
    LabError,
    bond::{self, BondSite},
    error::Context,
    layout::{Layout, Shut},
    netns,
    signal::Watch,
};

/// The kernel takes a second; a machine that emulates another one takes several.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often devices are asked.
const PERIOD: Duration = Duration::from_millis(5);

/// Returns once both ends of every cable that the plan uses are running.
///
/// # Errors
/// [`LabError::Interrupted`], or [`LabError::Io`] naming a cable end that is not running after
/// [`PATIENCE`].
pub(crate) fn wait(layout: &Layout, watch: &Watch) -> Result<(), LabError> {
    let deadline = Instant::now() + PATIENCE;
    let mut pending = ends(layout);
    loop {
        let mut late = None;
        for (namespace, devices) in &mut pending {
            let links = links(namespace).context("up", namespace, "read devices")?;
            devices.retain(|device| !links.get(*device).is_some_and(|link| link.running));
            late = late.or_else(|| devices.first().map(|device| (namespace.to_string(), *device)));
        }
        pending.retain(|_, devices| !devices.is_empty());
        let bonds = if late.is_none() { disagreeing(layout)? } else { None };
        let Some((namespace, device)) = late.or(bonds) else { return Ok(()) };
        if watch.has_fired() {
            return Err(LabError::Interrupted);
        }
        if Instant::now() > deadline {
            let error = io::Error::new(io::ErrorKind::TimedOut, format!("{device} is not up after {PATIENCE:?}"));
            return Err(error).context("up", &namespace, "wait for cables");
        }
        thread::sleep(PERIOD);
    }
}

/// A bond, with its namespace, of which not all members are agreed on with the far end: frames would be lost there.
fn disagreeing(layout: &Layout) -> Result<Option<(String, &str)>, LabError> {
    for BondSite { namespace, device, members } in bond::bonds(layout) {
        let agreed = netns::within(namespace, || bond::agreed(device)).and_then(|result| result);
        if agreed.context("up", namespace, "read a bond")? < members {
            return Ok(Some((namespace.to_owned(), device)));
        }
    }
    Ok(None)
}

/// By namespace: the devices of cables of which neither end is shut.
fn ends(layout: &Layout) -> BTreeMap<&str, BTreeSet<&str>> {
    let ports = layout.switches.iter().flat_map(|site| site.ports.iter().map(move |port| (&site.namespace, port)));
    let shut: BTreeSet<(&str, &str)> = ports
        .filter(|(_, port)| port.shut == Shut::Yes)
        .filter_map(|(namespace, port)| Some((namespace.as_str(), port.device.as_deref()?)))
        .collect();
    let mut ends = BTreeMap::<&str, BTreeSet<&str>>::new();
    for cable in &layout.cables {
        let both = [&cable.a, &cable.b].map(|end| (end.namespace.as_str(), end.device.as_str()));
        if both.iter().any(|end| shut.contains(end)) {
            continue;
        }
        for (namespace, device) in both {
            ends.entry(namespace).or_default().insert(device);
        }
    }
    ends
}
