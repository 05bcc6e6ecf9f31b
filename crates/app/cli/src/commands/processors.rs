//! The processors of this machine.

use std::{num::NonZero, thread};

/// How many threads run at the same time on this machine.
pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}
