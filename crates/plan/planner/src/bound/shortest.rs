//! Dijkstra's algorithm with its tables kept between runs.
//!
//! Where lengths are much alike, switches wait in buckets narrower than the shortest length instead of a heap: whoever is
//! in the first bucket that is not empty cannot be reached on a shorter path any more (Dial, "Algorithm 360", 1969). With
//! all lengths the same, that is breadth-first search.
//!
//! ```text
//!   lengths 1.0 to 1.5, buckets 0.999 wide:   [0, 0.999) s   [0.999, 1.998) a b   [1.998, 2.997) c   …
//! ```

use std::{cmp::Reverse, collections::BinaryHeap};

use fabric::{ChannelId, SwitchId, graph::Length};

use super::Search;

/// Most buckets; where lengths differ more than that allows, switches wait in a heap.
const BUCKETS_MAX: usize = 64;
/// The width of a bucket as a share of the shortest length; less than 1, so that rounding puts nobody into the bucket that
/// is being emptied.
const WIDTH: f64 = 0.999;

/// Shortest paths from one switch.
pub(super) struct Shortest {
    pub(super) distance: Vec<f64>,
    pub(super) inward: Vec<Option<ChannelId>>,
    /// Switches, each after those on the way to it.
    pub(super) order: Vec<usize>,
    done: Vec<bool>,
    below: Vec<f64>,
    queue: BinaryHeap<Reverse<(Length, usize)>>,
    /// `buckets[number of widths, modulo their count]`.
    buckets: Vec<Vec<(f64, u32)>>,
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
            buckets: Vec::new(),
        }
    }

    /// Finds the shortest paths from a switch to all that it reaches. Cost: O(channels) where no length is more than 60
    /// times another, O(channels · log switches) elsewhere.
    pub(super) fn run(&mut self, search: &Search<'_>, source: SwitchId, lengths: &[f64]) {
        self.distance.fill(f64::INFINITY);
        self.inward.fill(None);
        self.order.clear();
        self.distance[source.index()] = 0.0;
        let (least, most) = lengths.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &length| {
            (if length < least { length } else { least }, if length > most { length } else { most })
        });
        if least > 0.0 && most / (least * WIDTH) + 2.0 <= BUCKETS_MAX as f64 {
            let count = (most / (least * WIDTH)) as usize + 2;
            self.run_by_buckets(search, source, lengths, least * WIDTH, count);
        } else {
            self.run_by_heap(search, source, lengths);
        }
    }

    fn run_by_buckets(&mut self, search: &Search<'_>, source: SwitchId, lengths: &[f64], width: f64, count: usize) {
        self.buckets.resize_with(count.max(self.buckets.len()), Vec::new);
        self.buckets[0].push((0.0, source.index() as u32));
        let (mut now, mut waiting) = (0, 1);
        while waiting > 0 {
            let mut bucket = std::mem::take(&mut self.buckets[now % count]);
            waiting -= bucket.len();
            for (distance, switch) in bucket.drain(..) {
                let switch = switch as usize;
                // Those that were reached on a shorter path later have been here.
                if distance > self.distance[switch] {
                    continue;
                }
                self.order.push(switch);
                for &(channel, head) in search.ways(switch) {
                    let head = head as usize;
                    let through = distance + lengths[channel.index()];
                    if through < self.distance[head] {
                        self.distance[head] = through;
                        self.inward[head] = Some(channel);
                        self.buckets[(through / width) as usize % count].push((through, head as u32));
                        waiting += 1;
                    }
                }
            }
            self.buckets[now % count] = bucket;
            now += 1;
        }
    }

    fn run_by_heap(&mut self, search: &Search<'_>, source: SwitchId, lengths: &[f64]) {
        self.done.fill(false);
        self.queue.push(Reverse((Length(0.0), source.index())));
        while let Some(Reverse((Length(distance), switch))) = self.queue.pop() {
            if std::mem::replace(&mut self.done[switch], true) {
                continue;
            }
            self.order.push(switch);
            for &(channel, head) in search.ways(switch) {
                let head = head as usize;
                let through = distance + lengths[channel.index()];
                if through < self.distance[head] {
                    self.distance[head] = through;
                    self.inward[head] = Some(channel);
                    self.queue.push(Reverse((Length(through), head)));
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
