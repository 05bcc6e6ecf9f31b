//! Whose memory this is: a child after `vfork` has its parent's, with descriptors of its own.
//!
//! A page that the kernel empties in a child after `fork` (`MADV_WIPEONFORK`) holds the number of the process that wrote it.

use std::{
    ptr,
    sync::atomic::{AtomicI32, AtomicPtr, Ordering::SeqCst},
};

use libc::c_int;

const PAGE_BYTES: usize = 4096;

static MARK: AtomicPtr<AtomicI32> = AtomicPtr::new(ptr::null_mut());

pub(crate) fn id() -> c_int {
    // SAFETY: no memory is involved.
    unsafe { libc::getpid() }
}

/// Writes the number of this process into the page.
pub(crate) fn mark() {
    if MARK.load(SeqCst).is_null() {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh mapping, which is given up again unless it is kept.
        unsafe {
            let page = libc::mmap(ptr::null_mut(), PAGE_BYTES, protection, flags, -1, 0);
            if page == libc::MAP_FAILED {
                return;
            }
            let is_kept = libc::madvise(page, PAGE_BYTES, libc::MADV_WIPEONFORK) == 0
                && MARK.compare_exchange(ptr::null_mut(), page.cast(), SeqCst, SeqCst).is_ok();
            if !is_kept {
                libc::munmap(page, PAGE_BYTES);
            }
        }
    }
    if let Some(mark) = marked() {
        mark.store(id(), SeqCst);
    }
}

/// Whether what process `owner` noted in this memory is still its own: whether this is another process that shares it. True in every
/// other process where the kernel empties no pages.
pub(crate) fn is_borrowed(owner: c_int) -> bool {
    owner != id() && marked().is_none_or(|mark| mark.load(SeqCst) == owner)
}

fn marked() -> Option<&'static AtomicI32> {
    // SAFETY: the page is never unmapped once it is there, and zeros are an entry.
    unsafe { MARK.load(SeqCst).as_ref() }
}
