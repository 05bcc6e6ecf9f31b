//! What `--engine balanced` reaches on well-known topologies and on others, and how fast.
//!
//! `--help` tells of the options. Prints a Markdown table: a row for each topology, flow control, tagging, cap on VLANs, seed
//! and limit.
//!
//! ```text
//! cargo run --release -p planner --example bench_planner -- --only "torus 8x8" --flow pause --cpu-seconds 1,10
//! ```

mod ablation;
mod topologies;

use std::{
    env, fmt, fs,
    time::{Duration, Instant},
};

use fabric::{EngineName, FlowControl, Policy, Tagging};
use planner::{SearchPart, StepLimit, Watch, plan_with};

const HELP: &str = "\
What --engine balanced reaches, and how fast: a row of a Markdown table for each topology, flow control, tagging, cap, seed
and limit. Lists are separated by commas.

    cargo run --release -p planner --example bench_planner -- [OPTION VALUE]...

How long (the last of these counts; otherwise --seconds 1,10):
  --seconds LIST         so many seconds of time for the whole plan, from topology to every table of every switch
  --cpu-seconds LIST     so many seconds of processors, of all threads together: what a plan costs on a busy machine, too
  --steps LIST           so many steps: the same plan on every machine
  --default yes          as many steps as a plan takes without a time limit
What to plan:
  --topology TOPOLOGY    KIND SIZE [xHOSTS] [less CABLES,SWITCHES], any number of times; KIND and SIZE as `espalier
                         generate` takes them, xHOSTS hosts on every switch, and what to take away at random; or
                         `grown N,D`: N switches, one after the other, each with one to D cables to earlier ones
  --only NAME            of these or the well-known ones, that of this name, else those whose names hold it
  --topology-seed N      of what is random in a topology; 1 if not given
  --flow LIST            none, pause, pfc=2 to pfc=8; none,pause if not given
  --tagging LIST         switch, pair, source, destination, source-destination; switch if not given
  --max-vlans LIST       caps on VLANs; no cap if not given
  --seed LIST            of the planner; 1 if not given
How:
  --threads N            threads that may work at once; 1 if not given
  --without LIST         parts of the search to leave out, one after the other, or all: a table of the load without each
  --progress yes         every improvement on standard error, with the processor time at which it came

Example: what one and two lanes reach on a damaged torus in one and ten seconds of one processor, for three seeds:

    cargo run --release -p planner --example bench_planner -- --topology 'torus 8x8 less 3,1' --flow pause,pfc=2 \\
        --cpu-seconds 1,10 --seed 1,2,3
";

fn main() -> Result<(), String> {
    if env::args().skip(1).any(|word| word == "--help" || word == "-h") {
        print!("{HELP}");
        return Ok(());
    }
    let options = Arguments::parse(env::args().skip(1))?;
    let mut names = options.topologies.clone();
    if names.is_empty() {
        names = topologies::KNOWN.iter().map(|name| (*name).to_owned()).collect();
    }
    if let Some(only) = &options.only {
        // A name in full means that one alone, although others may go on from there.
        let exact = names.contains(only);
        names.retain(|name| if exact { name == only } else { name.contains(only.as_str()) });
    }
    if !options.without.is_empty() {
        return ablation::table(&options, &names);
    }
    println!(
        "| topology | flow control | tagging | cap | seed | after | busiest | bound | ratio | VLANs | lanes | hops | took s | CPU s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for name in names {
        let topology = topologies::topology(&name, options.topology_seed)?;
        for policy in options.policies() {
            for &limit in &options.limits {
                let limit = match limit {
                    Limit::Default => Limit::Steps(StepLimit::by_request(&topology, &policy).steps_left()),
                    limit => limit,
                };
                let policy = Policy { time_limit: limit.time(), ..policy.clone() };
                let mut watch = Clock::new(limit, options.threads, options.show_progress, None);
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
    /// As many steps as a plan takes by itself.
    Default,
}

impl Limit {
    /// Where time is the limit, plans use all of it.
    fn time(self) -> Option<Duration> {
        match self {
            Self::Seconds(seconds) | Self::CpuSeconds(seconds) => Some(Duration::from_secs_f64(seconds)),
            Self::Steps(_) | Self::Default => None,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(seconds) => write!(f, "{seconds} s"),
            Self::CpuSeconds(seconds) => write!(f, "{seconds} CPU s"),
            Self::Steps(steps) => write!(f, "{steps} steps"),
            Self::Default => write!(f, "default"),
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
    left_out: Option<SearchPart>,
}

impl Clock {
    fn new(limit: Limit, threads: usize, shows_progress: bool, left_out: Option<SearchPart>) -> Self {
        let steps = StepLimit::new(if let Limit::Steps(steps) = limit { steps } else { 0 });
        let (started, cpu_at_start) = (Instant::now(), cpu_seconds());
        Self { started, cpu_at_start, limit, steps, threads, shows_progress, best: f64::INFINITY, left_out }
    }
}

impl Watch for Clock {
    fn expired(&mut self) -> bool {
        match self.limit {
            Limit::Seconds(seconds) => self.started.elapsed() >= Duration::from_secs_f64(seconds),
            Limit::CpuSeconds(seconds) => cpu_seconds() - self.cpu_at_start >= seconds,
            Limit::Steps(_) | Limit::Default => self.steps.expired(),
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

    fn left_out(&self) -> Option<SearchPart> {
        self.left_out
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
    without: Vec<SearchPart>,
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
            without: Vec::new(),
        };
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} takes a value"))?;
            match word.as_str() {
                "--seconds" => parsed.limits = list(&word, &value, Limit::Seconds)?,
                "--cpu-seconds" => parsed.limits = list(&word, &value, Limit::CpuSeconds)?,
                "--steps" => parsed.limits = list(&word, &value, Limit::Steps)?,
                "--default" => parsed.limits = vec![Limit::Default],
                "--flow" => parsed.flow = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
                "--tagging" => parsed.tagging = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
                "--max-vlans" => parsed.caps = list(&word, &value, Some)?,
                "--threads" => parsed.threads = list(&word, &value, |threads| threads)?[0],
                "--topology" => parsed.topologies.push(value),
                "--only" => parsed.only = Some(value),
                "--seed" => parsed.seeds = list(&word, &value, |seed| seed)?,
                "--topology-seed" => parsed.topology_seed = list(&word, &value, |seed| seed)?[0],
                "--without" if value == "all" => parsed.without = SearchPart::ALL.to_vec(),
                "--without" => parsed.without = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
                "--progress" => parsed.show_progress = value == "yes",
                _ => return Err(format!("unknown option {word}; --help lists all")),
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
