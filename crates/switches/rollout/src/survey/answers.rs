//! Who answers at a switch's address, where the switch that the plan has there cannot be spoken to.
//!
//! ```text
//!   plan: hp 192.0.2.1, sg 192.0.2.2     192.0.2.1 refuses the ports of hp, and calls itself sg
//! ```
//! Switches of one model are told apart by the survey. Of unlike models the first request fails, by a port or a language that
//! the other switch does not have; what it says of itself then names the cause.

use fabric::{SwitchId, Topology};

use super::{relabel, sentence::address};
use switch_model::{
    identity::{Comparison, Identity, Likeness},
    printable::plain,
};

/// Longest part of sysDescr that is shown, in characters: the model and its version, as most agents begin.
const DESCRIPTION_LEN_MAX: usize = 60;

/// That another switch than `switch` answers at its address, what it says of itself, and both ways out; none where nothing
/// says so. `description` is its sysDescr.
pub fn other_answers(
    topology: &Topology,
    switch: SwitchId,
    found: &Identity,
    description: Option<&str>,
) -> Option<String> {
    let known = topology.switch(switch);
    let system = found.system.as_deref().filter(|system| !system.is_empty());
    let is_named = |other: SwitchId| system.is_some_and(|name| relabel::is_name(name, &topology.switch(other).name));
    let verdict = |other: SwitchId| Comparison::of(&topology.switch(other).identity, found).verdict();
    let others = || topology.switch_ids().filter(|other| *other != switch);
    if verdict(switch) == Likeness::Same {
        return None;
    }
    let by_identity = others().find(|other| verdict(*other) == Likeness::Same);
    // A name can be given to any switch, so one that has the right name counts as the right one unless its hardware is not.
    let by_name = || others().find(|other| is_named(*other) && verdict(*other) != Likeness::Different);
    let other = by_identity.or_else(|| if is_named(switch) { None } else { by_name() });
    let description = description.and_then(|text| text.lines().next()).map(str::trim).filter(|text| !text.is_empty());
    let shown = description.map(|text| format!("{:?}", text.chars().take(DESCRIPTION_LEN_MAX).collect::<String>()));
    let said: Vec<String> =
        [Some(found.sentence()), shown].into_iter().flatten().filter(|text| !text.is_empty()).collect();
    let said = plain(&said.join(", "));
    let place = format!("where the plan has {} ({})", known.name, known.model.name);
    let at = address(known.mgmt);
    match other {
        Some(other) => {
            let other = &topology.switch(other).name;
            Some(format!(
                "{other} answers at {at} ({said}), {place}; correct mgmt: of both in the topology and plan again, or give {} \
                 its address {at} back",
                known.name
            ))
        }
        None if verdict(switch) == Likeness::Different || (system.is_some() && !is_named(switch)) => Some(format!(
            "another switch seems to answer at {at} ({said}), {place}; correct mgmt: or model: of {} in the topology and plan \
             again, or give it its address {at} back",
            known.name
        )),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use fabric::{SwitchIdentity, SwitchSpec, TopologyBuilder};

    use super::*;

    /// hp at 192.0.2.1 has an id:, sg at 192.0.2.2 has none.
    fn topology() -> Topology {
        let mut builder = TopologyBuilder::new();
        for (last, name) in [(1, "hp"), (2, "sg")] {
            let mgmt = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)));
            let switch = builder.add_switch(name, SwitchSpec { model: None, mgmt }).expect("a new name");
            if name == "hp" {
                let identity = SwitchIdentity { serial: Some("TX1".to_owned()), ..SwitchIdentity::default() };
                builder.set_switch_identity(switch, identity).expect("a fine identity");
            }
        }
        let ports = [0, 1].map(|at| builder.add_port(SwitchId::new(at), "p1").expect("a new port"));
        builder.add_link(ports[0], ports[1], 1_000_000_000).expect("a new link");
        builder.finish().expect("connected")
    }

    fn found(system: &str, serial: &str) -> Identity {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Identity { system: text(system), serial: text(serial), ..Identity::default() }
    }

    #[test]
    fn exchanged_addresses_are_told_as_far_as_they_are_known() {
        let check = |switch: usize, system: &str, serial: &str, expect: Option<&str>| {
            let said = other_answers(&topology(), SwitchId::new(switch), &found(system, serial), Some("SG300-28\nx"));
            match expect {
                None => assert_eq!(said, None),
                Some(expect) => assert!(said.as_ref().is_some_and(|said| said.contains(expect)), "{said:?}"),
            }
        };
        check(
            0,
            "sg.example.org",
            "",
            Some("sg answers at 192.0.2.1 (sysName sg.example.org, \"SG300-28\"), where the plan has hp"),
        );
        check(
            0,
            "sg",
            "",
            Some("correct mgmt: of both in the topology and plan again, or give hp its address 192.0.2.1 back"),
        );
        check(0, "sg", "TX9", Some("sg answers at 192.0.2.1"));
        check(1, "switch", "TX1", Some("hp answers at 192.0.2.2 (sysName switch, serial number TX1"));
        check(1, "sg", "TX1", Some("hp answers at 192.0.2.2"));
        check(0, "switch", "", Some("another switch seems to answer at 192.0.2.1 (sysName switch"));
        check(0, "hp", "TX9", Some("another switch seems to answer at 192.0.2.1"));
        check(0, "hp", "", None);
        check(0, "sg", "TX1", None);
        check(0, "", "", None);
        check(1, "sg.example.org", "", None);
    }
}
