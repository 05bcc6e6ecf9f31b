//! A client of the API over the Unix socket.

use std::path::Path;

use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use crate::api::routes::ErrorDocument;

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

/// Asks, and hands parts of the answer on as they come.
///
/// # Errors
/// What the daemon refuses, or why it is not reached; with the way out.
pub fn ask(socket: &Path, ask: Ask<'_>, take: &mut dyn FnMut(&[u8])) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(async {
        let stream = UnixStream::connect(socket).await.map_err(|error| {
            format!("{}: {error}; is espalierd running? Name its socket with --socket", socket.display())
        })?;
        let broken = |error: hyper::Error| format!("{}: {error}", socket.display());
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(ask.method)
            .uri(ask.path)
            .header(header::HOST, "espalierd")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(ask.body)))
            .map_err(|error| error.to_string())?;
        let mut answer = sender.send_request(request).await.map_err(broken)?;
        if !answer.status().is_success() {
            let status = answer.status();
            let body = answer.into_body().collect().await.map_err(broken)?.to_bytes();
            let document: Option<ErrorDocument> = serde_json::from_slice(&body).ok();
            return Err(document
                .map_or_else(|| format!("{status}: {}", String::from_utf8_lossy(&body)), |document| document.error));
        }
        while let Some(frame) = answer.frame().await {
            if let Some(data) = frame.map_err(broken)?.data_ref() {
                take(data);
            }
        }
        Ok(())
    })
}

/// Asks for a document.
///
/// # Errors
/// As [`ask`].
pub fn document<T: DeserializeOwned>(socket: &Path, question: Ask<'_>) -> Result<T, String> {
    let mut text = Vec::new();
    ask(socket, question, &mut |part| text.extend_from_slice(part))?;
    serde_json::from_slice(&text)
        .map_err(|error| format!("{}: the answer is not as this version knows it: {error}", socket.display()))
}

/// Hands changes of events on as they come, `take(change, event)`, each event as JSON, until the daemon ends.
///
/// # Errors
/// As [`ask`].
pub fn follow(socket: &Path, take: &mut dyn FnMut(&str, &str)) -> Result<(), String> {
    let mut rest = String::new();
    ask(socket, Ask::get("/v1/events/stream"), &mut |part| {
        rest.push_str(&String::from_utf8_lossy(part));
        while let Some(end) = rest.find("\n\n") {
            let message: String = rest.drain(..end + 2).collect();
            let field = |name: &str| message.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            if let (Some(change), Some(event)) = (field("event:"), field("data:")) {
                take(change, event);
            }
        }
    })
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
