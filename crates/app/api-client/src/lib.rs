//! espalierd's API: its documents, and a client of it over a Unix socket, TCP or TLS.
#![forbid(unsafe_code)]

pub mod documents;
mod endpoint;

use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, StatusCode, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::{runtime::Runtime, time::timeout};

use documents::ErrorDocument;
pub use endpoint::{Endpoint, Remote, RemoteOptions, SOCKET};

/// One request: what is asked, and the body.
pub struct Ask<'a> {
    /// GET, POST or DELETE.
    pub method: Method,
    /// The path and query, each part encoded.
    pub path: &'a str,
    /// The body; empty if there is none.
    pub body: Vec<u8>,
}

impl<'a> Ask<'a> {
    /// Reads something.
    pub fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, body: Vec::new() }
    }

    /// Removes something.
    pub fn delete(path: &'a str) -> Self {
        Self { method: Method::DELETE, path, body: Vec::new() }
    }

    /// Asks for something to be done.
    pub fn post(path: &'a str, body: Vec<u8>) -> Self {
        Self { method: Method::POST, path, body }
    }
}

impl Endpoint {
    /// Asks, and hands parts of the answer on as they come.
    ///
    /// # Errors
    /// What the daemon refuses, or why it is not reached; with the way out.
    pub fn ask(&self, ask: Ask<'_>, take: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        runtime()?.block_on(self.exchange(ask, take))
    }

    /// Asks, and heeds nothing of the answer but whether it is a refusal; waits for it at most so long.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn send(&self, ask: Ask<'_>, at_most: Duration) -> Result<(), String> {
        let late = |_| Err(format!("{self}: no answer within {} s", at_most.as_secs()));
        runtime()?.block_on(async { timeout(at_most, self.exchange(ask, &mut |_| {})).await.unwrap_or_else(late) })
    }

    async fn exchange(&self, ask: Ask<'_>, take: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let broken = |error: hyper::Error| format!("{self}: {error}");
        let stream = self.connect().await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(ask.method)
            .uri(ask.path)
            .header(header::HOST, self.host())
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(token) = self.token() {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Full::new(Bytes::from(ask.body))).map_err(|error| error.to_string())?;
        let mut answer = sender.send_request(request).await.map_err(broken)?;
        if !answer.status().is_success() {
            let status = answer.status();
            let body = answer.into_body().collect().await.map_err(broken)?.to_bytes();
            return Err(self.refusal(status, &body));
        }
        while let Some(frame) = answer.frame().await {
            if let Some(data) = frame.map_err(broken)?.data_ref() {
                take(data);
            }
        }
        Ok(())
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> String {
        if status == StatusCode::UNAUTHORIZED {
            return match self.token() {
                Some(_) => {
                    format!("{self}: the controller does not know this token; see `tokens` in its configuration")
                }
                None => format!("{self}: the controller asks for a token; name its file with --token-file FILE"),
            };
        }
        let document: Option<ErrorDocument> = serde_json::from_slice(body).ok();
        document
            .map_or_else(|| format!("{self}: {status}: {}", String::from_utf8_lossy(body)), |document| document.error)
    }

    /// Asks for a document.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn document<T: DeserializeOwned>(&self, ask: Ask<'_>) -> Result<T, String> {
        let mut text = Vec::new();
        self.ask(ask, &mut |part| text.extend_from_slice(part))?;
        serde_json::from_slice(&text)
            .map_err(|error| format!("{self}: the answer is not as this version knows it: {error}"))
    }

    /// Hands server-sent events on as they come, `take(event, data)`, until the daemon ends the stream.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn follow(&self, path: &str, take: &mut dyn FnMut(&str, &str)) -> Result<(), String> {
        let mut rest = Vec::new();
        self.ask(Ask::get(path), &mut |part| {
            rest.extend_from_slice(part);
            while let Some(end) = rest.windows(2).position(|pair| pair == b"\n\n") {
                let message: Vec<u8> = rest.drain(..end + 2).collect();
                let message = String::from_utf8_lossy(&message);
                let field = |name: &str| message.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                if let (Some(event), Some(data)) = (field("event:"), field("data:")) {
                    take(event, data);
                }
            }
        })
    }
}

fn runtime() -> Result<Runtime, String> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| format!("no runtime: {error}"))
}

/// A part of a path or a query, with everything encoded that is not a plain letter or digit.
pub fn encoded(text: &str) -> String {
    let mut safe = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => safe.push(char::from(byte)),
            byte => safe.push_str(&format!("%{byte:02X}")),
        }
    }
    safe
}
