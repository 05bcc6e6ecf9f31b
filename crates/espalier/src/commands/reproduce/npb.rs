//! NAS Parallel Benchmarks: real traces, replayed at the flow level on any plan.

use std::path::Path;

use anyhow::Result;
use fabric::Plan;
use sim::{
    flow_job::run_job,
    job::{Job, Messaging, in_order},
    packet::PacketConfig,
    program::{
        Program,
        collective::{Algorithm, Collective},
        ti::{Reading, read_traces},
    },
};

use super::super::simulate_job::trace_files;
use crate::{cli, failure::bad_input};

/// Traces that the program carries with it.
const OWN: [(&str, &str); 3] = [
    ("IS", include_str!("../../../../../testdata/npb/is.B.16.txt")),
    ("FT", include_str!("../../../../../testdata/npb/ft.B.16.txt")),
    ("EP", include_str!("../../../../../testdata/npb/ep.B.16.txt")),
];
/// Those that are read from a folder if there is one, by the names of their folders in it.
const OTHERS: [(&str, &str); 3] = [("CG", "cg.B"), ("MG", "mg.B"), ("LU", "lu.B")];
/// What MPICH 1.2.5 did.
const ALGORITHMS: [(Collective, Algorithm); 4] = [
    (Collective::AllToAll, Algorithm::Linear),
    (Collective::AllReduce, Algorithm::Binomial),
    (Collective::Broadcast, Algorithm::Binomial),
    (Collective::Reduce, Algorithm::Binomial),
];

/// The benchmarks that there are traces of, each with its name, a flop lasting so long.
///
/// # Errors
/// If a trace does not read.
pub(super) fn programs(args: &cli::Reproduce, ns_per_flop: f64) -> Result<Vec<(&'static str, Program)>> {
    let reading = Reading { ps_per_flop: ns_per_flop * 1000.0, algorithms: ALGORITHMS.to_vec() };
    let read = |files: &[(&str, &str)]| read_traces(files, &reading).map_err(|wrong| bad_input(wrong.to_string()));
    let mut programs = Vec::new();
    for (name, text) in OWN {
        programs.push((name, read(&[(name, text)])?));
    }
    if let Some(folder) = &args.traces {
        for (name, own) in OTHERS {
            let path = folder.join(own);
            if !Path::new(&path).exists() {
                eprintln!("espalier: {} is not there; {name} is left out", path.display());
                continue;
            }
            let files = trace_files(&path)?;
            let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            programs.push((name, read(&files)?));
        }
    }
    Ok(programs)
}

/// How long a program runs on a plan's hosts, so many ranks on each.
///
/// # Errors
/// If it stalls, or the plan does not lead everywhere.
pub(super) fn seconds(plan: &Plan, program: &Program, ranks_per_host: usize) -> Result<f64> {
    let hosts = in_order(&plan.topology, program.ranks(), ranks_per_host);
    let job = Job::new(&plan.topology, program.clone(), hosts, Messaging::default(), Vec::new())?;
    let ran = run_job(plan, &job, &PacketConfig::default())?.ran;
    anyhow::ensure!(ran.stalled.is_empty(), "a trace stalls: {}", ran.stalled.join("; "));
    Ok(ran.end_ps() as f64 / 1e12)
}
