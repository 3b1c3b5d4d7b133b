//! Diagnosis of a failed step of doctor's live test of this host, and its remedy.

use dormouse_worker::place::ProcessPlace;

use super::rights::ProcessRights;

/// Circumstances of this process from which doctor concludes the cause of a failed step of its live test.
#[derive(Clone, Debug)]
pub(super) struct FailureCircumstances {
    pub(super) place: ProcessPlace,
    pub(super) rights: ProcessRights,
}

/// Cause of a failed step of doctor's live test, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailureCause {
    /// The cause of the failed step in words; empty if unknown.
    pub(super) what: String,
    pub(super) fix: String,
}

impl FailureCircumstances {
    /// The cause of a failure with this error text.
    pub(super) fn find_cause(&self, why: &str) -> FailureCause {
        let has = |words: &[&str]| words.iter().any(|word| why.contains(word));
        let cause = |what: &str, fix: String| FailureCause { what: what.to_owned(), fix };
        let lacking = self.rights.lacking_names();
        if has(&["clock offset", "timens"]) && lacking.contains(&"SYS_TIME") {
            return cause(
                "a restore sets the clock of its task, which takes CAP_SYS_TIME",
                self.place.to_add_capabilities(&["SYS_TIME"]),
            );
        }
        if has(&["ns_last_pid", "Read-only file system", "mounted read-only"]) {
            return cause("what the engine mounts read-only stays so", self.place.to_mount());
        }
        if has(&["too busy"]) {
            return cause("others use the processors", "stop other work, and try again".to_owned());
        }
        if has(&["No space left"]) {
            return cause("the disk is full", "free some".to_owned());
        }
        if has(&["sk-inet", "sockets:", "inet:", "tcp"]) && !has(&["Operation not permitted"]) {
            return cause(
                "this CRIU can't dump connections on this kernel (from 6.16 on that takes CRIU 4.2)",
                "scripts/get-criu --again obtains one that can".to_owned(),
            );
        }
        if !lacking.is_empty() {
            let caps: Vec<_> = lacking.iter().map(|name| format!("CAP_{name}")).collect();
            let what = format!("{} is lacking", caps.join(", "));
            return FailureCause { what, fix: self.place.to_add_capabilities(&lacking) };
        }
        if self.rights.is_filtered {
            return cause(
                "a filter of system calls (seccomp) is in the way",
                self.place.to_lift_seccomp(),
            );
        }
        let fix =
            "nothing is known that would help; `criu check --all` says what this kernel lacks";
        cause("", fix.to_owned())
    }
}

/// A failure in one line, without the end of CRIU's log, whose first error is in the rest of the text.
pub(super) fn brief_failure(why: &str) -> String {
    let first = why.lines().next().unwrap_or_default();
    first.split_once("; its log ").map_or(first, |(call, _)| call).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = 1 << 21 | 1 << 1 | 1 << 5 | 1 << 7 | 1 << 6 | 1 | 1 << 19 | 1 << 12 | 1 << 25;

    fn at(effective: u64, is_filtered: bool) -> FailureCircumstances {
        let rights = ProcessRights { is_root: true, effective, is_filtered };
        FailureCircumstances { place: ProcessPlace::Docker, rights }
    }

    #[test]
    fn a_failure_has_its_cause_and_a_line_to_add() {
        let clock = "Unable to set a monotonic clock offset: Permission denied";
        let cause = at(ALL & !(1 << 25), false).find_cause(clock);
        assert!(cause.what.contains("CAP_SYS_TIME") && cause.fix.contains("SYS_TIME"), "{cause:?}");
        let filtered = at(ALL, true).find_cause("criu dump failed: Operation not permitted");
        assert!(filtered.fix.contains("seccomp=unconfined"), "{filtered:?}");
        let lacking =
            at(ALL & !(1 << 19), true).find_cause("criu dump failed: Operation not permitted");
        assert!(lacking.what.starts_with("CAP_SYS_PTRACE"), "{lacking:?}");
        let mounts =
            at(ALL, false).find_cause("Can't open sys/kernel/ns_last_pid: Read-only file system");
        assert!(mounts.fix.contains("--cap-add SYS_ADMIN"), "{mounts:?}");
        let sockets = at(ALL, false).find_cause("Error (criu/sk-inet.c:1): Unsupported");
        assert!(sockets.fix.contains("get-criu"), "{sockets:?}");
        assert_eq!(at(ALL, false).find_cause("it was late").what, "");
    }

    #[test]
    fn a_failure_of_criu_is_told_in_its_own_words_on_one_line() {
        let why = "the checkpoint of a failed in criu: criu restore failed: Error (criu/timens.c:9): \
                   timens: Unable to set a clock offset; its log /run/x.log ends\n  (00.02) Error";
        let expected = "the checkpoint of a failed in criu: criu restore failed: Error \
                        (criu/timens.c:9): timens: Unable to set a clock offset";
        assert_eq!(brief_failure(why), expected);
        assert_eq!(brief_failure("it was late"), "it was late");
        assert_eq!(
            brief_failure("criu dump failed: no; its log /x ends\n  last"),
            "criu dump failed: no"
        );
    }
}
