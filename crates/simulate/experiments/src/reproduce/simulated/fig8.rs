//! \[Otsuka\] Fig. 8, which is Fig. 6 of the Japanese version: NAS benchmarks on six networks.

use fabric::format::table::Table;
use sim::program::Program;

use super::{
    super::{
        Replay,
        chart::bars,
        event::Events,
        network::plan_named,
        reproduction::{Comparison, Reproduction, Statement, values},
    },
    npb::{programs, seconds},
};
use crate::{Error, error::SimulationError};

/// Networks whose figures are drawn in the paper, and which of them is the tree without VLANs.
const DRAWN: [&str; 6] = ["Flat", "Mesh (4 x 4)", "Torus (4 x 4)", "Fat tree", "Myri-Clos", "M-Tree"];
const TREE: &str = "M-Tree";
/// At least this share of Flat's performance is "almost the same".
const SAME: f64 = 0.9;

/// Which version of the paper.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Version {
    English,
    Japanese,
}

pub(super) fn reproduce(version: Version, replay: &Replay<'_>, events: Events<'_>) -> Result<Reproduction, Error> {
    let (name, title) = match version {
        Version::English => ("fig8", "[Otsuka] Fig. 8"),
        Version::Japanese => ("ja-fig6", "[Otsuka, ja] Fig. 6"),
    };
    let programs = programs(replay, events)?;
    let mut rows: Vec<(&str, Vec<f64>)> = Vec::new();
    for name in DRAWN {
        let plan = plan_named(name)?;
        let seconds = programs.iter().map(|(_, program)| seconds(&plan, program, 1));
        let seconds = seconds.collect::<Result<Vec<f64>, SimulationError>>()?;
        let relative: Vec<f64> = match rows.first() {
            Some((_, flat)) => seconds.iter().zip(flat).map(|(own, flat)| flat / own).collect(),
            None => seconds.clone(),
        };
        rows.push((name, relative));
    }
    let [flat, mesh, torus, fat_tree, clos, tree] = DRAWN;
    let mut table = Table::new([title, flat, mesh, torus, fat_tree, clos, tree]);
    for (at, (benchmark, _)) in programs.iter().enumerate() {
        let cells = rows.iter().enumerate().map(|(row, (_, values))| {
            if row == 0 { format!("{:.2} s", values[at]) } else { format!("{:.3}", values[at]) }
        });
        table.row(std::iter::once((*benchmark).to_owned()).chain(cells));
    }
    let mut csv = "topology,benchmark,relative_performance\n".to_owned();
    for (topology, values) in rows.iter().skip(1) {
        for ((benchmark, _), value) in programs.iter().zip(values) {
            csv.push_str(&format!("{topology},{benchmark},{value:.6}\n"));
        }
    }
    let notes = [
        "performance, Flat = 1 (its column: seconds); class B on 16 ranks, one a host; the paper has a figure only",
        "given: messages and their sizes, from traces of NPB 3.3 (the paper ran 3.2); cables of 1 Gbit/s; TCP's frames",
        "chosen, not fitted to numbers: work scaled by --ns-per-flop (a flop is 1 ns of a Xeon at 2.1 GHz of today); linear",
        "  alltoall, binomial allreduce, broadcast and reduce, as MPICH 1.2.5 had them; messages above 64 KiB ask first",
        "not there: what SCore's PM does to a message, memory of switches, losses; rates are max-min fair at once",
    ];
    let json = rows.iter().map(|(name, values)| {
        let values = programs.iter().zip(values).map(|((of, _), value)| ((*of).to_owned(), (*value).into()));
        serde_json::json!({ "topology": name, "values": values.collect::<serde_json::Map<_, _>>() })
    });
    let series = rows.iter().skip(1).map(|(name, values)| ((*name).to_owned(), values.clone()));
    let chart = bars(
        &format!("{title}: NAS benchmarks, class B on 16 ranks"),
        "performance, Flat = 1",
        programs.iter().map(|(name, _)| *name),
        series,
    );
    Ok(Reproduction {
        table,
        comparison: Comparison::Statements(statements(&programs, &rows)),
        notes: notes.map(str::to_owned).to_vec(),
        values: values([(name, json.collect()), ("ns_per_flop", replay.ns_per_flop.into())]),
        chart,
        csv: Some(csv),
    })
}

/// What the text says of the figure, and whether it is so here.
fn statements(programs: &[(&'static str, Program)], rows: &[(&str, Vec<f64>)]) -> Vec<Statement> {
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
        Statement::of_paper(
            format!("tagged topologies do almost as well as Flat in most ({same} of {} at 0.9 or more)", tagged.len()),
            2 * same > tagged.len(),
        ),
        Statement::of_paper("M-Tree is below all others in all but EP", lowest),
        Statement::of_paper(
            format!("FT and IS lose most on M-Tree (here {})", worst.join(" and ")),
            worst.contains(&"FT") && worst.contains(&"IS"),
        ),
    ]
}
