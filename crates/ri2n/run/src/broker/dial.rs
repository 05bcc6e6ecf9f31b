//! Whether a peer is tried by RI2N, and the attempt.

use std::{
    net::SocketAddr,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use ri2n_io::{Fallback, Stream};

use super::{
    Broker,
    greet::greet,
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
