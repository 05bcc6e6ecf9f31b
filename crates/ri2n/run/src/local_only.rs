//! Keeps other machines' plain TCP away from listeners where only RI2N may reach them.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use libbpf_rs::libbpf_sys;
use ri2n_session::LOCAL_ONLY;

/// Has a listener take connections of this machine alone; those of others wait in vain, as behind a firewall that drops.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn attach_to_socket(listener: BorrowedFd<'_>) -> io::Result<()> {
    let mut steps = LOCAL_ONLY.map(|(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k });
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the program and its steps outlive the call, which copies them.
    let result = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of_val(&program) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The same for every listener of a control group, as long as the descriptor that comes back is open.
///
/// ```text
///  if (skb->sk && skb->ifindex != 1 && skb->sk->state == LISTEN) drop; else pass
/// ```
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn attach_to_group(group: BorrowedFd<'_>) -> io::Result<[OwnedFd; 2]> {
    // Offsets in `struct __sk_buff` and `struct bpf_sock` of linux/bpf.h, which are part of the kernel's interface.
    const SKB_IFINDEX: i16 = 40;
    const SKB_SOCKET: i16 = 168;
    const SOCKET_STATE: i16 = 72;
    const LOOPBACK: i32 = 1;
    const LISTEN: i32 = 10;
    let step = |code: u8, registers: u8, off: i16, imm: i32| {
        let mut step = libbpf_sys::bpf_insn { code, off, imm, ..Default::default() };
        step.set_dst_reg(registers & 15);
        step.set_src_reg(registers >> 4);
        step
    };
    // BPF_LDX | BPF_MEM | BPF_W and BPF_DW; BPF_JMP | BPF_JEQ | BPF_K; BPF_ALU64 | BPF_MOV | BPF_K; BPF_EXIT.
    let (word, double, equal, set, exit) = (0x61, 0x79, 0x15, 0xb7, 0x95);
    let steps = [
        step(word, 0x12, SKB_IFINDEX, 0),
        step(equal, 0x02, 5, LOOPBACK),
        step(double, 0x12, SKB_SOCKET, 0),
        step(equal, 0x02, 3, 0),
        step(word, 0x23, SOCKET_STATE, 0),
        step(set, 0x00, 0, 0),
        step(equal, 0x03, 1, LISTEN),
        step(set, 0x00, 0, 1),
        step(exit, 0x00, 0, 0),
    ];
    // SAFETY: the instructions and names outlive the calls, and descriptors that come back are ours.
    unsafe {
        let program = libbpf_sys::bpf_prog_load(
            libbpf_sys::BPF_PROG_TYPE_CGROUP_SKB,
            c"ri2n_local_only".as_ptr(),
            c"Dual MIT/GPL".as_ptr(),
            steps.as_ptr(),
            steps.len() as _,
            std::ptr::null_mut(),
        );
        let program = owned(program)?;
        let link = libbpf_sys::bpf_link_create(
            program.as_raw_fd(),
            group.as_raw_fd(),
            libbpf_sys::BPF_CGROUP_INET_INGRESS,
            std::ptr::null(),
        );
        Ok([owned(link)?, program])
    }
}

/// # Safety
/// A descriptor that is not negative is open, and nobody else's.
unsafe fn owned(descriptor: i32) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        // libbpf returns the error number.
        return Err(io::Error::from_raw_os_error(-descriptor));
    }
    // SAFETY: as the caller says.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        os::fd::AsFd,
        time::Duration,
    };

    use super::*;

    #[test]
    fn this_machine_still_gets_in() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        attach_to_socket(listener.as_fd()).unwrap();
        let address = listener.local_addr().unwrap();
        TcpStream::connect_timeout(&address, Duration::from_secs(5)).unwrap();
        listener.accept().unwrap();
    }
}
