//! Writer of `schedule.swf`: the schedule as an SWF log, in order of submission as the format
//! requires.

use std::io::{self, Write};

use dormouse_model::{Calendar, Submission};
use dormouse_units::{Span, TaskId, Time, Window};
use dormouse_workload::{Header, SwfJob, SwfWriter};

use crate::JobHistory;

/// Writes finished jobs in order of submission. Jobs are added as they end, and held until all jobs
/// submitted before them have ended: at most as many as are submitted while the longest job is in
/// the system.
#[derive(Debug)]
pub struct ScheduleWriter<W: Write> {
    to: SwfWriter<W>,
    calendar: Calendar,
    /// Id of the job that is written next.
    next: TaskId,
    /// Ended jobs that wait until all earlier submitted jobs have ended.
    early: Window<ScheduledJob>,
}

impl<W: Write> ScheduleWriter<W> {
    /// Begins a log of a run on `machine` processors; the header names the run.
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

    /// Makes the writer give times as the workload's log does, by this calendar.
    #[must_use]
    pub fn on(self, calendar: Calendar) -> Self {
        Self { calendar, ..self }
    }

    /// Adds a job that ended.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn add(&mut self, job: &JobHistory) -> io::Result<()> {
        // Every job ends once, and none before it was written.
        let (Some(ended), false) = (job.ended, job.id < self.next || job.spells.is_empty()) else {
            return Ok(());
        };
        self.early.insert(job.id, ScheduledJob::new(&job.job, ended, self.calendar));
        while let Some(job) = self.early.remove(self.next) {
            self.to.write(&job.to_swf())?;
            self.next = TaskId::new(self.next.get().saturating_add(1));
        }
        Ok(())
    }

    /// Writes the jobs that are still held: after an incomplete run, jobs that were submitted after
    /// a job that never ended.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(mut self) -> io::Result<()> {
        for (_, job) in self.early.iter() {
            self.to.write(&job.to_swf())?;
        }
        self.to.finish()
    }
}

/// The known fields of a job's SWF line, in whole seconds; this takes a third of the memory of the whole line.
///
/// The run time is the job's own, so that the log has the load that was run. Time for which the job
/// was slowed by others on its processors, or ran in vain before a kill, counts as wait. Wait and
/// run time add up to the response time.
#[derive(Clone, Copy, Debug)]
struct ScheduledJob {
    number: i64,
    submitted: i64,
    wait: i64,
    run_time: i64,
    requested_time: i64,
    processes: u32,
    succeeds: bool,
}

impl ScheduledJob {
    fn new(job: &Submission, ended: Time, calendar: Calendar) -> Self {
        let seconds = |span: Span| {
            i64::try_from(span.as_micros().saturating_add(500_000) / 1_000_000).unwrap_or(i64::MAX)
        };
        // A job with a run time of zero would not be read back.
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

    fn to_swf(self) -> SwfJob {
        let Self { number, submitted, wait, run_time, requested_time, processes, succeeds } = self;
        let size = i64::from(processes);
        SwfJob {
            number,
            submitted,
            wait,
            run_time,
            allocated: size,
            requested: size,
            requested_time,
            // In SWF a job that was ended at its time limit has failed.
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
    use crate::{JobSpell, SpellEnd};

    /// A job with this run time that ended after three seconds; `is_cut`: its time limit ended it.
    fn job(id: u32, runtime: Span, is_cut: bool) -> JobHistory {
        let submission = Submission {
            number: u64::from(id) + 1,
            submitted: Time::ZERO,
            processes: 3,
            runtime,
            estimate: runtime,
            usage: Usage::FULL,
            memory: Bytes::ZERO,
            priority: 0,
            after: None,
            is_cut,
            fails: false,
        };
        let (tier, on, ended) = (Tier::Foreground, [0, 1, 2].into(), Time::from_secs(3));
        let until = Some((ended, SpellEnd::Done));
        let spells = vec![JobSpell { tier, on, from: Time::ZERO, until }];
        let job = JobHistory::new(TaskId::new(id), Arc::new(submission));
        JobHistory { spells, ended: Some(ended), ..job }
    }

    /// The job number and the column with index `other` of each line of the log.
    fn columns(bytes: Vec<u8>, other: usize) -> Vec<(String, String)> {
        let text = String::from_utf8(bytes).expect("text");
        let lines = text.lines().filter(|line| !line.starts_with(';'));
        let column = |line: &str, n| line.split(' ').nth(n).unwrap_or_default().to_owned();
        lines.map(|line| (column(line, 0), column(line, other))).collect()
    }

    #[test]
    fn a_log_that_names_any_job_and_any_time_takes_no_more_room() {
        let mut bytes = Vec::new();
        let mut schedule = ScheduleWriter::new(&mut bytes, 3, "x").expect("to memory");
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
        let mut schedule = ScheduleWriter::new(&mut bytes, 3, "x").expect("to memory");
        for (id, is_cut) in [(0, true), (1, false)] {
            schedule.add(&job(id, Span::from_secs(3), is_cut)).expect("to memory");
        }
        schedule.finish().expect("to memory");
        let expected =
            [("1", "0"), ("2", "1")].map(|(n, status)| (n.to_owned(), status.to_owned()));
        assert_eq!(columns(bytes, 10), expected);
    }
}
