//! Any bytes as a GOAL schedule: refused with a line of the text, or written and read again as the same program.
#![no_main]

use sim::program::goal::{read_goal, write_goal};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    match read_goal("f.goal", &text) {
        Ok(program) => {
            let mut written = Vec::new();
            write_goal(&program, &mut written).expect("memory");
            let written = String::from_utf8(written).expect("text");
            assert_eq!(read_goal("f.goal", &written).expect("it was written"), program);
        }
        Err(wrong) => fabric_fuzz::lines_exist(&text, wrong.items().iter().map(|mistake| mistake.line)),
    }
});
