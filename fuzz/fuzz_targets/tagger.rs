//! Any bytes as what comes to a tagger: its configuration is read or refused, and read again as the same when written; a
//! frame is what the socket of the probes hears, for the host that it names or as long flows for all, or nothing; what the twin
//! answers or lets in is no other frame than came.
#![no_main]

use fabric::{Mac, VlanId};
use tagger::{
    TaggingTable, twin,
    twin::Ingress,
    wire::{self, ProbeMessage},
};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Ok(config) = tagger::Config::parse("fuzz", &text) {
        assert_eq!(tagger::Config::parse("again", &config.text()), Ok(config));
    }
    hear(data);
    let _ = (tagger::layout::read_key(data), tagger::layout::read_entry(data), tagger::layout::read_flow(data));
});

/// A frame with its tag off, at the socket; and with it on, at the twin of the ingress program.
fn hear(data: &[u8]) {
    let Some(own) = data.first_chunk().copied().map(Mac::new) else { return };
    let heard = wire::read(own, data);
    if let Some(ProbeMessage::Warning { from, vlan }) = heard {
        assert_eq!(from.octets(), data[6..12]);
        let frame = wire::warning(from, own, VlanId::MIN, vlan);
        assert_eq!(wire::read(own, &[&frame[..12], &frame[16..]].concat()), heard);
    }
    let table = TaggingTable { receive: [VlanId::MIN].into_iter().collect(), ..TaggingTable::default() };
    if let Ingress::Answer(answer) = twin::ingress(&table, own, data) {
        assert_eq!((&answer[..6], answer.len()), (&data[6..12], data.len()));
    }
    let _ = twin::egress(&table, data, |_, hash| hash);
    hear_flows(data);
}

/// What is read of an announcement is what is announced again.
fn hear_flows(data: &[u8]) {
    let hearer = Mac::local(1);
    let heard = wire::read(hearer, data);
    if let Some(ProbeMessage::Flows { from, flows }) = &heard {
        let frame = wire::announcement(*from, VlanId::MIN, flows);
        assert_eq!(wire::read(hearer, &[&frame[..12], &frame[16..]].concat()), heard);
    }
}
