//! `schedule.swf`: the schedule as a log, in order of submission as the format wants it.

use std::io::{self, Write};

use dormouse_model::{Calendar, Submission};
use dormouse_units::{Span, TaskId, Time, Window};
use dormouse_workload::{Header, SwfJob, SwfWriter};

use crate::JobHistory;

/// Jobs come as they end, and are held until all before them have: as many as are submitted
/// while the longest is in the system.
#[derive(Debug)]
pub struct Schedule<W: Write> {
    to: SwfWriter<W>,
    calendar: Calendar,
    /// The job that is to be written next.
    next: TaskId,
    /// The jobs from that one on, as far as they have ended.
    early: Window<Scheduled>,
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
        Ok(Self { to, calendar, next: TaskId::new(0), early: Window::default() })
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
    pub fn add(&mut self, job: &JobHistory) -> io::Result<()> {
        // Every job ends once, and none before it was written.
        let (Some(ended), false) = (job.ended, job.id < self.next || job.spells.is_empty()) else {
            return Ok(());
        };
        self.early.insert(job.id, Scheduled::new(&job.job, ended, self.calendar));
        while let Some(job) = self.early.remove(self.next) {
            self.to.write(&job.line())?;
            self.next = TaskId::new(self.next.get().saturating_add(1));
        }
        Ok(())
    }

    /// Writes what is left. After a run that broke off, that is jobs behind one that never ended.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(mut self) -> io::Result<()> {
        for (_, job) in self.early.iter() {
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
    succeeds: bool,
}

impl Scheduled {
    fn new(job: &Submission, ended: Time, calendar: Calendar) -> Self {
        let seconds = |span: Span| {
            i64::try_from(span.as_micros().saturating_add(500_000) / 1_000_000).unwrap_or(i64::MAX)
        };
        // One of no time would not be read back.
        let run_time = seconds(job.runtime).max(1);
        let response = seconds(ended.since(job.submitted));
        Self {
            number: i64::try_from(job.number).unwrap_or(-1),
            submitted: seconds(calendar.in_log(job.submitted).since(Time::ZERO)),
            wait: (response - run_time).max(0),
            run_time,
            requested_time: seconds(job.estimate).max(run_time),
            processes: job.processes,
            succeeds: !job.is_cut && !job.fails,
        }
    }

    fn line(&self) -> SwfJob {
        let Self { number, submitted, wait, run_time, requested_time, processes, succeeds } = *self;
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
            status: i64::from(succeeds),
            ..SwfJob::unknown()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dormouse_units::{Bytes, Tier, Usage};

    use super::*;
    use crate::{Spell, SpellEnd};

    /// A job of three seconds, or of as long as there is time, that ended then.
    fn job(id: u32, runtime: Span, is_cut: bool) -> JobHistory {
        let submission = Submission {
            number: u64::from(id) + 1,
            submitted: Time::ZERO,
            processes: 3,
            runtime,
            estimate: runtime,
            usage: Usage::FULL,
            memory: Bytes::ZERO,
            after: None,
            is_cut,
            fails: false,
        };
        let (tier, on, ended) = (Tier::Foreground, [0, 1, 2].into(), Time::from_secs(3));
        let until = Some((ended, SpellEnd::Done));
        let spells = vec![Spell { tier, on, from: Time::ZERO, until }];
        let job = JobHistory::new(TaskId::new(id), Arc::new(submission));
        JobHistory { spells, ended: Some(ended), ..job }
    }

    /// Columns of the log's lines: the number, and another.
    fn columns(bytes: Vec<u8>, other: usize) -> Vec<(String, String)> {
        let text = String::from_utf8(bytes).expect("text");
        let lines = text.lines().filter(|line| !line.starts_with(';'));
        let column = |line: &str, n| line.split(' ').nth(n).unwrap_or_default().to_owned();
        lines.map(|line| (column(line, 0), column(line, other))).collect()
    }

    #[test]
    fn a_log_that_names_any_job_and_any_time_takes_no_more_room() {
        let mut bytes = Vec::new();
        let mut schedule = Schedule::new(&mut bytes, 3, "x").expect("to memory");
        let endless = Span::from_micros(u64::MAX);
        let short = Span::from_secs(3);
        for job in [job(u32::MAX, endless, false), job(0, short, false)] {
            schedule.add(&job).expect("to memory");
        }
        schedule.finish().expect("to memory");
        let run_time = (u64::MAX / 1_000_000).to_string();
        let expected = [("1".to_owned(), "3".to_owned()), ((1_u64 << 32).to_string(), run_time)];
        assert_eq!(columns(bytes, 3), expected);
    }

    #[test]
    fn jobs_that_were_ended_at_their_time_limit_have_failed() {
        let mut bytes = Vec::new();
        let mut schedule = Schedule::new(&mut bytes, 3, "x").expect("to memory");
        for (id, is_cut) in [(0, true), (1, false)] {
            schedule.add(&job(id, Span::from_secs(3), is_cut)).expect("to memory");
        }
        schedule.finish().expect("to memory");
        let expected =
            [("1", "0"), ("2", "1")].map(|(n, status)| (n.to_owned(), status.to_owned()));
        assert_eq!(columns(bytes, 10), expected);
    }
}
