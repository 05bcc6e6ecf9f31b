//! What may differ between connections, from a program or from a file.

use crate::{
    keyfile::{self, key_bytes},
    prefix::Prefix,
};
use ri2n::{
    ENTROPIES, Integrity, Key, Keys, Settings,
    handshake::{Privacy, Protection},
};
use serde::{Deserialize, Serialize};
use std::{
    io,
    net::IpAddr,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// Settings of connections and listeners; begin with [`Config::default`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Which links to use.
    pub links: LinkChoice,
    /// For clients: the links to single peers, which are not those of `links`. A peer is known by any remote end.
    pub peers: Arc<[Vec<LinkPair>]>,
    /// Secrets of both ends, of which one must be the same: every packet is authenticated. The first is that of connections which
    /// are opened, all are accepted.
    pub keys: Keys,
    /// Whether packets are encrypted as well.
    pub privacy: Privacy,
    /// What guards packets without a key.
    pub integrity: Integrity,
    /// Whether `ri2n run` and `ri2n proxy` refuse connections that would be plain TCP; unset, they do if there is a key.
    /// Connections that a program makes by this library are never plain TCP.
    pub require: Option<bool>,
    /// How long all links may be silent before the connection ends.
    pub outage_deadline: Duration,
    /// How long to try to connect.
    pub connect_timeout: Duration,
    /// How long to try while no server has answered at all, if that is less.
    pub answer_timeout: Duration,
    /// Ends the connection when the peer is silent this long; without, only the outage deadline does.
    pub keepalive: Option<Duration>,
    /// Bytes written and not acknowledged, at most; rounded up to a power of two, 64 KiB to 64 MiB.
    pub send_buffer: usize,
    /// Bytes arrived and not read, at most; rounded likewise.
    pub receive_buffer: usize,
    /// UDP ports of accepted connections, each of which has its own; without, any free one.
    pub ports: Option<RangeInclusive<u16>>,
    /// For clients: links between the same two addresses, 1 to 8, which differ by their source ports, so that a network with several
    /// paths carries each by another. Ports of 61,440 and above are used for all links but the first; a link is answered from such a
    /// port as well.
    pub paths: u8,
}

/// What stands in for RI2N where it cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// Nothing: the connection is refused.
    Never,
    /// Plain TCP, unless the peer wants a key.
    WithoutKeys,
    /// Plain TCP, whatever the reason.
    PlainTcp,
}

/// Which links a connection uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkChoice {
    /// Each of our interfaces with the server's address in its subnet.
    #[default]
    Automatic,
    /// Our addresses in these networks only, with the server's in their subnets.
    Addresses(Vec<LocalLink>),
    /// These pairs only; for clients.
    Pairs(Vec<LinkPair>),
}

impl LinkChoice {
    /// The priority of links from this address of ours, of several entries that of the narrowest network; nothing if there shall
    /// be none.
    pub(crate) fn priority_of(&self, ip: IpAddr) -> Option<u8> {
        match self {
            Self::Automatic | Self::Pairs(_) => Some(0),
            Self::Addresses(entries) => {
                let matching = entries.iter().filter(|entry| entry.local.contains(ip));
                matching.max_by_key(|entry| entry.local.bits()).map(|entry| entry.priority)
            }
        }
    }
}

/// Links by our end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalLink {
    /// An address of ours, or a network that has some.
    pub local: Prefix,
    /// Data leave on the links of the lowest number that deliver; 1 is a backup for 0. Of both ends' numbers the larger counts.
    pub priority: u8,
}

impl From<IpAddr> for LocalLink {
    fn from(local: IpAddr) -> Self {
        Self { local: local.into(), priority: 0 }
    }
}

/// A link by the addresses of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkPair {
    /// Ours.
    pub local: IpAddr,
    /// The server's.
    pub remote: IpAddr,
    /// As of a [`LocalLink`].
    pub priority: u8,
}

impl Default for Config {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            links: LinkChoice::Automatic,
            keys: Keys::default(),
            privacy: Privacy::default(),
            peers: Arc::default(),
            require: None,
            integrity: Integrity::default(),
            outage_deadline: settings.outage_deadline,
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::MAX,
            keepalive: None,
            send_buffer: settings.send_buffer,
            receive_buffer: settings.receive_buffer,
            ports: None,
            paths: 1,
        }
    }
}

/// What is wrong with a configuration file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no valid configuration; the message names the line.
    #[error("{path}: {message}")]
    Parse {
        /// The file.
        path: String,
        /// Where and why.
        message: String,
    },
}

impl Config {
    /// Reads a TOML file with any of the fields of this type: `links = "automatic"`, `links = ["10.0.0.1", "10.0.1.0/24"]`,
    /// `links = [{local = "10.0.0.0/24"}, {local = "10.0.1.0/24", backup = true}]` (or `priority = 2`) or
    /// `links = [{local = "10.0.0.1", remote = "10.0.0.2"}]`; `[[peer]]` with the `links` to one peer; `passphrase`, `key` (64 hexadecimal digits) or `keys` (a file with a
    /// key a line); `encrypt = true`;
    /// `require = true` or `false`; `checksum = true`; durations in seconds, as `outage_deadline_s`, `connect_timeout_s` and `keepalive_s`; sizes in
    /// bytes; `ports = "20000-20999"`; `paths = 8`.
    ///
    /// # Errors
    /// If the file cannot be read or understood, or a file that it names.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let name = || path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: name(), source })?;
        Self::from_text(&text).map_err(|message| ConfigError::Parse { path: name(), message })
    }

    /// Reads the text of such a file.
    ///
    /// # Errors
    /// What is wrong, and on which line.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut config = Self::default();
        if let Some(links) = file.links {
            config.links = links.choice()?;
        }
        let pairs = |peer: Peer| match peer.links.choice()? {
            LinkChoice::Pairs(pairs) => Ok(pairs),
            LinkChoice::Automatic | LinkChoice::Addresses(_) => Err("peer: each link has local and remote".to_owned()),
        };
        config.peers = file.peer.into_iter().map(pairs).collect::<Result<_, String>>()?;
        config.keys = match (file.key, file.passphrase, file.keys) {
            (None, None, None) => Keys::default(),
            (Some(digits), None, None) => {
                let bytes = key_bytes(&digits).ok_or("key: 64 hexadecimal digits are wanted")?;
                Key::new(bytes).into()
            }
            (None, Some(passphrase), None) => Key::from_passphrase(&passphrase).into(),
            (None, None, Some(path)) => keyfile::read(&path)?,
            _ => return Err("key, passphrase and keys exclude each other".to_owned()),
        };
        if file.encrypt == Some(true) {
            config.privacy = Privacy::Encrypted;
        }
        config.require = file.require;
        if file.checksum == Some(true) {
            config.integrity = Integrity::Checksum;
        }
        if let Some(ports) = file.ports {
            config.ports = Some(port_range(&ports)?);
        }
        if let Some(paths) = file.paths {
            config.paths = check_paths(paths)?;
        }
        let seconds = |value: f64| Duration::try_from_secs_f64(value).map_err(|error| error.to_string());
        if let Some(value) = file.outage_deadline_s {
            config.outage_deadline = seconds(value)?;
        }
        if let Some(value) = file.connect_timeout_s {
            config.connect_timeout = seconds(value)?;
        }
        config.keepalive = file.keepalive_s.map(seconds).transpose()?;
        config.send_buffer = file.send_buffer.unwrap_or(config.send_buffer);
        config.receive_buffer = file.receive_buffer.unwrap_or(config.receive_buffer);
        Ok(config)
    }

    /// Whether all that is asked for can be had together.
    ///
    /// # Errors
    /// What is missing.
    pub fn check(&self) -> Result<(), String> {
        if self.privacy == Privacy::Encrypted && self.keys.is_empty() {
            return Err("encrypt: a key is wanted, by `keys`, `key` or `passphrase`".to_owned());
        }
        Ok(())
    }

    /// Which links to use toward a server.
    #[must_use]
    pub fn links_to(&self, server: IpAddr) -> LinkChoice {
        self.peer(server).map_or_else(|| self.links.clone(), |pairs| LinkChoice::Pairs(pairs.to_vec()))
    }

    /// The links to the peer that has this address, if it is one of `peers`.
    pub(crate) fn peer(&self, address: IpAddr) -> Option<&[LinkPair]> {
        let peer = self.peers.iter().find(|pairs| pairs.iter().any(|pair| pair.remote == address));
        peer.map(Vec::as_slice)
    }

    /// What stands in for RI2N where the peer does not speak it, under `ri2n run` and `ri2n proxy`.
    #[must_use]
    pub fn fallback(&self) -> Fallback {
        match (self.require, self.keys.is_empty()) {
            (Some(true), _) | (None, false) => Fallback::Never,
            (None, true) => Fallback::WithoutKeys,
            (Some(false), _) => Fallback::PlainTcp,
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            send_buffer: self.send_buffer,
            receive_buffer: self.receive_buffer,
            outage_deadline: self.keepalive.map_or(self.outage_deadline, |alive| alive.min(self.outage_deadline)),
        }
    }

    pub(crate) fn protection(&self) -> Protection {
        Protection { integrity: self.integrity, keys: self.keys.clone(), privacy: self.privacy }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    links: Option<Links>,
    #[serde(default)]
    peer: Vec<Peer>,
    key: Option<String>,
    keys: Option<PathBuf>,
    encrypt: Option<bool>,
    passphrase: Option<String>,
    require: Option<bool>,
    checksum: Option<bool>,
    outage_deadline_s: Option<f64>,
    connect_timeout_s: Option<f64>,
    keepalive_s: Option<f64>,
    send_buffer: Option<usize>,
    receive_buffer: Option<usize>,
    ports: Option<String>,
    paths: Option<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Peer {
    links: Links,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Links {
    Word(String),
    Entries(Vec<Entry>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Local(String),
    Table(Table),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    local: String,
    remote: Option<IpAddr>,
    priority: Option<u8>,
    backup: Option<bool>,
}

impl Table {
    fn priority(&self) -> Result<u8, String> {
        match (self.priority, self.backup) {
            (Some(_), Some(_)) => Err("links: priority and backup exclude each other".to_owned()),
            (Some(priority), None) => Ok(priority),
            (None, backup) => Ok(u8::from(backup == Some(true))),
        }
    }
}

/// An address, or a network.
fn local(text: &str) -> Result<Prefix, String> {
    let network = || text.parse::<Prefix>().map_err(|error| format!("links: {error}"));
    text.parse::<IpAddr>().map_or_else(|_| network(), |ip| Ok(ip.into()))
}

impl Links {
    fn choice(self) -> Result<LinkChoice, String> {
        match self {
            Self::Word(word) if word == "automatic" => Ok(LinkChoice::Automatic),
            Self::Word(word) => Err(format!("links: `{word}` is neither \"automatic\" nor a list")),
            Self::Entries(entries) => {
                let (mut locals, mut pairs) = (Vec::new(), Vec::new());
                for entry in &entries {
                    match entry {
                        Entry::Local(text) => locals.push(LocalLink { local: local(text)?, priority: 0 }),
                        Entry::Table(table) => match table.remote {
                            None => locals.push(LocalLink { local: local(&table.local)?, priority: table.priority()? }),
                            Some(remote) => {
                                let wrong =
                                    |_| format!("links: `{}` is no address, as beside remote it must be", table.local);
                                let local = table.local.parse().map_err(wrong)?;
                                pairs.push(LinkPair { local, remote, priority: table.priority()? });
                            }
                        },
                    }
                }
                match (locals.is_empty(), pairs.is_empty()) {
                    (false, false) => Err("links: either all have a remote end or none".to_owned()),
                    (true, false) => Ok(LinkChoice::Pairs(pairs)),
                    (_, true) => Ok(LinkChoice::Addresses(locals)),
                }
            }
        }
    }
}

/// As many links as a pair of addresses may have.
///
/// # Errors
/// If it is not 1 to 8.
pub fn check_paths(paths: u8) -> Result<u8, String> {
    if (1..=ENTROPIES).contains(&paths) { Ok(paths) } else { Err(format!("paths: 1 to {ENTROPIES}, not {paths}")) }
}

fn port_range(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (low.trim().parse(), high.trim().parse()) {
        (Ok(low), Ok(high)) if 0 < low && low <= high => Ok(low..=high),
        _ => Err(format!("ports: `{text}` is no range like 20000-20999")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_understood() {
        let config = Config::from_text("").unwrap();
        assert_eq!((config.links, config.send_buffer), (LinkChoice::Automatic, 1 << 20));
        let text = "links = [{local = '10.0.0.1', remote = '10.0.0.2'}]\npassphrase = 'x'\nkeepalive_s = 1.5\nports = '20000-20009'";
        let config = Config::from_text(text).unwrap();
        let pair = LinkPair { local: "10.0.0.1".parse().unwrap(), remote: "10.0.0.2".parse().unwrap(), priority: 0 };
        assert_eq!(config.links, LinkChoice::Pairs(vec![pair]));
        assert_eq!((config.keepalive, config.ports), (Some(Duration::from_millis(1500)), Some(20000..=20009)));
        assert!(config.keys.first().is_some() && config.privacy == Privacy::Authenticated);
        let encrypted = Config::from_text("passphrase = 'x'\nencrypt = true").unwrap();
        assert_eq!((encrypted.privacy, encrypted.fallback()), (Privacy::Encrypted, Fallback::Never));
        assert!(encrypted.check().is_ok() && Config::from_text("encrypt = true").unwrap().check().is_err());
        for (text, fallback) in [
            ("", Fallback::WithoutKeys),
            ("passphrase = 'x'", Fallback::Never),
            ("passphrase = 'x'\nrequire = false", Fallback::PlainTcp),
            ("require = true", Fallback::Never),
            ("require = false", Fallback::PlainTcp),
        ] {
            assert_eq!(Config::from_text(text).unwrap().fallback(), fallback, "{text}");
        }
        let addresses = Config::from_text("links = ['fd00::1', {local = '10.0.0.0/8', backup = true}]").unwrap().links;
        let network = LocalLink { local: "10.0.0.0/8".parse().unwrap(), priority: 1 };
        assert_eq!(addresses, LinkChoice::Addresses(vec!["fd00::1".parse::<IpAddr>().unwrap().into(), network]));
        let priorities = ["fd00::1", "10.1.2.3", "11.1.2.3"].map(|ip| addresses.priority_of(ip.parse().unwrap()));
        assert_eq!(priorities, [Some(0), Some(1), None]);
        let peers = "[[peer]]\nlinks = [{local = '10.0.0.1', remote = '10.0.0.3'}, {local = '10.0.0.2', remote = '10.0.0.4'}]\n\
                     [[peer]]\nlinks = [{local = '10.0.0.1', remote = '10.0.0.6', backup = true}]";
        let config = Config::from_text(peers).unwrap();
        let remotes = |server: &str| match config.links_to(server.parse().unwrap()) {
            LinkChoice::Pairs(pairs) => pairs.iter().map(|pair| (pair.remote.to_string(), pair.priority)).collect(),
            _ => Vec::new(),
        };
        let both = vec![("10.0.0.3".to_owned(), 0), ("10.0.0.4".to_owned(), 0)];
        assert_eq!((remotes("10.0.0.3"), remotes("10.0.0.4")), (both.clone(), both));
        assert_eq!(remotes("10.0.0.6"), [("10.0.0.6".to_owned(), 1)]);
        assert_eq!(config.links_to("10.0.0.5".parse().unwrap()), LinkChoice::Automatic);
        for (wrong, says) in [
            ("[[peer]]\nlinks = 'automatic'", "local and remote"),
            ("[[peer]]\nlinks = ['10.0.0.1']", "local and remote"),
            ("[[peer]]\nname = 'x'", "line 2"),
            ("speed = 1", "line 1"),
            ("links = 'all'", "automatic"),
            ("links = ['10.0.0.0/33']", "no network"),
            ("links = [{local = '10.0.0.1', backup = true, priority = 1}]", "exclude"),
            ("links = [{local = '10.0.0.1'}, {local = '10.0.1.1', remote = '10.0.1.2'}]", "either all"),
            ("links = [{local = '10.0.0.0/8', remote = '10.0.1.2'}]", "no address"),
            ("key = 'zz'", "hexadecimal"),
            ("ports = '9-3'", "range"),
            ("paths = 9", "1 to 8"),
            ("paths = 0", "1 to 8"),
            ("keepalive_s = -1", "negative"),
            ("key = 'x'\npassphrase = 'x'", "exclude"),
        ] {
            let message = Config::from_text(wrong).unwrap_err();
            assert!(message.contains(says), "{wrong}: {message}");
        }
    }
}
