//! `espalier plan --pareto`: what fewer VLANs and fewer static entries cost, so that a person can choose.

use std::process::ExitCode;

use anyhow::Result;
use fabric::{
    EngineName, PathSummary, Policy, Summary, Topology,
    format::{
        report::load_json,
        table::{Table, amount},
    },
};
use planner::PlanError;

use super::{Output, patience::Patience, say};

/// The best plan for one cap.
struct Choice {
    engine: EngineName,
    summary: Summary,
}

pub(super) fn run(topology: &Topology, policy: &Policy, output: Output) -> Result<ExitCode> {
    let choices = choices(topology, policy)?;
    if output == Output::Json {
        let rows: Vec<_> = (choices.iter())
            .map(|Choice { engine, summary }| {
                let mut row = serde_json::json!({
                    "engine": engine.word(), "vlans": summary.vlans, "max_channel_load": load_json(summary.max_channel_load),
                    "max_channel_time": load_json(summary.max_channel_time), "load_bound": summary.load_bound,
                    "load_gap": summary.load_gap, "avg_hops": summary.avg_hops,
                    "fdb_entries_max": summary.fdb_entries_max, "fdb_entries_total": summary.fdb_entries_total,
                });
                if let Some(paths) = &summary.paths {
                    row["permutation_share_mean"] = paths.permutation_share_mean.into();
                    row["permutation_share_worst"] = paths.permutation_share_worst.into();
                }
                row
            })
            .collect();
        say!("{}", serde_json::json!({ "pareto": rows }));
        return Ok(ExitCode::SUCCESS);
    }
    let columns = ["VLANs", "engine", "max load", "/ bound", "hops", "entries a switch", "in all"];
    let [vlans, engine, load, bound, hops, entries, all] = columns;
    let mut table = match policy.paths_max {
        1 => Table::new(columns),
        _ => Table::new([vlans, engine, load, bound, hops, entries, all, "permutations", "worst case"]),
    };
    for Choice { engine, summary } in &choices {
        let cells = [
            summary.vlans.to_string(),
            engine.to_string(),
            amount(summary.max_channel_time),
            format!("{:.2}", summary.load_gap),
            format!("{:.2}", summary.avg_hops),
            summary.fdb_entries_max.to_string(),
            summary.fdb_entries_total.to_string(),
        ];
        let shares = summary.paths.iter().flat_map(|paths| {
            [paths.permutation_share_mean, paths.permutation_share_worst].map(|share| format!("{share:.2}×"))
        });
        table.row(cells.into_iter().chain(shares));
    }
    say!("{table}");
    Ok(ExitCode::SUCCESS)
}

/// Plans for caps of 1, 2, 4, … VLANs and for none; those that need more VLANs or entries than another and are no better
/// are left out. An interrupt ends it with what is there.
fn choices(topology: &Topology, policy: &Policy) -> Result<Vec<Choice>> {
    let mut patience = Patience::new(topology, policy)?;
    let mut plans: Vec<Choice> = Vec::new();
    let mut plan = |vlans_max: Option<usize>, patience: &mut Patience| -> Result<usize, PlanError> {
        let subject = vlans_max.map_or("any number of VLANs: ".to_owned(), |cap| format!("at most {cap} VLANs: "));
        let policy = Policy { vlans_max, ..policy.clone() };
        patience.restart(topology, &policy, policy.time_limit, subject);
        let plan = planner::plan_with(topology, &policy, None, patience)?;
        let vlans = plan.summary.vlans;
        plans.push(Choice { engine: plan.engine, summary: plan.summary });
        Ok(vlans)
    };
    let most = plan(policy.vlans_max, &mut patience)?;
    for cap in (0..).map(|power| 1_usize << power).take_while(|cap| *cap < most) {
        if patience.is_interrupted() {
            break;
        }
        match plan(Some(cap), &mut patience) {
            Ok(_) | Err(PlanError::TooManyVlans { .. } | PlanError::TooManyVlansForResilience { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    patience.finish();
    let price = |choice: &Choice| {
        let Summary { vlans, max_channel_time, fdb_entries_max, ref paths, .. } = choice.summary;
        let missing = |share: fn(&PathSummary) -> f64| paths.as_ref().map_or(0.0, |paths| 1.0 - share(paths));
        let [mean, worst] =
            [missing(|paths| paths.permutation_share_mean), missing(|paths| paths.permutation_share_worst)];
        [vlans as f64, max_channel_time, fdb_entries_max as f64, mean, worst]
    };
    let prices: Vec<[f64; 5]> = plans.iter().map(price).collect();
    let dominated = |index: usize| {
        prices.iter().enumerate().any(|(other, theirs)| {
            let mine = &prices[index];
            let no_worse = theirs.iter().zip(mine).all(|(theirs, mine)| theirs <= mine);
            no_worse && (theirs != mine || other < index)
        })
    };
    let kept: Vec<bool> = (0..plans.len()).map(|index| !dominated(index)).collect();
    let mut choices: Vec<Choice> =
        plans.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(choice, _)| choice).collect();
    choices.sort_by(|a, b| price(a).partial_cmp(&price(b)).expect("prices are numbers"));
    Ok(choices)
}
