//! Programs on both levels: the same work, in the same time where nothing is in the way, and to the same end whatever is.

mod common;

use common::plan_of;
use fabric::Policy;
use proptest::prelude::*;
use sim::{
    flow_job::{run_job, run_job_while},
    job::{Job, Memory, Messaging, in_order},
    packet::{FlowControlAt, PacketConfig, Simulation},
    program::{
        Action, Builder, Program, Until,
        collective::{Algorithm, Collective, Operation},
        executor::Costs,
    },
    workload::{Arrivals, Change, Fault, SECOND_PS, TcpVariant, Transport},
};

const UDP: Transport = Transport::Udp { rate_bps: None, arrivals: Arrivals::Even };

fn messaging(transport: Transport) -> Messaging {
    Messaging { transport, payload_bytes: 1448, costs: Costs::default(), memory: Memory::default() }
}

fn config() -> PacketConfig {
    PacketConfig { flow_control: FlowControlAt::Everywhere, duration_ps: 100 * SECOND_PS, ..PacketConfig::default() }
}

fn program(collective: Collective, algorithm: Algorithm, bytes: u64, ranks: u32) -> Program {
    Operation { collective, algorithm, bytes, root: 0 }.program(ranks, 1).expect("an operation")
}

/// One message over three switches takes its frames' time once, a frame's time a switch, and the cables.
#[test]
fn a_message_alone_takes_the_same_time_on_both_levels() {
    let plan = plan_of("mesh", "3", 1, &Policy::default());
    let costs = Costs { eager_bytes_max: u64::MAX, ..Costs::default() };
    let messaging = Messaging { costs, ..messaging(UDP) };
    for bytes in [0, 1, 1000, 1448, 1449, 100_000] {
        let program = program(Collective::Broadcast, Algorithm::Linear, bytes, 2);
        let hosts = vec![fabric::HostId::new(0), fabric::HostId::new(2)];
        let job = Job::new(&plan.topology, program, hosts, messaging, Vec::new()).expect("a job");
        let (_, packet) = Simulation::of_job(&plan, &job, &config()).finish_job();
        let packet = packet.expect("a job").ran;
        let flow = run_job(&plan, &job, &config()).expect("routes").ran;
        assert_eq!((packet.messages, packet.bytes), (1, bytes));
        assert_eq!((&packet.stalled, &flow.stalled), (&Vec::new(), &Vec::new()));
        // Datagrams have 46 octets around them, frames 64 at least; 20 more on the cable, and 4 of a tag between switches.
        let frames = bytes.div_ceil(1448).max(1);
        let full = 1448 + 46 + 20 + 4;
        let last = (bytes - (frames - 1) * 1448 + 46).max(64) + 20 + 4;
        let largest = if frames > 1 { full } else { last };
        let expected_ps = ((frames - 1) * full + last + 3 * largest) * 8000 + 4 * 500_000;
        for (level, ran) in [("packet", &packet), ("flow", &flow)] {
            let difference = ran.end_ps().abs_diff(expected_ps);
            // The hosts' own cables carry no tag.
            assert!(difference <= (frames + 3) * 4 * 8000, "{level}: {bytes} take {} not {expected_ps}", ran.end_ps());
        }
    }
}

/// Two long messages against each other, the second asked for while the first is on its way: it is answered between the
/// frames of the first, so both take their time at once, on both levels and however frames are sent.
#[test]
fn an_answer_does_not_wait_for_a_long_message_the_other_way() {
    let plan = plan_of("mesh", "2", 1, &Policy::default());
    const BYTES: u64 = 20_000_000;
    let mut builder = Builder::new(2);
    for rank in 0..2 {
        let receive = builder.add(rank, Action::Receive { from: Some(1 - rank), tag: Some(0), cpu: 0 });
        builder.join(receive);
        // A hundred milliseconds are more than half of what one message takes.
        let later = builder.add(rank, Action::Wait { ps: u64::from(rank) * SECOND_PS / 10 });
        let send = builder.add(rank, Action::Send { to: 1 - rank, tag: 0, bytes: BYTES, cpu: 0 });
        builder.after(send, later, Until::End);
    }
    let program = builder.build().expect("a program");
    for transport in [UDP, Transport::Tcp(TcpVariant::Reno), Transport::Tcp(TcpVariant::Cubic), Transport::GoBackN] {
        let hosts = in_order(&plan.topology, 2, 1);
        let job = Job::new(&plan.topology, program.clone(), hosts, messaging(transport), Vec::new()).expect("a job");
        let (_, packet) = Simulation::of_job(&plan, &job, &config()).finish_job();
        let packet = packet.expect("a job").ran;
        let flow = run_job(&plan, &job, &config()).expect("routes").ran;
        let alone_ps = 8_000 * BYTES;
        for (level, ran) in [("packet", &packet), ("flow", &flow)] {
            assert_eq!((ran.messages, ran.bytes), (2, 2 * BYTES), "{level}, {transport:?}");
            let behind_ps = ran.end_ps() - SECOND_PS / 10;
            assert!(behind_ps < alone_ps * 13 / 10, "{level}, {transport:?}: {behind_ps} ps for {alone_ps}");
        }
    }
}

/// Everybody to everybody, one partner a round, on a crossbar: both levels agree with the cables' rate.
#[test]
fn levels_agree_on_collectives() {
    let plan = plan_of("torus", "4x4", 1, &Policy::default());
    for (collective, algorithm, transport) in [
        (Collective::AllToAll, Algorithm::Pairwise, UDP),
        (Collective::AllToAll, Algorithm::Linear, UDP),
        (Collective::AllGather, Algorithm::Ring, Transport::GoBackN),
        (Collective::AllReduce, Algorithm::Rabenseifner, Transport::Tcp(TcpVariant::Reno)),
    ] {
        let program = program(collective, algorithm, 200_000, 16);
        let hosts = in_order(&plan.topology, 16, 1);
        let job = Job::new(&plan.topology, program, hosts, messaging(transport), Vec::new()).expect("a job");
        let (outcome, packet) = Simulation::of_job(&plan, &job, &config()).finish_job();
        let packet = packet.expect("a job").ran;
        let flow = run_job(&plan, &job, &config()).expect("routes").ran;
        assert_eq!((packet.messages, packet.bytes), job.program().sent());
        assert_eq!((flow.messages, flow.bytes), job.program().sent());
        assert_eq!(outcome.counters.dropped(), 0);
        let ratio = packet.end_ps() as f64 / flow.end_ps() as f64;
        assert!((0.85..1.6).contains(&ratio), "{collective} {algorithm}: {ratio}");
    }
}

/// Lost frames come again, and the program ends; with datagrams nobody sends again, and it is said who waits.
#[test]
fn lost_frames_delay_a_program_or_stop_it() {
    let plan = plan_of("mesh", "2", 1, &Policy::default());
    let link = fabric::LinkId::new(0);
    let faults = vec![Fault { at_ps: 0, change: Change::LinkLoses(link, 0.05) }];
    let config = PacketConfig { duration_ps: 60 * SECOND_PS, ..config() };
    for (transport, arrives) in [(UDP, false), (Transport::Tcp(TcpVariant::Cubic), true), (Transport::GoBackN, true)] {
        let program = program(Collective::AllGather, Algorithm::Ring, 1_000_000, 2);
        let hosts = in_order(&plan.topology, 2, 1);
        let job = Job::new(&plan.topology, program, hosts, messaging(transport), faults.clone()).expect("a job");
        let (outcome, ran) = Simulation::of_job(&plan, &job, &config).finish_job();
        let ran = ran.expect("a job");
        assert!(outcome.counters.dropped_fault > 0);
        assert_eq!(ran.cut_short, !arrives, "{transport:?}");
        if arrives {
            assert_eq!(ran.ran.stalled, [] as [String; 0]);
        } else {
            let waits = |line: &String| line.contains("waits for a message of rank");
            assert!(ran.ran.stalled.iter().any(waits), "{:?}", ran.ran.stalled);
        }
    }
}

/// A job at the flow level stops when it is told to, says how far it came, and what was left.
#[test]
fn a_job_stops_in_the_middle() {
    let plan = plan_of("torus", "4x4", 1, &Policy::default());
    let program = program(Collective::AllToAll, Algorithm::Pairwise, 200_000, 16);
    let hosts = in_order(&plan.topology, 16, 1);
    let job = Job::new(&plan.topology, program, hosts, messaging(UDP), Vec::new()).expect("a job");
    let whole = run_job(&plan, &job, &config()).expect("routes");
    assert!(!whole.cut_short && whole.elapsed_ps >= whole.ran.end_ps());
    let mut looks = 0;
    let half = run_job_while(&plan, &job, &config(), &mut |progress| {
        looks += 1;
        progress.messages < 60
    });
    let half = half.expect("routes");
    assert!(half.cut_short && looks > 1, "{looks} looks");
    assert!((60..240).contains(&half.ran.messages), "{} messages", half.ran.messages);
    assert!(half.elapsed_ps < whole.elapsed_ps && !half.ran.stalled.is_empty());
}

/// A program that waits for what nobody sends stops at once, and says so.
#[test]
fn a_program_that_cannot_go_on_stops() {
    let plan = plan_of("mesh", "2", 1, &Policy::default());
    let text = "num_ranks 2\nrank 0 {\ncalc 1000\nrecv 5b from 1 tag 9\n}\nrank 1 {\nsend 5b to 0 tag 8\n}\n";
    let program = sim::program::goal::read_goal("s.goal", text).expect("a schedule");
    let job = Job::new(&plan.topology, program, in_order(&plan.topology, 2, 1), messaging(UDP), Vec::new());
    let job = job.expect("a job");
    let (outcome, ran) = Simulation::of_job(&plan, &job, &config()).finish_job();
    let ran = ran.expect("a job");
    assert!(!ran.cut_short && outcome.elapsed_ps < SECOND_PS);
    assert_eq!(ran.ran.stalled, ["rank 0 waits for a message of rank 1 with tag 9"]);
    assert_eq!(run_job(&plan, &job, &config()).expect("routes").ran.stalled, ran.ran.stalled);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Any collective in any way of sending runs to its end on both levels, the same each time and on any thread.
    #[test]
    fn any_collective_ends(
        (collective, algorithm) in (0..9_usize, 0..5_usize), ranks in 2..24_u32, bytes in 0..40_000_u64,
        (transport, per_host, eager) in (0..4_usize, 1..3_usize, 0..40_000_u64),
    ) {
        let collective = Collective::ALL[collective];
        let algorithms = collective.algorithms();
        let algorithm = algorithms.get(algorithm % (algorithms.len() + 1)).copied().unwrap_or(Algorithm::Auto);
        let operation = Operation { collective, algorithm, bytes, root: ranks - 1 };
        prop_assume!(operation.resolve(ranks).is_ok());
        let transport = [UDP, Transport::Tcp(TcpVariant::Reno), Transport::Tcp(TcpVariant::Cubic), Transport::GoBackN][transport];
        let costs = Costs { eager_bytes_max: eager, send_ps: 1_000_000, receive_ps: 2_000_000 };
        let plan = plan_of("torus", "3x3", 1, &Policy::default());
        let program = operation.program(ranks, 2).expect("it resolves");
        let hosts = in_order(&plan.topology, ranks as usize, per_host);
        let messaging = Messaging { costs, ..messaging(transport) };
        let job = Job::new(&plan.topology, program, hosts, messaging, Vec::new()).expect("a job");
        let runs: Vec<_> = std::thread::scope(|scope| {
            let run = || Simulation::of_job(&plan, &job, &config()).finish_job();
            let threads: Vec<_> = (0..2).map(|_| scope.spawn(run)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it ran")).collect()
        });
        prop_assert_eq!(&runs[0], &runs[1]);
        let ran = &runs[0].1.as_ref().expect("a job").ran;
        prop_assert!(ran.stalled.is_empty(), "{:?}", ran.stalled);
        prop_assert_eq!((ran.messages, ran.bytes), job.program().sent());
        let flow = run_job(&plan, &job, &config()).expect("routes").ran;
        prop_assert!(flow.stalled.is_empty(), "{:?}", flow.stalled);
        prop_assert_eq!((flow.messages, flow.bytes), job.program().sent());
    }
}
