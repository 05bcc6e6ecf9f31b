//! Rendered files for switches that load their configuration at boot: by TFTP or HTTP, read-only.
//!
//! ```text
//!   rendered.json ─ Catalog (in memory, by exact name) ─┬─ tftp   RFC 1350 with options (2347, 2348, 2349)
//!                                                       └─ http   GET and HEAD
//! ```
//! Nothing outside the catalog can be asked for, since no name that a switch sends is ever opened: all files are read
//! before the first question. Whoever reaches the server can read them, as both protocols have it, so they hold no secret.
//! Nobody holds the others up: [`seats`] bounds what one client may have, and for how long. A server that is short of file
//! descriptors or memory waits and goes on.

#![forbid(unsafe_code)]

mod http;
pub mod seats;
mod tftp;

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{self, Read as _},
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use thiserror::Error;

use self::seats::{Admission, SeatId, Seats, time_limit_ms};
use dialects::{MANIFEST_FILE, Manifest, ManifestError};

pub use http::{Answer, HttpServer, answer};
pub use tftp::{ReadRequest, TftpError, TftpServer, Transfer, TransferAction};

/// Most bytes of all files together.
const CATALOG_LEN_MAX: u64 = 256 << 20;

/// Files by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    files: BTreeMap<String, Arc<[u8]>>,
}

/// Why a folder cannot be served.
#[derive(Debug, Error)]
pub enum CatalogError {
    /// A file cannot be read.
    #[error("{file}: {source}")]
    Read {
        /// Which.
        file: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It is no folder of rendered files.
    #[error("{file}: {source}; espalier render writes such a folder")]
    Manifest {
        /// The list of files.
        file: String,
        /// What is wrong with it.
        #[source]
        source: ManifestError,
    },
    /// There is too much.
    #[error("the files have more than {CATALOG_LEN_MAX} bytes together; serve fewer switches (render --switch)")]
    TooLarge,
}

impl Catalog {
    /// Reads the files that a folder's `rendered.json` lists, and no others.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn read(folder: &Path) -> Result<Self, CatalogError> {
        let mut left = CATALOG_LEN_MAX;
        let mut read = |name: &str| {
            let path = folder.join(name);
            let failed = |source| CatalogError::Read { file: path.display().to_string(), source };
            let mut content = Vec::new();
            fs::File::open(&path).and_then(|file| file.take(left + 1).read_to_end(&mut content)).map_err(failed)?;
            left = left.checked_sub(content.len() as u64).ok_or(CatalogError::TooLarge)?;
            Ok(content)
        };
        let text = read(MANIFEST_FILE)?;
        let manifest = Manifest::parse(&String::from_utf8_lossy(&text)).map_err(|source| CatalogError::Manifest {
            file: folder.join(MANIFEST_FILE).display().to_string(),
            source,
        })?;
        let mut catalog = Self::default();
        for name in manifest.parts.into_iter().flat_map(|part| part.files) {
            let content = read(&name)?;
            catalog.insert(&name, content);
        }
        Ok(catalog)
    }

    /// Adds a file.
    pub fn insert(&mut self, name: &str, content: Vec<u8>) {
        self.files.insert(name.to_owned(), content.into());
    }

    /// The file of this very name; a leading `/` does not count.
    pub fn find(&self, name: &str) -> Option<Arc<[u8]>> {
        self.files.get(name.strip_prefix('/').unwrap_or(name)).cloned()
    }

    /// How long the largest file is, in bytes.
    pub fn largest(&self) -> usize {
        self.files.values().map(|content| content.len()).max().unwrap_or(0)
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }
}

/// Something worth telling whoever watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Who asked.
    pub whom: SocketAddr,
    /// By which protocol.
    pub protocol: &'static str,
    /// For what.
    pub file: String,
    /// How many bytes were sent, or why none.
    pub outcome: Result<usize, String>,
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What a client sends goes to a screen: without control characters, and not without end.
        let file: String = self.file.chars().filter(|c| !c.is_control()).take(100).collect();
        let (whom, protocol) = (self.whom, self.protocol);
        match &self.outcome {
            Ok(bytes) => write!(f, "{protocol} {whom}: {file}, {bytes} bytes"),
            Err(why) => write!(f, "{protocol} {whom}: {file}: {why}"),
        }
    }
}

/// A seat among those that are served at once, and the clock of the protocol's server. It is free again when this is dropped.
struct Seat<'a> {
    room: &'a ProtocolSeats,
    id: SeatId,
    since: Instant,
    limit: Duration,
}

/// The seats of one protocol.
struct ProtocolSeats {
    seats: Mutex<Seats>,
    opened: Instant,
}

impl ProtocolSeats {
    fn new() -> Self {
        Self { seats: Mutex::default(), opened: Instant::now() }
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat for a transfer of at most so many bytes, or why there is none.
    fn take(&self, whom: SocketAddr, bytes: usize) -> Result<Seat<'_>, &'static str> {
        match self.seats().handle_request(self.opened.elapsed().as_millis() as u64, whom.ip()) {
            Admission::Seated(id) | Admission::Instead(id, _) => {
                let limit = Duration::from_millis(time_limit_ms(bytes as u64));
                Ok(Seat { room: self, id, since: Instant::now(), limit })
            }
            Admission::ClientFull => Err("too many transfers of this client at once"),
            Admission::Full => Err("too many transfers at once"),
        }
    }
}

impl Seat<'_> {
    /// So many bytes have arrived.
    ///
    /// # Errors
    /// Why the transfer ends.
    fn keep(&self, bytes: usize) -> Result<(), &'static str> {
        if !self.room.seats().handle_progress(self.id, bytes as u64) {
            return Err("it made room for others");
        }
        if self.since.elapsed() > self.limit { Err("it took too long") } else { Ok(()) }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.room.seats().handle_end(self.id);
    }
}

/// Whether an error of a listening socket passes by itself: the system is short of descriptors or memory, or one client
/// is gone. A server waits a moment and goes on.
fn passes(error: &io::Error) -> bool {
    // ENFILE, EMFILE, ENOBUFS, ENOMEM, EPERM (a firewall), EAGAIN, and what accept(2) passes on of a client's network.
    const CODES: [i32; 13] = [23, 24, 105, 12, 1, 11, 100, 101, 112, 113, 110, 111, 71];
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted)
        || error.raw_os_error().is_some_and(|code| CODES.contains(&code))
}

/// How long a server waits that is short of something.
const SHORTAGE_WAIT: Duration = Duration::from_millis(100);
/// How often it says so at most.
const SHORTAGE_SAID: Duration = Duration::from_secs(10);

/// Waits out a shortage, and tells of it now and then.
struct Shortage {
    said: Option<Instant>,
}

impl Shortage {
    fn wait(&mut self, error: &io::Error, protocol: &'static str, whom: SocketAddr, tell: &dyn Fn(Served)) {
        if self.said.is_none_or(|said| said.elapsed() > SHORTAGE_SAID) {
            self.said = Some(Instant::now());
            let outcome = Err(format!("{error}; waiting until that has passed"));
            tell(Served { whom, protocol, file: "-".to_owned(), outcome });
        }
        thread::sleep(SHORTAGE_WAIT);
    }
}
