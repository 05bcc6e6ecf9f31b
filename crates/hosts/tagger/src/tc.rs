//! Places of our programs on a network device, and who else has one.
//!
//! ```text
//!            Linux 6.6 and later               before
//!   stack ─▶ tcx egress: ours first, others ─▶ clsact egress: priority 1, handle 0xe5a1 ─▶ the next filter ─▶ cable
//!   stack ◀─ the next filter ◀─ clsact ingress ◀────────────── tcx ingress ◀────────────────────────────── cable
//! ```
//! Ours decide nothing, so that those after them have their turn.
//!
//! Source: `linux/if_arp.h`.

mod clsact;
mod tcx;

use std::{
    ffi::{CString, OsString, c_char},
    io,
    os::fd::{AsRawFd, BorrowedFd},
    os::unix::ffi::OsStringExt,
};

use fabric::Mac;
use libbpf_rs::{
    ErrorKind, Program,
    libbpf_sys::{bpf_obj_get_info_by_fd, bpf_prog_info},
};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

pub(crate) use clsact::{HANDLE, PRIORITY};

/// `ARPHRD_ETHER`.
const ETHERNET: u16 = 1;

/// Which way frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrafficDirection {
    In,
    Out,
}

/// Who has our place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Occupant {
    Nobody,
    /// We: the number of our program.
    We(u32),
    /// Another program, of this name.
    Other(String),
}

impl TrafficDirection {
    pub(crate) const BOTH: [Self; 2] = [Self::In, Self::Out];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::In => "ingress",
            Self::Out => "egress",
        }
    }

    /// The name of our program.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::In => "tagger_ingress",
            Self::Out => "tagger_egress",
        }
    }
}

/// Index and address of a device of the calling thread's namespace; none of no such name, `Ok(None)` inside if it is not
/// Ethernet.
pub(crate) fn find(device: &str) -> io::Result<Option<(i32, Option<Mac>)>> {
    let Ok(name) = CString::new(device) else { return Ok(None) };
    if device.is_empty() || device.len() >= libc::IFNAMSIZ {
        return Ok(None);
    }
    // SAFETY: the name ends with a zero byte.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Ok(None);
    }
    let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *slot = byte as c_char;
    }
    // SAFETY: the request outlives the call, which fills in its address.
    let address = unsafe {
        if libc::ioctl(control.as_raw_fd(), libc::SIOCGIFHWADDR, &raw mut request) < 0 {
            return Err(io::Error::last_os_error());
        }
        request.ifr_ifru.ifru_hwaddr
    };
    let mac = Mac::new(std::array::from_fn(|octet| address.sa_data[octet] as u8));
    Ok(Some((index as i32, (address.sa_family == ETHERNET).then_some(mac))))
}

/// A program's name and the numbers of its maps.
pub(crate) fn program_info(id: u32) -> libbpf_rs::Result<(String, Vec<u32>)> {
    let fd = Program::fd_from_id(id)?;
    let mut maps = vec![0_u32; 64];
    // SAFETY: all-zero bytes are a valid bpf_prog_info.
    let mut info: bpf_prog_info = unsafe { std::mem::zeroed() };
    info.nr_map_ids = maps.len() as u32;
    info.map_ids = maps.as_mut_ptr() as u64;
    let mut length = size_of_val(&info) as u32;
    // SAFETY: the structure and the vector that it points to outlive the call, with their true lengths.
    if unsafe { bpf_obj_get_info_by_fd(fd.as_raw_fd(), (&raw mut info).cast(), &raw mut length) } != 0 {
        return Err(libbpf_rs::Error::from(io::Error::last_os_error()));
    }
    maps.truncate(info.nr_map_ids as usize);
    let name: Vec<u8> = info.name.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0).collect();
    Ok((OsString::from_vec(name).to_string_lossy().into_owned(), maps))
}

/// What has our place on a side of a device.
pub(crate) fn occupant(ifindex: i32, side: TrafficDirection) -> libbpf_rs::Result<Occupant> {
    let (listed, filter) = (tcx::programs(ifindex, side)?, clsact::occupant(ifindex, side)?);
    let ids: Vec<u32> = listed.iter().flatten().copied().chain(filter).collect();
    Ok(match (ours(&ids, side)?, filter) {
        (Some(id), _) => Occupant::We(id),
        // Beside a list nobody needs the filter's place.
        (None, Some(id)) if listed.is_none() => Occupant::Other(program_info(id)?.0),
        (None, _) => Occupant::Nobody,
    })
}

/// Puts a program in our place, instead of the one that is there.
pub(crate) fn hang(program: BorrowedFd<'_>, ifindex: i32, side: TrafficDirection) -> libbpf_rs::Result<()> {
    let Some(ids) = tcx::programs(ifindex, side)? else { return clsact::hang(program, ifindex, side) };
    tcx::hang(program, ifindex, side, ours(&ids, side)?)?;
    // A filter of ours leaves alone what the new program has tagged, until it is gone.
    leave_clsact(ifindex, side)
}

/// Takes our program away, wherever it is, and clsact too if nobody is left there.
pub(crate) fn take_down(ifindex: i32, side: TrafficDirection) -> libbpf_rs::Result<()> {
    let ids = tcx::programs(ifindex, side)?.unwrap_or_default();
    if let Some(id) = ours(&ids, side)? {
        tcx::take_down(id, ifindex, side)?;
    }
    leave_clsact(ifindex, side)
}

/// Takes our program away from the filters, if it is there.
fn leave_clsact(ifindex: i32, side: TrafficDirection) -> libbpf_rs::Result<()> {
    match ours(clsact::occupant(ifindex, side)?.as_slice(), side)? {
        Some(_) => clsact::take_down(ifindex, side),
        None => Ok(()),
    }
}

/// Our program among several.
fn ours(ids: &[u32], side: TrafficDirection) -> libbpf_rs::Result<Option<u32>> {
    for &id in ids {
        match program_info(id) {
            Ok((name, _)) if name == side.program() => return Ok(Some(id)),
            // Another, or one that went meanwhile.
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
