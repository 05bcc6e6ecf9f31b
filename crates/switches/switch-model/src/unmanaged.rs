//! Ports that a plan does not name, and what becomes of them.
//!
//! ```text
//!   named   p1 p2 p3   VLANs 2-5
//!   others  p4         VLAN 3       in the way: shut and in no VLAN, as a plan leaves ports that it has no use for
//!           p5         VLAN 1       left alone, as it came out of its box
//!           p6         VLAN 4000    left alone, and VLAN 4000 with it: no named port is in it, and the plan has none such
//! ```
//! VLAN 1 counts only where it is the plan's own: for management in band. Then a port that was never told anything is in
//! it, and a cable between two such ports would close a ring.

use std::collections::BTreeSet;

use fabric::{VlanId, VlanSet};

use crate::{PortConfig, SwitchConfig, align};

/// Names of the ports from position `named` on that are in the way: they have to do with a VLAN of `wanted`, or with one
/// that a port before them has to do with, or another that is in the way. VLAN 1 counts only if it is wanted.
pub fn in_the_way(whole: &SwitchConfig, named: usize, wanted: &VlanSet) -> Vec<String> {
    let used = uses(whole);
    let mut claimed: BTreeSet<VlanId> = wanted.iter().collect();
    claimed.extend(used[..named].iter().flatten());
    if !wanted.contains(VlanId::MIN) {
        claimed.remove(&VlanId::MIN);
    }
    let mut caught = BTreeSet::new();
    // What one that is caught drags along may catch others.
    while let Some(next) = (named..used.len()).find(|port| !caught.contains(port) && !used[*port].is_disjoint(&claimed))
    {
        caught.insert(next);
        claimed.extend(used[next].iter().filter(|vlan| **vlan != VlanId::MIN));
    }
    caught.into_iter().map(|port| whole.ports[port].name.clone()).collect()
}

/// The state of the ports before position `named`, without the others and VLANs that only those have to do with.
pub fn without_others(whole: SwitchConfig, named: usize) -> SwitchConfig {
    if whole.ports.len() <= named {
        return whole;
    }
    let used = uses(&whole);
    let own: BTreeSet<VlanId> = used[..named].iter().flatten().copied().collect();
    let foreign = used[named..].iter().flatten().filter(|vlan| !own.contains(vlan));
    let names: Vec<String> = whole.ports[..named].iter().map(|port| port.name.clone()).collect();
    let mut config = align(&whole, &names);
    for vlan in foreign {
        config.vlans.remove(*vlan);
    }
    config
}

/// `uses[port]`: VLANs that a port has to do with: as a member, by its PVID, or by a static entry.
fn uses(config: &SwitchConfig) -> Vec<BTreeSet<VlanId>> {
    let own = |port: &PortConfig| port.members().iter().chain(port.pvid).collect::<BTreeSet<VlanId>>();
    let mut uses: Vec<BTreeSet<VlanId>> = config.ports.iter().map(own).collect();
    for (&(vlan, _), &slot) in &config.entries {
        uses[slot.index()].insert(vlan);
    }
    uses
}

impl SwitchConfig {
    /// The same state with further ports, shut and in no VLAN.
    pub fn with_parked<'a>(&self, names: impl IntoIterator<Item = &'a String>) -> Self {
        let mut config = self.clone();
        config.ports.extend(names.into_iter().cloned().map(PortConfig::blank));
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slot;

    fn vlans(ids: &[u16]) -> VlanSet {
        ids.iter().map(|id| VlanId::new(*id).expect("in range")).collect()
    }

    /// Ports `p1` and on, each a tagged member of these VLANs.
    fn switch(members: &[&[u16]]) -> SwitchConfig {
        let mut config = SwitchConfig::blank((1..=members.len()).map(|number| format!("p{number}")));
        for (port, ids) in config.ports.iter_mut().zip(members) {
            port.tagged = vlans(ids);
        }
        config.vlans = config.memberships();
        config.vlans.remove(VlanId::MIN);
        config
    }

    #[test]
    fn only_what_is_in_the_way_is_parked() {
        let check = |members: &[&[u16]], wanted: &[u16], expected: &[&str]| {
            assert_eq!(in_the_way(&switch(members), 1, &vlans(wanted)), expected, "{members:?} {wanted:?}");
        };
        check(&[&[2, 3], &[3], &[1], &[4000]], &[], &["p2"]);
        check(&[&[1, 2], &[1], &[]], &[], &[]);
        // The plan wants their VLAN, though no named port is in it yet.
        check(&[&[], &[7], &[8]], &[7], &["p2"]);
        // One drags the other along, whichever comes first.
        check(&[&[2], &[9], &[2, 9], &[8]], &[], &["p2", "p3"]);
        // VLAN 1 is where everything comes out of its box, unless the plan is about it.
        check(&[&[1, 2], &[1], &[1, 8], &[8], &[9]], &[2], &[]);
        check(&[&[1, 2], &[1], &[1, 8], &[8], &[9]], &[1, 2], &["p2", "p3", "p4"]);
    }

    #[test]
    fn a_pvid_or_an_entry_is_in_the_way_as_well() {
        let mut config = switch(&[&[2], &[], &[]]);
        config.ports[1].pvid = VlanId::new(2).ok();
        config.entries.insert((VlanId::new(2).expect("valid"), fabric::Mac::local(1)), Slot::new(2));
        assert_eq!(in_the_way(&config, 1, &VlanSet::new()), ["p2", "p3"]);
        config.ports[1].pvid = Some(VlanId::MIN);
        config.entries.clear();
        assert!(in_the_way(&config, 1, &VlanSet::new()).is_empty());
    }

    #[test]
    fn vlans_of_others_alone_are_not_seen() {
        let whole = switch(&[&[2, 3], &[3], &[1, 4000]]);
        let seen = without_others(whole.clone(), 1);
        assert_eq!((seen.ports.len(), seen.vlans.to_string()), (1, "2-3".to_owned()));
        assert_eq!(without_others(whole.clone(), 3), whole);
        // A VLAN without ports is nobody's, and goes.
        let mut empty = whole;
        empty.vlans.extend(vlans(&[50]).iter());
        assert_eq!(without_others(empty, 1).vlans.to_string(), "2-3,50");
    }
}
