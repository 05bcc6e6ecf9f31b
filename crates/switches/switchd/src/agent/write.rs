//! What a SET does: all of it, or nothing.
//!
//! ```text
//! bindings ─ each by itself: object? type? value? ─▶ writes
//! writes   ─ VLANs appear, columns change, VLANs come into force or go ─▶ touched rows, the old ones in a journal
//! touched  ─ each row, each limit: does it all fit together? ─▶ changes for the data plane,  or back by the journal
//! ```
//!
//! The order of bindings inside a message means nothing, as RFC 3416 (4.2.5) asks: what is written about one row is
//! judged together. Cost: O(bindings + touched rows), however large the tables.

use std::collections::BTreeMap;

use fabric::VlanId;

use super::{
    config::{Config, Facts, HybridPorts, PortConfig, PortKind, StaticConfig, VlanConfig},
    plane::Change,
    view::{Catalogue, MibTable, Object},
};
use bridge_mib::{
    AcceptableFrames, BridgePort, Enabled, IfStatus, LldpAdmin, PauseMode, PortList, PortListError, RowStatus,
    StaticStatus, Truth,
    index::{IfIndex, StaticRow, VlanIndex},
};
use snmp::{
    Access, Column, RowIndex, Value,
    wire::{Binding, ErrorStatus},
};

/// A refusal: why, and which binding, from 1.
pub(super) type Refusal = (ErrorStatus, usize);

/// What has been written, and how it was before.
#[derive(Default)]
pub(super) struct Journal {
    scalars: Option<Scalars>,
    ports: BTreeMap<usize, PortConfig>,
    vlans: BTreeMap<VlanIndex, Option<VlanConfig>>,
    statics: BTreeMap<StaticRow, Option<StaticConfig>>,
    /// Which binding, from 1, wrote it last.
    indices: BTreeMap<Change, usize>,
    pub(super) action: Option<Action>,
}

/// What espalierAction and espalierGuard ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Keep the running configuration.
    Save,
    /// Begin again with the saved one.
    Restart,
    /// Begin again with factory settings.
    Factory,
    /// Go back to what is held now, unless told otherwise within so many seconds; 0 stays.
    Guard(u32),
}

struct Scalars {
    contact: Vec<u8>,
    name: Vec<u8>,
    location: Vec<u8>,
    ageing_s: u32,
    stp_priority: u16,
}

/// Longest text that is kept (DisplayString).
const TEXT_LEN_MAX: usize = 255;
/// Longest time that a switch waits before it goes back.
const GUARD_S_MAX: u32 = 3600;
const VLAN_NAME_LEN_MAX: usize = 32;
const ALIAS_LEN_MAX: usize = 64;
/// Bounds of dot1dTpAgingTime.
const AGEING_S: std::ops::RangeInclusive<i32> = 10..=1_000_000;

impl Journal {
    /// What a data plane must do about it.
    pub(super) fn changes(&self) -> Vec<Change> {
        let scalars = self.scalars.iter().map(|_| Change::Bridge);
        let vlans = self.vlans.keys().map(|index| Change::Vlan(index.0));
        let ports = self.ports.keys().map(|at| Change::Port(BridgePort(*at as u32 + 1)));
        let statics = self.statics.keys().map(|row| Change::Static(*row));
        scalars.chain(vlans).chain(ports).chain(statics).collect()
    }

    /// The binding, from 1, that made a change; none for one that follows from others.
    pub(super) fn index(&self, change: Change) -> Option<usize> {
        self.indices.get(&change).copied()
    }

    /// VLANs that are gone.
    pub(super) fn removed_vlans(&self, config: &Config) -> u32 {
        self.vlans.iter().filter(|(index, old)| old.is_some() && !config.vlans.contains_key(index)).count() as u32
    }

    /// Puts everything back.
    pub(super) fn undo(&mut self, config: &mut Config) {
        if let Some(old) = self.scalars.take() {
            config.contact = old.contact;
            config.name = old.name;
            config.location = old.location;
            config.ageing_s = old.ageing_s;
            config.stp_priority = old.stp_priority;
        }
        for (at, old) in std::mem::take(&mut self.ports) {
            config.ports[at] = old;
        }
        for (index, old) in std::mem::take(&mut self.vlans) {
            match old {
                Some(old) => drop(config.vlans.insert(index, old)),
                None => drop(config.vlans.remove(&index)),
            }
        }
        for (row, old) in std::mem::take(&mut self.statics) {
            match old {
                Some(old) => drop(config.statics.insert(row, old)),
                None => drop(config.statics.remove(&row)),
            }
        }
    }
}

/// Carries a SET out in the configuration.
///
/// # Errors
/// Why not, and which binding; the configuration is as it was.
pub(super) fn write(
    catalogue: &Catalogue,
    facts: &Facts,
    config: &mut Config,
    up_cs: u32,
    bindings: &[Binding],
) -> Result<Journal, Refusal> {
    let mut writer = Writer { facts, config, up_cs, journal: Journal::default(), touched: Touched::default() };
    match writer.run(catalogue, bindings) {
        Ok(()) => Ok(writer.journal),
        Err(refusal) => {
            writer.journal.undo(writer.config);
            Err(refusal)
        }
    }
}

struct Writer<'a> {
    facts: &'a Facts,
    config: &'a mut Config,
    up_cs: u32,
    journal: Journal,
    touched: Touched,
}

/// Which binding wrote what last.
#[derive(Default)]
struct Touched {
    vlans: BTreeMap<VlanIndex, usize>,
    untagged: BTreeMap<VlanIndex, usize>,
    pvids: BTreeMap<usize, usize>,
    statics: BTreeMap<StaticRow, usize>,
}

/// One binding, understood.
struct Write<'a> {
    number: usize,
    name: &'static str,
    row: Row,
    value: &'a Value,
}

#[derive(Clone, Copy)]
enum Row {
    Scalar,
    Port(usize),
    Vlan(VlanIndex),
    Static(StaticRow),
}

const ROW_STATUS: &str = "dot1qVlanStaticRowStatus";
const STATIC_STATUS: &str = "dot1qStaticUnicastStatus";

impl Writer<'_> {
    fn run(&mut self, catalogue: &Catalogue, bindings: &[Binding]) -> Result<(), Refusal> {
        let writes = bindings
            .iter()
            .zip(1..)
            .map(|((oid, value), number)| {
                let understood = catalogue.find(oid).ok_or(ErrorStatus::NotWritable);
                understood
                    .and_then(|(object, rest)| understand(self.facts, object, rest, value))
                    .map(|(name, row)| Write { number, name, row, value })
                    .map_err(|status| (status, number))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let statuses = |write: &&Write<'_>| write.name == ROW_STATUS;
        for write in writes.iter().filter(statuses) {
            self.appear(write).map_err(|status| (status, write.number))?;
        }
        // An entry that is declared invalid goes, whatever else is written about it.
        let (lasts, columns): (Vec<_>, Vec<_>) =
            writes.iter().filter(|write| !statuses(write)).partition(|write| write.name == STATIC_STATUS);
        for write in columns.into_iter().chain(lasts) {
            self.column(write).map_err(|status| (status, write.number))?;
        }
        for write in writes.iter().filter(statuses) {
            self.settle(write).map_err(|status| (status, write.number))?;
        }
        self.judge_vlans()?;
        self.judge_statics()?;
        self.judge_pvids()
    }

    fn appear(&mut self, write: &Write<'_>) -> Result<(), ErrorStatus> {
        let Row::Vlan(index) = write.row else { return Ok(()) };
        let exists = self.config.vlans.contains_key(&index);
        match row_status(write.value)? {
            RowStatus::CreateAndGo | RowStatus::CreateAndWait if exists => Err(ErrorStatus::InconsistentValue),
            RowStatus::CreateAndGo | RowStatus::CreateAndWait => {
                self.vlan(index, write.number);
                let fresh = VlanConfig {
                    name: Vec::new(),
                    egress: PortList::new(),
                    forbidden: PortList::new(),
                    untagged: PortList::new(),
                    status: RowStatus::NotInService,
                    created_cs: self.up_cs,
                };
                self.config.vlans.insert(index, fresh);
                Ok(())
            }
            RowStatus::Active | RowStatus::NotInService if !exists => Err(ErrorStatus::InconsistentValue),
            RowStatus::Active | RowStatus::NotInService | RowStatus::Destroy => Ok(()),
            RowStatus::NotReady => Err(ErrorStatus::WrongValue),
        }
    }

    fn settle(&mut self, write: &Write<'_>) -> Result<(), ErrorStatus> {
        let Row::Vlan(index) = write.row else { return Ok(()) };
        // The default VLAN is part of the switch.
        let may_go = index.0 != VlanId::MIN;
        self.vlan(index, write.number);
        match (row_status(write.value)?, self.config.vlans.get_mut(&index)) {
            (RowStatus::CreateAndGo | RowStatus::Active, Some(vlan)) => {
                if vlan.status != RowStatus::Active {
                    vlan.status = RowStatus::Active;
                    vlan.created_cs = self.up_cs;
                }
            }
            (RowStatus::CreateAndWait, _) | (RowStatus::Destroy, None) => {}
            (RowStatus::NotInService, Some(vlan)) if may_go => vlan.status = RowStatus::NotInService,
            (RowStatus::Destroy, Some(_)) if may_go => {
                self.config.vlans.remove(&index);
            }
            _ => return Err(ErrorStatus::InconsistentValue),
        }
        Ok(())
    }

    fn column(&mut self, write: &Write<'_>) -> Result<(), ErrorStatus> {
        let change = match write.row {
            Row::Scalar => Change::Bridge,
            Row::Port(at) => Change::Port(BridgePort(at as u32 + 1)),
            Row::Vlan(index) => Change::Vlan(index.0),
            Row::Static(row) => Change::Static(row),
        };
        self.journal.indices.insert(change, write.number);
        match write.row {
            Row::Scalar => self.scalar(write),
            Row::Port(at) => self.port(at, write),
            Row::Vlan(index) => self.vlan_column(index, write),
            Row::Static(row) => self.static_column(row, write),
        }
    }

    fn scalar(&mut self, write: &Write<'_>) -> Result<(), ErrorStatus> {
        if write.name == "espalierAction" {
            self.journal.action = Some(match int(write.value)? {
                1 => Action::Save,
                2 => Action::Restart,
                3 => Action::Factory,
                _ => return Err(ErrorStatus::WrongValue),
            });
            return Ok(());
        }
        if write.name == "espalierGuard" {
            let seconds = u32::try_from(int(write.value)?).map_err(|_| ErrorStatus::WrongValue)?;
            if seconds > GUARD_S_MAX {
                return Err(ErrorStatus::WrongValue);
            }
            self.journal.action = Some(Action::Guard(seconds));
            return Ok(());
        }
        let config = &mut *self.config;
        self.journal.scalars.get_or_insert_with(|| Scalars {
            contact: config.contact.clone(),
            name: config.name.clone(),
            location: config.location.clone(),
            ageing_s: config.ageing_s,
            stp_priority: config.stp_priority,
        });
        match write.name {
            "sysContact" => config.contact = text(write.value, TEXT_LEN_MAX)?,
            "sysName" => config.name = text(write.value, TEXT_LEN_MAX)?,
            "sysLocation" => config.location = text(write.value, TEXT_LEN_MAX)?,
            "dot1dTpAgingTime" => {
                let ageing_s = int(write.value)?;
                if !AGEING_S.contains(&ageing_s) {
                    return Err(ErrorStatus::WrongValue);
                }
                config.ageing_s = ageing_s as u32;
            }
            "dot1dStpPriority" => {
                config.stp_priority = u16::try_from(int(write.value)?).map_err(|_| ErrorStatus::WrongValue)?;
            }
            _ => return Err(ErrorStatus::NotWritable),
        }
        Ok(())
    }

    fn port(&mut self, at: usize, write: &Write<'_>) -> Result<(), ErrorStatus> {
        let port = &mut self.config.ports[at];
        self.journal.ports.entry(at).or_insert_with(|| port.clone());
        match write.name {
            "ifAdminStatus" => {
                port.admin = match code::<IfStatus>(write.value)? {
                    status @ (IfStatus::Up | IfStatus::Down) => status,
                    _ => return Err(ErrorStatus::WrongValue),
                }
            }
            "ifAlias" => port.alias = text(write.value, ALIAS_LEN_MAX)?,
            "dot3PauseAdminMode" => port.pause = code::<PauseMode>(write.value)?,
            "lldpPortConfigAdminStatus" => port.lldp = code::<LldpAdmin>(write.value)?,
            "dot1dStpPortEnable" => port.stp = code::<Enabled>(write.value)?,
            "dot1dStpPortPriority" => {
                port.stp_priority = u8::try_from(int(write.value)?).map_err(|_| ErrorStatus::WrongValue)?;
            }
            "dot1dStpPortPathCost" => {
                let cost = u32::try_from(int(write.value)?).map_err(|_| ErrorStatus::WrongValue)?;
                port.stp_cost = Some(cost).filter(|cost| *cost > 0);
                port.stp_cost.ok_or(ErrorStatus::WrongValue)?;
            }
            "dot1qPvid" => {
                let pvid = write.value.unsigned().ok_or(ErrorStatus::WrongType)?;
                let pvid = u16::try_from(pvid).ok().and_then(|id| VlanId::new(id).ok());
                port.pvid = pvid.ok_or(ErrorStatus::WrongValue)?;
                self.touched.pvids.insert(at, write.number);
            }
            "dot1qPortAcceptableFrameTypes" => port.frames = code::<AcceptableFrames>(write.value)?,
            // The switch filters, always.
            "dot1qPortIngressFiltering" => match code::<Truth>(write.value)? {
                Truth::True => {}
                Truth::False => return Err(ErrorStatus::InconsistentValue),
            },
            _ => return Err(ErrorStatus::NotWritable),
        }
        Ok(())
    }

    fn vlan_column(&mut self, index: VlanIndex, write: &Write<'_>) -> Result<(), ErrorStatus> {
        if !self.config.vlans.contains_key(&index) {
            return Err(ErrorStatus::InconsistentName);
        }
        self.vlan(index, write.number);
        let facts = self.facts;
        let vlan = self.config.vlans.get_mut(&index).ok_or(ErrorStatus::InconsistentName)?;
        match write.name {
            "dot1qVlanStaticName" => vlan.name = text(write.value, VLAN_NAME_LEN_MAX)?,
            "dot1qVlanStaticEgressPorts" => vlan.egress = port_list(write.value, facts)?,
            "dot1qVlanForbiddenEgressPorts" => vlan.forbidden = port_list(write.value, facts)?,
            "dot1qVlanStaticUntaggedPorts" => {
                vlan.untagged = port_list(write.value, facts)?;
                self.touched.untagged.insert(index, write.number);
            }
            _ => return Err(ErrorStatus::NotWritable),
        }
        Ok(())
    }

    fn static_column(&mut self, row: StaticRow, write: &Write<'_>) -> Result<(), ErrorStatus> {
        let old = self.config.statics.get(&row).cloned();
        self.journal.statics.entry(row).or_insert_with(|| old.clone());
        self.touched.statics.insert(row, write.number);
        let fresh = StaticConfig { ports: PortList::new(), status: StaticStatus::Permanent };
        if write.name == "dot1qStaticUnicastAllowedToGoTo" {
            let ports = port_list(write.value, self.facts)?;
            self.config.statics.entry(row).or_insert(fresh).ports = ports;
            return Ok(());
        }
        match code::<StaticStatus>(write.value)? {
            StaticStatus::Invalid => drop(self.config.statics.remove(&row)),
            status @ (StaticStatus::Permanent | StaticStatus::DeleteOnReset) => {
                self.config.statics.entry(row).or_insert(fresh).status = status;
            }
            StaticStatus::Other | StaticStatus::DeleteOnTimeout => return Err(ErrorStatus::WrongValue),
        }
        Ok(())
    }

    /// Notes how a VLAN was before it is touched.
    fn vlan(&mut self, index: VlanIndex, number: usize) {
        let old = self.config.vlans.get(&index);
        self.journal.vlans.entry(index).or_insert_with(|| old.cloned());
        self.journal.indices.insert(Change::Vlan(index.0), number);
        self.touched.vlans.insert(index, number);
    }

    fn judge_vlans(&mut self) -> Result<(), Refusal> {
        for (&index, &number) in &self.touched.vlans {
            let Some(vlan) = self.config.vlans.get_mut(&index) else {
                forget_statics(self.config, self.facts, index, &mut self.journal);
                continue;
            };
            match self.touched.untagged.get(&index) {
                Some(&number) if !vlan.untagged.is_subset(&vlan.egress) => {
                    return Err((ErrorStatus::InconsistentValue, number));
                }
                Some(_) => {}
                // A port that leaves the VLAN leaves its untagged ports too.
                None => {
                    let kept = vlan.untagged.iter().filter(|port| vlan.egress.contains(*port));
                    vlan.untagged = PortList::of(kept).unwrap_or_default();
                }
            }
            if vlan.egress.meets(&vlan.forbidden) {
                return Err((ErrorStatus::InconsistentValue, number));
            }
            let untagged = vlan.untagged.clone();
            if self.facts.limits.hybrid == HybridPorts::Refused && self.config.is_active(index.0) {
                let mut others = self.config.active_vlans().filter(|(other, _)| *other != index.0);
                if others.any(|(_, other)| other.untagged.meets(&untagged)) {
                    return Err((ErrorStatus::InconsistentValue, number));
                }
            }
        }
        match self.touched.vlans.values().max() {
            Some(number) if self.config.vlans.len() > self.facts.limits.vlans_max => {
                Err((ErrorStatus::ResourceUnavailable, *number))
            }
            _ => Ok(()),
        }
    }

    fn judge_statics(&self) -> Result<(), Refusal> {
        for (row, &number) in &self.touched.statics {
            let Some(entry) = self.config.statics.get(row) else { continue };
            let database = self.config.active_vlans().any(|(vlan, _)| self.facts.limits.fdb_of(vlan) == row.fdb);
            if !database || row.mac.is_multicast() || row.mac.is_zero() {
                return Err((ErrorStatus::InconsistentName, number));
            }
            if row.receive_port != 0 {
                return Err((ErrorStatus::NoCreation, number));
            }
            if entry.ports.len() != 1 {
                return Err((ErrorStatus::InconsistentValue, number));
            }
        }
        match self.touched.statics.values().max() {
            Some(number) if self.config.statics.len() > self.facts.limits.statics_max => {
                Err((ErrorStatus::ResourceUnavailable, *number))
            }
            _ => Ok(()),
        }
    }

    fn judge_pvids(&self) -> Result<(), Refusal> {
        for (at, &number) in &self.touched.pvids {
            if !self.config.is_active(self.config.ports[*at].pvid) {
                return Err((ErrorStatus::InconsistentValue, number));
            }
        }
        for (index, &number) in &self.touched.vlans {
            let gone = !self.config.is_active(index.0);
            if gone && self.config.ports.iter().any(|port| port.pvid == index.0) {
                return Err((ErrorStatus::InconsistentValue, number));
            }
        }
        Ok(())
    }
}

/// A filtering database goes with its last VLAN.
fn forget_statics(config: &mut Config, facts: &Facts, index: VlanIndex, journal: &mut Journal) {
    let fdb = facts.limits.fdb_of(index.0);
    if config.vlans.keys().any(|other| facts.limits.fdb_of(other.0) == fdb) {
        return;
    }
    let lowest = |fdb| StaticRow { fdb, mac: fabric::Mac::new([0; 6]), receive_port: 0 };
    let gone: Vec<StaticRow> = config.statics.range(lowest(fdb)..lowest(fdb + 1)).map(|(row, _)| *row).collect();
    for row in gone {
        let old = config.statics.remove(&row);
        journal.statics.entry(row).or_insert(old);
    }
}

fn understand(facts: &Facts, object: Object, rest: &[u32], value: &Value) -> Result<(&'static str, Row), ErrorStatus> {
    let (name, syntax, access) = match object {
        Object::Scalar(scalar) => (scalar.name, scalar.syntax, scalar.access),
        Object::Column(Column { name, syntax, access, .. }, _) => (*name, *syntax, *access),
    };
    if access == Access::ReadOnly {
        return Err(ErrorStatus::NotWritable);
    }
    if !value.fits(syntax) {
        return Err(ErrorStatus::WrongType);
    }
    let port = |at: usize| if at < facts.ports.len() { Ok(Row::Port(at)) } else { Err(ErrorStatus::NoCreation) };
    let bridged = |at: usize| if facts.is_member(at as u32 + 1) { Err(ErrorStatus::NoCreation) } else { port(at) };
    let none = ErrorStatus::NoCreation;
    let number = |rest: &[u32]| BridgePort::decode(rest).and_then(|port| (port.0 as usize).checked_sub(1)).ok_or(none);
    let row = match object {
        Object::Scalar(_) if rest == [0] => Row::Scalar,
        Object::Scalar(_) => return Err(none),
        Object::Column(_, MibTable::Interface) => {
            let index = IfIndex::decode(rest).ok_or(none)?.0;
            port(facts.ports.binary_search_by_key(&index, |port| port.if_index).map_err(|_| none)?)?
        }
        Object::Column(_, MibTable::Vlan) => Row::Vlan(VlanIndex::decode(rest).ok_or(none)?),
        Object::Column(_, MibTable::Static) => Row::Static(StaticRow::decode(rest).ok_or(none)?),
        Object::Column(_, MibTable::Port) => bridged(number(rest)?)?,
        Object::Column(_, MibTable::LocalPort) => match number(rest)? {
            at if facts.ports.get(at).is_some_and(|port| port.kind == PortKind::Lag) => return Err(none),
            at => port(at)?,
        },
        Object::Column(..) => return Err(ErrorStatus::NotWritable),
    };
    Ok((name, row))
}

fn int(value: &Value) -> Result<i32, ErrorStatus> {
    value.int().ok_or(ErrorStatus::WrongType)
}

fn code<T: TryFrom<i32>>(value: &Value) -> Result<T, ErrorStatus> {
    T::try_from(int(value)?).map_err(|_| ErrorStatus::WrongValue)
}

fn row_status(value: &Value) -> Result<RowStatus, ErrorStatus> {
    code(value)
}

fn text(value: &Value, len_max: usize) -> Result<Vec<u8>, ErrorStatus> {
    let octets = value.octets().ok_or(ErrorStatus::WrongType)?;
    if octets.len() > len_max { Err(ErrorStatus::WrongLength) } else { Ok(octets.to_vec()) }
}

/// A list of bridge ports, of which members of LAGs are none.
fn port_list(value: &Value, facts: &Facts) -> Result<PortList, ErrorStatus> {
    let list = PortList::decode(value.octets().ok_or(ErrorStatus::WrongType)?).map_err(|error| match error {
        PortListError::TooLong(_) => ErrorStatus::WrongLength,
        PortListError::NoPort(_) => ErrorStatus::WrongValue,
    })?;
    let unknown = |port: u32| port as usize > facts.ports.len() || facts.is_member(port);
    if list.iter().any(unknown) { Err(ErrorStatus::WrongValue) } else { Ok(list) }
}
