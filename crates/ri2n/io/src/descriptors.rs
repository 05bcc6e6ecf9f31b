//! Descriptors that stay open, under their numbers, across execve(2).

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
};

use serde::{Deserialize, Serialize};

/// Keeps descriptors open across execve(2). Dropping it undoes that.
#[derive(Debug, Default)]
pub struct Descriptors(Vec<RawFd>);

/// The number of a kept descriptor, for the program that execve(2) starts.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedDescriptor(RawFd);

impl Descriptors {
    /// Clears FD_CLOEXEC of a descriptor and returns its number.
    ///
    /// # Errors
    /// If it is not open.
    pub fn keep(&mut self, descriptor: BorrowedFd<'_>) -> io::Result<SavedDescriptor> {
        let number = descriptor.as_raw_fd();
        close_on_exec(number, false)?;
        self.0.push(number);
        Ok(SavedDescriptor(number))
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        for number in &self.0 {
            // It may have been closed meanwhile.
            let _ = close_on_exec(*number, true);
        }
    }
}

impl SavedDescriptor {
    /// Takes ownership of a descriptor that the earlier program of this process kept.
    ///
    /// # Errors
    /// If it is not open.
    pub fn take(self) -> io::Result<OwnedFd> {
        close_on_exec(self.0, true)?;
        // SAFETY: it is open; its owner was the earlier program of this process, which saved its number once.
        Ok(unsafe { OwnedFd::from_raw_fd(self.0) })
    }
}

fn close_on_exec(number: RawFd, closes: bool) -> io::Result<()> {
    let flags = if closes { libc::FD_CLOEXEC } else { 0 };
    // SAFETY: no memory is involved.
    let result = unsafe { libc::fcntl(number, libc::F_SETFD, flags) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs::File, os::fd::AsFd};

    fn closes_on_exec(descriptor: BorrowedFd<'_>) -> bool {
        // SAFETY: no memory is involved.
        unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFD) == libc::FD_CLOEXEC }
    }

    #[test]
    fn what_is_kept_stays_open_until_nobody_wants_it() {
        let file = File::open("/dev/null").unwrap();
        let mut descriptors = Descriptors::default();
        let saved = descriptors.keep(file.as_fd()).unwrap();
        assert!(!closes_on_exec(file.as_fd()));
        std::mem::forget(file);
        let taken = saved.take().unwrap();
        assert!(closes_on_exec(taken.as_fd()));
        let again = descriptors.keep(taken.as_fd());
        assert!(again.is_ok() && !closes_on_exec(taken.as_fd()));
        drop(descriptors);
        assert!(closes_on_exec(taken.as_fd()));
    }
}
