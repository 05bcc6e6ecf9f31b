//! \[Otsuka\] Fig. 8 in the lab: an MPI program that sends all to all, by Debian's Open MPI and HPC Challenge.
//!
//! Debian has no NAS benchmarks. Of HPC Challenge the distributed FFT and the parallel transpose do to a network what FT does;
//! its rings tell what two neighbours have while all others send.
//!
//! Source: Luszczek et al., "Introduction to the HPC Challenge benchmark suite", 2005.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};
use lab::Lab;

use super::{
    in_lab::Labs,
    network::plan_named,
    reproduction::{Reproduction, Statement, bars},
};
use crate::{cli, table::Table};

/// Networks that are run: with sixteen processes on few processors each takes a minute.
const NETWORKS: [&str; 4] = ["Flat", "Torus (4 x 4)", "Myri-Clos", "M-Tree"];
/// What is read of the summary, and what it is called.
const FIGURES: [(&str, &str); 4] = [
    ("MPIFFT_Gflops", "FFT"),
    ("PTRANS_GBs", "transpose"),
    ("NaturallyOrderedRingBandwidth_GBytes", "ring"),
    ("RandomlyOrderedRingBandwidth_GBytes", "random ring"),
];
/// Order of the matrix, which sizes everything.
const ORDER: u32 = 1000;
/// Longest run, for timeout(1).
const SECONDS_MAX: &str = "600";

/// Programs without which nothing can be run.
pub(super) fn missing() -> Option<&'static str> {
    ["mpirun", "hpcc", "timeout"].into_iter().find(|program| {
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
        let ran = run(&lab);
        lab.down()?;
        found.push(ran.with_context(|| format!("hpcc on {name}"))?);
    }
    let mut table = Table::new(["[Otsuka] Fig. 8, lab", "FFT", "transpose", "ring", "random ring"]);
    let relative: Vec<Vec<f64>> =
        found.iter().map(|own| own.iter().zip(&found[0]).map(|(own, flat)| own / flat).collect()).collect();
    let mut rows = Vec::new();
    for (at, name) in NETWORKS.iter().enumerate() {
        table.row(std::iter::once((*name).to_owned()).chain(relative[at].iter().map(|value| format!("{value:.3}"))));
        let values = FIGURES.iter().zip(&found[at]).map(|((name, _), value)| ((*name).to_owned(), (*value).into()));
        rows.push(serde_json::json!({ "name": name, "hpcc": values.collect::<serde_json::Map<_, _>>() }));
    }
    let tree = &relative[NETWORKS.len() - 1];
    let tagged = &relative[1..NETWORKS.len() - 1];
    // A transpose and a ring may stay within a neighbourhood; an FFT goes all to all.
    let statements = [
        Statement::new(
            format!(
                "what sends all to all loses most on M-Tree (here FFT {:.2}, random ring {:.2} of Flat)",
                tree[0], tree[3]
            ),
            tagged.iter().all(|values| values[0] > tree[0] && values[3] > tree[3]),
        ),
        Statement::new(
            format!(
                "tagged topologies do better (here FFT {} of Flat)",
                tagged.iter().map(|values| format!("{:.2}", values[0])).collect::<Vec<_>>().join(", ")
            ),
            tagged.iter().all(|values| values[0] > 1.2 * tree[0]),
        ),
    ];
    let notes = vec![
        format!(
            "Flat = 1; hpcc of order {ORDER} on 16 hosts of the lab, Open MPI over their own TCP, cables of {}",
            fabric::format_rate(labs.rate_bps)
        ),
        "NAS benchmarks are not in Debian; hpcc's FFT and transpose stand for FT. Work is shared by all 16 processes of this".to_owned(),
        "  machine's processors, so cables are slow to be what counts. All of hpcc's own checks passed".to_owned(),
    ];
    let series = NETWORKS.iter().zip(&relative).skip(1).map(|(name, values)| ((*name).to_owned(), values.clone()));
    let chart = bars("[Otsuka] Fig. 8 in the lab: hpcc", "Flat = 1", FIGURES.iter().map(|(_, name)| *name), series);
    Ok(Reproduction::judged("fig8_lab", (table, chart), rows, &statements, notes))
}

/// Runs hpcc on all hosts of a lab; its figures in the order of [`FIGURES`].
fn run(lab: &Lab) -> Result<Vec<f64>> {
    let layout = lab.layout();
    let folder = std::env::temp_dir().join(format!("espalier-{}", layout.name));
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let summary = run_in(lab, &folder);
    fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))?;
    let summary = summary?;
    let value = |name: &str| {
        let line = summary.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.and_then(|value| value.trim().parse::<f64>().ok()).with_context(|| format!("hpcc does not tell {name}"))
    };
    anyhow::ensure!(value("Success")? == 1.0, "hpcc did not succeed");
    anyhow::ensure!(!summary.contains("FAILED"), "a check of hpcc failed");
    FIGURES.iter().map(|(name, _)| value(name)).collect()
}

fn run_in(lab: &Lab, folder: &Path) -> Result<String> {
    let layout = lab.layout();
    fs::write(folder.join("hpccinf.txt"), input(layout.hosts.len())).context("write hpcc's input")?;
    let agent = write_agent(lab, folder)?;
    let first = &layout.hosts[0];
    let hosts: Vec<String> = layout.hosts.iter().map(|host| host.address.to_string()).collect();
    let network = format!("{}/{}", first.address, first.prefix_bits);
    let words = [
        SECONDS_MAX,
        "mpirun",
        "--allow-run-as-root",
        "--wdir",
        &folder.display().to_string(),
        "--mca",
        "plm_rsh_agent",
        &agent.display().to_string(),
        "--mca",
        "plm_rsh_no_tree_spawn",
        "1",
        "--mca",
        "pml",
        "ob1",
        "--mca",
        "btl",
        "tcp,self",
        "--mca",
        "oob_tcp_if_include",
        &network,
        "--mca",
        "btl_tcp_if_include",
        &network,
        "--mca",
        "mpi_yield_when_idle",
        "1",
        "-np",
        &hosts.len().to_string(),
        "--host",
        &hosts.join(","),
        "hpcc",
    ]
    .map(str::to_owned);
    let ran = lab.command(&first.name, "timeout", &words)?.stdin(Stdio::null()).output().context("start mpirun")?;
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    anyhow::ensure!(
        ran.status.success(),
        "mpirun: {}: {}",
        ran.status,
        said.lines().take(5).collect::<Vec<_>>().join("; ")
    );
    fs::read_to_string(folder.join("hpccoutf.txt")).context("read what hpcc wrote")
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
        ("0".to_owned(), "additional problem sizes for PTRANS"),
        (ORDER.to_string(), "values of N"),
        ("0".to_owned(), "additional block sizes for PTRANS"),
        ("40".to_owned(), "values of NB"),
    ];
    lines.iter().map(|(value, what)| format!("{value:<12} {what}\n")).collect()
}
