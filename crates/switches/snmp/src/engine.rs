//! SNMP's own objects: the engine and why it refuses messages (RFC 3411, 3412, 3414).

use crate::{Access, Scalar, Syntax};

/// `snmpEngineID`: the engine's identifier.
pub const ENGINE_ID: Scalar =
    Scalar::new("snmpEngineID", &[1, 3, 6, 1, 6, 3, 10, 2, 1, 1], Syntax::Octets, Access::ReadOnly);
/// `snmpEngineBoots`: how often it started.
pub const ENGINE_BOOTS: Scalar =
    Scalar::new("snmpEngineBoots", &[1, 3, 6, 1, 6, 3, 10, 2, 1, 2], Syntax::Integer, Access::ReadOnly);
/// `snmpEngineTime`: seconds since then.
pub const ENGINE_TIME: Scalar =
    Scalar::new("snmpEngineTime", &[1, 3, 6, 1, 6, 3, 10, 2, 1, 3], Syntax::Integer, Access::ReadOnly);
/// `snmpEngineMaxMessageSize`: longest message, in bytes.
pub const ENGINE_MAX_MESSAGE_SIZE: Scalar =
    Scalar::new("snmpEngineMaxMessageSize", &[1, 3, 6, 1, 6, 3, 10, 2, 1, 4], Syntax::Integer, Access::ReadOnly);
/// `snmpUnknownContexts`: messages for a context that is not there.
pub const UNKNOWN_CONTEXTS: Scalar =
    Scalar::new("snmpUnknownContexts", &[1, 3, 6, 1, 6, 3, 12, 1, 5], Syntax::Counter32, Access::ReadOnly);
/// `usmStatsUnsupportedSecLevels`: messages at a level that is not allowed.
pub const UNSUPPORTED_SEC_LEVELS: Scalar =
    Scalar::new("usmStatsUnsupportedSecLevels", &[1, 3, 6, 1, 6, 3, 15, 1, 1, 1], Syntax::Counter32, Access::ReadOnly);
/// `usmStatsNotInTimeWindows`: messages too old.
pub const NOT_IN_TIME_WINDOWS: Scalar =
    Scalar::new("usmStatsNotInTimeWindows", &[1, 3, 6, 1, 6, 3, 15, 1, 1, 2], Syntax::Counter32, Access::ReadOnly);
/// `usmStatsUnknownUserNames`: messages of nobody known.
pub const UNKNOWN_USER_NAMES: Scalar =
    Scalar::new("usmStatsUnknownUserNames", &[1, 3, 6, 1, 6, 3, 15, 1, 1, 3], Syntax::Counter32, Access::ReadOnly);
/// `usmStatsUnknownEngineIDs`: messages for another engine.
pub const UNKNOWN_ENGINE_IDS: Scalar =
    Scalar::new("usmStatsUnknownEngineIDs", &[1, 3, 6, 1, 6, 3, 15, 1, 1, 4], Syntax::Counter32, Access::ReadOnly);
/// `usmStatsWrongDigests`: messages that somebody altered.
pub const WRONG_DIGESTS: Scalar =
    Scalar::new("usmStatsWrongDigests", &[1, 3, 6, 1, 6, 3, 15, 1, 1, 5], Syntax::Counter32, Access::ReadOnly);
/// `usmStatsDecryptionErrors`: messages that could not be read.
pub const DECRYPTION_ERRORS: Scalar =
    Scalar::new("usmStatsDecryptionErrors", &[1, 3, 6, 1, 6, 3, 15, 1, 1, 6], Syntax::Counter32, Access::ReadOnly);

/// Every object of which there is one.
pub const SCALARS: &[Scalar] = &[
    ENGINE_ID,
    ENGINE_BOOTS,
    ENGINE_TIME,
    ENGINE_MAX_MESSAGE_SIZE,
    UNKNOWN_CONTEXTS,
    UNSUPPORTED_SEC_LEVELS,
    NOT_IN_TIME_WINDOWS,
    UNKNOWN_USER_NAMES,
    UNKNOWN_ENGINE_IDS,
    WRONG_DIGESTS,
    DECRYPTION_ERRORS,
];
