//! Coupled congestion control: a TCP subflow for each path of a pair, all of which draw frames from one supply.
//!
//! ```text
//!   supply ▕ 9 8 7 6 ▏─┬─▶ subflow in VLAN 2: segments 0 1 2    carry frames 0 2 5 ─┐
//!                      └─▶ subflow in VLAN 5: segments 0 1 2    carry frames 1 3 4 ─┴▶ in order again: 0 1 2 3 4 5
//! ```
//! Each subflow has its own window, sequence and timer; a frame that was drawn stays with its subflow until it has arrived.
//! After slow start the windows grow together by no more than one TCP flow's would on the best of the paths: LIA, for each
//! acknowledged segment by the lesser of `max(w / rtt²) / (Σ w / rtt)²` and `1 / w`. Losses halve the subflow's own window.
//! The receive window counts for each subflow, and frames are not sent again over another one.
//!
//! Source: RFC 6356 (coupled increase, least threshold of one segment); RFC 8684 (two levels of sequence numbers).

use std::collections::{BTreeSet, VecDeque};

use super::Network;

/// What the subflows of a flow share.
#[derive(Default)]
pub(super) struct Supply {
    /// The subflows, the flow itself first.
    pub(super) subflows: Vec<u32>,
    /// Frames to send in all, and how many of them have been drawn.
    pub(super) total: u32,
    pub(super) drawn: u32,
    /// Frames that have arrived before others that are still missing.
    early: BTreeSet<u32>,
    /// How many have arrived in order.
    in_order: u32,
}

/// A subflow's part.
#[derive(Default)]
pub(super) struct Subflow {
    /// The frames of the segments that are not known to have arrived, in the order of segments.
    carried: VecDeque<u32>,
    /// The segment of the first of them.
    first: u32,
}

impl Supply {
    /// A supply of `total` frames for these subflows.
    pub(super) fn new(subflows: Vec<u32>, total: u32) -> Self {
        Self { subflows, total, ..Self::default() }
    }

    /// Takes a frame that a subflow delivers; how many frames are in order by it.
    fn arrive(&mut self, frame: u32) -> u32 {
        self.early.insert(frame);
        let before = self.in_order;
        while self.early.remove(&self.in_order) {
            self.in_order += 1;
        }
        self.in_order - before
    }
}

impl Subflow {
    /// The frame that a segment carries; none once that is known to have arrived.
    pub(super) fn frame(&self, segment: u32) -> Option<u32> {
        self.carried.get(segment.checked_sub(self.first)? as usize).copied()
    }

    fn acknowledged(&mut self, segments: u32) {
        let count = (segments.saturating_sub(self.first) as usize).min(self.carried.len());
        self.carried.drain(..count);
        self.first += count as u32;
    }
}

impl Network<'_> {
    /// Draws a frame for a subflow whose window has room for it.
    pub(super) fn draw(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        let (Some(subflow), Some(supply)) = (&mut state.subflow, self.supplies.get_mut(&state.origin)) else { return };
        if supply.drawn < supply.total && state.sender.has_room() {
            subflow.carried.push_back(supply.drawn);
            supply.drawn += 1;
            state.sender.extend(1);
        }
    }

    /// Frames of a flow that segments of a subflow, from `first` on, deliver in order.
    pub(super) fn arrive(&mut self, flow: u32, first: u32, segments: u32) -> u32 {
        let state = &self.flows[flow as usize];
        let (Some(subflow), Some(supply)) = (&state.subflow, self.supplies.get_mut(&state.origin)) else {
            return segments;
        };
        (first..first + segments).filter_map(|segment| subflow.frame(segment)).map(|frame| supply.arrive(frame)).sum()
    }

    /// Before an acknowledgement counts: how fast the subflow's window may grow beside its sisters.
    pub(super) fn couple(&mut self, flow: u32, acknowledged: u32) {
        let Some(supply) = self.supplies.get(&self.flows[flow as usize].origin) else { return };
        let windows =
            supply.subflows.iter().filter_map(|sister| self.flows[*sister as usize].sender.window_and_round());
        let (best, sum) = windows.fold((0.0, 0.0), |(best, sum): (f64, f64), (window, round)| {
            (best.max(window / (round * round)), sum + window / round)
        });
        let state = &mut self.flows[flow as usize];
        state.sender.couple(if sum > 0.0 { best / (sum * sum) } else { f64::INFINITY });
        if let Some(subflow) = &mut state.subflow {
            subflow.acknowledged(acknowledged);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_in_order_again_whatever_subflow_is_late() {
        let mut supply = Supply::default();
        assert_eq!([1, 3, 0, 2, 4].map(|frame| supply.arrive(frame)), [0, 0, 2, 2, 1]);
        let mut subflow = Subflow { carried: [0, 2, 5].into(), first: 0 };
        subflow.acknowledged(1);
        assert_eq!([0, 1, 2, 3].map(|segment| subflow.frame(segment)), [None, Some(2), Some(5), None]);
        subflow.acknowledged(7);
        assert_eq!((subflow.frame(2), subflow.first), (None, 3));
    }
}
