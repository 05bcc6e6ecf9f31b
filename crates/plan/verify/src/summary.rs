//! What the plan says of itself, figure by figure, against what was seen.
//!
//! ```text
//!   says: vlans 4, avg_hops 1.75     seen: vlans 4, avg_hops 2 ▶ summary-mismatch
//! ```
//! A wrong figure is fatal: whoever chooses between plans chooses by these.

use std::{fmt::Display, iter};

use fabric::FindingKind;

use crate::{
    bound::TOLERANCE, deadlock::Proof, demand::Coverage, findings::Findings, state::FabricState, unicast::Traffic,
};

/// Judges the summary. Figures about paths are left alone if some frame does not get through: that is reported, and
/// there is nothing to average.
pub(crate) fn judge(
    state: &FabricState<'_>,
    traffic: &Traffic,
    further: &[(FabricState<'_>, Traffic)],
    proof: Proof,
    bound: Option<f64>,
    findings: &mut Findings,
) {
    let (plan, said) = (state.plan, &state.plan.summary);
    let hosts = state.topology.hosts().len();
    let mut same = Comparison { findings };
    same.exact("switches", said.switches, state.topology.switches().len());
    same.exact("hosts", said.hosts, hosts);
    same.exact("links", said.links, state.topology.links().len());
    // The VLAN over which switches are managed carries no data, and is none of the plan's.
    let data = |vlan: &fabric::VlanId| state.topology.in_band().is_none_or(|in_band| in_band.vlan != *vlan);
    same.exact("vlans", said.vlans, state.vlans.iter().filter(data).count());
    let mut lanes: Vec<u8> = plan.trees.iter().map(|tree| tree.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    same.exact("lanes", said.lanes, lanes.len());
    let entries = || state.devices.iter().flatten().map(|device| state.entry_count(device));
    same.exact("fdb_entries_max", said.fdb_entries_max, entries().max().unwrap_or(0));
    same.exact("fdb_entries_total", said.fdb_entries_total, entries().sum());
    same.exact("deadlock_free", said.deadlock_free, proof == Proof::Valid);
    if traffic.coverage == Coverage::Partial {
        return;
    }
    let (pairs, pairs_with_self) = ((hosts * hosts.saturating_sub(1)) as f64, (hosts * hosts) as f64);
    let ratio = |total: f64, count: f64| if count == 0.0 { 0.0 } else { total / count };
    let hops = traffic.hops_total as f64;
    same.close("avg_hops", said.avg_hops, ratio(hops, pairs));
    // A path has one switch more than it has hops; a host's path to itself is its switch.
    same.close("avg_switches_per_path", said.avg_switches_per_path, ratio(hops + pairs_with_self, pairs_with_self));
    same.exact("max_switches_per_path", said.max_switches_per_path, if hosts == 0 { 0 } else { traffic.hops_max + 1 });
    let all = || iter::once(traffic).chain(further.iter().map(|(_, traffic)| traffic));
    let load = all().flat_map(|traffic| &traffic.load).copied().fold(0.0, f64::max);
    match &*state.traffic {
        fabric::Traffic::AllToAll if further.is_empty() => {
            same.exact("max_channel_load", said.max_channel_load, load);
        }
        _ => same.close("max_channel_load", said.max_channel_load, load),
    }
    let times = all().flat_map(|traffic| state.topology.channel_ids().zip(&traffic.load));
    let time = times.map(|(channel, load)| load * state.topology.slowness(channel)).fold(0.0, f64::max);
    same.close("max_channel_time", said.max_channel_time, time);
    if bound.is_some() {
        let gap = if time == 0.0 { 1.0 } else { time / said.load_bound };
        same.close("load_gap", said.load_gap, gap);
    }
}

struct Comparison<'f> {
    findings: &'f mut Findings,
}

impl Comparison<'_> {
    fn exact<T: PartialEq + Display>(&mut self, figure: &str, said: T, seen: T) {
        if said != seen {
            self.report(figure, &said, &seen);
        }
    }

    fn close(&mut self, figure: &str, said: f64, seen: f64) {
        let near = (said - seen).abs() <= TOLERANCE * seen.abs();
        if !(near || said == seen) {
            self.report(figure, &said, &seen);
        }
    }

    fn report(&mut self, figure: &str, said: &dyn Display, seen: &dyn Display) {
        self.findings.fatal(FindingKind::SummaryMismatch, || {
            (figure.to_owned(), format!("the plan says {said}, but it is {seen}"))
        });
    }
}
