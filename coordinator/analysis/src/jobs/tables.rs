//! Tables of parallel jobs, written while a run goes: every job is written as it ends, and the
//! figures of reports are added up. Memory grows with the jobs in the system, not with the trace.

use std::collections::BTreeMap;
use std::io::{self, Write};

use dormouse_model::{Calendar, Decision, Effect, Event, Report, Step, TenantWork, Tenants};
use dormouse_units::{Ppm, Span, TaskId, VmId};

use super::{AllocationsCsv, JobFigures, JobsCsv, JobsOfWindow, ScheduleWriter};
use crate::{RunRecord, TableError};

const JOBS: &str = "jobs.csv";
const ALLOCATIONS: &str = "allocations.csv";
const SCHEDULE: &str = "schedule.swf";

/// Results of the parallel jobs of a run.
#[derive(Debug)]
pub struct RecordedJobs {
    /// The figures of the jobs.
    pub figures: JobFigures,
    /// Jobs that a chart shows.
    pub drawn: JobsOfWindow,
    /// Most jobs that were in the system at once.
    pub most_in_system: usize,
    /// Number of jobs left in the system at the end.
    pub left: usize,
    /// Number of checkpoints of jobs that workers reported as taken.
    pub checkpoints: u32,
    /// Number of starts of jobs from a checkpoint.
    pub restores: u32,
    /// Number of decisions of the jobs' scheduler that were rejected.
    pub rejected: u32,
}

/// Whether a step matters to [`JobsTables`], whichever tenants share the run. Most steps don't:
/// most report ends of jobs, and the scheduler learns of these only at the end of the instant.
#[must_use]
pub fn is_of_jobs(step: &Step) -> bool {
    match &step.event {
        Event::Submitted { .. } | Event::InstantOver => true,
        Event::Machine {
            report: Report::CheckpointTaken { .. } | Report::TaskStarted { .. },
            ..
        } => true,
        _ => step.effects.iter().any(|effect| matches!(effect, Effect::Rejected { .. })),
    }
}

/// Writes `jobs.csv`, `allocations.csv` and `schedule.swf` of a run. Call [`Self::see`] for each
/// step, then [`Self::finish`].
#[derive(Debug)]
pub struct JobsTables<W: Write> {
    tenants: Tenants,
    csv: JobsCsv<W>,
    allocations: AllocationsCsv<W>,
    swf: ScheduleWriter<W>,
    figures: JobFigures,
    drawn: JobsOfWindow,
    /// Promised time of each job of a live run.
    promises: BTreeMap<TaskId, Span>,
    checkpoints: u32,
    restores: u32,
    rejected: u32,
}

impl<W: Write> JobsTables<W> {
    /// Begins the files of a run, given its name and number of processors. `open` opens a file by
    /// its name; `drawn`, still empty, collects the jobs of the chart; `calendar` turns times of
    /// the run into those of the workload's log.
    ///
    /// # Errors
    ///
    /// A file can't be opened or written.
    pub fn begin(
        mut open: impl FnMut(&'static str) -> io::Result<W>,
        (name, machine): (&str, u32),
        has_promises: bool,
        (tenants, drawn, calendar): (Tenants, JobsOfWindow, Calendar),
    ) -> Result<Self, TableError> {
        let mut open = |file| open(file).map_err(TableError::in_file(file));
        let jobs = open(JOBS)?;
        let csv = if has_promises {
            JobsCsv::with_promises(jobs, name)
        } else {
            JobsCsv::new(jobs, name)
        };
        Ok(Self {
            tenants,
            csv: csv.map_err(TableError::in_file(JOBS))?.on(calendar),
            allocations: AllocationsCsv::new(open(ALLOCATIONS)?, name)
                .map_err(TableError::in_file(ALLOCATIONS))?
                .on(calendar),
            swf: ScheduleWriter::new(open(SCHEDULE)?, machine, name)
                .map_err(TableError::in_file(SCHEDULE))?
                .on(calendar),
            figures: JobFigures::default(),
            drawn,
            promises: BTreeMap::new(),
            checkpoints: 0,
            restores: 0,
            rejected: 0,
        })
    }

    /// Sets the promised times of jobs that end from now on, each from the first start to the end.
    pub fn promise(&mut self, promises: impl Iterator<Item = (TaskId, Span)>) {
        self.promises = promises.collect();
    }

    /// Writes the jobs that ended in a step which the record has handled.
    ///
    /// # Errors
    ///
    /// A file can't be written.
    pub fn see(&mut self, record: &RunRecord, step: &Step) -> Result<(), TableError> {
        self.count_step(step);
        self.drawn.see(record);
        for job in &record.closed().jobs {
            self.figures.add(job);
            let promised = self.promises.get(&job.id).copied();
            self.csv.write_promised(job, promised).map_err(TableError::in_file(JOBS))?;
            self.swf.add(job).map_err(TableError::in_file(SCHEDULE))?;
            self.allocations.write(job).map_err(TableError::in_file(ALLOCATIONS))?;
        }
        Ok(())
    }

    fn count_step(&mut self, step: &Step) {
        let is_theirs = |vm: VmId| self.tenants.owns_vm(TenantWork::Jobs, vm);
        if let Event::Machine { report, .. } = &step.event
            && is_theirs(report.vm())
            && !step.effects.contains(&Effect::Stale)
        {
            match report {
                Report::CheckpointTaken { .. } => self.checkpoints += 1,
                Report::TaskStarted { done, .. } if *done > Ppm::ZERO => self.restores += 1,
                _ => {}
            }
        }
        for effect in &step.effects {
            if let Effect::Rejected { index, .. } = effect
                && step.decisions.get(*index).is_some_and(|it| decided_for_jobs(&self.tenants, it))
            {
                self.rejected = self.rejected.saturating_add(1);
            }
        }
    }

    /// Ends the files and returns the results.
    ///
    /// # Errors
    ///
    /// A file can't be written.
    pub fn finish(self, record: &RunRecord) -> Result<RecordedJobs, TableError> {
        let Self { csv, allocations, swf, figures, drawn, checkpoints, restores, rejected, .. } =
            self;
        csv.finish().map_err(TableError::in_file(JOBS))?;
        allocations.finish().map_err(TableError::in_file(ALLOCATIONS))?;
        swf.finish().map_err(TableError::in_file(SCHEDULE))?;
        let (most_in_system, left) = (record.most_jobs, record.jobs_heard);
        let drawn = drawn.with_the_rest(record);
        Ok(RecordedJobs { figures, drawn, most_in_system, left, checkpoints, restores, rejected })
    }
}

/// Whether the scheduler of parallel jobs made this decision.
fn decided_for_jobs(tenants: &Tenants, decision: &Decision) -> bool {
    let by = match decision {
        Decision::Wake { token, .. } => Some(tenants.wake_owner(*token)),
        other => other.clone().vm_mut().map(|vm| tenants.vm_owner(*vm)),
    };
    by.is_some_and(|tenant| tenants.work_of(tenant).is_none_or(TenantWork::has_jobs))
}
