//! Racks as people have them (`testdata/racks`) on real kernels: every kind of frame arrives once, and nowhere else.

mod common;

use std::{fs, path::Path};

use common::{Guard, lab_name, skipped, wanted};
use fabric::{Flood, FloodKind, FloodSet, Policy, TopologyBuilder, format::native::parse_native};
use lab::{
    Backend, LabOptions,
    delivery::{Probe, check},
};

#[test]
fn racks_deliver_every_frame_once() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/racks");
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("the racks").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    assert_eq!(files.len(), 10);
    for path in files {
        let word = path.file_stem().expect("a name").to_string_lossy().replace('-', "_");
        if !wanted(&word) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("text");
        let read = parse_native(&word, &text).unwrap_or_else(|errors| panic!("{word}: {errors}"));
        // In the lab every switch can what the lab's can; what a make cannot is for the renderers' tests.
        let mut builder = TopologyBuilder::of(&read);
        builder.change_models(|model| {
            (model.hybrid_ports, model.pause) = (true, true);
            model.blocks_floods = FloodSet::NONE.with(FloodKind::UnknownUnicast);
        });
        let topology = builder.finish().expect("as it was");
        let flood = if topology.edge().is_some() { Flood::Edge } else { Flood::Forward };
        let policy = Policy { flood, ..Policy::default() };
        let plan = planner::plan(&topology, &policy, None).unwrap_or_else(|error| panic!("{word}: {error}"));
        assert!(verify::check(&plan).is_deployable(), "{word}: {}", verify::check(&plan));
        for &backend in Backend::ALL {
            if skipped(backend) {
                continue;
            }
            let options = LabOptions { backend: Some(backend), ..LabOptions::new(lab_name(&word)) };
            let lab = Guard::up(&plan, &options);
            for &probe in Probe::ALL {
                let delivery = check(&lab.0, probe).expect("probes can be sent");
                println!("{word}: {backend}: {probe}: {} pairs in {:.2?}", delivery.pairs, delivery.elapsed);
                assert_eq!(delivery.faults, [], "{word}: {backend}: {probe}");
            }
            let strays: u64 = lab.0.status().expect("a status").strays.iter().flatten().sum();
            assert_eq!(strays, 0, "{word}: {backend}: unicast for others reached hosts");
        }
    }
}
