//! The session of a probe: GETs and SETs to a switch, or, in a dry run, SETs into an overlay over what the switch answers.
//!
//! ```text
//!   probe ─ set ─▶ the switch            dry run: probe ─ set ─▶ overlay, printed
//!   probe ◀ get ── the switch                     probe ◀ get ── overlay, and the switch where the overlay has nothing
//! ```
//! In a dry run every SET is accepted, and every VLAN gets a filtering database of the VLAN's number.

use std::collections::BTreeMap;

use bridge_mib::{
    RowStatus, StaticStatus,
    index::{CurrentVlan, StaticRow, VlanIndex},
    objects::{q_bridge, system},
};
use drivers::snmp::Reader;
use snmp::{
    BulkSize, Column, Link, Oid, RowIndex, Session, SessionError, Value, walk,
    wire::{Binding, ErrorStatus},
};

/// An SNMP session, and in a dry run the overlay that takes its SETs.
pub(super) struct ProbeSession<L> {
    session: Session<L>,
    bulk: BulkSize,
    overlay: Option<DryRunOverlay>,
    up_cs: u64,
    /// How often its engine has started, where the protocol tells.
    boots: Option<i32>,
    restarts: u32,
    /// SETs that were sent or written down.
    pub(super) sets: usize,
}

/// What SETs of a dry run have changed.
#[derive(Default)]
struct DryRunOverlay {
    /// What objects read as by now; none for what is gone.
    over: BTreeMap<Oid, Option<Value>>,
    written: Vec<Vec<Binding>>,
}

/// What a switch says to a SET. What it does is another matter: read it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Accepted,
    Refused(ErrorStatus),
}

impl<L: Link> ProbeSession<L> {
    pub(super) fn new(session: Session<L>) -> Self {
        Self { session, bulk: BulkSize::default(), overlay: None, up_cs: 0, boots: None, restarts: 0, sets: 0 }
    }

    /// What reads the switch itself, whatever has been written down.
    pub(super) fn reader(&mut self) -> Reader<'_, L> {
        Reader { session: &mut self.session, bulk: &mut self.bulk }
    }

    /// From now on nothing is sent that writes.
    pub(super) fn rehearse(&mut self) {
        self.overlay = Some(DryRunOverlay::default());
    }

    /// What would have been sent.
    pub(super) fn written(self) -> Vec<Vec<Binding>> {
        self.overlay.map(|overlay| overlay.written).unwrap_or_default()
    }

    /// How many rows the switch gives at once.
    pub(super) fn repetitions(&self) -> i32 {
        self.bulk.repetitions()
    }

    /// How often the switch has been seen to have restarted.
    pub(super) fn restarts(&mut self) -> Result<u32, SessionError> {
        let up_cs = self.session.get(&[system::UP_TIME.instance()])?[0].count().unwrap_or(0);
        let boots = self.session.boots();
        self.restarts += u32::from(up_cs < self.up_cs || (self.boots.is_some() && boots != self.boots));
        (self.up_cs, self.boots) = (up_cs, boots);
        Ok(self.restarts)
    }

    pub(super) fn set(&mut self, bindings: Vec<Binding>) -> Result<Reply, SessionError> {
        self.sets += 1;
        if let Some(overlay) = &mut self.overlay {
            bindings.iter().for_each(|binding| overlay.write(binding));
            overlay.written.push(bindings);
            return Ok(Reply::Accepted);
        }
        match self.session.set(bindings) {
            Ok(()) => Ok(Reply::Accepted),
            Err(SessionError::Refused { status, .. }) => Ok(Reply::Refused(status)),
            Err(error) => Err(error),
        }
    }

    pub(super) fn get(&mut self, objects: &[Oid]) -> Result<Vec<Value>, SessionError> {
        let Some(overlay) = &self.overlay else { return self.session.get(objects) };
        let real = self.session.get(objects)?;
        let shown = objects.iter().zip(real).map(|(object, value)| match overlay.over.get(object) {
            Some(over) => over.clone().unwrap_or(Value::NoSuchInstance),
            None => value,
        });
        Ok(shown.collect())
    }

    pub(super) fn walk<I: RowIndex>(&mut self, column: &Column) -> Result<Vec<(I, Value)>, SessionError> {
        let mut rows = walk::<L, I>(&mut self.session, &mut self.bulk, column)?;
        if let Some(overlay) = &self.overlay {
            rows.retain(|(index, _)| !overlay.over.contains_key(&column.row(index)));
            let over = overlay.over.iter().filter_map(|(oid, value)| Some((column.index_of(oid)?, value.clone()?)));
            rows.extend(over);
            rows.sort_by_key(|(index, _)| *index);
        }
        Ok(rows)
    }

    /// A column that a switch may do without.
    pub(super) fn optional<I: RowIndex>(&mut self, column: &Column) -> Result<Vec<(I, Value)>, SessionError> {
        match self.walk(column) {
            Err(SessionError::Refused { .. }) => Ok(Vec::new()),
            rows => rows,
        }
    }
}

impl DryRunOverlay {
    fn write(&mut self, (oid, value): &Binding) {
        if let Some(index) = q_bridge::VLAN_STATIC_ROW_STATUS.index_of::<VlanIndex>(oid) {
            let made = value.int() != Some(RowStatus::Destroy.code());
            let read = made.then_some(Value::Integer(RowStatus::Active.code()));
            self.over.insert(oid.clone(), read);
            let vlan = u32::from(index.0.get());
            let database = q_bridge::VLAN_FDB_ID.row(&CurrentVlan { time_mark: 0, vlan: index.0 });
            self.over.insert(database, made.then_some(Value::Gauge32(vlan)));
            if !made {
                for column in VLAN_COLUMNS {
                    self.over.insert(column.row(&index), None);
                }
            }
        } else if let Some(row) = q_bridge::STATIC_UNICAST_STATUS.index_of::<StaticRow>(oid) {
            let alive = value.int() != Some(StaticStatus::Invalid.code());
            self.over.insert(oid.clone(), alive.then(|| value.clone()));
            if !alive {
                self.over.insert(q_bridge::STATIC_UNICAST_ALLOWED_TO_GO_TO.row(&row), None);
            }
        } else {
            self.over.insert(oid.clone(), Some(value.clone()));
        }
    }
}

const VLAN_COLUMNS: [&Column; 3] =
    [&q_bridge::VLAN_STATIC_NAME, &q_bridge::VLAN_STATIC_EGRESS_PORTS, &q_bridge::VLAN_STATIC_UNTAGGED_PORTS];
