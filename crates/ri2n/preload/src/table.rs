//! Something for each descriptor number, in pages that come into being when they are first needed.

use std::{
    mem, ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use libc::c_int;

use crate::errno::{errno, set_errno};

const PAGE_FDS: usize = 512;
/// Numbers from here on have no entry: 1,048,576, the usual hard limit.
const PAGES: usize = 2048;

type Page<T> = [T; PAGE_FDS];

/// A table whose entries begin as zeros, which must be a value of theirs.
pub(crate) struct Table<T: 'static>([AtomicPtr<Page<T>>; PAGES]);

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicPtr::new(ptr::null_mut()) }; PAGES])
    }

    /// The entry of a number, if its page is there.
    #[inline]
    pub(crate) fn find(&'static self, fd: c_int) -> Option<&'static T> {
        let fd = usize::try_from(fd).ok()?;
        let page = self.0.get(fd / PAGE_FDS)?.load(Ordering::Acquire);
        // SAFETY: pages are never unmapped once they are in the table, and zeros are entries.
        unsafe { page.as_ref() }.map(|page| &page[fd % PAGE_FDS])
    }

    /// The entry of a number.
    pub(crate) fn make(&'static self, fd: c_int) -> Option<&'static T> {
        let entry = self.0.get(usize::try_from(fd).ok()? / PAGE_FDS)?;
        if entry.load(Ordering::Acquire).is_null() {
            let page = new_page()?;
            if entry.compare_exchange(ptr::null_mut(), page, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: the page was mapped just now and nobody else knows it.
                unsafe { libc::munmap(page.cast(), mem::size_of::<Page<T>>()) };
            }
        }
        self.find(fd)
    }
}

/// Memory of the kernel, zeroed: the program's allocator may be in the middle of something.
fn new_page<T>() -> Option<*mut Page<T>> {
    let before = errno();
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh mapping.
    let page = unsafe { libc::mmap(ptr::null_mut(), mem::size_of::<Page<T>>(), protection, flags, -1, 0) };
    set_errno(before);
    (page != libc::MAP_FAILED).then_some(page.cast())
}
