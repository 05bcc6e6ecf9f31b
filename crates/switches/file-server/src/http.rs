//! Just enough of HTTP (RFC 9110, 9112) to fetch a file: GET and HEAD, one request a connection. `httparse` reads requests.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{Catalog, ProtocolSeats, Seat, Served, Shortage, passes};

/// Longest request, in bytes.
const REQUEST_LEN_MAX: usize = 8192;
/// Most header fields of a request.
const FIELDS_MAX: usize = 128;
/// How long a request may take to arrive, and how long a piece of the answer to go.
const PATIENCE: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(200);

/// A socket that takes connections.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    catalog: Arc<Catalog>,
}

/// What is answered to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The name of the file that was asked for; empty where the request makes no sense.
    pub file: String,
    /// The status line and the header, with the empty line behind them.
    pub head: String,
    /// The file's content, if it is sent.
    pub body: Option<Arc<[u8]>>,
}

/// The answer to a request, from as much of it as has come; none as long as its head may go on.
pub fn answer(request: &[u8], catalog: &Catalog) -> Option<Answer> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut asked = httparse::Request::new(&mut fields);
    // Header fields are of no interest here, so a wrong one does no harm.
    let mut parser = httparse::ParserConfig::default();
    parser.ignore_invalid_headers_in_requests(true);
    let (method, target) = match parser.parse_request(&mut asked, request) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => (asked.method, asked.path.unwrap_or_default()),
        Err(_) => (None, ""),
    };
    let path = target.split(['?', '#']).next().unwrap_or_default();
    // A switch's name may have a sign in it that is written with % in its file's name already.
    let file = match catalog.find(path) {
        Some(_) => path.to_owned(),
        None => plain(path),
    };
    let (status, reason, content) = match method {
        None => (400, "Bad Request", None),
        Some("GET" | "HEAD") => match catalog.find(&file) {
            Some(content) => (200, "OK", Some(content)),
            None => (404, "Not Found", None),
        },
        Some(_) => (405, "Method Not Allowed", None),
    };
    let len = content.as_ref().map_or(0, |content| content.len());
    let allow = if status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {len}\r\n{allow}Connection: close\r\n\r\n"
    );
    Some(Answer { status, file, head, body: content.filter(|_| method == Some("GET")) })
}

/// A path without its percent signs.
fn plain(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digit = |at: usize| tail.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high << 4 | low) as u8);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl HttpServer {
    /// Opens the socket.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn open(address: SocketAddr, catalog: Arc<Catalog>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, catalog })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until it is told to stop.
    ///
    /// # Errors
    /// Those of the socket that do not pass by themselves.
    pub fn serve(&self, stop: &AtomicBool, tell: &(dyn Fn(Served) + Sync)) -> io::Result<()> {
        let (room, mut shortage, own) = (ProtocolSeats::new(), Shortage { said: None }, self.address()?);
        let (room, largest) = (&room, self.catalog.largest());
        thread::scope(|scope| {
            while !stop.load(Ordering::SeqCst) {
                let (stream, whom) = match self.listener.accept() {
                    Ok(accepted) => accepted,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        thread::sleep(GLANCE / 4);
                        continue;
                    }
                    // It went before we came.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                    Err(error) if passes(&error) => {
                        shortage.wait(&error, "http", own, tell);
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                let refused = |why: &str| {
                    tell(Served { whom, protocol: "http", file: String::new(), outcome: Err(why.to_owned()) });
                };
                let seat = match room.take(whom, largest) {
                    Ok(seat) => seat,
                    Err(why) => {
                        refused(why);
                        continue;
                    }
                };
                let talk = move || {
                    let (file, outcome) = self.talk(&stream, &seat, stop);
                    drop(seat);
                    tell(Served { whom, protocol: "http", file, outcome });
                };
                // A system that is short of threads is short of everything for a moment.
                if let Err(error) = thread::Builder::new().spawn_scoped(scope, talk) {
                    refused(&error.to_string());
                }
            }
            Ok(())
        })
    }

    fn talk(&self, stream: &TcpStream, seat: &Seat<'_>, stop: &AtomicBool) -> (String, Result<usize, String>) {
        match self.try_talk(stream, seat, stop) {
            Ok((file, 200, sent)) => (file, Ok(sent)),
            Ok((file, status, _)) => (file, Err(format!("refused with {status}"))),
            Err(error) => (String::new(), Err(error.to_string())),
        }
    }

    fn try_talk(&self, mut stream: &TcpStream, seat: &Seat<'_>, stop: &AtomicBool) -> io::Result<(String, u16, usize)> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(GLANCE))?;
        stream.set_write_timeout(Some(GLANCE))?;
        let until = Instant::now() + PATIENCE;
        let (mut request, mut buffer) = (Vec::new(), [0; 1024]);
        let Answer { status, file, head, body } = loop {
            if let Some(answer) = answer(&request, &self.catalog) {
                break answer;
            }
            if request.len() > REQUEST_LEN_MAX || Instant::now() > until || stop.load(Ordering::SeqCst) {
                return Err(io::Error::other("no request came"));
            }
            seat.keep(0).map_err(io::Error::other)?;
            match stream.read(&mut buffer) {
                Ok(0) => return Err(io::Error::other("it hung up")),
                Ok(len) => request.extend(&buffer[..len]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(error) => return Err(error),
            }
        };
        let body = body.as_deref().unwrap_or_default();
        let answer = [head.as_bytes(), body].concat();
        let (mut sent, mut until) = (0, Instant::now() + PATIENCE);
        while sent < answer.len() {
            seat.keep(sent).map_err(io::Error::other)?;
            match stream.write(&answer[sent..]) {
                Ok(0) => return Err(io::Error::other("it hung up")),
                Ok(len) => (sent, until) = (sent + len, Instant::now() + PATIENCE),
                Err(error) if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(error);
                }
                Err(_) if Instant::now() > until || stop.load(Ordering::SeqCst) => {
                    return Err(io::Error::other("it does not take the answer"));
                }
                Err(_) => {}
            }
        }
        Ok((file, status, body.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_there_is_given() {
        let mut catalog = Catalog::default();
        catalog.insert("1-retract/s 1.cfg", b"one".to_vec());
        catalog.insert("a%2Fb.cfg", b"two".to_vec());
        let check = |request: &str, status: u16, body: Option<&[u8]>| {
            let answer = answer(request.as_bytes(), &catalog).expect("a whole head");
            assert_eq!((answer.status, answer.body.as_deref()), (status, body), "{request}");
            assert!(answer.head.starts_with(&format!("HTTP/1.1 {status} ")) && answer.head.ends_with("\r\n\r\n"));
        };
        check("GET /1-retract/s%201.cfg?x HTTP/1.1\r\n\r\n", 200, Some(b"one"));
        check("GET /a%2Fb.cfg HTTP/1.0\r\n\r\n", 200, Some(b"two"));
        check("GET /a%252Fb.cfg HTTP/1.1\r\n\r\n", 200, Some(b"two"));
        check("HEAD /a%2Fb.cfg HTTP/1.1\r\n\r\n", 200, None);
        for path in ["/", "/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/a/b.cfg", "/%", "/%zz"] {
            check(&format!("GET {path} HTTP/1.1\r\n\r\n"), 404, None);
        }
        check("PUT /a%2Fb.cfg HTTP/1.1\r\n\r\n", 405, None);
        check("GET /a b HTTP/1.1\r\n\r\n", 400, None);
        check("GET /a%2Fb.cfg HTTP/2\r\n\r\n", 400, None);
        check("GET /a%2Fb.cfg\r\n\r\n", 400, None);
        check("\u{1}\r\n\r\n", 400, None);
    }

    #[test]
    fn heads_come_in_pieces_and_only_so_long() {
        let mut catalog = Catalog::default();
        catalog.insert("sw1.cfg", b"one".to_vec());
        let status = |request: &str| answer(request.as_bytes(), &catalog).map(|answer| answer.status);
        for ends in ["\r\n", "\n"] {
            let whole = format!("GET /sw1.cfg HTTP/1.1{ends}Host: 192.0.2.1{ends}no field{ends}{ends}");
            for len in 0..whole.len() {
                assert_eq!(status(&whole[..len]), None, "{:?}", &whole[..len]);
            }
            assert_eq!(status(&whole), Some(200));
        }
        let fields = |count: usize| format!("GET /sw1.cfg HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(count));
        assert_eq!((status(&fields(FIELDS_MAX)), status(&fields(FIELDS_MAX + 1))), (Some(200), Some(400)));
    }
}
