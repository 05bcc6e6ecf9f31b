//! How many static entries a switch takes in one SET.

/// Most entries in one SET: so many fit into an Ethernet frame.
pub(super) const ENTRIES_MAX: usize = 16;

/// How many entries a switch takes in one SET, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) size: usize,
    /// Whether any with more than one has been taken.
    pub(super) proof: Proof,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    None,
    Taken,
}

impl Default for Batch {
    fn default() -> Self {
        Self { size: ENTRIES_MAX, proof: Proof::None }
    }
}
