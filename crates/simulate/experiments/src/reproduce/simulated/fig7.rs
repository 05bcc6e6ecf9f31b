//! \[Otsuka\] Fig. 7 and Fig. 5 of the Japanese version: bandwidth of traffic patterns on eight networks.

use fabric::{HostId, Plan, format::table::Table};
use sim::{
    flow::FlowLevel,
    packet::{FlowControlAt, PacketConfig, Simulation},
    pattern::Pattern,
    workload::{Arrivals, Flow, SECOND_PS, Transport, Workload},
};

use super::super::{
    chart::bars,
    network::FIG_7,
    reproduction::{Comparison, Reproduction, Statement, values},
};
use crate::{Error, error::SimulationError};

/// Less than this share of Flat's rate is a loss.
const SAME: f64 = 0.95;
/// Of a tagged frame of 1,540 octets on the cable so much is payload.
const PAYLOAD_SHARE: f64 = 1470.0 / 1540.0;

/// Mean payload rate of a pattern's pairs on a network, at both levels of the simulator.
struct Rate {
    packet_mbps: f64,
    flow_mbps: f64,
}

/// Rates of every network: `rates[network][pattern]`.
struct Rates {
    patterns: Vec<Pattern>,
    rates: Vec<Vec<Rate>>,
}

/// Average bandwidth of all pairs for three patterns: frame by frame with PAUSE everywhere, and as rates of hosts
/// that wait for their slowest receiver.
pub(super) fn reproduce() -> Result<Reproduction, Error> {
    let rates = Rates::measure(&[Pattern::AllToAll, Pattern::BitReversal, Pattern::Transpose])?;
    let notes = [
        "payload in Mbit/s, averaged over all pairs: datagrams of 1,470 octets, PAUSE on every cable; the paper has a figure only",
        "the paper's text: M-Tree is the worst; 4 x 4 mesh and torus, fat tree and Myri-Clos come close to Flat in all-to-all",
        "fitted: nothing; memory as for Table 2. At the flow level a host serves its receivers in turn and waits for the slowest",
    ];
    Ok(rates.reproduction("fig7", "[Otsuka] Fig. 7", Vec::new(), &notes))
}

/// The same in the Japanese version: two patterns, and what its text says of them.
pub(super) fn reproduce_ja() -> Result<Reproduction, Error> {
    let rates = Rates::measure(&[Pattern::BitReversal, Pattern::Transpose])?;
    let statements = rates.statements();
    let notes = [
        "payload in Mbit/s, averaged over all pairs: datagrams of 1,470 octets, PAUSE on every cable; the paper has a figure only",
        "given: networks, patterns, datagrams; fitted: nothing, memory as for Table 2. The DOR routes of 4 x 4 torus take 12 VLANs",
    ];
    Ok(rates.reproduction("ja-fig5", "[Otsuka, ja] Fig. 5", statements, &notes))
}

impl Rates {
    fn measure(patterns: &[Pattern]) -> Result<Self, Error> {
        let mut rates = Vec::new();
        for network in &FIG_7 {
            let plan = network.plan()?;
            let of_network = patterns.iter().map(|pattern| both_levels(&plan, *pattern));
            rates.push(of_network.collect::<Result<Vec<_>, SimulationError>>()?);
        }
        Ok(Self { patterns: patterns.to_vec(), rates })
    }

    /// `rate[pattern]` of a network, frame by frame.
    fn of(&self, name: &str) -> Vec<f64> {
        let at = FIG_7.iter().position(|network| network.name == name).unwrap_or_default();
        self.rates[at].iter().map(|rate| rate.packet_mbps).collect()
    }

    /// What the text of the Japanese version says of its figure.
    fn statements(&self) -> Vec<Statement> {
        let (flat, tree) = (self.of("Flat"), self.of("M-Tree"));
        let tagged: Vec<&str> =
            FIG_7.iter().map(|network| network.name).filter(|name| !["Flat", "M-Tree"].contains(name)).collect();
        let all = |name: &str, holds: &dyn Fn(f64, usize) -> bool| {
            self.of(name).iter().enumerate().all(|(pattern, rate)| holds(*rate, pattern))
        };
        let lose = tagged.iter().chain(&["M-Tree"]);
        let lose = lose.filter(|name| self.of(name).iter().zip(&flat).any(|(rate, flat)| *rate < SAME * flat)).count();
        // Places among the tagged ones, by pattern: the first has the highest rate.
        let places = |name: &str| -> Vec<usize> {
            let own = self.of(name);
            let above =
                |pattern: usize| tagged.iter().filter(|other| SAME * self.of(other)[pattern] > own[pattern]).count();
            (0..self.patterns.len()).map(|pattern| 1 + above(pattern)).collect()
        };
        let good = |name: &str| {
            let places = places(name);
            let words: Vec<String> = places.iter().map(ToString::to_string).collect();
            let holds = places.iter().all(|place| 2 * place <= tagged.len());
            let words = format!("{name} does well in both (here places {} of {})", words.join(" and "), tagged.len());
            Statement::of_paper(words, holds)
        };
        vec![
            Statement::of_paper(
                format!("most networks lose against Flat ({lose} of {} in one pattern at least)", tagged.len() + 1),
                2 * lose > tagged.len() + 1,
            ),
            Statement::of_paper(
                "the tagged ones are above M-Tree",
                tagged.iter().all(|name| all(name, &|rate, pattern| rate > tree[pattern])),
            ),
            good("Myri-Clos"),
            good("Torus (4 x 4)"),
        ]
    }

    fn reproduction(&self, name: &str, title: &str, statements: Vec<Statement>, notes: &[&str]) -> Reproduction {
        let mut table = match &self.patterns[..] {
            [a, b, c] => Table::new([
                title,
                a.word(),
                "flow level",
                "ratio",
                b.word(),
                "flow level",
                "ratio",
                c.word(),
                "flow level",
                "ratio",
            ]),
            [a, b] => Table::new([title, a.word(), "flow level", "ratio", b.word(), "flow level", "ratio"]),
            _ => unreachable!("two patterns or three"),
        };
        let mut rows = Vec::new();
        for (network, rates) in FIG_7.iter().zip(&self.rates) {
            let mut cells = vec![network.name.to_owned()];
            let mut json = serde_json::Map::new();
            for (pattern, Rate { packet_mbps: packet, flow_mbps: flow }) in self.patterns.iter().zip(rates) {
                cells.extend([format!("{packet:.1}"), format!("{flow:.1}"), format!("{:.2}", packet / flow)]);
                let values = serde_json::json!({ "packet_mbps": packet, "flow_mbps": flow });
                json.insert(pattern.word().to_owned(), values);
            }
            table.row(cells);
            rows.push(serde_json::json!({ "name": network.name, "patterns": json }));
        }
        let series = self.patterns.iter().enumerate().map(|(at, pattern)| {
            (pattern.word().to_owned(), self.rates.iter().map(|rates| rates[at].packet_mbps).collect())
        });
        let chart = bars(
            &format!("{title}, frame by frame"),
            "payload of a pair, Mbit/s",
            FIG_7.iter().map(|network| network.name),
            series,
        );
        Reproduction {
            table,
            comparison: Comparison::Statements(statements),
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
            values: values([(name, rows.into())]),
            chart,
            csv: None,
        }
    }
}

/// Runs a pattern on a network at both levels.
fn both_levels(plan: &Plan, pattern: Pattern) -> Result<Rate, SimulationError> {
    let pairs = pattern.pairs(&plan.topology, 1)?;
    let transport = Transport::Udp { rate_bps: None, arrivals: Arrivals::Even };
    let flow = |source: HostId, to: HostId| Flow { transport, payload_bytes: 1470, ..Flow::flood(source, to) };
    let workload =
        Workload { flows: pairs.iter().map(|pair| flow(pair.source, pair.destination)).collect(), faults: Vec::new() };
    let config = PacketConfig {
        flow_control: FlowControlAt::Everywhere,
        duration_ps: SECOND_PS / 5,
        warmup_ps: SECOND_PS / 20,
        ..PacketConfig::default()
    };
    let outcome = Simulation::new(plan, &workload, &config).finish();
    let rates = FlowLevel::new(plan).blocking_rates_bps(&pairs)?;
    let rate = rates.iter().sum::<f64>() / rates.len() as f64 * PAYLOAD_SHARE;
    Ok(Rate { packet_mbps: outcome.mean_goodput_bps() / 1e6, flow_mbps: rate / 1e6 })
}
