//! The parallel jobs of a run while it goes: every job is written as it ends, and what reports are made
//! of is gathered. Memory grows with the jobs in the system, and not with the trace.

use std::collections::BTreeMap;
use std::io::{self, Write};

use dormouse_engine::jobs::{Observer, Record, Told};
use dormouse_model::{Calendar, Decision, Effect, Event, Notice, Report, Step};
use dormouse_units::{Ppm, Span, TaskId, Time};

use super::{AllocationsCsv, Figures, History, JobsCsv, Schedule, SeenByJobs};

const JOBS: &str = "jobs.csv";
const ALLOCATIONS: &str = "allocations.csv";
const SCHEDULE: &str = "schedule.swf";

/// A file can't be written.
#[derive(Debug)]
pub struct Refused {
    /// Name of the file.
    pub file: &'static str,
    /// What stood in the way.
    pub source: io::Error,
}

impl Refused {
    pub(crate) fn in_file(file: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { file, source }
    }
}

/// What came of the parallel jobs of a run.
#[derive(Debug)]
pub struct Recorded {
    /// What it came to.
    pub figures: Figures,
    /// Where its jobs ran.
    pub history: History,
    /// Most jobs in the system at once.
    pub most_in_system: usize,
    /// Jobs that were left in it at the end.
    pub left: usize,
    /// Checkpoints of jobs that were kept.
    pub checkpoints: u32,
    /// How often a job began with one.
    pub restores: u32,
    /// Number of decisions of their scheduler that were rejected.
    pub rejected: u32,
}

/// Whether a step says something of parallel jobs that a [`Recorder`] takes in, whoever shares the run: most steps
/// are the reports of machines that jobs have ended, of which it hears with the instant.
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

/// Follows the parallel jobs of a run, and writes `jobs.csv`, `allocations.csv` and `schedule.swf`.
#[derive(Debug)]
pub struct Recorder<W: Write> {
    seen: SeenByJobs,
    told: Told,
    ended: Ended<W>,
    checkpoints: u32,
    restores: u32,
    rejected: u32,
}

impl<W: Write> Recorder<W> {
    /// Begins the files of a run of this name on so many processors, each as `open` gives it by its
    /// name; `history` is of nothing yet. Times in the files are those of the jobs' log, as `calendar` has
    /// them.
    ///
    /// # Errors
    ///
    /// A file can't be opened or written.
    pub fn begin(
        mut open: impl FnMut(&'static str) -> io::Result<W>,
        (name, machine): (&str, u32),
        has_promises: bool,
        (seen, history, calendar): (SeenByJobs, History, Calendar),
    ) -> Result<Self, Refused> {
        let mut open = |file| open(file).map_err(Refused::in_file(file));
        let jobs = open(JOBS)?;
        let csv = if has_promises {
            JobsCsv::with_promises(jobs, name)
        } else {
            JobsCsv::new(jobs, name)
        };
        let ended = Ended {
            csv: csv.map_err(Refused::in_file(JOBS))?.on(calendar),
            allocations: AllocationsCsv::new(open(ALLOCATIONS)?, name)
                .map_err(Refused::in_file(ALLOCATIONS))?
                .on(calendar),
            swf: Schedule::new(open(SCHEDULE)?, machine, name)
                .map_err(Refused::in_file(SCHEDULE))?
                .on(calendar),
            figures: Figures::default(),
            history,
            promises: BTreeMap::new(),
        };
        Ok(Self { seen, told: Told::default(), ended, checkpoints: 0, restores: 0, rejected: 0 })
    }

    /// Takes in a step of the run.
    ///
    /// # Errors
    ///
    /// A file can't be written.
    pub fn see(&mut self, step: &Step) -> Result<(), Refused> {
        let step = self.seen.see(step);
        if let Event::Submitted { task, job, .. } = &step.event
            && job.is_cut
        {
            self.ended.history.cuts_short(*task);
        }
        if let Event::Machine { report, .. } = &step.event
            && !step.effects.contains(&Effect::Stale)
        {
            match report {
                Report::CheckpointTaken { .. } => self.checkpoints += 1,
                Report::TaskStarted { done, .. } if *done > Ppm::ZERO => self.restores += 1,
                _ => {}
            }
        }
        let rejected = |effect: &&Effect| matches!(effect, Effect::Rejected { .. });
        let rejected = step.effects.iter().filter(rejected).count();
        self.rejected = self.rejected.saturating_add(u32::try_from(rejected).unwrap_or(u32::MAX));
        self.told.see(&step, &mut self.ended)
    }

    /// What jobs are promised, from their first start to their end; for those that end from now on.
    pub fn promise(&mut self, promises: impl Iterator<Item = (TaskId, Span)>) {
        self.ended.promises = promises.collect();
    }

    /// Ends the files.
    ///
    /// # Errors
    ///
    /// A file can't be written.
    pub fn finish(self) -> Result<Recorded, Refused> {
        let Self { told, ended, checkpoints, restores, rejected, .. } = self;
        let Ended { csv, allocations, swf, figures, history, .. } = ended;
        csv.finish().map_err(Refused::in_file(JOBS))?;
        allocations.finish().map_err(Refused::in_file(ALLOCATIONS))?;
        swf.finish().map_err(Refused::in_file(SCHEDULE))?;
        let totals = told.totals();
        let (most_in_system, left) = (totals.most_in_system, totals.in_system);
        Ok(Recorded { figures, history, most_in_system, left, checkpoints, restores, rejected })
    }
}

/// What is written and gathered of every job as it ends.
#[derive(Debug)]
struct Ended<W: Write> {
    csv: JobsCsv<W>,
    allocations: AllocationsCsv<W>,
    swf: Schedule<W>,
    figures: Figures,
    history: History,
    /// What each job of a live run was promised.
    promises: BTreeMap<TaskId, Span>,
}

impl<W: Write> Observer for Ended<W> {
    type Error = Refused;

    fn heard(&mut self, now: Time, heard: &[Notice]) -> Result<(), Refused> {
        let Self { allocations, history, .. } = self;
        let write = |job: &_| allocations.write(job).map_err(Refused::in_file(ALLOCATIONS));
        history.heard(now, heard, write)
    }

    fn decided(&mut self, now: Time, _: u64, decision: &Decision) -> Result<(), Refused> {
        self.history.decided(now, decision);
        Ok(())
    }

    fn ended(&mut self, record: Record) -> Result<(), Refused> {
        self.figures.add(&record);
        let promised = self.promises.get(&record.id).copied();
        self.csv.write_promised(&record, promised).map_err(Refused::in_file(JOBS))?;
        self.swf.add(&record).map_err(Refused::in_file(SCHEDULE))
    }
}
