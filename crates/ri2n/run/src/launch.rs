//! Becomes a program, under a broker.
//!
//! `ri2n run` starts the broker as a process of its own, which is nobody's child, and then turns into the program: its
//! process number, terminal, signals and exit code are those of the program because they are the same process.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{self, BufRead, BufReader},
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use nix::unistd::{AccessFlags, ForkResult, access, fork};
use ri2n_session::BROKER_VARIABLE;

use crate::{
    broker::{Catch, Session},
    elf::{self, Program},
};

/// The file of the preload library.
pub const LIBRARY: &str = "libri2n_preload.so";
/// The environment variable that names another place of the library.
pub const LIBRARY_VARIABLE: &str = "RI2N_PRELOAD";
/// Where the loader cuts the list of libraries.
const LIST_SEPARATORS: [u8; 2] = *b": ";
/// Scripts that name scripts as interpreters.
const SCRIPTS_MAX: usize = 4;

/// Why a program cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// There is none of this name.
    #[error("{0}: no such program")]
    NotFound(String),
    /// Its file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The preload library is not where it is looked for.
    #[error("{LIBRARY} is neither beside {} nor in ../lib/ri2n: set {LIBRARY_VARIABLE} to where it is", program.display())]
    NoLibrary {
        /// This program.
        program: PathBuf,
    },
    /// No library can be put before it, and it cannot be redirected either.
    #[error("{}: {why}, so no library can be put before it, and catching its connections in the kernel needs root: run as root, or use `ri2n proxy`", path.display())]
    NeedsRoot {
        /// The file.
        path: PathBuf,
        /// What is special.
        why: String,
    },
    /// What was asked for does not work for this program.
    #[error("{}: {why}: the preload library would be ignored; use --catch redirect (as root) or `ri2n proxy`", path.display())]
    NotPreloadable {
        /// The file.
        path: PathBuf,
        /// What is special.
        why: String,
    },
    /// The broker did not begin.
    #[error("the broker does not start")]
    NoBroker,
    /// A step failed.
    #[error("{step}: {source}")]
    Step {
        /// What was tried.
        step: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

/// A program, and how it is caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Its file.
    pub path: PathBuf,
    /// How.
    pub catch: Catch,
}

/// Finds a program, and how it can be caught; `wanted` overrides the choice where that is possible.
///
/// # Errors
/// [`LaunchError`], with the way out.
pub fn prepare(program: &str, wanted: Option<Catch>) -> Result<Launch, LaunchError> {
    let path = find(program).ok_or_else(|| LaunchError::NotFound(program.to_owned()))?;
    let hindrance = hindrance(&path)?;
    let catch = match (wanted, hindrance) {
        (Some(Catch::Preload) | None, None) => Catch::Preload,
        (Some(Catch::Preload), Some(why)) => return Err(LaunchError::NotPreloadable { path, why }),
        (Some(Catch::Redirect), _) => Catch::Redirect,
        (None, Some(why)) if !nix::unistd::geteuid().is_root() => return Err(LaunchError::NeedsRoot { path, why }),
        (None, Some(_)) => Catch::Redirect,
    };
    Ok(Launch { path, catch })
}

/// Finds the preload library: where [`LIBRARY_VARIABLE`] says, beside this program, or where it is installed.
///
/// # Errors
/// If it is nowhere, or not for this machine.
pub fn find_library() -> Result<PathBuf, LaunchError> {
    let own = own_path()?;
    let directory = own.parent().unwrap_or(Path::new("/"));
    let places = [
        env::var_os(LIBRARY_VARIABLE).map(PathBuf::from),
        Some(directory.join(LIBRARY)),
        Some(directory.join("../lib/ri2n").join(LIBRARY)),
    ];
    let found = places.into_iter().flatten().find_map(|place| fs::canonicalize(place).ok());
    let found = found.ok_or(LaunchError::NoLibrary { program: own })?;
    let unfit = |why: &str| {
        let source = io::Error::other(format!("{} {why}", found.display()));
        Err(LaunchError::Step { step: "look at the preload library", source })
    };
    if found.as_os_str().as_bytes().iter().any(|byte| LIST_SEPARATORS.contains(byte)) {
        return unfit(&format!(
            "has a space or a colon in its name, where the loader would cut it: set {LIBRARY_VARIABLE} to a copy elsewhere"
        ));
    }
    match elf::inspect(&found) {
        Ok(Program::Native { .. }) => Ok(found),
        Ok(_) => unfit("is not for this machine"),
        Err(source) => Err(LaunchError::Unreadable { path: found, source }),
    }
}

/// Starts a broker: this program again, with these arguments and additions to the environment, as nobody's child.
///
/// # Errors
/// If it does not begin; it has said why on standard error.
pub fn start_broker(arguments: &[String], environment: &[(&str, String)]) -> Result<Session, LaunchError> {
    let mut broker = Command::new(own_path()?)
        .args(arguments)
        .envs(environment.iter().cloned())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|source| LaunchError::Step { step: "start the broker", source })?;
    let mut lines = broker.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
    let told = lines.next().and_then(Result::ok);
    // It has forked, and this child of ours is done.
    let status = broker.wait().map_err(|source| LaunchError::Step { step: "wait for the broker", source })?;
    match told {
        Some(variable) if status.success() => Ok(Session { variable }),
        _ => Err(LaunchError::NoBroker),
    }
}

/// In the broker's process, before it opens anything: leaves the one who started it; the parent's half ends here.
///
/// Descriptors beyond the standard ones are closed: somebody waits for the end of a pipe, or holds a lock, that the program
/// was given, and the broker outlives the program.
///
/// # Errors
/// If the kernel refuses.
pub fn detach() -> io::Result<()> {
    // SAFETY: no memory is involved, and nothing in this process has such a descriptor yet. Before Linux 5.9 they stay open.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    // SAFETY: called while the process has one thread, so the child finds everything in order.
    match unsafe { fork() }? {
        ForkResult::Parent { .. } => std::process::exit(0),
        ForkResult::Child => Ok(()),
    }
}

/// In the broker's process: tells the one who waits, and closes standard output for good.
///
/// # Errors
/// If nobody waits.
pub fn tell(session: &Session) -> io::Result<()> {
    use std::{io::Write, os::fd::AsRawFd};
    let mut out = io::stdout().lock();
    writeln!(out, "{}", session.variable)?;
    out.flush()?;
    let null = fs::OpenOptions::new().write(true).open("/dev/null")?;
    // SAFETY: both descriptors are open.
    unsafe { libc::dup2(null.as_raw_fd(), libc::STDOUT_FILENO) };
    Ok(())
}

/// Turns into the program, with `defaults` for variables that the environment lacks. Returns only on failure.
pub fn become_program(
    launch: &Launch,
    name: &str,
    arguments: &[String],
    session: &Session,
    defaults: &[(&str, String)],
) -> LaunchError {
    let mut command = Command::new(&launch.path);
    command.arg0(name).args(arguments).env(BROKER_VARIABLE, &session.variable);
    command.envs(defaults.iter().filter(|(variable, _)| env::var_os(variable).is_none()).cloned());
    if launch.catch == Catch::Preload {
        match find_library() {
            Ok(library) => command.env("LD_PRELOAD", put_before(&library, env::var_os("LD_PRELOAD"))),
            Err(error) => return error,
        };
    }
    let (mask, pipe) = (nix::sys::signal::SigSet::thread_get_mask(), SIGPIPE_IGNORED.load(Ordering::Relaxed));
    // The standard library is about to make them what most programs expect, but the caller may have wanted otherwise.
    let restore = move || {
        if pipe {
            // SAFETY: ignoring a signal runs no code.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        }
        Ok(mask.and_then(|mask| mask.thread_set_mask())?)
    };
    // SAFETY: two system calls; nothing is allocated or locked.
    unsafe { command.pre_exec(restore) };
    LaunchError::Step { step: "execute the program", source: command.exec() }
}

/// The value of LD_PRELOAD with a library before all others.
fn put_before(library: &Path, others: Option<OsString>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    let others = others.unwrap_or_default();
    let others = others.as_bytes().split(|byte| LIST_SEPARATORS.contains(byte));
    for other in others.filter(|other| !other.is_empty() && !other.ends_with(LIBRARY.as_bytes())) {
        value.push(":");
        value.push(OsStr::from_bytes(other));
    }
    value
}

/// Whether SIGPIPE was ignored when this process began: the Rust runtime ignores it always.
static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = note_signals;

extern "C" fn note_signals() {
    // SAFETY: all zeros is a valid structure, which the call fills.
    let ignored = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    };
    SIGPIPE_IGNORED.store(ignored, Ordering::Relaxed);
}

/// This program's own file.
///
/// # Errors
/// If the kernel does not tell.
pub fn own_path() -> Result<PathBuf, LaunchError> {
    env::current_exe().map_err(|source| LaunchError::Step { step: "find this program", source })
}

/// Why the preload library would not be loaded into a program, if so.
fn hindrance(path: &Path) -> Result<Option<String>, LaunchError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| LaunchError::Unreadable { path, source }
    };
    let mut file = path.to_owned();
    for _ in 0..SCRIPTS_MAX {
        match elf::inspect(&file).map_err(unreadable(&file))? {
            Program::Script(interpreter) => file = interpreter,
            Program::Native { loader: None, .. } => return Ok(Some("it is linked statically".into())),
            Program::Native { go: true, .. } => {
                return Ok(Some("it is made by Go, whose programs do without the C library".into()));
            }
            Program::Native { loader: Some(loader), .. } => {
                return Ok(other_loader(&loader).or_else(|| privileges(&file)));
            }
            Program::Foreign(machine) => {
                return Ok(Some(format!("it is for another machine (ELF machine {machine}) than the preload library")));
            }
            // Let the kernel say what it thinks of it.
            Program::Unknown => return Ok(None),
        }
    }
    Ok(None)
}

/// A program of another C library cannot load ours.
fn other_loader(loader: &Path) -> Option<String> {
    let own = env::current_exe().and_then(|own| elf::inspect(&own));
    let Ok(Program::Native { loader: Some(own), .. }) = own else { return None };
    let same = fs::canonicalize(&own).ok() == fs::canonicalize(loader).ok();
    (!same).then(|| format!("it uses another C library ({}) than the preload library", loader.display()))
}

/// The loader ignores libraries from the environment where a program has more rights than its caller.
fn privileges(file: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    const SET_USER_OR_GROUP: u32 = 0o6000;
    let special = fs::metadata(file).is_ok_and(|meta| meta.mode() & SET_USER_OR_GROUP != 0);
    (special && !nix::unistd::geteuid().is_root()).then(|| "it runs with the rights of another user".to_owned())
}

/// As a shell finds programs.
fn find(program: &str) -> Option<PathBuf> {
    let runs = |path: &Path| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    if program.contains('/') {
        let path = PathBuf::from(program);
        return runs(&path).then_some(path);
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(program)).find(|path| runs(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_comes_first_and_once() {
        let library = Path::new("/a/libri2n_preload.so");
        assert_eq!(put_before(library, None), "/a/libri2n_preload.so");
        let others = OsStr::from_bytes(b"/b/x\xff.so /old/libri2n_preload.so::/c.so").to_owned();
        assert_eq!(put_before(library, Some(others)), OsStr::from_bytes(b"/a/libri2n_preload.so:/b/x\xff.so:/c.so"));
    }

    #[test]
    fn programs_are_found_and_judged() {
        let shell = prepare("sh", None).unwrap();
        assert_eq!(shell.catch, Catch::Preload);
        assert!(shell.path.is_absolute());
        assert!(matches!(prepare("no-such-program-anywhere", None), Err(LaunchError::NotFound(_))));
        assert!(matches!(prepare("/etc/passwd", None), Err(LaunchError::NotFound(_))));
    }
}
