//! Heartbeats of a host whose programs use RI2N: which of their links fail, by the MAC addresses of both ends.
//!
//! ```text
//!  brokers ─ status ─▶ links, by IP addresses ─ devices, neighbour tables ─▶ paths, by MAC addresses ─▶ espalierd
//! ```

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use api_client::documents::{Heartbeat, HeartbeatSource, PathLoss, TestedPath};
use fabric::Mac;
use linux_net::stations;
use ri2n_status::{Link, Report};

use super::send;
use crate::{
    cli,
    commands::{interrupt::Interrupt, through::Through},
    failure::bad_input,
};

/// `espalier heartbeats`.
pub(in crate::commands) fn run(args: &cli::Heartbeats, controller: &cli::Controller) -> Result<ExitCode> {
    let through = Through::of(controller)?
        .ok_or_else(|| bad_input("heartbeats are sent to espalierd: name it with --controller URL"))?;
    let directories = match &args.directory[..] {
        [] => vec![ri2n_status::directory()],
        given => given.to_vec(),
    };
    // A mistake is told at once, and not again with every heartbeat.
    let found = found(&directories)?;
    eprintln!("sending heartbeats every {} s; {}", args.every, counted(&found));
    let interrupt = Interrupt::watch_in_order()?;
    let mut heartbeats = || {
        // A host whose brokers or devices cannot be asked now sends nothing.
        found_or_nothing(&directories).into_iter().map(|(host, paths)| heartbeat(host, &paths, args.every)).collect()
    };
    send(&through.endpoint, u64::from(args.every), &|| interrupt.is_pressed(), &|| false, &mut heartbeats);
    Ok(ExitCode::SUCCESS)
}

/// Paths by the addresses of our device and of the peer's, and how they fail, if they do.
type Paths = BTreeMap<Mac, BTreeMap<Mac, Option<PathLoss>>>;

fn found_or_nothing(directories: &[PathBuf]) -> Paths {
    found(directories).unwrap_or_default()
}

fn found(directories: &[PathBuf]) -> Result<Paths> {
    let mut reports = Vec::new();
    for directory in directories {
        let asked = ri2n_status::ask_all(directory);
        reports.extend(asked.with_context(|| format!("{}: ask the brokers of RI2N", directory.display()))?);
    }
    let own = stations::addresses().context("list this host's addresses")?;
    let neighbours = stations::neighbours().context("list this host's neighbours")?;
    Ok(paths(&reports, &own, &neighbours))
}

fn counted(paths: &Paths) -> String {
    match paths.values().map(BTreeMap::len).sum::<usize>() {
        1 => "1 path to another host has a connection of RI2N".to_owned(),
        count => format!("{count} paths to other hosts have connections of RI2N"),
    }
}

/// What connections say of the paths between devices. Links between the same two devices take one path, which is as good as the best of
/// them; of several links through one port only the first takes the path of all other frames.
fn paths(reports: &[Report], own: &BTreeMap<IpAddr, Mac>, neighbours: &BTreeMap<IpAddr, Mac>) -> Paths {
    let mut paths = Paths::new();
    let links = reports.iter().flat_map(|report| &report.connections).flat_map(|connection| {
        connection.links.iter().map(|link| (connection.local.as_str(), link)).collect::<Vec<_>>()
    });
    for (connected_from, link) in links.filter(|(_, link)| link.entropy == 0) {
        let Some(loss) = loss(link) else { continue };
        let local = link.local.as_deref().unwrap_or(connected_from);
        let (Some(from), Some(to)) = (station(local, own), station(&link.remote, neighbours)) else { continue };
        let known = paths.entry(from).or_default().entry(to).or_insert(loss);
        *known = (*known).min(loss);
    }
    paths
}

/// How a link fails, if it does; `None` if that is not known.
fn loss(link: &Link) -> Option<Option<PathLoss>> {
    match link.health.as_str() {
        "good" => Some(None),
        "gray" => Some(Some(PathLoss::Lossy)),
        "suspect" => Some(Some(PathLoss::Silent)),
        // The port is down, which its switch tells; or nothing has been sent.
        _ => None,
    }
}

/// The MAC address behind an IP address, with a port or without.
fn station(text: &str, known: &BTreeMap<IpAddr, Mac>) -> Option<Mac> {
    let ip = text.parse::<SocketAddr>().map(|address| address.ip()).or_else(|_| text.parse()).ok()?;
    known.get(&ip.to_canonical()).copied()
}

fn heartbeat(host: Mac, paths: &BTreeMap<Mac, Option<PathLoss>>, every_s: u32) -> Heartbeat {
    Heartbeat {
        host: host.to_string(),
        source: HeartbeatSource::Ri2n,
        every_s: u64::from(every_s),
        tested: paths.iter().map(|(toward, loss)| TestedPath { toward: toward.to_string(), loss: *loss }).collect(),
        ..Heartbeat::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_paths_between_devices_as_good_as_their_best() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let (ours, theirs) = ([Mac::local(1), Mac::local(2)], [Mac::local(11), Mac::local(12)]);
        let own = BTreeMap::from([(ip("10.0.0.1"), ours[0]), (ip("10.1.0.1"), ours[1])]);
        let neighbours =
            BTreeMap::from([(ip("10.0.0.2"), theirs[0]), (ip("10.1.0.2"), theirs[1]), (ip("fd00::2"), theirs[1])]);
        let link = |local: Option<&str>, remote: &str, entropy: u8, health: &str| {
            let local = local.map_or("null".to_owned(), |local| format!("{local:?}"));
            format!(
                r#"{{"id":0,"local":{local},"remote":{remote:?},"entropy":{entropy},"health":{health:?},"rate_bps":0,"rtt_us":0,
                    "rtt_min_us":0,"delivery_ratio":1.0,"datagram_bytes":0,"window_bytes":0,"in_flight_bytes":0,"packets_sent":0,
                    "packets_lost":0,"packets_received":0,"bytes_sent":0,"bytes_received":0,"suspicions":0}}"#
            )
        };
        let report = |links: &[String]| -> Report {
            let text = format!(
                r#"{{"version":1,"process":1,"program":"a test","connections":[{{"id":"0","role":"client","state":"open",
                    "local":"10.0.0.1:5000","peer":"10.0.0.2:80","bytes_sent":0,"bytes_acked":0,"bytes_received":0,"rejected":0,
                    "age_s":0.0,"silent_s":0.0,"links":[{}]}}]}}"#,
                links.join(",")
            );
            serde_json::from_str(&text).expect("a report")
        };
        let reports = [
            report(&[
                link(None, "10.0.0.2:80", 0, "suspect"),
                link(Some("10.1.0.1"), "10.1.0.2:80", 0, "gray"),
                link(Some("10.1.0.1"), "10.1.0.2:80", 1, "suspect"),
                link(Some("10.1.0.1"), "10.9.0.2:80", 0, "good"),
            ]),
            report(&[link(Some("10.1.0.1"), "[fd00::2]:80", 0, "suspect"), link(None, "10.0.0.2:80", 0, "opening")]),
        ];
        let expected = Paths::from([
            (ours[0], BTreeMap::from([(theirs[0], Some(PathLoss::Silent))])),
            (ours[1], BTreeMap::from([(theirs[1], Some(PathLoss::Lossy))])),
        ]);
        assert_eq!(paths(&reports, &own, &neighbours), expected);
        let recovered = [report(&[link(None, "10.0.0.2:80", 0, "good")])];
        let all = paths(&[&reports[..], &recovered].concat(), &own, &neighbours);
        assert_eq!(all[&ours[0]], BTreeMap::from([(theirs[0], None)]));
    }
}
