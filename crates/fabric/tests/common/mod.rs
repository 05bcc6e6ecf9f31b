//! Where the sources of the workspace's crates are, for the tests that read them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The crates of the workspace: name and folder.
pub(crate) fn workspace_crates() -> BTreeMap<String, PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates stand in one folder");
    let (crates, groups): (Vec<_>, Vec<_>) = folders(folder).into_iter().partition(|path| is_crate(path));
    let grouped = groups.iter().flat_map(|group| folders(group));
    crates
        .into_iter()
        .chain(grouped)
        .map(|path| {
            let name = manifest(&path)["package"]["name"].as_str().expect("a name").to_owned();
            assert!(is_named_after(&path, &name), "{}: the folder's name does not tell crate {name}", path.display());
            (name, path)
        })
        .collect()
}

fn is_crate(folder: &Path) -> bool {
    folder.join("Cargo.toml").is_file()
}

/// Whether a crate's folder bears its name: `crates/fabric`, `crates/plan/verify`; in a group of one product, without the
/// product's prefix, its core as `core`: `crates/ri2n/core`, `crates/ri2n/io`. The programs' folders say what they are:
/// `crates/app/cli`, `crates/app/daemon`.
fn is_named_after(folder: &Path, name: &str) -> bool {
    let last = |path: &Path| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let (own, group) = (last(folder), last(folder.parent().expect("a crate stands in a folder")));
    own == name
        || name == format!("{group}-{own}")
        || own == "core" && name == group
        || [("app", "cli", "espalier"), ("app", "daemon", "espalierd")].contains(&(&group, &own, name))
}

/// The folders in a folder, in order.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut folders: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// The manifest of the crate in a folder.
pub(crate) fn manifest(path: &Path) -> toml::Table {
    let file = path.join("Cargo.toml");
    read(&file).parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Every Rust file under a folder, in order.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("a source folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The text of a file.
pub(crate) fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
