//! The rows of all shards as one table.

use std::{fs, path::PathBuf};

use super::{
    csv::fields,
    folder::{MANIFEST, ROWS},
};
use crate::{Error, error::OnFile as _};

/// The rows of all shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The names of the columns, as a line of CSV.
    pub header: String,
    /// The rows that there are, each a line of CSV, in the order of the table.
    pub rows: Vec<String>,
    /// What a person calls each row that is missing, in the same order.
    pub missing: Vec<String>,
}

/// Collects the rows of one sweep from the folders of its shards, which may come in any order.
///
/// # Errors
/// [`Error::Request`], if a folder has no sweep or that of another description, or a row is damaged; [`Error::File`].
pub fn merge(folders: &[PathBuf]) -> Result<Merged, Error> {
    let mut manifests = Vec::new();
    for folder in folders {
        let path = folder.join(MANIFEST);
        if !path.exists() {
            return Err(Error::Request(format!("{}: no sweep was run into this folder", folder.display())));
        }
        manifests.push(files::read_text(&path)?);
    }
    if let Some(other) = manifests.iter().position(|manifest| *manifest != manifests[0]) {
        return Err(Error::Request(format!(
            "{} and {} are of different sweeps: run both with the same description and version",
            folders[0].display(),
            folders[other].display()
        )));
    }
    let mut lines = manifests.first().map(String::as_str).unwrap_or_default().lines();
    let header = lines.next().unwrap_or_default().to_owned();
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    for line in lines {
        let (digest, label) = line.split_once('\t').unwrap_or((line, ""));
        let mut files = folders.iter().map(|folder| folder.join(ROWS).join(format!("{digest}.csv")));
        match files.find(|file| file.exists()) {
            Some(file) => {
                let row = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
                let row = row.trim_end_matches('\n').to_owned();
                if fields(&row).len() != fields(&header).len() {
                    let why = format!("{}: damaged; remove it and run the sweep again", file.display());
                    return Err(Error::Request(why));
                }
                rows.push(row);
            }
            None => missing.push(label.to_owned()),
        }
    }
    Ok(Merged { header, rows, missing })
}
