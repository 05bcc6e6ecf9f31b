//! What objects hold.

use crate::Oid;

/// A value as it travels (RFC 3416, 2.5 and 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// INTEGER and Integer32.
    Integer(i32),
    /// OCTET STRING.
    Octets(Vec<u8>),
    /// OBJECT IDENTIFIER.
    Oid(Oid),
    /// No value: what requests for values carry.
    Null,
    /// IpAddress.
    IpAddress([u8; 4]),
    /// A counter that wraps at 2³².
    Counter32(u32),
    /// Gauge32 and Unsigned32.
    Gauge32(u32),
    /// Hundredths of a second.
    TimeTicks(u32),
    /// Opaque, as it came.
    Opaque(Vec<u8>),
    /// A counter that wraps at 2⁶⁴.
    Counter64(u64),
    /// The agent has no such object.
    NoSuchObject,
    /// The object has no such instance.
    NoSuchInstance,
    /// There is nothing behind.
    EndOfMibView,
}

/// What kind of value an object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// [`Value::Integer`].
    Integer,
    /// [`Value::Octets`].
    Octets,
    /// [`Value::Oid`].
    Oid,
    /// [`Value::Counter32`].
    Counter32,
    /// [`Value::Gauge32`].
    Gauge32,
    /// [`Value::TimeTicks`].
    TimeTicks,
    /// [`Value::Counter64`].
    Counter64,
    /// [`Value::IpAddress`].
    IpAddress,
}

impl Value {
    /// Whether the value is of this kind. Whole numbers of the two 32-bit kinds pass for each other where both can hold
    /// them, because agents confuse INTEGER and Unsigned32.
    pub fn fits(&self, syntax: Syntax) -> bool {
        match syntax {
            Syntax::Integer => self.int().is_some(),
            Syntax::Gauge32 => self.unsigned().is_some(),
            Syntax::Octets => matches!(self, Self::Octets(_)),
            Syntax::Oid => matches!(self, Self::Oid(_)),
            Syntax::Counter32 => matches!(self, Self::Counter32(_)),
            Syntax::TimeTicks => matches!(self, Self::TimeTicks(_)),
            Syntax::Counter64 => matches!(self, Self::Counter64(_)),
            Syntax::IpAddress => matches!(self, Self::IpAddress(_)),
        }
    }

    /// A signed whole number.
    pub fn int(&self) -> Option<i32> {
        match self {
            Self::Integer(number) => Some(*number),
            Self::Gauge32(number) => i32::try_from(*number).ok(),
            _ => None,
        }
    }

    /// An unsigned whole number.
    pub fn unsigned(&self) -> Option<u32> {
        match self {
            Self::Integer(number) => u32::try_from(*number).ok(),
            Self::Gauge32(number) => Some(*number),
            _ => None,
        }
    }

    /// A count, of either width, or a time.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Counter32(number) | Self::Gauge32(number) | Self::TimeTicks(number) => Some(u64::from(*number)),
            Self::Counter64(number) => Some(*number),
            _ => None,
        }
    }

    /// A string of octets.
    pub fn octets(&self) -> Option<&[u8]> {
        match self {
            Self::Octets(octets) => Some(octets),
            _ => None,
        }
    }

    /// Whether it says that there is no value.
    pub fn is_exception(&self) -> bool {
        matches!(self, Self::NoSuchObject | Self::NoSuchInstance | Self::EndOfMibView)
    }
}
