//! What differs between the state that a switch was found in and the one that a plan wants, worst first, in sentences.

use fabric::{Admin, FloodKind, FloodSet, FlowControlMode, Lldp, Mac, VlanId, VlanSet};

use crate::{Entries, LagMembership, PortLearning, Slot, Snooping, StormLimits, SwitchConfig};
use fabric::{IngressFilter, SpanningTree};

/// One difference. Ports are positions in both states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drift {
    /// Spanning tree is on or off, and should not be.
    SpanningTree {
        /// How it was found.
        found: SpanningTree,
    },
    /// A port is open or shut, and should not be.
    Admin {
        /// Where.
        port: Slot,
        /// How it was found.
        found: Admin,
    },
    /// Untagged frames enter another VLAN than they should.
    Pvid {
        /// Where.
        port: Slot,
        /// Which it is; none drops them.
        found: Option<VlanId>,
        /// Which it should be.
        wanted: Option<VlanId>,
    },
    /// A port filters at ingress, or does not, and should not.
    IngressFilter {
        /// Where.
        port: Slot,
        /// How it was found.
        found: IngressFilter,
    },
    /// A port learns, or does not, and should not. One that always does is right either way.
    Learning {
        /// Where.
        port: Slot,
        /// How it was found.
        found: PortLearning,
    },
    /// A port blocks other floods than it should.
    Floods {
        /// Where.
        port: Slot,
        /// Which it blocks.
        found: FloodSet,
        /// Which it should.
        wanted: FloodSet,
    },
    /// A port limits floods otherwise than it should.
    StormControl {
        /// Where.
        port: Slot,
        /// Its limits.
        found: StormLimits,
        /// What they should be.
        wanted: StormLimits,
    },
    /// A port is a member of another LAG than it should be, or of none, or of one where it should be of none.
    Lag {
        /// Where.
        port: Slot,
        /// The LAG that it is a member of.
        found: Option<Slot>,
        /// The LAG that it should be a member of.
        wanted: Option<Slot>,
    },
    /// LLDP is off, or on where it should be off.
    Lldp {
        /// How it was found.
        found: Lldp,
    },
    /// Snooping is on.
    Snooping {
        /// Which.
        found: Snooping,
    },
    /// Snooping is off that was on before: no plan wants any.
    NoSnooping {
        /// Which.
        wanted: Snooping,
    },
    /// A port is not in VLANs that it should be in.
    Missing {
        /// Where.
        port: Slot,
        /// Which.
        vlans: VlanSet,
    },
    /// A port is in VLANs that it should not be in.
    Extra {
        /// Where.
        port: Slot,
        /// Which.
        vlans: VlanSet,
    },
    /// A port sends the frames of VLANs with a tag that should have none, or without one that should have it.
    Form {
        /// Where.
        port: Slot,
        /// Which.
        vlans: VlanSet,
    },
    /// VLANs that the switch does not know.
    NoVlan(VlanSet),
    /// VLANs that are not in the plan.
    ForeignVlan(VlanSet),
    /// A static entry that is not there.
    NoEntry {
        /// Of which VLAN.
        vlan: VlanId,
        /// Of whom.
        mac: Mac,
        /// Where it should lead.
        wanted: Slot,
    },
    /// A static entry that leads elsewhere.
    Astray {
        /// Of which VLAN.
        vlan: VlanId,
        /// Of whom.
        mac: Mac,
        /// Where it leads.
        found: Slot,
        /// Where it should.
        wanted: Slot,
    },
    /// A static entry that is not in the plan.
    ForeignEntry {
        /// Of which VLAN.
        vlan: VlanId,
        /// Of whom.
        mac: Mac,
        /// Where it leads.
        found: Slot,
    },
    /// A port has another flow control.
    FlowControl {
        /// Where.
        port: Slot,
        /// Which it has.
        found: FlowControlMode,
        /// Which it should.
        wanted: FlowControlMode,
    },
}

/// Everything in which `found` differs from `wanted`; nothing if they are the same.
/// Cost: O(entries + ports · VLANs).
///
/// # Panics
/// If the states do not have the same number of ports.
pub fn drift(found: &SwitchConfig, wanted: &SwitchConfig) -> Vec<Drift> {
    assert_eq!(found.ports.len(), wanted.ports.len(), "both states are of one switch");
    let mut drifts = Vec::new();
    if found.spanning_tree != wanted.spanning_tree {
        drifts.push(Drift::SpanningTree { found: found.spanning_tree });
    }
    if found.lldp.is_some_and(|lldp| wanted.lldp.is_some_and(|wanted| wanted != lldp)) {
        drifts.extend(found.lldp.map(|found| Drift::Lldp { found }));
    }
    drifts.extend(found.snooping.difference(&wanted.snooping).map(|found| Drift::Snooping { found: *found }));
    drifts.extend(wanted.snooping.difference(&found.snooping).map(|wanted| Drift::NoSnooping { wanted: *wanted }));
    let without = |one: &VlanSet, other: &VlanSet| -> VlanSet { one.iter().filter(|v| !other.contains(*v)).collect() };
    let some = |vlans: VlanSet, make: &dyn Fn(VlanSet) -> Drift| (!vlans.is_empty()).then(|| make(vlans));
    drifts.extend(some(without(&wanted.vlans, &found.vlans), &Drift::NoVlan));
    drifts.extend(some(without(&found.vlans, &wanted.vlans), &Drift::ForeignVlan));
    let mut flow_control = Vec::new();
    for (index, (is, should)) in found.ports.iter().zip(&wanted.ports).enumerate() {
        let port = Slot::new(index);
        if is.admin != should.admin {
            drifts.push(Drift::Admin { port, found: is.admin });
        }
        if is.pvid != should.pvid {
            drifts.push(Drift::Pvid { port, found: is.pvid, wanted: should.pvid });
        }
        if is.ingress_filter != should.ingress_filter {
            drifts.push(Drift::IngressFilter { port, found: is.ingress_filter });
        }
        if is.learning != should.learning && ![is.learning, should.learning].contains(&PortLearning::Always) {
            drifts.push(Drift::Learning { port, found: is.learning });
        }
        if let (Some(found), Some(wanted)) = (is.blocked, should.blocked) {
            drifts.extend((found != wanted).then_some(Drift::Floods { port, found, wanted }));
        }
        if let (Some(found), Some(wanted)) = (is.storm_limits, should.storm_limits) {
            drifts.extend((found != wanted).then_some(Drift::StormControl { port, found, wanted }));
        }
        let lag_of = |lag| match lag {
            LagMembership::Of(lag) => Some(Some(lag)),
            LagMembership::Alone => Some(None),
            LagMembership::Unsaid => None,
        };
        if let (Some(found), Some(wanted)) = (lag_of(is.lag), lag_of(should.lag)) {
            drifts.extend((found != wanted).then_some(Drift::Lag { port, found, wanted }));
        }
        let (members, wanted) = (is.members(), should.members());
        drifts.extend(some(without(&wanted, &members), &|vlans| Drift::Missing { port, vlans }));
        drifts.extend(some(without(&members, &wanted), &|vlans| Drift::Extra { port, vlans }));
        let other_form =
            wanted.iter().filter(|v| members.contains(*v) && is.tagged.contains(*v) != should.tagged.contains(*v));
        drifts.extend(some(other_form.collect(), &|vlans| Drift::Form { port, vlans }));
        if is.flow_control != should.flow_control {
            let (found, wanted) = (is.flow_control.clone(), should.flow_control.clone());
            flow_control.push(Drift::FlowControl { port, found, wanted });
        }
    }
    drifts.extend(entry_drift(&found.entries, &wanted.entries));
    drifts.extend(flow_control);
    drifts
}

fn entry_drift<'a>(found: &'a Entries, wanted: &'a Entries) -> impl Iterator<Item = Drift> + 'a {
    let unmet = wanted.iter().filter_map(|(key @ &(vlan, mac), &wanted)| match found.get(key) {
        Some(&found) if found == wanted => None,
        Some(&found) => Some(Drift::Astray { vlan, mac, found, wanted }),
        None => Some(Drift::NoEntry { vlan, mac, wanted }),
    });
    let foreign = found.iter().filter(|(key, _)| !wanted.contains_key(*key));
    unmet.chain(foreign.map(|(&(vlan, mac), &found)| Drift::ForeignEntry { vlan, mac, found }))
}

/// Storm control in words.
fn limit_words(limits: &StormLimits) -> String {
    let limited = FloodKind::ALL.iter().zip(limits);
    let words: Vec<String> =
        limited.filter_map(|(kind, limit)| limit.map(|limit| format!("{kind} {limit} %"))).collect();
    if words.is_empty() { "none".to_owned() } else { format!("({})", words.join(", ")) }
}

impl Drift {
    /// What differs, in words. `config` is either of the two states.
    pub fn sentence(&self, config: &SwitchConfig) -> String {
        let name = |slot: &Slot| config.port(*slot).name.as_str();
        let pvid = |pvid: &Option<VlanId>| pvid.map_or_else(|| "none".to_owned(), |vlan| vlan.to_string());
        match self {
            Self::SpanningTree { found: SpanningTree::On } => {
                "spanning tree is on, and would block cables that the plan uses".to_owned()
            }
            Self::SpanningTree { found: SpanningTree::Off } => "spanning tree is off".to_owned(),
            Self::Admin { port, found: Admin::Down } => format!("port {} is administratively down", name(port)),
            Self::Admin { port, found: Admin::Up } => {
                format!("port {} is up, and the plan has it administratively down", name(port))
            }
            Self::Pvid { port, found, wanted } => {
                format!("port {} has PVID {} instead of {}", name(port), pvid(found), pvid(wanted))
            }
            Self::IngressFilter { port, found: IngressFilter::Off } => {
                format!(
                    "port {} does not filter at ingress: it takes frames of VLANs that it is not a member of",
                    name(port)
                )
            }
            Self::IngressFilter { port, found: IngressFilter::On } => format!("port {} filters at ingress", name(port)),
            Self::Learning { port, found: PortLearning::Off } => format!("port {} does not learn", name(port)),
            Self::Learning { port, found: PortLearning::On | PortLearning::Always } => {
                format!("port {} learns, and the plan has it go by static entries alone", name(port))
            }
            Self::Floods { port, found, wanted } => {
                format!("port {} blocks floods of {found} instead of {wanted}", name(port))
            }
            Self::StormControl { port, found, wanted } => {
                let (found, wanted) = (limit_words(found), limit_words(wanted));
                format!("port {} has storm control {found} instead of {wanted}", name(port))
            }
            Self::Lag { port, found: None, wanted } => {
                let wanted = wanted.as_ref().map_or("none", name);
                format!("port {} is not in a LAG; the plan has it in {wanted}", name(port))
            }
            Self::Lag { port, found: Some(found), wanted } => {
                let wanted = wanted.as_ref().map_or("none", name);
                format!("port {} is a member of {} instead of {wanted}", name(port), name(found))
            }
            Self::Lldp { found: Lldp::Off } => {
                "LLDP is off, so nobody can tell which cable is plugged in where".to_owned()
            }
            Self::Lldp { found: Lldp::On } => "LLDP is on".to_owned(),
            Self::NoSnooping { wanted } => format!("{wanted} is off"),
            Self::Snooping { found } => format!("{found} is on, so {}", found.harm()),
            Self::Missing { port, vlans } => format!("port {} is not a member of {}", name(port), vlan_words(vlans)),
            Self::Extra { port, vlans } => {
                format!("port {} is a member of {}, against the plan", name(port), vlan_words(vlans))
            }
            Self::Form { port, vlans } => {
                format!("port {} is a member of {}, but not tagged as the plan has it", name(port), vlan_words(vlans))
            }
            Self::NoVlan(vlans) => format!("{} is missing", vlan_words(vlans)),
            Self::ForeignVlan(vlans) => format!("{} exists and is not in the plan", vlan_words(vlans)),
            Self::NoEntry { vlan, mac, wanted } => {
                format!("the entry of {mac} in VLAN {vlan} to port {} is missing", name(wanted))
            }
            Self::Astray { vlan, mac, found, wanted } => {
                format!("the entry of {mac} in VLAN {vlan} leads to port {} instead of {}", name(found), name(wanted))
            }
            Self::ForeignEntry { vlan, mac, found } => {
                format!("the static entry of {mac} in VLAN {vlan} to port {} is not in the plan", name(found))
            }
            Self::FlowControl { port, found, wanted } => {
                format!("port {} has {} instead of {}", name(port), flow_words(found), flow_words(wanted))
            }
        }
    }

    /// Whether no standard object of SNMP sets it.
    pub const fn is_beyond_snmp(&self) -> bool {
        matches!(self, Self::Lag { .. } | Self::FlowControl { wanted: FlowControlMode::Pfc { .. }, .. })
    }

    /// What to do about it: deploying the plan again mends whatever can be written.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::ForeignEntry { .. } => "deploy again to remove it",
            Self::Lag { .. } | Self::FlowControl { wanted: FlowControlMode::Pfc { .. }, .. } => {
                "set it by the switch's own commands"
            }
            _ => "deploy again",
        }
    }
}

fn vlan_words(vlans: &VlanSet) -> String {
    let runs: Vec<String> = (vlans.runs().into_iter())
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    let one = runs.len() == 1 && !runs[0].contains('-');
    format!("{} {}", if one { "VLAN" } else { "VLANs" }, runs.join(","))
}

fn flow_words(mode: &FlowControlMode) -> String {
    match mode {
        FlowControlMode::Off => "no flow control".to_owned(),
        FlowControlMode::Pause => "PAUSE".to_owned(),
        FlowControlMode::Pfc { lanes } => format!("priority flow control on {lanes} lanes"),
    }
}

#[cfg(test)]
mod tests {
    use fabric::StormLimit;

    use super::*;

    fn vlan(id: u16) -> VlanId {
        VlanId::new(id).expect("in range")
    }

    fn wanted() -> SwitchConfig {
        let mut config = SwitchConfig::blank(["p1".to_owned(), "p2".to_owned()]);
        config.vlans = [vlan(2), vlan(3)].into_iter().collect();
        config.lldp = Some(Lldp::On);
        for port in &mut config.ports {
            port.admin = Admin::Up;
            port.flow_control = FlowControlMode::Pause;
        }
        config.ports[0].untagged = config.vlans.clone();
        config.ports[0].pvid = Some(vlan(2));
        config.ports[1].tagged = config.vlans.clone();
        config.entries.insert((vlan(2), Mac::local(1)), Slot::new(1));
        config
    }

    #[test]
    fn every_difference_has_its_sentence_and_no_other() {
        type Spoil = fn(&mut SwitchConfig);
        let cases: [(Spoil, &str); 20] = [
            (|c| c.spanning_tree = SpanningTree::On, "spanning tree is on"),
            (|c| c.ports[1].admin = Admin::Down, "port p2 is administratively down"),
            (|c| c.ports[0].pvid = Some(vlan(3)), "port p1 has PVID 3 instead of 2"),
            (|c| c.ports[0].pvid = None, "port p1 has PVID none instead of 2"),
            (|c| c.ports[1].ingress_filter = IngressFilter::Off, "port p2 does not filter at ingress"),
            (
                |c| c.ports[1].learning = PortLearning::On,
                "port p2 learns, and the plan has it go by static entries alone",
            ),
            (
                |c| c.ports[1].blocked = Some(FloodSet::ALL),
                "port p2 blocks floods of unknown-unicast,multicast,broadcast instead of none",
            ),
            (
                |c| c.ports[1].storm_limits = Some([None, None, StormLimit::new(5)]),
                "port p2 has storm control (broadcast 5 %) instead of none",
            ),
            (|c| c.ports[1].lag = LagMembership::Of(Slot::new(0)), "port p2 is a member of p1 instead of none"),
            (|c| c.lldp = Some(Lldp::Off), "LLDP is off, so nobody can tell which cable is plugged in where"),
            (|c| _ = c.snooping.insert(Snooping::Igmp), "IGMP snooping is on, so IPv4 multicasts reach only"),
            (|c| _ = c.snooping.insert(Snooping::Mld), "MLD snooping is on, so IPv6 multicasts, and so neighbour"),
            (|c| _ = c.ports[1].tagged.remove(vlan(3)), "port p2 is not a member of VLAN 3"),
            (|c| _ = c.ports[1].untagged.insert(vlan(9)), "port p2 is a member of VLAN 9, against the plan"),
            (
                |c| {
                    c.ports[1].tagged.remove(vlan(3));
                    c.ports[1].untagged.insert(vlan(3));
                },
                "port p2 is a member of VLAN 3, but not tagged as the plan has it",
            ),
            (|c| _ = c.vlans.insert(vlan(9)), "VLAN 9 exists and is not in the plan"),
            (|c| _ = c.entries.insert((vlan(3), Mac::local(7)), Slot::new(0)), "to port p1 is not in the plan"),
            (|c| _ = c.entries.insert((vlan(2), Mac::local(1)), Slot::new(0)), "leads to port p1 instead of p2"),
            (|c| c.entries.clear(), "to port p2 is missing"),
            (|c| c.ports[0].flow_control = FlowControlMode::Off, "port p1 has no flow control instead of PAUSE"),
        ];
        assert_eq!(drift(&wanted(), &wanted()), []);
        let mut always = wanted();
        always.ports.iter_mut().for_each(|port| port.learning = PortLearning::Always);
        assert_eq!(drift(&always, &wanted()), []);
        for (spoil, expect) in cases {
            let mut found = wanted();
            spoil(&mut found);
            let sentences: Vec<String> = drift(&found, &wanted()).iter().map(|d| d.sentence(&found)).collect();
            assert!(matches!(sentences.as_slice(), [only] if only.contains(expect)), "{expect}: {sentences:?}");
        }
    }
}
