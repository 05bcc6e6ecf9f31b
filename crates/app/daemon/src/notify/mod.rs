//! Notifications of events to webhooks, programs and syslog servers.
//!
//! ```text
//!   manager ─ deliveries, kept with the events ─▶ deliver ─ due ─▶ webhook · program · syslog ─ delivered ─▶ removed
//!                                                                                        └ not ─▶ later, or failed
//! ```
//! A delivery is kept before it is tried, so that a restart loses none; after one a notification may arrive twice, with the same id.

mod syslog;
mod webhook;

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use controller::run_program;

use crate::{archive::ArchiveError, config::NotifyConfig, documents::Delivery, manager::Manager};

use self::webhook::Webhook;

/// How long one try may take.
const TRY_MAX: Duration = Duration::from_secs(20);
/// How soon it is noticed that a delivery is due, or that the daemon is to end.
const MOMENT: Duration = Duration::from_millis(200);

/// Why a try failed.
#[derive(Debug)]
struct NotDelivered {
    why: String,
    /// Whether it never will be.
    is_hopeless: bool,
}

impl NotDelivered {
    fn now(why: impl Into<String>) -> Self {
        Self { why: why.into(), is_hopeless: false }
    }
}

/// How a receiver is reached.
enum Transport {
    Webhook(Box<Webhook>),
    Program(Vec<String>),
    Syslog(SocketAddr),
}

/// A receiver, ready to be notified.
pub struct Receiver {
    name: String,
    transport: Transport,
}

impl Receiver {
    /// Reads what a configuration names.
    ///
    /// # Errors
    /// A message that names the receiver, and the file.
    pub fn new(config: &NotifyConfig) -> Result<Self, String> {
        let of_it = |why: String| format!("notify {:?}: {why}", config.name);
        let NotifyConfig { name, least: _, webhook, secret, ca, exec, syslog } = config;
        let transport = match (webhook, exec, syslog) {
            (Some(address), None, None) => {
                let webhook = Webhook::new(address, secret.as_deref(), ca.as_deref(), TRY_MAX);
                Transport::Webhook(Box::new(webhook.map_err(of_it)?))
            }
            (None, Some(words), None) => {
                let program = words.first().ok_or_else(|| of_it("exec names no program".to_owned()))?;
                if !Path::new(program).is_absolute() {
                    return Err(of_it(format!("exec: {program}: write the program with its whole path")));
                }
                Transport::Program(words.clone())
            }
            (None, None, Some(server)) => Transport::Syslog(*server),
            _ => return Err(of_it("write one of webhook, exec and syslog".to_owned())),
        };
        if name.is_empty() {
            return Err(of_it("the name is empty".to_owned()));
        }
        Ok(Self { name: name.clone(), transport })
    }

    fn notify(&self, delivery: &Delivery, now_s: u64) -> Result<(), NotDelivered> {
        match &self.transport {
            Transport::Webhook(webhook) => webhook.post(delivery, now_s),
            // It reads the delivery from its standard input, and accepts it by exiting with 0 in time.
            Transport::Program(words) => run_program(words, &delivery.body, TRY_MAX, &|| false)
                .map_err(|fault| NotDelivered::now(fault.to_string())),
            Transport::Syslog(server) => syslog::send(*server, delivery),
        }
    }
}

/// Sends what is due, until the daemon ends: to each receiver one delivery after the other, to all of them at the same time, so that
/// none waits for another that does not answer. `receivers` are those of the configuration in force.
pub fn deliver(manager: &Manager, receivers: &dyn Fn() -> Arc<Vec<Receiver>>, jitter: &dyn Fn() -> f64) {
    let busy = Mutex::new(BTreeSet::new());
    let busy = || busy.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        while !manager.is_stopping() {
            let due = manager.deliveries_due().unwrap_or_else(|error| {
                manager.store_failed(&error);
                Vec::new()
            });
            for delivery in due {
                if !busy().insert(delivery.to.clone()) {
                    continue;
                }
                let (receivers, jitter, busy) = (receivers(), jitter(), &busy);
                scope.spawn(move || {
                    let to = delivery.to.clone();
                    if let Err(error) = attempt(manager, &receivers, delivery, jitter) {
                        manager.store_failed(&error);
                    }
                    busy().remove(&to);
                });
            }
            manager.wait_for_deliveries(MOMENT);
        }
    });
}

fn attempt(manager: &Manager, receivers: &[Receiver], delivery: Delivery, jitter: f64) -> Result<(), ArchiveError> {
    let Some(receiver) = receivers.iter().find(|receiver| receiver.name == delivery.to) else {
        let why = format!("the configuration has no notify {:?} any more", delivery.to);
        return manager.delivery_failed(delivery, why, true, jitter);
    };
    match receiver.notify(&delivery, manager.now_s()) {
        Ok(()) => manager.delivered(&delivery),
        Err(NotDelivered { why, is_hopeless }) => {
            tracing::warn!(to = delivery.to, id = delivery.id, "notification not delivered: {why}");
            manager.delivery_failed(delivery, why, is_hopeless, jitter)
        }
    }
}
