//! The managed switch: answers requests from its configuration and sensors, and carries writes to its data plane.
//!
//! A SET is in force when its answer leaves. If the data plane refuses, everything is put back, in the configuration and
//! in the data plane, and the answer says why, and which binding: commitFailed where the plane has no better word.

use super::{
    config::{Config, Facts},
    plane::{Change, DataPlane, Refused},
    responder::{Answer, EngineClock, MESSAGE_LEN_MAX, Responder, Rights},
    sensors::Sensors,
    view::{Catalogue, View},
    write::{Action, Journal, write},
};
use bridge_mib::{StaticStatus, objects::system::SET_SERIAL_NO};
use snmp::{
    Oid, Value,
    wire::{BINDINGS_MAX, Binding, ErrorStatus, Pdu, PduKind},
};

/// A data plane that forwards nothing: for agents without ports of their own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Still;

impl DataPlane for Still {
    fn observe(&mut self, _: u32, _: &mut Sensors) {}

    fn apply(&mut self, _: &Config, _: &[Change]) -> Result<(), Refused> {
        Ok(())
    }
}

/// A managed switch.
pub struct Switch<P> {
    facts: Facts,
    config: Config,
    saved: Config,
    sensors: Sensors,
    plane: P,
    catalogue: Catalogue,
    engine_id: Vec<u8>,
    room: usize,
    boots: i32,
    started_ms: u64,
    deletes: u32,
    serial: i32,
    guard: Option<Guard>,
    saves: u64,
}

/// What the switch goes back to, unless it hears otherwise in time.
struct Guard {
    due_ms: u64,
    config: Config,
}

/// Most instances that one GETBULK brings for each of its names.
const REPETITIONS_MAX: i32 = 500;

impl<P: DataPlane> Switch<P> {
    /// A switch whose data plane does what `config` says, which is also its saved configuration. `boots` counts its
    /// starts; `now_ms` is when it started.
    pub fn new(facts: Facts, config: Config, plane: P, engine_id: &[u8], boots: i32, now_ms: u64) -> Self {
        let sensors = Sensors::still(facts.ports.len());
        Self {
            saved: config.clone(),
            facts,
            config,
            sensors,
            plane,
            catalogue: Catalogue::new(),
            engine_id: engine_id.to_vec(),
            room: MESSAGE_LEN_MAX,
            boots,
            started_ms: now_ms,
            deletes: 0,
            serial: first_serial(engine_id, boots),
            guard: None,
            saves: 0,
        }
    }

    /// What is configured.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What was last saved.
    pub fn saved(&self) -> &Config {
        &self.saved
    }

    /// How often something has been saved since the switch was made, so that nobody need compare.
    pub fn saves(&self) -> u64 {
        self.saves
    }

    /// The hardware.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The data plane.
    pub fn plane(&mut self) -> &mut P {
        &mut self.plane
    }

    /// Has the data plane carry the whole configuration out.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn apply_all(&mut self) -> Result<(), Refused> {
        self.plane.apply(&self.config, &[Change::All])
    }

    /// sysUpTime.
    pub fn up_cs(&self, now_ms: u64) -> u32 {
        // It wraps after 497 days, as sysUpTime does everywhere.
        (now_ms.saturating_sub(self.started_ms) / 10) as u32
    }

    fn view(&self, now_ms: u64) -> View<'_> {
        View {
            facts: &self.facts,
            config: &self.config,
            sensors: &self.sensors,
            engine_id: &self.engine_id,
            clock: self.clock(now_ms),
            up_cs: self.up_cs(now_ms),
            saved: &self.saved,
            deletes: self.deletes,
            serial: self.serial,
            guard_s: self.guard.as_ref().map_or(0, |guard| guard.due_ms.saturating_sub(now_ms).div_ceil(1000) as u32),
            room: self.room,
        }
    }

    fn get(&self, view: &View<'_>, oid: &Oid) -> Value {
        match self.catalogue.find(oid) {
            None => Value::NoSuchObject,
            Some((object, rest)) => view.value(object, rest).unwrap_or(Value::NoSuchInstance),
        }
    }

    fn next(&self, view: &View<'_>, oid: &Oid) -> Binding {
        self.catalogue.next(view, oid).unwrap_or_else(|| (oid.clone(), Value::EndOfMibView))
    }

    fn bulk(&self, view: &View<'_>, request: &Pdu, room: usize) -> Vec<Binding> {
        let (single, many) = request.bindings.split_at(request.bindings.len().min(request.status.max(0) as usize));
        let mut bindings: Vec<Binding> = single.iter().map(|(oid, _)| self.next(view, oid)).collect();
        let mut left = room.saturating_sub(bindings.iter().map(encoded_len).sum());
        let mut asked: Vec<Oid> = many.iter().map(|(oid, _)| oid.clone()).collect();
        for _ in 0..request.index.clamp(0, REPETITIONS_MAX) {
            let mut ended = true;
            for oid in &mut asked {
                let found = self.next(view, oid);
                let len = encoded_len(&found);
                if len > left || bindings.len() >= BINDINGS_MAX {
                    return bindings;
                }
                left -= len;
                ended &= found.1 == Value::EndOfMibView;
                oid.clone_from(&found.0);
                bindings.push(found);
            }
            if ended {
                break;
            }
        }
        bindings
    }

    fn set(&mut self, now_ms: u64, request: &Pdu) -> Pdu {
        let lock = SET_SERIAL_NO.instance();
        let serial = request.bindings.iter().position(|(oid, _)| *oid == lock);
        if let Some(at) = serial {
            if request.bindings[at].1.int() != Some(self.serial) {
                return request.refusal(ErrorStatus::InconsistentValue, at + 1);
            }
        }
        let others = request.bindings.iter().filter(|(oid, _)| *oid != lock).cloned().collect::<Vec<_>>();
        // Where a binding stood in the request.
        let place = |index: usize| index + usize::from(serial.is_some_and(|at| index > at));
        let up_cs = self.up_cs(now_ms);
        let written = write(&self.catalogue, &self.facts, &mut self.config, up_cs, &others);
        let mut journal = match written {
            Ok(journal) => journal,
            Err((status, index)) => return request.refusal(status, place(index)),
        };
        let changes = journal.changes();
        let applied = if changes.is_empty() { Ok(()) } else { self.plane.apply(&self.config, &changes) };
        if let Err(refused) = applied {
            let index = refused.change.and_then(|change| journal.index(change));
            journal.undo(&mut self.config);
            return match self.plane.apply(&self.config, &changes) {
                Ok(()) => request.refusal(refused.status, place(index.unwrap_or(1))),
                Err(_) => request.refusal(ErrorStatus::UndoFailed, 0),
            };
        }
        if serial.is_some() {
            self.serial = self.serial.wrapping_add(1) & i32::MAX;
        }
        self.finish(now_ms, &journal);
        request.answer(request.bindings.clone())
    }

    fn finish(&mut self, now_ms: u64, journal: &Journal) {
        self.deletes = self.deletes.wrapping_add(journal.removed_vlans(&self.config));
        match journal.action {
            None => {}
            Some(Action::Guard(0)) => self.guard = None,
            Some(Action::Guard(seconds)) => {
                let due_ms = now_ms + u64::from(seconds) * 1000;
                self.guard = Some(Guard { due_ms, config: self.config.clone() });
            }
            Some(Action::Save) => self.save(self.config.clone()),
            Some(Action::Restart) => self.restart(now_ms),
            Some(Action::Factory) => {
                self.save(self.facts.factory());
                self.restart(now_ms);
            }
        }
    }

    fn save(&mut self, config: Config) {
        self.saved = config;
        self.saves += 1;
    }
}

impl<P: DataPlane> Responder for Switch<P> {
    fn answer(&mut self, now_ms: u64, request: &Pdu, rights: Rights, room: usize) -> Answer {
        self.handle_tick(now_ms);
        if let Some(found) = self.plane.found(&self.config) {
            self.config = found;
            // Whoever has the old lock has not seen this.
            self.serial = self.serial.wrapping_add(SERIAL_STEP) & i32::MAX;
        }
        let up_cs = self.up_cs(now_ms);
        if request.kind != PduKind::Set {
            self.plane.observe(up_cs, &mut self.sensors);
        }
        let view = self.view(now_ms);
        let bindings = match request.kind {
            PduKind::Get => {
                request.bindings.iter().map(|(oid, _)| (oid.clone(), self.get(&view, oid))).collect::<Vec<_>>()
            }
            PduKind::GetNext => request.bindings.iter().map(|(oid, _)| self.next(&view, oid)).collect(),
            PduKind::GetBulk => self.bulk(&view, request, room),
            PduKind::Set if rights == Rights::Read => {
                return Answer::Pdu(request.refusal(ErrorStatus::NoAccess, usize::from(!request.bindings.is_empty())));
            }
            // The answer repeats the request, so one that does not fit is refused before anything happens.
            PduKind::Set if request.bindings.iter().map(encoded_len).sum::<usize>() > room => {
                return Answer::Pdu(Pdu { bindings: Vec::new(), ..request.refusal(ErrorStatus::TooBig, 0) });
            }
            PduKind::Set => return Answer::Pdu(self.set(now_ms, request)),
            PduKind::Response | PduKind::Inform | PduKind::Trap | PduKind::Report => return Answer::Nothing,
        };
        if request.kind != PduKind::GetBulk && bindings.iter().map(encoded_len).sum::<usize>() > room {
            return Answer::Pdu(Pdu { bindings: Vec::new(), ..request.refusal(ErrorStatus::TooBig, 0) });
        }
        Answer::Pdu(request.answer(bindings))
    }

    fn clock(&self, now_ms: u64) -> EngineClock {
        let time_s = now_ms.saturating_sub(self.started_ms) / 1000;
        EngineClock { boots: self.boots, time_s: time_s.min(i32::MAX as u64) as i32 }
    }

    fn handle_tick(&mut self, now_ms: u64) {
        let Some(guard) = self.guard.take_if(|guard| guard.due_ms <= now_ms) else { return };
        self.config = guard.config;
        // Whoever has the old lock has not seen this.
        self.serial = self.serial.wrapping_add(SERIAL_STEP) & i32::MAX;
        // What was held before has been accepted before; if it cannot be had any more, reading back shows it.
        let _ = self.plane.apply(&self.config, &[Change::All]);
    }

    fn restart(&mut self, now_ms: u64) {
        self.guard = None;
        self.config = self.saved.clone();
        self.config.statics.retain(|_, entry| entry.status != StaticStatus::DeleteOnReset);
        self.boots = self.boots.saturating_add(1);
        self.started_ms = now_ms;
        self.deletes = 0;
        self.serial = first_serial(&self.engine_id, self.boots);
        // What a data plane refuses now it has accepted before; if it cannot any more, reading back shows it.
        let _ = self.plane.apply(&self.config, &[Change::All]);
    }
}

/// How far the lock moves when the switch goes back by itself: further than one lost answer explains.
const SERIAL_STEP: i32 = 1000;

/// The lock's value after a start: another after every one, and on every device.
fn first_serial(engine_id: &[u8], boots: i32) -> i32 {
    let mixed = engine_id
        .iter()
        .chain(&boots.to_be_bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3));
    (mixed >> 33) as i32
}

/// Octets that a binding takes in a message, at most.
pub(super) fn encoded_len(binding: &Binding) -> usize {
    let part_len = |part: &u32| (32 - part.leading_zeros()).max(1).div_ceil(7) as usize;
    let oid_len = |oid: &Oid| oid.parts().iter().map(part_len).sum::<usize>();
    let number_len = |number: u64| (64 - number.leading_zeros()) as usize / 8 + 1;
    let with_header = |len: usize| {
        len + match len {
            0..128 => 2,
            128..256 => 3,
            _ => 4,
        }
    };
    let value = match &binding.1 {
        Value::Octets(octets) | Value::Opaque(octets) => octets.len(),
        Value::Oid(oid) => oid_len(oid),
        Value::Counter64(count) => number_len(*count),
        Value::Counter32(count) | Value::Gauge32(count) | Value::TimeTicks(count) => number_len(u64::from(*count)),
        _ => 4,
    };
    with_header(with_header(oid_len(&binding.0)) + with_header(value))
}
