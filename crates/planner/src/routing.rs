//! What engines hand over: trees, and which of them each frame takes.

use std::{fmt, sync::Arc};

use fabric::{Assignment, Tagging, Topology, Tree};

/// An engine's routes.
#[derive(Clone, Debug)]
pub(crate) struct Routing {
    /// The trees; several may be the same.
    pub(crate) trees: Vec<Tree>,
    /// Which tree a frame takes, by position in `trees`.
    pub(crate) assignment: Assignment<usize>,
    /// `numbering[channel]`, if the engine has one: every route by source increases in it, and so may others.
    pub(crate) numbering: Option<Vec<u32>>,
    /// `lane[tree]`, if the engine has placed its trees; each lane is then free of cycles where trees spread from the hosts
    /// that use them.
    pub(crate) lane: Option<Vec<u8>>,
}

/// Why an engine does not apply to a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsuitable(String);

impl Unsuitable {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Unsuitable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Routing {
    /// Routes by source: `choice[host]` is a position in `trees`.
    pub(crate) fn by_source(trees: Vec<Tree>, choice: Vec<usize>) -> Self {
        Self { trees, assignment: Assignment::Source(choice), lane: None, numbering: None }
    }

    /// The same trees for another tagging mode.
    ///
    /// A tree serves its host in both directions: what spreads from it along the tree also gathers toward it. So trees
    /// by source are trees by destination, with every load reversed. With priorities, lower-numbered hosts come first,
    /// as in \[Miura\] 4. Routes that an engine has already made for pairs stay as they are.
    pub(crate) fn tagged(self, topology: &Topology, tagging: Tagging) -> Self {
        let Assignment::Source(choice) = &self.assignment else { return self };
        let choice = choice.clone();
        let assignment = match tagging {
            Tagging::Switch | Tagging::Source => Assignment::Source(choice),
            Tagging::Destination => Assignment::Destination { broadcast: choice.clone(), choice },
            Tagging::SourceDestination => {
                let count = topology.hosts().len() as u32;
                let priority = (0..count).map(|host| count - host).collect();
                Assignment::Priority { broadcast: choice.clone(), choice, priority }
            }
            Tagging::Pair => {
                let last = fabric::HostId::new(topology.hosts().len() - 1);
                let first = fabric::HostId::new(0);
                let mut rows = std::collections::BTreeMap::new();
                let mut row = |&choice: &usize| {
                    let row = || Arc::new(vec![fabric::HostRun { first, last, choice }]);
                    Arc::clone(rows.entry(choice).or_insert_with(row))
                };
                Assignment::Pair { unicast: choice.iter().map(&mut row).collect(), broadcast: choice }
            }
        };
        Self { assignment, ..self }
    }
}
