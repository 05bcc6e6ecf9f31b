//! A switch by SNMP, the reading half: its ports by their names, and its state as one value.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Admin, FlowControlMode, VlanId, VlanSet};

use super::{
    SaveMethod,
    batch::Batch,
    device::{Device, Lock, Pause, PortNumbers, Settings},
    faults::{fault, nonsense, vlan_id},
    memory::Memory,
    ports::{NO_BRIDGE_PORT, PortEntry, Reader},
    vlan_tables::{VlanMib, WAY_OUT},
};
use bridge_mib::{
    BridgePort, Enabled, IfStatus, ListForm, PauseMode, PortList, StaticStatus, Truth,
    index::{CurrentVlan, IfIndex, StaticRow},
    objects::{bridge, ether_like, if_mib, own, q_bridge, system},
};
use fabric::{IngressFilter, SpanningTree};
use snmp::{BulkSize, Column, Link, Oid, RowIndex, Session, SessionError, Value, walk};
use switch_model::{Entries, LagMembership, PortConfig, PortLearning, Slot, SwitchConfig, driver::Fault, mark::Mark};

impl<L: Link> Device<L> {
    /// Finds the ports of a switch by their names, `names[slot]`.
    ///
    /// # Errors
    /// [`Fault`], naming the port that is missing.
    pub fn connect(mut session: Session<L>, names: &[String], settings: Settings) -> Result<Self, Fault> {
        let mut bulk = BulkSize::default();
        let table = Reader { session: &mut session, bulk: &mut bulk }.ports().map_err(fault)?;
        let pausing: BTreeSet<u32> = match walk::<L, IfIndex>(&mut session, &mut bulk, &ether_like::PAUSE_ADMIN_MODE) {
            Ok(rows) => rows.into_iter().map(|(index, _)| index.0).collect(),
            Err(SessionError::Refused { .. }) => BTreeSet::new(),
            Err(error) => return Err(fault(error)),
        };
        let numbers_of = |port: &PortEntry| {
            let pause = if pausing.contains(&port.interface) { Pause::Settable } else { Pause::Absent };
            PortNumbers { bridge: port.bridge, interface: IfIndex(port.interface), pause }
        };
        let mut ports = Vec::with_capacity(names.len());
        let mut meant: BTreeMap<usize, &String> = BTreeMap::new();
        for name in names {
            let at = table.find(name).map_err(|none| Fault::Refused(none.sentence(name)))?;
            if let Some(other) = meant.insert(at, name) {
                return Err(Fault::Refused(format!(
                    "{other} and {name} are one port of it (bridge port {}); take one of them out of the topology",
                    table.ports[at].bridge.0
                )));
            }
            ports.push(numbers_of(&table.ports[at]));
        }
        let named: BTreeSet<u32> = ports.iter().map(|port| port.bridge.0).collect();
        let mut taken: BTreeSet<String> = names.iter().cloned().collect();
        let mut unmanaged = Vec::new();
        let strange = |port: &&PortEntry| port.bridge != NO_BRIDGE_PORT && !named.contains(&port.bridge.0);
        for port in table.ports.iter().filter(strange) {
            let mut name = port.name.clone();
            while !taken.insert(name.clone()) {
                name = format!("{name} (bridge port {})", port.bridge.0);
            }
            unmanaged.push((name, numbers_of(port)));
        }
        let numbers = table.numbers();
        let last = numbers.last().copied().unwrap_or(0);
        let save = match one(&mut session, &system::OBJECT_ID)? {
            Some(Value::Oid(make)) if make == Oid::new(own::PRODUCT.oid) => SaveMethod::Own,
            _ => settings.save,
        };
        let vlan_max = match one(&mut session, &q_bridge::MAX_VLAN_ID) {
            Ok(max) => max.and_then(|max| vlan_id(max.unsigned()?)).filter(|vlan| *vlan > VlanId::MIN),
            Err(Fault::Refused(_)) => None,
            Err(error) => return Err(error),
        };
        let vlan_max = vlan_max.unwrap_or(VlanId::MAX);
        let mut device = Self {
            session,
            bulk,
            mark_vlan: settings.mark_vlan,
            names: names.to_vec(),
            ports,
            unmanaged,
            unmanaged_lists: BTreeMap::new(),
            databases: BTreeMap::new(),
            pvids: BTreeMap::new(),
            mark_vlans: BTreeSet::new(),
            static_vlans: BTreeSet::new(),
            unasked: BTreeSet::new(),
            vlan_max,
            batch: Batch::default(),
            sight: Memory::of(save, table),
            address: None,
            list_len: PortList::octets_for(last as usize),
            numbers,
            vlan_mib: VlanMib::QBridge,
            list_form: ListForm::Bits,
            lock: Lock::Absent,
            starts: 0,
            up_cs: 0,
            save,
            widths: BTreeMap::new(),
            rehearsal: None,
        };
        device.fence()?;
        Ok(device)
    }

    /// Reads the ports that it was connected for, and behind them those that the topology does not name.
    pub(super) fn read_whole(&mut self) -> Result<(SwitchConfig, Option<Mark>), Fault> {
        let others = self.unmanaged.iter().map(|(name, _)| name);
        let mut ports: Vec<PortConfig> = self.names.iter().chain(others).cloned().map(PortConfig::blank).collect();
        let all: Vec<PortNumbers> =
            self.ports.iter().copied().chain(self.unmanaged.iter().map(|(_, port)| *port)).collect();
        let bridged = all.iter().enumerate().filter(|(_, port)| port.bridge != NO_BRIDGE_PORT);
        let slots: BTreeMap<u32, usize> = bridged.map(|(slot, port)| (port.bridge.0, slot)).collect();
        let mut vlans = VlanSet::new();
        let mut mark: Option<Mark> = None;
        self.mark_vlans.clear();
        self.unasked.clear();
        let tables = Reader { session: &mut self.session, bulk: &mut self.bulk }.vlans(&self.numbers)?;
        (self.vlan_mib, self.list_form) = (tables.mib, tables.form);
        self.static_vlans = tables.names.keys().copied().collect();
        for (&vlan, name) in &tables.names {
            let text = String::from_utf8_lossy(name);
            match text.trim_end_matches('\0').parse::<Mark>().ok() {
                Some(found) => {
                    self.mark_vlans.insert(vlan);
                    mark = mark.max(Some(found));
                }
                None if vlan != VlanId::MIN => {
                    vlans.insert(vlan);
                }
                None => {}
            }
        }
        self.unmanaged_lists.clear();
        for (&vlan, (members, untagged)) in &tables.members {
            for port in members.iter() {
                let Some(&slot) = slots.get(&port) else { continue };
                let set = if untagged.contains(port) { &mut ports[slot].untagged } else { &mut ports[slot].tagged };
                set.insert(vlan);
            }
            let strange = |list: &PortList| {
                PortList::of(list.iter().filter(|port| slots.get(port).is_some_and(|slot| *slot >= self.names.len())))
            };
            if let (Ok(members), Ok(untagged)) = (strange(members), strange(untagged)) {
                self.unmanaged_lists.insert(vlan, (members, untagged));
            }
        }
        self.pvids = tables.pvids;
        let filters = tables.filters;
        let admin: BTreeMap<IfIndex, Value> = self.walk(&if_mib::ADMIN_STATUS)?.into_iter().collect();
        let pause: BTreeMap<IfIndex, Value> = match all.iter().any(|port| port.pause == Pause::Settable) {
            true => self.walk(&ether_like::PAUSE_ADMIN_MODE)?.into_iter().collect(),
            false => BTreeMap::new(),
        };
        let mtus = self.interface_mtus()?;
        let trees = self.walk::<BridgePort>(&bridge::STP_PORT_ENABLE)?;
        let own = |port: &BridgePort| slots.get(&port.0).is_some_and(|slot| *slot < self.names.len());
        let governed = trees.iter().any(|(port, value)| own(port) && value.int() == Some(Enabled::Yes.code()));
        let named = self.names.len();
        for (at, (port, numbers)) in ports.iter_mut().zip(&all).enumerate() {
            let filtering = filters.get(&numbers.bridge).and_then(Value::int) != Some(Truth::False.code());
            port.ingress_filter = if filtering { IngressFilter::On } else { IngressFilter::Off };
            let down = admin.get(&numbers.interface).and_then(Value::int) != Some(IfStatus::Up.code());
            port.admin = if down { Admin::Down } else { Admin::Up };
            let tagged_only = tables.tagged_only.contains(&numbers.bridge);
            let pvid = self.pvids.get(&numbers.bridge).copied();
            // An untagged frame of a VLAN that its port is no member of is dropped by a filtering port. Of a port that nobody
            // named the number counts: its VLAN cannot be removed, whether frames get in or not.
            let counts = |vlan: &VlanId| at >= named || (!tagged_only && (port.is_member(*vlan) || !filtering));
            port.pvid = pvid.filter(counts);
            let both = pause.get(&numbers.interface).and_then(Value::int) == Some(PauseMode::Both.code());
            port.flow_control = if both { FlowControlMode::Pause } else { FlowControlMode::Off };
            // No object of the standard's turns it off.
            port.learning = PortLearning::Always;
            port.mtu_bytes = mtus.get(&numbers.interface.0).copied();
            // No object of the standards' says.
            (port.blocked, port.storm_limits) = (None, None);
        }
        self.read_lags(&mut ports)?;
        let entries = self.read_entries(&slots)?;
        let spanning_tree = if governed { SpanningTree::On } else { SpanningTree::Off };
        // Neither LLDP nor snooping is among what is asked for.
        let snooping = BTreeSet::new();
        Ok((SwitchConfig { ports, vlans, entries, spanning_tree, lldp: None, snooping }, mark))
    }

    /// Reads which ports are members of LAGs, if there are any. A LAG has the flow control of its members where it has none of its own.
    fn read_lags(&mut self, ports: &mut [PortConfig]) -> Result<(), Fault> {
        let is_lag = |port: &PortConfig| port.lag_number().is_some();
        if !ports.iter().any(is_lag) {
            return Ok(());
        }
        let lags = Reader { session: &mut self.session, bulk: &mut self.bulk }.lags().map_err(fault)?;
        let slot_of: BTreeMap<u32, Slot> =
            self.ports.iter().enumerate().map(|(slot, port)| (port.interface.0, Slot::new(slot))).collect();
        for (port, numbers) in ports.iter_mut().zip(&self.ports).filter(|(port, _)| !is_lag(port)) {
            port.lag = match lags.get(&numbers.interface.0) {
                Some(lag) => slot_of.get(lag).map_or(LagMembership::Alone, |slot| LagMembership::Of(*slot)),
                // Who tells of no member at all may have no MIB for it.
                None if lags.is_empty() => LagMembership::Unsaid,
                None => LagMembership::Alone,
            };
        }
        let unpaused = self.ports.iter().enumerate().filter(|(_, port)| port.pause == Pause::Absent);
        for at in unpaused.map(|(at, _)| at) {
            let lag = Slot::new(at);
            let mut of_members =
                ports.iter().filter(|port| port.lag == LagMembership::Of(lag)).map(|port| &port.flow_control);
            if is_lag(&ports[at]) && of_members.all(|mode| *mode == FlowControlMode::Pause) {
                ports[at].flow_control = FlowControlMode::Pause;
            }
        }
        Ok(())
    }

    /// `mtus[slot]`: the largest packet that each port passes that it was connected with, in bytes (ifMtu); none of one that
    /// does not say.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn mtus(&mut self) -> Result<Vec<Option<u16>>, Fault> {
        let mtus = self.interface_mtus()?;
        Ok(self.ports.iter().map(|port| mtus.get(&port.interface.0).copied()).collect())
    }

    /// ifMtu by ifIndex. What is more than a packet of IPv4 can have counts as that much.
    fn interface_mtus(&mut self) -> Result<BTreeMap<u32, u16>, Fault> {
        let mut reader = Reader { session: &mut self.session, bulk: &mut self.bulk };
        let mtus = reader.numbers(&if_mib::MTU).map_err(fault)?;
        let bytes = |mtu: i32| u16::try_from(mtu.min(i32::from(u16::MAX))).ok().filter(|bytes| *bytes > 0);
        Ok(mtus.into_iter().filter_map(|(index, mtu)| Some((index, bytes(mtu)?))).collect())
    }

    /// Refuses to write what can only be read here.
    ///
    /// # Errors
    /// [`Fault::Refused`], with the way out.
    pub(super) fn writable(&self) -> Result<(), Fault> {
        let what = match (self.vlan_mib, self.list_form) {
            (VlanMib::QBridge, ListForm::Bits) => return Ok(()),
            (VlanMib::Ieee, _) => "its VLANs stand in IEEE8021-Q-BRIDGE-MIB",
            (VlanMib::QBridge, ListForm::Decimals) => "its lists of ports are decimal numbers",
        };
        Err(Fault::Refused(format!("{what}, which is read and not written; {WAY_OUT}")))
    }

    fn read_entries(&mut self, slots: &BTreeMap<u32, usize>) -> Result<Entries, Fault> {
        let mut vlan_of: BTreeMap<u32, VlanId> = BTreeMap::new();
        self.databases.clear();
        for (CurrentVlan { vlan, .. }, value) in self.walk(&q_bridge::VLAN_FDB_ID)? {
            let Some(database) = value.unsigned() else { continue };
            if let Some(other) = vlan_of.insert(database, vlan).filter(|other| *other != vlan) {
                return Err(Fault::Refused(format!(
                    "VLANs {other} and {vlan} share a filtering database (shared learning): it cannot route by VLAN"
                )));
            }
            self.databases.insert(vlan, database);
        }
        let alive: BTreeSet<StaticRow> = (self.walk::<StaticRow>(&q_bridge::STATIC_UNICAST_STATUS)?.into_iter())
            .filter(|(_, value)| value.int() != Some(StaticStatus::Invalid.code()))
            .map(|(row, _)| row)
            .collect();
        let mut entries = Entries::new();
        for (row, value) in self.walk::<StaticRow>(&q_bridge::STATIC_UNICAST_ALLOWED_TO_GO_TO)? {
            if !alive.contains(&row) {
                continue;
            }
            let octets = value.octets().ok_or_else(|| {
                Fault::Refused(format!("{} is no list of ports", q_bridge::STATIC_UNICAST_ALLOWED_TO_GO_TO.name))
            })?;
            let list = self.list_form.decode(octets).map_err(nonsense)?;
            let vlan = vlan_of.get(&row.fdb).copied().or_else(|| vlan_id(row.fdb));
            let (own, others): (Vec<usize>, Vec<usize>) =
                list.iter().filter_map(|port| slots.get(&port).copied()).partition(|slot| *slot < self.names.len());
            // One that leads to a named port and to others besides is taken for the named port's.
            if let (Some(vlan), (&[slot], _) | ([], &[slot])) = (vlan, (own.as_slice(), others.as_slice())) {
                entries.insert((vlan, row.mac), Slot::new(slot));
            }
        }
        Ok(entries)
    }

    pub(super) fn walk<I: RowIndex>(&mut self, column: &Column) -> Result<Vec<(I, Value)>, Fault> {
        walk(&mut self.session, &mut self.bulk, column).map_err(fault)
    }
}

fn one<L: Link>(session: &mut Session<L>, scalar: &snmp::Scalar) -> Result<Option<Value>, Fault> {
    let values = session.get(&[scalar.instance()]).map_err(fault)?;
    Ok(values.into_iter().next().filter(|value| !value.is_exception()))
}
