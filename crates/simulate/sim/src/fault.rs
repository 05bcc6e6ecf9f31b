//! What breaks and heals, in words.
//!
//! ```text
//!   5ms   link  sw1:g23            down          a cable is named by either of its ports
//!   20ms  link  sw1:g23            up
//!   0     link  sw1:g24            loses 0.1%    of its frames, both ways
//!   1s    link  sw1:g24            rate 100mbit
//!   30ms  switch sw2               down
//! ```
//! A line a fault; what follows `#` is a comment.

use fabric::{Attachment, LinkId, Topology, parse_rate};

use crate::{
    program::text::{Mistakes, quoted},
    workload::{Change, Fault},
};

/// Latest time of a fault: 11 days.
const AT_PS_MAX: f64 = 1e18;

/// Reads faults, a line each; `file` is their name in mistakes. They are ordered by time.
///
/// # Errors
/// Every mistake, with its line.
pub fn read_faults(file: &str, text: &str, topology: &Topology) -> Result<Vec<Fault>, Mistakes> {
    let (mut faults, mut mistakes) = (Vec::new(), Mistakes::default());
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        match parse_fault(line, topology) {
            Ok(fault) => faults.push(fault),
            Err(message) => mistakes.push(file, number, message),
        }
    }
    faults.sort_by_key(|fault| fault.at_ps);
    if mistakes.is_empty() { Ok(faults) } else { Err(mistakes) }
}

/// Reads one fault.
///
/// # Errors
/// What is wrong, and what would be right.
pub fn parse_fault(text: &str, topology: &Topology) -> Result<Fault, String> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [time, kind, name, what @ ..] = words.as_slice() else {
        return Err(format!("{} is no fault; one is `5ms link sw1:g23 down`", quoted(text)));
    };
    let at_ps = parse_time_ps(time)?;
    let change = match (*kind, what) {
        ("link", ["down"]) => Change::LinkDown(find_link(name, topology)?),
        ("link", ["up"]) => Change::LinkUp(find_link(name, topology)?),
        ("link", ["loses", share]) => Change::LinkLoses(find_link(name, topology)?, parse_share(share)?),
        ("link", ["rate", rate]) => {
            let rate_bps = parse_rate(rate).map_err(|error| format!("{}: {error}", quoted(rate)))?;
            Change::LinkRate(find_link(name, topology)?, rate_bps)
        }
        ("switch", ["down" | "up"]) => {
            let switch = topology.find_switch(name).ok_or_else(|| format!("no switch is called {}", quoted(name)))?;
            if what == ["up"] { Change::SwitchUp(switch) } else { Change::SwitchDown(switch) }
        }
        ("link", _) => return Err("a link goes `down` or `up`, `loses 1%`, or has `rate 100mbit`".to_owned()),
        ("switch", _) => return Err("a switch goes `down` or `up`".to_owned()),
        (other, _) => return Err(format!("{} is neither `link` nor `switch`", quoted(other))),
    };
    Ok(Fault { at_ps, change })
}

/// A time such as `5ms`, `1.5s`, `200us`, `10ns` or 0, in picoseconds.
///
/// # Errors
/// What is wrong.
pub fn parse_time_ps(text: &str) -> Result<u64, String> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let scale = match unit {
        "s" => 1e12,
        "ms" => 1e9,
        "us" => 1e6,
        "ns" => 1e3,
        "" if number == "0" => 1.0,
        _ => return Err(format!("{} is no time such as 5ms, 1.5s or 200us", quoted(text))),
    };
    let time = number.parse::<f64>().map_err(|_| format!("{} is no time such as 5ms", quoted(text)))? * scale;
    if time <= AT_PS_MAX { Ok(time.round() as u64) } else { Err(format!("{} is more than 11 days", quoted(text))) }
}

fn parse_share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    let share = number.parse::<f64>().ok().map(|share| share * scale).filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("{} is no share of frames such as 0.1% or 0.001", quoted(text)))
}

fn find_link(name: &str, topology: &Topology) -> Result<LinkId, String> {
    let (switch, port) =
        name.split_once(':').ok_or_else(|| format!("{} is no port; a cable is named as sw1:g23", quoted(name)))?;
    let id = topology.find_switch(switch).ok_or_else(|| format!("no switch is called {}", quoted(switch)))?;
    let port = topology.find_port(id, port).ok_or_else(|| format!("{} has no port {}", switch, quoted(port)))?;
    match topology.port(port).attachment {
        Attachment::Link(link) => Ok(link),
        Attachment::Host(_) => {
            Err(format!("{} leads to a host; faults are those of cables between switches", quoted(name)))
        }
        Attachment::Member(lag) => {
            let lag = topology.port_label(lag);
            Err(format!("{} is a member of {lag}; faults are those of whole links", quoted(name)))
        }
        Attachment::Nothing => Err(format!("no cable is in {}", quoted(name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::generate::{Kind, Options, generate};

    #[test]
    fn faults_are_read_and_refused() {
        let kind = Kind::parse("mesh", &["2".to_owned()]).expect("a kind");
        let options = Options { hosts_per_switch: Some(1), ..Options::default() };
        let topology = generate(&kind, &options).expect("a topology");
        let link = topology.link(LinkId::new(0));
        let port = topology.port_label(link.a);
        let host = topology.port_label(topology.hosts()[0].port);
        let switch = &topology.switches()[1].name;
        let text = format!(
            "# first\n1s link {port} rate 100mbit\n\n5ms link {port} down # bang\n0 switch {switch} up\n\
             200us link {port} loses 0.1%\n"
        );
        let found = read_faults("f", &text, &topology).expect("faults");
        let times: Vec<u64> = found.iter().map(|fault| fault.at_ps).collect();
        assert_eq!(times, [0, 200_000_000, 5_000_000_000, 1_000_000_000_000]);
        assert_eq!(found[1].change, Change::LinkLoses(LinkId::new(0), 0.001));
        let wrong = format!(
            "5 link {port} down\n5ms link nobody down\n5ms link x:y down\n1ms link {port} loses 2\n1ms link {host} down\n\
             1ms host h down\n1ms switch {switch} rate 1\nnonsense\n"
        );
        let wrong = read_faults("f", &wrong, &topology).expect_err("mistakes");
        let wrong: Vec<String> = wrong.items().iter().map(ToString::to_string).collect();
        assert_eq!(wrong[0], "f:1: \"5\" is no time such as 5ms, 1.5s or 200us");
        assert_eq!(wrong[2], "f:3: no switch is called \"x\"");
        assert_eq!(wrong[3], "f:4: \"2\" is no share of frames such as 0.1% or 0.001");
        assert!(wrong[4].contains("leads to a host"), "{wrong:?}");
        assert_eq!(wrong.len(), 8);
    }
}
