//! Plans around cables that nothing confirms: the same fabric without them, from the plan that it was to have.

use std::{collections::BTreeSet, path::Path};

use anyhow::Result;
use fabric::{LinkId, Plan, Severity, TopologyBuilder};

use crate::{failure::bad_input, files::write_plan_file};

/// Plans without these cables, whose ports stay in the topology and are shut, and writes the plan; what that costs, in a
/// sentence.
///
/// # Errors
/// Bad input if the fabric falls apart without them, cannot be planned, or is unfit; input or output.
pub(super) fn plan_around(plan: &Plan, links: &BTreeSet<LinkId>, path: &Path) -> Result<String> {
    let named: Vec<String> = links.iter().map(|link| plan.topology.link_label(*link)).collect();
    let without = format!("without {}", named.join(", "));
    let mut builder = TopologyBuilder::of(&plan.topology);
    builder.remove_links(links);
    let topology = builder.finish().map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        bad_input(format!("{without} the fabric falls apart: {}; plug them in, or --trust-cabling", faults.join("; ")))
    })?;
    let new =
        planner::plan(&topology, &plan.policy, Some(plan)).map_err(|error| bad_input(format!("{without}: {error}")))?;
    let report = verify::check(&new);
    if let Some(finding) = report.findings().iter().find(|finding| finding.severity == Severity::Fatal) {
        return Err(bad_input(format!("{without} no plan is fit: {}: {}", finding.subject, finding.message)));
    }
    write_plan_file(&new, path)?;
    Ok(format!(
        "{}: a plan {without}: maximum channel load {} host pairs, {} before",
        path.display(),
        new.summary.max_channel_load,
        plan.summary.max_channel_load
    ))
}
