//! The address of espalierd's API: a Unix socket, or a URL and the token that authenticates the client.

use std::{
    fmt::{self, Display, Formatter},
    io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use hyper::{Uri, http::uri::Scheme};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    time::timeout,
};
use tokio_rustls::TlsConnector;

/// The socket of a daemon whose configuration names no other.
pub const SOCKET: &str = "/run/espalierd/espalierd.sock";
/// Environment variables that stand for options that are not given.
const CONTROLLER: &str = "ESPALIER_CONTROLLER";
const TOKEN_FILE: &str = "ESPALIER_TOKEN_FILE";
const CA: &str = "ESPALIER_CA";
/// How long a connection may take to open, TLS included.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// A daemon's API over the network, as options name it.
#[derive(Clone, Debug, Default)]
pub struct RemoteOptions {
    /// `https://HOST:PORT` or `http://ADDRESS:PORT`.
    pub controller: Option<String>,
    /// The file of a token.
    pub token_file: Option<PathBuf>,
    /// The file of the CA certificates that the daemon's is signed by; the system's unless given.
    pub ca: Option<PathBuf>,
}

impl RemoteOptions {
    /// What is not given is taken from the environment: `ESPALIER_CONTROLLER`, `ESPALIER_TOKEN_FILE`, `ESPALIER_CA`, as `env` says. An
    /// empty variable counts as none.
    ///
    /// # Errors
    /// A message, if a token or a certificate is given and no controller.
    pub fn or_environment(self, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let variable = |name| env(name).filter(|value| !value.is_empty());
        let controller = self.controller.or_else(|| variable(CONTROLLER));
        if controller.is_none() && (self.token_file.is_some() || self.ca.is_some()) {
            return Err(format!(
                "--token-file and --ca are for a controller over the network: name it with --controller URL or {CONTROLLER}"
            ));
        }
        Ok(Self {
            controller,
            token_file: self.token_file.or_else(|| variable(TOKEN_FILE).map(PathBuf::from)),
            ca: self.ca.or_else(|| variable(CA).map(PathBuf::from)),
        })
    }
}

/// The address of espalierd's API, and for a URL the token that authenticates the client.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// A Unix socket, whose users the system knows.
    Socket(PathBuf),
    /// A URL.
    Remote(Remote),
}

/// A daemon's API over the network.
#[derive(Clone, Debug)]
pub struct Remote {
    url: String,
    host: String,
    port: u16,
    token: Option<String>,
    tls: Option<Arc<ClientConfig>>,
}

impl Endpoint {
    /// The URL if there is one, else the socket. Reads the files that `remote` names.
    ///
    /// # Errors
    /// A message that names the option or the file, and the way out.
    pub fn new(socket: &Path, remote: &RemoteOptions) -> Result<Self, String> {
        match &remote.controller {
            None => Ok(Self::Socket(socket.to_owned())),
            Some(url) => Remote::new(url, remote.token_file.as_deref(), remote.ca.as_deref()).map(Self::Remote),
        }
    }

    pub(crate) fn token(&self) -> Option<&str> {
        if let Self::Remote(remote) = self { remote.token.as_deref() } else { None }
    }

    /// The `Host` header of requests.
    pub(crate) fn host(&self) -> String {
        match self {
            Self::Socket(_) => "espalierd".to_owned(),
            Self::Remote(Remote { host, port, .. }) if host.contains(':') => format!("[{host}]:{port}"),
            Self::Remote(Remote { host, port, .. }) => format!("{host}:{port}"),
        }
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self) -> Result<Box<dyn Stream>, String> {
        match self {
            Self::Socket(path) => {
                let stream = UnixStream::connect(path).await.map_err(|error| {
                    format!("{self}: {error}; is espalierd running? Name its socket with --socket, or its URL with --controller")
                })?;
                Ok(Box::new(stream))
            }
            Self::Remote(remote) => timeout(CONNECT_MAX, remote.connect())
                .await
                .unwrap_or_else(|_| Err(format!("no answer within {} s", CONNECT_MAX.as_secs())))
                .map_err(|why| format!("{self}: {why}")),
        }
    }
}

impl Display for Endpoint {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(formatter),
            Self::Remote(remote) => remote.url.fmt(formatter),
        }
    }
}

/// A connection, whatever carries it.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Remote {
    fn new(url: &str, token_file: Option<&Path>, ca: Option<&Path>) -> Result<Self, String> {
        let refused = |why: &str| {
            format!(
                "--controller {url}: {why}; write a URL such as https://controller.example.org:7434 or http://127.0.0.1:7433"
            )
        };
        let uri: Uri = url.parse().map_err(|error: hyper::http::uri::InvalidUri| refused(&error.to_string()))?;
        let is_encrypted = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(refused("no https:// or http://")),
        };
        let authority = uri.authority().ok_or_else(|| refused("no host"))?;
        if uri.path_and_query().is_some_and(|path| path.as_str() != "/") || authority.as_str().contains('@') {
            return Err(refused("more than a host and a port"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = match authority.as_str()[authority.host().len()..].strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| refused("no port"))?,
            None if is_encrypted => 443,
            None => 80,
        };
        let token = token_file.map(read_token).transpose()?;
        let is_here = host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        if token.is_some() && !is_encrypted && !is_here {
            return Err(format!("--controller {url}: the token would cross the network unencrypted; write https://"));
        }
        let tls = is_encrypted.then(|| tls::client_config(ca)).transpose().map_err(|error| error.to_string())?;
        Ok(Self { url: url.trim_end_matches('/').to_owned(), host, port, token, tls })
    }

    async fn connect(&self) -> Result<Box<dyn Stream>, String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream
            .map_err(|error| format!("{error}; is espalierd running, and does its `listen` name this address?"))?;
        let Some(config) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(self.host.clone()).map_err(|error| error.to_string())?;
        let connected = TlsConnector::from(Arc::clone(config)).connect(name, stream).await;
        connected.map(|stream| Box::new(stream) as Box<dyn Stream>).map_err(|error| tls_words(&error))
    }
}

/// Why TLS failed, and the way out.
fn tls_words(error: &io::Error) -> String {
    let why = error.get_ref().and_then(|why| why.downcast_ref::<rustls::Error>());
    match why {
        Some(rustls::Error::InvalidCertificate(_)) => {
            format!(
                "{error}; name the CA certificate that signed the controller's with --ca FILE, and its host as the certificate does"
            )
        }
        Some(rustls::Error::InvalidMessage(_)) => format!("no TLS is spoken there ({error}); write http://"),
        _ => format!("TLS: {error}"),
    }
}

fn read_token(path: &Path) -> Result<String, String> {
    let read = files::read_private(path, "this token").and_then(|bytes| files::text_of(path, bytes));
    let text = read.map_err(|error| error.to_string())?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "{}: a token is one word of ASCII characters; make one: openssl rand -hex 32",
            path.display()
        ));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn options_come_before_the_environment() {
        let env = |name: &str| (name != CA).then(|| format!("env {name}"));
        let given = RemoteOptions { token_file: Some("given".into()), ..RemoteOptions::default() };
        let found = given.clone().or_environment(&env).expect("options");
        assert_eq!(found.controller.as_deref(), Some("env ESPALIER_CONTROLLER"));
        assert_eq!((found.token_file, found.ca), (Some("given".into()), None));
        let refused = given.or_environment(&|_| Some(String::new())).expect_err("no controller");
        assert!(refused.contains("name it with --controller URL"), "{refused}");
    }

    #[test]
    fn a_url_names_scheme_host_and_port() {
        for (url, host, port, header) in [
            ("http://127.0.0.1:7433", "127.0.0.1", 7433, "127.0.0.1:7433"),
            ("http://[::1]:7433/", "::1", 7433, "[::1]:7433"),
            ("http://controller.example.org", "controller.example.org", 80, "controller.example.org:80"),
        ] {
            let found = Remote::new(url, None, None).expect(url);
            assert_eq!((found.host.as_str(), found.port), (host, port), "{url}");
            assert_eq!(Endpoint::Remote(found).host(), header);
        }
    }

    #[test]
    fn what_is_no_url_is_refused_with_an_example() {
        for (url, expected) in [
            ("controller:7434", "no https:// or http://"),
            ("ftp://controller", "no https:// or http://"),
            ("https://ada:x@controller", "more than a host and a port"),
            ("http://controller/v1/status", "more than a host and a port"),
            ("http://controller:99999", "no port"),
            ("", "empty string"),
        ] {
            let found = Remote::new(url, None, None).expect_err("it is refused");
            assert!(found.contains(expected) && found.contains("such as https://"), "{url}: {found}");
        }
    }

    #[test]
    fn a_token_is_read_from_a_private_file_and_never_sent_in_the_clear() {
        let path = std::env::temp_dir().join(format!("espalier-token-{}", std::process::id()));
        let write = |text: &str, mode: u32| {
            fs::write(&path, text).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
        };
        let token = |url: &str| Remote::new(url, Some(&path), None).map(|remote| remote.token);
        write("sesame\n", 0o600);
        assert_eq!(token("http://localhost:7433"), Ok(Some("sesame".to_owned())));
        let refused = token("http://192.0.2.1:7433").expect_err("it is refused");
        assert!(refused.ends_with("the token would cross the network unencrypted; write https://"), "{refused}");
        write("sesame\n", 0o644);
        let refused = token("http://localhost:7433").expect_err("it is refused");
        assert!(refused.ends_with(&format!("others can read this token; chmod 600 {}", path.display())), "{refused}");
        for text in ["", "open sesame\n", "sésame\n"] {
            write(text, 0o600);
            assert!(token("http://localhost:7433").is_err_and(|why| why.contains("one word")), "{text:?}");
        }
        fs::remove_file(&path).expect("it is ours");
    }
}
