//! Dijkstra's algorithm with its tables kept between runs.

use std::{cmp::Reverse, collections::BinaryHeap};

use fabric::{ChannelId, SwitchId};

use super::Search;

/// Shortest paths from one switch.
pub(super) struct Shortest {
    pub(super) distance: Vec<f64>,
    pub(super) inward: Vec<Option<ChannelId>>,
    /// Switches by ascending distance.
    pub(super) order: Vec<usize>,
    done: Vec<bool>,
    below: Vec<f64>,
    queue: BinaryHeap<Reverse<(Ordered, usize)>>,
}

impl Shortest {
    pub(super) fn new(switches: usize) -> Self {
        Self {
            distance: vec![0.0; switches],
            inward: vec![None; switches],
            order: Vec::with_capacity(switches),
            done: vec![false; switches],
            below: vec![0.0; switches],
            queue: BinaryHeap::new(),
        }
    }

    pub(super) fn run(&mut self, search: &Search<'_>, source: SwitchId, lengths: &[f64]) {
        self.distance.fill(f64::INFINITY);
        self.inward.fill(None);
        self.done.fill(false);
        self.order.clear();
        self.distance[source.index()] = 0.0;
        self.queue.push(Reverse((Ordered(0.0), source.index())));
        while let Some(Reverse((Ordered(distance), switch))) = self.queue.pop() {
            if std::mem::replace(&mut self.done[switch], true) {
                continue;
            }
            self.order.push(switch);
            for &channel in search.topology.channels_from(SwitchId::new(switch)) {
                let head = search.head[channel.index()];
                let through = distance + lengths[channel.index()];
                if through < self.distance[head] {
                    self.distance[head] = through;
                    self.inward[head] = Some(channel);
                    self.queue.push(Reverse((Ordered(through), head)));
                }
            }
        }
    }

    /// Adds the loads of the shortest-path tree that was found last, for a source that sends `row[switch]`.
    pub(super) fn spread(&mut self, search: &Search<'_>, row: &[f64], load: &mut [f64]) {
        self.below.copy_from_slice(row);
        for &switch in self.order.iter().rev() {
            if let Some(channel) = self.inward[switch] {
                load[channel.index()] += self.below[switch];
                self.below[search.topology.tail(channel).index()] += self.below[switch];
            }
        }
    }
}

/// Distances are never NaN, so they are totally ordered.
#[derive(Clone, Copy, PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
