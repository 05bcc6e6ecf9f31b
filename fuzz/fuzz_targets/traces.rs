//! Any bytes as a trace of an MPI program: refused with a line of the text, or a program that ends or stalls.
#![no_main]

use sim::program::{
    executor::Costs,
    ideal::{Ideal, Ports, run},
    ti::{Reading, read_traces},
};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    // Repetitions make much of little.
    let reading = Reading { lines_max: 20_000, ..Reading::default() };
    match read_traces(&[("f.txt", &text)], &reading) {
        // A high rank makes a collective of very many; what is run here is small.
        Ok(program) if program.all_actions().len() < 100_000 => {
            let network = Ideal { latency_ps: 1, ps_per_byte: 1, ports: Ports::Single };
            let _ = run(&program, Costs::default(), &network);
        }
        Ok(_) => {}
        Err(wrong) => fabric_fuzz::lines_exist(&text, wrong.items().iter().map(|mistake| mistake.line)),
    }
});
