//! By what the programs of a session know their broker.

use std::{
    fs, io,
    sync::{Arc, Condvar, Mutex},
};

use ri2n_io::Fallback;
use ri2n_session::{Policy, Token, broker_value};

use super::{Broker, Settings};
use crate::{pool::ThreadPool, redirect::Redirect};

/// What a broker tells the one who started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The value of [`ri2n_session::BROKER_VARIABLE`].
    pub variable: String,
}

/// By what programs know a broker.
pub(super) struct Identity {
    /// Of the control socket.
    pub(super) name: String,
    pub(super) session: u64,
    pub(super) token: Token,
}

impl Identity {
    /// A new one.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub(super) fn draw() -> io::Result<Self> {
        let (session, token) = (random()? as u64, Token(random()?.to_ne_bytes()));
        Ok(Self { name: format!("ri2n-{}-{session:016x}", std::process::id()), session, token })
    }

    /// What programs are told.
    pub(super) fn told(&self, settings: &Settings) -> Session {
        Session { variable: broker_value(&self.name, self.token, policy(settings)) }
    }

    /// A broker that programs know by it.
    pub(super) fn broker(&self, settings: Settings, redirect: Option<Redirect>) -> Arc<Broker> {
        Arc::new(Broker {
            settings,
            session: self.session,
            token: self.token,
            table: Mutex::default(),
            ended: Condvar::new(),
            threads: ThreadPool::default(),
            redirect,
        })
    }
}

/// What programs may do where RI2N cannot be had.
pub(super) fn policy(settings: &Settings) -> Policy {
    match settings.protocol.fallback() {
        Fallback::Never => Policy::Required,
        Fallback::WithoutKeys | Fallback::PlainTcp => Policy::PlainTcpAllowed,
    }
}

fn random() -> io::Result<u128> {
    let mut bytes = [0; 16];
    io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(u128::from_ne_bytes(bytes))
}
