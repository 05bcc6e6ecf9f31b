//! Gives up what a running daemon does not need.
//!
//! ```text
//!   tagger   attach: CAP_NET_ADMIN (tc), CAP_BPF (programs, maps), CAP_SYS_ADMIN (finding maps by number), CAP_NET_RAW (probes)
//!            after:  CAP_BPF, which kernels before 5.19 ask for even to write a map that is open
//!   switchd  open:   CAP_NET_BIND_SERVICE (port 161), CAP_NET_RAW (LLDP)
//!            after:  CAP_NET_ADMIN
//! ```
//! Nothing is inherited by programs that are started, and nothing comes back (`no_new_privs`).
//!
//! Source: capabilities(7), capset(2).

use std::{io, path::Path};

use nix::unistd::{Uid, User, chown, setgroups, setresgid, setresuid};

const VERSION_3: u32 = 0x2008_0522;

/// What a daemon may keep, by its number in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// To change network devices.
    NetAdmin = 12,
    /// To use eBPF.
    Bpf = 39,
}

/// Whether a capability was there to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is in force.
    Yes,
    /// The thread has none at all now.
    Nothing,
}

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

/// Gives up every capability of the calling thread but one, and the way to get them back. Threads that run already keep
/// what they have.
///
/// # Errors
/// If the kernel refuses.
pub fn keep_only(kept: Capability) -> io::Result<Kept> {
    // SAFETY: these set flags of this thread, and take no pointer.
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        check(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0).into())?;
    }
    let header = Header { version: VERSION_3, pid: 0 };
    let mut held = [Sets::default(); 2];
    // SAFETY: header and sets have the layout of version 3, and outlive the call.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw const header, held.as_mut_ptr()) })?;
    let (word, bit) = (kept as usize / 32, 1 << (kept as u32 % 32));
    let permitted = held[word].permitted & bit;
    held = [Sets::default(); 2];
    held[word] = Sets { effective: permitted, permitted, inheritable: 0 };
    // SAFETY: as above.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, held.as_ptr()) })?;
    Ok(if permitted == 0 { Kept::Nothing } else { Kept::Yes })
}

/// Becomes a user, if root; what the thread may do stays until [`keep_only`] takes it.
///
/// # Errors
/// If there is no such user, or the kernel refuses.
pub fn become_user(name: &str) -> io::Result<()> {
    if !Uid::effective().is_root() {
        return Ok(());
    }
    let user = find(name)?;
    // SAFETY: sets a flag of this thread, and takes no pointer.
    check(unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0) }.into())?;
    setgroups(&[user.gid])?;
    setresgid(user.gid, user.gid, user.gid)?;
    Ok(setresuid(user.uid, user.uid, user.uid)?)
}

/// Gives a folder, with what is in it, to a user, who is to write there afterwards.
///
/// # Errors
/// If there is no such user, or the system refuses.
pub fn give(folder: &Path, name: &str) -> io::Result<()> {
    let user = find(name)?;
    chown(folder, Some(user.uid), Some(user.gid))?;
    for entry in std::fs::read_dir(folder)? {
        chown(&entry?.path(), Some(user.uid), Some(user.gid))?;
    }
    Ok(())
}

fn find(name: &str) -> io::Result<User> {
    User::from_name(name)?.ok_or_else(|| io::Error::other(format!("there is no user {name}")))
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_else_is_left() {
        for kept in [Capability::NetAdmin, Capability::Bpf] {
            let checked = std::thread::spawn(move || {
                let had = set("CapPrm:") & 1 << kept as u64;
                let told = keep_only(kept).expect("giving up is always allowed");
                assert_eq!(told, if had == 0 { Kept::Nothing } else { Kept::Yes });
                for (name, left) in [("CapPrm:", had), ("CapEff:", had), ("CapInh:", 0), ("CapAmb:", 0)] {
                    assert_eq!(set(name), left, "{name} {kept:?}");
                }
                assert_eq!(set("NoNewPrivs:"), 1);
            });
            checked.join().expect("checked");
        }
    }

    #[test]
    fn users_are_found_by_name() {
        assert!(find("root").is_ok_and(|user| user.uid.is_root()));
        let nobody = std::thread::spawn(|| become_user("no-such-user")).join().expect("it returns");
        assert!(nobody.is_err() || !Uid::effective().is_root());
    }

    fn set(name: &str) -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("proc");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a set");
        u64::from_str_radix(line.trim(), 16).expect("hexadecimal")
    }
}
