//! Which plans and proposals are kept, and which are forgotten.
//!
//! ```text
//!   targets      1   2   3   …   N − 1   N         all are kept; plans and proposals of the last `targets` of them as well
//!   proposals    closed, of none of these ─ `days` old ─▶ forgotten, and its plan with it unless something else names it
//! ```

use std::collections::BTreeSet;

use crate::documents::{Proposal, ProposalState, Target, TargetState};

const DAY_S: u64 = 86_400;

/// For how long plans and proposals are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Newest targets whose plans are kept; at least 1.
    pub targets: usize,
    /// Days for which closed proposals are kept that became none of these.
    pub days: u64,
}

/// What is kept and what is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sorted {
    /// Proposals that are forgotten, by number, ascending.
    pub forgotten: Vec<u64>,
    /// Digests of the plans that are kept.
    pub plans: BTreeSet<String>,
}

/// Says which proposals and plans are kept at `now_s`. `targets` ascend. Kept whatever the retention are the target, the newest one that is
/// deployed, open proposals, and withdrawn ones that would follow the target, which are not made again by themselves.
/// Cost: O((targets + proposals) · log).
pub fn sort_out(now_s: u64, targets: &[Target], proposals: &[Proposal], retention: Retention) -> Sorted {
    let newest = &targets[targets.len().saturating_sub(retention.targets.max(1))..];
    let deployed = targets.iter().rev().find(|target| target.state == TargetState::Deployed);
    let kept: Vec<&Target> = newest.iter().chain(deployed).collect();
    let of_targets: BTreeSet<u64> = kept.iter().map(|target| target.proposal).collect();
    let current = targets.last().map_or(0, |target| target.number);
    let is_kept = |proposal: &&Proposal| {
        let is_young = now_s < proposal.at_s.saturating_add(retention.days.saturating_mul(DAY_S));
        let follows = proposal.state == ProposalState::Withdrawn && proposal.parent == current;
        proposal.state == ProposalState::Open || is_young || follows || of_targets.contains(&proposal.id)
    };
    let (stay, go): (Vec<&Proposal>, Vec<&Proposal>) = proposals.iter().partition(is_kept);
    let of_proposals = stay.into_iter().flat_map(|proposal| [&proposal.plan, &proposal.base]);
    let plans = kept.iter().map(|target| &target.plan).chain(of_proposals).cloned().collect();
    Sorted { forgotten: go.into_iter().map(|proposal| proposal.id).collect(), plans }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::{Cause, Effect, Way};

    fn proposal(id: u64, parent: u64, plan: &str, state: ProposalState) -> Proposal {
        Proposal {
            id,
            parent,
            plan: plan.to_owned(),
            reason: String::new(),
            by: "ada".to_owned(),
            cause: Cause::Request,
            at_s: id * DAY_S,
            way: Way::Hitless,
            effect: Effect::default(),
            state,
            approvals: Vec::new(),
            drained: Vec::new(),
            absent: Vec::new(),
            base: plan.to_owned(),
        }
    }

    fn target(number: u64, plan: &str, proposal: u64, state: TargetState) -> Target {
        Target {
            number,
            parent: number - 1,
            plan: plan.to_owned(),
            way: Way::Hitless,
            proposal,
            by: "ada".to_owned(),
            at_s: 0,
            state,
            note: None,
        }
    }

    #[test]
    fn plans_of_the_newest_targets_are_kept_and_whatever_may_still_be_deployed() {
        use ProposalState::{Approved, Open, Stale, Withdrawn};
        let targets = [
            target(1, "a", 1, TargetState::Deployed),
            target(2, "b", 2, TargetState::Deployed),
            target(3, "c", 5, TargetState::Failed),
            target(4, "a", 6, TargetState::Pending),
        ];
        let mut drained = proposal(2, 1, "b", Approved);
        drained.base = "whole".to_owned();
        let proposals = [
            proposal(1, 0, "a", Approved),
            drained,
            proposal(3, 2, "d", Withdrawn),
            proposal(4, 2, "e", Stale),
            proposal(5, 2, "c", Approved),
            proposal(6, 3, "a", Approved),
            proposal(7, 4, "f", Open),
            proposal(8, 4, "g", Withdrawn),
            proposal(9, 4, "h", Stale),
        ];
        let sorted = |now_days: u64, targets_kept: usize, days: u64| {
            let retention = Retention { targets: targets_kept, days };
            let Sorted { forgotten, plans } = sort_out(now_days * DAY_S, &targets, &proposals, retention);
            (forgotten, plans.into_iter().collect::<Vec<_>>().join(" "))
        };
        // The second target is what switches hold, since the two after it are not deployed.
        assert_eq!(sorted(100, 1, 0), (vec![1, 3, 4, 5, 9], "a b f g whole".to_owned()));
        assert_eq!(sorted(100, 2, 0), (vec![1, 3, 4, 9], "a b c f g whole".to_owned()));
        assert_eq!(sorted(100, 4, 0), (vec![3, 4, 9], "a b c f g whole".to_owned()));
        // Proposal 4 is of day 4.
        assert_eq!(sorted(13, 1, 9), (vec![1, 3, 4], "a b c f g h whole".to_owned()));
        assert_eq!(sorted(12, 1, 9), (vec![1, 3], "a b c e f g h whole".to_owned()));
        assert_eq!(sorted(100, 9, u64::MAX), (Vec::new(), "a b c d e f g h whole".to_owned()));
        // A clock that was wrong forgets nothing that it would not forget later.
        assert_eq!(sorted(0, 1, 9), (Vec::new(), "a b c d e f g h whole".to_owned()));
    }

    #[test]
    fn without_a_target_only_old_proposals_go() {
        let proposals = [proposal(1, 0, "a", ProposalState::Open), proposal(2, 0, "b", ProposalState::Stale)];
        let sorted = sort_out(100 * DAY_S, &[], &proposals, Retention { targets: 5, days: 3 });
        assert_eq!((sorted.forgotten, sorted.plans), (vec![2], BTreeSet::from(["a".to_owned()])));
    }
}
