//! TLS as a client: which certificates it trusts, and its own, from files in PEM format.
#![forbid(unsafe_code)]

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use thiserror::Error;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, TlsProvider, parse_pem};

/// The certificates that Debian's package `ca-certificates` gathers.
const SYSTEM_CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

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
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::Specific(Arc::new(trusted)));
    let Some((certificate, key)) = client else { return Ok(config.build()) };
    let chain = certificates(certificate)?;
    Ok(config.client_cert(Some(ClientCert::new_with_certs(&chain, private_key(key)?))).build())
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, TlsFileError> {
    let certificate = |item| if let PemItem::Certificate(certificate) = item { Some(certificate) } else { None };
    let found: Vec<_> = items(path)?.into_iter().filter_map(certificate).collect();
    if found.is_empty() {
        return Err(TlsFileError::NoCertificate { path: path.to_owned() });
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKey<'static>, TlsFileError> {
    let key = |item| if let PemItem::PrivateKey(key) = item { Some(key) } else { None };
    items(path)?.into_iter().find_map(key).ok_or_else(|| TlsFileError::NoKey { path: path.to_owned() })
}

fn items(path: &Path) -> Result<Vec<PemItem<'static>>, TlsFileError> {
    let text = fs::read(path).map_err(|source| TlsFileError::Io { path: path.to_owned(), source })?;
    parse_pem(&text).collect::<Result<_, _>>().map_err(|why| TlsFileError::Pem { path: path.to_owned(), why })
}
