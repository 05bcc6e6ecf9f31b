//! A filter of the clsact qdisc, which every kernel has that knows our programs.
//!
//! Source: `linux/rtnetlink.h`, `linux/pkt_sched.h`.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd},
};

use libbpf_rs::{ErrorKind, TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHook, TcHookBuilder};
use nix::sys::socket::SockProtocol;

use super::TrafficDirection;
use linux_net::netlink::{Netlink, NetlinkRequest};

/// First among filters: those after ours see frames as the stack does.
pub(crate) const PRIORITY: u32 = 1;
/// Ours among the filters of that priority.
pub(crate) const HANDLE: u32 = 0xe5a1;

/// What has our place: the number of a program, if one does.
pub(super) fn occupant(ifindex: i32, side: TrafficDirection) -> io::Result<Option<u32>> {
    let nothing = File::open("/dev/null")?;
    match hook(nothing.as_fd(), ifindex, side).query() {
        Ok(id) => Ok(Some(id)),
        // No filter of ours, or no clsact at all.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => Ok(None),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Puts a program in our place, instead of the one that is there.
pub(super) fn hang(program: BorrowedFd<'_>, ifindex: i32, side: TrafficDirection) -> libbpf_rs::Result<()> {
    let mut hook = hook(program, ifindex, side);
    hook.create()?;
    hook.attach().map(drop)
}

/// Takes the program in our place away, and clsact too if nobody is left there.
pub(super) fn take_down(ifindex: i32, side: TrafficDirection) -> libbpf_rs::Result<()> {
    let nothing = File::open("/dev/null")?;
    let mut hook = hook(nothing.as_fd(), ifindex, side);
    hook.detach()?;
    if TrafficDirection::BOTH.into_iter().all(|side| filters(ifindex, side).is_ok_and(|count| count == 0)) {
        // Somebody else's empty qdisc, or one that went meanwhile, is no failure of ours.
        let _ = hook.attach_point(TC_INGRESS | TC_EGRESS).destroy();
    }
    Ok(())
}

fn hook(program: BorrowedFd<'_>, ifindex: i32, side: TrafficDirection) -> TcHook {
    TcHookBuilder::new(program).ifindex(ifindex).replace(true).handle(HANDLE).priority(PRIORITY).hook(point(side))
}

fn point(side: TrafficDirection) -> TcAttachPoint {
    match side {
        TrafficDirection::In => TC_INGRESS,
        TrafficDirection::Out => TC_EGRESS,
    }
}

/// How many filters a side of a device has, whoever's.
fn filters(ifindex: i32, side: TrafficDirection) -> io::Result<usize> {
    let parent = match side {
        TrafficDirection::In => 0xffff_fff2,
        TrafficDirection::Out => 0xffff_fff3,
    };
    // struct tcmsg: family, index, handle, parent, info.
    let body = [0, ifindex as u32, 0, parent, 0].into_iter().flat_map(u32::to_ne_bytes).collect();
    let request = NetlinkRequest { kind: libc::RTM_GETTFILTER, flags: 0, body };
    Ok(Netlink::open(SockProtocol::NetlinkRoute)?.dump(&request)?.len())
}
