//! RI2N for programs that know nothing of it.
//!
//! - [`broker`]: holds the streams of all programs under one `ri2n run`.
//! - [`ledger`]: counts the connections that are not RI2N.
//! - [`launch`]: finds out how a program can be caught, starts a broker, becomes the program.
//! - [`networks`]: which destinations RI2N is tried for.
//! - [`proxy`]: a TCP port here, a TCP port there, RI2N between.
//! - [`shared_session`]: how programs join a broker that serves more than one command.
//! - [`signals`]: ending in order.
//!
//! ```text
//!  ri2n run -- PROGRAM ─ starts ─▶ broker ══ RI2N ══ the peer's broker
//!           └ becomes PROGRAM, with the preload library ── questions, socket pairs ──┘
//! ```

pub mod broker;
pub mod launch;
pub mod ledger;
pub mod networks;
pub mod proxy;
pub mod shared_session;
pub mod signals;

mod elf;
mod express;
mod greeting;
mod line;
mod local_only;
mod near;
mod pair;
mod plain;
mod pool;
mod redirect;
mod relay;
mod saved;
mod sockets;
