//! Switches over SSH: a program called `ssh` that plays a switch's command line, in place of OpenSSH's.
//!
//! ```text
//!   espalier ─ ssh … -- 127.0.8.1 ─▶ closet/127.0.8.1   a shell script: a prompt, a configuration, a list of what was said
//! ```
//! What a real sshd is needed for is in `tests/ssh/run`.

mod folder;

use std::{
    fs,
    net::UdpSocket,
    os::unix::fs::PermissionsExt as _,
    process::{Child, Command, Output, Stdio},
    thread,
    time::Duration,
};

use folder::Folder;

/// What plays every switch: `FILES` is its folder's name. A command whose text stands in the file `stuck` is never answered,
/// but for as often as the file `patience` has lines; the file is gone once it has been.
const SWITCH: &str = r#"
name=$(cat "$FILES/name")
show=$(cat "$FILES/show")
printf '%s' "$name"
while IFS= read -r -d $'\r' line; do
	printf '%s\n' "$line" >>"$FILES/said"
	printf '%s\r\n' "$line"
	if [ -n "$line" ] && [ "$line" = "$(cat "$FILES/stuck" 2>/dev/null)" ]; then
		if [ -s "$FILES/patience" ]; then
			sed -i 1d "$FILES/patience"
		else
			rm "$FILES/stuck"
			touch "$FILES/hangs"
			exec sleep 3600
		fi
	fi
	case "$line" in
	"$show") sed 's/$/\r/' "$FILES/config" ;;
	display\ current* | show\ running*) printf "%% Unrecognized command found at '^' position.\r\n" ;;
	esac
	printf '%s' "$name"
done
"#;

const COMWARE: &str = "#\n sysname hp\n#\nvlan 1\n#\ninterface GigabitEthernet1/0/1\n port link-mode bridge\n#\n\
    interface GigabitEthernet1/0/2\n port link-mode bridge\n#\nreturn\n";
const CISCO_SB: &str = "hostname sg\ninterface gi1\n!\ninterface gi2\n!\n";

/// Two switches with a cable between them and a host each.
struct Closet(Folder);

impl Closet {
    /// `None`, said aloud, where no such program can be played.
    fn open(word: &str) -> Option<Self> {
        if !Command::new("bash").arg("--version").output().is_ok_and(|output| output.status.success()) {
            eprintln!("SKIPPED: no bash to play a switch with");
            return None;
        }
        let folder = Folder::new(&format!("ssh-{word}"));
        fs::create_dir_all(folder.path().join("bin")).expect("a folder");
        fs::create_dir_all(folder.path().join("models")).expect("a folder");
        for (model, syntax) in [("hpe", "comware7"), ("sg300", "cisco-sb")] {
            folder.write(
                &format!("models/{model}.toml"),
                &format!(
                    "name = \"{model}\"\ndescription = \"{model}\"\nbasis = \"untested\"\nmax-vlans = 200\nstatic-macs = 200\n\
                     total-macs = 8192\nhybrid-ports = true\nindependent-vlan-learning = true\npause = true\npfc-classes = 0\n\
                     syntax = \"{syntax}\"\n"
                ),
            );
        }
        folder.write(
            "credentials.toml",
            "[default]\nssh-user = \"admin\"\nssh-password = \"secret\"\nsave = \"by-hand\"\n",
        );
        permit(&folder, "credentials.toml", 0o600);
        let closet = folder.path().join("closet");
        folder.write(
            "bin/ssh",
            &format!("#!/usr/bin/env bash\n[ \"$1\" = -Q ] && exit\nFILES='{}'/${{!#}}\n{SWITCH}", closet.display()),
        );
        permit(&folder, "bin/ssh", 0o700);
        let closet = Self(folder);
        closet.place(1, "<hp>", "display current-configuration", COMWARE);
        closet.place(2, "sg#", "show running-config", CISCO_SB);
        closet.plan([1, 2]);
        Some(closet)
    }

    /// Puts a switch behind an address.
    fn place(&self, number: u8, prompt: &str, show: &str, config: &str) {
        fs::create_dir_all(self.0.path().join(format!("closet/127.0.8.{number}"))).expect("a folder");
        for (name, text) in [("name", prompt), ("show", show), ("config", config), ("said", "")] {
            self.write(number, name, text);
        }
    }

    /// Plans with these addresses for hp and sg.
    fn plan(&self, [hp, sg]: [u8; 2]) {
        self.0.write(
            "pair.yaml",
            &format!(
                "switches:\n  hp: {{model: hpe, mgmt: 127.0.8.{hp}}}\n  sg: {{model: sg300, mgmt: 127.0.8.{sg}}}\nlinks:\n  \
                 - hp:GigabitEthernet1/0/1 -- sg:gi1\nhosts:\n  h1: {{mac: \"02:00:00:00:00:01\", port: \
                 \"hp:GigabitEthernet1/0/2\"}}\n  h2: {{mac: \"02:00:00:00:00:02\", port: \"sg:gi2\"}}\n"
            ),
        );
        self.0.succeed("plan pair.yaml --flow-control none -o plan.json");
    }

    fn write(&self, number: u8, name: &str, text: &str) {
        self.0.write(&format!("closet/127.0.8.{number}/{name}"), text);
    }

    /// What was said to a switch.
    fn said(&self, number: u8) -> String {
        self.0.read(&format!("closet/127.0.8.{number}/said"))
    }

    fn start(&self, arguments: &str) -> Child {
        let path = format!("{}:{}", self.0.path().join("bin").display(), std::env::var("PATH").unwrap_or_default());
        Command::new(env!("CARGO_BIN_EXE_espalier"))
            .args(arguments.split(' '))
            .current_dir(self.0.path())
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs")
    }

    /// Exit code, and all that it says.
    fn run(&self, arguments: &str) -> (i32, String) {
        told(self.start(arguments).wait_with_output().expect("it ends"))
    }

    /// Runs it until a switch has stopped answering, presses Ctrl-C, and waits for its end.
    fn interrupted(&self, number: u8, arguments: &str) -> (i32, String) {
        let hangs = self.0.path().join(format!("closet/127.0.8.{number}/hangs"));
        let mut child = self.start(arguments);
        while !hangs.exists() {
            assert!(child.try_wait().expect("a process").is_none(), "{arguments} ended before: {:?}", end(child));
            thread::sleep(Duration::from_millis(5));
        }
        fs::remove_file(&hangs).expect("it is there");
        press(&child);
        end(child)
    }
}

fn press(child: &Child) {
    let pressed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(pressed.success());
}

fn end(child: Child) -> (i32, String) {
    told(child.wait_with_output().expect("it ends"))
}

fn told(output: Output) -> (i32, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code().unwrap_or(-1), text(output.stdout) + &text(output.stderr))
}

fn permit(folder: &Folder, name: &str, mode: u32) {
    fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// Switches that may take ten minutes for an answer: the first, a later one, and one of the deployment itself.
const REACH: &str = "--timeout 600 --attempts 1";

#[test]
fn what_only_reads_ends_at_ctrl_c() {
    let Some(closet) = Closet::open("reads") else { return };
    for (command, patience, expect) in [
        ("observe plan.json -o seen", 0, "espalier: interrupted; seen is as it was"),
        ("observe plan.json -o seen", 1, "espalier: interrupted; seen is as it was"),
        ("status plan.json", 0, "espalier: interrupted; not every switch was asked"),
        ("deploy plan.json --dry-run --trust-cabling all", 0, "interrupted; nothing was written"),
        ("deploy plan.json --trust-cabling all", 0, "interrupted; nothing was written"),
        ("deploy plan.json --trust-cabling all", 1, "interrupted; nothing was written"),
    ] {
        closet.write(1, "stuck", "display current-configuration");
        closet.write(1, "patience", &"x\n".repeat(patience));
        let (code, said) = closet.interrupted(1, &format!("{command} {REACH}"));
        assert_eq!(code, 130, "{command}: {said}");
        assert!(said.contains(expect), "{command}: {said}");
        assert!(!closet.said(1).contains("system-view") && !closet.said(2).contains("vlan database"), "{command}");
    }
}

/// One that cannot log in because nobody answers is left as well.
#[test]
fn a_login_ends_at_ctrl_c() {
    let Some(closet) = Closet::open("login") else { return };
    closet.write(1, "stuck", "screen-length disable");
    let (code, said) = closet.interrupted(1, &format!("observe plan.json -o seen {REACH}"));
    assert_eq!((code, said.contains("espalier: interrupted; seen is as it was")), (130, true), "{said}");
}

/// The deployment itself turns back: nothing was changed yet, so it says so.
#[test]
fn a_deployment_that_reads_is_left_at_ctrl_c() {
    let Some(closet) = Closet::open("survey") else { return };
    closet.write(1, "stuck", "display current-configuration");
    closet.write(1, "patience", "x\nx\n");
    let (code, said) = closet.interrupted(1, &format!("deploy plan.json --trust-cabling all {REACH}"));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("nothing was changed"), "{said}");
    assert!(said.contains("asked to stop") || said.contains("as you asked"), "{said}");
}

/// A command that writes and is never answered is left too; the switch is asked again on the way back.
#[test]
fn a_write_that_hangs_is_left_at_ctrl_c() {
    let Some(closet) = Closet::open("write") else { return };
    closet.write(1, "stuck", "system-view");
    let (code, said) = closet.interrupted(1, &format!("deploy plan.json --trust-cabling all {REACH}"));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("was left in the middle of a request, as you asked"), "{said}");
}

#[test]
fn a_discovery_ends_at_ctrl_c() {
    let folder = Folder::new("discover-interrupted");
    folder.write("credentials.toml", "[default]\ncommunity = \"public\"\n");
    permit(&folder, "credentials.toml", 0o600);
    folder.write("found.yaml", "as it was");
    // It hears, and says nothing.
    let silent = UdpSocket::bind("127.0.8.9:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let child = Command::new(env!("CARGO_BIN_EXE_espalier"))
        .args(format!("discover 127.0.8.9 -o found.yaml --port {port} --timeout 1 --attempts 600").split(' '))
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    silent.recv(&mut [0; 2048]).expect("a request");
    press(&child);
    let (code, said) = end(child);
    assert_eq!(code, 130, "{said}");
    assert!(said.contains("espalier: interrupted; found.yaml is as it was"), "{said}");
    assert_eq!(folder.read("found.yaml"), "as it was");
}

/// A port whose settings are not all understood is refused before any switch is written to; what the message advises is enough.
#[test]
fn a_port_that_may_not_be_touched_is_refused_before_anything_is_written() {
    let Some(closet) = Closet::open("untouchable") else { return };
    let trunk = COMWARE.replace("1/0/1\n", "1/0/1\n port link-type trunk\n");
    closet.write(1, "config", &trunk);
    let deploy = "deploy plan.json --trust-cabling all";
    let (code, said) = closet.run(deploy);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("nothing was written: these switches would refuse what the plan asks of them"), "{said}");
    assert!(said.contains("hp: refused: port GigabitEthernet1/0/1 says \"port link-type trunk\""), "{said}");
    assert!(said.contains("bring the port to its factory settings by hand"), "{said}");
    assert!(!closet.said(1).contains("system-view"), "{}", closet.said(1));
    assert!(!closet.said(2).contains("vlan database"), "{}", closet.said(2));
    closet.write(1, "config", COMWARE);
    let (code, said) = closet.run(&format!("{deploy} --dry-run"));
    assert_eq!(code, 0, "{said}");
}

/// A deployment turns snooping off on a switch that shows it, and says nothing of it to one that does not.
#[test]
fn snooping_is_turned_off_where_it_is_on() {
    let Some(closet) = Closet::open("snooping") else { return };
    let deploy = "deploy plan.json --trust-cabling all --dry-run";
    let (code, said) = closet.run(deploy);
    assert_eq!((code, said.contains("snooping")), (0, false), "{said}");
    closet.write(
        1,
        "config",
        &COMWARE.replace(" sysname hp\n#\n", " sysname hp\n#\n igmp-snooping\n#\n mld-snooping\n#\n"),
    );
    closet.write(2, "config", &format!("ip igmp snooping\n{CISCO_SB}"));
    let (code, said) = closet.run(deploy);
    assert_eq!(code, 0, "{said}");
    for expect in ["undo igmp-snooping", "undo mld-snooping", "no ip igmp snooping"] {
        assert_eq!(said.matches(expect).count(), 1, "{expect}: {said}");
    }
    assert!(!said.contains("no ipv6 mld snooping"), "{said}");
}

/// Addresses exchanged between switches of two languages: each error says who answers, and the advice mends it.
#[test]
fn exchanged_addresses_of_unlike_switches_are_said() {
    let Some(closet) = Closet::open("exchanged") else { return };
    closet.plan([2, 1]);
    for command in
        ["observe plan.json -o seen", "deploy plan.json --trust-cabling all", "status plan.json --interval 0.25"]
    {
        let (code, said) = closet.run(command);
        assert_eq!(code, 1, "{command}: {said}");
        for expect in [
            "sg answers at 127.0.8.2 (sysName sg), where the plan has hp (hpe)",
            "hp answers at 127.0.8.1 (sysName hp), where the plan has sg (sg300)",
            "correct mgmt: of both in the topology and plan again, or give hp its address 127.0.8.2 back",
            "to \"display current-configuration\" it says \"% Unrecognized command found at '^' position.\"",
        ] {
            assert!(said.contains(expect), "{command}: no {expect:?} in {said}");
        }
    }
    closet.plan([1, 2]);
    let (code, said) = closet.run("observe plan.json -o seen");
    assert_eq!((code, said.as_str()), (0, "2 of 2 switches observed into seen\n"));
}
