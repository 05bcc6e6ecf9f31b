//! Credentials: who asks the switches. A file of its own, so that secrets are in no plan, topology or log.
//!
//! ```toml
//! [default]
//! user = "admin"
//! auth = "sha256"                     # or "sha1", "sha224", "sha384", "sha512"
//! auth-password-env = "SW_AUTH"       # from the environment; or auth-password = "…"
//! privacy = "aes128"                  # or "aes192", "aes256", "aes192c", "aes256c"
//! privacy-password-env = "SW_PRIV"
//!
//! [switches.sw7]                      # an old one
//! community-env = "SW7_COMMUNITY"     # version 2c; or community = "…"
//! save = "by-hand"                    # its configuration cannot be saved by SNMP
//!
//! [switches.sw9]                      # by its command line
//! ssh-user = "admin"
//! ssh-password-env = "SW9_SSH"        # or ssh-key = "FILE"; with neither, ssh's own keys and the agent
//! old-algorithms = true               # it knows no better ones
//! ```

use std::{collections::BTreeMap, path::PathBuf, str::FromStr};

use serde::{Deserialize, Deserializer, de::Error as _};

use crate::{
    snmp::{SaveMethod, VENDOR_SAVES},
    ssh::{Login, OldAlgorithms},
};
use snmp::{
    Credentials,
    wire::{AuthProtocol, PASSWORD_LEN_MIN, PrivacyProtocol, UnknownProtocol},
};
use switch_model::format::FormatError;

/// How to speak to switches.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    default: Option<Access>,
    switches: BTreeMap<String, Access>,
    /// Whoever is named here is configured by its command line.
    logins: BTreeMap<String, Login>,
    saves: BTreeMap<String, SaveMethod>,
}

/// How to speak to one switch.
#[derive(Clone, Debug)]
pub struct Access {
    /// Who asks.
    pub credentials: Credentials,
    /// How its state is saved where it does not say.
    pub save: SaveMethod,
}

impl Keyring {
    /// How to speak to a switch; none if the file says nothing of it.
    pub fn access(&self, switch: &str) -> Option<&Access> {
        self.switches.get(switch).or(self.default.as_ref())
    }

    /// How to log in to a switch, and how its state is saved, if its command line is what it is to be configured by.
    pub fn login(&self, switch: &str) -> Option<(&Login, SaveMethod)> {
        let name = if self.logins.contains_key(switch) { switch } else { "" };
        let taken = name.is_empty() && self.switches.contains_key(switch);
        let login = self.logins.get(name).filter(|_| !taken)?;
        Some((login, self.saves.get(name).copied().unwrap_or(SaveMethod::Unknown)))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    default: Option<Entry>,
    #[serde(default)]
    switches: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Entry {
    community: Option<String>,
    community_env: Option<String>,
    user: Option<String>,
    #[serde(default, deserialize_with = "protocol")]
    auth: Option<AuthProtocol>,
    auth_password: Option<String>,
    auth_password_env: Option<String>,
    #[serde(default, deserialize_with = "protocol")]
    privacy: Option<PrivacyProtocol>,
    privacy_password: Option<String>,
    privacy_password_env: Option<String>,
    save: Option<String>,
    ssh_user: Option<String>,
    ssh_password: Option<String>,
    ssh_password_env: Option<String>,
    ssh_key: Option<PathBuf>,
    ssh_port: Option<u16>,
    known_hosts: Option<PathBuf>,
    enable_password: Option<String>,
    enable_password_env: Option<String>,
    #[serde(default)]
    old_algorithms: bool,
}

/// Reads a file. `variable` looks a variable of the environment up.
///
/// # Errors
/// [`FormatError`], naming what is wrong and never the secret.
pub fn parse_keyring(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Keyring, FormatError> {
    // A message of the parser's own would quote the line, and so the secret.
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        FormatError::Content(format!("line {line}: {}", error.message()))
    })?;
    let mut ring = Keyring::default();
    let default = file.default.map(|entry| (String::new(), entry));
    for (name, mut entry) in default.into_iter().chain(file.switches) {
        let shown = if name.is_empty() { "default" } else { &name };
        if let Some(login) = entry.login(shown, variable)? {
            ring.logins.insert(name.clone(), login);
            ring.saves.insert(name.clone(), entry.save(shown)?);
            if !entry.speaks_snmp() {
                continue;
            }
        }
        let access = entry.access(shown, variable)?;
        if name.is_empty() {
            ring.default = Some(access);
        } else {
            ring.switches.insert(name, access);
        }
    }
    Ok(ring)
}

/// Reads a protocol by its name.
fn protocol<'de, D: Deserializer<'de>, T: FromStr<Err = UnknownProtocol>>(reader: D) -> Result<Option<T>, D::Error> {
    String::deserialize(reader)?.parse().map(Some).map_err(D::Error::custom)
}

/// What an entry says of a secret: itself, or the variable that holds it.
fn secret(
    name: &str,
    what: &str,
    plain: Option<String>,
    from: Option<String>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<String>, FormatError> {
    let wrong = |what: String| FormatError::Content(format!("[{name}]: {what}"));
    match (plain, from) {
        (Some(_), Some(_)) => Err(wrong(format!("{what} and {what}-env exclude each other"))),
        (Some(plain), None) => Ok(Some(plain)),
        (None, Some(from)) => match variable(&from) {
            Some(value) => Ok(Some(value)),
            None => Err(wrong(format!("{what}-env names {from}, which the environment does not have"))),
        },
        (None, None) => Ok(None),
    }
}

impl Entry {
    fn save(&self, entry: &str) -> Result<SaveMethod, FormatError> {
        let Some(name) = &self.save else { return Ok(SaveMethod::Unknown) };
        SaveMethod::by_name(name).ok_or_else(|| {
            let known: Vec<&str> = VENDOR_SAVES.iter().map(|save| save.name).collect();
            let known = known.join(", ");
            FormatError::Content(format!("[{entry}]: save = {name:?} is no way to save: by-hand, {known}"))
        })
    }

    fn speaks_snmp(&self) -> bool {
        self.community.is_some() || self.community_env.is_some() || self.user.is_some()
    }

    /// How to log in, if it says so.
    fn login(&mut self, name: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Login>, FormatError> {
        let wrong = |what: &str| FormatError::Content(format!("[{name}]: {what}"));
        let Some(user) = self.ssh_user.take() else {
            let ssh = self.ssh_password.is_some()
                || self.ssh_password_env.is_some()
                || self.ssh_key.is_some()
                || self.ssh_port.is_some()
                || self.enable_password.is_some()
                || self.enable_password_env.is_some()
                || self.known_hosts.is_some()
                || self.old_algorithms;
            return if ssh { Err(wrong("say ssh-user as well")) } else { Ok(None) };
        };
        let plain = |text: &String| !text.chars().any(char::is_control);
        let fit = |text: Option<String>, what: &str| match text {
            Some(text) if !plain(&text) => {
                Err(wrong(&format!("{what} has a line end or another control character in it")))
            }
            text => Ok(text),
        };
        if user.is_empty() || user.starts_with('-') || !plain(&user) {
            return Err(wrong("ssh-user is no user's name"));
        }
        let password = secret(name, "ssh-password", self.ssh_password.take(), self.ssh_password_env.take(), variable)?;
        let enable =
            secret(name, "enable-password", self.enable_password.take(), self.enable_password_env.take(), variable)?;
        if password.is_some() && self.ssh_key.is_some() {
            return Err(wrong("ssh-password and ssh-key exclude each other"));
        }
        let known_hosts = self.known_hosts.take();
        if known_hosts.as_ref().is_some_and(|path| path.to_string_lossy().contains(['"', '\n', '%'])) {
            return Err(wrong("known-hosts is no file name that ssh takes"));
        }
        Ok(Some(Login {
            user,
            port: self.ssh_port.unwrap_or(22),
            password: fit(password, "ssh-password")?,
            enable_password: fit(enable, "enable-password")?,
            key: self.ssh_key.take(),
            known_hosts,
            old_algorithms: if self.old_algorithms { OldAlgorithms::Accepted } else { OldAlgorithms::Refused },
        }))
    }

    fn access(self, name: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Access, FormatError> {
        let wrong = |what: &str| FormatError::Content(format!("[{name}]: {what}"));
        let save = self.save(name)?;
        let secret = |plain, from, what: &str| secret(name, what, plain, from, variable);
        let community = secret(self.community, self.community_env, "community")?;
        let auth_password = secret(self.auth_password, self.auth_password_env, "auth-password")?;
        let privacy_password = secret(self.privacy_password, self.privacy_password_env, "privacy-password")?;
        let long = |password: &Option<String>| password.as_ref().is_none_or(|text| text.len() >= PASSWORD_LEN_MIN);
        if !long(&auth_password) || !long(&privacy_password) {
            return Err(wrong(&format!("passwords have at least {PASSWORD_LEN_MIN} characters (RFC 3414)")));
        }
        if self.privacy.is_some() && privacy_password.is_none() {
            return Err(wrong("privacy needs privacy-password or privacy-password-env"));
        }
        let credentials = match (community, self.user, auth_password) {
            (Some(community), None, None) => Credentials::Community(community),
            (None, Some(name), Some(auth_password)) => Credentials::User {
                name,
                protocol: self.auth.unwrap_or_default(),
                auth_password,
                privacy: privacy_password.map(|password| (self.privacy.unwrap_or_default(), password)),
            },
            (None, Some(_), None) => return Err(wrong("a user needs auth-password or auth-password-env")),
            (Some(_), ..) => return Err(wrong("community (version 2c) and user (version 3) exclude each other")),
            (None, None, _) => return Err(wrong("say user (version 3) or community (version 2c)")),
        };
        Ok(Access { credentials, save })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Keyring, String> {
        let variable = |name: &str| (name == "SECRET").then(|| "long enough".to_owned());
        parse_keyring(text, &variable).map_err(|error| error.to_string())
    }

    #[test]
    fn the_nearest_entry_counts() {
        let ring = parse(
            "[default]\nuser = \"admin\"\nauth-password-env = \"SECRET\"\n[switches.old]\ncommunity = \"private\"\nsave = \"by-hand\"\n",
        )
        .expect("a keyring");
        let save = |name: &str| ring.access(name).expect("an entry").save;
        assert_eq!((save("old"), save("new")), (SaveMethod::ByHand, SaveMethod::Unknown));
        assert!(matches!(&ring.access("new").expect("an entry").credentials,
            Credentials::User { name, auth_password, .. } if name == "admin" && auth_password == "long enough"));
    }

    #[test]
    fn protocols_are_what_the_entry_says_or_the_usual_ones() {
        let user = |protocols: &str| {
            let ring = parse(&format!("[default]\nuser = \"a\"\nauth-password-env = \"SECRET\"\n{protocols}"));
            match ring.expect("a keyring").access("sw").expect("an entry").credentials.clone() {
                Credentials::User { protocol, privacy, .. } => (protocol, privacy.map(|(cipher, _)| cipher)),
                Credentials::Community(_) => panic!("a community"),
            }
        };
        assert_eq!(user(""), (AuthProtocol::Sha256, None));
        assert_eq!(user("privacy-password-env = \"SECRET\""), (AuthProtocol::Sha256, Some(PrivacyProtocol::Aes128)));
        for (auth, privacy) in AuthProtocol::ALL.into_iter().zip(PrivacyProtocol::ALL) {
            let text = format!(
                "auth = \"{}\"\nprivacy = \"{}\"\nprivacy-password-env = \"SECRET\"",
                auth.name(),
                privacy.name()
            );
            assert_eq!(user(&text), (auth, Some(privacy)));
        }
    }

    #[test]
    fn a_login_makes_the_command_line_the_way() {
        let ring = parse(
            "[default]\nssh-user = \"admin\"\nssh-password-env = \"SECRET\"\n[switches.old]\ncommunity = \"private\"\n\
             [switches.both]\ncommunity = \"private\"\nssh-user = \"root\"\nold-algorithms = true\nsave = \"by-hand\"\n",
        )
        .expect("a keyring");
        let login =
            |name: &str| ring.login(name).map(|(login, save)| (login.user.as_str(), login.password.clone(), save));
        assert_eq!(login("new"), Some(("admin", Some("long enough".to_owned()), SaveMethod::Unknown)));
        assert_eq!((login("old"), ring.access("old").is_some()), (None, true));
        assert_eq!((login("both"), ring.access("both").is_some()), (Some(("root", None, SaveMethod::ByHand)), true));
        assert!(ring.access("new").is_none());
    }

    #[test]
    fn errors_name_the_entry_and_never_the_secret() {
        let check = |text: &str, expect: &str| {
            let error = parse(text).expect_err("faulty");
            assert!(error.contains(expect) && !error.contains("hunter"), "{error}");
        };
        check("[default]\nuser = \"a\"\n", "auth-password");
        check("[default]\nuser = \"a\"\nauth-password = \"hunter\"\n", "at least 8");
        check("[default]\nuser = \"a\"\nauth-password-env = \"NOWHERE\"\n", "NOWHERE");
        check("[default]\ncommunity = \"hunter22\"\nuser = \"a\"\n", "exclude each other");
        check("[default]\n", "say user");
        check("[default]\nssh-password = \"hunter\"\n", "say ssh-user");
        check("[default]\nssh-user = \"a\"\nssh-password = \"hunter\\n\"\n", "control character");
        check("[default]\nssh-user = \"-oProxyCommand=x\"\n", "no user's name");
        check("[default]\ncommunity = \"hunter22\"\nsave = \"never\"\n", "by-hand, radlan-copy");
        check("[default]\npasword = \"hunter22\"\n", "line 2");
        check("[default]\nuser = \"hunter22\n", "line 2");
        check("[default]\nuser = \"a\"\nauth = \"md5\"\n", "line 3: unknown protocol `md5`, expected one of `sha1`");
        check("[default]\nuser = \"a\"\nprivacy = \"des\"\n", "line 3: unknown protocol `des`");
        check(
            "[default]\nuser = \"a\"\nauth-password-env = \"SECRET\"\nprivacy = \"aes256\"\n",
            "privacy needs privacy-password",
        );
    }
}
