//! An engine on a UDP socket.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

use super::{Engine, Responder};

/// Longest datagram that is read.
const DATAGRAM_LEN_MAX: usize = 65_535;
/// Most answers that wait for their time.
const LATE_MAX: usize = 1024;

/// An engine that answers on a socket.
pub struct Server<R> {
    engine: Engine<R>,
    socket: UdpSocket,
    since: Instant,
    late: Vec<(u64, SocketAddr, Vec<u8>)>,
    buffer: Vec<u8>,
}

impl<R: Responder> Server<R> {
    /// Answers on a socket from now on; the engine's time is counted from `since`.
    pub fn new(engine: Engine<R>, socket: UdpSocket, since: Instant) -> Self {
        Self { engine, socket, since, late: Vec::new(), buffer: vec![0; DATAGRAM_LEN_MAX] }
    }

    /// The engine.
    pub fn engine(&mut self) -> &mut Engine<R> {
        &mut self.engine
    }

    /// The socket, for whoever waits for several things at once.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// The engine's time.
    pub fn now_ms(&self) -> u64 {
        self.since.elapsed().as_millis() as u64
    }

    /// Takes what comes within `wait`, and sends what is due.
    ///
    /// # Errors
    /// What the socket says, but that nothing came or that somebody who asked is gone.
    pub fn step(&mut self, wait: Duration) -> io::Result<()> {
        self.send_due()?;
        let now_ms = self.now_ms();
        self.engine.responder().handle_tick(now_ms);
        let due_ms = self.late.iter().map(|(due_ms, ..)| due_ms.saturating_sub(self.now_ms())).min();
        let wait = due_ms.map_or(wait, |due_ms| wait.min(Duration::from_millis(due_ms)));
        self.socket.set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
        match self.socket.recv_from(&mut self.buffer) {
            Ok((len, from)) => {
                let now_ms = self.now_ms();
                if let Some(reply) = self.engine.handle_datagram(now_ms, &self.buffer[..len]) {
                    if reply.delay_ms == 0 {
                        self.send(&reply.datagram, from)?;
                    } else if self.late.len() < LATE_MAX {
                        self.late.push((now_ms + reply.delay_ms, from, reply.datagram));
                    }
                }
                self.send_due()
            }
            Err(error) if is_passing(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn send_due(&mut self) -> io::Result<()> {
        let now_ms = self.now_ms();
        let (mut due, later): (Vec<_>, Vec<_>) = self.late.drain(..).partition(|(at, ..)| *at <= now_ms);
        self.late = later;
        due.sort_by_key(|(at, ..)| *at);
        due.into_iter().try_for_each(|(_, to, datagram)| self.send(&datagram, to))
    }

    fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        match self.socket.send_to(datagram, to) {
            Err(error) if !is_passing(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// What a socket reports about others, not about itself.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable, TimedOut, WouldBlock};
    let kinds = [ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable, TimedOut, WouldBlock];
    kinds.contains(&error.kind())
}
