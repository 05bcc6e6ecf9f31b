//! What `espalier lab` advises when it refuses is true: every advice that its messages give is followed here, and works.
//!
//! Needs root and a back end for switches; skips aloud without.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Who an ordinary user is.
const NOBODY: u32 = 65_534;

/// A folder with a plan, and labs that go with it.
struct Bench {
    folder: PathBuf,
    labs: Vec<String>,
}

/// Names that `ip -batch` would take for comments, or that no device can have.
const CABLES: &str = "\
switches:
  s0: {ports: [p1, p2, 'x#y']}
  's#1': {ports: ['#1', p2, 'TenGigabitEthernet1/0/30']}
links:
  - s0:x#y -- s#1:#1
hosts:
  h0: {mac: '02:00:00:00:00:01', port: 's0:p1'}
  'h#1': {mac: '02:00:00:00:00:02', port: 's#1:p2'}
";

impl Bench {
    /// None, saying why, where labs cannot be.
    fn new(word: &str, labs: usize) -> Option<Self> {
        if !nix_is_root() {
            println!("skipped: needs root");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("espalier-lab-{}-{word}", std::process::id()));
        fs::create_dir_all(&folder).expect("room");
        fs::write(folder.join("cables.yaml"), CABLES).expect("room");
        let labs = (0..labs).map(|number| format!("a{}_{word}{number}", std::process::id())).collect();
        let bench = Self { folder, labs };
        bench.well("plan cables.yaml -o plan.json");
        let up = bench.run(&format!("lab up plan.json --name {}", bench.labs[0]));
        if said(&up).contains("no switch back end runs here") {
            println!("skipped: {}", said(&up));
            return None;
        }
        assert!(up.status.success(), "{}", said(&up));
        Some(bench)
    }

    fn run(&self, line: &str) -> Output {
        let words = line.split(' ').filter(|word| !word.is_empty());
        let mut command = Command::new(env!("CARGO_BIN_EXE_espalier"));
        command.args(words).current_dir(&self.folder).output().expect("it starts")
    }

    fn well(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}", said(&output));
        said(&output)
    }

    /// Runs what must fail, and returns what it said.
    fn ill(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(!output.status.success(), "{line}: {}", said(&output));
        said(&output)
    }

    fn state(&self, lab: usize) -> PathBuf {
        Path::new("/run/espalier/lab").join(&self.labs[lab])
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for lab in &self.labs {
            drop(self.run(&format!("lab down {lab}")));
        }
        drop(fs::remove_dir_all(&self.folder));
    }
}

fn nix_is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

/// Both outputs.
fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A message's advice: from `espalier ` to the end of its parenthesis or line.
fn advice(message: &str) -> String {
    let at =
        message.find("espalier lab ").or_else(|| message.find("espalier plan ")).unwrap_or_else(|| panic!("{message}"));
    let rest = &message[at + "espalier ".len()..];
    rest.split([')', '\n']).next().unwrap_or_default().trim().to_owned()
}

#[test]
fn commands_that_are_advised_mend_what_was_wrong() {
    let Some(bench) = Bench::new("advice", 1) else { return };
    let lab = bench.labs[0].clone();
    let up = format!("lab up plan.json --name {lab}");
    let status = format!("lab --name {lab} status");
    let layout = bench.state(0).join("layout.json");
    type Spoil<'a> = &'a dyn Fn();
    let nothing: Spoil<'_> = &|| {};
    let unfinished: Spoil<'_> = &|| fs::remove_file(bench.state(0).join("finished")).expect("it was there");
    let other_version: Spoil<'_> = &|| fs::write(&layout, "{\"version\": 1}").expect("room");
    let half_written: Spoil<'_> = &|| fs::write(&layout, "{\"vers").expect("room");
    // What is done to the lab, the command that fails, what it says, and what works once the advice has been followed.
    for (spoil, fails, says, works) in [
        (nothing, up.as_str(), "exists already", up.as_str()),
        (unfinished, status.as_str(), "was never finished", up.as_str()),
        (other_version, status.as_str(), "format version 1", up.as_str()),
        (half_written, status.as_str(), "another version?", up.as_str()),
        (nothing, "lab up cables.yaml --name fresh", "not a plan", up.as_str()),
    ] {
        spoil();
        let message = bench.ill(fails);
        assert!(message.contains(says), "{message}");
        let advice = advice(&message);
        println!("{fails}: {message}  follows: {advice}");
        bench.well(&advice);
        if advice.starts_with("plan") {
            bench.well(&format!("lab down {lab}"));
        }
        bench.well(works);
        bench.well(&status);
    }
}

#[test]
fn names_that_are_listed_are_accepted() {
    let Some(bench) = Bench::new("names", 1) else { return };
    let lab = &bench.labs[0];
    // The name that is wrong, what the message lists, and the same command with a name from the list.
    for (wrong, listed, right) in [
        ("exec nobody -- true", "it has h0, h#1", "exec h#1 -- true"),
        ("plug s0:p9 s0:p1", "that switch has p1, p2, x#y", "plug s0:p2 s0:p1"),
        ("plug s0:p1 s9:p1", "espalier lab status lists them", "plug s0:p1 s0:p2"),
        ("fail s0:p9", "name a host, a port such as", "fail s0:x#y"),
        ("heal s0:p9", "or both ends as", "heal s0:x#y -- s#1:#1"),
        ("measure pair h0 h9 --bytes 1000", "it has h0, h#1", "measure pair h0 h#1 --bytes 1000"),
        ("measure all-to-all --iperf3", "espalier lab measure pair h0 h5 --iperf3", "status"),
    ] {
        let message = bench.ill(&format!("lab --name {lab} {wrong}"));
        assert!(message.contains(listed), "{message}");
        // A cable's two ends are one word.
        let (verb, rest) = right.split_once(' ').unwrap_or((right, ""));
        let mut command = Command::new(env!("CARGO_BIN_EXE_espalier"));
        command.args(["lab", "--name", lab, verb]);
        let output = match rest.contains(" -- s#1") {
            true => command.arg(rest).output(),
            false => command.args(rest.split(' ').filter(|word| !word.is_empty())).output(),
        };
        let output = output.expect("it starts");
        assert!(output.status.success(), "{right}: {}", said(&output));
    }
    let message = bench.ill("lab --name no-such status");
    assert!(message.contains("use 1 to 32 letters, digits or _"), "{message}");
    let message = bench.ill("lab --name no_such status");
    assert!(message.contains("up are: ") && message.contains(lab.as_str()), "{message}");
    assert!(bench.well("lab list").contains(lab.as_str()));
    let message = bench.ill("lab up plan.json --managed --backend bridge --name fresh");
    assert!(message.contains("--backend ebpf") || message.contains("bridge: "), "{message}");
    // Every host answers, whatever it and its port are called.
    let pings = bench.well(&format!("lab --name {lab} ping"));
    assert!(pings.contains("2 of 2 pairs"), "{pings}");
}

#[test]
fn programs_end_as_a_shell_would_end_them() {
    let Some(bench) = Bench::new("exec", 1) else { return };
    let lab = &bench.labs[0];
    let script = bench.folder.join("script");
    fs::write(&script, "#!/bin/sh\nexit 7\n").expect("room");
    let code = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_espalier"));
        let output = command.args(["lab", "--name", lab, "exec", "h0", "--"]).args(words).output().expect("it starts");
        (output.status.code(), said(&output))
    };
    let path = script.to_str().expect("plain");
    for (words, expected, says) in [
        (&["no-such-program"][..], 127, "no such program on this machine"),
        (&["/no/such/program"], 127, "give its path"),
        (&[path], 126, "chmod +x"),
        (&["/etc"], 126, "not executable"),
        (&["sh", "-c", "exit 3"], 3, ""),
        (&["sh", "-c", "kill -TERM $$"], 143, ""),
        (&["sh", "-c", "kill -KILL $$"], 137, ""),
        (&["true"], 0, ""),
    ] {
        let (found, message) = code(words);
        assert_eq!(found, Some(expected), "{words:?}: {message}");
        assert!(message.contains(says), "{message}");
    }
    // As the message says.
    assert_eq!(code(&["sh", path]).0, Some(7));
    fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("own");
    assert_eq!(code(&[path]).0, Some(7));
}

fn namespaces_of(lab: &str) -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&format!("esp-{lab}-"))).collect()
}

#[test]
fn a_lab_that_was_killed_half_way_is_taken_down_by_its_name() {
    let Some(bench) = Bench::new("killed", 2) else { return };
    let lab = &bench.labs[1];
    for delay_ms in [1, 5, 15, 30, 60, 120, 250] {
        let mut up = Command::new(env!("CARGO_BIN_EXE_espalier"))
            .args(["lab", "up", "--factory", "plan.json", "--backend", "ebpf", "--name", lab])
            .current_dir(&bench.folder)
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("it starts");
        std::thread::sleep(std::time::Duration::from_millis(delay_ms));
        up.kill().expect("it can be killed");
        up.wait().expect("it was started");
        bench.well(&format!("lab down {lab}"));
        assert_eq!(namespaces_of(lab), [""; 0], "after {delay_ms} ms");
        assert!(!bench.state(1).exists() && !Path::new("/sys/fs/bpf/espalier").join(lab).exists(), "{delay_ms} ms");
        assert!(!bench.well("lab list").contains(lab.as_str()));
    }
}

#[test]
fn a_full_disk_is_said_and_leaves_nothing() {
    let Some(bench) = Bench::new("full", 1) else { return };
    let program = env!("CARGO_BIN_EXE_espalier");
    let in_full = |script: &str| {
        let script = format!("mount -t tmpfs -o size=32k tmpfs /run && {script}");
        let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).current_dir(&bench.folder).output();
        output.expect("util-linux is there")
    };
    // No room from the beginning, and then none any more.
    let full = "dd if=/dev/zero of=/run/filler bs=4096 2>/dev/null";
    let up = format!("{program} lab up plan.json --name full");
    let output = in_full(&format!(
        "mkdir -p /run/espalier/lab /run/netns; {full}; {up}; echo code $?; ls -A /run/espalier/lab /run/netns"
    ));
    let text = said(&output);
    assert!(text.contains("No space left on device") && text.contains("code 1"), "{text}");
    assert!(!text.contains("esp-full") && !text.contains("\nfull"), "{text}");
    let output = in_full(&format!(
        "{up}; {full}; {program} lab --name full fail h0; echo code $?; rm /run/filler; \
         {program} lab --name full fail h0 && {program} lab --name full heal h0 && {program} lab --name full ping && \
         {program} lab down full && echo whole"
    ));
    let text = said(&output);
    assert!(text.contains("write layout: No space left on device") && text.contains("code 1"), "{text}");
    assert!(text.contains("2 of 2 pairs") && text.contains("whole"), "what was there is as it was: {text}");
}

/// Processes of an ordinary user that hold labs without root.
fn holders() -> usize {
    let processes = fs::read_dir("/proc").expect("proc").filter_map(|entry| Some(entry.ok()?.path()));
    processes
        .filter(|process| fs::read_to_string(process.join("comm")).is_ok_and(|comm| comm.trim() == "espalier-hold"))
        .count()
}

#[test]
fn who_is_not_root_is_told_of_roots_labs_and_leaves_no_process() {
    let Some(bench) = Bench::new("other", 1) else { return };
    let lab = &bench.labs[0];
    // A folder of root's would hide the program.
    let program = std::env::temp_dir().join(format!("espalier-other-{}", std::process::id()));
    fs::copy(env!("CARGO_BIN_EXE_espalier"), &program).expect("room");
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("own");
    let before = holders();
    let as_nobody = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(words).uid(NOBODY).gid(NOBODY).current_dir("/").output().expect("it starts")
    };
    let listed = as_nobody(&["lab", "list"]);
    assert!(listed.status.success() && said(&listed).contains("no lab is up that is yours"), "{}", said(&listed));
    assert!(said(&listed).contains(&format!("{lab} (sudo espalier lab list)")) || said(&listed).contains(lab.as_str()));
    assert_eq!(String::from_utf8_lossy(&as_nobody(&["lab", "list", "--json"]).stdout), "[]\n");
    for command in ["status", "down", "ping"] {
        let refused = as_nobody(&["lab", "--name", lab, command]);
        assert!(!refused.status.success() && said(&refused).contains("belongs to root"), "{}", said(&refused));
    }
    assert!(bench.well("lab list").contains(lab.as_str()), "root follows the advice");
    let missing = as_nobody(&["lab", "--name", "none_such", "status"]);
    assert!(said(&missing).contains("there is no lab none_such"), "{}", said(&missing));
    assert!(as_nobody(&["lab", "down", "none_such"]).status.success());
    assert_eq!(holders(), before, "a holder stays behind");
    fs::remove_file(&program).expect("own");
}

#[test]
fn formats_that_cannot_be_told_can_be_named() {
    let folder = std::env::temp_dir().join(format!("espalier-from-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("room");
    fs::write(folder.join("cables"), "// cables\n").expect("room");
    let plan = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_espalier"));
        said(&command.args(["plan", "cables"]).args(words).current_dir(&folder).output().expect("it starts"))
    };
    let message = plan(&[]);
    assert!(message.contains("name it with --from, which import and plan take"), "{message}");
    let named = plan(&["--from", "dot"]);
    assert!(!named.contains("--from") && named.contains("cables:"), "{named}");
    fs::write(folder.join("cables"), "// cables\ngraph G { \"s1\":\"p1\" -- \"s2\":\"p1\"; \"s1\":\"p2\" -- \"h1\":\"e\"; \"s2\":\"p2\" -- \"h2\":\"e\" }\n").expect("room");
    let _ = plan(&["--from", "dot", "-o", "plan.json"]);
    fs::remove_dir_all(&folder).expect("own");
}
