//! The parallel jobs of a run while it goes, in its folder.

use std::path::{Path, PathBuf};

use dormouse_analysis::Mode;
use dormouse_analysis::jobs::{History, Recorded, Recorder, Refused, SeenByJobs};
use dormouse_log::HashedFile;
use dormouse_model::Step;
use dormouse_units::{Span, TaskId};

use super::{JobsError, JobsOutcome};
use crate::output::{Header, OutputError, TableFiles};
use dormouse_experiment::Batch;

/// Follows the parallel jobs of a run, and leaves `jobs.csv`, `allocations.csv` and `schedule.swf` in its
/// folder.
#[derive(Debug)]
pub struct JobsRecording<'a> {
    header: &'a Header,
    batch: &'a Batch,
    folder: PathBuf,
    recorder: Recorder<HashedFile>,
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
        Self::begin_in(&mut TableFiles::new(folder), header, history)
    }

    /// The same among other tables.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn begin_in(
        files: &mut TableFiles,
        header: &'a Header,
        history: History,
    ) -> Result<Option<Self>, JobsError> {
        let experiment = &header.experiment;
        let Some(batch) = experiment.jobs.as_deref() else { return Ok(None) };
        let recorder = Recorder::begin(
            |name| files.create(name),
            (&experiment.name, batch.workload.processors),
            header.mode == Mode::Live,
            (SeenByJobs::new(experiment.tenants()), history, header.calendar),
        );
        let recorder = recorder.map_err(refused(files.folder()))?;
        Ok(Some(Self { header, batch, folder: files.folder().to_owned(), recorder }))
    }

    /// Takes in a step of the run.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn see(&mut self, step: &Step) -> Result<(), JobsError> {
        self.recorder.see(step).map_err(refused(&self.folder))
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
        let Self { header, batch, folder, recorder } = self;
        let recorded = recorder.finish().map_err(refused(&folder))?;
        let Recorded { figures, history, most_in_system, left, checkpoints, restores, rejected } =
            recorded;
        Ok(JobsOutcome {
            header,
            batch,
            figures,
            history,
            decisions_sha256,
            most_in_system,
            skipped: None,
            verified: 0,
            reported: 0,
            failed: left as u64,
            cancelled: None,
            checkpoints,
            restores,
            rejected,
            fidelity: None,
            consolidation: None,
        })
    }
}

pub(crate) fn refused(folder: &Path) -> impl FnOnce(Refused) -> JobsError {
    |Refused { file, source }| OutputError::io("write", &folder.join(file), source).into()
}
