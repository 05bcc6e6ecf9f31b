//! A process lets itself be asked.

use std::{
    fs, io,
    io::Write,
    os::unix::{
        fs::{DirBuilderExt, MetadataExt},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use crate::report::{Plain, Report};

/// How long one who asks may take to read.
const WRITE_MAX: Duration = Duration::from_secs(2);

/// Serves as long as it lives; dropping it removes the socket.
#[derive(Debug)]
pub struct Serving {
    path: PathBuf,
}

/// Serves this process's status in `directory`, on a thread of its own; `plain` tells what is not RI2N.
///
/// # Errors
/// If the directory or the socket cannot be made; the directory must belong to this user.
pub fn serve(directory: &Path, program: &str, plain: impl Fn() -> Plain + Send + 'static) -> io::Result<Serving> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    if fs::metadata(directory)?.uid() != nix::unistd::geteuid().as_raw() {
        let whose = format!("{} belongs to another user", directory.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, whose));
    }
    let path = directory.join(format!("{}.sock", std::process::id()));
    // An earlier process of this number may have been killed.
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    let serving = Serving { path };
    let program = program.to_owned();
    thread::Builder::new().name("ri2n-status".into()).stack_size(256 << 10).spawn(move || {
        for asked in listener.incoming() {
            let Ok(mut asked) = asked else { return };
            let _ = asked.set_write_timeout(Some(WRITE_MAX));
            let report = serde_json::to_vec(&Report::of_this_process(&program, plain())).unwrap_or_default();
            // Whoever asked may be gone.
            let _ = asked.write_all(&report);
        }
    })?;
    Ok(serving)
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
