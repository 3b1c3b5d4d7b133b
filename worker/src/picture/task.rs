//! The picture of a task: all its processes, by their numbers in its own PID namespace.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use dormouse_tasks::limits::CHANGES;
use serde::{Deserialize, Serialize};

use super::{
    changes::PictureChange,
    descriptor::SharedObjects,
    process::{self, ProcessPicture},
};

/// Most processes in a task's picture (the kernel's report on its processes), which is stored in the task's checkpoint.
const MOST_PROCESSES: usize = 128;
/// The most facts about processes in a task's picture: a checkpoint's manifest still has room for so many if it lists as many files
/// as a task may have.
const MOST_FACTS: usize = 6_000;
/// Most differences that are described after a restore, each in a sentence; one more sentence has the number of the others.
const MOST_CHANGES: usize = CHANGES - 1;

/// What the kernel reports about the processes of a stopped task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskPicture {
    /// The processes, by their numbers in the task's PID namespace.
    pub processes: BTreeMap<u32, ProcessPicture>,
    /// True if processes or facts were left out because there were too many; then a missing fact means nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

impl TaskPicture {
    /// Takes the picture of a stopped task: `first` is its first process, `processes` has all of its processes, and `stopped` those
    /// that a signal had stopped before. What can't be read of a process that has just ended is left out.
    #[must_use]
    pub fn take_picture(first: i32, processes: &BTreeSet<i32>, stopped: &BTreeSet<i32>) -> Self {
        let namespace = pid_namespace(first);
        let own = |pid: &i32| namespace.is_some() && pid_namespace(*pid) == namespace;
        let mut all: Vec<_> = processes.iter().copied().filter(own).collect();
        // By their own numbers, so that what they share is met in the same order after a restore.
        all.sort_by_cached_key(|pid| process::own_number(*pid));
        let mut picture = Self { is_cut: all.len() > MOST_PROCESSES, ..Self::default() };
        let (mut shared, mut room) = (SharedObjects::default(), MOST_FACTS);
        for pid in all.into_iter().take(MOST_PROCESSES) {
            let Some(number) = process::own_number(pid) else { continue };
            let mut seen = process::look_at(pid, first, stopped.contains(&pid), &mut shared);
            while seen.facts.len() > room {
                (_, picture.is_cut) = (seen.facts.pop_last(), true);
            }
            room -= seen.facts.len();
            picture.processes.insert(number, seen);
        }
        picture
    }

    /// Takes the picture of a restored task that hasn't run yet; `processes` are the task's processes and CRIU's. `None`: the
    /// task's processes can't be told from CRIU's, as the task has no PID namespace of its own.
    #[must_use]
    pub fn take_restored(processes: &BTreeSet<i32>) -> Option<Self> {
        let depth = process::numbers_of("self").len();
        let is_first = |pid: &&i32| {
            // The first of a PID namespace just below the worker's.
            process::numbers_of(&pid.to_string()).get(depth..).is_some_and(|own| *own == [1])
        };
        let first = processes.iter().find(is_first);
        first.map(|first| Self::take_picture(*first, processes, &BTreeSet::new()))
    }

    /// Returns how the picture `after`, taken after a restore, differs from this picture, the most important differences first.
    #[must_use]
    pub fn list_changes(&self, after: &Self) -> Vec<PictureChange> {
        let mut changes = Vec::new();
        for (number, before) in &self.processes {
            let Some(after) = after.processes.get(number) else {
                changes.push(PictureChange::process_gone(*number, &before.name));
                continue;
            };
            let about: BTreeSet<_> = before.facts.keys().chain(after.facts.keys()).collect();
            for about in about {
                let (was, is) = (before.facts.get(about), after.facts.get(about));
                let unknown = [was, is].into_iter().flatten().any(|fact| fact == process::UNKNOWN);
                // Where one picture is cut, what it lacks may have been there.
                let cut = (was.is_none() || is.is_none()) && self.is_cut;
                if was != is && !unknown && !cut {
                    changes.push(PictureChange::new(
                        (*number, &before.name),
                        about,
                        (was.map(String::as_str), is.map(String::as_str)),
                    ));
                }
            }
        }
        changes
    }

    /// Returns sentences on how the picture `after`, taken after a restore, differs from this picture, up to a limit.
    #[must_use]
    pub fn change_sentences(&self, after: &Self) -> Vec<String> {
        let changes = self.list_changes(after);
        let mut said: Vec<_> = changes.iter().take(MOST_CHANGES).map(ToString::to_string).collect();
        if let Some(more @ 1..) = changes.len().checked_sub(MOST_CHANGES) {
            said.push(format!("{more} more differences are not listed"));
        }
        said
    }
}

/// Returns those of `processes` that a signal has stopped. The kernel no longer reports this once a debugger such as CRIU has
/// seized a process.
#[must_use]
pub fn stopped_processes(processes: &BTreeSet<i32>) -> BTreeSet<i32> {
    let is_stopped = |pid: &&i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        process::status_field(&status, "State").is_some_and(|state| state.starts_with('T'))
    };
    processes.iter().filter(is_stopped).copied().collect()
}

fn pid_namespace(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn of(facts: &[(&str, &str)]) -> TaskPicture {
        let facts = facts.iter().map(|(about, fact)| ((*about).to_owned(), (*fact).to_owned()));
        let process = ProcessPicture { name: "a".to_owned(), facts: facts.collect() };
        TaskPicture { processes: BTreeMap::from([(7, process)]), is_cut: false }
    }

    #[test]
    fn pictures_of_one_that_stands_still_are_the_same() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let take = || TaskPicture::take_picture(pid, &BTreeSet::from([pid]), &BTreeSet::new());
        let (one, two) = (take(), take());
        assert_eq!(one.list_changes(&two), []);
        let facts = &one.processes.values().next().unwrap().facts;
        for about in ["nice", "umask", "descriptor 0", "working directory", "limit: open files"] {
            assert!(facts.contains_key(about), "{about}: {facts:?}");
        }
        // Another's picture differs from it.
        let mut other = std::process::Command::new("sleep");
        let mut other = other.arg("60").current_dir("/tmp").spawn().unwrap();
        let pid = i32::try_from(other.id()).unwrap();
        let mut three = TaskPicture::take_picture(pid, &BTreeSet::from([pid]), &BTreeSet::new());
        three.processes = three
            .processes
            .into_values()
            .zip(one.processes.keys())
            .map(|(it, n)| (*n, it))
            .collect();
        let said = one.change_sentences(&three);
        assert!(said.iter().any(|it| it.contains("working directory")), "{said:?}");
        for child in [&mut child, &mut other] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn a_task_without_a_namespace_of_its_own_is_not_looked_at() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert_eq!(TaskPicture::take_restored(&BTreeSet::from([pid])), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn what_is_unknown_or_was_left_out_is_no_difference() {
        let before = of(&[("nice", "5"), ("blocked signals", process::UNKNOWN)]);
        let after = of(&[("nice", "0"), ("blocked signals", "0"), ("umask", "0022")]);
        let about = |before: &TaskPicture| {
            before.list_changes(&after).into_iter().map(|it| it.about).collect::<Vec<_>>()
        };
        assert_eq!(about(&before), ["nice", "umask"]);
        let cut = TaskPicture { is_cut: true, ..before };
        assert_eq!(about(&cut), ["nice"]);
        let none = TaskPicture::default();
        assert_eq!(cut.list_changes(&none).len(), 1);
        assert!(cut.change_sentences(&none)[0].contains("is not there any more"));
    }

    #[test]
    fn no_more_is_told_than_somebody_reads() {
        let facts: Vec<_> = (0..100).map(|n| format!("descriptor {n}")).collect();
        let facts: Vec<_> = facts.iter().map(|about| (about.as_str(), "a pipe")).collect();
        let said = of(&facts).change_sentences(&of(&[]));
        assert_eq!(said.len(), MOST_CHANGES + 1);
        assert!(said.last().unwrap().starts_with("76 more"), "{said:?}");
    }
}
