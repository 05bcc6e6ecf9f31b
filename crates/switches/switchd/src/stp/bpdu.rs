//! Messages of spanning tree, from the protocol identifier on.
//!
//! ```text
//! 0 protocol │ 2 version │ 3 type │ 4 flags │ 5 root │ 13 cost │ 17 bridge │ 25 port │ 27 age │ 29 max age │ 31 hello │ 33 delay
//! ```
//!
//! Times travel in 1/256 s.

use thiserror::Error;

use super::{Claim, Timers};

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bpdu {
    /// What a bridge knows of the root.
    Config(ConfigBpdu),
    /// The tree has changed; told toward the root.
    Change,
}

/// What a bridge knows of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigBpdu {
    /// The root, the way to it, and who speaks.
    pub claim: Claim,
    /// How old the root's word is.
    pub message_age_ms: u32,
    /// The root's timers.
    pub timers: Timers,
    /// The tree is changing: learned addresses are to be forgotten.
    pub change: bool,
    /// The change that was told has been heard.
    pub acknowledges: bool,
}

/// Why octets are no message of spanning tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a message of IEEE 802.1D spanning tree")]
pub struct BpduError;

const CONFIG_LEN: usize = 35;
const TYPE_CONFIG: u8 = 0;
const TYPE_CHANGE: u8 = 0x80;
/// Rapid spanning tree's messages begin as those of a bridge of 1998 do, and are understood as such.
const TYPE_RAPID: u8 = 2;
const FLAG_CHANGE: u8 = 1;
const FLAG_ACKNOWLEDGE: u8 = 0x80;
/// Bounds of timers that anybody takes seriously.
const TIMER_MS_MIN: u32 = 20;

impl Bpdu {
    /// Reads a message; what follows it is padding.
    ///
    /// # Errors
    /// [`BpduError`].
    pub fn decode(octets: &[u8]) -> Result<Self, BpduError> {
        let [0, 0, _, kind, ..] = octets else { return Err(BpduError) };
        if *kind == TYPE_CHANGE {
            return Ok(Self::Change);
        }
        if !matches!(*kind, TYPE_CONFIG | TYPE_RAPID) || octets.len() < CONFIG_LEN {
            return Err(BpduError);
        }
        let word = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
        let time_ms = |at: usize| u32::from(word(at)) * 1000 / 256;
        let identifier = |at: usize| (0..8).fold(0, |id, octet| id << 8 | u64::from(octets[at + octet]));
        let timers = Timers { max_age_ms: time_ms(29), hello_ms: time_ms(31), forward_delay_ms: time_ms(33) };
        if [timers.max_age_ms, timers.hello_ms, timers.forward_delay_ms].into_iter().any(|ms| ms < TIMER_MS_MIN) {
            return Err(BpduError);
        }
        Ok(Self::Config(ConfigBpdu {
            claim: Claim {
                root: identifier(5),
                cost: u32::from(word(13)) << 16 | u32::from(word(15)),
                bridge: identifier(17),
                port: word(25),
            },
            message_age_ms: time_ms(27),
            timers,
            change: octets[4] & FLAG_CHANGE != 0,
            acknowledges: octets[4] & FLAG_ACKNOWLEDGE != 0,
        }))
    }

    /// Writes a message.
    pub fn encode(&self) -> Vec<u8> {
        let Self::Config(config) = self else { return vec![0, 0, 0, TYPE_CHANGE] };
        // Rounded up, so that a time never becomes shorter on its way, and never nothing.
        let time = |ms: u32| u16::try_from((u64::from(ms) * 256).div_ceil(1000)).unwrap_or(u16::MAX).to_be_bytes();
        let change = if config.change { FLAG_CHANGE } else { 0 };
        let acknowledges = if config.acknowledges { FLAG_ACKNOWLEDGE } else { 0 };
        let mut octets = vec![0, 0, 0, TYPE_CONFIG, change | acknowledges];
        octets.extend(config.claim.root.to_be_bytes());
        octets.extend(config.claim.cost.to_be_bytes());
        octets.extend(config.claim.bridge.to_be_bytes());
        octets.extend(config.claim.port.to_be_bytes());
        octets.extend(time(config.message_age_ms));
        octets.extend(time(config.timers.max_age_ms));
        octets.extend(time(config.timers.hello_ms));
        octets.extend(time(config.timers.forward_delay_ms));
        octets
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_read_what_they_write(root: u64, cost: u32, bridge: u64, port: u16, ages in prop::array::uniform4(20_u32..100_000), flags in 0_u8..4) {
            let config = ConfigBpdu {
                claim: Claim { root, cost, bridge, port },
                message_age_ms: ages[0],
                timers: Timers { max_age_ms: ages[1], hello_ms: ages[2], forward_delay_ms: ages[3] },
                change: flags & 1 != 0,
                acknowledges: flags & 2 != 0,
            };
            let Ok(Bpdu::Config(read)) = Bpdu::decode(&Bpdu::Config(config).encode()) else { panic!("not read") };
            // Times are rounded to 1/256 s, up.
            for (read, written) in [
                (read.message_age_ms, ages[0]),
                (read.timers.max_age_ms, ages[1]),
                (read.timers.hello_ms, ages[2]),
                (read.timers.forward_delay_ms, ages[3]),
            ] {
                prop_assert!((written..=written + 4).contains(&read), "{} {}", read, written);
            }
            prop_assert_eq!(ConfigBpdu { message_age_ms: config.message_age_ms, timers: config.timers, ..read }, config);
        }

        #[test]
        fn no_octets_make_the_reader_panic(octets in prop::collection::vec(any::<u8>(), 0..50)) {
            let _ = Bpdu::decode(&octets);
        }
    }

    #[test]
    fn other_protocols_are_refused() {
        assert_eq!(Bpdu::decode(&[0, 0, 0, 0x80]), Ok(Bpdu::Change));
        for octets in [&[][..], &[0, 0, 0], &[0, 1, 0, 0], &[0, 0, 0, 0, 0], &[0; 35]] {
            assert_eq!(Bpdu::decode(octets), Err(BpduError));
        }
    }
}
