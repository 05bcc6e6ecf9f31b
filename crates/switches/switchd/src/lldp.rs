//! Link Layer Discovery: what a device says of itself on each port, and who was heard.
//!
//! ```text
//! chassis │ port │ seconds to live │ description │ name │ … │ end        each: type (7 bits), length (9 bits), value
//! ```
//!
//! [`Neighbourhood`] keeps who was heard, [`Transmitter`] says when to speak. No clock: `now_ms` comes with each call. At
//! most [`NEIGHBOURS_MAX`] neighbours are kept.
//!
//! Source: IEEE 802.1AB-2005, clauses 8 to 10; IEEE 802.1AB-2016, 9.2.5 and 9.2.7 (fast start).

use std::collections::BTreeMap;

use thiserror::Error;

use crate::agent::{NeighbourInfo, Neighbours};
use bridge_mib::{LldpChassisSubtype, LldpPortSubtype, index::Neighbour};

/// Most neighbours that a device keeps.
pub const NEIGHBOURS_MAX: usize = 1024;

/// What a device says on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Who speaks.
    pub info: NeighbourInfo,
    /// How long it holds; 0 takes it back.
    pub ttl_s: u16,
}

/// Why octets are no announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not an LLDP announcement")]
pub struct LldpError;

const END: u8 = 0;
const CHASSIS: u8 = 1;
const PORT: u8 = 2;
const TTL: u8 = 3;
const PORT_DESCRIPTION: u8 = 4;
const SYSTEM_NAME: u8 = 5;
const SYSTEM_DESCRIPTION: u8 = 6;
const CAPABILITIES: u8 = 7;
const TEXT_LEN_MAX: usize = 255;

impl Announcement {
    /// Reads an announcement, from behind the Ethernet header on. What is unknown is passed over; texts that are too long
    /// are cut.
    ///
    /// # Errors
    /// [`LldpError`] unless it begins with chassis, port and time to live, each once (9.2.7.7.1).
    pub fn decode(octets: &[u8]) -> Result<Self, LldpError> {
        let mut rest = octets;
        let mut next = || {
            let (head, behind) = rest.split_first_chunk::<2>().ok_or(LldpError)?;
            let (kind, len) = (head[0] >> 1, usize::from(head[0] & 1) << 8 | usize::from(head[1]));
            let (value, behind) = behind.split_at_checked(len).ok_or(LldpError)?;
            rest = behind;
            Ok((kind, value))
        };
        let mut mandatory = |kind| next().and_then(|(got, value)| if got == kind { Ok(value) } else { Err(LldpError) });
        let (chassis, port, ttl) = (mandatory(CHASSIS)?, mandatory(PORT)?, mandatory(TTL)?);
        let identifier = |value: &[u8]| match value {
            [subtype, id @ ..] if (1..=TEXT_LEN_MAX).contains(&id.len()) => Ok((i32::from(*subtype), id.to_vec())),
            _ => Err(LldpError),
        };
        let (chassis, port) = (identifier(chassis)?, identifier(port)?);
        let &[high, low, ..] = ttl else { return Err(LldpError) };
        let mut info = NeighbourInfo {
            chassis_subtype: chassis.0.try_into().map_err(|_| LldpError)?,
            chassis_id: chassis.1,
            port_subtype: port.0.try_into().map_err(|_| LldpError)?,
            port_id: port.1,
            port_description: Vec::new(),
            system_name: Vec::new(),
            system_description: Vec::new(),
            capabilities: 0,
            capabilities_enabled: 0,
        };
        let text = |value: &[u8]| value[..value.len().min(TEXT_LEN_MAX)].to_vec();
        loop {
            match next()? {
                (END, _) => break,
                (CHASSIS | PORT | TTL, _) => return Err(LldpError),
                (PORT_DESCRIPTION, value) => info.port_description = text(value),
                (SYSTEM_NAME, value) => info.system_name = text(value),
                (SYSTEM_DESCRIPTION, value) => info.system_description = text(value),
                (CAPABILITIES, &[a, b, c, d]) => {
                    info.capabilities = u16::from_be_bytes([a, b]);
                    info.capabilities_enabled = u16::from_be_bytes([c, d]);
                }
                _ => {}
            }
        }
        Ok(Self { info, ttl_s: u16::from_be_bytes([high, low]) })
    }

    /// Writes an announcement; texts are cut at 255 octets.
    pub fn encode(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        let mut put = |kind: u8, value: &[u8]| {
            let value = &value[..value.len().min(TEXT_LEN_MAX + 1)];
            octets.extend([kind << 1 | (value.len() >> 8) as u8, value.len() as u8]);
            octets.extend(value);
        };
        let info = &self.info;
        put(CHASSIS, &[&[info.chassis_subtype.code() as u8][..], &info.chassis_id].concat());
        put(PORT, &[&[info.port_subtype.code() as u8][..], &info.port_id].concat());
        put(TTL, &self.ttl_s.to_be_bytes());
        let texts = [
            (PORT_DESCRIPTION, &info.port_description),
            (SYSTEM_NAME, &info.system_name),
            (SYSTEM_DESCRIPTION, &info.system_description),
        ];
        for (kind, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            put(kind, &text[..text.len().min(TEXT_LEN_MAX)]);
        }
        let [a, b] = info.capabilities.to_be_bytes();
        let [c, d] = info.capabilities_enabled.to_be_bytes();
        put(CAPABILITIES, &[a, b, c, d]);
        put(END, &[]);
        octets
    }
}

/// Who was heard, port by port.
#[derive(Clone, Debug, Default)]
pub struct Neighbourhood {
    table: Neighbours,
    /// Where the row is, and until when it holds.
    known: BTreeMap<Speaker, (Neighbour, u64)>,
    next_index: u32,
}

/// Whether an announcement is the first of its neighbour on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sighting {
    /// The neighbour was not in the table.
    New,
    /// It was, or it takes itself back, or the table is full.
    Known,
}

/// Local port, chassis and port identifier.
type Speaker = (u32, Vec<u8>, Vec<u8>);

impl Neighbourhood {
    /// The table as managers read it.
    pub fn table(&self) -> &Neighbours {
        &self.table
    }

    /// Takes an announcement that came in by a port. `up_cs` is sysUpTime.
    pub fn handle_announcement(&mut self, now_ms: u64, up_cs: u32, local_port: u32, heard: Announcement) -> Sighting {
        let identifier = |subtype: i32, id: &[u8]| [&[subtype as u8][..], id].concat();
        let key = (
            local_port,
            identifier(heard.info.chassis_subtype.code(), &heard.info.chassis_id),
            identifier(heard.info.port_subtype.code(), &heard.info.port_id),
        );
        let until_ms = now_ms + 1000 * u64::from(heard.ttl_s);
        let full = self.known.len() >= NEIGHBOURS_MAX;
        match self.known.get_mut(&key) {
            _ if heard.ttl_s == 0 => {
                if let Some((row, _)) = self.known.remove(&key) {
                    self.remove(up_cs, &row);
                }
            }
            Some((row, until)) => {
                *until = until_ms;
                if self.table.rows.get(row) != Some(&heard.info) {
                    self.table.rows.remove(row);
                    row.time_mark = up_cs;
                    self.table.rows.insert(*row, heard.info);
                    self.table.changed_cs = up_cs;
                }
            }
            None if full => self.table.drops = self.table.drops.wrapping_add(1),
            None => {
                self.next_index = self.next_index % i32::MAX as u32 + 1;
                let row = Neighbour { time_mark: up_cs, local_port, index: self.next_index };
                self.known.insert(key, (row, until_ms));
                self.table.rows.insert(row, heard.info);
                self.table.inserts = self.table.inserts.wrapping_add(1);
                self.table.changed_cs = up_cs;
                return Sighting::New;
            }
        }
        Sighting::Known
    }

    /// Forgets who has fallen silent.
    pub fn handle_tick(&mut self, now_ms: u64, up_cs: u32) {
        let silent =
            |(key, (row, until_ms)): (&_, &(Neighbour, u64))| (*until_ms <= now_ms).then(|| (Clone::clone(key), *row));
        let gone: Vec<_> = self.known.iter().filter_map(silent).collect();
        for (key, row) in gone {
            self.known.remove(&key);
            self.table.ageouts = self.table.ageouts.wrapping_add(1);
            self.remove(up_cs, &row);
        }
    }

    /// Forgets everybody on a port whose cable is gone.
    pub fn handle_down(&mut self, up_cs: u32, local_port: u32) {
        let gone: Vec<_> = self.known.keys().filter(|key| key.0 == local_port).cloned().collect();
        for key in gone {
            if let Some((row, _)) = self.known.remove(&key) {
                self.remove(up_cs, &row);
            }
        }
    }

    fn remove(&mut self, up_cs: u32, row: &Neighbour) {
        self.table.rows.remove(row);
        self.table.deletes = self.table.deletes.wrapping_add(1);
        self.table.changed_cs = up_cs;
    }
}

/// How often a port announces itself in a row after its link came up or a new neighbour was heard (txFastInit).
pub const FAST_COUNT: u8 = 4;
/// How far apart those announcements are (msgFastTx).
pub const FAST_INTERVAL_MS: u64 = 1000;
/// Most announcements of a port at once (txCreditMax); one more is allowed each second.
pub const CREDIT_MAX: u8 = 5;

/// When each port announces itself: at once when its link comes up and when a new neighbour is heard, quickly a few times
/// after that, and then at an interval.
///
/// Call order: [`Transmitter::handle_link_up`], [`Transmitter::handle_link_down`] and [`Transmitter::handle_neighbour`] as
/// things happen, then [`Transmitter::poll_due`], whose answer must be sent. Cost: O(ports) a poll.
///
/// Source: IEEE 802.1AB-2016, 9.2.5.14 to 9.2.5.23 (txTTR, txFast, txCredit), 9.2.7.
#[derive(Clone, Debug)]
pub struct Transmitter {
    interval_ms: u64,
    /// `ports[port]`; none while its link is down.
    ports: Vec<Option<Schedule>>,
}

#[derive(Clone, Copy, Debug)]
struct Schedule {
    due_ms: u64,
    /// Quick announcements that are still to come.
    fast: u8,
    credit: u8,
    credited_ms: u64,
}

impl Transmitter {
    /// Ports 0 to `ports - 1`, all links down, that announce themselves every `interval_ms`.
    pub fn new(ports: usize, interval_ms: u64) -> Self {
        Self { interval_ms, ports: vec![None; ports] }
    }

    /// A port's link came up: it is due at once. One that is up already goes on as it was.
    pub fn handle_link_up(&mut self, now_ms: u64, port: usize) {
        self.ports[port].get_or_insert(Schedule {
            due_ms: now_ms,
            fast: FAST_COUNT,
            credit: CREDIT_MAX,
            credited_ms: now_ms,
        });
    }

    /// A port's link went down: it says nothing any more.
    pub fn handle_link_down(&mut self, port: usize) {
        self.ports[port] = None;
    }

    /// A neighbour was heard that was not known: it is told at once who is here.
    pub fn handle_neighbour(&mut self, now_ms: u64, port: usize) {
        if let Some(schedule) = &mut self.ports[port] {
            (schedule.due_ms, schedule.fast) = (now_ms, FAST_COUNT);
        }
    }

    /// The ports that announce themselves now, ascending; they are due again later.
    pub fn poll_due(&mut self, now_ms: u64) -> Vec<usize> {
        let interval_ms = self.interval_ms;
        let mut due = Vec::new();
        for (port, schedule) in self.ports.iter_mut().enumerate() {
            let Some(schedule) = schedule else { continue };
            while schedule.credit < CREDIT_MAX && schedule.credited_ms + 1000 <= now_ms {
                (schedule.credit, schedule.credited_ms) = (schedule.credit + 1, schedule.credited_ms + 1000);
            }
            if schedule.credit == CREDIT_MAX {
                schedule.credited_ms = now_ms;
            }
            if schedule.due_ms <= now_ms && schedule.credit > 0 {
                schedule.credit -= 1;
                schedule.fast = schedule.fast.saturating_sub(1);
                let fast = schedule.fast > 0;
                schedule.due_ms = now_ms + if fast { interval_ms.min(FAST_INTERVAL_MS) } else { interval_ms };
                due.push(port);
            }
        }
        due
    }
}

/// What a bridge with this chassis says on a port of this name.
pub fn bridge_announcement(
    chassis: [u8; 6],
    system_name: &[u8],
    description: &[u8],
    port: &str,
    alias: &[u8],
    ttl_s: u16,
) -> Announcement {
    const BRIDGE: u16 = 1 << 2;
    let port_description = if alias.is_empty() { port.as_bytes() } else { alias };
    let info = NeighbourInfo {
        chassis_subtype: LldpChassisSubtype::Mac,
        chassis_id: chassis.to_vec(),
        port_subtype: LldpPortSubtype::Name,
        port_id: port.as_bytes().to_vec(),
        port_description: port_description.to_vec(),
        system_name: system_name.to_vec(),
        system_description: description.to_vec(),
        capabilities: BRIDGE,
        capabilities_enabled: BRIDGE,
    };
    Announcement { info, ttl_s }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn announced(port: &str, ttl_s: u16) -> Announcement {
        bridge_announcement([2, 0, 0, 0, 0, 1], b"sw1", b"a switch", port, b"", ttl_s)
    }

    #[test]
    fn neighbours_come_change_age_and_go() {
        let mut all = Neighbourhood::default();
        all.handle_announcement(0, 0, 3, announced("g1", 4));
        all.handle_announcement(1000, 100, 3, announced("g1", 4));
        let rows = |all: &Neighbourhood| {
            all.table().rows.keys().map(|row| (row.time_mark, row.local_port, row.index)).collect::<Vec<_>>()
        };
        assert_eq!(rows(&all), [(0, 3, 1)]);
        assert_eq!(all.handle_announcement(1500, 150, 3, announced("g1", 4)), Sighting::Known);
        let mut renamed = announced("g1", 4);
        renamed.info.system_name = b"other".to_vec();
        all.handle_announcement(2000, 200, 3, renamed);
        all.handle_announcement(2000, 200, 4, announced("g2", 1));
        assert_eq!(rows(&all), [(200, 3, 1), (200, 4, 2)]);
        all.handle_tick(3000, 300);
        assert_eq!(
            (rows(&all).len(), all.table().ageouts, all.table().deletes, all.table().changed_cs),
            (1, 1, 1, 300)
        );
        all.handle_announcement(3100, 310, 3, announced("g1", 0));
        assert_eq!((rows(&all).len(), all.table().inserts, all.table().deletes), (0, 2, 2));
        all.handle_announcement(3200, 320, 5, announced("g1", 9));
        all.handle_down(330, 5);
        assert_eq!(rows(&all).len(), 0);
    }

    #[test]
    fn a_link_that_comes_up_is_announced_at_once_and_quickly_a_few_times() {
        let mut transmitter = Transmitter::new(2, 30_000);
        let sent = |transmitter: &mut Transmitter, from_ms: u64, to_ms: u64| -> Vec<(u64, usize)> {
            (from_ms..to_ms)
                .flat_map(|now| transmitter.poll_due(now).into_iter().map(move |port| (now, port)))
                .collect()
        };
        assert_eq!(sent(&mut transmitter, 0, 100), []);
        transmitter.handle_link_up(100, 1);
        assert_eq!(sent(&mut transmitter, 100, 10_000), [(100, 1), (1100, 1), (2100, 1), (3100, 1)]);
        assert_eq!(sent(&mut transmitter, 10_000, 40_000), [(33_100, 1)]);
        // A new neighbour does not wait for the interval.
        transmitter.handle_neighbour(40_000, 1);
        assert_eq!(sent(&mut transmitter, 40_000, 50_000), [(40_000, 1), (41_000, 1), (42_000, 1), (43_000, 1)]);
        transmitter.handle_link_down(1);
        transmitter.handle_neighbour(50_000, 1);
        assert_eq!(sent(&mut transmitter, 50_000, 90_000), []);
    }

    #[test]
    fn neighbours_that_come_and_go_do_not_make_a_port_chatter() {
        let mut transmitter = Transmitter::new(1, 30_000);
        transmitter.handle_link_up(0, 0);
        let mut sent = 0;
        for now_ms in 0..10_000 {
            transmitter.handle_neighbour(now_ms, 0);
            sent += transmitter.poll_due(now_ms).len();
        }
        assert_eq!(sent, usize::from(CREDIT_MAX) + 9);
    }

    #[test]
    fn a_crowd_finds_no_room() {
        let mut all = Neighbourhood::default();
        for number in 0..=NEIGHBOURS_MAX {
            all.handle_announcement(0, 0, 1, announced(&format!("g{number}"), 100));
        }
        assert_eq!((all.table().rows.len(), all.table().drops), (NEIGHBOURS_MAX, 1));
    }

    proptest! {
        #[test]
        fn announcements_read_what_they_write(
            chassis in prop::collection::vec(any::<u8>(), 1..255), port in prop::collection::vec(any::<u8>(), 1..255),
            texts in prop::array::uniform3(prop::collection::vec(any::<u8>(), 0..=255)), ttl_s: u16, bits: [u16; 2],
        ) {
            let mut announcement = announced("g1", ttl_s);
            let info = &mut announcement.info;
            (info.chassis_id, info.port_id) = (chassis, port);
            [info.port_description, info.system_name, info.system_description] = texts;
            [info.capabilities, info.capabilities_enabled] = bits;
            prop_assert_eq!(Announcement::decode(&announcement.encode()), Ok(announcement));
        }

        #[test]
        fn no_octets_make_the_reader_panic(octets in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Announcement::decode(&octets);
        }
    }

    #[test]
    fn what_is_incomplete_is_refused() {
        let whole = announced("g1", 9).encode();
        assert!((0..whole.len()).all(|len| Announcement::decode(&whole[..len]).is_err()));
        assert_eq!(Announcement::decode(&[0, 0]), Err(LldpError));
    }
}
