//! Parts of the search, so that one can be left out to measure what it is worth.

use std::{fmt, str::FromStr};

/// A start or a rule of engine `balanced`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchPart {
    /// Start from the routes of `dor` and `clos`.
    Structured,
    /// Start from up*/down* routes.
    Updown,
    /// Start from annealed channel orders.
    Annealed,
    /// Move a subtree to another parent, with a tree for each source.
    Reattach,
    /// Change the channel order toward the turns that trees want.
    Bend,
    /// Grow every tree again against the load of all others.
    Rebuild,
    /// Shared trees: split the tree on the most loaded link.
    Split,
    /// Shared trees: what is left of a tree for each source.
    Remainder,
    /// Shared trees: trees rooted at switches far from each other, without flow control.
    Spread,
    /// Shared trees: a tree for each cluster of senders, without flow control.
    Clusters,
    /// Shared trees: channel orders annealed for clusters of senders.
    Ordered,
    /// Shared trees: move a branch to another parent.
    MoveBranch,
    /// Shared trees: move a sender, or a pair, to another tree.
    MoveSender,
    /// Routes of stricter requests compete.
    Rivals,
}

impl SearchPart {
    /// All of them, starts before rules.
    pub const ALL: [Self; 14] = [
        Self::Structured,
        Self::Updown,
        Self::Annealed,
        Self::Split,
        Self::Remainder,
        Self::Spread,
        Self::Clusters,
        Self::Ordered,
        Self::Rivals,
        Self::Reattach,
        Self::Bend,
        Self::Rebuild,
        Self::MoveBranch,
        Self::MoveSender,
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::Structured => "structured",
            Self::Updown => "updown",
            Self::Annealed => "annealed",
            Self::Split => "split",
            Self::Remainder => "remainder",
            Self::Spread => "spread",
            Self::Clusters => "clusters",
            Self::Ordered => "ordered",
            Self::Rivals => "rivals",
            Self::Reattach => "reattach",
            Self::Bend => "bend",
            Self::Rebuild => "rebuild",
            Self::MoveBranch => "move-branch",
            Self::MoveSender => "move-sender",
        }
    }
}

impl fmt::Display for SearchPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for SearchPart {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let words = || Self::ALL.map(Self::word).join(", ");
        Self::ALL.into_iter().find(|part| part.word() == word).ok_or_else(|| format!("{word:?} is none of {}", words()))
    }
}
