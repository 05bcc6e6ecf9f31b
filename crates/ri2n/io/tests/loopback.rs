//! Streams over real sockets on the loopback interface, four links of 127.0.0.x.

use ri2n_io::{Config, Key, LinkChoice, LinkPair, Listener, Privacy, Stream, connections};
use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr},
    os::fd::AsRawFd,
    thread,
    time::Duration,
};

fn four_links() -> Config {
    let pair = |index: u8| LinkPair {
        local: Ipv4Addr::new(127, 0, 0, 10 + index).into(),
        remote: Ipv4Addr::new(127, 0, 0, 1 + index).into(),
        priority: 0,
    };
    let mut config = Config::default();
    config.links = LinkChoice::Pairs((0..4).map(pair).collect());
    config.connect_timeout = Duration::from_secs(5);
    config
}

fn pair(config: &Config) -> (Stream, Stream) {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let address = listener.local_addr().unwrap();
    let client = Stream::connect(address, config).unwrap();
    let (server, peer) = listener.accept().unwrap();
    assert_eq!((peer, server.local_addr()), (client.local_addr(), client.peer_addr()));
    (client, server)
}

/// The byte at an offset of a stream.
fn pattern(offset: usize) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9) >> 13) as u8
}

#[test]
fn bytes_arrive_both_ways_over_every_link() {
    for (key, privacy) in [
        (None, Privacy::Authenticated),
        (Some(Key::from_passphrase("a secret")), Privacy::Authenticated),
        (Some(Key::new([7; 32])), Privacy::Encrypted),
    ] {
        let config = {
            let mut config = four_links();
            config.keys = key.into_iter().collect();
            config.privacy = privacy;
            config
        };
        let (client, server) = pair(&config);
        const AMOUNT: usize = 20_000_000;
        thread::scope(|scope| {
            for stream in [&client, &server] {
                scope.spawn(move || {
                    let mut stream = stream;
                    let bytes: Vec<u8> = (0..AMOUNT).map(pattern).collect();
                    stream.write_all(&bytes).unwrap();
                    stream.shutdown(Shutdown::Write).unwrap();
                });
                scope.spawn(move || {
                    let mut stream = stream;
                    let mut bytes = Vec::new();
                    stream.read_to_end(&mut bytes).unwrap();
                    assert_eq!(bytes.len(), AMOUNT);
                    assert!(bytes.iter().enumerate().all(|(offset, byte)| *byte == pattern(offset)));
                });
            }
        });
        let status = client.status();
        assert_eq!((status.links.len(), status.bytes_received), (4, AMOUNT as u64));
        assert!(status.links.iter().all(|link| link.packets_received > 0), "{status:#?}");
        assert!(connections().iter().any(|connection| connection.id == status.id));
    }
}

#[test]
fn links_between_the_same_addresses_leave_from_ports_of_their_own() {
    let mut config = Config::default();
    let (local, remote) = (Ipv4Addr::new(127, 0, 0, 30).into(), Ipv4Addr::new(127, 0, 0, 1).into());
    config.links = LinkChoice::Pairs(vec![LinkPair { local, remote, priority: 0 }]);
    config.paths = 4;
    let (client, server) = pair(&config);
    const AMOUNT: usize = 20_000_000;
    thread::scope(|scope| {
        scope.spawn(|| {
            (&server).write_all(&vec![1; AMOUNT]).unwrap();
            server.shutdown(Shutdown::Write).unwrap();
        });
        let mut bytes = Vec::new();
        (&client).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), AMOUNT);
        // Both ends have sent from a port for each but the first link: each number below eight has its own remainder.
        let table = std::fs::read_to_string("/proc/net/udp").unwrap();
        let ports = table.lines().skip(1).filter_map(|line| {
            let (_, port) = line.split_whitespace().nth(1)?.split_once(':')?;
            u16::from_str_radix(port, 16).ok()
        });
        let mut entropies: Vec<u16> = ports.filter(|port| *port >= 61_440).map(|port| port % 8).collect();
        entropies.sort_unstable();
        entropies.dedup();
        assert!([1, 2, 3].iter().all(|entropy| entropies.contains(entropy)), "{entropies:?}");
    });
    for status in [client.status(), server.status()] {
        let links: Vec<u8> = status.links.iter().map(|link| link.entropy).collect();
        assert_eq!(links, [0, 1, 2, 3]);
        assert!(status.links.iter().all(|link| link.packets_received > 0), "{status:#?}");
    }
}

#[test]
fn timeouts_ends_and_resets_are_as_with_tcp() {
    let (client, server) = pair(&four_links());
    let mut byte = [0; 8];
    server.set_read_timeout(Some(Duration::from_millis(30)));
    assert_eq!(server.read(&mut byte).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(server.try_read(&mut byte).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(client.write(b"abc").unwrap(), 3);
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.write(b"d").unwrap_err().kind(), ErrorKind::BrokenPipe);
    server.set_read_timeout(None);
    assert_eq!(server.read(&mut byte).unwrap(), 3);
    assert_eq!(server.read(&mut byte).unwrap(), 0, "the end");
    client.flush_wait(Some(Duration::from_secs(5))).unwrap();
    // Half closed: the other direction still works.
    assert_eq!(server.write(b"xyz").unwrap(), 3);
    assert_eq!(client.read(&mut byte).unwrap(), 3);
    server.reset();
    assert_eq!(client.read(&mut byte).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(server.read(&mut byte).unwrap_err().kind(), ErrorKind::ConnectionAborted);
}

#[test]
fn what_was_written_arrives_though_the_stream_was_dropped() {
    let (client, mut server) = pair(&four_links());
    let writer = thread::spawn(move || {
        let mut client = client;
        client.write_all(&vec![7; 3_000_000]).unwrap();
    });
    let mut bytes = Vec::new();
    server.read_to_end(&mut bytes).unwrap();
    writer.join().unwrap();
    assert_eq!(bytes.len(), 3_000_000);
}

#[test]
fn descriptors_tell_readiness() {
    let (client, server) = pair(&four_links());
    let is_ready = |fd: i32, wait_ms: i32| {
        let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which outlives the call.
        unsafe { libc::poll(&raw mut polled, 1, wait_ms) == 1 }
    };
    let (read, write) = (server.read_fd().unwrap().as_raw_fd(), client.write_fd().unwrap().as_raw_fd());
    assert!(!is_ready(read, 20) && is_ready(write, 1000));
    let mut written = 0;
    loop {
        match client.try_write(&[1; 100_000]) {
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock && !is_ready(write, 2000) => break,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
    }
    // The peer's buffer and at least what a sending one begins with: that grows only while much is in flight.
    assert!(written >= (1 << 20) + (256 << 10), "both buffers are full: {written}");
    let mut buffer = vec![0; 1 << 20];
    while written > 0 {
        assert!(is_ready(read, 5000));
        match server.try_read(&mut buffer) {
            Ok(count) => written -= count,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    assert!(is_ready(write, 5000) && !is_ready(read, 20));
}

#[test]
fn nobody_listening_is_refused_at_once_and_a_wrong_key_too() {
    let unused = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(Stream::connect(unused, &four_links()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let keyed = {
        let mut config = four_links();
        config.keys = Key::new([1; 32]).into();
        config
    };
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), &keyed).unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    assert_eq!(Stream::connect(address, &four_links()).unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert_eq!(listener.try_accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(Stream::connect_any(&[unused, address], &keyed).is_ok(), "the second address answers");
}

#[test]
fn round_trips_from_two_threads_at_once() {
    let (client, server) = pair(&four_links());
    let echo = thread::spawn(move || {
        let mut message = [0; 64];
        let mut server = &server;
        while server.read_exact(&mut message).is_ok() {
            server.write_all(&message).unwrap();
        }
    });
    let mut client = &client;
    for round in 0..2000_u64 {
        let message = [round as u8; 64];
        client.write_all(&message).unwrap();
        let mut back = [0; 64];
        client.read_exact(&mut back).unwrap();
        assert_eq!(message, back);
    }
    client.shutdown(Shutdown::Write).unwrap();
    echo.join().unwrap();
}

#[test]
fn ipv6_works_as_well() {
    let config = Config::default();
    let Ok(listener) = Listener::bind("[::1]:0".parse().unwrap(), &config) else {
        eprintln!("skipped: no IPv6 on this machine");
        return;
    };
    let mut client = Stream::connect(listener.local_addr().unwrap(), &config).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"six").unwrap();
    let mut bytes = [0; 3];
    server.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"six");
}

#[test]
fn what_is_offered_is_not_waited_for_and_what_is_given_back_is() {
    let config = four_links();
    let (send, receive) = std::sync::mpsc::channel();
    let mut turns = 0..;
    let turns = std::sync::Mutex::new(move || turns.next());
    let taker = move |stream: Stream, _| {
        let turn = turns.lock().unwrap()();
        if turn == Some(1) {
            return Some(stream);
        }
        let (send, reader) = (send.clone(), stream.clone());
        stream.when_readable(5, Duration::from_secs(60), move || {
            let mut bytes = [0; 10];
            let count = reader.try_read(&mut bytes).unwrap();
            send.send(bytes[..count].to_vec()).unwrap();
        });
        None
    };
    let listener = Listener::bind_offering("127.0.0.1:0".parse().unwrap(), &config, taker).unwrap();
    let address = listener.local_addr().unwrap();
    let first = Stream::connect(address, &config).unwrap();
    first.write(b"hel").unwrap();
    assert!(receive.recv_timeout(Duration::from_millis(50)).is_err(), "five bytes are waited for");
    first.write(b"lo").unwrap();
    assert_eq!(receive.recv_timeout(Duration::from_secs(10)).unwrap(), b"hello");
    let second = Stream::connect(address, &config).unwrap();
    assert_eq!(listener.accept().unwrap().1, second.local_addr());
    let (send, connected) = std::sync::mpsc::channel();
    Stream::connect_any_then(&[address], &config, &[], move |result| send.send(result.unwrap()).unwrap());
    let third = connected.recv_timeout(Duration::from_secs(10)).unwrap();
    // An end is as good as enough.
    third.write(b"ab").unwrap();
    third.shutdown(Shutdown::Write).unwrap();
    assert_eq!(receive.recv_timeout(Duration::from_secs(10)).unwrap(), b"ab");
    // So is the time.
    let (send, woken) = std::sync::mpsc::channel();
    second.when_readable(1, Duration::from_millis(30), move || send.send(()).unwrap());
    woken.recv_timeout(Duration::from_secs(10)).unwrap();
    let (send, failed) = std::sync::mpsc::channel();
    Stream::connect_any_then(&[], &config, &[], move |result| send.send(result.is_err()).unwrap());
    assert!(failed.recv_timeout(Duration::from_secs(10)).unwrap(), "no address is an error");
}
