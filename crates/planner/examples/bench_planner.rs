//! What `--engine balanced` reaches on well-known topologies, and how fast.
//!
//! ```text
//! cargo run --release -p planner --example bench_planner -- [--seconds 1,10,60 | --steps 500,5000,usual] [--flow none,pause,pfc=2,pfc=4]
//!     [--tagging switch,pair] [--max-vlans 4,16,64] [--only NAME] [--seed N] [--topology-seed N]
//! ```
//!
//! Prints a Markdown table: a row for each topology, flow control and time. Seconds are those of the whole plan, from
//! topology to every table of every switch.

use std::{
    env, fmt,
    time::{Duration, Instant},
};

use fabric::{
    EngineName, FlowControl, Policy, SwitchSpec, Tagging, Topology, TopologyBuilder,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use planner::{StepLimit, Watch, plan, plan_with};

fn main() -> Result<(), String> {
    let options = Arguments::parse(env::args().skip(1))?;
    println!(
        "| topology | flow control | tagging | cap | after | busiest | bound | ratio | VLANs | lanes | hops | took s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut topologies = topologies(options.topology_seed);
    if let Some(only) = &options.only {
        // A name in full means that one alone, although others may go on from there.
        let exact = topologies.iter().any(|(name, _)| name == only);
        topologies.retain(|(name, _)| if exact { name == only } else { name.contains(only.as_str()) });
    }
    for (name, topology) in topologies {
        for (flow_control, tagging, vlans_max, limit) in options.requests() {
            {
                let engine = EngineName::Balanced;
                let policy =
                    Policy { engine, flow_control, tagging, vlans_max, seed: options.seed, ..Policy::default() };
                let started = Instant::now();
                let planned = match limit {
                    Limit::Seconds(seconds) => {
                        let mut deadline = Deadline { at: started + Duration::from_secs_f64(seconds) };
                        plan_with(&topology, &policy, None, &mut deadline)
                    }
                    Limit::Steps(steps) => plan_with(&topology, &policy, None, &mut StepLimit::new(steps)),
                    Limit::Usual => plan(&topology, &policy, None),
                };
                let plan = planned.map_err(|error| error.to_string())?;
                let took = started.elapsed().as_secs_f64();
                let summary = plan.summary;
                let cap = vlans_max.map_or("none".to_owned(), |cap| cap.to_string());
                println!(
                    "| {name} | {flow_control} | {tagging} | {cap} | {limit} | {} | {:.1} | {:.3} | {} | {} | {:.2} | {took:.2} |",
                    summary.max_channel_load,
                    summary.load_bound,
                    summary.load_gap,
                    summary.vlans,
                    summary.lanes,
                    summary.avg_hops,
                );
            }
        }
    }
    Ok(())
}

/// Stops at a moment.
struct Deadline {
    at: Instant,
}

impl Watch for Deadline {
    fn expired(&mut self) -> bool {
        Instant::now() >= self.at
    }

    fn progress(&mut self, _load: f64, _bound: f64) {}
}

/// When to stop.
#[derive(Clone, Copy)]
enum Limit {
    Seconds(f64),
    Steps(u64),
    /// As many steps as `plan` takes.
    Usual,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(seconds) => write!(f, "{seconds} s"),
            Self::Steps(steps) => write!(f, "{steps} steps"),
            Self::Usual => f.write_str("as planned"),
        }
    }
}

struct Arguments {
    limits: Vec<Limit>,
    flow: Vec<FlowControl>,
    tagging: Vec<Tagging>,
    caps: Vec<Option<usize>>,
    only: Option<String>,
    seed: u64,
    topology_seed: u64,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Self {
            limits: vec![Limit::Seconds(1.0), Limit::Seconds(10.0)],
            flow: vec![FlowControl::None, FlowControl::Pause],
            tagging: vec![Tagging::Switch],
            caps: vec![None],
            only: None,
            seed: 1,
            topology_seed: 1,
        };
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} takes a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{word} takes a number, not {value:?}"));
            match word.as_str() {
                "--seconds" => {
                    let seconds: Result<_, _> = value.split(',').map(|s| s.parse().map(Limit::Seconds)).collect();
                    parsed.limits = seconds.map_err(|_| format!("{value:?} is no list of seconds"))?;
                }
                "--flow" => parsed.flow = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
                "--tagging" => parsed.tagging = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
                "--max-vlans" => {
                    let caps: Result<_, _> = value.split(',').map(|cap| cap.parse().map(Some)).collect();
                    parsed.caps = caps.map_err(|_| format!("{value:?} is no list of numbers"))?;
                }
                "--steps" => {
                    let limit = |steps: &str| match steps {
                        "usual" => Ok(Limit::Usual),
                        steps => steps.parse().map(Limit::Steps),
                    };
                    let steps: Result<_, _> = value.split(',').map(limit).collect();
                    parsed.limits = steps.map_err(|_| format!("{value:?} is no list of numbers"))?;
                }
                "--only" => parsed.only = Some(value),
                "--seed" => parsed.seed = number()?,
                "--topology-seed" => parsed.topology_seed = number()?,
                _ => return Err(format!("unknown option {word}")),
            }
        }
        Ok(parsed)
    }

    /// What to plan for each topology.
    fn requests(&self) -> Vec<(FlowControl, Tagging, Option<usize>, Limit)> {
        let mut requests = Vec::new();
        for &flow_control in &self.flow {
            for &tagging in &self.tagging {
                for &cap in &self.caps {
                    requests.extend(self.limits.iter().map(|&limit| (flow_control, tagging, cap, limit)));
                }
            }
        }
        requests
    }
}

/// The topologies, by name; random ones are drawn by `seed`.
fn topologies(seed: u64) -> Vec<(String, Topology)> {
    let sizes: Vec<(String, String, Option<usize>)> = [
        ("mesh", "8x8", None),
        ("torus", "4x4", None),
        ("torus", "4x4x4", None),
        ("torus", "8x8", None),
        ("torus", "8x8x8", None),
        ("torus", "12x12x12", None),
        ("fat-tree", "k=16", None),
        ("hyperx", "16x16", None),
        ("dragonfly", "a=8,h=4", None),
        ("random-regular", "n=256,d=8", None),
        ("random-regular", "n=256,d=8", Some(4)),
        ("random-regular", "n=1024,d=12", None),
    ]
    .into_iter()
    .map(|(kind, size, hosts): (&str, &str, _)| {
        let size = if kind == "random-regular" { format!("{size},seed={seed}") } else { size.to_owned() };
        (kind.to_owned(), size, hosts)
    })
    .collect();
    let mut topologies = Vec::new();
    for (kind, size, hosts_per_switch) in sizes {
        let parsed = Kind::parse(&kind, std::slice::from_ref(&size)).expect("a valid size");
        let topology = generate(&parsed, &Options { hosts_per_switch, ..Options::default() }).expect("a sane size");
        let hosts = hosts_per_switch.map_or(String::new(), |hosts| format!(" x{hosts}"));
        topologies.push((format!("{kind} {size}{hosts}"), topology));
    }
    topologies.push((format!("torus 8x8 damaged,seed={seed}"), damaged_torus(seed)));
    topologies
}

/// An 8×8 torus without three cables and one switch.
fn damaged_torus(seed: u64) -> Topology {
    let mut rng = Rng::new(seed);
    let gone = rng.below(64);
    let mut links: Vec<(usize, usize)> = (0..64)
        .flat_map(|switch| {
            let (row, column) = (switch / 8, switch % 8);
            [(switch, row * 8 + (column + 1) % 8), (switch, (row + 1) % 8 * 8 + column)]
        })
        .filter(|&(a, b)| a != gone && b != gone)
        .collect();
    for _ in 0..3 {
        links.remove(rng.below(links.len()));
    }
    let mut builder = TopologyBuilder::new();
    let switches: Vec<_> = (0..64)
        .map(|switch| {
            let spec = SwitchSpec { model: None, mgmt: None };
            (switch != gone).then(|| builder.add_switch(&format!("s{switch}"), spec).expect("names differ"))
        })
        .collect();
    let mut ports = 0;
    let mut port = |builder: &mut TopologyBuilder, switch: usize| {
        ports += 1;
        builder.add_port(switches[switch].expect("a switch that is there"), &format!("p{ports}")).expect("names differ")
    };
    for (a, b) in links {
        let (a, b) = (port(&mut builder, a), port(&mut builder, b));
        builder.add_link(a, b, fabric::DEFAULT_RATE_BPS).expect("free ports");
    }
    for switch in (0..64).filter(|&switch| switch != gone) {
        let at = port(&mut builder, switch);
        let mac = fabric::Mac::local(switch as u32 + 1);
        builder.add_host(&format!("h{switch}"), mac, at, fabric::DEFAULT_RATE_BPS, None).expect("a free port");
    }
    builder.finish().expect("the rest is connected")
}
