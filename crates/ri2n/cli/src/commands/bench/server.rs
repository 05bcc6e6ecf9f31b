//! `ri2n bench server`.

use super::{CHUNK, MODE_PING, MODE_STREAM, Server, monotonic_s, plot, resident_kib, rows::Rows, usage};
use anyhow::{Context, bail};
use ri2n_io::{Listener, Stream};
use std::{
    io::{self, Read, Write},
    net::SocketAddr,
    process::ExitCode,
    time::Duration,
};

pub(super) fn run(arguments: &Server) -> anyhow::Result<ExitCode> {
    let config = arguments.connecting.config()?;
    let listener =
        Listener::bind(arguments.bind, &config).with_context(|| format!("cannot listen at {}", arguments.bind))?;
    eprintln!("listening at {}", listener.local_addr()?);
    loop {
        let before_kib = resident_kib();
        let (stream, client) = listener.accept()?;
        let served = serve(arguments, stream, client, before_kib);
        if arguments.once {
            return Ok(if served? { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        if let Err(error) = served {
            eprintln!("{client}: {error:#}");
        }
    }
}

/// Serves one client. Returns whether every byte was right.
fn serve(arguments: &Server, mut stream: Stream, client: SocketAddr, before_kib: i64) -> anyhow::Result<bool> {
    let mut header = [0; 8];
    stream.read_exact(&mut header).context("the client said nothing")?;
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    match word(0) {
        MODE_STREAM => receive(arguments, &stream, client, before_kib),
        MODE_PING => echo(&mut stream, word(4) as usize).map(|()| true),
        mode => bail!("{client} asks for mode {mode}, which is unknown"),
    }
}

fn echo(stream: &mut Stream, size: usize) -> anyhow::Result<()> {
    let mut message = vec![0; size.clamp(1, 1 << 26)];
    loop {
        match stream.read_exact(&mut message) {
            Ok(()) => stream.write_all(&message)?,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn receive(arguments: &Server, stream: &Stream, client: SocketAddr, before_kib: i64) -> anyhow::Result<bool> {
    let mut rows = Rows::new(monotonic_s());
    let mut check = Check::default();
    // Written to, so that its pages count before the stream has begun.
    let mut buffer = vec![1; CHUNK];
    let before_kib = before_kib + (CHUNK >> 10) as i64;
    let began = monotonic_s();
    let (mut total, mut last_at) = (0_u64, began);
    // Rows go on while nothing arrives.
    stream.set_read_timeout(Some(Duration::from_millis(250)));
    let mut broke = None;
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                last_at = monotonic_s();
                total += count as u64;
                rows.add(last_at, count as u64);
                if arguments.verify {
                    check.take(&buffer[..count]);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => rows.add(monotonic_s(), 0),
            Err(error) => {
                broke = Some(error);
                break;
            }
        }
    }
    let rows = rows.finish();
    if let Some(path) = &arguments.rows {
        rows.write(path)?;
    }
    if let Some(path) = &arguments.plot {
        std::fs::write(path, plot::svg(&rows)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let seconds = (last_at - began).max(1e-9);
    let (cpu, resident) = usage();
    println!(
        "srv bytes {total} secs {seconds:.4} MBps {:.2} cpu_ns_per_B {:.4} maxrss_kB {resident} stream_kB {} client {client}",
        total as f64 / seconds / 1e6,
        cpu * 1e9 / total.max(1) as f64,
        resident - before_kib
    );
    if arguments.verify {
        println!("srv verify_bad {}", check.bad);
    }
    if let Some(error) = broke {
        println!("srv ended early: {error}");
    }
    Ok(check.bad == 0)
}

/// Checks that a stream is 64-bit numbers counting from zero.
#[derive(Default)]
struct Check {
    expected: u64,
    partial: Vec<u8>,
    bad: u64,
}

impl Check {
    fn take(&mut self, mut bytes: &[u8]) {
        if !self.partial.is_empty() {
            let needed = (8 - self.partial.len()).min(bytes.len());
            self.partial.extend_from_slice(&bytes[..needed]);
            bytes = &bytes[needed..];
            if self.partial.len() < 8 {
                return;
            }
            let word = u64::from_le_bytes(self.partial[..].try_into().expect("eight bytes"));
            self.partial.clear();
            self.compare(word);
        }
        let words = bytes.chunks_exact(8);
        self.partial.extend_from_slice(words.remainder());
        for word in words {
            self.compare(u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
    }

    fn compare(&mut self, word: u64) {
        if word != self.expected {
            self.bad += 1;
        }
        self.expected = word.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_byte_is_found_however_the_stream_is_cut() {
        let mut bytes: Vec<u8> = (0..1000_u64).flat_map(u64::to_le_bytes).collect();
        for cut in [1, 3, 8, 13, 4000] {
            let mut check = Check::default();
            bytes.chunks(cut).for_each(|part| check.take(part));
            assert_eq!((check.bad, check.expected), (0, 1000));
        }
        bytes[77] ^= 1;
        for cut in [1, 3, 8, 13, 4000] {
            let mut check = Check::default();
            bytes.chunks(cut).for_each(|part| check.take(part));
            assert_eq!(check.bad, 2, "the word itself, and the step back");
        }
    }
}
