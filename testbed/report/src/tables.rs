//! Tables of a run's parallel jobs and requests, written into the run's folder as each step is
//! recorded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dormouse_analysis::jobs::{JobsOfWindow, JobsTables, RecordedJobs};
use dormouse_analysis::requests::{RequestFigures, RequestsTables};
use dormouse_analysis::{RunMode, RunRecord, TableError};
use dormouse_experiment::BatchSetup;
use dormouse_log::HashedFile;
use dormouse_model::Step;
use dormouse_units::{Span, TaskId};

use crate::jobs::{JobsError, JobsOutcome};
use crate::output::{LogHeader, OutputError, TableFiles};

/// Writes `jobs.csv`, `allocations.csv` and `schedule.swf` of a run with parallel jobs, and
/// `requests.csv` of a run with requests. Call [`Self::see`] for each step, then [`Self::finish`].
#[derive(Debug)]
pub(crate) struct RunTables<'a> {
    header: &'a LogHeader,
    folder: PathBuf,
    files: TableFiles,
    record: RunRecord,
    jobs: Option<(&'a BatchSetup, JobsTables<HashedFile>)>,
    requests: Option<RequestsTables<HashedFile>>,
}

/// Results of the tables of a run.
#[derive(Debug)]
pub(crate) struct WrittenTables<'a> {
    /// Results of the run's jobs, if it has any.
    pub(crate) jobs: Option<JobsOutcome<'a>>,
    /// Figures of the run's requests, if it has any.
    pub(crate) requests: Option<RequestFigures>,
    /// BLAKE3 hash of each table, by file name.
    pub(crate) hashes: BTreeMap<&'static str, String>,
}

impl<'a> RunTables<'a> {
    /// Begins the tables in `folder`; `drawn`, still without jobs, will collect the jobs for the
    /// chart.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn begin(
        folder: &Path,
        header: &'a LogHeader,
        drawn: JobsOfWindow,
    ) -> Result<Self, JobsError> {
        let experiment = &header.experiment;
        let (setup, tenants) = (experiment.whole_setup(), experiment.tenants());
        let mut files = TableFiles::new(folder);
        let jobs = experiment.jobs.as_deref().map(|batch| {
            let tables = JobsTables::begin(
                |name| files.create(name),
                (&experiment.name, batch.workload.processors),
                header.mode == RunMode::Live,
                (tenants.clone(), drawn, header.calendar),
            );
            tables.map(|tables| (batch, tables)).map_err(table_error(folder))
        });
        let jobs = jobs.transpose()?;
        let requests = experiment.requests.as_ref().map(|_| {
            let open = |name| files.create(name);
            RequestsTables::begin(open, &setup, tenants.clone()).map_err(table_error(folder))
        });
        let requests = requests.transpose()?;
        let record = RunRecord::shared(&setup, tenants).forgetting().without_attempts();
        Ok(Self { header, folder: folder.to_owned(), files, record, jobs, requests })
    }

    /// Whether the run has at least one table of jobs or requests.
    pub(crate) const fn are_any(&self) -> bool {
        self.jobs.is_some() || self.requests.is_some()
    }

    /// Whether the tables need every step, not only those about parallel jobs.
    pub(crate) const fn want_all(&self) -> bool {
        self.requests.is_some()
    }

    /// Sets the promised times of jobs that end from now on, each from the first start to the end.
    pub(crate) fn promise(&mut self, promises: impl Iterator<Item = (TaskId, Span)>) {
        if let Some((_, jobs)) = &mut self.jobs {
            jobs.promise(promises);
        }
    }

    /// Writes the jobs and requests that ended in a step.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn see(&mut self, step: &Step) -> Result<(), JobsError> {
        if !self.are_any() {
            return Ok(());
        }
        self.record.see(step);
        if let Some((_, jobs)) = &mut self.jobs {
            jobs.see(&self.record, step).map_err(table_error(&self.folder))?;
        }
        if let Some(requests) = &mut self.requests {
            requests.see(&self.record, step).map_err(table_error(&self.folder))?;
        }
        Ok(())
    }

    /// Ends the files. The results of jobs are those of a virtual run with this digest of its
    /// decisions ([`Run::digest`](dormouse_engine::Run::digest)); fields of a live run are set
    /// afterwards.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn finish(self, decisions_sha256: String) -> Result<WrittenTables<'a>, JobsError> {
        let Self { header, folder, files, record, jobs, requests } = self;
        let jobs = jobs.map(|(batch, tables)| {
            let recorded = tables.finish(&record).map_err(table_error(&folder))?;
            Ok::<_, JobsError>(jobs_outcome(header, batch, recorded, decisions_sha256))
        });
        let requests =
            requests.map(RequestsTables::finish).transpose().map_err(table_error(&folder))?;
        Ok(WrittenTables { jobs: jobs.transpose()?, requests, hashes: files.hashes() })
    }
}

fn jobs_outcome<'a>(
    header: &'a LogHeader,
    batch: &'a BatchSetup,
    recorded: RecordedJobs,
    decisions_sha256: String,
) -> JobsOutcome<'a> {
    let RecordedJobs { figures, drawn, most_in_system, left, checkpoints, restores, rejected } =
        recorded;
    JobsOutcome {
        header,
        batch,
        figures,
        drawn,
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
    }
}

fn table_error(folder: &Path) -> impl FnOnce(TableError) -> JobsError {
    |TableError { file, source }| OutputError::io("write", &folder.join(file), source).into()
}
