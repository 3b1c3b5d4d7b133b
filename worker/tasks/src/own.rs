//! A user's own program as a task: its command, its files, and how it saves its work.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_units::{Attempt, Bytes, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::Verdict;

/// A user's own program, with all that it needs to run on any worker. The program works in a directory of its own,
/// which holds its inputs at the beginning and is part of its checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct OwnProgram {
    /// The program and its arguments. A name without a slash is looked for on the worker's `PATH`; a name with a slash is relative
    /// to the program's directory.
    pub argv: Vec<String>,
    /// Environment variables of the program, in addition to the variables that every task has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Files that the program's directory holds when the program begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<FileRef>,
    /// Further inputs: files that earlier tasks leave for this task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handed: Vec<HandedFile>,
    /// Files of the program's directory that are kept in the run's folder when the program has ended: paths relative to
    /// the directory, in which `*` stands for any characters but slashes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// Folders of the worker's host that the program reads, as absolute paths; the operator of the worker must allow each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<String>,
    /// The most bytes that the program's directory may hold.
    pub quota: Bytes,
    /// The most processes and threads that the program may have at once.
    pub processes: u32,
    /// How the program's work is saved when its VM is preempted.
    pub saves: Saves,
    /// How the program's answer is checked; `None`: the answer is reported without a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// True if the program leaves the same outputs wherever and whenever it runs, so that another host can run it again and compare
    /// the outputs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deterministic: bool,
}

/// A file in the directory of a task, by its content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FileRef {
    /// Path relative to the directory, with slashes between its parts, none of which is `.` or `..`.
    pub path: String,
    /// BLAKE3 of the content, in hexadecimal.
    pub digest: String,
    /// Length of the content in bytes.
    pub bytes: u64,
    /// True if the file is executable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// Output of a task that is an input of a task that follows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HandedFile {
    /// The task that leaves the file.
    pub from: TaskId,
    /// Path of the file in the directory of the task that leaves it. A `*` stands for any characters but slashes: then
    /// each file that matches is handed on, under its own path.
    pub output: String,
    /// Path of the file in the directory of the task that is given the file.
    pub path: String,
}

/// True if `pattern` matches `path` as a whole; a `*` in the pattern stands for any characters but slashes.
#[must_use]
pub fn matches_output(pattern: &str, path: &str) -> bool {
    pattern.split('/').count() == path.split('/').count()
        && pattern.split('/').zip(path.split('/')).all(|(part, name)| matches_name(part, name))
}

/// True if a pattern without slashes matches a name without slashes.
fn matches_name(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let begin = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(begin) else { return false };
    let Some(end) = pieces.next_back() else { return rest.is_empty() };
    // The earliest place of each piece leaves most to those behind it.
    for piece in pieces {
        let Some((_, behind)) = rest.split_once(piece) else { return false };
        rest = behind;
    }
    rest.ends_with(end)
}

/// How the work of a user's own program is saved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, tag = "by")]
pub enum Saves {
    /// CRIU takes checkpoints of the program's memory; the program need not know of the checkpoints.
    #[default]
    Criu,
    /// The program saves its work into its directory once it learns that its VM will be preempted, and is started again with that
    /// directory. It learns this from the metadata endpoint of its VM, and by the signal and the file given here.
    Notice {
        /// The signal that the program is sent, such as `SIGUSR1` or `SIGTERM`; `None`: no signal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
        /// The file that is made in the program's directory, with the text of the notice; `None`: no file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
    },
    /// The program saves its work into its directory whenever it sees fit. The directory is saved at the times of the experiment's
    /// checkpoints, and the program is started again with the saved directory.
    Own,
    /// Nothing saves the program's work: after a preemption the program starts from scratch.
    None,
}

impl Saves {
    /// Returns the word for this way of saving, as `compare --saves` accepts it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Criu => "criu",
            Self::Notice { .. } => "notice",
            Self::Own => "own",
            Self::None => "none",
        }
    }
}

/// Way in which the answer of a program is checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// A command that checks the answer. It runs after all processes of the task have ended, in a directory with the
    /// task's original inputs and copies of its outputs, and ends with status 0 if the answer is right.
    Command(Vec<String>),
    /// The digests (BLAKE3, in hexadecimal) that the outputs must have, by path, as of a reference run.
    Outputs(BTreeMap<String, String>),
}

impl OwnProgram {
    /// Returns the verdict on the program's answer, given whether the program succeeded, how its check ended, and the digests (in
    /// hexadecimal) of the kept outputs by path.
    pub fn check<'a>(
        &self,
        ended_well: bool,
        verify_status: Option<i32>,
        output: impl Fn(&str) -> Option<&'a str>,
    ) -> Verdict {
        if !ended_well {
            return Verdict::Wrong("its exit status is not 0".to_owned());
        }
        match &self.verify {
            None => Verdict::Unchecked("it has no check"),
            Some(Verify::Command(_)) => match verify_status {
                Some(0) => Verdict::Right,
                Some(status) => Verdict::Wrong(format!("its check ended with status {status}")),
                None => Verdict::Wrong("its check did not finish".to_owned()),
            },
            Some(Verify::Outputs(expected)) => {
                let differs = expected.iter().find(|(path, digest)| {
                    output(path).is_none_or(|found| found != digest.as_str())
                });
                match differs {
                    None => Verdict::Right,
                    Some((path, _)) => Verdict::Wrong(format!("{path} differs from the reference")),
                }
            }
        }
    }
}

/// The program that a task of a bag runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskProgram {
    /// A program of `dormouse-task`, by its arguments without the amount of work.
    Kernel(Vec<String>),
    /// A user's own program.
    Own(Arc<OwnProgram>),
}

impl TaskProgram {
    /// Returns the user's own program; `None` if the task runs a program of `dormouse-task`.
    #[must_use]
    pub const fn own(&self) -> Option<&Arc<OwnProgram>> {
        match self {
            Self::Own(own) => Some(own),
            Self::Kernel(_) => None,
        }
    }

    /// Returns the arguments for `dormouse-task`; empty for a user's own program.
    #[must_use]
    pub fn kernel(&self) -> &[String] {
        match self {
            Self::Kernel(arguments) => arguments,
            Self::Own(_) => &[],
        }
    }
}

/// Returns the path of a task's folder in the folder of a run: `tasks/` and the task's id.
#[must_use]
pub fn folder_of(task: TaskId) -> String {
    format!("tasks/{}", task.get())
}

/// Returns the path of a failed attempt's folder in the folder of a run, inside the task's folder.
#[must_use]
pub fn folder_of_failed(task: TaskId, attempt: Attempt) -> String {
    format!("{}/failed-{}", folder_of(task), attempt.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(verify: Option<Verify>, ended_well: bool, status: Option<i32>) -> Verdict {
        let own = OwnProgram {
            argv: vec!["solve".to_owned()],
            env: BTreeMap::new(),
            inputs: Vec::new(),
            handed: Vec::new(),
            outputs: Vec::new(),
            mounts: Vec::new(),
            quota: Bytes::new(1),
            processes: 1,
            saves: Saves::Criu,
            verify,
            deterministic: false,
        };
        own.check(ended_well, status, |path| (path == "a.csv").then_some("07"))
    }

    #[test]
    fn a_star_stands_for_anything_within_a_folder() {
        for (pattern, path) in [
            ("a.csv", "a.csv"),
            ("*.csv", "a.csv"),
            ("*.csv", ".csv"),
            ("out/*", "out/a"),
            ("out/*/part-*", "out/x/part-7"),
            ("*ä*", "xäy"),
            ("*a*a", "aaaa"),
        ] {
            assert!(matches_output(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("a.csv", "a.csvx"),
            ("*.csv", "out/a.csv"),
            ("out/*", "out/a/b"),
            ("out/*", "out"),
            ("*a", "ab"),
        ] {
            assert!(!matches_output(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn an_answer_is_right_by_its_check_or_by_its_reference() {
        let by_command = || Some(Verify::Command(vec!["true".to_owned()]));
        let by_digest = |path: &str, digest: &str| {
            Some(Verify::Outputs([(path.to_owned(), digest.to_owned())].into()))
        };
        assert_eq!(checked(by_command(), true, Some(0)), Verdict::Right);
        assert_eq!(checked(by_digest("a.csv", "07"), true, None), Verdict::Right);
        assert!(matches!(checked(None, true, None), Verdict::Unchecked(_)));
        for wrong in [
            checked(by_command(), true, Some(1)),
            checked(by_command(), true, None),
            checked(by_digest("a.csv", "08"), true, None),
            checked(by_digest("b.csv", "07"), true, None),
            checked(None, false, None),
        ] {
            assert!(matches!(wrong, Verdict::Wrong(_)), "{wrong:?}");
        }
    }
}
