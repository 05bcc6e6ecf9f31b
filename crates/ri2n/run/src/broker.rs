//! The broker of a session: holds every stream of RI2N for the programs under one `ri2n run`.
//!
//! Programs come and go, fork and exec; the broker stays until the last of them and the last byte are gone. It listens for
//! their questions (see `ri2n-session`), for RI2N at every port where one of them listens for TCP, and relays.
//!
//! ```text
//!  connect: RI2N to the same port of the peer ─ refused, or silent for too long ─▶ plain TCP
//!           └ greeting ─▶ the peer's broker knocks at the program's own TCP listener
//!                          └ accept() ─▶ claim ─▶ a socket pair, relayed
//! ```

mod announced;
mod asking;
mod claim;
mod connect;
mod dial;
pub(crate) mod forward;
mod greet;
mod handover;
mod held;
mod identity;
mod knock;
mod life;
mod listen;
mod listening;
mod port;
mod table;
mod tuning;

use std::{
    io,
    net::SocketAddr,
    os::fd::OwnedFd,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ri2n_session::{Answer, BrokerRequest, Operation, Token, Verdict};

pub use self::{
    handover::{Earlier, FORMAT, Successor},
    identity::Session,
    life::{BrokerError, Catch, serve, serve_session},
};
use self::{
    listening::{Acceptor, Delivery},
    table::Table,
};
use crate::{
    express::Express,
    ledger::{self, Ledger, Why},
    line::Question,
    networks::Networks,
    pool::ThreadPool,
    redirect::Redirect,
};

/// How a broker connects.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The protocol's own settings.
    pub protocol: ri2n_io::Config,
    /// Where RI2N is tried.
    pub networks: Networks,
    /// How long a peer that has never answered may be silent before plain TCP is used.
    pub patience: Duration,
    /// How long a peer that has answered may take for the rest, or to answer again.
    pub patience_known: Duration,
    /// Where connections are counted that are not RI2N.
    pub ledger: Arc<Ledger>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            protocol: ri2n_io::Config::default(),
            networks: Networks::Attached,
            patience: Duration::from_millis(300),
            patience_known: Duration::from_secs(3),
            ledger: Arc::default(),
        }
    }
}

/// Questions that are being answered at the same time; beyond, programs use plain TCP.
const QUESTIONS_MAX: usize = 512;
/// Streams of one broker; beyond, programs use plain TCP.
const STREAMS_MAX: usize = 32_768;

pub(crate) struct Broker {
    settings: Settings,
    /// A number at random, in the names of this broker's descriptors.
    session: u64,
    token: Token,
    table: Mutex<Table>,
    /// A stream has ended.
    ended: Condvar,
    /// For whatever waits on behalf of one connection.
    threads: ThreadPool,
    /// Catches the connections of programs without the preload library.
    redirect: Option<Redirect>,
}

impl Broker {
    /// Decides about a connection that cannot be RI2N, and counts it.
    ///
    /// # Errors
    /// The error number for the program where plain TCP may not stand in.
    fn fall_back(&self, target: SocketAddr, why: Why) -> Result<(), i32> {
        let fallback = self.settings.protocol.fallback();
        match self.settings.ledger.judge(fallback, target, why, Instant::now()) {
            ledger::Verdict::Plain => Ok(()),
            ledger::Verdict::Refused { errno, is_news } => {
                if is_news {
                    let error = io::Error::from_raw_os_error(errno);
                    let way_out = match why {
                        Why::KeysDiffer => "set the same passphrase or key at both ends",
                        _ => "run the peer under `ri2n run`, or set `require = false` to allow plain TCP",
                    };
                    warn(&format!("connection to {target} refused ({error}): {why}; {way_out}"));
                }
                Err(errno)
            }
        }
    }

    /// Counts one more stream, once there is room for it. Whoever accepts connections takes no others meanwhile: they wait in
    /// the kernel's queue, as at any server that is busy.
    fn wait_for_room(&self) {
        let mut table = self.table();
        while table.new_stream().is_none() {
            table.waiting_for_room += 1;
            table = self.ended.wait(table).unwrap_or_else(PoisonError::into_inner);
            table.waiting_for_room -= 1;
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers one question: here, unless it needs a thread that may wait. A question that is dropped tells the program to use plain TCP.
fn answer_question(broker: &Arc<Broker>, question: Question, request: BrokerRequest, socket: Option<OwnedFd>) {
    if request.token != broker.token {
        return;
    }
    let id = request.id;
    let answered = match request.operation {
        Operation::Claim => claim::claim(broker, &question, &request, socket),
        Operation::State => {
            let state = broker.table().state(id);
            question.answer(&Answer { id, ..Answer::of(state) }, &[])
        }
        Operation::SetOption => question.answer(&tuning::set(broker, id, request.option), &[]),
        Operation::GetOption => question.answer(&tuning::get(broker, id, request.option), &[]),
        Operation::Connect => match Asked::new(broker) {
            Some(asked) => connect::consider(broker, question, &request, socket, asked),
            None => Ok(()),
        },
        Operation::Listen => on_thread(broker, move |broker| {
            if let Some(local) = request.local {
                listen::begin(broker, local, Delivery::Claim(Acceptor::Unknown));
            }
            question.answer(&Answer::of(Verdict::Ready), &[])
        }),
        Operation::Express => on_thread(broker, move |broker| {
            let express = broker.table().express(id);
            match express.as_deref().map(Express::open) {
                Some(Ok(descriptors)) => question.answer(&Answer::of(Verdict::Ready), &descriptors),
                _ => question.answer(&Answer::of(Verdict::Plain), &[]),
            }
        }),
        Operation::Drain => on_thread(broker, move |broker| tuning::drain(broker, id, request.option.value, &question)),
    };
    note_failed(answered);
}

/// Answers a question on a thread that may wait, unless too many are being answered.
fn on_thread(
    broker: &Arc<Broker>,
    answer: impl FnOnce(&Arc<Broker>) -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    let Some(asked) = Asked::new(broker) else { return Ok(()) };
    broker.threads.run(move || note_failed(answer(&asked.0)))
}

/// Counts a question until it is answered, however that goes.
struct Asked(Arc<Broker>);

impl Asked {
    /// None if too many are being answered.
    fn new(broker: &Arc<Broker>) -> Option<Self> {
        let mut table = broker.table();
        if table.questions >= QUESTIONS_MAX {
            return None;
        }
        table.questions += 1;
        Some(Self(Arc::clone(broker)))
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.table().questions -= 1;
    }
}

fn note_failed(answered: io::Result<()>) {
    if let Err(error) = answered {
        warn(&format!("a program's question: {error}"));
    }
}

/// What an operator should know; programs go on.
fn warn(what: &str) {
    // Standard error may be closed; there is nowhere else to say it.
    let _ = io::Write::write_all(&mut io::stderr(), format!("ri2n: {what}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::{held::Held, *};

    #[test]
    fn whoever_finds_no_room_waits_for_it() {
        let broker = Arc::new(Broker {
            settings: Settings::default(),
            session: 0,
            token: Token([0; 16]),
            table: Mutex::default(),
            ended: Condvar::new(),
            threads: ThreadPool::default(),
            redirect: None,
        });
        let mut streams: Vec<Held> = (0..STREAMS_MAX)
            .map(|_| {
                broker.wait_for_room();
                Held::new(Arc::clone(&broker))
            })
            .collect();
        let (send, receive) = mpsc::channel();
        let waiting = Arc::clone(&broker);
        let waiter = thread::spawn(move || {
            waiting.wait_for_room();
            send.send(Held::new(Arc::clone(&waiting))).expect("somebody waits");
        });
        assert!(receive.recv_timeout(Duration::from_millis(50)).is_err(), "there is no room");
        streams.pop();
        drop(receive.recv_timeout(Duration::from_secs(10)).expect("there is room"));
        waiter.join().expect("it ends");
        assert_eq!(broker.table().streams, STREAMS_MAX - 1);
    }
}
