//! Writers of logs of jobs in other formats than SWF: a table of SWF's fields, and a workload of Batsim.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::job::SwfJob;
use super::writer::append_fields;
use crate::decimal::millionths;
use crate::lines::Lines;

/// Headings of SWF's fields, as a table has them.
const HEADINGS: &str = "job,submit,wait,run_time,allocated_processors,cpu_time,used_memory,\
    requested_processors,requested_time,requested_memory,status,user,group,program,queue,partition,\
    preceding_job,think_time";

/// Writes jobs as a table with commas whose columns are SWF's eighteen fields; −1 is "not known". The log reader
/// accepts the table like an SWF log.
#[derive(Debug)]
pub struct CsvWriter<W: Write>(Lines<W>);

impl<W: Write> CsvWriter<W> {
    /// Begins a table on `to`, which needs no buffer of its own.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn new(to: W) -> io::Result<Self> {
        let mut lines = Lines::new(to);
        lines.add(|line| line.extend_from_slice(HEADINGS.as_bytes()))?;
        Ok(Self(lines))
    }

    /// Writes a job.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write(&mut self, job: &SwfJob) -> io::Result<()> {
        self.0.add(|line| append_fields(line, job, b','))
    }

    /// Ends the table.
    ///
    /// # Errors
    ///
    /// Writing or flushing failed.
    pub fn finish(self) -> io::Result<()> {
        self.0.finish()
    }
}

/// Writes jobs as a workload of Batsim. A job is a delay as long as it ran, which fails (`ret` 1) if the log says that the job
/// did. Submissions count from the first; users, groups, queues, memory and the order of jobs have no place there.
#[derive(Debug)]
pub struct BatsimWriter<W: Write> {
    lines: Lines<W>,
    /// Submission time of the first job that was written, in microseconds; `None`: no job was written yet.
    first: Option<u64>,
    /// Length in microseconds of each profile, and whether it fails.
    profiles: BTreeSet<(u64, bool)>,
}

impl<W: Write> BatsimWriter<W> {
    /// Begins a workload for a machine with this number of hosts on `to`, which needs no buffer of its own.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn new(to: W, hosts: u32) -> io::Result<Self> {
        let mut lines = Lines::new(to);
        let head = format!("{{\"nb_res\": {hosts}, \"jobs\": [");
        lines.add(|line| line.extend_from_slice(head.as_bytes()))?;
        Ok(Self { lines, first: None, profiles: BTreeSet::new() })
    }

    /// Writes a job; false: it is left out, since its submission, run time or size is not known.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write(&mut self, job: &SwfJob) -> io::Result<bool> {
        let hosts = if job.requested > 0 { job.requested } else { job.allocated };
        let micros = |seconds: i64, field: usize| {
            let seconds = u64::try_from(seconds).ok()?;
            seconds.checked_mul(1_000_000)?.checked_add(job.micros[field].into())
        };
        let (Some(submitted), Some(ran), 1..) =
            (micros(job.submitted, 0), micros(job.run_time, 1), hosts)
        else {
            return Ok(false);
        };
        let between = if self.first.is_some() { ",\n" } else { "" };
        let since = submitted.saturating_sub(*self.first.get_or_insert(submitted));
        let fails = job.fails || job.status == 0;
        self.profiles.insert((ran, fails));
        let limit = micros(job.requested_time, 2).filter(|limit| *limit > 0);
        self.lines.append(|text| {
            text.extend_from_slice(
                format!("{between} {{\"id\": {}, \"subtime\": ", job.number).as_bytes(),
            );
            millionths(text, since);
            text.extend_from_slice(b", \"walltime\": ");
            match limit {
                Some(limit) => millionths(text, limit),
                None => text.extend_from_slice(b"-1"),
            }
            let rest = format!(", \"res\": {hosts}, \"profile\": \"{}\"}}", profile(ran, fails));
            text.extend_from_slice(rest.as_bytes());
        })?;
        Ok(true)
    }

    /// Writes the profiles, and ends the workload.
    ///
    /// # Errors
    ///
    /// Writing or flushing failed.
    pub fn finish(mut self) -> io::Result<()> {
        self.lines.add(|line| line.extend_from_slice(b"],\n\"profiles\": {"))?;
        let mut between = "";
        for &(ran, fails) in &self.profiles {
            self.lines.append(|text| {
                let head = format!("{between} \"{}\": {{", profile(ran, fails));
                text.extend_from_slice(head.as_bytes());
                text.extend_from_slice(b"\"type\": \"delay\", \"delay\": ");
                millionths(text, ran);
                text.extend_from_slice(if fails { b", \"ret\": 1}" } else { b"}" });
            })?;
            between = ",\n";
        }
        self.lines.add(|line| line.extend_from_slice(b"}}"))?;
        self.lines.finish()
    }
}

/// Name of the profile of jobs that run this long, in microseconds, and fail or not.
fn profile(ran: u64, fails: bool) -> String {
    format!("{}{ran}us", if fails { "fails" } else { "delay" })
}
