//! Graph algorithms, each once: breadth-first search, Dijkstra's algorithm, union-find, and a topological order that is kept
//! while arcs are added.
//!
//! They know neither switches nor links. A graph is a number of nodes, which are dense indices, and a closure that lists
//! the arcs that leave a node:
//!
//! ```
//! use fabric::{SwitchId, generate::{Kind, Options, generate}, graph::breadth_first};
//!
//! let kind = Kind::parse("mesh", &["3x1".to_owned()]).unwrap();
//! let topology = generate(&kind, &Options::default()).unwrap();
//! let count = topology.switches().len();
//! let found = breadth_first(count, [SwitchId::new(0)], |switch| topology.neighbours(switch));
//! assert_eq!(found.distance(SwitchId::new(2)), Some(2));
//! ```
//!
//! All results depend on the order of the arcs, and on nothing else: the same graph gives the same result.
//!
//! The judge, crate `verify`, uses none of this: its graph walks are its own, so that no fault here can hide itself.

mod breadth_first;
mod dijkstra;
mod topological;
mod union_find;

pub use breadth_first::{BreadthFirst, breadth_first};
pub use dijkstra::{Cost, Dijkstra, Length, dijkstra};
pub use topological::{Arc, Insertion, TopologicalOrder};
pub use union_find::UnionFind;

use crate::{ChannelId, HostId, LinkId, PortId, SwitchId};

/// A node: an index into tables of a graph's nodes.
pub trait Node: Copy {
    /// The position that this node stands for.
    fn index(self) -> usize;
}

macro_rules! node {
    ($($name:ident),*) => {$(
        impl Node for $name {
            #[inline]
            fn index(self) -> usize {
                self.index()
            }
        }
    )*};
}

node!(SwitchId, HostId, PortId, LinkId, ChannelId);

impl Node for usize {
    #[inline]
    fn index(self) -> usize {
        self
    }
}
