//! Any bytes as what whoever loads files sends: TFTP requests and acknowledgements, and HTTP requests.
#![no_main]

use std::sync::Arc;

use file_server::{Answer, Catalog, ReadRequest, Transfer, TransferAction, answer};

const CONTENT: &[u8] = b"vlan database\r\nvlan 2-3\nexit\n\r\r\n";

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut catalog = Catalog::default();
    catalog.insert("sw1.cfg", CONTENT.to_vec());
    if let Some(Answer { status, file, head, body }) = answer(data, &catalog) {
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")) && head.ends_with("\r\n\r\n"));
        assert_eq!(head.matches("\r\n\r\n").count(), 1, "nobody writes a head of their own");
        assert!(body.is_none_or(|body| status == 200 && file == "sw1.cfg" && *body == *CONTENT));
    }

    // A request, and behind 512 bytes what answers the blocks.
    let (asked, replies) = data.split_at(data.len().min(512));
    if let Ok(request) = ReadRequest::parse(asked) {
        let mut transfer = Transfer::new(&request, Arc::from(CONTENT));
        for reply in replies.chunks(4).take(100) {
            match transfer.handle_datagram(reply) {
                TransferAction::Send(datagram) => assert!(datagram.len() <= 65_468),
                TransferAction::Wait => {}
                TransferAction::Done | TransferAction::Failed(_) => break,
            }
        }
    }
});
