//! Which channel may follow which: as many successions as close no cycle together with a plan's own.
//!
//! ```text
//!   plan's routes:   a → b   b → c            c → a would close the cycle a, b, c: refused
//!   added:           a → c   d → b            numbering: a 0, d 1, b 2, c 3
//! ```
//! A lane that the flow control has and the plan does not use gets the reverse of the one before it: whatever turns are refused
//! there are allowed here.

use fabric::{Certificate, ChannelId, Plan, Policy, Topology, graph::TopologicalOrder, rng::Rng};

use crate::{
    OrderRule,
    frames::{self, Flooding},
    routing::Routing,
};

/// The order of channels in each lane; no lanes where no buffers wait.
pub(super) struct ChannelOrder {
    /// `rank[lane][channel]`.
    rank: Vec<Vec<u32>>,
}

impl ChannelOrder {
    /// The order that extends a plan's own, or that order as it is if it is to be kept. Cost: O(channels · channels at a switch)
    /// arcs into a topological order, a lane.
    pub(super) fn of(topology: &Topology, policy: &Policy, plan: &Plan, rule: OrderRule, rng: &mut Rng) -> Self {
        let (Some(lanes), Some(certificate)) = (policy.flow_control.lanes(), &plan.certificate) else {
            return Self { rank: Vec::new() };
        };
        let number = |channel: ChannelId| channel.index() as u32;
        let mut successions: Vec<(u32, u32)> = (topology.channel_ids())
            .flat_map(|channel| {
                let onward = topology.channels_from(topology.head(channel)).iter();
                let onward = onward.filter(move |next| next.link() != channel.link());
                onward.map(move |next| (number(channel), number(*next)))
            })
            .collect();
        rng.shuffle(&mut successions);
        let routing = Routing::of_plan(plan);
        let lane: Vec<u8> = plan.trees.iter().map(|tree| tree.lane).collect();
        let ranks = &certificate.rank;
        let covered = frames::certified(plan).expect("the plan has a certificate");
        let own = frames::dependencies(topology, &routing, (&lane, ranks.len()), covered, Flooding::of(policy));
        let mut rank: Vec<Vec<u32>> = Vec::with_capacity(usize::from(lanes));
        for (numbers, own) in ranks.iter().zip(&own) {
            if rule == OrderRule::Kept {
                rank.push(numbers.clone());
                continue;
            }
            let mut order = TopologicalOrder::by_number(numbers);
            let own: Vec<(u32, u32)> = own.iter().map(|(from, to)| (number(from), number(to))).collect();
            order.insert_all(&own).expect("a certificate's dependencies close no cycle");
            // What no lane before allows counts most.
            let refused =
                |(from, to): &(u32, u32)| !rank.iter().any(|rank: &Vec<u32>| rank[*from as usize] < rank[*to as usize]);
            let (first, then): (Vec<_>, Vec<_>) = successions.iter().copied().partition(refused);
            rank.push(extended(order, &[first, then].concat()));
        }
        while rank.len() < usize::from(lanes) {
            let reversed: Vec<u32> = match rank.last() {
                Some(before) => before.iter().map(|number| u32::MAX - number).collect(),
                None => vec![0; topology.channel_count()],
            };
            rank.push(extended(TopologicalOrder::by_number(&reversed), &successions));
        }
        Self { rank }
    }

    /// The lanes that paths may be on: one where no buffers wait.
    pub(super) fn lanes(&self) -> u8 {
        self.rank.len().max(1) as u8
    }

    /// Whether a frame of a lane may take a channel right after another.
    #[inline]
    pub(super) fn allows(&self, lane: u8, before: Option<ChannelId>, next: ChannelId) -> bool {
        match (self.rank.get(usize::from(lane)), before) {
            (Some(rank), Some(before)) => rank[before.index()] < rank[next.index()],
            _ => true,
        }
    }

    /// The proof; none where no buffers wait.
    pub(super) fn certificate(&self) -> Option<Certificate> {
        (!self.rank.is_empty()).then(|| Certificate { rank: self.rank.clone() })
    }
}

/// An order with every succession that closes no cycle with those before it.
fn extended(mut order: TopologicalOrder, successions: &[(u32, u32)]) -> Vec<u32> {
    for arc in successions {
        order.insert(*arc);
    }
    order.rank().to_vec()
}
