//! Waiting for the ends of processes as events.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use tokio::io::{Interest, unix::AsyncFd};

use crate::process::ChildProcess;

/// Calls `ended` once a process has ended; the process must still be reaped.
///
/// # Errors
///
/// There are no file descriptors left.
pub(crate) fn watch_end(
    process: &ChildProcess,
    ended: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let pidfd = process.as_fd().try_clone_to_owned().and_then(readable_pidfd)?;
    tokio::spawn(async move {
        // An error is as good a reason to have a look.
        let _ = pidfd.readable().await;
        ended();
    });
    Ok(())
}

/// Makes a process's descriptor readable by the runtime, to wait for its end.
#[expect(unsafe_code, reason = "registering a descriptor is a promise about its lifetime")]
pub(crate) fn readable_pidfd(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd is open and the same for as long as it lives, and it moves in here.
    let watched = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) };
    watched.map_err(Into::into)
}
