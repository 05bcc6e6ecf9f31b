//! Plans around cables that nothing confirms: the same fabric without them, from the plan that it was to have.

use std::collections::BTreeSet;

use fabric::{LinkId, Plan, Severity, TopologyBuilder};

use crate::Error;

/// Plans without these cables, whose ports stay in the topology and are shut.
///
/// # Errors
/// [`Error::Request`], if the fabric falls apart without them, cannot be planned, or is unfit.
pub(super) fn plan_around(plan: &Plan, links: &BTreeSet<LinkId>) -> Result<Plan, Error> {
    let named: Vec<String> = links.iter().map(|link| plan.topology.link_label(*link)).collect();
    let without = format!("without {}", named.join(", "));
    let mut builder = TopologyBuilder::of(&plan.topology);
    builder.remove_links(links);
    let topology = builder.finish().map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Error::Request(format!(
            "{without} the fabric falls apart: {}; plug them in, or --trust-cabling",
            faults.join("; ")
        ))
    })?;
    let new = planner::plan(&topology, &plan.policy, Some(plan))
        .map_err(|error| Error::Request(format!("{without}: {error}")))?;
    let report = verify::check(&new);
    if let Some(finding) = report.findings().iter().find(|finding| finding.severity == Severity::Fatal) {
        return Err(Error::Request(format!("{without} no plan is fit: {}: {}", finding.subject, finding.message)));
    }
    Ok(new)
}
