//! Errors of CRIU, in its own words.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{cgroup, process};

/// The result of a CRIU call.
pub type Result<T, E = CriuError> = std::result::Result<T, E>;

/// A CRIU call that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CriuError {
    /// The program could not be started.
    #[error("can't start {}; obtain a CRIU that works with scripts/get-criu", program.display())]
    Start {
        /// The path of the program.
        program: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The task's view of files can't be entered.
    #[error("the task's own view of its files can't be opened; it may have ended")]
    View(#[source] io::Error),
    /// No thread could be started that waits for CRIU.
    #[error("a thread that waits for CRIU can't be started")]
    Thread(#[source] io::Error),
    /// CRIU refused the request.
    #[error("criu {call} failed: {reason}{log}")]
    Refused {
        /// The request that CRIU refused.
        call: &'static str,
        /// CRIU's `cr_errno`, an errno; `None` if CRIU gave none.
        errno: Option<i32>,
        /// CRIU's `cr_errmsg`, or the meaning of its errno.
        reason: String,
        /// The end of CRIU's log.
        log: LogTail,
    },
    /// CRIU did not answer in time and was killed.
    #[error("criu {call} did not finish within {} ms and was killed{log}", after.as_millis())]
    Late {
        /// The request that took too long.
        call: &'static str,
        /// Time for which the caller waited.
        after: Duration,
        /// The end of CRIU's log.
        log: LogTail,
    },
    /// CRIU failed in the middle of a task without reporting the task's state.
    #[error("criu {call} failed in the middle of the task, which must not continue")]
    InTask {
        /// The request that broke off.
        call: &'static str,
        /// The failure that broke the request off.
        source: Box<Self>,
    },
    /// CRIU ended without an answer.
    #[error("criu {call} ended without an answer (it {ended}){log}")]
    Silent {
        /// The request that got no answer.
        call: &'static str,
        /// CRIU's exit status or signal, worded to follow "it".
        ended: String,
        /// The end of CRIU's log.
        log: LogTail,
    },
    /// CRIU sent something that violates its protocol.
    #[error("criu {call} gave an answer that can't be read: {what}")]
    Protocol {
        /// The request to CRIU that was answered wrongly.
        call: &'static str,
        /// What is wrong with the answer.
        what: String,
    },
    /// The connection to CRIU failed.
    #[error("can't talk to criu during {call}")]
    Socket {
        /// The request that was under way.
        call: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A directory for images could not be opened.
    #[error("can't open the directory {} for CRIU images", path.display())]
    Directory {
        /// The path of the directory.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The caller's own action at a moment of the dump or restore failed, and so did the call.
    #[error("criu {call} was cancelled")]
    GivenUp {
        /// The request that was given up.
        call: &'static str,
        /// The caller's own error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The images hold, or the restored processes would have, more than a jailed task may have.
    #[error("the images given to criu {call} are not of a task of this worker: {what}")]
    Foreign {
        /// The request that would have restored the images.
        call: &'static str,
        /// What the image holds that a jailed task may not have, in words.
        what: String,
    },
    /// The state with which restored processes are compared could not be read.
    #[error("criu {call}: the cell of the task, or this process, can't be looked at")]
    Inspect {
        /// The request that was not made.
        call: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
    /// An operation on the control groups failed.
    #[error("criu {call}: the control group failed")]
    Cgroup {
        /// The request that needed the control group.
        call: &'static str,
        /// The control group's error.
        source: Box<cgroup::CgroupError>,
    },
    /// The worker could not take control of the restored process.
    #[error("criu {call}: the process can't be taken over")]
    Process {
        /// The request that made the process.
        call: &'static str,
        /// The process's error.
        source: Box<process::ProcessError>,
    },
}

impl CriuError {
    /// Returns whether another try may succeed, as CRIU met a process or thread that just ended, or a connection that was just
    /// being made.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        let Self::Refused { errno, reason, .. } = self else { return false };
        *errno == Some(libc::ESRCH) || reason.contains("In-flight connection")
    }

    /// Returns whether CRIU may have left something of its own in the task, as in a dump that CRIU doesn't end itself:
    /// the task must be killed and restored from an older checkpoint.
    #[must_use]
    pub fn may_have_damaged(&self) -> bool {
        matches!(self, Self::InTask { .. })
    }
}

/// Beginning of an error line in CRIU's log.
const ERROR: &str = "Error (";

/// The last lines of a CRIU log, and its path; empty if there is no log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogTail {
    /// The path of the log.
    pub path: Option<PathBuf>,
    /// The log's last lines, or, if there are any, only those that report errors.
    pub lines: Vec<String>,
}

/// Name of a limit in a message that CRIU always logs: it may not raise this limit, and doesn't need to.
const NOISE: &str = "RLIMIT_NOFILE";

/// Returns the part of a CRIU message that says what is wrong, without the usual prefix; `None`: the message doesn't tell the
/// reason.
pub(crate) fn criu_message(message: &str) -> Option<&str> {
    Some(message.trim()).filter(|message| !message.is_empty() && !message.contains(NOISE))
}

impl LogTail {
    const LINES: usize = 5;

    /// Returns the first error in the log (later errors mostly follow from it); `None`: the log has no error.
    #[must_use]
    pub(crate) fn first_error(&self) -> Option<&str> {
        self.lines.iter().find(|line| line.contains(ERROR)).map(|line| line.trim())
    }

    /// Reads the end of the log at `path`.
    #[must_use]
    pub(crate) fn read(path: &Path) -> Self {
        // The log may hold bytes of the task's file names.
        let Ok(bytes) = fs::read(path) else {
            return Self::default();
        };
        let text = String::from_utf8_lossy(&bytes);
        let tail = |lines: Vec<&str>| -> Vec<String> {
            let skip = lines.len().saturating_sub(Self::LINES);
            lines.into_iter().skip(skip).map(str::to_owned).collect()
        };
        let is_error = |line: &&str| line.contains(ERROR) && criu_message(line).is_some();
        let mut lines = tail(text.lines().filter(is_error).collect());
        if lines.is_empty() {
            lines = tail(text.lines().collect());
        }
        Self { path: Some(path.to_owned()), lines }
    }
}

impl fmt::Display for LogTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(path) = &self.path else {
            return Ok(());
        };
        write!(f, "; its log {} ends", path.display())?;
        for line in &self.lines {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn error_lines_win_over_last_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dump.log");
        fs::write(&path, "a\n(0.1) Error (criu/x.c:1): bad size\nb\nc\n").unwrap();
        let tail = LogTail::read(&path);
        assert_eq!(tail.lines, ["(0.1) Error (criu/x.c:1): bad size"]);
        assert!(tail.to_string().contains("dump.log ends\n  (0.1) Error"));
        let noise = "(0.0) Error (criu/util.c:1): rlimit: Can't setup RLIMIT_NOFILE for self\n";
        fs::write(&path, format!("{noise}(0.1) Error (criu/x.c:1): bad size\n")).unwrap();
        assert_eq!(LogTail::read(&path).first_error(), Some("(0.1) Error (criu/x.c:1): bad size"));
        fs::write(&path, "1\n2\n3\n4\n5\n6\n").unwrap();
        assert_eq!(LogTail::read(&path).lines.first().unwrap(), "2");
        assert_eq!(LogTail::read(&dir.path().join("none")).to_string(), "");
    }
}
