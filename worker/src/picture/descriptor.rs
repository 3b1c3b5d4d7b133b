//! The facts about the descriptors of a process: the kind of each, its position, and the flags with which it was
//! opened.

use std::{
    collections::BTreeMap,
    fs,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
};

use super::{process::short_digest, socket};
use crate::{directory::read_attributes, jail::path_inside, process::pidfd};

/// Fields of `/proc/PID/fdinfo` that a program can observe; the other fields are internal numbers of the running
/// kernel.
const FIELDS: [&str; 7] =
    ["pos", "flags", "eventfd-count", "eventfd-semaphore", "sigmask", "clockid", "it_interval"];
/// Ending of the name of a deleted file.
const DELETED: &str = " (deleted)";

/// Objects that the kernel identifies by a number instead of a name, such as pipes. They are numbered anew in the order of first
/// use, by which two descriptors of the same object can be recognised after a restore.
#[derive(Debug, Default)]
pub(super) struct SharedObjects {
    met: BTreeMap<String, usize>,
}

impl SharedObjects {
    /// Returns a name for the object that a link of `/proc/PID/fd` leads to, with its new number: `pipe:[812]` becomes `pipe 3`;
    /// `None`: the link leads to a named file.
    fn name(&mut self, link: &str) -> Option<String> {
        let (kind, number) = link.split_once(":[")?;
        if !number.ends_with(']') || !matches!(kind, "pipe" | "socket") {
            return None;
        }
        let next = self.met.len() + 1;
        Some(format!("{kind} {}", self.met.entry(link.to_owned()).or_insert(next)))
    }
}

/// Returns the facts about all descriptors of a process, as pairs of the fact's name and its text.
pub(super) fn all_of(pid: i32, shared: &mut SharedObjects) -> Vec<(String, String)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut numbers: Vec<i32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    let process = pidfd::open(pid).ok();
    let mut facts = Vec::new();
    for number in numbers {
        let Ok(link) = fs::read_link(format!("/proc/{pid}/fd/{number}")) else { continue };
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).unwrap_or_default();
        let about = format!("descriptor {number}");
        let link_text = link.to_string_lossy();
        let is_socket = link_text.starts_with("socket:");
        let name = shared.name(&link_text).unwrap_or_else(|| {
            file_name(&path_inside(&link).as_deref().unwrap_or(&link).to_string_lossy())
        });
        for (what, fact) in in_info(&info) {
            facts.push((format!("{about}: {what}"), fact));
        }
        let open = || pidfd::file_of(process.as_ref()?.as_fd(), number).ok();
        if is_socket && let Some(socket) = open() {
            let of_socket = socket::socket_facts(&socket).into_iter();
            facts.extend(of_socket.map(|(what, fact)| (format!("{about}: {what}"), fact)));
        }
        // Not opened by its name, which would break a lease that the program has on it.
        if may_have_attributes(&link)
            && let Some(attributes) = open().as_ref().and_then(user_attributes)
        {
            facts.push((format!("{about}: extended attributes"), attributes));
        }
        facts.push((about, name));
    }
    facts
}

/// Returns a file's path, or "a file without a name" for a deleted file: CRIU renames such a file before it deletes it
/// again, so that its name would differ.
pub(super) fn file_name(path: &str) -> String {
    match path.strip_suffix(DELETED) {
        Some(_) if path.starts_with('/') => "a file without a name".to_owned(),
        _ => path.to_owned(),
    }
}

/// Reads the facts in a descriptor's `/proc/PID/fdinfo`, as pairs of the fact's name and its text.
fn in_info(info: &str) -> Vec<(String, String)> {
    let lines = || info.lines().filter_map(|line| line.split_once(':'));
    let mut facts: Vec<_> = lines()
        .filter(|(key, _)| FIELDS.contains(key))
        .map(|(key, value)| match key {
            "flags" => ("flags".to_owned(), flags_of(value.trim())),
            _ => (words_of(key).to_owned(), value.trim().to_owned()),
        })
        .collect();
    let of = |key: &str| lines().find(|(name, _)| *name == key).map(|(_, value)| value.trim());
    if let Some(left) = of("it_value") {
        // One that has run out, and has yet to be read, was armed as well.
        let is_armed = left != "(0, 0)" || of("ticks").is_some_and(|ticks| ticks != "0");
        facts.push(("timer".to_owned(), if is_armed { "armed" } else { "not armed" }.to_owned()));
    }
    let list = |what: &str, found: Vec<String>| {
        (!found.is_empty()).then(|| (what.to_owned(), found.join("; ")))
    };
    facts.extend(list("locks", info.lines().filter_map(lock_words).collect()));
    // The kernel lists them by the places of their files in its memory.
    let mut watches: Vec<String> = info.lines().filter_map(watch_words).collect();
    watches.sort_unstable();
    facts.extend(list("watches", watches));
    facts
}

/// Returns the flags of a descriptor that matter after it was opened, in words. Others, such as O_DIRECTORY and O_LARGEFILE, matter
/// for open(2) alone.
fn flags_of(octal: &str) -> String {
    const NAMED: [(libc::c_int, &str); 9] = [
        (libc::O_APPEND, "append"),
        (libc::O_NONBLOCK, "non-blocking"),
        (libc::O_DSYNC, "data synchronous"),
        (libc::O_SYNC & !libc::O_DSYNC, "synchronous"),
        (libc::O_ASYNC, "signals"),
        (libc::O_DIRECT, "direct"),
        (libc::O_NOATIME, "no access times"),
        (libc::O_PATH, "path only"),
        (libc::O_CLOEXEC, "closed on exec"),
    ];
    let Ok(flags) = libc::c_int::from_str_radix(octal, 8) else { return octal.to_owned() };
    let access = match flags & libc::O_ACCMODE & !libc::O_PATH {
        libc::O_RDONLY => "read",
        libc::O_WRONLY => "write",
        _ => "read and write",
    };
    let set = NAMED.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, name)| *name);
    std::iter::once(access).chain(set).collect::<Vec<_>>().join(", ")
}

/// Returns the name of a field of `/proc/PID/fdinfo` in words.
fn words_of(key: &str) -> &str {
    match key {
        "pos" => "position",
        "sigmask" => "signals that it reads",
        "clockid" => "clock",
        "it_interval" => "period",
        other => other,
    }
}

/// Returns the kind and range of a lock, without the process and the file, whose numbers depend on the running kernel.
fn lock_words(line: &str) -> Option<String> {
    let mut words = line.strip_prefix("lock:")?.split_whitespace().skip(1);
    let kind: Vec<_> = words.by_ref().take(3).collect();
    let range: Vec<_> = words.skip(2).collect();
    Some(format!("{} {}", kind.join(" "), range.join(" ")))
}

/// Describes what a descriptor of inotify(7) or epoll(7) watches, without numbers of files.
fn watch_words(line: &str) -> Option<String> {
    let kept: &[&str] = match line.split_whitespace().next()? {
        "inotify" => &["wd:", "mask:"],
        "tfd:" => &["tfd:", "events:", "data:"],
        _ => return None,
    };
    // Blanks may come after the colon.
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ").replace(": ", ":");
    let words: Vec<_> = line
        .split_whitespace()
        .filter(|word| kept.iter().any(|key| word.starts_with(key) && word.len() > key.len()))
        .collect();
    Some(words.join(" "))
}

/// Returns whether a link of `/proc/PID/fd` leads to something that may have user attributes.
fn may_have_attributes(link: &Path) -> bool {
    link.is_absolute() && !["/dev", "/proc", "/sys", "/usr"].iter().any(|at| link.starts_with(at))
}

/// Returns the user attributes of an open file or directory; `None`: there are no such attributes.
fn user_attributes(file: &OwnedFd) -> Option<String> {
    let found = read_attributes(file).ok().filter(|found| !found.is_empty())?;
    let told =
        found.iter().map(|(name, value)| format!("{name} ({})", short_digest(value.as_bytes())));
    Some(told.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn two_ends_of_one_pipe_are_of_one_pipe() {
        let mut shared = SharedObjects::default();
        let names =
            ["pipe:[8]", "socket:[9]", "pipe:[8]", "pipe:[10]"].map(|it| shared.name(it).unwrap());
        assert_eq!(names, ["pipe 1", "socket 2", "pipe 1", "pipe 3"]);
        assert_eq!(shared.name("anon_inode:[eventfd]"), None);
        assert_eq!(file_name("/a/x (deleted)"), "a file without a name");
        assert_eq!(file_name("/memfd:x (deleted)"), "a file without a name");
        assert_eq!(file_name("/a/x"), "/a/x");
    }

    #[test]
    fn of_what_the_kernel_says_of_a_descriptor_its_own_numbers_are_left_out() {
        let of = |info: &str| {
            let facts = in_info(info).into_iter().map(|(about, fact)| format!("{about}={fact}"));
            facts.collect::<Vec<_>>().join(", ")
        };
        let file = "pos:\t12\nflags:\t02100001\nmnt_id:\t15\nino:\t1060\n\
                    lock:\t1: POSIX  ADVISORY  WRITE 812 00:1b:33 0 EOF\n";
        assert_eq!(
            of(file),
            "position=12, flags=write, closed on exec, locks=POSIX ADVISORY WRITE 0 EOF"
        );
        let timer = "pos:\t0\nflags:\t02\nclockid: 1\nticks: 0\nsettime flags: 00\nit_value: (0, 9)\n\
                     it_interval: (1, 500)\n";
        let armed = "position=0, flags=read and write, clock=1, period=(1, 500), timer=armed";
        assert_eq!(of(timer), armed);
        assert_eq!(of(&timer.replace("ticks: 0", "ticks: 3").replace("(0, 9)", "(0, 0)")), armed);
        assert!(of(&timer.replace("(0, 9)", "(0, 0)")).ends_with("timer=not armed"));
        let epoll = "pos:\t0\nflags:\t02\ntfd:        4 events:       19 data:                4  pos:0 ino:2c sdev:9\n";
        assert_eq!(of(epoll), "position=0, flags=read and write, watches=tfd:4 events:19 data:4");
        let inotify = "inotify wd:1 ino:2c sdev:9 mask:fce ignored_mask:0 fhandle-bytes:8 fhandle-type:1 f_handle:2c\n";
        assert_eq!(of(inotify), "watches=wd:1 mask:fce");
    }
}
