//! Turns at the processor, which threads of RI2N share with programs that want it all the time.
//!
//! The kernel's own TCP does not wait for turns. A thread that does is late by one turn of every program that computes: 50 ms with ten
//! programs to a processor, which peers take for the silence of a dead link.

use std::{fs, mem, time::Duration};

/// Asks the scheduler for short turns of this thread, which then come sooner after it waited, beside other programs that
/// want the processor all the time. Its share stays the same. Systems before Linux 6.12 know no such wish.
pub fn prefer_short_turns() {
    /// The shortest turn that Linux grants.
    const TURN: Duration = Duration::from_micros(100);
    let size = mem::size_of::<libc::sched_attr>();
    // SAFETY: all zeros are a valid structure, `size` bytes of which the first call writes and the second reads.
    unsafe {
        let mut wish: libc::sched_attr = mem::zeroed();
        if libc::syscall(libc::SYS_sched_getattr, 0, &raw mut wish, size, 0) != 0
            || wish.sched_policy != libc::SCHED_OTHER as u32
        {
            return;
        }
        wish.size = size as u32;
        wish.sched_runtime = TURN.as_nanos() as u64;
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const wish, 0);
    }
}

/// Gives this thread and those that it starts a larger share than programs have, where that is permitted (to root, or by a limit of nice)
/// and nobody has chosen a share already. Whoever calls it leads a session.
pub fn outweigh_programs() {
    const NICE: libc::c_int = -10;
    // SAFETY: no memory is involved.
    let is_permitted =
        unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) == 0 && libc::setpriority(libc::PRIO_PROCESS, 0, NICE) == 0 };
    if is_permitted {
        // Where the kernel shares the processor by sessions, nice counts only within one. Others have no such file.
        let _ = fs::write("/proc/self/autogroup", NICE.to_string());
    }
}
