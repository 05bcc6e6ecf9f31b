//! What each part of the search is worth: the load on the most loaded link without it, as a table.

use fabric::Policy;
use planner::{SearchPart, StepLimit, Watch, plan_with};

use super::{Arguments, Clock, Limit, cpu_seconds, topologies};

/// A row for each topology, flow control, tagging and cap; a column for each part that is left out. A cell is the mean over
/// the seeds of the maximum channel load without the part, divided by that with it: above 1 where the part helps.
pub(crate) fn table(options: &Arguments, names: &[String]) -> Result<(), String> {
    let columns: Vec<String> = options.without.iter().map(ToString::to_string).collect();
    println!("| topology | flow control | tagging | cap | load | {} |", columns.join(" | "));
    println!("|---|---|---|---|---:|{}", "---:|".repeat(columns.len()));
    let mut sums = vec![0.0; columns.len()];
    let mut rows = 0;
    let started = cpu_seconds();
    for name in names {
        let topology = topologies::topology(name, options.topology_seed)?;
        let policies = options.policies();
        for of_seeds in policies.chunks(options.seeds.len()) {
            let load = |left_out: Option<SearchPart>| -> Result<f64, String> {
                let mut sum = 0.0;
                for policy in of_seeds {
                    for &limit in &options.limits {
                        let limit = match limit {
                            Limit::Default => Limit::Steps(StepLimit::by_request(&topology, policy).steps_left()),
                            limit => limit,
                        };
                        let policy = Policy { time_limit: limit.time(), ..policy.clone() };
                        let mut watch = Clock::new(limit, options.threads, false, left_out);
                        let plan =
                            plan_with(&topology, &policy, None, &mut watch).map_err(|error| error.to_string())?;
                        sum += plan.summary.max_channel_time;
                    }
                }
                Ok(sum / (of_seeds.len() * options.limits.len()) as f64)
            };
            let whole = load(None)?;
            let mut cells = Vec::with_capacity(columns.len());
            for (sum, &part) in sums.iter_mut().zip(&options.without) {
                let ratio = if whole > 0.0 { load(Some(part))? / whole } else { 1.0 };
                *sum += ratio;
                cells.push(format!("{ratio:.2}"));
            }
            rows += 1;
            let Policy { flow_control, tagging, vlans_max, .. } = &of_seeds[0];
            let cap = vlans_max.map_or("none".to_owned(), |cap| cap.to_string());
            println!("| {name} | {flow_control} | {tagging} | {cap} | {whole:.1} | {} |", cells.join(" | "));
        }
    }
    let means: Vec<String> = sums.iter().map(|sum| format!("{:.3}", sum / f64::from(rows.max(1)))).collect();
    println!("| mean | | | | | {} |", means.join(" | "));
    eprintln!("{:.0} CPU s", cpu_seconds() - started);
    Ok(())
}
