//! The sender and receiver of [`measure`](super::measure).

use std::{
    collections::BTreeMap,
    io::{self, ErrorKind, Read, Write},
    net::{IpAddr, SocketAddr},
    num::NonZero,
    sync::{
        Barrier, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use socket2::{Domain, Protocol, Socket, Type};

use super::{LEAD_BYTES, Load, Pace, STALL, Transport, WINDOW_BYTES, payload_bytes};
use crate::{LabError, error::Context, layout::Layout, netns};

/// What became of one transfer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    pub(super) received_bytes: u64,
    pub(super) elapsed: Duration,
}

/// Runs all transfers; `outcomes[pair]`.
pub(super) fn run(
    layout: &Layout,
    pairs: &[(usize, usize)],
    load: &Load,
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<Outcome>, LabError> {
    let Load { bytes_per_pair, transport, .. } = *load;
    let sockets = open_sockets(layout, pairs, transport)?;
    let limit_bytes = match (transport, load.pace) {
        (Transport::Tcp, Pace::Together) => LEAD_BYTES,
        (Transport::Udp, _) | (_, Pace::Free) => u64::MAX,
    };
    let shared = Shared {
        bytes_per_pair,
        received_bytes: pairs.iter().map(|_| AtomicU64::new(0)).collect(),
        limit_bytes: AtomicU64::new(limit_bytes),
        finished: AtomicUsize::new(0),
        senders_left: AtomicUsize::new(pairs.len()),
        end: AtomicBool::new(bytes_per_pair == 0 || pairs.is_empty()),
        outcomes: Mutex::new(vec![Outcome::default(); pairs.len()]),
    };
    let workers = thread::available_parallelism().map_or(1, NonZero::get).min(16);
    let mut shares: Vec<Vec<Endpoint>> = (0..workers).map(|_| Vec::new()).collect();
    for endpoint in sockets {
        shares[endpoint.host() % workers].push(endpoint);
    }
    let start = Barrier::new(workers + 1);
    let (shared, start) = (&shared, &start);
    thread::scope(|scope| {
        let threads: Vec<_> = shares
            .into_iter()
            .map(|share| scope.spawn(move || ended(shared, serve(share, shared, transport, start))))
            .collect();
        start.wait();
        let watched = watch(layout, pairs, shared, load, progress);
        shared.end.store(true, Ordering::Release);
        for thread in threads {
            let served = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            served.context("measure", &layout.name, "move bytes")?;
        }
        watched
    })?;
    let outcomes = shared.outcomes.lock().expect("no worker panics with the outcomes").clone();
    Ok(outcomes)
}

/// A worker that fails ends the measurement: nobody else would send or receive in its place.
fn ended(shared: &Shared, served: io::Result<()>) -> io::Result<()> {
    if served.is_err() {
        shared.end.store(true, Ordering::Release);
    }
    served
}

struct Shared {
    bytes_per_pair: u64,
    /// `received_bytes[pair]`.
    received_bytes: Vec<AtomicU64>,
    /// What every transfer may have sent by now.
    limit_bytes: AtomicU64,
    finished: AtomicUsize,
    senders_left: AtomicUsize,
    end: AtomicBool,
    outcomes: Mutex<Vec<Outcome>>,
}

/// One end of a transfer; of a UDP receiver, the end of all that come to one host.
enum Endpoint {
    Send { host: usize, socket: Socket, chunk_bytes: usize, sent_bytes: u64 },
    Receive { host: usize, pair: usize, socket: Socket, got: Outcome },
    Gather { host: usize, socket: Socket, pairs: BTreeMap<IpAddr, (usize, Outcome)> },
}

impl Endpoint {
    fn host(&self) -> usize {
        match self {
            Self::Send { host, .. } | Self::Receive { host, .. } | Self::Gather { host, .. } => *host,
        }
    }

    fn socket(&self) -> &Socket {
        match self {
            Self::Send { socket, .. } | Self::Receive { socket, .. } | Self::Gather { socket, .. } => socket,
        }
    }
}

/// How long a connection may take: several tries, for hosts that first have to find each other.
const CONNECT: Duration = Duration::from_secs(10);

/// How long UDP receivers go on listening once all has been sent and nothing arrives.
const SILENCE: Duration = Duration::from_millis(500);

/// Send buffer of each UDP transfer: all of a host's together stay below a cable's queue.
const DATAGRAM_BUFFER_BYTES: usize = 32 << 10;

const GATHER_BUFFER_BYTES: usize = 4 << 20;

const CHUNK_BYTES: usize = 64 << 10;

fn open_sockets(layout: &Layout, pairs: &[(usize, usize)], transport: Transport) -> Result<Vec<Endpoint>, LabError> {
    let hosts = &layout.hosts;
    let in_host = |host: usize, step, work: &(dyn Fn() -> io::Result<Vec<Endpoint>> + Sync)| {
        netns::within(&hosts[host].namespace, work).and_then(|result| result).context(
            "measure",
            &hosts[host].name,
            step,
        )
    };
    let pairs_from = |host: usize| pairs.iter().filter(move |(source, _)| *source == host);
    let pairs_to = |host: usize| (0..pairs.len()).filter(move |pair| pairs[*pair].1 == host);
    let listeners: Vec<Socket> = (0..hosts.len())
        .map(|host| {
            let open = || listener(hosts[host].address, transport);
            netns::within(&hosts[host].namespace, open).and_then(|result| result).context(
                "measure",
                &hosts[host].name,
                "listen",
            )
        })
        .collect::<Result<_, _>>()?;
    let addresses: Vec<SocketAddr> = listeners
        .iter()
        .map(|socket| socket.local_addr().and_then(|address| address.as_socket().ok_or(ErrorKind::Unsupported.into())))
        .collect::<io::Result<_>>()
        .context("measure", &layout.name, "listen")?;
    let mut endpoints = thread::scope(|scope| {
        let connect = |host: usize| {
            in_host(host, "connect", &|| {
                pairs_from(host)
                    .map(|&(_, destination)| {
                        let socket = sender(hosts[host].address, addresses[destination], transport)?;
                        let header = if addresses[destination].is_ipv4() { 20 } else { 40 };
                        let chunk_bytes = match transport {
                            Transport::Tcp => CHUNK_BYTES,
                            Transport::Udp => payload_bytes(hosts[host].mtu_bytes, header, transport) as usize,
                        };
                        Ok(Endpoint::Send { host, socket, chunk_bytes, sent_bytes: 0 })
                    })
                    .collect()
            })
        };
        let threads: Vec<_> = (0..hosts.len()).map(|host| scope.spawn(move || connect(host))).collect();
        let mut endpoints = Vec::new();
        for thread in threads {
            endpoints.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok::<_, LabError>(endpoints)
    })?;
    for (host, listener) in listeners.into_iter().enumerate() {
        let mut by_source: BTreeMap<IpAddr, (usize, Outcome)> =
            pairs_to(host).map(|pair| (hosts[pairs[pair].0].address, (pair, Outcome::default()))).collect();
        match transport {
            Transport::Udp => endpoints.push(Endpoint::Gather { host, socket: listener, pairs: by_source }),
            Transport::Tcp => {
                while !by_source.is_empty() {
                    let (socket, peer) = listener.accept().context("measure", &hosts[host].name, "accept")?;
                    let peer = peer.as_socket().map(|peer| peer.ip());
                    // Nobody else is expected, but somebody else may run programs in the lab.
                    if let Some((pair, got)) = peer.and_then(|peer| by_source.remove(&peer)) {
                        endpoints.push(Endpoint::Receive { host, pair, socket, got });
                    }
                }
            }
        }
    }
    for endpoint in &endpoints {
        endpoint.socket().set_nonblocking(true).context("measure", &layout.name, "open sockets")?;
    }
    Ok(endpoints)
}

fn listener(address: IpAddr, transport: Transport) -> io::Result<Socket> {
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    match transport {
        Transport::Tcp => {
            let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
            // Accepted sockets inherit it, and the window scale of the handshake follows from it.
            socket.set_recv_buffer_size(WINDOW_BYTES)?;
            socket.set_read_timeout(Some(CONNECT))?;
            socket.bind(&SocketAddr::new(address, 0).into())?;
            socket.listen(1024)?;
            Ok(socket)
        }
        Transport::Udp => {
            let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
            socket.set_recv_buffer_size(GATHER_BUFFER_BYTES)?;
            socket.bind(&SocketAddr::new(address, 0).into())?;
            Ok(socket)
        }
    }
}

fn sender(own: IpAddr, address: SocketAddr, transport: Transport) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    match transport {
        Transport::Tcp => {
            let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
            socket.bind(&SocketAddr::new(own, 0).into())?;
            socket.connect_timeout(&address.into(), CONNECT)?;
            Ok(socket)
        }
        Transport::Udp => {
            let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
            socket.set_send_buffer_size(DATAGRAM_BUFFER_BYTES)?;
            socket.bind(&SocketAddr::new(own, 0).into())?;
            socket.connect(&address.into())?;
            Ok(socket)
        }
    }
}

/// Serves a share of the endpoints until all transfers have ended.
fn serve(mut endpoints: Vec<Endpoint>, shared: &Shared, transport: Transport, start: &Barrier) -> io::Result<()> {
    let prepared = prepare(&endpoints);
    let mut buffer = vec![0; CHUNK_BYTES];
    // Everybody passes the barrier, also whoever could not prepare.
    start.wait();
    let since = Instant::now();
    let epoll = prepared?;
    let mut events = vec![EpollEvent::empty(); 256];
    // Senders that are as far ahead as they may be, out of the epoll's sight until the limit rises.
    let mut ahead: Vec<usize> = Vec::new();
    let mut limit_bytes = 0;
    while !shared.end.load(Ordering::Acquire) {
        let timeout_ms: u16 = if ahead.is_empty() { 50 } else { 1 };
        let count = match epoll.wait(&mut events, EpollTimeout::from(timeout_ms)) {
            Err(nix::errno::Errno::EINTR) => 0,
            count => count?,
        };
        for event in &events[..count] {
            let index = event.data() as usize;
            match advance(&mut endpoints[index], shared, transport, &since, &mut buffer)? {
                Next::More => {}
                Next::Wait => {
                    epoll.delete(endpoints[index].socket())?;
                    ahead.push(index);
                }
                Next::End => epoll.delete(endpoints[index].socket())?,
            }
        }
        let risen = shared.limit_bytes.load(Ordering::Acquire);
        if risen > limit_bytes {
            limit_bytes = risen;
            for index in ahead.drain(..) {
                epoll.add(endpoints[index].socket(), EpollEvent::new(EpollFlags::EPOLLOUT, index as u64))?;
            }
        }
    }
    let mut outcomes = shared.outcomes.lock().expect("no worker panics with the outcomes");
    for endpoint in endpoints {
        match endpoint {
            Endpoint::Send { .. } => {}
            Endpoint::Receive { pair, got, .. } => outcomes[pair] = got,
            Endpoint::Gather { pairs, .. } => pairs.into_values().for_each(|(pair, got)| outcomes[pair] = got),
        }
    }
    Ok(())
}

fn prepare(endpoints: &[Endpoint]) -> io::Result<Epoll> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    for (index, endpoint) in endpoints.iter().enumerate() {
        let flags = match endpoint {
            Endpoint::Send { .. } => EpollFlags::EPOLLOUT,
            Endpoint::Receive { .. } | Endpoint::Gather { .. } => EpollFlags::EPOLLIN,
        };
        epoll.add(endpoint.socket(), EpollEvent::new(flags, index as u64))?;
    }
    Ok(epoll)
}

/// What an endpoint waits for.
enum Next {
    /// Readiness.
    More,
    /// The slowest transfer.
    Wait,
    /// Nothing any more.
    End,
}

/// Moves what can be moved now; level-triggered, so a bounded amount at a time is enough and fair.
fn advance(
    endpoint: &mut Endpoint,
    shared: &Shared,
    transport: Transport,
    since: &Instant,
    buffer: &mut [u8],
) -> io::Result<Next> {
    let note = |pair: usize, got: &mut Outcome, bytes: usize| {
        got.received_bytes += bytes as u64;
        got.elapsed = since.elapsed();
        shared.received_bytes[pair].store(got.received_bytes, Ordering::Release);
        if got.received_bytes < shared.bytes_per_pair {
            return Next::More;
        }
        shared.finished.fetch_add(1, Ordering::AcqRel);
        Next::End
    };
    match endpoint {
        Endpoint::Send { socket, chunk_bytes, sent_bytes, .. } => {
            let limit_bytes = shared.limit_bytes.load(Ordering::Acquire).min(shared.bytes_per_pair);
            let chunk = limit_bytes.saturating_sub(*sent_bytes).min(*chunk_bytes as u64) as usize;
            if chunk == 0 {
                return Ok(Next::Wait);
            }
            match socket.write(&buffer[..chunk]) {
                Ok(sent) => *sent_bytes += sent as u64,
                Err(error) if passing(&error, transport) => {}
                Err(error) => return Err(error),
            }
            if *sent_bytes < shared.bytes_per_pair {
                return Ok(Next::More);
            }
            shared.senders_left.fetch_sub(1, Ordering::AcqRel);
            Ok(Next::End)
        }
        Endpoint::Receive { socket, pair, got, .. } => match socket.read(buffer) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => Ok(note(*pair, got, bytes)),
            Err(error) if passing(&error, transport) => Ok(Next::More),
            Err(error) => Err(error),
        },
        Endpoint::Gather { socket, pairs, .. } => {
            // A batch at a time, so that one host's datagrams do not starve another's.
            for _ in 0..64 {
                let (bytes, peer) = match receive_from(socket, buffer) {
                    Ok(received) => received,
                    Err(error) if passing(&error, transport) => break,
                    Err(error) => return Err(error),
                };
                if let Some((pair, got)) = peer.and_then(|peer| pairs.get_mut(&peer)) {
                    note(*pair, got, bytes);
                }
            }
            Ok(Next::More)
        }
    }
}

/// Whether an error passes by itself; a datagram that the first switch refused is merely lost.
fn passing(error: &io::Error, transport: Transport) -> bool {
    let lost = transport == Transport::Udp
        && (matches!(error.kind(), ErrorKind::ConnectionRefused) || error.raw_os_error() == Some(libc::ENOBUFS));
    lost || matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn receive_from(socket: &Socket, buffer: &mut [u8]) -> io::Result<(usize, Option<IpAddr>)> {
    use std::mem::MaybeUninit;
    // SAFETY: initialized bytes are valid as possibly uninitialized ones, and the kernel writes only initialized bytes.
    let buffer = unsafe { &mut *(std::ptr::from_mut(buffer) as *mut [MaybeUninit<u8>]) };
    let (bytes, peer) = socket.recv_from(buffer)?;
    Ok((bytes, peer.as_socket().map(|peer| peer.ip())))
}

/// Waits for the end and reports on the way there.
fn watch(
    layout: &Layout,
    pairs: &[(usize, usize)],
    shared: &Shared,
    load: &Load,
    progress: &mut dyn FnMut(f64),
) -> Result<(), LabError> {
    let Load { transport, pace, .. } = *load;
    let total_bytes = (shared.bytes_per_pair as f64 * pairs.len() as f64).max(1.0);
    let (mut seen_bytes, mut moved, mut reported) = (0, Instant::now(), Instant::now());
    loop {
        thread::sleep(Duration::from_millis(1));
        let finished = shared.finished.load(Ordering::Acquire);
        if finished >= pairs.len() || shared.end.load(Ordering::Acquire) {
            progress(1.0);
            return Ok(());
        }
        let (mut received_bytes, mut least_bytes) = (0, u64::MAX);
        for bytes in &shared.received_bytes {
            let bytes = bytes.load(Ordering::Acquire);
            received_bytes += bytes;
            least_bytes = least_bytes.min(bytes);
        }
        if pace == Pace::Together && transport == Transport::Tcp {
            shared.limit_bytes.store(least_bytes.saturating_add(LEAD_BYTES), Ordering::Release);
        }
        if received_bytes > seen_bytes {
            (seen_bytes, moved) = (received_bytes, Instant::now());
        }
        if reported.elapsed() >= Duration::from_millis(250) {
            reported = Instant::now();
            progress(received_bytes as f64 / total_bytes);
        }
        match transport {
            Transport::Udp if shared.senders_left.load(Ordering::Acquire) == 0 && moved.elapsed() >= SILENCE => {
                progress(1.0);
                return Ok(());
            }
            Transport::Tcp if moved.elapsed() >= STALL => {
                let name = |host: usize| layout.hosts[host].name.as_str();
                let mut pending = pairs
                    .iter()
                    .zip(&shared.received_bytes)
                    .filter(|(_, received_bytes)| received_bytes.load(Ordering::Acquire) < shared.bytes_per_pair);
                let example = pending.next().map(|((a, b), _)| format!("{} -> {}", name(*a), name(*b)));
                return Err(LabError::Stalled {
                    seconds: STALL.as_secs(),
                    pending: pairs.len() - finished,
                    total: pairs.len(),
                    example: example.unwrap_or_default(),
                });
            }
            _ => {}
        }
    }
}
