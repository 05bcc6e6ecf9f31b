//! A cable that loses frames by chance: `bpf/loss.bpf.c` where frames leave the device at either end.

use std::{fs::File, io, os::fd::AsFd};

use libbpf_rs::{MapCore, MapFlags, ObjectBuilder, TC_EGRESS, TcHook, TcHookBuilder};

const OBJECT: &[u8] = include_bytes!("../bpf/loss.bpf.o");
const PRIORITY: u32 = 9;
const HANDLE: u32 = 1;
const PPM: u64 = 1_000_000;

/// From now on, a device of the calling thread's namespace loses so many frames of a million, instead of what it lost
/// before.
///
/// # Errors
/// If the kernel refuses the program.
pub(crate) fn begin(ifindex: u32, loss_ppm: u32) -> Result<(), libbpf_rs::Error> {
    end(ifindex)?;
    let object = ObjectBuilder::default().open_memory(OBJECT)?.load()?;
    let below = (u64::from(u32::MAX) * u64::from(loss_ppm).min(PPM) / PPM) as u32;
    for map in object.maps() {
        map.update(&0_u32.to_ne_bytes(), &below.to_ne_bytes(), MapFlags::ANY)?;
    }
    for program in object.progs() {
        let mut hook = place(program.as_fd(), ifindex);
        hook.create()?;
        hook.attach()?;
    }
    Ok(())
}

/// A device loses nothing any more; one that lost nothing is left as it is.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn end(ifindex: u32) -> Result<(), libbpf_rs::Error> {
    // That there is nothing to take away is no news, but libbpf says it on standard error.
    libbpf_rs::set_print(None);
    let nothing = File::open("/dev/null").map_err(io::Error::other)?;
    let mut hook = place(nothing.as_fd(), ifindex);
    if hook.query().is_ok() { hook.detach() } else { Ok(()) }
}

fn place(program: std::os::fd::BorrowedFd<'_>, ifindex: u32) -> TcHook {
    TcHookBuilder::new(program).ifindex(ifindex as i32).handle(HANDLE).priority(PRIORITY).hook(TC_EGRESS)
}
