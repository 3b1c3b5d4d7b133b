//! The system calls on process descriptors that nix lacks.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
};

/// Opens a descriptor for the process `pid`, which becomes readable once the process has ended.
#[expect(unsafe_code, reason = "nix has no pidfd_open")]
pub(crate) fn open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointer; a non-negative result is a new descriptor nobody
    // else owns.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// Duplicates the descriptor `number` of another process into this process.
#[expect(unsafe_code, reason = "nix has no pidfd_getfd")]
pub(crate) fn file_of(process: BorrowedFd<'_>, number: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointer; a non-negative result is a new descriptor nobody
    // else owns.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// Sends a signal to the process of the descriptor, and to no later one with the same PID.
#[expect(unsafe_code, reason = "nix has no pidfd_send_signal")]
pub(crate) fn send_signal(fd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    // SAFETY: a null siginfo is allowed and means the same as kill(2).
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            fd.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
