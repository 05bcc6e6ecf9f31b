//! CPU scheduling of RI2N's threads beside programs that use the CPU all the time.
//!
//! The kernel's own TCP is not scheduled. A thread waits for one time slice of every runnable program on its CPU: 50 ms beside ten, which
//! peers take for a silent link.

use std::{fs, mem, time::Duration};

/// Requests short time slices for this thread and those that it starts: it then runs sooner after it has slept. Its share of the CPU stays
/// the same. Linux before 6.12 ignores the request.
pub fn request_short_slices() {
    /// The shortest time slice that Linux grants.
    const SLICE: Duration = Duration::from_micros(100);
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
        wish.sched_runtime = SLICE.as_nanos() as u64;
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const wish, 0);
    }
}

/// Sets the nice value of this thread and those that it starts to -10, if it is 0 and the caller may (root, or RLIMIT_NICE). Where the kernel
/// groups processes by session (`sched_autogroup_enabled`), the session's nice value is set as well, if this process leads it.
pub fn raise_priority() {
    const NICE: libc::c_int = -10;
    // SAFETY: no memory is involved.
    let (is_raised, leads_session) = unsafe {
        let is_usual = libc::getpriority(libc::PRIO_PROCESS, 0) == 0;
        (is_usual && libc::setpriority(libc::PRIO_PROCESS, 0, NICE) == 0, libc::getsid(0) == libc::getpid())
    };
    // The session of a terminal holds other programs.
    if is_raised && leads_session {
        // Kernels that do not group processes have no such file.
        let _ = fs::write("/proc/self/autogroup", NICE.to_string());
    }
}
