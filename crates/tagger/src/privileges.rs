//! Gives up what a running daemon does not need.
//!
//! ```text
//!   attach: CAP_NET_ADMIN (tc), CAP_BPF (programs, maps), CAP_SYS_ADMIN (finding maps by number), CAP_NET_RAW (probes)
//!   after:  CAP_BPF, which kernels before 5.19 ask for even to write a map that is open
//! ```
//!
//! Source: capabilities(7), capset(2).

use std::io;

const VERSION_3: u32 = 0x2008_0522;
/// `CAP_BPF`.
const BPF: u32 = 39;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Gives up every capability of the calling thread but CAP_BPF, and the way to get them back.
///
/// # Errors
/// If the kernel refuses.
pub fn drop_all_but_bpf() -> io::Result<()> {
    // SAFETY: sets a flag of this thread, and takes no pointer.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let header = Header { version: VERSION_3, pid: 0 };
    let mut held = [Sets::default(); 2];
    // SAFETY: header and sets have the layout of version 3, and outlive both calls.
    let done = unsafe {
        let sets = (&raw mut held).cast::<Sets>();
        libc::syscall(libc::SYS_capget, &raw const header, sets) == 0 && {
            let keep = held[1].permitted & 1 << (BPF % 32);
            held = [Sets::default(), Sets { effective: keep, permitted: keep, inheritable: 0 }];
            libc::syscall(libc::SYS_capset, &raw const header, (&raw const held).cast::<Sets>()) == 0
        }
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_else_is_left() {
        std::thread::spawn(|| {
            drop_all_but_bpf().expect("giving up is always allowed");
            let status = std::fs::read_to_string("/proc/thread-self/status").expect("proc");
            for set in ["CapPrm:", "CapEff:"] {
                let line = status.lines().find_map(|line| line.strip_prefix(set)).expect("a set");
                let bits = u64::from_str_radix(line.trim(), 16).expect("hexadecimal");
                assert_eq!(bits & !(1 << BPF), 0, "{set} {line}");
            }
        })
        .join()
        .expect("checked");
    }
}
