//! The description of a sweep: TOML, each value one or a list.

use std::{path::Path, sync::Arc};

use fabric::{
    Topology,
    format::native::write_native,
    generate::{Kind, Options, generate},
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::point::{AXES, AXES_COUNT, Point, Section, Source, digest};
use crate::Error;

/// Most rows of a sweep.
const POINTS_MAX: usize = 1_000_000;

/// All that is to be simulated, in the order of the table.
#[derive(Debug)]
pub struct Sweep {
    pub(super) sources: Vec<Source>,
    pub(super) points: Vec<Point>,
}

/// Reads the topology in a file that a description names, as it names it; the error is for people.
type ReadTopology<'a> = dyn Fn(&Path) -> Result<Topology, String> + 'a;

impl Sweep {
    /// Reads a description, called `name` in errors. `read_topology` reads the files that it names.
    ///
    /// # Errors
    /// [`Error::Request`], naming description, line and the way out.
    pub fn parse(name: &str, text: &str, read_topology: &ReadTopology<'_>) -> Result<Self, Error> {
        Reader { name, text, read_topology }.sweep()
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.points.len()
    }
}

struct Reader<'a> {
    name: &'a str,
    text: &'a str,
    read_topology: &'a ReadTopology<'a>,
}

/// A value with the place where it begins.
type Text = (String, usize);

impl Reader<'_> {
    fn sweep(&self) -> Result<Sweep, Error> {
        let (document, errors) = DeTable::parse_recoverable(self.text);
        // What follows a mistake may look like one itself.
        let start = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
        if let Some(first) = errors.iter().min_by_key(|error| start(error)) {
            return Err(self.wrong(start(first), first.message()));
        }
        let (mut sources, mut axes): (Vec<Source>, Vec<Option<Vec<String>>>) = (Vec::new(), vec![None; AXES_COUNT]);
        for (key, value) in document.get_ref() {
            match key.get_ref().as_ref() {
                "topology" => {
                    let DeValue::Array(tables) = value.get_ref() else {
                        return Err(
                            self.wrong(key.span().start, "a topology begins with [[topology]], in two brackets")
                        );
                    };
                    for table in tables.iter() {
                        self.read_topologies(table, &mut sources)?;
                    }
                }
                "plan" => self.read_axes(Section::Plan, value, &mut axes)?,
                "simulate" => self.read_axes(Section::Simulate, value, &mut axes)?,
                other => {
                    let message = format!("{other:?} is no section; there are [[topology]], [plan] and [simulate]");
                    return Err(self.wrong(key.span().start, &message));
                }
            }
        }
        if sources.is_empty() {
            let message = "there is no topology; begin with [[topology]] and kind = \"torus\", size = \"4x4\"";
            return Err(self.wrong(0, message));
        }
        let axes: Vec<Vec<String>> =
            axes.into_iter().zip(&AXES).map(|(values, axis)| values.unwrap_or(vec![axis.default.to_owned()])).collect();
        let count = axes.iter().try_fold(sources.len(), |count, values| count.checked_mul(values.len()));
        match count {
            Some(count) if count <= POINTS_MAX => Ok(Sweep { points: combine(&sources, &axes), sources }),
            _ => Err(self.wrong(0, &format!("these are more than {POINTS_MAX} combinations; split the sweep"))),
        }
    }

    /// A topology table: a file, or a kind in one or several sizes.
    fn read_topologies(&self, table: &Spanned<DeValue<'_>>, sources: &mut Vec<Source>) -> Result<(), Error> {
        let at = table.span().start;
        let DeValue::Table(table) = table.get_ref() else {
            return Err(self.wrong(at, "a topology is a table: [[topology]]"));
        };
        let (mut kind, mut sizes, mut hosts, mut file) = (None, None, None, None);
        for (key, value) in table {
            let slot = match key.get_ref().as_ref() {
                "kind" => &mut kind,
                "size" => &mut sizes,
                "hosts-per-switch" => &mut hosts,
                "file" => &mut file,
                other => {
                    let message = format!(
                        "{other:?} says nothing of a topology; there are kind, size, hosts-per-switch and file"
                    );
                    return Err(self.wrong(key.span().start, &message));
                }
            };
            *slot = Some(self.texts(value)?);
        }
        match (file, kind) {
            (Some(files), None) if sizes.is_none() && hosts.is_none() => {
                for (file, at) in files {
                    let topology = (self.read_topology)(Path::new(&file)).map_err(|error| self.wrong(at, &error))?;
                    let digest = digest(write_native(&topology).as_bytes());
                    self.add(Source::File { path: file.into(), topology: Arc::new(topology), digest }, at, sources)?;
                }
                Ok(())
            }
            (None, Some(kinds)) => {
                let sizes = sizes.unwrap_or(vec![(String::new(), at)]);
                let hosts = hosts.unwrap_or(vec![("usual".to_owned(), at)]);
                for (kind, kind_at) in &kinds {
                    for (size, size_at) in &sizes {
                        let words: Vec<String> = size.split_whitespace().map(str::to_owned).collect();
                        let parsed = Kind::parse(kind, &words).map_err(|error| {
                            self.wrong(if words.is_empty() { *kind_at } else { *size_at }, &error.to_string())
                        })?;
                        for (count, count_at) in &hosts {
                            let hosts_per_switch = self.hosts(count, *count_at)?;
                            let options = Options { hosts_per_switch, ..Options::default() };
                            generate(&parsed, &options).map_err(|error| self.wrong(*size_at, &error.to_string()))?;
                            self.add(Source::Generated { kind: parsed.clone(), hosts_per_switch }, *size_at, sources)?;
                        }
                    }
                }
                Ok(())
            }
            _ => Err(self.wrong(at, "a topology has either a file, or a kind with size and hosts-per-switch")),
        }
    }

    fn hosts(&self, text: &str, at: usize) -> Result<Option<usize>, Error> {
        match (text, text.parse::<usize>()) {
            ("usual", _) => Ok(None),
            (_, Ok(count @ 1..)) => Ok(Some(count)),
            _ => Err(self.wrong(at, &format!("{text:?} is no number of hosts from 1 on; \"usual\" is the default"))),
        }
    }

    fn add(&self, source: Source, at: usize, sources: &mut Vec<Source>) -> Result<(), Error> {
        if sources.iter().any(|known| known.columns() == source.columns()) {
            return Err(self.wrong(at, &format!("{} is listed twice; keep one of them", source.columns().join(", "))));
        }
        sources.push(source);
        Ok(())
    }

    fn read_axes(
        &self,
        section: Section,
        table: &Spanned<DeValue<'_>>,
        axes: &mut [Option<Vec<String>>],
    ) -> Result<(), Error> {
        let DeValue::Table(entries) = table.get_ref() else {
            let message = format!("{0} is a section: write [{0}], then a line each", section.word());
            return Err(self.wrong(table.span().start, &message));
        };
        for (key, value) in entries {
            let Some(at) = AXES.iter().position(|axis| axis.section == section && axis.key == key.get_ref().as_ref())
            else {
                let known: Vec<&str> =
                    AXES.iter().filter(|axis| axis.section == section).map(|axis| axis.key).collect();
                let (key, known, place) = (key.get_ref(), known.join(", "), key.span().start);
                return Err(
                    self.wrong(place, &format!("{key:?} cannot be varied in [{}]; there are {known}", section.word()))
                );
            };
            let mut values: Vec<String> = Vec::new();
            for (text, place) in self.texts(value)? {
                (AXES[at].check)(&text).map_err(|error| self.wrong(place, &format!("{}: {error}", AXES[at].key)))?;
                if values.contains(&text) {
                    return Err(
                        self.wrong(place, &format!("{}: {text} is listed twice; keep one of them", AXES[at].key))
                    );
                }
                values.push(text);
            }
            axes[at] = Some(values);
        }
        Ok(())
    }

    /// A value, or the values of a list, as text.
    fn texts(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<Text>, Error> {
        let one = |value: &Spanned<DeValue<'_>>| -> Result<Text, Error> {
            let text = match value.get_ref() {
                DeValue::String(text) => text.to_string(),
                DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
                DeValue::Float(number) => number.as_str().to_owned(),
                DeValue::Boolean(truth) => truth.to_string(),
                _ => return Err(self.wrong(value.span().start, "write a word in quotes, a number, or a list of them")),
            };
            Ok((text, value.span().start))
        };
        match value.get_ref() {
            DeValue::Array(values) if values.is_empty() => {
                Err(self.wrong(value.span().start, "the list is empty; leave the line out for the default"))
            }
            DeValue::Array(values) => values.iter().map(one).collect(),
            _ => Ok(vec![one(value)?]),
        }
    }

    fn wrong(&self, at: usize, message: &str) -> Error {
        let line = 1 + self.text.as_bytes()[..at.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count();
        Error::Request(format!("{}:{line}: {message}", self.name))
    }
}

/// All combinations, the last axis running fastest, so that rows of one plan are together.
fn combine(sources: &[Source], axes: &[Vec<String>]) -> Vec<Point> {
    let per_source: usize = axes.iter().map(Vec::len).product();
    let mut points = Vec::with_capacity(sources.len() * per_source);
    for (number, source) in sources.iter().enumerate() {
        for index in 0..per_source {
            let mut rest = index;
            let mut values: [String; AXES_COUNT] = Default::default();
            for (value, choices) in values.iter_mut().zip(axes).rev() {
                *value = choices[rest % choices.len()].clone();
                rest /= choices.len();
            }
            points.push(Point::new(number, source, values));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::{super::point::value, *};

    fn parse(text: &str) -> Result<Sweep, String> {
        let missing = |path: &Path| Err(format!("{}: no such file", path.display()));
        Sweep::parse("sweep.toml", text, &missing).map_err(|error| error.to_string())
    }

    #[test]
    fn every_combination_is_a_point_of_its_own() {
        let sweep = parse(
            "[[topology]]\nkind = \"torus\"\nsize = [\"4x4\", \"3x3\"]\nhosts-per-switch = [1, 2]\n\
             [[topology]]\nkind = \"clos\"\nsize = \"4x4\"\n[simulate]\npattern = [\"all-to-all\", \"incast\"]\n\
             seed = [1, 2, 3]\nlevel = \"flow\"\n",
        )
        .expect("a description");
        assert_eq!((sweep.sources.len(), sweep.points.len()), (5, 30));
        let mut digests: Vec<&str> = sweep.points.iter().map(|point| point.digest.as_str()).collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 30);
        let first: Vec<(&str, &str)> = sweep.points[..4]
            .iter()
            .map(|point| (value(&point.values, "pattern"), value(&point.values, "seed")))
            .collect();
        assert_eq!(first, [("all-to-all", "1"), ("all-to-all", "2"), ("all-to-all", "3"), ("incast", "1")]);
        assert_eq!(value(&sweep.points[0].values, "engine"), "auto");
    }

    #[test]
    fn every_mistake_has_a_line_and_a_way_out() {
        let torus = "[[topology]]\nkind = \"torus\"\nsize = \"4x4\"\n";
        for (text, expected) in [
            (String::new(), "sweep.toml:1: there is no topology; begin with [[topology]]"),
            ("[topology]\nkind = \"torus\"".to_owned(), "sweep.toml:1: a topology begins with [[topology]]"),
            (format!("{torus}[plans]\n"), "sweep.toml:4: \"plans\" is no section"),
            (
                format!("{torus}[simulate]\npatern = \"incast\"\n"),
                "sweep.toml:5: \"patern\" cannot be varied in [simulate]; there are level, pattern",
            ),
            (
                format!("{torus}[simulate]\npattern = [\"incast\",\n \"everybody\"]\n"),
                "sweep.toml:6: pattern: \"everybody\" is none of all-to-all",
            ),
            (format!("{torus}[simulate]\nseed = [1, 1]\n"), "sweep.toml:5: seed: 1 is listed twice"),
            (format!("{torus}[simulate]\nseed = []\n"), "sweep.toml:5: the list is empty"),
            (format!("{torus}[simulate]\nseed = -1\n"), "sweep.toml:5: seed: \"-1\" is no whole number"),
            (
                format!("{torus}[simulate]\nlevel = \"frames\"\n"),
                "sweep.toml:5: level: \"frames\" is none of packet, flow",
            ),
            (format!("{torus}[simulate]\nduration-ms = 0\n"), "sweep.toml:5: duration-ms: \"0\" is no time"),
            (format!("{torus}[plan]\nmax-vlans = 0\n"), "sweep.toml:5: max-vlans: \"0\" is no whole number from 1 on"),
            (format!("{torus}[plan]\nengine = {{ a = 1 }}\n"), "sweep.toml:5: write a word in quotes"),
            (format!("{torus}{torus}"), "sweep.toml:6: torus 4x4, usual is listed twice"),
            ("[[topology]]\nkind = \"torsu\"\nsize = \"4x4\"\n".to_owned(), "sweep.toml:3: "),
            ("[[topology]]\nsize = \"4x4\"\n".to_owned(), "sweep.toml:1: a topology has either"),
            (
                "[[topology]]\nkind = \"torus\"\nsize = \"4x4\"\nhosts-per-switch = 0".to_owned(),
                "sweep.toml:4: \"0\" is no number of hosts",
            ),
            ("[[topology]]\nkind = \"torus\nsize".to_owned(), "sweep.toml:2: "),
            ("[[topology]]\nfile = \"missing.yaml\"\n".to_owned(), "sweep.toml:2: missing.yaml: "),
        ] {
            let error = parse(&text).expect_err("a mistake");
            assert!(error.starts_with(expected), "{text:?}:\n{error}\ninstead of\n{expected}");
        }
        let many: Vec<String> = (0..2000).map(|seed| seed.to_string()).collect();
        let many = many.join(", ");
        let error = parse(&format!("{torus}[plan]\nseed = [{many}]\n[simulate]\nseed = [{many}]\n"));
        assert!(error.expect_err("too many").contains("more than 1000000 combinations"));
    }
}
