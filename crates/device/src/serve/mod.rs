//! Rendered files for switches that load their configuration at boot: by TFTP or HTTP, read-only.
//!
//! ```text
//!   rendered.json ─ Catalog (in memory, by exact name) ─┬─ tftp   RFC 1350 with options (2347, 2348, 2349)
//!                                                       └─ http   GET and HEAD
//! ```
//! Nothing outside the catalog can be asked for, since no name that a switch sends is ever opened: all files are read
//! before the first question. Whoever reaches the server can read them, as both protocols have it, so they hold no secret.

mod http;
mod tftp;

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{self, Read as _},
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use thiserror::Error;

use crate::{MANIFEST_FILE, Manifest, ManifestError};

pub use http::{HttpServer, answer};
pub use tftp::{ReadRequest, Step, TftpError, TftpServer, Transfer};

/// Most bytes of all files together.
const CATALOG_LEN_MAX: u64 = 256 << 20;
/// Most transfers of one protocol at once; whoever comes then has to ask again.
const TRANSFERS_MAX: usize = 64;

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
        // What a stranger sends goes to a screen: without control characters, and not without end.
        let file: String = self.file.chars().filter(|c| !c.is_control()).take(100).collect();
        let (whom, protocol) = (self.whom, self.protocol);
        match &self.outcome {
            Ok(bytes) => write!(f, "{protocol} {whom}: {file}, {bytes} bytes"),
            Err(why) => write!(f, "{protocol} {whom}: {file}: {why}"),
        }
    }
}

/// One place among those that may be served at once.
struct Seat(Arc<AtomicUsize>);

impl Seat {
    fn take(taken: &Arc<AtomicUsize>) -> Option<Self> {
        // A seat too many is given back at once, when it is dropped.
        let before = taken.fetch_add(1, Ordering::SeqCst);
        let seat = Self(Arc::clone(taken));
        (before < TRANSFERS_MAX).then_some(seat)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
