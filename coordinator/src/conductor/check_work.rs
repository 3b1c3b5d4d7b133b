//! The work of a spot check: another host computes a part of a task again, or runs a user's own program once more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dormouse_model::{CheckFinding, ProgramEnd, ProgramExit, Report};
use dormouse_proto::v1;
use dormouse_tasks::own::{OwnProgram, Verify};
use dormouse_tasks::result::TaskResult;
use dormouse_tasks::spot_check::CheckOrder;

use crate::protocol::own_program::own_to_wire;

/// An answer that may be checked.
#[derive(Clone, Debug)]
pub(super) enum CheckedAnswer {
    /// The answer is the text that a program of `dormouse-task` gave.
    Text(Arc<str>),
    /// The answer is the end of a user's own program, with its outputs.
    Own(Arc<ProgramEnd>),
}

/// Work of a spot check, with the expected result.
#[derive(Clone, Debug)]
pub(super) enum CheckWork {
    /// The check computes a part of a task of a `dormouse-task` program again.
    Part {
        order: CheckOrder,
        answer: Box<TaskResult>,
        /// CPU time that the task was given for all its work.
        ordered: Duration,
    },
    /// The check runs a user's own program again, from beginning to end.
    Whole { program: Arc<OwnProgram>, end: Arc<ProgramEnd> },
}

/// Returns whether a user's own program leaves the same outputs wherever it runs: it is declared so, or compared with
/// a reference run.
pub(super) const fn is_deterministic(program: &OwnProgram) -> bool {
    program.deterministic || matches!(program.verify, Some(Verify::Outputs(_)))
}

impl CheckWork {
    /// Returns whether the whole task is computed again.
    pub(super) const fn is_whole(&self) -> bool {
        matches!(self, Self::Whole { .. })
    }

    /// Makes the program that a worker starts for the check; `nonce` is for programs of `dormouse-task`.
    pub(super) fn make_program(&self, nonce: u64) -> (v1::Program, Option<v1::OwnProgram>) {
        match self {
            Self::Part { order, .. } => {
                let mut args = order.arguments.clone();
                // The arguments of a parallel job have its CPU time, which the worker adds to those of a check.
                if let Some(at) = args.iter().position(|word| word == "--cpu-time") {
                    args.drain(at..args.len().min(at + 2));
                }
                args.extend(["--nonce".to_owned(), nonce.to_string()]);
                (v1::Program { args }, None)
            }
            Self::Whole { program, .. } => (v1::Program::default(), Some(own_to_wire(program))),
        }
    }

    /// Judges a check whose task has ended on the other host, by that host's result and account.
    pub(super) fn compare_result(
        &self,
        result: Option<&str>,
        account: Option<&Report>,
    ) -> CheckFinding {
        let unanswered = |why: &str| CheckFinding::Unanswered { why: why.to_owned() };
        let compared = match self {
            Self::Part { order, answer, ordered } => {
                let again = result.map(serde_json::from_str::<TaskResult>);
                let Some(Ok(again)) = again else { return unanswered("its answer can't be read") };
                order.compare(answer, *ordered, &again)
            }
            Self::Whole { end, .. } => {
                let Some(Report::Ledger { own: Some(again), .. }) = account else {
                    return unanswered("it does not say how its program ended");
                };
                if let Some(why) = again.not_kept.first() {
                    return unanswered(&format!("not all that its program left has come: {why}"));
                }
                compare_ends(end, again)
            }
        };
        match compared {
            Ok(()) => CheckFinding::Equal,
            Err(why) => CheckFinding::Differs { why },
        }
    }
}

/// Compares the ends of a program on two hosts: exit status, status of its check, and outputs. Standard output and
/// error are ignored, as they may contain times.
fn compare_ends(end: &ProgramEnd, again: &ProgramEnd) -> Result<(), String> {
    let exit = |end: &ProgramEnd| match end.exit {
        Some(ProgramExit::Status(status)) => format!("with status {status}"),
        Some(ProgramExit::Signal(signal)) => format!("by signal {signal}"),
        None => "before its time".to_owned(),
    };
    if end.exit != again.exit {
        let (one, other) = (exit(end), exit(again));
        return Err(format!("its program ended {one}, but {other} when run again"));
    }
    let verdict = |status: Option<i32>| match status {
        Some(status) => format!("ended with status {status}"),
        None => "did not run".to_owned(),
    };
    if end.verify_status != again.verify_status {
        let (one, other) = (verdict(end.verify_status), verdict(again.verify_status));
        return Err(format!("its check {one}, but {other} when run again"));
    }
    let outputs = |end: &ProgramEnd| -> BTreeMap<String, String> {
        let all = end.files.iter().filter(|file| file.path.starts_with(ProgramEnd::OUTPUTS));
        all.map(|file| (file.path.clone(), file.digest.clone())).collect()
    };
    let (ours, theirs) = (outputs(end), outputs(again));
    let mut paths = ours.keys().chain(theirs.keys());
    match paths.find(|path| ours.get(*path) != theirs.get(*path)) {
        None => Ok(()),
        Some(path) => {
            let has = |of: &BTreeMap<String, String>| {
                of.get(path)
                    .map_or("not there".to_owned(), |digest| digest.chars().take(16).collect())
            };
            let (one, other) = (has(&ours), has(&theirs));
            Err(format!("{path} is {one}, but {other} when its program was run again"))
        }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_model::KeptFile;
    use dormouse_units::Bytes;

    use super::*;

    fn end(status: i32, verify_status: Option<i32>, files: &[(&str, &str)]) -> ProgramEnd {
        let file = |(path, digest): &(&str, &str)| KeptFile {
            path: (*path).to_owned(),
            digest: (*digest).to_owned(),
            bytes: Bytes::new(1),
            executable: false,
        };
        ProgramEnd {
            exit: Some(ProgramExit::Status(status)),
            verify_status,
            files: files.iter().map(file).collect(),
            not_kept: Vec::new(),
            real_waited_us: 0,
            memory: Bytes::ZERO,
            directory: Bytes::ZERO,
        }
    }

    #[test]
    fn a_program_that_ended_otherwise_or_left_other_outputs_differs() {
        let honest = end(0, Some(0), &[("stdout", "aa"), ("outputs/a", "07"), ("outputs/b", "08")]);
        let same = end(0, Some(0), &[("stdout", "bb"), ("outputs/a", "07"), ("outputs/b", "08")]);
        assert_eq!(compare_ends(&honest, &same), Ok(()), "what it said is not compared");
        for (again, word) in [
            (end(1, Some(0), &[]), "ended with status 0, but with status 1"),
            (end(0, Some(1), &[]), "its check ended with status 0, but ended with status 1"),
            (end(0, None, &[]), "but did not run"),
            (end(0, Some(0), &[("outputs/a", "07")]), "outputs/b is 08, but not there"),
            (
                end(0, Some(0), &[("outputs/a", "09"), ("outputs/b", "08")]),
                "outputs/a is 07, but 09",
            ),
        ] {
            let why = compare_ends(&honest, &again).expect_err(word);
            assert!(why.contains(word), "{why}");
        }
    }
}
