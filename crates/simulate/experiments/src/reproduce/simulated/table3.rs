//! \[Otsuka\] Table 3: the evaluated topologies, from real plans.

use fabric::{
    Summary,
    format::{report::load_json, table::Table},
};

use super::super::{
    chart::bars,
    network::plan_named,
    reproduction::{Comparison, Reproduction, values},
};
use crate::Error;

/// A row of \[Otsuka\] Table 3: the network's name, which is that of Fig. 7, and what the paper prints.
struct Row {
    name: &'static str,
    printed: Printed,
}

/// The columns Avg.H, Max.H and CP.
struct Printed {
    average_hops: f64,
    longest_hops: usize,
    channel_load: u64,
}

const TABLE_3: [Row; 7] = [
    row("Mesh (4 x 2)", Printed { average_hops: 2.75, longest_hops: 5, channel_load: 24 }),
    row("Torus (4 x 2)", Printed { average_hops: 2.50, longest_hops: 3, channel_load: 32 }),
    row("Myri-Clos", Printed { average_hops: 2.25, longest_hops: 3, channel_load: 12 }),
    row("M-Tree", Printed { average_hops: 4.81, longest_hops: 10, channel_load: 64 }),
    row("Mesh (4 x 4)", Printed { average_hops: 3.50, longest_hops: 7, channel_load: 16 }),
    row("Torus (4 x 4)", Printed { average_hops: 3.00, longest_hops: 5, channel_load: 12 }),
    row("Fat tree", Printed { average_hops: 3.75, longest_hops: 5, channel_load: 16 }),
];

const fn row(name: &'static str, printed: Printed) -> Row {
    Row { name, printed }
}

/// Where the paper errs: the row, the column, and how one can tell.
const ERRATA: [(&str, &str, &str); 4] = [
    (
        "Mesh (4 x 2)",
        "CP",
        "24 and 32 are swapped: two cables join the halves of eight hosts, 8·8/2 = 32 pairs at least",
    ),
    ("Torus (4 x 2)", "CP", "24 and 32 are swapped: see the mesh"),
    ("Torus (4 x 2)", "Max.H", "two hops along the ring of four and one across make four switches, not three"),
    ("Myri-Clos", "Avg.H", "4 of 16 destinations share the leaf: (4·1 + 12·3)/16 = 2.50, not 2.25"),
];

pub(super) fn reproduce() -> Result<Reproduction, Error> {
    let mut table = Table::new([
        "[Otsuka] Table 3",
        "#sw",
        "#link",
        "Avg.H",
        "printed",
        "Max.H",
        "printed",
        "CP",
        "printed",
        "VLANs",
    ]);
    let (mut rows, mut notes, mut agrees) = (Vec::new(), Vec::new(), true);
    let mut loads = Vec::new();
    for row in &TABLE_3 {
        let summary = summary(row.name)?;
        let Printed { average_hops: average, longest_hops: longest, channel_load: load } = row.printed;
        // The paper rounds to two digits.
        let found = [
            ("Avg.H", format!("{:.2}", summary.avg_switches_per_path), format!("{average:.2}")),
            ("Max.H", summary.max_switches_per_path.to_string(), longest.to_string()),
            ("CP", summary.max_channel_load.to_string(), load.to_string()),
        ];
        let mut cells = vec![row.name.to_owned(), summary.switches.to_string(), summary.links.to_string()];
        for (column, ours, printed) in &found {
            let erratum = ERRATA.iter().find(|(name, of, _)| *name == row.name && of == column);
            let mark = match (ours == printed, erratum) {
                (true, _) => "",
                (false, Some((name, of, reason))) => {
                    notes.push(format!("* {name}, {of}: {reason}"));
                    "*"
                }
                (false, None) => {
                    agrees = false;
                    notes.push(format!("! {}, {column}: disagrees with the paper", row.name));
                    "!"
                }
            };
            cells.extend([ours.clone(), format!("{printed}{mark}")]);
        }
        loads.push(summary.max_channel_load);
        cells.push(summary.vlans.to_string());
        table.row(cells);
        rows.push(serde_json::json!({
            "name": row.name, "switches": summary.switches, "links": summary.links, "vlans": summary.vlans,
            "avg_switches_per_path": { "ours": summary.avg_switches_per_path, "printed": average },
            "max_switches_per_path": { "ours": summary.max_switches_per_path, "printed": longest },
            "max_channel_load": { "ours": load_json(summary.max_channel_load), "printed": load },
            "deadlock_free": summary.deadlock_free,
        }));
    }
    let printed = TABLE_3.iter().map(|row| row.printed.channel_load as f64).collect();
    let series = [("here".to_owned(), loads), ("printed".to_owned(), printed)];
    let chart =
        bars("[Otsuka] Table 3, CP", "pairs over the busiest channel", TABLE_3.iter().map(|row| row.name), series);
    Ok(Reproduction {
        table,
        comparison: Comparison::Numbers { agree: agrees },
        notes,
        values: values([("table3", rows.into()), ("agrees", agrees.into())]),
        chart,
        csv: None,
    })
}

/// The figures of a network's plan, which the judge has passed.
fn summary(network: &str) -> Result<Summary, Error> {
    let plan = plan_named(network)?;
    let report = verify::check(&plan);
    if !report.is_deployable() {
        return Err(Error::Refused { network: network.to_owned(), report });
    }
    Ok(plan.summary)
}
