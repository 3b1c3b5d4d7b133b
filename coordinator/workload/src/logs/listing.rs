//! The jobs of a file that is read as a whole, independent of its format.

use std::io;

use dormouse_input::{FileFlaw, FlawedRow, NoColumn};

use super::accounting_record::AccountingLine;
use super::format::JobsFormat;
use super::header::Header;
use super::job::{NumberedNames, SwfJob};
use super::problem::LineProblem;
use super::skipped::Skipped;

/// The jobs of a file that is read as a whole, with its header and the counts of skipped lines.
#[derive(Debug, Default)]
pub(super) struct JobListing {
    pub(super) header: Header,
    pub(super) skipped: Skipped,
    /// The jobs or their problems, each with the line number.
    pub(super) jobs: Vec<(u64, Result<SwfJob, LineProblem>)>,
}

/// Reason why a file that is read as a whole can't be used.
#[derive(Debug)]
pub(super) enum UnusableLog {
    Io(io::Error),
    Flaw { what: String, remedy: String },
}

impl From<io::Error> for UnusableLog {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<FileFlaw> for UnusableLog {
    fn from(flaw: FileFlaw) -> Self {
        match flaw {
            FileFlaw::Read(error) => Self::Io(error),
            FileFlaw::Row(FlawedRow { line, what, remedy, .. }) => {
                Self::Flaw { what: format!("line {line}: {what}"), remedy }
            }
            FileFlaw::Whole { what, remedy } => Self::Flaw { what, remedy },
        }
    }
}

impl From<NoColumn> for UnusableLog {
    fn from(NoColumn { what, remedy }: NoColumn) -> Self {
        Self::Flaw { what, remedy }
    }
}

impl UnusableLog {
    pub(super) fn unusable_file(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Flaw { what: what.into(), remedy: remedy.into() }
    }
}

impl JobListing {
    /// Sorts the jobs by submission; unreadable ones come first.
    pub(super) fn sort_jobs(&mut self) {
        let key = |(_, job): &(u64, Result<SwfJob, LineProblem>)| {
            job.as_ref().ok().map(|job| (job.submitted, job.micros[0]))
        };
        let mut before = None;
        for job in &self.jobs {
            let at = key(job);
            self.skipped.taken_for.sorted += u64::from(at.is_some() && at < before);
            before = at.or(before);
        }
        self.jobs.sort_by_key(key);
    }
}

/// A listing of jobs that is filled record by record.
///
/// Use: begin it, add what each record says in the order of the file, then finish it.
#[derive(Debug)]
pub(super) struct ListingBuilder {
    listing: JobListing,
    names: NumberedNames,
    /// True if all jobs so far have different numbers.
    is_numbered: bool,
}

impl ListingBuilder {
    /// Begins an empty listing of jobs from a log of this format; `are_dates` tells whether its times are seconds
    /// since 1970.
    pub(super) fn new(format: JobsFormat, are_dates: bool) -> Self {
        let mut listing = JobListing::default();
        listing.skipped.taken_for.format = format;
        if are_dates {
            listing.header.set("UnixStartTime", 0);
        }
        Self { listing, names: NumberedNames::default(), is_numbered: true }
    }

    /// Adds the job of the record at this line, or its problem.
    pub(super) fn add(&mut self, line: u64, record: Result<AccountingLine, LineProblem>) {
        let skipped = &mut self.listing.skipped;
        match record {
            Ok(AccountingLine::Job(job)) => {
                self.is_numbered &= job.number.is_some();
                skipped.requeued += job.requeued;
                skipped.requeued_cpu_s = skipped.requeued_cpu_s.saturating_add(job.requeued_cpu_s);
                self.listing.jobs.push((line, job.into_job(&mut self.names)));
            }
            Ok(AccountingLine::Requeued(cpu_s)) => {
                skipped.requeued += 1;
                skipped.requeued_cpu_s = skipped.requeued_cpu_s.saturating_add(cpu_s);
            }
            Ok(AccountingLine::Step) => skipped.steps += 1,
            Ok(AccountingLine::Unfinished) => skipped.unfinished += 1,
            Ok(AccountingLine::NoProcessor) => skipped.no_processor += 1,
            Ok(AccountingLine::Other) => {}
            Err(problem) => self.listing.jobs.push((line, Err(problem))),
        }
    }

    /// Counts jobs without a record of their end: `begun` jobs that had begun, and `never_ran` jobs that had not.
    pub(super) const fn add_open(&mut self, begun: u64, never_ran: u64) {
        self.listing.skipped.unfinished += begun;
        self.listing.skipped.never_ran += never_ran;
    }

    /// The listing, sorted by submission. Jobs are numbered in the order of the file if one has no number.
    pub(super) fn finish(self) -> JobListing {
        let Self { mut listing, names, is_numbered } = self;
        if !is_numbered {
            for (number, (_, job)) in (1..).zip(&mut listing.jobs) {
                job.iter_mut().for_each(|job| job.number = number);
            }
        }
        listing.skipped.taken_for.numbered = !is_numbered;
        listing.skipped.taken_for.names = names.len();
        listing.sort_jobs();
        listing
    }
}
