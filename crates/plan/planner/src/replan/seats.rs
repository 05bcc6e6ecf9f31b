//! Seats: which tree carries whose frames, while hosts may still change places.
//!
//! A *mover* is all that some hosts of one switch send or receive along one tree. Hosts that came or moved are movers one by
//! one, so that they can leave a tree that they share with neighbours who stayed.
//!
//! ```text
//!   tree 3 is mended, h9 is new     movers:  h4, h5 on tree 3 │ h9 on tree 5
//!   h8 stayed, on tree 5                     (h8 is none: nothing of it changed)
//! ```

use std::sync::Arc;

use fabric::{Assignment, ChannelId, HostId, HostRun, LinkId, Topology, Tree};

use super::{
    Choices, Remains, direction_of, flood,
    mend::{Flow, Mender},
    routing,
    volume::Volumes,
};
use crate::{
    fan::{Direction, for_each_fan},
    host_set::HostSet,
};

/// Frames that may take another tree.
#[derive(Clone, Debug)]
pub(super) struct Mover {
    pub(super) tree: usize,
    /// Hosts of one switch; at least one.
    hosts: Vec<HostId>,
    /// Hosts at the other end; none if all are.
    peers: Option<HostSet>,
}

/// Trees and who chooses which.
pub(super) struct Seats<'a> {
    pub(super) choices: &'a mut Choices,
    pub(super) trees: &'a mut Vec<Remains>,
    pub(super) links: &'a mut Vec<Option<Vec<LinkId>>>,
    pub(super) volumes: &'a Volumes<'a>,
}

impl Seats<'_> {
    /// Everything that `placed` hosts choose, and everything else that goes along mended trees; nothing where a choice is one
    /// for both directions. Cost: as [`for_each_fan`].
    pub(super) fn movers(&self, topology: &Topology, placed: &[HostId]) -> (Vec<Mover>, Vec<Mover>) {
        let assignment = match &*self.choices {
            Choices::OneEnd { choice, .. } => match choice.iter().copied().collect() {
                Some(choice) => Assignment::Source(choice),
                None => return (Vec::new(), Vec::new()),
            },
            Choices::BothEnds { assignment: Assignment::Priority { .. }, .. } => return (Vec::new(), Vec::new()),
            Choices::BothEnds { assignment, .. } => assignment.clone(),
        };
        let is_mended = |tree: usize| {
            let links = self.links[tree].as_ref();
            links.is_some_and(|links| *links != self.trees[tree].links)
        };
        let all = HostSet::all(topology.hosts().len());
        let (mut newcomers, mut others) = (Vec::new(), Vec::new());
        for_each_fan(topology, &routing(vec![Tree::default(); self.trees.len()], assignment), |fan| {
            let peers = Some(fan.peers.clone()).filter(|peers| *peers != all);
            let mover = |hosts| Mover { tree: fan.tree, hosts, peers: peers.clone() };
            let (alone, rest): (Vec<HostId>, Vec<HostId>) =
                fan.owners.iter().copied().partition(|host| placed.contains(host));
            newcomers.extend(alone.into_iter().map(|host| mover(vec![host])));
            others.extend(Some(rest).filter(|rest| !rest.is_empty() && is_mended(fan.tree)).map(mover));
        });
        (newcomers, others)
    }

    /// What a mover's frames are.
    pub(super) fn flows(&self, topology: &Topology, mover: &Mover) -> Vec<Flow> {
        match &*self.choices {
            Choices::OneEnd { tagging, .. } => {
                let own = self.volumes.flow(direction_of(*tagging), &mover.hosts, None);
                let floods = self.floods_along(mover).then(|| flood(topology.switch_of(mover.hosts[0])));
                [Some(own), floods].into_iter().flatten().collect()
            }
            Choices::BothEnds { .. } => {
                vec![self.volumes.flow(Direction::Outward, &mover.hosts, mover.peers.as_ref())]
            }
        }
    }

    /// What a mover's frames add to channels now.
    pub(super) fn weights(&self, mender: &mut Mender<'_>, mover: &Mover) -> Vec<(ChannelId, f64)> {
        let Some(links) = &self.links[mover.tree] else { return Vec::new() };
        let flows = self.flows(mender.topology, mover);
        mender.spread_out(links);
        mender.weigh(&flows);
        mender.weights.clone()
    }

    /// `used[tree]`: whether anything but a mover goes along it.
    pub(super) fn used_by_others(&self, mover: &Mover) -> Vec<bool> {
        let mut used = vec![false; self.trees.len()];
        let own_floods = self.floods_along(mover);
        match &*self.choices {
            Choices::OneEnd { choice, broadcast, .. } => {
                let all = |choice: &[Option<usize>], used: &mut Vec<bool>, own: bool| {
                    let others = choice.iter().enumerate();
                    let others = others.filter(|(host, _)| !own || !mover.hosts.contains(&HostId::new(*host)));
                    others.filter_map(|(_, tree)| *tree).for_each(|tree| used[tree] = true);
                };
                all(choice, &mut used, true);
                broadcast.iter().for_each(|broadcast| all(broadcast, &mut used, own_floods));
            }
            Choices::BothEnds { assignment, .. } => {
                // Broadcasts stay where they are.
                assignment.map(|tree| used[tree] |= tree != mover.tree);
                used[mover.tree] = self.is_shared(assignment, mover);
            }
        }
        used
    }

    /// Whether a mover by pair is not alone on its tree.
    fn is_shared(&self, assignment: &Assignment<usize>, mover: &Mover) -> bool {
        let Assignment::Pair { unicast, broadcast } = assignment else { return true };
        let is_peer = |host: usize| mover.peers.as_ref().is_none_or(|peers| peers.contains(HostId::new(host)));
        broadcast.contains(&mover.tree)
            || unicast.iter().enumerate().any(|(host, row)| {
                let is_own = mover.hosts.contains(&HostId::new(host));
                let mut runs = row.iter().filter(|run| run.choice == mover.tree);
                runs.any(|run| !is_own || !(run.first.index()..=run.last.index()).all(is_peer))
            })
    }

    /// A tree more, in a VLAN of its own.
    pub(super) fn add(&mut self, lane: u8, links: Vec<LinkId>) -> usize {
        self.trees.push(Remains { vlan: None, lane, links: Vec::new(), stubs: Vec::new(), reused: Vec::new() });
        self.links.push(Some(links));
        self.trees.len() - 1
    }

    /// Gives a mover another tree.
    pub(super) fn seat(&mut self, mover: &mut Mover, tree: usize) {
        let with_floods = self.floods_along(mover);
        match &mut *self.choices {
            Choices::OneEnd { choice, broadcast, .. } => {
                for host in &mover.hosts {
                    choice[host.index()] = Some(tree);
                    broadcast.iter_mut().filter(|_| with_floods).for_each(|floods| floods[host.index()] = Some(tree));
                }
            }
            Choices::BothEnds { assignment: Assignment::Pair { unicast, .. }, .. } => {
                let is_peer = |host| mover.peers.as_ref().is_none_or(|peers| peers.contains(host));
                for host in &mover.hosts {
                    let row = &mut unicast[host.index()];
                    *row = Arc::new(reseated(row, |host, choice| match choice == mover.tree && is_peer(host) {
                        true => tree,
                        false => choice,
                    }));
                }
            }
            Choices::BothEnds { .. } => {}
        }
        mover.tree = tree;
    }

    /// Whether a mover's hosts flood the tree as well.
    fn floods_along(&self, mover: &Mover) -> bool {
        let Choices::OneEnd { broadcast: Some(broadcast), .. } = &*self.choices else { return false };
        mover.hosts.iter().all(|host| broadcast[host.index()] == Some(mover.tree))
    }
}

/// A row with other choices, in as few runs as say them.
fn reseated(row: &[HostRun<usize>], choose: impl Fn(HostId, usize) -> usize) -> Vec<HostRun<usize>> {
    let mut runs: Vec<HostRun<usize>> = Vec::new();
    for run in row {
        for host in (run.first.index()..=run.last.index()).map(HostId::new) {
            let choice = choose(host, run.choice);
            match runs.last_mut().filter(|last| last.choice == choice) {
                Some(last) => last.last = host,
                None => runs.push(HostRun { first: host, last: host, choice }),
            }
        }
    }
    runs
}
