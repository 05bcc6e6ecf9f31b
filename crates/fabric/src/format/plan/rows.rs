//! A choice for every ordered pair of hosts: a line a sender, in which runs of receivers have theirs. A sender that chooses as an
//! earlier one does is the number of that one.
//!
//! ```text
//!   [[0,0,2],[1,5,3]],      (first host, last host, choice)
//!   0,                      (as the first sender)
//! ```

use std::{collections::BTreeMap, sync::Arc};

use super::json::{Located, Read};
use crate::{HostId, HostRun};

/// A line for each sender; `show` writes a choice as JSON.
pub(super) fn row_lines<'a, T: Ord>(
    rows: &'a [Arc<Vec<HostRun<T>>>],
    show: impl Fn(&T) -> String + 'a,
) -> impl Iterator<Item = String> + 'a {
    let mut written: BTreeMap<&[HostRun<T>], usize> = BTreeMap::new();
    rows.iter().enumerate().map(move |(source, runs)| {
        let first = *written.entry(runs).or_insert(source);
        if first < source {
            return first.to_string();
        }
        let runs = runs.iter().map(|run| format!("[{},{},{}]", run.first.index(), run.last.index(), show(&run.choice)));
        format!("[{}]", runs.collect::<Vec<_>>().join(","))
    })
}

/// Reads a line for each of the hosts; `what` names a choice in errors.
pub(super) fn rows<T>(
    hosts: usize,
    at: &Located<'_>,
    what: &str,
    choice: impl Fn(&Located<'_>) -> Read<T>,
) -> Read<Vec<Arc<Vec<HostRun<T>>>>> {
    let mut rows: Vec<Arc<Vec<HostRun<T>>>> = Vec::with_capacity(hosts);
    for at in at.items_for(hosts, "hosts")? {
        let row = if at.is_whole() {
            Arc::clone(&rows[at.index("earlier host", rows.len())?])
        } else {
            Arc::new(runs(hosts, &at, what, &choice)?)
        };
        rows.push(row);
    }
    Ok(rows)
}

/// One sender's choices: runs that cover every host, without gaps.
fn runs<T>(
    hosts: usize,
    at: &Located<'_>,
    what: &str,
    choice: &impl Fn(&Located<'_>) -> Read<T>,
) -> Read<Vec<HostRun<T>>> {
    let mut runs = Vec::new();
    let mut next = 0;
    let parts_of = format!("parts (first host, last host, {what})");
    for at in at.items()? {
        let parts: Vec<Located<'_>> = at.items_for(3, &parts_of)?.collect();
        let (first, last) = (parts[0].index("host", hosts)?, parts[1].index("host", hosts)?);
        if first != next || last < first {
            return Err(at.error(format!("runs cover every host in order; the next begins with {next}")));
        }
        next = last + 1;
        runs.push(HostRun { first: HostId::new(first), last: HostId::new(last), choice: choice(&parts[2])? });
    }
    if next != hosts {
        return Err(at.error(format!("nothing is chosen for the hosts from {next} on")));
    }
    Ok(runs)
}
