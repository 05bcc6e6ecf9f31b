//! Spanning tree: bridges that know nothing of each other agree on a tree and close every other port.
//!
//! Each bridge claims to be the root until it hears of a better one (a lower identifier), and tells on every port what it
//! knows: who the root is, how far it is, and who is speaking. Of what a port hears, the best counts, for as long as it
//! is repeated. The port with the best way to the root leads there; a port on which the bridge itself knows best is
//! *designated* and carries the others' traffic; every other port is closed. A port that opens waits twice, so that bad
//! news overtakes it.
//!
//! ```text
//!      A (root)            blocking ─▶ listening ─▶ learning ─▶ forwarding
//!     ╱ ╲                        ╰── forward delay ──╯── forward delay ──╯
//!    B ─╳─ C      the port of C toward B hears a better bridge than C and stays closed
//! ```
//!
//! This is the protocol of 1998, with timers that the caller may shorten. It has no clock: `now_ms` comes with each call,
//! and a call returns what must happen. Call order: [`Bridge::new`], then [`Bridge::handle_link`],
//! [`Bridge::handle_bpdu`] and [`Bridge::handle_tick`] in the order in which things happen, a tick at least every half
//! hello time. Cost: O(ports) a call.
//!
//! Source: IEEE 802.1D-1998, clauses 8 (protocol) and 9 (encoding).

mod bpdu;

pub use bpdu::{Bpdu, BpduError, ConfigBpdu};

use bridge_mib::StpState;

/// The timers of a bridge; those of the root are in force everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// How often the root speaks.
    pub hello_ms: u32,
    /// How long what was heard holds.
    pub max_age_ms: u32,
    /// How long a port waits, twice.
    pub forward_delay_ms: u32,
}

impl Timers {
    /// The standard's own: thirty seconds until a port forwards.
    pub const STANDARD: Self = Self { hello_ms: 2000, max_age_ms: 20_000, forward_delay_ms: 15_000 };
    /// A tenth of them, for machines where a cable is a function call: three seconds until a port forwards.
    pub const SHORT: Self = Self { hello_ms: 200, max_age_ms: 2000, forward_delay_ms: 1500 };
}

/// What a call makes happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send this by a port.
    Send(usize, Bpdu),
    /// A port is in another state.
    State(usize, StpState),
    /// Forget learned addresses: they may be elsewhere now.
    Forget,
}

/// Whether a port takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// There is a cable, and spanning tree governs the port.
    Governed,
    /// There is a cable, but spanning tree has no part in the port.
    Free,
    /// There is nothing at the other end.
    Down,
}

/// What a bridge says on a segment, and what is better: the least. (8.6.4)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// Who the root is.
    pub root: u64,
    /// How far it is.
    pub cost: u32,
    /// Who says so.
    pub bridge: u64,
    /// On which port.
    pub port: u16,
}

/// One bridge.
#[derive(Clone, Debug)]
pub struct Bridge {
    id: u64,
    own_timers: Timers,
    timers: Timers,
    ports: Vec<Port>,
    root: u64,
    root_cost: u32,
    root_port: Option<usize>,
    hello_at_ms: u64,
    /// The root tells of a change until then.
    change_until_ms: u64,
    /// Another bridge tells the root of a change until it is heard.
    change_untold: bool,
    change_heard: bool,
    changes: u32,
    changed_at_ms: u64,
}

#[derive(Clone, Debug)]
struct Port {
    id: u16,
    cost: u32,
    link: Link,
    state: StpState,
    /// What the segment's designated bridge says.
    heard: Option<ReceivedBpdu>,
    advance_at_ms: u64,
    held_until_ms: u64,
    pending: bool,
    acknowledge: bool,
    transitions: u32,
}

#[derive(Clone, Copy, Debug)]
struct ReceivedBpdu {
    claim: Claim,
    age_ms: u32,
    at_ms: u64,
    timers: Timers,
}

/// What one relay adds to a message's age: the least that can be said.
const AGE_STEP_MS: u32 = 4;

impl Bridge {
    /// A bridge whose ports have these identifiers and costs, all without a cable.
    pub fn new(id: [u8; 8], ports: &[(u16, u32)], timers: Timers, now_ms: u64) -> Self {
        let id = u64::from_be_bytes(id);
        let port = |&(id, cost): &(u16, u32)| Port {
            id,
            cost,
            link: Link::Down,
            state: StpState::Disabled,
            heard: None,
            advance_at_ms: 0,
            held_until_ms: 0,
            pending: false,
            acknowledge: false,
            transitions: 0,
        };
        Self {
            id,
            own_timers: timers,
            timers,
            ports: ports.iter().map(port).collect(),
            root: id,
            root_cost: 0,
            root_port: None,
            hello_at_ms: now_ms,
            change_until_ms: 0,
            change_untold: false,
            change_heard: false,
            changes: 0,
            changed_at_ms: now_ms,
        }
    }

    /// A cable came or went, or spanning tree was switched on or off for a port.
    pub fn handle_link(&mut self, now_ms: u64, port: usize, link: Link) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.ports[port].link != link {
            let old = self.ports[port].state;
            self.ports[port].link = link;
            self.ports[port].heard = None;
            let state = match link {
                Link::Governed => StpState::Blocking,
                Link::Free | Link::Down => StpState::Disabled,
            };
            self.set_state(port, state, &mut effects);
            if link == Link::Governed {
                self.hello_at_ms = now_ms;
            } else if matches!(old, StpState::Learning | StpState::Forwarding) {
                self.changed(now_ms, &mut effects);
            }
        }
        self.decide(now_ms, &mut effects);
        self.speak(now_ms, &mut effects);
        effects
    }

    /// The bridge's priority, or a port's cost or identifier, is another.
    pub fn handle_settings(&mut self, now_ms: u64, id: [u8; 8], ports: &[(u16, u32)]) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.id = u64::from_be_bytes(id);
        for (port, (id, cost)) in self.ports.iter_mut().zip(ports) {
            (port.id, port.cost) = (*id, *cost);
        }
        self.decide(now_ms, &mut effects);
        effects
    }

    /// A message came in by a port.
    pub fn handle_bpdu(&mut self, now_ms: u64, port: usize, bpdu: &Bpdu) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.ports[port].link != Link::Governed {
            return effects;
        }
        match bpdu {
            Bpdu::Change if self.is_designated(port) => {
                self.ports[port].acknowledge = true;
                self.changed(now_ms, &mut effects);
                self.send_config(now_ms, port, &mut effects);
            }
            Bpdu::Change => {}
            Bpdu::Config(config) => self.config(now_ms, port, config, &mut effects),
        }
        effects
    }

    /// Time has passed.
    pub fn handle_tick(&mut self, now_ms: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        for port in &mut self.ports {
            if port.heard.is_some_and(|heard| heard.expires_ms() <= now_ms) {
                port.heard = None;
            }
        }
        self.decide(now_ms, &mut effects);
        for port in 0..self.ports.len() {
            let waits = matches!(self.ports[port].state, StpState::Listening | StpState::Learning);
            if waits && self.ports[port].advance_at_ms <= now_ms {
                self.advance(now_ms, port, &mut effects);
            }
        }
        self.speak(now_ms, &mut effects);
        for port in 0..self.ports.len() {
            if self.ports[port].pending && self.ports[port].held_until_ms <= now_ms {
                self.send_config(now_ms, port, &mut effects);
            }
        }
        effects
    }

    /// A port's state.
    pub fn state(&self, port: usize) -> StpState {
        self.ports[port].state
    }

    /// How often a port began to forward.
    pub fn forward_transitions(&self, port: usize) -> u32 {
        self.ports[port].transitions
    }

    /// What the segment of a port knows.
    pub fn claim(&self, port: usize) -> Claim {
        let own = self.own_claim(port);
        self.ports[port].heard.map_or(own, |heard| heard.claim.min(own))
    }

    /// The root.
    pub fn root(&self) -> [u8; 8] {
        self.root.to_be_bytes()
    }

    /// Cost of the way to it.
    pub fn root_cost(&self) -> u32 {
        self.root_cost
    }

    /// The port toward it; none at the root.
    pub fn root_port(&self) -> Option<usize> {
        self.root_port
    }

    /// The timers in force.
    pub fn timers(&self) -> Timers {
        self.timers
    }

    /// How often the tree has changed, and when it last did.
    pub fn changes(&self) -> (u32, u64) {
        (self.changes, self.changed_at_ms)
    }

    fn config(&mut self, now_ms: u64, port: usize, config: &ConfigBpdu, effects: &mut Vec<Effect>) {
        if config.message_age_ms >= config.timers.max_age_ms {
            return;
        }
        let known = self.claim(port);
        let same_speaker = (config.claim.bridge, config.claim.port) == (known.bridge, known.port);
        if config.claim > known && !same_speaker {
            // Whoever knows less is told, if it is this bridge's to tell.
            if self.is_designated(port) {
                self.send_config(now_ms, port, effects);
            }
            return;
        }
        if config.claim.bridge == self.id && config.claim.port >= self.ports[port].id {
            // Its own voice: the segment leads back to this very port.
            return;
        }
        let (claim, timers) = (config.claim, config.timers);
        self.ports[port].heard = Some(ReceivedBpdu { claim, age_ms: config.message_age_ms, at_ms: now_ms, timers });
        self.decide(now_ms, effects);
        if self.root_port != Some(port) {
            return;
        }
        if config.acknowledges {
            self.change_untold = false;
        }
        if config.change && !self.change_heard {
            effects.push(Effect::Forget);
        }
        self.change_heard = config.change;
        for other in 0..self.ports.len() {
            if self.is_designated(other) {
                self.send_config(now_ms, other, effects);
            }
        }
    }

    fn own_claim(&self, port: usize) -> Claim {
        Claim { root: self.root, cost: self.root_cost, bridge: self.id, port: self.ports[port].id }
    }

    fn is_designated(&self, port: usize) -> bool {
        let own = self.own_claim(port);
        self.ports[port].link == Link::Governed && self.ports[port].heard.is_none_or(|heard| own < heard.claim)
    }

    /// Chooses root and roles anew, and lets states follow. (8.6.7, 8.6.8, 8.6.11)
    fn decide(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        let best = (self.ports.iter().enumerate())
            .filter(|(_, port)| port.link == Link::Governed)
            .filter_map(|(number, port)| {
                let heard = port.heard.filter(|heard| heard.claim.root < self.id && heard.claim.bridge != self.id)?;
                let cost = heard.claim.cost.saturating_add(port.cost);
                let key = (heard.claim.root, cost, heard.claim.bridge, heard.claim.port, port.id);
                Some((key, number, heard.timers))
            })
            .min_by_key(|(key, ..)| *key);
        let was_root = self.root == self.id;
        match best {
            Some(((root, cost, ..), port, timers)) => {
                (self.root, self.root_cost, self.root_port, self.timers) = (root, cost, Some(port), timers);
            }
            None => {
                (self.root, self.root_cost, self.root_port, self.timers) = (self.id, 0, None, self.own_timers);
                if !was_root {
                    self.hello_at_ms = now_ms;
                    // What could not be told is this bridge's to tell now.
                    if std::mem::take(&mut self.change_untold) {
                        self.begin_change(now_ms);
                    }
                }
            }
        }
        for port in 0..self.ports.len() {
            if self.ports[port].link != Link::Governed {
                continue;
            }
            let carries = self.root_port == Some(port) || self.is_designated(port);
            match (carries, self.ports[port].state) {
                (true, StpState::Blocking | StpState::Disabled) => {
                    self.ports[port].advance_at_ms = now_ms + u64::from(self.timers.forward_delay_ms);
                    self.set_state(port, StpState::Listening, effects);
                }
                (false, state @ (StpState::Listening | StpState::Learning | StpState::Forwarding)) => {
                    self.set_state(port, StpState::Blocking, effects);
                    if state != StpState::Listening {
                        self.changed(now_ms, effects);
                    }
                }
                _ => {}
            }
        }
    }

    fn advance(&mut self, now_ms: u64, port: usize, effects: &mut Vec<Effect>) {
        self.ports[port].advance_at_ms = now_ms + u64::from(self.timers.forward_delay_ms);
        if self.ports[port].state == StpState::Listening {
            self.set_state(port, StpState::Learning, effects);
        } else {
            self.ports[port].transitions = self.ports[port].transitions.wrapping_add(1);
            self.set_state(port, StpState::Forwarding, effects);
            self.changed(now_ms, effects);
        }
    }

    fn set_state(&mut self, port: usize, state: StpState, effects: &mut Vec<Effect>) {
        if std::mem::replace(&mut self.ports[port].state, state) != state {
            effects.push(Effect::State(port, state));
        }
    }

    /// The tree is another here; everybody must know. (8.6.14)
    fn changed(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        self.changes = self.changes.wrapping_add(1);
        self.changed_at_ms = now_ms;
        effects.push(Effect::Forget);
        if self.root_port.is_none() {
            self.begin_change(now_ms);
        } else if !self.change_untold {
            self.change_untold = true;
            self.hello_at_ms = now_ms;
        }
    }

    fn begin_change(&mut self, now_ms: u64) {
        self.change_until_ms = now_ms + u64::from(self.timers.max_age_ms) + u64::from(self.timers.forward_delay_ms);
    }

    /// What is due at hello time: the root speaks, others tell of changes.
    fn speak(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        if now_ms < self.hello_at_ms {
            return;
        }
        self.hello_at_ms = now_ms + u64::from(self.timers.hello_ms);
        match self.root_port {
            None => {
                for port in 0..self.ports.len() {
                    if self.is_designated(port) {
                        self.send_config(now_ms, port, effects);
                    }
                }
            }
            Some(port) if self.change_untold => effects.push(Effect::Send(port, Bpdu::Change)),
            Some(_) => {}
        }
    }

    /// Tells a segment what is known; at most twice a hello time, so that no two bridges talk themselves hoarse. (8.6.1)
    fn send_config(&mut self, now_ms: u64, port: usize, effects: &mut Vec<Effect>) {
        if now_ms < self.ports[port].held_until_ms {
            self.ports[port].pending = true;
            return;
        }
        self.ports[port].pending = false;
        if !self.is_designated(port) {
            return;
        }
        let message_age_ms = match self.root_port.and_then(|root_port| self.ports[root_port].heard) {
            None => 0,
            Some(heard) => heard.age_ms + (now_ms - heard.at_ms).min(u64::from(u32::MAX / 2)) as u32 + AGE_STEP_MS,
        };
        if message_age_ms >= self.timers.max_age_ms {
            return;
        }
        self.ports[port].held_until_ms = now_ms + u64::from(self.timers.hello_ms / 2);
        let config = ConfigBpdu {
            claim: self.own_claim(port),
            message_age_ms,
            timers: self.timers,
            change: if self.root_port.is_none() { now_ms < self.change_until_ms } else { self.change_heard },
            acknowledges: std::mem::take(&mut self.ports[port].acknowledge),
        };
        effects.push(Effect::Send(port, Bpdu::Config(config)));
    }
}

impl ReceivedBpdu {
    fn expires_ms(&self) -> u64 {
        self.at_ms + u64::from(self.timers.max_age_ms.saturating_sub(self.age_ms))
    }
}
