//! The architecture as a test: who may depend on whom, and what the pure crates never touch.
//!
//! The rules are those of the layout: `fabric` stands alone; `planner`, `transition`, `verify` and `sim` know `fabric` only,
//! and the judge never meets the planner; adapters never call the planner; `ri2n` knows nothing of VLANs. A crate that is
//! not listed here fails the test until its place is decided.

mod common;

use std::{collections::BTreeSet, path::Path};

use common::{manifest, read, rust_files, workspace_crates};

/// What a crate may depend on among the crates of the workspace.
struct Rule {
    name: &'static str,
    /// To run.
    uses: &'static [&'static str],
    /// In tests alone, besides.
    tests_with: &'static [&'static str],
    purity: Purity,
}

#[derive(PartialEq)]
enum Purity {
    /// Never does I/O, reads no clock, draws no unseeded number.
    Pure,
    /// An adapter or a program.
    Shell,
}

const RULES: &[Rule] = &[
    Rule { name: "fabric", uses: &[], tests_with: &[], purity: Purity::Pure },
    Rule { name: "files", uses: &[], tests_with: &[], purity: Purity::Shell },
    Rule { name: "planner", uses: &["fabric"], tests_with: &["transition", "verify"], purity: Purity::Pure },
    Rule { name: "transition", uses: &["fabric"], tests_with: &["planner", "verify"], purity: Purity::Pure },
    Rule { name: "verify", uses: &["fabric"], tests_with: &[], purity: Purity::Pure },
    Rule { name: "infiniband", uses: &["fabric"], tests_with: &["planner"], purity: Purity::Pure },
    Rule { name: "sim", uses: &["fabric"], tests_with: &["planner", "verify"], purity: Purity::Pure },
    Rule { name: "cancel", uses: &[], tests_with: &[], purity: Purity::Pure },
    Rule { name: "switch-model", uses: &["fabric", "cancel"], tests_with: &[], purity: Purity::Pure },
    Rule {
        name: "dialects",
        uses: &["fabric", "switch-model"],
        tests_with: &["planner", "verify"],
        purity: Purity::Pure,
    },
    Rule { name: "snmp", uses: &["fabric", "cancel"], tests_with: &[], purity: Purity::Shell },
    Rule { name: "bridge-mib", uses: &["fabric", "snmp"], tests_with: &[], purity: Purity::Pure },
    Rule {
        name: "drivers",
        uses: &["fabric", "cancel", "switch-model", "dialects", "snmp", "bridge-mib"],
        tests_with: &["rollout", "switchd"],
        purity: Purity::Shell,
    },
    Rule {
        name: "rollout",
        uses: &["fabric", "cancel", "switch-model", "dialects"],
        tests_with: &["planner", "verify"],
        purity: Purity::Shell,
    },
    Rule {
        name: "enrol",
        uses: &["fabric", "switch-model", "snmp", "bridge-mib", "drivers"],
        tests_with: &["rollout", "switchd"],
        purity: Purity::Shell,
    },
    Rule { name: "file-server", uses: &["dialects"], tests_with: &[], purity: Purity::Shell },
    Rule {
        name: "switchd",
        uses: &["fabric", "linux-net", "switch-model", "snmp", "bridge-mib"],
        tests_with: &[],
        purity: Purity::Shell,
    },
    Rule { name: "rack", uses: &["fabric", "snmp", "bridge-mib", "switchd"], tests_with: &[], purity: Purity::Shell },
    Rule { name: "plot", uses: &["fabric"], tests_with: &["planner"], purity: Purity::Pure },
    Rule {
        name: "experiments",
        uses: &["fabric", "files", "planner", "verify", "lab", "sim", "plot"],
        tests_with: &[],
        purity: Purity::Shell,
    },
    Rule { name: "host-setup", uses: &["fabric"], tests_with: &["planner"], purity: Purity::Pure },
    Rule { name: "tagging", uses: &["fabric"], tests_with: &["planner", "transition"], purity: Purity::Pure },
    Rule { name: "tagger", uses: &["fabric", "linux-net", "tagging"], tests_with: &[], purity: Purity::Shell },
    Rule { name: "linux-net", uses: &["fabric"], tests_with: &[], purity: Purity::Shell },
    Rule {
        name: "lab",
        uses: &["fabric", "linux-net", "snmp", "bridge-mib", "switchd", "tagger"],
        tests_with: &["planner", "verify", "cancel", "switch-model", "dialects", "drivers", "host-setup"],
        purity: Purity::Shell,
    },
    Rule {
        name: "controller",
        uses: &[
            "fabric",
            "files",
            "planner",
            "transition",
            "verify",
            "cancel",
            "switch-model",
            "dialects",
            "snmp",
            "bridge-mib",
            "drivers",
            "rollout",
            "enrol",
            "tagging",
        ],
        tests_with: &[],
        purity: Purity::Shell,
    },
    Rule { name: "tls", uses: &["files"], tests_with: &[], purity: Purity::Shell },
    Rule { name: "api-client", uses: &["files", "tls"], tests_with: &[], purity: Purity::Shell },
    Rule { name: "records", uses: &["tls"], tests_with: &[], purity: Purity::Shell },
    Rule {
        name: "espalierd",
        uses: &[
            "fabric",
            "planner",
            "transition",
            "verify",
            "switch-model",
            "drivers",
            "rollout",
            "enrol",
            "controller",
            "records",
            "tls",
            "api-client",
            "rack",
        ],
        tests_with: &["bridge-mib", "snmp", "switchd", "tagging"],
        purity: Purity::Shell,
    },
    Rule {
        name: "espalier",
        uses: &[
            "fabric",
            "files",
            "planner",
            "transition",
            "verify",
            "infiniband",
            "plot",
            "sim",
            "experiments",
            "controller",
            "api-client",
            "switch-model",
            "dialects",
            "bridge-mib",
            "drivers",
            "rollout",
            "enrol",
            "file-server",
            "switchd",
            "host-setup",
            "linux-net",
            "tagger",
            "lab",
            "ri2n",
            "ri2n-io",
            "ri2n-status",
        ],
        tests_with: &["snmp"],
        purity: Purity::Shell,
    },
    Rule { name: "ri2n", uses: &[], tests_with: &[], purity: Purity::Pure },
    Rule { name: "ri2n-io", uses: &["ri2n"], tests_with: &[], purity: Purity::Shell },
    Rule {
        name: "ri2n-cli",
        uses: &["ri2n", "ri2n-io", "ri2n-run", "ri2n-status"],
        tests_with: &[],
        purity: Purity::Shell,
    },
    Rule { name: "ri2n-c", uses: &["ri2n", "ri2n-io", "ri2n-status"], tests_with: &[], purity: Purity::Shell },
    Rule {
        name: "ri2n-run",
        uses: &["ri2n-io", "ri2n-express", "ri2n-session"],
        tests_with: &[],
        purity: Purity::Shell,
    },
    Rule { name: "ri2n-tokio", uses: &["ri2n-io"], tests_with: &[], purity: Purity::Shell },
    Rule { name: "ri2n-status", uses: &["ri2n-io"], tests_with: &[], purity: Purity::Shell },
    Rule { name: "ri2n-session", uses: &[], tests_with: &[], purity: Purity::Pure },
    Rule { name: "ri2n-express", uses: &[], tests_with: &[], purity: Purity::Shell },
    Rule { name: "ri2n-preload", uses: &["ri2n-express", "ri2n-session"], tests_with: &[], purity: Purity::Shell },
];

/// What pure crates never mention, and why.
const IMPURE: &[(&str, &str)] = &[
    ("std::fs", "files are read by the program and handed in as text"),
    ("std::process", "a pure crate starts and ends nothing"),
    ("std::env", "settings are arguments"),
    ("std::os::", "a pure crate is the same on every system"),
    ("TcpStream", "sockets belong to adapters"),
    ("TcpListener", "sockets belong to adapters"),
    ("UdpSocket", "sockets belong to adapters"),
    ("UnixStream", "sockets belong to adapters"),
    ("Instant::now", "time is an argument"),
    ("SystemTime", "time is an argument"),
    ("thread::sleep", "waiting belongs to adapters"),
    ("thread_rng", "chance comes from fabric::rng and a seed"),
    ("use rand", "chance comes from fabric::rng and a seed"),
    ("rand::", "chance comes from fabric::rng and a seed"),
    ("RandomState", "the order of an unordered map differs from run to run"),
];

#[test]
fn crates_depend_only_as_the_arrows_allow() {
    let crates = workspace_crates();
    assert!(crates.contains_key("fabric"), "no crates found");
    let names: BTreeSet<&str> = crates.keys().map(String::as_str).collect();
    let faults: Vec<String> =
        crates.iter().flat_map(|(name, path)| arrow_faults(name, &manifest(path), &names)).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn pure_crates_touch_nothing_outside() {
    let mut faults = Vec::new();
    for (name, path) in workspace_crates() {
        if rule(&name).is_some_and(|rule| rule.purity == Purity::Pure) {
            for file in rust_files(&path.join("src")) {
                faults.extend(purity_faults(&file.display().to_string(), &read(&file)));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn fabric_knows_serde_in_its_formats_alone() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let formats = src.join("format");
    let files = rust_files(&src);
    let (inside, outside): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.starts_with(&formats));
    assert!(
        inside.iter().any(|file| mentions(&read(file), "serde")),
        "no format knows serde, so this test sees nothing"
    );
    for file in outside {
        for word in ["serde", "toml::", "sha2"] {
            let name = file.display();
            assert!(
                !mentions(&without_comments(&read(file)), word),
                "{name} mentions {word}: serialization belongs to src/format"
            );
        }
    }
}

#[test]
fn the_judge_walks_graphs_by_itself() {
    let crates = workspace_crates();
    let walks = |name: &str| {
        let files = rust_files(&crates[name].join("src"));
        files.into_iter().filter(|file| mentions(&without_comments(&read(file)), "graph::")).collect::<Vec<_>>()
    };
    assert!(!walks("planner").is_empty(), "the planner names nothing of fabric::graph, so this test sees nothing");
    assert_eq!(
        walks("verify"),
        [] as [std::path::PathBuf; 0],
        "what planner and judge share can hide a fault from both"
    );
}

#[test]
fn the_test_sees_what_it_forbids() {
    let names = BTreeSet::from(["fabric", "planner", "verify", "lab"]);
    let faults = |name: &str, manifest: &str| arrow_faults(name, &manifest.parse().expect("a manifest"), &names).len();
    assert_eq!(faults("planner", "[dependencies]\nfabric = {}\nserde = '1'\n[dev-dependencies]\nverify = {}"), 0);
    assert_eq!(faults("planner", "[dependencies]\nfabric = {}\nverify = {}"), 1);
    assert_eq!(faults("verify", "[dev-dependencies]\nplanner = {}"), 1);
    assert_eq!(faults("verify", "[dependencies]\njudge = {package = 'planner'}"), 1);
    assert_eq!(faults("verify", "[target.'cfg(unix)'.dependencies]\nplanner = {}"), 1);
    assert_eq!(faults("fabric", "[build-dependencies]\nlab = {}"), 1);
    assert_eq!(faults("newcomer", "[dependencies]"), 1);

    assert_eq!(purity_faults("f.rs", "use std::net::IpAddr;\n// std::fs\nstd::thread::scope(|_| {});"), [""; 0]);
    for line in [
        "let x = std::fs::read(p);",
        "use std::{fs, io};",
        "let now = Instant::now();",
        "use std::{\n    fs::File,\n};",
    ] {
        assert_eq!(purity_faults("f.rs", line).len(), 1, "{line}");
    }
}

fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

/// Which dependencies of a manifest the rules forbid.
fn arrow_faults(name: &str, manifest: &toml::Table, crates: &BTreeSet<&str>) -> Vec<String> {
    let Some(rule) = rule(name) else {
        return vec![format!("crate {name} has no place yet: add it to RULES in crates/fabric/tests/arrows.rs")];
    };
    let mut faults = Vec::new();
    let mut judge = |table: &toml::Table| {
        for (section, tests_too) in [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
        {
            let dependencies = table.get(section).and_then(toml::Value::as_table);
            for (key, value) in dependencies.into_iter().flatten() {
                let package = value.get("package").and_then(toml::Value::as_str).unwrap_or(key);
                let allowed = rule.uses.contains(&package) || tests_too && rule.tests_with.contains(&package);
                if crates.contains(package) && !allowed {
                    faults.push(format!("crate {name} must not depend on {package} ([{section}] of its Cargo.toml)"));
                }
            }
        }
    };
    judge(manifest);
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    for target in targets.into_iter().flatten().filter_map(|(_, target)| target.as_table()) {
        judge(target);
    }
    faults
}

/// Which lines of a pure crate's source mention what they must not.
fn purity_faults(name: &str, source: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let code = without_comments(source);
    for (word, why) in IMPURE {
        if mentions(&code, word) {
            faults.push(format!("{name} mentions {word}: {why}"));
        }
    }
    for module in ["fs", "process", "env"] {
        if grouped_std_imports(&code).contains(module) {
            faults.push(format!("{name} imports std::{module}: a pure crate touches nothing outside"));
        }
    }
    faults
}

/// The modules named first-hand in `use std::{…}`.
fn grouped_std_imports(code: &str) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    for group in code.split("use std::{").skip(1) {
        let (mut depth, mut word, mut at_start) = (1, String::new(), true);
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            match c {
                c if depth == 1 && at_start && (c.is_alphanumeric() || c == '_') => word.push(c),
                ',' if depth == 1 => {
                    modules.insert(std::mem::take(&mut word));
                    at_start = true;
                }
                c if c.is_whitespace() => {}
                _ => at_start = false,
            }
        }
        modules.insert(word);
    }
    modules
}

/// Whether `word` stands in the code, not as the tail of a longer name.
fn mentions(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
    })
}

/// The source less what stands after `//` on each line.
fn without_comments(source: &str) -> String {
    source.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code)).collect::<Vec<_>>().join("\n")
}
