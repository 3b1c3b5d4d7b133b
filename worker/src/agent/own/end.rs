//! How a program of the user's own ended.

use std::path::Path;

use dormouse_proto::v1;
use dormouse_tasks::{
    left,
    supervisor::{Exit, OwnResult},
};

use crate::{agent::launch::RESULT, process::Ended};

/// How much of what a failed program wrote goes into a reason, in bytes.
const LAST_WORDS: u64 = 400;
/// The status of a supervisor whose program can't be started.
const NOT_STARTED: i32 = 127;

/// How the program ended whose supervisor ended so, in this directory of its task.
pub(crate) fn end_of(directory: &Path, ended: Ended) -> v1::OwnEnd {
    use v1::own_end::End;
    let noted = match ended {
        Ended::Exited(0 | 1) => OwnResult::read(&directory.join(RESULT)).ok(),
        _ => None,
    };
    let end = match (noted, ended) {
        (Some(OwnResult { exit: Exit::Status(status), .. }), _) => End::Status(status),
        (Some(OwnResult { exit: Exit::Signal(signal), .. }), _) => End::Signal(signal),
        // The supervisor went with its program, as for want of memory.
        (None, Ended::Killed(signal)) => End::Signal(signal),
        (None, Ended::Exited(status)) => {
            End::Status(if status == 0 { NOT_STARTED } else { status })
        }
    };
    let verify_status = noted.and_then(|noted| noted.verify).map(|verify| match verify {
        Exit::Status(status) => status,
        Exit::Signal(signal) => 128 + signal,
    });
    v1::OwnEnd { end: Some(end), verify_status, ..v1::OwnEnd::default() }
}

/// Why its program did not do well, if it did not; with its last words.
pub(crate) fn failure(directory: &Path, end: &v1::OwnEnd) -> Option<String> {
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
        assert_eq!(at(Ended::Killed(9)).end, Some(End::Signal(9)));
        assert_eq!(at(Ended::Exited(127)).end, Some(End::Status(127)));
        assert_eq!(at(Ended::Exited(0)).end, Some(End::Status(127)), "it noted nothing");
        let note = |exit, verify| {
            let result = serde_json::to_vec(&OwnResult { exit, verify }).unwrap();
            std::fs::write(folder.path().join(RESULT), result).unwrap();
        };
        note(Exit::Status(3), None);
        std::fs::write(folder.path().join("stderr"), "no such table\n").unwrap();
        let end = at(Ended::Exited(1));
        assert_eq!((end.end, end.verify_status), (Some(End::Status(3)), None));
        let why = failure(folder.path(), &end);
        assert_eq!(why.as_deref(), Some("it returned status 3: no such table"));
        note(Exit::Status(0), Some(Exit::Signal(11)));
        let end = at(Ended::Exited(1));
        assert_eq!(end.verify_status, Some(139));
        assert!(
            failure(folder.path(), &end).unwrap().starts_with("its check ended with status 139")
        );
        note(Exit::Status(0), Some(Exit::Status(0)));
        assert_eq!(failure(folder.path(), &at(Ended::Exited(0))), None);
    }
}
