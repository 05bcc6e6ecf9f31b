//! The cabling as flat arrays of numbers, for loops that run millions of times.
//!
//! Switches keep their positions in the [`Topology`]. Channels are numbered anew, those into one switch in a row, so that all
//! that is known of the ways into a switch lies side by side. A *turn* is a channel followed by another that leaves the switch
//! which the first enters; turns are numbered so that those into one channel are consecutive.
//!
//! ```text
//!   ──a──▶[s]──c──▶      turns into c:   a c = turn_start[c] + (a − first into s)
//!   ──b──▶[s]                            b c = turn_start[c] + (b − first into s)
//! ```

use std::ops::Range;

use fabric::{ChannelId, Topology};

use super::symmetry::Symmetry;
use crate::confined::Confined;

/// No channel: the entry of a root, and of switches that a tree leaves out.
pub(super) const NONE: u32 = u32::MAX;

/// A topology in flat arrays.
#[derive(Clone)]
pub(super) struct Net {
    /// Number of switches.
    pub(super) switches: usize,
    /// Number of channels.
    pub(super) channels: usize,
    /// `tail[channel]`, `head[channel]`: the switches that it leaves and enters.
    pub(super) tail: Vec<u32>,
    pub(super) head: Vec<u32>,
    /// `hosts[switch]`.
    pub(super) hosts: Vec<u32>,
    /// `class[channel]`: which of the rates it has; `slowness[class]`: the fastest rate over this one.
    pub(super) class: Vec<u16>,
    pub(super) slowness: Vec<f64>,
    /// Pairs of hosts for each unit of load: 1 unless a traffic matrix is counted in quanta.
    pub(super) pairs_per_unit: f64,
    /// Number of turns.
    pub(super) turns: usize,
    /// `turn_base[channel]`: what a channel before it adds its number to, modulo 2³².
    turn_base: Vec<u32>,
    from: Vec<u32>,
    from_start: Vec<u32>,
    into_start: Vec<u32>,
    /// `id[channel]`, and `number[id]`.
    id: Vec<ChannelId>,
    number: Vec<u32>,
    /// `reverse[channel]`.
    reverse: Vec<u32>,
    /// Which channels trees may not take.
    pub(super) confined: Confined,
    /// Under which trees and orders are kept alike; then only some of the sources are searched for.
    pub(super) symmetry: Option<Symmetry>,
    /// `twins[channel · twins_each ..]`: the channel's images, of which the first so many are so on the same lane.
    twins: Vec<u32>,
    twins_each: usize,
    twins_by_lane: usize,
}

impl Net {
    pub(super) fn new(topology: &Topology, pairs_per_unit: f64) -> Self {
        let (switches, channels) = (topology.switches().len(), topology.channel_count());
        let (mut id, mut into_start) = (Vec::with_capacity(channels), vec![0]);
        for switch in topology.switch_ids() {
            // The same order at both ends of every cable keeps turns and their reversals alike.
            id.extend(topology.channels_from(switch).iter().map(|channel| channel.reverse()));
            into_start.push(id.len() as u32);
        }
        let mut number = vec![0; channels];
        for (at, channel) in id.iter().enumerate() {
            number[channel.index()] = at as u32;
        }
        let (mut from, mut from_start) = (Vec::with_capacity(channels), vec![0]);
        for switch in topology.switch_ids() {
            from.extend(topology.channels_from(switch).iter().map(|channel| number[channel.index()]));
            from_start.push(from.len() as u32);
        }
        let tail: Vec<u32> = id.iter().map(|&channel| topology.tail(channel).index() as u32).collect();
        let mut rates: Vec<u64> = topology.links().iter().map(|link| link.rate_bps).collect();
        rates.sort_unstable();
        rates.dedup();
        rates.reverse();
        let fastest = rates.first().copied().unwrap_or(1) as f64;
        let class_of = |&channel: &ChannelId| {
            let rate_bps = topology.link(channel.link()).rate_bps;
            rates.partition_point(|&other| other > rate_bps) as u16
        };
        let mut turns = 0_usize;
        let turn_base = (tail.iter())
            .map(|&tail| {
                let (first, end) = (into_start[tail as usize], into_start[tail as usize + 1]);
                let start = u32::try_from(turns).unwrap_or(u32::MAX);
                turns += (end - first) as usize;
                start.wrapping_sub(first)
            })
            .collect();
        Self {
            switches,
            channels,
            head: id.iter().map(|&channel| topology.head(channel).index() as u32).collect(),
            hosts: topology.switch_ids().map(|switch| topology.hosts_of(switch).len() as u32).collect(),
            class: id.iter().map(class_of).collect(),
            slowness: rates.iter().map(|&rate| fastest / rate as f64).collect(),
            pairs_per_unit,
            turns,
            tail,
            reverse: id.iter().map(|id| number[id.reverse().index()]).collect(),
            turn_base,
            from,
            from_start,
            into_start,
            id,
            number,
            confined: Confined::default(),
            symmetry: None,
            twins: (0..channels as u32).collect(),
            twins_each: 1,
            twins_by_lane: 1,
        }
    }

    /// The same, for trees that keep to planes or to a limit on hops.
    pub(super) fn confined(self, confined: Confined) -> Self {
        Self { confined, ..self }
    }

    /// Whether a tree from `root` may go on by a channel.
    #[inline]
    pub(super) fn allows(&self, root: usize, channel: u32) -> bool {
        self.confined.is_empty() || self.confined.allows(root, self.tail(channel), self.head(channel))
    }

    /// The same, for a search that keeps trees and orders alike.
    pub(super) fn folded(&self, symmetry: Symmetry) -> Self {
        let images = |channel| symmetry.elements().iter().map(move |element| element.channel[channel]);
        let twins = (0..self.channels).flat_map(images).collect();
        let (twins_each, twins_by_lane) = (symmetry.order(), symmetry.keeping());
        Self { twins, twins_each, twins_by_lane, symmetry: Some(symmetry), ..self.clone() }
    }

    /// Adds what is counted by turn on a lane to what its images on the first lane count.
    pub(super) fn fold_turns(&self, lane: usize, counted: &[f32], folded: &mut [f32]) {
        let Some(symmetry) = &self.symmetry else { return };
        for after in 0..self.channels as u32 {
            for before in self.into(self.tail(after)) {
                let count = counted[self.turn(before, after)];
                if count != 0.0 {
                    for element in symmetry.elements().iter().filter(|element| usize::from(element.lane) == lane) {
                        let image = |channel: u32| element.channel[channel as usize];
                        folded[self.turn(image(before), image(after))] += count;
                    }
                }
            }
        }
    }

    /// A channel and its images, which carry the same load.
    #[inline]
    pub(super) fn twins(&self, channel: u32) -> &[u32] {
        &self.twins[channel as usize * self.twins_each..][..self.twins_each]
    }

    /// A channel and its images on the same lane, which have the same place in the order.
    #[inline]
    pub(super) fn twins_by_lane(&self, channel: u32) -> &[u32] {
        &self.twins(channel)[..self.twins_by_lane]
    }

    /// A channel's number.
    pub(super) fn number(&self, id: ChannelId) -> u32 {
        self.number[id.index()]
    }

    /// The channel of a number.
    pub(super) fn id(&self, channel: u32) -> ChannelId {
        self.id[channel as usize]
    }

    /// `rank[id]` as `rank[channel]`.
    pub(super) fn by_number(&self, rank: &[u32]) -> Vec<u32> {
        self.id.iter().map(|id| rank[id.index()]).collect()
    }

    /// `rank[channel]` as `rank[id]`.
    pub(super) fn by_id(&self, rank: &[u32]) -> Vec<u32> {
        self.number.iter().map(|&channel| rank[channel as usize]).collect()
    }

    /// The channels that leave a switch.
    #[inline]
    pub(super) fn from(&self, switch: usize) -> &[u32] {
        &self.from[self.from_start[switch] as usize..self.from_start[switch + 1] as usize]
    }

    /// The channels that leave a switch, each with the switch that it leads to.
    #[inline]
    pub(super) fn neighbours(&self, switch: usize) -> impl Iterator<Item = (u32, usize)> + '_ {
        self.from(switch).iter().map(|&channel| (channel, self.head(channel)))
    }

    /// The channels that enter a switch.
    #[inline]
    pub(super) fn into(&self, switch: usize) -> Range<u32> {
        self.into_start[switch]..self.into_start[switch + 1]
    }

    #[inline]
    pub(super) fn tail(&self, channel: u32) -> usize {
        self.tail[channel as usize] as usize
    }

    #[inline]
    pub(super) fn head(&self, channel: u32) -> usize {
        self.head[channel as usize] as usize
    }

    /// How much longer a frame takes on a channel than on the fastest.
    #[inline]
    pub(super) fn slowness_of(&self, channel: usize) -> f64 {
        self.slowness[usize::from(self.class[channel])]
    }

    /// The other direction of the same cable.
    #[inline]
    pub(super) fn reverse(&self, channel: u32) -> u32 {
        self.reverse[channel as usize]
    }

    /// The number of the turn from one channel to another that leaves where it arrives.
    #[inline]
    pub(super) fn turn(&self, before: u32, after: u32) -> usize {
        self.turn_base[after as usize].wrapping_add(before) as usize
    }
}
