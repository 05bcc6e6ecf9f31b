//! Start: trees of a torus that are images of a few.
//!
//! Exploits: reflections of rings and translations by half a ring, which take a torus of even rings to itself. One tree says where
//! all its images run, so a sixteenth of the trees is searched for on a torus of three dimensions with two lanes; translations
//! exchange lanes, so that each lane is good where the other is bad (`symmetry.rs`).
//! Wins: tori of 600 switches or more, on two lanes or more, where a search for all trees does not get far in its time; no network
//! of the ablation is as large.
//! Costs: a part of the steps before the contest begins; then the trees compete as all others do, without symmetry.
//!
//! A motion that leaves some switch where it is would give that switch's tree several images of itself; so only groups
//! count in which every motion but the identity moves every switch.
//!
//! ```text
//!   ring of 6:  x ▶ 5 − x        5 4 3 2 1 0    reflected
//!               x ▶ x + 3        3 4 5 0 1 2    translated
//! ```

use fabric::{Policy, Topology, Traffic};

use crate::lattice::{Lattice, Shape, Squares};

use crate::engine::balanced::{
    net::Net,
    rank::ranks_by_key,
    symmetry::{Element, Symmetry},
};

/// Most lanes that translations exchange.
const LANES_MAX: usize = 8;

/// What happens to positions: by dimension, as bits.
#[derive(Clone, Copy, Default)]
struct Motion {
    reflected: u32,
    /// By half a ring.
    translated: u32,
    lane: u8,
}

/// The symmetries of a torus with rings of even size among others, where all switches have as many hosts and all cables
/// the same rate, and the number of lanes that they exchange, a power of two; none if the cabling is not of that kind, or
/// no lanes are exchanged.
pub(in crate::engine::balanced) fn symmetries(
    topology: &Topology,
    policy: &Policy,
    net: &Net,
    lanes: usize,
) -> Option<(Symmetry, usize)> {
    let alike = net.hosts.windows(2).all(|pair| pair[0] == pair[1]) && net.slowness.len() == 1;
    if !alike || policy.traffic != Traffic::AllToAll || lanes == 0 {
        return None;
    }
    let lattice = Lattice::recognise(topology, Squares::Rings).ok()?;
    let dimensions = &lattice.dimensions;
    let rings = dimensions.iter().all(|dimension| dimension.shape == Shape::Ring && dimension.size > 4);
    let channels = lattice.nodes.len() * 2 * dimensions.len();
    if !rings || dimensions.len() > 8 || channels != net.channels || lattice.nodes.len() != net.switches {
        return None;
    }
    let sizes: Vec<usize> = dimensions.iter().map(|dimension| dimension.size).collect();
    let motions = motions(&sizes, lanes);
    let exchanged = motions.iter().map(|motion| usize::from(motion.lane)).max().unwrap_or(0) + 1;
    if exchanged == 1 {
        return None;
    }
    let places = Places::new(net, &lattice);
    let elements = motions.iter().map(|motion| places.element(net, &lattice, *motion)).collect();
    Some((Symmetry::new(elements, places.cut(&lattice)), exchanged))
}

/// The largest group that was found which leaves no switch where it is: translations that exchange lanes, with as many
/// reflections as go together with them.
fn motions(sizes: &[usize], lanes: usize) -> Vec<Motion> {
    let even: Vec<usize> = (0..sizes.len()).filter(|dimension| sizes[*dimension] % 2 == 0).collect();
    let bits = (usize::BITS - 1 - lanes.clamp(1, LANES_MAX).leading_zeros()) as usize;
    let shift =
        |dimensions: &mut dyn Iterator<Item = usize>| dimensions.fold(0, |bits, dimension| bits | 1 << dimension);
    // By which each bit of a lane's number moves everything: in as many dimensions as possible, and two of them too.
    let generators: Vec<u32> = match (bits.min(even.len()), &even[..]) {
        (0, _) => Vec::new(),
        (1, all) => vec![shift(&mut all.iter().copied())],
        (2, &[first, second]) => vec![1 << first, 1 << second],
        (2, &[first, second, ref rest @ ..]) => {
            let all = shift(&mut rest.iter().copied());
            vec![1 << first | 1 << second, 1 << second | all]
        }
        (count, all) => all[..count].iter().map(|dimension| 1 << dimension).collect(),
    };
    let mut group: Vec<Motion> = (0..1_u8 << generators.len())
        .map(|lane| {
            let chosen = generators.iter().enumerate().filter(|(bit, _)| lane >> bit & 1 == 1);
            Motion { lane, translated: chosen.fold(0, |moved, (_, generator)| moved ^ generator), reflected: 0 }
        })
        .collect();
    for dimension in 0..sizes.len() {
        let reflected = |motion: &Motion| Motion { reflected: motion.reflected ^ 1 << dimension, ..*motion };
        let images: Vec<Motion> = group.iter().map(reflected).collect();
        if images.iter().all(|motion| leaves_none(sizes, *motion)) {
            group.extend(images);
        }
    }
    group.sort_by_key(|motion| motion.lane);
    group
}

/// Whether a motion takes every switch elsewhere: in some dimension no position stays.
fn leaves_none(sizes: &[usize], motion: Motion) -> bool {
    sizes.iter().enumerate().any(|(dimension, &size)| {
        let here = |bits: u32| bits >> dimension & 1 == 1;
        (0..size).all(|position| moved(position, size, here(motion.reflected), here(motion.translated)) != position)
    })
}

fn moved(position: usize, size: usize, reflected: bool, translated: bool) -> usize {
    let there = if reflected { size - 1 - position } else { position };
    if translated { (there + size / 2) % size } else { there }
}

/// Where each channel of a torus lies.
struct Places {
    /// `node[switch]`.
    node: Vec<usize>,
    /// `way[channel]`: its dimension, and whether it ascends.
    way: Vec<(usize, bool)>,
    /// `begin[channel]`: the node that it leaves.
    begin: Vec<usize>,
    /// `channel[(node · dimensions + dimension) · 2 + ascending]`.
    channel: Vec<u32>,
}

impl Places {
    fn new(net: &Net, lattice: &Lattice) -> Self {
        let count = lattice.dimensions.len();
        let mut node = vec![0; net.switches];
        lattice.nodes.iter().enumerate().for_each(|(number, switch)| node[switch.index()] = number);
        let (mut way, mut begin) = (vec![(0, false); net.channels], vec![0; net.channels]);
        let mut channel = vec![0; net.channels];
        for from in 0..lattice.nodes.len() {
            for (dimension, ring) in lattice.dimensions.iter().enumerate() {
                let here = lattice.position[from][dimension];
                for ascending in [false, true] {
                    let next = if ascending { here + 1 } else { here + ring.size - 1 } % ring.size;
                    let hop = &lattice.hops(from, lattice.along(from, dimension, next))[0][0];
                    let number = net.number(*hop);
                    way[number as usize] = (dimension, ascending);
                    begin[number as usize] = from;
                    channel[(from * count + dimension) * 2 + usize::from(ascending)] = number;
                }
            }
        }
        Self { node, way, begin, channel }
    }

    fn element(&self, net: &Net, lattice: &Lattice, motion: Motion) -> Element {
        let is = |bits: u32, dimension: usize| bits >> dimension & 1 == 1;
        let image: Vec<usize> = (0..lattice.nodes.len())
            .map(|node| {
                lattice.dimensions.iter().enumerate().fold(node, |at, (dimension, ring)| {
                    let here = lattice.position[at][dimension];
                    let there =
                        moved(here, ring.size, is(motion.reflected, dimension), is(motion.translated, dimension));
                    lattice.along(at, dimension, there)
                })
            })
            .collect();
        let channel = (0..net.channels)
            .map(|channel| {
                let (dimension, ascending) = self.way[channel];
                let ascending = ascending != is(motion.reflected, dimension);
                let from = image[self.begin[channel]];
                self.channel[(from * lattice.dimensions.len() + dimension) * 2 + usize::from(ascending)]
            })
            .collect();
        let switch = self.node.iter().map(|node| lattice.nodes[image[*node]].index() as u32).collect();
        Element { switch, channel, lane: motion.lane }
    }

    /// Dimension after dimension; ascending, nobody passes position 0, descending nobody the last one.
    fn cut(&self, lattice: &Lattice) -> Vec<u32> {
        let longest = lattice.dimensions.iter().map(|ring| ring.size).max().unwrap_or(0);
        let key = |(&(dimension, ascending), &begin): (&(usize, bool), &usize)| {
            let (here, size) = (lattice.position[begin][dimension], lattice.dimensions[dimension].size);
            (dimension * longest + if ascending { here } else { size - 1 - here }) as f64
        };
        ranks_by_key(&self.way.iter().zip(&self.begin).map(key).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use fabric::{
        generate::{Kind, Options, generate},
        rng::Rng,
    };

    use super::*;
    use crate::{
        StepLimit,
        engine::balanced::{
            alternate::{Alternation, Patience, grow_all},
            build::Builder,
            forest::{Forest, Source},
            net::NONE,
            share::Sharing,
            state::{Context, SearchState},
            work::Work,
        },
    };

    /// Sizes, lanes, and what is found: the order of the group, and lanes exchanged.
    const TORI: [(&str, usize, usize, usize); 7] = [
        ("6x6", 2, 4, 2),
        ("8x8", 2, 8, 2),
        ("6x8x6", 2, 16, 2),
        ("6x6x6", 5, 8, 4),
        ("8x5", 3, 4, 2),
        ("8x8x8", 8, 64, 8),
        ("6x5x8", 4, 8, 4),
    ];

    fn torus(size: &str) -> Topology {
        let kind = Kind::parse("torus", &[size.to_owned()]).expect("a valid size");
        generate(&kind, &Options { shuffle: Some(7), ..Options::default() }).expect("a sane size")
    }

    fn each(check: impl Fn(&str, &Topology, &Net, Symmetry, usize)) {
        for (size, lanes, order, exchanged) in TORI {
            let topology = torus(size);
            let net = Net::new(&topology, 1.0);
            let found = symmetries(&topology, &Policy::default(), &net, lanes);
            let (symmetry, found) = found.expect("a torus has symmetries");
            assert_eq!((symmetry.order(), found), (order, exchanged), "torus {size}");
            check(size, &topology, &net, symmetry, exchanged);
        }
    }

    #[test]
    fn every_symmetry_keeps_the_cabling_and_leaves_no_switch_where_it_is() {
        each(|size, _, net, symmetry, _| {
            for (number, element) in symmetry.elements().iter().enumerate() {
                for channel in 0..net.channels as u32 {
                    let image = element.channel[channel as usize];
                    assert_eq!(net.tail(image), element.switch[net.tail(channel)] as usize, "torus {size}");
                    assert_eq!(net.head(image), element.switch[net.head(channel)] as usize, "torus {size}");
                }
                let stays = |switch: usize| element.switch[switch] as usize == switch;
                assert_eq!(
                    (0..net.switches).filter(|switch| stays(*switch)).count(),
                    if number == 0 { net.switches } else { 0 }
                );
            }
            let first = (0..net.switches).filter(|switch| symmetry.is_first(*switch)).count();
            assert_eq!(first * symmetry.order(), net.switches, "torus {size}");
        });
    }

    #[test]
    fn cut_orders_serve_every_switch_on_every_lane() {
        each(|size, _, net, symmetry, lanes| {
            let (price, mut inward) = (vec![1.0; net.channels], vec![NONE; net.switches]);
            for rank in symmetry.cut_orders(lanes) {
                for root in 0..net.switches {
                    assert!(Builder::new(net).grow_rising(net, root, &price, &rank, &mut inward), "torus {size}");
                }
            }
        });
    }

    #[test]
    fn images_of_trees_keep_the_images_of_orders_and_carry_what_was_counted() {
        each(|size, topology, net, symmetry, lanes| {
            let policy = Policy::default();
            let sharing = Sharing::new(topology, &policy);
            let all = sharing.one_source_a_switch();
            let few: Vec<Source> = all.iter().filter(|source| symmetry.is_first(source.root)).cloned().collect();
            let folded = net.folded(symmetry.clone());
            let mut steps = StepLimit::new(20);
            let mut work = Work::new(&mut steps);
            let mut context = Context::new(&folded, &few, Rng::new(1), &mut work);
            let lane = (0..few.len()).map(|number| (number % lanes) as u8).collect();
            let rank = symmetry.cut_orders(lanes);
            let mut state = SearchState { forest: Forest::bare(&folded, few.len()), lane, rank };
            assert!(grow_all(&mut context, &mut state, Patience::Endless), "torus {size}");
            let mut alternation = Alternation::new(&context, state);
            alternation.run(&mut context, u64::MAX, 0.0);
            let best = alternation.best;
            let whole = best.unfolded(&symmetry, net, &few, &all);
            assert_eq!(whole.forest.load, best.forest.load, "torus {size}");
            for (number, source) in all.iter().enumerate() {
                let (inward, rank) = (whole.forest.tree(number).0, &whole.rank[usize::from(whole.lane[number])]);
                for switch in (0..net.switches).filter(|switch| *switch != source.root) {
                    let (channel, tail) = (inward[switch], net.tail(inward[switch]));
                    let rises = tail == source.root || rank[inward[tail] as usize] < rank[channel as usize];
                    assert!(rises, "torus {size}: a turn falls");
                }
            }
        });
    }
}
