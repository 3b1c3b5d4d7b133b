//! The parallel jobs of a run while it goes: what is written of them, and what comes of them.

use std::path::Path;

use dormouse_engine::jobs::Told;
use dormouse_engine::{Effect, Event, Report, Step};
use dormouse_units::{Ppm, Span, TaskId};

use super::recorder::Recorder;
use super::{History, JobsError, JobsOutcome, SeenByJobs};
use crate::experiment::Batch;
use crate::output::Header;

/// Follows the parallel jobs of a run, and leaves `jobs.csv`, `allocations.csv` and `schedule.swf` in its
/// folder.
/// Memory grows with the jobs in the system, and not with the trace.
#[derive(Debug)]
pub struct JobsRecording<'a> {
    header: &'a Header,
    batch: &'a Batch,
    seen: SeenByJobs,
    recorder: Recorder,
    told: Told,
    /// Checkpoints of jobs that were kept.
    checkpoints: u32,
    /// How often a job began with one.
    restores: u32,
}

impl<'a> JobsRecording<'a> {
    /// Begins the files in `folder`; `None`: the run has no parallel jobs.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn begin(folder: &Path, header: &'a Header) -> Result<Option<Self>, JobsError> {
        Self::begin_within(folder, header, History::default())
    }

    /// The same, with the window of time that the chart is to show: a history of nothing yet.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn begin_within(
        folder: &Path,
        header: &'a Header,
        history: History,
    ) -> Result<Option<Self>, JobsError> {
        let Some(batch) = header.experiment.jobs.as_deref() else { return Ok(None) };
        let recorder = Recorder::begin(folder, header, batch.workload.processors, history)?;
        let seen = SeenByJobs::of(&header.experiment);
        let (told, checkpoints, restores) = (Told::default(), 0, 0);
        Ok(Some(Self { header, batch, seen, recorder, told, checkpoints, restores }))
    }

    /// Takes in a step of the run.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn see(&mut self, step: &Step) -> Result<(), JobsError> {
        let step = self.seen.see(step);
        if let Event::Machine { report, .. } = &step.event
            && !step.effects.contains(&Effect::Stale)
        {
            match report {
                Report::CheckpointTaken { .. } => self.checkpoints += 1,
                Report::TaskStarted { done, .. } if *done > Ppm::ZERO => self.restores += 1,
                _ => {}
            }
        }
        self.told.see(&step, &mut self.recorder)
    }

    /// What jobs are promised, from their first start to their end; for those that end from now on.
    pub fn promise(&mut self, promises: impl Iterator<Item = (TaskId, Span)>) {
        self.recorder.promise(promises);
    }

    /// Ends the files. What came of the jobs is that of a run in virtual time with this digest of
    /// its decisions ([`Run::digest`](dormouse_engine::Run::digest)); what else is known is set
    /// afterwards.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn finish(self, decisions_sha256: String) -> Result<JobsOutcome<'a>, JobsError> {
        let Self { header, batch, recorder, told, checkpoints, restores, .. } = self;
        let (figures, history) = recorder.finish()?;
        let totals = told.totals();
        Ok(JobsOutcome {
            header,
            batch,
            figures,
            history,
            decisions_sha256,
            most_in_system: totals.most_in_system,
            skipped: None,
            verified: 0,
            failed: totals.in_system as u64,
            cancelled: None,
            checkpoints,
            restores,
            fidelity: None,
            consolidation: None,
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use crate::experiment::{Override, Source, open};
    use crate::output::{Header, Mode, RunLog};
    use crate::results::virtual_results;

    #[test]
    fn checkpoints_of_jobs_are_counted() {
        let set = |text: &str| Override::set(text).unwrap();
        let overrides = vec![
            set("checkpoint.policy=every"),
            set("checkpoint.period=5m"),
            set("checkpoint.fixed=10s"),
        ];
        let source = Source { experiment: Some("batch-small"), overrides, ..Source::default() };
        let experiment = open(&source).unwrap().experiment;
        let header = Header::new(Mode::Virtual, "a test".to_owned(), experiment);
        let folder = tempfile::tempdir().unwrap();
        let results = virtual_results(&header, (None, None), folder.path(), |_| {}).unwrap();
        let steps = RunLog::read(folder.path()).unwrap().steps.unwrap();
        let kept = steps.iter().filter(|step| {
            serde_json::to_value(&step.event).unwrap()["report"] == "checkpoint-taken"
        });
        let counts = &results.view().summary["counts"];
        assert_eq!(counts["checkpoints"], kept.count(), "{counts}");
        assert!(counts["checkpoints"].as_u64() > Some(10), "{counts}");
        // Nothing takes their machine away.
        assert_eq!(counts["restores"], 0, "{counts}");
    }
}
