//! \[Miura\] Fig. 5, Table 2 and Fig. 6: what a tag costs on the cable, and what several cables carry together.
//!
//! ```text
//!   Flat  one switch     Tree  s0 ── s1     VBFT  s0 ═══ s1, n cables, hosts tag
//! ```

use fabric::{HostId, Plan, format::table::Table};
use sim::{
    job::Messaging,
    packet::PacketConfig,
    workload::{Arrivals, SECOND_PS, TcpVariant, Transport},
};

use super::{
    super::{
        chart::{Labels, bars, lines},
        network::{SIDE, plain, tagged_by_hosts, two_switches},
        reproduction::{Comparison, Reproduction, Statement, values},
    },
    measure::{Bench, MEGA, room, streams},
};
use crate::{Error, error::SimulationError};

/// Messages of Fig. 5, and how often each goes to and fro.
const SIZES: [u64; 8] = [1, 64, 256, 1024, 1472, 4096, 16384, 65536];
const ROUNDS: u32 = 20;
/// Less than this share of a one-way time is no difference.
const NO_DIFFERENCE: f64 = 0.02;
/// Iperf's window in Table 2.
const WINDOW_BYTES: u32 = 128 << 10;
/// Simulated time of streams, and from when they count.
const STREAMS_PS: (u64, u64) = (SECOND_PS, SECOND_PS / 4);
const CABLES_MAX: usize = 4;

/// One-way time of datagrams over their size, hosts of one switch, untagged and tagged.
pub(super) fn fig_5() -> Result<Reproduction, Error> {
    let (flat, vbft) = (plain(&two_switches(0, SIDE)?)?, tagged_by_hosts(&two_switches(CABLES_MAX, SIDE)?)?);
    let mut table = Table::new(["[Miura] Fig. 5", "Flat us", "VBFT us", "more", "ratio"]);
    let (mut rows, mut times) = (Vec::new(), Vec::new());
    for bytes in SIZES {
        let (untagged, tagged) = (ping_us(&flat, bytes)?, ping_us(&vbft, bytes)?);
        let name = format!("{bytes} octets");
        let cells = [untagged, tagged, tagged - untagged].map(|us| format!("{us:.3}"));
        table.row([vec![name], cells.to_vec(), vec![format!("{:.4}", tagged / untagged)]].concat());
        rows.push(
            serde_json::json!({ "bytes": bytes, "flat_us": untagged, "vbft_us": tagged, "ratio": tagged / untagged }),
        );
        times.push((bytes as f64, untagged, tagged));
    }
    // Against the time that includes hosts the difference is smaller still.
    let most = times.iter().map(|(_, flat, tagged)| tagged / flat - 1.0).fold(0.0, f64::max);
    let long = times.iter().filter(|(bytes, ..)| *bytes >= 1024.0);
    let long = long.map(|(_, flat, tagged)| tagged / flat - 1.0).fold(0.0, f64::max);
    let statements = vec![Statement::of_paper(
        format!(
            "no difference between drivers (here, on cables and switch alone, {:.1} % at most, {:.2} % from 1 KiB on)",
            100.0 * most,
            100.0 * long
        ),
        long < NO_DIFFERENCE,
    )];
    let notes = [
        "one-way time of a datagram between two hosts of one switch, mean of twenty to and fro; the paper has a figure only",
        "given: frames, tags of four octets, cables of 1 Gbit/s, 1,500 octets a frame. Fitted: nothing",
        "not known here: what hosts, NICs and the driver take, which is most of the paper's time. What tagging costs on a real",
        "  kernel is measured by bench/tagger: docs/benchmarks/tagger.md",
    ];
    let series = |name: &str, of: fn(&(f64, f64, f64)) -> f64| {
        (name.to_owned(), times.iter().map(|time| (time.0, of(time))).collect())
    };
    let chart = lines(
        &Labels { title: "[Miura] Fig. 5: one-way time on cables and switch", x: "octets of a datagram", y: "us" },
        [series("Flat", |time| time.1), series("VBFT", |time| time.2)],
    );
    Ok(Reproduction {
        table,
        comparison: Comparison::Statements(statements),
        notes: notes.map(str::to_owned).to_vec(),
        values: values([("miura_fig5", rows.into())]),
        chart,
        csv: None,
    })
}

/// TCP between two hosts in four settings.
pub(super) fn table_2() -> Result<Reproduction, Error> {
    let (flat, tree) = (two_switches(0, SIDE)?, two_switches(1, SIDE)?);
    let settings = [
        ("Flat, a to b", plain(&flat)?, 1, 898.0),
        ("Flat, a to b, hosts tag", tagged_by_hosts(&flat)?, 1, 896.0),
        ("Tree, a to e", plain(&tree)?, SIDE, 898.0),
        ("VBFT, a to e, hosts tag", tagged_by_hosts(&two_switches(CABLES_MAX, SIDE)?)?, SIDE, 896.0),
    ];
    let mut table = Table::new(["[Miura] Table 2", "Mbit/s", "of 2^20", "printed", "ratio"]);
    let (mut rows, mut ours) = (Vec::new(), Vec::new());
    for (name, plan, to, printed) in &settings {
        let bps = tcp_bps(plan, &[(HostId::new(0), HostId::new(*to))])[0];
        let mbps = bps / MEGA;
        let cells = [
            format!("{:.1}", bps / 1e6),
            format!("{mbps:.1}"),
            format!("{printed:.0}"),
            format!("{:.4}", mbps / printed),
        ];
        table.row([vec![(*name).to_owned()], cells.to_vec()].concat());
        rows.push(serde_json::json!({
            "name": name, "bps": bps, "mbps_of_2_20": mbps, "printed": printed, "ratio": mbps / printed
        }));
        ours.push(mbps);
    }
    let statements = vec![
        Statement::of_paper(
            format!("a tag costs about 2 Mbit/s (here {:.1}, four octets of 1,538)", ours[0] - ours[1]),
            (ours[0] - ours[1] - 2.0).abs() < 1.0,
        ),
        Statement::of_paper("the driver costs nothing beside it", (ours[1] / ours[3] - 1.0).abs() < 0.005),
    ];
    let notes = [
        "payload of one TCP stream. The printed numbers are those of a full cable if Iperf's Mbit is 2^20 bits, which is a reading",
        "  of ours: 1,448 of 1,538 octets are 941.5 Mbit/s or 897.9 of 2^20, with a tag 939.0 or 895.5",
        "given: windows of 128 KiB, four settings. Chosen: time stamps in every segment, as Linux 2.6 had them. Fitted: nothing",
    ];
    let columns =
        [("here".to_owned(), ours), ("printed".to_owned(), settings.iter().map(|(.., printed)| *printed).collect())];
    let chart = bars("[Miura] Table 2", "Mbit/s, of 2^20", settings.iter().map(|(name, ..)| *name), columns);
    Ok(Reproduction {
        table,
        comparison: Comparison::Statements(statements),
        notes: notes.map(str::to_owned).to_vec(),
        values: values([("miura_table2", rows.into())]),
        chart,
        csv: None,
    })
}

/// What one side of four hosts sends the other, over the number of cables.
pub(super) fn fig_6() -> Result<Reproduction, Error> {
    let across: Vec<(HostId, HostId)> =
        (0..SIDE).flat_map(|near| (SIDE..2 * SIDE).map(move |far| (HostId::new(near), HostId::new(far)))).collect();
    let total = |plan: &Plan| tcp_bps(plan, &across).iter().sum::<f64>() / 1e6;
    let flat = total(&plain(&two_switches(0, SIDE)?)?);
    let tree = total(&plain(&two_switches(1, SIDE)?)?);
    let mut table = Table::new(["[Miura] Fig. 6", "Mbit/s", "share of Flat's", "ratio to n cables"]);
    table.row(["Flat".to_owned(), format!("{flat:.0}"), "1.000".to_owned()]);
    let share = |rate: f64, cables: usize| {
        [format!("{rate:.0}"), format!("{:.3}", rate / flat), format!("{:.3}", rate / (flat * cables as f64 / 4.0))]
    };
    table.row([vec!["Tree".to_owned()], share(tree, 1).to_vec()].concat());
    let (mut rows, mut vbft) = (Vec::new(), Vec::new());
    for cables in 1..=CABLES_MAX {
        let rate = total(&tagged_by_hosts(&two_switches(cables, SIDE)?)?);
        let name = format!("VBFT, {cables} cable{}", if cables == 1 { "" } else { "s" });
        table.row([vec![name], share(rate, cables).to_vec()].concat());
        rows.push(serde_json::json!({ "cables": cables, "mbps": rate, "of_flat": rate / flat }));
        vbft.push(rate);
    }
    let per_cable = flat / SIDE as f64;
    let close = |rate: f64, wanted: f64| (rate / wanted - 1.0).abs() < 0.05;
    let statements = vec![
        Statement::of_paper(format!("Tree stays at 1 Gbit/s (here {tree:.0} Mbit/s)"), close(tree, per_cable)),
        Statement::of_paper(
            "VBFT grows steadily with its cables",
            vbft.iter().enumerate().all(|(at, rate)| close(*rate, per_cable * (at + 1) as f64)),
        ),
        Statement::of_paper(
            format!("with enough cables VBFT has what Flat has (here {:.3})", vbft[CABLES_MAX - 1] / flat),
            close(vbft[CABLES_MAX - 1], flat),
        ),
    ];
    let notes = [
        "payload in all, every host of one side to every host of the other by TCP; the paper has a figure only and had MPI send",
        "given: hosts, cables, and that both directions of a pair share a VLAN. VLANs are dealt by the planner, in the paper in turn",
        "fitted: nothing; memory as for Table 2 of [Otsuka]. In the lab, on real kernels: reproduce miura-fig6 --in lab, bench/bisection",
    ];
    let points = |rates: &mut dyn Iterator<Item = f64>| rates.zip(1..).map(|(rate, n)| (f64::from(n), rate)).collect();
    let series = [
        ("VBFT".to_owned(), points(&mut vbft.iter().copied())),
        ("Flat".to_owned(), points(&mut std::iter::repeat_n(flat, CABLES_MAX))),
        ("Tree".to_owned(), points(&mut std::iter::repeat_n(tree, CABLES_MAX))),
    ];
    let labels = Labels { title: "[Miura] Fig. 6: bisection bandwidth", x: "cables between the switches", y: "Mbit/s" };
    Ok(Reproduction {
        table,
        comparison: Comparison::Statements(statements),
        notes: notes.map(str::to_owned).to_vec(),
        values: values([("miura_fig6", rows.into()), ("flat_mbps", flat.into()), ("tree_mbps", tree.into())]),
        chart: lines(&labels, series),
        csv: None,
    })
}

/// One-way time between the first two hosts.
fn ping_us(plan: &Plan, bytes: u64) -> Result<f64, SimulationError> {
    let transport = Transport::Udp { rate_bps: None, arrivals: Arrivals::Even };
    let messaging = Messaging { transport, payload_bytes: 1472, ..Messaging::default() };
    let pairs = [(HostId::new(0), HostId::new(1))];
    Ok(Bench { plan, pairs: &pairs, messaging, config: &room() }.one_way_us(bytes, ROUNDS)?[0])
}

/// What TCP streams get, each, in bits of payload a second.
fn tcp_bps(plan: &Plan, pairs: &[(HostId, HostId)]) -> Vec<f64> {
    let (duration_ps, warmup_ps) = STREAMS_PS;
    let config = PacketConfig { window_bytes: WINDOW_BYTES, duration_ps, warmup_ps, ..room() };
    let outcome = streams(plan, pairs, Transport::Tcp(TcpVariant::Reno), 1448, &config);
    (0..pairs.len()).map(|flow| outcome.goodput_bps(flow)).collect()
}
