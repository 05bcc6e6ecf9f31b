//! The way to a device: datagrams out, datagrams back.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

/// The way to one device.
pub trait Link {
    /// Sends a datagram.
    ///
    /// # Errors
    /// Those of the way itself; a datagram that gets lost is none.
    fn send(&mut self, datagram: &[u8]) -> io::Result<()>;

    /// The next datagram from the device, if one comes within `wait`.
    ///
    /// # Errors
    /// Those of the way itself.
    fn receive(&mut self, wait: Duration) -> io::Result<Option<Vec<u8>>>;
}

/// Longest datagram that is taken, in octets.
const DATAGRAM_LEN_MAX: usize = 65_507;

/// A UDP socket that hears one device alone.
#[derive(Debug)]
pub struct UdpLink {
    socket: UdpSocket,
    buffer: Vec<u8>,
}

impl UdpLink {
    /// Opens a socket toward a device.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn open(device: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = if device.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
        let socket = UdpSocket::bind(any)?;
        socket.connect(device)?;
        Ok(Self { socket, buffer: vec![0; DATAGRAM_LEN_MAX] })
    }
}

impl Link for UdpLink {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        match self.socket.send(datagram) {
            // Nobody listens there at the moment: as good as lost.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            result => result.map(drop),
        }
    }

    fn receive(&mut self, wait: Duration) -> io::Result<Option<Vec<u8>>> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.set_read_timeout(Some(left))?;
            match self.socket.recv(&mut self.buffer) {
                Ok(len) => return Ok(Some(self.buffer[..len].to_vec())),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => return Ok(None),
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::ConnectionRefused => std::thread::sleep(left.min(Duration::from_millis(20))),
                    _ => return Err(error),
                },
            }
        }
    }
}
