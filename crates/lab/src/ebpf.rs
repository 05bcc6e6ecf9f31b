//! The tc switch: loads `bpf/switch.bpf.o` once a switch, fills its maps from the tables, hangs it on every port.
//!
//! ```text
//! /sys/fs/bpf/espalier/LAB/s0/{ports,vlans,fdb,traffic,drops,program}     switch 0
//!                          s1/…                                           switch 1
//! ```
//!
//! The programs live as long as the devices that they hang on. The pins are for reading: counters from another process,
//! tables with bpftool, the program for test runs.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, TC_INGRESS, TcHookBuilder};
use nix::mount::{MsFlags, mount};

use crate::{
    LabError,
    error::Context,
    layout::Layout,
    netns,
    status::{DropCounts, Traffic},
    table::{PORT_IFINDEX_BASE, PORTS_MAX, PortSet, Service, SwitchTable},
    twin::DropReason,
};

const OBJECT: &[u8] = include_bytes!("../bpf/switch.bpf.o");
const BPFFS: &str = "/sys/fs/bpf";
const PORT_UP: u16 = 1;
const PROGRAM: &str = "espalier_switch";

/// Where the maps of all labs are pinned.
pub(crate) fn pins() -> PathBuf {
    Path::new(BPFFS).join("espalier")
}

/// Where the maps of a switch, by its position, are pinned.
pub(crate) fn switch_pins(lab: &str, switch: usize) -> PathBuf {
    pins().join(lab).join(format!("s{switch}"))
}

/// Whether the switch program loads here.
///
/// # Errors
/// What is missing, and the way out.
pub(crate) fn probe() -> Result<(), String> {
    open("probe").and_then(|object| object.load().context("probe", "ebpf", "load program")).map(drop).map_err(|error| {
        format!(
            "the kernel does not load the eBPF switch ({error}): it needs root (CAP_BPF, CAP_NET_ADMIN) and Linux 5.17."
        )
    })
}

/// Mounts the BPF file system unless it is there.
///
/// # Errors
/// [`LabError::Io`].
pub(crate) fn mount_bpffs(lab: &str) -> Result<(), LabError> {
    let mut mounts = String::new();
    fs::File::open("/proc/mounts").and_then(|mut file| file.read_to_string(&mut mounts)).context(
        "up",
        lab,
        "read mounts",
    )?;
    let mounted = mounts.lines().any(|line| {
        let mut fields = line.split(' ').skip(1);
        fields.next() == Some(BPFFS) && fields.next() == Some("bpf")
    });
    if mounted {
        return Ok(());
    }
    mount(Some("bpf"), BPFFS, Some("bpf"), MsFlags::empty(), None::<&str>).context("up", lab, "mount /sys/fs/bpf")
}

/// Makes one switch of a lab: program, tables, pins, hooks.
///
/// # Errors
/// [`LabError::Bpf`] or [`LabError::Io`] that name the switch and the step.
pub(crate) fn build_switch(layout: &Layout, switch: usize, table: &SwitchTable) -> Result<(), LabError> {
    let site = &layout.switches[switch];
    let device = site.name.as_str();
    let mut object = load(device, table)?;
    pin(&mut object, device, &switch_pins(&layout.name, switch))?;
    let program = object.progs().find(|program| program.name() == PROGRAM).expect("the object has its program");
    let devices: Vec<i32> = (site.ports.iter().enumerate())
        .filter(|(_, port)| port.device.is_some())
        .map(|(number, _)| (PORT_IFINDEX_BASE + number as u32) as i32)
        .collect();
    let fd = program.as_fd();
    let attach = || {
        devices.iter().try_for_each(|ifindex| {
            let mut hook =
                TcHookBuilder::new(fd).ifindex(*ifindex).replace(true).handle(1).priority(1).hook(TC_INGRESS);
            hook.create()?;
            hook.attach().map(drop)
        })
    };
    netns::within(&site.namespace, attach).context("up", device, "enter namespace")?.context(
        "up",
        device,
        "attach program",
    )
}

/// Traffic of a switch, by port number and VLAN.
///
/// # Errors
/// [`LabError::Bpf`] if a pin is gone.
pub(crate) fn read_traffic(lab: &str, switch: usize, device: &str) -> Result<BTreeMap<(u16, u16), Traffic>, LabError> {
    sum_traffic(&pinned(lab, switch, device, "traffic")?, device)
}

fn sum_traffic(map: &impl MapCore, device: &str) -> Result<BTreeMap<(u16, u16), Traffic>, LabError> {
    let mut traffic = BTreeMap::new();
    for key in map.keys() {
        let Some(values) = map.lookup_percpu(&key, MapFlags::ANY).context("status", device, "read traffic")? else {
            continue;
        };
        let mut sum = [0_u64; 7];
        for (slot, total) in sum.iter_mut().enumerate() {
            *total = values.iter().map(|value| word(value, slot)).sum();
        }
        let [in_frames, in_bytes, out_frames, out_bytes, flooded_unknown, flooded_multicast, flooded_broadcast] = sum;
        let port = u16::from_ne_bytes([key[0], key[1]]);
        let vlan = u16::from_ne_bytes([key[2], key[3]]);
        traffic.insert(
            (port, vlan),
            Traffic {
                in_frames,
                in_bytes,
                out_frames,
                out_bytes,
                flooded_unknown: Some(flooded_unknown),
                flooded_multicast: Some(flooded_multicast),
                flooded_broadcast: Some(flooded_broadcast),
            },
        );
    }
    Ok(traffic)
}

/// Drops of a switch, by port number.
///
/// # Errors
/// [`LabError::Bpf`] if a pin is gone.
pub(crate) fn read_drops(lab: &str, switch: usize, device: &str, ports: usize) -> Result<Vec<DropCounts>, LabError> {
    sum_drops(&pinned(lab, switch, device, "drops")?, device, ports)
}

fn sum_drops(map: &impl MapCore, device: &str, ports: usize) -> Result<Vec<DropCounts>, LabError> {
    let mut drops = Vec::with_capacity(ports);
    for port in 0..ports.min(PORTS_MAX) {
        let mut counts = DropCounts::default();
        for (slot, reason) in DropReason::ALL.into_iter().enumerate() {
            let key = (port * DropReason::ALL.len() + slot) as u32;
            let values =
                map.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY).context("status", device, "read drops")?;
            let count = values.iter().flatten().map(|value| word(value, 0)).sum();
            if count > 0 {
                counts.insert(reason, count);
            }
        }
        drops.push(counts);
    }
    Ok(drops)
}

/// Removes the pins of a lab.
///
/// # Errors
/// [`LabError::Io`].
pub(crate) fn unpin(lab: &str) -> Result<(), LabError> {
    let ignore_missing = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    };
    ignore_missing(fs::remove_dir_all(pins().join(lab))).context("down", lab, "remove pinned maps")?;
    // The directory of all labs goes with the last one; while another lab has pins this fails, as it should.
    let _ = fs::remove_dir(pins());
    Ok(())
}

fn open(device: &str) -> Result<OpenObject, LabError> {
    libbpf_rs::set_print(None);
    let mut builder = ObjectBuilder::default();
    let builder = builder.name("espalier").context("up", device, "read program")?;
    builder.open_memory(OBJECT).context("up", device, "read program")
}

/// Loads a program with maps of its own, sized for the tables and filled with them.
fn load(device: &str, table: &SwitchTable) -> Result<Object, LabError> {
    let mut open = open(device)?;
    let traffic_len = table.vlans.values().map(|members| members.iter().count()).sum::<usize>();
    for mut map in open.maps_mut() {
        let entries = match map.name().to_str() {
            Some("vlans") => table.vlans.len(),
            Some("fdb") => table.fdb.len(),
            Some("traffic") => traffic_len,
            _ => continue,
        };
        map.set_max_entries(entries.max(1) as u32).context("up", device, "size tables")?;
    }
    let object = open.load().context("up", device, "load program")?;
    fill(&object, device, table)?;
    Ok(object)
}

fn fill(object: &Object, device: &str, table: &SwitchTable) -> Result<(), LabError> {
    let map = |name: &str| object.maps().find(|map| map.name() == name).expect("the object has its maps");
    let (ports, vlans, fdb, traffic) = (map("ports"), map("vlans"), map("fdb"), map("traffic"));
    for (number, port) in (0_u32..).zip(&table.ports) {
        let flags = if port.service == Service::Up { PORT_UP } else { 0 };
        let value = [port.pvid.map_or(0, fabric::VlanId::get).to_ne_bytes(), flags.to_ne_bytes()].concat();
        ports.update(&number.to_ne_bytes(), &value, MapFlags::ANY).context("up", device, "write ports")?;
    }
    let cpus = libbpf_rs::num_possible_cpus().context("up", device, "count processors")?;
    let zero = vec![vec![0_u8; size_of::<[u64; 7]>()]; cpus];
    for (vlan, members) in &table.vlans {
        let ports_end = members.iter().last().map_or(0, |port| u32::from(port) + 1);
        let words = |set: &PortSet| set.words().map(u64::to_ne_bytes).concat();
        let value = [words(&members.tagged), words(&members.untagged), ports_end.to_ne_bytes().to_vec(), vec![0; 4]];
        vlans.update(&vlan.get().to_ne_bytes(), &value.concat(), MapFlags::ANY).context("up", device, "write VLANs")?;
        for port in members.iter() {
            let key = [port.to_ne_bytes(), vlan.get().to_ne_bytes()].concat();
            traffic.update_percpu(&key, &zero, MapFlags::ANY).context("up", device, "write counters")?;
        }
    }
    for ((vlan, mac), port) in &table.fdb {
        let key = [&mac.octets()[..], &vlan.get().to_ne_bytes()].concat();
        let value = u32::from(*port).to_ne_bytes();
        fdb.update(&key, &value, MapFlags::ANY).context("up", device, "write static entries")?;
    }
    Ok(())
}

fn pin(object: &mut Object, device: &str, directory: &Path) -> Result<(), LabError> {
    fs::create_dir_all(directory).context("up", device, "pin maps")?;
    for mut map in object.maps_mut() {
        let path = directory.join(map.name());
        map.pin(path).context("up", device, "pin maps")?;
    }
    for mut program in object.progs_mut() {
        program.pin(directory.join("program")).context("up", device, "pin program")?;
    }
    Ok(())
}

fn pinned(lab: &str, switch: usize, device: &str, map: &str) -> Result<MapHandle, LabError> {
    MapHandle::from_pinned_path(switch_pins(lab, switch).join(map)).context("status", device, "open pinned maps")
}

fn word(value: &[u8], slot: usize) -> u64 {
    value.get(8 * slot..8 * slot + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

#[cfg(test)]
mod twin_test;
