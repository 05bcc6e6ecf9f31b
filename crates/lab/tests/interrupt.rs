//! Ctrl-C. It is a program of its own because a signal concerns every lab that its process is building.

mod common;

use common::{lab_name, ring, skipped};
use lab::{Backend, Lab, LabError, LabOptions};

#[test]
fn an_interrupted_lab_leaves_nothing() {
    for &backend in Backend::ALL {
        if skipped(backend) {
            continue;
        }
        let options = LabOptions { backend: Some(backend), ..LabOptions::new(lab_name("ctrlc")) };
        let error = Lab::up(&ring(4), &options, &mut |progress| {
            if progress.step == lab::Step::Cables && progress.done == 0 {
                nix::sys::signal::raise(nix::sys::signal::Signal::SIGINT).expect("a signal to ourselves");
            }
        });
        assert!(matches!(error, Err(LabError::Interrupted)), "{error:?}");
        assert!(!lab::list().expect("a list").contains(&options.name));
        assert!(!lab::netns::path(&format!("esp-{}-s0", options.name)).exists());
    }
}
