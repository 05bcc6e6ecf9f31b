//! Whether an approval counts, and whether it is the last that is needed.

use thiserror::Error;

use crate::{
    config::{ApprovalConfig, AuthorApproval},
    documents::{Approval, Proposal, ProposalState},
};

/// Why an approval does not count.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotApproved {
    /// The proposal does not wait for approval.
    #[error("proposal {0} is not open; espalierd proposals --all shows what became of it")]
    NotOpen(u64),
    /// Another target was set meanwhile.
    #[error("proposal {id} follows target {parent}, but the target is {target} by now; propose the plan again")]
    Stale {
        /// Which proposal.
        id: u64,
        /// The target that it follows.
        parent: u64,
        /// The target.
        target: u64,
    },
    /// Its author asks.
    #[error("proposal {0} is yours; somebody else must approve it (approval.author = \"forbidden\")")]
    Author(u64),
    /// Whoever asks has approved it already.
    #[error("you have approved proposal {0} already; {1} more must")]
    Twice(u64, usize),
}

/// Adds an approval to a proposal; true if it was the last one needed.
///
/// # Errors
/// [`NotApproved`].
pub fn approve(
    proposal: &mut Proposal,
    by: &str,
    at_s: u64,
    target: u64,
    rules: ApprovalConfig,
) -> Result<bool, NotApproved> {
    let id = proposal.id;
    if proposal.state != ProposalState::Open {
        return Err(NotApproved::NotOpen(id));
    }
    if proposal.parent != target {
        return Err(NotApproved::Stale { id, parent: proposal.parent, target });
    }
    if rules.author == AuthorApproval::Forbidden && proposal.by == by {
        return Err(NotApproved::Author(id));
    }
    if proposal.approvals.iter().any(|approval| approval.by == by) {
        return Err(NotApproved::Twice(id, rules.needed.saturating_sub(proposal.approvals.len())));
    }
    proposal.approvals.push(Approval { by: by.to_owned(), at_s });
    Ok(proposal.approvals.len() >= rules.needed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::{Effect, Way};

    fn proposal() -> Proposal {
        Proposal {
            id: 4,
            parent: 2,
            plan: "d".to_owned(),
            reason: String::new(),
            by: "ada".to_owned(),
            cause: crate::documents::Cause::Request,
            at_s: 0,
            way: Way::Hitless,
            effect: Effect::default(),
            state: ProposalState::Open,
            approvals: Vec::new(),
            drained: Vec::new(),
            absent: Vec::new(),
            base: "d".to_owned(),
        }
    }

    #[test]
    fn two_must_approve_and_the_author_may_be_forbidden() {
        let rules = ApprovalConfig { needed: 2, author: AuthorApproval::Forbidden };
        let mut one = proposal();
        assert_eq!(approve(&mut one, "ada", 1, 2, rules), Err(NotApproved::Author(4)));
        assert_eq!(approve(&mut one, "bob", 1, 2, rules), Ok(false));
        assert_eq!(approve(&mut one, "bob", 2, 2, rules), Err(NotApproved::Twice(4, 1)));
        assert_eq!(approve(&mut one, "eve", 3, 2, rules), Ok(true));
        let rules = ApprovalConfig { needed: 1, author: AuthorApproval::Allowed };
        assert_eq!(approve(&mut proposal(), "ada", 1, 2, rules), Ok(true));
    }

    #[test]
    fn a_stale_proposal_is_not_approved() {
        let mut stale = proposal();
        let refused = approve(&mut stale, "bob", 1, 3, ApprovalConfig::default());
        assert_eq!(refused, Err(NotApproved::Stale { id: 4, parent: 2, target: 3 }));
        stale.state = ProposalState::Withdrawn;
        assert_eq!(approve(&mut stale, "bob", 1, 2, ApprovalConfig::default()), Err(NotApproved::NotOpen(4)));
        assert!(stale.approvals.is_empty());
    }
}
