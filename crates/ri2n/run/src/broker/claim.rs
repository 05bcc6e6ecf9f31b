//! A program claims the stream whose knock it has accepted.

use std::{
    io,
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use ri2n_session::{Answer, BrokerRequest, Name, Verdict};

use super::{
    Broker,
    announced::Announced,
    listen,
    listening::{self, Acceptor, Delivery},
    tuning::{Options, Tuning},
};
use crate::{
    line::Question,
    near::{Near, Program},
    pair::{self, Pair},
    relay::{self, Far},
};

/// A program has accepted a knock; the connection that it took for one of TCP has the options of its listener.
///
/// # Errors
/// If the program cannot be told.
pub(super) fn claim(
    broker: &Arc<Broker>,
    question: &Question,
    request: &BrokerRequest,
    accepted: Option<OwnedFd>,
) -> io::Result<()> {
    let (Some(knock), Some(near)) = (request.remote, request.local) else { return Ok(()) };
    let key = SocketAddr::new(knock.ip().to_canonical(), knock.port());
    let announced = broker.table().announced.remove(&key);
    let Some(Announced { greeting, listener, knock, express, held, .. }) = announced else {
        let taken = broker.table().taken(key);
        return match taken {
            // The library was late. Its peer has been turned away, so to the program it never knocked.
            Some(listener) => {
                listen::begin(broker, listener, Delivery::Claim(Acceptor::Claims));
                question.answer(&Answer::of(Verdict::Failed(libc::ECONNABORTED)), &[])
            }
            None => question.answer(&Answer::of(Verdict::Plain), &[]),
        };
    };
    listening::note_claim(broker, listener);
    if !knock.claim()? {
        return question.answer(&Answer::of(Verdict::Failed(libc::ECONNABORTED)), &[]);
    }
    let stream = knock.stream.clone();
    drop(knock);
    let id = broker.table().next_id();
    let as_program_sees = |address: SocketAddr| match (near, address) {
        (SocketAddr::V6(_), SocketAddr::V4(v4)) => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
        _ => address,
    };
    let (local, remote) = (as_program_sees(greeting.target), as_program_sees(greeting.source));
    let Pair { ours, theirs } = pair::ready(&Name { session: broker.session, id, local, remote })?;
    let answer = Answer { id, local: Some(local), remote: Some(remote), ..Answer::of(Verdict::Ready) };
    if let Some(express) = &express {
        broker.table().note_express(id, express);
    }
    let tuning = Tuning::new(broker, id, accepted.as_ref().map(Options::of).unwrap_or_default());
    drop(accepted);
    tuning.keep_in(&theirs)?;
    tuning.attach(&stream);
    question.answer(&answer, &[theirs.as_fd()])?;
    drop(theirs);
    relay::start(Near::Pair(Program { pair: Some(ours), express, owner: Box::new(tuning) }), Far::Ri2n(stream), held)
}
