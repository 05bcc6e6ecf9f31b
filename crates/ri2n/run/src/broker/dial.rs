//! Whether a peer is tried by RI2N, and the attempt.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use ri2n_io::{Fallback, Stream};

use super::{
    Broker,
    greet::hear_welcome,
    table::{Peer, SILENT_FOR},
};
use crate::{
    express::{Express, Proposal},
    greeting::Greeting,
    ledger::Why,
    networks::Place,
};

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

/// Whether RI2N is worth a try.
pub(super) enum DialChoice {
    /// It is; what is known of the peer.
    Try(Option<Peer>),
    /// The destination is this machine.
    Local,
    /// It is not.
    Plain(Why),
}

/// What is known of a destination. Where plain TCP may not stand in, every connection is tried.
pub(super) fn choose(broker: &Broker, target: SocketAddr) -> DialChoice {
    match broker.settings.networks.place(target.ip()) {
        Place::Here => return DialChoice::Local,
        Place::Elsewhere => return DialChoice::Plain(Why::OtherNetwork),
        Place::Within => {}
    }
    let known = broker.table().peer(target, Instant::now());
    match known {
        _ if broker.settings.protocol.fallback() == Fallback::Never => DialChoice::Try(known),
        Some(Peer::Refused) => DialChoice::Plain(Why::NotSpoken),
        Some(Peer::Silent) => DialChoice::Plain(Why::Silent),
        Some(Peer::Speaks) | None => DialChoice::Try(known),
    }
}

/// Whether the program's end knows early copies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Copies {
    Offered,
    Unknown,
}

/// Who wants to reach whom.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// What is known of the peer.
    pub(super) known: Option<Peer>,
    /// The program's own address.
    pub(super) local: SocketAddr,
    pub(super) target: SocketAddr,
    pub(super) copies: Copies,
}

/// Connects by RI2N. `then` is called once, when the peer's program has the stream in its queue or something else stands in: on a
/// worker's thread, or on this one. It must not wait.
pub(super) fn dial(broker: &Arc<Broker>, wanted: Wanted, then: impl FnOnce(Dialed) + Send + 'static) {
    let settings = &broker.settings;
    let mut config = settings.protocol.clone();
    config.connect_timeout = settings.patience_known.max(settings.patience);
    if wanted.known != Some(Peer::Speaks) {
        config.answer_timeout = settings.patience;
    }
    let Wanted { local, target, copies, .. } = wanted;
    let servers = broker.table().servers(target);
    let proposal = match copies {
        Copies::Offered => Proposal::new(&settings.protocol, local.ip().to_canonical()),
        Copies::Unknown => None,
    };
    let offer = proposal.as_ref().and_then(Proposal::offer);
    let greeting = Greeting { source: local, target, offer }.encode();
    let broker = Arc::clone(broker);
    // The greeting goes with the question for the connection, so the server's program has it in its queue when it is accepted.
    Stream::connect_any_then(&servers, &config, &greeting, move |result| match result {
        Ok(stream) => hear_out(broker, stream, target, proposal, then),
        Err(error) => then(without_answer(&broker, target, &error)),
    });
}

/// The same for a thread that may wait.
pub(super) fn dial_and_wait(broker: &Arc<Broker>, wanted: Wanted) -> Dialed {
    let (send, receive) = mpsc::channel();
    dial(broker, wanted, move |dialed| {
        // Nobody waits any more if the caller has panicked.
        let _ = send.send(dialed);
    });
    receive.recv().unwrap_or(Dialed::Refused(libc::ECONNABORTED))
}

fn without_answer(broker: &Arc<Broker>, target: SocketAddr, error: &io::Error) -> Dialed {
    let why = Why::of(error);
    let is_silent = matches!(why, Why::Silent | Why::Unreachable(_));
    let peer = if is_silent { Peer::Silent } else { Peer::Refused };
    broker.table().note_peer(target, peer, Instant::now());
    if is_silent {
        ask_again(broker, target);
    }
    Dialed::without(broker, target, why)
}

/// Hears what the peer's broker says to the greeting.
fn hear_out(
    broker: Arc<Broker>,
    stream: Stream,
    target: SocketAddr,
    proposal: Option<Proposal>,
    then: impl FnOnce(Dialed) + Send + 'static,
) {
    broker.table().note_addresses(stream.peer_addresses());
    let greeted = stream.clone();
    hear_welcome(&stream, move |answered| {
        let note = |peer| broker.table().note_peer(target, peer, Instant::now());
        then(match answered {
            Ok(theirs) => {
                note(Peer::Speaks);
                let express = proposal.zip(theirs).and_then(|(ours, theirs)| ours.meet(target.ip(), theirs));
                Dialed::Stream(greeted, express.map(Arc::new))
            }
            Err(error) => {
                greeted.reset();
                match error.raw_os_error() {
                    // Nobody listens any more, says the broker: TCP may know better, and says it as the kernel does.
                    None | Some(libc::ECONNREFUSED) => {
                        note(Peer::Refused);
                        Dialed::without(&broker, target, Why::NotAccepted)
                    }
                    Some(errno) => Dialed::Refused(errno),
                }
            }
        });
    });
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
