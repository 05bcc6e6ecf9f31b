//! Where everything is below the prefix.
//!
//! ```text
//!   PREFIX format           the version of this layout
//!          records/KEY      a record: its value, or which blob holds it
//!          blobs/TOKEN      the key of the record that a long value was uploaded for
//!          chunks/TOKEN/N   that value, in parts
//!          writers/TOKEN    the last transaction of one writer
//! ```

use crate::end_of;

/// Names of keys.
pub(super) struct Keys {
    prefix: String,
}

/// The keys from the first up to the second, as etcd takes them.
pub(super) type KeyRange = (Vec<u8>, Vec<u8>);

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn format(&self) -> Vec<u8> {
        self.key("format")
    }

    pub(super) fn record(&self, key: &str) -> Vec<u8> {
        self.key(&format!("records/{key}"))
    }

    /// Records whose keys begin with `prefix` and come behind `after`.
    pub(super) fn records(&self, prefix: &str, after: Option<&str>) -> KeyRange {
        let (first, end) = self.all(&format!("records/{prefix}"));
        // The first key behind another one has one byte more, a zero.
        let behind = after.map(|after| [self.record(after), vec![0]].concat());
        (behind.unwrap_or_default().max(first), end)
    }

    /// The key of a record, from where it is in etcd.
    pub(super) fn key_of_record(&self, at: &[u8]) -> Option<String> {
        let key = at.strip_prefix(self.key("records/").as_slice())?;
        String::from_utf8(key.to_vec()).ok()
    }

    pub(super) fn blob(&self, token: &str) -> Vec<u8> {
        self.key(&format!("blobs/{token}"))
    }

    pub(super) fn chunk(&self, token: &str, number: usize) -> Vec<u8> {
        self.key(&format!("chunks/{token}/{number:06}"))
    }

    pub(super) fn chunks(&self, token: &str) -> KeyRange {
        self.all(&format!("chunks/{token}/"))
    }

    pub(super) fn writer(&self, token: &str) -> Vec<u8> {
        self.key(&format!("writers/{token}"))
    }

    /// All keys of a family: `blobs/`, `writers/`.
    pub(super) fn all(&self, family: &str) -> KeyRange {
        let first = format!("{}{family}", self.prefix);
        // Text never ends in bytes that have no successor.
        let end = end_of(&first).unwrap_or_default();
        (first.into_bytes(), end)
    }

    fn key(&self, name: &str) -> Vec<u8> {
        format!("{}{name}", self.prefix).into_bytes()
    }
}
