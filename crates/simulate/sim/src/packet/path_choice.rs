//! Which path the next frame of a flow takes, one way.
//!
//! ```text
//!   packet   ─2─ ─5─ ─8─ ─2─ ─5─ …        flowlet   ─2─ ─2─ ─2─    (silence)    ─5─ ─5─ …
//! ```

use fabric::{HostId, Plan};

use super::config::PacketConfig;
use crate::{
    lag::FlowHash,
    spread::Spread,
    tables::{Tables, UNTAGGED},
};

/// The tags that a flow's frames may have, one way, and whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct PathChoice {
    /// The tag that a frame gets now, and the class in which it travels.
    current: (u16, u8),
    /// All of them, where there is a choice.
    all: Vec<(u16, u8)>,
    at: usize,
    /// When the last frame was made, if any was.
    last_ps: Option<u64>,
    /// How long the flow must have been silent for the next path; 0 for every frame.
    gap_ps: u64,
}

impl PathChoice {
    /// The assigned VLAN alone.
    pub(super) fn assigned(plan: &Plan, tables: &Tables, source: HostId, destination: Option<HostId>) -> Self {
        let (tag, vlan) = tables.host_tag(plan, source, destination);
        let class = if vlan == UNTAGGED { 0 } else { tables.lane[usize::from(vlan)] };
        Self { current: (tag, class), all: Vec::new(), at: 0, last_ps: None, gap_ps: 0 }
    }

    /// What the configuration says of a pair's path set; the hash chooses where a flow, the `number`-th of the pair, begins.
    pub(super) fn spread(
        plan: &Plan,
        tables: &Tables,
        (source, destination): (HostId, HostId),
        (hash, number): (&FlowHash, u32),
        config: &PacketConfig,
    ) -> Self {
        let assigned = Self::assigned(plan, tables, source, Some(destination));
        let tags = tables.path_tags(plan, source, destination);
        if config.spread == Spread::One || tags.contains(&UNTAGGED) {
            return assigned;
        }
        let all: Vec<(u16, u8)> = tags.iter().map(|tag| (*tag, tables.lane[usize::from(*tag)])).collect();
        let at = hash.path((source, destination), number, all.len());
        let current = all[at];
        match config.spread {
            Spread::Packet | Spread::Coupled => Self { current, all, at, last_ps: None, gap_ps: 0 },
            Spread::Flowlet => Self { current, all, at, last_ps: None, gap_ps: config.flowlet_gap_ps },
            Spread::One | Spread::Ideal | Spread::Flow => Self { current, all: Vec::new(), ..assigned },
        }
    }

    /// Stays on one path: the `at`-th, modulo how many there are.
    pub(super) fn settle(&mut self, at: usize) {
        if let Some(tag) = self.all.get(at % self.all.len().max(1)) {
            self.current = *tag;
        }
        self.all.clear();
    }

    /// Stays where it is.
    pub(super) fn stay(&mut self) {
        self.all.clear();
    }

    /// How many paths there are.
    pub(super) fn count(&self) -> usize {
        self.all.len().max(1)
    }

    /// The tag of the next frame, which is made now, and its class.
    #[inline]
    pub(super) fn next(&mut self, now_ps: u64) -> (u16, u8) {
        if self.all.is_empty() {
            return self.current;
        }
        // A flow's first frame, and one that follows soon, go where the hash or the last one went.
        if self.last_ps.is_some_and(|last_ps| now_ps - last_ps >= self.gap_ps) {
            self.at = (self.at + 1) % self.all.len();
        }
        self.last_ps = Some(now_ps);
        self.all[self.at]
    }
}
