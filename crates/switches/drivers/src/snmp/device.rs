//! A switch by SNMP: its state as one value, and changes to it as SETs that each bear the fence.
//!
//! ```text
//!   ifName ─┬─ dot1dBasePortIfIndex ─ bridge port ─ PortLists, PVID, STP        dot1qVlanStatic*  VLANs, members, mark
//!           └─ ifIndex ─ ifAdminStatus, dot3PauseAdminMode                      dot1qStaticUnicast*  entries by FdbId
//! ```
//! Ports are found by name, VLANs of a filtering database by dot1qVlanFdbId. Where a switch has the standard's advisory
//! lock, every SET bears its value, so that of two writers one is refused; where it has none, a restart is noticed by its
//! clock before every batch of writes, but a second writer is not.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::{Duration, Instant},
};

use fabric::{FlowControlMode, LagNumber, VlanId, VlanSet};

use super::{
    SaveMethod,
    batch::Batch,
    faults::{fault, nonsense},
    memory::Memory,
    ports::NO_BRIDGE_PORT,
    save::{Row, VendorSave},
    vlan_tables::VlanMib,
};
use bridge_mib::{
    AcceptableFrames, BridgePort, Enabled, IfStatus, ListForm, PauseMode, PortList, RowStatus, StaticStatus, Truth,
    index::IfIndex,
    objects::{bridge, ether_like, if_mib, own, q_bridge, system},
};
use cancel::Cancel;
use fabric::{IngressFilter, SpanningTree};
use snmp::{
    BulkSize, Link, Oid, Session, SessionError, Value,
    wire::{Binding, ErrorStatus},
};
use switch_model::{
    Slot, SwitchConfig,
    driver::{Addresses, Driver, Fault, Fence, Reading},
    edit::{Edit, edits},
    mark::Mark,
    sight::Sight,
    unmanaged::{in_the_way, without_others},
};

/// A switch and the session with it.
pub struct Device<L> {
    pub(super) session: Session<L>,
    pub(super) bulk: BulkSize,
    pub(super) mark_vlan: VlanId,
    /// `names[slot]`, `ports[slot]`.
    pub(super) names: Vec<String>,
    pub(super) ports: Vec<PortNumbers>,
    /// Ports that the topology does not name: what they are members of stays as it is.
    pub(super) unmanaged: Vec<(String, PortNumbers)>,
    pub(super) unmanaged_lists: BTreeMap<VlanId, (PortList, PortList)>,
    /// The filtering database of each VLAN, where it is not the VLAN's own number.
    pub(super) databases: BTreeMap<VlanId, u32>,
    /// PVIDs as the switch numbers them, whether untagged frames get in or not.
    pub(super) pvids: BTreeMap<BridgePort, VlanId>,
    /// VLANs without ports that bear marks.
    pub(super) mark_vlans: BTreeSet<VlanId>,
    /// VLANs that have a row in dot1qVlanStaticTable, those with marks included.
    pub(super) static_vlans: BTreeSet<VlanId>,
    /// VLANs that were made since the filtering databases were read.
    pub(super) unasked: BTreeSet<VlanId>,
    /// The highest VLAN that the switch takes.
    pub(super) vlan_max: VlanId,
    /// Most static entries that it takes in one SET.
    pub(super) batch: Batch,
    pub(super) sight: Memory,
    /// dot1dBaseBridgeAddress, as it was when the switch was first asked.
    pub(super) address: Option<Vec<u8>>,
    /// Octets of the PortLists that the switch itself writes.
    pub(super) list_len: usize,
    /// The numbers of all its bridge ports.
    pub(super) numbers: BTreeSet<u32>,
    /// Where its VLANs were read from, and how its lists of ports are written; as of the last reading.
    pub(super) vlan_mib: VlanMib,
    pub(super) list_form: ListForm,
    pub(super) lock: Lock,
    pub(super) starts: u32,
    pub(super) up_cs: u32,
    pub(super) save: SaveMethod,
    /// Which of the counters that [`Self::glance`] reads a port has, by the position in its list; none asked is the first.
    pub(super) widths: BTreeMap<Slot, [usize; 2]>,
    /// SETs that are written down instead of sent.
    pub(super) rehearsal: Option<Vec<Vec<Binding>>>,
}

/// The numbers of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortNumbers {
    pub(super) bridge: BridgePort,
    pub(super) interface: IfIndex,
    pub(super) pause: Pause,
}

/// Whether a port's PAUSE can be set by SNMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    Settable,
    Absent,
}

/// The standard's advisory lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    Serial(i32),
    Absent,
}

/// What an administrator knows of a switch beyond what it says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The VLAN whose name is to be the mark, where the switch has room for it; it has no ports.
    pub mark_vlan: VlanId,
    /// How the state is saved where the switch does not say.
    pub save: SaveMethod,
}

impl<L: Link> Device<L> {
    pub(super) fn carry_out(&mut self, edit: &Edit) -> Result<(), Fault> {
        match edit {
            Edit::Shut(slot) => self.set_admin(*slot, IfStatus::Down),
            Edit::Open(slot) => self.set_admin(*slot, IfStatus::Up),
            Edit::SetIngressFilter(slot, filter) => {
                let on = if *filter == IngressFilter::On { Truth::True } else { Truth::False };
                let row = q_bridge::PORT_INGRESS_FILTERING.row(&self.ports[slot.index()].bridge);
                self.set(vec![(row, Value::Integer(on.code()))])
            }
            Edit::SetVlan { vlan, tagged, untagged } => {
                let numbers = |slots: &BTreeSet<Slot>| {
                    slots.iter().map(|slot| self.ports[slot.index()].bridge.0).collect::<Vec<_>>()
                };
                let none = (PortList::new(), PortList::new());
                let (strange, strange_untagged) = self.unmanaged_lists.get(vlan).unwrap_or(&none);
                let (tagged, untagged) = (numbers(tagged), numbers(untagged));
                let egress = PortList::of(tagged.into_iter().chain(untagged.iter().copied()).chain(strange.iter()));
                let untagged = PortList::of(untagged.into_iter().chain(strange_untagged.iter()));
                let (egress, untagged) = egress.and_then(|egress| Ok((egress, untagged?))).map_err(nonsense)?;
                self.put_vlan(*vlan, &egress, &untagged)
            }
            Edit::RemoveVlan(vlan) => {
                self.free_pvids(*vlan)?;
                self.remove_vlan(*vlan)
            }
            Edit::SetPvid(slot, pvid) => {
                let port = self.ports[slot.index()].bridge;
                let frames = if pvid.is_some() { AcceptableFrames::All } else { AcceptableFrames::OnlyTagged };
                let vlan = pvid.unwrap_or(VlanId::MIN);
                self.pvids.insert(port, vlan);
                self.set(vec![
                    (q_bridge::PVID.row(&port), Value::Gauge32(u32::from(vlan.get()))),
                    (q_bridge::PORT_ACCEPTABLE_FRAME_TYPES.row(&port), Value::Integer(frames.code())),
                ])
            }
            Edit::SetEntry(..) | Edit::UnsetEntry(..) => self.write_entries(std::slice::from_ref(edit)),
            Edit::SetLag(slot, lag) => {
                let name = |slot: &Slot| self.names[slot.index()].as_str();
                let change = match lag {
                    Some(lag) => format!("has to join {}", name(lag)),
                    None => "has to leave its LAG".to_owned(),
                };
                Err(Fault::Refused(format!(
                    "port {} {change}, which standard SNMP cannot set; configure its LAGs with the commands that `espalier render` writes, then \
                     deploy again",
                    name(slot)
                )))
            }
            Edit::SetFlowControl(slot, mode) => {
                let port = self.ports[slot.index()];
                let pause = match mode {
                    FlowControlMode::Off => PauseMode::Off,
                    FlowControlMode::Pause => PauseMode::Both,
                    FlowControlMode::Pfc { .. } => {
                        return Err(Fault::Refused(
                            "priority flow control cannot be set by standard SNMP; use its CLI".to_owned(),
                        ));
                    }
                };
                // The flow control of a LAG is that of its members.
                if port.pause == Pause::Absent && LagNumber::of_port(&self.names[slot.index()]).is_some() {
                    return Ok(());
                }
                if port.pause == Pause::Absent {
                    return Err(Fault::Refused(
                        "its PAUSE cannot be set by SNMP; set it by its CLI, or plan with --flow-control none"
                            .to_owned(),
                    ));
                }
                self.set(vec![(ether_like::PAUSE_ADMIN_MODE.row(&port.interface), Value::Integer(pause.code()))])
            }
            Edit::SetSpanningTree(state) => {
                let on = if *state == SpanningTree::On { Enabled::Yes } else { Enabled::No };
                let bridged: Vec<BridgePort> =
                    self.ports.iter().map(|port| port.bridge).filter(|port| *port != NO_BRIDGE_PORT).collect();
                for port in bridged {
                    let row = bridge::STP_PORT_ENABLE.row(&port);
                    self.set(vec![(row, Value::Integer(on.code()))])?;
                }
                Ok(())
            }
        }
    }

    /// Has ports go back to the factory's PVID that let no untagged frame in but bear the number of this VLAN still: a
    /// switch does not remove a VLAN that is a port's PVID.
    fn free_pvids(&mut self, vlan: VlanId) -> Result<(), Fault> {
        let bear = |port: &&PortNumbers| self.pvids.get(&port.bridge) == Some(&vlan);
        let rows: Vec<BridgePort> = self.ports.iter().filter(bear).map(|port| port.bridge).collect();
        for port in rows {
            self.set(vec![(q_bridge::PVID.row(&port), Value::Gauge32(u32::from(VlanId::MIN.get())))])?;
            self.pvids.insert(port, VlanId::MIN);
        }
        Ok(())
    }

    fn set_admin(&mut self, slot: Slot, status: IfStatus) -> Result<(), Fault> {
        let row = if_mib::ADMIN_STATUS.row(&self.ports[slot.index()].interface);
        self.set(vec![(row, Value::Integer(status.code()))])
    }

    pub(super) fn set(&mut self, bindings: Vec<Binding>) -> Result<(), Fault> {
        let what = bindings.first().map(|(oid, _)| oid.to_string()).unwrap_or_default();
        self.try_set(bindings)?.map_err(|error| match error {
            SessionError::Refused { status: ErrorStatus::ResourceUnavailable, .. } => {
                Fault::Refused(format!("{what}: the table is full"))
            }
            error => fault(error),
        })
    }

    /// Writes with the lock's value. The inner result is what the switch said of the values, the outer one of the lock.
    pub(super) fn try_set(&mut self, bindings: Vec<Binding>) -> Result<Result<(), SessionError>, Fault> {
        if let Some(written) = &mut self.rehearsal {
            written.push(bindings);
            return Ok(Ok(()));
        }
        let Lock::Serial(serial) = self.lock else { return Ok(self.session.set(bindings)) };
        let mut locked = bindings.clone();
        locked.push((system::SET_SERIAL_NO.instance(), Value::Integer(serial)));
        let next = serial.wrapping_add(1) & i32::MAX;
        match self.session.set(locked) {
            Ok(()) => {
                self.lock = Lock::Serial(next);
                return Ok(Ok(()));
            }
            Err(SessionError::Refused { status: ErrorStatus::InconsistentValue, object: Some(object) })
                if object == system::SET_SERIAL_NO.instance() => {}
            Err(error @ SessionError::Refused { .. }) => return Ok(Err(error)),
            Err(error) => return Err(fault(error)),
        }
        // Either somebody else has written, or this was written and its answer lost: then the values are there.
        let starts = self.starts;
        self.fence()?;
        let mut there = true;
        for some in bindings.chunks(OBJECTS_AT_ONCE) {
            let objects: Vec<Oid> = some.iter().map(|(oid, _)| oid.clone()).collect();
            let found = self.session.get(&objects).map_err(fault)?;
            there &= found.iter().zip(some).all(|(found, (_, wanted))| same_value(found, wanted));
        }
        if starts == self.starts && self.lock == Lock::Serial(next) && there { Ok(Ok(())) } else { Err(Fault::Fenced) }
    }

    /// The SETs by which [`Driver::write`] would bring the switch from one state to another and leave a mark, none of
    /// which is sent. Reads first, so that the marks that are there are known.
    ///
    /// # Errors
    /// [`Fault`], where a state cannot be had by SNMP.
    pub fn rehearse(
        &mut self,
        before: &SwitchConfig,
        after: &SwitchConfig,
        mark: Mark,
    ) -> Result<Vec<Vec<Binding>>, Fault> {
        self.writable()?;
        let known = (self.databases.clone(), self.mark_vlans.clone(), self.pvids.clone());
        let vlans = (self.static_vlans.clone(), self.unasked.clone());
        self.rehearsal = Some(Vec::new());
        let done = self.leave_mark(mark, before, after).and_then(|()| self.carry_out_all(&edits(before, after)));
        (self.databases, self.mark_vlans, self.pvids) = known;
        (self.static_vlans, self.unasked) = vlans;
        let written = self.rehearsal.take().unwrap_or_default();
        done.map(|()| written)
    }

    /// Has the switch go back by itself unless it is told otherwise in time, if it can; when that will have happened.
    fn arm(&mut self, guard: Option<Duration>) -> Result<Option<Instant>, Fault> {
        let object = own::GUARD.instance();
        let values = self.session.get(std::slice::from_ref(&object)).map_err(fault)?;
        // An agent of an older kind has no such object.
        let Some(left) = values[0].int() else { return Ok(None) };
        let seconds = guard.map_or(0, |guard| guard.as_secs_f64().ceil().clamp(1.0, 3600.0) as i32);
        if seconds == 0 && left == 0 {
            return Ok(None);
        }
        self.set(vec![(object, Value::Integer(seconds))])?;
        // From now, since the answer came after the switch began to count.
        Ok((seconds > 0).then(|| Instant::now() + Duration::from_secs(seconds as u64) + GUARD_MARGIN))
    }

    /// Tells the switch to stay as it is, whatever became of the change; a switch that is cut off is awaited until it has
    /// gone back.
    fn disarm(&mut self, until: Instant, done: Result<(), Fault>) -> Result<(), Fault> {
        let object = own::GUARD.instance();
        // Whoever asked to stop wants the switch to stay as it is as well.
        self.session.begin();
        let told = match &done {
            Err(Fault::Silent | Fault::Fenced) => Err(Fault::Silent),
            Ok(()) | Err(_) => self.set(vec![(object.clone(), Value::Integer(0))]),
        };
        match (done, told) {
            (done, Ok(())) => return done,
            // Somebody else writes, and has a guard of its own.
            (Err(Fault::Fenced), _) => return Err(Fault::Fenced),
            _ => {}
        }
        loop {
            let answer = self.session.get(std::slice::from_ref(&object));
            if self.session.is_hurried() {
                return Err(Fault::Silent);
            }
            if Instant::now() >= until {
                return Err(if answer.is_ok() { Fault::Reverted } else { Fault::Silent });
            }
            std::thread::sleep(GUARD_LOOK);
        }
    }

    fn save_by(&mut self, way: &VendorSave) -> Result<(), Fault> {
        let mut refusal = None;
        for attempt in 0..SAVE_ROWS_MAX {
            // Rows of earlier copies may still be there, so every copy and every attempt has another number.
            let number = 1 + (self.up_cs.wrapping_add(attempt * 7919)) % 60_000;
            let object = |column: u32| match way.row {
                Row::Fresh { .. } => Oid::new(&[way.root, &[column, number]].concat()),
                Row::Only => Oid::new(&[way.root, &[column, 0]].concat()),
            };
            let writes = way.writes.iter().map(|(column, value)| (object(*column), Value::Integer(*value))).collect();
            if let Err(error) = self.try_set(writes)? {
                refusal = Some(fault(error));
                continue;
            }
            let status = match way.row {
                Row::Fresh { status } => Some(object(status)),
                Row::Only => None,
            };
            let done = self.await_save(way, &object);
            if let Some(status) = status {
                // Most agents take the row away themselves, and refuse.
                let _ = self.try_set(vec![(status, Value::Integer(RowStatus::Destroy.code()))])?;
            }
            return done;
        }
        Err(refusal.unwrap_or(Fault::Silent))
    }

    fn await_save(&mut self, way: &VendorSave, object: &dyn Fn(u32) -> Oid) -> Result<(), Fault> {
        let Some(progress) = way.progress else { return Ok(()) };
        for _ in 0..SAVE_LOOKS_MAX {
            let state = self.session.get(&[object(progress.column)]).map_err(fault)?;
            match state[0].int() {
                Some(state) if state == progress.done => return Ok(()),
                Some(state) if state == progress.failed => {
                    return Err(Fault::Refused("it says that saving its configuration failed".to_owned()));
                }
                _ if self.session.is_stopped() => return Err(Fault::Stopped),
                _ => std::thread::sleep(SAVE_LOOK),
            }
        }
        Err(Fault::Refused("it does not finish saving its configuration".to_owned()))
    }

    /// Reads the fence anew.
    pub(super) fn fence(&mut self) -> Result<Fence, Fault> {
        let objects = [system::UP_TIME.instance(), system::SET_SERIAL_NO.instance(), bridge::BRIDGE_ADDRESS.instance()];
        let values = self.session.get(&objects).map_err(fault)?;
        if let Some(address) = values[2].octets() {
            let known = self.address.get_or_insert_with(|| address.to_vec());
            if known.as_slice() != address {
                return Err(Fault::Refused(format!(
                    "another switch answers at its address: the bridge was {}, and is {}",
                    hexadecimal(known),
                    hexadecimal(address)
                )));
            }
        }
        self.note_up(values[0].count().unwrap_or(0) as u32);
        self.lock = values[1].int().map_or(Lock::Absent, Lock::Serial);
        Ok(self.known_fence())
    }

    /// Takes for how long the switch has been up.
    pub(super) fn note_up(&mut self, up_cs: u32) {
        if up_cs < self.up_cs {
            self.starts += 1;
        }
        self.up_cs = up_cs;
    }

    fn known_fence(&self) -> Fence {
        let serial = match self.lock {
            Lock::Serial(serial) => u64::from(serial.unsigned_abs()),
            Lock::Absent => u64::from(u32::MAX),
        };
        Fence(u64::from(self.starts) << 32 | serial)
    }
}

impl<L: Link> Device<L> {
    /// How often it has been seen that the switch started anew, with the configuration that it had saved.
    pub fn starts(&self) -> u32 {
        self.starts
    }

    /// From now on a request is repeated for so long before the switch counts as silent.
    pub fn set_patience(&mut self, total: Duration) {
        self.session.set_patience(total);
    }
}

impl<L: Link + Send> Driver for Device<L> {
    fn set_cancel(&mut self, cancel: &Cancel) {
        self.session.set_cancel(cancel.clone());
    }

    /// Reads between two looks at the fence that must agree.
    fn read(&mut self) -> Result<Reading, Fault> {
        self.session.begin();
        let mut before = self.fence()?;
        for _ in 0..READS_MAX {
            let (whole, mark) = self.read_whole()?;
            let fence = self.fence()?;
            if fence == before {
                return Ok(Reading { config: without_others(whole, self.names.len()), mark, fence });
            }
            before = fence;
        }
        Err(Fault::Fenced)
    }

    fn write(
        &mut self,
        before: &SwitchConfig,
        after: &SwitchConfig,
        mark: Mark,
        fence: Fence,
        guard: Option<Duration>,
    ) -> Result<Fence, Fault> {
        self.session.begin();
        if self.fence()? != fence {
            return Err(Fault::Fenced);
        }
        self.writable()?;
        let armed = self.arm(guard)?;
        let mut work = || -> Result<(), Fault> {
            self.leave_mark(mark, before, after)?;
            self.carry_out_all(&edits(before, after))
        };
        let done = work();
        match armed {
            None => done?,
            Some(until) => self.disarm(until, done)?,
        }
        Ok(self.known_fence())
    }

    fn save(&mut self, fence: Fence) -> Result<Fence, Fault> {
        self.session.begin();
        if self.fence()? != fence {
            return Err(Fault::Fenced);
        }
        match self.save {
            SaveMethod::Own => self.set(vec![(own::ACTION.instance(), Value::Integer(1))])?,
            SaveMethod::Vendor(way) => self.save_by(way)?,
            SaveMethod::ByHand => {}
            SaveMethod::Unknown => {
                return Err(Fault::Refused(
                    "no way is known to save its configuration by SNMP; name its model, or save = \"by-hand\" in the credentials"
                        .to_owned(),
                ));
            }
        }
        Ok(self.known_fence())
    }

    fn look(&mut self, addresses: Addresses) -> Result<Sight, Fault> {
        self.session.begin();
        let mut sight = self.see()?;
        if addresses == Addresses::Read {
            sight.learned = self.some_learned()?;
        }
        Ok(sight)
    }

    fn shut(&mut self, ports: &[Slot]) -> Result<(), Fault> {
        self.session.begin();
        self.shut_at_once(ports)
    }

    fn unmanaged(&mut self, vlans: &VlanSet) -> Result<Vec<String>, Fault> {
        if self.unmanaged.is_empty() {
            return Ok(Vec::new());
        }
        let (whole, _) = self.read_whole()?;
        Ok(in_the_way(&whole, self.names.len(), vlans))
    }

    fn include(&mut self, names: &[String]) -> Result<(), Fault> {
        for name in names {
            let Some(at) = self.unmanaged.iter().position(|(other, _)| other == name) else {
                return Err(Fault::Refused(format!("it has no further port named {name}")));
            };
            let (name, numbers) = self.unmanaged.remove(at);
            self.names.push(name);
            self.ports.push(numbers);
        }
        Ok(())
    }
}

/// Most objects that one question is about, so that the answer fits into one frame.
const OBJECTS_AT_ONCE: usize = 16;
/// How many rows are tried for one copy of a configuration.
const SAVE_ROWS_MAX: u32 = 3;
/// How often, and how far apart, a copy of a configuration is asked how it gets on: for a minute.
const SAVE_LOOKS_MAX: usize = 240;
const SAVE_LOOK: Duration = Duration::from_millis(250);
/// How much longer a switch that is cut off is awaited than it takes to go back.
const GUARD_MARGIN: Duration = Duration::from_secs(1);
/// How far apart it is asked meanwhile.
const GUARD_LOOK: Duration = Duration::from_millis(200);
/// How often the whole state is read because somebody wrote in the meantime.
const READS_MAX: usize = 3;

impl<L> fmt::Debug for Device<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("ports", &self.ports).field("save", &self.save).finish_non_exhaustive()
    }
}

fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(":")
}

/// Whether a switch holds what was written. RowStatus reads active after createAndGo, and what was destroyed reads as none.
fn same_value(found: &Value, wanted: &Value) -> bool {
    match (found.int(), wanted.int()) {
        (Some(found), Some(wanted)) => {
            found == wanted || (wanted == RowStatus::CreateAndGo.code() && found == RowStatus::Active.code())
        }
        (None, Some(wanted)) => {
            let gone = [RowStatus::Destroy.code(), StaticStatus::Invalid.code()];
            found.is_exception() && gone.contains(&wanted)
        }
        _ => found == wanted,
    }
}
