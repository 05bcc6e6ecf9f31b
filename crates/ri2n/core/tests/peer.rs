//! Whatever a peer sends that has the token, nothing panics and nothing grows without bound.

mod malicious;

use proptest::prelude::*;

/// The first packet of data of a client to its server, as a deed.
#[test]
fn what_a_peer_makes_up_is_believed_if_it_fits() {
    let deed = |number: u8| [1, 0x11, 0, number, 0, 3, 7, 7, 7];
    assert_eq!(malicious::run(&deed(0)), 1);
    assert_eq!(malicious::run(&[&deed(0)[..], &deed(1)[1..]].concat()), 2);
    assert_eq!(malicious::run(&[0, 0x11, 0, 0, 0, 3, 7, 7, 7]), 0, "an encrypted packet cannot be made up");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn a_malicious_peer_is_borne(data in proptest::collection::vec(any::<u8>(), 0..1500)) {
        malicious::run(&data);
    }

    /// Control frames that are well formed, of which random bytes have few.
    #[test]
    fn a_peer_of_well_formed_malice_is_borne(deeds in proptest::collection::vec((any::<u8>(), frame(), any::<[u8; 4]>()), 0..60)) {
        let mut data = vec![1];
        for (what, frame, rest) in deeds {
            data.extend([what & !6, rest[0]]);
            if what & 0x10 != 0 {
                data.push(rest[1]);
            }
            data.push(frame.len() as u8);
            data.extend(frame);
            data.extend([rest[2] % 40, rest[3]]);
        }
        malicious::run(&data);
    }
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    use ri2n::wire::control::{Ack, Control, LinkAck, encode};
    let ranges = proptest::collection::vec((any::<u64>(), 0..300_u64), 1..4).prop_map(|pairs| {
        let mut set = ri2n::RangeSet::new();
        for (start, length) in pairs {
            // Numbers that were sent, those about to be, and the largest that there are.
            let start = match start % 4 {
                0 => u64::MAX - 400 - start % 97,
                1 => start >> 20,
                _ => start % 64,
            };
            set.insert(start..start + length + 1);
        }
        set
    });
    let link = (0..8_u8, any::<u64>(), ranges).prop_map(|(link, delay, ranges)| LinkAck {
        link,
        delay_us: if delay % 3 == 0 { delay } else { delay % 5000 },
        ranges,
    });
    let edge = prop_oneof![Just(0), Just(u64::MAX), 0..70_000_u64, any::<u64>()];
    let frame = prop_oneof![
        4 => (0..400_u64, edge.clone(), proptest::collection::vec(link, 0..3))
            .prop_map(|(received, limit, links)| Control::Ack(Ack { received, limit, links: links.into() })),
        1 => edge.clone().prop_map(Control::Ping),
        1 => edge.prop_map(Control::Pong),
        2 => (any::<u8>(), any::<u16>(), any::<u8>())
            .prop_map(|(address, mtu, priority)| Control::Link { address: address % 5, mtu, priority, entropy: priority % 8 }),
        1 => any::<u8>().prop_map(Control::Trouble),
        1 => (0..16_u8, any::<u32>(), any::<u16>(), any::<u8>()).prop_map(|(index, ip, mtu, priority)| {
            let ip = std::net::Ipv4Addr::from(ip).into();
            Control::Address { index, address: ri2n::wire::handshake::Address { ip, prefix: 24, mtu, priority } }
        }),
    ];
    frame.prop_map(|frame| {
        let mut bytes = Vec::new();
        encode(&mut bytes, &frame);
        bytes.truncate(80);
        bytes
    })
}
