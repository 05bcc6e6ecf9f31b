//! Ports of a switch by their position.

/// A port's position in [`SwitchConfig::ports`](crate::SwitchConfig::ports).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(u32);

impl Slot {
    /// Wraps a position.
    ///
    /// # Panics
    /// If `index` does not fit in 32 bits, which no switch's ports do not.
    pub fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("a switch has fewer than 2^32 ports"))
    }

    /// The position.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
