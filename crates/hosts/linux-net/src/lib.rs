//! The network of a Linux machine as programs here use it: netlink, packet sockets, namespaces, and rights that are given up.
//!
//! ```text
//!   netlink   requests to the kernel, many to a system call, and dumps        links     devices: listed, moved, named
//!   packet    BPDUs and LLDP frames by a packet socket                        netns     named namespaces, entered by a thread
//!   offload   TSO, GSO and GRO turned off                                     privileges    what a daemon keeps
//!   stations  MAC addresses behind IP addresses
//! ```

pub mod links;
pub mod netlink;
pub mod netns;
pub mod offload;
pub mod packet;
pub mod privileges;
pub mod stations;
