//! Labs of one name that do not outlive the program, whatever signal ends it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::{Context, Result};
use experiments::reproduce::{Leftover, take_down};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
    iterator::Signals,
};

use super::super::interrupt::INTERRUPTED;

/// A name for labs, which a thread takes down when a signal comes; then it ends the program.
pub(super) struct GuardedLab {
    name: String,
    is_interrupted: Arc<AtomicBool>,
}

impl GuardedLab {
    /// Watches for SIGINT and SIGTERM from now on.
    ///
    /// # Errors
    /// If signals cannot be watched for.
    pub(super) fn new() -> Result<Self> {
        let name = format!("papers{}", std::process::id());
        let mut signals = Signals::new([SIGINT, SIGTERM]).context("watch for signals")?;
        let is_interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&is_interrupted)).context("watch for signals")?;
        }
        let own = name.clone();
        thread::spawn(move || {
            if signals.forever().next().is_some() {
                clean_up(&own);
                std::process::exit(i32::from(INTERRUPTED));
            }
        });
        Ok(Self { name, is_interrupted })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Does not return once a signal has come: what fails because the lab was taken away is not reported, and the thread
    /// that takes it down ends the program.
    pub(super) fn wait_if_interrupted(&self) {
        while self.is_interrupted.load(Ordering::SeqCst) {
            thread::park();
        }
    }
}

fn clean_up(name: &str) {
    let left = take_down(name);
    for leftover in &left {
        match leftover {
            Leftover::Folder { path, error } => {
                eprintln!("espalier: interrupted; {} is left: {error}", path.display());
            }
            Leftover::Lab(error) => {
                eprintln!("espalier: interrupted; to clean up: espalier lab --name {name} down ({error})");
            }
        }
    }
    if left.is_empty() {
        eprintln!("espalier: interrupted; nothing is left behind");
    }
}
