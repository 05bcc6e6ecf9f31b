//! Who asks: users of the Unix socket by the system's word, users over TCP by their tokens.

use std::{collections::BTreeMap, fs, net::SocketAddr, path::Path};

use axum::{extract::connect_info::Connected, serve::IncomingStream};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tokio::net::{TcpListener, UnixListener};

use super::tls::TlsListener;

/// What a caller may do. Each but a host may do what those before it may; heartbeats are of hosts and admins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Send heartbeats, and nothing else.
    Host,
    /// Look.
    Viewer,
    /// Propose, approve, withdraw, and set maintenance marks.
    Approver,
    /// Everything.
    Admin,
}

/// Who asks, and what they may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Their name in the audit.
    pub name: String,
    /// Their role.
    pub role: Role,
}

/// The other end of a connection.
#[derive(Clone, Debug)]
pub enum Peer {
    /// A process of this user; none if the system does not say.
    Unix(Option<u32>),
    /// An address.
    Tcp(SocketAddr),
    /// An address, over TLS.
    Tls(SocketAddr),
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        Self::Unix(stream.io().peer_cred().ok().map(|credentials| credentials.uid()))
    }
}

impl Connected<IncomingStream<'_, TcpListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Self {
        Self::Tcp(*stream.remote_addr())
    }
}

impl Connected<IncomingStream<'_, TlsListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, TlsListener>) -> Self {
        Self::Tls(*stream.remote_addr())
    }
}

/// Tokens by the names of their owners; of each only its SHA-256 is known.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    tokens: BTreeMap<String, Token>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Token {
    /// The SHA-256 of the token, in hexadecimal digits.
    sha256: String,
    role: Role,
}

impl Tokens {
    /// Reads a file of tokens, which others must not be able to write.
    ///
    /// # Errors
    /// A message that names the file and the way out.
    pub fn read(path: &Path) -> Result<Self, String> {
        use std::os::unix::fs::MetadataExt as _;
        let in_file = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let mode = fs::metadata(path).map_err(|error| in_file(&error))?.mode();
        if mode & 0o022 != 0 {
            return Err(format!("{0}: others can write these tokens; chmod 640 {0}", path.display()));
        }
        let text = fs::read_to_string(path).map_err(|error| in_file(&error))?;
        Self::parse(&text).map_err(|why| in_file(&why))
    }

    /// Parses tokens: `[ada]`, `sha256 = "…"`, `role = "approver"`.
    ///
    /// # Errors
    /// A message that names the owner.
    pub fn parse(text: &str) -> Result<Self, String> {
        let tokens: BTreeMap<String, Token> = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        for (name, token) in &tokens {
            let digits = &token.sha256;
            if digits.len() != 64 || !digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
                return Err(format!(
                    "{name}: sha256 is 64 lower-case hexadecimal digits, as printf %s TOKEN | sha256sum prints them"
                ));
            }
        }
        Ok(Self { tokens })
    }

    /// Whose token it is.
    fn owner(&self, token: &str) -> Option<Caller> {
        let digest: String = Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        // Digests are compared, not tokens: how long that takes says nothing of a token.
        let found = self.tokens.iter().find(|(_, token)| token.sha256 == digest)?;
        Some(Caller { name: found.0.clone(), role: found.1.role })
    }
}

/// Who asks; none if they have to say so first. Over the Unix socket root and the daemon's own user, `own_uid`, are admins and whoever
/// else can open it is an approver. Over TCP a token says; without one this machine's users may look, but not over TLS.
pub fn caller(peer: &Peer, authorization: Option<&str>, tokens: &Tokens, own_uid: u32) -> Option<Caller> {
    match peer {
        Peer::Unix(uid) => Some(match uid {
            Some(0) => Caller { name: "root".to_owned(), role: Role::Admin },
            Some(uid) if *uid == own_uid => Caller { name: format!("uid {uid}"), role: Role::Admin },
            Some(uid) => Caller { name: format!("uid {uid}"), role: Role::Approver },
            None => Caller { name: "unknown".to_owned(), role: Role::Viewer },
        }),
        Peer::Tcp(address) | Peer::Tls(address) => match authorization {
            Some(header) => tokens.owner(header.strip_prefix("Bearer ")?.trim()),
            None if address.ip().is_loopback() && matches!(peer, Peer::Tcp(_)) => {
                Some(Caller { name: "anonymous".to_owned(), role: Role::Viewer })
            }
            None => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The SHA-256 of "open sesame".
    const TOKENS: &str =
        "[ada]\nrole = \"approver\"\nsha256 = \"41ef4bb0b23661e66301aac36066912dac037827b4ae63a7b1165a5aa93ed4eb\"\n";

    #[test]
    fn the_system_or_a_token_says_who_asks() {
        let tokens = Tokens::parse(TOKENS).expect("tokens");
        let role = |peer: &Peer, header: Option<&str>| caller(peer, header, &tokens, 7).map(|caller| caller.role);
        assert_eq!(role(&Peer::Unix(Some(0)), None), Some(Role::Admin));
        assert_eq!(role(&Peer::Unix(Some(7)), None), Some(Role::Admin));
        assert_eq!(role(&Peer::Unix(Some(1000)), Some("Bearer x")), Some(Role::Approver));
        assert_eq!(role(&Peer::Unix(None), None), Some(Role::Viewer));
        let (here, there) = (Peer::Tcp(([127, 0, 0, 1], 9).into()), Peer::Tcp(([192, 0, 2, 1], 9).into()));
        assert_eq!(role(&here, None), Some(Role::Viewer));
        let encrypted = Peer::Tls(([127, 0, 0, 1], 9).into());
        assert_eq!((role(&there, None), role(&encrypted, None)), (None, None));
        for peer in [&here, &there, &encrypted] {
            assert_eq!(role(peer, Some("Bearer open sesame")), Some(Role::Approver));
            assert_eq!(role(peer, Some("Bearer wrong")), None);
            assert_eq!(role(peer, Some("Basic open sesame")), None);
        }
    }

    #[test]
    fn tokens_that_are_none_are_refused() {
        for (text, expected) in [
            ("[ada]\nrole = \"king\"\nsha256 = \"\"\n", "unknown variant"),
            ("[ada]\nrole = \"admin\"\nsha256 = \"open sesame\"\n", "ada: sha256 is 64"),
            ("ada = 3\n", "invalid type"),
        ] {
            let found = Tokens::parse(text).expect_err("it is wrong");
            assert!(found.contains(expected), "{found}");
        }
    }
}
