//! NAS Parallel Benchmarks on the topologies of \[Otsuka\] Fig. 8, which is Fig. 6 of the Japanese version: real traces,
//! replayed at the flow level.

use std::path::Path;

use anyhow::{Context, Result};
use fabric::{Plan, Policy};
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

use super::{
    figures::{FIG_7, topology},
    reproduction::{Reproduction, Verdict, bars},
    simulate_job::trace_files,
};
use crate::{cli, failure::bad_input, files::write_file, table::Table};

/// Traces that the program carries with it.
const OWN: [(&str, &str); 3] = [
    ("IS", include_str!("../../../../testdata/npb/is.B.16.txt")),
    ("FT", include_str!("../../../../testdata/npb/ft.B.16.txt")),
    ("EP", include_str!("../../../../testdata/npb/ep.B.16.txt")),
];
/// Those that are read from a folder if there is one, by the names of their folders in it.
const OTHERS: [(&str, &str); 3] = [("CG", "cg.B"), ("MG", "mg.B"), ("LU", "lu.B")];
/// Networks whose figures are drawn in the paper, and which of them is the tree without VLANs.
const DRAWN: [&str; 6] = ["Flat", "Mesh (4 x 4)", "Torus (4 x 4)", "Fat tree", "Myri-Clos", "M-Tree"];
const TREE: &str = "M-Tree";
/// At least this share of Flat's performance is "almost the same".
const SAME: f64 = 0.9;

/// What MPICH 1.2.5 did.
const ALGORITHMS: [(Collective, Algorithm); 4] = [
    (Collective::AllToAll, Algorithm::Linear),
    (Collective::AllReduce, Algorithm::Binomial),
    (Collective::Broadcast, Algorithm::Binomial),
    (Collective::Reduce, Algorithm::Binomial),
];

pub(super) fn fig_8(args: &cli::Reproduce) -> Result<Reproduction> {
    let programs = programs(args)?;
    let mut rows: Vec<(&str, Vec<f64>)> = Vec::new();
    for name in DRAWN {
        let plan = planned(name)?;
        let seconds = programs.iter().map(|(_, program)| seconds(&plan, program)).collect::<Result<Vec<f64>>>()?;
        let relative: Vec<f64> = match rows.first() {
            Some((_, flat)) => seconds.iter().zip(flat).map(|(own, flat)| flat / own).collect(),
            None => seconds.clone(),
        };
        rows.push((name, relative));
    }
    let [flat, mesh, torus, fat_tree, clos, tree] = DRAWN;
    let mut table = Table::new(["[Otsuka] Fig. 8", flat, mesh, torus, fat_tree, clos, tree]);
    for (at, (benchmark, _)) in programs.iter().enumerate() {
        let cells = rows.iter().enumerate().map(|(row, (_, values))| {
            if row == 0 { format!("{:.2} s", values[at]) } else { format!("{:.3}", values[at]) }
        });
        table.row(std::iter::once((*benchmark).to_owned()).chain(cells));
    }
    let verdicts = verdicts(&programs, &rows);
    if let Some(path) = &args.csv {
        write_file(path, |out| {
            writeln!(out, "topology,benchmark,relative_performance")?;
            for (topology, values) in rows.iter().skip(1) {
                for ((benchmark, _), value) in programs.iter().zip(values) {
                    writeln!(out, "{topology},{benchmark},{value:.6}")?;
                }
            }
            Ok(())
        })?;
    }
    let notes = [
        "performance, Flat = 1 (its column: seconds); class B on 16 ranks, one a host; the paper has a figure only",
        "given: messages and their sizes, from traces of NPB 3.3 (the paper ran 3.2); cables of 1 Gbit/s; TCP's frames",
        "chosen, not fitted to numbers: work scaled by --ns-per-flop (a flop is 1 ns of a Xeon at 2.1 GHz of today); linear",
        "  alltoall, binomial allreduce, broadcast and reduce, as MPICH 1.2.5 had them; messages above 64 KiB ask first",
        "not there: what SCore's PM does to a message, memory of switches, losses; rates are max-min fair at once",
    ];
    let agrees = verdicts.iter().all(|(_, holds)| *holds);
    let json = serde_json::json!({
        "fig8": rows.iter().map(|(name, values)| serde_json::json!({ "topology": name,
            "values": programs.iter().zip(values).map(|((of, _), value)| (of.to_string(), *value))
                .collect::<std::collections::BTreeMap<String, f64>>() })).collect::<Vec<_>>(),
        "verdicts": verdicts.iter().map(|(words, holds)| serde_json::json!({ "paper": words, "holds": holds }))
            .collect::<Vec<_>>(),
        "ns_per_flop": args.ns_per_flop, "notes": notes,
    });
    let held = verdicts
        .iter()
        .map(|(words, holds)| format!("{} the paper's text: {words}", if *holds { "holds  " } else { "DIFFERS" }));
    let series = rows.iter().skip(1).map(|(name, values)| ((*name).to_owned(), values.clone()));
    Ok(Reproduction {
        chart: bars(
            "[Otsuka] Fig. 8: NAS benchmarks, class B on 16 ranks",
            "performance, Flat = 1",
            programs.iter().map(|(name, _)| *name),
            series,
        ),
        notes: held.chain([String::new()]).chain(notes.map(str::to_owned)).collect(),
        verdict: if agrees { Verdict::Fine } else { Verdict::Disagrees },
        table,
        json,
    })
}

/// What the text says of the figure, and whether it is so here.
fn verdicts(programs: &[(&'static str, Program)], rows: &[(&str, Vec<f64>)]) -> Vec<(String, bool)> {
    let tagged: Vec<f64> =
        rows[1..].iter().filter(|(name, _)| *name != TREE).flat_map(|(_, values)| values.iter().copied()).collect();
    let same = tagged.iter().filter(|value| **value >= SAME).count();
    let tree = rows.iter().find(|(name, _)| *name == TREE).map_or(&[][..], |(_, values)| values.as_slice());
    let lowest = programs.iter().enumerate().filter(|(_, (name, _))| *name != "EP").all(|(at, _)| {
        let others = rows[1..].iter().filter(|(name, _)| *name != TREE);
        others.clone().all(|(_, values)| values[at] >= tree[at])
    });
    let mut by_loss: Vec<(&str, f64)> = programs.iter().map(|(name, _)| *name).zip(tree.iter().copied()).collect();
    by_loss.sort_by(|a, b| a.1.total_cmp(&b.1));
    let worst: Vec<&str> = by_loss.iter().take(2).map(|(name, _)| *name).collect();
    vec![
        (
            format!("tagged topologies do almost as well as Flat in most ({same} of {} at 0.9 or more)", tagged.len()),
            2 * same > tagged.len(),
        ),
        ("M-Tree is below all others in all but EP".to_owned(), lowest),
        (
            format!("FT and IS lose most on M-Tree (here {})", worst.join(" and ")),
            worst.contains(&"FT") && worst.contains(&"IS"),
        ),
    ]
}

fn programs(args: &cli::Reproduce) -> Result<Vec<(&'static str, Program)>> {
    let reading = Reading { ps_per_flop: args.ns_per_flop * 1000.0, algorithms: ALGORITHMS.to_vec() };
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

fn planned(name: &str) -> Result<Plan> {
    let network = FIG_7.iter().find(|(known, ..)| *known == name).context("a network of Fig. 7")?;
    let (_, kind, size, hosts, engine) = *network;
    let policy = Policy { engine, ..Policy::default() };
    planner::plan(&topology(kind, size, hosts)?, &policy, None).with_context(|| format!("plan {name}"))
}

fn seconds(plan: &Plan, program: &Program) -> Result<f64> {
    let hosts = in_order(&plan.topology, program.ranks(), 1);
    let job = Job::new(&plan.topology, program.clone(), hosts, Messaging::default(), Vec::new())?;
    let ran = run_job(plan, &job, &PacketConfig::default())?.ran;
    anyhow::ensure!(ran.stalled.is_empty(), "a trace stalls: {}", ran.stalled.join("; "));
    Ok(ran.end_ps() as f64 / 1e12)
}
