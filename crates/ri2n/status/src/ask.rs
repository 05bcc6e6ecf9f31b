//! Asks all processes of a runtime directory.

use std::{fs, io, io::Read, os::unix::net::UnixStream, path::Path, time::Duration};

use crate::report::{Report, VERSION};

/// How long one process may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Longest answer that is read, bytes.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// The reports of all processes that answer, by process number. Sockets that nobody serves any more are removed.
///
/// # Errors
/// If the directory is there but cannot be read.
pub fn ask_all(directory: &Path) -> io::Result<Vec<Report>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut reports = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "sock") {
            match ask(&path) {
                Ok(report) => reports.push(report),
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    let _ = fs::remove_file(&path);
                }
                // It is just ending, or of another version.
                Err(_) => {}
            }
        }
    }
    reports.sort_by_key(|report| report.process);
    Ok(reports)
}

fn ask(path: &Path) -> io::Result<Report> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    let report: Report = serde_json::from_slice(&answer)?;
    if report.version == VERSION { Ok(report) } else { Err(io::ErrorKind::Unsupported.into()) }
}

#[cfg(test)]
mod tests {
    use std::{io::Write, os::unix::net::UnixListener};

    use super::*;
    use crate::{report, serve};

    #[test]
    fn those_who_serve_are_found_and_stale_sockets_go() {
        let directory = std::env::temp_dir().join(format!("ri2n-status-test-{}", std::process::id()));
        assert_eq!(ask_all(&directory).unwrap(), []);
        let serving = serve(&directory, "a test", report::Plain::default).unwrap();
        let stale = directory.join("1.sock");
        drop(UnixListener::bind(&stale).unwrap());
        let other = UnixListener::bind(directory.join("2.sock")).unwrap();
        let sample = report::tests::sample();
        let answer = serde_json::to_vec(&sample).unwrap();
        let answering = std::thread::spawn(move || other.accept().unwrap().0.write_all(&answer).unwrap());

        let mut found = ask_all(&directory).unwrap();
        answering.join().unwrap();
        found.sort_by_key(|report| report.program != "a test");
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].process, found[0].program.as_str()), (std::process::id(), "a test"));
        assert_eq!(found[1], sample);
        assert!(!stale.exists());
        drop(serving);
        fs::remove_file(directory.join("2.sock")).unwrap();
        fs::remove_dir(&directory).unwrap();
    }
}
