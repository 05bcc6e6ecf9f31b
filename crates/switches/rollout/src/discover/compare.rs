//! The cables that were found against those that should be, and the remedies.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Attachment, PortId, Topology};

/// How a cabling differs from the one that is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Two cables are in each other's holes.
    Swapped {
        /// A plug that is in the wrong hole, and the hole where it belongs.
        plug: (PortId, PortId),
        /// The cables as they should be.
        links: [(PortId, PortId); 2],
    },
    /// A cable is in another hole at one end.
    Misplaced {
        /// The end that is right.
        from: PortId,
        /// Where the other end should be.
        expected: PortId,
        /// Where it is.
        found: PortId,
    },
    /// A cable that should be there is not.
    Missing {
        /// Its ends.
        ends: (PortId, PortId),
    },
    /// A cable is there that should not be.
    Extra {
        /// Its ends.
        ends: (PortId, PortId),
    },
}

/// Compares the cables that were found, as pairs of ports of the topology, with those that the topology has. A cable in a member of a
/// LAG is one of the LAG's, whichever member of the other end it leads to.
pub fn compare(topology: &Topology, found: &[(PortId, PortId)]) -> Vec<Mismatch> {
    let mut at: BTreeMap<PortId, PortId> = BTreeMap::new();
    let expected_of = |port: PortId| match topology.port(port).attachment {
        Attachment::Link(link) => {
            let link = topology.link(link);
            Some(if link.a == port { link.b } else { link.a })
        }
        Attachment::Host(_) | Attachment::Nothing | Attachment::Member(_) => None,
    };
    let logical = |port: &PortId| topology.logical_port(*port);
    let found: BTreeSet<[PortId; 2]> = found.iter().map(|(a, b)| [logical(a), logical(b)]).collect();
    // Where one member of a LAG is elsewhere, what the others say of the LAG holds.
    let (fitting, elsewhere): (Vec<_>, Vec<_>) = found.iter().copied().partition(|[a, b]| expected_of(*a) == Some(*b));
    for [a, b] in elsewhere.into_iter().chain(fitting) {
        at.insert(a, b);
        at.insert(b, a);
    }
    let mut mismatches = Vec::new();
    let mut explained: BTreeSet<PortId> = BTreeSet::new();
    for link in topology.links() {
        let (a, b) = (link.a, link.b);
        if at.get(&a) == Some(&b) || explained.contains(&a) || explained.contains(&b) {
            continue;
        }
        match (at.get(&a).copied(), at.get(&b).copied()) {
            // a leads to d and b to c, where c and d belong together: swap the plugs in b and d.
            (Some(d), Some(c)) if expected_of(c) == Some(d) => {
                mismatches.push(Mismatch::Swapped { plug: (d, b), links: [(a, b), (c, d)] });
                explained.extend([a, b, c, d]);
            }
            (Some(found), None) => {
                mismatches.push(Mismatch::Misplaced { from: a, expected: b, found });
                explained.extend([a, b, found]);
            }
            (None, Some(found)) => {
                mismatches.push(Mismatch::Misplaced { from: b, expected: a, found });
                explained.extend([a, b, found]);
            }
            _ => {
                mismatches.push(Mismatch::Missing { ends: (a, b) });
                explained.extend([a, b]);
            }
        }
    }
    for [a, b] in found {
        if expected_of(a) != Some(b) && !explained.contains(&a) && !explained.contains(&b) {
            mismatches.push(Mismatch::Extra { ends: (a, b) });
        }
    }
    mismatches
}

impl Mismatch {
    /// The mismatch and its remedy, in a sentence.
    pub fn sentence(&self, topology: &Topology) -> String {
        let name = |port: PortId| topology.port_label(port);
        match self {
            Self::Swapped { plug: (found, expected), links: [(a, b), (c, d)] } => format!(
                "two cables are swapped: {} should lead to {} and {} to {}; exchange the plugs in {} and {}",
                name(*a),
                name(*b),
                name(*c),
                name(*d),
                name(*found),
                name(*expected)
            ),
            Self::Misplaced { from, expected, found } => {
                format!("the cable from {} is in {}; move that plug to {}", name(*from), name(*found), name(*expected))
            }
            Self::Missing { ends: (a, b) } => {
                format!("no cable between {} and {}; plug one in, or see whether it is dead", name(*a), name(*b))
            }
            Self::Extra { ends: (a, b) } => {
                format!(
                    "a cable between {} and {} that no plan knows; pull it, or plan again with it",
                    name(*a),
                    name(*b)
                )
            }
        }
    }
}
