//! \[Otsuka\] Fig. 5: eight pairs of hosts share one cable between two switches, with and without PAUSE.

use fabric::{HostId, Plan, format::table::Table};
use sim::{
    job::Messaging,
    packet::{FlowControlAt, PacketConfig},
    workload::{TcpVariant, Transport},
};

use super::{
    super::{
        chart::{Labels, lines},
        network::{one_tree, two_switches},
        reproduction::{Comparison, Reproduction, Statement, values},
    },
    fig4::{PAYLOAD_BYTES, fitted_window, pm},
    measure::{Bench, MEGA, room},
};
use crate::{Error, error::SimulationError};

const PAIRS: usize = 8;
/// The highest point of the figure with PAUSE, in IMB's MByte/s.
const PRINTED_MOST: f64 = 13.9;
/// Messages of 1 KiB to IMB's longest.
const SIZES: [u64; 7] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Octets that a pair exchanges at each size, at least one message.
const OCTETS: u64 = 8 << 20;

/// A protocol of the hosts, and which cables have PAUSE.
#[derive(Clone, Copy)]
struct Setting {
    name: &'static str,
    transport: Transport,
    flow_control: FlowControlAt,
}

pub(super) fn reproduce() -> Result<Reproduction, Error> {
    let plan = one_tree(&two_switches(1, PAIRS)?)?;
    let window = fitted_window()?;
    let setting = |name, transport, flow_control| Setting { name, transport, flow_control };
    let tcp = Transport::Tcp(TcpVariant::Reno);
    let settings = [
        setting("FC All", Transport::GoBackN, FlowControlAt::Everywhere),
        setting("FC None", Transport::GoBackN, FlowControlAt::Nowhere),
        setting("All, TCP", tcp, FlowControlAt::Everywhere),
        setting("None, TCP", tcp, FlowControlAt::Nowhere),
    ];
    let mut rates = vec![Vec::new(); settings.len()];
    for bytes in SIZES {
        for (setting, rates) in settings.iter().zip(&mut rates) {
            rates.push(exchange(&plan, bytes, *setting, window)?);
        }
    }
    let [a, b, c, d] = settings.map(|setting| setting.name);
    let mut table = Table::new(["[Otsuka] Fig. 5", a, b, "All/None", c, d]);
    for (at, bytes) in SIZES.iter().enumerate() {
        let rate = |setting: usize| format!("{:.2}", rates[setting][at]);
        let ratio = format!("{:.2}", rates[0][at] / rates[1][at]);
        table.row([format!("{bytes} octets"), rate(0), rate(1), ratio, rate(2), rate(3)]);
    }
    let most = |setting: usize| rates[setting].iter().copied().fold(0.0, f64::max);
    table.row([
        "highest".to_owned(),
        format!("{:.2}", most(0)),
        format!("{:.2}", most(1)),
        format!("{:.2}", most(0) / most(1)),
        format!("{:.2}", most(2)),
        format!("{:.2}", most(3)),
    ]);
    table.row(["printed".to_owned(), format!("{PRINTED_MOST:.1}")]);
    table.row(["ratio".to_owned(), format!("{:.3}", most(0) / PRINTED_MOST)]);
    let last = SIZES.len() - 1;
    let alone = exchange_alone(settings[0], window)?;
    let statements = vec![
        Statement::of_paper(
            "PAUSE shares the cable well: its long messages are faster than without",
            rates[0][last] > rates[1][last],
        ),
        Statement::of_paper(
            format!("the highest point with PAUSE is about 1/8 of what one pair has (here {:.3})", most(0) / alone),
            (most(0) / alone * PAIRS as f64 - 1.0).abs() < 0.05,
        ),
    ];
    let notes = [
        "MB/s of a pair, one direction, mean of eight pairs that exchange messages over one cable; a MB is 2^20 octets; the paper",
        "  has a figure, and in its text the highest point with PAUSE",
        "given: hosts, cables, frames of 1,500 octets, both settings. Chosen: PM as go-back-N, 52 octets of headers and an",
        "  acknowledgement for sixteen frames; TCP with windows of 64 KiB beside it, which the paper did not run here",
        "fitted: nothing here; PM's window as for Fig. 4, memory as for Table 2. How much is lost without PAUSE hangs on memory and",
        "  on PM's timer (here 50 ms), which the paper does not give, so the column without PAUSE is a direction, not a number",
    ];
    let rows: Vec<_> = (SIZES.iter().enumerate())
        .map(|(at, bytes)| {
            let values =
                settings.iter().zip(&rates).map(|(setting, rates)| (setting.name.to_owned(), rates[at].into()));
            serde_json::json!({ "bytes": bytes, "mbyte_per_s": values.collect::<serde_json::Map<_, _>>() })
        })
        .collect();
    let series = settings.iter().zip(&rates).map(|(setting, rates)| {
        let points = SIZES.iter().zip(rates).map(|(bytes, rate)| ((*bytes as f64).log2(), *rate));
        (setting.name.to_owned(), points.collect())
    });
    let chart = lines(
        &Labels {
            title: "[Otsuka] Fig. 5: eight pairs over one cable",
            x: "message, log2 of octets",
            y: "MB/s of a pair, one direction",
        },
        series,
    );
    let highest = serde_json::json!({ "ours": most(0), "printed": PRINTED_MOST, "ratio": most(0) / PRINTED_MOST });
    Ok(Reproduction {
        table,
        comparison: Comparison::Statements(statements),
        notes: notes.map(str::to_owned).to_vec(),
        values: values([("fig5", rows.into()), ("highest", highest), ("alone", alone.into())]),
        chart,
        csv: None,
    })
}

/// What the pairs exchange until the last of them has ended, a pair, in IMB's MByte/s.
fn exchange(plan: &Plan, bytes: u64, setting: Setting, window: u32) -> Result<f64, SimulationError> {
    let Setting { transport, flow_control, .. } = setting;
    let pairs: Vec<_> = (0..plan.topology.hosts().len() / 2)
        .map(|host| (HostId::new(host), HostId::new(plan.topology.hosts().len() / 2 + host)))
        .collect();
    let messaging = Messaging { transport, payload_bytes: PAYLOAD_BYTES, ..Messaging::default() };
    let of_hosts =
        if transport == Transport::GoBackN { pm(window) } else { PacketConfig { window_bytes: 1 << 16, ..room() } };
    let config = PacketConfig { flow_control, ..of_hosts };
    let rounds = (OCTETS / bytes).clamp(1, 256) as u32;
    let rates = Bench { plan, pairs: &pairs, messaging, config: &config }.exchange_bytes_per_s(bytes, rounds)?;
    Ok(rates.into_iter().fold(f64::INFINITY, f64::min) / MEGA)
}

/// What one pair exchanges through the same two switches, in IMB's MByte/s.
fn exchange_alone(setting: Setting, window: u32) -> Result<f64, Error> {
    let plan = one_tree(&two_switches(1, 1)?)?;
    Ok(exchange(&plan, SIZES[SIZES.len() - 1], setting, window)?)
}
