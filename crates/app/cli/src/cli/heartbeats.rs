//! The words of `espalier heartbeats`.

use std::path::PathBuf;

use clap::Args;

use super::numbers::short;

/// Tell espalierd which paths to other hosts fail, by the links of this host's RI2N connections.
///
/// Hosts that tag their own frames send heartbeats by `tagger run` instead. Every --every seconds the brokers of RI2N are asked for their
/// connections. A path to another host fails if no link over it is answered; it is lossy if RI2N reports the best of its links as gray.
#[derive(Args)]
#[command(
    after_help = "Example: espalier --controller https://controller.example.org:7434 --token-file /etc/espalier/token heartbeats"
)]
pub(crate) struct Heartbeats {
    /// Where brokers of RI2N can be asked; may be repeated [default: that of `ri2n status`].
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Vec<PathBuf>,
    /// Seconds between heartbeats.
    #[arg(long, default_value_t = 10, value_name = "S", value_parser = short(1..=3600))]
    pub(crate) every: u32,
}
