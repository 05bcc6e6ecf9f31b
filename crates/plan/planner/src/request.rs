//! What no engine could plan, refused before any search.
//!
//! ```text
//!   topology, policy ─▶ hosts? models' capabilities? who needs floods? what learns? how far? ─▶ a search, or why there is none
//! ```

use fabric::{
    Attachment, EngineName, FdbMode, Flood, FlowControl, HostId, Plan, Policy, PortId, Resilience, Switch, SwitchId,
    Tagging, Topology, graph::breadth_first,
};

use crate::{PlanError, confined::Confined, number, paths};

/// Refuses what no engine could plan.
pub(crate) fn check_request(topology: &Topology, policy: &Policy) -> Result<(), PlanError> {
    if topology.hosts().is_empty() {
        return Err(PlanError::NoHosts);
    }
    let hosts = topology.hosts().len();
    if !policy.traffic.fits(hosts) || policy.further_traffic.iter().any(|matrix| matrix.hosts() != hosts) {
        return Err(PlanError::OtherTraffic { hosts: topology.hosts().len() });
    }
    let (of, switches) = (policy.planes.by_switch().len(), topology.switches().len());
    if !policy.planes.is_empty() && of != switches {
        let reason = format!("the planes are of {of} switches, where there are {switches}");
        return Err(PlanError::NoPlanes { reason });
    }
    for switch in topology.switches() {
        let refuse = |needs: &'static str| {
            let (switch, model) = (switch.name.clone(), switch.model.name.clone());
            Err(PlanError::Unsupported { switch, model, needs, way_out: String::new() })
        };
        if !switch.model.independent_vlan_learning {
            return refuse("a forwarding table per VLAN (IVL)");
        }
        if policy.tagging == Tagging::Switch && !switch.model.hybrid_ports {
            return refuse("ports that are untagged in many VLANs");
        }
        match policy.flow_control {
            FlowControl::Pause if !switch.model.pause => {
                return refuse("802.3x PAUSE");
            }
            FlowControl::Pfc(classes) if switch.model.pfc_classes < classes => {
                return refuse("as many priority flow control classes");
            }
            _ => {}
        }
    }
    check_lags(topology)?;
    check_flood(topology, policy)?;
    check_storm_control(topology, policy)?;
    paths::check(topology, policy)?;
    number::check_any(topology, policy)
}

/// Refuses more LAGs than a switch has. Those between switches can do without: cables beside each other are links of their own for
/// a plan.
fn check_lags(topology: &Topology) -> Result<(), PlanError> {
    for id in topology.switch_ids() {
        let Switch { name, model, .. } = topology.switch(id);
        let lags: Vec<PortId> = topology.port_ids(id).filter(|port| topology.members(*port).next().is_some()).collect();
        let (need, Some(limit)) = (lags.len(), model.lags_max) else { continue };
        if need <= limit {
            continue;
        }
        let is_between = |port: &&PortId| matches!(topology.port(**port).attachment, Attachment::Link(_));
        let between = lags.iter().filter(is_between).count();
        let way_out = match need - limit {
            excess if excess <= between => {
                let lags = if excess == 1 { "a LAG".to_owned() } else { format!("{excess} LAGs") };
                format!(
                    "write the cables of {lags} to other switches as links of their own: plans use parallel cables without a LAG"
                )
            }
            _ => format!("use a switch that has {need} LAGs"),
        };
        return Err(PlanError::TooManyLags { switch: name.clone(), model: model.name.clone(), need, limit, way_out });
    }
    Ok(())
}

/// Refuses to drop floods where something needs them, or a switch cannot.
fn check_flood(topology: &Topology, policy: &Policy) -> Result<(), PlanError> {
    let flood = policy.flood;
    if flood == Flood::Forward {
        return Ok(());
    }
    let needed = |by| Err(PlanError::FloodsNeeded { flood, by, way_out: String::new() });
    if policy.fdb == FdbMode::Learned {
        return needed("a switch that learns");
    }
    if topology.in_band().is_some() && flood != Flood::Edge {
        return needed("management over data ports");
    }
    if flood == Flood::Edge && topology.edge().is_none() {
        return Err(PlanError::NoEdge);
    }
    let lacks = |switch: &&Switch| !flood.needed().without(switch.model.blocks_floods).is_empty();
    match topology.switches().iter().find(lacks) {
        None => Ok(()),
        Some(switch) => Err(PlanError::Unsupported {
            switch: switch.name.clone(),
            model: switch.model.name.clone(),
            needs: match flood {
                Flood::Forward => unreachable!("it blocks nothing"),
                Flood::Edge | Flood::Drop => "ports that block unknown unicast",
                Flood::DropAll => "ports that block unknown unicast, multicast and broadcast",
            },
            way_out: String::new(),
        }),
    }
}

/// Refuses to limit floods where a switch with hosts cannot.
fn check_storm_control(topology: &Topology, policy: &Policy) -> Result<(), PlanError> {
    if policy.storm_limit.is_none() {
        return Ok(());
    }
    let mut edges = topology.host_ids().map(|host| topology.switch(topology.switch_of(host)));
    match edges.find(|switch| !switch.model.storm_control) {
        None => Ok(()),
        Some(switch) => Err(PlanError::Unsupported {
            switch: switch.name.clone(),
            model: switch.model.name.clone(),
            needs: "storm control in percent of a port's rate",
            way_out: String::new(),
        }),
    }
}

/// Refuses what switches that learn are not known to survive.
pub(crate) fn check_learned(policy: &Policy, previous: Option<&Plan>) -> Result<(), PlanError> {
    let unproven = |what, way_out| Err(PlanError::LearnedUnproven { what, way_out });
    let learns = policy.fdb == FdbMode::Learned;
    if previous.is_some_and(|previous| learns || previous.policy.fdb == FdbMode::Learned) {
        return unproven(
            "--previous",
            "plan without --previous, or keep static entries in both plans with --fdb minimal",
        );
    }
    if !learns {
        return Ok(());
    }
    if policy.resilience != Resilience::None {
        return unproven("--resilience", "plan with --resilience 0, or keep static entries with --fdb minimal");
    }
    let one_tree = policy.engine == EngineName::Tree || policy.vlans_max == Some(1);
    if policy.tagging != Tagging::SourceDestination && !one_tree {
        return Err(PlanError::AnswersElsewhere { tagging: policy.tagging, way_out: String::new() });
    }
    Ok(())
}

/// Refuses a limit on hops below the distance of two hosts, where nothing of the topology is drained.
/// Cost: O(switches with hosts · links).
pub(crate) fn check_hops(topology: &Topology, policy: &Policy) -> Result<(), PlanError> {
    let Some(hops_max) = policy.hops_max else { return Ok(()) };
    let confined = Confined::by(topology, policy);
    let mut farthest: (u32, Option<[HostId; 2]>) = (0, None);
    for root in topology.switch_ids() {
        let Some(&source) = topology.hosts_of(root).first() else { continue };
        let found = breadth_first(topology.switches().len(), [root], |switch| {
            let confined = &confined;
            let allowed = move |head: SwitchId| confined.allows(root.index(), switch.index(), head.index());
            topology.neighbours(switch).filter(move |(_, head)| allowed(*head))
        });
        for &switch in &found.order {
            let (Some(distance), Some(&destination)) = (found.distance(switch), topology.hosts_of(switch).first())
            else {
                continue;
            };
            if distance > farthest.0 {
                farthest = (distance, Some([source, destination]));
            }
        }
    }
    match farthest {
        (least, Some([source, destination])) if least > hops_max => Err(PlanError::HopsTooFew {
            limit: hops_max,
            least,
            from: topology.host(source).name.clone(),
            to: topology.host(destination).name.clone(),
        }),
        _ => Ok(()),
    }
}
