//! Which plane each switch is in: so that the ports of as many machines as possible meet in different planes, each of which its
//! own links connect.
//!
//! ```text
//!   node1 at s0 and s3, node2 at s1 and s3      switches that a machine has ports on differ: s0 ≠ s3, s1 ≠ s3
//!   s0 ─── s1                                   one group {s0, s1, s3}, of which s3 is on the other plane
//!    ╲    ╱                                     s2 has no such machine: it goes where it connects what is apart
//!     s2 ─── s3 ─── s4
//! ```
//! Switches on which one machine has ports form groups, and each group is coloured so that the ports of a machine get different
//! colours: the planes. Exchanging two colours within a group keeps that, so the search exchanges colours, group by group, as long as
//! planes get better; then it recolours single switches, which gives up the disjoint paths of some machines for those of others.
//! Switches on which no such machine has ports join the plane that they connect most of. Planes are better with more pairs of
//! machines with disjoint paths, then with fewer parts, then with more links within planes, then with more capacity of the weakest.
//!
//! Source: a breadth-first colouring with two colours is unique up to exchanging them in each component (D. Kőnig, 1916). Where
//! machines have more ports, the colouring is greedy in breadth-first order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fabric::{ChannelId, HostId, LinkId, Plan, PlanePairs, Planes, Relation, SwitchId, Topology, rng::Rng};

use crate::PlanError;

/// Randomly chosen colourings that the search starts from, beside the first.
const BEGINNINGS: usize = 8;
/// Switches and links visited in all; on larger topologies fewer changes are tried.
const VISITS_MAX: usize = 100_000_000;
/// How good planes are, as [`Search::quality`] says.
type Quality = (u64, std::cmp::Reverse<usize>, usize, u64);

/// The planes of a topology in which some links are drained. Those of a previous plan stay if none are better; switches are matched
/// by name.
///
/// # Errors
/// [`PlanError::NoPlanes`] if no two machines have two ports each.
pub fn planes(topology: &Topology, drained: &BTreeSet<LinkId>, previous: Option<&Plan>) -> Result<Planes, PlanError> {
    let groups = Groups::of(topology);
    let count = groups.planes;
    let search = Search { topology, drained, groups };
    let mut best = search.turned(search.groups.colour.clone());
    let mut rng = Rng::new(0);
    for _ in 0..BEGINNINGS.min(VISITS_MAX / search.cost().max(1)) {
        let mut colour = search.groups.colour.clone();
        for group in &search.groups.members {
            let turn = rng.below(count.max(1)) as u8;
            group.iter().for_each(|switch| colour[*switch] = (colour[*switch] + turn) % count.max(1) as u8);
        }
        let found = search.turned(colour);
        if found.0 > best.0 {
            best = found;
        }
    }
    let (quality, planes) = best;
    if quality.0 == 0 {
        return Err(PlanError::NoPlanes { reason: no_planes(&search.pairs(&planes), topology) });
    }
    let kept = previous.and_then(|previous| of_before(topology, previous, &planes));
    // What else makes planes better is not worth changing all routes.
    let decides = |quality: Quality| (quality.0, quality.1);
    Ok(kept.filter(|kept| decides(search.quality(kept)) >= decides(quality)).unwrap_or(planes))
}

/// The planes of a previous plan; a switch that is new is on the plane of the one it has most cables to, or else on that of `planes`.
fn of_before(topology: &Topology, previous: &Plan, planes: &Planes) -> Option<Planes> {
    if previous.policy.planes.is_empty() {
        return None;
    }
    let relation = Relation::between(&previous.topology, topology);
    let before = |switch: SwitchId| relation.switch_from[switch.index()].map(|old| previous.policy.planes.of(old));
    let beside = |switch: SwitchId| {
        let mut cables: BTreeMap<u8, usize> = BTreeMap::new();
        let neighbours = topology.neighbours(switch).filter_map(|(_, head)| before(head));
        neighbours.for_each(|plane| *cables.entry(plane).or_default() += 1);
        cables.into_iter().max_by_key(|(plane, cables)| (*cables, std::cmp::Reverse(*plane))).map(|(plane, _)| plane)
    };
    let plane = |switch| before(switch).or_else(|| beside(switch)).unwrap_or_else(|| planes.of(switch));
    Some(Planes::new(topology.switch_ids().map(plane).collect()))
}

/// Why there are none.
fn no_planes(pairs: &PlanePairs, topology: &Topology) -> String {
    match pairs.example {
        None => "no two machines have two ports each".to_owned(),
        Some((a, b)) => format!(
            "the ports of {} and {}, for example, have no two paths without a common switch; cable the ports of a machine to different \
             switches, and those of one plane to each other",
            topology.machine(a).name,
            topology.machine(b).name
        ),
    }
}

/// Switches that share machines.
struct Groups {
    /// How many planes.
    planes: usize,
    /// `colour[switch]`, 0 where it is of no group.
    colour: Vec<u8>,
    /// The switches of each group.
    members: Vec<Vec<usize>>,
    /// Switches of no group.
    free: Vec<usize>,
    /// How many sets of switches there are that a machine has its ports on.
    kinds: usize,
}

impl Groups {
    fn of(topology: &Topology) -> Self {
        let switches = topology.switches().len();
        let ports = |machine| -> Vec<HostId> {
            topology.machine(machine).hosts().filter(|host| !topology.host(*host).standby).collect()
        };
        let mut apart: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); switches];
        let mut of_group = vec![false; switches];
        // What people call a rail, or else how many ports of its machine come before, says which plane is likely.
        let mut likely: Vec<BTreeMap<usize, usize>> = vec![BTreeMap::new(); switches];
        let mut planes = 2;
        let mut kinds = BTreeSet::new();
        for machine in topology.machine_ids() {
            let ports = ports(machine);
            if ports.len() < 2 {
                continue;
            }
            let at: Vec<usize> = ports.iter().map(|port| topology.switch_of(*port).index()).collect();
            let distinct: BTreeSet<usize> = at.iter().copied().collect();
            planes = planes.max(distinct.len());
            kinds.insert(distinct);
            for (number, &switch) in at.iter().enumerate() {
                of_group[switch] = true;
                apart[switch].extend(at.iter().filter(|other| **other != switch));
                let rail = topology.host(ports[number]).rail.map_or(number, usize::from);
                *likely[switch].entry(rail).or_default() += 1;
            }
        }
        let planes = planes.min(Planes::COUNT_MAX);
        let mut colour = vec![u8::MAX; switches];
        let mut members = Vec::new();
        for start in (0..switches).filter(|switch| of_group[*switch]) {
            if colour[start] != u8::MAX {
                continue;
            }
            let mut group = Vec::new();
            let mut queue = VecDeque::from([start]);
            let mut queued = BTreeSet::from([start]);
            while let Some(switch) = queue.pop_front() {
                let taken: Vec<usize> =
                    apart[switch].iter().map(|other| usize::from(colour[*other])).filter(|of| *of < planes).collect();
                let times = |plane: &usize| taken.iter().filter(|taken| *taken == plane).count();
                let liked = |plane: &usize| likely[switch].get(plane).copied().unwrap_or(0);
                let plane =
                    (0..planes).min_by_key(|plane| (times(plane), std::cmp::Reverse(liked(plane)))).unwrap_or(0);
                colour[switch] = plane as u8;
                group.push(switch);
                queue.extend(apart[switch].iter().filter(|other| queued.insert(**other)));
            }
            members.push(group);
        }
        let free = (0..switches).filter(|switch| !of_group[*switch]).collect();
        colour.iter_mut().filter(|colour| **colour == u8::MAX).for_each(|colour| *colour = 0);
        Self { planes, colour, members, free, kinds: kinds.len() }
    }
}

/// A change of a colouring.
enum Change<'a> {
    /// In a group the one colour becomes the other, and the other way round.
    Exchange(&'a [usize], u8, u8),
    /// A switch gets a colour.
    Recolour(usize, u8),
}

impl Change<'_> {
    fn make(&self, colour: &mut [u8]) {
        match *self {
            Self::Recolour(switch, to) => colour[switch] = to,
            Self::Exchange(group, a, b) => {
                for switch in group {
                    let of = &mut colour[*switch];
                    *of = match *of {
                        of if of == a => b,
                        of if of == b => a,
                        of => of,
                    };
                }
            }
        }
    }
}

struct Search<'a> {
    topology: &'a Topology,
    drained: &'a BTreeSet<LinkId>,
    groups: Groups,
}

impl Search<'_> {
    /// What one look at a colouring costs.
    fn cost(&self) -> usize {
        let topology = self.topology;
        let graph =
            (topology.switches().len() + topology.channel_count() + topology.hosts().len()) * self.groups.planes;
        graph + self.groups.kinds * self.groups.kinds
    }

    fn pairs(&self, planes: &Planes) -> PlanePairs {
        planes.parts(self.topology, self.drained).pairs(self.topology)
    }

    /// Makes changes as long as planes get better.
    fn turned(&self, mut colour: Vec<u8>) -> (Quality, Planes) {
        let mut best = self.filled(&colour);
        let mut looks = VISITS_MAX / BEGINNINGS / self.cost().max(1);
        loop {
            let before = best.0;
            for change in self.changes() {
                if looks == 0 {
                    return best;
                }
                looks -= 1;
                let mut turned = colour.clone();
                change.make(&mut turned);
                let found = self.filled(&turned);
                if found.0 > best.0 {
                    (best, colour) = (found, turned);
                }
            }
            if best.0 == before {
                return best;
            }
        }
    }

    /// All changes of a colouring that are tried: two colours exchanged within a group, and then, where not all machines can have
    /// their ports on different planes, another colour for one switch.
    fn changes(&self) -> impl Iterator<Item = Change<'_>> {
        let planes = self.groups.planes as u8;
        let exchanges = self.groups.members.iter().flat_map(move |group| {
            let colours = (0..planes).flat_map(|a| (0..a).map(move |b| (b, a)));
            colours.map(move |(a, b)| Change::Exchange(group, a, b))
        });
        let switches = self.groups.members.iter().flatten();
        let single = switches.flat_map(move |switch| (0..planes).map(move |to| Change::Recolour(*switch, to)));
        exchanges.chain(single)
    }

    /// The planes of a colouring of groups: free switches join where they connect most.
    fn filled(&self, colour: &[u8]) -> (Quality, Planes) {
        let mut plane: Vec<Option<u8>> = colour.iter().copied().map(Some).collect();
        self.groups.free.iter().for_each(|switch| plane[*switch] = None);
        self.connect(&mut plane);
        self.spread(&mut plane);
        let planes = Planes::new(plane.into_iter().map(|plane| plane.unwrap_or(0)).collect());
        (self.quality(&planes), planes)
    }

    /// Gives each plane in turn, the one with most parts first, free switches that join two of its parts, along a shortest path.
    fn connect(&self, plane: &mut [Option<u8>]) {
        let mut apart: BTreeSet<u8> = (0..self.groups.planes as u8).collect();
        while !apart.is_empty() {
            let parts = |of: u8| self.parts_of(plane, of).1;
            let next =
                apart.iter().copied().max_by_key(|of| (parts(*of), std::cmp::Reverse(*of))).expect("some are left");
            match self.joint(plane, next) {
                Some(path) => path.into_iter().for_each(|switch| plane[switch] = Some(next)),
                None => {
                    apart.remove(&next);
                }
            }
        }
    }

    /// The parts of one plane, and how many there are.
    fn parts_of(&self, plane: &[Option<u8>], of: u8) -> (Vec<u32>, u32) {
        let (mut part, mut count) = (vec![u32::MAX; plane.len()], 0);
        for start in 0..plane.len() {
            if plane[start] != Some(of) || part[start] != u32::MAX {
                continue;
            }
            let mut pending = vec![start];
            part[start] = count;
            while let Some(switch) = pending.pop() {
                for (_, head) in self.neighbours(switch) {
                    if plane[head] == Some(of) && part[head] == u32::MAX {
                        part[head] = count;
                        pending.push(head);
                    }
                }
            }
            count += 1;
        }
        (part, count)
    }

    /// Free switches on a shortest path between two parts of a plane: if one switch is enough, the one that is next to most parts. None if
    /// there is no path.
    fn joint(&self, plane: &[Option<u8>], of: u8) -> Option<Vec<usize>> {
        let (part, count) = self.parts_of(plane, of);
        if count < 2 {
            return None;
        }
        let meets = |switch: usize| -> usize {
            let met: BTreeSet<u32> =
                self.neighbours(switch).map(|(_, head)| part[head]).filter(|part| *part != u32::MAX).collect();
            met.len()
        };
        let free = |switch: usize| plane[switch].is_none();
        // One switch may do, and then the one that joins most.
        let one = self.groups.free.iter().copied().filter(|switch| free(*switch)).map(|switch| (meets(switch), switch));
        if let Some((_, switch)) =
            one.filter(|(met, _)| *met > 1).max_by_key(|(met, switch)| (*met, std::cmp::Reverse(*switch)))
        {
            return Some(vec![switch]);
        }
        let mut before: Vec<Option<usize>> = vec![None; plane.len()];
        let mut origin = part.clone();
        let mut queue: VecDeque<usize> = (0..plane.len()).filter(|switch| part[*switch] != u32::MAX).collect();
        while let Some(switch) = queue.pop_front() {
            for (_, head) in self.neighbours(switch) {
                if free(head) && origin[head] == u32::MAX {
                    origin[head] = origin[switch];
                    before[head] = Some(switch);
                    queue.push_back(head);
                } else if origin[head] != u32::MAX && origin[head] != origin[switch] {
                    let back = |end: usize| std::iter::successors(Some(end), |at| before[*at]);
                    return Some(back(switch).chain(back(head)).filter(|at| free(*at)).collect());
                }
            }
        }
        None
    }

    /// Free switches that are left join the neighbouring plane with the least capacity, nearest first.
    fn spread(&self, plane: &mut [Option<u8>]) {
        let mut capacity = vec![0_u64; self.groups.planes];
        loop {
            capacity.fill(0);
            for switch in 0..plane.len() {
                let Some(of) = plane[switch] else { continue };
                let inside = self.neighbours(switch).filter(|(_, head)| plane[*head] == Some(of));
                capacity[usize::from(of)] += inside.map(|(rate, _)| rate).sum::<u64>();
            }
            let mut joined = false;
            for &switch in &self.groups.free {
                if plane[switch].is_some() {
                    continue;
                }
                let mut gain: BTreeMap<u8, u64> = BTreeMap::new();
                for (rate, head) in self.neighbours(switch) {
                    plane[head].into_iter().for_each(|of| *gain.entry(of).or_default() += rate);
                }
                // Of planes with like capacities the one that it is cabled to most.
                let choice =
                    gain.into_iter().min_by_key(|(of, gain)| (capacity[usize::from(*of)], std::cmp::Reverse(*gain)));
                if let Some((of, gain)) = choice {
                    plane[switch] = Some(of);
                    capacity[usize::from(of)] += 2 * gain;
                    joined = true;
                }
            }
            if !joined {
                return;
            }
        }
    }

    fn neighbours(&self, switch: usize) -> impl Iterator<Item = (u64, usize)> + '_ {
        let channels = self.topology.neighbours(SwitchId::new(switch));
        let in_service = channels.filter(|(channel, _): &(ChannelId, _)| !self.drained.contains(&channel.link()));
        in_service.map(|(channel, head)| (self.topology.link(channel.link()).rate_bps, head.index()))
    }

    /// More is better: pairs of machines with paths of their own, few parts among switches with hosts, links within planes, and the
    /// least capacity of a plane.
    fn quality(&self, planes: &Planes) -> Quality {
        if planes.by_switch().len() != self.topology.switches().len() {
            return (0, std::cmp::Reverse(usize::MAX), 0, 0);
        }
        let parts = planes.parts(self.topology, self.drained);
        let with_hosts = self.topology.switch_ids().filter(|switch| !self.topology.hosts_of(*switch).is_empty());
        let distinct: BTreeSet<u32> = with_hosts.map(|switch| parts.by_switch()[switch.index()]).collect();
        let mut capacity = vec![0_u64; planes.count()];
        let mut inside = 0;
        for link in self.topology.link_ids().filter(|link| !self.drained.contains(link)) {
            let ends = [ChannelId::forward(link), ChannelId::backward(link)].map(|channel| self.topology.tail(channel));
            if planes.of(ends[0]) == planes.of(ends[1]) {
                capacity[usize::from(planes.of(ends[0]))] += self.topology.link(link).rate_bps;
                inside += 1;
            }
        }
        let least = capacity.into_iter().min().unwrap_or(0);
        (parts.pairs(self.topology).disjoint, std::cmp::Reverse(distinct.len()), inside, least)
    }
}
