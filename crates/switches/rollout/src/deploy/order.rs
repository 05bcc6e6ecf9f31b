//! What is to be deployed, and how carefully.

use std::{collections::BTreeMap, time::Duration};

use fabric::SwitchId;

use super::{Cables, Journal, Management};
use switch_model::{SwitchConfig, mark::Mark};

/// What is to be deployed.
#[derive(Clone, Debug)]
pub struct DeploymentSpec {
    /// `goals[switch]`: what each switch is to hold in the end.
    pub goals: Vec<SwitchConfig>,
    /// How it gets there.
    pub way: Way,
    /// The plan's digest, its first four bytes.
    pub digest: u32,
    /// Drawn anew for every deployment.
    pub nonce: u32,
    /// The newest generation that this controller knows of: a switch with a newer one was set up by somebody else since,
    /// so the plan is stale. None of a controller that knows of none.
    pub generation: Option<u32>,
    /// What comes before what this controller knows.
    pub precedence: Precedence,
    /// Marks that this controller may have left since, and died.
    pub claims: Vec<Mark>,
    /// What an interrupted deployment left.
    pub resume: Option<Journal>,
    /// How the controller reaches the switches.
    pub management: Management,
    /// How long a switch may be cut off after a change before it takes the change back by itself, where management is in
    /// band and the switch can.
    pub guard: Option<Duration>,
    /// The order in which switches are written in every stage: farthest from the controller first.
    pub sequence: Vec<SwitchId>,
    /// Most switches with a request open at once.
    pub parallel_max: usize,
    /// What is looked at while ports open; none looks at nothing.
    pub watch: Option<Watch>,
}

/// Whether a deployment gives way to newer ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Precedence {
    /// To any that this controller does not know of.
    #[default]
    GiveWay,
    /// To none: it takes over whatever is there, with a mark above all others.
    TakeOver,
}

/// What is looked at while ports open.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// What is known of the cables.
    pub cables: Cables,
    /// How long a cable may take to be heard once its ports are open: longer than switches take to announce themselves.
    pub cables_max: Duration,
    /// How long floods are watched, at the least, after the last ports have opened; less where every switch with hosts has
    /// shown by then that it counts.
    pub floods_min: Duration,
}

/// How long an LLDP agent may take to announce itself, by default 30 s (IEEE 802.1AB, msgTxInterval), and some more.
pub const CABLES_MAX: Duration = Duration::from_secs(40);
/// How often cables are looked at: at first, and at the most after each look that found nothing new.
pub const LOOK_MIN: Duration = Duration::from_millis(5);
/// See [`LOOK_MIN`].
pub const LOOK_MAX: Duration = Duration::from_millis(500);

/// How a fabric gets from one state to another.
#[derive(Clone, Debug)]
pub enum Way {
    /// With its ports shut.
    Drained,
    /// Under traffic, from a state that all switches must be found in.
    Live {
        /// `start[switch]`; none of a switch that joins, which may hold anything before the first stage that names it.
        start: Vec<Option<SwitchConfig>>,
        /// What happens in each stage.
        stages: Vec<LiveStage>,
    },
    /// Only back to what an interrupted deployment found.
    Undo,
}

/// One stage of a change under traffic.
#[derive(Clone, Debug)]
pub enum LiveStage {
    /// What switches that change in it hold after it.
    Switches(BTreeMap<SwitchId, SwitchConfig>),
    /// Hosts that tag their own frames go from one of the states that they pass through, counted from 0, to the next, which is this one.
    Hosts(usize),
}

impl LiveStage {
    /// What a switch holds after it, if it changes in it.
    pub fn config(&self, switch: SwitchId) -> Option<&SwitchConfig> {
        match self {
            Self::Switches(configs) => configs.get(&switch),
            Self::Hosts(_) => None,
        }
    }

    /// What switches that change in it hold after it.
    pub fn configs(&self) -> impl Iterator<Item = &SwitchConfig> {
        let configs = match self {
            Self::Switches(configs) => Some(configs.values()),
            Self::Hosts(_) => None,
        };
        configs.into_iter().flatten()
    }
}
