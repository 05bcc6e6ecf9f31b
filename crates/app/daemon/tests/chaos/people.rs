//! People who propose, approve and mark, and what they were told, which must be so for ever.

use std::{collections::BTreeMap, sync::Arc};

use espalierd::{
    archive::Archive,
    documents::{Event, Maintenance, Proposal, ProposalState, Severity, Target, TargetState},
    manager::{Manager, Refused, WHOLE_FABRIC},
};
use fabric::{Plan, rng::Rng};

/// Newest targets whose plans are kept.
pub(crate) const KEPT_TARGETS: usize = 3;
const NAMES: [&str; 3] = ["ada", "bob", "carol"];

/// Who they are, and what they were told.
pub(crate) struct People {
    /// Plans that they propose.
    plans: Arc<Vec<Plan>>,
    proposed: Vec<Proposal>,
    /// By number of the target: the digest of its plan.
    approved: BTreeMap<u64, String>,
    marked: BTreeMap<u64, Maintenance>,
    /// Marks that somebody asked to remove, and was not told whether that was done.
    perhaps_removed: Vec<u64>,
    newest_target: u64,
}

impl People {
    pub(crate) fn new(plans: Arc<Vec<Plan>>) -> Self {
        Self {
            plans,
            proposed: Vec::new(),
            approved: BTreeMap::new(),
            marked: BTreeMap::new(),
            perhaps_removed: Vec::new(),
            newest_target: 0,
        }
    }

    /// Somebody does something; what, and how it was answered.
    pub(crate) fn act(&mut self, manager: &Manager, rng: &mut Rng) -> String {
        let who = NAMES[rng.below(NAMES.len())];
        match rng.below(12) {
            0..=1 => {
                let which = rng.below(self.plans.len());
                format!("{who} proposes plan {which}: {}", self.propose(manager, which, who))
            }
            2..=6 => {
                let open = self.open(manager);
                if open.is_empty() {
                    return format!("{who} finds nothing to approve");
                }
                let id = open[rng.below(open.len())].id;
                format!("{who} approves {id}: {}", self.approve(manager, id, who))
            }
            7 => {
                let open = self.open(manager);
                let Some(proposal) = open.first() else { return format!("{who} finds nothing to withdraw") };
                format!("{who} withdraws {}: {:?}", proposal.id, manager.withdraw(proposal.id, who).map(|_| ()))
            }
            8 => {
                let number = 1 + rng.below(self.newest_target.max(1) as usize) as u64;
                match manager.roll_back(number, who) {
                    Ok(proposal) => {
                        self.proposed.push(proposal);
                        format!("{who} rolls back to {number}")
                    }
                    Err(why) => format!("{who} cannot roll back to {number}: {why}"),
                }
            }
            9 => format!("{who} retries: {:?}", manager.retry(who).map(|target| target.number)),
            10 => {
                let topology = &self.plans[0].topology;
                let subject = match rng.below(4) {
                    0 => WHOLE_FABRIC.to_owned(),
                    1 => topology.switches()[rng.below(topology.switches().len())].name.clone(),
                    _ => topology.link_label(fabric::LinkId::new(rng.below(topology.links().len()))),
                };
                let lasts_s = 60 + rng.below(7200) as u64;
                let drain = subject != WHOLE_FABRIC && rng.below(2) == 0;
                format!("{who} marks {subject}: {}", self.mark(manager, &subject, who, lasts_s, drain))
            }
            _ => match self.marked.keys().next().copied() {
                Some(id) => format!("{who} removes mark {id}: {}", self.remove_mark(manager, id, who)),
                None => format!("{who} has nothing to do"),
            },
        }
    }

    fn open(&self, manager: &Manager) -> Vec<Proposal> {
        let all = manager.archive().proposals().unwrap_or_default();
        all.into_iter().filter(|proposal| proposal.state == ProposalState::Open).collect()
    }

    pub(crate) fn propose(&mut self, manager: &Manager, which: usize, who: &str) -> String {
        match manager.propose(&self.plans[which], "somebody wants it", who) {
            Ok(proposal) => {
                let told = format!("proposal {}", proposal.id);
                self.proposed.push(proposal);
                told
            }
            Err(why) => why.to_string(),
        }
    }

    pub(crate) fn approve(&mut self, manager: &Manager, id: u64, who: &str) -> String {
        match manager.approve(id, who) {
            Ok(proposal) if proposal.state == ProposalState::Approved => {
                let number = proposal.parent + 1;
                let other = self.approved.insert(number, proposal.plan.clone());
                assert!(other.is_none(), "two proposals were approved as target {number}");
                format!("target {number}")
            }
            Ok(_) => "more must approve".to_owned(),
            Err(why) => why.to_string(),
        }
    }

    fn mark(&mut self, manager: &Manager, subject: &str, who: &str, lasts_s: u64, drain: bool) -> String {
        let now_s = manager.now_s();
        let mark = Maintenance {
            id: 0,
            subject: subject.to_owned(),
            reason: "work".to_owned(),
            by: who.to_owned(),
            at_s: now_s,
            until_s: Some(now_s + lasts_s),
            drain,
        };
        match manager.set_maintenance(mark) {
            Ok(mark) => {
                let told = format!("mark {}", mark.id);
                self.marked.insert(mark.id, mark);
                told
            }
            Err(why) => why.to_string(),
        }
    }

    fn remove_mark(&mut self, manager: &Manager, id: u64, who: &str) -> String {
        match manager.remove_maintenance(id, who) {
            Ok(()) | Err(Refused::NotFound(_)) => {
                self.marked.remove(&id);
                "done".to_owned()
            }
            Err(why) => {
                self.perhaps_removed.push(id);
                why.to_string()
            }
        }
    }

    /// Checks that everything is so that anybody was told, and that targets follow each other.
    ///
    /// # Panics
    /// If not.
    pub(crate) fn check(&mut self, archive: &Archive) {
        let targets: Vec<Target> = archive.targets().expect("the store works");
        let proposals: BTreeMap<u64, Proposal> =
            archive.proposals().expect("the store works").into_iter().map(|proposal| (proposal.id, proposal)).collect();
        let deployed = targets.iter().rev().find(|target| target.state == TargetState::Deployed);
        for (at, target) in (1..).zip(&targets) {
            assert_eq!((target.number, target.parent), (at, at - 1), "targets follow each other");
            let is_kept = at + KEPT_TARGETS as u64 > targets.len() as u64 || deployed == Some(target);
            if is_kept {
                assert!(archive.plan_text(&target.plan).expect("the store works").is_some(), "the plan of target {at}");
            }
            let Some(proposal) = proposals.get(&target.proposal) else {
                assert!(!is_kept, "the proposal of target {at} is lost");
                continue;
            };
            assert_eq!(proposal.state, ProposalState::Approved, "target {at} came from proposal {}", proposal.id);
            assert_eq!((proposal.parent, &proposal.plan), (target.parent, &target.plan));
        }
        let newest = targets.last().map_or(0, |target| target.number);
        assert!(newest >= self.newest_target, "target {} is gone", self.newest_target);
        assert_eq!(archive.target().expect("the store works").map_or(0, |target| target.number), newest);
        self.newest_target = newest;
        for (number, digest) in &self.approved {
            let target = targets.get(*number as usize - 1);
            assert_eq!(target.map(|target| &target.plan), Some(digest), "the approval of target {number} is lost");
        }
        for told in &self.proposed {
            let Some(kept) = proposals.get(&told.id) else {
                assert!(told.parent < newest, "proposal {} is lost", told.id);
                continue;
            };
            assert_eq!(kept.plan, told.plan, "proposal {}", told.id);
            let is_open = kept.state == ProposalState::Open;
            let has_plan = || archive.plan_text(&kept.plan).expect("the store works").is_some();
            assert!(!is_open || has_plan(), "the plan of proposal {} is lost", told.id);
        }
        let marks = archive.maintenance().expect("the store works");
        for (id, told) in self.marked.iter().filter(|(id, _)| !self.perhaps_removed.contains(id)) {
            let kept = marks.iter().find(|mark| mark.id == *id);
            assert_eq!(kept.map(|kept| &kept.subject), Some(&told.subject), "mark {id} is lost");
        }
    }

    /// What somebody does who follows what `espalierd status` says until nothing is wrong; whether nothing is.
    pub(crate) fn attend(&mut self, manager: &Manager, say: &mut dyn FnMut(String)) -> bool {
        let archive = manager.archive();
        for mark in archive.maintenance().expect("the store works") {
            manager.remove_maintenance(mark.id, NAMES[0]).expect("it is there");
        }
        self.marked.clear();
        let status = manager.status().expect("the store works");
        let target = status.target.clone().expect("a first plan was approved");
        let urgent: Vec<&Event> = status.events.iter().filter(|event| event.severity > Severity::Note).collect();
        let is_whole = status.polled_s.is_some() && status.as_planned == status.switches;
        if is_whole && target.state == TargetState::Deployed && status.proposals.is_empty() && urgent.is_empty() {
            return true;
        }
        for note in status.events.iter().filter(|event| event.severity == Severity::Note) {
            say(format!("note: {} {}: {}", note.kind, note.subject, note.message));
        }
        let mut is_attended = false;
        let open: Vec<u64> = status.proposals.iter().map(|proposal| proposal.id).collect();
        for event in urgent {
            say(format!("open: {} {}: {}; {:?}", event.kind, event.subject, event.message, event.remedy));
            let remedy = event.remedy.as_deref().unwrap_or_default();
            if let Some((_, switch)) = remedy.split_once("espalierd put-back ") {
                let switch = switch.split(&[';', ',', ' ']).next().unwrap_or_default();
                say(format!("put back {switch}: {:?}", manager.ask_back(switch, NAMES[0])));
                is_attended = true;
            }
            if let (Some((_, target)), true) =
                (remedy.split_once("if that was withdrawn, espalierd rollback "), open.is_empty())
            {
                let number = target.parse().expect("the remedy names a target");
                say(format!("roll back to {number}: {:?}", manager.roll_back(number, NAMES[0]).map(|_| ())));
                return false;
            }
        }
        if is_attended {
            return false;
        }
        if target.state == TargetState::Failed {
            say(format!("retry: {:?}", manager.retry(NAMES[0]).map(|target| target.number)));
            return false;
        }
        for proposal in status.proposals.iter().rev().take(1) {
            for who in NAMES {
                say(format!("{who} approves {}: {}", proposal.id, self.approve(manager, proposal.id, who)));
            }
        }
        false
    }
}
