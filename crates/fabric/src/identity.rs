//! Who a switch is, in words that it cannot share with another.
//!
//! ```text
//!   sw1: {mgmt: 192.0.2.1, id: {chassis: "02:00:00:00:01:01", engine: "8000…", serial: "TX12345"}}
//! ```
//! A name and an address are what people give a switch; these are what its maker gave it. They are texts, compared as a
//! whole: this crate does not know how a protocol writes them.

use thiserror::Error;

/// Longest text of an identity, in bytes: an LLDP chassis identifier, or an SNMP engine ID in hexadecimal.
pub const IDENTITY_BYTES_MAX: usize = 255;

/// What tells a switch from every other one. An item that is not known is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchIdentity {
    /// Its LLDP chassis identifier, or the bridge's address where it has no LLDP.
    pub chassis: Option<String>,
    /// Its SNMP engine ID, in hexadecimal.
    pub engine: Option<String>,
    /// Its serial number (ENTITY-MIB).
    pub serial: Option<String>,
}

/// A text that no identity has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: {text:?} is no identity of a switch: 1 to {IDENTITY_BYTES_MAX} bytes without control characters")]
pub struct BadIdentity {
    /// Which item.
    pub key: &'static str,
    /// The text, abridged.
    pub text: String,
}

impl SwitchIdentity {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.items().is_empty()
    }

    /// The items that are known, with their keys in files: `chassis`, `engine`, `serial`.
    pub fn items(&self) -> Vec<(&'static str, &str)> {
        let items = [("chassis", &self.chassis), ("engine", &self.engine), ("serial", &self.serial)];
        items.into_iter().filter_map(|(key, text)| Some((key, text.as_deref()?))).collect()
    }

    /// The same, if every item is a text that files can hold.
    ///
    /// # Errors
    /// [`BadIdentity`], naming the first item that is not.
    pub fn checked(self) -> Result<Self, BadIdentity> {
        let bad = |text: &str| text.is_empty() || text.len() > IDENTITY_BYTES_MAX || text.chars().any(char::is_control);
        match self.items().into_iter().find(|(_, text)| bad(text)) {
            None => Ok(self),
            Some((key, text)) => Err(BadIdentity { key, text: text.chars().take(40).collect() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_that_files_can_hold_are_identities() {
        let check = |text: &str, fine: bool| {
            let identity = SwitchIdentity { serial: Some(text.to_owned()), ..SwitchIdentity::default() };
            assert_eq!(identity.checked().is_ok(), fine, "{text:?}");
        };
        check("TX 12345/é", true);
        check(&"x".repeat(255), true);
        check(&"x".repeat(256), false);
        check("", false);
        check("a\nb", false);
        check("\u{1b}[2J", false);
    }
}
