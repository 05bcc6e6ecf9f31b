//! Runs a deployment against switches: as many threads as requests may be open at once, since each waits for an answer.
//!
//! ```text
//!   Deployment ─ request ─▶ queue ─▶ any free thread ─ SETs ─▶ switch
//!       ▲──────────── reply ───────────────┘
//! ```
//! A request that makes the program fail is answered by a fault like one that a switch refuses, so the others are brought back.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use fabric::SwitchId;

use super::{Deployment, Event, Journal, Outcome, Reason, Reply, SwitchRequest};
use cancel::Cancel;
use switch_model::{
    SwitchConfig,
    driver::{Driver, Fault},
    mark::Mark,
};

/// What a deployment needs beside switches.
pub trait Surroundings {
    /// Judges the states that the switches were found in, `devices[switch]`.
    ///
    /// # Errors
    /// All that is fatal.
    fn judge(&mut self, devices: &[SwitchConfig]) -> Result<(), Vec<String>>;

    /// Has all hosts that tag go to this one of the states that they pass through in a change under traffic, and returns once they have.
    ///
    /// # Errors
    /// [`Reason::Hosts`] or [`Reason::Interrupted`], if some may not be there.
    fn tell_hosts(&mut self, state: usize) -> Result<(), Reason>;

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

    /// Whether somebody has asked to stop since it was asked last.
    fn interrupted(&mut self) -> bool;
}

/// How often an interrupt is looked for.
const GLANCE: Duration = Duration::from_millis(100);

/// Runs a deployment to its end. `drivers[switch]`; one that could not be connected answers with its fault. `parallel_max`
/// threads at the most carry requests out. When somebody asks to stop, `cancel` tells drivers that share it.
///
/// # Panics
/// If there is not one driver a switch.
pub fn run(
    deployment: &mut Deployment,
    drivers: Vec<Result<&mut dyn Driver, Fault>>,
    surroundings: &mut dyn Surroundings,
    cancel: &Cancel,
) -> Outcome {
    let workers = drivers.len().min(deployment.order.parallel_max.max(1));
    let drivers: Vec<Mutex<Result<&mut dyn Driver, Fault>>> = drivers.into_iter().map(Mutex::new).collect();
    let (requests, queue) = mpsc::channel::<(SwitchId, SwitchRequest)>();
    let queue = Mutex::new(queue);
    thread::scope(|scope| {
        // Threads end when this is dropped, however the scope is left.
        let requests = requests;
        let (answers, inbox) = mpsc::channel::<Reply>();
        for _ in 0..workers {
            let answers = answers.clone();
            scope.spawn(|| work(&queue, &drivers, answers));
        }
        let started = Instant::now();
        let (mut open, mut wake) = (0_usize, None::<Instant>);
        loop {
            deployment.handle_time(started.elapsed());
            while let Some(request) = deployment.poll_request() {
                tell(deployment, surroundings);
                match request {
                    SwitchRequest::Hosts(state) => {
                        deployment.handle_reply(Reply::Hosts(surroundings.tell_hosts(state)));
                        deployment.handle_time(started.elapsed());
                    }
                    SwitchRequest::Judge { devices } => {
                        let devices: Vec<SwitchConfig> = devices.iter().map(|device| (**device).clone()).collect();
                        deployment.handle_reply(Reply::Judged(surroundings.judge(&devices)));
                    }
                    SwitchRequest::Note(mark) => deployment.handle_reply(Reply::Recorded(surroundings.note(mark))),
                    SwitchRequest::Record(journal) => {
                        deployment.handle_reply(Reply::Recorded(surroundings.record(&journal)));
                    }
                    SwitchRequest::Pause(time) => wake = Some(Instant::now() + time),
                    SwitchRequest::Read { switch }
                    | SwitchRequest::Write { switch, .. }
                    | SwitchRequest::Save { switch, .. }
                    | SwitchRequest::Look { switch, .. }
                    | SwitchRequest::Shut { switch, .. } => {
                        if requests.send((switch, request)).is_ok() {
                            open += 1;
                        }
                    }
                }
            }
            tell(deployment, surroundings);
            if open == 0 {
                if let Some(outcome) = deployment.outcome() {
                    return outcome.clone();
                }
            }
            let patience = wake.map_or(GLANCE, |wake| wake.saturating_duration_since(Instant::now()).min(GLANCE));
            match inbox.recv_timeout(patience) {
                Ok(reply) => {
                    open -= 1;
                    deployment.handle_time(started.elapsed());
                    deployment.handle_reply(reply);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if wake.is_some_and(|wake| wake <= Instant::now()) {
                wake = None;
                deployment.handle_time(started.elapsed());
                deployment.handle_reply(Reply::Paused);
            }
            if surroundings.interrupted() {
                if deployment.handle_interrupt() { cancel.stop() } else { cancel.hurry() }
            }
        }
    })
}

/// Tells what has happened since.
fn tell(deployment: &mut Deployment, surroundings: &mut dyn Surroundings) {
    while let Some(event) = deployment.poll_event() {
        surroundings.tell(&event);
    }
}

/// Carries requests out until there will be no more.
fn work(
    queue: &Mutex<mpsc::Receiver<(SwitchId, SwitchRequest)>>,
    drivers: &[Mutex<Result<&mut dyn Driver, Fault>>],
    answers: mpsc::Sender<Reply>,
) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((switch, request)) = next else { return };
        let failed = failed(switch, &request);
        let done = catch_unwind(AssertUnwindSafe(|| {
            let mut driver = drivers[switch.index()].lock().unwrap_or_else(PoisonError::into_inner);
            carry_out(switch, &mut driver, request)
        }));
        let reply = done.unwrap_or_else(|panic| failed(Fault::Panicked(words(&*panic))));
        if answers.send(reply).is_err() {
            return;
        }
    }
}

/// The reply by which a request fails.
fn failed(switch: SwitchId, request: &SwitchRequest) -> impl FnOnce(Fault) -> Reply + use<> {
    let reply = match request {
        SwitchRequest::Write { .. } => |switch, fault| Reply::Written(switch, Err(fault)),
        SwitchRequest::Save { .. } => |switch, fault| Reply::Saved(switch, Err(fault)),
        SwitchRequest::Look { .. } => |switch, fault| Reply::Looked(switch, Err(fault)),
        SwitchRequest::Shut { .. } => |switch, fault| Reply::Shut(switch, Err(fault)),
        _ => |switch, fault| Reply::Read(switch, Err(fault)),
    };
    move |fault| reply(switch, fault)
}

/// What a panic says.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a word".to_owned())
}

fn carry_out(switch: SwitchId, driver: &mut Result<&mut dyn Driver, Fault>, request: SwitchRequest) -> Reply {
    let driver = driver.as_mut().map_err(|fault| fault.clone());
    match request {
        SwitchRequest::Write { before, after, mark, fence, guard, .. } => {
            Reply::Written(switch, driver.and_then(|driver| driver.write(&before, &after, mark, fence, guard)))
        }
        SwitchRequest::Save { fence, .. } => Reply::Saved(switch, driver.and_then(|driver| driver.save(fence))),
        SwitchRequest::Look { addresses, .. } => {
            Reply::Looked(switch, driver.and_then(|driver| driver.look(addresses)))
        }
        SwitchRequest::Shut { ports, .. } => Reply::Shut(switch, driver.and_then(|driver| driver.shut(&ports))),
        SwitchRequest::Read { .. }
        | SwitchRequest::Judge { .. }
        | SwitchRequest::Hosts(_)
        | SwitchRequest::Note(_)
        | SwitchRequest::Record(_)
        | SwitchRequest::Pause(_) => Reply::Read(switch, driver.and_then(|driver| driver.read())),
    }
}
