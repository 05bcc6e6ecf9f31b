//! Gives up what a running daemon does not need.
//!
//! ```text
//!   tagger   attach: CAP_NET_ADMIN (tc), CAP_BPF (programs, maps), CAP_SYS_ADMIN (finding maps by number), CAP_NET_RAW (probes)
//!            after:  CAP_BPF, which kernels before 5.19 ask for even to write a map that is open
//!   switchd  open:   CAP_NET_BIND_SERVICE (port 161), CAP_NET_RAW (LLDP)
//!            after:  CAP_NET_ADMIN
//!   serve    open:   CAP_NET_BIND_SERVICE (ports 69 and 80)
//!            after:  none
//! ```
//! Nothing is inherited by programs that are started, and nothing comes back (`no_new_privs`).
//!
//! Source: capabilities(7), capset(2).

use std::{
    fs::File,
    io,
    os::{
        fd::AsRawFd as _,
        unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    },
    path::Path,
};

use nix::unistd::{Gid, Uid, User, fchown, setgroups, setresgid, setresuid};

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
    let (word, bit) = (kept as usize / 32, 1 << (kept as u32 % 32));
    let mut masks = [0; 2];
    masks[word] = bit;
    let left = keep(masks)?;
    Ok(if left[word] == 0 { Kept::Nothing } else { Kept::Yes })
}

/// Gives up every capability of the calling thread, and the way to get them back. Threads that run already keep what they
/// have.
///
/// # Errors
/// If the kernel refuses.
pub fn keep_nothing() -> io::Result<()> {
    keep([0; 2]).map(drop)
}

/// Keeps what is held of these capabilities, and returns it.
fn keep(masks: [u32; 2]) -> io::Result<[u32; 2]> {
    // SAFETY: these set flags of this thread, and take no pointer.
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        check(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0).into())?;
    }
    let header = Header { version: VERSION_3, pid: 0 };
    let mut held = [Sets::default(); 2];
    // SAFETY: header and sets have the layout of version 3, and outlive the call.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw const header, held.as_mut_ptr()) })?;
    let left: [u32; 2] = std::array::from_fn(|word| held[word].permitted & masks[word]);
    held = left.map(|permitted| Sets { effective: permitted, permitted, inheritable: 0 });
    // SAFETY: as above.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, held.as_ptr()) })?;
    Ok(left)
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
    become_ids(user.uid, user.gid)
}

/// Becomes whoever called `sudo`, or else the user `nobody`, if root, and says who that is; none if the caller is not root.
/// What the thread may do stays until [`keep_only`] or [`keep_nothing`] takes it.
///
/// # Errors
/// If there is no such user, or the kernel refuses.
pub fn become_unprivileged() -> io::Result<Option<String>> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok().filter(|id| *id != 0);
    let (uid, gid) = match (number("SUDO_UID"), number("SUDO_GID")) {
        (Some(uid), Some(gid)) => (Uid::from_raw(uid), Gid::from_raw(gid)),
        _ => find("nobody").map(|user| (user.uid, user.gid))?,
    };
    become_ids(uid, gid)?;
    Ok(Some(User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)))
}

fn become_ids(uid: Uid, gid: Gid) -> io::Result<()> {
    // SAFETY: sets a flag of this thread, and takes no pointer.
    check(unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0) }.into())?;
    setgroups(&[gid])?;
    setresgid(gid, gid, gid)?;
    Ok(setresuid(uid, uid, uid)?)
}

/// Gives a folder of root's that is open, with the files in it that root has made, to a user, who is to write there
/// afterwards; `shown` is its path for people. A folder that is the user's already is left as it is, since whatever is in it may be a trap. Neither links nor files that have a
/// second name are followed or given away.
///
/// # Errors
/// If there is no such user, the folder is somebody else's or others can write to it, or the system refuses.
pub fn give(opened: &File, shown: &Path, name: &str) -> io::Result<()> {
    let user = find(name)?;
    let metadata = opened.metadata()?;
    if metadata.uid() == user.uid.as_raw() {
        return Ok(());
    }
    if metadata.uid() != 0 || metadata.mode() & 0o022 != 0 {
        return Err(io::Error::other(format!(
            "{} is neither root's alone nor {name}'s: chown -h {name} {}",
            shown.display(),
            shown.display()
        )));
    }
    // Nobody but root could put anything there, and now nobody can, so what is found is what is given.
    let itself = format!("/proc/self/fd/{}", opened.as_raw_fd());
    for entry in std::fs::read_dir(&itself)? {
        let path = entry?.path();
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = match File::options().read(true).custom_flags(flags).open(&path) {
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => continue,
            file => file?,
        };
        let metadata = file.metadata()?;
        if metadata.is_file() && metadata.nlink() == 1 && metadata.uid() == 0 {
            fchown(&file, Some(user.uid), Some(user.gid))?;
        }
    }
    Ok(fchown(opened, Some(user.uid), Some(user.gid))?)
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
    fn a_folder_is_given_away_without_what_its_links_lead_to() {
        if !Uid::effective().is_root() {
            return println!("skipped: needs root");
        }
        let nobody = find("nobody").expect("every system has it").uid.as_raw();
        let place = std::env::temp_dir().join(format!("espalier-give-{}", std::process::id()));
        let (folder, secret, other) = (place.join("state"), place.join("secret"), place.join("other"));
        std::fs::create_dir_all(&folder).expect("room");
        for file in [&secret, &other, &folder.join("boots")] {
            std::fs::write(file, "1").expect("room");
        }
        std::os::unix::fs::symlink(&secret, folder.join("link")).expect("room");
        std::fs::hard_link(&other, folder.join("name")).expect("room");
        let open = |folder: &Path| File::options().read(true).custom_flags(libc::O_NOFOLLOW).open(folder);
        let give = |folder: &Path| give(&open(folder).expect("a folder"), folder, "nobody");
        let owner = |path: &Path| std::fs::symlink_metadata(path).expect("it is there").uid();
        give(&folder).expect("root may");
        assert_eq!([owner(&folder), owner(&folder.join("boots"))], [nobody; 2]);
        assert_eq!([owner(&secret), owner(&other), owner(&folder.join("link"))], [0; 3]);
        // The folder is nobody's now, and whatever nobody puts there stays whose it is.
        std::fs::write(folder.join("late"), "1").expect("room");
        give(&folder).expect("nothing to do");
        assert_eq!(owner(&folder.join("late")), 0);
        // What others can write to is not root's to give.
        std::fs::create_dir(place.join("open")).expect("room");
        std::fs::set_permissions(place.join("open"), std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("own");
        let refused = give(&place.join("open")).expect_err("anybody could have filled it");
        assert!(refused.to_string().contains("chown -h nobody"), "{refused}");
        std::fs::remove_dir_all(&place).expect("own");
    }

    #[test]
    fn nothing_at_all_is_left_where_nothing_is_needed() {
        let checked = std::thread::spawn(|| {
            keep_nothing().expect("giving up is always allowed");
            for name in ["CapPrm:", "CapEff:", "CapInh:", "CapAmb:"] {
                assert_eq!(set(name), 0, "{name}");
            }
            assert_eq!(set("NoNewPrivs:"), 1);
        });
        checked.join().expect("checked");
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
