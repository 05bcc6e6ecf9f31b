//! What switches are compared with while ports learn addresses and bonds fail over. No clock, no switch.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use fabric::{HostId, Mac, Plan};
use rollout::{
    addresses::{complete, with_learned},
    bonds::take_bonds,
    diagnose::{Diagnosis, Sight, diagnose},
};
use switch_model::{SwitchConfig, driver::Fault};

use crate::goals::{goals, goals_while};

/// For how long after a learned address came, went or moved its entries may be on their way to switches.
const SETTLING: Duration = Duration::from_secs(10);

/// A plan with the addresses that its ports have learned.
pub struct Expected<'a> {
    plan: Cow<'a, Plan>,
    goals: Vec<SwitchConfig>,
    /// Learned addresses that the plan has.
    known: BTreeMap<Mac, HostId>,
    /// All that have been learned.
    learned: BTreeMap<Mac, HostId>,
    /// Those that are left out of account, or were there before, and since when.
    unsettled: BTreeMap<Mac, Duration>,
}

impl<'a> Expected<'a> {
    /// A plan that has addresses that were learned, `known`, as further ones of its hosts.
    pub fn new(plan: &'a Plan, known: &BTreeMap<Mac, HostId>) -> Self {
        Self {
            plan: Cow::Borrowed(plan),
            goals: goals(plan),
            known: known.clone(),
            learned: known.clone(),
            unsettled: BTreeMap::new(),
        }
    }

    /// The plan that switches are compared with, with the addresses that were learned.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// `goals()[switch]`: what each switch is to hold.
    pub fn goals(&self) -> &[SwitchConfig] {
        &self.goals
    }

    /// Takes which addresses have been learned at `now`; `base` is the plan without any. An address that came, went or moved is left
    /// out of account until every switch has been read some seconds later, `oldest_read` being the oldest read: its entries are on
    /// their way until then.
    pub fn follow(
        &mut self,
        now: Duration,
        oldest_read: Option<Duration>,
        base: &Plan,
        learned: &BTreeMap<Mac, HostId>,
    ) {
        let is_as_before = |mac: &Mac| self.learned.get(mac) == learned.get(mac);
        let changed = self.learned.keys().chain(learned.keys()).filter(|mac| !is_as_before(mac));
        self.unsettled.extend(changed.map(|mac| (*mac, now)));
        self.learned.clone_from(learned);
        self.unsettled.retain(|_, at| oldest_read.is_none_or(|oldest| oldest < *at + SETTLING));
        let settled: BTreeMap<Mac, HostId> = (learned.iter())
            .filter(|(mac, _)| !self.unsettled.contains_key(mac))
            .map(|(mac, host)| (*mac, *host))
            .collect();
        if settled != self.known {
            let plan = with_learned(base, &settled);
            self.goals = goals(&plan);
            (self.plan, self.known) = (Cow::Owned(plan), settled);
        }
    }

    /// What is wrong with switches that were seen like this, `seen[switch]`. Entries that a switch learned itself, those of bonds that
    /// have failed over and those that are on their way are brought to what the plan says in `seen`.
    pub fn diagnose(&self, seen: &mut [Result<Sight, Fault>]) -> Vec<Diagnosis> {
        // What a switch has learned is as good as an entry, and a bond that has failed over is as the plan stored it.
        let held = |sight: &Result<Sight, Fault>| sight.as_ref().ok().map(|sight| sight.config.clone());
        let mut held: Vec<Option<SwitchConfig>> = seen.iter().map(held).collect();
        complete(&self.plan, &self.known, &mut held);
        let active = take_bonds(&self.plan, &mut held);
        if !self.unsettled.is_empty() {
            let is_settled = |mac: &Mac| !self.unsettled.contains_key(mac);
            held.iter_mut().flatten().for_each(|config| config.entries.retain(|(_, mac), _| is_settled(mac)));
        }
        for (sight, config) in seen.iter_mut().zip(held) {
            if let (Ok(sight), Some(config)) = (sight, config) {
                sight.config.entries = config.entries;
            }
        }
        diagnose(&self.plan, &goals_while(&self.plan, &active), seen)
    }
}
