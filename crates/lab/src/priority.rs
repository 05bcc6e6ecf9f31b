//! The priority of processes that play the control plane of switches.

/// Raises the priority of this process above packet forwarding in kernel threads: a real switch forwards in hardware, and its
/// agent has a processor of its own. Without CAP_SYS_NICE the priority stays as it is.
pub(crate) fn raise() {
    const NICENESS: libc::c_int = -15;
    // SAFETY: it takes no memory; 0 is the calling process.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
}
