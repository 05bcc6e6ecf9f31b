//! The broker of a session hands its streams over to the installed program, which its process becomes by execve(2).
//!
//! ```text
//!  SIGUSR2 ─ does the installed program read FORMAT? ─ no ─▶ warning; the broker goes on
//!           └ yes ─▶ listeners paused; questions wait in the control socket
//!                  ─▶ connections that are being established finish, within QUIET_MAX
//!                  ─▶ workers parked ─▶ state saved to a memfd ─ execve ─▶ state read ─▶ workers receive
//! ```
//! The process keeps its number, descriptors, locks and control group. Connections that take longer than QUIET_MAX to establish fail as
//! they do when a broker ends. Settings are read again and apply to new connections.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    env,
    ffi::{CString, OsString},
    fs::File,
    io::{self, BufReader, BufWriter, Seek, Write},
    os::{
        fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::ffi::OsStringExt,
    },
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::memfd::{MFdFlags, memfd_create},
    unistd::execve,
};
use ri2n_io::{Descriptors, SavedDescriptor, Stream, handover};
use ri2n_session::Token;
use serde::{Deserialize, Serialize};

use super::{
    Broker,
    announced::{Announced, Knock, SavedAnnounced},
    asking::Asking,
    held::Held,
    identity::Identity,
    listen,
    listening::SavedListening,
    port::Port,
    table::{SavedTable, Table},
    tuning::Tuning,
    warn,
};
use crate::{
    express::Express,
    ledger::Entry,
    line::{ControlSocket, Line},
    near::{Near, Program},
    plain, relay,
    saved::{SavedPlain, SavedProgram},
    shared_session::SharedSession,
};

/// Version of the saved form. It changes when a program of the version before could not read the form any more; a field that is added
/// with a default does not change it.
pub const FORMAT: u32 = 1;
/// Environment variable with the number of the descriptor that holds the saved state.
const VARIABLE: &str = "RI2N_HANDOVER";
/// How long connections may take that are being established, and how often this is checked.
const QUIET_MAX: Duration = Duration::from_secs(3);
const QUIET_TICK: Duration = Duration::from_millis(2);

/// The program that a broker hands over to.
#[derive(Debug)]
pub struct Successor {
    /// Path that this program was started from.
    pub program: PathBuf,
    /// Arguments by which that program says whether it reads a version of the saved form, which follows them.
    pub reads: &'static [&'static str],
    /// The session that is served.
    pub session: SharedSession,
}

/// The state of a broker.
#[derive(Debug, Serialize, Deserialize)]
struct SavedBroker {
    release: String,
    name: String,
    session: u64,
    token: [u8; 16],
    session_file: Option<SavedDescriptor>,
    control: SavedDescriptor,
    lines: Vec<SavedDescriptor>,
    listening: Vec<SavedListening>,
    streams: handover::Saved,
    announced: Vec<SavedAnnounced>,
    plain: Vec<SavedPlain>,
    table: SavedTable,
    plain_counts: Vec<Entry>,
}

/// The state that the earlier program of this process saved.
#[derive(Debug)]
pub struct Earlier(SavedBroker);

impl Earlier {
    /// Reads the state, if this process was another program before.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read() -> io::Result<Option<Self>> {
        let Some(number) = env::var(VARIABLE).ok().and_then(|number| number.parse::<RawFd>().ok()) else {
            return Ok(None);
        };
        // SAFETY: no memory is involved; a process in which that number is anything else has not been started by its earlier program,
        // and reading fails.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(number) });
        let saved = rmp_serde::from_read(BufReader::new(file));
        saved.map(|saved| Some(Self(saved))).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// The file of its session.
    pub fn take_session(&mut self) -> Option<SavedDescriptor> {
        self.0.session_file.take()
    }

    /// Its identity.
    pub(super) fn identity(&self) -> Identity {
        let SavedBroker { name, session, token, .. } = &self.0;
        Identity { name: name.clone(), session: *session, token: Token(*token) }
    }
}

/// Hands over. Returns only if that fails; the broker then goes on, but connections that were being established may have been reset.
///
/// # Errors
/// Why it failed.
pub(super) fn hand_over(
    broker: &Arc<Broker>,
    (control, asking): (&ControlSocket, &Asking),
    name: &str,
    successor: &Successor,
) -> Result<Infallible, String> {
    check(successor)?;
    let listeners: Vec<_> =
        broker.table().listening.values().map(|listening| Arc::clone(&listening.listener)).collect();
    listeners.iter().for_each(|listener| listener.pause());
    wait_for_quiet(broker);
    let failed = |error: io::Error| error.to_string();
    let result = become_successor(broker, (control, asking), name, successor).map_err(failed);
    for listener in listeners {
        listener.go_on().map_err(failed)?;
    }
    result
}

/// Checks that the installed program reads [`FORMAT`].
fn check(successor: &Successor) -> Result<(), String> {
    let program = successor.program.display();
    let mut command = Command::new(&successor.program);
    command.args(successor.reads).arg(FORMAT.to_string()).stdin(Stdio::null()).env_remove(VARIABLE);
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(_) => Err(format!(
            "{program} cannot take over the streams of this release; restart the broker once they have ended"
        )),
        Err(error) => Err(format!("{program}: {error}")),
    }
}

/// Waits until no connection is being established, for [`QUIET_MAX`] at most.
fn wait_for_quiet(broker: &Broker) {
    let until = Instant::now() + QUIET_MAX;
    while Instant::now() < until {
        let (is_asked, announced) = {
            let table = broker.table();
            (table.questions > 0, table.announced.len())
        };
        if !is_asked && handover::held_streams() <= announced {
            return;
        }
        thread::sleep(QUIET_TICK);
    }
}

fn become_successor(
    broker: &Arc<Broker>,
    (control, asking): (&ControlSocket, &Asking),
    name: &str,
    successor: &Successor,
) -> io::Result<Infallible> {
    let frozen = handover::freeze();
    let carriers = plain::freeze()?;
    let mut descriptors = Descriptors::default();
    let knocks: Vec<Arc<Knock>> =
        broker.table().announced.values().map(|announced| Arc::clone(&announced.knock)).collect();
    let still: BTreeMap<_, _> = knocks.iter().map(|knock| (knock.from, knock.stop())).collect();
    let also: BTreeSet<u32> = knocks.iter().map(|knock| knock.stream.id()).collect();
    // Saving a stream takes the lock of the table.
    let streams = frozen.save(&mut descriptors, &also)?;
    let plain = carriers.save(&mut descriptors);
    let table = broker.table();
    let announced = table.announced.iter().filter_map(|(from, announced)| Some((announced, still.get(from)?)));
    let announced: io::Result<Vec<SavedAnnounced>> =
        announced.map(|(announced, still)| announced.save(still, &mut descriptors)).collect();
    let listening: io::Result<Vec<SavedListening>> = table
        .listening
        .iter()
        .map(|(port, listening)| {
            let addresses = listening.addresses.iter().map(|(address, delivery)| (*address, *delivery)).collect();
            Ok(SavedListening { port: *port, listener: listening.listener.save(&mut descriptors)?, addresses })
        })
        .collect();
    let lines: io::Result<Vec<SavedDescriptor>> =
        asking.lines().map(|line| descriptors.keep(line.descriptor())).collect();
    let saved = SavedBroker {
        release: env!("CARGO_PKG_VERSION").to_owned(),
        name: name.to_owned(),
        session: broker.session,
        token: broker.token.0,
        session_file: Some(successor.session.save(&mut descriptors)?),
        control: descriptors.keep(control.descriptor())?,
        lines: lines?,
        listening: listening?,
        streams,
        announced: announced?,
        plain,
        table: table.save(Instant::now()),
        plain_counts: broker.settings.ledger.entries(),
    };
    let file = write(&saved)?;
    let number = descriptors.keep(file.as_fd()).map(|_| file.as_raw_fd())?;
    execute(successor, number)
}

/// Writes the state to a memfd.
fn write(saved: &SavedBroker) -> io::Result<File> {
    let memory = memfd_create(c"ri2n-handover", MFdFlags::MFD_CLOEXEC)?;
    let mut writer = BufWriter::new(File::from(memory));
    rmp_serde::encode::write_named(&mut writer, saved).map_err(io::Error::other)?;
    writer.flush()?;
    let mut file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(file)
}

/// Executes the program. Blocked signals stay blocked, pending signals pending.
fn execute(successor: &Successor, number: RawFd) -> io::Result<Infallible> {
    let text = |text: OsString| CString::new(text.into_vec()).map_err(io::Error::other);
    let program = text(successor.program.clone().into_os_string())?;
    let arguments = env::args_os().map(text).collect::<io::Result<Vec<CString>>>()?;
    let others = env::vars_os().filter(|(name, _)| name != VARIABLE);
    let own = std::iter::once((OsString::from(VARIABLE), OsString::from(number.to_string())));
    let variables = others.chain(own).map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        text(name)
    });
    Ok(execve(&program, &arguments, &variables.collect::<io::Result<Vec<CString>>>()?)?)
}

/// Takes over the state that the earlier program saved. Returns its control socket and the connections of programs to it.
///
/// # Errors
/// If the state cannot be read or a descriptor is not open.
pub(super) fn resume(broker: &Arc<Broker>, earlier: Earlier) -> io::Result<(ControlSocket, Vec<Line>)> {
    let saved = earlier.0;
    *broker.table() = Table::resume(saved.table, Instant::now());
    broker.settings.ledger.resume(saved.plain_counts);
    let mut resumed = handover::resume(saved.streams)?;
    let mut announced: BTreeMap<u32, SavedAnnounced> =
        saved.announced.into_iter().map(|announced| (announced.stream, announced)).collect();
    let mut count = 0;
    for handover::ResumedStream { id, stream, duty } in resumed.streams.drain(..) {
        let went_on = match (duty, announced.remove(&id)) {
            (Some(duty), _) => resume_relay(broker, stream.clone(), &duty),
            (None, Some(announced)) => resume_announced(broker, stream.clone(), announced),
            // It was claimed, refused or reset while the state was being saved.
            (None, None) => Ok(()),
        };
        match went_on {
            Ok(()) => count += 1,
            Err(error) => {
                stream.reset();
                warn(&format!("a stream of the earlier program: {error}"));
            }
        }
    }
    for plain in saved.plain {
        if let Err(error) = resume_plain(broker, plain) {
            warn(&format!("a connection of the earlier program: {error}"));
        }
    }
    let paused = resumed.begin()?;
    saved.listening.into_iter().try_for_each(|listening| listen::resume(broker, listening))?;
    let lines = saved.lines.into_iter().map(|line| line.take().map(Line::from)).collect::<io::Result<_>>()?;
    warn(&format!(
        "release {} took over {count} streams of release {} in {} ms",
        env!("CARGO_PKG_VERSION"),
        saved.release,
        paused.as_millis()
    ));
    Ok((ControlSocket::resumed(saved.control.take()?), lines))
}

fn counted(broker: &Arc<Broker>) -> Held {
    broker.table().streams += 1;
    Held::new(Arc::clone(broker))
}

fn resume_relay(broker: &Arc<Broker>, stream: Stream, bytes: &[u8]) -> io::Result<()> {
    let held = counted(broker);
    let saved: relay::SavedRelay = rmp_serde::from_slice(bytes).map_err(io::Error::other)?;
    let (near, kept) = resume_program(broker, saved.program, Some(&stream), held)?;
    relay::resume(near, stream, saved.progress, kept)
}

fn resume_announced(broker: &Arc<Broker>, stream: Stream, saved: SavedAnnounced) -> io::Result<()> {
    let announced = Announced::resume(saved, stream, counted(broker))?;
    broker.table().announced.insert(announced.knock.from, announced);
    Ok(())
}

fn resume_plain(broker: &Arc<Broker>, saved: SavedPlain) -> io::Result<()> {
    let (near, kept) = resume_program(broker, saved.program, None, counted(broker))?;
    plain::resume(near, saved.far.take()?.into(), kept, [saved.up, saved.down])
}

/// The program's end of a connection, and what lives as long as it. `stream` is its stream of RI2N, if it is not plain TCP.
fn resume_program(
    broker: &Arc<Broker>,
    saved: SavedProgram,
    stream: Option<&Stream>,
    held: Held,
) -> io::Result<(Near, (Held, Option<Port>))> {
    let express = saved.express.map(Express::resume).transpose()?.map(Arc::new);
    if let Some(express) = &express {
        broker.table().note_express(saved.owner.id, express);
    }
    let port = saved.kept.port.map(|port| Port::resume(broker, port)).transpose()?;
    let tuning = Tuning::resume(broker, saved.owner);
    if let Some(stream) = stream {
        tuning.attach(stream);
    }
    let pair = Some(saved.pair.take()?.into());
    Ok((Near::Pair(Program { pair, express, owner: Box::new(tuning) }), (held, port)))
}
