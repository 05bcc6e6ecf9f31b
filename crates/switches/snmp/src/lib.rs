//! SNMP, versions 2c and 3, from both sides: identifiers and values, messages as bytes, signatures and encryption, and a
//! manager's session with one device.
//!
//! ```text
//!   Oid, Value, Column, Scalar ─▶ wire: BER, messages, USM ─▶ Session ─ over any Link ─▶ an agent
//!                                                              walk: a column or a table, row by row
//! ```
//! A session speaks to one device over any [`Link`]; a program runs one for each, in threads of its own. Nothing but
//! [`UdpLink`] has a socket, and nothing but [`Session`] reads a clock.
//! Sources: RFC 3411 to 3418, 3826 (AES), 7860 (SHA-2), 1157 and 3416 (messages).
#![forbid(unsafe_code)]

pub mod engine;
pub mod wire;

mod ahead;
mod link;
mod object;
mod oid;
mod round_trip;
mod row_index;
mod session;
mod value;
mod walk;

pub use link::{Link, UdpLink};
pub use object::{Access, Column, Scalar};
pub use oid::{OID_LEN_MAX, Oid, OidError};
pub use row_index::RowIndex;
pub use session::{Credentials, Patience, Session, SessionError};
pub use value::{Syntax, Value};
pub use walk::{BulkSize, OCTETS_MAX, ROWS_MAX, TIME_MAX, walk};
