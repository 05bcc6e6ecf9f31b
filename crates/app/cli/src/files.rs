//! Reading and writing topologies and plans.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use fabric::{
    Model, Models, Plan, Topology, TrafficMatrix,
    format::{
        exchange::{Format, ImportOptions, Imported, import},
        model::parse_model,
        native::write_native,
        plan::{ReadMode, read_plan, write_plan},
        traffic::read_matrix,
    },
};

use crate::{
    cli::OwnModels,
    failure::{BadInput, bad_input},
};

/// Reads a topology in any format that Espalier knows; `-` is standard input. Warnings go to standard error.
///
/// # Errors
/// Bad input if the file cannot be read or has errors.
pub(crate) fn read_topology(path: &Path, own: &OwnModels) -> Result<Topology> {
    read_topology_as(path, None, own)
}

/// Reads a topology in the format that is named, or that its content tells; see [`read_topology`].
///
/// # Errors
/// As [`read_topology`], and bad input if there is no such format.
pub(crate) fn read_topology_as(path: &Path, format: Option<&str>, own: &OwnModels) -> Result<Topology> {
    let format = format.map(str::parse::<Format>).transpose().map_err(|error| bad_input(error.to_string()))?;
    let options = ImportOptions { models: models(own, path)?, ..ImportOptions::default() };
    let Imported { topology, warnings } = import_files(&[path.to_owned()], format, &options)?;
    eprint!("{warnings}");
    Ok(topology)
}

/// Folder of models beside a topology.
const MODELS_FOLDER: &str = "models";
/// Most model files in a folder.
const MODELS_MAX: usize = 10_000;

/// The built-in models and one's own, which go before those of the same name: of the folder that was named, or of that
/// beside a topology if there is one.
///
/// # Errors
/// Bad input if the folder or a file of it cannot be read, or two files describe one model.
pub(crate) fn models(own: &OwnModels, topology: &Path) -> Result<Models> {
    let folder = match &own.models {
        Some(folder) => folder.clone(),
        None => {
            let beside = topology.parent().unwrap_or(Path::new("")).join(MODELS_FOLDER);
            if topology == Path::new("-") || !beside.is_dir() {
                return Ok(Models::built_in());
            }
            beside
        }
    };
    let wrong = |error: io::Error| bad_input(format!("{}: {error}", folder.display()));
    let mut paths = fs::read_dir(&folder)
        .and_then(|entries| entries.take(MODELS_MAX).map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>())
        .map_err(wrong)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let mut found: Vec<(Model, PathBuf)> = Vec::new();
    for path in paths {
        let (name, text) = read_text(&path)?;
        let model = parse_model(&text).map_err(|error| bad_input(format!("{name}: {error}")))?;
        if let Some((_, other)) = found.iter().find(|(known, _)| known.name == model.name) {
            return Err(bad_input(format!(
                "{name}: model {} is described in {} as well; keep one of them",
                model.name,
                other.display()
            )));
        }
        found.push((model, path));
    }
    Ok(Models::built_in().with(found.into_iter().map(|(model, _)| model)))
}

/// Imports files that together describe one cabling.
///
/// # Errors
/// Bad input if a file cannot be read, the format cannot be told, or the files have errors.
pub(crate) fn import_files(paths: &[PathBuf], format: Option<Format>, options: &ImportOptions) -> Result<Imported> {
    let files = paths.iter().map(|path| read_text(path)).collect::<Result<Vec<_>>>()?;
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let format = match (format, files.first()) {
        (Some(format), _) => format,
        (None, Some((name, text))) => Format::detect(name, text).ok_or_else(|| {
            bad_input(format!("{name}: cannot tell the format; name it with --from, which import and plan take"))
        })?,
        (None, None) => return Err(bad_input("no file is named")),
    };
    import(format, &files, options).map_err(|diagnostics| BadInput::Diagnostics(diagnostics).into())
}

/// Reads a text file, and says how it is called; `-` is standard input.
///
/// # Errors
/// Bad input if it cannot be read or is no text.
pub(crate) fn read_text(path: &Path) -> Result<(String, String)> {
    let text = files::text_of(path, read(path)?).map_err(|error| bad_input(error.to_string()))?;
    Ok((path.display().to_string(), text))
}

/// Reads a text file, or all of a folder by name, and says how each is called; `-` is standard input.
///
/// # Errors
/// Bad input if one cannot be read or is no text.
pub(crate) fn read_texts(path: &Path) -> Result<Vec<(String, String)>> {
    if !path.is_dir() {
        return Ok(vec![read_text(path)?]);
    }
    files::read_folder(path).map_err(|error| bad_input(error.to_string()))
}

/// Reads a traffic matrix; `-` is standard input. Warnings go to standard error.
///
/// # Errors
/// Bad input if the file cannot be read or has errors.
pub(crate) fn read_traffic(path: &Path, topology: &Topology) -> Result<TrafficMatrix> {
    let (name, text) = read_text(path)?;
    let (matrix, warnings) = read_matrix(&name, &text, topology).map_err(BadInput::Diagnostics)?;
    eprint!("{warnings}");
    Ok(matrix)
}

/// Reads a plan file; `-` is standard input.
///
/// # Errors
/// Bad input if it cannot be read or is no valid plan.
pub(crate) fn read_plan_file(path: &Path, mode: ReadMode) -> Result<Plan> {
    let bytes = read(path)?;
    read_plan(&bytes, mode).map_err(|error| {
        let name = path.display().to_string();
        let is_cabling = std::str::from_utf8(&bytes).is_ok_and(|text| Format::detect("", text).is_some());
        if is_cabling {
            return bad_input(format!(
                "{name}: cables, not a plan; plan them first: espalier plan {name} -o plan.json"
            ));
        }
        bad_input(format!("{name}: {error}"))
    })
}

/// Writes a topology in the native format; see [`write_file`].
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_topology(topology: &Topology, path: &Path) -> Result<()> {
    let text = write_native(topology);
    write_file(path, |out| out.write_all(text.as_bytes()))
}

/// Writes a plan; see [`write_file`].
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_plan_file(plan: &Plan, path: &Path) -> Result<()> {
    write_file(path, |out| write_plan(plan, out))
}

/// Writes a file as a whole or not at all, see [`files::write`]; `-` is standard output.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    if path == Path::new("-") {
        let mut out = io::BufWriter::new(io::stdout().lock());
        write(&mut out)?;
        return out.flush().map_err(Into::into);
    }
    Ok(files::write(path, write)?)
}

/// Files of a folder that appear together: each is written under another name, and all get their own once the last is
/// there. If it comes to nothing, they go, with folders that were made for them; what was in the folder before stays.
pub(crate) struct Drafts {
    root: PathBuf,
    /// Folders that were made, the outer ones first.
    folders: Vec<PathBuf>,
    /// Under which name each is now, and under which it is to be.
    files: Vec<(PathBuf, PathBuf)>,
}

impl Drafts {
    /// Makes the folder if it is not there.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn new(root: PathBuf) -> Result<Self> {
        let mut drafts = Self { root, folders: Vec::new(), files: Vec::new() };
        let root = drafts.root.clone();
        drafts.make_folder(&root).with_context(|| format!("make {}", root.display()))?;
        Ok(drafts)
    }

    /// Begins a file of this name, which may be in a folder of the folder.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn create(&mut self, name: &str) -> io::Result<fs::File> {
        let path = self.root.join(name);
        if let Some(folder) = path.parent() {
            self.make_folder(folder)?;
        }
        let partial = files::partial(&path);
        self.files.push((partial.clone(), path));
        fs::File::create(partial)
    }

    /// Gives every file its name.
    ///
    /// # Errors
    /// If that is impossible.
    pub(crate) fn publish(mut self) -> io::Result<()> {
        for (partial, path) in &self.files {
            fs::rename(partial, path)?;
        }
        self.files.clear();
        self.folders.clear();
        Ok(())
    }

    fn make_folder(&mut self, folder: &Path) -> io::Result<()> {
        let missing: Vec<&Path> =
            folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
        for path in missing.into_iter().rev() {
            fs::create_dir(path)?;
            self.folders.push(path.to_owned());
        }
        Ok(())
    }
}

impl Drop for Drafts {
    fn drop(&mut self) {
        // The write already failed; a leftover that cannot be removed either adds nothing to say. Folders that others use by now stay.
        for (partial, _) in &self.files {
            let _ = fs::remove_file(partial);
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    if path != Path::new("-") {
        return files::read(path).map_err(|error| bad_input(error.to_string()));
    }
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(files::FILE_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|error| bad_input(format!("{}: {error}", path.display())))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_folder_appear_together_or_not_at_all() {
        let base = std::env::temp_dir().join(format!("espalier-drafts-{}", std::process::id()));
        let root = base.join("new");
        let listed = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let mut names: Vec<String> =
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        let write = |drafts: &mut Drafts, name: &str| drafts.create(name).and_then(|mut file| file.write_all(b"x"));
        {
            let mut drafts = Drafts::new(root.clone()).expect("a folder");
            write(&mut drafts, "a").expect("a file");
            write(&mut drafts, "inner/b").expect("a file");
            assert!(!root.join("a").exists());
        }
        assert!(!base.exists(), "what came to nothing is gone, folders included");
        fs::create_dir_all(&root).expect("a folder");
        fs::write(root.join("kept"), "old").expect("a file");
        drop(Drafts::new(root.clone()).map(|mut drafts| write(&mut drafts, "kept")));
        assert_eq!(fs::read_to_string(root.join("kept")).expect("a file"), "old");
        let mut drafts = Drafts::new(root.clone()).expect("a folder");
        write(&mut drafts, "a").and_then(|()| write(&mut drafts, "inner/b")).expect("files");
        drafts.publish().expect("they get their names");
        assert_eq!(
            (listed(&root), listed(&root.join("inner"))),
            (vec!["a".into(), "inner".into(), "kept".into()], vec!["b".into()])
        );
        fs::remove_dir_all(&base).expect("it is ours");
    }
}
