//! `espalier render`: a plan in the switches' languages.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use dialects::{Difference, Folder, MANIFEST_FILE, Manifest, RenderRequest, TargetChoice};
use fabric::{
    ETHERNET_MTU_BYTES, Plan,
    format::plan::{ReadMode, plan_digest},
};

use super::{Output, say};
use crate::{
    cli,
    failure::bad_input,
    files::{Drafts, read_plan_file},
};

pub(super) fn run(args: &cli::Render, output: Output) -> Result<ExitCode> {
    let plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    let digest = plan_digest(&plan)?;
    let previous = args.since.as_ref().map(|path| read_plan_file(path, ReadMode::Strict)).transpose()?;
    let previous_digest = previous.as_ref().map(plan_digest).transpose()?;
    let since = previous.as_ref().zip(previous_digest.as_deref()).map(|(plan, digest)| Difference { plan, digest });
    let target = match args.target.as_str() {
        "auto" => TargetChoice::Auto,
        name => TargetChoice::Named(name.parse().map_err(|error: dialects::RenderError| bad_input(error.to_string()))?),
    };
    let request = RenderRequest { plan: &plan, digest: &digest, target, switch: args.switch.as_deref(), since };
    let manifest = write_rendered(&request, &args.output)?;
    if output == Output::Json {
        say!("{}", manifest.to_text().replace('\n', ""));
        return Ok(ExitCode::SUCCESS);
    }
    let files: usize = manifest.parts.iter().map(|part| part.files.len()).sum();
    let mut targets: Vec<String> = manifest
        .parts
        .iter()
        .map(|part| {
            let basis = part.target.basis().word();
            format!("{} (driver {basis})", part.target)
        })
        .collect();
    targets.sort();
    targets.dedup();
    if manifest.parts.is_empty() {
        say!("nothing changes on any switch");
    } else {
        let plural = if files == 1 { "" } else { "s" };
        say!("{files} file{plural} in {}: {}", args.output.display(), targets.join(", "));
    }
    if plan.policy.mtu_bytes > ETHERNET_MTU_BYTES {
        let mtu = plan.policy.mtu_bytes;
        say!(
            "MTU: not in these files; set {mtu} bytes or more on every port with a cable, before hosts send jumbo frames"
        );
    }
    for name in gone(previous.as_ref(), &plan) {
        say!("switch {name} is not in the new plan: disconnect it, or set it up anew");
    }
    Ok(ExitCode::SUCCESS)
}

/// Renders into a folder on disk, which gets a manifest. The files appear together: what keeps one from being written leaves
/// the folder as it was.
///
/// # Errors
/// Bad input if a switch's language cannot say what the plan asks of it; else what keeps the files from being written.
pub(super) fn write_rendered(request: &RenderRequest<'_>, folder: &Path) -> Result<Manifest> {
    let (manifest, disk) = stage_rendered(request, folder)?;
    publish_rendered(disk, folder)?;
    Ok(manifest)
}

/// Writes the files of a rendering and its manifest under other names; [`publish_rendered`] gives them theirs.
///
/// # Errors
/// As [`write_rendered`].
pub(super) fn stage_rendered(request: &RenderRequest<'_>, folder: &Path) -> Result<(Manifest, Disk)> {
    // Whatever is refused is refused before a file is touched.
    dialects::render(request, &mut Nowhere).map_err(|error| bad_input(error.to_string()))?;
    let mut disk = Disk::new(folder.to_owned())?;
    let parts = dialects::render(request, &mut disk).map_err(|error| anyhow::Error::new(error).context("render"))?;
    let (plan, since) = (request.digest.to_owned(), request.since.map(|since| since.digest.to_owned()));
    let manifest = Manifest { plan, since, parts };
    disk.begin(MANIFEST_FILE)?;
    disk.write_all(manifest.to_text().as_bytes())?;
    disk.flush()?;
    Ok((manifest, disk))
}

/// Puts a rendering in the place of an earlier one.
///
/// # Errors
/// If files of the earlier one cannot be removed, or new ones not renamed.
pub(super) fn publish_rendered(disk: Disk, folder: &Path) -> Result<()> {
    remove_rendered(folder)?;
    disk.finish().with_context(|| format!("write {}", folder.display()))
}

/// Removes what an earlier rendering left in the folder, so that no file of it is taken for one of this one.
fn remove_rendered(folder: &Path) -> Result<()> {
    let list = folder.join(MANIFEST_FILE);
    let Ok(text) = fs::read_to_string(&list) else { return Ok(()) };
    let manifest = Manifest::parse(&text).map_err(|error| bad_input(format!("{}: {error}", list.display())))?;
    let files = manifest.parts.iter().flat_map(|part| &part.files).map(|file| folder.join(file));
    for path in files.chain([list]) {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(anyhow::Error::new(error).context(format!("remove {}", path.display())));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Switches that only the previous plan knows.
fn gone<'a>(previous: Option<&'a Plan>, plan: &'a Plan) -> impl Iterator<Item = &'a str> {
    let switches = previous.into_iter().flat_map(|previous| previous.topology.switches());
    switches.map(|switch| switch.name.as_str()).filter(|name| plan.topology.find_switch(name).is_none())
}

/// A folder that forgets everything.
struct Nowhere;

impl Folder for Nowhere {
    fn begin(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A folder on disk, one file open at a time; its files appear together at the end.
pub(super) struct Disk {
    drafts: Drafts,
    file: Option<io::BufWriter<fs::File>>,
}

impl Disk {
    /// Makes the folder if it is not there.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(super) fn new(root: PathBuf) -> Result<Self> {
        Ok(Self { drafts: Drafts::new(root)?, file: None })
    }

    /// Writes out what is still in memory, and gives every file its name.
    ///
    /// # Errors
    /// If that is impossible; then nothing has changed in the folder, unless it could not be renamed.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.drafts.publish()
    }
}

impl Folder for Disk {
    fn begin(&mut self, name: &str) -> io::Result<()> {
        self.flush()?;
        self.file = Some(io::BufWriter::new(self.drafts.create(name)?));
        Ok(())
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().ok_or_else(|| io::Error::other("no file is begun"))?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}
