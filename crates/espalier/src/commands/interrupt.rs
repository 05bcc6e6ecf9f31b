//! Ctrl-C: once to stop and keep what there is, twice to end at once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result};
use signal_hook::{consts::SIGINT, flag};

/// Exit code of a program that Ctrl-C stopped.
pub(super) const INTERRUPTED: u8 = 130;

/// Whether Ctrl-C was pressed.
#[derive(Clone)]
pub(super) struct Interrupt {
    pressed: Arc<AtomicBool>,
}

impl Interrupt {
    /// Watches from now on. A second Ctrl-C ends the program; files are written whole or not at all.
    pub(super) fn watch() -> Result<Self> {
        let pressed = Arc::new(AtomicBool::new(false));
        flag::register_conditional_shutdown(SIGINT, i32::from(INTERRUPTED), Arc::clone(&pressed))
            .context("watch for Ctrl-C")?;
        flag::register(SIGINT, Arc::clone(&pressed)).context("watch for Ctrl-C")?;
        Ok(Self { pressed })
    }

    /// Whether to stop.
    pub(super) fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::SeqCst)
    }
}
