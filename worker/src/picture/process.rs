//! The facts of a process and its threads.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read as _, Seek as _, SeekFrom},
};

use dormouse_units::one_line;
use nix::{
    sched::{CpuSet, sched_getaffinity},
    unistd::Pid,
};
use serde::{Deserialize, Serialize};

use super::descriptor::{self, SharedObjects};
use crate::jail::path_inside;

/// The kernel's report on a process and its threads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessPicture {
    /// The name of the process, as `ps` has it.
    pub name: String,
    /// What the kernel reports about the process, by names such as `descriptor 5` or `thread 12: nice`.
    pub facts: BTreeMap<String, String>,
}

/// Text for a fact that can't be read while the task is stopped; it doesn't count as a difference.
pub(super) const UNKNOWN: &str = "not known";
/// The longest text of a recorded fact about a process, in bytes.
const FACT_BYTES: usize = 300;
/// Fields of `/proc/PID/status`, and their names in facts.
const STATUS: [(&str, &str); 11] = [
    ("Umask", "umask"),
    ("Uid", "users"),
    ("Gid", "groups"),
    ("Groups", "further groups"),
    ("NoNewPrivs", "no new privileges"),
    ("Seccomp_filters", "filters of system calls"),
    ("THP_enabled", "large pages allowed"),
    ("VmLck", "locked memory"),
    ("SigIgn", "ignored signals"),
    ("SigCgt", "handled signals"),
    ("ShdPnd", "pending signals"),
];
/// Name of the fact about which parts of a process's memory are in its core dumps, as bits.
pub(super) const DUMP_FILTER: &str = "filter of core dumps";
/// Name of the fact about how late the timers of a process may be, in nanoseconds.
pub(super) const TIMER_SLACK: &str = "timer slack, ns";
/// Name of the fact about the priority of a thread's reads and writes.
pub(super) const IO_PRIORITY: &str = "input/output priority";
/// Files of `/proc/PID` that contain one setting each.
const SETTINGS: [(&str, &str); 4] = [
    ("oom_score_adj", "score for running out of memory"),
    ("coredump_filter", DUMP_FILTER),
    ("personality", "personality"),
    ("timerslack_ns", TIMER_SLACK),
];
/// Bits of SIGSTOP, SIGTSTP, SIGTTIN and SIGTTOU in a set of signals: CRIU sends SIGSTOP to a process that it restores stopped.
const STOPS: u64 = 1 << 18 | 1 << 19 | 1 << 20 | 1 << 21;
/// Bit of SIGCONT in a set of signals.
const CONTINUE: u64 = 1 << 17;
/// Name of the fact about whether the parent of a stopped process knows of the stop.
pub(super) const STOP_TOLD: &str = "stop that its parent has been told of";

/// Records what the kernel says of a process (descriptors, signals, limits …), to be compared after a restore. `first` is the
/// first process of its task; `is_stopped` says whether a signal had stopped it.
pub(super) fn look_at(
    pid: i32,
    first: i32,
    is_stopped: bool,
    shared: &mut SharedObjects,
) -> ProcessPicture {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let (status, stat) = (read("status"), read("stat"));
    let mut facts = BTreeMap::new();
    let mut put = |about: &str, fact: String| {
        facts.insert(about.to_owned(), one_line(&fact, FACT_BYTES).into_owned());
    };
    for (key, about) in STATUS {
        let said = status_field(&status, key).map(|value| match key {
            "SigIgn" | "SigCgt" => signal_words(value, 0),
            "ShdPnd" => signal_words(value, STOPS | CONTINUE),
            _ => join_words(value),
        });
        if let Some(said) = said {
            put(about, said);
        }
    }
    for (key, about) in [("NSpgid", "process group"), ("NSsid", "session")] {
        // The last is the number in the innermost namespace.
        put(
            about,
            status_field(&status, key)
                .and_then(|it| it.split_whitespace().last())
                .unwrap_or_default()
                .to_owned(),
        );
    }
    for (file, about) in SETTINGS {
        put(about, join_words(&read(file)));
    }
    for (link, about) in
        [("cwd", "working directory"), ("root", "root directory"), ("exe", "program")]
    {
        let to = fs::read_link(format!("/proc/{pid}/{link}")).ok();
        let to = to.map(|to| path_inside(&to).unwrap_or(to));
        put(about, to.map(|to| descriptor::file_name(&to.to_string_lossy())).unwrap_or_default());
    }
    for (file, about) in [("cmdline", "command line"), ("environ", "environment")] {
        put(about, short_digest(&fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default()));
    }
    put("controlling terminal", stat_field(&stat, 7).unwrap_or_default());
    for (name, limit) in read_limits(&read("limits")) {
        put(&format!("limit: {name}"), limit);
    }
    for (id, timer) in posix_timers(&read("timers")) {
        put(&format!("POSIX timer {id}"), timer);
    }
    if let Some(told) = stop_told(&status, &stat, is_stopped) {
        put(STOP_TOLD, told.to_owned());
    }
    for (about, fact) in
        thread_numbers(pid).into_iter().flat_map(|thread| thread_facts(pid, thread, first))
    {
        put(&about, fact);
    }
    for (about, fact) in descriptor::all_of(pid, shared) {
        put(&about, fact);
    }
    let name = one_line(status_field(&status, "Name").unwrap_or_default(), 64).into_owned();
    ProcessPicture { name, facts }
}

/// Returns the value of the line with `key` in the text of a file such as `/proc/PID/status`.
pub(super) fn status_field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
}

/// Returns the number that a process or thread has in its innermost PID namespace.
pub(super) fn own_number(pid: i32) -> Option<u32> {
    numbers_of(&pid.to_string()).last().copied()
}

/// Returns the numbers of a process in each of its PID namespaces, the outermost first; empty if it has ended.
pub(super) fn numbers_of(process: &str) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let numbers = status_field(&status, "NSpid").unwrap_or_default().split_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Returns the facts about a thread, as pairs of the fact's name and its text.
fn thread_facts(pid: i32, thread: i32, first: i32) -> Vec<(String, String)> {
    let read = |file: &str| {
        fs::read_to_string(format!("/proc/{pid}/task/{thread}/{file}")).unwrap_or_default()
    };
    let (status, stat) = (read("status"), read("stat"));
    let Some(number) = own_number(thread) else { return Vec::new() };
    // What is of a process with one thread is of the process.
    let of = |what: &str| match thread == pid {
        true => what.to_owned(),
        false => format!("thread {number}: {what}"),
    };
    let mut facts =
        vec![(of("name"), status_field(&status, "Name").unwrap_or_default().to_owned())];
    for (field, what) in [(19, "nice"), (40, "real-time priority"), (41, "scheduling policy")] {
        facts.push((of(what), stat_field(&stat, field).unwrap_or_default()));
    }
    facts.push((of(IO_PRIORITY), io_priority(thread)));
    if let Some(pending) = status_field(&status, "SigPnd") {
        facts.push((of("pending signals of its own"), signal_words(pending, STOPS | CONTINUE)));
    }
    facts.push((of("blocked signals"), blocked_signals(pid, thread, &status)));
    let cores = sched_getaffinity(Pid::from_raw(thread)).ok();
    // As many as the first process may use: on another host these are others.
    let common = sched_getaffinity(Pid::from_raw(first)).ok();
    let bound = match cores.filter(|cores| Some(*cores) != common) {
        Some(cores) => core_numbers(&cores),
        None => "all that its task has".to_owned(),
    };
    facts.push((of("cores"), bound));
    facts
}

fn core_numbers(cores: &CpuSet) -> String {
    let is_set = |core: &usize| cores.is_set(*core).unwrap_or(false);
    let numbers = (0..CpuSet::count()).filter(is_set).map(|core| core.to_string());
    numbers.collect::<Vec<_>>().join(" ")
}

/// Returns the signals that a thread blocks, in words. A restored thread before its first instruction is in rt_sigreturn(2), which
/// sets the blocked signals from the frame on the thread's stack.
fn blocked_signals(pid: i32, thread: i32, status: &str) -> String {
    let said = status_field(status, "SigBlk")
        .map_or_else(|| UNKNOWN.to_owned(), |set| signal_words(set, 0));
    let call = fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall")).unwrap_or_default();
    let mut words = call.split_whitespace();
    let number: Option<libc::c_long> = words.next().and_then(|word| word.parse().ok());
    if number != Some(libc::SYS_rt_sigreturn) {
        return said;
    }
    let frame =
        words.nth(6).and_then(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
    let mask = frame.zip(MASK_IN_FRAME).and_then(|(frame, at)| {
        let mut memory = fs::File::open(format!("/proc/{pid}/mem")).ok()?;
        memory.seek(SeekFrom::Start(frame.checked_add(at)?)).ok()?;
        let mut mask = [0; 8];
        memory.read_exact(&mut mask).ok()?;
        Some(u64::from_ne_bytes(mask))
    });
    mask.map_or_else(|| UNKNOWN.to_owned(), |mask| signal_words(&format!("{mask:x}"), 0))
}

/// Offset of the blocked signals in the frame that rt_sigreturn(2) finds at the stack pointer.
const MASK_IN_FRAME: Option<u64> = match () {
    // The flags, link, stack and registers of a `ucontext`.
    () if cfg!(target_arch = "x86_64") => Some(8 + 8 + 24 + 256),
    // A `siginfo`, then the flags, link and stack of a `ucontext`.
    () if cfg!(target_arch = "aarch64") => Some(128 + 8 + 8 + 24),
    () => None,
};

/// Returns a set of signals in words, without the signals of the set `but`.
fn signal_words(hex: &str, but: u64) -> String {
    let Ok(set) = u64::from_str_radix(hex, 16) else { return UNKNOWN.to_owned() };
    let set = set & !but;
    let named = (0..64_i32).filter(|n| set >> n & 1 == 1).map(|n| {
        let signal = nix::sys::signal::Signal::try_from(n + 1);
        signal.map_or_else(|_| (n + 1).to_string(), |it| it.as_str().to_owned())
    });
    match named.collect::<Vec<_>>().join(" ") {
        none if none.is_empty() => "none".to_owned(),
        some => some,
    }
}

/// Returns whether the parent of a stopped process learned of the stop by waitpid(2); `None`: the process isn't
/// stopped, or its parent doesn't belong to the task.
fn stop_told(status: &str, stat: &str, is_stopped: bool) -> Option<&'static str> {
    let pending = ["SigPnd", "ShdPnd"].into_iter().filter_map(|key| status_field(status, key));
    let stops =
        pending.filter_map(|hex| u64::from_str_radix(hex, 16).ok()).any(|set| set & STOPS != 0);
    if status_field(status, "NSpid").is_some_and(|it| it.split_whitespace().last() == Some("1")) {
        return None;
    }
    match (is_stopped, stops) {
        // The kernel clears what it has to tell once a parent has asked.
        (true, _) if stat_field(stat, 52).as_deref() == Some("0") => Some("told"),
        (true, _) => Some("to be told"),
        (false, true) => Some("to be told"),
        (false, false) => None,
    }
}

/// Returns a field of `/proc/PID/stat`, by its number in proc(5); `None`: there is no such field.
fn stat_field(stat: &str, number: usize) -> Option<String> {
    // The name may have blanks and brackets.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(number.checked_sub(3)?).map(str::to_owned)
}

/// Returns the limits in the text of `/proc/PID/limits`, as pairs of a limit's name and its values.
fn read_limits(text: &str) -> Vec<(String, String)> {
    let of_line = |line: &str| {
        let (name, rest) = line.strip_prefix("Max ")?.split_at_checked(22)?;
        let mut values = rest.split_whitespace();
        let (soft, hard) = (values.next()?, values.next()?);
        Some((name.trim().to_owned(), format!("{soft} of {hard}")))
    };
    text.lines().filter_map(of_line).collect()
}

/// Returns the timers of timer_create(2), as pairs of a timer's number and how it notifies and by which clock.
fn posix_timers(text: &str) -> Vec<(String, String)> {
    let mut timers: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        // A process is called there by its number outside.
        let value = value.trim().split(['/', '.']).next().unwrap_or_default();
        match (key, timers.last_mut()) {
            ("ID", _) => timers.push((value.to_owned(), String::new())),
            ("signal" | "notify" | "ClockID", Some((_, said))) => {
                said.push_str(&format!("{key} {value} "));
            }
            _ => {}
        }
    }
    timers.into_iter().map(|(id, said)| (id, said.trim().to_owned())).collect()
}

/// The kernel's constant by which a priority is that of one process: IOPRIO_WHO_PROCESS of linux/ioprio.h.
const OF_PROCESS: libc::c_int = 1;
/// The classes of input and output that every process may give itself: none, best effort, and idle.
const UNPRIVILEGED: [libc::c_int; 3] = [0, 2, 3];
/// Number of bits below the class in a priority for input and output.
const LEVEL_BITS: u32 = 13;

/// Returns the priority class and the level that a thread has for input and output (ioprio_get(2)), in words.
#[expect(unsafe_code, reason = "neither nix nor the standard library has this call")]
fn io_priority(thread: i32) -> String {
    // SAFETY: the call takes no pointer.
    let both = unsafe { libc::syscall(libc::SYS_ioprio_get, OF_PROCESS, thread) };
    match both {
        ..0 => UNKNOWN.to_owned(),
        both => {
            format!("class {}, level {}", both >> LEVEL_BITS, both & ((1 << LEVEL_BITS) - 1))
        }
    }
}

/// Gives a thread the class and the level that [`io_priority`] returned; `None` for a class that needs a privilege.
#[expect(unsafe_code, reason = "neither nix nor the standard library has this call")]
pub(super) fn set_io_priority(thread: i32, said: &str) -> Option<io::Result<()>> {
    let (class, level) = said.strip_prefix("class ")?.split_once(", level ")?;
    let (class, level): (libc::c_int, libc::c_int) = (class.parse().ok()?, level.parse().ok()?);
    if !UNPRIVILEGED.contains(&class) || !(0..1 << LEVEL_BITS).contains(&level) {
        return None;
    }
    let both = class << LEVEL_BITS | level;
    // SAFETY: the call takes no pointer.
    let set = unsafe { libc::syscall(libc::SYS_ioprio_set, OF_PROCESS, thread, both) };
    Some(if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) })
}

fn join_words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a short digest by which contents can be compared.
pub(super) fn short_digest(bytes: &[u8]) -> String {
    let hash = blake3::hash(bytes).to_hex();
    format!("{} bytes, BLAKE3 {}", bytes.len(), hash.get(..16).unwrap_or_default())
}

/// Returns the ids that the threads of a process have in this PID namespace.
pub(super) fn thread_numbers(pid: i32) -> BTreeSet<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_named_but_for_those_by_which_criu_stops() {
        assert_eq!(signal_words("0000000000000000", 0), "none");
        assert_eq!(signal_words("0000000000004203", 0), "SIGHUP SIGINT SIGUSR1 SIGTERM");
        assert_eq!(signal_words("00000000003e0000", STOPS | CONTINUE), "none");
        assert_eq!(signal_words("00000000003e0000", CONTINUE), "SIGSTOP SIGTSTP SIGTTIN SIGTTOU");
        assert_eq!(signal_words("8000000000000000", 0), "64");
        assert_eq!(signal_words("what", 0), UNKNOWN);
    }

    #[test]
    fn lines_of_the_kernel_are_read() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 5 1 0";
        assert_eq!(stat_field(stat, 7).as_deref(), Some("0"));
        assert_eq!(stat_field(stat, 19).as_deref(), Some("5"));
        assert_eq!(stat_field(stat, 90), None);
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max open files            1024                 4096                 files     \n";
        assert_eq!(read_limits(text), [("open files".to_owned(), "1024 of 4096".to_owned())]);
        let timers = "ID: 1\nsignal: 34/00000000\nnotify: signal/pid.812\nClockID: 1\n";
        assert_eq!(
            posix_timers(timers),
            [("1".to_owned(), "signal 34 notify signal ClockID 1".to_owned())]
        );
    }

    #[test]
    fn a_stop_is_told_once() {
        let stat = |code: u32| format!("7 (a) T {} {code}", vec!["0"; 48].join(" "));
        let status = "NSpid:\t812\t7\nSigPnd:\t0\nShdPnd:\t0\n";
        assert_eq!(stop_told(status, &stat(0), true), Some("told"));
        assert_eq!(stop_told(status, &stat(19), true), Some("to be told"));
        assert_eq!(stop_told(status, &stat(0), false), None);
        // CRIU has sent it what stops it.
        let sent = status.replace("ShdPnd:\t0", "ShdPnd:\t40000");
        assert_eq!(stop_told(&sent, &stat(0), false), Some("to be told"));
        assert_eq!(stop_told("NSpid:\t812\t1\n", &stat(0), true), None);
    }
}
