//! A program connects.
//!
//! RI2N is tried at the same address and port. A peer without it refuses at once (the kernel answers for a closed port), and
//! the program connects by plain TCP as if nothing had been. A program that must not wait gets an answer within
//! [`WAIT_MAX`]: what is not decided by then is decided in the background, and should it come to plain TCP, the broker
//! makes that connection itself, with the program's own socket, and relays.

use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use ri2n_io::{Fallback, Stream};
use ri2n_session::{Answer, Name, Request, Verdict, Waiting};
use socket2::{SockAddr, SockRef};

use super::{
    Broker,
    forward::carry_tcp,
    listen::Held,
    port::Port,
    table::{Peer, SILENT_FOR},
    tuning::{Options, Tuning},
    warn,
};
use crate::{
    express::{Express, Proposal},
    greeting::{self, Greeting, Offer, WELCOME_BYTES},
    ledger::Why,
    line::Line,
    networks::Place,
    pair::{self, Pair},
    relay::{self, Far, Near, Program},
};

/// How long a program that must not wait is kept waiting for a peer of which nothing is known.
const WAIT_MAX: Duration = Duration::from_millis(20);
/// How long the peer's broker may take to reach its program.
const WELCOME_MAX: Duration = Duration::from_secs(30);

/// How often a silent peer is asked in the background, and how many peers at a time.
const ASK_EVERY: Duration = Duration::from_secs(1);
const WATCHED_MAX: usize = 16;

/// How an attempt came out.
pub(super) enum Dialed {
    /// The peer's program has it in its queue; perhaps early copies are possible.
    Stream(Stream, Option<Arc<Express>>),
    /// Plain TCP stands in.
    Plain,
    /// The program gets this error number.
    Refused(i32),
}

impl Dialed {
    /// RI2N cannot be had.
    fn without(broker: &Broker, target: SocketAddr, why: Why) -> Self {
        broker.fall_back(target, why).map_or_else(Self::Refused, |()| Self::Plain)
    }
}

pub(super) fn consider(
    broker: &Arc<Broker>,
    line: &Line,
    request: &Request,
    socket: Option<OwnedFd>,
) -> io::Result<()> {
    let plain = || line.answer(&Answer::of(Verdict::Plain), &[]);
    let (Some(remote), Some(socket)) = (request.remote, socket) else { return plain() };
    let target = SocketAddr::new(remote.ip().to_canonical(), remote.port());
    let fall_back = |why| match broker.fall_back(target, why) {
        Ok(()) => plain(),
        Err(errno) => line.answer(&Answer::of(Verdict::Failed(errno)), &[]),
    };
    let known = match outlook(broker, target) {
        Outlook::Try(known) => known,
        Outlook::Local => return plain(),
        Outlook::Plain(why) => return fall_back(why),
    };
    let Some(id) = broker.table().new_stream() else { return fall_back(Why::Full) };
    let held = Held::new(Arc::clone(broker));
    let options = Options::of(&socket);
    let (local, port) = match Port::take(broker, socket, request.local, target, &remote) {
        Ok(taken) => taken,
        Err(error) => {
            drop(held);
            return fall_back(Why::Unreachable(error.raw_os_error().unwrap_or(libc::ENETUNREACH)));
        }
    };
    let tuning = Tuning::new(broker, id, options);
    let attempt = Attempt { id, known, local, remote, target, port, tuning };
    match request.waiting {
        Waiting::Blocking => {
            let dialed = attempt.dial(broker);
            attempt.settle(broker, line, held, dialed)
        }
        Waiting::NonBlocking => attempt.in_background(broker, line, held),
    }
}

/// Serves the connections that the kernel sends to the proxy instead of where they wanted to go.
pub(super) fn serve_redirected(broker: &Arc<Broker>, proxy: &TcpListener) {
    loop {
        let (near, from) = match proxy.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                warn(&format!("a redirected connection: {error}"));
                thread::sleep(WAIT_MAX);
                continue;
            }
        };
        let target = broker.redirect.as_ref().and_then(|redirect| redirect.wanted(from.port()));
        // Somebody else's connection is closed.
        let Some(target) = target else { continue };
        broker.wait_for_room();
        let held = Held::new(Arc::clone(broker));
        let serving = Arc::clone(broker);
        let _ = broker.threads.run(move || {
            if let Err(error) = carry_tcp(&serving, near, from, target, held) {
                warn(&format!("a redirected connection to {target}: {error}"));
            }
        });
    }
}

/// Whether RI2N is worth a try.
pub(super) enum Outlook {
    /// It is; what is known of the peer.
    Try(Option<Peer>),
    /// The destination is this machine.
    Local,
    /// It is not.
    Plain(Why),
}

/// What is known of a destination. Where plain TCP may not stand in, every connection is tried.
pub(super) fn outlook(broker: &Broker, target: SocketAddr) -> Outlook {
    match broker.settings.networks.place(target.ip()) {
        Place::Here => return Outlook::Local,
        Place::Elsewhere => return Outlook::Plain(Why::OtherNetwork),
        Place::Within => {}
    }
    let known = broker.table().peer(target, Instant::now());
    match known {
        _ if broker.settings.protocol.fallback() == Fallback::Never => Outlook::Try(known),
        Some(Peer::Refused) => Outlook::Plain(Why::NotSpoken),
        Some(Peer::Silent) => Outlook::Plain(Why::Silent),
        Some(Peer::Speaks) | None => Outlook::Try(known),
    }
}

struct Attempt {
    id: u64,
    known: Option<Peer>,
    /// As the program shall see them.
    local: SocketAddr,
    remote: SocketAddr,
    /// The far address without mapping.
    target: SocketAddr,
    /// What the program's socket of TCP has been bound to.
    port: Port,
    tuning: Tuning,
}

impl Attempt {
    fn name(&self, broker: &Broker) -> Name {
        Name { session: broker.session, id: self.id, local: self.local, remote: self.remote }
    }

    fn answer(&self, verdict: Verdict) -> Answer {
        Answer { id: self.id, local: Some(self.local), remote: Some(self.remote), ..Answer::of(verdict) }
    }

    /// Answers an attempt that is decided.
    fn settle(self, broker: &Arc<Broker>, line: &Line, held: Held, dialed: Dialed) -> io::Result<()> {
        match dialed {
            Dialed::Plain => line.answer(&self.answer(Verdict::Plain), &[]),
            Dialed::Refused(errno) => line.answer(&self.answer(Verdict::Failed(errno)), &[]),
            Dialed::Stream(stream, express) => {
                let Pair { ours, theirs } = pair::ready(&self.name(broker))?;
                self.tuning.keep_in(&theirs)?;
                self.note(broker, express.as_ref());
                self.tuning.attach(&stream);
                line.answer(&self.answer(Verdict::Ready), &[theirs.as_fd()])?;
                drop(theirs);
                let near = Near::Pair(Program { pair: ours, express, owner: Box::new(self.tuning) });
                relay::start(near, Far::Ri2n(stream), (held, self.port.settle()))
            }
        }
    }

    fn in_background(self, broker: &Arc<Broker>, line: &Line, held: Held) -> io::Result<()> {
        let (send, receive) = mpsc::channel();
        let (dialer, known, local, target) = (Arc::clone(broker), self.known, self.local, self.target);
        broker.threads.run(move || {
            // The one who asked may have failed meanwhile; the stream then ends here.
            let _ = send.send(dial(&dialer, known, local, target, Copies::Offered));
        })?;
        match receive.recv_timeout(WAIT_MAX) {
            Ok(dialed) => return self.settle(broker, line, held, dialed),
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("dialling ended without a result")),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let Pair { mut ours, theirs } = pair::pending(&self.name(broker))?;
        self.tuning.keep_in(&theirs)?;
        broker.table().begin_pending(self.id);
        let told = line.answer(&self.answer(Verdict::Pending), &[theirs.as_fd()]);
        let far = told.and_then(|()| match receive.recv() {
            Ok(Dialed::Stream(stream, express)) => Ok((Far::Ri2n(stream), express)),
            Ok(Dialed::Refused(errno)) => Err(io::Error::from_raw_os_error(errno)),
            Ok(Dialed::Plain) => self.plain().map(|tcp| (Far::Tcp(tcp), None)),
            Err(_) => Err(io::Error::from_raw_os_error(libc::ECONNABORTED)),
        });
        let error = match far {
            Ok((far, express)) => {
                self.note(broker, express.as_ref());
                if let Far::Ri2n(stream) = &far {
                    self.tuning.attach(stream);
                }
                // Before the program is told: it may connect again at once, which is to say that it is connected.
                broker.table().end_pending(self.id, None);
                match pair::stands(&mut ours, theirs) {
                    Ok(()) => {
                        let near = Near::Pair(Program { pair: ours, express, owner: Box::new(self.tuning) });
                        return relay::start(near, far, (held, self.port.settle()));
                    }
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        let errno = error.raw_os_error().unwrap_or(libc::ETIMEDOUT);
        broker.table().end_pending(self.id, Some(errno));
        // Dropping our end with its filler unread is what tells the program.
        Ok(())
    }

    fn dial(&self, broker: &Arc<Broker>) -> Dialed {
        dial(broker, self.known, self.local, self.target, Copies::Offered)
    }

    fn note(&self, broker: &Broker, express: Option<&Arc<Express>>) {
        if let Some(express) = express {
            broker.table().note_express(self.id, express);
        }
    }

    /// Connects the program's own socket by plain TCP.
    fn plain(&self) -> io::Result<TcpStream> {
        let socket = TcpStream::from(self.port.socket()?);
        socket.set_nonblocking(false)?;
        SockRef::from(&socket).connect(&SockAddr::from(self.remote))?;
        Ok(socket)
    }
}

/// Whether the program's end knows early copies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Copies {
    Offered,
    Unknown,
}

/// Connects by RI2N and waits for the peer's program.
pub(super) fn dial(
    broker: &Arc<Broker>,
    known: Option<Peer>,
    local: SocketAddr,
    target: SocketAddr,
    copies: Copies,
) -> Dialed {
    let settings = &broker.settings;
    let patience = if known == Some(Peer::Speaks) { settings.patience_known } else { settings.patience };
    let mut config = settings.protocol.clone();
    config.connect_timeout = patience;
    let note = |peer| broker.table().note_peer(target, peer, Instant::now());
    let servers = broker.table().servers(target);
    let stream = match Stream::connect_any(&servers, &config) {
        Ok(stream) => stream,
        Err(error) => {
            let why = Why::of(&error);
            if matches!(why, Why::Silent | Why::Unreachable(_)) {
                note(Peer::Silent);
                ask_again(broker, target);
            } else {
                note(Peer::Refused);
            }
            return Dialed::without(broker, target, why);
        }
    };
    broker.table().note_addresses(stream.peer_addresses());
    let proposal = match copies {
        Copies::Offered => Proposal::new(&settings.protocol, local.ip().to_canonical()),
        Copies::Unknown => None,
    };
    let offer = proposal.as_ref().and_then(Proposal::offer);
    match greet(&stream, Greeting { source: local, target, offer }) {
        Ok(theirs) => {
            note(Peer::Speaks);
            let express = proposal.zip(theirs).and_then(|(ours, theirs)| ours.meet(target.ip(), theirs));
            Dialed::Stream(stream, express.map(Arc::new))
        }
        Err(error) => {
            stream.reset();
            match error.raw_os_error() {
                // Nobody listens any more, says the broker: TCP may know better, and says it as the kernel does.
                None | Some(libc::ECONNREFUSED) => {
                    note(Peer::Refused);
                    Dialed::without(broker, target, Why::NotAccepted)
                }
                Some(errno) => Dialed::Refused(errno),
            }
        }
    }
}

/// Asks a peer that was silent in the background, so that connections are RI2N again soon after it answers.
fn ask_again(broker: &Arc<Broker>, target: SocketAddr) {
    {
        let mut table = broker.table();
        if table.watched.len() >= WATCHED_MAX || !table.watched.insert(target) {
            return;
        }
    }
    let watcher = Arc::clone(broker);
    let watch = move || {
        let mut config = watcher.settings.protocol.clone();
        config.connect_timeout = ASK_EVERY;
        let until = Instant::now() + SILENT_FOR;
        while Instant::now() < until {
            let asked = Instant::now();
            let servers = watcher.table().servers(target);
            if Stream::is_answered(&servers, &config).unwrap_or(false) {
                watcher.table().note_peer(target, Peer::Speaks, Instant::now());
                break;
            }
            thread::sleep(ASK_EVERY.saturating_sub(asked.elapsed()));
        }
        watcher.table().watched.remove(&target);
    };
    if thread::Builder::new().name("ri2n-again".into()).stack_size(256 << 10).spawn(watch).is_err() {
        broker.table().watched.remove(&target);
    }
}

/// Says who wants whom, and reads the answer: the peer's offer of early copies, if it makes one.
///
/// # Errors
/// What the peer says, or that it says nothing.
pub(crate) fn greet(stream: &Stream, greeting: Greeting) -> io::Result<Option<Offer>> {
    let mut rest = &greeting.encode()[..];
    while !rest.is_empty() {
        let written = stream.write(rest)?;
        rest = &rest[written..];
    }
    stream.set_read_timeout(Some(WELCOME_MAX));
    let mut welcome = [0; WELCOME_BYTES];
    read_exact(stream, &mut welcome)?;
    stream.set_read_timeout(None);
    greeting::decode_welcome(&welcome)
}

/// Fills a buffer from a stream.
///
/// # Errors
/// If the stream ends first.
pub(crate) fn read_exact(stream: &Stream, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match stream.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => buffer = &mut buffer[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
