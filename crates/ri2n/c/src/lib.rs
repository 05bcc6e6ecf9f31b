//! RI2N for programs in C. `include/ri2n.h` says what each function does; a test holds the two against each other.
//!
//! A handle is a box that C never looks into: what it is to become (settings), a listener, or a connection. Calls
//! that wait hold no lock of the handle, so one thread may receive while another sends. Panics end here, as
//! [`code::BUG`].

pub mod code;

mod address;
mod handle;
mod option;

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    slice,
    time::Duration,
};

use libc::{size_t, sockaddr, socklen_t, ssize_t};

pub use handle::Handle;

/// Version of the library, as `RI2N_VERSION` of the header.
pub const VERSION: u32 = 0x00_01_00;

/// The flag that forbids waiting.
pub const DONTWAIT: c_int = 1;

/// As the header says.
#[unsafe(no_mangle)]
pub extern "C" fn ri2n_version() -> u32 {
    VERSION
}

/// As the header says.
#[unsafe(no_mangle)]
pub extern "C" fn ri2n_strerror(error: c_int) -> *const c_char {
    code::text(error).as_ptr()
}

/// As the header says.
///
/// # Safety
/// `socket` is null or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_socket(socket: *mut *mut Handle) -> c_int {
    guard(|| {
        if socket.is_null() {
            return Err(code::INVAL);
        }
        // SAFETY: the caller vouches for it.
        unsafe { *socket = Box::into_raw(Box::new(Handle::new())) };
        Ok(0)
    })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle; `file` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_configure(socket: *mut Handle, file: *const c_char) -> c_int {
    // SAFETY: the caller vouches for both.
    guard(|| unsafe { handle(socket)?.configure(text(file)?) })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle; `key` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_set_key(socket: *mut Handle, key: *const u8, length: size_t) -> c_int {
    // SAFETY: the caller vouches for both.
    guard(|| unsafe { handle(socket)?.set_key(bytes(key, length)?) })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_set(socket: *mut Handle, option: c_int, value: i64) -> c_int {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { handle(socket)?.set(option, value) })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle; `value` is null or has room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_get(socket: *mut Handle, option: c_int, value: *mut i64) -> c_int {
    guard(|| {
        if value.is_null() {
            return Err(code::INVAL);
        }
        // SAFETY: the caller vouches for both.
        unsafe { *value = handle(socket)?.get(option)? };
        Ok(0)
    })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle; `address` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_bind(socket: *mut Handle, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller vouches for both.
    guard(|| unsafe { handle(socket)?.bind(address::read(address, length)?) })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_listen(socket: *mut Handle) -> c_int {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { handle(socket)?.listen() })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle; `connection` is null or has room; `address` and `length` are null or as for `accept(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_accept(
    socket: *mut Handle,
    connection: *mut *mut Handle,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    guard(|| {
        // Looked at before anything is accepted, or a connection would be lost to a mistake.
        if connection.is_null() || flags & !DONTWAIT != 0 || !address.is_null() && length.is_null() {
            return Err(code::INVAL);
        }
        // SAFETY: the caller vouches for all of them.
        unsafe {
            let (accepted, peer) = handle(socket)?.accept(flags & DONTWAIT != 0)?;
            if !address.is_null() {
                address::write(peer, address, length)?;
            }
            *connection = Box::into_raw(Box::new(accepted));
        }
        Ok(0)
    })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle; `address` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_connect(socket: *mut Handle, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller vouches for both.
    guard(|| unsafe { handle(socket)?.connect(address::read(address, length)?) })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle; `from` has `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_send(socket: *mut Handle, from: *const c_void, count: size_t, flags: c_int) -> ssize_t {
    guard(|| {
        if flags & !DONTWAIT != 0 {
            return Err(code::INVAL);
        }
        // SAFETY: the caller vouches for both.
        unsafe { handle(socket)?.send(bytes(from.cast(), count)?, flags & DONTWAIT != 0) }
    })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle; `into` has room for `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_recv(socket: *mut Handle, into: *mut c_void, count: size_t, flags: c_int) -> ssize_t {
    guard(|| {
        if into.is_null() && count > 0 || count > isize::MAX as usize || flags & !DONTWAIT != 0 {
            return Err(code::INVAL);
        }
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: the caller vouches for both. Memory that comes from C holds some bytes, whatever they are: what C did not
        // write, nobody here can know. They are only written to.
        unsafe { handle(socket)?.receive(slice::from_raw_parts_mut(into.cast(), count), flags & DONTWAIT != 0) }
    })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_shutdown(socket: *mut Handle, how: c_int) -> c_int {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { handle(socket)?.shutdown(how) })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_flush(socket: *mut Handle, timeout_ms: i64) -> c_int {
    let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { handle(socket)?.flush(timeout) })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle; `address` and `length` are null or as for `getsockname(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_getsockname(
    socket: *mut Handle,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller vouches for all of them.
    guard(|| unsafe { address::write(handle(socket)?.local()?, address, length) })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle; `address` and `length` are null or as for `getpeername(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_getpeername(
    socket: *mut Handle,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller vouches for all of them.
    guard(|| unsafe { address::write(handle(socket)?.peer()?, address, length) })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_receive_descriptor(socket: *mut Handle) -> c_int {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { handle(socket)?.receive_descriptor() })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_send_descriptor(socket: *mut Handle) -> c_int {
    // SAFETY: the caller vouches for it.
    guard(|| unsafe { handle(socket)?.send_descriptor() })
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle, which nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_close(socket: *mut Handle) -> c_int {
    // SAFETY: the caller gives the handle up.
    guard(|| unsafe { take(socket) }.map(|_| 0))
}

/// As the header says.
///
/// # Safety
/// `socket` is null or a handle, which nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_abort(socket: *mut Handle) -> c_int {
    guard(|| {
        // SAFETY: the caller gives the handle up.
        unsafe { take(socket) }?.abort();
        Ok(0)
    })
}

/// As the header says.
///
/// # Safety
/// `program` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ri2n_serve_status(program: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: the caller vouches for it.
        let serving =
            ri2n_status::serve(&ri2n_status::directory(), unsafe { text(program)? }, ri2n_status::Plain::default);
        // It serves as long as the process lives; a socket that is left behind is removed by the next who asks.
        std::mem::forget(serving.map_err(|error| code::of(&error))?);
        Ok(0)
    })
}

/// What functions return: a count, or a code.
trait Returned: From<i16> {}
impl Returned for c_int {}
impl Returned for ssize_t {}

/// Turns failures and panics into codes.
fn guard<T: Returned>(call: impl FnOnce() -> Result<T, c_int>) -> T {
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(code::BUG));
    result.unwrap_or_else(|code| T::from(code as i16))
}

/// # Safety
/// `socket` is null or a handle.
unsafe fn handle<'a>(socket: *mut Handle) -> Result<&'a Handle, c_int> {
    // SAFETY: the caller vouches for it.
    unsafe { socket.as_ref() }.ok_or(code::INVAL)
}

/// # Safety
/// `socket` is null or a handle, which nobody uses any more.
unsafe fn take(socket: *mut Handle) -> Result<Box<Handle>, c_int> {
    if socket.is_null() {
        return Err(code::INVAL);
    }
    // SAFETY: it came from `Box::into_raw`, and the caller gives it up.
    Ok(unsafe { Box::from_raw(socket) })
}

/// # Safety
/// `from` is null or has `count` bytes.
unsafe fn bytes<'a>(from: *const u8, count: size_t) -> Result<&'a [u8], c_int> {
    match count {
        0 => Ok(&[]),
        _ if from.is_null() || count > isize::MAX as usize => Err(code::INVAL),
        // SAFETY: the caller vouches for it.
        _ => Ok(unsafe { slice::from_raw_parts(from, count) }),
    }
}

/// # Safety
/// `from` is null or a string.
unsafe fn text<'a>(from: *const c_char) -> Result<&'a str, c_int> {
    if from.is_null() {
        return Err(code::INVAL);
    }
    // SAFETY: the caller vouches for it.
    unsafe { CStr::from_ptr(from) }.to_str().map_err(|_| code::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    #[test]
    fn panics_become_codes() {
        std::panic::set_hook(Box::new(|_| ()));
        assert_eq!(guard::<c_int>(|| panic!("on purpose")), code::BUG);
        let _ = std::panic::take_hook();
        assert_eq!(guard::<ssize_t>(|| Err(code::PIPE)), code::PIPE as ssize_t);
    }

    #[test]
    fn null_is_refused() {
        // SAFETY: null is what every function must take.
        unsafe {
            let null = ptr::null_mut();
            assert_eq!(ri2n_socket(ptr::null_mut()), code::INVAL);
            assert_eq!(ri2n_listen(null), code::INVAL);
            assert_eq!(ri2n_close(null), code::INVAL);
            assert_eq!(ri2n_send(null, ptr::null(), 1, 0), code::INVAL as ssize_t);
        }
    }
}
