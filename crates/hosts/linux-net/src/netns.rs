//! Named network namespaces, as `ip netns` keeps them, and threads that enter them.
//!
//! Entering changes the calling thread for good, so work in a namespace runs on a thread of its own, and the thread
//! ends with it.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    thread,
};

use nix::sched::{CloneFlags, setns};

/// Where `ip netns` binds namespaces.
const NAMESPACES: &str = "/run/netns";

/// The file that a named namespace is bound to.
pub fn path(name: &str) -> PathBuf {
    Path::new(NAMESPACES).join(name)
}

/// The names of all namespaces with this prefix, sorted.
///
/// # Errors
/// If the directory is there but cannot be read.
pub fn list(prefix: &str) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(NAMESPACES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        if let Ok(name) = entry?.file_name().into_string() {
            if name.starts_with(prefix) {
                names.push(name);
            }
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Moves the calling thread into a named namespace.
///
/// # Errors
/// If there is none of this name, or the caller may not enter it.
pub fn enter(name: &str) -> io::Result<()> {
    let file = File::open(path(name))?;
    setns(file, CloneFlags::CLONE_NEWNET).map_err(io::Error::from)
}

/// Runs `work` inside a named namespace, on a thread of its own.
///
/// # Errors
/// If there is none of this name, or the caller may not enter it; the work's own result is inside.
///
/// # Panics
/// If `work` does.
pub fn within<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name(name.chars().take(15).collect()).spawn_scoped(scope, || {
            enter(name)?;
            Ok(work())
        })?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Processes that live in one of these namespaces, the caller's own threads aside.
pub fn inhabitants(names: &[String]) -> Vec<i32> {
    use std::os::unix::fs::MetadataExt;
    let inodes: Vec<u64> = names.iter().filter_map(|name| Some(fs::metadata(path(name)).ok()?.ino())).collect();
    let own = std::process::id() as i32;
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let mut found: Vec<i32> = pids
        .filter(|pid| *pid != own)
        .filter(|pid| fs::metadata(format!("/proc/{pid}/ns/net")).is_ok_and(|ns| inodes.contains(&ns.ino())))
        .collect();
    found.sort_unstable();
    found
}
