//! What a process tells, and how it is shown.

use std::{fmt::Write, time::Duration};

use ri2n_io::{ConnectionStatus, LinkStatus, Role};
use serde::{Deserialize, Serialize};

/// The version of the format; readers refuse others.
pub(crate) const VERSION: u32 = 1;

/// One process and its connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Of this format.
    pub version: u32,
    /// Process number.
    pub process: u32,
    /// What it says that it does.
    pub program: String,
    /// Oldest first.
    pub connections: Vec<Connection>,
    /// Connections of its programs that are not RI2N.
    #[serde(default)]
    pub plain: Plain,
}

/// What of a process's programs is not RI2N.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plain {
    /// Whether RI2N is required: connections with other machines are refused rather than plain TCP.
    pub required: bool,
    /// Connections made, by peer and reason.
    pub peers: Vec<PlainPeer>,
    /// Ports with clients of plain TCP of other machines.
    pub ports: Vec<PlainPort>,
}

/// Connections to a peer that are not RI2N for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlainPeer {
    /// Its address; `0.0.0.0` stands for many peers.
    pub peer: String,
    /// The reason as one word, such as `keys-differ`.
    pub why: String,
    /// The reason as a sentence without a full stop.
    pub explanation: String,
    /// How many were made by plain TCP so far.
    pub plain: u64,
    /// How many were refused so far.
    pub refused: u64,
}

/// A port that programs under RI2N listen at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlainPort {
    /// The port.
    pub port: u16,
    /// Clients that are connected by plain TCP now.
    pub clients: u64,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// The same number at both ends, hexadecimal.
    pub id: String,
    /// `client` or `server`.
    pub role: String,
    /// What guards the packets: `none`, `checksum`, `authenticated`, `encrypted`.
    #[serde(default)]
    pub protection: String,
    /// The identifier of the key, if one does.
    #[serde(default)]
    pub key: Option<String>,
    /// How far the stream is.
    pub state: String,
    /// Near address.
    pub local: String,
    /// Far address.
    pub peer: String,
    /// Stream bytes sent for the first time.
    pub bytes_sent: u64,
    /// Stream bytes that the peer has without a hole.
    pub bytes_acked: u64,
    /// Stream bytes that this end has without a hole.
    pub bytes_received: u64,
    /// Datagrams that were not believed.
    pub rejected: u64,
    /// Age, seconds.
    pub age_s: f64,
    /// Time since anything arrived, seconds.
    pub silent_s: f64,
    /// In order of their numbers.
    pub links: Vec<Link>,
}

/// One link of a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The same number at both ends.
    pub id: u8,
    /// Near address, where it is fixed.
    pub local: Option<String>,
    /// Far address.
    pub remote: String,
    /// Which of the source ports between the same two addresses it has; zero is the connection's own.
    #[serde(default)]
    pub entropy: u8,
    /// Data leave on the usable links of the lowest number; zero unless configured.
    #[serde(default)]
    pub priority: u8,
    /// What is thought of it: `good`, `gray`, `suspect`, `down`, `opening`.
    pub health: String,
    /// Delivered of late, bits a second.
    pub rate_bps: u64,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u64,
    /// Smallest round-trip time of late, microseconds.
    pub rtt_min_us: u64,
    /// Share of packets that arrived of late.
    pub delivery_ratio: f64,
    /// Largest UDP payload in use, bytes.
    pub datagram_bytes: u16,
    /// Bytes that may be in flight.
    pub window_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets given up.
    pub packets_lost: u64,
    /// Packets that arrived.
    pub packets_received: u64,
    /// Stream bytes sent, repetitions included.
    pub bytes_sent: u64,
    /// Stream bytes received, repetitions included.
    pub bytes_received: u64,
    /// How often it was suspected or down.
    pub suspicions: u64,
}

impl Report {
    /// This process now.
    pub fn of_this_process(program: &str, plain: Plain) -> Self {
        let connections = ri2n_io::connections().iter().map(Connection::from).collect();
        Self { version: VERSION, process: std::process::id(), program: program.to_owned(), connections, plain }
    }
}

impl From<&ConnectionStatus> for Connection {
    fn from(status: &ConnectionStatus) -> Self {
        Self {
            id: format!("{:016x}", status.id),
            role: match status.role {
                Role::Client => "client".into(),
                Role::Server => "server".into(),
            },
            protection: status.protection.into(),
            key: status.key.map(|key| key.to_string()),
            state: word(status.state),
            local: status.local.to_string(),
            peer: status.peer.to_string(),
            bytes_sent: status.bytes_sent,
            bytes_acked: status.bytes_acked,
            bytes_received: status.bytes_received,
            rejected: status.rejected,
            age_s: status.age.as_secs_f64(),
            silent_s: status.silent_for.as_secs_f64(),
            links: status.links.iter().map(Link::from).collect(),
        }
    }
}

impl From<&LinkStatus> for Link {
    fn from(status: &LinkStatus) -> Self {
        let us = |time: Duration| time.as_micros() as u64;
        Self {
            id: status.id,
            local: status.local.map(|local| local.to_string()),
            remote: status.remote.to_string(),
            entropy: status.entropy,
            priority: status.priority,
            health: word(status.health),
            rate_bps: status.rate_bps,
            rtt_us: us(status.rtt),
            rtt_min_us: us(status.rtt_min),
            delivery_ratio: status.delivery_ratio,
            datagram_bytes: status.datagram_size,
            window_bytes: status.window,
            in_flight_bytes: status.in_flight,
            packets_sent: status.packets_sent,
            packets_lost: status.packets_lost,
            packets_received: status.packets_received,
            bytes_sent: status.bytes_sent,
            bytes_received: status.bytes_received,
            suspicions: status.suspicions,
        }
    }
}

/// For people: a line a connection, a line a link.
pub fn text(reports: &[Report]) -> String {
    let mut out = String::new();
    for report in reports {
        let count = report.connections.len();
        let plural = if count == 1 { "" } else { "s" };
        let required = if report.plain.required { "; RI2N is required" } else { "" };
        let _ = writeln!(out, "process {}, {}: {count} connection{plural}{required}", report.process, report.program);
        for connection in &report.connections {
            let Connection { role, state, local, peer, age_s, .. } = connection;
            let guarded = match &connection.key {
                Some(key) => format!(", {} with key {key}", connection.protection),
                None => String::new(),
            };
            let _ = writeln!(
                out,
                "  {role} {local} -- {peer}, {state}, {age_s:.0} s, sent {}, received {}{guarded}",
                megabytes(connection.bytes_sent),
                megabytes(connection.bytes_received)
            );
            for link in &connection.links {
                let entropy = if link.entropy > 0 { format!("  entropy {}", link.entropy) } else { String::new() };
                let backup = if link.priority > 0 { format!("  priority {}", link.priority) } else { String::new() };
                let _ = writeln!(
                    out,
                    "    link {} {:<22} {:<8} {:>8.1} Mbit/s  rtt {:>7.3} ms  arrives {:>5.1} %  lost {}  suspected {}{entropy}{backup}",
                    link.id,
                    link.remote,
                    link.health,
                    link.rate_bps as f64 / 1e6,
                    link.rtt_us as f64 / 1e3,
                    link.delivery_ratio * 100.0,
                    link.packets_lost,
                    link.suspicions
                );
            }
        }
        plain_text(&report.plain, &mut out);
    }
    if reports.is_empty() {
        out.push_str("no process speaks RI2N\n");
    }
    out
}

fn plain_text(plain: &Plain, out: &mut String) {
    let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    for PlainPeer { peer, explanation, plain, refused, .. } in &plain.peers {
        for (count, how) in [(plain, "plain TCP"), (refused, "refused")] {
            if *count > 0 {
                let _ = writeln!(out, "  {how}: {} to {peer} so far: {explanation}", counted(*count, "connection"));
            }
        }
    }
    for PlainPort { port, clients } in &plain.ports {
        let _ = writeln!(out, "  plain TCP: {} at port {port} now", counted(*clients, "client"));
    }
}

/// A metric of a connection or a link.
type Metric<T> = (&'static str, &'static str, &'static str, fn(&T) -> f64);

const CONNECTION_METRICS: &[Metric<Connection>] = &[
    ("ri2n_sent_bytes_total", "counter", "Stream bytes sent for the first time.", |c| c.bytes_sent as f64),
    ("ri2n_acked_bytes_total", "counter", "Stream bytes that the peer has.", |c| c.bytes_acked as f64),
    ("ri2n_received_bytes_total", "counter", "Stream bytes received in order.", |c| c.bytes_received as f64),
    ("ri2n_rejected_datagrams_total", "counter", "Datagrams that were not believed.", |c| c.rejected as f64),
    ("ri2n_silent_seconds", "gauge", "Time since anything arrived.", |c| c.silent_s),
];

const LINK_METRICS: &[Metric<Link>] = &[
    ("ri2n_link_up", "gauge", "1 unless the link is suspected or down.", |l| {
        f64::from(u8::from(!matches!(l.health.as_str(), "suspect" | "down")))
    }),
    ("ri2n_link_priority", "gauge", "Links of the lowest number that deliver carry the data.", |l| {
        f64::from(l.priority)
    }),
    ("ri2n_link_rate_bits_per_second", "gauge", "Delivered of late.", |l| l.rate_bps as f64),
    ("ri2n_link_rtt_seconds", "gauge", "Smoothed round-trip time.", |l| l.rtt_us as f64 / 1e6),
    ("ri2n_link_delivery_ratio", "gauge", "Share of packets that arrived of late.", |l| l.delivery_ratio),
    ("ri2n_link_in_flight_bytes", "gauge", "Bytes in flight.", |l| l.in_flight_bytes as f64),
    ("ri2n_link_sent_packets_total", "counter", "Packets sent.", |l| l.packets_sent as f64),
    ("ri2n_link_lost_packets_total", "counter", "Packets given up.", |l| l.packets_lost as f64),
    ("ri2n_link_received_packets_total", "counter", "Packets that arrived.", |l| l.packets_received as f64),
    ("ri2n_link_sent_bytes_total", "counter", "Stream bytes sent, repetitions included.", |l| l.bytes_sent as f64),
    ("ri2n_link_received_bytes_total", "counter", "Stream bytes received, repetitions included.", |l| {
        l.bytes_received as f64
    }),
    ("ri2n_link_suspicions_total", "counter", "How often it was suspected or down.", |l| l.suspicions as f64),
];

/// For Prometheus: its text format, version 0.0.4.
pub fn prometheus(reports: &[Report]) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "# HELP ri2n_connections Connections of a process.\n# TYPE ri2n_connections gauge");
    for report in reports {
        let labels = format!("process=\"{}\",program=\"{}\"", report.process, escape(&report.program));
        let _ = writeln!(out, "ri2n_connections{{{labels}}} {}", report.connections.len());
    }
    plain_metrics(reports, &mut out);
    for (name, kind, help, value) in CONNECTION_METRICS {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, connection) in connections(reports) {
            let _ = writeln!(out, "{name}{{{labels}}} {}", value(connection));
        }
    }
    for (name, kind, help, value) in LINK_METRICS {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, connection) in connections(reports) {
            for link in &connection.links {
                let remote = escape(&link.remote);
                let _ = writeln!(out, "{name}{{{labels},link=\"{}\",remote=\"{remote}\"}} {}", link.id, value(link));
            }
        }
    }
    out
}

fn plain_metrics(reports: &[Report], out: &mut String) {
    let mut metric = |name: &str, kind: &str, help: &str, series: &dyn Fn(&Report) -> Vec<(String, u64)>| {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for report in reports {
            for (labels, value) in series(report) {
                let _ = writeln!(out, "{name}{{process=\"{}\"{labels}}} {value}", report.process);
            }
        }
    };
    metric("ri2n_required", "gauge", "1 if connections are refused rather than plain TCP.", &|report| {
        vec![(String::new(), u64::from(report.plain.required))]
    });
    let by_peer = |report: &Report, value: fn(&PlainPeer) -> u64| -> Vec<(String, u64)> {
        let labels = |peer: &PlainPeer| format!(",peer=\"{}\",why=\"{}\"", escape(&peer.peer), escape(&peer.why));
        report.plain.peers.iter().map(|peer| (labels(peer), value(peer))).collect()
    };
    metric("ri2n_plain_connections_total", "counter", "Connections made by plain TCP.", &|report| {
        by_peer(report, |peer| peer.plain)
    });
    metric("ri2n_refused_connections_total", "counter", "Connections refused for want of RI2N.", &|report| {
        by_peer(report, |peer| peer.refused)
    });
    metric("ri2n_plain_clients", "gauge", "Clients that are connected by plain TCP.", &|report| {
        report.plain.ports.iter().map(|port| (format!(",port=\"{}\"", port.port), port.clients)).collect()
    });
}

fn connections(reports: &[Report]) -> impl Iterator<Item = (String, &Connection)> {
    reports.iter().flat_map(|report| {
        report.connections.iter().map(move |connection| {
            let Connection { id, role, peer, .. } = connection;
            let labels =
                format!("process=\"{}\",id=\"{id}\",role=\"{role}\",peer=\"{}\"", report.process, escape(peer));
            (labels, connection)
        })
    })
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// An enumeration's variant as words: `Closed(ByPeer)` becomes `closed-by-peer`.
fn word(variant: impl std::fmt::Debug) -> String {
    let mut word = String::new();
    for c in format!("{variant:?}").chars().filter(|c| c.is_alphanumeric()) {
        if c.is_uppercase() && !word.is_empty() {
            word.push('-');
        }
        word.extend(c.to_lowercase());
    }
    word
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample() -> Report {
        let link = |id, health: &str| Link {
            id,
            local: Some(format!("10.91.{id}.1")),
            remote: format!("10.91.{id}.2:7000"),
            entropy: 0,
            priority: id,
            health: health.into(),
            rate_bps: 941_000_000,
            rtt_us: 210,
            rtt_min_us: 60,
            delivery_ratio: 0.995,
            datagram_bytes: 1472,
            window_bytes: 100_000,
            in_flight_bytes: 90_000,
            packets_sent: 10,
            packets_lost: 1,
            packets_received: 9,
            bytes_sent: 14_000,
            bytes_received: 1,
            suspicions: 0,
        };
        let connection = Connection {
            id: "00000000000000ff".into(),
            role: "client".into(),
            protection: "encrypted".into(),
            key: Some("00112233445566ff".into()),
            state: "open".into(),
            local: "10.91.0.1:40000".into(),
            peer: "10.91.0.2:5201".into(),
            bytes_sent: 2_500_000,
            bytes_acked: 2_400_000,
            bytes_received: 37,
            rejected: 0,
            age_s: 12.5,
            silent_s: 0.001,
            links: vec![link(0, "good"), link(1, "suspect")],
        };
        let peer = |why: &str, plain, refused| PlainPeer {
            peer: "10.91.0.9".into(),
            why: why.into(),
            explanation: format!("because of {why}"),
            plain,
            refused,
        };
        let plain = Plain {
            required: true,
            peers: vec![peer("other-network", 2, 0), peer("keys-differ", 0, 1)],
            ports: vec![PlainPort { port: 7001, clients: 3 }],
        };
        Report { version: VERSION, process: 4711, program: "run \"x\"".into(), connections: vec![connection], plain }
    }

    #[test]
    fn people_see_every_link() {
        let text = text(&[sample()]);
        assert_eq!(text.lines().count(), 7, "{text}");
        for line in [
            "process 4711, run \"x\": 1 connection; RI2N is required",
            "  plain TCP: 2 connections to 10.91.0.9 so far: because of other-network",
            "  refused: 1 connection to 10.91.0.9 so far: because of keys-differ",
            "  plain TCP: 3 clients at port 7001 now",
            "  client 10.91.0.1:40000 -- 10.91.0.2:5201, open, 12 s, sent 2.5 MB, received 0.0 MB, encrypted with key 00112233445566ff",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert!(text.contains("10.91.1.2:7000") && text.contains("suspect"), "{text}");
        let priorities: Vec<bool> =
            text.lines().filter(|line| line.contains(" link ")).map(|line| line.ends_with("  priority 1")).collect();
        assert_eq!(priorities, [false, true], "{text}");
        assert_eq!(super::text(&[]), "no process speaks RI2N\n");
    }

    #[test]
    fn metrics_are_well_formed() {
        let metrics = prometheus(&[sample()]);
        let mut names = Vec::new();
        for line in metrics.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                names.push(rest.split(' ').next().unwrap().to_owned());
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                assert_eq!(series.split('{').next(), names.last().map(String::as_str), "{line}");
                assert!(series.ends_with("\"}"), "{line}");
            }
        }
        for line in [
            "ri2n_required{process=\"4711\"} 1",
            "ri2n_plain_connections_total{process=\"4711\",peer=\"10.91.0.9\",why=\"other-network\"} 2",
            "ri2n_refused_connections_total{process=\"4711\",peer=\"10.91.0.9\",why=\"keys-differ\"} 1",
            "ri2n_plain_clients{process=\"4711\",port=\"7001\"} 3",
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
        }
        assert!(metrics.contains("program=\"run \\\"x\\\"\""), "{metrics}");
        assert!(
            metrics.contains("link=\"1\",remote=\"10.91.1.2:7000\"} 0\n"),
            "the suspected link is not up: {metrics}"
        );
    }

    #[test]
    fn words_are_lower_case() {
        #[derive(Debug)]
        enum Sample {
            Open,
            Closed(Why),
        }
        #[derive(Debug)]
        enum Why {
            ByPeer,
        }
        assert_eq!(word(Sample::Open), "open");
        assert_eq!(word(Sample::Closed(Why::ByPeer)), "closed-by-peer");
    }
}
