//! A plan with addresses that its ports have learned, as a deployment puts it on switches and judges it.

use std::collections::BTreeMap;

use fabric::{HostId, Mac, Plan, SwitchId, Topology, VlanId};
use switch_model::{SwitchConfig, align};

use super::{Places, with_learned};

/// A plan, and the addresses that its ports have learned.
#[derive(Clone, Debug)]
pub struct LearnedPlan {
    /// The plan, with these addresses behind their ports.
    plan: Plan,
    /// The same with the ports of bonds active with which it was proven, where these are others.
    proven: Option<Plan>,
    known: BTreeMap<Mac, HostId>,
    /// None where nothing is learned.
    places: Option<Places>,
}

impl LearnedPlan {
    /// A plan and where addresses were last, `known[address]`. Those of the plan's own hosts, of ports that learn none, and beyond a
    /// port's bound are left out.
    pub fn new(plan: &Plan, known: &BTreeMap<Mac, HostId>) -> Self {
        let places = Places::of(plan).ok().filter(|_| !known.is_empty());
        let known = places.as_ref().map(|places| fitting(&plan.topology, places, known)).unwrap_or_default();
        let plan = if known.is_empty() { plan.clone() } else { with_learned(plan, &known) };
        Self { plan, proven: None, known, places }
    }

    /// The same plan, which was proven, and whose figures were found, as `planned`: bonds have failed over to other ports since.
    #[must_use]
    pub fn proven_as(self, planned: &Plan) -> Self {
        let proven = if self.known.is_empty() { planned.clone() } else { with_learned(planned, &self.known) };
        Self { proven: Some(proven), ..self }
    }

    /// The plan, in which the addresses are further ones of their ports.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where each address is.
    pub fn known(&self) -> &BTreeMap<Mac, HostId> {
        &self.known
    }

    /// Whether a switch is to hold an entry for an address in a VLAN. It does without some that the plan has for a learned address: it
    /// learns there, or no frame to the address comes by.
    pub fn keeps(&self, switch: SwitchId, vlan: VlanId, mac: Mac) -> bool {
        match (&self.places, self.known.get(&mac)) {
            (Some(places), Some(host)) => !places.leaves_out(switch, vlan, *host),
            _ => true,
        }
    }

    /// What each switch is to hold, `[switch]`.
    pub fn goals(&self) -> Vec<SwitchConfig> {
        let goal = |device| {
            let mut goal = SwitchConfig::of_intent(&self.plan.topology, device);
            goal.entries.retain(|(vlan, mac), _| self.keeps(device.switch, *vlan, *mac));
            goal
        };
        self.plan.devices.iter().map(goal).collect()
    }

    /// The plan with what switches hold in the place of its devices, `devices[switch]`, for the judge. Ports that it does not name are
    /// left out, and entries are there that switches do without. Entries of a bond that has failed over are those toward its planned port,
    /// as the proof and the figures of the plan are of these.
    pub fn as_held(&self, devices: &[SwitchConfig]) -> Plan {
        let mut plan = self.proven.as_ref().unwrap_or(&self.plan).clone();
        let topology = &self.plan.topology;
        for ((switch, config), device) in topology.switch_ids().zip(devices).zip(&mut plan.devices) {
            let ports: Vec<String> = topology.port_ids(switch).map(|port| topology.port(port).name.clone()).collect();
            let mut config = align(config, &ports);
            for (key, slot) in self.places.iter().flat_map(|places| places.left_out(switch, &self.known)) {
                config.entries.entry(key).or_insert(slot);
            }
            *device = config.to_intent(topology, device);
        }
        plan
    }
}

/// Those of the addresses that the ports of a plan may learn, up to each port's bound.
pub(super) fn fitting(topology: &Topology, places: &Places, known: &BTreeMap<Mac, HostId>) -> BTreeMap<Mac, HostId> {
    let owners = topology.all_owners();
    let mut counts: BTreeMap<HostId, usize> = BTreeMap::new();
    let mut fits = |(mac, host): &(&Mac, &HostId)| {
        let count = counts.entry(**host).or_default();
        let fits = !owners.contains_key(mac) && *count < places.most(**host);
        *count += usize::from(fits);
        fits
    };
    known.iter().filter(|row| fits(row)).map(|(mac, host)| (*mac, *host)).collect()
}

/// Where the addresses are in another topology, whose hosts are found by their names.
#[must_use]
pub fn in_other_topology(known: &BTreeMap<Mac, HostId>, own: &Topology, other: &Topology) -> BTreeMap<Mac, HostId> {
    let names: BTreeMap<&str, HostId> = other.host_ids().map(|host| (other.host(host).name.as_str(), host)).collect();
    let twin = |(mac, host): (&Mac, &HostId)| Some((*mac, *names.get(own.host(*host).name.as_str())?));
    known.iter().filter_map(twin).collect()
}
