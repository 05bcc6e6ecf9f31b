//! \[Otsuka\] Fig. 8 in the lab: an MPI program that sends all to all, by Debian's Open MPI and HPC Challenge.
//!
//! Debian has no NAS benchmarks. Of HPC Challenge the distributed FFT and the parallel transpose do to a network what FT does,
//! and random updates of a table that all share what IS does: short messages from everybody to everybody.
//!
//! hpcc appends what it finds to a file, section by section. What is read comes in the first half; the rest, whose
//! bandwidth test alone sends 2 MB 176 times from everybody to two others and takes many minutes on slow cables, is not waited for.
//!
//! ```text
//!   MPIRandomAccess … PTRANS … MPIFFT │ StarFFT, SingleFFT, LatencyBandwidth, HPL
//!                          read so far ▲ ended here
//! ```
//! Source: Luszczek et al., "Introduction to the HPC Challenge benchmark suite", 2005.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use lab::Lab;

use super::{
    in_lab::Labs,
    network::plan_named,
    reproduction::{Reproduction, Statement, bars},
};
use crate::{cli, table::Table};

/// Networks that are run: with sixteen processes on few processors each takes a minute.
const NETWORKS: [&str; 4] = ["Flat", "Torus (4 x 4)", "Myri-Clos", "M-Tree"];
/// What is read, in this order; all are rates, so more is better.
const FIGURES: [&str; 3] = ["FFT", "transpose", "random updates"];
/// Order of the matrix of Linpack, which sizes the table and the vector.
const ORDER: u32 = 1024;
/// Order of the matrix that is transposed.
const TRANSPOSED: u32 = 2000;
/// The last section that is read.
const LAST_SECTION: &str = "MPIFFT";
/// Longest run on one network.
const LONGEST: Duration = Duration::from_secs(300);
/// How long mpirun may take to end what it has started.
const GRACE: Duration = Duration::from_secs(10);
/// Between two looks at what hpcc has written.
const LOOK: Duration = Duration::from_millis(200);

/// Programs without which nothing can be run.
pub(super) fn missing() -> Option<&'static str> {
    ["mpirun", "hpcc"].into_iter().find(|program| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).status();
        !found.is_ok_and(|status| status.success())
    })
}

pub(super) fn reproduce(args: &cli::Reproduce) -> Result<Reproduction> {
    let labs = Labs::new(args)?;
    let mut found: Vec<Vec<f64>> = Vec::new();
    for name in NETWORKS {
        let plan = plan_named(name)?;
        let lab = labs.up(&plan)?;
        let ran = run(&lab, name);
        lab.down()?;
        found.push(ran.with_context(|| format!("hpcc on {name}"))?);
    }
    let mut table = Table::new(["[Otsuka] Fig. 8, lab", FIGURES[0], FIGURES[1], FIGURES[2]]);
    let relative: Vec<Vec<f64>> =
        found.iter().map(|own| own.iter().zip(&found[0]).map(|(own, flat)| own / flat).collect()).collect();
    let mut rows = Vec::new();
    for (at, name) in NETWORKS.iter().enumerate() {
        table.row(std::iter::once((*name).to_owned()).chain(relative[at].iter().map(|value| format!("{value:.3}"))));
        let values = FIGURES.iter().zip(&found[at]).map(|(name, value)| ((*name).to_owned(), (*value).into()));
        rows.push(serde_json::json!({ "name": name, "hpcc": values.collect::<serde_json::Map<_, _>>() }));
    }
    let tree = &relative[NETWORKS.len() - 1];
    let tagged = &relative[1..NETWORKS.len() - 1];
    let all = |figure: usize| tagged.iter().map(|own| format!("{:.2}", own[figure])).collect::<Vec<_>>().join(", ");
    let statements = [
        Statement::of_paper(
            format!(
                "FT loses most on M-Tree (here FFT {:.2} of Flat, transpose {:.2}; tagged {} and {})",
                tree[0],
                tree[1],
                all(0),
                all(1)
            ),
            tagged.iter().all(|own| own[0] > tree[0] && own[1] > tree[1]),
        ),
        Statement::of_paper(
            format!("IS loses most on M-Tree (here random updates {:.2} of Flat; tagged {})", tree[2], all(2)),
            tagged.iter().all(|own| own[2] > tree[2]),
        ),
    ];
    let notes = vec![
        format!(
            "Flat = 1; hpcc of order {ORDER} ({TRANSPOSED} transposed), 16 hosts of the lab, Open MPI over TCP, cables of {}",
            fabric::format_rate(labs.rate_bps)
        ),
        "NAS benchmarks are not in Debian: hpcc's FFT and transpose stand for FT, its random updates for IS. All 16 processes".to_owned(),
        "  share this machine's processors, so cables are slow to be what counts; what updates wait for is mostly processors".to_owned(),
    ];
    let series = NETWORKS.iter().zip(&relative).skip(1).map(|(name, values)| ((*name).to_owned(), values.clone()));
    let chart = bars("[Otsuka] Fig. 8 in the lab: hpcc", "Flat = 1", FIGURES, series);
    Ok(Reproduction::judged("fig8_lab", (table, chart), rows, &statements, notes))
}

/// Where the files of a lab's run are, for as long as it lasts.
pub(super) fn folder(lab: &str) -> PathBuf {
    std::env::temp_dir().join(format!("espalier-{lab}"))
}

/// Runs hpcc on all hosts of a lab as far as it is read; its figures in the order of [`FIGURES`].
fn run(lab: &Lab, network: &str) -> Result<Vec<f64>> {
    let layout = lab.layout();
    let folder = folder(&layout.name);
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let said = run_in(lab, &folder, network);
    fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))?;
    read(&said?)
}

/// What hpcc's sections say: rates of the FFT, of the transpose and of updates.
///
/// # Errors
/// If a figure is missing, or a check of hpcc failed.
fn read(said: &str) -> Result<Vec<f64>> {
    anyhow::ensure!(!said.contains("FAILED"), "a check of hpcc failed");
    let section = |name: &str| {
        let after = said.split_once(&format!("Begin of {name} section."))?.1;
        Some(after.split_once(&format!("End of {name} section."))?.0)
    };
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| *number > 0.0);
    let missing = |what: &str| format!("hpcc does not tell {what}");
    let fft = section("MPIFFT")
        .and_then(|text| Some(number(after(text, "Computing:")?)? + number(after(text, "Inverse FFT:")?)?))
        .with_context(|| missing("the FFT's time"))?;
    // Order, order, blocks, blocks, grid, grid, seconds; each order is transposed several times.
    let order = TRANSPOSED.to_string();
    let seconds = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.first() == Some(&"WALL") && words.get(1) == Some(&order.as_str()))
            .then(|| number(words.get(7)?))
            .flatten()
    };
    let transposes: Vec<f64> = section("PTRANS").unwrap_or_default().lines().filter_map(seconds).collect();
    anyhow::ensure!(!transposes.is_empty(), missing("the transpose's time"));
    let transpose = transposes.iter().sum::<f64>() / transposes.len() as f64;
    let updates = section("MPIRandomAccess")
        .and_then(|text| text.lines().find(|line| line.ends_with("Updates    per second [GUP/s]")))
        .and_then(|line| number(line.split_whitespace().next()?))
        .with_context(|| missing("its updates"))?;
    Ok(vec![2.0 / fft, 1.0 / transpose, updates])
}

/// What stands behind a word at the start of a line.
fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(word))
}

fn run_in(lab: &Lab, folder: &Path, network: &str) -> Result<String> {
    let layout = lab.layout();
    fs::write(folder.join("hpccinf.txt"), input(layout.hosts.len())).context("write hpcc's input")?;
    let agent = write_agent(lab, folder)?;
    let first = &layout.hosts[0];
    let hosts: Vec<String> = layout.hosts.iter().map(|host| host.address.to_string()).collect();
    let addresses = format!("{}/{}", first.address, first.prefix_bits);
    let (folder_word, agent, ranks) =
        (folder.display().to_string(), agent.display().to_string(), hosts.len().to_string());
    // Processes outnumber processors: who waits gives way.
    let settings = [
        ("plm_rsh_agent", agent.as_str()),
        ("plm_rsh_no_tree_spawn", "1"),
        // What it keeps for itself goes with the rest.
        ("orte_tmpdir_base", folder_word.as_str()),
        ("pml", "ob1"),
        ("btl", "tcp,self"),
        ("oob_tcp_if_include", &addresses),
        ("btl_tcp_if_include", &addresses),
        ("mpi_yield_when_idle", "1"),
    ];
    let mut words = vec!["--allow-run-as-root", "--wdir", &folder_word];
    words.extend(settings.iter().flat_map(|(name, value)| ["--mca", name, value]));
    let hosts = hosts.join(",");
    words.extend(["-np", &ranks, "--host", &hosts, "hpcc"]);
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let complaints = folder.join("complaints");
    let complaints_file = File::create(&complaints).with_context(|| format!("create {}", complaints.display()))?;
    let mut command = lab.command(&first.name, "mpirun", &words)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints_file);
    let mut child = command.spawn().context("start mpirun")?;
    let ended = wait(&mut child, &folder.join("hpccoutf.txt"), network);
    let stopped = stop(&mut child);
    match ended? {
        Some(said) => stopped.map(|()| said),
        None => {
            let said = fs::read_to_string(&complaints).unwrap_or_default();
            anyhow::bail!("mpirun ended early: {}", said.lines().take(5).collect::<Vec<_>>().join("; "))
        }
    }
}

/// Waits until the last section that is read has ended, and shows which one runs; what hpcc has written by then, or nothing if
/// it ended before.
fn wait(child: &mut Child, written: &Path, network: &str) -> Result<Option<String>> {
    let (begun, last) = (Instant::now(), format!("End of {LAST_SECTION} section."));
    let bar = ProgressBar::new_spinner();
    loop {
        let is_over = child.try_wait().context("wait for mpirun")?.is_some();
        let said = fs::read_to_string(written).unwrap_or_default();
        if said.contains(&last) {
            bar.finish_and_clear();
            return Ok(Some(said));
        }
        if is_over {
            bar.finish_and_clear();
            return Ok(None);
        }
        let section = said.lines().rev().find_map(|line| line.strip_prefix("Begin of ")).unwrap_or("start");
        anyhow::ensure!(
            begun.elapsed() < LONGEST,
            "hpcc takes more than {} s; it was at: {section}",
            LONGEST.as_secs()
        );
        bar.set_message(format!("hpcc on {network}, {} s: {section}", begun.elapsed().as_secs()));
        bar.tick();
        thread::sleep(LOOK);
    }
}

/// Ends mpirun, which ends what it has started.
fn stop(child: &mut Child) -> Result<()> {
    let begun = Instant::now();
    // Twice, as Ctrl-C would: the second time it does not wait for others.
    while child.try_wait().context("wait for mpirun")?.is_none() {
        if begun.elapsed() > GRACE {
            child.kill().context("end mpirun")?;
            break;
        }
        let ended = Command::new("kill").arg(child.id().to_string()).stderr(Stdio::null()).status();
        ended.context("start kill")?;
        thread::sleep(Duration::from_secs(1));
    }
    child.wait().context("wait for mpirun")?;
    Ok(())
}

/// Writes what Open MPI takes for ssh: a program that enters the namespace of a host's address.
fn write_agent(lab: &Lab, folder: &Path) -> Result<PathBuf> {
    let mut script = "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\ncase $1 in\n".to_owned();
    for host in &lab.layout().hosts {
        script.push_str(&format!("{}) place={} ;;\n", host.address, host.namespace));
    }
    script.push_str("*) exit 1 ;;\nesac\nshift\nexec ip netns exec \"$place\" setsid /bin/sh -c \"$*\"\n");
    let path = folder.join("agent");
    fs::write(&path, script).with_context(|| format!("write {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700))
        .with_context(|| format!("change {}", path.display()))?;
    Ok(path)
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
        let wanted = [2.0 / 0.3, 2.0 / 3.25, 0.000236192];
        assert!(found.iter().zip(wanted).all(|(found, wanted)| (found / wanted - 1.0).abs() < 1e-9), "{found:?}");
        assert!(read(&SAID.replace("1.75 PASSED", "1.75 FAILED")).is_err());
        assert!(read(&SAID.replace("Computing:     0.140", "Computing:     0.000")).is_err());
        let unended = SAID.split("End of MPIFFT").next().expect("a part");
        assert!(read(unended).expect_err("it did not end").to_string().contains("FFT"));
        assert!(read(&SAID.replace("WALL  2000", "WALL  2001")).is_err());
    }
}
