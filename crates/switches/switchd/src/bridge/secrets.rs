//! Passwords and communities of those who may ask, from files that nobody else can read.

use std::{fs, path::Path};

use snmp::wire::{AuthProtocol, Keys, PrivacyProtocol};

use super::error::{Context as _, SwitchdError};
use crate::{
    agent::{Access, Rights, User},
    settings::SwitchdConfig,
};

/// Octets of a secret's file at most.
const SECRET_LEN_MAX: u64 = 4096;

/// A user whose passwords have been read.
#[derive(Clone)]
struct Secret {
    name: String,
    protocol: AuthProtocol,
    auth: String,
    privacy: Option<(PrivacyProtocol, String)>,
    rights: Rights,
}

/// Everybody who may ask.
#[derive(Clone, Default)]
pub struct Secrets {
    users: Vec<Secret>,
    communities: Vec<(Vec<u8>, Rights)>,
}

impl Secrets {
    /// The keys of an engine.
    pub fn access(&self, engine_id: &[u8]) -> Access {
        let user = |user: &Secret| {
            let privacy = user.privacy.as_ref().map(|(cipher, password)| (*cipher, password.as_str()));
            User {
                name: user.name.as_bytes().to_vec(),
                keys: Keys::new(user.protocol, &user.auth, privacy, engine_id),
                rights: user.rights,
            }
        };
        Access { communities: self.communities.clone(), users: self.users.iter().map(user).collect() }
    }

    /// Reads every password, from files that nobody else can read.
    ///
    /// # Errors
    /// [`SwitchdError`], naming the file or user.
    pub fn read(config: &SwitchdConfig) -> Result<Self, SwitchdError> {
        let mut secrets = Self::default();
        for user in &config.users {
            let auth = secret(&user.auth_file)?;
            let privacy = match &user.privacy {
                Some((cipher, file)) => Some((*cipher, secret(file)?)),
                None => None,
            };
            let short = |word: &str| word.len() < snmp::wire::PASSWORD_LEN_MIN;
            if short(&auth) || privacy.as_ref().is_some_and(|(_, password)| short(password)) {
                return Err(SwitchdError::Unsupported(format!(
                    "user {}: passwords have at least {} characters (RFC 3414)",
                    user.name,
                    snmp::wire::PASSWORD_LEN_MIN
                )));
            }
            let (name, protocol, rights) = (user.name.clone(), user.protocol, user.rights);
            secrets.users.push(Secret { name, protocol, auth, privacy, rights });
        }
        for (file, rights) in &config.communities {
            secrets.communities.push((secret(file)?.into_bytes(), *rights));
        }
        Ok(secrets)
    }
}

fn secret(path: &Path) -> Result<String, SwitchdError> {
    use std::os::unix::fs::PermissionsExt as _;
    // A service manager that hands secrets over has a folder for them.
    let path = match std::env::var_os("CREDENTIALS_DIRECTORY") {
        Some(folder) if path.is_relative() => Path::new(&folder).join(path),
        _ => path.to_owned(),
    };
    let path = path.as_path();
    let shown = path.display().to_string();
    let metadata = fs::metadata(path).context("serve", &shown, "read a secret")?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(SwitchdError::Unsupported(format!("{shown}: others can read this secret; chmod 600 {shown}")));
    }
    if metadata.len() > SECRET_LEN_MAX {
        return Err(SwitchdError::Unsupported(format!("{shown}: is no password, with {} bytes", metadata.len())));
    }
    let text = fs::read_to_string(path).context("serve", &shown, "read a secret")?;
    let word = text.trim_end_matches(['\n', '\r']).to_owned();
    if word.is_empty() || word.contains('\n') {
        return Err(SwitchdError::Unsupported(format!("{shown}: must hold one line, the password")));
    }
    Ok(word)
}
