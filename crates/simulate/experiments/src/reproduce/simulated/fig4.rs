//! \[Otsuka\] Fig. 4 (also of the Japanese version): latency and bandwidth between two hosts over the switches between them.

use fabric::{HostId, Plan, format::table::Table};
use sim::{
    job::Messaging,
    packet::PacketConfig,
    workload::{Arrivals, SECOND_PS, Transport},
};

use super::{
    super::{
        chart::{Labels, lines},
        network::row_of,
        reproduction::{Comparison, Reproduction, Statement, values},
    },
    measure::{Bench, MEGA, room},
};
use crate::{Error, error::SimulationError};

/// M-Tree has ten switches on its longest path.
const SWITCHES_MAX: usize = 10;
/// What the text says of the exchange through two switches, in IMB's MByte/s.
const PRINTED_TWO: f64 = 112.2;
/// The Japanese text: beyond so many switches bandwidth falls.
const KNEE: usize = 6;
/// At least this share of the rate through two switches is "not fallen".
const HELD: f64 = 0.98;
/// IMB's longest message, and how often it is sent.
const LARGE_BYTES: u64 = 4 << 20;
const ROUNDS: u32 = 4;
/// Octets of a message in a full frame, and the fewest frames that a window with an acknowledgement for sixteen can have.
pub(super) const PAYLOAD_BYTES: u32 = 1448;
const WINDOW_MIN: u32 = 17;
const WINDOW_MAX: u32 = 181;
/// Octets that a host has handed to its card: four frames, or acknowledgements would wait behind a whole window.
const CARD_BYTES: u32 = 4 * 1518;
/// What the switch takes to decide, of one gigabit switch whose latency is printed: \[Eicker\], 2.9 µs less the frame.
const SWITCH_PS: u64 = 2_228_000;

pub(super) fn reproduce() -> Result<Reproduction, Error> {
    let plans = (1..=SWITCHES_MAX).map(row_of).collect::<Result<Vec<Plan>, Error>>()?;
    let mut latencies = Vec::new();
    for plan in &plans {
        latencies.push(ping(plan)?);
    }
    let window = fitted_window()?;
    let rates = plans.iter().map(|plan| exchange(plan, window)).collect::<Result<Vec<f64>, SimulationError>>()?;

    let slope = (latencies[SWITCHES_MAX - 1] - latencies[0]) / (SWITCHES_MAX - 1) as f64;
    let straight = latencies.windows(2).all(|pair| ((pair[1] - pair[0]) / slope - 1.0).abs() < 0.05);
    let two = rates[1];
    let statements = vec![
        Statement::of_paper(format!("one-way latency grows nearly linearly (here {slope:.2} us a switch)"), straight),
        Statement::of_paper(
            format!("bandwidth falls much from beyond {KNEE} switches (here to {:.2} at ten)", rates[9] / two),
            rates[KNEE - 1] >= HELD * two && rates[KNEE] < rates[KNEE - 1] && rates[SWITCHES_MAX - 1] < 0.8 * two,
        ),
        Statement::of_paper("hops count for bandwidth as well as for latency", rates[SWITCHES_MAX - 1] < rates[0]),
    ];
    let mut table = Table::new(["[Otsuka] Fig. 4", "added us", "MB/s", "printed", "ratio"]);
    let mut rows = Vec::new();
    for (at, (latency, rate)) in latencies.iter().zip(&rates).enumerate() {
        let added = latency - latencies[0];
        let printed = (at == 1).then_some(PRINTED_TWO);
        let printed_cells = printed.map_or([String::new(), String::new()], |printed| {
            [format!("{printed:.1}"), format!("{:.3}", rate / printed)]
        });
        let name = if at == 0 { "1 switch".to_owned() } else { format!("{} switches", at + 1) };
        table.row([vec![name, format!("{added:.2}"), format!("{rate:.1}")], printed_cells.to_vec()].concat());
        rows.push(serde_json::json!({
            "switches": at + 1, "network_us": latency, "added_us": added, "mbyte_per_s": rate, "printed": printed,
            "ratio": printed.map(|printed| rate / printed),
        }));
    }
    let notes = [
        "added: one-way time of a short message beyond that through one switch; MB/s: 4 MiB exchanged both ways, one".to_owned(),
        "  direction, a MB 2^20 octets as IMB counts; the paper has a figure, and in its text the one number".to_owned(),
        "not known here: what SCore's PM and the hosts take for a message, which is most of the latency and the same at each".to_owned(),
        "  number of switches".to_owned(),
        "given: rates, frames of 1,500 octets, a tag between switches. Chosen: go-back-N with 52 octets of headers, as TCP has them,"
            .to_owned(),
        "  an acknowledgement for sixteen frames, four frames handed to the card at a time".to_owned(),
        "fitted: PM's window, {window} frames, the least that keeps two switches' rate at six; what comes after six follows from it"
            .replace("{window}", &window.to_string()),
        "from [Eicker]: 2.23 us for a switch to decide, beside the frame's own time on the cable".to_owned(),
    ];
    let points = |values: &[f64]| values.iter().enumerate().map(|(at, value)| ((at + 1) as f64, *value)).collect();
    let added: Vec<f64> = latencies.iter().map(|latency| latency - latencies[0]).collect();
    let chart = lines(
        &Labels { title: "[Otsuka] Fig. 4", x: "switches between the hosts", y: "us, MB/s" },
        [
            ("one-way latency, us beyond one switch".to_owned(), points(&added)),
            ("exchange, MB/s".to_owned(), points(&rates)),
        ],
    );
    Ok(Reproduction {
        table,
        comparison: Comparison::Statements(statements),
        notes: notes.to_vec(),
        values: values([("fig4", rows.into()), ("window_frames", window.into()), ("us_a_switch", slope.into())]),
        chart,
        csv: None,
    })
}

/// The first and the last host of a row.
fn ends(plan: &Plan) -> [(HostId, HostId); 1] {
    [(HostId::new(0), HostId::new(plan.topology.hosts().len() - 1))]
}

/// One-way time of a message without content, in microseconds: what cables and switches take of it.
fn ping(plan: &Plan) -> Result<f64, SimulationError> {
    let transport = Transport::Udp { rate_bps: None, arrivals: Arrivals::Even };
    let messaging = Messaging { transport, ..Messaging::default() };
    let config = PacketConfig { switch_latency_ps: SWITCH_PS, ..room() };
    Ok(Bench { plan, pairs: &ends(plan), messaging, config: &config }.one_way_us(0, 10)?[0])
}

/// Octets a second of one direction while both ends send, in IMB's MByte/s, with so many frames under way.
fn exchange(plan: &Plan, window: u32) -> Result<f64, SimulationError> {
    let messaging = Messaging { transport: Transport::GoBackN, payload_bytes: PAYLOAD_BYTES, ..Messaging::default() };
    let config = PacketConfig { switch_latency_ps: SWITCH_PS, ..pm(window) };
    let bench = Bench { plan, pairs: &ends(plan), messaging, config: &config };
    Ok(bench.exchange_bytes_per_s(LARGE_BYTES, ROUNDS)?[0] / MEGA)
}

/// How many frames PM has under way: the fewest with which six switches keep the rate of two.
///
/// # Errors
/// If a network has no plan.
pub(super) fn fitted_window() -> Result<u32, Error> {
    let (two, six) = (row_of(2)?, row_of(KNEE)?);
    let most = exchange(&two, WINDOW_MAX)?;
    let (mut low, mut high) = (WINDOW_MIN, WINDOW_MAX);
    while low < high {
        let middle = low.midpoint(high);
        if exchange(&six, middle)? >= HELD * most { high = middle } else { low = middle + 1 }
    }
    Ok(low)
}

/// A network whose hosts speak something like PM, with so many frames under way.
pub(super) fn pm(window: u32) -> PacketConfig {
    PacketConfig {
        window_bytes: window * PAYLOAD_BYTES,
        // Longer than eight hosts' frames take on one cable.
        go_back_ps: SECOND_PS / 20,
        socket_bytes: CARD_BYTES,
        ..room()
    }
}
