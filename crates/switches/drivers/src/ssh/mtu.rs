//! The largest packets that ports pass, as far as a running configuration says so.
//!
//! ```text
//!   interface GigabitEthernet1/0/1
//!    jumboframe enable 9216      frames of 9216 bytes, tag and check sequence included: packets of 9194
//! ```
//! A switch shows what differs from its factory's state, and what that is depends on the model: a port without a line says
//! nothing.

use dialects::Target;

/// Addresses and type of a frame, and its check sequence.
const FRAME_BYTES: u16 = 14 + 4;
const TAG_BYTES: u16 = 4;
/// What passes a port of Comware that is told to take no jumbo frames.
const COMWARE_PLAIN_BYTES: u16 = 1536;

/// The largest packet in bytes, from a line of a port's section; none if the line says nothing of it.
pub(super) fn packet_bytes(target: Target, line: &str) -> Option<u16> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (text, beside) = match (target, words.as_slice()) {
        // That of untagged frames; a tag comes on top.
        (Target::Fastpath, ["mtu", bytes]) => (*bytes, FRAME_BYTES),
        (Target::EdgeCore, ["switchport", "mtu", bytes])
        | (Target::Comware5 | Target::Comware7 | Target::Huawei, ["jumboframe", "enable", bytes]) => {
            (*bytes, FRAME_BYTES + TAG_BYTES)
        }
        (Target::Comware5 | Target::Comware7, ["undo", "jumboframe", "enable"]) => {
            return Some(COMWARE_PLAIN_BYTES - FRAME_BYTES - TAG_BYTES);
        }
        _ => return None,
    };
    text.parse::<u16>().ok()?.checked_sub(beside)
}

/// The port that a command of RouterOS is about, and its largest packet in bytes, if the command sets it. Its number counts the
/// tag, but not addresses and type.
pub(super) fn routeros_packet_bytes(line: &str) -> Option<(&str, u16)> {
    let line = line.strip_prefix("/interface ethernet set ")?;
    let value = |key: &str| line.split([' ', '[', ']']).find_map(|word| word.strip_prefix(key));
    let bytes = value("l2mtu=")?.parse::<u16>().ok()?.checked_sub(TAG_BYTES)?;
    Some((value("default-name=")?, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_frames_are_sizes_of_packets_and_more() {
        for (target, line, expect) in [
            (Target::Fastpath, "mtu 9018", Some(9000)),
            (Target::EdgeCore, " switchport mtu 9022", Some(9000)),
            (Target::Comware7, " jumboframe enable 9216", Some(9194)),
            (Target::Huawei, " jumboframe enable 9216", Some(9194)),
            (Target::Comware5, " undo jumboframe enable", Some(1514)),
            (Target::Comware7, " jumboframe enable", None),
            (Target::Fastpath, "mtu 9", None),
            (Target::CiscoSb, "mtu 9018", None),
        ] {
            assert_eq!(packet_bytes(target, line), expect, "{target} {line}");
        }
        let line = "/interface ethernet set [ find default-name=ether1 ] l2mtu=9004 name=ether1";
        assert_eq!(routeros_packet_bytes(line), Some(("ether1", 9000)));
        assert_eq!(routeros_packet_bytes("/interface ethernet set [ find default-name=ether1 ] mtu=9000"), None);
    }
}
