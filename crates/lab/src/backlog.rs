//! Room for frames between devices.
//!
//! What a veth device receives waits in a queue of the processor, which drops beyond `net.core.netdev_max_backlog`: 1,000
//! frames by default, for all labs together. A broadcast of every host, or all shapers at once after a busy moment,
//! exceeds that, and the loss would look like the fabric's. While labs are up the bound is [`BACKLOG_FRAMES`]; the last
//! one to go restores what was there before. Without root the bound stays as it is.

use std::{fs, io, path::Path};

const PARAMETER: &str = "/proc/sys/net/core/netdev_max_backlog";
const BEFORE: &str = "/run/espalier/netdev_max_backlog";

/// A few hundred frames for each of a few hundred cables.
const BACKLOG_FRAMES: u32 = 100_000;

/// Raises the bound, once.
///
/// # Errors
/// If the value before cannot be noted.
pub(crate) fn raise() -> io::Result<()> {
    let before = fs::read_to_string(PARAMETER).unwrap_or_default();
    if Path::new(BEFORE).exists() || before.trim().parse::<u32>().is_ok_and(|frames| frames >= BACKLOG_FRAMES) {
        return Ok(());
    }
    fs::write(BEFORE, &before)?;
    if fs::write(PARAMETER, BACKLOG_FRAMES.to_string()).is_err() {
        // The parameter belongs to the machine's root, who is somebody else, or is out of sight.
        fs::remove_file(BEFORE)?;
    }
    Ok(())
}

/// Restores the bound; the last lab is gone.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn restore() -> io::Result<()> {
    match fs::read_to_string(BEFORE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        before => {
            fs::write(PARAMETER, before?)?;
            fs::remove_file(BEFORE)
        }
    }
}
