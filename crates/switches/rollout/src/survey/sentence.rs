//! What a survey found, in sentences: the subject, what was found, what was expected, and the way out.

use std::net::IpAddr;

use fabric::{Attachment, SwitchId, Topology};

use super::{Misfit, Neighbour, Note, Proof, Unconfirmed};
use switch_model::identity::{Comparison, Likeness};

impl Misfit {
    /// The misfit and its remedy, in a sentence.
    pub fn sentence(&self, topology: &Topology) -> String {
        let name = |switch: &SwitchId| topology.switch(*switch).name.as_str();
        let at = |switch: &SwitchId| address(topology.switch(*switch).mgmt);
        match self {
            Self::Exchanged { switches, proof } => {
                let names: Vec<&str> = switches.iter().map(name).collect();
                let why = match proof {
                    Proof::Identity => "by their identities",
                    Proof::Cabling => "by their cables",
                    Proof::Name => "by their sysNames",
                };
                let answers = switches.iter().zip(switches.iter().cycle().skip(1));
                let answers: Vec<String> =
                    answers.map(|(asked, found)| format!("{} is {}", at(asked), name(found))).collect();
                let mend = switches.iter().zip(switches.iter().cycle().skip(1));
                let mend: Vec<String> =
                    mend.map(|(asked, found)| format!("mgmt: {} to {}", at(asked), name(found))).collect();
                format!(
                    "the management addresses of {} are exchanged ({why}): {}; in the topology give {}, and plan again",
                    list(&names),
                    list(&answers),
                    list(&mend)
                )
            }
            Self::OtherSwitch { switch, answers: Some(other), .. } => format!(
                "{} answers at {}, the address of {}; correct mgmt: of both in the topology, and plan again",
                name(other),
                at(switch),
                name(switch)
            ),
            Self::OtherSwitch { switch, answers: None, comparison, found } => format!(
                "{}: another switch answers at {}: its {} not the topology's ({}); if {} was replaced: deploy --replaced {}",
                name(switch),
                at(switch),
                differing(comparison),
                found.sentence(),
                name(switch),
                name(switch)
            ),
            Self::OneDevice { switches: [a, b], found } => format!(
                "{} and {} are one switch ({}), which answers at {} and {}; correct mgmt: of one of them in the topology, and \
                 plan again",
                name(a),
                name(b),
                found.sentence(),
                at(a),
                at(b)
            ),
            Self::Cable(mismatch) => mismatch.sentence(topology),
            Self::Elsewhere { port, expected, heard } => format!(
                "{} hears {}, where the plan has {}; move the plug in {} to the cable from {}",
                topology.port_label(*port),
                heard.sentence(topology),
                topology.port_label(*expected),
                topology.port_label(*port),
                topology.port_label(*expected)
            ),
            Self::PatchCord { port, heard } => {
                let meant = match topology.port(*port).attachment {
                    Attachment::Host(host) => format!("host {}", topology.host(host).name),
                    Attachment::Link(_) | Attachment::Nothing | Attachment::Member(_) => topology
                        .standby_edge_at(*port)
                        .map_or_else(|| "the controller".to_owned(), |edge| format!("the standby edge {}", edge.name)),
                };
                format!(
                    "{} hears {}, where the plan has {meant}; pull that cable, and plug {meant} in",
                    topology.port_label(*port),
                    heard.sentence(topology)
                )
            }
        }
    }
}

impl Neighbour {
    /// Who it is, in words.
    pub fn sentence(&self, topology: &Topology) -> String {
        match self {
            Self::Port(port) => topology.port_label(*port),
            Self::Switch(switch, port) => {
                format!("{} at its port {port:?}, which the plan does not have", topology.switch(*switch).name)
            }
            Self::Other(text) => format!("{text}, which is no switch of the plan"),
        }
    }
}

impl Unconfirmed {
    /// Why nobody can see the cable, and what would show it.
    pub fn sentence(&self, topology: &Topology) -> String {
        match self {
            Self::Shut(port) => format!("{} is administratively down", topology.port_label(*port)),
            Self::Down(port) => format!("{} is down; plug the cable in", topology.port_label(*port)),
            Self::Crowd(port, count) => format!(
                "{} hears {count} devices at once; a switch forgets a neighbour that was unplugged after up to 2 minutes",
                topology.port_label(*port)
            ),
            Self::UnknownPort(port, named) => {
                format!("{} hears the other switch at a port that it calls {named:?}", topology.port_label(*port))
            }
            Self::OneWay(port) => format!(
                "{} hears the other end, which does not hear it; turn LLDP on there, or see whether one fibre is dead",
                topology.port_label(*port)
            ),
            Self::NotRead(switch) => {
                format!(
                    "{} does not say by LLDP whom it hears, or is read by its command line",
                    topology.switch(*switch).name
                )
            }
            Self::NoLldp => "neither end hears anything; turn LLDP on at both".to_owned(),
        }
    }
}

impl Note {
    /// The note, in a sentence.
    pub fn sentence(&self, topology: &Topology) -> String {
        let name = |switch: &SwitchId| topology.switch(*switch).name.as_str();
        match self {
            Self::Renamed { switch, system } => format!("{} calls itself {system}", name(switch)),
            Self::IdentityChanged { switch, comparison } => format!(
                "{} is the switch of the topology, though its {} not the topology's; discover again to renew id:",
                name(switch),
                differing(comparison)
            ),
            Self::Replaced { switch, found } => {
                let id = found.for_topology();
                let items: Vec<String> = id.items().iter().map(|(key, text)| format!("{key}: {text:?}")).collect();
                format!(
                    "{} was replaced; so that the topology knows it: id: {{{}}} there, or discover again, and plan with --previous",
                    name(switch),
                    items.join(", ")
                )
            }
            Self::HostElsewhere { host, found } => {
                let known = topology.host(*host);
                format!(
                    "host {} is on {}, where the plan has it on {}; move that plug, or plan again",
                    known.name,
                    topology.port_label(*found),
                    topology.port_label(known.port)
                )
            }
            Self::Spare { ends: (a, b) } => format!(
                "a cable between {} and {}, which the plan leaves unused and shuts",
                topology.port_label(*a),
                topology.port_label(*b)
            ),
        }
    }
}

/// The items that differ, with their verb: `chassis identifier and serial number are`.
fn differing(comparison: &Comparison) -> String {
    let items = [
        (comparison.chassis, "chassis identifier"),
        (comparison.serial, "serial number"),
        (comparison.engine, "SNMP engine ID"),
    ];
    let items: Vec<&str> =
        items.into_iter().filter(|(likeness, _)| *likeness == Likeness::Different).map(|(_, what)| what).collect();
    format!("{} {}", list(&items), if items.len() == 1 { "is" } else { "are" })
}

pub(super) fn address(address: Option<IpAddr>) -> String {
    address.map_or_else(|| "no address".to_owned(), |address| address.to_string())
}

/// `a, b and c`.
fn list<T: AsRef<str>>(items: &[T]) -> String {
    let (last, rest) = match items.split_last() {
        Some((last, rest)) => (last.as_ref(), rest),
        None => return String::new(),
    };
    let rest: Vec<&str> = rest.iter().map(AsRef::as_ref).collect();
    if rest.is_empty() { last.to_owned() } else { format!("{} and {last}", rest.join(", ")) }
}
