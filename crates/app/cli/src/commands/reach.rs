//! How the command line says to reach switches.

use std::time::Duration;

use anyhow::Result;
use controller::{ConnectOptions, deploy_words::weak_algorithms_words};
use drivers::credentials::Keyring;

use crate::cli;

/// Reads the credentials that a command names.
///
/// # Errors
/// Bad input.
pub(super) fn keyring(reach: &cli::Reach) -> Result<Keyring> {
    Ok(controller::read_keyring(&reach.credentials, &|name| std::env::var(name).ok())?)
}

/// The options of a command.
pub(super) fn options(reach: &cli::Reach) -> ConnectOptions {
    ConnectOptions {
        port: reach.port,
        timeout: Duration::from_secs_f64(reach.timeout.clamp(0.01, 600.0)),
        attempts: reach.attempts,
        parallel: reach.parallel,
    }
}

/// Says toward which switches weak algorithms are allowed.
pub(super) fn warn_of_weak_algorithms(switches: &[&str]) {
    if let Some(words) = weak_algorithms_words(switches) {
        eprintln!("{words}");
    }
}
