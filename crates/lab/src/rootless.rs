//! Labs without root: a user namespace that a small process keeps alive between commands.
//!
//! ```text
//! espalier lab up    ─ no holder yet: fork one ─▶ holder: user + mount + network namespace, its own /run, sleeps
//!                    └ enter the holder's namespaces, then build as root would
//! espalier lab exec  ─ enter the holder's namespaces …
//! espalier lab down  ─ … and end the holder after the last lab
//! espalier lab list  ─ starts no holder: without one there are no labs
//! ```
//!
//! Inside, the caller is root over network namespaces that it makes, and over nothing else. Loading eBPF stays
//! forbidden, so this needs the bridge back end. The holder's `/run` is a file system of its own, so `ip netns` and the
//! state directory work unchanged.

use std::{
    fs,
    io::{self, Read, Write},
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
    sync::OnceLock,
};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, setns, unshare},
    sys::signal::{Signal, kill},
    unistd::{ForkResult, Gid, Pid, Uid, chdir, fork, getegid, geteuid, pause, pipe, setsid},
};

use crate::{LabError, directory::list, error::Context};

/// By what right labs are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// The caller is root.
    Root,
    /// The caller is an ordinary user and has entered a user namespace.
    Namespace,
}

/// The holder's process name; at most 15 bytes.
const HOLDER_NAME: &str = "espalier-hold";

static HOLDER: OnceLock<(Pid, PathBuf)> = OnceLock::new();

/// Gives the calling process the right to build and use labs: nothing to do for root; anybody else enters the user
/// namespace of the holder, which is started if need be. Call it first in `main`: the kernel lets only a process with a
/// single thread change its user namespace.
///
/// # Errors
/// [`LabError::Missing`] where the kernel allows no user namespaces, with the way out.
pub fn acquire() -> Result<Privilege, LabError> {
    if let Some(privilege) = join()? {
        return Ok(privilege);
    }
    let uid = geteuid();
    let file = holder_file(uid);
    match fs::DirBuilder::new().mode(0o700).create(file.parent().unwrap_or(&file)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error).context("enter", "user namespace", "make directory");
        }
        _ => {}
    }
    check_owner(&file, uid)?;
    let pid = start_holder(uid, getegid())?;
    fs::write(&file, pid.to_string()).context("enter", "user namespace", "note holder").inspect_err(|_| {
        // Nobody would find it again.
        let _ = kill(pid, Signal::SIGKILL);
    })?;
    enter(pid, file)?;
    Ok(Privilege::Namespace)
}

/// As [`acquire`], for whoever only uses labs that exist: none is returned, and nothing is started, if an ordinary user has
/// none.
///
/// # Errors
/// If what is noted of the holder belongs to somebody else, or the kernel refuses.
pub fn join() -> Result<Option<Privilege>, LabError> {
    let uid = geteuid();
    if uid.is_root() {
        return Ok(Some(Privilege::Root));
    }
    let file = holder_file(uid);
    if !file.exists() {
        return Ok(None);
    }
    check_owner(&file, uid)?;
    let Some(pid) = running_holder(&file, uid) else { return Ok(None) };
    enter(pid, file)?;
    Ok(Some(Privilege::Namespace))
}

/// Moves the calling process into the holder's namespaces.
fn enter(pid: Pid, file: PathBuf) -> Result<(), LabError> {
    let open = |kind: &str| fs::File::open(format!("/proc/{pid}/ns/{kind}")).context("enter", "user namespace", "open");
    let (user, mounts, network) = (open("user")?, open("mnt")?, open("net")?);
    for (namespace, kind) in
        [(user, CloneFlags::CLONE_NEWUSER), (mounts, CloneFlags::CLONE_NEWNS), (network, CloneFlags::CLONE_NEWNET)]
    {
        setns(namespace, kind).context("enter", "user namespace", "join")?;
    }
    chdir("/").context("enter", "user namespace", "change directory")?;
    // Whoever acquires twice has entered already and is root by now.
    let _ = HOLDER.set((pid, file));
    Ok(())
}

/// Ends the holder, if there is one and there are no more labs.
///
/// # Errors
/// [`LabError::Io`] if labs cannot be listed.
pub fn release_unused() -> Result<(), LabError> {
    if !list()?.is_empty() {
        return Ok(());
    }
    if let Some((pid, file)) = HOLDER.get() {
        // A holder that is gone already is as good.
        let _ = kill(*pid, Signal::SIGKILL);
        let _ = fs::remove_file(file);
        let _ = file.parent().map(fs::remove_dir);
    }
    Ok(())
}

/// `/tmp`, because the holder's `/run` hides the caller's.
fn holder_file(uid: Uid) -> PathBuf {
    Path::new("/tmp").join(format!("espalier-{uid}")).join("holder")
}

/// Refuses a folder of the holder's that somebody else has made.
fn check_owner(file: &Path, uid: Uid) -> Result<(), LabError> {
    let directory = file.parent().unwrap_or(file);
    let owner = fs::symlink_metadata(directory).context("enter", "user namespace", "make directory")?;
    if owner.uid() != uid.as_raw() || !owner.is_dir() {
        return Err(LabError::Missing(format!(
            "{} belongs to somebody else: have its owner or root remove it (rm -r {})",
            directory.display(),
            directory.display()
        )));
    }
    Ok(())
}

/// The holder that the file names, if it still lives and is one of ours.
fn running_holder(file: &Path, uid: Uid) -> Option<Pid> {
    let pid: i32 = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    let process = PathBuf::from(format!("/proc/{pid}"));
    let name = fs::read_to_string(process.join("comm")).ok()?;
    (name.trim() == HOLDER_NAME && fs::metadata(process).ok()?.uid() == uid.as_raw()).then(|| Pid::from_raw(pid))
}

fn start_holder(uid: Uid, gid: Gid) -> Result<Pid, LabError> {
    let (reader, writer) = pipe().context("enter", "user namespace", "make pipe")?;
    // SAFETY: the process has one thread (the kernel will refuse it the user namespace otherwise), so the child may do
    // anything that it could have done before.
    match unsafe { fork() }.context("enter", "user namespace", "fork")? {
        ForkResult::Child => {
            drop(reader);
            hold(uid, gid, writer)
        }
        ForkResult::Parent { child } => {
            drop(writer);
            let mut said = String::new();
            fs::File::from(reader).read_to_string(&mut said).context("enter", "user namespace", "await holder")?;
            match said.as_str() {
                "ready" => Ok(child),
                reason => Err(LabError::Missing(format!(
                    "cannot make a user namespace ({reason}): run as root, or allow it \
                     (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0, \
                     user.max_user_namespaces > 0)"
                ))),
            }
        }
    }
}

/// The holder's life. It says `ready`, or what went wrong, and then sleeps until it is killed.
fn hold(uid: Uid, gid: Gid, writer: OwnedFd) -> ! {
    let mut writer = fs::File::from(writer);
    let result = isolate(uid, gid);
    let said = result.as_ref().map_or_else(ToString::to_string, |()| "ready".to_owned());
    let _ = writer.write_all(said.as_bytes());
    drop(writer);
    if result.is_err() {
        std::process::exit(1);
    }
    loop {
        pause();
    }
}

fn isolate(uid: Uid, gid: Gid) -> io::Result<()> {
    setsid()?;
    // A terminal or pipe of the starter must not wait for the holder's end.
    let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)?;
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)?;
    mount(Some("espalier"), "/run", Some("tmpfs"), MsFlags::empty(), Some("mode=755"))?;
    fs::write("/proc/self/comm", HOLDER_NAME)
}
