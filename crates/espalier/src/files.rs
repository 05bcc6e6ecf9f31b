//! Reading and writing topologies and plans.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use fabric::{
    Plan, Topology, Traffic,
    format::{
        exchange::{Format, ImportOptions, Imported, import},
        native::write_native,
        plan::{ReadMode, read_plan, write_plan},
        traffic::read_matrix,
    },
};

use crate::failure::{BadInput, bad_input};

/// Largest file that is read, in bytes: far beyond any cabling or plan.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// Reads a topology in any format that Espalier knows; `-` is standard input. Warnings go to standard error.
///
/// # Errors
/// Bad input if the file cannot be read or has errors.
pub(crate) fn read_topology(path: &Path) -> Result<Topology> {
    let Imported { topology, warnings } = import_files(&[path.to_owned()], None, &ImportOptions::default())?;
    eprint!("{warnings}");
    Ok(topology)
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
        (None, Some((name, text))) => Format::detect(name, text)
            .ok_or_else(|| bad_input(format!("{name}: cannot tell the format; name it with --from")))?,
        (None, None) => return Err(bad_input("no file is named")),
    };
    import(format, &files, options).map_err(|diagnostics| BadInput::Diagnostics(diagnostics).into())
}

/// Reads a text file, and says how it is called; `-` is standard input.
///
/// # Errors
/// Bad input if it cannot be read or is no text.
pub(crate) fn read_text(path: &Path) -> Result<(String, String)> {
    let text = String::from_utf8(read(path)?)
        .map_err(|error| bad_input(format!("{}: not a text file: {error}", path.display())))?;
    Ok((path.display().to_string(), text))
}

/// Reads a traffic matrix; `-` is standard input. Warnings go to standard error.
///
/// # Errors
/// Bad input if the file cannot be read or has errors.
pub(crate) fn read_traffic(path: &Path, topology: &Topology) -> Result<Traffic> {
    let (name, text) = read_text(path)?;
    let (matrix, warnings) = read_matrix(&name, &text, topology).map_err(BadInput::Diagnostics)?;
    eprint!("{warnings}");
    Ok(Traffic::Matrix(matrix))
}

/// Reads a plan file; `-` is standard input.
///
/// # Errors
/// Bad input if it cannot be read or is no valid plan.
pub(crate) fn read_plan_file(path: &Path, mode: ReadMode) -> Result<Plan> {
    read_plan(&read(path)?, mode).map_err(|error| bad_input(format!("{}: {error}", path.display())))
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

/// Writes a file as a whole: under another name first, and then into place, so that an interrupted run or a full disk
/// leaves the old file. `-` is standard output.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    if path == Path::new("-") {
        let mut out = io::BufWriter::new(io::stdout().lock());
        write(&mut out)?;
        return out.flush().map_err(Into::into);
    }
    // Devices and pipes cannot be replaced; they are written to directly.
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        let mut file =
            fs::OpenOptions::new().write(true).open(path).with_context(|| format!("open {}", path.display()))?;
        return write(&mut file).with_context(|| format!("write {}", path.display()));
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".partial-{}", std::process::id()));
    let partial = PathBuf::from(partial);
    let written = (|| {
        let mut file = io::BufWriter::new(fs::File::create(&partial)?);
        write(&mut file)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&partial, path)
    })();
    if written.is_err() {
        // The write already failed; a leftover that cannot be removed either adds nothing to say.
        let _ = fs::remove_file(&partial);
    }
    written.with_context(|| format!("write {}", path.display()))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let outcome = if path == Path::new("-") {
        io::stdin().lock().take(FILE_BYTES_MAX).read_to_end(&mut bytes)
    } else {
        fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes))
    };
    match outcome {
        Ok(_) => Ok(bytes),
        Err(error) => Err(bad_input(format!("{}: {error}", path.display()))),
    }
}
