//! How a user's own program ended.

use std::path::Path;

use dormouse_proto::v1;
use dormouse_tasks::{
    left,
    supervisor::{Exit, OwnResult},
};

use crate::{agent::launch::RESULT, process::ProcessEnd};

/// Bytes of a failed program's output in the reason of its failure.
const LAST_WORDS: u64 = 400;
/// Returns how a program ended, given the end of its supervisor and the directory of its task. Whether it did well is
/// decided by the supervisor's status, which the kernel reports; the supervisor's notes only explain a failure.
pub(crate) fn end_of(directory: &Path, ended: ProcessEnd) -> v1::OwnEnd {
    use v1::own_end::End;
    let noted = || OwnResult::read(&directory.join(RESULT)).ok().map(|noted| noted.exit);
    let end = match ended {
        ProcessEnd::Exited(0) => End::Status(0),
        ProcessEnd::Exited(1) => match noted() {
            Some(Exit::Status(status)) if status != 0 => End::Status(status),
            Some(Exit::Signal(signal)) => End::Signal(signal),
            Some(Exit::Status(_)) | None => End::Status(1),
        },
        // It did not run its program to its end.
        ProcessEnd::Exited(status) => End::Status(status),
        // The supervisor went with its program, as for want of memory.
        ProcessEnd::Killed(signal) => End::Signal(signal),
    };
    v1::OwnEnd { end: Some(end), ..v1::OwnEnd::default() }
}

/// Returns the exit status that a shell would report for this end of a program; `None`: the end isn't known.
pub(crate) fn status_of(end: &v1::OwnEnd) -> Option<i32> {
    use v1::own_end::End;
    end.end.map(|end| match end {
        End::Status(status) => status,
        End::Signal(signal) => 128 + signal,
    })
}

/// Describes why a program failed, with its last output; `None` if it did well.
pub(crate) fn describe_failure(directory: &Path, end: &v1::OwnEnd) -> Option<String> {
    use v1::own_end::End;
    let how = match (end.end?, end.verify_status) {
        (End::Status(0), None | Some(0)) => return None,
        (End::Status(0), Some(status)) => format!("its check ended with status {status}"),
        (End::Status(status), _) => format!("it returned status {status}"),
        (End::Signal(signal), _) => format!("signal {signal} ended it"),
    };
    let words = left::tail(&directory.join("stderr"), LAST_WORDS).unwrap_or_default();
    Some(format!("{how}: {}", String::from_utf8_lossy(&words).trim()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use super::*;
    use v1::own_end::End;

    #[test]
    fn an_end_is_the_program_s_and_not_its_supervisor_s() {
        let folder = tempfile::tempdir().unwrap();
        let at = |ended| end_of(folder.path(), ended);
        assert_eq!(at(ProcessEnd::Killed(9)).end, Some(End::Signal(9)));
        assert_eq!(at(ProcessEnd::Exited(127)).end, Some(End::Status(127)));
        assert_eq!(at(ProcessEnd::Exited(1)).end, Some(End::Status(1)), "it noted nothing");
        let note = |exit| {
            let result = serde_json::to_vec(&OwnResult { exit }).unwrap();
            std::fs::write(folder.path().join(RESULT), result).unwrap();
        };
        // Whoever wrote this: the supervisor says that the program failed.
        note(Exit::Status(0));
        assert_eq!(at(ProcessEnd::Exited(1)).end, Some(End::Status(1)));
        note(Exit::Signal(6));
        assert_eq!(at(ProcessEnd::Exited(0)).end, Some(End::Status(0)));
        assert_eq!(status_of(&at(ProcessEnd::Exited(1))), Some(134));
        note(Exit::Status(3));
        std::fs::write(folder.path().join("stderr"), "no such table\n").unwrap();
        let end = at(ProcessEnd::Exited(1));
        assert_eq!((end.end, end.verify_status), (Some(End::Status(3)), None));
        let why = describe_failure(folder.path(), &end);
        assert_eq!(why.as_deref(), Some("it returned status 3: no such table"));
        let well = at(ProcessEnd::Exited(0));
        let checked = |status| v1::OwnEnd { verify_status: Some(status), ..well.clone() };
        let why = describe_failure(folder.path(), &checked(139));
        assert!(why.unwrap().starts_with("its check ended with status 139"));
        assert_eq!(describe_failure(folder.path(), &checked(0)), None);
        assert_eq!(describe_failure(folder.path(), &well), None);
    }
}
