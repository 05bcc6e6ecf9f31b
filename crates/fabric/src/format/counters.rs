//! Byte counters as comma-separated values: what each host has sent and received.
//!
//! Either a port a line, as switches count (`rx_bytes` is what the switch received, so what the host sent; ports that lead
//! to no host are passed over), or a host a line. One file is taken as totals; of two, the later less the earlier reading
//! of the same counters.
//!
//! ```text
//!   switch,port,rx_bytes,tx_bytes           host,sent_bytes,received_bytes
//!   sw1,g1,918273,645                       node01,918273,645
//! ```

use std::collections::BTreeMap;

use super::{
    csv::{Field, records},
    diagnostic::{Diagnostics, Source, TextSpan},
    traffic::HostNames,
};
use crate::{Attachment, HostId, PortId, SwitchId, Topology, name::most_similar};

/// The first line of each kind of file; it may be missing.
const PORT_HEADING: [&str; 4] = ["switch", "port", "rx_bytes", "tx_bytes"];
const HOST_HEADING: [&str; 3] = ["host", "sent_bytes", "received_bytes"];
/// Hosts without counters that a warning names.
const NAMES_MAX: usize = 5;

/// What hosts exchanged, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// `sent[host]`.
    pub sent: Vec<u64>,
    /// `received[host]`.
    pub received: Vec<u64>,
}

/// Reads one reading of byte counters, or an earlier and a later one. Warnings come with the totals.
/// Cost: O(fields · log ports).
///
/// # Errors
/// Diagnostics with line and column.
pub fn read_counters(files: &[(&str, &str)], topology: &Topology) -> Result<(Totals, Diagnostics), Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let sources: Vec<Source<'_>> = files.iter().map(|(file, text)| Source::new(file, text)).collect();
    let names = Names::new(topology);
    let mut readings = Vec::new();
    for source in &sources {
        if source.check_size(&mut diagnostics) {
            readings.push(reading(topology, &names, source, &mut diagnostics));
        }
    }
    let totals = match (&readings[..], &sources[..]) {
        _ if diagnostics.errors() > 0 => None,
        ([only], [source]) => {
            warn_of_gaps(topology, source, only, &mut diagnostics);
            let count = |way: usize| only.iter().map(|host| host.as_ref().map_or(0, |host| host.bytes[way])).collect();
            Some(Totals { sent: count(SENT), received: count(RECEIVED) })
        }
        ([earlier, later], [before, after]) => {
            warn_of_gaps(topology, after, later, &mut diagnostics);
            difference(topology, (before, earlier), (after, later), &mut diagnostics)
        }
        _ => None,
    };
    diagnostics.into_result(totals)
}

const SENT: usize = 0;
const RECEIVED: usize = 1;

/// A host's counters.
struct Counted<'a> {
    bytes: [u64; 2],
    fields: [Field<'a>; 2],
}

/// Hosts, switches and ports by name.
struct Names<'t> {
    hosts: HostNames<'t>,
    switches: BTreeMap<&'t str, SwitchId>,
}

impl<'t> Names<'t> {
    fn new(topology: &'t Topology) -> Self {
        let switches = topology.switch_ids().map(|id| (topology.switch(id).name.as_str(), id)).collect();
        Self { hosts: HostNames::new(topology), switches }
    }
}

/// One file, by host.
fn reading<'a>(
    topology: &Topology,
    names: &Names<'_>,
    source: &Source<'a>,
    diagnostics: &mut Diagnostics,
) -> Vec<Option<Counted<'a>>> {
    let mut counted: Vec<Option<Counted<'a>>> = topology.hosts().iter().map(|_| None).collect();
    let mut seen: BTreeMap<PortId, usize> = BTreeMap::new();
    for (number, fields) in records(source.text()).enumerate() {
        if number == 0 && (is_heading(&fields, &PORT_HEADING) || is_heading(&fields, &HOST_HEADING)) {
            continue;
        }
        let (port, counters) = match &fields[..] {
            [switch, port, rx, tx] => (find_port(topology, names, source, (switch, port), diagnostics), [rx, tx]),
            [host, sent, received] => {
                let host = names.hosts.find(source, host, diagnostics);
                (host.map(|host| topology.host(host).port), [sent, received])
            }
            _ => {
                let headings = [PORT_HEADING.join(", "), HOST_HEADING.join(", ")].join(" or ");
                let error = fields[0].site(source).error(format!("here are {} fields", fields.len()));
                diagnostics.push(error.with_help(format!("a line states {headings}")));
                continue;
            }
        };
        let bytes = counters.map(|field| count(source, field, diagnostics));
        let (Some(port), [Some(sent), Some(received)]) = (port, bytes) else { continue };
        if let Some(first) = seen.insert(port, fields[0].line(source)) {
            let error = fields[0].site(source).error(format!("{} is counted twice", topology.port_label(port)));
            diagnostics.push(error.with_help(format!("the first is line {first}")));
            continue;
        }
        if let Attachment::Host(host) = topology.port(port).attachment {
            counted[host.index()] = Some(Counted { bytes: [sent, received], fields: counters.map(|field| *field) });
        }
    }
    counted
}

fn is_heading(fields: &[Field<'_>], words: &[&str]) -> bool {
    fields.len() == words.len() && fields.iter().zip(words).all(|(field, word)| field.text.eq_ignore_ascii_case(word))
}

fn find_port(
    topology: &Topology,
    names: &Names<'_>,
    source: &Source<'_>,
    (switch, port): (&Field<'_>, &Field<'_>),
    diagnostics: &mut Diagnostics,
) -> Option<PortId> {
    let Some(&id) = names.switches.get(switch.text) else {
        let error = switch.site(source).error(format!("unknown switch {}", switch.text));
        let similar =
            if diagnostics.is_full() { None } else { most_similar(switch.text, names.switches.keys().copied()) };
        let help = similar.map_or_else(
            || "switches are called as in the topology".to_owned(),
            |similar| format!("did you mean {similar}?"),
        );
        diagnostics.push(error.with_help(help));
        return None;
    };
    let found = topology.find_port(id, port.text);
    if found.is_none() {
        let error = port.site(source).error(format!("switch {} has no port {}", switch.text, port.text));
        diagnostics.push(error.with_help("ports are called as in the topology"));
    }
    found
}

fn count(source: &Source<'_>, field: &Field<'_>, diagnostics: &mut Diagnostics) -> Option<u64> {
    let digits = field.text.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = field.text.parse().ok().filter(|_| digits);
    if bytes.is_none() {
        let error = field.site(source).error(format!("{:?} is no byte counter", field.text));
        diagnostics.push(error.with_help("a counter is a whole number of 64 bits"));
    }
    bytes
}

/// The later reading less the earlier one. A host that only one of them has is an error.
fn difference<'a>(
    topology: &Topology,
    (before, earlier): (&Source<'a>, &[Option<Counted<'a>>]),
    (after, later): (&Source<'a>, &[Option<Counted<'a>>]),
    diagnostics: &mut Diagnostics,
) -> Option<Totals> {
    let hosts = topology.hosts().len();
    let mut totals = [vec![0; hosts], vec![0; hosts]];
    for host in topology.host_ids() {
        let (name, port) = (&topology.host(host).name, topology.port_label(topology.host(host).port));
        let (early, late) = match (&earlier[host.index()], &later[host.index()]) {
            (None, None) => continue,
            (Some(early), Some(late)) => (early, late),
            (Some(only), None) | (None, Some(only)) => {
                let (here, there) = if later[host.index()].is_none() { (before, after) } else { (after, before) };
                let error = only.fields[0].site(here).error(format!("{name} at {port} is not in {}", there.file()));
                diagnostics.push(error.with_help("take both readings of the same counters"));
                continue;
            }
        };
        for way in [SENT, RECEIVED] {
            match late.bytes[way].checked_sub(early.bytes[way]) {
                Some(bytes) => totals[way][host.index()] = bytes,
                None => {
                    let site = late.fields[way].site(after);
                    let (was, is) = (early.bytes[way], late.bytes[way]);
                    let error = site.error(format!("the counter of {name} at {port} went back from {was} to {is}"));
                    let help =
                        "it was reset or wrapped around: take both readings again, of 64-bit counters, earlier first";
                    diagnostics.push(error.with_help(help));
                }
            }
        }
    }
    let [sent, received] = totals;
    (diagnostics.errors() == 0).then_some(Totals { sent, received })
}

/// A host without counters counts as silent.
fn warn_of_gaps(
    topology: &Topology,
    source: &Source<'_>,
    counted: &[Option<Counted<'_>>],
    diagnostics: &mut Diagnostics,
) {
    let missing: Vec<HostId> = topology.host_ids().filter(|host| counted[host.index()].is_none()).collect();
    if missing.is_empty() {
        return;
    }
    let names: Vec<&str> = missing.iter().take(NAMES_MAX).map(|host| topology.host(*host).name.as_str()).collect();
    let more = if missing.len() > NAMES_MAX { ", …" } else { "" };
    let message = format!("{} of {} hosts have no counters: {}{more}", missing.len(), counted.len(), names.join(", "));
    diagnostics.push(source.at(TextSpan::START).warning(message).with_help("they count as silent"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Kind, Options, generate};

    /// Two switches, h0 at s0:p2 and h1 at s1:p2.
    fn pair() -> Topology {
        let kind = Kind::parse("mesh", &["2".to_owned()]).expect("a valid size");
        generate(&kind, &Options::default()).expect("a sane size")
    }

    fn read(texts: &[&str]) -> Result<(Totals, Diagnostics), Diagnostics> {
        let files: Vec<(&str, &str)> = ["a.csv", "b.csv"].into_iter().zip(texts.iter().copied()).collect();
        read_counters(&files, &pair())
    }

    #[test]
    fn ports_and_hosts_say_the_same() {
        let topology = pair();
        let label = |host: usize| topology.port_label(topology.host(HostId::new(host)).port).replace(':', ",");
        let link = topology.port_label(topology.links()[0].a).replace(':', ",");
        let ports = format!("switch,port,rx_bytes,tx_bytes\n{},7,1\n{},2,5\n{link},99,99\n", label(0), label(1));
        let expected = Totals { sent: vec![7, 2], received: vec![1, 5] };
        for text in [ports.as_str(), "host,sent_bytes,received_bytes\nh0,7,1\nh1,2,5\n", "h1,2,5\nh0,7,1\n"] {
            let (totals, warnings) = read(&[text]).expect(text);
            assert_eq!((totals, warnings.is_empty()), (expected.clone(), true), "{text}");
        }
        let later = format!("h0,{},11\nh1,2,6\n", u64::MAX);
        let (totals, _) = read(&["h0,7,1\nh1,2,5\n", &later]).expect("two readings");
        assert_eq!(totals, Totals { sent: vec![u64::MAX - 7, 0], received: vec![10, 1] });
    }

    #[test]
    fn mistakes_are_named_by_their_place() {
        for (texts, says) in [
            (&["h9,1,1\n"][..], "a.csv:1:1: error: unknown host h9"),
            (&["s9,p1,1,1\n"], "a.csv:1:1: error: unknown switch s9"),
            (&["s0,x1,1,1\n"], "a.csv:1:4: error: switch s0 has no port x1"),
            (&["h0,1\n"], "a.csv:1:1: error: here are 2 fields"),
            (&["h0,1,-1\n"], "a.csv:1:6: error: \"-1\" is no byte counter"),
            (&["h0,1,18446744073709551616\n"], "a.csv:1:6: error: \"18446744073709551616\" is no byte counter"),
            (&["h0,1,1\nh0,1,1\n"], "a.csv:2:1: error: s0:p2 is counted twice"),
            (&["h0,5,1\nh1,1,1\n", "h0,4,1\nh1,1,1\n"], "b.csv:1:4: error: the counter of h0 at s0:p2 went back"),
            (&["h0,5,1\nh1,1,1\n", "h1,1,1\n"], "b.csv:1:1: warning: 1 of 2 hosts have no counters: h0"),
        ] {
            let shown = read(texts).expect_err(says).to_string();
            assert!(shown.starts_with(says), "{texts:?}: {shown}");
        }
        let warnings = read(&["h0,5,1\n"]).expect("one host is enough").1.to_string();
        assert!(warnings.contains("1 of 2 hosts have no counters: h1"), "{warnings}");
    }
}
