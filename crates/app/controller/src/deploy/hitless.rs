//! Whether a change can be made under traffic: what stands in the way beside the order of steps.

use fabric::Plan;
use rollout::deploy::Management;
use thiserror::Error;
use transition::{Part, StepError, Transition};

/// What is to be said of a change that is not proven free of deadlock.
pub const UNPROVEN_DEADLOCK: &str =
    "NOT proven free of deadlock: while hosts change VLANs, frames of both plans may block each other";

/// How hosts that tag their own frames get tables between two steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostTables {
    /// A program hands them out.
    ByProgram,
    /// Nobody does meanwhile.
    ByHand,
}

/// Why no hitless change leads from one plan to another.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotHitless {
    /// No order of steps does.
    #[error("{0}")]
    Steps(StepError),
    /// Management frames would have to change their ways while they are needed.
    #[error("the plans manage the switches by different cables")]
    Management,
    /// A switch would have to be managed before its ports are up.
    #[error("{0} joins and is managed over data ports")]
    Joins(String),
    /// Hosts would lose frames.
    #[error("hosts tag their own frames, and no program hands them new tables between two steps")]
    HostsByHand,
}

impl NotHitless {
    /// What somebody at the command line can do instead; none if the reason says so.
    pub(super) const fn way_out(&self) -> Option<&'static str> {
        match self {
            Self::Steps(_) => None,
            Self::Management => Some("plan with --previous, which keeps the old ones, or deploy without --since"),
            Self::Joins(_) => Some("deploy without --since"),
            Self::HostsByHand => Some("name one (--hosts-program), or deploy without --since"),
        }
    }
}

/// The steps of a change under traffic.
///
/// # Errors
/// [`NotHitless`], if there are none that can be taken.
pub fn hitless(old: &Plan, next: &Plan, host_tables: HostTables) -> Result<Transition, NotHitless> {
    let transition = transition::steps(old, next).map_err(NotHitless::Steps)?;
    let topology = &transition.topology;
    let management = Management::of(topology, &transition.goal.devices);
    if management != Management::of(topology, &transition.start.devices) {
        return Err(NotHitless::Management);
    }
    let joins = |name: &&String| old.topology.find_switch(name).is_none();
    let joining = topology.switches().iter().map(|switch| &switch.name).find(joins);
    if let Some(name) = joining.filter(|_| management != Management::OutOfBand) {
        return Err(NotHitless::Joins(name.clone()));
    }
    if transition.steps.iter().any(|step| has_hosts(&step.parts)) && host_tables == HostTables::ByHand {
        return Err(NotHitless::HostsByHand);
    }
    Ok(transition)
}

/// Whether hosts are among those that change.
pub(super) fn has_hosts(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Host(..)))
}
