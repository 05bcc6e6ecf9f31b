//! Traffic matrices as comma-separated values.
//!
//! A pair a line, or a square table with the senders in the first column and the receivers in the first row; an empty first
//! cell tells the latter. Demands are weights of 0 or more in any one unit: bytes, bit/s, messages. Pairs that are not
//! there send nothing, and what a host sends to itself crosses no cable and is left out. Lines that begin with `#` are
//! comments.
//!
//! ```text
//!   source,destination,demand            ,h0,h1,h2
//!   h0,h1,12.5                          h0,0,12.5,0
//!   h2,h0,3e6                           h2,3e6,0,0
//! ```

use std::{collections::BTreeMap, io};

use super::{
    csv::{Field, records},
    diagnostic::{Diagnostics, Source, TextSpan},
};
use crate::{DEMAND_MAX, DEMANDS_MAX, Demand, HostId, Topology, TrafficMatrix, name::most_similar};

/// The first line of a file of pairs; it may be missing.
const HEADING: [&str; 3] = ["source", "destination", "demand"];
/// Silent hosts that a warning names.
const NAMES_MAX: usize = 5;

/// Reads a traffic matrix for the hosts of a topology; `file` is its name in diagnostics. Warnings come with the matrix.
/// Cost: O(fields · log hosts).
///
/// # Errors
/// Diagnostics with line and column.
pub fn read_matrix(file: &str, text: &str, topology: &Topology) -> Result<(TrafficMatrix, Diagnostics), Diagnostics> {
    let source = Source::new(file, text);
    let mut diagnostics = Diagnostics::new();
    if !source.check_size(&mut diagnostics) {
        return Err(diagnostics);
    }
    let mut reader = Reader { hosts: HostNames::new(topology), source: &source, stated: Vec::new(), diagnostics };
    let mut lines = records(text).peekable();
    match lines.peek() {
        Some(first) if first[0].text.is_empty() && first.len() > 1 => reader.square(lines),
        _ => reader.pairs(lines),
    }
    let Reader { mut stated, mut diagnostics, .. } = reader;
    refuse_repetitions(topology, &source, &mut stated, &mut diagnostics);
    let matrix = (diagnostics.errors() == 0).then(|| {
        let demands = stated.iter().map(|(demand, _)| *demand).collect();
        TrafficMatrix::new(topology.hosts().len(), demands)
    });
    let matrix = match matrix {
        Some(Ok(matrix)) if matrix.is_empty() => {
            let site = source.at(TextSpan::START);
            let help = "state what hosts send, or leave the file out: then all send as much to all";
            diagnostics.push(site.error("no host sends anything to another").with_help(help));
            None
        }
        Some(Ok(matrix)) => {
            warn_of_silence(topology, &source, &matrix, &mut diagnostics);
            Some(matrix)
        }
        Some(Err(error)) => {
            diagnostics.push(source.at(TextSpan::START).error(error.to_string()));
            None
        }
        None => None,
    };
    diagnostics.into_result(matrix)
}

/// Writes a matrix, a pair a line.
///
/// # Errors
/// Those of `out`.
pub fn write_matrix(topology: &Topology, matrix: &TrafficMatrix, mut out: impl io::Write) -> io::Result<()> {
    writeln!(out, "{}", HEADING.join(","))?;
    for Demand { source, destination, amount } in matrix.demands() {
        let (source, destination) = (quoted(topology, source), quoted(topology, destination));
        writeln!(out, "{source},{destination},{amount}")?;
    }
    Ok(())
}

/// A host's name; in quotes if it would begin a comment.
fn quoted(topology: &Topology, host: HostId) -> String {
    let name = &topology.host(host).name;
    if name.starts_with('#') { format!("\"{name}\"") } else { name.clone() }
}

/// Hosts by name.
pub(super) struct HostNames<'t> {
    by_name: BTreeMap<&'t str, HostId>,
}

impl<'t> HostNames<'t> {
    pub(super) fn new(topology: &'t Topology) -> Self {
        Self { by_name: topology.host_ids().map(|id| (topology.host(id).name.as_str(), id)).collect() }
    }

    /// The host that a field names; a diagnostic if there is none.
    pub(super) fn find(&self, source: &Source<'_>, field: &Field<'_>, diagnostics: &mut Diagnostics) -> Option<HostId> {
        let found = self.by_name.get(field.text).copied();
        if found.is_none() {
            let error = field.site(source).error(format!("unknown host {}", field.text));
            // Looking for the nearest name takes long among many; beyond the first mistakes nobody reads it.
            let similar =
                if diagnostics.is_full() { None } else { most_similar(field.text, self.by_name.keys().copied()) };
            let help = similar.map_or_else(
                || "hosts are called as in the topology".to_owned(),
                |similar| format!("did you mean {similar}?"),
            );
            diagnostics.push(error.with_help(help));
        }
        found
    }
}

struct Reader<'r, 'a> {
    hosts: HostNames<'r>,
    source: &'r Source<'a>,
    /// Demands, and the field that states each.
    stated: Vec<(Demand, Field<'a>)>,
    diagnostics: Diagnostics,
}

impl<'a> Reader<'_, 'a> {
    fn pairs(&mut self, lines: impl Iterator<Item = Vec<Field<'a>>>) {
        for (number, fields) in lines.enumerate() {
            let is_heading = fields.len() == HEADING.len()
                && fields.iter().zip(HEADING).all(|(field, word)| field.text.eq_ignore_ascii_case(word));
            if number == 0 && is_heading {
                continue;
            }
            let [source, destination, amount] = &fields[..] else {
                let message = format!("a line states {}, and here are {} fields", HEADING.join(", "), fields.len());
                let help = "write h0,h1,12.5; a square table begins with an empty cell and the receivers' names";
                self.diagnostics.push(fields[0].site(self.source).error(message).with_help(help));
                continue;
            };
            let hosts = [source, destination].map(|field| self.hosts.find(self.source, field, &mut self.diagnostics));
            let amount = self.amount(amount).map(|number| (number, *amount));
            if let ([Some(source), Some(destination)], Some(amount)) = (hosts, amount) {
                self.state(source, destination, amount);
            }
        }
    }

    fn square(&mut self, mut lines: impl Iterator<Item = Vec<Field<'a>>>) {
        let Some(heading) = lines.next() else { return };
        let receivers: Vec<Option<HostId>> =
            (heading[1..].iter()).map(|field| self.hosts.find(self.source, field, &mut self.diagnostics)).collect();
        let mut senders: BTreeMap<HostId, usize> = BTreeMap::new();
        for fields in lines {
            if fields.len() != heading.len() {
                let site = fields[0].site(self.source);
                let message = format!("the row has {} fields, and the first one has {}", fields.len(), heading.len());
                let help = "a row is a sender's name and a demand for every receiver of the first row";
                self.diagnostics.push(site.error(message).with_help(help));
                continue;
            }
            let sender = self.hosts.find(self.source, &fields[0], &mut self.diagnostics);
            if let Some(sender) = sender {
                let line = fields[0].line(self.source);
                if let Some(first) = senders.insert(sender, line) {
                    let error = fields[0].site(self.source).error(format!("{} has two rows", fields[0].text));
                    self.diagnostics.push(error.with_help(format!("the first is line {first}; add them up")));
                    continue;
                }
            }
            for (field, receiver) in fields[1..].iter().zip(&receivers) {
                let amount = self.amount(field).map(|number| (number, *field));
                if let (Some(sender), Some(receiver), Some(amount)) = (sender, *receiver, amount) {
                    self.state(sender, receiver, amount);
                }
            }
        }
    }

    fn amount(&mut self, field: &Field<'_>) -> Option<f64> {
        // Words such as inf and nan are numbers to the standard library.
        let digits = field.text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        let amount = field.text.parse::<f64>().ok().filter(|amount| digits && (0.0..=DEMAND_MAX).contains(amount));
        if amount.is_none() {
            let error = field.site(self.source).error(format!("{:?} is no demand", field.text));
            let help = format!("a demand is a number of 0 or more, such as 12.5 or 3e6, and at most {DEMAND_MAX:e}");
            self.diagnostics.push(error.with_help(help));
        }
        amount
    }

    fn state(&mut self, source: HostId, destination: HostId, (amount, field): (f64, Field<'a>)) {
        if source == destination {
            return;
        }
        if self.stated.len() == DEMANDS_MAX {
            let error = field.site(self.source).error(format!("more than {DEMANDS_MAX} pairs"));
            self.diagnostics.push(error.with_help("leave out pairs that send nothing or little"));
        }
        if self.stated.len() <= DEMANDS_MAX {
            self.stated.push((Demand { source, destination, amount }, field));
        }
    }
}

/// A pair that is stated twice is an error, where the second one stands.
fn refuse_repetitions(
    topology: &Topology,
    source: &Source<'_>,
    stated: &mut [(Demand, Field<'_>)],
    diagnostics: &mut Diagnostics,
) {
    // Stable, so that of equal pairs the first stays first.
    stated.sort_by_key(|(demand, _)| (demand.source, demand.destination));
    for group in stated.chunk_by(|(a, _), (b, _)| (a.source, a.destination) == (b.source, b.destination)) {
        let (Demand { source: from, destination: to, .. }, first) = group[0];
        for (_, again) in &group[1..] {
            let [from, to] = [from, to].map(|host| topology.host(host).name.as_str());
            let error = again.site(source).error(format!("what {from} sends to {to} is stated twice"));
            diagnostics.push(error.with_help(format!("the first is in line {}; add them up", first.line(source))));
        }
    }
}

fn warn_of_silence(topology: &Topology, source: &Source<'_>, matrix: &TrafficMatrix, diagnostics: &mut Diagnostics) {
    let mut heard = vec![false; topology.hosts().len()];
    for Demand { source, destination, .. } in matrix.demands() {
        heard[source.index()] = true;
        heard[destination.index()] = true;
    }
    let silent: Vec<&str> =
        topology.host_ids().filter(|host| !heard[host.index()]).map(|host| topology.host(host).name.as_str()).collect();
    if silent.is_empty() {
        return;
    }
    let more = if silent.len() > NAMES_MAX { ", …" } else { "" };
    let names = silent[..silent.len().min(NAMES_MAX)].join(", ");
    let message = format!("{} of {} hosts exchange nothing: {names}{more}", silent.len(), heard.len());
    let help = "they stay connected, but their routes are planned as if they cost nothing";
    diagnostics.push(source.at(TextSpan::START).warning(message).with_help(help));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Kind, Options, generate};

    fn path() -> Topology {
        let kind = Kind::parse("mesh", &["3".to_owned()]).expect("a valid size");
        generate(&kind, &Options::default()).expect("a sane size")
    }

    fn read(text: &str) -> Result<(TrafficMatrix, Diagnostics), Diagnostics> {
        read_matrix("m.csv", text, &path())
    }

    #[test]
    fn pairs_and_tables_say_the_same() {
        let expected = [(0, 1, 12.5), (2, 0, 3e6)];
        for text in [
            "source,destination,demand\nh0,h1,12.5\nh2,h0,3e6\n",
            "h2,h0,3000000\r\n# only two pairs\r\n\r\n\"h0\", h1 , 12.5\r\nh1,h1,7\r\nh1,h2,0",
            ",h0,h1,h2\nh0,9,12.5,0\nh2,3e6,0,0\n",
            "\u{feff}\"\",\"h1\",\"h0\"\n\"h2\",0,3000000.0\n\"h0\",12.5,1\n",
        ] {
            let (matrix, warnings) = read(text).expect(text);
            let found: Vec<_> = matrix.demands().map(|d| (d.source.index(), d.destination.index(), d.amount)).collect();
            assert_eq!(found, expected, "{text}");
            assert!(warnings.is_empty(), "{warnings}");
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let (matrix, _) = read("h0,h1,0.1\nh1,h2,123456789012\nh2,h1,1e-7\n").expect("a matrix");
        let mut text = Vec::new();
        write_matrix(&path(), &matrix, &mut text).expect("writing to memory");
        assert_eq!(read(std::str::from_utf8(&text).expect("text")).expect("a matrix").0, matrix);
    }

    #[test]
    fn a_host_that_exchanges_nothing_is_a_warning() {
        let warnings = read("h0,h2,1\n").expect("a matrix").1.to_string();
        assert!(warnings.starts_with("m.csv:1:1: warning: 1 of 3 hosts exchange nothing: h1\n"), "{warnings}");
    }

    #[test]
    fn mistakes_are_named_by_their_place() {
        for (text, says) in [
            ("h0,h9,1\n", "m.csv:1:4: error: unknown host h9"),
            ("h0,h1,1\nhO,h1,1\n", "m.csv:2:1: error: unknown host hO"),
            ("h0,h1,-1\n", "m.csv:1:7: error: \"-1\" is no demand"),
            ("h0,h1,inf\n", "m.csv:1:7: error: \"inf\" is no demand"),
            ("h0,h1,nan\n", "m.csv:1:7: error: \"nan\" is no demand"),
            ("h0,h1,1e19\n", "m.csv:1:7: error: \"1e19\" is no demand"),
            ("h0,h1,\n", "m.csv:1:7: error: \"\" is no demand"),
            ("h0;h1;1\n", "m.csv:1:1: error: a line states source, destination, demand, and here are 1 fields"),
            ("h0,h1,1\nsource,destination,demand\n", "m.csv:2:1: error: unknown host source"),
            ("h0,h1,1\nh1,h0,1\nh0,h1,2\n", "m.csv:3:7: error: what h0 sends to h1 is stated twice"),
            (",h0,h1\nh0,0,1\nh0,0,1\n", "m.csv:3:1: error: h0 has two rows"),
            (",h0,h0,h1\nh1,1,1,0\n", "m.csv:2:6: error: what h1 sends to h0 is stated twice"),
            (",h0,h1\nh0,0\n", "m.csv:2:1: error: the row has 2 fields, and the first one has 3"),
            ("h0,h1,0\n", "m.csv:1:1: error: no host sends anything to another"),
            ("", "m.csv:1:1: error: no host sends anything to another"),
        ] {
            let shown = read(text).expect_err(text).to_string();
            assert!(shown.starts_with(says), "{text}: {shown}");
        }
    }
}
