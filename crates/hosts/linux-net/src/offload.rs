//! Turns off what lets several frames travel as one.
//!
//! Source: `linux/ethtool.h`.

use std::{ffi::c_char, io, os::fd::AsRawFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_SGRO: u32 = 0x2c;

#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Turns TSO, GSO and GRO off on devices of the calling thread's namespace.
///
/// # Errors
/// If a device is missing or refuses.
pub fn disable<'a>(devices: impl Iterator<Item = &'a str>) -> io::Result<()> {
    let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    for device in devices {
        for command in [ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO] {
            let mut value = Value { command, data: 0 };
            // SAFETY: all-zero bytes are a valid ifreq.
            let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
            // The last byte stays zero.
            for (slot, byte) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(device.bytes()) {
                *slot = byte as c_char;
            }
            request.ifr_ifru.ifru_data = (&raw mut value).cast();
            // SAFETY: the request points to a value of the layout that these commands read, and both outlive the call.
            if unsafe { libc::ioctl(control.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}
