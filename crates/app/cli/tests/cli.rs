//! Whole sessions of the command line against their golden output; `TRYCMD=overwrite cargo test -p espalier` rewrites it.

#[test]
fn sessions() {
    trycmd::TestCases::new().case("tests/cli/*.trycmd");
}

/// Whoever read standard error is gone: commands end as they would have.
#[test]
fn nobody_reads_standard_error() {
    use std::{
        os::{fd::OwnedFd, unix::net::UnixStream},
        process::{Command, Stdio},
    };
    let cases: [(&[&str], i32); 3] = [
        (&["check", "/nonexistent/plan.json"], 2),
        (&["export", "/nonexistent/plan.json", "--to", "dot"], 2),
        (&["observe", "/nonexistent/plan.json", "-o", "/nonexistent/seen"], 2),
    ];
    for (arguments, code) in cases {
        let (ours, reader) = UnixStream::pair().expect("a pair of sockets");
        drop(reader);
        let status = Command::new(env!("CARGO_BIN_EXE_espalier"))
            .args(arguments)
            .stderr(Stdio::from(OwnedFd::from(ours)))
            .status()
            .expect("it runs");
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}
