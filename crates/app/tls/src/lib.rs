//! TLS from files in PEM format: which certificates a client trusts, its own, and those of a server.
//!
//! ```text
//!   certificates, key ─ one reader of PEM ─┬─▶ tls_config       for requests by ureq
//!                                          ├─▶ client_config    for streams, TLS 1.2 and 1.3
//!                                          └─▶ server_config
//! ```
#![forbid(unsafe_code)]

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring::default_provider},
    pki_types::{CertificateDer, PrivateKeyDer},
};
use thiserror::Error;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, TlsProvider, parse_pem};

/// The certificates that Debian's package `ca-certificates` gathers.
const SYSTEM_CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The protocol inside TLS (ALPN).
const HTTP: &[u8] = b"http/1.1";

/// Why a file is of no use; the message names it.
#[derive(Debug, Error)]
pub enum TlsFileError {
    /// The system refuses.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Others can read a server's key, or it cannot be read.
    #[error(transparent)]
    Key(#[from] files::ReadError),
    /// It is not in PEM format.
    #[error("{}: {why}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: ureq::Error,
    },
    /// It has no certificate.
    #[error("{}: no certificate in PEM format; name another file", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// It has no private key.
    #[error("{}: no private key in PEM format; name another file", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// A certificate or key that TLS cannot use.
    #[error("{}: {why}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: rustls::Error,
    },
    /// A key of another certificate.
    #[error("{}: this is not the key of the first certificate in {}; name the key that belongs to it", key.display(), certificate.display())]
    Mismatch {
        /// The key's file.
        key: PathBuf,
        /// The certificate's file.
        certificate: PathBuf,
    },
}

/// Trusts servers whose certificates those of a file have signed, or are: the system's unless a file is given. Shows the
/// certificate of `client` to servers that ask for one; its private key is in the second file.
///
/// # Errors
/// [`TlsFileError`].
pub fn tls_config(ca_file: Option<&Path>, client: Option<(&Path, &Path)>) -> Result<TlsConfig, TlsFileError> {
    let trusted = certificates(ca_file.unwrap_or_else(|| Path::new(SYSTEM_CERTIFICATES)))?;
    let config = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(provider())
        .root_certs(RootCerts::Specific(Arc::new(trusted)));
    let Some((certificate, key)) = client else { return Ok(config.build()) };
    let chain = certificates(certificate)?;
    let key = private_key(key, &read(key)?)?;
    Ok(config.client_cert(Some(ClientCert::new_with_certs(&chain, key))).build())
}

/// Trusts servers as [`tls_config`] does, and shows no certificate of its own.
///
/// # Errors
/// [`TlsFileError`].
pub fn client_config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, TlsFileError> {
    let path = ca_file.unwrap_or_else(|| Path::new(SYSTEM_CERTIFICATES));
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates(path)?.iter().map(der));
    if added == 0 {
        return Err(TlsFileError::NoCertificate { path: path.to_owned() });
    }
    let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let config = config.expect("the provider has suites for TLS 1.2 and 1.3");
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![HTTP.to_vec()];
    Ok(Arc::new(config))
}

/// Shows clients the certificates of a file, the server's first. The file of its private key must be readable by its owner alone.
///
/// # Errors
/// [`TlsFileError`].
pub fn server_config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsFileError> {
    let chain = certificates(certificate)?.iter().map(der).collect();
    let pem = private_key(key, &files::read_private(key, "this private key")?)?;
    let no_key = || TlsFileError::NoKey { path: key.to_owned() };
    let pem = PrivateKeyDer::try_from(pem.der().to_vec()).map_err(|_| no_key())?;
    let config = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let config = config.expect("the provider has suites for TLS 1.2 and 1.3");
    let config = config.with_no_client_auth().with_single_cert(chain, pem);
    let mut config = config.map_err(|why| match why {
        rustls::Error::InconsistentKeys(_) => {
            TlsFileError::Mismatch { key: key.to_owned(), certificate: certificate.to_owned() }
        }
        rustls::Error::General(_) => TlsFileError::Unusable { path: key.to_owned(), why },
        why => TlsFileError::Unusable { path: certificate.to_owned(), why },
    })?;
    config.alpn_protocols = vec![HTTP.to_vec()];
    Ok(Arc::new(config))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(default_provider())
}

fn der(certificate: &Certificate<'static>) -> CertificateDer<'static> {
    CertificateDer::from(certificate.der().to_vec())
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, TlsFileError> {
    let certificate = |item| if let PemItem::Certificate(certificate) = item { Some(certificate) } else { None };
    let found: Vec<_> = items(path, &read(path)?)?.into_iter().filter_map(certificate).collect();
    if found.is_empty() {
        return Err(TlsFileError::NoCertificate { path: path.to_owned() });
    }
    Ok(found)
}

fn private_key(path: &Path, text: &[u8]) -> Result<PrivateKey<'static>, TlsFileError> {
    let key = |item| if let PemItem::PrivateKey(key) = item { Some(key) } else { None };
    items(path, text)?.into_iter().find_map(key).ok_or_else(|| TlsFileError::NoKey { path: path.to_owned() })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsFileError> {
    fs::read(path).map_err(|source| TlsFileError::Io { path: path.to_owned(), source })
}

fn items(path: &Path, text: &[u8]) -> Result<Vec<PemItem<'static>>, TlsFileError> {
    parse_pem(text).collect::<Result<_, _>>().map_err(|why| TlsFileError::Pem { path: path.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::PermissionsExt as _,
        process::{Command, Stdio},
    };

    use super::*;

    #[test]
    fn a_server_has_a_certificate_and_its_key_which_others_cannot_read() {
        let folder = std::env::temp_dir().join(format!("espalier-tls-{}", std::process::id()));
        fs::create_dir(&folder).expect("a fresh folder");
        let pairs = ["one", "other"].map(|name| {
            let pair = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
            let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost";
            let mut openssl = Command::new("openssl");
            openssl.args(words.split(' ')).arg("-out").arg(&pair.0).arg("-keyout").arg(&pair.1).stderr(Stdio::null());
            openssl.status().is_ok_and(|status| status.success()).then_some(pair)
        });
        let [Some((certificate, key)), Some((_, other))] = pairs else {
            eprintln!("tls: SKIPPED: openssl is missing; run tools/setup test");
            return;
        };
        let set_mode = |mode| fs::set_permissions(&key, fs::Permissions::from_mode(mode)).expect("its mode");
        let refused =
            |certificate: &Path, key: &Path| server_config(certificate, key).expect_err("it is refused").to_string();
        assert!(server_config(&certificate, &key).is_ok() && client_config(Some(&certificate)).is_ok());
        for (certificate, key, expected) in [
            (&certificate, &other, "other.key: this is not the key of the first certificate in "),
            (&certificate, &folder.join("none.key"), "none.key: No such file"),
            (&key, &key, "one.key: no certificate in PEM format; name another file"),
        ] {
            let found = refused(certificate, key);
            assert!(found.contains(expected), "{found}");
        }
        let found = client_config(Some(&key)).expect_err("it has no certificate").to_string();
        assert!(found.contains("one.key: no certificate"), "{found}");
        set_mode(0o640);
        let found = refused(&certificate, &key);
        assert!(found.contains("one.key: others can read this private key; chmod 600 "), "{found}");
        fs::copy(&certificate, &key).expect("a file");
        set_mode(0o600);
        let found = refused(&certificate, &key);
        assert!(found.contains("one.key: no private key in PEM format; name another file"), "{found}");
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
