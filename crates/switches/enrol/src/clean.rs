//! Cleaning up: what a switch holds is read, what is the probe's is taken back, until nothing is left or the switch does
//! not give way.
//!
//! ```text
//!   members ─ PVIDs ─ entries ─ PAUSE ─ VLANs ─ read again ─▶ nothing left?
//! ```
//! Nothing is remembered of what was written: the ledger says what may be the probe's, the switch what is there. So the
//! same steps end a probe that went well, one that broke off anywhere, and one whose program died last week.

use std::collections::BTreeMap;

use fabric::{Mac, VlanId};

use super::{
    ledger::{Ledger, Names, restrict},
    session::{ProbeSession, Reply},
    survey::{Holding, hold},
};
use bridge_mib::{
    BridgePort, PortList, RowStatus, StaticStatus,
    index::{IfIndex, StaticRow, VlanIndex},
    objects::{ether_like, q_bridge},
};
use snmp::{Link, SessionError, Value, wire::Binding};

/// How often what is left is taken back before it counts as stuck.
const ROUNDS: u32 = 4;
/// How often a switch may be silent: with the usual patience, for two minutes, which is what restarts take.
const SILENCES_MAX: u32 = 20;
/// Entries that are removed by one message, where a switch takes so many.
const BATCH: usize = 16;

/// When somebody cleans up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// At the end of the probe itself: VLANs that were not there a moment ago are its own.
    AtOnce,
    /// Later: only those that bear its name are.
    Later,
}

/// Something of the probe that is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rest {
    Members(VlanId),
    Pvid(u32),
    Entry(StaticRow),
    Pause(u32),
    Vlan(VlanId),
    /// A VLAN of the probe's number under another name.
    Others(VlanId, String),
}

/// Takes everything back; says in sentences what could not be, each with the way out.
pub(super) fn clean<L: Link>(session: &mut ProbeSession<L>, ledger: &Ledger, moment: Moment) -> Vec<String> {
    let (mut rounds, mut silences) = (0, 0);
    loop {
        let tidied = hold(session).and_then(|holding| {
            let rests = rests(&holding, ledger, moment);
            if rounds < ROUNDS {
                rests.iter().try_for_each(|rest| repair(session, rest, &holding, ledger))?;
                repair_entries(session, &rests)?;
                repair_vlans(session, &rests)?;
            }
            Ok(rests)
        });
        let stuck = match tidied {
            Ok(rests) if rests.iter().all(|rest| matches!(rest, Rest::Others(..))) => Ok(rests),
            Ok(rests) if rounds == ROUNDS => Ok(rests),
            Ok(_) => {
                rounds += 1;
                continue;
            }
            Err(SessionError::Silent { .. }) if silences < SILENCES_MAX => {
                silences += 1;
                continue;
            }
            Err(error) if silences == SILENCES_MAX || rounds == ROUNDS => Err(error),
            Err(_) => {
                rounds += 1;
                continue;
            }
        };
        return match stuck {
            Ok(rests) => rests.iter().map(|rest| sentence(rest, ledger)).collect(),
            Err(error) => vec![format!(
                "what is left is not known, since {error}; once the switch answers, run espalier enrol --clean"
            )],
        };
    }
}

/// What of the probe is there.
fn rests(holding: &Holding, ledger: &Ledger, moment: Moment) -> Vec<Rest> {
    let mut rests = Vec::new();
    for (vlan, (members, untagged)) in &ledger.members {
        let Some((all, bare)) = holding.vlans.get(vlan) else { continue };
        if restrict(all, &ledger.ports) != *members || restrict(bare, &ledger.ports) != *untagged {
            rests.push(Rest::Members(*vlan));
        }
    }
    let moved = ledger.pvids.iter().filter(|(port, pvid)| holding.pvids.get(port).is_some_and(|now| now != *pvid));
    rests.extend(moved.map(|(port, _)| Rest::Pvid(*port)));
    rests.extend(holding.statics.keys().filter(|row| ledger.owns(row)).map(|row| Rest::Entry(*row)));
    let switched = ledger.pause.iter().filter(|(index, mode)| holding.pause.get(index).is_some_and(|now| now != *mode));
    rests.extend(switched.map(|(index, _)| Rest::Pause(*index)));
    for vlan in ledger.vlans.iter().filter(|vlan| holding.vlans.contains_key(vlan) || holding.names.contains_key(vlan))
    {
        let name = holding.names.get(&vlan).cloned().unwrap_or_default();
        let own = name == ledger.name()
            || match (ledger.names, moment) {
                (Names::Dropped, _) | (Names::Unknown, Moment::AtOnce) => true,
                (Names::Kept, _) | (Names::Unknown, Moment::Later) => false,
            };
        rests.push(if own { Rest::Vlan(vlan) } else { Rest::Others(vlan, name) });
    }
    rests
}

/// Puts back what is neither an entry nor a VLAN. What the switch refuses is seen when it is read again.
fn repair<L: Link>(
    session: &mut ProbeSession<L>,
    rest: &Rest,
    holding: &Holding,
    ledger: &Ledger,
) -> Result<(), SessionError> {
    let bindings = match rest {
        Rest::Members(vlan) => {
            let (now, before) = (&holding.vlans[vlan], &ledger.members[vlan]);
            let merged = |now: &PortList, before: &PortList| {
                let others = now.iter().filter(|port| !ledger.ports.contains(port));
                PortList::of(others.chain(before.iter())).unwrap_or_default().encode(ledger.list_len)
            };
            vec![
                (q_bridge::VLAN_STATIC_EGRESS_PORTS.row(&VlanIndex(*vlan)), Value::Octets(merged(&now.0, &before.0))),
                (q_bridge::VLAN_STATIC_UNTAGGED_PORTS.row(&VlanIndex(*vlan)), Value::Octets(merged(&now.1, &before.1))),
            ]
        }
        Rest::Pvid(port) => vec![(q_bridge::PVID.row(&BridgePort(*port)), Value::Gauge32(ledger.pvids[port]))],
        Rest::Pause(index) => {
            vec![(ether_like::PAUSE_ADMIN_MODE.row(&IfIndex(*index)), Value::Integer(ledger.pause[index]))]
        }
        Rest::Entry(_) | Rest::Vlan(_) | Rest::Others(..) => return Ok(()),
    };
    session.set(bindings).map(drop)
}

fn repair_entries<L: Link>(session: &mut ProbeSession<L>, rests: &[Rest]) -> Result<(), SessionError> {
    let rows = rests.iter().filter_map(|rest| match rest {
        Rest::Entry(row) => Some(unset(row)),
        _ => None,
    });
    let rows: Vec<Binding> = rows.collect();
    let mut batch = BATCH;
    let mut left = rows.as_slice();
    while !left.is_empty() {
        let (now, later) = left.split_at(batch.min(left.len()));
        match session.set(now.to_vec())? {
            Reply::Refused(_) if now.len() > 1 => batch = now.len() / 2,
            _ => left = later,
        }
    }
    Ok(())
}

fn repair_vlans<L: Link>(session: &mut ProbeSession<L>, rests: &[Rest]) -> Result<(), SessionError> {
    for rest in rests {
        if let Rest::Vlan(vlan) = rest {
            let row = q_bridge::VLAN_STATIC_ROW_STATUS.row(&VlanIndex(*vlan));
            session.set(vec![(row, Value::Integer(RowStatus::Destroy.code()))])?;
        }
    }
    Ok(())
}

fn unset(row: &StaticRow) -> Binding {
    (q_bridge::STATIC_UNICAST_STATUS.row(row), Value::Integer(StaticStatus::Invalid.code()))
}

fn sentence(rest: &Rest, ledger: &Ledger) -> String {
    let again = "by hand, or run espalier enrol --clean";
    match rest {
        Rest::Members(vlan) => {
            let (members, untagged) = &ledger.members[vlan];
            format!(
                "VLAN {vlan} has other members than before: of the bridge ports {:?} put {:?} into it, {:?} of them \
                 untagged, {again}",
                ledger.ports, members, untagged
            )
        }
        Rest::Pvid(port) => {
            format!("bridge port {port} has another PVID than before: set it to {} {again}", ledger.pvids[port])
        }
        Rest::Entry(StaticRow { fdb, mac, .. }) => {
            format!("the static entry of {mac} in filtering database {fdb} is still there: remove it {again}")
        }
        Rest::Pause(index) => {
            format!(
                "PAUSE of interface {index} is not as before: set dot3PauseAdminMode to {} {again}",
                ledger.pause[index]
            )
        }
        Rest::Vlan(vlan) => format!("VLAN {vlan} ({}) is still there: remove it {again}", ledger.name()),
        Rest::Others(vlan, name) => format!(
            "VLAN {vlan} was not there before and is called {name:?}, which is not the probe's name: left alone; remove it \
             by hand if nobody wants it"
        ),
    }
}

/// How a switch differs from what it held before, in what is not the probe's.
pub(super) fn foreign(before: &Holding, after: &Holding, ledger: &Ledger) -> Vec<String> {
    let mut remarks = Vec::new();
    let vlans: BTreeMap<VlanId, ()> = before
        .vlans
        .keys()
        .chain(after.vlans.keys())
        .filter(|vlan| !ledger.vlans.contains(**vlan))
        .map(|v| (*v, ()))
        .collect();
    for vlan in vlans.into_keys().filter(|vlan| before.vlans.get(vlan) != after.vlans.get(vlan)) {
        remarks.push(format!("VLAN {vlan} is not what it was before, and the probe did not touch it"));
    }
    let pvids = before.pvids.iter().filter(|(port, pvid)| after.pvids.get(port) != Some(pvid));
    remarks.extend(pvids.filter(|(port, _)| !ledger.ports.contains(port)).map(|(port, _)| {
        format!("the PVID of bridge port {port} is not what it was before, and the probe did not touch it")
    }));
    let gone = before.statics.iter().filter(|(row, list)| after.statics.get(row) != Some(list));
    let entries: Vec<Mac> = gone.map(|(row, _)| row.mac).collect();
    if let Some(first) = entries.first() {
        remarks
            .push(format!("{} static entries are not what they were before, the first that of {first}", entries.len()));
    }
    remarks
}
