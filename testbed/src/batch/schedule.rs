//! `schedule.swf`: the schedule as a log, in order of submission as the format wants it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};

use dormouse_batch::{JobId, Record};
use dormouse_units::{Span, Time};
use dormouse_workload::{Header, SwfJob, SwfWriter};

/// Jobs come as they end, and are held until all before them have: as many as are submitted
/// while the longest is in the system.
#[derive(Debug)]
pub struct Schedule {
    to: SwfWriter<BufWriter<File>>,
    next: JobId,
    early: BTreeMap<JobId, SwfJob>,
}

impl Schedule {
    /// Begins a log.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn new(file: File, machine: u32, name: &str) -> io::Result<Self> {
        let mut header = Header::default();
        header.set("Version", "2.2");
        header.set("MaxProcs", machine);
        header.set("Note", format!("schedule of {name}"));
        let to = SwfWriter::new(BufWriter::with_capacity(1 << 16, file), &header)?;
        Ok(Self { to, next: JobId::new(0), early: BTreeMap::new() })
    }

    /// Takes a job that ended.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn add(&mut self, record: &Record) -> io::Result<()> {
        let job = swf_job(record);
        if record.id != self.next {
            self.early.insert(record.id, job);
            return Ok(());
        }
        self.write(&job)?;
        while let Some(job) = self.early.remove(&self.next) {
            self.write(&job)?;
        }
        Ok(())
    }

    fn write(&mut self, job: &SwfJob) -> io::Result<()> {
        self.next = JobId::new(self.next.get() + 1);
        self.to.write(job)
    }

    /// Writes what is left. After a run that broke off, that is jobs behind one that never ended.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(mut self) -> io::Result<()> {
        for job in std::mem::take(&mut self.early).into_values() {
            self.to.write(&job)?;
        }
        self.to.finish()?;
        Ok(())
    }
}

/// A scheduled job as a line of an SWF log, in whole seconds.
fn swf_job(record: &Record) -> SwfJob {
    let seconds = |span: Span| i64::try_from(span.as_micros() / 1_000_000).unwrap_or(i64::MAX);
    let size = i64::from(record.processes);
    SwfJob {
        number: i64::try_from(record.number).unwrap_or(-1),
        submitted: seconds(record.submitted.since(Time::ZERO)),
        wait: seconds(record.started.since(record.submitted)),
        run_time: seconds(record.ended.since(record.started)),
        allocated: size,
        requested: size,
        requested_time: seconds(record.estimate),
        status: 1,
        ..SwfJob::UNKNOWN
    }
}
