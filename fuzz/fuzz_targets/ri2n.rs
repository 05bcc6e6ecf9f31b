//! Any bytes as RI2N's datagrams: handshakes, packets, control frames, early copies.
#![no_main]

use ri2n::{
    Key, Time,
    handshake::{Privacy, Protection, Response, Server},
    wire::{control, handshake, packet},
};
use ri2n_express::{Copy, DATAGRAM_MAX};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(read) = handshake::decode(data) {
        let written = handshake::encode(read.client_token, &read.body, |_| read.proof);
        let again = handshake::decode(&written).expect("what was written can be read");
        assert_eq!((again.client_token, again.body), (read.client_token, read.body));
    }
    let _ = handshake::foreign_version(data);
    if let Ok(terms) = handshake::ClientTerms::decode(data) {
        assert_eq!(handshake::ClientTerms::decode(&terms.encode()), Ok(terms));
    }
    if let Ok(accept) = handshake::Accept::decode(data) {
        let mut written = Vec::new();
        accept.encode(&mut written);
        assert_eq!(handshake::Accept::decode(&written), Ok(accept));
    }
    let encrypted = Protection { keys: Key::new([7; 32]).into(), privacy: Privacy::Encrypted, ..Protection::default() };
    for protection in [Protection::default(), encrypted] {
        let mut server = Server::new([1; 32], protection);
        let from = (std::net::Ipv4Addr::LOCALHOST, 9).into();
        if let Response::Reply(answer) = server.handle_datagram(Time::from_nanos(1 << 40), from, data) {
            assert!(answer.len() <= data.len(), "an answer longer than its question");
        }
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
    if let Some((token, copy)) = data.first_chunk().map(|token| u64::from_be_bytes(*token)).and_then(|token| {
        assert_eq!(Copy::decode(data, !token), None, "a copy for somebody else");
        Some((token, Copy::decode(data, token)?))
    }) {
        let mut written = [0; DATAGRAM_MAX];
        let length = ri2n_express::encode(&copy, token, &mut written);
        assert_eq!(&written[..length], data, "what was read is written alike");
    }
});
