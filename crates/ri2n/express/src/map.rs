//! A block in memory that a broker and its programs share.

use std::{
    io,
    mem::size_of,
    ops::Deref,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr::{self, NonNull},
};

use crate::block::Block;

/// A mapped block, unmapped when it is dropped.
pub struct Map(NonNull<Block>);

// SAFETY: a block is made of atomics.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// A new block, and the descriptor by which others map it.
    ///
    /// # Errors
    /// If the kernel gives no memory.
    pub fn create(token_in: u64, token_out: u64) -> io::Result<(Self, OwnedFd)> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name ends with a zero; the descriptor is new.
        let file = unsafe { OwnedFd::from_raw_fd(check(libc::memfd_create(c"ri2n-express".as_ptr(), flags))?) };
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // A file that cannot shrink can be read without fear of SIGBUS.
        // SAFETY: no memory is involved.
        unsafe {
            check(libc::ftruncate(file.as_raw_fd(), size_of::<Block>() as libc::off_t))?;
            check(libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals))?;
        }
        let map = Self(map(file.as_raw_fd())?);
        map.set_up(token_in, token_out);
        Ok((map, file))
    }

    /// Maps the block of a broker; `None` if it is not one of this version.
    #[must_use]
    pub fn open(file: BorrowedFd<'_>) -> Option<Self> {
        // SAFETY: an empty structure is filled by the call.
        let length = unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            (libc::fstat(file.as_raw_fd(), &raw mut status) == 0).then_some(status.st_size)
        };
        if length != Some(size_of::<Block>() as libc::off_t) {
            return None;
        }
        let map = Self(map(file.as_raw_fd()).ok()?);
        map.is_known().then_some(map)
    }

    /// Gives up the mapping without unmapping it.
    #[must_use]
    pub fn into_raw(self) -> *mut Block {
        let block = self.0.as_ptr();
        std::mem::forget(self);
        block
    }

    /// Takes back what [`Self::into_raw`] gave.
    ///
    /// # Safety
    /// The pointer is from there, comes back once, and nobody uses the block any more when the map is dropped.
    #[must_use]
    pub unsafe fn from_raw(block: *mut Block) -> Option<Self> {
        NonNull::new(block).map(Self)
    }
}

impl Deref for Map {
    type Target = Block;

    fn deref(&self) -> &Block {
        // SAFETY: mapped as long as `self` is; zeros are a valid block.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Block>()) };
    }
}

fn map(file: libc::c_int) -> io::Result<NonNull<Block>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh mapping of a file that has this length.
    let at = unsafe { libc::mmap(ptr::null_mut(), size_of::<Block>(), protection, libc::MAP_SHARED, file, 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(at.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
