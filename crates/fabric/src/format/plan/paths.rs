//! Path sets in a plan file: a line a sender, in which runs of receivers have their VLANs, and the proof behind the figures.
//!
//! ```text
//! "paths":{"sets":[
//!   [[0,0,"2"],[1,5,"2,7-9"]], …      (a line a sender: first host, last host, VLANs; or the number of an earlier sender)
//! ],"lengths":[ [1,1,…], … ],         (a line a permutation)
//! "worst":[3,2,…],"worst_lengths":[1,1,…]},
//! ```

use std::io;

use super::{
    json::{Located, Read},
    lines::{commas, write_list},
    numbering::per_channel,
    rows::{row_lines, rows},
};
use crate::{HostId, PATHS_MAX, PathSets, PathSummary, PermutationProof, Topology, VlanId, VlanSet, permutations};

/// Writes the field.
pub(super) fn write_paths(paths: &PathSets, out: &mut impl io::Write) -> io::Result<()> {
    let PathSets { rows, proof: PermutationProof { lengths, worst, worst_lengths } } = paths;
    let vlans = |choice: &Vec<VlanId>| format!("\"{}\"", choice.iter().copied().collect::<VlanSet>());
    let sources = row_lines(rows, vlans);
    write_list(out, "\"paths\":{\"sets\":[", sources, "],\n")?;
    write_list(out, "\"lengths\":[", lengths.iter().map(|lengths| format!("[{}]", commas(lengths))), "],\n")?;
    let worst: Vec<usize> = worst.iter().map(|host| host.index()).collect();
    writeln!(out, "\"worst\":[{}],\"worst_lengths\":[{}]}},", commas(&worst), commas(worst_lengths))
}

/// Reads the field: every pair has its VLANs, and there is a proof for each permutation.
pub(super) fn paths(topology: &Topology, at: &Located<'_>) -> Read<PathSets> {
    at.only(&["sets", "lengths", "worst", "worst_lengths"])?;
    let hosts = topology.hosts().len();
    let rows = rows(hosts, &at.field("sets")?, "VLANs", vlans)?;
    let lengths_at = at.field("lengths")?;
    let count = permutations(topology).len();
    let lengths = lengths_at.items_for(count, "permutations")?.map(|at| per_channel(topology, &at));
    let lengths = lengths.collect::<Read<_>>()?;
    let worst_at = at.field("worst")?;
    let worst = worst_at.items_for(hosts, "hosts")?.map(|at| at.index("host", hosts).map(HostId::new));
    let worst = worst.collect::<Read<_>>()?;
    let worst_lengths = per_channel(topology, &at.field("worst_lengths")?)?;
    Ok(PathSets { rows, proof: PermutationProof { lengths, worst, worst_lengths } })
}

/// The VLANs of a pair.
fn vlans(at: &Located<'_>) -> Read<Vec<VlanId>> {
    let vlans: VlanSet = at.parsed()?;
    if vlans.is_empty() || vlans.len() > PATHS_MAX as usize {
        return Err(at.error(format!("a pair has 1 to {PATHS_MAX} VLANs, not {}", vlans.len())));
    }
    Ok(vlans.iter().collect())
}

/// The policy's most VLANs of a pair.
pub(super) fn paths_max(at: &Located<'_>) -> Read<u32> {
    match at.whole()? {
        most if (1..=PATHS_MAX).contains(&most) => Ok(most),
        most => Err(at.error(format!("a pair has 1 to {PATHS_MAX} paths, not {most}"))),
    }
}

/// The figures of a summary that are about path sets.
pub(super) fn path_summary(at: &Located<'_>) -> Read<PathSummary> {
    let number = |name| at.field(name)?.number();
    Ok(PathSummary {
        paths_max: at.field("paths_max")?.whole()?,
        permutation_mean: number("permutation_mean")?,
        permutation_mean_bound: number("permutation_mean_bound")?,
        permutation_share_mean: number("permutation_share_mean")?,
        permutation_worst: number("permutation_worst")?,
        permutation_worst_bound: number("permutation_worst_bound")?,
        permutation_share_worst: number("permutation_share_worst")?,
    })
}
