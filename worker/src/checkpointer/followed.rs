//! Reading the pages of memory while CRIU writes them.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, Thread},
};

use crate::store;

/// Runs `work`, in which CRIU writes `images`, and reads the pages of the images at the same time.
pub(super) fn follow_images<T>(
    images: &Path,
    work: impl FnOnce() -> T,
) -> (T, BTreeMap<String, (u64, String)>) {
    /// Guard that, when dropped, tells the thread that reads the images to end, since that thread is waited for.
    struct FollowerEnd<'a>(&'a AtomicBool, &'a Thread);
    impl Drop for FollowerEnd<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
            self.1.unpark();
        }
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // Its digests are a saving only: where the host has no more threads it does without.
        let follow = || store::follow_pages(images, &done);
        let Ok(follower) = thread::Builder::new().spawn_scoped(scope, follow) else {
            return (work(), BTreeMap::new());
        };
        let worked = {
            let _done = FollowerEnd(&done, follower.thread());
            work()
        };
        (worked, follower.join().unwrap_or_default())
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{panic, sync::mpsc, time::Duration};

    use super::*;

    #[test]
    fn a_panic_is_heard_of_and_keeps_nobody_waiting() {
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let images = tempfile::tempdir().unwrap();
            let end = panic::catch_unwind(|| follow_images(images.path(), || panic!("a bug")));
            tell.send(end.is_err()).unwrap();
        });
        assert!(told.recv_timeout(Duration::from_secs(10)).unwrap());
    }
}
