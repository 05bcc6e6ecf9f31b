//! Notifications: events told to webhooks, programs and syslog servers.
//!
//! ```text
//!   manager ─ letters, kept with the events ─▶ postman ─ due ─▶ webhook · program · syslog ─ taken ─▶ forgotten
//!                                                                                        └ not ─▶ later, or dead
//! ```
//! A letter is kept before anybody is told, so that a restart loses none; after one a letter may come twice, with the same id.

mod program;
mod syslog;
mod webhook;

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use crate::{config::NotifyConfig, documents::Letter, manager::Manager};

use self::webhook::Webhook;

/// How long one try may take.
const TRY_MAX: Duration = Duration::from_secs(20);
/// How soon it is noticed that a letter is due, or that the daemon is to end.
const MOMENT: Duration = Duration::from_millis(200);

/// Why a letter was not taken.
#[derive(Debug)]
struct NotTaken {
    why: String,
    /// Whether it never will be.
    is_hopeless: bool,
}

impl NotTaken {
    fn now(why: impl Into<String>) -> Self {
        Self { why: why.into(), is_hopeless: false }
    }
}

/// How somebody is told.
enum Means {
    Webhook(Box<Webhook>),
    Program(Vec<String>),
    Syslog(SocketAddr),
}

/// Somebody who is told of events, ready for it.
pub struct Receiver {
    name: String,
    means: Means,
}

impl Receiver {
    /// Reads what a configuration names.
    ///
    /// # Errors
    /// A message that names the receiver, and the file.
    pub fn new(config: &NotifyConfig) -> Result<Self, String> {
        let of_it = |why: String| format!("notify {:?}: {why}", config.name);
        let NotifyConfig { name, least: _, webhook, secret, ca, exec, syslog } = config;
        let means = match (webhook, exec, syslog) {
            (Some(address), None, None) => {
                let webhook = Webhook::new(address, secret.as_deref(), ca.as_deref(), TRY_MAX);
                Means::Webhook(Box::new(webhook.map_err(of_it)?))
            }
            (None, Some(words), None) => {
                let program = words.first().ok_or_else(|| of_it("exec names no program".to_owned()))?;
                if !Path::new(program).is_absolute() {
                    return Err(of_it(format!("exec: {program}: write the program with its whole path")));
                }
                Means::Program(words.clone())
            }
            (None, None, Some(server)) => Means::Syslog(*server),
            _ => return Err(of_it("write one of webhook, exec and syslog".to_owned())),
        };
        if name.is_empty() {
            return Err(of_it("the name is empty".to_owned()));
        }
        Ok(Self { name: name.clone(), means })
    }

    fn tell(&self, letter: &Letter, now_s: u64) -> Result<(), NotTaken> {
        match &self.means {
            Means::Webhook(webhook) => webhook.post(letter, now_s),
            Means::Program(words) => program::run(words, letter, TRY_MAX),
            Means::Syslog(server) => syslog::send(*server, letter),
        }
    }
}

/// Tells what is due, until the daemon ends. `receivers` are those of the configuration in force.
pub fn deliver(manager: &Manager, receivers: &dyn Fn() -> Arc<Vec<Receiver>>, luck: &dyn Fn() -> f64) {
    while !manager.is_stopping() {
        match manager.letters_due() {
            Ok(letters) => {
                for letter in letters {
                    if manager.is_stopping() {
                        return;
                    }
                    let done = tell(manager, &receivers(), letter, luck());
                    if let Err(error) = done {
                        manager.store_failed(&error);
                    }
                }
            }
            Err(error) => manager.store_failed(&error),
        }
        manager.wait_for_letters(MOMENT);
    }
}

fn tell(
    manager: &Manager,
    receivers: &[Receiver],
    letter: Letter,
    luck: f64,
) -> Result<(), crate::archive::ArchiveError> {
    let Some(receiver) = receivers.iter().find(|receiver| receiver.name == letter.to) else {
        let why = format!("the configuration has no notify {:?} any more", letter.to);
        return manager.letter_failed(letter, why, true, luck);
    };
    match receiver.tell(&letter, manager.now_s()) {
        Ok(()) => manager.letter_taken(&letter),
        Err(NotTaken { why, is_hopeless }) => {
            tracing::warn!(to = letter.to, id = letter.id, "not taken: {why}");
            manager.letter_failed(letter, why, is_hopeless, luck)
        }
    }
}
