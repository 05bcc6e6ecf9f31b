//! The list of programs that a device has had beside its qdiscs since Linux 6.6: a call less for each frame, and no qdisc.
//!
//! Source: `linux/bpf.h` (`BPF_TCX_INGRESS`, `BPF_F_BEFORE`, `BPF_F_REPLACE`).

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    ptr,
};

use libbpf_rs::{
    Program,
    libbpf_sys::{
        BPF_F_BEFORE, BPF_F_REPLACE, BPF_TCX_EGRESS, BPF_TCX_INGRESS, bpf_attach_type, bpf_prog_attach_opts,
        bpf_prog_attach_opts__bindgen_ty_1, bpf_prog_detach_opts, bpf_prog_query_opts,
        bpf_prog_query_opts__bindgen_ty_1,
    },
};

use super::TrafficDirection;

/// `BPF_MPROG_MAX`: most programs of a list.
const PROGRAMS_MAX: usize = 64;

/// The programs of a side, in the order of their turns; none where the kernel has no such list.
pub(super) fn programs(ifindex: i32, side: TrafficDirection) -> io::Result<Option<Vec<u32>>> {
    let mut ids = vec![0_u32; PROGRAMS_MAX];
    let mut options = bpf_prog_query_opts {
        sz: size_of::<bpf_prog_query_opts>() as u64,
        prog_ids: ids.as_mut_ptr(),
        __bindgen_anon_1: bpf_prog_query_opts__bindgen_ty_1 { count: ids.len() as u32 },
        ..bpf_prog_query_opts::default()
    };
    // SAFETY: the structure and the vector that it points to outlive the call, with their true lengths.
    let done = unsafe { libbpf_rs::libbpf_sys::bpf_prog_query_opts(ifindex, list(side), &raw mut options) };
    if done != 0 {
        let error = io::Error::from_raw_os_error(-done);
        return match error.raw_os_error() {
            // Nobody has a program there.
            Some(libc::ENOENT) => Ok(Some(Vec::new())),
            Some(libc::EINVAL) => Ok(None),
            _ => Err(error),
        };
    }
    // SAFETY: the call filled in the count.
    ids.truncate(unsafe { options.__bindgen_anon_1.count } as usize);
    Ok(Some(ids))
}

/// Puts a program in the place of another, or before all that are there.
pub(super) fn hang(
    program: BorrowedFd<'_>,
    ifindex: i32,
    side: TrafficDirection,
    instead_of: Option<u32>,
) -> libbpf_rs::Result<()> {
    let before = instead_of.map(Program::fd_from_id).transpose()?;
    let options = bpf_prog_attach_opts {
        sz: size_of::<bpf_prog_attach_opts>() as u64,
        flags: if before.is_some() { BPF_F_REPLACE } else { BPF_F_BEFORE },
        __bindgen_anon_1: bpf_prog_attach_opts__bindgen_ty_1 {
            replace_prog_fd: before.as_ref().map_or(0, |before| before.as_fd().as_raw_fd()),
        },
        ..bpf_prog_attach_opts::default()
    };
    // SAFETY: the structure outlives the call, with its true length.
    let done = unsafe {
        libbpf_rs::libbpf_sys::bpf_prog_attach_opts(program.as_raw_fd(), ifindex, list(side), &raw const options)
    };
    result(done)
}

/// Takes a program away.
pub(super) fn take_down(id: u32, ifindex: i32, side: TrafficDirection) -> libbpf_rs::Result<()> {
    let program = Program::fd_from_id(id)?;
    let none: *const bpf_prog_detach_opts = ptr::null();
    // SAFETY: no options are a valid choice.
    result(unsafe { libbpf_rs::libbpf_sys::bpf_prog_detach_opts(program.as_raw_fd(), ifindex, list(side), none) })
}

fn list(side: TrafficDirection) -> bpf_attach_type {
    match side {
        TrafficDirection::In => BPF_TCX_INGRESS,
        TrafficDirection::Out => BPF_TCX_EGRESS,
    }
}

/// What a call of libbpf says.
fn result(done: i32) -> libbpf_rs::Result<()> {
    if done == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-done).into()) }
}
