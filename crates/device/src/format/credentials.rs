//! Credentials: who asks the switches. A file of its own, so that secrets are in no plan, topology or log.
//!
//! ```toml
//! [default]
//! user = "admin"
//! auth = "sha256"                     # or "sha1"
//! auth-password-env = "SW_AUTH"       # from the environment; or auth-password = "…"
//! privacy-password-env = "SW_PRIV"
//!
//! [switches.sw7]                      # an old one
//! community-env = "SW7_COMMUNITY"     # version 2c; or community = "…"
//! save = "by-hand"                    # its configuration cannot be saved by SNMP
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;

use super::FormatError;
use crate::{
    snmp::{Credentials, SaveMethod, VENDOR_SAVES},
    wire::{AuthProtocol, PASSWORD_LEN_MIN},
};

/// How to speak to switches.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    default: Option<Access>,
    switches: BTreeMap<String, Access>,
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
    auth: Option<Auth>,
    auth_password: Option<String>,
    auth_password_env: Option<String>,
    privacy_password: Option<String>,
    privacy_password_env: Option<String>,
    save: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Auth {
    Sha1,
    Sha256,
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
    let default = file.default.map(|entry| entry.access("default", variable)).transpose()?;
    let mut switches = BTreeMap::new();
    for (name, entry) in file.switches {
        let access = entry.access(&name, variable)?;
        switches.insert(name, access);
    }
    Ok(Keyring { default, switches })
}

impl Entry {
    fn access(self, name: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Access, FormatError> {
        let wrong = |what: &str| FormatError::Content(format!("[{name}]: {what}"));
        let secret = |plain: Option<String>, from: Option<String>, what: &str| match (plain, from) {
            (Some(_), Some(_)) => Err(wrong(&format!("{what} and {what}-env exclude each other"))),
            (Some(plain), None) => Ok(Some(plain)),
            (None, Some(from)) => match variable(&from) {
                Some(value) => Ok(Some(value)),
                None => Err(wrong(&format!("{what}-env names {from}, which the environment does not have"))),
            },
            (None, None) => Ok(None),
        };
        let community = secret(self.community, self.community_env, "community")?;
        let auth_password = secret(self.auth_password, self.auth_password_env, "auth-password")?;
        let privacy_password = secret(self.privacy_password, self.privacy_password_env, "privacy-password")?;
        let long = |password: &Option<String>| password.as_ref().is_none_or(|text| text.len() >= PASSWORD_LEN_MIN);
        if !long(&auth_password) || !long(&privacy_password) {
            return Err(wrong(&format!("passwords have at least {PASSWORD_LEN_MIN} characters (RFC 3414)")));
        }
        let credentials = match (community, self.user, auth_password) {
            (Some(community), None, None) => Credentials::Community(community),
            (None, Some(name), Some(auth_password)) => Credentials::User {
                name,
                protocol: match self.auth.unwrap_or(Auth::Sha256) {
                    Auth::Sha1 => AuthProtocol::Sha1,
                    Auth::Sha256 => AuthProtocol::Sha256,
                },
                auth_password,
                privacy_password,
            },
            (None, Some(_), None) => return Err(wrong("a user needs auth-password or auth-password-env")),
            (Some(_), ..) => return Err(wrong("community (version 2c) and user (version 3) exclude each other")),
            (None, None, _) => return Err(wrong("say user (version 3) or community (version 2c)")),
        };
        let save = match self.save {
            Some(name) => SaveMethod::by_name(&name).ok_or_else(|| {
                let known: Vec<&str> = VENDOR_SAVES.iter().map(|save| save.name).collect();
                wrong(&format!("save = {name:?} is no way to save: by-hand, {}", known.join(", ")))
            })?,
            None => SaveMethod::Unknown,
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
        check("[default]\ncommunity = \"hunter22\"\nsave = \"never\"\n", "by-hand, radlan-copy");
        check("[default]\npasword = \"hunter22\"\n", "line 2");
        check("[default]\nuser = \"hunter22\n", "line 2");
    }
}
