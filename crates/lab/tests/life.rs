//! A lab's life: up, used from elsewhere, cut and mended, down without a trace.

mod common;

use std::time::Instant;

use common::{Guard, Shape, grid, lab_name, ring, skipped};
use lab::{Backend, Lab, LabError, LabOptions};

fn options(word: &str, backend: Backend) -> LabOptions {
    LabOptions { backend: Some(backend), ..LabOptions::new(lab_name(word)) }
}

fn nothing_is_left_of(name: &str) {
    let left: Vec<String> = std::fs::read_dir("/run/netns")
        .map(|entries| entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
        .unwrap_or_default();
    let prefix = format!("esp-{name}-");
    assert!(left.iter().all(|namespace| !namespace.starts_with(&prefix)), "{left:?}");
    assert!(!std::path::Path::new("/run/espalier/lab").join(name).exists());
    assert!(!std::path::Path::new("/sys/fs/bpf/espalier").join(name).exists());
}

#[test]
fn sixteen_switches_come_up_and_go_down_in_time() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let options = options("time", backend);
        let plan = grid(4, Shape::Torus);
        let since = Instant::now();
        let lab = Lab::up(&plan, &options, &mut |_| {}).expect("the lab comes up");
        let up = since.elapsed();
        let since = Instant::now();
        let status = lab.status().expect("a status");
        let read = since.elapsed();
        assert_eq!(status.switches.len(), 16);
        let since = Instant::now();
        lab.down().expect("the lab goes down");
        let down = since.elapsed();
        println!("{backend}: up {up:.2?}, status {read:.2?}, down {down:.2?}");
        nothing_is_left_of(&options.name);
        assert!(up.as_secs() < 10 && down.as_secs() < 5);
    }
}

#[test]
fn programs_run_in_hosts_and_pass_their_exit_code_on() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let lab = Guard::up(&ring(4), &options("exec", backend));
        let text = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
        assert_eq!(lab.0.exec("n1", "sh", &text(&["-c", "exit 7"])).expect("it starts").code(), Some(7));
        assert!(matches!(lab.0.exec("n9", "true", &[]), Err(LabError::NoSuchHost { .. })));
        let shown = lab.0.command("n1", "ip", &text(&["-br", "addr", "show", "eth0"])).expect("a host").output();
        let shown = String::from_utf8(shown.expect("it runs").stdout).expect("text");
        assert!(shown.contains("10.0.0.1/8"), "{shown}");
    }
}
