//! Runs a deployment against switches, one thread a switch, since each waits for its own answers.
//!
//! ```text
//!   Deployment ─ request ─▶ switch's thread ─ SETs ─▶ switch
//!       ▲──────── reply ─────────┘
//! ```

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use fabric::{SwitchId, VlanSet};

use super::{Deployment, Event, Fault, Fence, Journal, Mark, Outcome, Reading, Reply, Request};
use crate::SwitchConfig;

/// A switch that can be read, written and saved.
pub trait Driver: Send {
    /// Reads the whole state.
    ///
    /// # Errors
    /// [`Fault`].
    fn read(&mut self) -> Result<Reading, Fault>;

    /// Brings the switch from one state to another and leaves a mark, unless the fence has moved. With a `guard`, a switch
    /// that can takes the change back by itself when it is cut off for so long; when this returns it will not any more.
    ///
    /// # Errors
    /// [`Fault`].
    fn write(
        &mut self,
        before: &SwitchConfig,
        after: &SwitchConfig,
        mark: Mark,
        fence: Fence,
        guard: Option<Duration>,
    ) -> Result<Fence, Fault>;

    /// Makes the running state the one that the switch starts with, unless the fence has moved.
    ///
    /// # Errors
    /// [`Fault`].
    fn save(&mut self, fence: Fence) -> Result<Fence, Fault>;

    /// Names of ports that the switch has beyond those that it was connected for and that are in the way of a deployment
    /// with these VLANs: what they are set to has to do with them, or with VLANs of the ports it was connected for.
    ///
    /// # Errors
    /// [`Fault`].
    fn strangers(&mut self, vlans: &VlanSet) -> Result<Vec<String>, Fault>;

    /// Takes such ports in behind the others: they are read and written like them from now on.
    ///
    /// # Errors
    /// [`Fault`], naming a port that the switch does not have.
    fn adopt(&mut self, names: &[String]) -> Result<(), Fault>;
}

/// What a deployment needs beside switches.
pub trait Surroundings {
    /// Judges the states that the switches were found in, `devices[switch]`; what is fatal, if anything.
    ///
    /// # Errors
    /// What is fatal.
    fn judge(&mut self, devices: &[SwitchConfig]) -> Result<(), String>;

    /// Remembers a mark as our own where a crash cannot take it.
    ///
    /// # Errors
    /// Why that is impossible.
    fn note(&mut self, mark: Mark) -> Result<(), String>;

    /// Puts the journal where a crash cannot take it.
    ///
    /// # Errors
    /// Why that is impossible.
    fn record(&mut self, journal: &Journal) -> Result<(), String>;

    /// Tells a person what happens.
    fn tell(&mut self, event: &Event);

    /// Whether somebody has asked to stop.
    fn interrupted(&mut self) -> bool;
}

/// How often an interrupt is looked for.
const GLANCE: Duration = Duration::from_millis(100);

/// Runs a deployment to its end. `drivers[switch]`; one that could not be connected answers with its fault.
///
/// # Panics
/// If there is not one driver a switch.
pub fn run(
    deployment: &mut Deployment,
    drivers: Vec<Result<&mut dyn Driver, Fault>>,
    surroundings: &mut dyn Surroundings,
) -> Outcome {
    thread::scope(|scope| {
        let (answers, inbox) = mpsc::channel::<Reply>();
        let threads: Vec<mpsc::Sender<Request>> = (drivers.into_iter().enumerate())
            .map(|(index, mut driver)| {
                let (requests, orders) = mpsc::channel::<Request>();
                let answers = answers.clone();
                scope.spawn(move || {
                    for request in orders {
                        if answers.send(carry_out(SwitchId::new(index), &mut driver, request)).is_err() {
                            return;
                        }
                    }
                });
                requests
            })
            .collect();
        let mut open = 0_usize;
        loop {
            while let Some(request) = deployment.poll_request() {
                match request {
                    Request::Judge { devices } => {
                        let devices: Vec<SwitchConfig> = devices.iter().map(|device| (**device).clone()).collect();
                        deployment.handle_reply(Reply::Judged(surroundings.judge(&devices)));
                    }
                    Request::Note(mark) => deployment.handle_reply(Reply::Recorded(surroundings.note(mark))),
                    Request::Record(journal) => {
                        deployment.handle_reply(Reply::Recorded(surroundings.record(&journal)));
                    }
                    Request::Read { switch } | Request::Write { switch, .. } | Request::Save { switch, .. } => {
                        // A thread ends only when its sender is dropped, after this loop.
                        if threads[switch.index()].send(request).is_ok() {
                            open += 1;
                        }
                    }
                }
            }
            while let Some(event) = deployment.poll_event() {
                surroundings.tell(&event);
            }
            if open == 0 {
                if let Some(outcome) = deployment.outcome() {
                    return outcome.clone();
                }
            }
            match inbox.recv_timeout(GLANCE) {
                Ok(reply) => {
                    open -= 1;
                    deployment.handle_reply(reply);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if surroundings.interrupted() {
                deployment.handle_interrupt();
            }
        }
    })
}

fn carry_out(switch: SwitchId, driver: &mut Result<&mut dyn Driver, Fault>, request: Request) -> Reply {
    let driver = driver.as_mut().map_err(|fault| fault.clone());
    match request {
        Request::Write { before, after, mark, fence, guard, .. } => {
            Reply::Written(switch, driver.and_then(|driver| driver.write(&before, &after, mark, fence, guard)))
        }
        Request::Save { fence, .. } => Reply::Saved(switch, driver.and_then(|driver| driver.save(fence))),
        Request::Read { .. } | Request::Judge { .. } | Request::Note(_) | Request::Record(_) => {
            Reply::Read(switch, driver.and_then(|driver| driver.read()))
        }
    }
}
