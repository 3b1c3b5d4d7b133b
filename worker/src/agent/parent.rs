//! The process that started this worker, for as long as no other process knows of the worker.

use std::{future::pending, io, os::fd::OwnedFd};

use nix::unistd::getppid;

use super::watch::readable_pidfd;
use crate::process::pidfd;

/// Waits until `parent`, which should be this process's parent, has ended; for ever if that is `None`.
///
/// # Errors
///
/// The kernel doesn't report that the process has ended.
pub(crate) async fn wait_parent_end(parent: Option<i32>) -> io::Result<()> {
    let Some(parent) = parent else { return pending().await };
    let watched = open(parent)?;
    // It may have ended before, and its number be another's.
    if let (Some(watched), true) = (watched, getppid().as_raw() == parent) {
        readable_pidfd(watched)?.readable().await?.retain_ready();
    }
    Ok(())
}

/// Opens a process to wait for its end; `None` if it has ended.
fn open(process: i32) -> io::Result<Option<OwnedFd>> {
    match pidfd::open(process) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        opened => opened.map(Some),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_parent_that_lives_is_waited_for_and_one_that_is_none_is_not() {
        let soon = Duration::from_millis(50);
        let own = getppid().as_raw();
        assert!(timeout(soon, wait_parent_end(Some(own))).await.is_err(), "it lives");
        assert!(timeout(soon, wait_parent_end(None)).await.is_err(), "there is none");
        timeout(10 * soon, wait_parent_end(Some(i32::MAX))).await.unwrap().unwrap();
        let other = i32::try_from(std::process::id()).unwrap();
        timeout(10 * soon, wait_parent_end(Some(other))).await.unwrap().unwrap();
    }
}
