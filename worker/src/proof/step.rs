//! The steps of a proof, and their outcomes.

use std::time::{Duration, Instant};

/// Kind of a step of `dormouse doctor`'s live test of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofStepKind {
    /// The process becomes a worker and makes a VM's control groups.
    Groups,
    /// A task is started in the VM's control groups, and works.
    Launch,
    /// The task is confined by its jail: its user, and the limits on what it may do.
    Jail,
    /// The VM is frozen with its task.
    Freeze,
    /// The VM thaws, and its task continues.
    Thaw,
    /// CRIU dumps the task.
    Dump,
    /// CRIU restores the task, and the task works.
    Restore,
    /// The restored task ends with the right answer.
    Answer,
    /// A task with threads is dumped and continues.
    Threads,
    /// A task with a TCP connection is dumped and continues.
    Tcp,
    /// A task that looks at the clock is dumped and continues.
    Clock,
    /// A task with open files of its /tmp, /dev/shm and /proc, and a terminal, is dumped and continues.
    Files,
    /// Everything that the live test of this host has created is removed.
    CleanUp,
}

impl ProofStepKind {
    /// Returns the step in words.
    #[must_use]
    pub const fn step_words(self) -> &'static str {
        match self {
            Self::Groups => "proof: groups",
            Self::Launch => "proof: launch",
            Self::Jail => "proof: jail",
            Self::Freeze => "proof: freeze",
            Self::Thaw => "proof: thaw",
            Self::Dump => "proof: dump",
            Self::Restore => "proof: restore",
            Self::Answer => "proof: answer",
            Self::Threads => "proof: threads",
            Self::Tcp => "proof: TCP socket",
            Self::Clock => "proof: clock",
            Self::Files => "proof: files of its own",
            Self::CleanUp => "proof: clean-up",
        }
    }

    /// Returns whether this step of the live test matters only for checkpoints.
    #[must_use]
    pub const fn is_of_checkpoints(self) -> bool {
        !matches!(
            self,
            Self::Groups | Self::Launch | Self::Jail | Self::Freeze | Self::Thaw | Self::CleanUp
        )
    }

    /// Returns whether this step of the live test matters only for users' own programs, since no built-in task does what the step
    /// tests.
    #[must_use]
    pub const fn is_of_own_programs(self) -> bool {
        matches!(self, Self::Threads | Self::Tcp | Self::Clock | Self::Files)
    }
}

/// A step of `dormouse doctor`'s live test of this host, with its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofStep {
    /// The step that was carried out.
    pub what: ProofStepKind,
    /// The time that the step took.
    pub took: Duration,
    /// Result of the step, in words; as an error, why the step failed.
    pub came: Result<String, String>,
}

/// The steps of the live test of this host that were carried out, in their order. Steps that need an earlier step that failed are
/// left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerProof {
    /// The steps with their outcomes, in order.
    pub steps: Vec<ProofStep>,
}

impl WorkerProof {
    /// Carries out a step and records its outcome; `None` if the step fails.
    pub(super) fn take_step<T>(
        &mut self,
        what: ProofStepKind,
        step: impl FnOnce() -> Result<(T, String), String>,
    ) -> Option<T> {
        let begun = Instant::now();
        let (value, came) = match step() {
            Ok((value, words)) => (Some(value), Ok(words)),
            Err(why) => (None, Err(why)),
        };
        self.steps.push(ProofStep { what, took: begun.elapsed(), came });
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_kept_with_its_reason() {
        let mut proof = WorkerProof::default();
        let went = proof.take_step(ProofStepKind::Launch, || Ok((7, "it works".to_owned())));
        let failed = proof
            .take_step(ProofStepKind::Freeze, || Err::<((), String), _>("too late".to_owned()));
        assert_eq!((went, failed), (Some(7), None));
        let came: Vec<_> = proof.steps.into_iter().map(|step| step.came).collect();
        assert_eq!(came, [Ok("it works".to_owned()), Err("too late".to_owned())]);
    }
}
