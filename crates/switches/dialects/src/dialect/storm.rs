//! The words of several vendors for kinds of floods.
//!
//! ```text
//!   IOS, FASTPATH     storm-control broadcast level 5
//!   Comware, Huawei   broadcast-suppression 5
//! ```

use fabric::FloodKind;

/// What the words of Comware and Huawei end in.
const SUPPRESSION: &str = "-suppression";

/// `unicast`, `multicast` or `broadcast`.
pub(super) fn word(kind: FloodKind) -> &'static str {
    match kind {
        FloodKind::UnknownUnicast => "unicast",
        FloodKind::Multicast => "multicast",
        FloodKind::Broadcast => "broadcast",
    }
}

/// The kind that a word names.
pub(super) fn kind(name: &str) -> Option<FloodKind> {
    FloodKind::ALL.iter().copied().find(|kind| word(*kind) == name)
}

/// `unicast-suppression`, `multicast-suppression` or `broadcast-suppression`.
pub(super) fn suppression(kind: FloodKind) -> String {
    format!("{}{SUPPRESSION}", word(kind))
}

/// The kind that such a word names.
pub(super) fn suppressed(name: &str) -> Option<FloodKind> {
    kind(name.strip_suffix(SUPPRESSION)?)
}
