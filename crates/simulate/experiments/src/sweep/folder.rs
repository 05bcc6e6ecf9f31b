//! The folder of a sweep's rows.

/// The folder of rows within a sweep's.
pub(super) const ROWS: &str = "rows";
/// The header, and then each row's digest and label in the order of the table.
pub(super) const MANIFEST: &str = "manifest.tsv";
