//! The kernel's report on a thread in `/proc/PID/status`.

use std::{fs, io};

/// The users, capabilities and system-call filters of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadStatus {
    /// State of the thread in one letter: `R` and `t` live, `Z` and `X` are dead.
    pub(crate) state: String,
    /// Real, effective, saved and file system user of the process, and then the four corresponding groups.
    pub(crate) users: Vec<u32>,
    pub(crate) groups: Vec<u32>,
    pub(crate) more_groups: Vec<u32>,
    /// Number of the thread in each of its PID namespaces, the outermost first.
    pub(crate) numbers: Vec<u32>,
    pub(crate) inheritable: u64,
    pub(crate) permitted: u64,
    pub(crate) effective: u64,
    pub(crate) bounding: u64,
    pub(crate) ambient: u64,
    pub(crate) no_new_privs: bool,
    /// Mode of the process's filter of system calls; 2 if the process has filters.
    pub(crate) seccomp: u32,
}

impl ThreadStatus {
    /// Reads the status of a thread; `task` is its name in `/proc`, such as `self` or `7/task/8`.
    ///
    /// # Errors
    ///
    /// There is no such thread, or the kernel reports something unknown.
    pub(crate) fn of_task(task: &str) -> io::Result<Self> {
        let text = fs::read_to_string(format!("/proc/{task}/status"))?;
        Self::parse(&text)
            .ok_or_else(|| io::Error::other(format!("/proc/{task}/status is not understood")))
    }

    /// Returns whether the thread is dead.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state.as_str(), "Z" | "X")
    }

    fn parse(text: &str) -> Option<Self> {
        let of = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            lines.find_map(|(name, value)| (name == key).then(|| value.trim()))
        };
        let numbers = |key: &str| -> Option<Vec<u32>> {
            of(key)?.split_whitespace().map(|number| number.parse().ok()).collect()
        };
        let set = |key: &str| u64::from_str_radix(of(key)?, 16).ok();
        Some(Self {
            state: of("State")?.split_whitespace().next()?.to_owned(),
            users: numbers("Uid")?,
            groups: numbers("Gid")?,
            more_groups: numbers("Groups")?,
            numbers: numbers("NSpid")?,
            inheritable: set("CapInh")?,
            permitted: set("CapPrm")?,
            effective: set("CapEff")?,
            bounding: set("CapBnd")?,
            ambient: set("CapAmb")?,
            no_new_privs: of("NoNewPrivs")? == "1",
            seccomp: of("Seccomp")?.parse().ok()?,
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_understood_and_half_a_status_is_not() {
        let own = ThreadStatus::of_task("self").unwrap();
        assert_eq!((own.users.len(), own.groups.len(), own.is_dead()), (4, 4, false));
        assert_eq!(own.users[1], nix::unistd::geteuid().as_raw());
        assert_eq!(own.effective & !own.permitted, 0);
        let text = fs::read_to_string("/proc/self/status").unwrap();
        let half = text.split("CapBnd").next().unwrap();
        assert_eq!((ThreadStatus::parse(&text).is_some(), ThreadStatus::parse(half)), (true, None));
    }
}
