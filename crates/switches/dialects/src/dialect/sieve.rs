//! Files with lines of others among those that a plan is about.
//!
//! ```text
//!   files ─ sections of other ports, texts ─▶ skipped ─ reader ─ what it does not know and no plan is about ─▶ skipped, again
//! ```
//! In a vendor's configuration a line stands for itself, and so can be left out. In a script that ends at the first command
//! which fails nothing can be left out but settings of other programs, and a database is sieved by tables and rows.

use serde_json::Value;

use super::foreign::{Scope, is_business, scopes};
use crate::{
    Target, TextFile,
    names::{PortIndex, are_exact},
};

/// Lines of a file that a plan is not about: they are for whoever wrote them, and stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignLines {
    /// The file.
    pub file: String,
    /// The first line, counted from 1.
    pub line: usize,
    /// How many lines there are.
    pub count: usize,
    /// What the first says.
    pub text: String,
    /// The port outside the plan that they are about, if it is one.
    pub port: Option<String>,
}

/// Files while their foreign lines are taken out.
pub(crate) struct Sieve<'a> {
    target: Target,
    ports: &'a PortIndex,
    files: Vec<Sieved>,
}

struct Sieved {
    name: String,
    lines: Vec<String>,
    scopes: Vec<Scope>,
    /// The lines that were taken out, as they were.
    skipped: Vec<Option<String>>,
}

impl<'a> Sieve<'a> {
    /// Files, less the sections of ports that the plan does not have, and less texts.
    pub(crate) fn new(target: Target, files: &[TextFile<'_>], ports: &'a PortIndex) -> Self {
        let sieved = |file: &TextFile<'_>| {
            let lines: Vec<&str> = file.text.lines().collect();
            let scopes = match !are_exact(target) {
                true => scopes(target, &lines, ports),
                false => vec![Scope::Global; lines.len()],
            };
            let skipped = vec![None; lines.len()];
            Sieved {
                name: file.name.to_owned(),
                lines: lines.iter().map(|line| (*line).to_owned()).collect(),
                scopes,
                skipped,
            }
        };
        let mut sieve = Self { target, ports, files: files.iter().map(sieved).collect() };
        for file in 0..sieve.files.len() {
            if target == Target::Sonic {
                sieve.skip_rows(file);
            }
            for line in 1..=sieve.files[file].lines.len() {
                // What follows the name of a port that is not there would be told to the port before.
                if matches!(sieve.files[file].scopes[line - 1], Scope::Other(_) | Scope::Foreign) {
                    sieve.skip(file, line);
                }
            }
        }
        sieve
    }

    /// The files as they are to be read.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.files.iter().map(|file| file.lines.iter().map(|line| format!("{line}\n")).collect()).collect()
    }

    /// Whether a line that was not understood is none that a plan is about.
    pub(crate) fn is_foreign(&self, file: usize, line: usize) -> bool {
        let Some(file) = self.files.get(file) else { return false };
        let at = line.saturating_sub(1);
        let (Some(text), Some(scope)) = (file.lines.get(at), file.scopes.get(at)) else { return false };
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some(head) = words.first() else { return false };
        match self.target {
            // The files are written whole, or refused whole.
            Target::Sonic | Target::OpenVswitch | Target::LinuxBridge => false,
            Target::Networkd => {
                const OTHERS: [&str; 10] = [
                    "LLDP",
                    "EmitLLDP",
                    "DHCP",
                    "Address",
                    "Gateway",
                    "DNS",
                    "MTUBytes",
                    "Description",
                    "LinkLocalAddressing",
                    "IPv6AcceptRA",
                ];
                text.split_once('=').is_some_and(|(key, _)| OTHERS.contains(&key.trim()))
            }
            Target::Ifupdown2 => {
                const OTHERS: [&str; 8] =
                    ["mtu", "address", "gateway", "alias", "link-speed", "link-autoneg", "link-duplex", "hwaddress"];
                OTHERS.contains(head)
            }
            Target::RouterOs => !text.starts_with("/interface bridge") && !text.starts_with("/interface ethernet"),
            Target::Junos => {
                const SETTINGS: [&str; 4] = ["mtu", "description", "speed", "hold-time"];
                let is_setting = words.get(3).is_some_and(|word| SETTINGS.contains(word));
                is_setting || !is_business(self.target, scope, text, self.ports)
            }
            target => !is_business(target, scope, text, self.ports),
        }
    }

    /// Takes a line out.
    pub(crate) fn skip(&mut self, file: usize, line: usize) {
        let file = &mut self.files[file];
        let text = std::mem::take(&mut file.lines[line - 1]);
        if !text.trim().is_empty() {
            file.skipped[line - 1] = Some(text);
        }
    }

    /// Takes rows of CONFIG_DB out that are about other tables, or about ports that the plan does not have. The text stays,
    /// one row a line, so that lines keep their numbers.
    fn skip_rows(&mut self, file: usize) {
        const TABLES: [&str; 11] = [
            "VLAN",
            "VLAN_MEMBER",
            "PORT",
            "PORT_QOS_MAP",
            "FDB",
            "DOT1P_TO_TC_MAP",
            "TC_TO_QUEUE_MAP",
            "TC_TO_PRIORITY_GROUP_MAP",
            "MAP_PFC_PRIORITY_TO_QUEUE",
            "PORTCHANNEL",
            "PORTCHANNEL_MEMBER",
        ];
        let text = self.files[file].lines.join("\n");
        let Ok(Value::Object(mut tables)) = serde_json::from_str::<Value>(&text) else { return };
        let known = |port: &str| self.ports.find(port).is_some();
        let mut gone: Vec<(String, Option<String>)> = Vec::new();
        for (table, rows) in &mut tables {
            let Some(rows) = rows.as_object_mut() else { continue };
            if !TABLES.contains(&table.as_str()) {
                gone.push((table.clone(), None));
                continue;
            }
            let port_of = |key: &str, row: &Value| match table.as_str() {
                "PORT" | "PORT_QOS_MAP" | "PORTCHANNEL" => Some(key.to_owned()),
                "VLAN_MEMBER" | "PORTCHANNEL_MEMBER" => key.split_once('|').map(|(_, port)| port.to_owned()),
                "FDB" => row["port"].as_str().map(str::to_owned),
                _ => None,
            };
            rows.retain(|key, row| {
                let stays = port_of(key, row).is_none_or(|port| known(&port));
                if !stays {
                    gone.push((table.clone(), Some(key.clone())));
                }
                stays
            });
        }
        if gone.is_empty() {
            return;
        }
        for (table, _) in gone.iter().filter(|(_, key)| key.is_none()) {
            tables.remove(table);
        }
        let place = |table: &str, key: Option<&str>| {
            let quoted = |word: &str| format!("\"{word}\"");
            let from = self.files[file].lines.iter().position(|line| line.contains(&quoted(table))).unwrap_or(0);
            let down =
                key.and_then(|key| self.files[file].lines[from..].iter().position(|line| line.contains(&quoted(key))));
            from + down.unwrap_or(0)
        };
        let places: Vec<(usize, Option<String>)> = gone
            .iter()
            .map(|(table, key)| {
                let port = key.as_ref().filter(|_| table.starts_with("PORT")).cloned();
                (place(table, key.as_deref()), port)
            })
            .collect();
        for (line, port) in places {
            let text = self.files[file].lines[line].clone();
            self.files[file].skipped[line] = Some(text);
            if let Some(port) = port {
                self.files[file].scopes[line] = Scope::Other(port);
            }
        }
        // What stays is written again in one line for each row, at the line where the row was.
        let mut lines = vec![String::new(); self.files[file].lines.len()];
        let mut whole = Value::Object(tables).to_string();
        whole.push('\n');
        if let Some(first) = lines.first_mut() {
            *first = whole.trim_end().to_owned();
        }
        self.files[file].lines = lines;
    }

    /// What was taken out, in runs of lines about one thing.
    pub(crate) fn finish(self) -> Vec<ForeignLines> {
        let mut all: Vec<ForeignLines> = Vec::new();
        for file in self.files {
            let mut before: Option<(usize, Scope)> = None;
            for (at, text) in file.skipped.into_iter().enumerate() {
                let Some(text) = text else { continue };
                let scope = file.scopes[at].clone();
                let goes_on = matches!(scope, Scope::Other(_) | Scope::Foreign)
                    && before.as_ref().is_some_and(|(line, here)| *here == scope && line + 1 >= at);
                match all.last_mut().filter(|_| goes_on) {
                    Some(run) => run.count += 1,
                    None => all.push(ForeignLines {
                        file: file.name.clone(),
                        line: at + 1,
                        count: 1,
                        text: text.trim().to_owned(),
                        port: match &scope {
                            Scope::Other(port) => Some(port.clone()),
                            _ => None,
                        },
                    }),
                }
                before = Some((at, scope));
            }
        }
        all
    }
}
