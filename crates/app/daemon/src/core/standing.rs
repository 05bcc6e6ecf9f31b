//! Where hosts are: home, or where they have switched over to for a failure.

use std::collections::BTreeSet;

use controller::StatusReport;
use fabric::{Failure, Plan, VlanId};
use rollout::diagnose::{Cause, Moves, Standing};

/// The failure for which all hosts hold the stored answer; none if they are home, or between the two.
pub fn standing(plan: &Plan, report: &StatusReport) -> Option<Failure> {
    let topology = &plan.topology;
    let pvid = |host| -> Option<Option<VlanId>> {
        let (port, switch) = (topology.host(host).port, topology.switch_of(host));
        let sight = report.seen[switch.index()].as_ref().ok()?;
        Some(sight.config.ports[port.index() - topology.switch_ports(switch).start].pvid)
    };
    let found: Vec<_> = topology.host_ids().map(pvid).collect();
    let mut dead = BTreeSet::new();
    for diagnosis in &report.diagnoses {
        match &diagnosis.cause {
            Cause::CableDown { link, .. } => drop(dead.insert(*link)),
            Cause::SwitchDown { switch, .. } => {
                dead.extend(topology.channels_from(*switch).iter().map(|channel| channel.link()));
            }
            _ => {}
        }
    }
    let moves = Moves::find(plan, &found, &dead);
    match moves.standing {
        Standing::For(failure) | Standing::Lingering(failure)
            if moves.waiting.is_empty() && moves.stopped.is_empty() =>
        {
            Some(failure)
        }
        _ => None,
    }
}
