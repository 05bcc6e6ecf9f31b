//! Requests to whichever member answers.
//!
//! ```text
//!   member that answered last ── no connection, no answer in time, no leader ──▶ next ─▶ next ─▶ pause ─▶ …   until request_max
//! ```
//! Time-outs begin short, so that a member that has stopped costs little, and grow with each round.
//! The same request goes to every member that is tried, perhaps several times: a transaction must be written so that at most one
//! of them has an effect.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde::{Serialize, de::DeserializeOwned};
use ureq::Agent;

use super::{
    config::{ANSWER_FIRST, ANSWER_MAX, EtcdConfig, EtcdCredentials, PAUSE},
    format::{Authenticate, Authenticated, Compaction, ErrorAnswer, Number, Range, RangeAnswer, Txn, TxnAnswer},
};
use crate::RecordsError;

/// Most bytes of an answer.
const ANSWER_LEN_MAX: u64 = 16 << 20;

/// Status codes of gRPC.
mod code {
    pub(super) const CANCELLED: u32 = 1;
    pub(super) const UNKNOWN: u32 = 2;
    pub(super) const DEADLINE_EXCEEDED: u32 = 4;
    pub(super) const PERMISSION_DENIED: u32 = 7;
    pub(super) const RESOURCE_EXHAUSTED: u32 = 8;
    pub(super) const OUT_OF_RANGE: u32 = 11;
    pub(super) const INTERNAL: u32 = 13;
    pub(super) const UNAVAILABLE: u32 = 14;
    pub(super) const UNAUTHENTICATED: u32 = 16;
}

/// The members of a cluster.
pub(super) struct Gateway {
    agent: Agent,
    endpoints: Vec<String>,
    credentials: Option<EtcdCredentials>,
    request_max: Duration,
    token: Mutex<Option<String>>,
    /// The one that answered last.
    preferred: AtomicUsize,
}

/// An answer.
pub(super) struct Answered<A> {
    pub(super) answer: A,
    /// A member that was tried before may carry the request out as well, now or later.
    pub(super) in_doubt: bool,
}

/// No answer.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) why: Why,
    /// The request may have been carried out, or may yet be.
    pub(super) in_doubt: bool,
}

#[derive(Debug)]
pub(super) enum Why {
    /// The history that was asked for has been compacted.
    Compacted,
    Error(RecordsError),
}

/// What came of one try at one member.
enum Try<A> {
    Answer(A),
    /// Another member may answer.
    Next {
        why: String,
        in_doubt: bool,
    },
    /// The token is missing or has expired; the request was not carried out.
    Unauthenticated {
        why: String,
    },
    Refused(Why),
}

impl From<Failure> for RecordsError {
    fn from(failure: Failure) -> Self {
        match failure.why {
            Why::Error(error) => error,
            Why::Compacted => Self::Etcd {
                endpoint: "etcd".to_owned(),
                why: "its history is compacted faster than it can be read".to_owned(),
            },
        }
    }
}

impl Gateway {
    pub(super) fn new(config: &EtcdConfig) -> Result<Self, RecordsError> {
        config.check()?;
        Ok(Self {
            agent: config.agent()?,
            endpoints: config.endpoints.iter().map(|endpoint| endpoint.trim_end_matches('/').to_owned()).collect(),
            credentials: config.credentials.clone(),
            request_max: config.request_max,
            token: Mutex::default(),
            preferred: AtomicUsize::new(0),
        })
    }

    /// All endpoints, for messages.
    pub(super) fn endpoints(&self) -> String {
        self.endpoints.join(",")
    }

    pub(super) fn range(&self, range: &Range) -> Result<RangeAnswer, Failure> {
        Ok(self.ask("/v3/kv/range", range)?.answer)
    }

    pub(super) fn txn(&self, txn: &Txn) -> Result<Answered<TxnAnswer>, Failure> {
        self.ask("/v3/kv/txn", txn)
    }

    /// Removes what was superseded before this revision.
    pub(super) fn compact(&self, revision: u64) -> Result<(), Failure> {
        self.ask::<_, serde_json::Value>("/v3/kv/compaction", &Compaction { revision: Number(revision) }).map(drop)
    }

    fn ask<Q: Serialize, A: DeserializeOwned>(&self, path: &str, question: &Q) -> Result<Answered<A>, Failure> {
        let deadline = Instant::now() + self.request_max;
        let question = serde_json::to_vec(question).unwrap_or_default();
        let mut at = self.preferred.load(Ordering::Relaxed) % self.endpoints.len();
        let mut in_doubt = false;
        let mut answer_max = ANSWER_FIRST;
        loop {
            for _ in 0..self.endpoints.len() {
                let endpoint = &self.endpoints[at];
                let last = match self.try_at(endpoint, path, &question, answer_max) {
                    Try::Answer(answer) => {
                        self.preferred.store(at, Ordering::Relaxed);
                        return Ok(Answered { answer, in_doubt });
                    }
                    Try::Refused(why) => return Err(Failure { why, in_doubt }),
                    Try::Unauthenticated { why } => format!("{endpoint}: {why}"),
                    Try::Next { why, in_doubt: doubt } => {
                        in_doubt |= doubt;
                        format!("{endpoint}: {why}")
                    }
                };
                if Instant::now() >= deadline {
                    let why = RecordsError::EtcdUnreachable { endpoints: self.endpoints(), why: last };
                    return Err(Failure { why: Why::Error(why), in_doubt });
                }
                at = (at + 1) % self.endpoints.len();
            }
            thread::sleep(PAUSE);
            answer_max = ANSWER_MAX.min(answer_max * 2);
        }
    }

    /// One try, with a new token if there is none or the one that there was has expired.
    fn try_at<A: DeserializeOwned>(&self, endpoint: &str, path: &str, question: &[u8], within: Duration) -> Try<A> {
        let Some(credentials) = &self.credentials else {
            return match self.send(endpoint, path, question, None, within) {
                Try::Unauthenticated { why } => Try::Refused(Why::Error(RecordsError::Etcd {
                    endpoint: endpoint.to_owned(),
                    why: format!("{why}; the cluster asks for a user and a password: configure them"),
                })),
                other => other,
            };
        };
        let known = self.token().clone();
        if known.is_some() {
            match self.send(endpoint, path, question, known.as_deref(), within) {
                Try::Unauthenticated { .. } => *self.token() = None,
                other => return other,
            }
        }
        let login = Authenticate { name: &credentials.user, password: &credentials.password };
        let login = serde_json::to_vec(&login).unwrap_or_default();
        match self.send::<Authenticated>(endpoint, "/v3/auth/authenticate", &login, None, within) {
            Try::Answer(Authenticated { token }) => {
                *self.token() = Some(token.clone());
                self.send(endpoint, path, question, Some(&token), within)
            }
            // Without a token the request itself was not sent.
            Try::Next { why, .. } | Try::Unauthenticated { why } => Try::Next { why, in_doubt: false },
            Try::Refused(why) => Try::Refused(why),
        }
    }

    fn send<A: DeserializeOwned>(
        &self,
        endpoint: &str,
        path: &str,
        body: &[u8],
        token: Option<&str>,
        within: Duration,
    ) -> Try<A> {
        let request = self.agent.post(format!("{endpoint}{path}")).content_type("application/json");
        let mut request = request.config().timeout_global(Some(within)).build();
        if let Some(token) = token {
            request = request.header("Authorization", token);
        }
        let mut response = match request.send(body) {
            Ok(response) => response,
            Err(error) => return Try::Next { in_doubt: was_perhaps_sent(&error), why: error.to_string() },
        };
        let is_success = response.status().is_success();
        let status = response.status().as_u16();
        let text = match response.body_mut().with_config().limit(ANSWER_LEN_MAX).read_to_vec() {
            Ok(text) => text,
            Err(error) => return Try::Next { in_doubt: true, why: error.to_string() },
        };
        if is_success {
            return match serde_json::from_slice(&text) {
                Ok(answer) => Try::Answer(answer),
                Err(error) => Try::Next { in_doubt: true, why: format!("no answer of etcd's: {error}") },
            };
        }
        match serde_json::from_slice::<ErrorAnswer>(&text) {
            Ok(error) if !error.message.is_empty() => judge(endpoint, error),
            _ => Try::Next { in_doubt: true, why: format!("no answer of etcd's: HTTP status {status}") },
        }
    }

    fn token(&self) -> MutexGuard<'_, Option<String>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an error of etcd means for the request. Messages are those of etcd 3.4's `rpctypes`; a code that is not known counts as
/// one that says nothing about the request.
fn judge<A>(endpoint: &str, error: ErrorAnswer) -> Try<A> {
    let why = error.message;
    let endpoint = endpoint.to_owned();
    let says = |part: &str| why.contains(part);
    if error.code == code::UNAUTHENTICATED || says("invalid auth token") || says("user name is empty") {
        return Try::Unauthenticated { why };
    }
    if says("revision in auth token is old") || says("auth revision in the header is old") {
        return Try::Unauthenticated { why };
    }
    match error.code {
        code::OUT_OF_RANGE if says("compacted") => Try::Refused(Why::Compacted),
        code::RESOURCE_EXHAUSTED if says("database space exceeded") => {
            Try::Refused(Why::Error(RecordsError::EtcdFull { endpoint }))
        }
        code::PERMISSION_DENIED => {
            let why = format!("{why}; grant the user's role read and write access below the prefix");
            Try::Refused(Why::Error(RecordsError::Etcd { endpoint, why }))
        }
        code::CANCELLED
        | code::UNKNOWN
        | code::DEADLINE_EXCEEDED
        | code::RESOURCE_EXHAUSTED
        | code::OUT_OF_RANGE
        | code::INTERNAL
        | code::UNAVAILABLE => Try::Next { why, in_doubt: true },
        _ => Try::Refused(Why::Error(RecordsError::Etcd { endpoint, why })),
    }
}

/// Whether a member may have received the request.
fn was_perhaps_sent(error: &ureq::Error) -> bool {
    use ureq::{Error, Timeout};
    !matches!(
        error,
        Error::HostNotFound
            | Error::ConnectionFailed
            | Error::BadUri(_)
            | Error::Tls(_)
            | Error::Rustls(_)
            | Error::Timeout(Timeout::Resolve | Timeout::Connect)
    ) && !matches!(error, Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused)
}
