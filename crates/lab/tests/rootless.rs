//! A lab in a user namespace. It has a `main` of its own because only a process with one thread may enter one.

mod common;

use std::{os::unix::process::CommandExt, process::Command};

use common::{lab_name, ring};
use lab::{
    Backend, Lab, LabOptions,
    delivery::{Probe, check},
    rootless::{Privilege, acquire},
};

/// Who runs the lab when the test itself is root: nobody.
const NOBODY: u32 = 65_534;

fn main() {
    if nix::unistd::geteuid().is_root() {
        let itself = std::env::current_exe().expect("a path");
        // A directory that nobody may read would hide the test from itself.
        let copy = std::env::temp_dir().join(format!("espalier-rootless-{}", std::process::id()));
        std::fs::copy(&itself, &copy).expect("room in the temporary directory");
        let status = Command::new(&copy).uid(NOBODY).gid(NOBODY).current_dir("/").status();
        std::fs::remove_file(&copy).expect("the copy is there");
        assert!(status.expect("it starts").success());
        return;
    }
    match acquire() {
        Err(reason) => return println!("skipped: {reason}"),
        Ok(privilege) => assert_eq!(privilege, Privilege::Namespace),
    }
    if let Err(reason) = Backend::Bridge.probe() {
        println!("skipped: bridge: {reason}");
        let ebpf = Backend::Ebpf.probe().expect_err("an ordinary user may not load eBPF");
        println!("as expected, ebpf: {ebpf}");
        // Ends the holder.
        return lab::down(&lab_name("none")).expect("nothing to take down");
    }
    let name = lab_name("user");
    let lab = Lab::up(&ring(4), &LabOptions::new(name.as_str()), &mut |_| {}).expect("the lab comes up");
    assert_eq!(lab.layout().backend, Backend::Bridge);
    let delivery = check(&lab, Probe::Ping);
    let status = lab.exec("n1", "ip", &["-br".to_owned(), "addr".to_owned()]);
    lab.down().expect("the lab goes down");
    assert_eq!(delivery.expect("probes can be sent").faults, []);
    assert!(status.expect("it starts").success());
    assert!(lab::list().expect("a list").is_empty());
    println!("a lab without root: all pairs answer");
}
