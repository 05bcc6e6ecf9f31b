//! `deploy --dry-run`: the survey, and every SET or line that would be sent; none is.

use std::process::ExitCode;

use anyhow::Result;
use controller::{
    Looked, RehearsedStage, Route, Surveyed,
    deploy_words::{refusal, remarks},
};
use fabric::{Attachment, LinkId, Plan, SwitchId, format::table::Table};
use switch_model::{driver::Fault, identity::Likeness};

use super::{
    super::{Output, say},
    command::way_on,
    survey::survey_json,
};
use crate::{cli, count::counted, failure::FAILED};

/// Prints every SET or line that would be sent, and a table of what is known of each switch.
pub(super) fn dry_run(
    plan: &Plan,
    Surveyed { route, looked }: &Surveyed,
    rehearsed: Vec<Result<Vec<RehearsedStage>, Fault>>,
    args: &cli::Deploy,
    output: Output,
) -> Result<ExitCode> {
    let mut failed = looked.refuses(&route.way);
    let (mut all, mut rows) = (Vec::new(), Vec::new());
    for (switch, rehearsed) in route.topology.switch_ids().zip(rehearsed) {
        let name = &route.topology.switch(switch).name;
        let writes = match rehearsed {
            Ok(stages) => {
                let writes = Writes::of(&stages);
                if output == Output::Person {
                    say!("{name}: {}{}", counted(writes.edits, "write"), writes.said(" in "));
                    print_stages(&stages)?;
                }
                all.extend(stages.iter().map(|stage| {
                    serde_json::json!({
                        "switch": name, "stage": stage.name, "writes": stage.edits, "sets": stage.commands.sets,
                        "lines": stage.commands.lines,
                    })
                }));
                Some(writes)
            }
            Err(fault) => {
                failed = true;
                eprintln!("espalier: {name} {fault}");
                None
            }
        };
        rows.push(Row::of(route, looked, switch, writes));
    }
    match output {
        Output::Json => {
            let switches: Vec<serde_json::Value> = rows.iter().map(Row::json).collect();
            let survey = survey_json(looked, route);
            say!("{}", serde_json::json!({ "stages": all, "switches": switches, "survey": survey }));
        }
        Output::Person => {
            let mut table = Table::new(["switch", "identity", "cables confirmed", "doubts", "writes"]);
            rows.iter().for_each(|row| table.row(row.cells()));
            say!("{table}");
            for line in remarks(looked, route) {
                say!("{line}");
            }
            if looked.refuses(&route.way) {
                for line in refusal(looked, plan, route, &way_on(args)) {
                    say!("{line}");
                }
            }
        }
    }
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn print_stages(stages: &[RehearsedStage]) -> Result<()> {
    for stage in stages {
        say!("  {}:", stage.name);
        for edit in &stage.edits {
            say!("    {edit}");
        }
        for set in &stage.commands.sets {
            say!("    set {set}");
        }
        for line in &stage.commands.lines {
            say!("    > {line}");
        }
    }
    Ok(())
}

/// How much would be written to a switch.
#[derive(Clone, Copy)]
struct Writes {
    edits: usize,
    sets: usize,
    lines: usize,
}

impl Writes {
    fn of(stages: &[RehearsedStage]) -> Self {
        let count = |of: fn(&RehearsedStage) -> usize| stages.iter().map(of).sum::<usize>();
        Self {
            edits: count(|stage| stage.edits.len()),
            sets: count(|stage| stage.commands.sets.len()),
            lines: count(|stage| stage.commands.lines.len()),
        }
    }

    /// In SETs or lines, whichever way it is written.
    fn said(self, before: &str) -> String {
        let number = |count: usize, what: &str| format!("{before}{}", counted(count, what));
        match (self.sets, self.lines) {
            (0, 0) => String::new(),
            (0, lines) => number(lines, "line"),
            (sets, _) => number(sets, "SET"),
        }
    }
}

/// What is known of a switch, and what would be done to it.
struct Row {
    switch: String,
    identity: &'static str,
    confirmed: usize,
    cables: usize,
    doubts: Vec<String>,
    writes: Option<Writes>,
}

impl Row {
    fn of(route: &Route, looked: &Looked, switch: SwitchId, writes: Option<Writes>) -> Self {
        let topology = &route.topology;
        let identity = match looked.survey.identities.get(switch.index()) {
            Some(Likeness::Same) => "as in the topology",
            Some(Likeness::Different) => "another",
            _ if topology.switch(switch).identity.is_empty() => "no id: in the topology",
            _ => "unknown",
        };
        let links: Vec<LinkId> = (topology.port_ids(switch))
            .filter_map(|port| match topology.port(port).attachment {
                Attachment::Link(link) => Some(link),
                Attachment::Host(_) | Attachment::Nothing | Attachment::Member(_) => None,
            })
            .collect();
        let doubts = links.iter().filter_map(|link| {
            let why = looked.survey.unconfirmed.get(link)?;
            Some(format!("{}: {}", topology.link_label(*link), why.sentence(topology)))
        });
        Self {
            switch: topology.switch(switch).name.clone(),
            identity,
            confirmed: links.iter().filter(|link| looked.survey.confirmed.contains(link)).count(),
            cables: links.len(),
            doubts: doubts.collect(),
            writes,
        }
    }

    fn cells(&self) -> [String; 5] {
        let elsewhere = self.cables - self.confirmed - self.doubts.len();
        let doubts = match (self.doubts.len(), elsewhere) {
            (0, 0) => "none".to_owned(),
            (doubts, 0) => format!("{doubts} unconfirmed"),
            (0, elsewhere) => format!("{elsewhere} elsewhere"),
            (doubts, elsewhere) => format!("{doubts} unconfirmed, {elsewhere} elsewhere"),
        };
        let writes = match self.writes {
            None => "does not answer".to_owned(),
            Some(writes) if writes.edits == 0 => "none".to_owned(),
            Some(writes) => writes.said(""),
        };
        let confirmed = format!("{} of {}", self.confirmed, self.cables);
        [self.switch.clone(), self.identity.to_owned(), confirmed, doubts, writes]
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "switch": self.switch, "identity": self.identity, "cables": self.cables, "confirmed": self.confirmed,
            "doubts": self.doubts, "sets": self.writes.map(|writes| writes.sets),
            "lines": self.writes.map(|writes| writes.lines),
        })
    }
}
