//! Stands by for a cable, a switch or a group of both to fail, and then has the hosts that it cut off send in the VLANs that the plan stored for
//! that.
//!
//! ```text
//!   home ◀──────────────────────▶ over(failure)        proof: the plan's certificate, or unneeded
//!   home ◀▶ stopped(failure) ◀──▶ over(failure)        proof: a further numbering, drained or not
//! ```
//! A switch has failed once all its cables are down; its stored switch-over takes the place of one for any of them. Its own
//! hosts send nothing that leaves it, so nobody waits for it to stop or to move them; that is done when it answers again. A group
//! has failed once all cables that lead out of it are down; its switch-over takes the place of one for any of its members. Where nothing
//! has to be stored for a part, hosts stay where the plan has them while all its cables are down.
//!
//! A further numbering leaves out what goes over dead cables, which may come back to life at any moment, even before
//! all hosts have moved. So hosts that move are stopped first where that is the proof; what the others send respects
//! the order either numbering. A stopped port takes no untagged frames; its link stays up, and what is sent to it
//! arrives.
//!
//! Nothing is done here. Tell [`Standby::handle_links`] what became of the cables and which switches answer, have the
//! switches hold what [`Standby::pvid`] says, and tell [`Standby::handle_held`] which of them do.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    time::Duration,
};

use fabric::{
    Failure, HostId, InService, LinkId, Plan, Proof, SwitchId, Tagging, Topology, VlanId, dividing_groups,
    dividing_links, dividing_switches,
};

/// How long switches are given to stop hosts before those go on as before.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// How long nobody is stopped after that did not work.
const STOP_AGAIN: Duration = Duration::from_secs(60);

/// How long a cable must carry again before hosts go back to it. One that fails over and over is kept out of use for longer and longer.
///
/// ```text
///   failures in a row    1      …  limit   limit + 1   limit + 2   …
///   hold-down            least  …  least   2 · least   4 · least   … most
/// ```
/// Failures are in a row as long as the cable has not carried for twice `most` between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldDown {
    /// After a failure.
    pub least: Duration,
    /// Failures in a row beyond which a cable is kept out of use.
    pub limit: u32,
    /// At most.
    pub most: Duration,
}

impl HoldDown {
    /// The limit unless another one is given.
    pub const LIMIT: u32 = 3;
    /// The longest unless another one is given.
    pub const MOST: Duration = Duration::from_secs(600);
    /// What is doubled, if the shortest is shorter.
    const DOUBLED_LEAST: Duration = Duration::from_secs(1);

    /// This one, with the limit and the longest that are usual.
    pub fn new(least: Duration) -> Self {
        Self { least, limit: Self::LIMIT, most: Self::MOST.max(least) }
    }

    /// After so many failures in a row.
    pub fn after(self, failures: u32) -> Duration {
        match failures.saturating_sub(self.limit) {
            0 => self.least,
            beyond => {
                let doubled =
                    2_u32.checked_pow(beyond).and_then(|times| self.least.max(Self::DOUBLED_LEAST).checked_mul(times));
                doubled.map_or(self.most, |doubled| doubled.min(self.most)).max(self.least)
            }
        }
    }
}

/// What an earlier standby knew of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastFailures {
    /// Failures in a row.
    pub in_a_row: u32,
    /// Whether it was kept out of use.
    pub is_kept_out: bool,
}

/// What is known of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkHealth {
    /// It carries.
    Up,
    /// One of its ends says that it does not.
    Down,
    /// Nobody who would know answers.
    Unknown,
}

/// Which VLANs hosts are to send in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActiveVlans {
    /// Those of the plan, all cables being alive.
    Planned,
    /// Those stored for this failure.
    Backup(Failure),
    /// Those of the plan, but for hosts that this failure moves: these send nothing.
    Stopped(Failure),
    /// Those of the plan, but for hosts that were found elsewhere: these send nothing.
    Gathering,
}

/// What is worth telling a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandbyNotice {
    /// A cable died, or a switch or group with all its cables. What the plan stored for it is being done; for some nothing has to be.
    Failed(Failure),
    /// A cable died that no frame needs.
    Missed(LinkId),
    /// A cable died beside which nothing runs.
    Dividing(LinkId),
    /// A cable, a switch or a group died while a switch-over for another was in force; nothing is stored for both.
    Second(Failure),
    /// A cable is alive again.
    Healed(LinkId),
    /// A cable has failed so often in a row that hosts do not go back to it until it has carried for so long.
    KeptOut(LinkId, u32, Duration),
    /// A cable that was kept out has carried for long enough.
    Admitted(LinkId),
    /// Every switch that answers holds this.
    Holds(ActiveVlans),
    /// Hosts have to be stopped for a moment, for this failure, and this switch does not answer: everything stays as it is.
    CannotStop(Failure, SwitchId),
    /// What is stored for this failure mixes with nothing but the plan's own routes, and this switch has not come back to
    /// them.
    Waits(Failure, SwitchId),
}

/// Why a plan gives a standby nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unprepared {
    /// It stores no switch-overs.
    NothingStored,
    /// Hosts tag their frames themselves.
    HostsChoose,
}

impl fmt::Display for Unprepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NothingStored => {
                "the plan stores nothing for failures, and no machine has a failover bond; make one with espalier plan --resilience 1, or --resilience switch"
            }
            Self::HostsChoose => {
                "hosts tag their own frames in this plan, and leave a dead path by themselves: run espalier tagger on them"
            }
        })
    }
}

/// What a standby is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// How many cables.
    pub links: usize,
    /// How many switches.
    pub switches: usize,
    /// How many groups.
    pub groups: usize,
    /// For how many of all these hosts are stopped for a moment before they move.
    pub stopped: usize,
}

/// The PVID of a port that takes no untagged frames, or the VLAN of those that it takes.
pub type Pvid = Option<VlanId>;

/// Decides which switch-over is in force.
#[derive(Clone, Debug)]
pub struct Standby {
    home: Vec<Pvid>,
    /// By failure: who moves then.
    overs: BTreeMap<Failure, Over>,
    /// Switches and groups that the plan is ready for: something is stored, or hosts are to stay although something is stored for
    /// less.
    parts: BTreeMap<Failure, Part>,
    /// Of these, those all of whose cables to other switches are down.
    dead: BTreeSet<Failure>,
    dividing: BTreeSet<LinkId>,
    /// How long what failed must be alive before hosts go back.
    hold: HoldDown,
    /// How long frames may be on their way.
    drain: Duration,
    active: ActiveVlans,
    /// Through which VLANs the hosts go from there, in order.
    way: VecDeque<ActiveVlans>,
    /// Where hosts go back to if they cannot all be stopped.
    origin: ActiveVlans,
    /// Hosts that were found in the middle of some change.
    astray: BTreeSet<HostId>,
    /// Switches that may have missed a change since they last held one.
    stale: BTreeSet<SwitchId>,
    /// Switches with hosts.
    hosting: BTreeSet<SwitchId>,
    /// Since when these VLANs are wanted, and since when every switch holds them.
    wanted_since: Duration,
    held_since: Option<Duration>,
    told_held: bool,
    down: BTreeSet<LinkId>,
    up_since: BTreeMap<LinkId, Duration>,
    /// Failures in a row.
    failures: BTreeMap<LinkId, u32>,
    /// Those that have not been asked for.
    counted: VecDeque<(LinkId, u32)>,
    /// Cables that have failed too often, until they have carried for their hold-down.
    kept_out: BTreeSet<LinkId>,
    /// Failures for which hosts could not be stopped, and when that may be tried again.
    refused: BTreeMap<Failure, Duration>,
    notices: VecDeque<StandbyNotice>,
}

/// A switch or a group.
#[derive(Clone, Debug)]
struct Part {
    /// Its cables, ascending.
    links: Vec<LinkId>,
    /// Those that lead to other switches; at least one. Of a cable between switches that are off nobody knows.
    outer: Vec<LinkId>,
    /// Its switches.
    switches: BTreeSet<SwitchId>,
}

#[derive(Clone, Debug)]
struct Over {
    proof: Proof,
    moves: BTreeMap<HostId, VlanId>,
    switches: BTreeSet<SwitchId>,
}

impl Standby {
    /// Prepares for the failures that a plan is ready for. `drain` is how long frames may be on their way.
    ///
    /// # Errors
    /// [`Unprepared`].
    pub fn new(plan: &Plan, hold: HoldDown, drain: Duration) -> Result<Self, Unprepared> {
        let by_switch = plan.policy.tagging == Tagging::Switch;
        if !plan.topology.has_standby_ports() {
            match &plan.failover {
                _ if !by_switch => return Err(Unprepared::HostsChoose),
                None => return Err(Unprepared::NothingStored),
                Some(_) => {}
            }
        }
        let switch_overs = plan.failover.iter().filter(|_| by_switch).flat_map(|failover| &failover.switch_overs);
        let overs = switch_overs.map(|over| {
            let moves: BTreeMap<HostId, VlanId> = (over.hosts.iter())
                .flat_map(|run| (run.first.index()..=run.last.index()).map(|host| (HostId::new(host), run.choice)))
                .collect();
            let switches = moves.keys().map(|host| plan.topology.switch_of(*host)).collect();
            (over.failure, Over { proof: over.proof, moves, switches })
        });
        let overs: BTreeMap<Failure, Over> = overs.collect();
        let parts = parts(plan, &overs);
        let home = |host: HostId| {
            let (port, switch) = (plan.topology.host(host).port, plan.topology.switch_of(host));
            plan.devices[switch.index()].ports.iter().find(|intent| intent.port == port)?.pvid
        };
        Ok(Self {
            home: plan.topology.host_ids().map(home).collect(),
            parts,
            overs,
            dead: BTreeSet::new(),
            dividing: dividing_links(&plan.topology).into_iter().collect(),
            hold,
            drain,
            active: ActiveVlans::Planned,
            way: VecDeque::new(),
            origin: ActiveVlans::Planned,
            astray: BTreeSet::new(),
            stale: BTreeSet::new(),
            hosting: plan.topology.host_ids().map(|host| plan.topology.switch_of(host)).collect(),
            wanted_since: Duration::ZERO,
            held_since: None,
            told_held: true,
            down: BTreeSet::new(),
            up_since: BTreeMap::new(),
            failures: BTreeMap::new(),
            counted: VecDeque::new(),
            kept_out: BTreeSet::new(),
            refused: BTreeMap::new(),
            notices: VecDeque::new(),
        })
    }

    /// Cables, switches and groups that something is stored for, and those of all for which hosts have to be stopped for a moment
    /// before they move.
    pub fn prepared(&self) -> Prepared {
        let stopped = self.overs.keys().filter(|failure| !self.is_free(**failure)).count();
        let switches = self.overs.keys().filter(|failure| matches!(failure, Failure::Switch(_))).count();
        let groups = self.overs.keys().filter(|failure| matches!(failure, Failure::Group(_))).count();
        Prepared { links: self.overs.len() - switches - groups, switches, groups, stopped }
    }

    /// Takes what an earlier standby knew of cables. The hold-down of those that it kept out begins anew.
    pub fn remember(&mut self, past: &BTreeMap<LinkId, PastFailures>) {
        self.failures.extend(past.iter().map(|(link, past)| (*link, past.in_a_row)));
        let kept_out = past.iter().filter(|(_, past)| past.is_kept_out).map(|(link, _)| *link);
        self.kept_out.extend(kept_out.filter(|link| self.overs.contains_key(&Failure::Link(*link))));
    }

    /// Takes up what an earlier standby left: `found[host]` is what each host's port has, `dead` the cables that are down.
    ///
    /// # Errors
    /// A host whose port has a PVID that nothing of the plan's gives it.
    ///
    /// # Panics
    /// If there is not one port a host.
    pub fn take_up(&mut self, found: &[Pvid], dead: &BTreeSet<LinkId>) -> Result<ActiveVlans, HostId> {
        assert_eq!(found.len(), self.home.len(), "a port for every host");
        let hosts = || found.iter().enumerate().map(|(index, pvid)| (HostId::new(index), *pvid));
        let held = |active| hosts().all(|(host, pvid)| pvid == self.pvid_in(active, host));
        if held(ActiveVlans::Planned) {
            return Ok(ActiveVlans::Planned);
        }
        let is_dead = |failure: &Failure| {
            let outer = self.parts.get(failure).map_or(self.cables(failure), |part| &part.outer);
            outer.iter().all(|link| dead.contains(link))
        };
        // What is dead is likelier than what is not, and what asks for care is the safer guess.
        let exact = (self.overs.keys().copied())
            .filter(|failure| held(ActiveVlans::Backup(*failure)))
            .max_by_key(|failure| (is_dead(failure), !self.is_free(*failure)));
        let known = |host, pvid: Pvid| {
            pvid.is_none() || self.overs.keys().any(|failure| pvid == self.pvid_in(ActiveVlans::Backup(*failure), host))
        };
        let active = match exact {
            Some(failure) => ActiveVlans::Backup(failure),
            None => {
                let elsewhere = hosts().filter(|(host, pvid)| *pvid != self.pvid_in(ActiveVlans::Planned, *host));
                let astray: Vec<(HostId, Pvid)> = elsewhere.collect();
                if let Some((host, _)) = astray.iter().find(|(host, pvid)| !known(*host, *pvid)) {
                    return Err(*host);
                }
                self.astray = astray.into_iter().map(|(host, _)| host).collect();
                self.way.push_back(ActiveVlans::Planned);
                ActiveVlans::Gathering
            }
        };
        (self.active, self.told_held) = (active, false);
        Ok(active)
    }

    /// Whether its switch-over mixes with the plan's own routes, and with all others that do.
    fn is_free(&self, failure: Failure) -> bool {
        matches!(self.overs[&failure].proof, Proof::Certificate | Proof::Unneeded)
    }

    /// What is to hold now.
    pub fn active(&self) -> ActiveVlans {
        self.active
    }

    /// The PVID that a host's port is to have now; none takes no untagged frames.
    pub fn pvid(&self, host: HostId) -> Pvid {
        self.pvid_in(self.active, host)
    }

    fn pvid_in(&self, active: ActiveVlans, host: HostId) -> Pvid {
        let home = self.home[host.index()];
        match active {
            ActiveVlans::Planned => home,
            ActiveVlans::Backup(failure) => self.overs[&failure].moves.get(&host).copied().or(home),
            ActiveVlans::Stopped(failure) => home.filter(|_| !self.overs[&failure].moves.contains_key(&host)),
            ActiveVlans::Gathering => home.filter(|_| !self.astray.contains(&host)),
        }
    }

    /// Takes what is known of every cable, `links[link]`, and which switches do not answer.
    pub fn handle_links(&mut self, now: Duration, links: &[LinkHealth], silent: &BTreeSet<SwitchId>) {
        let mut died = Vec::new();
        for (index, health) in links.iter().enumerate() {
            let link = LinkId::new(index);
            match health {
                LinkHealth::Down => {
                    let up_for = self.up_since.remove(&link).map(|since| now.saturating_sub(since));
                    if self.down.insert(link) {
                        died.push((link, up_for));
                    }
                }
                LinkHealth::Up => {
                    let since = *self.up_since.entry(link).or_insert(now);
                    if self.kept_out.contains(&link) && now.saturating_sub(since) >= self.hold_down(Failure::Link(link))
                    {
                        self.kept_out.remove(&link);
                        self.notices.push_back(StandbyNotice::Admitted(link));
                    }
                    if self.down.remove(&link) {
                        self.refused.remove(&Failure::Link(link));
                        self.notices.push_back(StandbyNotice::Healed(link));
                    }
                }
                LinkHealth::Unknown => {
                    self.up_since.remove(&link);
                }
            }
        }
        let is_dead = |part: &Part| part.outer.iter().all(|link| self.down.contains(link));
        let dead: BTreeSet<Failure> =
            self.parts.iter().filter(|(_, part)| is_dead(part)).map(|(failure, _)| *failure).collect();
        let newly: BTreeSet<Failure> = dead.difference(&self.dead).copied().collect();
        self.refused.retain(|failure, _| !self.parts.contains_key(failure) || dead.contains(failure));
        self.dead = dead;
        died.retain(|(link, _)| !self.is_within_dead(Failure::Link(*link)));
        let newly: BTreeSet<Failure> = newly.into_iter().filter(|part| !self.is_within_dead(*part)).collect();
        newly.iter().for_each(|part| self.tell_failed_part(*part));
        for (link, up_for) in died {
            self.tell_failure(link);
            self.count_failure(link, up_for);
        }
        self.turn_back(now, &newly);
        if self.way.is_empty() {
            self.decide(now, silent);
        }
    }

    /// Hosts that are being stopped for a part go on as before if a wider one turns out to be dead, and then make way for that.
    fn turn_back(&mut self, now: Duration, dead: &BTreeSet<Failure>) {
        let ActiveVlans::Stopped(failure) = self.active else { return };
        let Some(wider) = dead.iter().copied().find(|part| self.is_within(failure, *part)) else { return };
        if self.origin != ActiveVlans::Planned || self.target_of_way() != ActiveVlans::Backup(failure) {
            return;
        }
        (self.active, self.wanted_since, self.held_since, self.told_held) = (self.origin, now, None, true);
        self.stale.extend(&self.hosting);
        self.way = match self.overs.contains_key(&wider) {
            true => self.way_to(ActiveVlans::Backup(wider)),
            false => VecDeque::new(),
        };
    }

    /// Cables that died in one look with their switch, and members with their group, are not told of one by one.
    fn tell_failed_part(&mut self, failure: Failure) {
        let own = &self.parts[&failure].links;
        let beside =
            self.down.iter().find(|link| !own.contains(link) && self.overs.contains_key(&Failure::Link(**link)));
        let notice = match (self.target_of_way(), beside) {
            (ActiveVlans::Backup(other), Some(_)) if other != failure && self.overs.contains_key(&failure) => {
                StandbyNotice::Second(failure)
            }
            _ => StandbyNotice::Failed(failure),
        };
        self.notices.push_back(notice);
    }

    /// Counts a failure of a cable that had carried for so long, if that is known, and decides whether it is kept out.
    fn count_failure(&mut self, link: LinkId, up_for: Option<Duration>) {
        let failures = self.failures.entry(link).or_default();
        *failures = match up_for {
            Some(up_for) if up_for >= self.hold.most.saturating_mul(2) => 1,
            _ => failures.saturating_add(1),
        };
        let failures = *failures;
        self.counted.push_back((link, failures));
        if failures > self.hold.limit && self.overs.contains_key(&Failure::Link(link)) {
            self.kept_out.insert(link);
            self.notices.push_back(StandbyNotice::KeptOut(link, failures, self.hold.after(failures)));
        }
    }

    /// How long what failed must be alive before hosts go back. Failures of a switch or a group are not counted.
    fn hold_down(&self, failure: Failure) -> Duration {
        let count = match failure {
            Failure::Link(link) => self.failures.get(&link).copied().unwrap_or(0),
            Failure::Switch(_) | Failure::Group(_) => 0,
        };
        self.hold.after(count)
    }

    fn tell_failure(&mut self, link: LinkId) {
        let failure = Failure::Link(link);
        let busy = match self.target_of_way() {
            ActiveVlans::Backup(other) => other != failure,
            ActiveVlans::Planned | ActiveVlans::Stopped(_) | ActiveVlans::Gathering => false,
        };
        self.notices.push_back(if self.dividing.contains(&link) {
            StandbyNotice::Dividing(link)
        } else if !self.overs.contains_key(&failure) {
            StandbyNotice::Missed(link)
        } else if busy && self.down.len() > 1 {
            StandbyNotice::Second(failure)
        } else {
            StandbyNotice::Failed(failure)
        });
    }

    fn target_of_way(&self) -> ActiveVlans {
        self.way.back().copied().unwrap_or(self.active)
    }

    /// Chooses where to go while no change is under way.
    fn decide(&mut self, now: Duration, silent: &BTreeSet<SwitchId>) {
        let failed = self.candidate();
        let kept_out = |but: Option<Failure>| {
            let mut links = self.kept_out.iter().map(|link| Failure::Link(*link));
            links.find(|failure| Some(*failure) != but && !self.is_within_dead(*failure))
        };
        let target = match self.active {
            ActiveVlans::Backup(failure) if self.has_failed(failure) => match self.wider_than(failure) {
                Some(wider) => ActiveVlans::Backup(wider),
                // What hosts are to do about the wider part is to stay.
                None if self.is_within_dead(failure) => {
                    failed.or_else(|| kept_out(None)).map_or(ActiveVlans::Planned, ActiveVlans::Backup)
                }
                None => return,
            },
            ActiveVlans::Backup(failure) => {
                // Nobody may know what became of it.
                let Some(since) = self.alive_since(failure) else { return };
                let is_over = now.saturating_sub(since) >= self.hold_down(failure);
                match (failure, failed) {
                    // A switch or a group comes back cable by cable.
                    (_, Some(other)) if self.is_within(other, failure) && !is_over => return,
                    (_, Some(other)) => ActiveVlans::Backup(other),
                    (_, None) if is_over => kept_out(Some(failure)).map_or(ActiveVlans::Planned, ActiveVlans::Backup),
                    (_, None) => return,
                }
            }
            ActiveVlans::Planned => match failed.or_else(|| kept_out(None)) {
                Some(failure) => ActiveVlans::Backup(failure),
                None => return,
            },
            // Their ways are empty only once they are over.
            ActiveVlans::Stopped(_) | ActiveVlans::Gathering => ActiveVlans::Planned,
        };
        let way = self.way_to(target);
        // Nobody is stopped unless all can be.
        for active in &way {
            let ActiveVlans::Stopped(failure) = active else { continue };
            if self.refused.get(failure).is_some_and(|until| now < *until) {
                return;
            }
            let waits_for = |switch: &&SwitchId| silent.contains(switch) && !self.is_off(**switch);
            if let Some(switch) = self.overs[failure].switches.iter().find(waits_for) {
                self.refused.insert(*failure, now + STOP_AGAIN);
                self.notices.push_back(StandbyNotice::CannotStop(*failure, *switch));
                return;
            }
        }
        self.way = way;
        self.next(now);
    }

    /// What has failed and something is stored for: a group before its members, a switch before its cables.
    fn candidate(&self) -> Option<Failure> {
        let is_candidate = |failure: &Failure| self.overs.contains_key(failure) && !self.is_within_dead(*failure);
        let links = || self.down.iter().map(|link| Failure::Link(*link)).find(is_candidate);
        self.dead.iter().copied().find(is_candidate).or_else(links)
    }

    /// The widest dead part that something is stored for and that another is within.
    fn wider_than(&self, failure: Failure) -> Option<Failure> {
        let is_wider = |part: &Failure| self.overs.contains_key(part) && self.is_within(failure, *part);
        self.dead.iter().copied().find(|part| is_wider(part) && !self.is_within_dead(*part))
    }

    fn has_failed(&self, failure: Failure) -> bool {
        match failure {
            Failure::Link(link) => self.down.contains(&link),
            Failure::Switch(_) | Failure::Group(_) => self.dead.contains(&failure),
        }
    }

    /// The cables of what fails.
    fn cables<'f>(&'f self, failure: &'f Failure) -> &'f [LinkId] {
        match failure {
            Failure::Link(link) => std::slice::from_ref(link),
            Failure::Switch(_) | Failure::Group(_) => self.parts.get(failure).map_or(&[], |part| &part.links),
        }
    }

    /// Whether the cables of one are among those of another, a switch or a group. Of two with the same cables one is within the other.
    fn is_within(&self, failure: Failure, part: Failure) -> bool {
        let Some(Part { links, .. }) = self.parts.get(&part) else { return false };
        let own = self.cables(&failure);
        let is_less = own.len() < links.len() || (own.len() == links.len() && failure < part);
        is_less && own.iter().all(|link| links.binary_search(link).is_ok())
    }

    /// Whether a switch or a group that is dead has the cables of another among its own.
    fn is_within_dead(&self, failure: Failure) -> bool {
        self.dead.iter().any(|part| self.is_within(failure, *part))
    }

    /// Whether a switch has failed, by itself or with a group.
    fn is_off(&self, switch: SwitchId) -> bool {
        self.dead.iter().any(|part| self.parts[part].switches.contains(&switch))
    }

    /// Since when what failed is alive again; none if nobody knows. A switch or a group is as long as the last of its cables that is.
    fn alive_since(&self, failure: Failure) -> Option<Duration> {
        self.cables(&failure).iter().filter_map(|link| self.up_since.get(link)).max().copied()
    }

    /// The steps from the VLANs in use to others.
    fn way_to(&self, target: ActiveVlans) -> VecDeque<ActiveVlans> {
        let mut way = VecDeque::new();
        if let (ActiveVlans::Backup(from), ActiveVlans::Backup(to)) = (self.active, target) {
            if self.is_free(from) && self.is_free(to) {
                return [target].into();
            }
        }
        if let ActiveVlans::Backup(from) = self.active {
            if !self.is_free(from) {
                way.push_back(ActiveVlans::Stopped(from));
            }
            way.push_back(ActiveVlans::Planned);
        }
        if let ActiveVlans::Backup(to) = target {
            if !self.is_free(to) {
                way.push_back(ActiveVlans::Stopped(to));
            }
            way.push_back(target);
        }
        way
    }

    fn next(&mut self, now: Duration) {
        let Some(&active) = self.way.front() else { return };
        // What needs care mixes with the plan's own routes alone, and only if everybody has come back to them.
        let careful = match active {
            ActiveVlans::Planned | ActiveVlans::Gathering => None,
            ActiveVlans::Backup(failure) | ActiveVlans::Stopped(failure) => {
                Some(failure).filter(|failure| !self.is_free(*failure))
            }
        };
        let stale = |failure: &Failure| {
            let fails = |switch: &SwitchId| self.parts.get(failure).is_some_and(|part| part.switches.contains(switch));
            self.stale.iter().find(|switch| !fails(switch)).copied()
        };
        let waits = careful
            .filter(|_| self.active == ActiveVlans::Planned)
            .and_then(|failure| Some((failure, stale(&failure)?)));
        if let Some((failure, switch)) = waits {
            let again = self.refused.get(&failure).is_none_or(|until| now >= *until);
            if again {
                self.refused.insert(failure, now + STOP_AGAIN);
                self.notices.push_back(StandbyNotice::Waits(failure, switch));
            }
            self.way.clear();
            return;
        }
        self.way.pop_front();
        if let ActiveVlans::Stopped(_) = active {
            self.origin = self.active;
        }
        self.active = active;
        (self.wanted_since, self.held_since, self.told_held) = (now, None, false);
        self.stale.extend(&self.hosting);
    }

    /// Takes which switches do not hold the VLANs wanted: they do not answer, or what they were told has not been done.
    pub fn handle_held(&mut self, now: Duration, behind: &BTreeSet<SwitchId>, silent: &BTreeSet<SwitchId>) {
        self.stale.retain(|switch| behind.contains(switch) || silent.contains(switch));
        let stopped = match self.active {
            ActiveVlans::Stopped(failure) => Some(failure),
            ActiveVlans::Planned | ActiveVlans::Backup(_) | ActiveVlans::Gathering => None,
        };
        let not_stopped = stopped.and_then(|failure| {
            let mut switches = behind.intersection(&self.overs[&failure].switches);
            switches.find(|switch| !self.is_off(**switch)).copied()
        });
        let held = match stopped {
            Some(_) => not_stopped.is_none(),
            None if self.active == ActiveVlans::Gathering => behind.is_empty(),
            None => behind.is_subset(silent),
        };
        if !held {
            self.held_since = None;
            if let Some(failure) = stopped {
                if now.saturating_sub(self.wanted_since) > STOP_PATIENCE && self.origin != self.active {
                    // Everybody goes on as before: the order that held before still holds.
                    let switch = not_stopped.expect("it is not held");
                    self.notices.push_back(StandbyNotice::CannotStop(failure, switch));
                    self.refused.insert(failure, now + STOP_AGAIN);
                    self.active = self.origin;
                    (self.wanted_since, self.told_held) = (now, true);
                    self.way.clear();
                }
            }
            return;
        }
        let since = *self.held_since.get_or_insert(now);
        if !self.told_held {
            self.told_held = true;
            self.notices.push_back(StandbyNotice::Holds(self.active));
        }
        // Between two stances no frame of the first may be left, unless one numbering covers both.
        if !self.way.is_empty() && now.saturating_sub(since) >= self.drain {
            self.next(now);
        }
    }

    /// The next thing worth telling a person.
    pub fn poll_notice(&mut self) -> Option<StandbyNotice> {
        self.notices.pop_front()
    }

    /// A cable that has failed, and how often in a row by now: for whoever remembers it for the next standby.
    pub fn poll_failure(&mut self) -> Option<(LinkId, u32)> {
        self.counted.pop_front()
    }
}

/// Switches and groups that something is stored for, and those for which hosts are to stay: the plan is ready for them without a
/// switch-over, and has one for something within them.
fn parts(plan: &Plan, overs: &BTreeMap<Failure, Over>) -> BTreeMap<Failure, Part> {
    let topology = &plan.topology;
    let part = |failure: Failure| {
        let switches = topology.switch_ids().filter(|switch| failure.takes(topology, *switch)).collect();
        (failure, Part { links: failure.links(topology), outer: failure.outer_links(topology), switches })
    };
    let is_stored = |failure: &Failure| overs.contains_key(failure);
    let stored = overs.keys().copied().filter(|failure| !matches!(failure, Failure::Link(_))).map(part);
    let is_touched = |(_, part): &(Failure, Part)| part.links.iter().any(|link| is_stored(&Failure::Link(*link)));
    let quiet = unmissed(plan).into_iter().filter(|failure| !is_stored(failure)).map(part).filter(is_touched);
    stored.chain(quiet).filter(|(_, part)| !part.outer.is_empty()).collect()
}

/// Switches and groups that the plan is protected against, by a switch-over or since no frame between other hosts passes them. Cost:
/// O((switches + groups) · (switches + links)).
pub(crate) fn unmissed(plan: &Plan) -> Vec<Failure> {
    let Some(failover) = &plan.failover else { return Vec::new() };
    // What ties hosts together is told of what carries frames.
    let Ok(in_service) = InService::of(&plan.topology, &plan.policy.drain.links) else { return Vec::new() };
    let mut ready: BTreeSet<Failure> = BTreeSet::new();
    if failover.summary.switches.is_some() {
        ready.extend(in_service.switch.iter().map(|switch| Failure::Switch(*switch)));
        for switch in dividing_switches(&in_service.topology) {
            ready.remove(&Failure::Switch(in_service.switch[switch.index()]));
        }
    }
    if failover.summary.groups.is_some() {
        ready.extend(plan.topology.group_ids().map(Failure::Group));
        for group in dividing_groups(&in_service.topology) {
            ready.remove(&Failure::Group(group));
        }
    }
    ready.into_iter().collect()
}

/// What both ends of each cable say, `running[switch][slot]`; none for a switch that does not answer.
///
/// # Panics
/// If a switch says something of fewer ports than it has.
pub fn link_health(topology: &Topology, running: &[Option<Vec<bool>>]) -> Vec<LinkHealth> {
    let end = |port: fabric::PortId| {
        let switch = topology.port(port).switch;
        let ports = running[switch.index()].as_ref()?;
        Some(ports[port.index() - topology.switch_ports(switch).start])
    };
    let links = topology.links().iter().map(|link| match (end(link.a), end(link.b)) {
        (None, None) => LinkHealth::Unknown,
        (Some(false), _) | (_, Some(false)) => LinkHealth::Down,
        (Some(true), _) | (_, Some(true)) => LinkHealth::Up,
    });
    links.collect()
}
