//! The number of threads that this process has: some things can be done only before there are others.

use std::{fs, io, path::Path};

/// Directory in which the kernel lists the threads of this process.
pub(crate) const LIST: &str = "/proc/self/task";

/// Returns the number of threads.
///
/// # Errors
///
/// `/proc` isn't mounted. Threads that can't be counted are never taken for a single one.
pub(crate) fn count_threads() -> io::Result<usize> {
    count_in(Path::new(LIST))
}

fn count_in(list: &Path) -> io::Result<usize> {
    fs::read_dir(list)?.try_fold(0, |count, thread| thread.map(|_| count + 1))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn threads_that_cannot_be_counted_are_an_error() {
        // The harness has one beside that of the test.
        assert!(count_threads().unwrap() > 1);
        let nowhere = count_in(Path::new("/nowhere/task")).unwrap_err();
        assert_eq!(nowhere.kind(), io::ErrorKind::NotFound);
    }
}
