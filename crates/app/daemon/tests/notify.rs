//! Notifications, to receivers of other makes: a web server of Python that checks signatures, over HTTP and over TLS; a program;
//! a syslog server.

mod common;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::UdpSocket,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use common::{Daemon, plan_text};
use serde_json::Value;

/// How long something may take to show.
const WAIT_MAX: Duration = Duration::from_secs(60);
const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// Refuses the first delivery, takes the others, and prints each whose signature fits. Source: Standard Webhooks.
const SERVER: &str = r#"
import base64, hashlib, hmac, http.server, json, ssl, sys
secret = base64.b64decode(sys.argv[1].removeprefix("whsec_"))
state = {"first": True}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        signed = b".".join([self.headers["webhook-id"].encode(), self.headers["webhook-timestamp"].encode(), body])
        wanted = "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
        fits = hmac.compare_digest(wanted, self.headers["webhook-signature"])
        status = 401 if not fits else 503 if state["first"] else 204
        state["first"] = False
        print(json.dumps({"status": status, "id": self.headers["webhook-id"], "delivery": json.loads(body)}), flush=True)
        self.send_response(status)
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

struct WebServer {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    port: u16,
}

impl WebServer {
    /// None, saying so, where there is no Python.
    fn start(further: &[&str]) -> Option<Self> {
        let started = Command::new("python3").args(["-c", SERVER, SECRET]).args(further).stdout(Stdio::piped()).spawn();
        let Ok(mut process) = started else {
            eprintln!("notify: SKIPPED: python3 is missing; run tools/setup test");
            return None;
        };
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let port = lines.next().expect("a port").expect("text").parse().expect("a number");
        Some(Self { process, lines, port })
    }

    fn next(&mut self) -> Value {
        let line = self.lines.next().expect("the server goes on").expect("text");
        serde_json::from_str(&line).expect("JSON")
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        // It serves until it is ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn await_deliveries(daemon: &Daemon, is_so: &dyn Fn(&[Value]) -> bool) -> Vec<Value> {
    let since = Instant::now();
    loop {
        let (_, text) = daemon.ask("GET", "/v1/deliveries", None, b"");
        let deliveries: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        if is_so(&deliveries) {
            return deliveries;
        }
        assert!(since.elapsed() < WAIT_MAX, "{text}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn propose(daemon: &Daemon) {
    let (status, text) = daemon.ask("POST", "/v1/proposals?reason=first", Some("sesame"), &plan_text());
    assert_eq!(status, 200, "{text}");
}

#[test]
fn a_webhook_is_told_again_until_it_takes_the_delivery_and_its_signature_fits() {
    let Some(mut server) = WebServer::start(&[]) else { return };
    let config = format!(
        "[[notify]]\nname = \"hook\"\nwebhook = \"http://127.0.0.1:{}/x\"\nsecret = \"FOLDER/secret\"\n",
        server.port
    );
    let daemon = Daemon::start_with("webhook", &config, &[("secret", SECRET)]);
    propose(&daemon);
    let (first, second) = (server.next(), server.next());
    assert_eq!((first["status"].as_u64(), second["status"].as_u64()), (Some(503), Some(204)));
    assert_eq!((&first["id"], &first["delivery"]), (&second["id"], &second["delivery"]));
    assert_eq!(second["delivery"]["type"], "event.opened");
    assert_eq!(second["delivery"]["data"]["kind"], "proposed");
    let moment = second["delivery"]["timestamp"].as_str().expect("a moment");
    assert!(moment.ends_with('Z') && moment.contains('T'), "{moment}");
    await_deliveries(&daemon, &|deliveries| deliveries.is_empty());
}

#[test]
fn over_tls_a_server_is_told_that_its_certificate_proves_and_no_other() {
    let folder = std::env::temp_dir().join(format!("espalierd-tls-{}", std::process::id()));
    fs::create_dir(&folder).expect("a fresh folder");
    let file = |name: &str| folder.join(name).display().to_string();
    let made = ["server", "other"].map(|name| {
        let (key, certificate) = (file(&format!("{name}.key")), file(&format!("{name}.pem")));
        let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
                     -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:localhost,IP:127.0.0.1";
        let mut openssl = Command::new("openssl");
        openssl.args(words.split_whitespace()).args(["-keyout", &key, "-out", &certificate]).stderr(Stdio::null());
        openssl.status().is_ok_and(|status| status.success()).then_some((key, certificate))
    });
    let [Some((key, certificate)), Some((_, other))] = made else {
        eprintln!("notify: SKIPPED: openssl is missing; run tools/setup test");
        return;
    };
    let Some(mut server) = WebServer::start(&[&certificate, &key]) else { return };
    let hook = |name: &str, ca: &str| {
        format!(
            "[[notify]]\nname = \"{name}\"\nwebhook = \"https://localhost:{}/\"\nsecret = \"FOLDER/secret\"\nca = \"{ca}\"\n",
            server.port
        )
    };
    let config = hook("proven", &certificate) + &hook("unproven", &other);
    let daemon = Daemon::start_with("tls", &config, &[("secret", SECRET)]);
    propose(&daemon);
    assert_eq!(server.next()["status"], 503);
    assert_eq!(server.next()["status"], 204);
    let deliveries = await_deliveries(&daemon, &|deliveries| deliveries.len() == 1 && deliveries[0]["tries"] != 0);
    assert_eq!(deliveries[0]["to"], "unproven");
    let why = deliveries[0]["failure"].as_str().unwrap_or_default();
    assert!(why.contains("certificate"), "{why}");
    fs::remove_dir_all(&folder).expect("it is ours");
}

#[test]
fn programs_and_syslog_servers_are_told_and_what_nobody_takes_is_kept_over_a_restart() {
    let syslog = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    syslog.set_read_timeout(Some(WAIT_MAX)).expect("a socket");
    let config = format!(
        "[[notify]]\nname = \"log\"\nsyslog = \"{}\"\n\
         [[notify]]\nname = \"page\"\nexec = [\"/bin/sh\", \"-c\", \"cat > FOLDER/told\"]\n\
         [[notify]]\nname = \"failing\"\nexec = [\"/bin/false\"]\n\
         [[notify]]\nname = \"calm\"\nleast = \"critical\"\nexec = [\"/bin/false\"]\n",
        syslog.local_addr().expect("an address")
    );
    let mut daemon = Daemon::start_with("program", &config, &[]);
    propose(&daemon);
    let mut datagram = [0; 4096];
    let len = syslog.recv(&mut datagram).expect("a message");
    let message = String::from_utf8_lossy(&datagram[..len]).into_owned();
    assert!(
        message.starts_with("<132>1 20") && message.contains(" espalierd - proposed - opened: proposal 1 "),
        "{message}"
    );
    let deliveries = await_deliveries(&daemon, &|deliveries| deliveries.len() == 1 && deliveries[0]["tries"] != 0);
    assert_eq!(
        (deliveries[0]["to"].as_str(), deliveries[0]["failure"].as_str()),
        (Some("failing"), Some("/bin/false: exit status: 1"))
    );
    let told: Value = serde_json::from_slice(&fs::read(daemon.folder.0.join("told")).expect("a file")).expect("JSON");
    assert_eq!(told["data"]["kind"], "proposed");

    // It outlasts a crash; and a person can see that whoever is not in the configuration any more is not told.
    daemon.stop();
    let path = daemon.folder.0.join("espalierd.toml");
    let text = fs::read_to_string(&path).expect("a file").replace("\"failing\"", "\"gone\"");
    fs::write(&path, text).expect("it is ours");
    daemon.start_again();
    let dead = await_deliveries(&daemon, &|deliveries| deliveries.iter().any(|delivery| delivery["next_s"].is_null()));
    assert_eq!((&dead[0]["id"], &dead[0]["body"]), (&deliveries[0]["id"], &deliveries[0]["body"]));
    assert!(dead[0]["failure"].as_str().unwrap_or_default().contains("no notify \"failing\" any more"), "{dead:?}");
    let (_, metrics) = daemon.ask("GET", "/metrics", None, b"");
    assert!(metrics.contains("espalierd_deliveries_failed 1.0\n"), "{metrics}");
    let (status, _) = daemon.ask("DELETE", &format!("/v1/deliveries/{}", dead[0]["id"]), Some("sesame"), b"");
    assert_eq!(status, 403);
}

#[test]
fn a_receiver_that_does_not_answer_keeps_no_other_waiting() {
    let config = "[[notify]]\nname = \"hanging\"\nexec = [\"/bin/sleep\", \"15\"]\n\
                  [[notify]]\nname = \"page\"\nexec = [\"/bin/sh\", \"-c\", \"cat >> FOLDER/told\"]\n";
    let daemon = Daemon::start_with("hanging", config, &[]);
    propose(&daemon);
    propose(&daemon);
    let since = Instant::now();
    let told = || fs::read_to_string(daemon.folder.0.join("told")).unwrap_or_default();
    while told().matches("event.opened").count() < 2 {
        assert!(since.elapsed() < Duration::from_secs(10), "{}", told());
        thread::sleep(Duration::from_millis(20));
    }
    let pending = await_deliveries(&daemon, &|deliveries| deliveries.len() == 2);
    assert!(pending.iter().all(|delivery| delivery["to"] == "hanging" && delivery["tries"] == 0), "{pending:?}");
}
