//! What `simulate` writes beside its summary.

use std::{path::PathBuf, str::FromStr};

use clap::Args;

/// Files to write; see docs/simulator-outputs.md for every column.
#[derive(Args)]
#[command(next_help_heading = "Files")]
pub(crate) struct SimulateOutputs {
    /// Write a line a flow, as CSV.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write a line for each direction of each cable, as CSV.
    #[arg(long, value_name = "FILE")]
    pub(crate) channels: Option<PathBuf>,
    /// Write use and queue of each direction of each cable over time, as CSV.
    #[arg(long, value_name = "FILE")]
    pub(crate) series: Option<PathBuf>,
    /// Write what hosts received over time, as CSV.
    #[arg(long, value_name = "FILE")]
    pub(crate) goodput: Option<PathBuf>,
    /// Length of an interval of these, in milliseconds; a two-hundredth of the simulated time unless given.
    #[arg(long, value_name = "MS", value_parser = super::numbers::real(1e-9..=1e10))]
    pub(crate) sample_ms: Option<f64>,
    /// Draw what hosts received over time: .svg or .png.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Draw the fabric with its cables coloured by use: .svg or .png.
    #[arg(long, value_name = "FILE")]
    pub(crate) heat_map: Option<PathBuf>,
    /// Write the frames that pass a switch's port, with their headers, for tcpdump and Wireshark. May be repeated.
    #[arg(long, value_name = "SWITCH:PORT=FILE")]
    pub(crate) pcap: Vec<PcapAt>,
}

/// A port to capture at, by name, and where to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PcapAt {
    pub(crate) switch: String,
    pub(crate) port: String,
    pub(crate) file: PathBuf,
}

impl FromStr for PcapAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').and_then(|(at, file)| Some((at.split_once(':')?, file)));
        match parts {
            Some(((switch, port), file)) if !switch.is_empty() && !port.is_empty() && !file.is_empty() => {
                Ok(Self { switch: switch.to_owned(), port: port.to_owned(), file: file.into() })
            }
            _ => Err("name a switch, its port and a file, as in s0-0:p2=port.pcap".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_name_switch_port_and_file() {
        let parsed: PcapAt = "s0-0:p2=a=b.pcap".parse().expect("a capture");
        let expected = PcapAt { switch: "s0-0".to_owned(), port: "p2".to_owned(), file: "a=b.pcap".into() };
        assert_eq!(parsed, expected);
        for wrong in ["", "s0:p1", "s0=f", ":p1=f", "s0:=f", "s0:p1="] {
            assert!(wrong.parse::<PcapAt>().is_err(), "{wrong:?}");
        }
    }
}
