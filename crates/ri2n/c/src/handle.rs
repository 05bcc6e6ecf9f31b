//! What is behind a handle.
//!
//! ```text
//!  settings ─ bind ─ listen ─▶ listener ─ accept ─▶ a new handle: connection
//!           └ connect ───────▶ connection
//! ```

use std::{
    ffi::c_int,
    io,
    net::{Ipv4Addr, Shutdown, SocketAddr},
    os::fd::AsRawFd,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use libc::ssize_t;
use ri2n_io::{Config, Health, Key, Listener, Stream};

use crate::{code, option};

/// A socket of C.
pub struct Handle(Mutex<SocketState>);

struct SocketState {
    config: Config,
    bound: Option<SocketAddr>,
    receive_timeout: Option<Duration>,
    send_timeout: Option<Duration>,
    role: Role,
}

#[derive(Clone)]
enum Role {
    Fresh,
    /// Somebody is in `connect`.
    Connecting,
    Listener(Arc<Listener>),
    Connection(Arc<Stream>),
}

/// A value, or the code of an error.
type Answer<T> = Result<T, c_int>;

impl Handle {
    pub(crate) fn new() -> Self {
        Self::with(Role::Fresh, Config::default())
    }

    fn with(role: Role, config: Config) -> Self {
        Self(Mutex::new(SocketState { config, bound: None, receive_timeout: None, send_timeout: None, role }))
    }

    pub(crate) fn configure(&self, file: &str) -> Answer<c_int> {
        let mut state = self.fresh()?;
        state.config = Config::from_file(Path::new(file)).map_err(|_| code::CONFIG)?;
        Ok(0)
    }

    pub(crate) fn set_key(&self, key: &[u8]) -> Answer<c_int> {
        let key: [u8; 32] = key.try_into().map_err(|_| code::INVAL)?;
        self.fresh()?.config.keys = Key::new(key).into();
        Ok(0)
    }

    pub(crate) fn set(&self, option: c_int, value: i64) -> Answer<c_int> {
        let number = u64::try_from(value).map_err(|_| code::INVAL)?;
        let time = Duration::from_millis(number);
        let limit = (number > 0).then_some(time);
        let size = usize::try_from(number).map_err(|_| code::INVAL)?;
        match option {
            option::CONNECT_TIMEOUT if number > 0 => self.fresh()?.config.connect_timeout = time,
            option::KEEPALIVE => self.fresh()?.config.keepalive = limit,
            option::SEND_BUFFER if number > 0 => self.fresh()?.config.send_buffer = size,
            option::RECEIVE_BUFFER if number > 0 => self.fresh()?.config.receive_buffer = size,
            option::OUTAGE_DEADLINE if number > 0 => {
                let mut state = self.lock();
                state.config.outage_deadline = time;
                if let Role::Connection(stream) = &state.role {
                    stream.set_outage_deadline(time);
                }
            }
            option::RECEIVE_TIMEOUT | option::SEND_TIMEOUT => {
                let mut state = self.lock();
                if option == option::RECEIVE_TIMEOUT {
                    state.receive_timeout = limit;
                } else {
                    state.send_timeout = limit;
                }
                state.pass_time_limits();
            }
            _ => return Err(code::INVAL),
        }
        Ok(0)
    }

    pub(crate) fn get(&self, option: c_int) -> Answer<i64> {
        let state = self.lock();
        let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let limit = |time: Option<Duration>| time.map_or(0, ms);
        let size = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        Ok(match option {
            option::CONNECT_TIMEOUT => ms(state.config.connect_timeout),
            option::OUTAGE_DEADLINE => ms(state.config.outage_deadline),
            option::KEEPALIVE => limit(state.config.keepalive),
            option::RECEIVE_TIMEOUT => limit(state.receive_timeout),
            option::SEND_TIMEOUT => limit(state.send_timeout),
            option::SEND_BUFFER => size(state.config.send_buffer),
            option::RECEIVE_BUFFER => size(state.config.receive_buffer),
            option::LINKS | option::LINKS_GOOD => {
                let Role::Connection(stream) = &state.role else { return Err(code::NOTCONN) };
                let links = stream.status().links;
                let delivers = |health: Health| matches!(health, Health::Good | Health::Gray);
                size(links.iter().filter(|link| option == option::LINKS || delivers(link.health)).count())
            }
            _ => return Err(code::INVAL),
        })
    }

    pub(crate) fn bind(&self, address: SocketAddr) -> Answer<c_int> {
        self.fresh()?.bound = Some(address);
        Ok(0)
    }

    pub(crate) fn listen(&self) -> Answer<c_int> {
        let mut state = self.fresh()?;
        let address = state.bound.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into());
        let listener = Listener::bind(address, &state.config).map_err(|error| code::of(&error))?;
        state.role = Role::Listener(Arc::new(listener));
        Ok(0)
    }

    pub(crate) fn accept(&self, dont_wait: bool) -> Answer<(Self, SocketAddr)> {
        let (listener, config) = {
            let state = self.lock();
            let Role::Listener(listener) = &state.role else { return Err(code::INVAL) };
            (Arc::clone(listener), state.config.clone())
        };
        let accepted = if dont_wait { listener.try_accept() } else { listener.accept() };
        let (stream, peer) = accepted.map_err(|error| code::of(&error))?;
        Ok((Self::with(Role::Connection(Arc::new(stream)), config), peer))
    }

    pub(crate) fn connect(&self, address: SocketAddr) -> Answer<c_int> {
        let config = {
            let mut state = self.fresh()?;
            state.role = Role::Connecting;
            state.config.clone()
        };
        let connected = Stream::connect(address, &config);
        let mut state = self.lock();
        match connected {
            Ok(stream) => {
                state.role = Role::Connection(Arc::new(stream));
                state.pass_time_limits();
                Ok(0)
            }
            Err(error) => {
                state.role = Role::Fresh;
                Err(code::of(&error))
            }
        }
    }

    pub(crate) fn send(&self, bytes: &[u8], dont_wait: bool) -> Answer<ssize_t> {
        let stream = self.stream()?;
        if bytes.is_empty() {
            return Ok(0);
        }
        counted(if dont_wait { stream.try_write(bytes) } else { stream.write(bytes) })
    }

    pub(crate) fn receive(&self, into: &mut [u8], dont_wait: bool) -> Answer<ssize_t> {
        let stream = self.stream()?;
        counted(if dont_wait { stream.try_read(into) } else { stream.read(into) })
    }

    pub(crate) fn shutdown(&self, how: c_int) -> Answer<c_int> {
        let how = match how {
            libc::SHUT_RD => Shutdown::Read,
            libc::SHUT_WR => Shutdown::Write,
            libc::SHUT_RDWR => Shutdown::Both,
            _ => return Err(code::INVAL),
        };
        self.stream()?.shutdown(how).map(|()| 0).map_err(|error| code::of(&error))
    }

    pub(crate) fn flush(&self, timeout: Option<Duration>) -> Answer<c_int> {
        self.stream()?.flush_wait(timeout).map(|()| 0).map_err(|error| code::of(&error))
    }

    pub(crate) fn local(&self) -> Answer<SocketAddr> {
        let state = self.lock();
        match &state.role {
            Role::Listener(listener) => listener.local_addr().map_err(|error| code::of(&error)),
            Role::Connection(stream) => Ok(stream.local_addr()),
            Role::Fresh | Role::Connecting => state.bound.ok_or(code::NOTCONN),
        }
    }

    pub(crate) fn peer(&self) -> Answer<SocketAddr> {
        Ok(self.stream()?.peer_addr())
    }

    pub(crate) fn receive_descriptor(&self) -> Answer<c_int> {
        match &self.lock().role {
            Role::Listener(listener) => Ok(listener.ready_fd().as_raw_fd()),
            Role::Connection(stream) => stream.read_fd().map(|fd| fd.as_raw_fd()).map_err(|error| code::of(&error)),
            Role::Fresh | Role::Connecting => Err(code::NOTCONN),
        }
    }

    pub(crate) fn send_descriptor(&self) -> Answer<c_int> {
        self.stream()?.write_fd().map(|fd| fd.as_raw_fd()).map_err(|error| code::of(&error))
    }

    pub(crate) fn abort(&self) {
        if let Ok(stream) = self.stream() {
            stream.reset();
        }
    }

    fn lock(&self) -> MutexGuard<'_, SocketState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, if it may still be changed.
    fn fresh(&self) -> Answer<MutexGuard<'_, SocketState>> {
        let state = self.lock();
        if matches!(state.role, Role::Fresh) { Ok(state) } else { Err(code::ISCONN) }
    }

    fn stream(&self) -> Answer<Arc<Stream>> {
        match &self.lock().role {
            Role::Connection(stream) => Ok(Arc::clone(stream)),
            _ => Err(code::NOTCONN),
        }
    }
}

impl SocketState {
    fn pass_time_limits(&self) {
        if let Role::Connection(stream) = &self.role {
            stream.set_read_timeout(self.receive_timeout);
            stream.set_write_timeout(self.send_timeout);
        }
    }
}

fn counted(result: io::Result<usize>) -> Answer<ssize_t> {
    result.map(|count| count as ssize_t).map_err(|error| code::of(&error))
}
