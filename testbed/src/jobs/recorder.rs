//! Writes down the parallel jobs of a run while it goes: every job as it ends, and what reports are made of.
//! Memory does not grow with the trace.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use dormouse_engine::jobs::{Observer, Record};
use dormouse_policies::{Decision, Notice};
use dormouse_units::{Span, TaskId, Time};

use super::figures::Figures;
use super::history::History;
use super::schedule::Schedule;
use super::{AllocationsCsv, JobsCsv, JobsError};
use crate::output::{Header, Mode, OutputError};

const ALLOCATIONS: &str = "allocations.csv";

/// An observer that leaves `jobs.csv`, `allocations.csv` and `schedule.swf`; give it to
/// [`Told::see`](dormouse_engine::jobs::Told::see) with every step.
#[derive(Debug)]
pub(super) struct Recorder {
    folder: PathBuf,
    csv: JobsCsv<File>,
    allocations: AllocationsCsv<File>,
    swf: Schedule,
    figures: Figures,
    history: History,
    /// Of a live run, what each job was promised.
    promises: BTreeMap<TaskId, Span>,
}

impl Recorder {
    /// Begins the files in `folder`; `history` is of nothing yet.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(super) fn begin(
        folder: &Path,
        header: &Header,
        machine: u32,
        history: History,
    ) -> Result<Self, OutputError> {
        let create = |name: &str| {
            let path = folder.join(name);
            File::create(&path).map_err(|error| OutputError::io("write", &path, error))
        };
        let refused =
            |name: &'static str| move |error| OutputError::io("write", &folder.join(name), error);
        let name = &header.experiment.name;
        let csv = create("jobs.csv")?;
        let csv = match header.mode {
            Mode::Virtual => JobsCsv::new(csv, name),
            Mode::Live => JobsCsv::with_promises(csv, name),
        };
        let csv = csv.map_err(refused("jobs.csv"))?;
        let allocations = AllocationsCsv::new(create(ALLOCATIONS)?, name);
        let allocations = allocations.map_err(refused(ALLOCATIONS))?;
        let swf = Schedule::new(create("schedule.swf")?, machine, name)
            .map_err(refused("schedule.swf"))?;
        Ok(Self {
            folder: folder.to_owned(),
            csv,
            allocations,
            swf,
            figures: Figures::default(),
            history,
            promises: BTreeMap::new(),
        })
    }

    /// What jobs are promised, from their first start to their end; for those that end from now
    /// on.
    pub(super) fn promise(&mut self, promises: impl Iterator<Item = (TaskId, Span)>) {
        self.promises = promises.collect();
    }

    /// Ends the files and gives what reports are made of.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(super) fn finish(self) -> Result<(Figures, History), OutputError> {
        let Self { folder, csv, allocations, swf, figures, history, .. } = self;
        let refused = |name: &str, error| OutputError::io("write", &folder.join(name), error);
        csv.finish().map_err(|error| refused("jobs.csv", error))?;
        allocations.finish().map_err(|error| refused(ALLOCATIONS, error))?;
        swf.finish().map_err(|error| refused("schedule.swf", error))?;
        Ok((figures, history))
    }

    fn refused(&self, name: &str, error: io::Error) -> JobsError {
        OutputError::io("write", &self.folder.join(name), error).into()
    }
}

impl Observer for Recorder {
    type Error = JobsError;

    fn heard(&mut self, now: Time, heard: &[Notice]) -> Result<(), JobsError> {
        let Self { folder, allocations, history, .. } = self;
        let refused = |error| OutputError::io("write", &folder.join(ALLOCATIONS), error);
        history.heard(now, heard, |job| allocations.write(job).map_err(refused))?;
        Ok(())
    }

    fn decided(&mut self, now: Time, _: u64, decision: &Decision) -> Result<(), JobsError> {
        self.history.decided(now, decision);
        Ok(())
    }

    fn ended(&mut self, record: Record) -> Result<(), JobsError> {
        self.figures.add(&record);
        let promised = self.promises.get(&record.id).copied();
        self.csv
            .write_promised(&record, promised)
            .map_err(|error| self.refused("jobs.csv", error))?;
        self.swf.add(&record).map_err(|error| self.refused("schedule.swf", error))
    }
}
