//! Checks that the files left by users' own programs are in the run's folder as the log has them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use dormouse_log::Seal;
use dormouse_model::{AttemptEnds, KeptFile, Step};
use dormouse_tasks::own::{folder_of, folder_of_failed};

/// The file of an attempt's folder that the coordinator writes last.
const LAST: &str = "exit";
/// Files that the coordinator adds to every attempt's folder.
const OF_EVERY: [&str; 2] = [LAST, "not-kept"];
/// The subfolder of a run's folder with the files of all attempts.
const TASKS: &str = "tasks";

/// Compares the files that every attempt left with the run's folder. In a run that was killed,
/// attempts whose files are incomplete are skipped: they are completed when the run is resumed.
pub(super) fn left_files(folder: &Path, steps: &[Step], ended: bool, found: &mut Vec<String>) {
    let mut ends = AttemptEnds::default();
    let mut known = BTreeSet::new();
    for left in steps.iter().filter_map(|step| ends.take_step(step)) {
        let name = match left.finished {
            true => folder_of(left.task),
            false => folder_of_failed(left.task, left.attempt),
        };
        let of_attempt = folder.join(&name);
        known.extend(OF_EVERY.map(|file| of_attempt.join(file)));
        known.extend(left.end.files.iter().map(|file| of_attempt.join(&file.path)));
        if !ended && !of_attempt.join(LAST).exists() {
            continue;
        }
        if !of_attempt.is_dir() {
            found.push(format!("{name} is missing"));
            continue;
        }
        for file in &left.end.files {
            if let Some(wrong) = file_difference(&of_attempt, file) {
                found.push(format!("{name}/{} {wrong}", file.path));
            }
        }
    }
    if ended {
        let mut added = Vec::new();
        files_below(&folder.join(TASKS), &mut added);
        added.retain(|path| !known.contains(path));
        added.sort();
        let name = |path: &PathBuf| path.strip_prefix(folder).unwrap_or(path).display().to_string();
        let added = added.iter().map(name);
        found.extend(added.map(|name| format!("{name} was added: no task left it")));
    }
}

/// Collects all files below a folder, recursively.
fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    // Without the folder no task left anything.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_below(&entry.path(), files),
            _ => files.push(entry.path()),
        }
    }
}

/// How a file differs from what the attempt left, in words that follow the file's path; `None` if
/// it does not differ.
fn file_difference(folder: &Path, file: &KeptFile) -> Option<&'static str> {
    let path = folder.join(&file.path);
    let Ok(about) = fs::symlink_metadata(&path) else { return Some("is missing") };
    let is_same = about.is_file()
        && about.len() == file.bytes.get()
        && Seal::hash(&path).is_ok_and(|digest| digest == file.digest);
    (!is_same).then_some("is not as its task left it")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use std::sync::Arc;

    use dormouse_model::{AttemptLedger, Event, Notice, ProgramEnd, ProgramExit, Report};
    use dormouse_units::{Attempt, Bytes, HostId, TaskId, Time, VmId};

    use super::*;

    fn step(report: Report, notices: Vec<Notice>) -> Step {
        let event = Event::Machine { host: HostId::new(0), number: 1, report };
        let (decisions, answers, effects) = (Vec::new(), Vec::new(), Vec::new());
        Step { seq: 0, at: Time::ZERO, event, notices, decisions, answers, effects }
    }

    /// The two steps of an attempt that left these files.
    fn attempt(n: u32, finished: bool, files: &[(&str, &str)]) -> [Step; 2] {
        let file = |&(path, content): &(&str, &str)| KeptFile {
            path: path.to_owned(),
            digest: Seal::hash_of(content.as_bytes()),
            bytes: Bytes::new(content.len() as u64),
            executable: false,
        };
        let own = Some(Arc::new(ProgramEnd {
            exit: Some(ProgramExit::Status(i32::from(!finished))),
            verify_status: None,
            files: files.iter().map(file).collect(),
            not_kept: vec!["outputs/link: it is a link".to_owned()],
            real_waited_us: 0,
            memory: Bytes::ZERO,
            directory: Bytes::ZERO,
        }));
        let (vm, task, attempt) = (VmId::new(0), TaskId::new(7), Attempt::new(n));
        let ledger = Box::new(AttemptLedger::default());
        let account = step(Report::Ledger { vm, task, attempt, ledger, own }, Vec::new());
        let report = Report::TaskFinished {
            vm,
            task,
            attempt,
            verified: finished,
            reported: true,
            program_failed: !finished,
            result: None,
            real_cpu_us: 0,
        };
        let notice = finished.then_some(Notice::TaskFinished { task, vm });
        [account, step(report, notice.into_iter().collect())]
    }

    #[test]
    fn a_file_that_was_changed_or_is_missing_is_found_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, content: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        let failed = attempt(1, false, &[("stderr", "no room")]);
        let done = attempt(2, true, &[("stdout", ""), ("outputs/a", "right"), ("outputs/b", "b")]);
        let steps = [failed, done].concat();
        let look = |ended| {
            let mut found = Vec::new();
            left_files(folder.path(), &steps, ended, &mut found);
            found
        };
        assert_eq!(look(true), ["tasks/7/failed-1 is missing", "tasks/7 is missing"]);
        assert_eq!(look(false), [""; 0]);

        for (path, content) in [("stdout", ""), ("outputs/a", "right"), ("outputs/b", "b")] {
            write(&format!("tasks/7/{path}"), content);
        }
        write("tasks/7/exit", "status 0");
        write("tasks/7/failed-1/stderr", "no room");
        assert_eq!(look(true), [""; 0]);

        write("tasks/7/outputs/a", "wrong");
        write("tasks/7/failed-1/stderr", "no rooms");
        fs::remove_file(folder.path().join("tasks/7/outputs/b")).unwrap();
        let of_done =
            ["tasks/7/outputs/a is not as its task left it", "tasks/7/outputs/b is missing"];
        assert_eq!(look(false), of_done);
        let of_failed = "tasks/7/failed-1/stderr is not as its task left it";
        assert_eq!(look(true), [&[of_failed], &of_done[..]].concat());

        // One that nobody left.
        write("tasks/7/outputs/c", "");
        write("tasks/8/outputs/a", "");
        let of_nobody = ["tasks/7/outputs/c", "tasks/8/outputs/a"]
            .map(|path| format!("{path} was added: no task left it"));
        assert_eq!(look(true)[3..], of_nobody);
    }
}
