//! Accounting files of batch systems: each line is a record, of a job that ended or of another event.

use dormouse_input::{Line, Text};

use super::accounting_record::AccountingLine;
use super::format::JobsFormat;
use super::listing::{JobListing, ListingBuilder, UnusableLog};
use super::problem::LineProblem;
use super::{lsf, pbs, sge};

/// Reads the jobs of an accounting file; `text` has just read its first line.
pub(super) fn read(mut text: Text, format: JobsFormat) -> Result<JobListing, UnusableLog> {
    let mut listing = ListingBuilder::new(format, true);
    let mut open = pbs::OpenJobs::default();
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
        listing.add(text.number(), line);
        read = text.read_line()?;
    }
    let (unfinished, never_ran) = open.count_open();
    listing.add_open(unfinished, never_ran);
    Ok(listing.finish())
}
