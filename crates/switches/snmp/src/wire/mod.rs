//! SNMP messages as octets: BER, versions 1, 2c and 3, and the user-based security of version 3.
//!
//! Everything here is a pure function of its arguments. Reading never panics and never takes more memory than a few
//! times the datagram, whatever came; what is read and written again is the same message.
//!
//! Sources: ITU-T X.690 (BER), RFC 1157, 1901, 3412, 3414, 3416, 3417, 3826 (AES), 7860 (SHA-2); draft-blumenthal-aes-usm-04 (longer
//! keys of AES).

mod ber;
mod message;
mod usm;

pub use ber::WireError;
pub use message::{
    BINDINGS_MAX, Binding, CommunityMessage, ErrorStatus, Message, Pdu, PduKind, Scoped, ScopedData, SecurityLevel,
    UsmHeader, V3Message, Version, decode_scoped, encode_scoped,
};
pub use usm::{
    AuthProtocol, Key, Keys, PASSWORD_LEN_MIN, PrivacyKey, PrivacyProtocol, UnknownProtocol, decrypt, encrypt,
    is_authentic, sign,
};
