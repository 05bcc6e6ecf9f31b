//! Figures that the papers and the theory give, from plans.

use fabric::{
    EngineName, FdbMode, FlowControl, Plan, Policy, Tagging, Topology,
    generate::{Kind, Options, generate},
};
use planner::plan;

fn topology(kind: &str, size: &str, options: &Options) -> Topology {
    let kind = Kind::parse(kind, &[size.to_owned()]).expect("a valid size");
    generate(&kind, options).expect("a sane size")
}

fn two_hosts() -> Options {
    Options { hosts_per_switch: Some(2), ..Options::default() }
}

fn plan_with(topology: &Topology, engine: EngineName) -> Plan {
    plan(topology, &Policy { engine, ..Policy::default() }, None).expect("the engine applies")
}

/// [Otsuka] Table 3, with the four cells that it prints wrong computed anew.
#[test]
fn table_3() {
    let one = Options::default;
    let rows = [
        ("mesh", "4x2", two_hosts(), EngineName::Dor, [8, 10], 2.75, 5, 32.0),
        ("torus", "4x2", two_hosts(), EngineName::Dor, [8, 12], 2.5, 4, 24.0),
        ("clos", "4x4", one(), EngineName::Clos, [8, 16], 2.5, 3, 12.0),
        ("m-tree", "4x4", one(), EngineName::Updown, [16, 15], 4.8125, 10, 64.0),
        ("mesh", "4x4", one(), EngineName::Dor, [16, 24], 3.5, 7, 16.0),
        ("torus", "4x4", one(), EngineName::Dor, [16, 32], 3.0, 5, 12.0),
        ("fat-tree", "2,4,2", one(), EngineName::Clos, [14, 24], 3.75, 5, 16.0),
    ];
    for (kind, size, options, engine, [switches, links], average, longest, load) in rows {
        let topology = topology(kind, size, &options);
        let summary = plan_with(&topology, engine).summary;
        let found = (summary.switches, summary.links, summary.avg_switches_per_path);
        assert_eq!(found, (switches, links, average), "{kind} {size} by {engine}");
        let found = (summary.hosts, summary.max_switches_per_path, summary.max_channel_load);
        assert_eq!(found, (16, longest, load), "{kind} {size} by {engine}");
        assert!(summary.deadlock_free, "{kind} {size} by {engine}");
        let best = plan_with(&topology, EngineName::Auto).summary;
        assert!(best.max_channel_load <= load && best.deadlock_free, "{kind} {size}: {best:?}");
    }
}

#[test]
fn the_spanning_tree_of_the_torus_carries_64_pairs_on_a_channel() {
    let summary = plan_with(&topology("torus", "4x4", &Options::default()), EngineName::Tree).summary;
    assert_eq!((summary.vlans, summary.max_channel_load), (1, 64.0));
}

#[test]
fn meshes_need_n_to_the_power_of_m_minus_1_vlans() {
    for n in 2..=16 {
        let mesh = topology("mesh", &format!("{n}x{n}"), &Options::default());
        assert_eq!(plan_with(&mesh, EngineName::Dor).summary.vlans, n, "{n}x{n}");
    }
    let cube = topology("mesh", "4x4x4", &Options::default());
    assert_eq!(plan_with(&cube, EngineName::Dor).summary.vlans, 16);
}

#[test]
fn alice_next_has_24_vlans_and_12672_entries_a_switch() {
    let options = Options { hosts_per_switch: Some(24), ..Options::default() };
    let clos = topology("clos", "22x24", &options);
    let with = |fdb| {
        let policy = Policy { engine: EngineName::Clos, fdb, ..Policy::default() };
        plan(&clos, &policy, None).expect("it fits")
    };
    let full = with(FdbMode::Full);
    assert_eq!((full.summary.hosts, full.summary.vlans, full.summary.fdb_entries_max), (528, 24, 12_672));
    let minimal = with(FdbMode::Minimal);
    let spine = minimal.topology.switch_ids().find(|s| minimal.topology.hosts_of(*s).is_empty()).expect("a spine");
    assert_eq!(minimal.devices[spine.index()].fdb_len(&minimal.topology), 528);
    assert_eq!(full.summary.max_channel_load, 504.0);
}

#[test]
fn structure_is_found_behind_shuffled_names_and_ports() {
    for (kind, size, options) in [
        ("mesh", "4x2", two_hosts()),
        ("torus", "4x2", two_hosts()),
        ("clos", "4x4", Options::default()),
        ("mesh", "4x4", Options::default()),
        ("torus", "4x4", Options::default()),
        ("fat-tree", "2,4,2", Options::default()),
        ("fat-tree", "k=4", Options::default()),
        ("fat-tree", "k=8", Options::default()),
        ("mesh", "5x3x4", Options::default()),
        ("torus", "5x4", Options::default()),
        ("torus", "6x3", Options::default()),
        ("hypercube", "5", Options::default()),
        ("hyperx", "4x5", Options::default()),
        ("hyper-crossbar", "4x4x4", Options::default()),
        ("hyper-crossbar", "3x2", Options::default()),
    ] {
        let figures = |options: &Options| {
            let topology = topology(kind, size, options);
            let by = |engine| plan(&topology, &Policy { engine, ..Policy::default() }, None).ok();
            let plan = by(EngineName::Dor).or_else(|| by(EngineName::Clos)).expect("there is structure");
            let Plan { engine, summary, .. } = plan;
            (engine, summary.max_channel_load, summary.avg_hops, summary.vlans, summary.deadlock_free)
        };
        let plain = figures(&options);
        for seed in 1..=3 {
            let shuffled = figures(&Options { shuffle: Some(seed), ..options.clone() });
            assert_eq!(shuffled, plain, "{kind} {size} shuffled by {seed}");
        }
    }
}

#[test]
fn regular_fabrics_reach_their_bounds() {
    for (kind, size, load) in
        [("mesh", "8x8", 128.0), ("fat-tree", "k=8", 124.0), ("hyperx", "8x8", 8.0), ("clos", "4x4", 12.0)]
    {
        let summary = plan_with(&topology(kind, size, &Options::default()), EngineName::Auto).summary;
        assert_eq!(summary.max_channel_load, load, "{kind} {size}");
        assert!(summary.load_gap < 1.02, "{kind} {size}: {}", summary.load_gap);
    }
}

#[test]
fn minimal_routes_on_long_rings_need_no_flow_control_or_two_lanes() {
    let ring = topology("torus", "8x8", &Options::default());
    let with = |flow_control| {
        let policy = Policy { engine: EngineName::Dor, flow_control, ..Policy::default() };
        plan(&ring, &policy, None).expect("a ring can be cut").summary
    };
    let (none, pause, pfc) = (with(FlowControl::None), with(FlowControl::Pause), with(FlowControl::Pfc(2)));
    assert_eq!((none.max_channel_load, none.deadlock_free), (64.0, false));
    assert_eq!((pause.max_channel_load, pause.deadlock_free, pause.lanes), (96.0, true, 1));
    assert!(pfc.deadlock_free && pfc.max_channel_load <= pause.max_channel_load);
}

#[test]
fn auto_is_as_good_as_any_engine() {
    for (kind, size) in [("torus", "4x4"), ("torus", "5x4"), ("m-tree", "4x4"), ("random-regular", "n=20,d=4,seed=2")] {
        let topology = topology(kind, size, &Options::default());
        let auto = plan_with(&topology, EngineName::Auto).summary.max_channel_load;
        for &engine in EngineName::ALL {
            let other = plan(&topology, &Policy { engine, ..Policy::default() }, None);
            if let Ok(other) = other {
                let load = other.summary.max_channel_load;
                assert!(auto <= load, "{kind} {size}: {auto}, and {load} by {engine}");
            }
        }
    }
}

#[test]
fn every_tagging_mode_plans() {
    for (kind, size) in [("mesh", "4x4"), ("torus", "4x4"), ("clos", "4x4"), ("fat-tree", "2,4,2")] {
        let topology = topology(kind, size, &Options::default());
        for &tagging in Tagging::ALL {
            let policy = Policy { tagging, ..Policy::default() };
            let plan = plan(&topology, &policy, None).expect("every mode has deadlock-free routes");
            assert!(plan.summary.deadlock_free, "{kind} {size} {tagging}");
        }
    }
}
