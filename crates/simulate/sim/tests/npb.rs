//! Traces of real MPI programs: what they send is what the benchmarks are known to send, and a tree slows down those that
//! send all to all.

mod common;

use fabric::{EngineName, Policy};
use sim::{
    flow_job::run_job,
    job::{Job, Messaging, in_order},
    packet::PacketConfig,
    program::{
        Program,
        ti::{Reading, read_traces},
    },
};

const IS: &str = include_str!("../../../../testdata/npb/is.B.16.txt");
const FT: &str = include_str!("../../../../testdata/npb/ft.B.16.txt");
const EP: &str = include_str!("../../../../testdata/npb/ep.B.16.txt");
const CG: &str = include_str!("../../../../testdata/npb/cg.B.16.txt");
const MG: &str = include_str!("../../../../testdata/npb/mg.B.16.txt");
const LU: &str = include_str!("../../../../testdata/npb/lu.B.16.txt");

fn program(text: &str) -> Program {
    read_traces(&[("trace", text)], &Reading::default()).expect("a trace")
}

fn seconds(kind: &str, size: &str, hosts: usize, engine: EngineName, program: &Program) -> f64 {
    let plan = common::plan_of(kind, size, hosts, &Policy { engine, ..Policy::default() });
    let hosts = in_order(&plan.topology, program.ranks(), 1);
    let job = Job::new(&plan.topology, program.clone(), hosts, Messaging::default(), Vec::new()).expect("a job");
    let ran = run_job(&plan, &job, &PacketConfig::default()).expect("routes").ran;
    assert_eq!(ran.stalled, [] as [String; 0]);
    assert_eq!((ran.messages, ran.bytes), program.sent());
    ran.end_ps() as f64 / 1e12
}

#[test]
fn traces_send_what_the_benchmarks_send() {
    // FT turns a grid of 512 x 256 x 256 complex numbers of 16 octets round 22 times; a sixteenth of each rank's stays.
    let (_, bytes) = program(FT).sent();
    let turned = 22 * 512 * 256 * 256 * 16 / 16 * 15;
    assert!((turned..turned + turned / 1000).contains(&bytes), "{bytes} is not {turned}");
    // IS sorts 2^25 keys of 4 octets eleven times; each rank has a sixteenth and keeps about a sixteenth of that.
    let (_, bytes) = program(IS).sent();
    let sorted = 11 * (1_u64 << 25) * 4 / 16 * 15;
    assert!(bytes.abs_diff(sorted) < sorted / 50, "{bytes} is not {sorted}");
    assert!(program(EP).sent().1 < 100_000);
    // LU: a grid of 102^3 on 4 x 4 ranks, 24 ordered pairs of neighbours one way; 250 iterations and one before, in each two
    // sweeps over 100 planes with a message of 5 x 25 or 26 numbers to the next, and exchanges of faces beside them.
    let (messages, _) = program(LU).sent();
    let swept = 251 * 2 * 100 * 24;
    assert!((swept..swept + swept / 50).contains(&messages), "{messages} is not {swept}");
    // CG: 75 solves and one before, 26 products of matrix and vector in each; the vector of 75,000 doubles is summed in two
    // halvings along rows of four and exchanged once: three messages of a quarter of it for most ranks.
    let (_, bytes) = program(CG).sent();
    let summed = 76 * 26 * 16 * (2 * 75_000 / 4 * 8);
    assert!(bytes > summed && bytes < 2 * summed, "{bytes} and {summed}");
    // MG's finest grid is 256^3 doubles; its faces between ranks pass at least twice in 20 iterations.
    assert!(program(MG).sent().1 > 20 * 2 * 2 * 4 * 256 * 256 * 8);
}

#[test]
fn a_tree_slows_down_all_to_all() {
    for (text, least, most) in [(IS, 2.0, 8.0), (FT, 1.5, 8.0), (EP, 0.999, 1.01)] {
        let program = program(text);
        let flat = seconds("mesh", "1", 16, EngineName::Tree, &program);
        let torus = seconds("torus", "4x4", 1, EngineName::Dor, &program);
        let tree = seconds("m-tree", "4x4", 1, EngineName::Tree, &program);
        let slowdown = tree / flat;
        assert!((least..most).contains(&slowdown), "{slowdown}");
        assert!(torus <= tree * 1.001 && torus < 1.7 * flat, "{torus} {tree} {flat}");
    }
}
