//! A daemon whose API is asked over TCP, by a client of a few lines.
#![allow(dead_code)]

#[path = "../../../cli/tests/closet/switches.rs"]
mod switches;

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use fabric::{
    FlowControl, Policy,
    format::{native::parse_native, plan::write_plan},
};
pub(crate) use switches::ring;
use switches::{Closet, Folder, ROOMY};

/// A daemon over the ring of four switches, with an approver called ada whose token is "sesame", and hosts whose token is "drum".
pub(crate) struct Daemon {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) closet: Closet,
    pub(crate) folder: Folder,
}

impl Daemon {
    pub(crate) fn start(word: &str) -> Self {
        Self::start_with(word, "", &[])
    }

    /// Starts one with further lines of configuration, in which FOLDER is its folder, and with further files.
    pub(crate) fn start_with(word: &str, further: &str, files: &[(&str, &str)]) -> Self {
        let folder = Folder::new(&format!("api-{word}"));
        let closet = Closet::open(ROOMY);
        folder.prepare(&ring());
        // The SHA-256 of "sesame".
        let digest = "d0c04f4b1951e4aeaaec8223ed2039e542f3aae805a6fa7f6d794e5afff5d272";
        // And that of "drum".
        let hosts = "2752a2b5446f68dd231ee74418d3f8345ec4188aac528bca3fdf10bcf2069810";
        folder.write(
            "tokens.toml",
            &format!(
                "[ada]\nrole = \"approver\"\nsha256 = \"{digest}\"\n[hosts]\nrole = \"host\"\nsha256 = \"{hosts}\"\n"
            ),
        );
        let address = TcpListener::bind("127.0.0.1:0").and_then(|probe| probe.local_addr()).expect("a free port");
        let path = folder.0.display();
        folder.write(
            "espalierd.toml",
            &format!(
                "state = \"{path}/state\"\ncredentials = \"{path}/credentials.toml\"\ntokens = \"{path}/tokens.toml\"\n\
                 listen = [\"{address}\"]\n[snmp]\nport = {}\ntimeout = 0.3\nattempts = 3\n[watch]\ncounters = 1\n{}",
                closet.port,
                further.replace("FOLDER", &path.to_string())
            ),
        );
        files.iter().for_each(|(name, text)| folder.write(name, text));
        let child = run(&folder);
        let daemon = Self { child, address, closet, folder };
        daemon.await_answer();
        daemon
    }

    /// Kills it.
    pub(crate) fn stop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("it runs");
    }

    /// Starts it again.
    pub(crate) fn start_again(&mut self) {
        self.child = run(&self.folder);
        self.await_answer();
    }

    /// Has it read its configuration again.
    pub(crate) fn hang_up(&self) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), rustix::process::Signal::HUP)
            .expect("it runs");
    }

    fn await_answer(&self) {
        let since = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            assert!(since.elapsed() < Duration::from_secs(30), "the daemon does not answer");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until all four switches hold the plan.
    pub(crate) fn await_planned(&self) {
        let since = Instant::now();
        loop {
            let (_, text) = self.ask("GET", "/v1/status", None, b"");
            let status: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            if status["as_planned"] == 4 {
                return;
            }
            assert!(since.elapsed() < Duration::from_secs(60), "{text}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn send(&self, method: &str, path: &str, token: Option<&str>, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        let token = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Type: application/json\r\n{token}Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).expect("it listens");
        stream
    }

    /// The status and the body.
    pub(crate) fn ask(&self, method: &str, path: &str, token: Option<&str>, body: &[u8]) -> (u16, String) {
        let mut text = String::new();
        self.send(method, path, token, body).read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
        (status, body.to_owned())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(folder: &Folder) -> Child {
    let mut program = Command::new(env!("CARGO_BIN_EXE_espalierd"));
    program.args(["run", "--config", "espalierd.toml"]).current_dir(&folder.0);
    // Webhooks go through the environment's proxy, and those of tests are on this machine.
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        program.env_remove(name);
    }
    program.stderr(Stdio::null()).spawn().expect("the program runs")
}

/// A plan of the ring.
pub(crate) fn plan_text() -> Vec<u8> {
    let topology = parse_native("ring.yaml", &ring()).expect("a topology");
    let policy = Policy { flow_control: FlowControl::None, ..Policy::default() };
    let plan = planner::plan(&topology, &policy, None).expect("a plan");
    let mut text = Vec::new();
    write_plan(&plan, &mut text).expect("a plan");
    text
}
