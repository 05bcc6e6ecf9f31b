//! The cabling as flat arrays of numbers, for loops that run millions of times.
//!
//! Switches and channels keep their positions in the [`Topology`]. A *turn* is a channel followed by another that
//! leaves the switch which the first enters; turns are numbered so that those into one channel are consecutive.
//!
//! ```text
//!   ──a──▶[s]──c──▶      turns into c:   a c = turn_start[c] + slot[a]
//!   ──b──▶[s]                            b c = turn_start[c] + slot[b]
//! ```

use fabric::{ChannelId, SwitchId, Topology};

/// No channel: the entry of a root, and of switches that a tree leaves out.
pub(super) const NONE: u32 = u32::MAX;

/// A topology in flat arrays.
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
    turn_start: Vec<u32>,
    slot: Vec<u32>,
    from: Vec<u32>,
    from_start: Vec<u32>,
    into: Vec<u32>,
    into_start: Vec<u32>,
}

impl Net {
    pub(super) fn new(topology: &Topology, pairs_per_unit: f64) -> Self {
        let (switches, channels) = (topology.switches().len(), topology.channel_count());
        let ends = |end: fn(&Topology, ChannelId) -> SwitchId| -> Vec<u32> {
            topology.channel_ids().map(|channel| end(topology, channel).index() as u32).collect()
        };
        let (tail, head) = (ends(Topology::tail), ends(Topology::head));
        let mut rates: Vec<u64> = topology.links().iter().map(|link| link.rate_bps).collect();
        rates.sort_unstable();
        rates.dedup();
        rates.reverse();
        let fastest = rates.first().copied().unwrap_or(1) as f64;
        let rate_of = |channel: ChannelId| topology.link(channel.link()).rate_bps;
        let class_of = |rate| rates.partition_point(|&other| other > rate) as u16;
        let (mut from, mut from_start) = (Vec::with_capacity(channels), vec![0]);
        let mut arriving = vec![Vec::new(); switches];
        for switch in topology.switch_ids() {
            from.extend(topology.channels_from(switch).iter().map(|channel| channel.index() as u32));
            from_start.push(from.len() as u32);
            // The same order at both ends of every cable keeps turns and their reversals alike.
            let back = topology.channels_from(switch).iter().map(|channel| channel.reverse().index() as u32);
            arriving[switch.index()] = back.collect();
        }
        let (mut into, mut into_start, mut slot) = (Vec::with_capacity(channels), vec![0], vec![0; channels]);
        for channels in arriving {
            for (at, &channel) in channels.iter().enumerate() {
                slot[channel as usize] = at as u32;
            }
            into.extend(channels);
            into_start.push(into.len() as u32);
        }
        let mut turns = 0_usize;
        let turn_start = (tail.iter())
            .map(|&tail| {
                let start = turns;
                turns += (into_start[tail as usize + 1] - into_start[tail as usize]) as usize;
                u32::try_from(start).unwrap_or(u32::MAX)
            })
            .collect();
        Self {
            switches,
            channels,
            hosts: topology.switch_ids().map(|switch| topology.hosts_of(switch).len() as u32).collect(),
            class: topology.channel_ids().map(|channel| class_of(rate_of(channel))).collect(),
            slowness: rates.iter().map(|&rate| fastest / rate as f64).collect(),
            pairs_per_unit,
            turns,
            tail,
            head,
            turn_start,
            slot,
            from,
            from_start,
            into,
            into_start,
        }
    }

    /// The channels that leave a switch.
    #[inline]
    pub(super) fn from(&self, switch: usize) -> &[u32] {
        &self.from[self.from_start[switch] as usize..self.from_start[switch + 1] as usize]
    }

    /// The channels that enter a switch.
    #[inline]
    pub(super) fn into(&self, switch: usize) -> &[u32] {
        &self.into[self.into_start[switch] as usize..self.into_start[switch + 1] as usize]
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

    /// The number of the turn from one channel to another that leaves where it arrives.
    #[inline]
    pub(super) fn turn(&self, before: u32, after: u32) -> usize {
        (self.turn_start[after as usize] + self.slot[before as usize]) as usize
    }
}
