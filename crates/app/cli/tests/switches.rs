//! Golden sessions with switches: agents answer SNMP on loopback addresses, and every line that the program prints is that of
//! `tests/switches/*.session`. `TRYCMD=overwrite cargo test -p espalier --test switches` rewrites them.
//!
//! ```text
//! $ espalier deploy plan.json       a command; below it what it prints, standard output first, then standard error
//! ? 1                               its exit code, where that is not 0
//! ! s1 dot1qPvid.3 = 1              somebody else writes to a switch
//! ! s1 silent                       it does not answer from here on
//! ! s1 traps                        the same, from the moment on when its first port is shut
//! ! s1 freezes                      the same, from the first change on
//! % words                           a remark
//! ```

mod closet;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::Ordering,
    thread,
    time::Duration,
};

use closet::{Closet, Folder, LIMITS, ROOMY, ring, run};
use switchd::agent::Limits;

#[test]
fn deploy_status_and_watch() {
    play("deploy", ROOMY);
}

#[test]
fn enrol() {
    play("enrol", LIMITS);
}

/// Three switches have been read and the fourth is awaited when somebody presses Ctrl-C: what was observed before is still
/// there, all of it and nothing else.
#[test]
fn an_interrupted_observation_changes_nothing() {
    let folder = Folder::new("interrupted");
    let closet = Closet::open(LIMITS);
    folder.prepare(&ring());
    let told = run(&folder, &closet, "espalier plan ring.yaml --flow-control none -o plan.json");
    assert!(told.contains("fit to deploy"), "{told}");
    let told = run(&folder, &closet, "espalier observe plan.json -o seen");
    assert_eq!(told, "4 of 4 switches observed into seen\n");
    let seen = || -> BTreeMap<PathBuf, String> {
        let paths = fs::read_dir(folder.0.join("seen")).expect("a folder").map(|entry| entry.expect("an entry").path());
        paths.map(|path| (path.clone(), fs::read_to_string(&path).unwrap_or_default())).collect()
    };
    let before = seen();
    assert_eq!(before.len(), 4);
    closet.do_it("s1 dot1qPvid.3 = 1");
    closet.do_it("s3 silent");
    let port = closet.port.to_string();
    let mut observing = Command::new(env!("CARGO_BIN_EXE_espalier"))
        .args(["observe", "plan.json", "-o", "seen", "--port", &port, "--timeout", "0.5", "--attempts", "20"])
        .current_dir(&folder.0)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    // It has been asked a second time: the others have long answered.
    while closet.unanswered[3].load(Ordering::SeqCst) < 2 {
        assert!(observing.try_wait().expect("a process").is_none(), "it ended before it was interrupted");
        thread::sleep(Duration::from_millis(5));
    }
    let pressed = Command::new("kill").args(["-INT", &observing.id().to_string()]).status().expect("kill runs");
    assert!(pressed.success());
    closet.do_it("s3 speaks");
    let output = observing.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130));
    for line in ["espalier: stopping; Ctrl-C again to abort\n", "espalier: interrupted; seen is as it was\n"] {
        assert!(said.contains(line), "{said}");
    }
    assert_eq!(seen(), before);
}

fn play(name: &str, limits: Limits) {
    let folder = Folder::new(name);
    let closet = Closet::open(limits);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/switches/{name}.session"));
    let golden = fs::read_to_string(&path).expect("a session");
    folder.prepare(&ring());
    let mut told = String::new();
    for line in golden.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            told.push_str(&format!("$ {command}\n{}", run(&folder, &closet, command)));
        } else if let Some(deed) = line.strip_prefix("! ") {
            closet.do_it(deed);
            told.push_str(&format!("! {deed}\n"));
        } else if line.starts_with("% ") {
            let gap = if told.is_empty() { "" } else { "\n" };
            told.push_str(&format!("{gap}{line}\n"));
        }
    }
    // Where agents happen to listen is nobody's business, nor when they were asked. On a busy machine tables are old enough to be
    // told so.
    let told = told.replace(&closet.port.to_string(), "PORT");
    let timeless = |line: &str| match line.strip_prefix("observed         ") {
        Some(when) if when.contains(" ago (20") => "observed         SECONDS ago (MOMENT)\n".to_owned(),
        _ => format!("{line}\n"),
    };
    let lasting = told.lines().filter(|line| !line.starts_with("tables were read "));
    let told: String = lasting.map(timeless).collect();
    if std::env::var("TRYCMD").is_ok_and(|mode| mode == "overwrite") {
        fs::write(&path, told).expect("the session can be written");
    } else {
        assert!(told == golden, "{} is not what is said now:\n{told}", path.display());
    }
}
