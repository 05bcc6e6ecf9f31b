//! Names of switches, hosts, ports and models: which are usable, and which known one a wrong one was meant to be.

use crate::{Fault, NAME_BYTES_MAX};

/// Whether a name can stand in every file that names are written to.
pub(crate) fn check_name(name: &str) -> Result<(), Fault> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_usable) {
        return Err(Fault::BadName(name.chars().take(NAME_BYTES_MAX).collect()));
    }
    Ok(())
}

/// Whether a name can have this character.
pub(crate) fn is_usable(c: char) -> bool {
    c.is_alphanumeric() || "-_./+@#".contains(c)
}

/// Whether a port can be called so. Switches name their ports as they please, `TenGigabitEthernet 1/30` or `1/1/11:3`, and every
/// format quotes names where it needs to, so all that can be printed on a line will do.
pub(crate) fn check_port_name(name: &str) -> Result<(), Fault> {
    if is_port_name(name) { Ok(()) } else { Err(Fault::BadPortName(name.chars().take(NAME_BYTES_MAX).collect())) }
}

/// Whether a topology can have a port of this name: 1 to [`NAME_BYTES_MAX`] bytes of letters, digits, ASCII punctuation and,
/// between them, spaces.
///
/// ```
/// assert!(fabric::is_port_name("TenGigabitEthernet 1/30") && fabric::is_port_name("trunk: Down (eth5)"));
/// assert!(!fabric::is_port_name(" g1") && !fabric::is_port_name("g1\n"));
/// ```
pub fn is_port_name(name: &str) -> bool {
    let usable = |c: char| c.is_alphanumeric() || c.is_ascii_graphic() || c == ' ';
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(usable) && name.trim() == name
}

/// The candidate with the fewest differences from `name`, if any comes within a third of its length.
pub(crate) fn most_similar<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let bound = (name.chars().count() / 3).max(1);
    let near = candidates.map(|candidate| (edit_distance(name, candidate), candidate));
    near.filter(|(distance, _)| *distance <= bound).min().map(|(_, candidate)| candidate.to_owned())
}

/// Levenshtein distance, one row at a time. Cost: O(|a|·|b|).
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.chars().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}
