//! The sizes beyond which input is refused: large enough for any fabric that VLANs can serve, small enough that a
//! typing error cannot exhaust memory.

/// Most switches in one topology.
pub const SWITCHES_MAX: usize = 16_384;
/// Most hosts in one topology.
pub const HOSTS_MAX: usize = 262_144;
/// Most station addresses behind one port.
pub const ADDRESSES_MAX: usize = 4_096;
/// Addresses that are learned at a port which says nothing else.
pub const LEARNED_MAX_DEFAULT: usize = 64;
/// Most links between switches in one topology.
pub const LINKS_MAX: usize = 1_048_576;
/// Most named groups in one topology.
pub const GROUPS_MAX: usize = 1_024;
/// Most members of all groups of one topology together.
pub const GROUP_MEMBERS_MAX: usize = 1_048_576;
/// Longest name of a switch, port, host or model, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
