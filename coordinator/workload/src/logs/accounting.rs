//! Accounting files of batch systems: a record a line, of a job that ended or of something else.

use dormouse_input::{Line, Text};

use super::accounting_record::AccountingLine;
use super::format::JobsFormat;
use super::job::NumberedNames;
use super::listing::{JobListing, UnusableLog};
use super::problem::LineProblem;
use super::{lsf, pbs, sge};

/// Reads the jobs of an accounting file; `text` has just read its first line.
pub(super) fn read(mut text: Text, format: JobsFormat) -> Result<JobListing, UnusableLog> {
    let mut listing = JobListing::default();
    listing.skipped.taken_for.format = format;
    listing.header.set("UnixStartTime", 0);
    let (mut names, mut open) = (NumberedNames::default(), pbs::OpenJobs::default());
    let mut is_numbered = true;
    let mut read = Line::Read;
    loop {
        let line = match read {
            Line::End => break,
            Line::TooLong => Err(LineProblem::TooLong),
            Line::Read => match String::from_utf8_lossy(text.line().trim_ascii()).as_ref() {
                "" => Ok(AccountingLine::Other),
                line => match format {
                    JobsFormat::Pbs => open.read_line(line),
                    JobsFormat::Lsf => lsf::read_line(line),
                    _ => sge::read_line(line),
                },
            },
        };
        let skipped = &mut listing.skipped;
        match line {
            Ok(AccountingLine::Job(job)) => {
                is_numbered &= job.number.is_some();
                listing.jobs.push((text.number(), job.into_job(&mut names)));
            }
            Ok(AccountingLine::Requeued(cpu_s)) => {
                skipped.requeued += 1;
                skipped.requeued_cpu_s = skipped.requeued_cpu_s.saturating_add(cpu_s);
            }
            Ok(AccountingLine::Step) => skipped.steps += 1,
            Ok(AccountingLine::Other) => {}
            Err(problem) => listing.jobs.push((text.number(), Err(problem))),
        }
        read = text.read_line()?;
    }
    let (unfinished, never_ran) = open.count_open();
    listing.skipped.unfinished += unfinished;
    listing.skipped.never_ran += never_ran;
    if !is_numbered {
        for (number, (_, job)) in (1..).zip(&mut listing.jobs) {
            job.iter_mut().for_each(|job| job.number = number);
        }
    }
    listing.skipped.taken_for.numbered = !is_numbered;
    listing.skipped.taken_for.names = names.len();
    listing.sort_jobs();
    Ok(listing)
}
