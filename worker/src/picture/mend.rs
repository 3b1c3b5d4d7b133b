//! Setting again the state of a restored task that CRIU has not restored, as far as the kernel lets its worker do that
//! from outside, before the task's first instruction.
//!
//! A picture may come from a worker that lies: nothing is set from a picture that a task of a jail could not set by
//! itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::fd::AsFd as _,
};

use super::{
    PictureChange,
    process::{self, DUMP_FILTER, IO_PRIORITY, TIMER_SLACK},
    socket,
    task::TaskPicture,
};
use crate::process::pidfd;

/// Corrects, as far as possible, what differs between a picture of a task before its checkpoint and its restored state, and
/// describes the remaining differences. `processes` has the restored processes; `None`: they can't be read.
#[must_use]
pub fn mend_differences(before: &TaskPicture, processes: &BTreeSet<i32>) -> Option<Vec<String>> {
    let after = TaskPicture::take_restored(processes)?;
    let changes = before.list_changes(&after);
    let known = known_threads(processes);
    let tried = changes.iter().filter(|change| match mend_one(change, &known) {
        Some(Ok(())) => true,
        Some(Err(error)) => {
            tracing::debug!(%error, %change, "what a restore has changed can't be set");
            false
        }
        None => false,
    });
    match tried.count() {
        0 => Some(before.change_sentences(&after)),
        // Whatever a call has said: what counts is what is so now.
        _ => TaskPicture::take_restored(processes).map(|after| before.change_sentences(&after)),
    }
}

/// Returns the numbers of a task's threads on the host, by their numbers in the task's PID namespace.
fn known_threads(processes: &BTreeSet<i32>) -> BTreeMap<u32, i32> {
    let threads = processes.iter().flat_map(|pid| process::thread_numbers(*pid));
    threads.filter_map(|thread| Some((process::own_number(thread)?, thread))).collect()
}

/// Sets one changed fact of a restored process back to its earlier value; `None`: the fact can't be corrected.
fn mend_one(change: &PictureChange, known: &BTreeMap<u32, i32>) -> Option<io::Result<()>> {
    let before = change.before.as_deref()?;
    let (of, what) = change.about.rsplit_once(": ").unwrap_or(("", &change.about));
    if let Some(number) = of.strip_prefix("descriptor ") {
        let (pid, number) = (*known.get(&change.process)?, number.parse().ok()?);
        let numbers =
            before.split(' ').map(|number| number.parse().ok()).collect::<Option<Vec<_>>>()?;
        let set = socket::option_setter(what, &numbers)?;
        return Some(pidfd::open(pid).and_then(|pid| set(&pidfd::file_of(pid.as_fd(), number)?)));
    }
    let thread = match of.strip_prefix("thread ") {
        Some(number) => number.parse().ok()?,
        None => change.process,
    };
    let thread = *known.get(&thread)?;
    match what {
        IO_PRIORITY => process::set_io_priority(thread, before),
        TIMER_SLACK => {
            let ns: u64 = before.parse().ok()?;
            Some(fs::write(format!("/proc/{thread}/timerslack_ns"), ns.to_string()))
        }
        DUMP_FILTER => {
            let bits = u32::from_str_radix(before, 16).ok()?;
            Some(fs::write(format!("/proc/{thread}/coredump_filter"), format!("{bits:#x}")))
        }
        _ => None,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_set_from_outside_is_set() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let take = || TaskPicture::take_picture(pid, &BTreeSet::from([pid]), &BTreeSet::new());
        let number = process::own_number(pid).unwrap();
        let fact = |about: &str| take().processes[&number].facts[about].clone();
        let known = known_threads(&BTreeSet::from([pid]));
        for (about, other) in
            [(IO_PRIORITY, "class 3, level 0"), (TIMER_SLACK, "7000"), (DUMP_FILTER, "0000003f")]
        {
            let (before, after) = (Some(other), Some("what it is"));
            let change = PictureChange::new((number, "sleep"), about, (before, after));
            mend_one(&change, &known).unwrap().unwrap();
            assert_eq!(fact(about), other);
        }
        // What only a privileged process may set, and what nobody can.
        for (about, before) in [
            (IO_PRIORITY, "class 1, level 0"),
            ("nice", "-5"),
            ("descriptor 5: SO_MARK", "1"),
            ("descriptor 5", "pipe 1"),
            ("descriptor 5: locks", "POSIX ADVISORY READ 128 128"),
        ] {
            let change = PictureChange::new((number, "sleep"), about, (Some(before), None));
            assert!(mend_one(&change, &known).is_none(), "{about}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
