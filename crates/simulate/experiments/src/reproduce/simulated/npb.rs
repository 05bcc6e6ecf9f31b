//! NAS Parallel Benchmarks: real traces, replayed at the flow level on any plan.

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

use super::super::{Event, Replay, event::Events};
use crate::{Error, error::SimulationError};

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

/// The benchmarks that there are traces of, each with its name.
///
/// # Errors
/// [`Error::Request`], if a trace does not read.
pub(super) fn programs(replay: &Replay<'_>, events: Events<'_>) -> Result<Vec<(&'static str, Program)>, Error> {
    let ps_per_flop = replay.ns_per_flop * 1000.0;
    let reading = Reading { ps_per_flop, algorithms: ALGORITHMS.to_vec(), ..Reading::default() };
    let read = |files: &[(&str, &str)]| read_traces(files, &reading).map_err(|wrong| Error::Request(wrong.to_string()));
    let mut programs = Vec::new();
    for (name, text, complete) in OWN {
        let complete = replay.traces.zip(complete).map(|(folder, own)| folder.join(own));
        let program = match complete {
            Some(path) if path.exists() => {
                let files = match path.is_dir() {
                    true => files::read_folder(&path)?,
                    false => vec![(path.display().to_string(), files::read_text(&path)?)],
                };
                let files: Vec<(&str, &str)> =
                    files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
                read(&files)?
            }
            Some(path) => {
                events(Event::FoldedTrace { benchmark: name, path: &path });
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
pub(super) fn seconds(plan: &Plan, program: &Program, ranks_per_host: usize) -> Result<f64, SimulationError> {
    let hosts = in_order(&plan.topology, program.ranks(), ranks_per_host);
    let job = Job::new(&plan.topology, program.clone(), hosts, Messaging::default(), Vec::new())?;
    let ran = run_job(plan, &job, &PacketConfig::default())?.ran;
    if !ran.stalled.is_empty() {
        return Err(SimulationError::Stalled { program: "a trace", ranks: ran.stalled });
    }
    Ok(ran.end_ps() as f64 / 1e12)
}
