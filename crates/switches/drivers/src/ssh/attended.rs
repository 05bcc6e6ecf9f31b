//! A way to a command line that is left when somebody asks to stop.
//!
//! ```text
//!   stop    nothing more is said; what was said before has a moment to be answered, then the conversation is given up
//!   hurry   the wait that is under way ends within a moment, as if the switch were silent
//! ```
//! Answers may take minutes, so every wait looks at the token again and again.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{Arrived, Channel};
use cancel::{ANSWER_MAX, Cancel, GLANCE, Since};
use switch_model::driver::Fault;

/// What a switch's driver and its conversations know of whoever may ask to stop.
#[derive(Clone, Debug, Default)]
pub(super) struct Attention(Arc<Mutex<(Cancel, Since)>>);

impl Attention {
    /// Listens to this token from now on.
    pub(super) fn set_cancel(&self, cancel: Cancel) {
        let now = cancel.now();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (cancel, now);
    }

    /// Begins a piece of work: whoever asked to stop before did not mean this.
    pub(super) fn begin(&self) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.1 = held.0.now();
    }

    /// Whether somebody has asked to stop since the present work began.
    pub(super) fn is_stopped(&self) -> bool {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.0.is_stopped(held.1)
    }

    /// Whether somebody has asked to stop, or to wait no longer, since the present work began.
    pub(super) fn is_hurried(&self) -> bool {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.0.is_hurried(held.1)
    }

    fn now(&self) -> Since {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.now()
    }

    fn is_hurried_since(&self, since: Since) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.is_hurried(since)
    }
}

/// A way that is left when somebody asks to stop.
pub(super) struct Attended<C> {
    channel: C,
    attention: Attention,
    /// When it is left, once somebody has asked.
    leave: Option<Instant>,
}

impl<C: Channel> Attended<C> {
    pub(super) fn new(channel: C, attention: Attention) -> Self {
        Self { channel, attention, leave: None }
    }
}

impl<C: Channel> Channel for Attended<C> {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.attention.is_stopped() {
            true => Err(io::ErrorKind::Interrupted.into()),
            false => self.channel.send(bytes),
        }
    }

    fn receive(&mut self, wait: Duration) -> io::Result<Arrived> {
        let (began, mut until, mut hurried) = (self.attention.now(), Instant::now() + wait, false);
        loop {
            let now = Instant::now();
            if self.attention.is_stopped() {
                if *self.leave.get_or_insert(now + ANSWER_MAX) <= now {
                    return Err(io::ErrorKind::Interrupted.into());
                }
            } else {
                self.leave = None;
                if !hurried && self.attention.is_hurried_since(began) {
                    hurried = true;
                    until = until.min(now + ANSWER_MAX);
                }
            }
            let left = until.saturating_duration_since(now);
            match self.channel.receive(left.min(GLANCE))? {
                Arrived::Nothing if left > GLANCE => {}
                arrived => return Ok(arrived),
            }
        }
    }

    fn complaint(&mut self) -> Fault {
        if self.attention.is_stopped() { Fault::Stopped } else { self.channel.complaint() }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicBool, thread};

    use super::*;

    /// A switch that is reached and never says anything, or never stops talking.
    struct Stuck {
        words: &'static [u8],
        asked: Arc<AtomicBool>,
    }

    impl Channel for Stuck {
        fn send(&mut self, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn receive(&mut self, wait: Duration) -> io::Result<Arrived> {
            self.asked.store(true, std::sync::atomic::Ordering::SeqCst);
            thread::sleep(wait.min(Duration::from_millis(1)));
            Ok(if self.words.is_empty() { Arrived::Nothing } else { Arrived::Bytes(self.words.to_vec()) })
        }

        fn complaint(&mut self) -> Fault {
            Fault::Silent
        }
    }

    /// An answer that would take hours is given up when somebody asks, and the next piece of work may ask again.
    #[test]
    fn a_wait_ends_when_somebody_asks_to_stop() {
        for words in [&b""[..], b"and so on"] {
            let (attention, cancel, asked) =
                (Attention::default(), Cancel::default(), Arc::new(AtomicBool::new(false)));
            attention.set_cancel(cancel.clone());
            let mut way = Attended::new(Stuck { words, asked: Arc::clone(&asked) }, attention.clone());
            let presser = thread::spawn(move || {
                while !asked.load(std::sync::atomic::Ordering::SeqCst) {
                    thread::yield_now();
                }
                cancel.stop();
            });
            while way.receive(Duration::from_secs(36_000)).is_ok() {}
            presser.join().expect("it presses");
            assert_eq!(way.complaint(), Fault::Stopped);
            assert!(way.send(b"show").is_err(), "nothing more is said");
            attention.begin();
            assert!(way.send(b"show").is_ok());
            assert_eq!(way.complaint(), Fault::Silent);
        }
    }

    /// On the way back a wait is cut short as by silence, and questions are still asked.
    #[test]
    fn a_wait_that_is_hurried_ends_in_silence() {
        let (attention, cancel, asked) = (Attention::default(), Cancel::default(), Arc::new(AtomicBool::new(false)));
        attention.set_cancel(cancel.clone());
        let mut way = Attended::new(Stuck { words: b"", asked: Arc::clone(&asked) }, attention);
        let presser = thread::spawn(move || {
            while !asked.load(std::sync::atomic::Ordering::SeqCst) {
                thread::yield_now();
            }
            cancel.hurry();
        });
        assert_eq!(way.receive(Duration::from_secs(36_000)).ok(), Some(Arrived::Nothing));
        presser.join().expect("it presses");
        assert!(way.send(b"show").is_ok());
    }
}
