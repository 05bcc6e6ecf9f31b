//! \[Eicker\]: the prototype of 144 nodes, and the forecast for 528 ports.
//!
//! ```text
//!   prototype   6 leaves of 24 nodes ═══6 cables═══ 4 switches       24 VLANs: top switch × cable
//!   ALiCEnext  22 leaves of 24 nodes ═══2 cables═══ 12 switches      24 VLANs
//! ```
//! The slides name switches of 48 ports, 24 VLANs, 1,024 cables and 6 + 4 switches for the prototype; that the full system has
//! twelve top switches follows from 528 cables up and VLANs of 22 leaves each, two to a switch of 48 ports.

use fabric::{EngineName, FdbMode, HostId, Plan, Policy, Topology, format::table::Table};
use sim::{
    job::Messaging,
    packet::PacketConfig,
    workload::{Arrivals, Flow, SECOND_PS, Transport, WIRE_OVERHEAD_BYTES},
};

use super::{
    super::{
        chart::bars,
        network::{self, Bundles, one_tree, partners_by_lot, two_switches},
        reproduction::{Comparison, Reproduction, Statement, values},
    },
    measure::{Bench, CABLE_PS, MEGA, room, streams},
};
use crate::{Error, error::SimulationError};

/// Two nodes back to back, and through one switch: one-way time in µs, and the exchange in MB/s, both directions together.
const PRINTED_BACK_TO_BACK: Figures = Figures { latency_us: 18.6, mbyte_per_s: 214.3 };
const PRINTED_ONE_SWITCH: Figures = Figures { latency_us: 21.5, mbyte_per_s: 210.2 };
/// 70 pairs through three switches at once, the worst pair.
const PRINTED_PAIRS: Figures = Figures { latency_us: 28.0, mbyte_per_s: 210.4 };
/// What the average pair has beyond the worst.
const PRINTED_AVERAGE: f64 = 1.05;
/// Total throughput of the prototype, and the forecast, in GB/s: "more than".
const PRINTED_TOTAL: f64 = 15.0;
const PRINTED_FORECAST: f64 = 50.0;
/// Entries a switch: 512 nodes in 24 VLANs.
const PRINTED_ENTRIES: usize = 12_288;
const NODES_A_LEAF: usize = 24;
const PAYLOAD_BYTES: u32 = 1472;
/// The shortest frame and what is round it, in bits.
const SHORT_BITS: f64 = 84.0 * 8.0;
/// Simulated time of streams, and from when they count.
const STREAMS_PS: (u64, u64) = (SECOND_PS / 20, SECOND_PS / 100);
const ROUNDS: u32 = 5;

/// What is measured of a pair of nodes.
#[derive(Clone, Copy)]
struct Figures {
    /// One-way time of a short message, hosts included.
    latency_us: f64,
    /// Both directions together, a MB 2^20 octets.
    mbyte_per_s: f64,
}

/// What is fitted to the two measurements without contention.
struct Fitted {
    /// What both hosts take for a message, in µs.
    hosts_us: f64,
    /// What a switch takes to decide.
    switch_ps: u64,
    /// What a host sends, in octets of payload a second.
    host_bytes_per_s: f64,
}

/// What a fabric does with pairs of nodes.
struct Found {
    name: &'static str,
    pairs: usize,
    /// One-way time in µs of the slowest pair, hosts included.
    latency_us: f64,
    /// Both directions of a pair together, in MB/s: the slowest pair and the mean.
    worst: f64,
    mean: f64,
    /// All pairs, in GB/s.
    total: f64,
}

impl Found {
    fn slowest(&self) -> Figures {
        Figures { latency_us: self.latency_us, mbyte_per_s: self.worst }
    }
}

pub(super) fn prototype() -> Result<Reproduction, Error> {
    let fitted = fitted()?;
    let topology = Bundles { leaves: 6, tops: 4, cables: 6, hosts: NODES_A_LEAF }.topology()?;
    let plan = planned(&topology)?;
    let placed = neighbours(&topology, 70);
    let found = [
        found("same place on two leaves", &plan, &placed, &fitted)?,
        found("partners by lot", &plan, &partners_by_lot(&topology, 1), &fitted)?,
    ];
    let one_switch = one_switch(&fitted)?;
    let mut table = table_of("[Eicker] 144 nodes");
    row(&mut table, "one switch", 1, one_switch, Some(PRINTED_ONE_SWITCH));
    for (at, found) in found.iter().enumerate() {
        row(&mut table, found.name, found.pairs, found.slowest(), (at == 0).then_some(PRINTED_PAIRS));
    }
    let [ours, lot] = &found;
    let average = PRINTED_PAIRS.mbyte_per_s * PRINTED_AVERAGE;
    let statements = vec![
        Statement::of_paper(
            format!("about 9 us for three switches (here {:.1})", ours.latency_us - PRINTED_BACK_TO_BACK.latency_us),
            (ours.latency_us - PRINTED_BACK_TO_BACK.latency_us - 9.0).abs() < 1.0,
        ),
        Statement::of_paper(
            format!(
                "no bandwidth is lost with all pairs at once (worst {:.3} of one switch)",
                ours.worst / one_switch.mbyte_per_s
            ),
            ours.worst > 0.98 * one_switch.mbyte_per_s,
        ),
        Statement::of_paper(
            format!("more than 15 GB/s in all (here {:.2})", ours.total),
            ours.total > 0.99 * PRINTED_TOTAL,
        ),
        Statement::of_paper(
            format!(
                "static routes are not free of contention: patterns that collide exist (by lot: mean {:.0} MB/s, worst {:.0})",
                lot.mean, lot.worst
            ),
            lot.worst < 0.75 * ours.worst,
        ),
    ];
    let notes = common_notes(&plan, &fitted, &[
        format!("the average pair has {average:.0} MB/s in the slides (5 % above the worst), more than two nodes back to back; here"),
        format!("  {:.1}: what is fitted is the back-to-back rate, so a pair cannot have more", ours.mean),
        "who talks to whom is not in the slides but that partners are on different leaves; with partners of one place".to_owned(),
        "  on two leaves no cable carries two of them, which is the most that 24 VLANs can do".to_owned(),
    ]);
    Ok(reproduction("eicker144", table, &found, statements, notes))
}

pub(super) fn forecast() -> Result<Reproduction, Error> {
    let fitted = fitted()?;
    let topology = Bundles { leaves: 22, tops: 12, cables: 2, hosts: NODES_A_LEAF }.topology()?;
    let plan = planned(&topology)?;
    let found = [
        found("same place on two leaves", &plan, &neighbours(&topology, 264), &fitted)?,
        found("partners by lot", &plan, &partners_by_lot(&topology, 1), &fitted)?,
    ];
    let small = Bundles { leaves: 6, tops: 4, cables: 6, hosts: NODES_A_LEAF }.topology()?;
    let small_plan = planned(&small)?;
    let before = latency_us(&small_plan, &neighbours(&small, 70), &fitted)?;
    let mut table = table_of("[Eicker] 528 ports");
    for found in &found {
        row(&mut table, found.name, found.pairs, found.slowest(), None);
    }
    let [ours, _] = &found;
    let entries = plan.summary.fdb_entries_max;
    let statements = vec![
        Statement::of_paper(
            format!("more than 50 GB/s in all (here {:.1})", ours.total),
            ours.total > PRINTED_FORECAST,
        ),
        Statement::of_paper(
            format!("no change of latency against 144 nodes (here {:.2} and {before:.2} us)", ours.latency_us),
            (ours.latency_us - before).abs() < 0.5,
        ),
        Statement::of_paper(
            format!("up to 12k entries a switch, 512 x 24 = {PRINTED_ENTRIES} (here 528 x 24 = {entries})"),
            entries == 528 * 24,
        ),
    ];
    let notes = common_notes(
        &plan,
        &fitted,
        &["reconstructed: 22 leaves and 12 top switches of 48 ports, two cables from each leaf to each".to_owned()],
    );
    Ok(reproduction("eicker528", table, &found, statements, notes))
}

/// Pairs of nodes at the same place on two neighbouring leaves.
fn neighbours(topology: &Topology, most: usize) -> Vec<(HostId, HostId)> {
    let hosts = topology.hosts().len();
    let pair = |at: usize| {
        let (leaf, place) = (at / NODES_A_LEAF * 2, at % NODES_A_LEAF);
        (HostId::new(leaf * NODES_A_LEAF + place), HostId::new((leaf + 1) * NODES_A_LEAF + place))
    };
    (0..hosts / 2).map(pair).take(most).collect()
}

fn planned(topology: &Topology) -> Result<Plan, Error> {
    let policy = Policy { engine: EngineName::Clos, fdb: FdbMode::Full, ..Policy::default() };
    network::planned("the Clos network", topology, &policy)
}

/// Two nodes without a switch need no simulation; one switch tells what it takes to decide.
fn fitted() -> Result<Fitted, Error> {
    let cable_us = SHORT_BITS / 1e3 + CABLE_PS as f64 / 1e6;
    let hosts_us = PRINTED_BACK_TO_BACK.latency_us - cable_us;
    let plan = one_tree(&two_switches(0, 1)?)?;
    let network_us = ping_us(&plan, &[(HostId::new(0), HostId::new(1))], &room())?;
    let switch_us = PRINTED_ONE_SWITCH.latency_us - hosts_us - network_us;
    Ok(Fitted {
        hosts_us,
        switch_ps: (switch_us * 1e6) as u64,
        host_bytes_per_s: PRINTED_BACK_TO_BACK.mbyte_per_s / 2.0 * MEGA,
    })
}

/// One pair through one switch, with what was fitted to it and to two nodes back to back.
fn one_switch(fitted: &Fitted) -> Result<Figures, Error> {
    let plan = one_tree(&two_switches(0, 1)?)?;
    let pair = [(HostId::new(0), HostId::new(1))];
    let latency_us = latency_us(&plan, &pair, fitted)?;
    let rates = exchange_mbytes(&plan, &pair, fitted);
    Ok(Figures { latency_us, mbyte_per_s: rates[0] })
}

fn found(
    name: &'static str,
    plan: &Plan,
    pairs: &[(HostId, HostId)],
    fitted: &Fitted,
) -> Result<Found, SimulationError> {
    let rates = exchange_mbytes(plan, pairs, fitted);
    let total: f64 = rates.iter().sum();
    Ok(Found {
        name,
        pairs: pairs.len(),
        latency_us: latency_us(plan, pairs, fitted)?,
        worst: rates.iter().copied().fold(f64::INFINITY, f64::min),
        mean: total / rates.len() as f64,
        total: total / 1e3,
    })
}

/// One-way time of the slowest pair while all pairs send to and fro.
fn latency_us(plan: &Plan, pairs: &[(HostId, HostId)], fitted: &Fitted) -> Result<f64, SimulationError> {
    let config = PacketConfig { switch_latency_ps: fitted.switch_ps, ..room() };
    Ok(fitted.hosts_us + ping_us(plan, pairs, &config)?)
}

fn ping_us(plan: &Plan, pairs: &[(HostId, HostId)], config: &PacketConfig) -> Result<f64, SimulationError> {
    let transport = Transport::Udp { rate_bps: None, arrivals: Arrivals::Even };
    let messaging = Messaging { transport, ..Messaging::default() };
    let times = Bench { plan, pairs, messaging, config }.one_way_us(0, ROUNDS)?;
    Ok(times.into_iter().fold(0.0, f64::max))
}

/// Both directions of each pair together in MB/s, all pairs at once, hosts sending what two of them do back to back.
fn exchange_mbytes(plan: &Plan, pairs: &[(HostId, HostId)], fitted: &Fitted) -> Vec<f64> {
    let frame = Flow::flood(HostId::new(0), HostId::new(0)).frame_bytes(PAYLOAD_BYTES) + WIRE_OVERHEAD_BYTES;
    let rate_bps = fitted.host_bytes_per_s * 8.0 * f64::from(frame) / f64::from(PAYLOAD_BYTES);
    let transport = Transport::Udp { rate_bps: Some(rate_bps as u64), arrivals: Arrivals::Even };
    let both: Vec<(HostId, HostId)> = pairs.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect();
    let (duration_ps, warmup_ps) = STREAMS_PS;
    let config = PacketConfig { switch_latency_ps: fitted.switch_ps, duration_ps, warmup_ps, ..room() };
    let outcome = streams(plan, &both, transport, PAYLOAD_BYTES, &config);
    (0..pairs.len())
        .map(|pair| (outcome.goodput_bps(2 * pair) + outcome.goodput_bps(2 * pair + 1)) / 8.0 / MEGA)
        .collect()
}

fn table_of(title: &str) -> Table {
    Table::new([title, "pairs", "one-way us", "printed", "ratio", "worst pair MB/s", "printed", "ratio"])
}

fn row(table: &mut Table, name: &str, pairs: usize, ours: Figures, printed: Option<Figures>) {
    let beside = |ours: f64, printed: Option<f64>| match printed {
        Some(printed) => [format!("{printed:.1}"), format!("{:.3}", ours / printed)],
        None => [String::new(), String::new()],
    };
    let mut cells = vec![name.to_owned(), pairs.to_string(), format!("{:.1}", ours.latency_us)];
    cells.extend(beside(ours.latency_us, printed.map(|printed| printed.latency_us)));
    cells.push(format!("{:.1}", ours.mbyte_per_s));
    cells.extend(beside(ours.mbyte_per_s, printed.map(|printed| printed.mbyte_per_s)));
    table.row(cells);
}

fn common_notes(plan: &Plan, fitted: &Fitted, own: &[String]) -> Vec<String> {
    let mut notes = vec![
        format!(
            "{} VLANs, {} entries a switch at most; MB/s of both directions of a pair, a MB 2^20 octets as PMB counts",
            plan.summary.vlans, plan.summary.fdb_entries_max
        ),
        format!(
            "fitted to two nodes back to back and through one switch: hosts {:.2} us a message, a switch {:.2} us to decide, a host",
            fitted.hosts_us,
            fitted.switch_ps as f64 / 1e6
        ),
        format!("  sends {:.1} MB/s; all else follows", fitted.host_bytes_per_s / MEGA),
        "given: switches, cables, VLANs, static entries; cables of ten metres are chosen".to_owned(),
    ];
    notes.extend_from_slice(own);
    notes
}

fn reproduction(
    name: &str,
    table: Table,
    found: &[Found],
    statements: Vec<Statement>,
    notes: Vec<String>,
) -> Reproduction {
    let rows: Vec<_> = (found.iter())
        .map(|found| {
            serde_json::json!({
                "partners": found.name, "pairs": found.pairs, "one_way_us": found.latency_us,
                "worst_mbyte_per_s": found.worst, "mean_mbyte_per_s": found.mean, "total_gbyte_per_s": found.total,
            })
        })
        .collect();
    let chart = bars(
        "[Eicker]: pairs of nodes on different leaves, all at once",
        "MB/s of a pair",
        found.iter().map(|found| found.name),
        [
            ("worst pair".to_owned(), found.iter().map(|found| found.worst).collect()),
            ("mean".to_owned(), found.iter().map(|found| found.mean).collect()),
        ],
    );
    Reproduction {
        table,
        comparison: Comparison::Statements(statements),
        notes,
        values: values([(name, rows.into())]),
        chart,
        csv: None,
    }
}
