//! Symmetries of a torus that a search keeps, so that it has only a few of the trees to find.
//!
//! On a torus of even rings, reflections (position x becomes −1 − x) leave no switch where it is, and neither do translations
//! by half a ring. If all trees and orders are alike under a group of these, one tree says where all its images run, and
//! one channel's load is that of its images. Translations also exchange lanes: what one lane's order forbids at some
//! node of a ring, another's forbids half a ring further, so that each lane is good where the other is bad. Three
//! dimensions and two lanes give sixteen symmetries: a sixteenth of the trees are searched for, and each of them counts
//! sixteen times.
//!
//! ```text
//!   lane 0:  0 ▶ 1 ▶ 2 ▶ 3 ▶ 4 ▶ 5 ▶ 6 ▶ 7 ▶    nobody passes 0 ascending, nor (reflected) 7 descending
//!   lane 1:  4 ▶ 5 ▶ 6 ▶ 7 ▶ 0 ▶ 1 ▶ 2 ▶ 3 ▶    nobody passes 4 ascending, nor 3 descending
//! ```
//!
//! An order that is alike under reflections is no worse where a path goes straight on, since the images of its channels
//! lead the other way or lie in other rings.

use super::rank::ranks_by_key;

/// A group under which trees and orders are alike.
#[derive(Clone)]
pub(super) struct Symmetry {
    /// The identity first, then all others that keep lanes, then those that exchange them.
    elements: Vec<Element>,
    /// `cut[channel]`: the first lane's order in which every switch reaches all others, by dimensions with cut rings.
    cut: Vec<u32>,
}

/// Where one symmetry takes everything.
#[derive(Clone)]
pub(super) struct Element {
    /// `switch[switch]`, `channel[channel]`.
    pub(super) switch: Vec<u32>,
    pub(super) channel: Vec<u32>,
    /// A lane's number becomes its exclusive or with this.
    pub(super) lane: u8,
}

impl Symmetry {
    /// A group whose elements are in the order that it states, with an order in which every switch reaches all others.
    pub(super) fn new(elements: Vec<Element>, cut: Vec<u32>) -> Self {
        Self { elements, cut }
    }

    /// How many symmetries there are.
    pub(super) fn order(&self) -> usize {
        self.elements.len()
    }

    /// How many of them keep lanes.
    pub(super) fn keeping(&self) -> usize {
        self.elements.iter().filter(|element| element.lane == 0).count()
    }

    /// Whether a switch stands for all its images.
    pub(super) fn is_first(&self, switch: usize) -> bool {
        self.elements.iter().all(|element| element.switch[switch] as usize >= switch)
    }

    pub(super) fn elements(&self) -> &[Element] {
        &self.elements
    }

    /// Orders in which every switch reaches all others, by lane.
    pub(super) fn cut_orders(&self, lanes: usize) -> Vec<Vec<u32>> {
        let mut rank = vec![self.cut.clone(); lanes];
        self.spread(&mut rank);
        rank
    }

    /// Makes orders alike, by the first lane's.
    pub(super) fn spread(&self, rank: &mut [Vec<u32>]) {
        let Some((first, others)) = rank.split_first_mut() else { return };
        let keeping = &self.elements[..self.keeping()];
        let least = |channel: usize| keeping.iter().map(|element| element.channel[channel]).min().unwrap_or(0);
        let key: Vec<f64> = (0..first.len()).map(|channel| f64::from(first[least(channel) as usize])).collect();
        *first = ranks_by_key(&key);
        for (number, rank) in others.iter_mut().enumerate() {
            if let Some(there) = self.elements.iter().find(|element| usize::from(element.lane) == number + 1) {
                there.channel.iter().zip(rank).for_each(|(image, rank)| *rank = first[*image as usize]);
            }
        }
    }

    /// Gives every channel the load of all that its images carry.
    pub(super) fn fold_loads(&self, load: &mut [f64]) {
        let own = load.to_vec();
        for (channel, load) in load.iter_mut().enumerate() {
            *load = self.elements.iter().map(|element| own[element.channel[channel] as usize]).sum();
        }
    }
}
