//! Signals that ask a program to stop.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::{Context, Result};
use controller::CancellationToken;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
    iterator::Signals,
    low_level,
};

/// Exit code of a program that Ctrl-C stopped.
pub(super) const INTERRUPTED: u8 = 130;

/// Whether the program was asked to stop.
#[derive(Clone)]
pub(super) struct Interrupt {
    pressed: Arc<AtomicBool>,
}

impl Interrupt {
    /// Watches for Ctrl-C from now on. The first asks to stop and keep what there is, and says so at once, whatever the program
    /// is busy with; the second ends the program. None is missed: what is caught waits until it is read.
    pub(super) fn watch() -> Result<Self> {
        static ANSWERED: AtomicBool = AtomicBool::new(false);
        let watch = Self { pressed: Arc::new(AtomicBool::new(false)) };
        let mut signals = Signals::new([SIGINT]).context("watch for Ctrl-C")?;
        let first = watch.clone();
        thread::spawn(move || {
            for _ in signals.forever() {
                if first.pressed.swap(true, Ordering::SeqCst) {
                    low_level::exit(i32::from(INTERRUPTED));
                }
                if !ANSWERED.swap(true, Ordering::SeqCst) {
                    eprintln!("espalier: stopping; Ctrl-C again to abort");
                }
            }
        });
        Ok(watch)
    }

    /// Watches for Ctrl-C, and for the SIGTERM of a service manager, in a program that ends in order however often it is
    /// asked.
    pub(super) fn watch_in_order() -> Result<Self> {
        let pressed = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&pressed)).context("watch for Ctrl-C")?;
        }
        Ok(Self { pressed })
    }

    /// Whether to stop.
    pub(super) fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::SeqCst)
    }

    /// Asks to stop, as a signal would.
    pub(super) fn press(&self) {
        self.pressed.store(true, Ordering::SeqCst);
    }

    /// A token that ends a request to the controller once it was asked to stop.
    pub(super) fn token(&self) -> CancellationToken {
        CancellationToken::of(Arc::clone(&self.pressed))
    }

    /// For what wants to look by itself.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.pressed
    }
}
