//! Collective operations against their closed forms, and against what they are for.

use proptest::prelude::*;
use sim::program::{
    Action, Program,
    collective::{Algorithm, Collective, Exchange, Operation},
    executor::{Costs, Ran},
    ideal::{self, Ideal, Ports},
};

const ALPHA: u64 = 1_000_000;
const BETA: u64 = 8;

fn operation(collective: Collective, algorithm: Algorithm, bytes: u64, root: u32) -> Operation {
    Operation { collective, algorithm, bytes, root }
}

fn run(program: &Program, ports: Ports) -> Ran {
    let ran = ideal::run(program, Costs::default(), &Ideal { latency_ps: ALPHA, ps_per_byte: BETA, ports });
    assert_eq!(ran.stalled, [] as [String; 0]);
    ran
}

/// Messages, octets, and the terms of α and β·octets along the critical path with one port a rank, all eager.
#[test]
fn collectives_have_their_closed_forms() {
    let b = 1000_u64;
    for n in [2_u64, 4, 8, 16, 32] {
        let log = u64::from(n.ilog2());
        use {Algorithm as A, Collective as C};
        // (operation, algorithm, messages, octets, latencies, octets one after the other)
        let expected = [
            (C::AllToAll, A::Pairwise, n * (n - 1), n * (n - 1) * b, n - 1, (n - 1) * b),
            (C::AllToAll, A::Ring, n * (n - 1), n * (n - 1) * b, n - 1, (n - 1) * b),
            (C::AllToAll, A::Linear, n * (n - 1), n * (n - 1) * b, 1, (n - 1) * b),
            (C::AllToAll, A::Bruck, n * log, n * log * n / 2 * b, log, log * n / 2 * b),
            (C::AllGather, A::Ring, n * (n - 1), n * (n - 1) * b, n - 1, (n - 1) * b),
            (C::AllGather, A::Linear, n * (n - 1), n * (n - 1) * b, 1, (n - 1) * b),
            (C::AllGather, A::RecursiveDoubling, n * log, n * (n - 1) * b, log, (n - 1) * b),
            (C::AllGather, A::Bruck, n * log, n * (n - 1) * b, log, (n - 1) * b),
            (C::AllReduce, A::RecursiveDoubling, n * log, n * log * b, log, log * b),
            (C::AllReduce, A::Binomial, 2 * (n - 1), 2 * (n - 1) * b, 2 * log, 2 * log * b),
            (C::Broadcast, A::Binomial, n - 1, (n - 1) * b, log, log * b),
            (C::Broadcast, A::Linear, n - 1, (n - 1) * b, 1, (n - 1) * b),
            (C::Broadcast, A::Chain, n - 1, (n - 1) * b, n - 1, (n - 1) * b),
            (C::Reduce, A::Binomial, n - 1, (n - 1) * b, log, log * b),
            (C::Reduce, A::Linear, n - 1, (n - 1) * b, 1, b),
            (C::Gather, A::Linear, n - 1, (n - 1) * b, 1, b),
            (C::Gather, A::Binomial, n - 1, n / 2 * log * b, log, (n - 1) * b),
            (C::Scatter, A::Linear, n - 1, (n - 1) * b, 1, (n - 1) * b),
            (C::Scatter, A::Binomial, n - 1, n / 2 * log * b, log, (n - 1) * b),
            (C::ReduceScatter, A::Pairwise, n * (n - 1), n * (n - 1) * b, n - 1, (n - 1) * b),
            (C::ReduceScatter, A::Ring, n * (n - 1), n * (n - 1) * b, n - 1, (n - 1) * b),
            (C::ReduceScatter, A::RecursiveHalving, n * log, n * (n - 1) * b, log, (n - 1) * b),
            (C::Barrier, A::Dissemination, n * log, 0, log, 0),
            (C::Barrier, A::RecursiveDoubling, n * log, 0, log, 0),
            (C::Barrier, A::Binomial, 2 * (n - 1), 0, 2 * log, 0),
        ];
        for (collective, algorithm, messages, bytes, latencies, serial) in expected {
            let program = operation(collective, algorithm, b, 0).program(n as u32, 1).expect("an operation");
            let ran = run(&program, Ports::Single);
            let what = format!("{collective} {algorithm} of {n}");
            assert_eq!((ran.messages, ran.bytes), (messages, bytes), "{what}");
            assert_eq!(program.sent(), (messages, bytes), "{what}");
            assert_eq!(ran.end_ps(), latencies * ALPHA + serial * BETA, "{what}");
        }
        // A vector that divides by the ranks: two rings, or halving and doubling, move 2·(n - 1)/n of it.
        let vector = n * b;
        for (algorithm, latencies) in [(A::Ring, 2 * (n - 1)), (A::Rabenseifner, 2 * log)] {
            let program = operation(C::AllReduce, algorithm, vector, 0).program(n as u32, 1).expect("an operation");
            let ran = run(&program, Ports::Single);
            assert_eq!(ran.bytes, 2 * (n - 1) * vector, "{algorithm} of {n}");
            assert_eq!(ran.end_ps(), latencies * ALPHA + 2 * (n - 1) * b * BETA, "{algorithm} of {n}");
        }
        let program = operation(C::Broadcast, A::ScatterRing, vector, 0).program(n as u32, 1).expect("an operation");
        let ran = run(&program, Ports::Single);
        assert_eq!(ran.messages, (n - 1) + n * (n - 1));
        assert_eq!(ran.end_ps(), (log + n - 1) * ALPHA + 2 * (n - 1) * b * BETA, "scatter and ring of {n}");
    }
}

/// Ranks that are no power of two: one round more than the logarithm, or the fold before and after.
#[test]
fn other_numbers_of_ranks_have_theirs() {
    let b = 1000;
    use {Algorithm as A, Collective as C};
    let run_of = |collective, algorithm, n| {
        run(&operation(collective, algorithm, b, 0).program(n, 1).expect("an operation"), Ports::Single)
    };
    // Six ranks: distances 1, 2, 4 carry 3, 2, 2 blocks all to all and 1, 2, 2 blocks of all-gather.
    assert_eq!(run_of(C::AllToAll, A::Bruck, 6).end_ps(), 3 * ALPHA + 7 * b * BETA);
    assert_eq!(run_of(C::AllGather, A::Bruck, 6).end_ps(), 3 * ALPHA + 5 * b * BETA);
    // Of seven ranks three hand over to a neighbour, two rounds, and three get the sum.
    let folded = run_of(C::AllReduce, A::RecursiveDoubling, 7);
    assert_eq!((folded.messages, folded.end_ps()), (3 + 8 + 3, 4 * (ALPHA + b * BETA)));
    // Of six two do; the others are a round ahead, so that the sum waits for the port and not for a latency more.
    let folded = run_of(C::AllReduce, A::RecursiveDoubling, 6);
    assert_eq!((folded.messages, folded.end_ps()), (2 + 8 + 2, 3 * ALPHA + 4 * b * BETA));
    assert_eq!(run_of(C::Barrier, A::Dissemination, 5).messages, 15);
    let refused = operation(C::AllGather, A::RecursiveDoubling, b, 0).program(6, 1).expect_err("six is no power");
    let words = "recursive-doubling allgather needs a power of two of ranks, and there are 6; take bruck";
    assert_eq!(refused.to_string(), words);
    let refused = operation(C::Barrier, A::Bruck, 0, 0).program(6, 1).expect_err("no such barrier");
    let words = "barrier has no algorithm bruck; it has dissemination, recursive-doubling, binomial";
    assert_eq!(refused.to_string(), words);
}

/// Long messages ask first: a request and an answer more for each on the critical path.
#[test]
fn rendezvous_costs_a_request_and_an_answer() {
    let costs = Costs { eager_bytes_max: 999, send_ps: 5, receive_ps: 3 };
    let network = Ideal { latency_ps: ALPHA, ps_per_byte: BETA, ports: Ports::Single };
    for (bytes, latencies) in [(999, 1), (1000, 3)] {
        let program = operation(Collective::Broadcast, Algorithm::Chain, bytes, 0).program(5, 1).expect("an operation");
        let ran = ideal::run(&program, costs, &network);
        assert_eq!(ran.end_ps(), 4 * (latencies * ALPHA + bytes * BETA + 5 + 3));
    }
}

/// Follows who has heard of whom through every message; what an operation is for must have come about.
fn knowledge(operation: &Operation, ranks: u32) -> Vec<u128> {
    let rounds: Vec<_> = (0..ranks).map(|rank| operation.rounds(rank, ranks)).collect();
    let mut known: Vec<u128> = (0..ranks).map(|rank| 1 << rank).collect();
    let mut at = vec![0; ranks as usize];
    let mut posted = vec![false; ranks as usize];
    let mut mail: Vec<Vec<(u32, u128)>> = vec![Vec::new(); ranks as usize];
    loop {
        let mut moved = false;
        for rank in 0..ranks as usize {
            let Some(round) = rounds[rank].get(at[rank]) else { continue };
            if !posted[rank] {
                for exchange in round {
                    if let Exchange::Send { to, .. } = exchange {
                        mail[*to as usize].push((rank as u32, known[rank]));
                    }
                }
                posted[rank] = true;
                moved = true;
            }
            let wanted: Vec<u32> = round
                .iter()
                .filter_map(|exchange| match exchange {
                    Exchange::Receive { from } => Some(*from),
                    Exchange::Send { .. } => None,
                })
                .collect();
            if wanted.iter().all(|from| mail[rank].iter().any(|(sender, _)| sender == from)) {
                for from in wanted {
                    let place = mail[rank].iter().position(|(sender, _)| *sender == from).expect("it is there");
                    known[rank] |= mail[rank].remove(place).1;
                }
                at[rank] += 1;
                posted[rank] = false;
                moved = true;
            }
        }
        if !moved {
            assert!((0..ranks as usize).all(|rank| at[rank] == rounds[rank].len()), "{operation:?} of {ranks} stalls");
            assert!(mail.iter().all(Vec::is_empty), "{operation:?} of {ranks} sends what nobody takes");
            return known;
        }
    }
}

fn resolved() -> impl Strategy<Value = (Operation, u32)> {
    let any = (0..Collective::ALL.len(), 0..8_usize, 1..70_u32, 0..5_000_u64, 0..70_u32);
    any.prop_filter_map("no such algorithm", |(collective, algorithm, ranks, bytes, root)| {
        let collective = Collective::ALL[collective];
        let algorithms = collective.algorithms();
        let algorithm = algorithms.get(algorithm % (algorithms.len() + 1)).copied().unwrap_or(Algorithm::Auto);
        let operation = Operation { collective, algorithm, bytes, root: root % ranks };
        operation.resolve(ranks).ok().map(|operation| (operation, ranks))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn everybody_hears_of_those_of_whom_they_must((operation, ranks) in resolved()) {
        let known = knowledge(&operation, ranks);
        let all = if ranks == 128 { u128::MAX } else { (1 << ranks) - 1 };
        let root = operation.root as usize;
        match operation.collective {
            Collective::AllToAll | Collective::AllGather | Collective::AllReduce | Collective::Barrier
            | Collective::ReduceScatter => prop_assert!(known.iter().all(|known| *known == all)),
            Collective::Broadcast | Collective::Scatter => {
                prop_assert!(known.iter().all(|known| known & (1 << root) != 0));
            }
            Collective::Reduce | Collective::Gather => prop_assert_eq!(known[root], all),
        }
    }

    /// No rank gets less than its share of the information, and the program runs to its end as it is and asking first.
    #[test]
    fn nobody_gets_less_than_there_is_to_get((operation, ranks) in resolved(), eager in 0..5_000_u64) {
        let program = operation.program(ranks, 1).expect("it was resolved");
        let mut received = vec![0; ranks as usize];
        for rank in 0..ranks {
            for action in program.actions(rank) {
                if let Action::Send { to, bytes, .. } = action {
                    received[*to as usize] += bytes;
                }
            }
        }
        let (others, bytes, root) = (u64::from(ranks) - 1, operation.bytes, operation.root as usize);
        for (rank, received) in received.into_iter().enumerate() {
            let least = match operation.collective {
                Collective::AllToAll | Collective::AllGather => others * bytes,
                Collective::AllReduce | Collective::Broadcast | Collective::Scatter if rank == root => 0,
                Collective::AllReduce | Collective::Broadcast | Collective::Scatter => bytes.min(bytes * others),
                Collective::Gather if rank == root => others * bytes,
                Collective::Reduce if rank == root => bytes * others.min(1),
                Collective::ReduceScatter => bytes * others.min(1),
                _ => 0,
            };
            prop_assert!(received >= least, "rank {} gets {} of {}", rank, received, least);
        }
        let costs = Costs { eager_bytes_max: eager, ..Costs::default() };
        for ports in [Ports::Single, Ports::Unlimited] {
            let ran = ideal::run(&program, costs, &Ideal { latency_ps: ALPHA, ps_per_byte: BETA, ports });
            prop_assert!(ran.stalled.is_empty(), "{:?}", ran.stalled);
            prop_assert_eq!((ran.messages, ran.bytes), program.sent());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, ..ProptestConfig::default() })]

    /// A program survives being written as a GOAL schedule.
    #[test]
    fn programs_are_goal_schedules((operation, ranks) in resolved(), times in 1..3_u32) {
        let program = operation.program(ranks, times).expect("it was resolved");
        let mut text = Vec::new();
        sim::program::goal::write_goal(&program, &mut text).expect("memory");
        let text = String::from_utf8(text).expect("text");
        prop_assert_eq!(sim::program::goal::read_goal("p.goal", &text).expect("a schedule"), program);
    }
}
