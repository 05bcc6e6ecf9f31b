//! Schedules and traces with anything wrong in them: refused with a line of the text, never a panic, and what is read runs.

use fabric::rng::Rng;
use sim::program::{
    Program,
    executor::Costs,
    goal::read_goal,
    ideal::{Ideal, Ports, run},
    text::Mistakes,
    ti::{Reading, read_traces},
};

const GOAL: &str = "num_ranks 3\nrank 0 { /* one */\nl1: calc 100 cpu 0\nl2: send 10b to 1 tag 3 cpu 0\nl2 requires l1\n\
    l3: recv 5b from 2 tag any\n}\nrank 1 {\nl1: recv 10b from 0 tag 3 // two\nl2: send 5b to 2\nl2 irequires l1\n}\n\
    rank 2 {\na: recv 5b from any\nb: send 5b to 0 tag 0\nb requires a\n}\n";
const TRACE: &str = "0 init\n0 compute 1e3\n0 irecv 1 5 10 0\n0 send 1 4 10 0\n0 wait 1 0 5\n0 allreduce 10 0 0\n\
    0 alltoallv 3 1 2 3 1 2 1 1\n0 finalize\n1 init\n1 recv -333 4 10 0\n1 isend 0 5 10 0\n1 waitall\n\
    1 allreduce 10 0 0\n1 alltoallv 3 1 2 3 1 2 1 1\n1 finalize\n";

/// A text with some words and letters removed, doubled, swapped for others of its own, or replaced by anything.
fn spoilt(text: &str, rng: &mut Rng) -> String {
    let mut words: Vec<String> = text.split_inclusive([' ', '\n']).map(str::to_owned).collect();
    for _ in 0..1 + rng.below(4) {
        if words.is_empty() {
            break;
        }
        let at = rng.below(words.len());
        match rng.below(6) {
            0 => drop(words.remove(at)),
            1 => words.insert(at, words[at].clone()),
            2 => words[at] = words[rng.below(words.len())].clone(),
            3 => words[at] = format!("{} ", rng.next_u64()),
            4 => {
                words[at] =
                    ["{", "}", ":", "/*", "*/", "-1 ", "\n", "1e300 ", "\u{e9}\u{fffd} "][rng.below(9)].to_owned()
            }
            _ => {
                let letter = rng.below(words[at].chars().count().max(1));
                words[at] =
                    words[at].chars().enumerate().filter(|(place, _)| *place != letter).map(|(_, c)| c).collect();
            }
        }
    }
    words.concat()
}

fn judge(seed: u64, text: &str, read: Result<Program, Mistakes>) -> bool {
    match read {
        Ok(program) => {
            let network = Ideal { latency_ps: 1, ps_per_byte: 1, ports: Ports::Single };
            let ran = run(&program, Costs::default(), &network);
            let (messages, _) = program.sent();
            assert!(ran.messages <= messages, "seed {seed}:\n{text}");
            true
        }
        Err(wrong) => {
            let lines = text.lines().count().max(1);
            assert!(!wrong.items().is_empty(), "seed {seed}:\n{text}");
            for mistake in wrong.items() {
                assert!((1..=lines).contains(&mistake.line), "seed {seed}: {mistake}\n{text}");
            }
            false
        }
    }
}

#[test]
fn spoilt_texts_are_refused_or_run() {
    let (mut read, mut refused) = (0, 0);
    for seed in 0..4000 {
        let mut rng = Rng::new(seed);
        let text = spoilt(GOAL, &mut rng);
        let goal = judge(seed, &text, read_goal("f", &text));
        let text = spoilt(TRACE, &mut rng);
        let trace = judge(seed, &text, read_traces(&[("f", &text)], &Reading::default()));
        for fine in [goal, trace] {
            *(if fine { &mut read } else { &mut refused }) += 1;
        }
    }
    assert!(read > 500 && refused > 500, "{read} were read and {refused} refused");
}

#[test]
fn the_texts_themselves_run() {
    for program in [read_goal("f", GOAL), read_traces(&[("f", TRACE)], &Reading::default())] {
        let program = program.expect("nothing is wrong");
        let ran = run(&program, Costs::default(), &Ideal { latency_ps: 1, ps_per_byte: 1, ports: Ports::Single });
        assert_eq!(ran.stalled, [] as [String; 0]);
        assert_eq!((ran.messages, ran.bytes), program.sent());
    }
}
