//! The configuration of `espalier switchd`: which bridge, where it answers, who may ask. Secrets are in files of their own.
//!
//! ```toml
//! bridge = "br0"                        # or: lab = "LAB" and switch = "s1", a switch of a lab
//! listen = "192.0.2.1:161"
//! state = "/var/lib/espalier/switchd"   # what is saved, and how often it has started
//! user = "nobody"                       # whom to become once the sockets are open
//! name = "rack7"                        # sysName, until a manager writes another one
//! lldp-interval = 30
//!
//! [[users]]                             # SNMPv3
//! name = "admin"
//! auth = "sha256"                       # or "sha1", "sha224", "sha384", "sha512"
//! auth-password-file = "/etc/espalier/admin.auth"     # a relative one is looked for in $CREDENTIALS_DIRECTORY first
//! privacy = "aes128"                    # or "aes192", "aes256", "aes192c", "aes256c"
//! privacy-password-file = "/etc/espalier/admin.privacy"
//! rights = "write"                      # or "read"
//!
//! [[communities]]                       # SNMPv2c
//! file = "/etc/espalier/community"
//! rights = "read"
//! ```

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    str::FromStr,
};

use serde::{Deserialize, Deserializer, de::Error as _};

use crate::agent::Rights;
use snmp::wire::{AuthProtocol, PrivacyProtocol, UnknownProtocol};
use switch_model::format::FormatError;

/// What `espalier switchd` is told.
#[derive(Clone, Debug)]
pub struct SwitchdConfig {
    /// What it manages.
    pub target: SwitchdTarget,
    /// Where it answers.
    pub listen: SocketAddr,
    /// The folder that outlives it.
    pub state: PathBuf,
    /// Whom to become.
    pub user: Option<String>,
    /// sysName.
    pub name: Option<String>,
    /// Seconds between two announcements by LLDP.
    pub lldp_interval_s: u16,
    /// Users of version 3.
    pub users: Vec<SwitchdUser>,
    /// Communities of version 2c: the file that holds the word, and what it allows.
    pub communities: Vec<(PathBuf, Rights)>,
}

/// What `espalier switchd` manages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchdTarget {
    /// A bridge of the kernel's.
    Bridge(String),
    /// A switch of a lab on this machine.
    Lab {
        /// The lab.
        lab: String,
        /// The switch.
        switch: String,
    },
}

/// A user of version 3.
#[derive(Clone, Debug)]
pub struct SwitchdUser {
    /// The name.
    pub name: String,
    /// The hash function.
    pub protocol: AuthProtocol,
    /// The file of the password that signs.
    pub auth_file: PathBuf,
    /// The cipher, and the file of the password that enciphers.
    pub privacy: Option<(PrivacyProtocol, PathBuf)>,
    /// What the user may do.
    pub rights: Rights,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    bridge: Option<String>,
    lab: Option<String>,
    switch: Option<String>,
    listen: Option<SocketAddr>,
    state: Option<PathBuf>,
    user: Option<String>,
    name: Option<String>,
    lldp_interval: Option<u16>,
    #[serde(default)]
    users: Vec<User>,
    #[serde(default)]
    communities: Vec<Community>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct User {
    name: String,
    #[serde(default, deserialize_with = "protocol")]
    auth: Option<AuthProtocol>,
    auth_password_file: PathBuf,
    #[serde(default, deserialize_with = "protocol")]
    privacy: Option<PrivacyProtocol>,
    privacy_password_file: Option<PathBuf>,
    rights: Word,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Community {
    file: PathBuf,
    rights: Word,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Read,
    Write,
}

impl From<Word> for Rights {
    fn from(word: Word) -> Self {
        match word {
            Word::Read => Self::Read,
            Word::Write => Self::Write,
        }
    }
}

/// Longest name of a network device.
const DEVICE_LEN_MAX: usize = 15;
/// Where what is saved is kept, unless the file says.
const STATE: &str = "/var/lib/espalier/switchd";

/// Reads a protocol by its name.
fn protocol<'de, D: Deserializer<'de>, T: FromStr<Err = UnknownProtocol>>(reader: D) -> Result<Option<T>, D::Error> {
    String::deserialize(reader)?.parse().map(Some).map_err(D::Error::custom)
}

/// Reads a configuration.
///
/// # Errors
/// [`FormatError`], naming line or key, and the way out.
pub fn parse_switchd(text: &str) -> Result<SwitchdConfig, FormatError> {
    let wrong = |message: &str| FormatError::Content(message.to_owned());
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        FormatError::Content(format!("line {line}: {}", error.message()))
    })?;
    let target = match (file.bridge, file.lab, file.switch) {
        (Some(bridge), None, None) => {
            let sound = (1..=DEVICE_LEN_MAX).contains(&bridge.len())
                && bridge.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
            if !sound {
                return Err(FormatError::Content(format!("bridge: {bridge:?} is no name of a device; such as br0")));
            }
            SwitchdTarget::Bridge(bridge)
        }
        (None, Some(lab), Some(switch)) => SwitchdTarget::Lab { lab, switch },
        (None, None, None) => return Err(wrong("which bridge? say bridge = \"br0\"")),
        _ => return Err(wrong("say either bridge, or lab and switch")),
    };
    if file.users.is_empty() && file.communities.is_empty() {
        return Err(wrong(
            "nobody may ask: add [[users]] with name, auth-password-file and rights, or [[communities]]",
        ));
    }
    let mut names: Vec<&str> = file.users.iter().map(|user| user.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(FormatError::Content(format!("users: {} is there twice", twice[0])));
    }
    if names.iter().any(|name| name.is_empty() || name.len() > 32) {
        return Err(wrong("users: a name has 1 to 32 bytes"));
    }
    let keyless = |user: &&User| user.privacy.is_some() && user.privacy_password_file.is_none();
    if let Some(user) = file.users.iter().find(keyless) {
        return Err(FormatError::Content(format!("users: {}: privacy needs privacy-password-file", user.name)));
    }
    let lldp_interval_s = file.lldp_interval.unwrap_or(30);
    if !(1..=3600).contains(&lldp_interval_s) {
        return Err(wrong("lldp-interval: 1 to 3600 seconds"));
    }
    let user = |user: User| SwitchdUser {
        name: user.name,
        protocol: user.auth.unwrap_or_default(),
        auth_file: user.auth_password_file,
        privacy: user.privacy_password_file.map(|file| (user.privacy.unwrap_or_default(), file)),
        rights: user.rights.into(),
    };
    Ok(SwitchdConfig {
        target,
        listen: file.listen.unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 161)),
        state: file.state.unwrap_or_else(|| PathBuf::from(STATE)),
        user: file.user,
        name: file.name,
        lldp_interval_s,
        users: file.users.into_iter().map(user).collect(),
        communities: file.communities.into_iter().map(|entry| (entry.file, entry.rights.into())).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "[[users]]\nname = \"a\"\nauth-password-file = \"f\"\nrights = \"write\"\n";

    fn refused(text: &str) -> String {
        parse_switchd(text).map(drop).expect_err("wrong").to_string()
    }

    #[test]
    fn a_short_file_has_the_usual_answers() {
        let config = parse_switchd(&format!("bridge = \"br0\"\n{USERS}")).expect("right");
        assert_eq!(config.target, SwitchdTarget::Bridge("br0".to_owned()));
        assert_eq!((config.listen.port(), config.lldp_interval_s), (161, 30));
        assert_eq!(config.users[0].rights, Rights::Write);
        assert_eq!((config.users[0].protocol, config.users[0].privacy.is_none()), (AuthProtocol::Sha256, true));
    }

    #[test]
    fn protocols_are_read_by_name() {
        for (auth, privacy) in AuthProtocol::ALL.into_iter().zip(PrivacyProtocol::ALL) {
            let text = format!(
                "bridge = \"br0\"\n{USERS}auth = \"{}\"\nprivacy = \"{}\"\nprivacy-password-file = \"g\"\n",
                auth.name(),
                privacy.name()
            );
            let user = parse_switchd(&text).expect("right").users.remove(0);
            assert_eq!((user.protocol, user.privacy), (auth, Some((privacy, PathBuf::from("g")))));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, words) in [
            (USERS.to_owned(), "which bridge"),
            ("bridge = \"br0\"\n".to_owned(), "nobody may ask"),
            (format!("bridge = \"br 0\"\n{USERS}"), "no name of a device"),
            (format!("bridge = \"br0\"\nlab = \"l\"\n{USERS}"), "either bridge, or lab and switch"),
            (format!("bridge = \"br0\"\n{USERS}{USERS}"), "a is there twice"),
            (format!("bridge = \"br0\"\nlldp-interval = 0\n{USERS}"), "1 to 3600"),
            (format!("bridge = \"br0\"\nlisten = \"161\"\n{USERS}"), "line 2"),
            (format!("bridge = \"br0\"\n{USERS}password = \"secret\"\n"), "line 6"),
            (
                format!("bridge = \"br0\"\n{USERS}auth = \"md5\"\n"),
                "line 6: unknown protocol `md5`, expected one of `sha1`",
            ),
            (format!("bridge = \"br0\"\n{USERS}privacy = \"aes256\"\n"), "a: privacy needs privacy-password-file"),
        ] {
            let message = refused(&text);
            assert!(message.contains(words), "{words}: {message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
