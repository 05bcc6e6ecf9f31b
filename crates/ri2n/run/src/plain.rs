//! Carries bytes between a program's end and plain TCP, where the broker has connected to a peer without RI2N on behalf of a
//! program: two threads for each such connection.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::Duration,
};

use ri2n_io::CloseReason;

use crate::near::Near;

/// Bytes carried at once.
const BUFFER_BYTES: usize = 64 << 10;
/// Stack of a thread, bytes, apart from the buffer.
const STACK_BYTES: usize = 128 << 10;

/// Starts to carry; `kept` lives as long as it goes on.
///
/// # Errors
/// If no thread can be had.
pub(crate) fn start<K: Send + 'static>(near: Near, far: TcpStream, kept: K) -> io::Result<()> {
    thread::Builder::new().name("ri2n-plain".into()).stack_size(STACK_BYTES).spawn(move || {
        thread::scope(|scope| {
            let down = thread::Builder::new().name("ri2n-plain".into()).stack_size(STACK_BYTES);
            if down.spawn_scoped(scope, || carry_down(&far, &near)).is_ok() {
                carry_up(&near, &far);
            } else {
                reset(&far);
                near.close();
            }
        });
        drop(kept);
    })?;
    Ok(())
}

/// How one direction ended.
enum Ended {
    Finished,
    SourceFailed(io::Error),
    SinkFailed(io::Error),
}

fn carry_up(near: &Near, mut far: &TcpStream) {
    let ended = match near {
        Near::Pair(program) => carry(&mut program.pair(), &mut far),
        Near::Tcp(tcp) => carry(&mut &*tcp, &mut far),
    };
    match ended {
        Ended::Finished if near.resets_when_closed() => reset(far),
        Ended::Finished => {
            // It may have ended by itself.
            let _ = far.shutdown(Shutdown::Write);
        }
        // The program closed with data unread.
        Ended::SourceFailed(_) => reset(far),
        Ended::SinkFailed(error) => near.fail(reason(&error)),
    }
}

fn carry_down(mut far: &TcpStream, near: &Near) {
    let ended = match near {
        Near::Pair(program) => carry(&mut far, &mut program.pair()),
        Near::Tcp(tcp) => carry(&mut far, &mut &*tcp),
    };
    match ended {
        Ended::Finished => near.finish(),
        Ended::SourceFailed(error) => near.fail(reason(&error)),
        Ended::SinkFailed(_) => reset(far),
    }
}

fn carry(from: &mut dyn Read, to: &mut dyn Write) -> Ended {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ended::Finished,
            Ok(count) => {
                if let Err(error) = to.write_all(&buffer[..count]) {
                    return Ended::SinkFailed(error);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Ended::SourceFailed(error),
        }
    }
}

fn reason(error: &io::Error) -> CloseReason {
    if error.kind() == io::ErrorKind::TimedOut { CloseReason::Outage } else { CloseReason::Reset }
}

fn reset(far: &TcpStream) {
    let _ = socket2::SockRef::from(far).set_linger(Some(Duration::ZERO));
    let _ = far.shutdown(Shutdown::Both);
}
