//! What a running lab says of itself: ports, load, floods, drops.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use linux_net::links::links;

use crate::{
    Backend, LabError, bridge,
    counters::{DropCounts, Traffic},
    ebpf,
    error::Context,
    layout::{HostSite, Layout, SwitchSite},
    tool::{BatchOrigin, output_json},
};

/// A lab at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// How long it has been up.
    pub up: Duration,
    /// `switches[switch]`.
    pub switches: Vec<SwitchStatus>,
    /// `strays[host]`: IP packets that reached the host's device for another station's address, as unicast floods do;
    /// none where the kernel does not count them (before Linux 5.19).
    pub strays: Vec<Option<u64>>,
}

/// A switch at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchStatus {
    /// Its name in the plan.
    pub name: String,
    /// One for every port, in order.
    pub ports: Vec<PortStatus>,
}

/// A port at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// Its name in the plan.
    pub name: String,
    /// Whether its cable carries.
    pub carrier: Carrier,
    /// Capacity of each direction of its cable, if it has one.
    pub rate_bps: Option<u64>,
    /// By VLAN.
    pub traffic: BTreeMap<u16, Traffic>,
    /// By reason; none where the back end does not say.
    pub drops: Option<DropCounts>,
    /// Frames that found the queue toward the cable full.
    pub queue_drops: u64,
}

/// Whether a port's cable carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carrier {
    /// There is no cable.
    None,
    /// The link is down.
    Down,
    /// The link is up.
    Up,
}

impl Status {
    /// Evidence of unknown-unicast floods since the lab came up: the switches' own counts where they have them, packets
    /// that reached the wrong host where they do not. Zero means that there was none.
    pub fn unknown_floods(&self) -> u64 {
        let traffic = self.switches.iter().flat_map(|switch| &switch.ports).flat_map(|port| port.traffic.values());
        let counted: u64 = traffic.filter_map(|traffic| traffic.flooded_unknown).sum();
        counted + self.strays.iter().flatten().sum::<u64>()
    }

    /// Broadcast frames that entered switches since the lab came up, each counted at every switch that it entered; zero
    /// where the back end does not count them.
    pub fn broadcasts(&self) -> u64 {
        let traffic = self.switches.iter().flat_map(|switch| &switch.ports).flat_map(|port| port.traffic.values());
        traffic.filter_map(|traffic| traffic.flooded_broadcast).sum()
    }

    /// All drops, by reason.
    pub fn drops(&self) -> DropCounts {
        let mut sum = DropCounts::new();
        for (reason, count) in
            self.switches.iter().flat_map(|switch| &switch.ports).flat_map(|port| port.drops.iter().flatten())
        {
            *sum.entry(*reason).or_default() += count;
        }
        sum
    }
}

impl PortStatus {
    /// The part of the cable's outward capacity that was used while the lab was `up`, 0 to 1; none without a cable.
    pub fn load(&self, up: Duration) -> Option<f64> {
        let rate_bps = self.rate_bps.filter(|rate_bps| *rate_bps > 0)?;
        Some(8.0 * self.total().out_bytes as f64 / (rate_bps as f64 * up.as_secs_f64().max(1e-9)))
    }

    /// All VLANs together.
    pub fn total(&self) -> Traffic {
        let mut sum = Traffic::default();
        let add = |a: Option<u64>, b: Option<u64>| b.map(|b| a.unwrap_or(0) + b).or(a);
        for traffic in self.traffic.values() {
            sum.in_frames += traffic.in_frames;
            sum.in_bytes += traffic.in_bytes;
            sum.out_frames += traffic.out_frames;
            sum.out_bytes += traffic.out_bytes;
            sum.flooded_unknown = add(sum.flooded_unknown, traffic.flooded_unknown);
            sum.flooded_multicast = add(sum.flooded_multicast, traffic.flooded_multicast);
            sum.flooded_broadcast = add(sum.flooded_broadcast, traffic.flooded_broadcast);
        }
        sum
    }
}

pub(crate) fn read(layout: &Layout) -> Result<Status, LabError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let rates: BTreeMap<(&str, &str), u64> = (layout.cables.iter())
        .flat_map(|cable| {
            [&cable.a, &cable.b].map(|end| ((end.namespace.as_str(), end.device.as_str()), cable.rate_bps))
        })
        .collect();
    let switches = (layout.switches.iter().enumerate())
        .map(|(switch, site)| read_switch(layout, switch, site, &rates))
        .collect::<Result<_, _>>()?;
    let strays = layout.hosts.iter().map(strays).collect::<Result<_, _>>()?;
    Ok(Status { up: now.saturating_sub(Duration::from_secs(layout.created_unix_s)), switches, strays })
}

fn read_switch(
    layout: &Layout,
    switch: usize,
    site: &SwitchSite,
    rates: &BTreeMap<(&str, &str), u64>,
) -> Result<SwitchStatus, LabError> {
    let (traffic, drops) = match layout.backend {
        Backend::Ebpf => {
            let drops = ebpf::read_drops(&layout.name, switch, &site.name, site.ports.len())?;
            (ebpf::read_traffic(&layout.name, switch, &site.name)?, Some(drops))
        }
        Backend::Bridge => (bridge::read_traffic(site)?, None),
    };
    let links = links(&site.namespace).context("status", &site.name, "read devices")?;
    let queue_drops = queue_drops(site)?;
    let ports = (site.ports.iter().enumerate())
        .map(|(number, port)| {
            let device = port.device.as_deref();
            let rate_bps = device.and_then(|device| rates.get(&(site.namespace.as_str(), device)).copied());
            let manages = layout.management.as_ref().and_then(|management| management.in_band.as_ref());
            let cabled = rate_bps.is_some() || manages.is_some_and(|at| (at.switch, at.port) == (switch, number));
            let carrier = match device.filter(|_| cabled) {
                None => Carrier::None,
                Some(device) if links.get(device).is_some_and(|link| link.running) => Carrier::Up,
                Some(_) => Carrier::Down,
            };
            let key = number as u16;
            PortStatus {
                name: port.name.clone(),
                carrier,
                rate_bps,
                traffic: traffic
                    .range((key, 0)..=(key, u16::MAX))
                    .map(|((_, vlan), counts)| (*vlan, *counts))
                    .collect(),
                queue_drops: device.and_then(|device| queue_drops.get(device).copied()).unwrap_or(0),
                drops: drops.as_ref().and_then(|drops| drops.get(number).cloned()),
            }
        })
        .collect();
    Ok(SwitchStatus { name: site.name.clone(), ports })
}

/// Drops of the queues toward cables, by device, those of devices that were in its port before included.
pub(crate) fn queue_drops(site: &SwitchSite) -> Result<BTreeMap<String, u64>, LabError> {
    let mut drops = device_queue_drops(site)?;
    for (device, before) in site.ports.iter().filter_map(|port| Some((port.device.as_ref()?, &port.before))) {
        if before.queue_drops > 0 {
            *drops.entry(device.clone()).or_default() += before.queue_drops;
        }
    }
    Ok(drops)
}

/// Drops of the queues toward cables, by device, since each device was made.
pub(crate) fn device_queue_drops(site: &SwitchSite) -> Result<BTreeMap<String, u64>, LabError> {
    let place = BatchOrigin { operation: "status", device: &site.name, step: "read queues" };
    let shown = output_json("tc", &["-s", "-j", "qdisc", "show"], &site.namespace, place)?;
    let roots = shown.as_array().into_iter().flatten().filter(|queue| queue["root"].as_bool() == Some(true));
    Ok(roots.filter_map(|queue| Some((queue["dev"].as_str()?.to_owned(), queue["drops"].as_u64()?))).collect())
}

fn strays(host: &HostSite) -> Result<Option<u64>, LabError> {
    let links = links(&host.namespace).context("status", &host.name, "read devices")?;
    Ok(links.get(&host.device).and_then(|link| link.otherhost))
}
