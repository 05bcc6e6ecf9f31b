//! One tree a source, and the loads that follow.
//!
//! A tree is the channel through which it enters each switch. Below each switch of a tree are so many hosts, and the
//! channel into the switch carries one frame a sender for each of them, so moving a whole subtree to another channel
//! changes loads along two paths only. With a traffic matrix, what is counted below a switch is what the source sends there.
//!
//! ```text
//!        [r] 1 sender           inward: a ← ra, b ← ab, c ← ac
//!         │                     below:  a 3, b 1, c 1
//!        [a]─h                  load:   ra 3, ab 1, ac 1
//!       ╱   ╲
//!    h─[b]   [c]─h
//! ```

use fabric::HostId;

use super::net::{NONE, Net};
use crate::exponential::{exp, ln};

/// Hosts of one switch that share a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The switch.
    pub(super) root: usize,
    /// Its hosts that send along the tree; not empty.
    pub(super) hosts: Vec<HostId>,
    /// What they send.
    pub(super) shares: Shares,
}

/// What a source sends to each switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shares {
    /// One unit from each of its hosts to each host.
    OnePerHost,
    /// So many units to each switch, at least one where there are hosts.
    BySwitch(Vec<u32>),
}

impl Source {
    /// What each unit of `shares` counts: how many hosts send, where all send alike.
    pub(super) fn senders(&self) -> u64 {
        match self.shares {
            Shares::OnePerHost => self.hosts.len() as u64,
            Shares::BySwitch(_) => 1,
        }
    }

    /// `shares[switch]`: what goes there, in units that count `senders` each.
    #[inline]
    pub(super) fn shares<'s>(&'s self, net: &'s Net) -> &'s [u32] {
        match &self.shares {
            Shares::OnePerHost => &net.hosts,
            Shares::BySwitch(shares) => shares,
        }
    }

    /// All that it sends.
    pub(super) fn total(&self, net: &Net) -> u64 {
        self.senders() * self.shares(net).iter().map(|share| u64::from(*share)).sum::<u64>()
    }
}

/// One tree for each source.
#[derive(Clone)]
pub(super) struct Forest {
    switches: usize,
    /// `inward[source · switches + switch]`.
    inward: Vec<u32>,
    /// `below[source · switches + switch]`: shares at or beyond the switch.
    below: Vec<u32>,
    /// `load[channel]`: units that cross it; ordered pairs of hosts, or quanta of a matrix.
    pub(super) load: Vec<u64>,
}

impl Forest {
    /// A forest of trees that cover nothing.
    pub(super) fn bare(net: &Net, sources: usize) -> Self {
        let size = sources * net.switches;
        Self { switches: net.switches, inward: vec![NONE; size], below: vec![0; size], load: vec![0; net.channels] }
    }

    /// The channels into each switch, and the shares below each, of one tree.
    #[inline]
    pub(super) fn tree(&self, source: usize) -> (&[u32], &[u32]) {
        let range = source * self.switches..(source + 1) * self.switches;
        (&self.inward[range.clone()], &self.below[range])
    }

    /// The same, and all loads, to be changed together.
    #[inline]
    pub(super) fn tree_mut(&mut self, source: usize) -> (&mut [u32], &mut [u32], &mut [u64]) {
        let range = source * self.switches..(source + 1) * self.switches;
        (&mut self.inward[range.clone()], &mut self.below[range], &mut self.load)
    }

    /// Takes a tree's load off its channels.
    pub(super) fn lift(&mut self, net: &Net, number: usize, source: &Source) {
        let senders = source.senders();
        let (inward, below, load) = self.tree_mut(number);
        for (&channel, &below) in inward.iter().zip(&*below) {
            if channel != NONE {
                let pairs = u64::from(below) * senders;
                net.twins(channel).iter().for_each(|twin| load[*twin as usize] -= pairs);
            }
        }
    }

    /// Counts the shares below each switch of a tree whose channels have been set, and puts its load on them.
    pub(super) fn lay(&mut self, net: &Net, number: usize, source: &Source) {
        let senders = source.senders();
        let (inward, below, load) = self.tree_mut(number);
        // Children that each switch still waits for; a switch without any is ready to be added to its parent.
        let mut waiting = vec![0_u32; inward.len()];
        below.copy_from_slice(source.shares(net));
        for &channel in inward.iter().filter(|channel| **channel != NONE) {
            waiting[net.tail(channel)] += 1;
        }
        for leaf in 0..inward.len() {
            let mut at = leaf;
            while waiting[at] == 0 {
                waiting[at] = u32::MAX;
                let channel = inward[at];
                if channel == NONE {
                    break;
                }
                let pairs = u64::from(below[at]) * senders;
                net.twins(channel).iter().for_each(|twin| load[*twin as usize] += pairs);
                let parent = net.tail(channel);
                below[parent] += below[at];
                waiting[parent] -= 1;
                at = parent;
            }
        }
    }

    /// Whether what was added and subtracted move by move is what laying all trees anew gives. Cost: O(sources · switches).
    pub(super) fn is_counted(&self, net: &Net, sources: &[Source]) -> bool {
        let mut recounted = Self { inward: self.inward.clone(), ..Self::bare(net, sources.len()) };
        sources.iter().enumerate().for_each(|(number, source)| recounted.lay(net, number, source));
        let same_below = |number: usize| {
            let ((inward, own), (_, other)) = (self.tree(number), recounted.tree(number));
            (0..self.switches).all(|at| inward[at] == NONE || own[at] == other[at])
        };
        self.load == recounted.load && (0..sources.len()).all(same_below)
    }

    /// The most loaded channel, in units on the fastest rate.
    pub(super) fn peak(&self, net: &Net) -> f64 {
        let time = |(&load, &class): (&u64, &u16)| load as f64 * net.slowness[usize::from(class)];
        self.load.iter().zip(&net.class).map(time).fold(0.0, f64::max)
    }

    /// The 40-norm of all loads: the most loaded channel, and a little of how many come close to it.
    pub(super) fn norm(&self, net: &Net) -> f64 {
        let peak = self.peak(net).max(1.0);
        let power = |(&load, &class): (&u64, &u16)| {
            let share = load as f64 * net.slowness[usize::from(class)] / peak;
            let second = share * share;
            let fifth = second * second * share;
            let tenth = fifth * fifth;
            let twentieth = tenth * tenth;
            twentieth * twentieth
        };
        let sum: f64 = self.load.iter().zip(&net.class).map(power).sum();
        // Without any load there is nothing to compare.
        let average = (sum / self.load.len().max(1) as f64).max(1e-12);
        peak * exp(ln(average) / 40.0)
    }

    /// The sum of all loads, in units times channels.
    pub(super) fn hops(&self) -> u64 {
        self.load.iter().sum()
    }
}
