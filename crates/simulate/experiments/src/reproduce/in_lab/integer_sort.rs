//! Keys sorted over and over by all ranks, which is what IS of the NAS benchmarks does to a network. Those are not in
//! Debian, so the program is ours, [`SOURCE`], compiled where it runs.

use std::{fs, process::Command, time::Duration};

use super::mpi::{OnPath as _, OnProcess as _, Ranks, Stage};
use crate::error::MpiError;

const SOURCE: &str = include_str!("integer_sort.c");
/// Rounds that are timed; IS has ten as well.
pub(super) const ROUNDS: u32 = 10;
/// Longest run on one network.
const LONGEST: Duration = Duration::from_secs(120);

/// Compiles it and sorts on all hosts; rounds a second.
///
/// # Errors
/// If it cannot be compiled, does not end, or a key is lost or altered.
pub(super) fn rate(ranks: &Ranks<'_>, network: &str) -> Result<f64, MpiError> {
    let (source, program) = (ranks.folder().join("integer_sort.c"), ranks.folder().join("integer_sort"));
    fs::write(&source, SOURCE).on("write", &source)?;
    let compiled = Command::new("mpicc").arg("-O2").arg("-o").arg(&program).arg(&source).output();
    let compiled = compiled.when("start", "mpicc")?;
    if !compiled.status.success() {
        return Err(MpiError::Compile(String::from_utf8_lossy(&compiled.stderr).into_owned()));
    }
    let stage = || match seconds(&ranks.printed()) {
        Some(_) => Stage::Enough,
        None => Stage::At(format!("{ROUNDS} rounds")),
    };
    let (program, rounds) = (program.display().to_string(), ROUNDS.to_string());
    ranks.start(&[&program, &rounds])?.until(&format!("integer sort on {network}"), LONGEST, stage)?;
    let seconds =
        seconds(&ranks.printed()).ok_or(MpiError::NoResult { program: "the integer sort", result: "its time" })?;
    Ok(f64::from(ROUNDS) / seconds)
}

/// What it took, once its line is whole.
fn seconds(printed: &str) -> Option<f64> {
    let (line, _) = printed.strip_prefix("seconds ")?.split_once('\n')?;
    line.parse().ok().filter(|seconds| *seconds > 0.0)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn a_line_that_is_not_whole_is_not_read() {
        assert_eq!(seconds("seconds 1.250000\n"), Some(1.25));
        assert_eq!(seconds("seconds 1.2"), None);
        assert_eq!(seconds("seconds 0.000000\n"), None);
        assert_eq!(seconds(""), None);
    }
}
