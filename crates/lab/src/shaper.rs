//! How cables are shaped: token buckets, bursts and queues.
//!
//! Every direction of every cable is shaped by a token bucket (`tbf`) where it leaves its device. Two numbers decide how
//! well that imitates a real cable:
//! - the *burst*, what may leave at once after silence. A timer that fires late is made up for only within the burst, so
//!   it must cover the scheduling delay of a busy machine; but whatever is sent beyond the rate is an error of the
//!   measurement, and comes as fast as memory. [`BURST_US`] is an error of four percent after a tenth of a second.
//! - the *queue*, what waits for the cable. TCP fills any queue up to its window. If all windows that meet at the busiest
//!   channel fit, nothing is lost and the channel never idles, which is what flow control gives on real switches.
//!
//! Frames of the classes 6 and 7 pass those that wait, and 4 and 5 pass the rest, as on switches with three queues a port
//! (IEEE 802.1Q-2022, Table 8-5): under the bucket is `pfifo_fast`, and the switches' program gives frames their band.

use std::fmt::Write as _;

use crate::{Offload, TRAIN_FRAMES, layout::Layout};

/// How much time's worth of bytes a cable may send at once: what the shaper's timer may be late on a busy machine.
const BURST_US: u64 = 4000;

/// Smallest burst, in what hosts send at once: one that waits, and one that is sent.
const BURST_SENDINGS_MIN: u64 = 2;

/// Room for the Ethernet header and two tags beyond the largest IP packet.
const FRAME_EXTRA_BYTES: u64 = 14 + 8;

/// Room that a switch port leaves for tags beyond the hosts' MTU.
const TAG_ROOM_BYTES: u16 = 8;

/// The commands that shape one direction of a cable, a line each.
pub(crate) fn shaper(layout: &Layout, device: &str, rate_bps: u64, mtu_bytes: u16) -> String {
    let frame_bytes = u64::from(mtu_bytes) + FRAME_EXTRA_BYTES;
    let burst_bytes = burst_bytes(layout.offload, rate_bps, frame_bytes);
    let limit = layout.queue_bytes;
    let mut script =
        format!("qdisc replace dev {device} root handle 1: tbf rate {rate_bps}bit burst {burst_bytes} limit {limit}\n");
    // Its queues are as long in frames as the device's, which says nothing of super-packets: those wait in one queue.
    if layout.offload == Offload::Off {
        let _ = writeln!(script, "qdisc replace dev {device} parent 1:1 pfifo_fast");
    }
    script
}

/// How many bytes a cable may send at once after silence. Super-packets are cut into frames where they are too long for it.
fn burst_bytes(offload: Offload, rate_bps: u64, frame_bytes: u64) -> u64 {
    let sending = match offload {
        Offload::Off => 1,
        Offload::Trains | Offload::On => u64::from(TRAIN_FRAMES),
    };
    (rate_bps * BURST_US / 8_000_000).max(BURST_SENDINGS_MIN * sending * frame_bytes)
}

/// How many frames of the largest size a queue holds.
pub(crate) fn queue_frames(queue_bytes: u32, mtu_bytes: u16) -> u64 {
    (u64::from(queue_bytes) / (u64::from(mtu_bytes) + FRAME_EXTRA_BYTES)).max(1)
}

/// Largest IP packet of a switch port where hosts have this one: tags need room.
pub(crate) fn port_mtu_bytes(mtu_bytes: u16) -> u16 {
    mtu_bytes.saturating_add(TAG_ROOM_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cable_sends_little_beyond_its_rate() {
        let frame_bytes = 1522;
        for (offload, rate_bps, expected) in [
            (Offload::Off, 100_000_000, 50_000),
            (Offload::Off, 1_000_000_000, 500_000),
            // Two frames, where four milliseconds are less.
            (Offload::Off, 1_000_000, 2 * frame_bytes),
            (Offload::Trains, 1_000_000, 8 * frame_bytes),
        ] {
            let burst = burst_bytes(offload, rate_bps, frame_bytes);
            assert_eq!(burst, expected, "{offload:?} at {rate_bps}");
            let first_tenth = 8.0 * (burst as f64 + rate_bps as f64 / 80.0) / (rate_bps as f64 / 10.0);
            assert!(rate_bps < 100_000_000 || first_tenth < 1.05, "{first_tenth} of the rate in the first 100 ms");
        }
    }
}
