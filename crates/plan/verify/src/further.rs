//! Further traffic that a plan is for: its routes are the same for all, its loads are not.
//!
//! ```text
//!   traffic: day, further: night, week    ─▶    a plan with traffic night, one with traffic week
//! ```
//! Frames are judged once, by the plan itself. What each further matrix loads is then seen on a plan whose only traffic it is.

use fabric::{FindingKind, Plan, Policy, Traffic};

use crate::{findings::Findings, judge_frames, read::read_state, state::FabricState, unicast};

/// The plan once for each further matrix, as if that were all its traffic.
pub(crate) fn plans(plan: &Plan, findings: &mut Findings) -> Vec<Plan> {
    let mut plans = Vec::new();
    for matrix in &plan.policy.further_traffic {
        if matrix.hosts() != plan.topology.hosts().len() {
            findings.fatal(FindingKind::PlanMismatch, || {
                let message = "further traffic is a matrix for another number of hosts; plan again";
                ("traffic".to_owned(), message.to_owned())
            });
            continue;
        }
        let traffic = Traffic::Matrix(matrix.clone());
        let policy = Policy { traffic, further_traffic: Vec::new(), ..plan.policy.clone() };
        plans.push(Plan { policy, ..plan.clone() });
    }
    plans
}

/// The state of each of those plans, and what is seen in it. What is wrong with it is found in the plan itself.
pub(crate) fn states(plans: &[Plan]) -> Vec<(FabricState<'_>, unicast::Traffic)> {
    let seen = |plan| {
        let mut findings = Findings::default();
        let state = read_state(plan, &mut findings);
        let traffic = judge_frames(&state, None, &mut findings);
        (state, traffic)
    };
    plans.iter().map(seen).collect()
}
