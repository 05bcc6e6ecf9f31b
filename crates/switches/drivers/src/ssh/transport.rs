//! The way to a command line: the system's OpenSSH.
//!
//! ```text
//!   us ─ pipes ─ ssh ═══ encrypted ═══ sshd ─ the switch's command line
//!        └ password: a file without a name in memory, which ssh's askpass program reads
//! ```
//! Keys, agents, jump hosts, known hosts and old algorithms are OpenSSH's own. It is told to refuse keys of hosts that it
//! does not know, to forward nothing, and to share no connection.

use std::{
    fmt,
    fs::File,
    io::{self, Read as _, Write as _},
    net::IpAddr,
    os::{fd::AsRawFd as _, unix::process::CommandExt as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use rustix::fs::{MemfdFlags, memfd_create};

use switch_model::driver::Fault;

/// Most that is kept of what ssh says on its standard error, in bytes.
const COMPLAINT_LEN_MAX: u64 = 16_384;
/// How long its last words are waited for, before it is ended and after.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What came through a channel.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrived {
    /// Bytes, at least one.
    Bytes(Vec<u8>),
    /// Nothing in time.
    Nothing,
    /// The other end is gone.
    Closed,
}

/// The way to one command line.
pub trait Channel: Send {
    /// Sends bytes.
    ///
    /// # Errors
    /// Those of the way itself.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// The next bytes, if any come within `wait`.
    ///
    /// # Errors
    /// Those of the way itself.
    fn receive(&mut self, wait: Duration) -> io::Result<Arrived>;

    /// Why it closed.
    fn complaint(&mut self) -> Fault;
}

/// Whether a switch may use algorithms that are known to be weak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OldAlgorithms {
    /// It may not.
    #[default]
    Refused,
    /// It may, because it knows no better ones.
    Accepted,
}

/// Who logs in to a switch, and how.
#[derive(Clone, Default)]
pub struct Login {
    /// The user.
    pub user: String,
    /// TCP port.
    pub port: u16,
    /// The user's password; without one, keys and the agent are used.
    pub password: Option<String>,
    /// The password of the command line's privileged mode.
    pub enable_password: Option<String>,
    /// A private key, beside those that ssh knows.
    pub key: Option<PathBuf>,
    /// Keys of hosts that are known, instead of the user's own list.
    pub known_hosts: Option<PathBuf>,
    /// Whether algorithms that are known to be weak may be used.
    pub old_algorithms: OldAlgorithms,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).field("port", &self.port).finish_non_exhaustive()
    }
}

/// What is asked for at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A terminal, as for a person.
    Terminal,
    /// A POSIX shell that reads from a pipe.
    Shell,
}

/// A running ssh.
pub struct OpenSsh {
    child: Child,
    /// What is still to be said. A switch that does not listen holds up the thread that says it, not us.
    input: mpsc::Sender<Vec<u8>>,
    output: mpsc::Receiver<Vec<u8>>,
    complaint: Arc<Mutex<String>>,
    /// Closed when ssh has said its last word.
    silence: mpsc::Receiver<()>,
    place: String,
    /// Held open while ssh may read them.
    _secret: Option<Secret>,
}

/// A password where ssh alone looks: files without a name, in memory.
struct Secret {
    _password: File,
    program: File,
}

impl OpenSsh {
    /// Starts ssh. That the other end refuses is only seen when nothing comes back.
    ///
    /// # Errors
    /// [`Fault::Refused`] if ssh cannot be started.
    pub(super) fn open(
        address: IpAddr,
        login: &Login,
        user: &str,
        wanted: Wanted,
        wait: Duration,
    ) -> Result<Self, Fault> {
        let mut command = Command::new("ssh");
        command.arg(if wanted == Wanted::Terminal { "-tt" } else { "-T" });
        command.args(["-e", "none", "-p", &login.port.to_string(), "-l", user]);
        let mut option = |text: &str| {
            command.args(["-o", text]);
        };
        for text in [
            "StrictHostKeyChecking=yes",
            "UpdateHostKeys=no",
            "ClearAllForwardings=yes",
            "ForwardAgent=no",
            "ForwardX11=no",
            "PermitLocalCommand=no",
            "ControlMaster=no",
            "ControlPath=none",
            "ServerAliveInterval=5",
            "ServerAliveCountMax=3",
            "NumberOfPasswordPrompts=1",
            "LogLevel=INFO",
        ] {
            option(text);
        }
        option(&format!("ConnectTimeout={}", wait.as_secs().max(1)));
        if let Some(path) = &login.known_hosts {
            option(&format!("UserKnownHostsFile=\"{}\"", path.display()));
            option("GlobalKnownHostsFile=/dev/null");
        }
        if login.old_algorithms == OldAlgorithms::Accepted {
            old_algorithms().iter().for_each(|text| option(text));
        }
        let secret = match &login.password {
            Some(password) => {
                option("PubkeyAuthentication=no");
                option("PreferredAuthentications=password,keyboard-interactive");
                Some(
                    Secret::new(password)
                        .map_err(|error| Fault::Refused(format!("no place for a password: {error}")))?,
                )
            }
            None => {
                option("BatchMode=yes");
                None
            }
        };
        if let Some(secret) = &secret {
            command.env("SSH_ASKPASS", path_of(&secret.program)).env("SSH_ASKPASS_REQUIRE", "force");
        }
        if let Some(key) = &login.key {
            command.arg("-i").arg(key).args(["-o", "IdentitiesOnly=yes"]);
        }
        command.arg("--").arg(address.to_string());
        if wanted == Wanted::Shell {
            command.arg("exec /bin/sh");
        }
        let place = match login.port {
            22 => address.to_string(),
            port => format!("[{address}]:{port}"),
        };
        Self::start(command, place, secret)
    }

    fn start(mut command: Command, place: String, secret: Option<Secret>) -> Result<Self, Fault> {
        // In a group of its own, so that Ctrl-C leaves it to us to say goodbye.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).env("LC_ALL", "C");
        let refused = |error: io::Error| {
            Fault::Refused(format!(
                "cannot start ssh: {error}; install OpenSSH's client (apt-get install openssh-client)"
            ))
        };
        let mut child = command.spawn().map_err(refused)?;
        let (Some(mut stdin), Some(mut stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Fault::Refused("ssh has no pipes".to_owned()));
        };
        let (input, to_say) = mpsc::channel::<Vec<u8>>();
        thread::spawn(move || {
            for bytes in to_say {
                if stdin.write_all(&bytes).and_then(|()| stdin.flush()).is_err() {
                    return;
                }
            }
        });
        // What a switch says before we listen waits here, and then it waits itself.
        let (sender, output) = mpsc::sync_channel(64);
        thread::spawn(move || {
            let mut buffer = vec![0; 16_384];
            while let Ok(len) = stdout.read(&mut buffer) {
                if len == 0 || sender.send(buffer[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        let complaint = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&complaint);
        let (talking, silence) = mpsc::channel::<()>();
        thread::spawn(move || {
            let _talking = talking;
            let mut limited = stderr.take(COMPLAINT_LEN_MAX);
            let mut buffer = [0; 1024];
            while let Ok(len @ 1..) = limited.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..len]);
                heard.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
            }
            // The rest is read and forgotten, or ssh would wait for it.
            let _ = io::copy(limited.get_mut(), &mut io::sink());
        });
        Ok(Self { child, input, output, complaint, silence, place, _secret: secret })
    }
}

impl Channel for OpenSsh {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.input.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn receive(&mut self, wait: Duration) -> io::Result<Arrived> {
        Ok(match self.output.recv_timeout(wait) {
            Ok(bytes) => Arrived::Bytes(bytes),
            Err(RecvTimeoutError::Timeout) => Arrived::Nothing,
            Err(RecvTimeoutError::Disconnected) => Arrived::Closed,
        })
    }

    fn complaint(&mut self) -> Fault {
        // It may be about to end by itself, with its reason; what it says last may be read after its end. A program that it
        // started may hold the pipe open.
        let _ = self.silence.recv_timeout(LAST_WORDS);
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.silence.recv_timeout(LAST_WORDS);
        let text = self.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone();
        diagnose(&text, &self.place)
    }
}

impl Drop for OpenSsh {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Secret {
    fn new(password: &str) -> io::Result<Self> {
        let secret = hidden(password.as_bytes(), MemfdFlags::CLOEXEC)?;
        let program = format!("#!/bin/sh\nexec cat {}\n", path_of(&secret));
        // Kernels before 6.3 do not know the flag, and need none.
        let program = hidden(program.as_bytes(), MemfdFlags::CLOEXEC | MemfdFlags::EXEC)
            .or_else(|_| hidden(program.as_bytes(), MemfdFlags::CLOEXEC))?;
        Ok(Self { _password: secret, program })
    }
}

/// A file without a name, in memory, to be read only: nobody executes what somebody may still write to.
fn hidden(content: &[u8], flags: MemfdFlags) -> io::Result<File> {
    let mut file = File::from(memfd_create("espalier", flags)?);
    file.write_all(content)?;
    File::open(path_of(&file))
}

fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// Options that allow weak algorithms, as far as this ssh still knows them.
fn old_algorithms() -> Vec<String> {
    const OLD: [(&str, &str, &[&str]); 5] = [
        (
            "kex",
            "KexAlgorithms",
            &["diffie-hellman-group-exchange-sha1", "diffie-hellman-group14-sha1", "diffie-hellman-group1-sha1"],
        ),
        ("key-sig", "HostKeyAlgorithms", &["ssh-rsa", "ssh-dss"]),
        ("key-sig", "PubkeyAcceptedAlgorithms", &["ssh-rsa", "ssh-dss"]),
        ("cipher", "Ciphers", &["aes256-cbc", "aes192-cbc", "aes128-cbc", "3des-cbc"]),
        ("mac", "MACs", &["hmac-sha1", "hmac-sha1-96", "hmac-md5"]),
    ];
    let known = |kind: &str| -> String {
        let output = Command::new("ssh").args(["-Q", kind]).stdin(Stdio::null()).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    };
    let options = OLD.iter().filter_map(|(kind, option, wanted)| {
        let known = known(kind);
        let there: Vec<&str> =
            wanted.iter().copied().filter(|name| known.lines().any(|line| line.trim() == *name)).collect();
        (!there.is_empty()).then(|| format!("{option}=+{}", there.join(",")))
    });
    options.collect()
}

/// What ssh's complaint means, and the way out.
fn diagnose(text: &str, place: &str) -> Fault {
    let says = |words: &str| text.contains(words);
    let scan = match place.strip_prefix('[').and_then(|place| place.split_once("]:")) {
        Some((host, port)) => format!("-p {port} {host}"),
        None => place.to_owned(),
    };
    if says("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        return Fault::Refused(format!(
            "its host key is not the one that is known: either the switch was replaced or reset, or another switch has its \
             address now, or the connection is intercepted. Compare the fingerprint at its console; if it is right, ssh-keygen -R '{place}' forgets the old key"
        ));
    }
    if says("Host key verification failed") || says("host key is known for") {
        return Fault::Refused(format!(
            "its host key is not known. Fetch it (ssh-keyscan {scan}), compare the fingerprint (ssh-keygen -lf) with the \
             switch's console, and add the line to known_hosts"
        ));
    }
    if let Some(line) = text.lines().find(|line| line.contains("no matching") && line.contains("Their offer")) {
        let offer = line.split("Their offer:").nth(1).unwrap_or("").trim();
        return Fault::Refused(format!(
            "it offers only algorithms that are known to be weak ({offer}). If its management network can be trusted, \
             allow them with old-algorithms = true in its credentials"
        ));
    }
    if says("Permission denied") || says("Too many authentication failures") {
        return Fault::Refused("it refuses the login: wrong user, password or key".to_owned());
    }
    let gone = ["timed out", "Connection refused", "No route", "unreachable", "Connection closed", "Connection reset"];
    match text.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        Some(line) if !gone.iter().any(|words| says(words)) => Fault::Refused(format!("ssh: {line}")),
        _ => Fault::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_name_the_way_out() {
        let check = |text: &str, expect: &str| {
            let Fault::Refused(message) = diagnose(text, "[192.0.2.1]:2222") else { panic!("{text} is no silence") };
            assert!(message.contains(expect), "{message}");
        };
        check(
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
            "ssh-keygen -R '[192.0.2.1]:2222'",
        );
        check(
            "No ED25519 host key is known for 192.0.2.1 and you have requested strict checking.",
            "ssh-keyscan -p 2222 192.0.2.1",
        );
        check(
            "Unable to negotiate with 192.0.2.1 port 22: no matching key exchange method found. Their offer: diffie-hellman-group1-sha1",
            "(diffie-hellman-group1-sha1)",
        );
        check("admin@192.0.2.1: Permission denied (password).", "refuses the login");
        check("Bad configuration option: x", "Bad configuration option");
        let refused = "ssh: connect to host 192.0.2.1 port 22: Connection refused";
        assert_eq!(diagnose(refused, "192.0.2.1"), Fault::Silent);
        assert_eq!(diagnose("", "192.0.2.1"), Fault::Silent);
    }

    /// One that reads nothing holds nobody up: what is said to it waits, and its silence is noticed.
    #[test]
    fn whoever_does_not_listen_is_silent() {
        let mut command = Command::new("sleep");
        command.arg("600");
        let mut ssh = OpenSsh::start(command, "192.0.2.1".to_owned(), None).expect("it starts");
        ssh.send(&vec![b'x'; 4 << 20]).expect("it waits");
        assert_eq!(ssh.receive(Duration::from_millis(10)).expect("a pipe"), Arrived::Nothing);
        assert_eq!(ssh.complaint(), Fault::Silent);
    }

    #[test]
    fn last_words_are_heard_to_the_end() {
        for _ in 0..20 {
            let mut command = Command::new("sh");
            command.args(["-c", "exec >&-; echo 'admin@192.0.2.1: Permission denied (password).' >&2"]);
            let mut ssh = OpenSsh::start(command, "192.0.2.1".to_owned(), None).expect("it starts");
            while ssh.receive(Duration::from_secs(10)).expect("a pipe") != Arrived::Closed {}
            assert!(matches!(ssh.complaint(), Fault::Refused(why) if why.contains("refuses the login")));
        }
    }

    #[test]
    fn the_program_that_gives_the_password_works_and_names_it_nowhere() {
        let secret = Secret::new("hunter2 $x").expect("memory");
        let program = path_of(&secret.program);
        let output = Command::new(&program).arg("Password: ").output().expect("it runs");
        assert_eq!(output.stdout, b"hunter2 $x");
        assert!(!std::fs::read_to_string(&program).expect("a script").contains("hunter2"));
        let login = Login { password: Some("hunter2".to_owned()), ..Login::default() };
        assert!(!format!("{login:?}").contains("hunter2"));
    }
}
