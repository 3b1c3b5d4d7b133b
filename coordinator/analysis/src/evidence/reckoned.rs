//! Collects the coordinator's own evidence step by step.

use dormouse_model::{Setup, Step};
use dormouse_units::Speedup;

use super::checkpoints::DueCheckpoints;
use super::early::early_end;
use super::{CheckpointShortfall, EarlyEnd};
use crate::{RecordChange, RunRecord};

/// Findings of the coordinator about a live run, from its own log. Call [`Self::see`] for each step
/// in order; [`Self::notes`] gives the findings as sentences.
#[derive(Clone, Debug)]
pub struct Evidence {
    speedup: Speedup,
    record: RunRecord,
    checkpoints: DueCheckpoints,
    early: Vec<(u64, EarlyEnd)>,
}

impl Evidence {
    /// No findings yet, for a live run of this setup at this speed-up.
    #[must_use]
    pub fn new(setup: &Setup, speedup: Speedup) -> Self {
        let (record, checkpoints) = (RunRecord::new(setup).forgetting(), DueCheckpoints::default());
        Self { speedup, record, checkpoints, early: Vec::new() }
    }

    /// Findings of all these steps of a run.
    #[must_use]
    pub fn from_steps(setup: &Setup, speedup: Speedup, steps: &[Step]) -> Self {
        let mut evidence = Self::new(setup, speedup);
        for step in steps {
            evidence.see(setup, step);
        }
        evidence
    }

    /// Checks the next step of the run; returns the end of an attempt in the step that came too early, if there is one.
    pub fn see(&mut self, setup: &Setup, step: &Step) -> Option<&EarlyEnd> {
        let Self { speedup, record, checkpoints, early } = self;
        record.see(step);
        checkpoints.see(step);
        let known = early.len();
        for change in record.changes() {
            if let RecordChange::Left(task, number, _) = *change
                && let Some(attempt) = record.task(task).and_then(|task| task.attempt(number))
            {
                let of = (task, attempt);
                checkpoints.over(setup, record, *speedup, of);
                early.extend(early_end(setup, record, *speedup, of).map(|it| (step.seq, it)));
            }
        }
        self.early.get(known).map(|(_, early)| early)
    }

    /// The ends of attempts that came too early, each with the sequence number of its step.
    #[must_use]
    pub fn early(&self) -> &[(u64, EarlyEnd)] {
        &self.early
    }

    /// The attempts with fewer checkpoints than were due, and the number of checkpoints due and
    /// answered over all attempts.
    #[must_use]
    pub fn short_of_checkpoints(&self) -> (Vec<CheckpointShortfall>, u32, u32) {
        self.checkpoints.short()
    }

    /// One sentence for each kind of finding; empty if nothing is wrong.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some((_, first)) = self.early.first() {
            let more = match self.early.len() {
                1 => String::new(),
                n => format!(" (and {} more)", n - 1),
            };
            notes.push(format!("{first}{more}"));
        }
        let (short, due, answered) = self.short_of_checkpoints();
        if let Some(first) = short.first() {
            notes.push(format!(
                "checkpoints {answered} of {due} taken, given up or failed: of the others the workers \
                 said nothing, such as of {}",
                first.task
            ));
        }
        notes
    }
}
