//! What was under way in a live run that was stopped with the workers of its host.

use std::fmt;
use std::path::Path;

use dormouse_analysis::TaskHistory;
use dormouse_report::output::RunLog;

/// The tasks that ran when a run was stopped, whose VMs are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoppedTasks {
    /// Number of running tasks that have a checkpoint, from which they go on.
    pub kept: usize,
    /// Number of running tasks without a checkpoint, which begin again.
    pub lost: usize,
}

impl StoppedTasks {
    /// The tasks that ran when the run in this folder was stopped; `None`: it has no tasks, or its log can't be read.
    #[must_use]
    pub fn read(folder: &Path) -> Option<Self> {
        let RunLog { header, steps, .. } = RunLog::read(folder).ok()?;
        let mut record = header.record();
        steps?.iter().for_each(|step| record.see(step));
        let has_tasks = !record.tasks.is_empty();
        has_tasks.then(|| record.tasks.iter().fold(Self::default(), Self::with))
    }

    fn with(self, task: &TaskHistory) -> Self {
        let runs = task.attempts.last().is_some_and(|last| last.ended.is_none());
        let has_checkpoint = |it: &dormouse_analysis::AttemptHistory| {
            it.from.is_some() || !it.checkpoints.is_empty()
        };
        match (runs && task.finished.is_none(), task.attempts.iter().any(has_checkpoint)) {
            (false, _) => self,
            (true, true) => Self { kept: self.kept + 1, ..self },
            (true, false) => Self { lost: self.lost + 1, ..self },
        }
    }
}

impl fmt::Display for StoppedTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kept, lost: anew } = *self;
        match (kept, anew) {
            (0, 0) => f.write_str("no task was running"),
            (kept, 0) => write!(f, "{kept} running tasks go on from their last checkpoints"),
            (0, anew) => write!(f, "{anew} running tasks, without a checkpoint, begin again"),
            (kept, anew) => write!(
                f,
                "{kept} running tasks go on from their last checkpoints, {anew} without one begin again"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_counted_and_said() {
        let said = |kept, lost| StoppedTasks { kept, lost }.to_string();
        assert_eq!(said(0, 0), "no task was running");
        assert!(said(0, 2).starts_with("2 running tasks, without a checkpoint"));
        assert!(
            said(3, 2).contains("3 running tasks go on") && said(3, 2).contains("2 without one")
        );
    }
}
