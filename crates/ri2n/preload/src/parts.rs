//! A program's buffer, in one part or several.

use std::{ptr, slice};

use libc::{c_void, iovec, size_t};
use ri2n_express::{MESSAGE_MAX, Sink};

/// Parts of one call; the kernel refuses more.
const PARTS_MAX: usize = 1024;

/// Where a call puts what it received.
pub(crate) struct Parts<'a> {
    left: &'a [iovec],
    /// Of the first part that is left, bytes that are taken.
    taken: usize,
}

/// One part.
pub(crate) fn one(at: *mut c_void, count: size_t) -> [iovec; 1] {
    [iovec { iov_base: at, iov_len: count }]
}

/// The parts of a call; `None` leaves them to the kernel to refuse.
///
/// # Safety
/// As `readv(2)`.
pub(crate) unsafe fn of<'a>(parts: *const iovec, count: usize) -> Option<&'a [iovec]> {
    // SAFETY: the caller vouches for so many.
    (!parts.is_null() && count <= PARTS_MAX).then(|| unsafe { slice::from_raw_parts(parts, count) })
}

/// Bytes that parts hold.
pub(crate) fn length(parts: &[iovec]) -> usize {
    parts.iter().fold(0, |sum, part| sum.saturating_add(part.iov_len))
}

/// The bytes of one message in a row; `None` if they are none or too many.
///
/// # Safety
/// As `writev(2)`.
pub(crate) unsafe fn gather<'a>(parts: &[iovec], into: &'a mut [u8; MESSAGE_MAX]) -> Option<&'a [u8]> {
    let count = length(parts);
    if !(1..=MESSAGE_MAX).contains(&count) {
        return None;
    }
    let mut at = 0;
    for part in parts.iter().filter(|part| part.iov_len > 0) {
        // SAFETY: the caller vouches for the part, and all of them fit.
        unsafe { ptr::copy_nonoverlapping(part.iov_base.cast(), into[at..].as_mut_ptr(), part.iov_len) };
        at += part.iov_len;
    }
    Some(&into[..count])
}

impl<'a> Parts<'a> {
    /// # Safety
    /// The parts may be written to while this lives.
    pub(crate) unsafe fn new(parts: &'a [iovec]) -> Self {
        Self { left: parts, taken: 0 }
    }
}

impl Sink for Parts<'_> {
    fn room(&self) -> usize {
        length(self.left).saturating_sub(self.taken)
    }

    fn put(&mut self, mut bytes: &[u8]) {
        while let Some((part, rest)) = self.left.split_first().filter(|_| !bytes.is_empty()) {
            let count = bytes.len().min(part.iov_len - self.taken);
            // SAFETY: the part has room for so many bytes behind those that are taken.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), part.iov_base.cast::<u8>().add(self.taken), count) };
            self.taken += count;
            bytes = &bytes[count..];
            if self.taken == part.iov_len {
                (self.left, self.taken) = (rest, 0);
            }
        }
    }
}
