//! Plans while the answer to a failure is in force.

use crate::{Assignment, Failure, Plan, PortRole, Proof, Tagging};

impl Plan {
    /// The plan as switches hold it while hosts have switched over for a failure: for a change that begins there. None if
    /// nothing is stored for it, or where it is not switches that choose VLANs.
    pub fn switched_over(&self, failure: Failure) -> Option<Self> {
        let failover = self.failover.as_ref().filter(|_| self.policy.tagging == Tagging::Switch)?;
        let over = failover.switch_over(failure)?;
        let assignment = over.apply(&self.assignment);
        let Assignment::Source(choice) = &assignment else { return None };
        let mut plan = self.clone();
        for port in plan.devices.iter_mut().flat_map(|device| &mut device.ports) {
            let (PortRole::Host(host), Some(_)) = (port.role, port.pvid) else { continue };
            let vlan = choice[host.index()];
            (port.pvid, port.untagged_class) = (Some(vlan), self.policy.class_of(&self.trees, vlan));
        }
        if let Proof::Numbering(at) | Proof::Drained(at) = over.proof {
            plan.certificate = Some(failover.numberings[at].clone());
        }
        // What is stored is stored for where hosts were before.
        (plan.assignment, plan.failover) = (assignment, None);
        Some(plan)
    }
}
