//! Where the members of etcd are, and how they are spoken to.

use std::{path::PathBuf, time::Duration};

use tls::tls_config;
use ureq::Agent;

use crate::RecordsError;

/// How long a connection may take.
pub(super) const CONNECT_MAX: Duration = Duration::from_millis(300);
/// How long a member may take to answer when each of them is asked for the first time: after that the next one is asked.
pub(super) const ANSWER_FIRST: Duration = Duration::from_millis(300);
/// How long at most, when that has been doubled with each round: a slow disk is no member that fails.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(2);
/// How long a request is tried by default: longer than etcd takes to elect a leader.
const REQUEST_MAX: Duration = Duration::from_secs(5);
/// How long to wait after no member has answered.
pub(super) const PAUSE: Duration = Duration::from_millis(50);
/// How often the history is compacted by default.
const COMPACT_EVERY: Duration = Duration::from_secs(300);

/// A cluster of etcd, and which part of its keys is used.
#[derive(Clone, Debug)]
pub struct EtcdConfig {
    /// Client URLs of the members, such as `https://10.0.0.1:2379`; any order. At least one.
    pub endpoints: Vec<String>,
    /// What all keys begin with: it keeps installations that share a cluster apart.
    pub prefix: String,
    /// Certificates, for endpoints that are `https`.
    pub tls: EtcdTls,
    /// User and password, if the cluster asks for them.
    pub credentials: Option<EtcdCredentials>,
    /// Who removes superseded revisions from the cluster's history.
    pub history: EtcdHistory,
    /// How long a request is tried, at one member after another; the last try may take two seconds longer. A commit is one
    /// request, as a rule, and a long value one for each 512 KiB on top.
    pub request_max: Duration,
    /// How long what an interrupted commit has left behind may lie unchanged before it is removed.
    pub abandoned_after: Duration,
}

/// Certificates: files in PEM format.
#[derive(Clone, Debug, Default)]
pub struct EtcdTls {
    /// Who may sign the members' certificates; the system's authorities if none is named.
    pub ca_file: Option<PathBuf>,
    /// A client's certificate and its private key.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// A user of etcd.
#[derive(Clone)]
pub struct EtcdCredentials {
    /// Its name.
    pub user: String,
    /// Its password.
    pub password: String,
}

impl std::fmt::Debug for EtcdCredentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("EtcdCredentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Who compacts the cluster's history, without which its files only grow. Compaction concerns the keys of the whole cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtcdHistory {
    /// Whoever commits: so often, up to where the history was the time before.
    Compact {
        /// How often.
        every: Duration,
    },
    /// The cluster itself (`--auto-compaction-retention`), or whoever else uses it.
    Leave,
}

impl Default for EtcdConfig {
    fn default() -> Self {
        Self {
            endpoints: vec!["http://127.0.0.1:2379".to_owned()],
            prefix: "/espalierd/".to_owned(),
            tls: EtcdTls::default(),
            credentials: None,
            history: EtcdHistory::Compact { every: COMPACT_EVERY },
            request_max: REQUEST_MAX,
            abandoned_after: Duration::from_secs(600),
        }
    }
}

impl EtcdConfig {
    /// Refuses what cannot be meant.
    pub(super) fn check(&self) -> Result<(), RecordsError> {
        let refuse = |what: String| Err(RecordsError::EtcdConfig { what });
        if self.endpoints.is_empty() {
            return refuse("no endpoint is given; name at least one, such as http://127.0.0.1:2379".to_owned());
        }
        for endpoint in &self.endpoints {
            if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
                return refuse(format!(
                    "the endpoint {endpoint} is no URL; write http://{endpoint} or https://{endpoint}"
                ));
            }
        }
        if self.prefix.is_empty() {
            return refuse("the prefix of keys is empty; write one such as /espalierd/".to_owned());
        }
        Ok(())
    }

    /// What sends requests, with its connections and time-outs.
    pub(super) fn agent(&self) -> Result<Agent, RecordsError> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_connect(Some(CONNECT_MAX));
        if self.endpoints.iter().any(|endpoint| endpoint.starts_with("https://")) {
            let EtcdTls { ca_file, client } = &self.tls;
            let client = client.as_ref().map(|(certificate, key)| (certificate.as_path(), key.as_path()));
            let tls = tls_config(ca_file.as_deref(), client);
            config = config.tls_config(tls.map_err(|error| RecordsError::EtcdConfig { what: error.to_string() })?);
        }
        Ok(config.build().into())
    }
}
