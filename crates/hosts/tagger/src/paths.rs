//! Which paths a host watches, and where its frames go when some are sick.
//!
//! ```text
//!   own switch sw1        sw2: 02:…:05, 02:…:06        paths: sw2 by VLAN 2, sw2 by VLAN 3
//!   02:…:05 ─▶ 2          VLAN 2 toward sw2 is sick    02:…:05 ─▶ 3 until it heals
//! ```
//! One path stands for all hosts behind a switch, so probes grow with switches, not with hosts. Hosts of the own switch need
//! none: no cable between switches is on the way to them.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Mac, VlanId, VlanSet};

use crate::{
    health::PathId,
    table::{Route, TaggingTable},
};

/// The paths of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Hosts behind each other switch, ascending by address.
    sites: Vec<Vec<Mac>>,
    site_of: BTreeMap<Mac, usize>,
    vlans: Vec<VlanId>,
    /// Paths that are watched, but that nothing is moved to.
    barred: BTreeSet<PathId>,
}

impl Paths {
    /// The paths of `own` toward hosts, each with its switch; a host without one is alone on its switch. They are by
    /// switch, then by VLAN. Cost: O(hosts · log hosts).
    pub fn new<'a>(own: Mac, hosts: impl Iterator<Item = (Mac, Option<&'a str>)>, vlans: &VlanSet) -> Self {
        let mut named: BTreeMap<String, BTreeSet<Mac>> = BTreeMap::new();
        for (mac, switch) in hosts {
            // No name of a switch begins with a blank.
            let name = switch.map_or_else(|| format!(" {mac}"), str::to_owned);
            named.entry(name).or_default().insert(mac);
        }
        named.retain(|_, hosts| !hosts.contains(&own));
        let sites: Vec<Vec<Mac>> = named.into_values().map(|hosts| hosts.into_iter().collect()).collect();
        let site_of =
            sites.iter().enumerate().flat_map(|(site, hosts)| hosts.iter().map(move |mac| (*mac, site))).collect();
        Self { sites, site_of, vlans: vlans.iter().collect(), barred: BTreeSet::new() }
    }

    /// Moves destinations only to VLANs in which all hosts behind their switch may be sent to.
    #[must_use]
    pub fn only_where(mut self, may: impl Fn(Mac, VlanId) -> bool) -> Self {
        let paths = self.sites.iter().flat_map(|hosts| self.vlans.iter().map(move |vlan| (hosts, *vlan)));
        let barred = paths.enumerate().filter(|(_, (hosts, vlan))| !hosts.iter().all(|host| may(*host, *vlan)));
        self.barred = barred.map(|(path, _)| path).collect();
        self
    }

    /// The switch, by position, that each path leads to.
    pub fn groups(&self) -> Vec<usize> {
        (0..self.sites.len()).flat_map(|site| self.vlans.iter().map(move |_| site)).collect()
    }

    /// How many other switches there are.
    pub fn sites(&self) -> usize {
        self.sites.len()
    }

    /// The VLAN of a path, and the switch that it leads to.
    pub fn describe(&self, path: PathId) -> (VlanId, usize) {
        (self.vlans[path % self.vlans.len()], path / self.vlans.len())
    }

    /// Who answers probes for a switch, at the `turn`-th try: each host asks another one first.
    pub fn target(&self, own: Mac, site: usize, turn: usize) -> Mac {
        let hosts = &self.sites[site];
        let [.., a, b, c] = own.octets();
        let spread = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        hosts[(spread + turn) % hosts.len()]
    }

    /// The path that frames for a host take in a VLAN; none for hosts of the own switch and strangers.
    pub fn path(&self, mac: Mac, vlan: VlanId) -> Option<PathId> {
        let site = self.site_of.get(&mac)?;
        let at = self.vlans.binary_search(&vlan).ok()?;
        Some(site * self.vlans.len() + at)
    }

    /// Paths of a table's route.
    pub fn of_route<'a>(&'a self, mac: Mac, route: &'a Route) -> impl Iterator<Item = PathId> + 'a {
        route.choices().iter().filter_map(move |vlan| self.path(mac, *vlan))
    }

    /// What a table becomes when only these paths are [fit](crate::health::Health::fit); all routes that paths decide,
    /// [`Mac::BROADCAST`] standing for the group's. A route keeps its fit VLANs, each at its index in the list, and they replace
    /// the others there, so a flow keeps its VLAN while that is fit. If it has none, its destinations are spread
    /// over the fit ones that are not barred; if there are none, it stays as it is. Cost: O(destinations · VLANs).
    pub fn reroute(&self, base: &TaggingTable, is_fit: impl Fn(PathId) -> bool) -> Vec<(Mac, Route)> {
        let mut routes = Vec::new();
        for (mac, route) in &base.destinations {
            if !self.site_of.contains_key(mac) {
                continue;
            }
            let fit = |vlan: &VlanId| self.path(*mac, *vlan).is_none_or(&is_fit);
            let kept: Vec<VlanId> = route.choices().iter().copied().filter(fit).collect();
            let open = |vlan: &VlanId| self.path(*mac, *vlan).is_none_or(|path| !self.barred.contains(&path));
            let others = || -> Vec<VlanId> { self.vlans.iter().copied().filter(fit).filter(open).collect() };
            let next = if kept.is_empty() {
                let others = others();
                let octets = mac.octets();
                (!others.is_empty()).then(|| Route::single(others[usize::from(octets[4] ^ octets[5]) % others.len()]))
            } else {
                let in_place = route.choices().iter().enumerate().map(|(at, vlan)| match fit(vlan) {
                    true => *vlan,
                    false => kept[at % kept.len()],
                });
                Route::spread(in_place, route.how())
            };
            routes.push((*mac, next.unwrap_or_else(|| route.clone())));
        }
        if let Some(group) = &base.group {
            // Groups are for everybody, so the VLAN counts that reaches most switches.
            let sick = |vlan: VlanId| {
                let Ok(at) = self.vlans.binary_search(&vlan) else { return 0 };
                (0..self.sites.len()).filter(|site| !is_fit(site * self.vlans.len() + at)).count()
            };
            let own = group.choices()[0];
            let open =
                |at: usize| (0..self.sites.len()).all(|site| !self.barred.contains(&(site * self.vlans.len() + at)));
            let others = (0..self.vlans.len()).filter(|at| open(*at)).map(|at| self.vlans[at]);
            let best = std::iter::once(own).chain(others).min_by_key(|vlan| sick(*vlan));
            routes.push((Mac::BROADCAST, Route::single(best.unwrap_or(own))));
        }
        routes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{config::Config, table::Spread};

    fn example() -> (Paths, TaggingTable) {
        let text = "mode destination\nspread flow\nvlans 2-4\n02:00:00:00:00:01 2 1 sw1\n02:00:00:00:00:02 3 1 sw1\n\
            02:00:00:00:00:05 2,3 1 sw2\n02:00:00:00:00:06 3 1 sw2\n02:00:00:00:00:07 4 1\n";
        let config = Config::parse("t", text).expect("right");
        let hosts = config.hosts.iter().map(|(mac, line)| (*mac, line.switch.as_deref()));
        (Paths::new(Mac::local(1), hosts, &config.vlans), config.table(Mac::local(1)).expect("listed"))
    }

    #[test]
    fn one_path_stands_for_all_hosts_of_a_switch_and_the_own_has_none() {
        let (paths, _) = example();
        assert_eq!(paths.groups(), [0, 0, 0, 1, 1, 1]);
        let vlan = |id| VlanId::new(id).expect("in range");
        assert_eq!(paths.path(Mac::local(5), vlan(3)), paths.path(Mac::local(6), vlan(3)));
        assert_eq!(paths.path(Mac::local(2), vlan(3)), None);
        let targets: BTreeSet<Mac> = (0..2).map(|turn| paths.target(Mac::local(1), 1, turn)).collect();
        assert_eq!(targets, BTreeSet::from([Mac::local(5), Mac::local(6)]));
    }

    proptest! {
        #[test]
        fn nothing_is_sent_where_it_is_sick_if_anything_is_healthy(sick in proptest::collection::btree_set(0_usize..6, 0..7)) {
            let (paths, base) = example();
            let healthy = |path: PathId| !sick.contains(&path);
            let routes: BTreeMap<Mac, Route> = paths.reroute(&base, healthy).into_iter().collect();
            for (mac, route) in &routes {
                let Some(site) = paths.site_of.get(mac) else { continue };
                let any = (site * 3..site * 3 + 3).any(healthy);
                let before = &base.destinations[mac];
                prop_assert!(any || route == before);
                prop_assert!(!any || paths.of_route(*mac, route).all(healthy));
                // What is healthy stays where it is.
                prop_assert!(!paths.of_route(*mac, before).all(healthy) || route == before);
            }
            prop_assert_eq!(routes.len(), 4);
            prop_assert!(routes.values().all(|route| matches!(route.how(), Spread::First | Spread::Flow)));
        }
    }
}
