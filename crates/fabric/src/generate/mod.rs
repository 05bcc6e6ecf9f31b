//! Generators of the topologies that interconnects are made of.
