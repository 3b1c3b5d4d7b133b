//! Memory, open files and threads of a process, as the kernel reports them.

use std::fmt;
use std::fs;

/// Number of open files and threads, and memory, of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vitals {
    pub(super) files: u64,
    pub(super) memory_kib: u64,
    pub(super) threads: u64,
}

impl Vitals {
    /// The figures of the process `pid`; `None` once the process is gone.
    pub(super) fn read(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let number = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
        Some(Self {
            files: u64::try_from(files).ok()?,
            memory_kib: number("VmRSS:")?,
            threads: number("Threads:")?,
        })
    }

    /// The figures that have grown since `first` by more than work in progress explains: 16 open files, 8 threads, or
    /// memory that has doubled and grown by 32 MiB; `None` if none has.
    pub(super) fn grown_since(self, first: Self) -> Option<String> {
        let has_doubled = self.memory_kib > 2 * first.memory_kib;
        let grown = self.files > first.files + 16
            || self.threads > first.threads + 8
            || (has_doubled && self.memory_kib > first.memory_kib + 32 * 1024);
        grown.then(|| format!("grew from {first} to {self}"))
    }
}

impl fmt::Display for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, memory_kib, threads } = self;
        write!(f, "{files} files, {memory_kib} KiB, {threads} threads")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_holds_one_file_more_once_it_has_opened_one() {
        let own = || Vitals::read(std::process::id()).expect("its own");
        let mut held = Vec::new();
        let first = own();
        held.extend((0..60).map(|_| fs::File::open("/dev/null").expect("a file")));
        let last = own();
        assert!(last.files >= first.files + 40, "{first} and {last}");
        assert!(last.grown_since(first).is_some_and(|why| why.contains("files")));
        assert_eq!(first.grown_since(first), None);
    }
}
