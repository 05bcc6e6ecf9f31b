//! What `--engine balanced` reaches on well-known topologies and on others, and how fast.
//!
//! ```text
//! cargo run --release -p planner --example bench_planner -- [--seconds 1,10,60 | --cpu-seconds 1,10 | --steps 500,5000]
//!     [--flow none,pause,pfc=2,pfc=4] [--seed 1,2,3] [--topology-seed N] [--only NAME] [--topology TOPOLOGY]…
//!     [--tagging switch,pair] [--max-vlans 4,16,64] [--threads N] [--progress yes]
//! ```
//!
//! Prints a Markdown table: a row for each topology, flow control, seed and time. Seconds are those of the whole plan, from
//! topology to every table of every switch; processor seconds, of all threads together, tell what a plan costs on a
//! machine that has other work as well. A topology is `KIND SIZE [xHOSTS] [less CABLES,SWITCHES]`, of which the last takes
//! cables and switches away at random, by the seed of topologies; `grown N,D` is N switches that came one after the other, each
//! with one to D cables to earlier ones. `--progress` tells of every improvement on standard error.

mod topologies;

use std::{
    env, fmt, fs,
    time::{Duration, Instant},
};

use fabric::{EngineName, FlowControl, Policy, Tagging};
use planner::{StepLimit, Watch, plan_with};

fn main() -> Result<(), String> {
    let options = Arguments::parse(env::args().skip(1))?;
    println!(
        "| topology | flow control | seed | after | busiest | bound | ratio | VLANs | lanes | hops | took s | CPU s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut names = options.topologies.clone();
    if names.is_empty() {
        names = topologies::KNOWN.iter().map(|name| (*name).to_owned()).collect();
    }
    if let Some(only) = &options.only {
        // A name in full means that one alone, although others may go on from there.
        let exact = names.contains(only);
        names.retain(|name| if exact { name == only } else { name.contains(only.as_str()) });
    }
    for name in names {
        let topology = topologies::topology(&name, options.topology_seed)?;
        for policy in options.policies() {
            for &limit in &options.limits {
                let policy = Policy { time_limit: limit.time(), ..policy.clone() };
                let mut watch = Clock::new(limit, options.threads, options.show_progress);
                let plan = plan_with(&topology, &policy, None, &mut watch).map_err(|error| error.to_string())?;
                let (took, cost) = (watch.started.elapsed().as_secs_f64(), cpu_seconds() - watch.cpu_at_start);
                let Policy { flow_control, tagging, seed, .. } = policy;
                let cap = policy.vlans_max.map_or("none".to_owned(), |cap| cap.to_string());
                let summary = plan.summary;
                println!(
                    "| {name} | {flow_control} | {tagging} | {cap} | {seed} | {limit} | {} | {:.1} | {:.3} | {} | {} | {:.2} | {took:.2} | {cost:.2} |",
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

/// When to stop.
#[derive(Clone, Copy)]
enum Limit {
    Seconds(f64),
    CpuSeconds(f64),
    Steps(u64),
}

impl Limit {
    /// Where time is the limit, plans use all of it.
    fn time(self) -> Option<Duration> {
        match self {
            Self::Seconds(seconds) | Self::CpuSeconds(seconds) => Some(Duration::from_secs_f64(seconds)),
            Self::Steps(_) => None,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(seconds) => write!(f, "{seconds} s"),
            Self::CpuSeconds(seconds) => write!(f, "{seconds} CPU s"),
            Self::Steps(steps) => write!(f, "{steps} steps"),
        }
    }
}

/// Stops at a limit.
struct Clock {
    started: Instant,
    cpu_at_start: f64,
    limit: Limit,
    steps: StepLimit,
    threads: usize,
    shows_progress: bool,
    best: f64,
}

impl Clock {
    fn new(limit: Limit, threads: usize, shows_progress: bool) -> Self {
        let steps = StepLimit::new(if let Limit::Steps(steps) = limit { steps } else { 0 });
        let (started, cpu_at_start) = (Instant::now(), cpu_seconds());
        Self { started, cpu_at_start, limit, steps, threads, shows_progress, best: f64::INFINITY }
    }
}

impl Watch for Clock {
    fn expired(&mut self) -> bool {
        match self.limit {
            Limit::Seconds(seconds) => self.started.elapsed() >= Duration::from_secs_f64(seconds),
            Limit::CpuSeconds(seconds) => cpu_seconds() - self.cpu_at_start >= seconds,
            Limit::Steps(_) => self.steps.expired(),
        }
    }

    fn progress(&mut self, load: f64, bound: f64) {
        if self.shows_progress && load < self.best {
            self.best = load;
            eprintln!("{:8.2} CPU s: {load:.0}, bound {bound:.1}", cpu_seconds() - self.cpu_at_start);
        }
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn steps_left(&self) -> u64 {
        if let Limit::Steps(_) = self.limit { self.steps.steps_left() } else { u64::MAX }
    }
}

/// Processor time of this process and all its threads so far, to a hundredth.
fn cpu_seconds() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name, which is in parentheses and may contain anything, user and system time are fields 12 and 13.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>()
        / TICKS_PER_SECOND
}

struct Arguments {
    limits: Vec<Limit>,
    flow: Vec<FlowControl>,
    tagging: Vec<Tagging>,
    caps: Vec<Option<usize>>,
    threads: usize,
    topologies: Vec<String>,
    only: Option<String>,
    seeds: Vec<u64>,
    topology_seed: u64,
    show_progress: bool,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Self {
            limits: vec![Limit::Seconds(1.0), Limit::Seconds(10.0)],
            flow: vec![FlowControl::None, FlowControl::Pause],
            tagging: vec![Tagging::Switch],
            caps: vec![None],
            threads: 1,
            topologies: Vec::new(),
            only: None,
            seeds: vec![1],
            topology_seed: 1,
            show_progress: false,
        };
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} takes a value"))?;
            match word.as_str() {
                "--seconds" => parsed.limits = list(&word, &value, Limit::Seconds)?,
                "--cpu-seconds" => parsed.limits = list(&word, &value, Limit::CpuSeconds)?,
                "--steps" => parsed.limits = list(&word, &value, Limit::Steps)?,
                "--flow" => parsed.flow = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
                "--tagging" => parsed.tagging = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
                "--max-vlans" => parsed.caps = list(&word, &value, Some)?,
                "--threads" => parsed.threads = list(&word, &value, |threads| threads)?[0],
                "--topology" => parsed.topologies.push(value),
                "--only" => parsed.only = Some(value),
                "--seed" => parsed.seeds = list(&word, &value, |seed| seed)?,
                "--topology-seed" => parsed.topology_seed = list(&word, &value, |seed| seed)?[0],
                "--progress" => parsed.show_progress = value == "yes",
                _ => return Err(format!("unknown option {word}")),
            }
        }
        Ok(parsed)
    }

    /// What to plan for each topology.
    fn policies(&self) -> Vec<Policy> {
        let mut policies = Vec::new();
        for &flow_control in &self.flow {
            for &tagging in &self.tagging {
                for &vlans_max in &self.caps {
                    policies.extend(self.seeds.iter().map(|&seed| Policy {
                        engine: EngineName::Balanced,
                        flow_control,
                        tagging,
                        vlans_max,
                        seed,
                        ..Policy::default()
                    }));
                }
            }
        }
        policies
    }
}

fn list<N: std::str::FromStr, T>(word: &str, value: &str, make: fn(N) -> T) -> Result<Vec<T>, String> {
    let parsed = value.split(',').map(|number| number.parse().map(make)).collect::<Result<_, _>>();
    parsed.map_err(|_| format!("{word} takes numbers, not {value:?}"))
}
