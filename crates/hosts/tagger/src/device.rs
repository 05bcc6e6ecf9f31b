//! Hangs the programs on a network device, writes their table, reads their counters.
//!
//! ```text
//!   attach:  load ─▶ write the table ─▶ ingress ─▶ egress        a step that fails takes the earlier ones back
//!   replace: write a table beside the old one ─▶ one pointer      no frame sees half of either
//!   open:    device ─▶ filter ─▶ program ─▶ maps                  no file, no name, nothing to go stale
//! ```
//! All functions act in the network namespace of the calling thread.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    os::fd::{AsFd, AsRawFd},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fabric::{Mac, VlanId, VlanSet};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, libbpf_sys::bpf_map_create_opts};

use crate::{
    TaggerError,
    error::Context,
    layout::{self, Event, FlowRecord, Key, PlacementRecord, destination_key, entry_bytes, own_bytes},
    routes,
    table::{Classes, Route, TaggingTable, assign_slots},
    tc::{self, Occupant, TrafficDirection},
};

pub(crate) const OBJECT: &[u8] = include_bytes!("../bpf/tagger.bpf.o");

/// Least room for destinations, unless more is asked for.
const ROOM_MIN: u32 = 1024;

const DESTINATIONS: &str = "tagger_dests";

/// The key of a map with one value.
const ZERO: [u8; 4] = [0; 4];

/// A device that tags.
pub struct Tagged {
    device: String,
    ifindex: i32,
    mac: Mac,
    current: MapHandle,
    /// Of the ingress program alone; the others the egress program has too.
    own: MapHandle,
    destinations: MapHandle,
    vlans: MapHandle,
    events: MapHandle,
    /// Kept when the programs are renewed, so that flows stay where they are.
    flowlets: MapHandle,
    /// Flow placement; programs of older versions do not have its maps.
    placement: Option<FlowMaps>,
    /// The table in force when it was looked at last, by number: one that is open needs no capability.
    table: Mutex<Option<(u32, Arc<MapHandle>)>>,
}

struct FlowMaps {
    flows: MapHandle,
    placed: MapHandle,
}

/// Frames and bytes, without tag and check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Count {
    /// Frames; a super-packet counts for its segments.
    pub frames: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Frames of one VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct VlanCount {
    /// What the host sent.
    pub sent: Count,
    /// What it received.
    pub received: Count,
}

/// What one destination of the table was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentTo {
    /// The destination; [`Mac::BROADCAST`] stands for groups and unknown stations.
    pub mac: Mac,
    /// Its slot, by which flows name it.
    pub slot: u32,
    /// Frames.
    pub frames: u64,
}

/// What a device has done since it was attached.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// By destination; [`Mac::BROADCAST`] stands for groups and unknown stations.
    pub destinations: BTreeMap<Mac, Count>,
    /// By VLAN, those with traffic.
    pub vlans: BTreeMap<VlanId, VlanCount>,
    /// What else happened, if it did.
    pub events: BTreeMap<Event, u64>,
}

/// Hangs the programs on a device with this table. On a device that is tagged already, the table is replaced and the
/// programs are renewed, each in one step, and counters go on. `room` is for how many destinations there will be
/// counters; none makes room for twice the table's.
///
/// # Errors
/// [`TaggerError`]; the device is then as it was.
pub fn attach(device: &str, table: &TaggingTable, room: Option<u32>) -> Result<Tagged, TaggerError> {
    libbpf_rs::set_print(None);
    let (ifindex, mac) = find(device)?;
    for side in TrafficDirection::BOTH {
        check_place(device, ifindex, side)?;
    }
    match Tagged::open(device) {
        Ok(tagged) => {
            // Loaded before the table is touched: what the kernel refuses here changes nothing.
            let object = load(device, Some(&tagged), 0)?;
            let before = tagged.table()?;
            tagged.replace(table)?;
            if let Err(error) = hang(&object, device, ifindex, Before::Tagged) {
                tagged.replace(&before)?;
                return Err(error);
            }
            // The programs may have maps that those before them had not.
            Tagged::open(device)
        }
        Err(TaggerError::NotAttached { .. }) => {
            let room = room.unwrap_or_else(|| (2 * table.destinations.len() as u32).max(ROOM_MIN));
            let object = load(device, None, room.saturating_add(1))?;
            let tagged = Tagged::of(&object, device, ifindex, mac)?;
            tagged.replace(table)?;
            hang(&object, device, ifindex, Before::Bare)?;
            Ok(tagged)
        }
        Err(error) => Err(error),
    }
}

/// Takes the programs off a device. Other programs stay; a device that is not tagged is left as it is.
///
/// # Errors
/// [`TaggerError`].
pub fn detach(device: &str) -> Result<(), TaggerError> {
    libbpf_rs::set_print(None);
    let (ifindex, _) = find(device)?;
    // Egress first: what still comes in tagged finds its way to the stack.
    for side in [TrafficDirection::Out, TrafficDirection::In] {
        if check_place(device, ifindex, side)?.is_some() {
            tc::take_down(ifindex, side).at(device, "take the program off")?;
        }
    }
    set_rto_min(device, None).map(drop)
}

/// Has TCP retransmit after this long at the earliest, instead of Linux's 200 ms, on every subnet of a device, by routes
/// beside the kernel's; none takes them away, as [`detach`] does. How many subnets have it now. Those where a route more
/// would change which device is used, or that expire, are left as they are. In whole milliseconds, rounded up.
///
/// # Errors
/// [`TaggerError`].
pub fn set_rto_min(device: &str, floor: Option<Duration>) -> Result<usize, TaggerError> {
    let (ifindex, _) = find(device)?;
    routes::set_rto_min(ifindex, floor).at(device, "set TCP's retransmission timer on its routes")
}

/// The station address of a device.
///
/// # Errors
/// [`TaggerError::NoDevice`], [`TaggerError::NotEthernet`].
pub fn address(device: &str) -> Result<Mac, TaggerError> {
    find(device).map(|(_, mac)| mac)
}

impl Tagged {
    /// Finds what is attached to a device.
    ///
    /// # Errors
    /// [`TaggerError::NotAttached`], or what the kernel refused.
    pub fn open(device: &str) -> Result<Self, TaggerError> {
        libbpf_rs::set_print(None);
        let (ifindex, mac) = find(device)?;
        let missing = || TaggerError::NotAttached { device: device.to_owned() };
        let mut ids = BTreeSet::new();
        for side in TrafficDirection::BOTH {
            let program = check_place(device, ifindex, side)?.ok_or_else(missing)?;
            ids.extend(tc::program_info(program).at(device, "read the programs' maps")?.1);
        }
        let mut maps = BTreeMap::new();
        for id in ids {
            let map = MapHandle::from_map_id(id).at(device, "open the programs' maps")?;
            maps.insert(map.name().to_string_lossy().into_owned(), map);
        }
        Self::with(device, ifindex, mac, |name| maps.remove(name).ok_or_else(missing))
    }

    fn of(object: &Object, device: &str, ifindex: i32, mac: Mac) -> Result<Self, TaggerError> {
        Self::with(device, ifindex, mac, |name| {
            let map = object.maps().find(|map| map.name() == name).expect("the object has its maps");
            MapHandle::try_from(&map).at(device, "open the programs' maps")
        })
    }

    fn with(
        device: &str,
        ifindex: i32,
        mac: Mac,
        mut map: impl FnMut(&str) -> Result<MapHandle, TaggerError>,
    ) -> Result<Self, TaggerError> {
        let placement = match (map("tagger_flows"), map("tagger_placed")) {
            (Ok(flows), Ok(placed)) => Some(FlowMaps { flows, placed }),
            _ => None,
        };
        Ok(Self {
            device: device.to_owned(),
            ifindex,
            mac,
            current: map("tagger_current")?,
            own: map("tagger_own")?,
            destinations: map(DESTINATIONS)?,
            vlans: map("tagger_vlans")?,
            events: map("tagger_events")?,
            flowlets: map("tagger_flowlets")?,
            placement,
            table: Mutex::new(None),
        })
    }

    /// The map of this name, if the programs share it with us.
    fn map(&self, name: &OsStr) -> Option<&MapHandle> {
        let maps = [&self.current, &self.own, &self.destinations, &self.vlans, &self.events, &self.flowlets];
        let of_flows = self.placement.iter().flat_map(|maps| [&maps.flows, &maps.placed]);
        maps.into_iter().chain(of_flows).find(|map| map.name() == name)
    }

    /// The device's name.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Its index.
    pub fn ifindex(&self) -> i32 {
        self.ifindex
    }

    /// Its station address.
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// For how many destinations there is room.
    pub fn room(&self) -> u32 {
        self.destinations.max_entries() - 1
    }

    /// Puts another table in force, all of it at once: each frame is sent by the old one or by the new one. Cost:
    /// O(destinations) calls of the kernel, before the one that counts.
    ///
    /// # Errors
    /// [`TaggerError::NoRoom`], or what the kernel refused; the old table is then in force still.
    pub fn replace(&self, table: &TaggingTable) -> Result<(), TaggerError> {
        let (_, before) = self.read()?;
        let slots =
            assign_slots(&before, table.destinations.keys().chain([&Mac::BROADCAST]), self.room() + 1).map_err(
                |needed| TaggerError::NoRoom { device: self.device.clone(), needed: needed - 1, room: self.room() },
            )?;
        for (mac, slot) in &slots {
            if before.get(mac) != Some(slot) {
                let zero = [0; layout::DESTINATION_COUNT_BYTES];
                let done = self.destinations.update(&slot.to_ne_bytes(), &zero, MapFlags::ANY);
                done.at(&self.device, "clear counters")?;
            }
        }
        let next = new_table(table.destinations.len() + 1).at(&self.device, "make a table")?;
        let group = table.group.iter().map(|route| (&Mac::BROADCAST, route));
        for (mac, route) in table.destinations.iter().chain(group) {
            let value = entry_bytes(route, slots[mac], &table.classes);
            next.update(&destination_key(*mac), &value, MapFlags::ANY).at(&self.device, "write the table")?;
        }
        // What others send by their old tables, or by their new ones already, is let in meanwhile.
        let (vlans, classes) = self.own()?;
        let both: VlanSet = vlans.iter().chain(table.receive.iter()).collect();
        self.set_own(&both, &table.classes)?;
        let fd = next.as_fd().as_raw_fd().to_ne_bytes();
        let done = self.current.update(&ZERO, &fd, MapFlags::ANY).at(&self.device, "put the table in force");
        match done {
            Ok(()) => self.set_own(&table.receive, &table.classes),
            Err(_) => self.set_own(&vlans, &classes).and(done),
        }
    }

    /// VLANs that are let in, and the classes that frames leave in.
    fn own(&self) -> Result<(VlanSet, Classes), TaggerError> {
        let value = self.own.lookup(&ZERO, MapFlags::ANY).at(&self.device, "read the table")?;
        Ok(value.as_deref().and_then(layout::read_own).unwrap_or_default())
    }

    fn set_own(&self, vlans: &VlanSet, classes: &Classes) -> Result<(), TaggerError> {
        self.own.update(&ZERO, &own_bytes(vlans, classes), MapFlags::ANY).at(&self.device, "write the table")
    }

    /// Changes the VLANs of some destinations of the table in force, each at once; [`Mac::BROADCAST`] is the group's.
    /// Those that the table does not list are left out; how many were changed.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn set_routes<'a>(&self, routes: impl Iterator<Item = (Mac, &'a Route)>) -> Result<usize, TaggerError> {
        let Some(table) = self.in_force()? else { return Ok(0) };
        let (_, classes) = self.own()?;
        let mut changed = 0;
        for (mac, route) in routes {
            let key = destination_key(mac);
            let known = table.lookup(&key, MapFlags::ANY).at(&self.device, "read the table")?;
            let Some((before, slot)) = known.as_deref().and_then(layout::read_entry) else { continue };
            if before != *route {
                let value = entry_bytes(route, slot, &classes);
                table.update(&key, &value, MapFlags::EXIST).at(&self.device, "write the table")?;
                changed += 1;
            }
        }
        Ok(changed)
    }

    /// The table in force.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn table(&self) -> Result<TaggingTable, TaggerError> {
        self.read().map(|(table, _)| table)
    }

    /// What was counted.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn counters(&self) -> Result<Counters, TaggerError> {
        let mut counters = Counters { destinations: self.sent()?, ..Counters::default() };
        for vlan in (VlanId::MIN.get()..=VlanId::MAX.get()).filter_map(|id| VlanId::new(id).ok()) {
            let key = u32::from(vlan.get()).to_ne_bytes();
            let values = self.vlans.lookup_percpu(&key, MapFlags::ANY).at(&self.device, "read counters")?;
            let sum = |slot| values.iter().flatten().map(|value| word(value, slot)).sum();
            let count = VlanCount {
                sent: Count { frames: sum(0), bytes: sum(1) },
                received: Count { frames: sum(2), bytes: sum(3) },
            };
            if count != VlanCount::default() {
                counters.vlans.insert(vlan, count);
            }
        }
        for (slot, event) in (0_u32..).zip(Event::ALL) {
            let values = self.events.lookup_percpu(&slot.to_ne_bytes(), MapFlags::ANY);
            let values = values.at(&self.device, "read counters")?;
            let count: u64 = values.iter().flatten().map(|value| word(value, 0)).sum();
            if count > 0 {
                counters.events.insert(event, count);
            }
        }
        Ok(counters)
    }

    /// What was sent, by destination: what [`Tagged::counters`] says of that, sooner.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn sent(&self) -> Result<BTreeMap<Mac, Count>, TaggerError> {
        let (_, slots) = self.read()?;
        let mut sent = BTreeMap::new();
        for (mac, slot) in slots {
            let value = self.destinations.lookup(&slot.to_ne_bytes(), MapFlags::ANY);
            if let Some(value) = value.at(&self.device, "read counters")? {
                sent.insert(mac, Count { frames: word(&value, 0), bytes: word(&value, 1) });
            }
        }
        Ok(sent)
    }

    /// The table in force, and each destination's slot and frames: what [`Tagged::counters`] says of them, sooner.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn destinations(&self) -> Result<(TaggingTable, Vec<SentTo>), TaggerError> {
        let (table, slots) = self.read()?;
        let mut sent = Vec::new();
        for (mac, slot) in slots {
            let value = self.destinations.lookup(&slot.to_ne_bytes(), MapFlags::ANY);
            if let Some(value) = value.at(&self.device, "read counters")? {
                sent.push(SentTo { mac, slot, frames: word(&value, 0) });
            }
        }
        Ok((table, sent))
    }

    /// The flows of [`Spread::Placed`](crate::Spread::Placed), by slot.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn flows(&self) -> Result<Vec<(u32, FlowRecord)>, TaggerError> {
        let Some(maps) = &self.placement else { return Ok(Vec::new()) };
        let all = maps.flows.lookup_batch(layout::FLOWLETS_MAX as u32, MapFlags::ANY, MapFlags::ANY);
        let all = all.at(&self.device, "read flows")?;
        let flow = |(key, value): (Vec<u8>, Vec<u8>)| {
            Some((u32::from_ne_bytes(key.try_into().ok()?), layout::read_flow(&value)?))
        };
        Ok(all.filter_map(flow).collect())
    }

    /// Moves a flow.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn place(&self, slot: u32, placement: &PlacementRecord) -> Result<(), TaggerError> {
        let Some(maps) = &self.placement else { return Ok(()) };
        let done = maps.placed.update(&slot.to_ne_bytes(), &placement.bytes(), MapFlags::ANY);
        done.at(&self.device, "place a flow")
    }

    /// The map of the table in force.
    fn in_force(&self) -> Result<Option<Arc<MapHandle>>, TaggerError> {
        let value = self.current.lookup(&ZERO, MapFlags::ANY).at(&self.device, "read the table")?;
        let id = value.and_then(|value| Some(u32::from_ne_bytes(value.get(..4)?.try_into().ok()?)));
        let Some(id) = id.filter(|id| *id != 0) else { return Ok(None) };
        let mut known = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, table)) = known.as_ref().filter(|(known, _)| *known == id) {
            return Ok(Some(table.clone()));
        }
        let table = Arc::new(MapHandle::from_map_id(id).at(&self.device, "open the table")?);
        *known = Some((id, table.clone()));
        Ok(Some(table))
    }

    /// The table in force, and the slot of each destination.
    fn read(&self) -> Result<(TaggingTable, BTreeMap<Mac, u32>), TaggerError> {
        let (mut table, mut slots) = (TaggingTable::default(), BTreeMap::new());
        let Some(map) = self.in_force()? else { return Ok((table, slots)) };
        (table.receive, table.classes) = self.own()?;
        for key in map.keys() {
            let Some(value) = map.lookup(&key, MapFlags::ANY).at(&self.device, "read the table")? else { continue };
            match (layout::read_key(&key), layout::read_entry(&value)) {
                (Some(Key::Group), Some((route, slot))) => {
                    table.group = Some(route);
                    slots.insert(Mac::BROADCAST, slot);
                }
                (Some(Key::Destination(mac)), Some((route, slot))) => {
                    table.destinations.insert(mac, route);
                    slots.insert(mac, slot);
                }
                _ => {}
            }
        }
        Ok((table, slots))
    }
}

/// Loads the programs, with maps of their own or those of a device that is tagged.
pub(crate) fn load(device: &str, maps_of: Option<&Tagged>, slots: u32) -> Result<Object, TaggerError> {
    let step = "load the programs";
    let mut open = ObjectBuilder::default().open_memory(OBJECT).at(device, step)?;
    for mut map in open.maps_mut() {
        match maps_of {
            None if map.name() == DESTINATIONS => map.set_max_entries(slots).at(device, step)?,
            None => {}
            Some(tagged) => {
                if let Some(known) = tagged.map(map.name()) {
                    map.reuse_fd(known.as_fd()).at(device, step)?;
                }
            }
        }
    }
    open.load().at(device, step)
}

enum Before {
    Bare,
    Tagged,
}

/// Hangs both programs, and looks whether both are there; on a device that was bare, a failure takes both off again.
fn hang(object: &Object, device: &str, ifindex: i32, before: Before) -> Result<(), TaggerError> {
    let try_hang = || {
        for side in TrafficDirection::BOTH {
            let program = object.progs().find(|program| program.name() == side.program()).expect("the object has both");
            tc::hang(program.as_fd(), ifindex, side).at(
                device,
                match side {
                    TrafficDirection::In => "hang the ingress program",
                    TrafficDirection::Out => "hang the egress program",
                },
            )?;
        }
        for side in TrafficDirection::BOTH {
            let occupant = tc::occupant(ifindex, side).at(device, "look who has our place")?;
            if !matches!(occupant, Occupant::We(_)) {
                return Err(TaggerError::NoEgress { device: device.to_owned() });
            }
        }
        Ok(())
    };
    let done = try_hang();
    if done.is_err() && matches!(before, Before::Bare) {
        for side in TrafficDirection::BOTH {
            let _ = tc::take_down(ifindex, side);
        }
    }
    done
}

fn find(device: &str) -> Result<(i32, Mac), TaggerError> {
    match tc::find(device).at(device, "find the device")? {
        None => Err(TaggerError::NoDevice { device: device.to_owned() }),
        Some((_, None)) => Err(TaggerError::NotEthernet { device: device.to_owned() }),
        Some((ifindex, Some(mac))) => Ok((ifindex, mac)),
    }
}

/// Our program's number, if it is there; somebody else's is an error.
fn check_place(device: &str, ifindex: i32, side: TrafficDirection) -> Result<Option<u32>, TaggerError> {
    match tc::occupant(ifindex, side).at(device, "look who has our place")? {
        Occupant::Nobody => Ok(None),
        Occupant::We(id) => Ok(Some(id)),
        Occupant::Other(program) => Err(TaggerError::PlaceTaken {
            device: device.to_owned(),
            hook: side.word(),
            program,
            priority: tc::PRIORITY,
            handle: tc::HANDLE,
        }),
    }
}

fn new_table(entries: usize) -> libbpf_rs::Result<MapHandle> {
    let options = bpf_map_create_opts { sz: size_of::<bpf_map_create_opts>() as u64, ..bpf_map_create_opts::default() };
    let (key, value) = (layout::KEY_BYTES as u32, layout::ENTRY_BYTES as u32);
    MapHandle::create(MapType::Hash, Some("tagger_table"), key, value, entries as u32, &options)
}

fn word(value: &[u8], slot: usize) -> u64 {
    value.get(8 * slot..8 * slot + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

#[cfg(test)]
mod twin_test;
