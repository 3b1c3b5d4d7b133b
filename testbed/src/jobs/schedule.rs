//! `schedule.swf`: the schedule as a log, in order of submission as the format wants it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter};

use dormouse_engine::jobs::Record;
use dormouse_units::{Span, TaskId, Time};
use dormouse_workload::{Header, SwfJob, SwfWriter};

/// Jobs come as they end, and are held until all before them have: as many as are submitted
/// while the longest is in the system.
#[derive(Debug)]
pub struct Schedule {
    to: SwfWriter<BufWriter<File>>,
    /// The job that is to be written next.
    next: TaskId,
    /// The jobs from that one on, as far as they have ended.
    early: VecDeque<Option<SwfJob>>,
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
        Ok(Self { to, next: TaskId::new(0), early: VecDeque::new() })
    }

    /// Takes a job that ended.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn add(&mut self, record: &Record) -> io::Result<()> {
        // Every job ends once, and none before it was written.
        let Some(place) = record.id.get().checked_sub(self.next.get()) else { return Ok(()) };
        let place = place as usize;
        if self.early.len() <= place {
            self.early.resize(place + 1, None);
        }
        self.early[place] = Some(swf_job(record));
        while let Some(Some(job)) = self.early.front() {
            self.to.write(job)?;
            self.early.pop_front();
            self.next = TaskId::new(self.next.get() + 1);
        }
        Ok(())
    }

    /// Writes what is left. After a run that broke off, that is jobs behind one that never ended.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(mut self) -> io::Result<()> {
        for job in self.early.iter().flatten() {
            self.to.write(job)?;
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
