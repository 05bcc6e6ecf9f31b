//! Prescriptive topology files (PTM): the cabling that should be, in Graphviz DOT.
//!
//! ```text
//! graph G {
//!   "sw1":"swp1" -- "sw2":"swp41"
//!   "node01" [function="host", mac="02:00:00:00:00:01"]
//!   "node01":"eth0" -- "sw1":"swp10" [rate="10gbit"]
//! }
//! ```
//!
//! The grammar is DOT's own: comments, quoted and bare identifiers, attributes, ports, chains `a:1 -- b:2`, subgraphs
//! (their statements count as if they stood outside). A device is a host if an attribute says so (`role`, `function`
//! or `type` is `host` or `server`, or there is a `mac`), or a pattern of [`ImportOptions`]. Known attributes of
//! devices are `model`, `mgmt`, `mac`, `address`, `groups` and `name`; of cables `rate`, `groups`, and `left_mac` and
//! `right_mac`, which topology converters use. Others are passed over.
//!
//! Source: the DOT language, graphviz.org; `ptmd(8)`.

use std::{collections::BTreeMap, fmt::Write as _, net::IpAddr};

use crate::{
    DEFAULT_RATE_BPS, Mac, Topology,
    format::{
        cabling::{
            Cable, Cabling, Device, End, Role, distinct_names, groups_of_cable, groups_text, host_facts, read_groups,
            standby_edge_facts,
        },
        diagnostic::{Diagnostic, Diagnostics, Source, TextPosition, TextSpan},
        import_options::ImportOptions,
    },
    format_rate, parse_rate,
};

/// Deepest nesting of subgraphs.
const DEPTH_MAX: usize = 64;

pub(crate) fn read<'a>(
    source: &'a Source<'a>,
    options: &ImportOptions,
    diagnostics: &mut Diagnostics,
) -> Option<Topology> {
    let mut parser = Parser {
        lexer: Lexer { source, at: 0, bare_end: usize::MAX },
        token: Token { kind: TokenKind::End, text: String::new(), site: source.at(TextSpan::START) },
        cabling: Cabling::default(),
        by_name: BTreeMap::new(),
        diagnostics,
    };
    if let Err(error) = parser.graph() {
        parser.diagnostics.push(*error);
        return None;
    }
    let Parser { cabling, .. } = parser;
    cabling.build(source.at(TextSpan::START), options, diagnostics)
}

/// Writes a topology; [`import`](crate::format::exchange::import) reads the same cabling back.
pub fn write_dot(topology: &Topology) -> String {
    let (switches, hosts) = distinct_names(topology);
    let mut text = String::from("graph fabric {\n");
    for ((id, switch), name) in topology.switch_ids().zip(topology.switches()).zip(&switches) {
        let _ = write!(text, "  {} [role=\"switch\"", dot_quote(name));
        if switch.model.name != "generic" {
            let _ = write!(text, ", model={}", dot_quote(&switch.model.name));
        }
        if let Some(mgmt) = switch.mgmt {
            let _ = write!(text, ", mgmt=\"{mgmt}\"");
        }
        if let Some(groups) = groups_text(topology, |group| group.switches.contains(&id)) {
            let _ = write!(text, ", groups={}", dot_quote(&groups));
        }
        text.push_str("];\n");
    }
    for (host, name) in topology.hosts().iter().zip(&hosts) {
        let _ = write!(text, "  {} [role=\"host\"", dot_quote(name));
        if !host.edge {
            let _ = write!(text, ", mac=\"{}\"", host.mac);
        }
        if let Some(address) = host.address {
            let _ = write!(text, ", address=\"{address}\"");
        }
        if *name != host.name {
            let _ = write!(text, ", name={}", dot_quote(&host.name));
        }
        for (key, fact) in host_facts(topology, host) {
            let _ = write!(text, ", {key}={}", dot_quote(&fact));
        }
        text.push_str("];\n");
    }
    let edges = topology.standby_edges().iter().zip(&hosts[topology.hosts().len()..]);
    for (edge, name) in edges.clone() {
        let _ = write!(text, "  {} [role=\"host\"", dot_quote(name));
        if *name != edge.name {
            let _ = write!(text, ", name={}", dot_quote(&edge.name));
        }
        for (key, fact) in standby_edge_facts(edge) {
            let _ = write!(text, ", {key}={}", dot_quote(&fact));
        }
        text.push_str("];\n");
    }
    let end = |port| {
        let port = topology.port(port);
        format!("{}:{}", dot_quote(&topology.switch(port.switch).name), dot_quote(&port.name))
    };
    let cables = topology.switch_cables();
    let cables = cables.map(|(a, b, rate_bps)| (end(a), end(b), rate_bps, groups_of_cable(topology, a)));
    let rim = topology.host_cables().map(|(port, host, number, rate_bps)| {
        (end(port), format!("{}:\"eth{number}\"", dot_quote(&hosts[host.index()])), rate_bps, None)
    });
    let standby =
        edges.map(|(edge, name)| (end(edge.port), format!("{}:\"eth0\"", dot_quote(name)), edge.rate_bps, None));
    for (a, b, rate_bps, groups) in cables.chain(rim).chain(standby) {
        let _ = write!(text, "  {a} -- {b}");
        let rate = (rate_bps != DEFAULT_RATE_BPS).then(|| format!("rate=\"{}\"", format_rate(rate_bps)));
        let groups = groups.map(|groups| format!("groups={}", dot_quote(&groups)));
        let attributes: Vec<String> = rate.into_iter().chain(groups).collect();
        if !attributes.is_empty() {
            let _ = write!(text, " [{}]", attributes.join(", "));
        }
        text.push_str(";\n");
    }
    text.push_str("}\n");
    text
}

fn dot_quote(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\\\""))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    /// A bare identifier or number, perhaps a keyword.
    Bare,
    /// A quoted or HTML string.
    Quoted,
    /// `--` or `->`.
    Edge,
    /// One of `{ } [ ] ; , : = +`.
    Mark(char),
    End,
}

#[derive(Clone)]
struct Token<'a> {
    kind: TokenKind,
    text: String,
    site: TextPosition<'a>,
}

impl Token<'_> {
    fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Bare && self.text.eq_ignore_ascii_case(word)
    }

    fn is_id(&self) -> bool {
        matches!(self.kind, TokenKind::Bare | TokenKind::Quoted)
    }
}

type Parsed<T> = Result<T, Box<Diagnostic>>;

struct Lexer<'a> {
    source: &'a Source<'a>,
    at: usize,
    /// Where the last bare identifier ended.
    bare_end: usize,
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Parsed<Token<'a>> {
        self.skip_blanks()?;
        let (start, rest) = (self.at, self.rest());
        let Some(first) = rest.chars().next() else { return Ok(self.token(TokenKind::End, start, String::new())) };
        if rest.starts_with("--") || rest.starts_with("->") {
            self.at += 2;
            return Ok(self.token(TokenKind::Edge, start, rest[..2].to_owned()));
        }
        match first {
            '{' | '}' | '[' | ']' | ';' | ',' | ':' | '=' | '+' => {
                self.at += 1;
                Ok(self.token(TokenKind::Mark(first), start, first.to_string()))
            }
            '"' => self.quoted(),
            '<' => self.html(),
            // `sw-1` would be the two identifiers `sw` and `-1`, which nobody means.
            c if c.is_alphanumeric() || "_.".contains(c) || c >= '\u{80}' || (c == '-' && self.bare_end != start) => {
                let bare = |c: char| c.is_alphanumeric() || c == '_' || c == '.' || c >= '\u{80}';
                let length = rest[c.len_utf8()..].find(|c| !bare(c)).map_or(rest.len(), |at| at + c.len_utf8());
                self.at += length;
                self.bare_end = self.at;
                Ok(self.token(TokenKind::Bare, start, rest[..length].to_owned()))
            }
            c => {
                let error = self.site(start, start + c.len_utf8()).error(format!("unexpected character {c:?}"));
                Err(Box::new(
                    error.with_help("put names that hold other than letters, digits, _ and . in double quotes"),
                ))
            }
        }
    }

    fn quoted(&mut self) -> Parsed<Token<'a>> {
        let start = self.at;
        let mut text = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((offset, c)) = characters.next() {
            match c {
                '"' => {
                    self.at = start + offset + 1;
                    return Ok(self.token(TokenKind::Quoted, start, text));
                }
                // A backslash keeps a quote from ending the string; before anything else it stands for itself.
                '\\' => match characters.next() {
                    Some((_, '"')) => text.push('"'),
                    Some((_, '\n')) => {}
                    Some((_, other)) => text.extend(['\\', other]),
                    None => break,
                },
                c => text.push(c),
            }
        }
        Err(Box::new(self.site(start, start + 1).error("this string never ends")))
    }

    fn html(&mut self) -> Parsed<Token<'a>> {
        let start = self.at;
        let mut depth = 0_usize;
        for (offset, c) in self.rest().char_indices() {
            match c {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.at = start + offset + 1;
                let text = self.source.text()[start + 1..start + offset].to_owned();
                return Ok(self.token(TokenKind::Quoted, start, text));
            }
        }
        Err(Box::new(self.site(start, start + 1).error("this <…> string never ends")))
    }

    fn skip_blanks(&mut self) -> Parsed<()> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').len();
            self.at += blanks;
            let rest = self.rest();
            let line_start = self.at == 0 || self.source.text()[..self.at].ends_with('\n');
            if rest.starts_with("//") || (rest.starts_with('#') && (line_start || self.only_blanks_before())) {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let Some(length) = rest.find("*/") else {
                    return Err(Box::new(self.site(self.at, self.at + 2).error("this comment never ends")));
                };
                self.at += length + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn only_blanks_before(&self) -> bool {
        let before = &self.source.text()[..self.at];
        before[before.rfind('\n').map_or(0, |at| at + 1)..].trim().is_empty()
    }

    fn rest(&self) -> &'a str {
        &self.source.text()[self.at..]
    }

    fn site(&self, start: usize, end: usize) -> TextPosition<'a> {
        self.source.at(self.source.place(start, end))
    }

    fn token(&self, kind: TokenKind, start: usize, text: String) -> Token<'a> {
        Token { kind, text, site: self.site(start, self.at) }
    }
}

struct Parser<'a, 'd> {
    lexer: Lexer<'a>,
    /// The token that has not been taken yet.
    token: Token<'a>,
    cabling: Cabling<'a>,
    by_name: BTreeMap<String, usize>,
    diagnostics: &'d mut Diagnostics,
}

/// A device and, perhaps, its port.
struct NodeId<'a> {
    device: Token<'a>,
    port: Option<Token<'a>>,
}

type Attributes<'a> = Vec<(Token<'a>, Token<'a>)>;

impl<'a> Parser<'a, '_> {
    fn graph(&mut self) -> Parsed<()> {
        self.token = self.lexer.next()?;
        if self.token.is_word("strict") {
            self.take()?;
        }
        if !self.token.is_word("graph") && !self.token.is_word("digraph") {
            return Err(self.unexpected("graph G { … }"));
        }
        self.take()?;
        if self.token.is_id() {
            self.identifier()?;
        }
        self.statements(0)?;
        if self.token.kind == TokenKind::End { Ok(()) } else { Err(self.unexpected("the end of the file")) }
    }

    /// `{ … }`
    fn statements(&mut self, depth: usize) -> Parsed<()> {
        if depth == DEPTH_MAX {
            return Err(Box::new(self.token.site.error(format!("subgraphs are nested more than {DEPTH_MAX} deep"))));
        }
        self.expect('{')?;
        while self.token.kind != TokenKind::Mark('}') {
            if self.token.kind == TokenKind::Mark(';') {
                self.take()?;
            } else {
                self.statement(depth)?;
            }
        }
        self.take().map(drop)
    }

    fn statement(&mut self, depth: usize) -> Parsed<()> {
        if ["graph", "node", "edge"].iter().any(|word| self.token.is_word(word)) {
            self.take()?;
            return self.attributes().map(drop);
        }
        if let Some(group) = self.subgraph(depth)? {
            if self.token.kind == TokenKind::Edge {
                self.refuse_group(group);
            }
            return self.skip_cable(depth);
        }
        let first = self.node_id()?;
        if self.token.kind == TokenKind::Mark('=') && first.port.is_none() {
            self.take()?;
            return self.identifier().map(drop);
        }
        let mut chain = vec![first];
        while self.token.kind == TokenKind::Edge {
            self.take()?;
            if let Some(group) = self.subgraph(depth)? {
                self.refuse_group(group);
                return self.skip_cable(depth);
            }
            chain.push(self.node_id()?);
        }
        let attributes = self.attributes()?;
        match chain.as_slice() {
            [only] => self.describe_device(only, &attributes),
            _ => chain.windows(2).for_each(|pair| self.add_cable(&pair[0], &pair[1], &attributes)),
        }
        Ok(())
    }

    /// Takes a subgraph, if there is one, and returns where it began.
    fn subgraph(&mut self, depth: usize) -> Parsed<Option<TextPosition<'a>>> {
        let site = self.token.site;
        if self.token.is_word("subgraph") {
            self.take()?;
            if self.token.is_id() {
                self.identifier()?;
            }
        } else if self.token.kind != TokenKind::Mark('{') {
            return Ok(None);
        }
        self.statements(depth + 1)?;
        Ok(Some(site))
    }

    /// A cable to a group of devices names no port.
    fn refuse_group(&mut self, group: TextPosition<'a>) {
        let error = group.error("a cable joins two ports, not groups");
        self.diagnostics.push(error.with_help("write each cable: \"sw1\":\"swp1\" -- \"sw2\":\"swp41\""));
    }

    fn skip_cable(&mut self, depth: usize) -> Parsed<()> {
        while self.token.kind == TokenKind::Edge {
            self.take()?;
            if self.subgraph(depth)?.is_none() {
                self.node_id()?;
            }
        }
        self.attributes().map(drop)
    }

    fn node_id(&mut self) -> Parsed<NodeId<'a>> {
        let device = self.identifier()?;
        let mut port = None;
        if self.token.kind == TokenKind::Mark(':') {
            self.take()?;
            port = Some(self.identifier()?);
        }
        // The compass point of a drawing says nothing about cabling.
        if port.is_some() && self.token.kind == TokenKind::Mark(':') {
            self.take()?;
            self.identifier()?;
        }
        Ok(NodeId { device, port })
    }

    /// An identifier; strings joined by `+` are one.
    fn identifier(&mut self) -> Parsed<Token<'a>> {
        if !self.token.is_id() {
            return Err(self.unexpected("a name"));
        }
        let mut token = self.take()?;
        while token.kind == TokenKind::Quoted && self.token.kind == TokenKind::Mark('+') {
            self.take()?;
            token.text.push_str(&self.identifier()?.text);
        }
        Ok(token)
    }

    fn attributes(&mut self) -> Parsed<Attributes<'a>> {
        let mut attributes = Vec::new();
        while self.token.kind == TokenKind::Mark('[') {
            self.take()?;
            while self.token.kind != TokenKind::Mark(']') {
                let key = self.identifier()?;
                let mut value = key.clone();
                if self.token.kind == TokenKind::Mark('=') {
                    self.take()?;
                    value = self.identifier()?;
                }
                attributes.push((key, value));
                if matches!(self.token.kind, TokenKind::Mark(',' | ';')) {
                    self.take()?;
                }
            }
            self.take()?;
        }
        Ok(attributes)
    }

    fn describe_device(&mut self, node: &NodeId<'a>, attributes: &Attributes<'a>) {
        let index = self.device(&node.device);
        for (key, value) in attributes {
            let device = &mut self.cabling.devices[index];
            let text = value.text.as_str();
            match key.text.as_str() {
                "role" | "function" | "type" => match text.to_ascii_lowercase().as_str() {
                    "host" | "server" => device.stated = Some(Role::Host),
                    "switch" => device.stated = Some(Role::Switch),
                    _ => {}
                },
                "mac" => {
                    device.mac = parsed::<Mac>(value, "an Ethernet address", self.diagnostics);
                    device.stated = device.stated.or(Some(Role::Host));
                }
                "model" => device.model = Some(text.to_owned()),
                "name" => device.name = text.to_owned(),
                "mgmt" | "mgmt_ip" => device.mgmt = parsed::<IpAddr>(value, "an IP address", self.diagnostics),
                "groups" => device.groups = read_groups(text),
                "address" => device.address = parsed::<IpAddr>(value, "an IP address", self.diagnostics),
                key => {
                    if let Err(wrong) = device.take_host_fact(key, text) {
                        self.diagnostics.push(value.site.error(wrong));
                    }
                }
            }
        }
    }

    fn add_cable(&mut self, a: &NodeId<'a>, b: &NodeId<'a>, attributes: &Attributes<'a>) {
        let mut macs = [None, None];
        let mut rate_bps = None;
        let mut groups = Vec::new();
        for (key, value) in attributes {
            match key.text.as_str() {
                "groups" => groups = read_groups(&value.text),
                "rate" => {
                    rate_bps = parse_rate(&value.text)
                        .map_err(|error| self.diagnostics.push(value.site.error(error.to_string())))
                        .ok();
                }
                "left_mac" => macs[0] = parsed::<Mac>(value, "an Ethernet address", self.diagnostics),
                "right_mac" => macs[1] = parsed::<Mac>(value, "an Ethernet address", self.diagnostics),
                _ => {}
            }
        }
        let [left, right] = macs;
        let (site, last) = (a.device.site, b.port.as_ref().unwrap_or(&b.device).site.place);
        let end = if last.line == site.place.line { last.column + last.width } else { 0 };
        let site = site.within(0, end.saturating_sub(site.place.column).max(site.place.width));
        let ends = [self.end(a, left), self.end(b, right)];
        self.cabling.cables.push(Cable { ends, rate_bps, bundle: None, groups, site });
    }

    fn end(&mut self, node: &NodeId<'a>, mac: Option<Mac>) -> End<'a> {
        let device = self.device(&node.device);
        let (port, site) =
            node.port.as_ref().map_or_else(|| (String::new(), node.device.site), |port| (port.text.clone(), port.site));
        End { device, port, mac, bond: None, site }
    }

    fn device(&mut self, token: &Token<'a>) -> usize {
        if let Some(index) = self.by_name.get(&token.text) {
            return *index;
        }
        let index = self.cabling.devices.len();
        self.cabling.devices.push(Device::new(token.text.clone(), token.site, Role::Switch));
        self.by_name.insert(token.text.clone(), index);
        index
    }

    fn take(&mut self) -> Parsed<Token<'a>> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn expect(&mut self, mark: char) -> Parsed<()> {
        if self.token.kind == TokenKind::Mark(mark) {
            self.take().map(drop)
        } else {
            Err(self.unexpected(&mark.to_string()))
        }
    }

    fn unexpected(&self, wanted: &str) -> Box<Diagnostic> {
        let found = match self.token.kind {
            TokenKind::End => "the end of the file".to_owned(),
            _ => self.token.text.chars().take(40).collect(),
        };
        Box::new(self.token.site.error(format!("not DOT: expected {wanted}, found {found}")))
    }
}

fn parsed<T: std::str::FromStr>(value: &Token<'_>, what: &str, diagnostics: &mut Diagnostics) -> Option<T> {
    let result = value.text.parse().ok();
    if result.is_none() {
        diagnostics.push(value.site.error(format!("{} is not {what}", value.text)));
    }
    result
}
