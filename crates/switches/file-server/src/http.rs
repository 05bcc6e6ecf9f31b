//! Just enough of HTTP (RFC 9110, 9112) to fetch a file: GET and HEAD, one question a connection.

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

use super::{Catalog, Room, Seat, Served, Shortage, passes};

/// Longest question, in bytes.
const QUESTION_LEN_MAX: usize = 8192;
/// How long a question may take to arrive, and how long a piece of the answer to go.
const PATIENCE: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(200);

/// A socket that takes connections.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    catalog: Arc<Catalog>,
}

/// What is answered to a question: the head, the body, the file's name, and the status.
pub fn answer(question: &str, catalog: &Catalog) -> (String, Option<Arc<[u8]>>, String, u16) {
    let line = question.lines().next().unwrap_or_default();
    let mut words = line.split(' ');
    let (method, target, version) = (words.next(), words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split(['?', '#']).next().unwrap_or_default();
    // A switch's name may have a sign in it that is written with % in its file's name already.
    let name = match catalog.find(path) {
        Some(_) => path.to_owned(),
        None => plain(path),
    };
    let (status, reason, content) = match method {
        _ if !version.starts_with("HTTP/1.") || words.next().is_some() => (400, "Bad Request", None),
        Some("GET" | "HEAD") => match catalog.find(&name) {
            Some(content) => (200, "OK", Some(content)),
            None => (404, "Not Found", None),
        },
        _ => (405, "Method Not Allowed", None),
    };
    let len = content.as_ref().map_or(0, |content| content.len());
    let allow = if status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {len}\r\n{allow}Connection: close\r\n\r\n"
    );
    (head, content.filter(|_| method == Some("GET")), name, status)
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
        let (room, mut shortage, own) = (Room::new(), Shortage { said: None }, self.address()?);
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
        let (mut question, mut buffer) = (Vec::new(), [0; 1024]);
        while !question.windows(4).any(|end| end == b"\r\n\r\n") && !question.windows(2).any(|end| end == b"\n\n") {
            if question.len() > QUESTION_LEN_MAX || Instant::now() > until || stop.load(Ordering::SeqCst) {
                return Err(io::Error::other("no question came"));
            }
            seat.keep(0).map_err(io::Error::other)?;
            match stream.read(&mut buffer) {
                Ok(0) => return Err(io::Error::other("it hung up")),
                Ok(len) => question.extend(&buffer[..len]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(error) => return Err(error),
            }
        }
        let (head, content, file, status) = answer(&String::from_utf8_lossy(&question), &self.catalog);
        let body = content.as_deref().unwrap_or_default();
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
        let check = |question: &str, status: u16, body: Option<&[u8]>| {
            let (head, content, _, found) = answer(question, &catalog);
            assert_eq!((found, content.as_deref()), (status, body), "{question}");
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")) && head.ends_with("\r\n\r\n"));
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
        check("\r\n", 400, None);
    }
}
