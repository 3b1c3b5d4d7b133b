//! The parallel jobs of a run that they share with a bag of tasks: what is written of them while it
//! goes, and what came of them.

use std::path::Path;

use dormouse_engine::jobs::Told;
use dormouse_engine::{Step, Work, seen_by};
use dormouse_units::{Span, TaskId};
use dormouse_workload::Skipped;
use serde_json::json;

use super::log::{BatchHeader, BatchLog};
use super::recorder::Recorder;
use super::{BatchError, gantt};
use crate::fidelity::Consolidation;
use crate::output::{Header, JobsOutcome};

/// The jobs' part of the log of a shared run, as their scheduler saw it; `None`: nobody shares it.
#[must_use]
pub fn jobs_log(header: &Header, steps: &[Step]) -> Option<BatchLog> {
    let (of, header) = (header.experiment.tenants(), jobs_header(header)?);
    let steps = steps.iter().map(|step| seen_by(step, &of, JOBS)).collect();
    Some(BatchLog { header, steps: Some(steps), torn: false })
}

/// The place of the jobs among the tenants.
const JOBS: usize = 1;

fn jobs_header(header: &Header) -> Option<BatchHeader> {
    let jobs = header.experiment.jobs.as_deref()?;
    let (mode, command) = (header.mode, header.command.clone());
    Some(BatchHeader::new(mode, command, jobs.processors(), jobs.clone()))
}

/// Follows the jobs of a shared run, and leaves `jobs.csv` and `schedule.swf` in its folder.
#[derive(Debug)]
pub struct SharedJobs {
    header: BatchHeader,
    of: Vec<Work>,
    recorder: Recorder,
    told: Told,
    skipped: Option<Skipped>,
}

impl SharedJobs {
    /// Begins the files in `folder`; `None` if no jobs share the run.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn begin(folder: &Path, header: &Header) -> Result<Option<Self>, BatchError> {
        let Some(own) = jobs_header(header) else { return Ok(None) };
        let recorder = Recorder::begin(folder, &own)?;
        let of = header.experiment.tenants();
        Ok(Some(Self { header: own, of, recorder, told: Told::default(), skipped: None }))
    }

    /// Takes in a step of the run.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn see(&mut self, step: &Step) -> Result<(), BatchError> {
        self.told.see(&seen_by(step, &self.of, JOBS), &mut self.recorder)
    }

    /// What their scheduler saw of these steps.
    #[must_use]
    pub fn seen(&self, steps: &[Step]) -> Vec<Step> {
        steps.iter().map(|step| seen_by(step, &self.of, JOBS)).collect()
    }

    /// What was left out of the log that they are of.
    pub fn left_out(&mut self, skipped: Option<Skipped>) {
        self.skipped = skipped;
    }

    /// What jobs are promised, from their first start to their end; for those that end from now on.
    pub fn promise(&mut self, promises: impl Iterator<Item = (TaskId, Span)>) {
        self.recorder.promise(promises);
    }

    /// Ends the files of a run in virtual time.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn finish(self) -> Result<JobsOutcome, BatchError> {
        let left = self.told.totals().in_system as u64;
        self.ended(None, left)
    }

    /// Ends the files of a live run; `left` jobs did not end with an answer that was right.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn finish_live(
        self,
        consolidation: &Consolidation,
        left: u64,
    ) -> Result<JobsOutcome, BatchError> {
        self.ended(Some(consolidation), left)
    }

    fn ended(
        self,
        consolidation: Option<&Consolidation>,
        left: u64,
    ) -> Result<JobsOutcome, BatchError> {
        let Self { header, recorder, told, skipped, .. } = self;
        // The digest is the whole run's.
        let mut outcome = recorder.finish(&header, String::new())?;
        outcome.most_in_system = Some(told.totals().most_in_system);
        outcome.skipped = skipped;
        (outcome.failed, outcome.consolidation) = (left, consolidation.cloned());
        let mut summary = outcome.summary();
        if let Some(own) = summary.as_object_mut() {
            // What the whole run says.
            for key in ["experiment", "mode", "seed", "speedup", "command", "wall_s"] {
                own.remove(key);
            }
            own.remove("decisions_sha256");
            own.insert("work".to_owned(), json!(Work::Jobs.name()));
        }
        let figures = &outcome.figures;
        let of_log = skipped.filter(|s| s.malformed() + s.never_ran > 0);
        let of_log = of_log.map(|skipped| format!("; of their log: {skipped}"));
        let line = format!(
            "{} under {} on {} processors: {:.1} s to the end of each, slowdown {:.2} (means){}",
            figures.jobs(),
            header.experiment.scheduler.name,
            header.machine,
            figures.response.mean(),
            figures.slowdown.mean(),
            of_log.unwrap_or_default(),
        );
        Ok(JobsOutcome { summary, gantt: gantt::gantt(&outcome), line, complete: left == 0 })
    }
}
