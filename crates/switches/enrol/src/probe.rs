//! The probes themselves. Every one writes, reads back and believes what it reads: agents accept what they ignore, and
//! answers get lost. What a probe finds wanting is tried a second time, so that an accident is no verdict.

use std::collections::BTreeMap;

use fabric::VlanId;

use super::{
    PortFact, ProbeCallbacks, Step, Trouble,
    grow::{End, Room, grow},
    ledger::{Ledger, Names},
    session::{ProbeSession, Reply},
    survey::text,
};
use bridge_mib::{
    BridgePort, PauseMode, PortList, RowStatus, StaticStatus,
    index::{CurrentVlan, IfIndex, StaticRow, VlanIndex},
    objects::{ether_like, q_bridge},
};
use snmp::{Link, Oid, SessionError, Value, wire::Binding};

/// Most rows that are written by one message: so many entries fit into an Ethernet frame.
const BATCH_MAX: usize = 16;

/// What was found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether a port can be an untagged member of several VLANs with a PVID of its own.
    pub hybrid_ports: Verdict,
    /// Whether every VLAN has a filtering database of its own.
    pub independent_vlan_learning: Verdict,
    /// Whether PAUSE can be set and stays set; nobody knows if the switch does not show it or every port has a link.
    pub pause: Option<Verdict>,
    /// VLANs, those that were there and VLAN 1 included.
    pub vlans: Room,
    /// Static entries, those that were there included.
    pub statics: Room,
    /// Whether a VLAN can be made by one message.
    pub whole_rows: bool,
    /// Rows that the switch gives by one message.
    pub repetitions: i32,
}

/// Whether a switch can do something, and how that showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it can.
    pub able: bool,
    /// How that showed.
    pub why: String,
}

impl Verdict {
    fn yes(why: impl Into<String>) -> Self {
        Self { able: true, why: why.into() }
    }

    fn no(why: impl Into<String>) -> Self {
        Self { able: false, why: why.into() }
    }
}

/// What is written where.
pub(super) struct Site<'a> {
    pub(super) ledger: Ledger,
    /// One or two.
    pub(super) ports: Vec<PortFact>,
    pub(super) vlans_before: usize,
    pub(super) statics_before: usize,
    pub(super) vlans_max: usize,
    pub(super) entries_max: usize,
    pub(super) callbacks: &'a mut dyn ProbeCallbacks,
}

pub(super) fn probe<L: Link>(session: &mut ProbeSession<L>, site: &mut Site<'_>) -> Result<Capabilities, Trouble> {
    let mut probe = Probe { session, site, whole_rows: true, databases: BTreeMap::new() };
    probe.make_pair()?;
    let hybrid_ports = probe.twice(Step::Hybrid, Probe::hybrid)?;
    let independent_vlan_learning = probe.twice(Step::Tables, Probe::tables)?;
    let pause = probe.pause()?;
    let vlans = probe.vlan_room()?;
    let statics = probe.entry_room()?;
    // A restart since the last look would have emptied what was counted.
    probe.pulse()?;
    let whole_rows = probe.whole_rows;
    let repetitions = session.repetitions();
    Ok(Capabilities { hybrid_ports, independent_vlan_learning, pause, vlans, statics, whole_rows, repetitions })
}

struct Probe<'a, 'd, L> {
    session: &'a mut ProbeSession<L>,
    site: &'a mut Site<'d>,
    whole_rows: bool,
    databases: BTreeMap<VlanId, u32>,
}

impl<L: Link> Probe<'_, '_, L> {
    fn begin(&mut self, step: Step) -> Result<(), Trouble> {
        self.site.callbacks.tell(step);
        self.pulse()
    }

    /// Stops if somebody wishes so, or if the switch has restarted.
    fn pulse(&mut self) -> Result<(), Trouble> {
        if self.site.callbacks.stopped() {
            return Err(Trouble::Stopped);
        }
        if self.session.restarts()? > 0 {
            return Err(Trouble::Restarted);
        }
        Ok(())
    }

    fn twice(&mut self, step: Step, ask: fn(&mut Self) -> Result<Verdict, SessionError>) -> Result<Verdict, Trouble> {
        self.begin(step)?;
        let verdict = ask(self)?;
        self.pulse()?;
        if verdict.able { Ok(verdict) } else { Ok(ask(self)?) }
    }

    /// The first two VLANs, highest id first.
    fn pair(&self) -> [VlanId; 2] {
        let mut vlans = self.site.ledger.vlans.iter().collect::<Vec<_>>().into_iter().rev();
        [vlans.next(), vlans.next()].map(|vlan| vlan.expect("the site has two VLANs at least"))
    }

    fn numbers(&self) -> PortList {
        PortList::of(self.site.ports.iter().map(|port| port.bridge)).unwrap_or_default()
    }

    /// Makes two VLANs with the chosen ports as tagged members.
    fn make_pair(&mut self) -> Result<(), Trouble> {
        self.begin(Step::Vlans)?;
        let all = self.numbers();
        for vlan in self.pair() {
            if !self.make_vlan(vlan, &all)? && !self.make_vlan(vlan, &all)? {
                return Err(Trouble::Unable(format!(
                    "it makes no VLAN {vlan} with tagged members by SNMP; it may want its command line, or ports in \
                     another mode"
                )));
            }
            if self.site.ledger.names == Names::Unknown {
                let name = self.session.get(&[q_bridge::VLAN_STATIC_NAME.row(&VlanIndex(vlan))])?;
                let kept = text(&name[0]) == self.site.ledger.name();
                self.site.ledger.names = if kept { Names::Kept } else { Names::Dropped };
                self.site.callbacks.keep(&self.site.ledger).map_err(Trouble::NoLedger)?;
            }
        }
        for (CurrentVlan { vlan, .. }, value) in self.session.optional(&q_bridge::VLAN_FDB_ID)? {
            self.databases.extend(value.unsigned().map(|database| (vlan, database)));
        }
        Ok(())
    }

    /// Makes a VLAN at once, or the bare row first and its columns afterwards; whether its members are there then.
    fn make_vlan(&mut self, vlan: VlanId, members: &PortList) -> Result<bool, SessionError> {
        let (status, columns) = (self.create(vlan), self.columns(vlan, members));
        if self.whole_rows {
            self.session.set(columns.iter().cloned().chain([status.clone()]).collect())?;
            if self.holds(vlan, members, &PortList::new())? {
                return Ok(true);
            }
        }
        self.session.set(vec![status])?;
        self.session.set(columns)?;
        let made = self.holds(vlan, members, &PortList::new())?;
        self.whole_rows &= !made;
        Ok(made)
    }

    fn create(&self, vlan: VlanId) -> Binding {
        let row = q_bridge::VLAN_STATIC_ROW_STATUS.row(&VlanIndex(vlan));
        (row, Value::Integer(RowStatus::CreateAndGo.code()))
    }

    fn columns(&self, vlan: VlanId, members: &PortList) -> Vec<Binding> {
        let name = Value::Octets(self.site.ledger.name().into_bytes());
        let mut columns = vec![(q_bridge::VLAN_STATIC_NAME.row(&VlanIndex(vlan)), name)];
        columns.extend(self.lists(vlan, members, &PortList::new()));
        columns
    }

    fn lists(&self, vlan: VlanId, members: &PortList, untagged: &PortList) -> Vec<Binding> {
        let octets = |list: &PortList| Value::Octets(list.encode(self.site.ledger.list_len));
        vec![
            (q_bridge::VLAN_STATIC_EGRESS_PORTS.row(&VlanIndex(vlan)), octets(members)),
            (q_bridge::VLAN_STATIC_UNTAGGED_PORTS.row(&VlanIndex(vlan)), octets(untagged)),
        ]
    }

    /// Whether a VLAN has these members, those of `untagged` without a tag.
    fn holds(&mut self, vlan: VlanId, members: &PortList, untagged: &PortList) -> Result<bool, SessionError> {
        let index = VlanIndex(vlan);
        let objects =
            [q_bridge::VLAN_STATIC_EGRESS_PORTS.row(&index), q_bridge::VLAN_STATIC_UNTAGGED_PORTS.row(&index)];
        let lists = self.session.get(&objects)?;
        let list = |value: &Value| value.octets().and_then(|octets| PortList::decode(octets).ok());
        Ok(list(&lists[0]).as_ref() == Some(members) && list(&lists[1]).as_ref() == Some(untagged))
    }

    /// A port untagged in two VLANs, with the PVID of either.
    fn hybrid(&mut self) -> Result<Verdict, SessionError> {
        let (all, port) = (self.numbers(), self.site.ports[0].clone());
        let bare = PortList::of([port.bridge]).unwrap_or_default();
        let pair = self.pair();
        let [high, low] = pair;
        for vlan in pair {
            let lists = self.lists(vlan, &all, &bare);
            let reply = self.session.set(lists)?;
            if !self.holds(vlan, &all, &bare)? {
                let why = match reply {
                    Reply::Refused(status) => format!("port {} untagged in VLAN {vlan}: {status:?}", port.name),
                    Reply::Accepted => format!("port {} untagged in VLAN {vlan} was accepted and not kept", port.name),
                };
                return Ok(Verdict::no(why));
            }
        }
        if !self.holds(high, &all, &bare)? {
            return Ok(Verdict::no(format!("port {} left VLAN {high} when it became untagged in {low}", port.name)));
        }
        let mut why = format!("port {} stayed untagged in VLANs {low} and {high}", port.name);
        let before = self.site.ledger.pvids.get(&port.bridge).copied();
        match before {
            Some(before) if !port.running => {
                let row = q_bridge::PVID.row(&BridgePort(port.bridge));
                for pvid in pair.map(|vlan| u32::from(vlan.get())) {
                    self.session.set(vec![(row.clone(), Value::Gauge32(pvid))])?;
                    let moved = self.session.get(std::slice::from_ref(&row))?[0].unsigned() == Some(pvid);
                    let kept = self.holds(high, &all, &bare)? && self.holds(low, &all, &bare)?;
                    if !moved || !kept {
                        return Ok(Verdict::no(format!("port {} does not take PVID {pvid} beside that", port.name)));
                    }
                }
                self.session.set(vec![(row, Value::Gauge32(before))])?;
                why.push_str(", and took either as its PVID");
            }
            _ => why.push_str("; its PVID was left alone, since it has a link"),
        }
        for vlan in pair {
            let lists = self.lists(vlan, &all, &PortList::new());
            self.session.set(lists)?;
        }
        Ok(Verdict::yes(why))
    }

    fn database(&self, vlan: VlanId) -> u32 {
        self.databases.get(&vlan).copied().unwrap_or_else(|| u32::from(vlan.get()))
    }

    /// One address in two VLANs, at two ports.
    fn tables(&mut self) -> Result<Verdict, SessionError> {
        let pair = self.pair();
        let [high, low] = pair.map(|vlan| self.database(vlan));
        if high == low {
            let [a, b] = pair;
            return Ok(Verdict::no(format!("VLANs {b} and {a} share filtering database {high}")));
        }
        let mac = self.site.ledger.mac(0);
        let ports = [0, 1].map(|at| self.site.ports.get(at).unwrap_or(&self.site.ports[0]).clone());
        let rows = [high, low].map(|fdb| StaticRow { fdb, mac, receive_port: 0 });
        for (row, port) in rows.iter().zip(&ports) {
            let entry = self.entry(row, port);
            self.session.set(entry)?;
        }
        for (row, port) in rows.iter().zip(&ports) {
            if self.present(std::slice::from_ref(row), port)? != 1 {
                let way = format!("{mac} in filtering database {} at port {} is not kept", row.fdb, port.name);
                return Ok(Verdict::no(format!("{way} beside the same address in another")));
            }
        }
        let [a, b] = ports;
        Ok(Verdict::yes(match a.bridge == b.bridge {
            true => format!("one address has an entry in each of two VLANs (at port {} alone)", a.name),
            false => format!("one address leads to ports {} and {} in two VLANs", a.name, b.name),
        }))
    }

    fn entry(&self, row: &StaticRow, port: &PortFact) -> Vec<Binding> {
        let list = PortList::of([port.bridge]).unwrap_or_default().encode(self.site.ledger.list_len);
        vec![
            (q_bridge::STATIC_UNICAST_ALLOWED_TO_GO_TO.row(row), Value::Octets(list)),
            (q_bridge::STATIC_UNICAST_STATUS.row(row), Value::Integer(StaticStatus::Permanent.code())),
        ]
    }

    /// How many rows, from the first, are static entries to a port.
    fn present(&mut self, rows: &[StaticRow], port: &PortFact) -> Result<usize, SessionError> {
        let objects: Vec<Oid> = rows.iter().map(|row| q_bridge::STATIC_UNICAST_ALLOWED_TO_GO_TO.row(row)).collect();
        let wanted = PortList::of([port.bridge]).unwrap_or_default();
        let there = |value: &Value| {
            value.octets().and_then(|octets| PortList::decode(octets).ok()).is_some_and(|list| list == wanted)
        };
        Ok(self.values(&objects)?.iter().take_while(|value| there(value)).count())
    }

    /// Values of many objects, one by one where they do not fit into one answer.
    fn values(&mut self, objects: &[Oid]) -> Result<Vec<Value>, SessionError> {
        match self.session.get(objects) {
            Err(SessionError::Refused { .. }) if objects.len() > 1 => {
                let (first, rest) = objects.split_at(objects.len() / 2);
                let mut values = self.values(first)?;
                values.extend(self.values(rest)?);
                Ok(values)
            }
            // An agent may refuse to speak of what is not there.
            Err(SessionError::Refused { .. }) => Ok(vec![Value::NoSuchInstance]),
            values => values,
        }
    }

    fn pause(&mut self) -> Result<Option<Verdict>, Trouble> {
        self.begin(Step::Pause)?;
        let Some(port) = self.site.ports.iter().find(|port| !port.running).cloned() else { return Ok(None) };
        let Some(&before) = self.site.ledger.pause.get(&port.interface) else { return Ok(None) };
        let row = ether_like::PAUSE_ADMIN_MODE.row(&IfIndex(port.interface));
        let mut able = false;
        // Whatever it was, it is changed and comes to be both ways.
        for mode in [PauseMode::Off, PauseMode::Both, PauseMode::Both] {
            self.session.set(vec![(row.clone(), Value::Integer(mode.code()))])?;
            able = self.session.get(std::slice::from_ref(&row))?[0].int() == Some(PauseMode::Both.code());
            if able {
                break;
            }
        }
        self.session.set(vec![(row, Value::Integer(before))])?;
        Ok(Some(match able {
            true => Verdict::yes(format!("port {} took it, both ways", port.name)),
            false => Verdict::no(format!("port {} did not take it", port.name)),
        }))
    }

    fn vlan_room(&mut self) -> Result<Room, Trouble> {
        self.begin(Step::VlanRoom)?;
        let before = self.site.vlans_before + 2;
        let vlans: Vec<VlanId> = self.site.ledger.vlans.iter().collect::<Vec<_>>().into_iter().rev().skip(2).collect();
        let bound = self.site.vlans_max.saturating_sub(before).min(vlans.len());
        let batch_max = if self.whole_rows { BATCH_MAX / 2 } else { 1 };
        let room = grow::<Trouble>(bound, batch_max, |numbers| {
            self.pulse()?;
            let vlans = &vlans[numbers];
            let none = PortList::new();
            let mut rows = Vec::new();
            for vlan in vlans {
                rows.extend(if self.whole_rows { self.columns(*vlan, &none) } else { Vec::new() });
                rows.push(self.create(*vlan));
            }
            self.session.set(rows)?;
            if !self.whole_rows {
                let columns = vlans.iter().flat_map(|vlan| self.columns(*vlan, &none)).collect();
                self.session.set(columns)?;
            }
            let states: Vec<Oid> =
                vlans.iter().map(|vlan| q_bridge::VLAN_STATIC_ROW_STATUS.row(&VlanIndex(*vlan))).collect();
            let made = |value: &Value| value.int() == Some(RowStatus::Active.code());
            Ok(self.values(&states)?.iter().take_while(|value| made(value)).count())
        })?;
        Ok(Room { held: room.held + before, ..room })
    }

    fn entry_room(&mut self) -> Result<Room, Trouble> {
        self.begin(Step::EntryRoom)?;
        let (fdb, port) = (self.database(self.pair()[0]), self.site.ports[0].clone());
        let row = |site: &Site<'_>, number: usize| {
            let mac = site.ledger.mac(1 + number);
            StaticRow { fdb, mac, receive_port: 0 }
        };
        // The address in two VLANs is still there, or was never taken.
        let others = self.own_entries()?;
        let bound = self.site.entries_max.saturating_sub(self.site.statics_before + others);
        let room = grow::<Trouble>(bound, BATCH_MAX, |numbers| {
            self.pulse()?;
            let rows: Vec<StaticRow> = numbers.map(|number| row(self.site, number)).collect();
            let entries = rows.iter().flat_map(|row| self.entry(row, &port)).collect();
            self.session.set(entries)?;
            Ok(self.present(&rows, &port)?)
        })?;
        // What came later may have pushed out what came first, so the table itself has the last word.
        let held = self.own_entries()?;
        let end = if held < room.held + others { End::Full } else { room.end };
        Ok(Room { held: held + self.site.statics_before, end, ..room })
    }

    fn own_entries(&mut self) -> Result<usize, SessionError> {
        let rows = self.session.walk::<StaticRow>(&q_bridge::STATIC_UNICAST_STATUS)?;
        let lasting = [StaticStatus::Permanent, StaticStatus::DeleteOnReset].map(|status| status.code());
        let own = |row: &StaticRow, value: &Value| {
            self.site.ledger.owns(row) && value.int().is_some_and(|status| lasting.contains(&status))
        };
        Ok(rows.iter().filter(|(row, value)| own(row, value)).count())
    }
}
