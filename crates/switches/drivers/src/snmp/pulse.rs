//! What is read of a switch again and again: counters and states of ports, and indicators that move when something else
//! did, so that whole tables are read only then.
//!
//! ```text
//!   every interval  GET sysUpTime, indicators        1 request
//!                   GET states, counters             1 request for some 4 ports
//!   when an indicator moved, or every few minutes    tables: VLANs, members, static entries, LLDP neighbours
//! ```
//! Which indicators there are depends on the switch: snmpSetSerialNo moves with every write of a well-behaved manager,
//! lldpStatsRemTablesLastChangeTime with neighbours, ifTableLastChange with ports, vendors' last-modified times with every
//! change by command line. What none of them shows is found by the next whole reading.

use std::collections::BTreeSet;

use super::{Device, device::PortNumbers, faults::fault};
use bridge_mib::{
    IfStatus,
    index::VlanIndex,
    objects::{ether_like, if_mib, lldp, q_bridge, system},
};
use snmp::{Column, Link, Oid, SessionError, Value};
use switch_model::{
    driver::Fault,
    observe::{Count, PortCounts, Snapshot},
};

/// Objects of one request, so that the answer fits into one frame of Ethernet.
const OBJECTS_AT_ONCE: usize = 48;
/// The first objects of the request for indicators, which are not indicators.
const UP_TIME: usize = 0;
const LLDP_INTERVAL: usize = 1;

/// What was read at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Pulse {
    /// Counters of the ports.
    pub counts: Snapshot,
    /// `ports[slot]`.
    pub ports: Vec<PortPulse>,
    /// Seconds between two of the switch's LLDP announcements, if it says so.
    pub lldp_interval_s: Option<u32>,
    indicators: Vec<Value>,
}

/// A port at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct PortPulse {
    /// Whether the cable carries.
    pub running: bool,
    /// For how long it has been so, in hundredths of a second; none if the switch does not say.
    pub since_cs: Option<u32>,
    /// Administrative state, last change, PVID, acceptable frame types, as the switch says them.
    indicators: Vec<Value>,
}

/// Which columns a switch has, learned by asking for all.
#[derive(Clone, Debug, Default)]
pub struct PulseColumns {
    /// `absent[slot]`: positions of columns that are not there, or not needed.
    absent: Vec<BTreeSet<usize>>,
}

/// Whose number is a column's index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Interface,
    BridgePort,
}

/// A column that is read of every port.
struct Asked {
    column: &'static Column,
    by: By,
    /// The position of a column that says the same in 64 bits; this one is not needed where that is there.
    instead_of: Option<usize>,
}

const fn asked(column: &'static Column, by: By, instead_of: Option<usize>) -> Asked {
    Asked { column, by, instead_of }
}

const OPER: usize = 0;
const LAST_CHANGE: usize = 1;
const ADMIN: usize = 2;
const PVID: usize = 3;
const FRAMES: usize = 4;
const DISCONTINUITY: usize = 5;
const HIGH_SPEED: usize = 6;
const SPEED: usize = 7;
const OCTETS: [usize; 2] = [8, 9];
const ERRORS: [usize; 2] = [12, 13];
const DISCARDS: [usize; 2] = [14, 15];
const PAUSE: [usize; 2] = [16, 17];
/// From a column of 64 bits to that of 32 bits.
const NARROW: usize = 2;

static COLUMNS: [Asked; 20] = [
    asked(&if_mib::OPER_STATUS, By::Interface, None),
    asked(&if_mib::LAST_CHANGE, By::Interface, None),
    asked(&if_mib::ADMIN_STATUS, By::Interface, None),
    asked(&q_bridge::PVID, By::BridgePort, None),
    asked(&q_bridge::PORT_ACCEPTABLE_FRAME_TYPES, By::BridgePort, None),
    asked(&if_mib::COUNTER_DISCONTINUITY_TIME, By::Interface, None),
    asked(&if_mib::HIGH_SPEED, By::Interface, None),
    asked(&if_mib::SPEED, By::Interface, Some(HIGH_SPEED)),
    asked(&if_mib::HC_IN_OCTETS, By::Interface, None),
    asked(&if_mib::HC_OUT_OCTETS, By::Interface, None),
    asked(&if_mib::IN_OCTETS, By::Interface, Some(OCTETS[0])),
    asked(&if_mib::OUT_OCTETS, By::Interface, Some(OCTETS[1])),
    asked(&if_mib::IN_ERRORS, By::Interface, None),
    asked(&if_mib::OUT_ERRORS, By::Interface, None),
    asked(&if_mib::IN_DISCARDS, By::Interface, None),
    asked(&if_mib::OUT_DISCARDS, By::Interface, None),
    asked(&ether_like::HC_IN_PAUSE_FRAMES, By::Interface, None),
    asked(&ether_like::HC_OUT_PAUSE_FRAMES, By::Interface, None),
    asked(&ether_like::IN_PAUSE_FRAMES, By::Interface, Some(PAUSE[0])),
    asked(&ether_like::OUT_PAUSE_FRAMES, By::Interface, Some(PAUSE[1])),
];

impl Pulse {
    /// Whether something else than counters may have changed since an earlier moment: an indicator has moved, a port has
    /// another state or PVID, or the switch has restarted.
    pub fn has_changed_since(&self, before: &Self) -> bool {
        let states = |pulse: &Self| -> Vec<(bool, Vec<Value>)> {
            pulse.ports.iter().map(|port| (port.running, port.indicators.clone())).collect()
        };
        self.has_restarted_since(before) || self.indicators != before.indicators || states(self) != states(before)
    }

    /// Whether the switch has restarted since.
    pub fn has_restarted_since(&self, before: &Self) -> bool {
        self.counts.has_restarted_since(&before.counts)
    }
}

impl<L: Link> Device<L> {
    /// Reads counters, states and indicators of the ports that it was connected with. The first time it asks for all
    /// `columns`, from then on for those that are there. Cost: 1 request, and 1 for every 48 objects of ports.
    ///
    /// # Errors
    /// [`Fault`]; objects that the switch does not have are no fault.
    pub fn pulse(&mut self, columns: &mut PulseColumns) -> Result<Pulse, Fault> {
        let mut objects = vec![system::UP_TIME.instance(), lldp::MESSAGE_TX_INTERVAL.instance()];
        objects.extend([
            system::SET_SERIAL_NO.instance(),
            lldp::STATS_REM_TABLES_LAST_CHANGE_TIME.instance(),
            q_bridge::NUM_VLANS.instance(),
            q_bridge::VLAN_NUM_DELETES.instance(),
            q_bridge::VLAN_STATIC_NAME.row(&VlanIndex(self.known_tag_vlan())),
        ]);
        objects.extend(LAST_MODIFIED.iter().map(|oid| Oid::new(oid)));
        let mut values = self.get_some(&objects)?;
        let up_cs = values[UP_TIME].count().unwrap_or(0) as u32;
        let lldp_interval_s = values[LLDP_INTERVAL].int().and_then(|seconds| u32::try_from(seconds).ok());
        values.drain(..=LLDP_INTERVAL);
        columns.absent.resize(self.ports.len(), BTreeSet::new());
        let wanted: Vec<(usize, usize)> = (columns.absent.iter().enumerate())
            .flat_map(|(slot, absent)| (0..COLUMNS.len()).filter(|at| !absent.contains(at)).map(move |at| (slot, at)))
            .collect();
        let objects: Vec<Oid> = wanted.iter().map(|(slot, at)| object(&self.ports[*slot], &COLUMNS[*at])).collect();
        let answers = self.get_some(&objects)?;
        let none = || vec![Value::NoSuchInstance; COLUMNS.len()];
        let mut rows: Vec<Vec<Value>> = self.ports.iter().map(|_| none()).collect();
        for ((slot, at), value) in wanted.into_iter().zip(answers) {
            rows[slot][at] = value;
        }
        for (absent, row) in columns.absent.iter_mut().zip(&rows) {
            let needless = |at: &usize| {
                let wide = COLUMNS[*at].instead_of.is_some_and(|wide| is_there(&row[wide]));
                wide || row[*at].is_exception()
            };
            // States may come later; counters that a port does not have do not.
            *absent = (DISCONTINUITY..COLUMNS.len()).filter(needless).collect();
        }
        let ports: Vec<PortPulse> = rows.iter().map(|row| port_pulse(row, up_cs)).collect();
        let counts = Snapshot { up_cs, ports: rows.iter().map(|row| port_counts(row)).collect() };
        Ok(Pulse { counts, ports, lldp_interval_s, indicators: values })
    }

    /// Values of objects, some at a time; fewer where the answer does not fit.
    pub(super) fn get_some(&mut self, objects: &[Oid]) -> Result<Vec<Value>, Fault> {
        let mut values = Vec::with_capacity(objects.len());
        for some in objects.chunks(OBJECTS_AT_ONCE) {
            match self.session.get(some) {
                Ok(found) => values.extend(found),
                // One of them cannot be had.
                Err(SessionError::Refused { .. }) if some.len() == 1 => values.push(Value::NoSuchInstance),
                Err(SessionError::Refused { .. }) => {
                    let (first, second) = some.split_at(some.len() / 2);
                    values.extend(self.get_some(first)?);
                    values.extend(self.get_some(second)?);
                }
                Err(error) => return Err(fault(error)),
            }
        }
        Ok(values)
    }
}

/// When the configuration was last changed by whatever way, where a vendor says so: ccmHistoryRunningLastChanged
/// (CISCO-CONFIG-MAN-MIB), hh3cCfgRunModifiedLast (HH3C-CONFIG-MAN-MIB), hwCfgRunModifiedLast (HUAWEI-CONFIG-MAN-MIB);
/// ifTableLastChange (IF-MIB). Untested on a vendor's switch; where it is absent it never moves.
const LAST_MODIFIED: [&[u32]; 4] = [
    &[1, 3, 6, 1, 4, 1, 9, 9, 43, 1, 1, 1, 0],
    &[1, 3, 6, 1, 4, 1, 25506, 2, 4, 1, 1, 1, 0],
    &[1, 3, 6, 1, 4, 1, 2011, 6, 10, 1, 1, 1, 0],
    &[1, 3, 6, 1, 2, 1, 31, 1, 5, 0],
];

fn object(port: &PortNumbers, asked: &Asked) -> Oid {
    match asked.by {
        By::Interface => asked.column.row(&port.interface),
        By::BridgePort => asked.column.row(&port.bridge),
    }
}

/// A gauge of 0 Mbit/s says nothing.
fn is_there(value: &Value) -> bool {
    !value.is_exception() && value.unsigned() != Some(0)
}

fn port_pulse(row: &[Value], up_cs: u32) -> PortPulse {
    let changed_cs = row[LAST_CHANGE].count().and_then(|cs| u32::try_from(cs).ok());
    PortPulse {
        running: row[OPER].int() == Some(IfStatus::Up.code()),
        // Later than now is a clock that began anew meanwhile.
        since_cs: changed_cs.and_then(|changed| up_cs.checked_sub(changed)),
        indicators: [ADMIN, LAST_CHANGE, PVID, FRAMES].map(|at| row[at].clone()).to_vec(),
    }
}

fn port_counts(row: &[Value]) -> Option<PortCounts> {
    let running = row[OPER].int()? == IfStatus::Up.code();
    let count = |at: usize| match &row[at] {
        Value::Counter64(count) => Count::Wide(*count),
        Value::Counter32(count) => Count::Narrow(*count),
        _ => Count::Absent,
    };
    let pair = |of: [usize; 2]| of.map(count);
    let wide_or_narrow =
        |of: [usize; 2]| of.map(|at| if count(at) == Count::Absent { count(at + NARROW) } else { count(at) });
    // Gauges say 4,294,967,295 for whatever is faster; the other one is in Mbit/s.
    let mbps = row[HIGH_SPEED].unsigned().filter(|mbps| *mbps > 0);
    let plain = || row[SPEED].unsigned().map(u64::from);
    Some(PortCounts {
        running,
        speed_bps: mbps.map(|mbps| u64::from(mbps) * 1_000_000).or_else(plain).unwrap_or(0),
        discontinuity_cs: row[DISCONTINUITY].count().unwrap_or(0) as u32,
        octets: wide_or_narrow(OCTETS),
        errors: pair(ERRORS),
        discards: pair(DISCARDS),
        pause: wide_or_narrow(PAUSE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_columns_follow_their_wide_ones() {
        for wide in [OCTETS, PAUSE].into_iter().flatten() {
            assert_eq!(COLUMNS[wide + NARROW].instead_of, Some(wide), "{}", COLUMNS[wide].column.name);
            assert!(COLUMNS[wide].column.name.contains("HC"), "{}", COLUMNS[wide].column.name);
        }
        let named = |at: usize| COLUMNS[at].column.name;
        assert_eq!((named(PVID), named(FRAMES)), ("dot1qPvid", "dot1qPortAcceptableFrameTypes"));
        assert_eq!((named(DISCARDS[0]), named(ERRORS[1])), ("ifInDiscards", "ifOutErrors"));
        assert_eq!(COLUMNS[SPEED].instead_of, Some(HIGH_SPEED));
    }
}
