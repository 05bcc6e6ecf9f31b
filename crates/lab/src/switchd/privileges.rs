//! Gives up what a running agent does not need: afterwards it may change network devices, and nothing else.
//!
//! ```text
//!   root ─ sockets: CAP_NET_BIND_SERVICE (port 161), CAP_NET_RAW (LLDP) ─▶ user, CAP_NET_ADMIN
//! ```
//! CAP_NET_ADMIN is ambient as well, since `ip` and `bridge` are programs of their own. Source: capabilities(7), capset(2).

use std::{ffi::CString, io};

use nix::unistd::{Uid, User, setgroups, setresgid, setresuid};

const VERSION_3: u32 = 0x2008_0522;
const NET_ADMIN: u32 = 12;

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

/// Becomes `user`, if one is named, and keeps CAP_NET_ADMIN alone. Threads that run already keep what they have.
///
/// # Errors
/// If there is no such user, or the kernel refuses.
pub(super) fn drop_all_but_net_admin(user: Option<&str>) -> io::Result<()> {
    let check = |result: libc::c_int| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    if let Some(name) = user.filter(|_| Uid::effective().is_root()) {
        let found = User::from_name(name)?.ok_or_else(|| io::Error::other(format!("there is no user {name}")))?;
        // SAFETY: sets a flag of this thread, and takes no pointer.
        check(unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0) })?;
        setgroups(&[found.gid])?;
        setresgid(found.gid, found.gid, found.gid)?;
        setresuid(found.uid, found.uid, found.uid)?;
    }
    let header = Header { version: VERSION_3, pid: 0 };
    let keep = 1 << NET_ADMIN;
    let held = [Sets { effective: keep, permitted: keep, inheritable: keep }, Sets::default()];
    // SAFETY: header and sets have the layout of version 3, and outlive the call.
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw const header, held.as_ptr()) };
    if done != 0 {
        return Err(io::Error::new(
            io::Error::last_os_error().kind(),
            "changing network devices takes root or CAP_NET_ADMIN",
        ));
    }
    let (clear, raise) = (libc::PR_CAP_AMBIENT_CLEAR_ALL, libc::PR_CAP_AMBIENT_RAISE);
    // SAFETY: these set flags of this thread, and take no pointer.
    unsafe {
        check(libc::prctl(libc::PR_CAP_AMBIENT, clear, 0, 0, 0))?;
        check(libc::prctl(libc::PR_CAP_AMBIENT, raise, NET_ADMIN, 0, 0))?;
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    }
}

/// Gives a folder to `user`, who is to write there afterwards.
///
/// # Errors
/// If there is no such user, or the system refuses.
pub(super) fn give(folder: &std::path::Path, user: &str) -> io::Result<()> {
    let found = User::from_name(user)?.ok_or_else(|| io::Error::other(format!("there is no user {user}")))?;
    // A path with a zero byte cannot have been read from a file of configuration.
    CString::new(folder.as_os_str().as_encoded_bytes()).map_err(io::Error::other)?;
    nix::unistd::chown(folder, Some(found.uid), Some(found.gid))?;
    for entry in std::fs::read_dir(folder)? {
        nix::unistd::chown(&entry?.path(), Some(found.uid), Some(found.gid))?;
    }
    Ok(())
}
