//! A group for every two links, so that whatever is done for groups is done for the failure of any two.
//!
//! ```text
//!   +s0.1+s1.2   s0:1 -- s1:1, s1:2 -- s2:1     named after a port of either
//! ```

use std::collections::BTreeSet;

use crate::{Fault, GROUPS_MAX, Group, LinkId, NAME_BYTES_MAX, Topology, group::LINK_PAIR, name::is_usable};

impl Topology {
    /// The same with a group for every two links, beside the groups that people have named.
    ///
    /// # Errors
    /// [`Fault::TooMany`], if that takes more groups than a topology has.
    pub fn with_link_pairs(&self) -> Result<Self, Fault> {
        let mut groups = self.without_link_pairs().groups().to_vec();
        let mut names: BTreeSet<String> = groups.iter().map(|group| group.name.clone()).collect();
        names.extend(self.switches().iter().map(|switch| switch.name.clone()));
        let pairs = self.link_ids().flat_map(|a| self.link_ids().skip(a.index() + 1).map(move |b| [a, b]));
        for links in pairs {
            if groups.len() == GROUPS_MAX {
                return Err(Fault::TooMany { what: "groups", limit: GROUPS_MAX });
            }
            let spoken: String =
                links.iter().flat_map(|link| [LINK_PAIR.to_string(), self.port_in_name(*link)]).collect();
            let numbered = || format!("{LINK_PAIR}{}{LINK_PAIR}{}", links[0].index(), links[1].index());
            let fits = spoken.len() <= NAME_BYTES_MAX && !names.contains(&spoken);
            let name = if fits { spoken } else { numbered() };
            names.insert(name.clone());
            groups.push(Group { name, switches: Vec::new(), links: links.to_vec() });
        }
        Ok(self.clone().with_groups(groups))
    }

    /// The same with the groups that people have named alone.
    #[must_use]
    pub fn without_link_pairs(&self) -> Self {
        let named = self.groups().iter().filter(|group| !group.is_link_pair()).cloned().collect();
        self.clone().with_groups(named)
    }

    /// One end of a link as names can hold it.
    fn port_in_name(&self, link: LinkId) -> String {
        let port = self.port(self.link(link).a);
        let words = [self.switch(port.switch).name.as_str(), ".", port.name.as_str()];
        words.concat().chars().map(|c| if is_usable(c) { c } else { '_' }).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::{SwitchSpec, TopologyBuilder};

    #[test]
    fn every_two_links_are_a_group_whatever_ports_are_called() {
        let mut builder = TopologyBuilder::new();
        let switches: Vec<_> = (0..3)
            .map(|number| builder.add_switch(&format!("s{number}"), SwitchSpec::default()).expect("a fresh name"))
            .collect();
        let mut links = Vec::new();
        for (number, (a, b)) in [(0, 1), (1, 2), (2, 0)].into_iter().enumerate() {
            // What names of groups cannot hold becomes an underscore, and two ports may then be called alike.
            let [from, to] = [format!("e 1{}", [" ", ":", "("][number]), format!("x{number}")];
            let [a, b] = [(a, from), (b, to)]
                .map(|(at, name)| builder.add_port(switches[at], name.trim()).expect("a fresh name"));
            links.push(builder.add_link(a, b, 1_000_000_000).expect("free ports"));
        }
        builder.add_group("card-3", &[], &links[..2]).expect("a fresh name");
        let topology = builder.finish().expect("connected");
        let pairs = topology.with_link_pairs().expect("few");
        let names: Vec<&str> = pairs.groups().iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["card-3", "+s0.e_1+s1.e_1_", "+s0.e_1+s2.e_1_", "+s1.e_1_+s2.e_1_"]);
        assert_eq!(pairs.with_link_pairs().expect("few"), pairs);
        assert_eq!(pairs.without_link_pairs(), topology);
    }
}
