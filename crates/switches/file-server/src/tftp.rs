//! Trivial File Transfer Protocol, reading only (RFC 1350), with options (RFC 2347): block size (2348), timeout and
//! size (2349).
//!
//! ```text
//!   RRQ "sw1.cfg" octet blksize=1428 ─▶          (port 69)
//!                     ◀─ OACK blksize=1428       (a port of its own from here on)
//!   ACK 0 ─▶ ◀─ DATA 1   ACK 1 ─▶ ◀─ DATA 2 … the last block is shorter
//! ```
//! A block goes out again only when nothing comes: an acknowledgement that comes twice is ignored, or each of the
//! following blocks would be sent twice (RFC 1123, 4.2.3.1).

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use super::{Catalog, ProtocolSeats, Seat, Served, Shortage, passes};

const RRQ: u16 = 1;
const WRQ: u16 = 2;
const DATA: u16 = 3;
const ACK: u16 = 4;
const ERROR: u16 = 5;
const OACK: u16 = 6;
/// Longest request; RFC 2347 allows no more.
const REQUEST_LEN_MAX: usize = 512;
const BLOCK_LEN: usize = 512;
/// Largest block that is agreed to, so that a datagram fits an Ethernet frame: some boot loaders put no fragments together.
const BLOCK_LEN_MAX: usize = 1428;
/// How often a block is sent before the reader counts as gone.
const ATTEMPTS_MAX: u32 = 5;
const TIMEOUT_S: u64 = 2;
/// Longest timeout that is agreed to. Longer ones are not, and the server's own holds (RFC 2349).
const TIMEOUT_S_MAX: u64 = 10;
/// Longest time between two looks at whether to stop.
const GLANCE: Duration = Duration::from_millis(200);

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TftpError {
    /// RFC 1350's number of it.
    pub code: u16,
    /// In words.
    pub message: &'static str,
}

impl TftpError {
    const NOT_FOUND: Self = Self { code: 1, message: "File not found" };
    const READ_ONLY: Self = Self { code: 2, message: "This server is read-only" };
    const ILLEGAL: Self = Self { code: 4, message: "Illegal TFTP operation" };
    const BUSY: Self = Self { code: 0, message: "Too many transfers at once; try again" };

    /// The datagram that says so.
    pub fn datagram(&self) -> Vec<u8> {
        let mut datagram = [ERROR.to_be_bytes(), self.code.to_be_bytes()].concat();
        datagram.extend(self.message.as_bytes());
        datagram.push(0);
        datagram
    }
}

/// A request to read a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// Its name, as it was sent.
    pub file: String,
    /// Line ends are to be those of a terminal.
    pub netascii: bool,
    /// Options, names in small letters, in their order.
    pub options: Vec<(String, String)>,
}

impl ReadRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// The refusal to answer with.
    pub fn parse(datagram: &[u8]) -> Result<Self, TftpError> {
        let (head, rest) = datagram.split_first_chunk::<2>().ok_or(TftpError::ILLEGAL)?;
        match u16::from_be_bytes(*head) {
            RRQ if datagram.len() <= REQUEST_LEN_MAX => {}
            WRQ => return Err(TftpError::READ_ONLY),
            _ => return Err(TftpError::ILLEGAL),
        }
        let body = rest.strip_suffix(&[0]).ok_or(TftpError::ILLEGAL)?;
        let mut words = body.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        let file = words.next().unwrap_or_default();
        let netascii = match words.next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "octet" => false,
            "netascii" => true,
            _ => return Err(TftpError::ILLEGAL),
        };
        let mut options = Vec::new();
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            options.push((name.to_ascii_lowercase(), value));
        }
        Ok(Self { file, netascii, options })
    }
}

/// One file on its way, without socket or clock.
#[derive(Debug)]
pub struct Transfer {
    content: Arc<[u8]>,
    block_len: usize,
    /// Between two sendings of a block.
    timeout: Duration,
    /// The block that is out; 0 is the answer to options.
    block: usize,
    agreed: Option<Vec<u8>>,
    attempts: u32,
}

/// What a transfer wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferAction {
    /// This datagram goes out, and its acknowledgement is awaited.
    Send(Vec<u8>),
    /// Nothing: what came was no news.
    Wait,
    /// All has arrived.
    Done,
    /// The reader is gone, or refuses.
    Failed(&'static str),
}

impl Transfer {
    /// Begins a transfer, with what of the options is agreed to.
    pub fn new(request: &ReadRequest, content: Arc<[u8]>) -> Self {
        let content = if request.netascii { terminal(&content) } else { content };
        let (mut block_len, mut timeout_s) = (BLOCK_LEN, TIMEOUT_S);
        let mut agreed = Vec::new();
        let mut agree = |name: &str, value: String| {
            agreed.extend(name.as_bytes());
            agreed.push(0);
            agreed.extend(value.as_bytes());
            agreed.push(0);
        };
        for (name, value) in &request.options {
            match (name.as_str(), value.parse::<u64>()) {
                ("blksize", Ok(len @ 8..=65_464)) => {
                    block_len = BLOCK_LEN_MAX.min(len as usize);
                    agree(name, block_len.to_string());
                }
                ("timeout", Ok(seconds @ 1..=TIMEOUT_S_MAX)) => {
                    timeout_s = seconds;
                    agree(name, seconds.to_string());
                }
                ("tsize", Ok(_)) => agree(name, content.len().to_string()),
                // What is not known is not mentioned, and so not agreed to.
                _ => {}
            }
        }
        let agreed = (!agreed.is_empty()).then_some(agreed);
        let block = usize::from(agreed.is_none());
        Self { content, block_len, timeout: Duration::from_secs(timeout_s), block, agreed, attempts: 1 }
    }

    /// The datagram that is out.
    pub fn datagram(&self) -> Vec<u8> {
        if let (0, Some(agreed)) = (self.block, &self.agreed) {
            return [OACK.to_be_bytes().as_slice(), agreed.as_slice()].concat();
        }
        let from = (self.block - 1) * self.block_len;
        let chunk = &self.content[from..self.content.len().min(from + self.block_len)];
        // Numbers begin again at 0 after 65,535.
        [DATA.to_be_bytes().as_slice(), &(self.block as u16).to_be_bytes(), chunk].concat()
    }

    /// How many bytes the reader has acknowledged.
    pub fn arrived(&self) -> usize {
        self.content.len().min(self.block.saturating_sub(1) * self.block_len)
    }

    /// Takes a datagram of the reader.
    pub fn handle_datagram(&mut self, datagram: &[u8]) -> TransferAction {
        let [a, b, c, d, ..] = *datagram else { return TransferAction::Wait };
        match u16::from_be_bytes([a, b]) {
            ACK if u16::from_be_bytes([c, d]) == self.block as u16 => {
                // The last block is not full, be it empty.
                if self.block > 0 && self.content.len() < self.block * self.block_len {
                    return TransferAction::Done;
                }
                self.block += 1;
                self.attempts = 1;
                TransferAction::Send(self.datagram())
            }
            ERROR => TransferAction::Failed("the reader gave up"),
            _ => TransferAction::Wait,
        }
    }

    /// Takes it that nothing came in time.
    pub fn handle_timeout(&mut self) -> TransferAction {
        if self.attempts >= ATTEMPTS_MAX {
            return TransferAction::Failed("the reader is gone");
        }
        self.attempts += 1;
        TransferAction::Send(self.datagram())
    }
}

/// A text with the line ends of a terminal (RFC 764).
fn terminal(content: &[u8]) -> Arc<[u8]> {
    let mut text = Vec::with_capacity(content.len() + content.len() / 32);
    for byte in content {
        match byte {
            b'\n' => text.extend(b"\r\n"),
            b'\r' => text.extend(b"\r\0"),
            byte => text.push(*byte),
        }
    }
    text.into()
}

/// A socket that takes requests.
#[derive(Debug)]
pub struct TftpServer {
    socket: UdpSocket,
    catalog: Arc<Catalog>,
}

impl TftpServer {
    /// Opens the socket.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn open(address: SocketAddr, catalog: Arc<Catalog>) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_read_timeout(Some(GLANCE))?;
        Ok(Self { socket, catalog })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until it is told to stop.
    ///
    /// # Errors
    /// Those of the socket that do not pass by themselves.
    pub fn serve(&self, stop: &AtomicBool, tell: &(dyn Fn(Served) + Sync)) -> io::Result<()> {
        let (room, mut shortage, own) = (ProtocolSeats::new(), Shortage { said: None }, self.address()?);
        let room = &room;
        let mut buffer = [0; REQUEST_LEN_MAX + 1];
        thread::scope(|scope| {
            while !stop.load(Ordering::SeqCst) {
                let (len, whom) = match self.socket.recv_from(&mut buffer) {
                    Ok(received) => received,
                    Err(error) if is_nothing(&error) => continue,
                    Err(error) if passes(&error) => {
                        shortage.wait(&error, "tftp", own, tell);
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                let refuse = |error: &TftpError, file: String| {
                    // A reader that does not get it asks again.
                    let _ = self.socket.send_to(&error.datagram(), whom);
                    tell(Served { whom, protocol: "tftp", file, outcome: Err(error.message.to_owned()) });
                };
                let request = match ReadRequest::parse(&buffer[..len]) {
                    Ok(request) => request,
                    Err(error) => {
                        refuse(&error, String::new());
                        continue;
                    }
                };
                let Some(content) = self.catalog.find(&request.file) else {
                    refuse(&TftpError::NOT_FOUND, request.file);
                    continue;
                };
                let sent = content.len();
                let seat = match room.take(whom, sent) {
                    Ok(seat) => seat,
                    Err(_) => {
                        refuse(&TftpError::BUSY, request.file);
                        continue;
                    }
                };
                let file = request.file.clone();
                let transfer = move || {
                    let outcome = self.send(whom, Transfer::new(&request, content), &seat, stop).map(|()| sent);
                    drop(seat);
                    tell(Served { whom, protocol: "tftp", file: request.file, outcome });
                };
                // A system that is short of threads is short of everything for a moment.
                if thread::Builder::new().spawn_scoped(scope, transfer).is_err() {
                    refuse(&TftpError::BUSY, file);
                }
            }
            Ok(())
        })
    }

    fn send(&self, whom: SocketAddr, mut transfer: Transfer, seat: &Seat<'_>, stop: &AtomicBool) -> Result<(), String> {
        let failed = |error: io::Error| error.to_string();
        let mut own = self.socket.local_addr().map_err(failed)?;
        own.set_port(0);
        let socket = UdpSocket::bind(own).map_err(|error| {
            // Without a socket of its own the refusal comes from the server's.
            let _ = self.socket.send_to(&TftpError::BUSY.datagram(), whom);
            error.to_string()
        })?;
        // Others' datagrams do not get in.
        socket.connect(whom).map_err(failed)?;
        socket.set_read_timeout(Some(GLANCE.min(transfer.timeout))).map_err(failed)?;
        let mut buffer = [0; BLOCK_LEN];
        let mut datagram = transfer.datagram();
        loop {
            if socket.send(&datagram).is_err() {
                return Err("the reader is gone".to_owned());
            }
            let until = std::time::Instant::now() + transfer.timeout;
            datagram = loop {
                seat.keep(transfer.arrived()).inspect_err(|_| drop(socket.send(&TftpError::BUSY.datagram())))?;
                let step = match socket.recv(&mut buffer) {
                    Ok(len) => transfer.handle_datagram(&buffer[..len]),
                    Err(error) if is_nothing(&error) && stop.load(Ordering::SeqCst) => {
                        return Err("the server was stopped".to_owned());
                    }
                    Err(error) if is_nothing(&error) && std::time::Instant::now() < until => TransferAction::Wait,
                    Err(error) if is_nothing(&error) => transfer.handle_timeout(),
                    Err(_) => TransferAction::Failed("the reader is gone"),
                };
                match step {
                    TransferAction::Send(datagram) => break datagram,
                    TransferAction::Wait => {}
                    TransferAction::Done => return Ok(()),
                    TransferAction::Failed(why) => return Err(why.to_owned()),
                }
            };
        }
    }
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(words: &str) -> Result<ReadRequest, TftpError> {
        let mut datagram = RRQ.to_be_bytes().to_vec();
        datagram.extend(words.replace(' ', "\0").as_bytes());
        datagram.push(0);
        ReadRequest::parse(&datagram)
    }

    /// A reader that hears and answers everything; what it got, and how large the largest block was.
    fn fetch(words: &str, content: &[u8]) -> (Vec<u8>, usize) {
        let mut transfer = Transfer::new(&request(words).expect("a request"), content.into());
        let (mut got, mut largest, mut out) = (Vec::new(), 0, transfer.datagram());
        loop {
            let kind = u16::from_be_bytes([out[0], out[1]]);
            let number = if kind == OACK { 0 } else { u16::from_be_bytes([out[2], out[3]]) };
            if kind == DATA {
                got.extend(&out[4..]);
                largest = largest.max(out.len() - 4);
            }
            let ack = [ACK.to_be_bytes(), number.to_be_bytes()].concat();
            match transfer.handle_datagram(&ack) {
                TransferAction::Send(next) => {
                    // The same acknowledgement once more changes nothing.
                    assert_eq!(transfer.handle_datagram(&ack), TransferAction::Wait);
                    out = next;
                }
                TransferAction::Done => return (got, largest),
                step => panic!("{step:?}"),
            }
        }
    }

    #[test]
    fn files_of_every_length_arrive() {
        for len in [0, 1, 511, 512, 513, 1024, 70_000] {
            let content: Vec<u8> = (0..len).map(|at| at as u8).collect();
            assert_eq!(fetch("f octet", &content).0, content, "{len}");
            assert_eq!(fetch("f octet blksize 8192 tsize 0 timeout 1 windowsize 4", &content).0, content, "{len}");
        }
        // A reader may not have the server wait for minutes.
        let patient = Transfer::new(&request("f octet timeout 255").expect("a request"), b"x".as_slice().into());
        assert_eq!((patient.timeout, patient.agreed), (Duration::from_secs(TIMEOUT_S), None));
        // More than 65,535 blocks: the numbers begin again.
        let content = vec![7; 66_000 * 8 + 3];
        assert_eq!(fetch("f octet blksize 8", &content), (content.clone(), 8));
        assert_eq!(fetch("f octet blksize 65464", &content).1, BLOCK_LEN_MAX);
        assert_eq!(fetch("f NetASCII", b"a\nb\rc\n").0, b"a\r\nb\r\0c\r\n");
    }

    #[test]
    fn what_is_no_request_to_read_is_refused() {
        assert_eq!(ReadRequest::parse(b"\0\x02f\0octet\0"), Err(TftpError::READ_ONLY));
        for datagram in [&b""[..], b"\0", b"\0\x01", b"\0\x01f\0octet", b"\0\x01f\0mail\0", b"\0\x04\0\x01", &[0; 600]]
        {
            assert_eq!(ReadRequest::parse(datagram), Err(TftpError::ILLEGAL), "{datagram:?}");
        }
        assert_eq!(request("f octet blksize").expect("a request").options, []);
    }

    #[test]
    fn a_reader_that_is_gone_is_given_up() {
        let mut transfer = Transfer::new(&request("f octet").expect("a request"), b"x".as_slice().into());
        let sent = (0..100).take_while(|_| matches!(transfer.handle_timeout(), TransferAction::Send(_))).count();
        assert_eq!(sent, ATTEMPTS_MAX as usize - 1);
        assert_eq!(transfer.handle_datagram(b"\0\x05\0\0\0"), TransferAction::Failed("the reader gave up"));
    }
}
