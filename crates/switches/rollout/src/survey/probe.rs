//! Confirms a cable without LLDP, by the state of its link: one end is shut, and the other end alone must follow.
//!
//! ```text
//!   shut s1:p3 ─▶ s2:p4 goes down, nothing else ─▶ open ─▶ shut s2:p4 ─▶ s1:p3 goes down, nothing else ─▶ one cable
//!              ─▶ s5:p1 goes down                ─▶ the cable from s1:p3 is in s5:p1
//!              ─▶ nothing goes down              ─▶ something stands between the ends: not confirmed
//! ```
//! Only ports that are up are shut, and they are opened again, so afterwards every port is as it was: no ring can come of it,
//! with spanning tree or without. What passed over the cable stops meanwhile.

use fabric::{LinkId, PortId, Topology};

use super::{Misfit, Neighbour};
use switch_model::sight::PortState;

/// One end was shut: which other ports went down, of those that were up before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The end.
    pub shut: PortId,
    /// The ports.
    pub followed: Vec<PortId>,
}

/// What became of a cable that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probed {
    /// Each end follows the other, and nothing else does.
    Confirmed,
    /// It is elsewhere.
    Elsewhere(Misfit),
    /// Shutting this end moved nothing.
    NothingFollowed(PortId),
    /// Shutting this end moved several ports, of which these are the first.
    SeveralFollowed(PortId, Vec<PortId>),
}

/// The ports that were up before and are not any more, but for the one that was shut. `before[switch]` and `during[switch]`
/// are the states of each switch's ports in the topology's order; none of a switch that does not say.
pub fn followed(
    topology: &Topology,
    shut: PortId,
    before: &[Option<Vec<PortState>>],
    during: &[Option<Vec<PortState>>],
) -> Vec<PortId> {
    let of = |switch: fabric::SwitchId| -> Vec<PortId> {
        let (Some(before), Some(during)) = (&before[switch.index()], &during[switch.index()]) else {
            return Vec::new();
        };
        let fell = |(_, (before, during)): &(PortId, (&PortState, &PortState))| {
            **before == PortState::Up && **during != PortState::Up
        };
        topology.port_ids(switch).zip(before.iter().zip(during)).filter(fell).map(|(port, _)| port).collect()
    };
    topology.switch_ids().flat_map(of).filter(|port| *port != shut).collect()
}

/// Judges a cable by two trials, one at each end.
pub fn judge_probe(topology: &Topology, link: LinkId, trials: &[Trial]) -> Probed {
    let ends = [topology.link(link).a, topology.link(link).b];
    for Trial { shut, followed } in trials {
        let expected = if *shut == ends[0] { ends[1] } else { ends[0] };
        match followed.as_slice() {
            [] => return Probed::NothingFollowed(*shut),
            [port] if *port == expected => {}
            [port] => {
                let heard = Neighbour::Port(*port);
                return Probed::Elsewhere(Misfit::Elsewhere { port: *shut, expected, heard });
            }
            several => return Probed::SeveralFollowed(*shut, several.iter().copied().take(3).collect()),
        }
    }
    match trials {
        [one, other] if one.shut != other.shut => Probed::Confirmed,
        // Half a proof is none.
        _ => Probed::NothingFollowed(ends[0]),
    }
}

impl Probed {
    /// What was found, in a sentence.
    pub fn sentence(&self, topology: &Topology) -> String {
        match self {
            Self::Confirmed => "confirmed: each end follows the other, and nothing else does".to_owned(),
            Self::Elsewhere(misfit) => misfit.sentence(topology),
            Self::NothingFollowed(port) => {
                format!("not confirmed: nothing follows {}; is something between the ends?", topology.port_label(*port))
            }
            Self::SeveralFollowed(port, several) => {
                let several: Vec<String> = several.iter().map(|port| topology.port_label(*port)).collect();
                format!("not confirmed: several ports follow {}: {}", topology.port_label(*port), several.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fabric::generate::{Kind, Options, generate};

    use super::*;

    #[test]
    fn a_cable_is_confirmed_by_both_ends_and_nothing_else() {
        let kind = Kind::parse("torus", &["3x3".to_owned()]).expect("a kind");
        let topology = generate(&kind, &Options::default()).expect("a torus");
        let link = LinkId::new(4);
        let (a, b) = (topology.link(link).a, topology.link(link).b);
        let other = topology.link(LinkId::new(7)).a;
        let trial = |shut: PortId, followed: &[PortId]| Trial { shut, followed: followed.to_vec() };
        let check = |trials: &[Trial], expect: Probed| assert_eq!(judge_probe(&topology, link, trials), expect);
        check(&[trial(a, &[b]), trial(b, &[a])], Probed::Confirmed);
        check(&[trial(a, &[b])], Probed::NothingFollowed(a));
        check(&[trial(a, &[b]), trial(b, &[])], Probed::NothingFollowed(b));
        check(&[trial(a, &[b, other])], Probed::SeveralFollowed(a, vec![b, other]));
        let heard = Neighbour::Port(other);
        check(&[trial(a, &[other])], Probed::Elsewhere(Misfit::Elsewhere { port: a, expected: b, heard }));
        // The states that this is concluded from.
        let up: Vec<Option<Vec<PortState>>> =
            topology.switch_ids().map(|switch| Some(vec![PortState::Up; topology.port_ids(switch).len()])).collect();
        let mut during = up.clone();
        for (port, state) in [(a, PortState::Shut), (b, PortState::Down)] {
            let switch = topology.port(port).switch;
            let slot = port.index() - topology.switch_ports(switch).start;
            during[switch.index()].as_mut().expect("it says")[slot] = state;
        }
        assert_eq!(followed(&topology, a, &up, &during), [b]);
        assert_eq!(followed(&topology, b, &during, &up), []);
    }
}
