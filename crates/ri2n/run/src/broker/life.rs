//! From the program's start to the last byte.
//!
//! A broker serves the process that becomes the program, and everything that descends from it. It ends when that process has
//! exited, no stream is left, no program listens, and none of the session is left that could ask. What it made goes
//! with it: the control socket is abstract, the eBPF programs are held by their owner, the control group is removed. A broker
//! that programs join ends only by a signal.
//!
//! Of a session one process is waited for at a time: the program, and when that has ended any other that is left. All processes of the
//! machine are looked through only to find it.

use std::{
    fs,
    io::{self, Write},
    net::{Ipv4Addr, Ipv6Addr, TcpListener},
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signalfd::{SfdFlags, SignalFd},
    unistd::{Pid, setsid},
};
use ri2n_io::Fallback;
use ri2n_session::{BROKER_VARIABLE, Policy, Token, broker_value};

use super::{Broker, Settings, answer_question, asking::Asking, connect, knock, listen, warn};
use crate::{
    line::ControlSocket,
    pool::ThreadPool,
    redirect::{Redirect, RedirectError},
    signals, sockets,
};

/// How often it is looked whether listeners still listen, and whether anybody is left.
const TICK: Duration = Duration::from_millis(500);
/// The same while no process of the session is known.
const LAST_TICK: Duration = Duration::from_millis(50);
/// Numbers of the descriptors that are waited for beside programs' lines: the control socket, signals, the program's end.
const CONTROL: u64 = 0;
const SIGNALS: u64 = 1;
const PROGRAM: u64 = 2;
/// File descriptors that a broker wants; the hard limit may be lower.
const DESCRIPTORS_WANTED: u64 = 65536;

/// How programs are caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Catch {
    /// By the preload library.
    Preload,
    /// By a control group and eBPF.
    Redirect,
}

/// Whom a broker serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The process that becomes the program, and all that descend from it.
    Program(Pid, Catch),
    /// Whoever joins, by the preload library.
    Anyone,
}

/// What a broker tells the one who started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The value of [`BROKER_VARIABLE`].
    pub variable: String,
}

/// Why a broker cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// A step failed.
    #[error("{step}: {source}")]
    Step {
        /// What was tried.
        step: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// Connections cannot be caught.
    #[error(transparent)]
    Redirect(#[from] RedirectError),
}

/// Serves until the session is over. [`signals::hold`] comes first. `began` is called once everything is ready, before which the program must not
/// start.
///
/// # Errors
/// If the broker cannot begin, or the kernel refuses to wait.
pub fn serve(
    settings: Settings,
    served: Served,
    began: impl FnOnce(&Session) -> io::Result<()>,
) -> Result<(), BrokerError> {
    let step = |step| move |source| BrokerError::Step { step, source };
    raise_descriptor_limit();
    let signals = catch_signals().map_err(step("catch signals"))?;
    let (program, catch) = match served {
        Served::Program(program, catch) => (Some(program), catch),
        Served::Anyone => (None, Catch::Preload),
    };
    if program.is_some() {
        // Signals of the terminal are the program's; it may be that we lead a session already.
        let _ = setsid();
    }
    // Before any thread starts: a connection passes three of them.
    ri2n_io::request_short_slices();
    ri2n_io::raise_priority();
    let watched = program.map(open_process).transpose().map_err(step("watch the program"))?;
    let (session, token) = (random().map_err(step("draw a token"))?, random().map_err(step("draw a token"))?);
    let (session, token) = ((session as u64), Token(token.to_ne_bytes()));
    let name = format!("ri2n-{}-{session:016x}", std::process::id());
    let control = ControlSocket::bind(&name).map_err(step("bind the control socket"))?;
    let proxies = if catch == Catch::Redirect { proxy_ports().map_err(step("bind the proxy"))? } else { Vec::new() };
    let policy = match settings.protocol.fallback() {
        Fallback::Never => Policy::Required,
        Fallback::WithoutKeys | Fallback::PlainTcp => Policy::PlainTcpAllowed,
    };
    let redirect = match catch {
        Catch::Preload => None,
        Catch::Redirect => Some(Redirect::begin(&proxies, &settings.networks, policy)?),
    };
    if let (Some(redirect), Some(program)) = (&redirect, program) {
        redirect.take_in(program.as_raw())?;
    }
    let told = Session { variable: broker_value(&name, token, policy) };
    let broker = Arc::new(Broker {
        settings,
        session,
        token,
        table: Mutex::default(),
        ended: Condvar::new(),
        threads: ThreadPool::default(),
        redirect,
    });
    for proxy in proxies {
        let broker = Arc::clone(&broker);
        thread::spawn(move || connect::serve_redirected(&broker, &proxy));
    }
    if broker.redirect.is_some() {
        let broker = Arc::clone(&broker);
        thread::spawn(move || listen::follow_redirected(&broker));
    }
    began(&told).map_err(step("tell that the broker is ready"))?;
    let result = run(&broker, &control, watched, &signals, &name).map_err(step("wait for programs"));
    if let Some(redirect) = &broker.redirect {
        redirect.remove_group();
    }
    result
}

fn run(
    broker: &Arc<Broker>,
    control: &ControlSocket,
    program: Option<OwnedFd>,
    signals: &SignalFd,
    name: &str,
) -> io::Result<()> {
    let ends_by_itself = program.is_some();
    let mut asking = Asking::new()?;
    asking.watch(control.descriptor(), CONTROL)?;
    asking.watch(signals.as_fd(), SIGNALS)?;
    program.iter().try_for_each(|program| asking.watch(program.as_fd(), PROGRAM))?;
    let mut known = program;
    let mut looked = Instant::now();
    let mut told = false;
    loop {
        let tick = if ends_by_itself && known.is_none() { LAST_TICK } else { TICK };
        let mut has_ended = false;
        let ready = asking.wait(tick.saturating_sub(looked.elapsed()) + Duration::from_millis(1))?;
        for (question, request, socket) in ready.questions {
            answer_question(broker, question, request, socket);
        }
        for number in ready.others {
            match number {
                CONTROL => {
                    if let Err(error) = control.accept().and_then(|line| asking.add(line)) {
                        // Out of descriptors, most likely: others will be given back.
                        warn(&format!("a program's question: {error}"));
                        thread::sleep(LAST_TICK);
                    }
                }
                PROGRAM => {
                    has_ended = true;
                    known.take().iter().for_each(|process| asking.leave(process.as_fd()));
                    // Whoever reads what the program wrote waits until nobody holds the other end.
                    leave_standard_error();
                }
                _ => return Ok(()),
            }
        }
        if looked.elapsed() >= tick || has_ended {
            looked = Instant::now();
            asking.forget_silent(looked);
            knock::look_after(broker);
            if !broker.table().listening.is_empty() {
                if let Err(error) = sockets::listeners().map(|still| listen::prune(broker, &still)) {
                    if !std::mem::replace(&mut told, true) {
                        warn(&format!(
                            "the kernel does not tell of sockets: {error}; ports of programs that have ended stay listened at"
                        ));
                    }
                }
            }
            let ports = broker.table().listening.keys().copied().collect();
            broker.settings.ledger.note_ports(ports);
            if ends_by_itself && known.is_none() && is_quiet(broker) {
                match &broker.redirect {
                    Some(redirect) if redirect.is_populated() => {}
                    Some(_) => return Ok(()),
                    None => match find_member(name) {
                        Some(process) => {
                            asking.watch(process.as_fd(), PROGRAM)?;
                            known = Some(process);
                        }
                        None => return Ok(()),
                    },
                }
            }
        }
    }
}

/// Whether no stream is left and nobody listens or waits for an answer.
fn is_quiet(broker: &Broker) -> bool {
    let table = broker.table();
    table.streams == 0 && table.questions == 0 && table.listening.is_empty()
}

/// A process of this session, by the environment that it was started with.
fn find_member(name: &str) -> Option<OwnedFd> {
    let variable = format!("{BROKER_VARIABLE}={name},");
    let own = std::process::id();
    let is_member = |process: u32| {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(variable.as_bytes()))
    };
    let numbers = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    // Looked at again once it is held, as its number may have become another's.
    let held = |process: u32| {
        let descriptor = open_process(Pid::from_raw(i32::try_from(process).ok()?)).ok()?;
        is_member(process).then_some(descriptor)
    };
    numbers.filter(|process| *process != own && is_member(*process)).find_map(held)
}

fn proxy_ports() -> io::Result<Vec<TcpListener>> {
    let mut proxies = vec![TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?];
    // A machine without IPv6 has no need of it.
    proxies.extend(TcpListener::bind((Ipv6Addr::LOCALHOST, 0)));
    Ok(proxies)
}

fn open_process(process: Pid) -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved; the descriptor that comes back is ours.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, process.as_raw(), 0);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd as i32)) }
    }
}

fn catch_signals() -> io::Result<SignalFd> {
    signals::hold()?;
    Ok(SignalFd::with_flags(&signals::ends(), SfdFlags::SFD_CLOEXEC)?)
}

fn leave_standard_error() {
    let _ = io::stderr().flush();
    if let Ok(null) = fs::OpenOptions::new().write(true).open("/dev/null") {
        // SAFETY: both descriptors are open.
        unsafe { libc::dup2(null.as_raw_fd(), libc::STDERR_FILENO) };
    }
}

fn raise_descriptor_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard.min(DESCRIPTORS_WANTED).max(soft), hard);
    }
}

fn random() -> io::Result<u128> {
    let mut bytes = [0; 16];
    io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(u128::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;

    #[test]
    fn a_process_of_the_session_is_found_until_it_ends() {
        let name = format!("ri2n-test-{}", std::process::id());
        assert!(find_member(&name).is_none());
        let variable = format!("{name},0123,required");
        let mut child = Command::new("sleep").arg("60").env(BROKER_VARIABLE, variable).spawn().unwrap();
        // Its environment can be read a moment after it has begun.
        let looks = (0..500).find_map(|_| {
            thread::sleep(Duration::from_millis(10));
            find_member(&name)
        });
        let found = looks.expect("it is there");
        let has_ended =
            |wait: PollTimeout| poll(&mut [PollFd::new(found.as_fd(), PollFlags::POLLIN)], wait).unwrap() > 0;
        assert!(!has_ended(PollTimeout::ZERO));
        child.kill().unwrap();
        assert!(has_ended(PollTimeout::from(5000_u16)), "its end is told");
        child.wait().unwrap();
        assert!(find_member(&name).is_none());
    }
}
