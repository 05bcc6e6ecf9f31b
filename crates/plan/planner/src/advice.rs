//! Advice: what a refused request could ask for instead.
//!
//! Every way out is tried, with a short search, before it is named: a way that meets the next limit leads in a circle.
//!
//! ```text
//!   refused ─▶ more VLANs?  another engine?  other flow control?  …  ─▶ planned? ─▶ named
//!                  ▲                                                       │ no: needs still more
//!                  └───────────────────────────────────────────────────────┘
//! ```

use fabric::{
    EngineName, FdbMode, Flood, FlowControl, Policy, Resilience, Tagging, Topology, TopologyBuilder, VlanId, VlanPool,
    VlanSet,
};

use crate::{OrderRule, PlanError, StepLimit, attempt, error::counted, number};

/// How often a number is raised to what its trial turned out to need.
const RAISES_MAX: usize = 4;

/// The same refusal with the ways out that work.
pub(crate) fn with_way_out(topology: &Topology, policy: &Policy, mut refused: PlanError) -> PlanError {
    let advisor = Advisor { topology, policy };
    let ways: Vec<String> = match &refused {
        PlanError::TooManyVlans { need, .. } | PlanError::TooManyVlansForResilience { need, .. } => {
            let ways = [advisor.more_vlans(*need), advisor.other_engine(), advisor.without_protection()];
            ways.into_iter().flatten().collect()
        }
        PlanError::TooManyStaticEntries { need, limit, .. } => advisor.fewer_entries(*need, *limit),
        PlanError::Deadlock { .. } => {
            let updown = advisor.with("use --engine updown", |policy| policy.engine = EngineName::Updown);
            let auto = || advisor.with("use --engine auto", |policy| policy.engine = EngineName::Auto);
            let none = advisor.with("use --flow-control none", |policy| policy.flow_control = FlowControl::None);
            updown.or_else(auto).into_iter().chain(none).collect()
        }
        PlanError::Unsuitable { .. } | PlanError::LeavesPlanes { .. } => {
            advisor.with("try --engine auto", |policy| policy.engine = EngineName::Auto).into_iter().collect()
        }
        PlanError::TooManyHops { hops, .. } => advisor.longer_paths(*hops),
        PlanError::Unsupported { .. } => advisor.other_capabilities(),
        PlanError::FloodsNeeded { .. } => {
            let ways = [
                advisor.with("plan with --flood forward", |policy| policy.flood = Flood::Forward),
                advisor.with("keep static entries with --fdb minimal", |policy| policy.fdb = FdbMode::Minimal),
            ];
            ways.into_iter().flatten().collect()
        }
        PlanError::AnswersElsewhere { .. } => {
            let by_both = |policy: &mut Policy| policy.tagging = Tagging::SourceDestination;
            let ways = [
                advisor.with("let hosts tag with --tagging source-destination", by_both),
                advisor.with("take one tree with --engine tree", |policy| policy.engine = EngineName::Tree),
                advisor.with("keep static entries with --fdb minimal", |policy| policy.fdb = FdbMode::Minimal),
            ];
            ways.into_iter().flatten().collect()
        }
        PlanError::NoHosts
        | PlanError::NoEdge
        | PlanError::OtherTraffic { .. }
        | PlanError::TooManyPairs(_)
        | PlanError::TooManyLinkPairs { .. }
        | PlanError::TooManyLags { .. }
        | PlanError::LearnedUnproven { .. }
        | PlanError::CutOff { .. }
        | PlanError::NoPlanes { .. }
        | PlanError::NoPaths { .. }
        | PlanError::HopsTooFew { .. }
        | PlanError::OtherOrder { .. }
        | PlanError::SubnetFull { .. } => return refused,
    };
    let ways = if ways.is_empty() { advisor.together().into_iter().collect() } else { ways };
    match &mut refused {
        PlanError::TooManyVlans { way_out, .. }
        | PlanError::TooManyVlansForResilience { way_out, .. }
        | PlanError::TooManyStaticEntries { way_out, .. }
        | PlanError::Deadlock { way_out, .. }
        | PlanError::Unsuitable { way_out, .. }
        | PlanError::LeavesPlanes { way_out, .. }
        | PlanError::TooManyHops { way_out, .. }
        | PlanError::Unsupported { way_out, .. }
        | PlanError::FloodsNeeded { way_out, .. }
        | PlanError::AnswersElsewhere { way_out, .. } => *way_out = either(&ways),
        _ => {}
    }
    refused
}

/// `a`, or `a, or b`, or `a, b, or c`.
fn either(ways: &[String]) -> String {
    match ways {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{}, or {last}", first.join(", ")),
    }
}

struct Advisor<'a> {
    topology: &'a Topology,
    policy: &'a Policy,
}

impl Advisor<'_> {
    /// Why a changed request is refused; none if it is planned.
    fn refusal(&self, topology: &Topology, policy: &Policy) -> Option<PlanError> {
        attempt(topology, policy, (None, OrderRule::Free), &mut StepLimit::probe()).err()
    }

    /// The words, if the policy changed in this way is planned.
    fn with(&self, words: &str, change: impl FnOnce(&mut Policy)) -> Option<String> {
        let mut policy = self.policy.clone();
        change(&mut policy);
        self.refusal(self.topology, &policy).is_none().then(|| words.to_owned())
    }

    /// So many VLANs as are enough, wherever fewer are allowed.
    fn more_vlans(&self, mut need: usize) -> Option<String> {
        for _ in 0..RAISES_MAX {
            let Wider { topology, policy, words } = self.with_vlans(need)?;
            match self.refusal(&topology, &policy) {
                None => return Some(words),
                Some(
                    PlanError::TooManyVlans { need: more, .. }
                    | PlanError::TooManyVlansForResilience { need: more, .. },
                ) if more > need => need = more,
                Some(_) => return None,
            }
        }
        None
    }

    /// The request with so many VLANs allowed everywhere; none if there cannot be so many.
    fn with_vlans(&self, need: usize) -> Option<Wider> {
        let own = number::management_vlans(self.topology);
        let mut policy = self.policy.clone();
        let cap = policy.vlans_max.filter(|cap| *cap < need);
        let range = policy.vlans.iter().count() < need + own;
        let model = self.topology.switches().iter().any(|switch| switch.model.vlans_max < need + own);
        if cap.is_some() {
            policy.vlans_max = Some(need);
        }
        if range {
            // Ids 0 and 4095 are none, and VLAN 1 stays out of plans.
            let last = VlanId::new(u16::try_from(need + own + 1).ok()?).ok()?;
            policy.vlans = VlanPool { first: VlanId::new(2).ok()?, last, reserved: VlanSet::new() };
        }
        let mut topology = self.topology.clone();
        if model {
            let mut builder = TopologyBuilder::of(&topology);
            builder.change_models(|model| model.vlans_max = model.vlans_max.max(need + own));
            topology = builder.finish().ok()?;
        }
        let words = match (cap.is_some(), range, model) {
            (true, false, false) => format!("raise it to --max-vlans {need}"),
            (false, true, false) => format!("widen --vlans to {}", counted(need + own, "id")),
            (false, false, true) => format!("use a model with {} there", counted(need + own, "VLAN")),
            _ => {
                let cap = cap.map(|_| format!("--max-vlans {need}"));
                let range = range.then(|| format!("{} in --vlans", counted(need + own, "id")));
                let model = model.then(|| format!("models with {}", counted(need + own, "VLAN")));
                format!("plan with {}", [cap, range, model].into_iter().flatten().collect::<Vec<_>>().join(" and "))
            }
        };
        Some(Wider { topology, policy, words })
    }

    /// Engines that make do with fewer trees.
    fn other_engine(&self) -> Option<String> {
        let works = |engine| {
            engine != self.policy.engine && self.with("", |policy: &mut Policy| policy.engine = engine).is_some()
        };
        match (works(EngineName::Auto), works(EngineName::Tree)) {
            (true, true) => Some("use --engine auto or tree".to_owned()),
            (true, false) => Some("use --engine auto".to_owned()),
            (false, true) => Some("use --engine tree".to_owned()),
            (false, false) => None,
        }
    }

    /// Another engine, no flow control, or a larger limit, up to the length of paths that were found.
    fn longer_paths(&self, found: u32) -> Vec<String> {
        let auto = self.policy.engine != EngineName::Auto;
        let auto = auto.then(|| self.with("use --engine auto", |policy| policy.engine = EngineName::Auto)).flatten();
        let blocks = self.policy.flow_control != FlowControl::None;
        let none = |policy: &mut Policy| policy.flow_control = FlowControl::None;
        let none = blocks.then(|| self.with("use --flow-control none", none)).flatten();
        let limits = (self.policy.hops_max.unwrap_or(found)..found).skip(1).take(RAISES_MAX).chain([found]);
        let more = limits.into_iter().find_map(|limit| {
            self.with(&format!("raise it to --max-hops {limit}"), |policy: &mut Policy| policy.hops_max = Some(limit))
        });
        [more, auto, none].into_iter().flatten().collect()
    }

    fn without_protection(&self) -> Option<String> {
        let protected = self.policy.resilience != Resilience::None;
        protected.then(|| self.with("plan with --resilience 0", |policy| policy.resilience = Resilience::None))?
    }

    /// Smaller tables for the switches, or switches for larger ones.
    fn fewer_entries(&self, need: usize, limit: usize) -> Vec<String> {
        let mut ways = Vec::new();
        if self.policy.fdb == FdbMode::Full {
            ways.extend(self.with("plan with --fdb minimal", |policy| policy.fdb = FdbMode::Minimal));
        }
        // Entries grow with trees.
        let trees = number::capacity(self.topology, self.policy).min(self.topology.hosts().len());
        let caps = [trees * limit / need.max(1), trees / 2, 1].into_iter().filter(|cap| (1..trees).contains(cap));
        let fits = |cap: &usize| self.with("", |policy: &mut Policy| policy.vlans_max = Some(*cap)).is_some();
        ways.extend(
            caps.into_iter()
                .find(fits)
                .map(|cap| format!("use no more than {} (--max-vlans {cap})", counted(cap, "VLAN"))),
        );
        ways.extend(self.other_engine());
        ways.extend(self.without_protection());
        ways.extend(self.larger_tables(need));
        ways
    }

    /// Switches that hold so many entries as are enough.
    fn larger_tables(&self, mut need: usize) -> Option<String> {
        for _ in 0..RAISES_MAX {
            let mut builder = TopologyBuilder::of(self.topology);
            builder.change_models(|model| model.static_entries_max = model.static_entries_max.max(need));
            match self.refusal(&builder.finish().ok()?, self.policy) {
                None => return Some(format!("use a switch that holds {need}")),
                Some(PlanError::TooManyStaticEntries { need: more, .. }) if more > need => need = more,
                Some(_) => return None,
            }
        }
        None
    }

    /// Changes of which none is enough by itself: everything is given up, then taken back one by one as far as that goes.
    fn together(&self) -> Option<String> {
        type Change = (&'static str, fn(&mut Policy));
        let changes: [Change; 10] = [
            ("--engine auto", |policy| policy.engine = EngineName::Auto),
            ("--fdb minimal", |policy| policy.fdb = FdbMode::Minimal),
            ("--flood forward", |policy| policy.flood = Flood::Forward),
            ("no --storm-control", |policy| policy.storm_limit = None),
            ("--tagging source", |policy| policy.tagging = Tagging::Source),
            ("--flow-control none", |policy| policy.flow_control = FlowControl::None),
            ("--resilience 0", |policy| policy.resilience = Resilience::None),
            ("no --max-hops", |policy| policy.hops_max = None),
            ("no --max-vlans", |policy| policy.vlans_max = None),
            ("the default --vlans", |policy| policy.vlans = VlanPool::default()),
        ];
        let changed = |changes: &[Change]| {
            let mut policy = self.policy.clone();
            changes.iter().for_each(|(_, change)| change(&mut policy));
            policy
        };
        let works = |changes: &[Change]| self.refusal(self.topology, &changed(changes)).is_none();
        let mut given_up = changes.to_vec();
        if !works(&given_up) {
            return None;
        }
        for change in changes {
            let fewer: Vec<Change> = given_up.iter().copied().filter(|(words, _)| *words != change.0).collect();
            if works(&fewer) {
                given_up = fewer;
            }
        }
        let words: Vec<&str> = given_up.iter().map(|(words, _)| *words).collect();
        Some(format!("several changes help together: {}", words.join(", ")))
    }

    /// What all switches can do: one change that works, or else two.
    fn other_capabilities(&self) -> Vec<String> {
        let tagging = (Tagging::Source, "let hosts tag: --tagging source");
        let flow_controls = [
            (FlowControl::Pause, "use --flow-control pause"),
            (FlowControl::None, "plan without flow control: --flow-control none"),
        ];
        let mut ways: Vec<String> = Vec::new();
        if self.policy.flood != Flood::Forward {
            let less = Flood::ALL.iter().rev().filter(|flood| **flood < self.policy.flood);
            ways.extend(less.into_iter().find_map(|less| {
                self.with(&format!("use --flood {less}"), |policy: &mut Policy| policy.flood = *less)
            }));
        }
        if self.policy.storm_limit.is_some() {
            ways.extend(self.with("plan without --storm-control", |policy| policy.storm_limit = None));
        }
        if self.policy.tagging == Tagging::Switch {
            ways.extend(self.with(tagging.1, |policy| policy.tagging = tagging.0));
        }
        let classes = self.topology.switches().iter().map(|switch| switch.model.pfc_classes).min().unwrap_or(0);
        if matches!(self.policy.flow_control, FlowControl::Pfc(asked) if (1..asked).contains(&classes)) {
            let fewer = FlowControl::Pfc(classes);
            ways.extend(self.with(&format!("use --flow-control {fewer}"), |policy| policy.flow_control = fewer));
        }
        let others = || flow_controls.into_iter().filter(|(other, _)| *other != self.policy.flow_control);
        ways.extend(
            others().find_map(|(other, words)| self.with(words, |policy: &mut Policy| policy.flow_control = other)),
        );
        if ways.is_empty() {
            ways.extend(others().find_map(|(other, _)| {
                let words = format!("plan with --tagging source and --flow-control {other}");
                self.with(&words, |policy: &mut Policy| (policy.tagging, policy.flow_control) = (tagging.0, other))
            }));
        }
        if ways.is_empty() && self.topology.switches().iter().any(|switch| !switch.model.independent_vlan_learning) {
            ways.push("replace the switch: with shared tables VLANs cannot route".to_owned());
        }
        ways
    }
}

/// A request with more VLANs, and how to ask for it.
struct Wider {
    topology: Topology,
    policy: Policy,
    words: String,
}
