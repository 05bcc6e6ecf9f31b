//! A link to an agent without a network: the time that passes is that of questions and of waiting.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use snmp::Link;
use switchd::agent::{Engine, Responder};

pub(crate) struct Wire<R> {
    agent: Arc<Mutex<Engine<R>>>,
    now_ms: Arc<Mutex<u64>>,
    question_ms: u64,
    back: VecDeque<Vec<u8>>,
}

impl<R> Wire<R> {
    /// A link on which every question takes so long.
    pub(crate) fn new(agent: &Arc<Mutex<Engine<R>>>, now_ms: &Arc<Mutex<u64>>, question_ms: u64) -> Self {
        Self { agent: Arc::clone(agent), now_ms: Arc::clone(now_ms), question_ms, back: VecDeque::new() }
    }
}

impl<R: Responder> Link for Wire<R> {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let mut now_ms = self.now_ms.lock().expect("no panic before");
        *now_ms += self.question_ms;
        let reply = self.agent.lock().expect("no panic before").handle_datagram(*now_ms, datagram);
        self.back.extend(reply.map(|reply| reply.datagram));
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> io::Result<Option<Vec<u8>>> {
        let datagram = self.back.pop_front();
        if datagram.is_none() {
            *self.now_ms.lock().expect("no panic before") += wait.as_millis() as u64;
        }
        Ok(datagram)
    }
}
