//! Every help page as a person sees it at 100 columns, in one file that is reviewed like code.
//! `BLESS=1 cargo test -p espalier --test help` rewrites it.

use std::{fs, path::Path, process::Command};

/// The help page of a command, and below it those of its subcommands.
fn pages(command: &[&str], text: &mut String) {
    let espalier = env!("CARGO_BIN_EXE_espalier");
    let output = Command::new(espalier).args(command).arg("--help").env("COLUMNS", "100").output().expect("it runs");
    assert!(output.status.success(), "{command:?}");
    let page = String::from_utf8(output.stdout).expect("text");
    text.push_str(&format!("──── espalier {}\n\n{page}\n", command.join(" ")));
    let listed = page.split("\nCommands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
    // The second line of a description is indented further.
    let names = listed.lines().filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        pages(&[command, &[name]].concat(), text);
    }
}

#[test]
fn help_pages_are_as_reviewed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help.txt");
    let mut text = String::new();
    pages(&[], &mut text);
    let text: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, text).expect("the file can be written");
    } else {
        let reviewed = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            text == reviewed,
            "help pages differ: BLESS=1 cargo test -p espalier --test help, and read the difference"
        );
    }
}
