//! Places of our programs on a network device, and who else has one.
//!
//! ```text
//!   clsact ─ ingress ─ priority 1, handle 0xe5a1: ours   ─▶ the next filter, as ours decides nothing
//!          └ egress  ─ priority 1, handle 0xe5a1: ours   ─▶ …
//! ```
//!
//! Source: `linux/rtnetlink.h`, `linux/pkt_sched.h`, `linux/if_arp.h`.

use std::{
    ffi::{CString, OsString, c_char},
    fs::File,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    os::unix::ffi::OsStringExt,
};

use fabric::Mac;
use libbpf_rs::{
    ErrorKind, Program, TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHook, TcHookBuilder,
    libbpf_sys::{bpf_obj_get_info_by_fd, bpf_prog_info},
};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

use crate::netlink::{Netlink, Request};

/// First among filters: those after ours see frames as the stack does.
pub(crate) const PRIORITY: u32 = 1;
/// Ours among the filters of that priority.
pub(crate) const HANDLE: u32 = 0xe5a1;

/// `ARPHRD_ETHER`.
const ETHERNET: u16 = 1;

/// Which way frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    In,
    Out,
}

impl Side {
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

    fn point(self) -> TcAttachPoint {
        match self {
            Self::In => TC_INGRESS,
            Self::Out => TC_EGRESS,
        }
    }

    fn parent(self) -> u32 {
        match self {
            Self::In => 0xffff_fff2,
            Self::Out => 0xffff_fff3,
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

/// What has our place: the number of a program, if one does.
pub(crate) fn occupant(ifindex: i32, side: Side) -> io::Result<Option<u32>> {
    let nothing = File::open("/dev/null")?;
    match hook(nothing.as_fd(), ifindex, side).query() {
        Ok(id) => Ok(Some(id)),
        // No filter of ours, or no clsact at all.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => Ok(None),
        Err(error) => Err(io::Error::other(error)),
    }
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

/// Puts a program in our place, instead of the one that is there.
pub(crate) fn hang(program: BorrowedFd<'_>, ifindex: i32, side: Side) -> libbpf_rs::Result<()> {
    let mut hook = hook(program, ifindex, side);
    hook.create()?;
    hook.attach().map(drop)
}

/// Takes our program away, and clsact too if nobody is left there.
pub(crate) fn take_down(ifindex: i32, side: Side) -> libbpf_rs::Result<()> {
    let nothing = File::open("/dev/null")?;
    let mut hook = hook(nothing.as_fd(), ifindex, side);
    hook.detach()?;
    if Side::BOTH.into_iter().all(|side| filters(ifindex, side).is_ok_and(|count| count == 0)) {
        // Somebody else's empty qdisc, or one that went meanwhile, is no failure of ours.
        let _ = hook.attach_point(TC_INGRESS | TC_EGRESS).destroy();
    }
    Ok(())
}

fn hook(program: BorrowedFd<'_>, ifindex: i32, side: Side) -> TcHook {
    TcHookBuilder::new(program).ifindex(ifindex).replace(true).handle(HANDLE).priority(PRIORITY).hook(side.point())
}

/// How many filters a side of a device has, whoever's.
fn filters(ifindex: i32, side: Side) -> io::Result<usize> {
    // struct tcmsg: family, index, handle, parent, info.
    let body = [0, ifindex as u32, 0, side.parent(), 0].into_iter().flat_map(u32::to_ne_bytes).collect();
    let request = Request { kind: libc::RTM_GETTFILTER, flags: 0, body };
    Ok(Netlink::open(SockProtocol::NetlinkRoute)?.dump(&request)?.len())
}
