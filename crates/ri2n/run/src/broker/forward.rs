//! Carries whatever comes to one port to one target: what a proxy does.

use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::Duration,
};

use ri2n_io::{Listener, Stream};
use ri2n_session::Token;
use socket2::SockRef;

use super::{
    Broker, Settings,
    dial::{Copies, DialChoice, Dialed, Wanted, choose, dial_and_wait},
    greet::{answer, receive_greeting, refusal},
    held::Held,
    warn,
};
use crate::{
    ledger::Why,
    near::Near,
    networks::{Place, source_for},
    pool::ThreadPool,
    relay::{self, Far},
};

/// How long a target of plain TCP may take to answer.
const CONNECT_MAX: Duration = Duration::from_secs(30);

pub(crate) struct Forwarder {
    broker: Arc<Broker>,
    target: SocketAddr,
}

impl Forwarder {
    pub(crate) fn new(settings: Settings, target: SocketAddr) -> Self {
        let (table, ended) = (Mutex::default(), Condvar::new());
        let threads = ThreadPool::default();
        let broker = Broker { settings, session: 0, token: Token([0; 16]), table, ended, threads, redirect: None };
        Self { broker: Arc::new(broker), target }
    }

    /// Listens for RI2N, or says why not.
    pub(crate) fn listen(&self, address: SocketAddr) -> Option<Listener> {
        match Listener::bind(address, &self.broker.settings.protocol) {
            Ok(listener) => Some(listener),
            Err(error) => {
                warn(&format!("UDP port {}: {error}: connections of TCP are served alone", address.port()));
                None
            }
        }
    }

    pub(crate) fn serve_tcp(&self, listener: &TcpListener) {
        loop {
            let (near, from) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    warn(&format!("a connection: {error}"));
                    thread::sleep(Duration::from_millis(50));
                    continue;
                }
            };
            let target = self.target;
            if self.on_thread(move |broker, held| carry_tcp(broker, near, from, target, held)).is_err() {
                warn("no thread for another connection");
            }
        }
    }

    pub(crate) fn serve_streams(&self, listener: &Listener) {
        while let Ok((stream, _)) = listener.accept() {
            let target = self.target;
            if self.on_thread(move |broker, held| carry_stream(broker, &stream, target, held)).is_err() {
                warn("no thread for another connection");
            }
        }
    }

    /// Runs the work for one connection, once there is room for it.
    fn on_thread(&self, work: impl FnOnce(&Arc<Broker>, Held) -> io::Result<()> + Send + 'static) -> io::Result<()> {
        self.broker.wait_for_room();
        let (broker, held) = (Arc::clone(&self.broker), Held::new(Arc::clone(&self.broker)));
        let target = self.target;
        self.broker.threads.run(move || {
            if let Err(error) = work(&broker, held) {
                warn(&format!("a connection to {target}: {error}"));
            }
        })
    }
}

/// Carries a connection of TCP.
pub(super) fn carry_tcp(
    broker: &Arc<Broker>,
    near: TcpStream,
    from: SocketAddr,
    target: SocketAddr,
    held: Held,
) -> io::Result<()> {
    near.set_nodelay(true)?;
    let dialed = match choose(broker, target) {
        DialChoice::Local => Dialed::Plain,
        DialChoice::Plain(why) => broker.fall_back(target, why).map_or_else(Dialed::Refused, |()| Dialed::Plain),
        DialChoice::Try(known) => {
            let local = SocketAddr::new(source_for(target)?, from.port());
            dial_and_wait(broker, Wanted { known, local, target, copies: Copies::Unknown })
        }
    };
    let far = match dialed {
        Dialed::Stream(stream, _) => Ok(Far::Ri2n(stream)),
        Dialed::Refused(errno) => Err(io::Error::from_raw_os_error(errno)),
        Dialed::Plain => plain(target).map(Far::Tcp),
    };
    match far {
        Ok(far) => relay::start(Near::Tcp(near), far, held),
        Err(error) => {
            // The program believes that it is connected: a reset is the nearest to a refusal.
            SockRef::from(&near).set_linger(Some(Duration::ZERO))?;
            Err(error)
        }
    }
}

fn carry_stream(broker: &Broker, stream: &Stream, target: SocketAddr, held: Held) -> io::Result<()> {
    receive_greeting(stream)?;
    if broker.settings.networks.place(target.ip()) != Place::Here {
        if let Err(errno) = broker.fall_back(target, Why::ProxyTarget) {
            return answer(stream, Err(errno));
        }
    }
    match plain(target) {
        Ok(near) => {
            answer(stream, Ok(None))?;
            relay::start(Near::Tcp(near), Far::Ri2n(stream.clone()), held)
        }
        Err(error) => answer(stream, Err(refusal(&error))).and(Err(error)),
    }
}

fn plain(target: SocketAddr) -> io::Result<TcpStream> {
    let far = TcpStream::connect_timeout(&target, CONNECT_MAX)?;
    far.set_nodelay(true)?;
    Ok(far)
}
