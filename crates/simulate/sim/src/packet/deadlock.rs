//! Deadlock, while it runs: ports that wait for each other in a circle, and have hardly sent since the last look.
//!
//! A port waits if it has frames and its neighbour has asked it to stop. The neighbour lets go when what came in from
//! here falls to the lower threshold, so the port waits for those of the neighbour's own waiting ports that hold enough
//! of it to keep the account above that threshold. Ports that wait for nothing that waits are struck out until no more
//! can be; what is left cannot move unless a pause runs out. If the same ports are left after one whole pause time and
//! have sent next to nothing meanwhile, that is a deadlock.
//!
//! ```text
//!   s0:1 ─waits─▶ s1:1 ─waits─▶ s2:1 ─waits─▶ s3:1 ─waits─▶ s0:1
//! ```
//! Cost: O(queued frames) a look; one look a pause time.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{HostId, PortId, VlanId};

use super::Network;
use crate::tables::NONE;

/// A port that has sent less than this share of what it could have is at a standstill.
const STANDSTILL_SHARE: f64 = 0.01;
/// Most flows that are named for a port.
const FLOWS_NAMED_MAX: usize = 8;

/// Ports that wait for each other in a circle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// When it was certain.
    pub at_ps: u64,
    /// The circle: each port waits for the next, and the last for the first.
    pub cycle: Vec<Blocked>,
}

/// A port of the circle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The port, on its way out.
    pub port: PortId,
    /// The class of priority flow control.
    pub class: u8,
    /// VLANs of the frames that wait.
    pub vlans: Vec<VlanId>,
    /// Senders and receivers of frames that wait, as many as can be named.
    pub flows: Vec<(HostId, HostId)>,
    /// Octets that wait.
    pub bytes: u32,
}

/// What was seen at the last look.
pub(super) struct Watch {
    stuck: BTreeSet<u32>,
    wire_bytes: Vec<u64>,
    queues: usize,
}

impl Watch {
    pub(super) fn new(queues: usize) -> Self {
        Self { stuck: BTreeSet::new(), wire_bytes: Vec::new(), queues }
    }
}

impl Network<'_> {
    /// From one look to the next: the longest pause of any port.
    pub(super) fn watch_ps(&self) -> u64 {
        (0..self.ports.len() as u32).map(|port| self.pause_ps(port)).max().unwrap_or(1).max(1)
    }

    /// Looks for ports that will not move.
    pub(super) fn look_for_deadlock(&mut self) {
        if self.deadlock.is_some() {
            return;
        }
        let waits = self.wait_graph();
        let stuck: BTreeSet<u32> = waits.keys().copied().collect();
        let sent: Vec<u64> = self.ports.iter().map(|port| port.outcome.wire_bytes).collect();
        let watch_ps = self.watch_ps();
        let lasting: BTreeMap<u32, u32> = waits
            .iter()
            .filter(|(queue, _)| {
                let port = **queue as usize / self.lanes;
                let moved = sent[port] - self.watch.wire_bytes.get(port).copied().unwrap_or(0);
                let could = watch_ps as f64 / self.ports[port].ps_per_byte as f64;
                self.watch.stuck.contains(queue) && (moved as f64) < STANDSTILL_SHARE * could
            })
            .map(|(queue, next)| (*queue, *next))
            .collect();
        if let Some(cycle) = find_cycle(&lasting) {
            let cycle = cycle.into_iter().map(|queue| self.describe(queue)).collect();
            self.deadlock = Some(Deadlock { at_ps: self.now_ps, cycle });
        }
        debug_assert!(self.watch.queues >= stuck.len());
        self.watch.stuck = stuck;
        self.watch.wire_bytes = sent;
    }

    /// For each queue that cannot move before another does: the one that holds most of what it waits for.
    fn wait_graph(&self) -> BTreeMap<u32, u32> {
        // held[(account of the neighbour, queue)]: octets of that account in that queue.
        let mut held: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut waiting: BTreeSet<u32> = BTreeSet::new();
        for port in 0..self.switch_port_count() {
            let peer = self.ports[port].peer;
            for class in 0..self.lanes {
                let queue = (port * self.lanes + class) as u32;
                let mut frame = self.classes[queue as usize].head;
                if frame == NONE {
                    continue;
                }
                let stopped = self.ports[peer as usize].switch != NONE
                    && self.ports[port].flow_control
                    && self.classes[peer as usize * self.lanes + class].stopping;
                if stopped {
                    waiting.insert(queue);
                }
                while frame != NONE {
                    let state = &self.frames[frame as usize];
                    let account = state.ingress * self.lanes as u32 + class as u32;
                    *held.entry((account, queue)).or_default() += u32::from(state.bytes);
                    frame = state.next;
                }
            }
        }
        loop {
            let mut moved = Vec::new();
            let mut next = BTreeMap::new();
            for queue in &waiting {
                let (port, class) = (*queue as usize / self.lanes, *queue as usize % self.lanes);
                let account = self.ports[port].peer * self.lanes as u32 + class as u32;
                let behind = held.range((account, 0)..=(account, u32::MAX));
                let stuck: Vec<(u32, u32)> =
                    behind.filter(|((_, of), _)| waiting.contains(of)).map(|((_, of), bytes)| (*of, *bytes)).collect();
                if stuck.iter().map(|(_, bytes)| bytes).sum::<u32>() > self.config.buffers.xon_bytes {
                    let most = stuck.iter().max_by_key(|(of, bytes)| (*bytes, std::cmp::Reverse(*of)));
                    next.insert(*queue, most.map_or(*queue, |(of, _)| *of));
                } else {
                    moved.push(*queue);
                }
            }
            if moved.is_empty() {
                return next;
            }
            for queue in moved {
                waiting.remove(&queue);
            }
        }
    }

    fn describe(&self, queue: u32) -> Blocked {
        let (port, class) = (queue as usize / self.lanes, (queue as usize % self.lanes) as u8);
        let (mut vlans, mut flows, mut bytes) = (BTreeSet::new(), BTreeSet::new(), 0);
        let mut frame = self.classes[queue as usize].head;
        while frame != NONE {
            let state = &self.frames[frame as usize];
            vlans.insert(self.tables.vlan(state.vlan));
            if state.destination != NONE && flows.len() < FLOWS_NAMED_MAX {
                flows.insert((HostId::new(state.source as usize), HostId::new(state.destination as usize)));
            }
            bytes += u32::from(state.bytes);
            frame = state.next;
        }
        Blocked {
            port: PortId::new(port),
            class,
            vlans: vlans.into_iter().collect(),
            flows: flows.into_iter().collect(),
            bytes,
        }
    }
}

/// A circle in a graph in which each node has one successor or none.
fn find_cycle(next: &BTreeMap<u32, u32>) -> Option<Vec<u32>> {
    let mut done = BTreeSet::new();
    for start in next.keys() {
        let (mut path, mut at) = (Vec::new(), *start);
        while !done.contains(&at) {
            done.insert(at);
            path.push(at);
            match next.get(&at) {
                Some(following) => at = *following,
                None => break,
            }
            if let Some(from) = path.iter().position(|node| *node == at) {
                return Some(path.split_off(from));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_and_trees_are_not() {
        let graph = |pairs: &[(u32, u32)]| find_cycle(&pairs.iter().copied().collect());
        assert_eq!(graph(&[]), None);
        assert_eq!(graph(&[(1, 2), (2, 3), (4, 3)]), None);
        assert_eq!(graph(&[(1, 2), (2, 3), (3, 2)]), Some(vec![2, 3]));
        assert_eq!(graph(&[(5, 5)]), Some(vec![5]));
        assert_eq!(graph(&[(1, 2), (2, 9), (3, 4), (4, 3)]), Some(vec![3, 4]));
    }
}
