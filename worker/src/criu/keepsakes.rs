//! State of a task that CRIU loses: recorded while the task is stopped for its dump, and set again before its first
//! instruction after the restore.
//!
//! This state is: the cores that a thread has bound itself to (criu#2014), and periodic timers of timerfd_create(2)
//! that had expired and were not read yet; after a restore these would never expire again (criu#3162).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::fd::{AsFd as _, AsRawFd as _},
    path::PathBuf,
};

use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};
use serde::{Deserialize, Serialize};

use super::status::ThreadStatus;
use crate::process::pidfd;

/// Most threads, and most timers, of a task that are recorded or restored.
const MOST: usize = 4096;
/// The text of the link in `/proc` for a descriptor of timerfd_create(2).
const TIMER: &str = "anon_inode:[timerfd]";

/// State of a task that CRIU loses and that is set again after a restore. Processes and threads have the numbers of
/// the task's own PID namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskKeepsakes {
    /// The threads that have bound themselves to some cores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bound: Vec<BoundThread>,
    /// The timers that had run out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<ExpiredTimer>,
}

/// A thread that runs on some of the cores that its task may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundThread {
    /// The thread's number in the task's PID namespace.
    pub thread: u32,
    /// The numbers of the host's cores on which the thread may run.
    pub cores: Vec<u16>,
}

/// A periodic timer that had run out and was not read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpiredTimer {
    /// The number of a process that has the timer open, in the task's PID namespace.
    pub process: u32,
    /// The number of the timer's descriptor in that process.
    pub fd: i32,
    /// Number of times that the timer had expired since it was read.
    pub ticks: u64,
    /// The period of the timer, in nanoseconds.
    pub period_ns: u64,
}

impl TaskKeepsakes {
    /// Records the state that CRIU loses of a stopped task: `first` is the task's first process, and `processes` has all of its
    /// processes. What can't be read of a process that has just ended is left out.
    #[must_use]
    pub fn of_task(first: i32, processes: &BTreeSet<i32>) -> Self {
        let common = sched_getaffinity(Pid::from_raw(first)).ok();
        let namespace = pid_namespace(first);
        let (mut bound, mut timers) = (Vec::new(), Vec::new());
        let own = |pid: &&i32| namespace.is_some() && pid_namespace(**pid) == namespace;
        for &pid in processes.iter().filter(own) {
            for thread in thread_ids(pid) {
                // The first process binds itself to nothing: what it has it was given.
                let cores = sched_getaffinity(Pid::from_raw(thread)).ok();
                if let Some(cores) = cores.filter(|cores| Some(*cores) != common)
                    && let Some(thread) = own_number(thread)
                {
                    bound.push(BoundThread { thread, cores: numbers_of(&cores) });
                }
            }
            // Threads share descriptors, nearly always.
            timers.extend(own_number(pid).into_iter().flat_map(|own| expired_timers(pid, own)));
        }
        bound.truncate(MOST);
        timers.truncate(MOST);
        Self { bound, timers }
    }

    /// Returns whether CRIU loses nothing of the task.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bound.is_empty() && self.timers.is_empty()
    }

    /// Sets the recorded state again for a restored task that hasn't run yet and whose processes are among `processes`; returns in
    /// words what failed.
    #[must_use]
    pub fn put_back(&self, processes: &BTreeSet<i32>) -> Vec<String> {
        if self.is_empty() {
            return Vec::new();
        }
        // CRIU's own processes are not a PID namespace below the worker's.
        let depth = ThreadStatus::of_task("self").map_or(1, |own| own.numbers.len());
        let known = processes.iter().flat_map(|pid| thread_ids(*pid)).filter_map(|thread| {
            let numbers = ThreadStatus::of_task(&thread.to_string()).ok()?.numbers;
            numbers.get(depth).map(|own| (*own, thread))
        });
        let known: BTreeMap<u32, i32> = known.collect();
        let here = |number: u32| known.get(&number).copied();
        let mut lost = Vec::new();
        for BoundThread { thread, cores } in self.bound.iter().take(MOST) {
            if let Err(why) = here(*thread).map_or(Ok(()), |thread| bind_thread(thread, cores)) {
                lost.push(format!("thread {thread} runs on any core and not on {cores:?}: {why}"));
            }
        }
        for timer in self.timers.iter().take(MOST) {
            if let Err(why) = here(timer.process).map_or(Ok(()), |pid| timer.arm_timer(pid)) {
                let ExpiredTimer { process, fd, period_ns, .. } = timer;
                lost.push(format!(
                    "the timer {fd} of process {process}, of {period_ns} ns, runs out no more: {why}"
                ));
            }
        }
        lost
    }
}

impl ExpiredTimer {
    /// Reads a timer from `/proc/PID/fdinfo`; `None` if it hasn't expired or isn't periodic.
    fn parse(process: u32, fd: i32, info: &str) -> Option<Self> {
        let of = |key: &str| info.lines().find_map(|line| line.strip_prefix(key));
        let time = |key: &str| -> Option<u64> {
            let (seconds, rest) = of(key)?.trim().strip_prefix('(')?.split_once(',')?;
            let ns: u64 = rest.trim().strip_suffix(')')?.parse().ok()?;
            seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(ns)
        };
        let (ticks, period_ns) = (of("ticks:")?.trim().parse().ok()?, time("it_interval:")?);
        let has_expired = ticks > 0 && time("it_value:")? == 0 && period_ns > 0;
        has_expired.then_some(Self { process, fd, ticks, period_ns })
    }

    /// Starts the timer of process `pid` again, from now on, with the same number of unread expirations.
    #[expect(unsafe_code, reason = "nix has no timers that are not its own, and not this ioctl")]
    fn arm_timer(self, pid: i32) -> io::Result<()> {
        /// The ioctl TFD_IOC_SET_TICKS (linux/timerfd.h), which sets a timerfd's unread expirations, on kernels with
        /// CONFIG_CHECKPOINT_RESTORE.
        const SET_TICKS: libc::Ioctl = 0x4008_5400;
        let timer = pidfd::file_of(pidfd::open(pid)?.as_fd(), self.fd)?;
        let timer = timer.as_raw_fd();
        let time = |ns: u64| libc::timespec {
            tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
        };
        let checked = |result: i32| match result {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        };
        let set = |first: u64| {
            let value =
                libc::itimerspec { it_interval: time(self.period_ns), it_value: time(first) };
            // SAFETY: both pointers are of this call, and null is allowed for what was before.
            checked(unsafe {
                libc::timerfd_settime(timer, 0, &raw const value, std::ptr::null_mut())
            })
        };
        let mut now = libc::itimerspec { it_interval: time(0), it_value: time(0) };
        // SAFETY: the kernel writes one such value.
        checked(unsafe { libc::timerfd_gettime(timer, &raw mut now) })?;
        if (now.it_value.tv_sec, now.it_value.tv_nsec) != (0, 0) {
            // CRIU has armed it.
            return Ok(());
        }
        set(self.period_ns)?;
        // SAFETY: the kernel reads one number.
        let ticked = checked(unsafe { libc::ioctl(timer, SET_TICKS, &raw const self.ticks) });
        // A kernel that can't set them has it run out at once.
        ticked.or_else(|_| set(1))
    }
}

fn bind_thread(thread: i32, cores: &[u16]) -> nix::Result<()> {
    let mut set = CpuSet::new();
    // Cores beyond what a set can hold are none of this host's.
    let _ = cores.iter().filter(|core| set.set(usize::from(**core)).is_err()).count();
    sched_setaffinity(Pid::from_raw(thread), &set)
}

fn numbers_of(cores: &CpuSet) -> Vec<u16> {
    let all = 0..u16::try_from(CpuSet::count()).unwrap_or(u16::MAX);
    all.filter(|core| cores.is_set(usize::from(*core)).unwrap_or(false)).collect()
}

/// Returns the number of a thread in its innermost PID namespace.
fn own_number(thread: i32) -> Option<u32> {
    ThreadStatus::of_task(&thread.to_string()).ok()?.numbers.last().copied()
}

fn pid_namespace(thread: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{thread}/ns/pid")).ok()
}

fn thread_ids(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn expired_timers(pid: i32, own: u32) -> Vec<ExpiredTimer> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let timers =
        entries.filter(|it| fs::read_link(it.path()).is_ok_and(|to| to.as_os_str() == TIMER));
    let read = timers.filter_map(|entry| {
        let fd = entry.file_name().to_str()?.parse().ok()?;
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
        ExpiredTimer::parse(own, fd, &info)
    });
    read.collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const EXPIRED: &str = "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t1060\nclockid: 1\nticks: 3\n\
        settime flags: 00\nit_value: (0, 0)\nit_interval: (1, 500)\n";

    #[test]
    fn only_a_periodic_timer_that_has_run_out_is_noted() {
        let timer = ExpiredTimer::parse(7, 4, EXPIRED).unwrap();
        assert_eq!(timer, ExpiredTimer { process: 7, fd: 4, ticks: 3, period_ns: 1_000_000_500 });
        for (from, to) in [
            ("it_value: (0, 0)", "it_value: (0, 9)"),
            ("it_interval: (1, 500)", "it_interval: (0, 0)"),
            // Its program has taken the time from it.
            ("ticks: 3", "ticks: 0"),
            ("ticks: 3", "ticks: many"),
            ("it_value: (0, 0)", "it_value: 0"),
        ] {
            assert_eq!(ExpiredTimer::parse(7, 4, &EXPIRED.replace(from, to)), None, "{to}");
        }
    }

    #[test]
    fn what_is_empty_says_nothing_and_reads_back() {
        let none = TaskKeepsakes::default();
        assert_eq!(serde_json::to_string(&none).unwrap(), "{}");
        assert_eq!(none.put_back(&BTreeSet::from([1])), Vec::<String>::new());
        let some = TaskKeepsakes {
            bound: vec![BoundThread { thread: 2, cores: vec![0, 3] }],
            timers: ExpiredTimer::parse(7, 4, EXPIRED).into_iter().collect(),
        };
        let json = serde_json::to_string(&some).unwrap();
        assert_eq!(serde_json::from_str::<TaskKeepsakes>(&json).unwrap(), some);
    }

    #[test]
    fn cores_are_those_of_this_thread() {
        let mine = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let numbers = numbers_of(&mine);
        assert!(!numbers.is_empty());
        bind_thread(0, &numbers).unwrap();
        assert_eq!(sched_getaffinity(Pid::from_raw(0)).unwrap(), mine);
        // None of these is here.
        bind_thread(0, &[u16::MAX]).unwrap_err();
    }
}
