//! Configuration texts, read as the switch would read them.

use crate::{
    ParseError, Target, TextFile,
    dialect::{
        sieve::{ForeignLines, Sieve},
        snooping::{self, Said},
    },
    names::PortIndex,
    text::LineError,
};
use switch_model::SwitchConfig;

/// Does what the files say to a switch in the state `start`, which for a full configuration is [`Target::factory`].
///
/// Cost: linear in the text, times the ports where a line names one.
///
/// # Errors
/// What is wrong, by file and line, at most twenty a file.
pub fn read_back(target: Target, files: &[TextFile<'_>], start: SwitchConfig) -> Result<SwitchConfig, Vec<ParseError>> {
    let mut config = start;
    match target.dialect().read(files, &mut config) {
        Ok(()) => Ok(config),
        Err(errors) => {
            let name = |index: usize| files.get(index).map_or("", |file| file.name).to_owned();
            let error = |(file, error): (usize, crate::text::LineError)| ParseError {
                file: name(file),
                line: error.line,
                message: error.message,
            };
            Err(errors.into_iter().map(error).collect())
        }
    }
}

/// Does what the files say to a switch in the state `start`, as [`read_back`] does, and skips what a plan is not about: ports
/// that `start` does not have, and commands for other things. What is skipped comes back beside the state, in the files' order.
///
/// Cost: that of [`read_back`] for every twenty lines that are skipped.
///
/// # Errors
/// What is wrong of what a plan is about, by file and line, at most twenty a file.
pub fn read_among_others(
    target: Target,
    files: &[TextFile<'_>],
    start: &SwitchConfig,
) -> Result<(SwitchConfig, Vec<ForeignLines>), Vec<ParseError>> {
    let ports = PortIndex::new(Some(target), start.ports.iter().map(|port| port.name.as_str()));
    let mut sieve = Sieve::new(target, files, &ports);
    let originals = files;
    loop {
        let texts = sieve.texts();
        let files: Vec<TextFile<'_>> =
            files.iter().zip(&texts).map(|(file, text)| TextFile { name: file.name, text }).collect();
        let mut config = start.clone();
        let errors = match target.dialect().read(&files, &mut config) {
            Ok(()) => return Ok((config, sieve.finish())),
            Err(errors) => errors,
        };
        let (foreign, wrong): (Vec<_>, Vec<_>) =
            errors.into_iter().partition(|(file, error)| sieve.is_foreign(*file, error.line));
        if !wrong.is_empty() || foreign.is_empty() {
            let name = |index: usize| files.get(index).map_or("", |file| file.name).to_owned();
            // A database that was sieved has lost its lines: those of the whole file count.
            let whole = match target {
                Target::Sonic => target.dialect().read(originals, &mut start.clone()).err().unwrap_or_default(),
                _ => Vec::new(),
            };
            let line_of = |file: usize, error: &LineError| {
                let same = whole.iter().find(|(at, other)| *at == file && other.message == error.message);
                same.map_or(error.line, |(_, other)| other.line)
            };
            let error = |(file, error): (usize, LineError)| ParseError {
                file: name(file),
                line: line_of(file, &error),
                message: error.message,
            };
            return Err(wrong.into_iter().map(error).collect());
        }
        for (file, error) in foreign {
            sieve.skip(file, error.line);
        }
    }
}

/// Refuses files that leave a switch with IGMP or MLD snooping, which `config`, the state that was read from them, says: no plan
/// has it. Files of scripts, databases and kernels' bridges are refused as they are read.
///
/// # Errors
/// What is on, at the line that turns it on last, or at the last line if it is on from the factory and no line turns it off.
pub fn refuse_snooping(target: Target, files: &[TextFile<'_>], config: &SwitchConfig) -> Result<(), Vec<ParseError>> {
    let errors: Vec<ParseError> = config
        .snooping
        .iter()
        .filter_map(|on| {
            let words = |line: &str| snooping::said(target, &line.split_whitespace().collect::<Vec<_>>());
            let turned = files.iter().rev().find_map(|file| {
                let lines: Vec<&str> = file.text.lines().collect();
                Some((file, lines.iter().rposition(|line| words(line) == Some(Said::On(*on)))? + 1))
            });
            let (file, line, what) = match turned {
                Some((file, line)) => (file, line, format!("turns {on} on")),
                None => {
                    let file = files.last()?;
                    (
                        file,
                        file.text.lines().count().max(1),
                        format!("nothing turns {on} off, which may be on from the factory"),
                    )
                }
            };
            let off = target.dialect().traits().snooping.off(*on).unwrap_or_default().replace('\n', ", ");
            let message = format!("{what}: {}; write {off:?}", on.harm());
            Some(ParseError { file: file.name.to_owned(), line, message })
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}
