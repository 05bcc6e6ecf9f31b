//! The configuration: one TOML file, in which everything has a default but the state's folder.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use controller::{ConnectOptions, HostTables};
use records::{EtcdConfig, EtcdCredentials, EtcdHistory, EtcdTls};
use rollout::standby::HoldDown;
use serde::Deserialize;

use crate::{core::ladder::Ladder, documents::Severity};

/// Most receivers: what one event writes fits in one commit.
const NOTIFY_MAX: usize = 32;

/// What a configuration says.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Folder of the store.
    pub state: PathBuf,
    /// SNMP and SSH credentials; `credentials.toml` in `$CREDENTIALS_DIRECTORY`, where systemd puts it, unless given.
    pub credentials: Option<PathBuf>,
    /// Where the API is: paths of Unix sockets, loopback addresses with ports, and URLs.
    pub listen: Vec<String>,
    /// The certificate that the API shows over TLS.
    pub tls: Option<TlsFiles>,
    /// Tokens for the API over TCP, by name; without them it only shows.
    pub tokens: Option<PathBuf>,
    /// Where the store is, if it is not a file in `state`.
    pub store: StoreConfig,
    /// How switches are asked.
    pub snmp: Snmp,
    /// How often.
    pub watch: WatchConfig,
    /// What is done by itself.
    pub ladder: Ladder,
    /// Who may approve.
    pub approval: ApprovalConfig,
    /// Receivers of notifications of events.
    pub notify: Vec<NotifyConfig>,
    /// The program that hands tables to hosts that tag their own frames, and its first arguments; empty if there is none.
    pub hosts_program: Vec<String>,
}

/// A store that several daemons share, of which one is the controller and the others stand by.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// Client addresses of etcd's members; none for a SQLite file in `state`, which one daemon has.
    pub etcd: Vec<String>,
    /// What all keys begin with.
    pub prefix: String,
    /// File of CA certificates for the members; the system's unless given.
    pub ca: Option<PathBuf>,
    /// Files of this daemon's certificate and its key, if members ask for one.
    pub certificate: Option<PathBuf>,
    /// See `certificate`.
    pub key: Option<PathBuf>,
    /// User and file of the password, if the cluster asks for them.
    pub user: Option<String>,
    /// See `user`.
    pub password: Option<PathBuf>,
    /// Seconds without a renewal after which another daemon takes over from the controller.
    pub lease: f64,
    /// The daemon's name among the others; the machine's unless given.
    pub name: Option<String>,
    /// Who removes superseded revisions from etcd's history.
    pub history: HistoryKeeper,
    /// Newest targets whose plans are kept, for a rollback.
    pub keep_targets: usize,
    /// Days for which closed proposals are kept that became none of these.
    pub keep_days: u64,
}

/// Who compacts etcd's history, without which its files only grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HistoryKeeper {
    /// The controller, of the whole cluster.
    Compact,
    /// The cluster itself, or whoever else uses it.
    Leave,
}

/// Files of the API's certificate and its key, in PEM format.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate, and those between it and the CA's, if there are any.
    pub certificate: PathBuf,
    /// Its private key, which others must not be able to read.
    pub key: PathBuf,
}

/// How switches are asked.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Snmp {
    /// UDP port of their agents.
    pub port: u16,
    /// Seconds until a request is repeated.
    pub timeout: f64,
    /// Tries per request.
    pub attempts: u32,
    /// Most switches asked at the same time.
    pub parallel: usize,
}

/// How switches are watched, and how often, in seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WatchConfig {
    /// Counters and states of ports.
    pub counters: f64,
    /// Whole tables, unless something has changed before.
    pub tables: f64,
    /// Address and port where switches send traps, whose senders are polled at once; none are taken unless given.
    pub traps: Option<SocketAddr>,
    /// Ports of cables that a stored answer is for.
    pub standby: f64,
    /// For how long a cable must carry again before hosts return to it.
    pub hold: f64,
    /// Failures in a row beyond which each one doubles that.
    pub flaps: u32,
    /// For how long at most.
    pub hold_max: f64,
    /// Seconds over which traffic is averaged before a plan for it is considered.
    pub traffic: f64,
    /// Tables of learned addresses.
    pub addresses: f64,
    /// For how long an address may be missing from them before its entries go.
    pub address_age: f64,
}

/// Who may approve a proposal.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalConfig {
    /// How many must.
    pub needed: usize,
    /// Whether its author may be one of them.
    pub author: AuthorApproval,
}

/// Whether the author of a proposal may approve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthorApproval {
    /// Yes.
    Allowed,
    /// No: somebody else must.
    Forbidden,
}

/// A receiver of notifications of events.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotifyConfig {
    /// Its name, in deliveries and messages.
    pub name: String,
    /// The least severity of events that it is notified of.
    #[serde(default = "warning")]
    pub least: Severity,
    /// An address to which each delivery is posted.
    pub webhook: Option<String>,
    /// File of the webhook's secret, `whsec_` and base64.
    pub secret: Option<PathBuf>,
    /// File of CA certificates for the webhook's server; the system's unless given.
    pub ca: Option<PathBuf>,
    /// A program that reads each delivery, and its arguments.
    pub exec: Option<Vec<String>>,
    /// A syslog server, asked over UDP.
    pub syslog: Option<SocketAddr>,
}

const fn warning() -> Severity {
    Severity::Warning
}

impl Default for Config {
    fn default() -> Self {
        Self {
            state: PathBuf::from("/var/lib/espalierd"),
            credentials: None,
            listen: vec!["/run/espalierd/espalierd.sock".to_owned()],
            tls: None,
            tokens: None,
            store: StoreConfig::default(),
            snmp: Snmp::default(),
            watch: WatchConfig::default(),
            ladder: Ladder::default(),
            approval: ApprovalConfig::default(),
            notify: Vec::new(),
            hosts_program: Vec::new(),
        }
    }
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            etcd: Vec::new(),
            prefix: "/espalierd/".to_owned(),
            ca: None,
            certificate: None,
            key: None,
            user: None,
            password: None,
            lease: 3.0,
            name: None,
            history: HistoryKeeper::Compact,
            keep_targets: 50,
            keep_days: 90,
        }
    }
}

impl StoreConfig {
    /// The cluster of etcd, if it is one; reads the password.
    ///
    /// # Errors
    /// A message that names the file or the key, and the way out.
    pub fn cluster(&self) -> Result<Option<EtcdConfig>, String> {
        if self.etcd.is_empty() {
            return Ok(None);
        }
        let client = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
            (None, None) => None,
            _ => return Err("store: write certificate and key together".to_owned()),
        };
        let credentials = match (&self.user, &self.password) {
            (Some(user), Some(path)) => {
                let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
                Some(EtcdCredentials { user: user.clone(), password: text.trim_end().to_owned() })
            }
            (None, None) => None,
            _ => return Err("store: write user and password together; password names a file".to_owned()),
        };
        let usual = EtcdConfig::default();
        Ok(Some(EtcdConfig {
            endpoints: self.etcd.clone(),
            prefix: self.prefix.clone(),
            tls: EtcdTls { ca_file: self.ca.clone(), client },
            credentials,
            history: match self.history {
                HistoryKeeper::Compact => usual.history,
                HistoryKeeper::Leave => EtcdHistory::Leave,
            },
            ..usual
        }))
    }
}

impl Default for Snmp {
    fn default() -> Self {
        Self { port: 161, timeout: 1.5, attempts: 4, parallel: 32 }
    }
}

impl Default for WatchConfig {
    fn default() -> Self {
        Self {
            counters: 30.0,
            tables: 300.0,
            traps: None,
            standby: 0.5,
            hold: 10.0,
            flaps: HoldDown::LIMIT,
            hold_max: HoldDown::MOST.as_secs_f64(),
            traffic: 600.0,
            addresses: 5.0,
            address_age: 300.0,
        }
    }
}

impl WatchConfig {
    /// For how long cables must carry again.
    pub fn hold_down(&self) -> HoldDown {
        let seconds = Duration::from_secs_f64;
        HoldDown { least: seconds(self.hold), limit: self.flaps, most: seconds(self.hold_max) }
    }
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        Self { needed: 1, author: AuthorApproval::Allowed }
    }
}

impl Config {
    /// Reads and checks a configuration.
    ///
    /// # Errors
    /// A message that names the file, the line where there is one, and the way out.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|why| format!("{}:{why}", path.display()))
    }

    /// Parses and checks a configuration.
    ///
    /// # Errors
    /// A message that begins with the line, or with a blank where there is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let config: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let line = line.map_or_else(|| " ".to_owned(), |line| format!("{line}: "));
            format!("{line}{}", error.message())
        })?;
        config.check().map_err(|why| format!(" {why}"))?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        if let Some((kind, chosen, there)) = self.ladder.misfit() {
            let there: Vec<&str> = there.iter().map(|reaction| reaction.word()).collect();
            return Err(format!("ladder.{kind} = \"{}\": write {}", chosen.word(), there.join(" or ")));
        }
        let WatchConfig {
            counters,
            tables,
            standby,
            hold,
            hold_max,
            traffic,
            addresses,
            address_age,
            traps: _,
            flaps: _,
        } = self.watch;
        let bounds = [
            ("watch.counters", counters, 1.0, 3600.0),
            ("watch.tables", tables, 1.0, 86_400.0),
            ("watch.standby", standby, 0.05, 60.0),
            ("watch.hold", hold, 0.0, 86_400.0),
            ("watch.hold_max", hold_max, hold.max(1.0), 86_400.0),
            ("watch.traffic", traffic, 5.0, 86_400.0),
            ("watch.addresses", addresses, 0.1, 3600.0),
            ("watch.address_age", address_age, 1.0, 86_400.0),
            ("store.lease", self.store.lease, 1.0, 60.0),
            ("snmp.timeout", self.snmp.timeout, 0.01, 600.0),
        ];
        for (name, value, least, most) in bounds {
            if !(least..=most).contains(&value) {
                return Err(format!("{name} = {value}: write a number of seconds from {least} to {most}"));
            }
        }
        let counts = [
            ("snmp.attempts", self.snmp.attempts as usize, 1, 1000),
            ("watch.flaps", self.watch.flaps as usize, 1, 1000),
            ("snmp.parallel", self.snmp.parallel, 1, 4096),
            ("store.keep_targets", self.store.keep_targets, 1, 100_000),
            ("approval.needed", self.approval.needed, 1, 100),
        ];
        for (name, value, least, most) in counts {
            if !(least..=most).contains(&value) {
                return Err(format!("{name} = {value}: write a number from {least} to {most}"));
            }
        }
        if self.listen.is_empty() {
            return Err(
                "listen names no address: write a path of a Unix socket, such as \"/run/espalierd/espalierd.sock\""
                    .to_owned(),
            );
        }
        if self.notify.len() > NOTIFY_MAX {
            return Err(format!(
                "notify: at most {NOTIFY_MAX} receivers, not {}; let one of them pass notifications on",
                self.notify.len()
            ));
        }
        for (number, notify) in self.notify.iter().enumerate() {
            if self.notify[..number].iter().any(|other| other.name == notify.name) {
                return Err(format!("notify: two receivers are called {:?}; give each a name of its own", notify.name));
            }
        }
        for place in &self.listen {
            let parsed = Listen::parse(place).map_err(|why| format!("listen: {why}"))?;
            if matches!(parsed, Listen::Tls(_)) && self.tls.is_none() {
                return Err(format!(
                    "listen: {place:?} needs a certificate: add [tls] with certificate = \"FILE\" and key = \"FILE\""
                ));
            }
        }
        Ok(())
    }

    /// How hosts that tag get their tables.
    pub fn host_tables(&self) -> HostTables {
        if self.hosts_program.is_empty() { HostTables::ByHand } else { HostTables::ByProgram }
    }

    /// How requests to switches are made.
    pub fn connect(&self) -> ConnectOptions {
        ConnectOptions {
            port: self.snmp.port,
            timeout: Duration::from_secs_f64(self.snmp.timeout),
            attempts: self.snmp.attempts,
            parallel: self.snmp.parallel,
        }
    }

    /// The file of credentials; `env` says what an environment variable holds.
    ///
    /// # Errors
    /// If neither the configuration nor systemd names one.
    pub fn credentials(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf, String> {
        let by_systemd = || Some(Path::new(&env("CREDENTIALS_DIRECTORY")?).join("credentials.toml"));
        self.credentials.clone().or_else(by_systemd).ok_or_else(|| {
            "no file of credentials: add credentials = \"/etc/espalierd/credentials.toml\" to the configuration"
                .to_owned()
        })
    }
}

/// Where the API is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket, whose users are known by the system.
    Unix(PathBuf),
    /// An address, whose users have tokens.
    Tcp(SocketAddr),
    /// The same, over TLS.
    Tls(SocketAddr),
}

impl Listen {
    /// Parses a path, a loopback address with a port, or a URL.
    ///
    /// # Errors
    /// A message that names what was found, and the way out.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('/') || text.starts_with('.') {
            return Ok(Self::Unix(PathBuf::from(text)));
        }
        let (scheme, rest) = text.split_once("://").map_or((None, text), |(scheme, rest)| (Some(scheme), rest));
        let address: Option<SocketAddr> = rest.strip_suffix('/').unwrap_or(rest).parse().ok();
        match (scheme, address) {
            (Some("https"), Some(address)) => Ok(Self::Tls(address)),
            (Some("http"), Some(address)) => Ok(Self::Tcp(address)),
            (None, Some(address)) if address.ip().is_loopback() => Ok(Self::Tcp(address)),
            (None, Some(_)) => Err(format!(
                "{text:?} is reached from other machines, and tokens would cross the network unencrypted: write \"https://{text}\" \
                 and [tls], or \"http://{text}\" where a reverse proxy encrypts, or an address of this machine alone, such as \
                 \"127.0.0.1:7433\""
            )),
            _ => Err(format!(
                "{text:?} is neither a path, such as \"/run/espalierd/espalierd.sock\", nor an address with a port, such as \
                 \"127.0.0.1:7433\" or \"https://0.0.0.0:7434\""
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ladder::Reaction;

    #[test]
    fn everything_has_a_default() {
        let config = Config::parse("").expect("a configuration");
        assert_eq!(config.watch.counters, 30.0);
        assert_eq!(config.ladder.drift, Reaction::Report);
        let config = Config::parse("[ladder]\ndrift = \"act\"\n[watch]\ncounters = 1\n").expect("a configuration");
        assert_eq!((config.ladder.drift, config.watch.counters), (Reaction::Act, 1.0));
        assert_eq!(config.ladder.reset, Reaction::Act);
    }

    #[test]
    fn the_history_of_etcd_is_compacted_unless_it_is_to_be_left() {
        let history = |text: &str| {
            let config = Config::parse(&format!("[store]\netcd = [\"http://127.0.0.1:2379\"]\n{text}"));
            config.expect("a configuration").store.cluster().expect("no files").expect("etcd").history
        };
        assert_eq!(history(""), EtcdConfig::default().history);
        assert_ne!(history(""), EtcdHistory::Leave);
        assert_eq!(history("history = \"leave\"\n"), EtcdHistory::Leave);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_a_way_out() {
        for (text, expected) in [
            ("state = 7\n", "1: invalid type: integer `7`, expected path string"),
            ("\n[ladder]\ndrift = \"propose\"\n", " ladder.drift = \"propose\": write report or act"),
            ("[ladder]\nunprotected = \"act\"\n", " ladder.unprotected = \"act\": write report or propose"),
            ("\n\nintervall = 3\n", "3: unknown field `intervall`"),
            ("[watch]\ncounters = 0.1\n", " watch.counters = 0.1: write a number of seconds from 1 to 3600"),
            ("[watch]\nhold = 900\n", " watch.hold_max = 600: write a number of seconds from 900 to 86400"),
            ("[watch]\nflaps = 0\n", " watch.flaps = 0: write a number from 1 to 1000"),
            ("listen = [\"localhost\"]\n", " listen: \"localhost\" is neither a path"),
            ("listen = [\"0.0.0.0:7433\"]\n", " listen: \"0.0.0.0:7433\" is reached from other machines"),
            ("listen = [\"https://[::]:7434\"]\n", " listen: \"https://[::]:7434\" needs a certificate: add [tls]"),
            ("[store]\nkeep_targets = 0\n", " store.keep_targets = 0: write a number from 1 to 100000"),
            ("[store]\nhistory = \"never\"\n", "2: unknown variant `never`, expected `compact` or `leave`"),
            ("[tls]\nkey = \"x\"\n", "1: missing field `certificate`"),
            ("listen = []\n", " listen names no address"),
            ("state = \"x\n", "1: "),
        ] {
            let found = Config::parse(text).expect_err("it is wrong");
            assert!(found.starts_with(expected), "{text:?}: {found}");
        }
    }

    #[test]
    fn a_place_to_listen_is_a_path_or_an_address() {
        assert_eq!(Listen::parse("./d.sock"), Ok(Listen::Unix("./d.sock".into())));
        assert_eq!(Listen::parse("[::1]:7433"), Ok(Listen::Tcp("[::1]:7433".parse().expect("an address"))));
        let address = |text: &str| text.parse().expect("an address");
        assert_eq!(Listen::parse("http://192.0.2.1:80"), Ok(Listen::Tcp(address("192.0.2.1:80"))));
        assert_eq!(Listen::parse("https://0.0.0.0:7434/"), Ok(Listen::Tls(address("0.0.0.0:7434"))));
        for text in ["7433", "https://localhost:7434", "ftp://127.0.0.1:21", "192.0.2.1:7433", "https://"] {
            assert!(Listen::parse(text).is_err(), "{text}");
        }
    }
}
