//! `ri2n bench client`.

use super::{CHUNK, Client, MODE_PING, MODE_STREAM, monotonic_s, resident_kib, resolve, usage};
use anyhow::Context;
use ri2n_io::Stream;
use std::{
    io::{Read, Write},
    net::Shutdown,
    process::ExitCode,
    time::Duration,
};

/// How long to wait for the last acknowledgement.
const FLUSH_PATIENCE: Duration = Duration::from_secs(120);

pub(super) fn run(arguments: &Client) -> anyhow::Result<ExitCode> {
    let config = arguments.connecting.config()?;
    let servers = resolve(&arguments.server)?;
    // What is sent is no memory of the stream's; neither are the pages of it that nobody wrote to yet.
    let chunk = vec![1; CHUNK];
    let before_kib = resident_kib();
    let mut stream =
        Stream::connect_any(&servers, &config).with_context(|| format!("cannot connect to {}", arguments.server))?;
    if arguments.ping_pong {
        ping_pong(arguments, &mut stream)?;
    } else {
        send(arguments, &mut stream, chunk, before_kib)?;
    }
    if arguments.report {
        print_links(&stream);
    }
    stream.shutdown(Shutdown::Write)?;
    stream.flush_wait(Some(FLUSH_PATIENCE)).context("the end was not acknowledged")?;
    Ok(ExitCode::SUCCESS)
}

fn header(mode: u32, size: usize) -> [u8; 8] {
    let mut header = [0; 8];
    header[..4].copy_from_slice(&mode.to_le_bytes());
    header[4..].copy_from_slice(&(size as u32).to_le_bytes());
    header
}

fn send(arguments: &Client, stream: &mut Stream, mut chunk: Vec<u8>, before_kib: i64) -> anyhow::Result<()> {
    stream.write_all(&header(MODE_STREAM, 0))?;
    let (mut total, mut counter, mut longest) = (0_u64, 0_u64, 0_f64);
    let began = monotonic_s();
    let mut now = began;
    while now - began < arguments.seconds {
        if arguments.verify {
            for word in chunk.chunks_exact_mut(8) {
                word.copy_from_slice(&counter.to_le_bytes());
                counter += 1;
            }
        }
        stream.write_all(&chunk)?;
        total += CHUNK as u64;
        let after = monotonic_s();
        longest = longest.max(after - now);
        now = after;
    }
    stream.shutdown(Shutdown::Write)?;
    stream.flush_wait(Some(FLUSH_PATIENCE)).context("the end was not acknowledged")?;
    let seconds = monotonic_s() - began;
    let (cpu, resident) = usage();
    println!(
        "cli bytes {total} secs {seconds:.4} MBps {:.2} cpu_ns_per_B {:.4} maxrss_kB {resident} stream_kB {} longest_write_s {longest:.3}",
        total as f64 / seconds / 1e6,
        cpu * 1e9 / total.max(1) as f64,
        resident - before_kib
    );
    Ok(())
}

fn ping_pong(arguments: &Client, stream: &mut Stream) -> anyhow::Result<()> {
    let size = arguments.size.clamp(1, 1 << 26);
    stream.write_all(&header(MODE_PING, size))?;
    let mut message = vec![0; size];
    let mut samples_us = Vec::with_capacity(arguments.count);
    let warm_up = arguments.count / 10;
    for round in 0..warm_up + arguments.count {
        let began = monotonic_s();
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        if round >= warm_up {
            samples_us.push((monotonic_s() - began) * 1e6);
        }
        if arguments.pause > 0 {
            std::thread::sleep(Duration::from_micros(arguments.pause));
        }
    }
    samples_us.sort_by(f64::total_cmp);
    let at = |share: f64| samples_us[((samples_us.len() - 1) as f64 * share) as usize];
    let mean = samples_us.iter().sum::<f64>() / samples_us.len() as f64;
    println!(
        "ri2n size {size} n {} RTT_us min {:.2} p50 {:.2} p90 {:.2} p99 {:.2} p99.9 {:.2} max {:.1} mean {mean:.2}",
        samples_us.len(),
        at(0.0),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    Ok(())
}

fn print_links(stream: &Stream) {
    for link in stream.status().links {
        println!(
            "link {} {:?} to {} {:?}: {:.0} Mbit/s, rtt {:?} (least {:?}), delivered {:.3}, datagrams of {}, window {}, \
             sent {} packets, lost {}, suspected {}",
            link.id,
            link.local,
            link.remote,
            link.health,
            link.rate_bps as f64 / 1e6,
            link.rtt,
            link.rtt_min,
            link.delivery_ratio,
            link.datagram_size,
            link.window,
            link.packets_sent,
            link.packets_lost,
            link.suspicions
        );
    }
}
