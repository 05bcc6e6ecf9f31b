//! Which hosts' ports hold another PVID than the plan's, and for which failure that is the stored answer.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use fabric::{Assignment, Failure, HostId, LinkId, Plan, Tagging, VlanId};

use crate::standby::unmissed;

/// Which failure's answer hosts' ports hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// None: what the plan has, all cables being alive, or nothing that it stored.
    Home,
    /// That of a cable that is down, or of a switch or a group whose cables to other switches all are.
    For(Failure),
    /// All of that of a cable that carries, or of a switch or a group one of whose cables does.
    Lingering(Failure),
    /// What `standby` leaves in the middle of a change, for no cable that is down.
    Between,
}

/// Hosts by what their ports hold; hosts of switches that did not answer are in none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moves {
    /// Which failure's answer it is.
    pub standing: Standing,
    /// Ports that hold the stored PVID.
    pub moved: Vec<HostId>,
    /// Ports that take no untagged frames.
    pub stopped: Vec<HostId>,
    /// Ports that hold the plan's PVID and would have to hold the stored one.
    pub waiting: Vec<HostId>,
}

impl Moves {
    const HOME: Self = Self { standing: Standing::Home, moved: Vec::new(), stopped: Vec::new(), waiting: Vec::new() };

    /// Compares the PVIDs of hosts' ports, `found[host]`, with what the plan stores. The outer option is none where nothing
    /// is known, the inner one where no untagged frame is taken. Cost: O(failures · hosts).
    ///
    /// # Panics
    /// If there is not one for every host.
    pub fn find(plan: &Plan, found: &[Option<Option<VlanId>>], dead: &BTreeSet<LinkId>) -> Self {
        let (Assignment::Source(home), Tagging::Switch) = (&plan.assignment, plan.policy.tagging) else {
            return Self::HOME;
        };
        let Some(failover) = &plan.failover else { return Self::HOME };
        assert_eq!(found.len(), home.len(), "a port for every host");
        let elsewhere: BTreeMap<HostId, Option<VlanId>> = (found.iter().zip(home).enumerate())
            .filter_map(|(host, (found, home))| Some((HostId::new(host), (*found)?, *home)))
            .filter(|(_, found, home)| *found != Some(*home))
            .map(|(host, found, _)| (host, found))
            .collect();
        let answers = failover.switch_overs.iter().map(|over| {
            let runs = over.hosts.iter();
            let moves: BTreeMap<HostId, VlanId> = runs
                .flat_map(|run| (run.first.index()..=run.last.index()).map(|host| (HostId::new(host), run.choice)))
                .filter(|(host, vlan)| found[host.index()].is_some() && home[host.index()] != *vlan)
                .collect();
            (over.failure, moves)
        });
        let answers: BTreeMap<Failure, BTreeMap<HostId, VlanId>> = answers.collect();
        let has_failed = |failure: Failure| failure.outer_links(&plan.topology).iter().all(|link| dead.contains(link));
        let of = |failure: Failure| {
            let moves = &answers[&failure];
            let pick = |fits: &dyn Fn(HostId, VlanId) -> bool| -> Vec<HostId> {
                moves.iter().filter(|(host, vlan)| fits(**host, **vlan)).map(|(host, _)| *host).collect()
            };
            let at = |host: HostId| elsewhere.get(&host).copied();
            Self {
                standing: if has_failed(failure) { Standing::For(failure) } else { Standing::Lingering(failure) },
                moved: pick(&|host, vlan| at(host) == Some(Some(vlan))),
                stopped: pick(&|host, _| at(host) == Some(None)),
                waiting: pick(&|host, _| at(host).is_none()),
            }
        };
        let down: Vec<Failure> = answers.keys().copied().filter(|failure| has_failed(*failure)).collect();
        // Where a switch or a group is down that nothing is stored for, since no frame between other hosts passes it, no host moves for
        // one of its cables.
        let needs_nothing = |part: &Failure| {
            !answers.contains_key(part) && !part.outer_links(&plan.topology).is_empty() && has_failed(*part)
        };
        let quiet = if down.is_empty() { Vec::new() } else { unmissed(plan) };
        let quiet: Vec<Vec<LinkId>> =
            quiet.into_iter().filter(needs_nothing).map(|part| part.links(&plan.topology)).collect();
        let is_within_quiet = |failure: Failure| {
            let own = failure.links(&plan.topology);
            quiet.iter().any(|links| own.iter().all(|link| links.contains(link)))
        };
        // Of what is down that whose answer explains most; as standby would, a group, a switch or the first cable, if none does.
        let down = down.into_iter().map(|failure| (failure, of(failure)));
        let down = down.filter(|(failure, moves)| moves.explained().next().is_some() || !is_within_quiet(*failure));
        let down = down.map(|(_, moves)| moves);
        let likeliest = down.max_by_key(|moves| {
            (moves.explained().count(), moves.width(plan), Reverse(moves.waiting.len()), moves.order())
        });
        if let Some(moves) = likeliest {
            return moves;
        }
        if elsewhere.is_empty() {
            return Self::HOME;
        }
        let whole =
            |moves: &Self| moves.waiting.is_empty() && moves.stopped.is_empty() && moves.moved.len() == elsewhere.len();
        if let Some(moves) = answers.keys().copied().map(of).find(whole) {
            return moves;
        }
        let known = |host: &HostId, pvid: &Option<VlanId>| {
            pvid.is_none() || answers.values().any(|moves| moves.get(host).copied() == *pvid)
        };
        let stopped: Vec<HostId> = elsewhere.iter().filter(|(_, pvid)| pvid.is_none()).map(|(host, _)| *host).collect();
        if stopped.is_empty() || !elsewhere.iter().all(|(host, pvid)| known(host, pvid)) {
            return Self::HOME;
        }
        let moved = elsewhere.iter().filter(|(_, pvid)| pvid.is_some()).map(|(host, _)| *host).collect();
        Self { standing: Standing::Between, moved, stopped, waiting: Vec::new() }
    }

    /// Hosts whose ports differ from the plan for a reason.
    pub fn explained(&self) -> impl Iterator<Item = HostId> + '_ {
        self.moved.iter().chain(&self.stopped).copied()
    }

    /// Lower ones first where all else is equal.
    fn order(&self) -> Reverse<Option<Failure>> {
        Reverse(self.failure())
    }

    /// Groups before switches before cables, and of groups those of most cables.
    fn width(&self, plan: &Plan) -> (u8, usize) {
        match self.failure() {
            None | Some(Failure::Link(_)) => (0, 0),
            Some(Failure::Switch(_)) => (1, 0),
            Some(failure @ Failure::Group(_)) => (2, failure.links(&plan.topology).len()),
        }
    }

    fn failure(&self) -> Option<Failure> {
        match self.standing {
            Standing::For(failure) | Standing::Lingering(failure) => Some(failure),
            Standing::Home | Standing::Between => None,
        }
    }
}
