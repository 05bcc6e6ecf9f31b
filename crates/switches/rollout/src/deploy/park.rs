//! Unmanaged ports that take part in a deployment.
//!
//! A plan that names fewer ports than the one before leaves some behind that are open, in VLANs that go or that come to
//! mean another tree: a switch refuses to remove a VLAN that is still a port's PVID, and a cable between two such ports
//! closes a ring that no plan knows of. They take part in the deployment like named ones from the survey on, so that they
//! are shut before anything else changes, and get back what they held if it turns back.

use std::sync::Arc;

use super::{DeploymentSpec, LiveStage, Way};
use switch_model::{SwitchConfig, align};

impl DeploymentSpec {
    /// Takes ports in that no plan names, `parked[switch]`, behind those that it does: wherever the deployment leads, they
    /// are shut and in no VLAN.
    ///
    /// # Panics
    /// If there is not one list a switch.
    pub fn park(&mut self, parked: &[Vec<String>]) {
        assert_eq!(parked.len(), self.goals.len(), "a list for every switch");
        let extend = |configs: &mut [SwitchConfig]| {
            for (config, names) in configs.iter_mut().zip(parked) {
                *config = config.with_parked(names);
            }
        };
        extend(&mut self.goals);
        if let Way::Live { start, stages } = &mut self.way {
            for (config, names) in start.iter_mut().zip(parked) {
                *config = config.as_ref().map(|config| config.with_parked(names));
            }
            let of_switches = stages.iter_mut().filter_map(|stage| match stage {
                LiveStage::Switches(configs) => Some(configs),
                LiveStage::Hosts(_) => None,
            });
            for (switch, config) in of_switches.flatten() {
                *config = config.with_parked(&parked[switch.index()]);
            }
        }
        if let Some(journal) = &mut self.resume {
            for (backup, goal) in journal.backup.iter_mut().zip(&self.goals) {
                let names: Vec<String> = goal.ports.iter().map(|port| port.name.clone()).collect();
                *backup = Arc::new(align(backup, &names));
            }
        }
    }
}
