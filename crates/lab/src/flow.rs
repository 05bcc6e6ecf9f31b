//! The hash by which a LAG chooses the member that a frame leaves by, as `bpf/lag.h` computes it.
//!
//! Source: MurmurHash3 by A. Appleby, 32-bit blocks and finalizer.

/// The hash of a frame, its tag left out.
///
/// # Panics
/// If it is shorter than an Ethernet header.
pub(crate) fn hash(frame: &[u8]) -> u32 {
    let tag = usize::from(frame[12..14] == [0x81, 0x00]) * 4;
    let packet = &frame[14 + tag..];
    let part = |at: usize, len: usize| packet.get(at..at + len);
    let (addresses, transport) = match (frame[12 + tag], frame[13 + tag]) {
        (0x08, 0x00) => {
            let whole = part(6, 2).is_some_and(|fragment| fragment[0] & 0x3f == 0 && fragment[1] == 0);
            let length = packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
            (part(12, 8), part(9, 1).filter(|_| whole).map(|protocol| (protocol[0], length)))
        }
        (0x86, 0xdd) => (part(8, 32), part(6, 1).map(|protocol| (protocol[0], 40))),
        _ => (None, None),
    };
    let ports = transport.filter(|(protocol, _)| [6, 17].contains(protocol)).and_then(|(_, at)| part(at, 4));
    let octets = [Some(&frame[..12]), addresses, ports].into_iter().flatten().flat_map(|octets| octets.chunks_exact(4));
    let words = octets.map(|word| u32::from_ne_bytes(word.try_into().expect("four octets")));
    let mixed = words.fold(0_u32, |hash, word| {
        let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    });
    let hash = (mixed ^ mixed >> 16).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}
