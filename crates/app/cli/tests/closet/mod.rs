//! Four switches that answer SNMP on loopback addresses, and the program beside them.
#![allow(dead_code)]

mod switches;

use std::{fs, path::PathBuf, process::Command};

pub(crate) use switches::*;

/// What every switch holds, but for deployment tags and when it was read.
pub(crate) fn held(folder: &Folder, closet: &Closet, word: &str) -> Vec<String> {
    let told = run(folder, closet, &format!("espalier observe plan.json -o {word}"));
    assert!(told.starts_with("4 of 4"), "{told}");
    let paths = fs::read_dir(folder.0.join(word)).expect("a folder").map(|entry| entry.expect("an entry").path());
    let paths: std::collections::BTreeSet<PathBuf> = paths.collect();
    let lasting = |line: &&str| !line.contains("\"taken_at\"") && !line.contains("\"mark\"");
    let text = |path: PathBuf| fs::read_to_string(path).expect("a file").lines().filter(lasting).collect::<String>();
    paths.into_iter().map(text).collect()
}

/// Runs a command as a shell would, as far as sessions need one.
pub(crate) fn run(folder: &Folder, closet: &Closet, command: &str) -> String {
    let mut words = command.split_whitespace();
    let mut process = match words.next() {
        Some("espalier") => Command::new(env!("CARGO_BIN_EXE_espalier")),
        Some(program) => Command::new(program),
        None => panic!("an empty command"),
    };
    let port = closet.port.to_string();
    let asks = ["deploy", "status", "watch", "enrol", "observe", "discover", "addresses"]
        .iter()
        .any(|verb| command.starts_with(&format!("espalier {verb}")));
    process.args(words).current_dir(&folder.0);
    if asks {
        process.args(["--port", &port, "--timeout", "1", "--attempts", "2"]);
    }
    let output = process.output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    // Switches are probed at once: whose step is told first is chance.
    let mut lines: Vec<&str> = stderr.lines().collect();
    if command.starts_with("espalier enrol") {
        lines.sort_by_key(|line| line.split(": ").next());
    }
    let mut told = lines.into_iter().fold(stdout, |told, line| told + line + "\n");
    let code = output.status.code().expect("it ends by itself");
    if code != 0 {
        told.push_str(&format!("? {code}\n"));
    }
    told
}
