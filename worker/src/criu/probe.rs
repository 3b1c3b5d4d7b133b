//! What a CRIU can do on this kernel.

use std::{fmt, path::PathBuf, time::Duration};

use super::{CriuError, Result};

/// A CRIU version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CriuRelease {
    /// The first number of CRIU's version.
    pub major: u32,
    /// The second number of CRIU's version.
    pub minor: u32,
    /// The third number of CRIU's version.
    pub sublevel: u32,
}

impl fmt::Display for CriuRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.sublevel)
    }
}

/// Result of [`Criu::probe_host`](super::Criu::probe_host).
#[derive(Debug)]
pub struct CriuProbe {
    /// The program probed.
    pub program: PathBuf,
    /// The program's version; `None` where it could not be started.
    pub version: Option<CriuRelease>,
    /// Result of `criu check`, or why the program doesn't even start.
    pub check: Result<()>,
    /// True if dumps relative to an earlier one are possible (`CONFIG_MEM_SOFT_DIRTY`).
    pub mem_track: bool,
    /// True if CRIU can restore memory pages on demand (lazy pages).
    pub lazy_pages: bool,
    /// True if CRIU can identify processes by pidfds.
    pub pidfd_store: bool,
}

impl CriuProbe {
    /// Returns whether checkpoints can be taken.
    #[must_use]
    pub fn usable(&self) -> bool {
        self.check.is_ok()
    }
}

/// Calls `ask` with a deadline; if CRIU is late, calls it again with twice, and then four times the time.
pub(super) fn unless_late<T>(deadline: Duration, ask: impl Fn(Duration) -> Result<T>) -> Result<T> {
    for deadline in [deadline, 2 * deadline] {
        match ask(deadline) {
            Err(CriuError::Late { .. }) => {}
            answer => return answer,
        }
    }
    ask(4 * deadline)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::criu::error::LogTail;

    #[test]
    fn a_late_criu_is_asked_again_and_one_that_fails_is_not() {
        let late = |after| Err(CriuError::Late { call: "check", after, log: LogTail::default() });
        let asked = |answer: &dyn Fn(usize, Duration) -> Result<()>| {
            let deadlines = RefCell::new(Vec::new());
            let got = unless_late(Duration::from_secs(1), |deadline| {
                deadlines.borrow_mut().push(deadline.as_secs());
                let times = deadlines.borrow().len();
                answer(times, deadline)
            });
            (got, deadlines.into_inner())
        };
        let (got, deadlines) = asked(&|_, deadline| late(deadline));
        assert!(
            matches!(got, Err(CriuError::Late { .. })) && deadlines == [1, 2, 4],
            "{deadlines:?}"
        );
        let (got, deadlines) = asked(&|times, after| if times == 2 { Ok(()) } else { late(after) });
        assert!(got.is_ok() && deadlines == [1, 2], "{got:?} {deadlines:?}");
        let refuses = || Err(CriuError::Protocol { call: "check", what: "nonsense".to_owned() });
        let (got, deadlines) = asked(&|_, _| refuses());
        assert!(
            matches!(got, Err(CriuError::Protocol { .. })) && deadlines == [1],
            "{deadlines:?}"
        );
    }
}
