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
    time::Duration,
};

use ri2n_session::{Answer, BrokerRequest, Name, Verdict, Waiting};
use socket2::{SockAddr, SockRef};

use super::{
    Asked, Broker,
    dial::{Copies, DialChoice, Dialed, Wanted, choose, dial},
    forward::carry_tcp,
    held::Held,
    note_failed,
    port::Port,
    table::Peer,
    tuning::{Options, Tuning},
    warn,
};
use crate::{
    express::Express,
    ledger::Why,
    line::Question,
    near::{Near, Program},
    pair::{self, Pair},
    relay::{self, Far},
};

/// How long a program that must not wait is kept waiting for a peer of which nothing is known.
const WAIT_MAX: Duration = Duration::from_millis(20);

/// Answers a program that connects, now or when that is decided; nothing here waits.
///
/// # Errors
/// If the program cannot be told.
pub(super) fn consider(
    broker: &Arc<Broker>,
    question: Question,
    request: &BrokerRequest,
    socket: Option<OwnedFd>,
    asked: Asked,
) -> io::Result<()> {
    let plain = || question.answer(&Answer::of(Verdict::Plain), &[]);
    let (Some(remote), Some(socket)) = (request.remote, socket) else { return plain() };
    let target = SocketAddr::new(remote.ip().to_canonical(), remote.port());
    let fall_back = |why| match broker.fall_back(target, why) {
        Ok(()) => plain(),
        Err(errno) => question.answer(&Answer::of(Verdict::Failed(errno)), &[]),
    };
    let known = match choose(broker, target) {
        DialChoice::Try(known) => known,
        DialChoice::Local => return plain(),
        DialChoice::Plain(why) => return fall_back(why),
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
    let (wanted, settling) = (attempt.wanted(), Arc::clone(broker));
    match request.waiting {
        Waiting::Blocking => dial(broker, wanted, move |dialed| {
            note_failed(attempt.settle(&settling, &question, held, dialed));
            drop(asked);
        }),
        Waiting::NonBlocking => broker.threads.run(move || {
            note_failed(attempt.in_background(&settling, &question, held));
            drop(asked);
        })?,
    }
    Ok(())
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
    fn settle(self, broker: &Arc<Broker>, question: &Question, held: Held, dialed: Dialed) -> io::Result<()> {
        match dialed {
            Dialed::Plain => question.answer(&self.answer(Verdict::Plain), &[]),
            Dialed::Refused(errno) => question.answer(&self.answer(Verdict::Failed(errno)), &[]),
            Dialed::Stream(stream, express) => {
                let Pair { ours, theirs } = pair::ready(&self.name(broker))?;
                self.tuning.keep_in(&theirs)?;
                self.note(broker, express.as_ref());
                self.tuning.attach(&stream);
                question.answer(&self.answer(Verdict::Ready), &[theirs.as_fd()])?;
                drop(theirs);
                let near = Near::Pair(Program { pair: Some(ours), express, owner: Box::new(self.tuning) });
                relay::start(near, Far::Ri2n(stream), (held, Some(self.port.settle())))
            }
        }
    }

    fn in_background(self, broker: &Arc<Broker>, question: &Question, held: Held) -> io::Result<()> {
        let (send, receive) = mpsc::channel();
        dial(broker, self.wanted(), move |dialed| {
            // The one who asked may have failed meanwhile; the stream then ends here.
            let _ = send.send(dialed);
        });
        match receive.recv_timeout(WAIT_MAX) {
            Ok(dialed) => return self.settle(broker, question, held, dialed),
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("dialling ended without a result")),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let Pair { mut ours, theirs } = pair::pending(&self.name(broker))?;
        self.tuning.keep_in(&theirs)?;
        broker.table().begin_pending(self.id);
        let told = question.answer(&self.answer(Verdict::Pending), &[theirs.as_fd()]);
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
                        let near = Near::Pair(Program { pair: Some(ours), express, owner: Box::new(self.tuning) });
                        return relay::start(near, far, (held, Some(self.port.settle())));
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

    fn wanted(&self) -> Wanted {
        Wanted { known: self.known, local: self.local, target: self.target, copies: Copies::Offered }
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
