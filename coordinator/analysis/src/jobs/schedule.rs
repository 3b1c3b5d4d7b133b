//! `schedule.swf`: the schedule as a log, in order of submission as the format wants it.

use std::collections::VecDeque;
use std::io::{self, Write};

use dormouse_engine::jobs::Record;
use dormouse_model::Calendar;
use dormouse_units::{Span, TaskId, Time};
use dormouse_workload::{Header, SwfJob, SwfWriter};

/// Jobs come as they end, and are held until all before them have: as many as are submitted
/// while the longest is in the system.
#[derive(Debug)]
pub struct Schedule<W: Write> {
    to: SwfWriter<W>,
    calendar: Calendar,
    /// The job that is to be written next.
    next: TaskId,
    /// The jobs from that one on, as far as they have ended.
    early: VecDeque<Option<Scheduled>>,
}

impl<W: Write> Schedule<W> {
    /// Begins a log.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn new(to: W, machine: u32, name: &str) -> io::Result<Self> {
        let mut header = Header::default();
        header.set("Version", "2.2");
        header.set("MaxProcs", machine);
        header.set("Note", format!("schedule of {name}"));
        let to = SwfWriter::new(to, &header)?;
        let calendar = Calendar::UNKNOWN;
        Ok(Self { to, calendar, next: TaskId::new(0), early: VecDeque::new() })
    }

    /// This log with the times of the jobs' own log, as a run's calendar has them.
    #[must_use]
    pub fn on(self, calendar: Calendar) -> Self {
        Self { calendar, ..self }
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
        self.early[place] = Some(Scheduled::of(record, self.calendar));
        while let Some(Some(job)) = self.early.front() {
            self.to.write(&job.line())?;
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
            self.to.write(&job.line())?;
        }
        self.to.finish()
    }
}

/// What a schedule says of a job, in whole seconds: a third of a line of an SWF log, in which most
/// is not known.
///
/// The run time is the job's own, so that the log has the load that was run: time for which it shared
/// processors, or ran for nothing before it was killed, is in its wait. Both together are its response.
#[derive(Clone, Copy, Debug)]
struct Scheduled {
    number: i64,
    submitted: i64,
    wait: i64,
    run_time: i64,
    requested_time: i64,
    processes: u32,
    is_cut: bool,
}

impl Scheduled {
    fn of(record: &Record, calendar: Calendar) -> Self {
        let seconds = |span: Span| {
            i64::try_from((span.as_micros() + 500_000) / 1_000_000).unwrap_or(i64::MAX)
        };
        // One of no time would not be read back.
        let run_time = seconds(record.runtime).max(1);
        let response = seconds(record.ended.since(record.submitted));
        Self {
            number: i64::try_from(record.number).unwrap_or(-1),
            submitted: seconds(calendar.in_log(record.submitted).since(Time::ZERO)),
            wait: (response - run_time).max(0),
            run_time,
            requested_time: seconds(record.estimate).max(run_time),
            processes: record.processes,
            is_cut: record.is_cut,
        }
    }

    fn line(&self) -> SwfJob {
        let Self { number, submitted, wait, run_time, requested_time, processes, is_cut } = *self;
        let size = i64::from(processes);
        SwfJob {
            number,
            submitted,
            wait,
            run_time,
            allocated: size,
            requested: size,
            requested_time,
            // One that was ended at its time limit has failed.
            status: i64::from(!is_cut),
            ..SwfJob::unknown()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_were_ended_at_their_time_limit_have_failed() {
        let record = |id: u32, is_cut| Record {
            id: TaskId::new(id),
            number: u64::from(id) + 1,
            submitted: Time::ZERO,
            processes: 3,
            runtime: Span::from_secs(3),
            estimate: Span::from_secs(3),
            started: Time::ZERO,
            foreground: Some(Time::ZERO),
            ended: Time::from_secs(3),
            on: [0, 1, 2].into(),
            swaps: 0,
            kills: 0,
            migrations: 0,
            is_cut,
        };
        let mut bytes = Vec::new();
        let mut schedule = Schedule::new(&mut bytes, 3, "x").expect("to memory");
        for (id, is_cut) in [(0, true), (1, false)] {
            schedule.add(&record(id, is_cut)).expect("to memory");
        }
        schedule.finish().expect("to memory");
        let text = String::from_utf8(bytes).expect("text");
        let status = |line: &str| line.split(' ').nth(10).map(str::to_owned);
        let all: Vec<_> = text.lines().filter(|l| !l.starts_with(';')).filter_map(status).collect();
        assert_eq!(all, ["0", "1"], "{text}");
    }
}
