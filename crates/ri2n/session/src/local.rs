//! A socket filter that keeps other machines away from a listener of plain TCP.

/// One instruction of the classic packet filter, `struct sock_filter`: code, jump if true, jump if false, operand.
pub type FilterStep = (u16, u8, u8, u32);

/// Takes packets that arrive on the loopback device, which has the index 1 in every network namespace, and drops all others.
///
/// On a listener it drops what would open a connection, so whoever accepts (by `accept`, `io_uring`, in a child) sees
/// connections of this machine alone: knocks of a broker among them. Source: Linux, `filter.rst`, extension `ifidx`.
pub const LOCAL_ONLY: [FilterStep; 4] = [
    // Load the index of the device: SKF_AD_OFF + SKF_AD_IFINDEX.
    (0x20, 0, 0, (-0x1000_i32 + 8) as u32),
    (0x15, 0, 1, 1),
    // The whole packet.
    (0x06, 0, 0, u32::MAX),
    // Nothing of it.
    (0x06, 0, 0, 0),
];
