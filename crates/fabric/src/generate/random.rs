//! Random regular graphs: every switch has the same number of links, and chance says to whom.
//!
//! Such networks (Jellyfish: Singla et al., NSDI 2012) come close to the shortest paths that any network of their degree
//! can have. Drawing: start from a ring-like regular graph, then many times take two links and exchange their ends,
//! unless that would cable a switch to itself or two switches twice. The exchanges walk over all simple regular graphs and
//! mix quickly (Cooper, Dyer and Greenhill, 2007); unlike pairing stubs they never get stuck, however dense the graph. A graph
//! that falls into pieces is exchanged further. Of degree two only rings are connected, so a ring is drawn at once.
//!
//! ```text
//! a ── b        a    b
//!          ▶      ╲╱        a–b, c–d become a–d, c–b
//! c ── d         ╱╲
//!               c    d
//! ```

use super::{Counts, GenerateError, draft::Draft};
use crate::{graph::breadth_first, rng::Rng};

/// Exchanges tried per link before the graph counts as random.
const EXCHANGES_PER_LINK: usize = 10;
/// Most further rounds, one exchange per link each, to join a graph that fell into pieces.
const JOIN_ROUNDS_MAX: usize = 1000;

/// The numbers of switches and links, and of switches that take hosts.
pub(super) fn counts(switches: usize, degree: usize) -> Counts {
    let (switches, degree) = (switches as u128, degree as u128);
    Counts { switches, links: switches.saturating_mul(degree) / 2, rim: switches }
}

/// Draws and wires the graph, `hosts` at every switch. Cost: O(links · degree).
///
/// # Errors
/// [`GenerateError::Unlucky`] if the graph never came in one piece.
pub(super) fn draft(switches: usize, degree: usize, seed: u64, hosts: usize) -> Result<Draft, GenerateError> {
    let mut rng = Rng::new(seed);
    let mut links = if degree == 2 { ring(switches, &mut rng) } else { regular(switches, degree, &mut rng)? };
    for (a, b) in &mut links {
        (*a, *b) = ((*a).min(*b), (*a).max(*b));
    }
    links.sort_unstable();
    let mut draft = Draft::default();
    for switch in 0..switches {
        draft.add_switch(format!("s{switch}"), hosts);
    }
    for (a, b) in links {
        draft.add_link((a, b), (b, a));
    }
    Ok(draft)
}

/// A ring through all switches in random order.
fn ring(switches: usize, rng: &mut Rng) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..switches).collect();
    rng.shuffle(&mut order);
    (0..switches).map(|at| (order[at], order[(at + 1) % switches])).collect()
}

fn regular(switches: usize, degree: usize, rng: &mut Rng) -> Result<Vec<(usize, usize)>, GenerateError> {
    let mut graph = Graph::circulant(switches, degree);
    for _ in 0..EXCHANGES_PER_LINK * graph.links.len() {
        graph.exchange(rng);
    }
    for _ in 0..JOIN_ROUNDS_MAX {
        if graph.is_connected() {
            return Ok(graph.links);
        }
        for _ in 0..graph.links.len() {
            graph.exchange(rng);
        }
    }
    Err(GenerateError::Unlucky)
}

struct Graph {
    links: Vec<(usize, usize)>,
    neighbours: Vec<Vec<usize>>,
}

impl Graph {
    /// Switches on a circle, each cabled to the nearest `degree`; to the opposite one too where `degree` is odd.
    fn circulant(switches: usize, degree: usize) -> Self {
        let near = (1..=degree / 2).flat_map(|step| (0..switches).map(move |at| (at, (at + step) % switches)));
        let opposite = (0..switches / 2).map(|at| (at, at + switches / 2)).filter(|_| degree % 2 == 1);
        let links: Vec<(usize, usize)> = near.chain(opposite).collect();
        let mut neighbours = vec![Vec::with_capacity(degree); switches];
        for &(a, b) in &links {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        Self { links, neighbours }
    }

    /// Exchanges the ends of two random links, unless the result were no simple graph.
    fn exchange(&mut self, rng: &mut Rng) {
        let (first, second) = (rng.below(self.links.len()), rng.below(self.links.len()));
        let (a, b) = self.links[first];
        let (c, d) = self.links[second];
        let (c, d) = if rng.below(2) == 0 { (c, d) } else { (d, c) };
        if a == c || a == d || b == c || b == d {
            return;
        }
        if self.neighbours[a].contains(&d) || self.neighbours[c].contains(&b) {
            return;
        }
        self.links[first] = (a, d);
        self.links[second] = (c, b);
        for (at, old, new) in [(a, b, d), (d, c, a), (c, d, b), (b, a, c)] {
            let place = self.neighbours[at].iter_mut().find(|neighbour| **neighbour == old);
            *place.expect("both ends of a link know each other") = new;
        }
    }

    fn is_connected(&self) -> bool {
        let count = self.neighbours.len();
        let found = breadth_first(count, [0], |at| self.neighbours[at].iter().map(|&next| ((), next)));
        found.order.len() == count
    }
}
