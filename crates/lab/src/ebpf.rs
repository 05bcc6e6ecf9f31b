//! The tc switch: loads `bpf/switch.bpf.o` once a switch, fills its maps from the tables, hangs it on every port.
//!
//! ```text
//! /sys/fs/bpf/espalier/LAB/s0/{ports,members,lags,vlans,fdb,traffic,drops,program}     switch 0
//!                          s1/…                                           switch 1
//! ```
//!
//! The programs live as long as the devices that they hang on. The pins are for reading: counters from another process,
//! tables with bpftool, the program for test runs.

pub(crate) mod lag;

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use fabric::{FloodKind, Mac, VlanId};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, Program, TC_INGRESS, TcHookBuilder};
use nix::mount::{MsFlags, mount};

use crate::{
    LabError,
    counters::{DropCounts, Traffic},
    error::Context,
    layout::{LagMethod, Layout, PortSite},
    netns,
    table::{
        LagPart, Learning, Members, PORT_IFINDEX_BASE, PORTS_MAX, PortEntry, PortSet, Relay, STATICS_MAX, Service,
        SwitchTable, VLANS_MAX,
    },
    twin::DropReason,
};

const OBJECT: &[u8] = include_bytes!("../bpf/switch.bpf.o");
const BPFFS: &str = "/sys/fs/bpf";
const PORT_UP: u16 = 1;
const PORT_LEARN: u16 = 2;
const PORT_BLOCKED: u16 = 4;
const PORT_LAG: u16 = 64;
const PORT_MEMBER: u16 = 128;
/// The flag of ports by which floods of a kind do not leave.
const FLOOD_FLAGS: [(FloodKind, u16); 3] =
    [(FloodKind::UnknownUnicast, 8), (FloodKind::Multicast, 16), (FloodKind::Broadcast, 32)];
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
    let room = match &layout.management {
        None => TableCapacity::exactly(table),
        Some(_) => TableCapacity::grown(VLANS_MAX, STATICS_MAX, table.ports.len() * VLANS_MAX),
    };
    let mut object = load(device, table, &room)?;
    pin(&mut object, device, &switch_pins(&layout.name, switch))?;
    let program = object.progs().find(|program| program.name() == PROGRAM).expect("the object has its program");
    // Ports that the site does not list are the switch's own; frames of a bond's members come in by the bond.
    let is_bonded = |port: &PortSite| layout.lags == LagMethod::Bonds && port.lag.is_some();
    let has_device =
        |number: &usize| site.ports.get(*number).is_none_or(|port| port.device.is_some() && !is_bonded(port));
    let devices: Vec<i32> =
        (0..table.ports.len()).filter(has_device).map(|number| (PORT_IFINDEX_BASE + number as u32) as i32).collect();
    let fd = program.as_fd();
    let attach = || devices.iter().try_for_each(|ifindex| attach(fd, *ifindex));
    netns::within(&site.namespace, attach).context("up", device, "enter namespace")?.context(
        "up",
        device,
        "attach program",
    )
}

/// Hangs the program of a running switch on a device that has come to one of its ports.
///
/// # Errors
/// [`LabError::Bpf`] if the pin is gone or the kernel refuses.
pub(crate) fn attach_pinned(layout: &Layout, switch: usize, ifindex: u32) -> Result<(), LabError> {
    let site = &layout.switches[switch];
    let pin = switch_pins(&layout.name, switch).join("program");
    let fd = Program::fd_from_pinned_path(pin).context("plug", &site.name, "open the pinned program")?;
    netns::within(&site.namespace, || attach(fd.as_fd(), ifindex as i32))
        .context("plug", &site.name, "enter namespace")?
        .context("plug", &site.name, "attach program")
}

/// Hangs a program on a device of the calling thread's namespace.
pub(crate) fn attach(program: BorrowedFd<'_>, ifindex: i32) -> Result<(), libbpf_rs::Error> {
    let mut hook = TcHookBuilder::new(program).ifindex(ifindex).replace(true).handle(1).priority(1).hook(TC_INGRESS);
    hook.create()?;
    hook.attach().map(drop)
}

/// Whether a port of a running switch is administratively up.
///
/// # Errors
/// [`LabError::Bpf`] if the pin is gone.
pub(crate) fn is_up(lab: &str, switch: usize, device: &str, port: usize) -> Result<bool, LabError> {
    let ports = pinned(lab, switch, device, "ports")?;
    let value = ports.lookup(&(port as u32).to_ne_bytes(), MapFlags::ANY).context("status", device, "read ports")?;
    let flags = value.as_deref().and_then(|value| value.get(2..4)?.try_into().ok()).map_or(0, u16::from_ne_bytes);
    Ok(flags & PORT_UP != 0)
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

/// The tables of a running switch, for its agent.
pub(crate) struct Tables {
    device: String,
    /// `member_of[port]`: the LAG that a port is a member of.
    member_of: Vec<Option<usize>>,
    ports: MapHandle,
    vlans: MapHandle,
    fdb: MapHandle,
    learned: MapHandle,
    traffic: MapHandle,
    drops: MapHandle,
    cpus: usize,
}

impl Tables {
    /// Opens the pinned maps of a switch.
    ///
    /// # Errors
    /// [`LabError::Bpf`] if a pin is gone.
    pub(crate) fn open(layout: &Layout, switch: usize) -> Result<Self, LabError> {
        let site = &layout.switches[switch];
        let device = site.name.as_str();
        let map = |name| pinned(&layout.name, switch, device, name);
        Ok(Self {
            device: device.to_owned(),
            member_of: site.ports.iter().map(|port| port.lag).collect(),
            ports: map("ports")?,
            vlans: map("vlans")?,
            fdb: map("fdb")?,
            learned: map("learned")?,
            traffic: map("traffic")?,
            drops: map("drops")?,
            cpus: libbpf_rs::num_possible_cpus().context("serve", device, "count processors")?,
        })
    }

    /// Writes a port.
    pub(crate) fn set_port(&self, number: u16, port: &PortEntry) -> Result<(), LabError> {
        let key = u32::from(number).to_ne_bytes();
        self.ports.update(&key, &port_value(port), MapFlags::ANY).context("serve", &self.device, "write ports")
    }

    /// Writes a VLAN, or removes it. Counters of members that were there go on.
    pub(crate) fn set_vlan(&self, vlan: VlanId, members: Option<&Members>) -> Result<(), LabError> {
        let key = vlan.get().to_ne_bytes();
        let Some(members) = members else { return self.remove(&self.vlans, &key, "write VLANs") };
        let zero = vec![vec![0_u8; size_of::<[u64; 7]>()]; self.cpus];
        let of_lags = (0_u16..).zip(&self.member_of).filter_map(|(member, lag)| Some((member, (*lag)? as u16)));
        let of_lags = of_lags.filter(|(_, lag)| members.contains(*lag)).map(|(member, _)| member);
        for port in members.iter().chain(of_lags) {
            let counter = [port.to_ne_bytes(), key].concat();
            let known = self.traffic.lookup_percpu(&counter, MapFlags::ANY);
            if known.context("serve", &self.device, "read counters")?.is_none() {
                let made = patiently(|| self.traffic.update_percpu(&counter, &zero, MapFlags::ANY));
                made.context("serve", &self.device, "write counters")?;
            }
        }
        let written = patiently(|| self.vlans.update(&key, &vlan_value(members), MapFlags::ANY));
        written.context("serve", &self.device, "write VLANs")
    }

    /// Writes a static entry, or removes it.
    pub(crate) fn set_static(&self, vlan: VlanId, mac: Mac, port: Option<u16>) -> Result<(), LabError> {
        let key = fdb_key(vlan, mac);
        // A table has one row for an address in a VLAN: what was learned, before or beside the entry, is gone.
        if self.learned.lookup(&key, MapFlags::ANY).context("serve", &self.device, "read learned addresses")?.is_some()
        {
            self.remove(&self.learned, &key, "forget addresses")?;
        }
        let Some(port) = port else { return self.remove(&self.fdb, &key, "write static entries") };
        let value = u32::from(port).to_ne_bytes();
        let written = patiently(|| self.fdb.update(&key, &value, MapFlags::ANY));
        written.context("serve", &self.device, "write static entries")
    }

    /// Removes VLANs and static entries that are none of these.
    pub(crate) fn retain(
        &self,
        keep_vlan: impl Fn(VlanId) -> bool,
        keep_static: impl Fn(VlanId, Mac) -> bool,
    ) -> Result<(), LabError> {
        let id = |bytes: &[u8]| VlanId::new(u16::from_ne_bytes([bytes[0], bytes[1]])).ok();
        for key in self.vlans.keys().filter(|key| id(key).is_none_or(|vlan| !keep_vlan(vlan))) {
            self.remove(&self.vlans, &key, "write VLANs")?;
        }
        let mac = |key: &[u8]| Mac::new(std::array::from_fn(|octet| key[octet]));
        for key in self.fdb.keys().filter(|key| id(&key[6..]).is_none_or(|vlan| !keep_static(vlan, mac(key)))) {
            self.remove(&self.fdb, &key, "write static entries")?;
        }
        Ok(())
    }

    /// Forgets what was learned.
    pub(crate) fn forget(&self) -> Result<(), LabError> {
        self.learned.keys().try_for_each(|key| self.remove(&self.learned, &key, "forget addresses"))
    }

    /// Forgets what was learned at a port.
    pub(crate) fn forget_at(&self, port: u16) -> Result<(), LabError> {
        let learned = self.learned()?.into_iter().filter(|(_, at)| *at == port);
        learned
            .map(|((vlan, mac), _)| fdb_key(vlan, mac))
            .try_for_each(|key| self.remove(&self.learned, &key, "forget addresses"))
    }

    /// Learned addresses that have not aged.
    pub(crate) fn learned(&self) -> Result<BTreeMap<(VlanId, Mac), u16>, LabError> {
        sum_learned(&self.learned, &self.device)
    }

    /// Traffic by port number and VLAN.
    pub(crate) fn traffic(&self) -> Result<BTreeMap<(u16, u16), Traffic>, LabError> {
        sum_traffic(&self.traffic, &self.device)
    }

    /// Drops by port number.
    pub(crate) fn drops(&self, ports: usize) -> Result<Vec<DropCounts>, LabError> {
        sum_drops(&self.drops, &self.device, ports)
    }

    /// Removes an entry; one that is not there, or is just being evicted, is fine.
    fn remove(&self, map: &MapHandle, key: &[u8], step: &'static str) -> Result<(), LabError> {
        match map.delete(key) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => {
                Err(error).context("serve", &self.device, step)
            }
            _ => Ok(()),
        }
    }
}

/// Learned addresses that have not aged.
fn sum_learned(map: &impl MapCore, device: &str) -> Result<BTreeMap<(VlanId, Mac), u16>, LabError> {
    let now_ns = monotonic_ns();
    let mut learned = BTreeMap::new();
    for key in map.keys() {
        let Some(value) = map.lookup(&key, MapFlags::ANY).context("status", device, "read learned addresses")? else {
            continue;
        };
        let half =
            |at: usize| value.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes);
        let holds_ns = u64::from(half(4)) * 1_000_000_000;
        let (Ok(mac), Ok(vlan)) = (<[u8; 6]>::try_from(&key[..6]), <[u8; 2]>::try_from(&key[6..])) else { continue };
        if let (Ok(vlan), true) =
            (VlanId::new(u16::from_ne_bytes(vlan)), now_ns.saturating_sub(word(&value, 1)) < holds_ns)
        {
            learned.insert((vlan, Mac::new(mac)), half(0) as u16);
        }
    }
    Ok(learned)
}

/// The clock that the program reads.
fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills in a timespec that is there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
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

/// Writes an entry of a table whose memory is taken as entries come. The kernel refills what it has ready in the background, and for a
/// moment there may be none, as when many switches are set up at once.
fn patiently(write: impl Fn() -> libbpf_rs::Result<()>) -> libbpf_rs::Result<()> {
    const TRIES_MAX: u32 = 200;
    const MOMENT: Duration = Duration::from_millis(5);
    for _ in 1..TRIES_MAX {
        match write() {
            Err(error) if error.kind() == libbpf_rs::ErrorKind::OutOfMemory => thread::sleep(MOMENT),
            done => return done,
        }
    }
    write()
}

/// How many entries a switch's tables hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableCapacity {
    vlans: usize,
    statics: usize,
    counters: usize,
    learned: usize,
    flags: u32,
}

/// Most learned addresses of a switch.
const LEARNED_MAX: usize = 8192;
/// `BPF_F_NO_PREALLOC`: memory is taken as entries come.
const NO_PREALLOC: u32 = 1;

impl TableCapacity {
    /// As many as a plan's tables have, which never change, and room to learn where it does.
    fn exactly(table: &SwitchTable) -> Self {
        let counters = table.vlans.values().map(|members| counted(table, members).count()).sum();
        let learns = table.ports.iter().any(|port| port.learning != Learning::Off);
        let learned = if learns { LEARNED_MAX } else { 0 };
        Self { vlans: table.vlans.len(), statics: table.fdb.len(), counters, learned, flags: 0 }
    }

    /// Up to so many.
    fn grown(vlans: usize, statics: usize, counters: usize) -> Self {
        Self { vlans, statics, counters, learned: LEARNED_MAX, flags: NO_PREALLOC }
    }
}

/// Loads a program with maps of its own, with room as asked for, filled with the tables.
fn load(device: &str, table: &SwitchTable, room: &TableCapacity) -> Result<Object, LabError> {
    let mut open = open(device)?;
    for mut map in open.maps_mut() {
        let (entries, flags) = match map.name().to_str() {
            Some("vlans") => (room.vlans, room.flags),
            Some("fdb") => (room.statics, room.flags),
            Some("traffic") => (room.counters, room.flags),
            Some("learned") => (room.learned, 0),
            _ => continue,
        };
        map.set_max_entries(entries.max(1) as u32).context("up", device, "size tables")?;
        map.set_map_flags(flags).context("up", device, "size tables")?;
    }
    let object = open.load().context("up", device, "load program")?;
    fill(&object, device, table)?;
    Ok(object)
}

fn fill(object: &Object, device: &str, table: &SwitchTable) -> Result<(), LabError> {
    let map = |name: &str| object.maps().find(|map| map.name() == name).expect("the object has its maps");
    let (ports, vlans, fdb, traffic) = (map("ports"), map("vlans"), map("fdb"), map("traffic"));
    for (number, port) in (0_u32..).zip(&table.ports) {
        ports.update(&number.to_ne_bytes(), &port_value(port), MapFlags::ANY).context("up", device, "write ports")?;
    }
    lag::fill(&map("members"), &map("lags"), table).context("up", device, "write LAGs")?;
    let cpus = libbpf_rs::num_possible_cpus().context("up", device, "count processors")?;
    let zero = vec![vec![0_u8; size_of::<[u64; 7]>()]; cpus];
    for (vlan, members) in &table.vlans {
        let value = vlan_value(members);
        vlans.update(&vlan.get().to_ne_bytes(), &value, MapFlags::ANY).context("up", device, "write VLANs")?;
        for port in counted(table, members) {
            let key = [port.to_ne_bytes(), vlan.get().to_ne_bytes()].concat();
            traffic.update_percpu(&key, &zero, MapFlags::ANY).context("up", device, "write counters")?;
        }
    }
    for ((vlan, mac), port) in &table.fdb {
        let value = u32::from(*port).to_ne_bytes();
        fdb.update(&fdb_key(*vlan, *mac), &value, MapFlags::ANY).context("up", device, "write static entries")?;
    }
    Ok(())
}

/// The ports that count frames of a VLAN: those that are in it, and the members of LAGs that are.
fn counted<'a>(table: &'a SwitchTable, members: &'a Members) -> impl Iterator<Item = u16> + 'a {
    members.iter().chain(members.iter().flat_map(|lag| table.members_of(lag)))
}

/// `struct port_entry`.
fn port_value(port: &PortEntry) -> Vec<u8> {
    let up = if port.service == Service::Up { PORT_UP } else { 0 };
    let blocked = if port.relay == Relay::Block { PORT_BLOCKED } else { 0 };
    let (learn, ageing_s) = match port.learning {
        Learning::For { ageing_s } => (PORT_LEARN, ageing_s),
        Learning::Off => (0, 0),
    };
    let blocked_floods = FLOOD_FLAGS
        .iter()
        .filter(|(kind, _)| port.blocked_floods.contains(*kind))
        .fold(0, |flags, (_, flag)| flags | flag);
    let part = match port.part {
        LagPart::None => 0,
        LagPart::Lag => PORT_LAG,
        LagPart::Member(_) => PORT_MEMBER,
    };
    let flags = up | blocked | learn | blocked_floods | part;
    let pvid = port.pvid.map_or(0, VlanId::get);
    [&pvid.to_ne_bytes()[..], &flags.to_ne_bytes(), &ageing_s.to_ne_bytes()].concat()
}

/// `struct vlan_entry`.
fn vlan_value(members: &Members) -> Vec<u8> {
    let ports_end = members.iter().last().map_or(0, |port| u32::from(port) + 1);
    let words = |set: &PortSet| set.words().map(u64::to_ne_bytes).concat();
    [words(&members.tagged), words(&members.untagged), ports_end.to_ne_bytes().to_vec(), vec![0; 4]].concat()
}

/// `struct fdb_key`.
fn fdb_key(vlan: VlanId, mac: Mac) -> Vec<u8> {
    [&mac.octets()[..], &vlan.get().to_ne_bytes()].concat()
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
