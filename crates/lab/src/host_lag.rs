//! A host's LAG where it is not the kernel's bond: a pair of devices, and tc programs between it and the members.
//!
//! ```text
//!   eth0 ══ eth0~ ─ distribute ─▶ eth0.0 ═ p5 switch           programs: bpf/host_lag.bpf.c
//!                 ◀─ collect ──── eth0.1 ═ p6 switch           LACP: a process of the lab, by the members
//! ```
//! The host uses `eth0` as it uses any other device. Its carrier stays when all members have lost theirs, and senders get no
//! backpressure from the members' queues: a frame that finds a queue full is dropped.

use std::{fs, os::fd::AsFd, path::PathBuf};

use libbpf_rs::{MapCore, MapFlags, MapHandle, ObjectBuilder};

use crate::{
    LabError,
    ebpf::{self, lag::lag_value},
    error::Context,
    layout::{HostSite, Layout},
    netns,
    shaper::port_mtu_bytes,
    speaker::MemberUse,
};

const OBJECT: &[u8] = include_bytes!("../bpf/host_lag.bpf.o");
/// The program for the far end of the host's device; the other one is for members.
const DISTRIBUTE: &str = "espalier_distribute";
const MAP: &str = "lag";
/// Index of the far end of a machine's first port, which that of the next one follows: above those of ports, below those
/// of members.
const INSIDE_IFINDEX_BASE: u32 = 4096;

/// The far end of the device that the host uses.
pub(crate) fn inside_device(site: &HostSite) -> String {
    format!("{}~", site.device)
}

/// The commands that make the devices of a host's LAG beside its members, which are there already; none where it is on none.
/// Members have the host's address, so that what is said by LLDP there is the host's.
pub(crate) fn device_script(site: &HostSite) -> String {
    if site.members.is_empty() {
        return String::new();
    }
    let HostSite { device, ifindex, mac, mtu_bytes, .. } = site;
    let (inside, mtu_bytes) = (inside_device(site), port_mtu_bytes(*mtu_bytes));
    let pair = format!(
        "link add name {device} index {ifindex} type veth peer name {inside} index {}\n\
         link set dev {inside} mtu {mtu_bytes} addrgenmode none up\n",
        inside_ifindex(site)
    );
    site.members.iter().fold(pair, |script, member| {
        let member = &member.device;
        script + &format!("link set dev {member} address {mac} mtu {mtu_bytes} addrgenmode none up\n")
    })
}

/// Loads the programs of a host's LAG and hangs them on its devices, which are there.
///
/// # Errors
/// [`LabError::Bpf`] or [`LabError::Io`] that name the host and the step.
pub(crate) fn attach(layout: &Layout, host: usize) -> Result<(), LabError> {
    let site = &layout.hosts[host];
    let device = site.name.as_str();
    libbpf_rs::set_print(None);
    let open = ObjectBuilder::default().open_memory(OBJECT).context("up", device, "read program")?;
    let mut object = open.load().context("up", device, "load program")?;
    let pins = pins(&layout.name, host);
    fs::create_dir_all(&pins).context("up", device, "pin maps")?;
    for mut map in object.maps_mut().filter(|map| map.name() == MAP) {
        map.update(&0_u32.to_ne_bytes(), &value(site, &[]), MapFlags::ANY).context("up", device, "write the LAG")?;
        map.pin(pins.join(MAP)).context("up", device, "pin maps")?;
    }
    for program in object.progs() {
        let devices: Vec<u32> = match program.name() == DISTRIBUTE {
            true => vec![inside_ifindex(site)],
            false => site.members.iter().map(|member| member.ifindex).collect(),
        };
        let fd = program.as_fd();
        let attach = || devices.iter().try_for_each(|ifindex| ebpf::attach(fd, *ifindex as i32));
        let attached = netns::within(&site.namespace, attach).context("up", device, "enter namespace")?;
        attached.context("up", device, "attach program")?;
    }
    Ok(())
}

/// The table of a running host's LAG.
pub(crate) struct HostLagTable<'a> {
    site: &'a HostSite,
    map: MapHandle,
}

impl<'a> HostLagTable<'a> {
    /// Opens the pinned map of a host.
    ///
    /// # Errors
    /// [`LabError::Bpf`] if the pin is gone.
    pub(crate) fn open(layout: &'a Layout, host: usize) -> Result<Self, LabError> {
        let site = &layout.hosts[host];
        let map = MapHandle::from_pinned_path(pins(&layout.name, host).join(MAP));
        Ok(Self { site, map: map.context("serve", &site.name, "open pinned maps")? })
    }

    /// Writes what the members do. `uses[member]`.
    ///
    /// # Errors
    /// [`LabError::Bpf`].
    pub(crate) fn set(&self, uses: &[MemberUse]) -> Result<(), LabError> {
        let value = value(self.site, uses);
        self.map.update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY).context("serve", &self.site.name, "write the LAG")
    }

    /// How many members distribute.
    ///
    /// # Errors
    /// [`LabError::Bpf`].
    pub(crate) fn active(&self) -> Result<usize, LabError> {
        let value = self.map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let value = value.context("status", &self.site.name, "read the LAG")?;
        let count = value.as_deref().and_then(|value| value.get(COUNT_AT..COUNT_AT + 4)?.try_into().ok());
        Ok(count.map_or(0, u32::from_ne_bytes) as usize)
    }
}

/// Offset of `distributing.count` in `struct host_lag`.
const COUNT_AT: usize = 16;
/// Size of `struct host_lag`.
const VALUE_BYTES: usize = 152;

/// `struct host_lag`.
fn value(site: &HostSite, uses: &[MemberUse]) -> Vec<u8> {
    let first = site.members.first().map_or(0, |member| member.ifindex);
    let collecting =
        (uses.iter().enumerate()).fold(0_u64, |bits, (member, of)| bits | u64::from(of.collects) << member);
    let distributing: Vec<u16> = (0_u16..).zip(uses).filter(|(_, of)| of.distributes).map(|(at, _)| at).collect();
    let mut value = [
        &first.to_ne_bytes()[..],
        &inside_ifindex(site).to_ne_bytes(),
        &collecting.to_ne_bytes(),
        &lag_value(&distributing),
    ]
    .concat();
    value.resize(VALUE_BYTES, 0);
    value
}

/// Where the map of a host, by its position, is pinned.
fn pins(lab: &str, host: usize) -> PathBuf {
    ebpf::pins().join(lab).join(format!("h{host}"))
}

fn inside_ifindex(site: &HostSite) -> u32 {
    INSIDE_IFINDEX_BASE + site.ifindex
}
