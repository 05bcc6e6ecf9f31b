//! Named groups: switches and links that fail together, such as those of one power feed or one line card.
//!
//! ```text
//!   feed-a   s0, s1                     both lose their power, with all their links and hosts
//!   card-3   s5:1 -- s6:2, s5:2 -- s7:2     two links fail; s5 itself goes on
//! ```

use crate::{LinkId, SwitchId};

/// What names of groups begin with that are made for two links.
pub(crate) const LINK_PAIR: char = '+';

/// Switches and links that fail together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Unique among groups and switches.
    pub name: String,
    /// Its switches, ascending. All links of a switch fail with it.
    pub switches: Vec<SwitchId>,
    /// Its links, ascending; those of its switches may be among them.
    pub links: Vec<LinkId>,
}

impl Group {
    /// Whether it has no members, as where all of them are out of service.
    pub fn is_empty(&self) -> bool {
        self.switches.is_empty() && self.links.is_empty()
    }

    /// Whether it was made for two links, by [`Topology::with_link_pairs`](crate::Topology::with_link_pairs); one of them may be out of service since.
    pub fn is_link_pair(&self) -> bool {
        self.name.starts_with(LINK_PAIR)
    }
}
