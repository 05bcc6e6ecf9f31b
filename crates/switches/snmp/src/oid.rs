//! Object identifiers.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// Most sub-identifiers of one identifier (RFC 3416, 4.1).
pub const OID_LEN_MAX: usize = 128;

/// An object identifier; ordered as tables are walked.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Oid(Vec<u32>);

/// Why a text is not an object identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not an object identifier: write 1 to 128 numbers with dots between them, such as 1.3.6.1.2.1.1.5.0")]
pub struct OidError;

impl Oid {
    /// Wraps sub-identifiers, of which the first [`OID_LEN_MAX`] are kept.
    pub fn new(parts: &[u32]) -> Self {
        Self(parts[..parts.len().min(OID_LEN_MAX)].to_vec())
    }

    /// The sub-identifiers.
    pub fn parts(&self) -> &[u32] {
        &self.0
    }

    /// What follows `prefix`, if the identifier begins with it.
    pub fn strip_prefix(&self, prefix: &[u32]) -> Option<&[u32]> {
        self.0.strip_prefix(prefix)
    }

    /// The identifier with more sub-identifiers behind it.
    #[must_use]
    pub fn child(&self, parts: &[u32]) -> Self {
        Self::new(&[&self.0[..], parts].concat())
    }
}

impl FromStr for Oid {
    type Err = OidError;

    fn from_str(text: &str) -> Result<Self, OidError> {
        let parts = text.strip_prefix('.').unwrap_or(text).split('.').map(|part| match part.as_bytes() {
            [b'0'..=b'9', ..] => part.parse().map_err(|_| OidError),
            _ => Err(OidError),
        });
        let parts = parts.collect::<Result<Vec<u32>, _>>()?;
        if parts.len() > OID_LEN_MAX { Err(OidError) } else { Ok(Self(parts)) }
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            let dot = if index == 0 { "" } else { "." };
            write!(f, "{dot}{part}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_that_is_no_identifier_is_refused() {
        for text in ["", ".", "1..2", "1.x", "1.-2", "1.+2", "4294967296", "1.2."] {
            assert_eq!(text.parse::<Oid>(), Err(OidError), "{text}");
        }
        let long = vec!["1"; OID_LEN_MAX + 1].join(".");
        assert_eq!(long.parse::<Oid>(), Err(OidError));
    }

    proptest! {
        #[test]
        fn identifiers_read_what_they_write(parts in prop::collection::vec(any::<u32>(), 1..=OID_LEN_MAX)) {
            let oid = Oid::new(&parts);
            prop_assert_eq!(oid.to_string().parse::<Oid>(), Ok(oid.clone()));
            prop_assert_eq!(format!(".{oid}").parse::<Oid>(), Ok(oid));
        }

        #[test]
        fn a_prefix_comes_before_what_it_begins(parts in prop::collection::vec(any::<u32>(), 1..20), more in any::<u32>()) {
            prop_assert!(Oid::new(&parts) < Oid::new(&parts).child(&[more]));
        }
    }
}
