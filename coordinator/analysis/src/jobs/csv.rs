//! Writers of `jobs.csv` and `allocations.csv`, in the format that Batsim writes and that its tools
//! and evalys read.
//!
//! Fields are written by hand, one job at a time while the run goes: a trace has millions of jobs.

use std::io::{self, Write};

use dormouse_model::{Calendar, Submission};
use dormouse_units::{Span, Tier, Time};
use dormouse_workload::Lines;
use dormouse_workload::decimal::{millionths, seconds, whole};

use crate::{JobHistory, SpellEnd};

/// Columns of `jobs.csv` in Batsim's order; times in seconds.
const COLUMNS: &str = "job_id,workload_name,profile,submission_time,\
requested_number_of_resources,requested_time,success,final_state,starting_time,\
execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,\
consumed_energy,metadata";

/// Success and final state of a job that was ended at its time limit, in Batsim's words.
const AT_THE_LIMIT: &[u8] = b"0,COMPLETED_WALLTIME_REACHED";

/// Success and final state of a job that ended by itself or at its time limit.
const fn end_of(job: &Submission) -> &'static [u8] {
    match (job.is_cut, job.fails) {
        (true, _) => AT_THE_LIMIT,
        (false, true) => b"0,COMPLETED_FAILED",
        (false, false) => b"1,COMPLETED_SUCCESSFULLY",
    }
}

/// Additional columns of a live run, in seconds: the promised and the actual time of each job.
const PROMISES: &str = ",promised_s,took_s";

/// Writes `jobs.csv`: one line for each job, in the order in which jobs end.
///
/// The starting time is the time at which a job first had processors, in either tier: the wait of a
/// killed job does not last until its restart. The metadata counts promotions:
/// `swaps=1;kills=0;migrations=0`.
#[derive(Debug)]
pub struct JobsCsv<W: Write> {
    lines: Lines<W>,
    workload: String,
    calendar: Calendar,
    has_promises: bool,
}

impl<W: Write> JobsCsv<W> {
    /// Begins a file; `to` need not buffer. Commas, quotes and line breaks in the workload's name
    /// become blanks.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn new(to: W, workload: &str) -> io::Result<Self> {
        Self::begin(to, workload, false)
    }

    /// Begins a file with two more columns at the end of each line: the time promised to the job
    /// from its start to its end, and the time that the job took. Tools that read columns by name,
    /// as Batsim's do, ignore these columns.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn with_promises(to: W, workload: &str) -> io::Result<Self> {
        Self::begin(to, workload, true)
    }

    fn begin(to: W, workload: &str, has_promises: bool) -> io::Result<Self> {
        let mut lines = Lines::new(to);
        lines.add(|line| {
            line.extend_from_slice(COLUMNS.as_bytes());
            line.extend_from_slice(if has_promises { PROMISES.as_bytes() } else { b"" });
        })?;
        let calendar = Calendar::UNKNOWN;
        Ok(Self { lines, workload: plain_name(workload), calendar, has_promises })
    }

    /// Makes the writer give times as the workload's log does, by this calendar.
    #[must_use]
    pub fn on(self, calendar: Calendar) -> Self {
        Self { calendar, ..self }
    }

    /// Writes a job.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write(&mut self, job: &JobHistory) -> io::Result<()> {
        self.write_promised(job, None)
    }

    /// Writes a job with its promised time, if the promise is known. A job that never started is
    /// left out.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write_promised(&mut self, job: &JobHistory, promised: Option<Span>) -> io::Result<()> {
        let Self { lines, workload, calendar, has_promises } = self;
        let (Some(started), Some(ended)) = (job.started(), job.ended) else { return Ok(()) };
        let moves = [
            (&b"swaps="[..], job.left_by(SpellEnd::Swapped)),
            (b";kills=", job.left_by(SpellEnd::Killed)),
            (b";migrations=", job.left_by(SpellEnd::Migrated)),
        ];
        lines.add(|line| {
            write_row(
                line,
                (workload, *calendar),
                &JobRow {
                    job: &job.job,
                    submitted: job.job.submitted,
                    state: end_of(&job.job),
                    during: (started, ended),
                    on: job.on(),
                },
            );
            if moves.iter().any(|(_, n)| *n > 0) {
                for (name, n) in moves {
                    line.extend_from_slice(name);
                    whole(line, u64::from(n));
                }
            }
            if *has_promises {
                line.push(b',');
                if let Some(promised) = promised {
                    seconds(line, promised);
                }
                line.push(b',');
                seconds(line, ended.since(started));
            }
        })
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// Writing or flushing failed.
    pub fn finish(self) -> io::Result<()> {
        self.lines.finish()
    }
}

/// Writes `allocations.csv`: one line for each allocation of processors to a job, with the columns
/// of `jobs.csv` and the tier. A job that moved has several allocations; those of one tier never
/// overlap on a processor. The metadata tells how the allocation ended: `end=swapped`.
#[derive(Debug)]
pub struct AllocationsCsv<W: Write> {
    lines: Lines<W>,
    workload: String,
    calendar: Calendar,
}

impl<W: Write> AllocationsCsv<W> {
    /// Begins a file, as [`JobsCsv::new`] does.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn new(to: W, workload: &str) -> io::Result<Self> {
        let mut lines = Lines::new(to);
        lines.add(|line| {
            line.extend_from_slice(COLUMNS.as_bytes());
            line.extend_from_slice(b",tier");
        })?;
        Ok(Self { lines, workload: plain_name(workload), calendar: Calendar::UNKNOWN })
    }

    /// Makes the writer give times as the workload's log does, by this calendar.
    #[must_use]
    pub fn on(self, calendar: Calendar) -> Self {
        Self { calendar, ..self }
    }

    /// Writes the allocations of a job that has ended.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write(&mut self, job: &JobHistory) -> io::Result<()> {
        let Self { lines, workload, calendar } = self;
        for spell in &job.spells {
            let Some((until, end)) = spell.until else { continue };
            let (state, end): (&[u8], &[u8]) = match end {
                SpellEnd::Done => (end_of(&job.job), b"end=done"),
                SpellEnd::Swapped => (b"1,COMPLETED_SUCCESSFULLY", b"end=swapped"),
                SpellEnd::Migrated => (b"1,COMPLETED_SUCCESSFULLY", b"end=migrated"),
                SpellEnd::Killed => (b"0,COMPLETED_KILLED", b"end=killed"),
                SpellEnd::Failed => (b"0,COMPLETED_FAILED", b"end=failed"),
            };
            let tier: &[u8] = match spell.tier {
                Tier::Foreground => b",foreground",
                Tier::Background => b",background",
            };
            lines.add(|line| {
                write_row(
                    line,
                    (workload, *calendar),
                    &JobRow {
                        job: &job.job,
                        submitted: job.heard.unwrap_or(job.job.submitted),
                        state,
                        during: (spell.from, until),
                        on: &spell.on,
                    },
                );
                line.extend_from_slice(end);
                line.extend_from_slice(tier);
            })?;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// Writing or flushing failed.
    pub fn finish(self) -> io::Result<()> {
        self.lines.finish()
    }
}

/// Fields of one line, of a job or of an allocation.
struct JobRow<'a> {
    job: &'a Submission,
    submitted: Time,
    /// Success and final state of the job, in Batsim's words.
    state: &'a [u8],
    during: (Time, Time),
    on: &'a [u32],
}

/// The workload's name, with blanks for characters that would end a CSV field.
fn plain_name(workload: &str) -> String {
    workload.replace([',', '\n', '\r', '"'], " ")
}

/// Writes the columns of a job or allocation up to the metadata, with times as in the workload's log.
fn write_row(line: &mut Vec<u8>, (workload, calendar): (&str, Calendar), of: &JobRow<'_>) {
    let (started, ended) = of.during;
    let Submission { number, processes, estimate, .. } = *of.job;
    let (executed, turnaround) = (ended.since(started), ended.since(of.submitted));
    let in_log = |at: Time| calendar.in_log(at).since(Time::ZERO);
    whole(line, number);
    line.push(b',');
    line.extend_from_slice(workload.as_bytes());
    line.push(b',');
    whole(line, number);
    line.push(b',');
    seconds(line, in_log(of.submitted));
    line.push(b',');
    whole(line, u64::from(processes));
    line.push(b',');
    seconds(line, estimate);
    line.push(b',');
    line.extend_from_slice(of.state);
    line.push(b',');
    seconds(line, in_log(started));
    line.push(b',');
    seconds(line, executed);
    line.push(b',');
    seconds(line, in_log(ended));
    line.push(b',');
    seconds(line, started.since(of.submitted));
    line.push(b',');
    seconds(line, turnaround);
    line.push(b',');
    write_stretch(line, turnaround, executed);
    line.push(b',');
    write_intervals(line, of.on);
    line.extend_from_slice(b",-1,");
}

/// Writes turnaround / execution time, truncated to millionths; `inf` for a job that took no time.
fn write_stretch(line: &mut Vec<u8>, response: Span, executed: Span) {
    if executed == Span::ZERO {
        line.extend_from_slice(if response == Span::ZERO { b"1" } else { b"inf" });
        return;
    }
    let (response, executed) = (response.as_micros(), executed.as_micros());
    // Up to half a year it fits in 64 bits, whose division a machine does natively.
    let ratio = match response.checked_mul(1_000_000) {
        Some(fine) => fine / executed,
        None => {
            let ratio = u128::from(response) * 1_000_000 / u128::from(executed);
            u64::try_from(ratio).unwrap_or(u64::MAX)
        }
    };
    millionths(line, ratio);
}

/// Writes processors as Batsim's interval sets: `0-3 7`.
fn write_intervals(line: &mut Vec<u8>, on: &[u32]) {
    let mut put = |from: u32, to: u32, is_first: bool| {
        if !is_first {
            line.push(b' ');
        }
        whole(line, u64::from(from));
        if to > from {
            line.push(b'-');
            whole(line, u64::from(to));
        }
    };
    let mut each = |sorted: &[u32]| {
        let Some(&first) = sorted.first() else { return };
        let (mut from, mut to, mut is_first) = (first, first, true);
        for &p in &sorted[1..] {
            if p != to + 1 {
                put(from, to, is_first);
                is_first = false;
                from = p;
            }
            to = p;
        }
        put(from, to, is_first);
    };
    if on.is_sorted() {
        each(on);
    } else {
        let mut sorted = on.to_vec();
        sorted.sort_unstable();
        each(&sorted);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dormouse_units::{Bytes, TaskId, Usage};

    use super::*;
    use crate::JobSpell;

    /// A job that ran in the background for 9.5 s and was then moved, or, if `is_cut`, a job that
    /// ran in the foreground until its time limit.
    fn example(is_cut: bool) -> JobHistory {
        let job = Submission {
            number: 15,
            submitted: Time::from_secs(100),
            processes: 5,
            runtime: Span::from_secs(40),
            estimate: Span::from_secs(60),
            usage: Usage::FULL,
            memory: Bytes::ZERO,
            priority: 0,
            after: None,
            is_cut,
            fails: false,
        };
        let spell = |tier, from, until, end| JobSpell {
            tier,
            on: [7, 0, 2, 1, 9].into(),
            from: Time::from_micros(from),
            until: Some((Time::from_secs(until), end)),
        };
        let (moved, done) = (SpellEnd::Migrated, SpellEnd::Done);
        let spells = match is_cut {
            true => vec![spell(Tier::Foreground, 120_500_000, 161, done)],
            false => vec![
                spell(Tier::Background, 120_500_000, 130, moved),
                spell(Tier::Foreground, 130_000_000, 161, done),
            ],
        };
        let ended = Some(Time::from_secs(161));
        JobHistory { spells, ended, ..JobHistory::new(TaskId::new(0), Arc::new(job)) }
    }

    #[test]
    fn a_job_is_a_line_that_batsims_tools_read() {
        let (job, cut) = (example(false), example(true));
        let mut bytes = Vec::new();
        let mut csv = JobsCsv::new(&mut bytes, "a,b").expect("to memory");
        csv.write(&job).expect("to memory");
        csv.write(&cut).expect("to memory");
        csv.finish().expect("to memory");
        let text = String::from_utf8(bytes).expect("text");
        let mut lines = text.lines();
        let columns = lines.next().expect("a header").split(',').count();
        let line = lines.next().expect("a job");
        assert_eq!(
            line,
            "15,a b,15,100,5,60,1,COMPLETED_SUCCESSFULLY,120.5,40.5,161,20.5,61,1.506172,\
             0-2 7 9,-1,swaps=0;kills=0;migrations=1"
        );
        assert_eq!(line.split(',').count(), columns);
        // One that was ended at its time limit.
        let line = lines.next().expect("a job");
        let failed = Submission { fails: true, ..(*example(false).job).clone() };
        assert_eq!(end_of(&failed), b"0,COMPLETED_FAILED");
        // One that is ended at its limit never comes to fail.
        assert_eq!(end_of(&Submission { is_cut: true, ..failed }), AT_THE_LIMIT);
        let ended = ",5,60,0,COMPLETED_WALLTIME_REACHED,120.5,40.5,161,";
        assert!(line.contains(ended) && line.split(',').count() == columns, "{line}");
    }
}
