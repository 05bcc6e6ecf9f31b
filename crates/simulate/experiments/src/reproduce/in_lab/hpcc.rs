//! HPC Challenge as it is in Debian, as far as it is read: its distributed FFT and its parallel transpose, which do to
//! a network what FT does.
//!
//! hpcc appends what it finds to a file, section by section. What is read comes in the first half; the rest, whose
//! bandwidth test alone sends 2 MB 176 times from everybody to two others and takes many minutes on slow cables, is not
//! waited for.
//!
//! ```text
//!   MPIRandomAccess … PTRANS … MPIFFT │ StarFFT, SingleFFT, LatencyBandwidth, HPL
//!                          read so far ▲ ended here
//! ```
//! Its random updates are many thousand short messages that wait for processors, which sixteen ranks of one machine share: they
//! would say nothing of the network.
//! Source: Luszczek et al., "Introduction to the HPC Challenge benchmark suite", 2005.

use std::{fs, time::Duration};

use super::mpi::{OnPath as _, Ranks, Stage};
use crate::error::MpiError;

/// Order of the matrix of Linpack, which sizes the table and the vector.
pub(super) const ORDER: u32 = 1024;
/// Order of the matrix that is transposed.
pub(super) const TRANSPOSED: u32 = 2000;
/// The last section that is read.
const LAST_SECTION: &str = "MPIFFT";
/// Longest run on one network.
const LONGEST: Duration = Duration::from_secs(300);

/// Runs hpcc as far as it is read; rates of its FFT and of its transpose, a second.
///
/// # Errors
/// If it does not get so far, or a check of its own failed.
pub(super) fn rates(ranks: &Ranks<'_>, network: &str) -> Result<[f64; 2], MpiError> {
    let path = ranks.folder().join("hpccinf.txt");
    fs::write(&path, input(ranks.count())).on("write", &path)?;
    let said = || fs::read_to_string(ranks.folder().join("hpccoutf.txt")).unwrap_or_default();
    let last = format!("End of {LAST_SECTION} section.");
    let stage = || {
        let said = said();
        if said.contains(&last) {
            return Stage::Enough;
        }
        Stage::At(said.lines().rev().find_map(|line| line.strip_prefix("Begin of ")).unwrap_or("start").to_owned())
    };
    ranks.start(&["hpcc"])?.until(&format!("hpcc on {network}"), LONGEST, stage)?;
    read(&said())
}

/// What hpcc's sections say: rates of the FFT and of the transpose.
///
/// # Errors
/// If a figure is missing, or a check of hpcc failed.
fn read(said: &str) -> Result<[f64; 2], MpiError> {
    if said.contains("FAILED") {
        return Err(MpiError::CheckFailed);
    }
    let section = |name: &str| {
        let after = said.split_once(&format!("Begin of {name} section."))?.1;
        Some(after.split_once(&format!("End of {name} section."))?.0)
    };
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| *number > 0.0);
    let missing = |result| MpiError::NoResult { program: "hpcc", result };
    let fft = section("MPIFFT")
        .and_then(|text| Some(number(after(text, "Computing:")?)? + number(after(text, "Inverse FFT:")?)?))
        .ok_or_else(|| missing("the FFT's time"))?;
    // Order, order, blocks, blocks, grid, grid, seconds; each order is transposed several times.
    let order = TRANSPOSED.to_string();
    let seconds = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.first() == Some(&"WALL") && words.get(1) == Some(&order.as_str()))
            .then(|| number(words.get(7)?))
            .flatten()
    };
    let transposes: Vec<f64> = section("PTRANS").unwrap_or_default().lines().filter_map(seconds).collect();
    if transposes.is_empty() {
        return Err(missing("the transpose's time"));
    }
    let transpose = transposes.iter().sum::<f64>() / transposes.len() as f64;
    Ok([2.0 / fft, 1.0 / transpose])
}

/// What stands behind a word at the start of a line.
fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(word))
}

/// hpcc's input: one small problem on a grid as square as it can be.
fn input(processes: usize) -> String {
    let rows = (1..=processes.isqrt()).rev().find(|rows| processes % rows == 0).unwrap_or(1);
    let lines: [(String, &str); 36] = [
        ("HPLinpack benchmark input file".to_owned(), ""),
        ("Espalier".to_owned(), ""),
        ("HPL.out".to_owned(), "output file name"),
        ("8".to_owned(), "device out"),
        ("1".to_owned(), "number of problem sizes"),
        (ORDER.to_string(), "Ns"),
        ("1".to_owned(), "number of NBs"),
        ("64".to_owned(), "NBs"),
        ("0".to_owned(), "process mapping"),
        ("1".to_owned(), "number of process grids"),
        (rows.to_string(), "Ps"),
        ((processes / rows).to_string(), "Qs"),
        ("16.0".to_owned(), "threshold"),
        ("1".to_owned(), "number of panel factorizations"),
        ("2".to_owned(), "PFACTs"),
        ("1".to_owned(), "number of recursive stopping criteria"),
        ("4".to_owned(), "NBMINs"),
        ("1".to_owned(), "number of panels in recursion"),
        ("2".to_owned(), "NDIVs"),
        ("1".to_owned(), "number of recursive panel factorizations"),
        ("1".to_owned(), "RFACTs"),
        ("1".to_owned(), "number of broadcasts"),
        ("1".to_owned(), "BCASTs"),
        ("1".to_owned(), "number of lookahead depths"),
        ("1".to_owned(), "DEPTHs"),
        ("2".to_owned(), "SWAP"),
        ("64".to_owned(), "swapping threshold"),
        ("0".to_owned(), "L1 form"),
        ("0".to_owned(), "U form"),
        ("1".to_owned(), "equilibration"),
        ("8".to_owned(), "memory alignment"),
        ("-".to_owned(), "ignored"),
        ("1".to_owned(), "additional problem sizes for PTRANS"),
        (TRANSPOSED.to_string(), "values of N"),
        ("0".to_owned(), "additional block sizes for PTRANS"),
        ("40".to_owned(), "values of NB"),
    ];
    lines.iter().map(|(value, what)| format!("{value:<12} {what}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::read;

    /// Sections as hpcc 1.5.0 writes them.
    const SAID: &str = "Begin of MPIRandomAccess section.\nReal time used = 17.758029 seconds\n\
        0.000236192 Billion(10^9) Updates    per second [GUP/s]\n\
        0.000014762 Billion(10^9) Updates/PE per second [GUP/s]\nEnd of MPIRandomAccess section.\n\
        Begin of PTRANS section.\nWALL  2000  2000  64  64   4   4     1.50 PASSED    0.018  0.00\n\
        CPU   2000  2000  64  64   4   4     0.06 PASSED    0.543  0.00\n\
        WALL  2000  2000  64  64   4   4     1.75 PASSED    0.018  0.00\n\
        WALL   512   512  64  64   4   4     0.06 PASSED    0.032  0.00\nEnd of PTRANS section.\n\
        Begin of MPIFFT section.\nComputing:     0.140\nInverse FFT:     0.160\nEnd of MPIFFT section.\n";

    #[test]
    fn sections_are_read_and_failures_are_not() {
        let found = read(SAID).expect("all is there");
        let wanted = [2.0 / 0.3, 2.0 / 3.25];
        assert!(found.iter().zip(wanted).all(|(found, wanted)| (found / wanted - 1.0).abs() < 1e-9), "{found:?}");
        assert!(read(&SAID.replace("1.75 PASSED", "1.75 FAILED")).is_err());
        assert!(read(&SAID.replace("Computing:     0.140", "Computing:     0.000")).is_err());
        let unended = SAID.split("End of MPIFFT").next().expect("a part");
        assert!(read(unended).expect_err("it did not end").to_string().contains("FFT"));
        assert!(read(&SAID.replace("WALL  2000", "WALL  2001")).is_err());
    }
}
