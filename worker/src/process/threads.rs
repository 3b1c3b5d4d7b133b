//! The number of threads that this process has: some things can be done only before there are others.

use std::{fs, io, path::Path};

/// The place where the kernel lists them.
pub(crate) const LIST: &str = "/proc/self/task";

/// How many there are.
///
/// # Errors
/// Where `/proc` is not mounted: that nobody can count them does not make them one.
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
