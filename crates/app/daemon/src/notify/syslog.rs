//! A syslog server, over UDP. Source: RFC 5424 section 6 and RFC 5426.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
};

use super::NotDelivered;
use crate::{
    documents::{Delivery, Event, Notification, Severity},
    show::timestamp,
};

/// Facility "local0".
const FACILITY: u8 = 16;
/// Longest message: what every receiver must take is 480 bytes, and should take is 2048.
const MESSAGE_LEN_MAX: usize = 2048;

/// Sends a delivery. UDP does not say whether it arrives.
pub(super) fn send(server: SocketAddr, delivery: &Delivery) -> Result<(), NotDelivered> {
    let at_server = |error: std::io::Error| NotDelivered::now(format!("syslog {server}: {error}"));
    let notification: Notification = serde_json::from_str(&delivery.body).map_err(|error| NotDelivered {
        why: format!("the delivery cannot be understood: {error}"),
        is_hopeless: true,
    })?;
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).map_err(at_server)?;
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    socket.send_to(message(host.trim(), &notification).as_bytes(), server).map(drop).map_err(at_server)
}

fn message(host: &str, Notification { kind, data, .. }: &Notification) -> String {
    let Event { severity, message, kind: event, last_s, .. } = data;
    let level = match severity {
        Severity::Critical => 2,
        Severity::Warning => 4,
        Severity::Note => 5,
    };
    let host = if host.is_empty() { "-" } else { host };
    let change = kind.strip_prefix("event.").unwrap_or(kind);
    let priority = 8 * FACILITY + level;
    let mut text = format!("<{priority}>1 {} {host} espalierd - {event} - {change}: {message}", timestamp(*last_s));
    while text.len() > MESSAGE_LEN_MAX {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_of_rfc_5424() {
        let data = Event {
            id: 7,
            kind: "cable-down".to_owned(),
            subject: "a:1 -- b:1".to_owned(),
            severity: Severity::Critical,
            worst: Severity::Critical,
            message: "a:1 -- b:1 is down".to_owned(),
            consequences: Vec::new(),
            remedy: None,
            first_s: 951_782_399,
            last_s: 951_782_400,
            gone_s: None,
            cleared_s: None,
            times: 1,
            maintenance: None,
        };
        let notification = Notification { kind: "event.opened".to_owned(), timestamp: String::new(), data };
        assert_eq!(
            message("manager", &notification),
            "<130>1 2000-02-29T00:00:00Z manager espalierd - cable-down - opened: a:1 -- b:1 is down"
        );
        let mut long = notification;
        long.data.message = "é".repeat(3000);
        assert!((MESSAGE_LEN_MAX - 1..=MESSAGE_LEN_MAX).contains(&message("", &long).len()));
    }
}
