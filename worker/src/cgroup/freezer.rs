//! Freezing a group, and knowing when it really is frozen.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{CgroupError, Result, file};

/// Time at which a freeze or thaw was requested, and time at which it took effect.
#[derive(Debug, Clone, Copy)]
pub struct FreezeTimes {
    /// Time at which the freeze or thaw was requested.
    pub asked_at: Instant,
    /// Time at which the freeze or thaw was seen to have taken effect.
    pub took_effect_at: Instant,
}

impl FreezeTimes {
    /// Returns the time from the request to freeze or thaw until it took effect.
    #[must_use]
    pub fn latency(&self) -> Duration {
        self.took_effect_at - self.asked_at
    }
}

/// Returns whether every task of the group is stopped now. (A request alone, which version 2's `cgroup.freeze` and
/// version 1's `FREEZING` show, doesn't count.)
pub(crate) fn is_frozen(path: &Path, v2: bool) -> Result<bool> {
    Ok(read_state(path, v2)?.0)
}

fn read_state(path: &Path, v2: bool) -> Result<(bool, String)> {
    if v2 {
        let frozen = file::read_key(&path.join("cgroup.events"), "frozen")? == 1;
        return Ok((frozen, format!("frozen {}", u8::from(frozen))));
    }
    let state = file::read(&path.join("freezer.state"))?.trim().to_owned();
    Ok((state == "FROZEN", state))
}

pub(crate) fn set_frozen(
    path: &Path,
    v2: bool,
    frozen: bool,
    deadline: Duration,
) -> Result<FreezeTimes> {
    let asked_at = Instant::now();
    let watched = watched_file(path, v2);
    file::wait_until(
        deadline,
        || {
            // Written again at each step: a task that forked at the wrong moment can leave a
            // version 1 group in FREEZING for good.
            request_state(path, v2, frozen)?;
            let (is, state) = read_state(path, v2)?;
            // A version 1 group thaws from FREEZING or FROZEN by way of nothing.
            Ok(if is == frozen { Ok(()) } else { Err(state) })
        },
        |last, after| CgroupError::Late {
            path: watched,
            wanted: if frozen { "frozen" } else { "thawed" },
            last,
            after,
        },
    )?;
    Ok(FreezeTimes { asked_at, took_effect_at: Instant::now() })
}

/// Requests that a group is frozen or thawed, and does not wait until it is.
pub(crate) fn request_state(path: &Path, v2: bool, frozen: bool) -> Result<()> {
    match (v2, frozen) {
        (true, true) => file::write(&path.join("cgroup.freeze"), "1"),
        (true, false) => file::write(&path.join("cgroup.freeze"), "0"),
        (false, true) => file::write(&path.join("freezer.state"), "FROZEN"),
        (false, false) => file::write(&path.join("freezer.state"), "THAWED"),
    }
}

fn watched_file(path: &Path, v2: bool) -> PathBuf {
    path.join(if v2 { "cgroup.events" } else { "freezer.state" })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::{fs, thread};

    #[test]
    fn version_2_waits_for_the_fact() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("cgroup.freeze"), "0").unwrap();
        fs::write(at("cgroup.events"), "populated 1\nfrozen 0\n").unwrap();
        let error = set_frozen(dir.path(), true, true, Duration::from_millis(5)).unwrap_err();
        assert!(error.to_string().contains("last state: frozen 0"), "{error}");
        // The kernel's part: once the wish is written, the fact follows.
        let (freeze, events) = (at("cgroup.freeze"), at("cgroup.events"));
        fs::write(&freeze, "0").unwrap();
        let kernel = thread::spawn(move || {
            let end = Instant::now() + Duration::from_secs(10);
            while fs::read_to_string(&freeze).unwrap() != "1" && Instant::now() < end {
                thread::yield_now();
            }
            let next = events.with_extension("next");
            fs::write(&next, "populated 1\nfrozen 1\n").unwrap();
            fs::rename(next, events).unwrap();
        });
        set_frozen(dir.path(), true, true, Duration::from_secs(10)).unwrap();
        kernel.join().unwrap();
        assert!(is_frozen(dir.path(), true).unwrap());
    }

    #[test]
    fn version_1_writes_and_reads_the_state() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("freezer.state"), "THAWED\n").unwrap();
        set_frozen(dir.path(), false, true, Duration::from_secs(1)).unwrap();
        assert!(is_frozen(dir.path(), false).unwrap());
        set_frozen(dir.path(), false, false, Duration::from_secs(1)).unwrap();
        assert!(!is_frozen(dir.path(), false).unwrap());
    }
}
