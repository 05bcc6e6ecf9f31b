//! What must never be, looked for after each change of each switch: a way on which a broadcast goes round, and a deployment that
//! overwrites a later one.

use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering},
};

use bridge_mib::{AcceptableFrames, Enabled, IfStatus};
use fabric::{Plan, VlanId};
use switch_model::mark::Mark;
use switchd::agent::Config;

use crate::trio::switches::Watch;

/// Ports of a switch, 1 toward the next one in the ring, 2 toward the one before, 3 for its host.
const PORTS: usize = 4;
const HOST_PORT: usize = 3;

#[derive(Default)]
pub(crate) struct Watcher {
    switches: Mutex<Switches>,
    changes: AtomicUsize,
}

struct Switches {
    configs: Vec<Config>,
    /// What was found, which must be nothing.
    breaches: Vec<String>,
}

impl Default for Switches {
    fn default() -> Self {
        Self { configs: vec![Config::factory(PORTS); 4], breaches: Vec::new() }
    }
}

impl Watcher {
    pub(crate) fn watch(self: &Arc<Self>) -> Watch {
        let watcher = Arc::clone(self);
        Arc::new(move |switch, config| watcher.see(switch, config))
    }

    fn switches(&self) -> MutexGuard<'_, Switches> {
        self.switches.lock().expect("nobody panics with it")
    }

    fn see(&self, switch: usize, config: &Config) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        let mut switches = self.switches();
        let before = mark(&switches.configs[switch]);
        switches.configs[switch] = config.clone();
        if let (Some(before), Some(after)) = (before, mark(config)) {
            if before.is_later_than(after) {
                switches.breaches.push(format!("s{switch}: {after} overwrites {before}"));
            }
        }
        if let Some(way) = round(&switches.configs) {
            switches.breaches.push(format!("s{switch} was changed, and broadcasts go round: {way}"));
        }
    }

    /// Changes of switches so far.
    pub(crate) fn changes(&self) -> usize {
        self.changes.load(Ordering::SeqCst)
    }

    /// Fails if anything was found that must not be.
    pub(crate) fn check(&self) {
        let switches = self.switches();
        assert!(switches.breaches.is_empty(), "{:#?}", switches.breaches);
    }

    /// Fails unless all switches bear the tag of one deployment, which is over and was of this plan.
    pub(crate) fn check_held(&self, digest: &str) {
        let switches = self.switches();
        let marks: Vec<Option<Mark>> = switches.configs.iter().map(mark).collect();
        let words: Vec<String> =
            marks.iter().map(|mark| mark.map_or_else(String::new, |mark| mark.to_string())).collect();
        assert!(words.iter().all(|word| word == &words[0]), "two generations: {words:?}");
        assert!(words[0].starts_with("esp-") && words[0].ends_with(&digest[..8]), "{words:?} for plan {digest}");
    }

    /// Whether hosts send in the VLANs of this plan.
    pub(crate) fn hosts_are_as_in(&self, plan: &Plan) -> bool {
        let switches = self.switches();
        let expected = plan.devices.iter().map(|device| device.ports[HOST_PORT - 1].pvid);
        // Ports of a switch are in the topology's order.
        expected.eq(switches.configs.iter().map(|config| Some(config.ports[HOST_PORT - 1].pvid)))
    }
}

/// The deployment tag that a switch bears.
fn mark(config: &Config) -> Option<Mark> {
    config.vlans.values().find_map(|vlan| std::str::from_utf8(&vlan.name).ok()?.parse().ok())
}

/// Where a broadcast of a VLAN goes that a switch sends by a port toward a switch of the ring; none if it does not arrive.
fn onward(from: &Config, port: u32, to: &Config, far: u32, vlan: VlanId) -> Option<VlanId> {
    let (own, other) = (&from.ports[port as usize - 1], &to.ports[far as usize - 1]);
    if own.admin != IfStatus::Up || other.admin != IfStatus::Up {
        return None;
    }
    let find = |config: &Config, vlan: VlanId| {
        config.active_vlans().find(|(id, _)| *id == vlan).map(|(_, vlan)| (vlan.egress.clone(), vlan.untagged.clone()))
    };
    let (egress, untagged) = find(from, vlan).filter(|(egress, _)| egress.contains(port))?;
    drop(egress);
    let arrives = match untagged.contains(port) {
        true if other.frames == AcceptableFrames::OnlyTagged => return None,
        true => other.pvid,
        false => vlan,
    };
    find(to, arrives).filter(|(egress, _)| egress.contains(far)).map(|_| arrives)
}

/// A way on which a broadcast goes round, if there is one. Where all switches run spanning tree, it breaks it.
fn round(configs: &[Config]) -> Option<String> {
    let governed = |config: &Config| config.ports[..2].iter().all(|port| port.stp == Enabled::Yes);
    if configs.iter().all(governed) {
        return None;
    }
    let vlans: Vec<VlanId> = configs.iter().flat_map(|config| config.active_vlans().map(|(vlan, _)| vlan)).collect();
    let count = configs.len();
    for (port, far, step) in [(1, 2, 1), (2, 1, count - 1)] {
        for &start in &vlans {
            for first in 0..count {
                let (mut at, mut vlan, mut passed) = (first, start, 0);
                while let Some(next) = onward(&configs[at], port, &configs[(at + step) % count], far, vlan) {
                    (at, vlan, passed) = ((at + step) % count, next, passed + 1);
                    // There are no more places than that: it has been here before.
                    if passed > count * vlans.len() {
                        return Some(format!("by port {port} of each switch, from s{first} in VLAN {start}"));
                    }
                }
            }
        }
    }
    None
}

#[test]
fn a_ring_in_which_broadcasts_go_round_is_found() {
    let mut configs = vec![Config::factory(PORTS); 4];
    assert_eq!(round(&configs), None, "spanning tree breaks it");
    for config in &mut configs {
        config.ports[0].stp = Enabled::No;
    }
    assert!(round(&configs).is_some());
    configs[2].ports[0].admin = IfStatus::Down;
    assert_eq!(round(&configs), None);
}
