//! Journals: what an interrupted deployment leaves for the one that resumes it.

use std::{collections::BTreeMap, sync::Arc};

use fabric::SwitchId;

use serde::{Deserialize, Serialize};

use crate::deploy::Journal;
use switch_model::{
    format::{FormatError, StateRecord},
    mark::Mark,
};

const FORMAT: &str = "espalier-journal";
/// Version 1 did not tell a change under traffic before its first stage from any other deployment.
const VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u32,
    mark: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stages_done: Option<usize>,
    /// What each switch held before, in the plan's order.
    backup: Vec<StateRecord>,
    /// The marks of other deployments that were in the middle of switches, by the switch's position.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    under_way: BTreeMap<usize, String>,
}

/// Writes a journal.
pub fn write_journal(journal: &Journal) -> String {
    let file = File {
        format: FORMAT.to_owned(),
        version: VERSION,
        mark: journal.mark.to_string(),
        stages_done: journal.stages_done,
        backup: journal.backup.iter().map(|state| StateRecord::of(state)).collect(),
        under_way: journal.under_way.iter().map(|(switch, mark)| (switch.index(), mark.to_string())).collect(),
    };
    let mut text = serde_json::to_string(&file).expect("names and numbers are JSON");
    text.push('\n');
    text
}

/// Reads a journal.
///
/// # Errors
/// [`FormatError`].
pub fn parse_journal(text: &str) -> Result<Journal, FormatError> {
    let file: File = serde_json::from_str(text)?;
    if file.format != FORMAT {
        return Err(FormatError::Content(format!("{:?} is not {FORMAT:?}", file.format)));
    }
    if file.version > VERSION {
        return Err(FormatError::Version { found: file.version, known: VERSION });
    }
    let parse = |text: &str| -> Result<Mark, FormatError> {
        text.parse().map_err(|_| FormatError::Content(format!("{text:?} is no deployment's mark")))
    };
    let mark = parse(&file.mark)?;
    let under_way = file.under_way.iter().map(|(switch, mark)| Ok((SwitchId::new(*switch), parse(mark)?)));
    let under_way = under_way.collect::<Result<_, FormatError>>()?;
    let backup = file.backup.into_iter().map(|state| state.parse().map(Arc::new)).collect::<Result<_, _>>()?;
    let stages_done = file.stages_done.filter(|stages| file.version > 1 || *stages > 0);
    Ok(Journal { mark, stages_done, backup, under_way })
}

#[cfg(test)]
mod tests {
    use super::*;
    use switch_model::SwitchConfig;

    #[test]
    fn what_is_written_is_read() {
        let journal = Journal {
            mark: Mark::new(3, 7, 9),
            stages_done: Some(2),
            backup: vec![Arc::new(SwitchConfig::out_of_the_box(["p1".to_owned()]))],
            under_way: [(SwitchId::new(0), Mark::new(2, 1, 0))].into(),
        };
        assert_eq!(parse_journal(&write_journal(&journal)).expect("its own file"), journal);
        let drained = Journal { stages_done: None, ..journal };
        let text = write_journal(&drained);
        assert_eq!(parse_journal(&text).expect("its own file"), drained);
        // As version 1 wrote it, whatever the way.
        let old = text.replace("\"version\":2", "\"version\":1,\"stages_done\":0");
        assert_eq!(parse_journal(&old).expect("an older file"), drained);
        assert!(parse_journal("{}").is_err());
    }
}
