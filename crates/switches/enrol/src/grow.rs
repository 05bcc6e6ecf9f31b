//! How much fits: batches that double while all of a batch stays, and halve when it does not.
//!
//! ```text
//!   1 ✓ 2 ✓ 4 ✓ 8 ✓ 16 ✓ 16 ✓ 16 ✗✗ 8 ✓ 8 ✗✗ 4 ✗✗ 2 ✓ 2 ✗✗ 1 ✓ 1 ✗✗      58 fit
//! ```
//! A batch may be refused because the table is full, because a message holds too many rows, or by accident. The last
//! one is told apart by asking twice, the first two need not be: halving finds the largest message and the last row.
//! Cost: room / batch + O(log batch) messages.

use std::ops::Range;

/// How much was held, and what set the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// How many were held.
    pub held: usize,
    /// Why there are not more.
    pub end: End,
    /// The largest batch that was taken in one message.
    pub batch: usize,
}

/// What set an end to growing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The switch took no more.
    Full,
    /// More was not asked for: there may be room.
    Bound,
}

/// Refusals of a batch that are no accident.
const REFUSALS: u32 = 2;

/// Puts things, numbered from 0, until `bound` are held or no more are. `put` is given numbers and says how many of them,
/// counted from the first, are there afterwards; it may be given the same number again.
///
/// # Errors
/// Those of `put`.
pub(super) fn grow<E>(
    bound: usize,
    batch_max: usize,
    mut put: impl FnMut(Range<usize>) -> Result<usize, E>,
) -> Result<Room, E> {
    let (mut held, mut batch, mut cap, mut largest, mut refusals) = (0, 1, batch_max.max(1), 0, 0);
    while held < bound {
        let asked = batch.min(bound - held);
        let kept = put(held..held + asked)?.min(asked);
        held += kept;
        if kept == asked {
            largest = largest.max(asked);
            batch = (asked * 2).min(cap);
            refusals = 0;
            continue;
        }
        refusals += 1;
        if refusals < REFUSALS {
            continue;
        }
        if asked == 1 {
            return Ok(Room { held, end: End::Full, batch: largest });
        }
        (cap, refusals) = (asked / 2, 0);
        batch = cap;
    }
    Ok(Room { held, end: End::Bound, batch: largest })
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, convert::Infallible};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_room_is_found_exactly(
            room in 0_usize..3000,
            bound in 0_usize..3000,
            message in 1_usize..100,
            whole in any::<bool>(),
            accident in 0_usize..200,
        ) {
            let (mut table, mut messages) = (BTreeSet::new(), 0_usize);
            let found = grow::<Infallible>(bound, 32, |numbers| {
                messages += 1;
                let fresh = numbers.clone().filter(|number| !table.contains(number)).count();
                let fits = table.len() + fresh <= room;
                if messages == accident || numbers.len() > message || (whole && !fits) {
                    return Ok(0);
                }
                for number in numbers.clone() {
                    if table.len() < room {
                        table.insert(number);
                    }
                }
                Ok(numbers.clone().take_while(|number| table.contains(number)).count())
            });
            let found = found.expect("infallible");
            prop_assert_eq!(found.held, room.min(bound));
            prop_assert_eq!(found.held, table.len());
            prop_assert_eq!(found.end, if room < bound { End::Full } else { End::Bound });
            prop_assert!(found.batch <= message.min(32));
            prop_assert!(messages <= found.held / message.clamp(1, 16) * 4 + 40, "{} messages", messages);
        }
    }
}
