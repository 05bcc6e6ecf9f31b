//! One pair measured by iperf3 instead of our own sender.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use crate::{Lab, LabError, error::Context};

/// What iperf3 says of a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IperfResult {
    /// Payload that arrived, in bits per second.
    pub goodput_bps: f64,
    /// TCP segments sent again.
    pub retransmits: u64,
}

/// Sends from `source` to `destination` for `seconds` with iperf3.
///
/// # Errors
/// [`LabError::Missing`] if iperf3 is not installed, [`LabError::NoSuchHost`], or [`LabError::Tool`] with its words.
pub fn iperf3(lab: &Lab, source: &str, destination: &str, seconds: u32) -> Result<IperfResult, LabError> {
    let address = lab.layout().host(destination)?.address.to_string();
    let args = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
    if std::process::Command::new("iperf3").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Err(LabError::Missing("the program iperf3 is missing: apt-get install iperf3".to_owned()));
    }
    let seconds = seconds.to_string();
    // Whatever can be refused is refused before the server runs.
    let mut client = lab.command(source, "iperf3", &args(&["-c", &address, "-t", &seconds, "-J"]))?;
    let mut server = lab.command(destination, "iperf3", &args(&["-s", "-1", "--forceflush"]))?;
    let mut server =
        server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("measure", destination, "start iperf3")?;
    let mut said = server.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines).map_while(Result::ok);
    let listens = said.any(|line| line.contains("listening"));
    let output = client.output();
    // It ends by itself after one client, but none may have come. Whoever has gone needs no signal.
    let _ = server.kill();
    server.wait().context("measure", destination, "end iperf3")?;
    let output = output.context("measure", source, "start iperf3")?;
    if !listens {
        return Err(tool_error(destination, "the server does not start".to_owned()));
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| tool_error(source, String::from_utf8_lossy(&output.stderr).into_owned()))?;
    let goodput_bps = report["end"]["sum_received"]["bits_per_second"].as_f64();
    let goodput_bps = goodput_bps.ok_or_else(|| tool_error(source, report["error"].to_string()))?;
    Ok(IperfResult { goodput_bps, retransmits: report["end"]["sum_sent"]["retransmits"].as_u64().unwrap_or(0) })
}

fn tool_error(host: &str, message: String) -> LabError {
    LabError::Tool { operation: "measure", device: host.to_owned(), step: "run iperf3", tool: "iperf3", message }
}
