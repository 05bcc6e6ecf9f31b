//! Any bytes as RI2N's datagrams: handshakes, packets, control frames.
#![no_main]

use ri2n::{
    Time,
    handshake::{Protection, Response, Server},
    wire::{control, handshake, packet},
};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(read) = handshake::decode(data) {
        let written = handshake::encode(read.client_token, &read.body, |_| read.proof);
        let again = handshake::decode(&written).expect("what was written can be read");
        assert_eq!((again.client_token, again.body), (read.client_token, read.body));
    }
    let _ = handshake::foreign_version(data);
    let mut server = Server::new([1; 32], Protection::default());
    let from = (std::net::Ipv4Addr::LOCALHOST, 9).into();
    if let Response::Reply(answer) = server.handle_datagram(Time::from_nanos(1 << 40), from, data) {
        assert!(answer.len() <= data.len(), "an answer longer than its question");
    }
    if let Ok(raw) = packet::decode(data) {
        let _ = raw.resolve(7, 1 << 33, 1 << 41);
        for frame in control::decode(raw.control).map_while(Result::ok) {
            let mut written = Vec::new();
            control::encode(&mut written, &frame);
            assert_eq!(control::decode(&written).collect::<Vec<_>>(), [Ok(frame)]);
        }
    }
    let _ = control::decode(data).count();
});
