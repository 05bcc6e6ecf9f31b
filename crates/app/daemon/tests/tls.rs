//! The API over TLS, asked by the program's own commands: certificates, tokens, clients that speak no TLS, and SIGHUP.

mod common;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use common::{Daemon, plan_text};

/// How long something may take to show.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A daemon that speaks TLS beside plain HTTP, with the certificate `server.pem`, which proves itself; `other.pem` is another.
struct Stage {
    daemon: Daemon,
    address: SocketAddr,
    url: String,
}

impl Stage {
    /// None, saying so, where there is no openssl.
    fn start(word: &str) -> Option<Self> {
        let mut daemon = Daemon::start(&format!("tls-{word}"));
        for name in ["server", "other"] {
            let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
                         -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:localhost,IP:127.0.0.1";
            let mut openssl = Command::new("openssl");
            openssl.args(words.split_whitespace()).current_dir(&daemon.folder.0).stderr(Stdio::null());
            openssl.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]);
            if !openssl.status().is_ok_and(|status| status.success()) {
                eprintln!("tls: SKIPPED: openssl is missing; run tools/setup test");
                return None;
            }
        }
        let folder = daemon.folder.0.clone();
        fs::copy(folder.join("server.pem"), folder.join("tls.pem")).expect("a file");
        fs::copy(folder.join("server.key"), folder.join("tls.key")).expect("a file");
        for (name, token) in [("token", "sesame"), ("wrong", "mustard"), ("open", "sesame")] {
            daemon.folder.write(name, token);
            let mode = if name == "open" { 0o644 } else { 0o600 };
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).expect("its mode");
        }
        let address = TcpListener::bind("127.0.0.1:0").and_then(|probe| probe.local_addr()).expect("a free port");
        let config = fs::read_to_string(folder.join("espalierd.toml")).expect("a file");
        let plain = format!("listen = [\"{}\"]", daemon.address);
        assert!(config.contains(&plain), "{config}");
        // Sockets open in this order, so once the plain one answers, both are open.
        let both = format!("listen = [\"https://{address}\", \"{}\"]", daemon.address);
        let config = config.replace(&plain, &both) + "[tls]\ncertificate = \"tls.pem\"\nkey = \"tls.key\"\n";
        daemon.folder.write("espalierd.toml", &config);
        daemon.stop();
        daemon.start_again();
        Some(Self { daemon, address, url: format!("https://localhost:{}", address.port()) })
    }

    fn run(&self, words: &[&str], environment: &[(&str, &str)]) -> Output {
        let mut program = Command::new(env!("CARGO_BIN_EXE_espalierd"));
        program.args(words).current_dir(&self.daemon.folder.0).envs(environment.iter().copied());
        program.output().expect("the program runs")
    }

    /// What a command prints that the daemon answers; its exit code says whether the fabric is fine.
    fn answer(&self, words: &[&str], url: &str, further: &[&str]) -> String {
        let output = self.run(&[words, &["--controller", url], further].concat(), &[]);
        assert!(output.stderr.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Why a command is refused.
    fn refusal(&self, words: &[&str], url: &str, further: &[&str]) -> String {
        let output = self.run(&[words, &["--controller", url], further].concat(), &[]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{words:?}");
        String::from_utf8(output.stderr).expect("text")
    }

    /// Has the daemon read its configuration again, with this certificate and key.
    fn replace(&self, certificate: &str, key: &str) {
        let file = |name: &str| self.daemon.folder.0.join(name);
        fs::copy(file(certificate), file("tls.pem")).expect("a file");
        fs::copy(file(key), file("tls.key")).expect("a file");
        self.daemon.hang_up();
    }
}

const PROVEN: &[&str] = &["--token-file", "token", "--ca", "server.pem"];
const OTHER: &[&str] = &["--token-file", "token", "--ca", "other.pem"];

#[test]
fn over_tls_a_token_and_the_right_certificate_are_needed() {
    let Some(stage) = Stage::start("token") else { return };
    let plain = format!("http://{}", stage.daemon.address);
    fs::write(stage.daemon.folder.0.join("plan.json"), plan_text()).expect("a file");
    // A connection on which nothing is said holds nobody up.
    let silent = TcpStream::connect(stage.address).expect("it listens");
    let proposal = stage.answer(&["propose", "plan.json", "--reason", "x"], &stage.url, PROVEN);
    assert!(proposal.starts_with("proposal 1 by ada: x; "), "{proposal}");
    assert_eq!(stage.answer(&["proposals"], &stage.url, PROVEN), stage.answer(&["proposals"], &plain, &[]));
    drop(silent);
    let environment =
        [("ESPALIER_CONTROLLER", stage.url.as_str()), ("ESPALIER_TOKEN_FILE", "token"), ("ESPALIER_CA", "server.pem")];
    let output = stage.run(&["withdraw", "1"], &environment);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let ca = ["--ca", "server.pem"];
    for (words, url, further, expected) in [
        (
            &["status"][..],
            stage.url.as_str(),
            &ca[..],
            "the controller asks for a token; name its file with --token-file FILE\n",
        ),
        (&["status"], &stage.url, &["--ca", "server.pem", "--token-file", "wrong"], "does not know this token"),
        (
            &["status"],
            &stage.url,
            &["--ca", "server.pem", "--token-file", "open"],
            "others can read this token; chmod 600 open\n",
        ),
        (&["status"], &stage.url, OTHER, "invalid peer certificate: "),
        (&["status"], &stage.url, OTHER, "name the CA certificate that signed the controller's with --ca FILE"),
        (
            &["status"],
            &stage.url.replace("https", "http"),
            &[],
            "400 Bad Request: this port speaks TLS; write https://",
        ),
        (&["status"], &plain.replace("http", "https"), PROVEN, "no TLS is spoken there"),
        (&["retry"], &stage.url, PROVEN, "ada may not do this: it needs an admin"),
        (&["retry"], &plain, &[], "anonymous may not do this: it needs an admin"),
    ] {
        let found = stage.refusal(words, url, further);
        assert!(found.starts_with("espalierd: ") && found.contains(expected), "{words:?} {url}: {found}");
    }
    let output = stage.run(&["status", "--socket", "nowhere"], &environment);
    assert!(String::from_utf8_lossy(&output.stderr).contains("nowhere: No such file"), "{output:?}");
}

#[test]
fn a_client_without_tls_gets_an_answer_and_the_end_of_the_stream() {
    let Some(stage) = Stage::start("plain") else { return };
    let mut stream = TcpStream::connect(stage.address).expect("it listens");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a socket");
    stream.write_all(b"POST /v1/proposals HTTP/1.1\r\nHost: x\r\nContent-Length: 30000\r\n\r\n").expect("it listens");
    stream.write_all(&[b'x'; 30_000]).expect("it is read");
    stream.shutdown(std::net::Shutdown::Write).expect("a socket");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer and an end, no reset");
    assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n") && text.ends_with("write https://\n"), "{text}");
}

#[test]
fn a_client_that_says_nothing_is_not_waited_for_long() {
    let Some(stage) = Stage::start("silent") else { return };
    let mut silent = TcpStream::connect(stage.address).expect("it listens");
    silent.set_read_timeout(Some(WAIT_MAX)).expect("a socket");
    let mut said = Vec::new();
    silent.read_to_end(&mut said).expect("the end of the stream, no reset");
    assert_eq!(said, b"");
}

#[test]
fn sighup_replaces_certificate_and_tokens_and_a_bad_one_is_refused() {
    let Some(stage) = Stage::start("hangup") else { return };
    let check = || {
        let output = stage.run(&["check-config", "--config", "espalierd.toml"], &[]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(check(), (Some(0), String::new()));
    stage.replace("other.pem", "server.key");
    let (code, why) = check();
    assert!(
        code == Some(2) && why.contains("tls.key: this is not the key of the first certificate in tls.pem"),
        "{why}"
    );
    thread::sleep(Duration::from_millis(500));
    assert_eq!(stage.answer(&["proposals"], &stage.url, PROVEN), "");

    stage.replace("other.pem", "other.key");
    let since = Instant::now();
    while !stage.run(&[&["proposals", "--controller", &stage.url], OTHER].concat(), &[]).status.success() {
        assert!(since.elapsed() < WAIT_MAX, "the certificate is not replaced");
        thread::sleep(Duration::from_millis(20));
    }
    let refused = stage.refusal(&["proposals"], &stage.url, PROVEN);
    assert!(refused.contains("invalid peer certificate"), "{refused}");

    stage.daemon.folder.write("tokens.toml", "");
    stage.daemon.hang_up();
    let since = Instant::now();
    while stage.run(&[&["proposals", "--controller", &stage.url], OTHER].concat(), &[]).status.success() {
        assert!(since.elapsed() < WAIT_MAX, "the tokens are not replaced");
        thread::sleep(Duration::from_millis(20));
    }
    let refused = stage.refusal(&["proposals"], &stage.url, OTHER);
    assert!(refused.contains("does not know this token"), "{refused}");
}
