//! Tokens: what an event of the network or the clock belongs to.

/// What an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    pub(super) action: u32,
    pub(super) stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Time has passed.
    Passed,
    /// A message is prepared.
    Prepared,
    /// A message is taken.
    Taken,
    /// A short message, whole.
    Eager,
    /// The request of a long message.
    Request,
    /// Its answer.
    Clear,
    /// A long message itself.
    Data,
}

impl Token {
    /// Whether it belongs to the answer to a long message's request, which need not wait for a long message that is on its
    /// way: MPI libraries send those in pieces, and answers between them.
    pub(crate) fn is_answer(self) -> bool {
        self.stage == Stage::Clear
    }

    /// One that tests make up.
    #[cfg(test)]
    pub(crate) fn of_test(action: u32, is_answer: bool) -> Self {
        Self { action, stage: if is_answer { Stage::Clear } else { Stage::Data } }
    }
}
