//! NAS Parallel Benchmarks: real traces, replayed at the flow level on any plan.

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

use crate::{cli, failure::bad_input, files::read_texts};

/// Traces that the program carries with it, and the names of folders with the complete ones of those that are folded.
const OWN: [(&str, &str, Option<&str>); 6] = [
    ("IS", include_str!("../../../../../../testdata/npb/is.B.16.txt"), None),
    ("FT", include_str!("../../../../../../testdata/npb/ft.B.16.txt"), None),
    ("EP", include_str!("../../../../../../testdata/npb/ep.B.16.txt"), None),
    ("CG", include_str!("../../../../../../testdata/npb/cg.B.16.txt"), Some("cg.B")),
    ("MG", include_str!("../../../../../../testdata/npb/mg.B.16.txt"), Some("mg.B")),
    ("LU", include_str!("../../../../../../testdata/npb/lu.B.16.txt"), Some("lu.B")),
];
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
    let reading = Reading { ps_per_flop: ns_per_flop * 1000.0, algorithms: ALGORITHMS.to_vec(), ..Reading::default() };
    let read = |files: &[(&str, &str)]| read_traces(files, &reading).map_err(|wrong| bad_input(wrong.to_string()));
    let mut programs = Vec::new();
    for (name, text, complete) in OWN {
        let complete = args.traces.as_deref().zip(complete).map(|(folder, own)| folder.join(own));
        let program = match complete {
            Some(path) if path.exists() => {
                let files = read_texts(&path)?;
                let files: Vec<(&str, &str)> =
                    files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
                read(&files)?
            }
            Some(path) => {
                eprintln!("espalier: {} is not there; the folded trace of {name} is taken", path.display());
                read(&[(name, text)])?
            }
            None => read(&[(name, text)])?,
        };
        programs.push((name, program));
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
