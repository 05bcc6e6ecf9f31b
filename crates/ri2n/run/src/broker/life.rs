//! From the program's start to the last byte.
//!
//! A broker serves the process that becomes the program, and everything that descends from it. It ends when that process has
//! exited, no stream is left, no program listens, and none of the session is left that could ask. What it made goes
//! with it: the control socket is abstract, the eBPF programs are held by their owner, the control group is removed. A broker
//! that programs join ends only by a signal, or becomes its successor (`handover.rs`).
//!
//! Of a session one process is waited for at a time: the program, and when that has ended any other that is left. All processes of the
//! machine are looked through only to find it.

use std::{
    fs,
    io::{self, Write},
    net::{Ipv4Addr, Ipv6Addr, TcpListener},
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::{
        signal::SigSet,
        signalfd::{SfdFlags, SignalFd},
    },
    unistd::{Pid, setsid},
};
use ri2n_session::BROKER_VARIABLE;

use super::{
    Broker, Settings, answer_question,
    asking::Asking,
    connect,
    handover::{self, Earlier, Successor},
    identity::{self, Identity, Session},
    knock, listen, warn,
};
use crate::{
    line::ControlSocket,
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

/// Serves the process that becomes a program, and all that descend from it, until the session is over. [`signals::hold`] comes first.
/// `began` is called once everything is ready, before which the program must not start.
///
/// # Errors
/// If the broker cannot begin, or the kernel refuses to wait.
pub fn serve(
    settings: Settings,
    (program, catch): (Pid, Catch),
    began: impl FnOnce(&Session) -> io::Result<()>,
) -> Result<(), BrokerError> {
    // Signals of the terminal are the program's; it may be that we lead a session already.
    let _ = setsid();
    prepare_process();
    let signals = catch_signals(&signals::ends()).map_err(step("catch signals"))?;
    let watched = open_process(program).map_err(step("watch the program"))?;
    let identity = Identity::draw().map_err(step("draw a token"))?;
    let control = ControlSocket::bind(&identity.name).map_err(step("bind the control socket"))?;
    let proxies = if catch == Catch::Redirect { proxy_ports().map_err(step("bind the proxy"))? } else { Vec::new() };
    let redirect = match catch {
        Catch::Preload => None,
        Catch::Redirect => Some(Redirect::begin(&proxies, &settings.networks, identity::policy(&settings))?),
    };
    if let Some(redirect) = &redirect {
        redirect.take_in(program.as_raw())?;
    }
    let told = identity.told(&settings);
    let broker = identity.broker(settings, redirect);
    for proxy in proxies {
        let broker = Arc::clone(&broker);
        thread::spawn(move || connect::serve_redirected(&broker, &proxy));
    }
    if broker.redirect.is_some() {
        let broker = Arc::clone(&broker);
        thread::spawn(move || listen::follow_redirected(&broker));
    }
    began(&told).map_err(step("tell that the broker is ready"))?;
    let asking = Asking::new().map_err(step("wait for programs"))?;
    let result = run(&broker, (&control, asking), Some(watched), &signals, &identity.name, None);
    if let Some(redirect) = &broker.redirect {
        redirect.remove_group();
    }
    result.map_err(step("wait for programs"))
}

/// Serves whoever joins a session by the preload library, until a signal ends it or it becomes its successor. [`signals::hold`] comes
/// first. `began` is called once programs can join, or go on with an earlier program of this process.
///
/// # Errors
/// If the broker cannot begin, or the kernel refuses to wait.
pub fn serve_session(
    settings: Settings,
    mut successor: Successor,
    earlier: Option<Earlier>,
    began: impl FnOnce(),
) -> Result<(), BrokerError> {
    prepare_process();
    let mut signals = signals::ends();
    signals.add(signals::HANDS_OVER);
    let signals = catch_signals(&signals).map_err(step("catch signals"))?;
    let identity = match &earlier {
        Some(earlier) => earlier.identity(),
        None => Identity::draw().map_err(step("draw a token"))?,
    };
    let told = identity.told(&settings);
    let broker = identity.broker(settings, None);
    let mut asking = Asking::new().map_err(step("wait for programs"))?;
    let control = match earlier {
        None => ControlSocket::bind(&identity.name).map_err(step("bind the control socket"))?,
        Some(earlier) => {
            let (control, lines) =
                handover::resume(&broker, earlier).map_err(step("go on with the earlier program's streams"))?;
            lines.into_iter().try_for_each(|line| asking.add(line)).map_err(step("wait for programs"))?;
            control
        }
    };
    successor.session.open(&told).map_err(step("write the file of the session"))?;
    began();
    run(&broker, (&control, asking), None, &signals, &identity.name, Some(&successor))
        .map_err(step("wait for programs"))
}

fn step(step: &'static str) -> impl Fn(io::Error) -> BrokerError {
    move |source| BrokerError::Step { step, source }
}

/// Before any thread starts: a connection passes three of them.
fn prepare_process() {
    raise_descriptor_limit();
    ri2n_io::request_short_slices();
    ri2n_io::raise_priority();
}

fn run(
    broker: &Arc<Broker>,
    (control, mut asking): (&ControlSocket, Asking),
    program: Option<OwnedFd>,
    signals: &SignalFd,
    name: &str,
    successor: Option<&Successor>,
) -> io::Result<()> {
    let ends_by_itself = program.is_some();
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
            match (number, successor) {
                (CONTROL, _) => {
                    if let Err(error) = control.accept().and_then(|line| asking.add(line)) {
                        // Out of descriptors, most likely: others will be given back.
                        warn(&format!("a program's question: {error}"));
                        thread::sleep(LAST_TICK);
                    }
                }
                (PROGRAM, _) => {
                    has_ended = true;
                    known.take().iter().for_each(|process| asking.leave(process.as_fd()));
                    // Whoever reads what the program wrote waits until nobody holds the other end.
                    leave_standard_error();
                }
                (_, Some(successor)) if is_to_hand_over(signals)? => {
                    let Err(why) = handover::hand_over(broker, (control, &asking), name, successor);
                    warn(&format!("the streams stay with this program: {why}"));
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

fn catch_signals(which: &SigSet) -> io::Result<SignalFd> {
    signals::hold()?;
    Ok(SignalFd::with_flags(which, SfdFlags::SFD_CLOEXEC)?)
}

/// Reads a signal; whether it is [`signals::HANDS_OVER`].
fn is_to_hand_over(signals: &SignalFd) -> io::Result<bool> {
    let signal = signals.read_signal()?;
    Ok(signal.is_some_and(|signal| i32::try_from(signal.ssi_signo) == Ok(signals::HANDS_OVER as i32)))
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
