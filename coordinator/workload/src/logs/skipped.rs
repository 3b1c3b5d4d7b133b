//! Lines and jobs of a log that were skipped, and how the rest was interpreted.

use std::fmt;

use serde::Serialize;

use super::format::JobsFormat;
use super::job::Separator;
use super::problem::LineProblem;
use super::rules::OddJobs;

/// Counts of skipped lines and jobs, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Number of lines that are no job: wrong number of fields, no numbers, or too long.
    pub unreadable: u64,
    /// Number of jobs with values below −1, times that are too large, or no submission time.
    pub impossible: u64,
    /// Number of jobs that need more processors than the machine has, or more memory per process than it can give.
    pub too_large: u64,
    /// Number of jobs submitted before the job above them.
    pub unsorted: u64,
    /// Number of well-formed jobs whose run time or size is not known: cancelled before they
    /// started.
    pub never_ran: u64,
    /// Number of jobs that the rules for oddities reject.
    #[serde(skip_serializing_if = "is_zero")]
    pub by_rule: u64,
    /// Number of lines for partial executions of jobs that also have a line for the whole job.
    #[serde(skip_serializing_if = "is_zero")]
    pub partial: u64,
    /// Number of job steps, which are not jobs.
    #[serde(skip_serializing_if = "is_zero")]
    pub steps: u64,
    /// Number of jobs that were still running when the log was made.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished: u64,
    /// Number of jobs that took none of the machine's processors.
    #[serde(skip_serializing_if = "is_zero")]
    pub no_processor: u64,
    /// Number of executions after which the job was queued again.
    #[serde(skip_serializing_if = "is_zero")]
    pub requeued: u64,
    /// Processor time of the requeued executions, in seconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub requeued_cpu_s: u64,
    /// Format, separator and conversions with which the log was read.
    #[serde(skip_serializing_if = "LogForm::is_plain")]
    pub taken_for: LogForm,
    /// Oddities of the accepted jobs.
    #[serde(skip_serializing_if = "OddJobs::is_none")]
    pub odd: OddJobs,
    /// The first job that was malformed.
    #[serde(skip)]
    pub first: Option<FirstMalformed>,
}

/// Longest kept text of a problem, in bytes.
const WORDS: usize = 160;

/// The first malformed job that was skipped: its line, and the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstMalformed {
    line: u64,
    words: [u8; WORDS],
    length: usize,
}

impl FirstMalformed {
    fn new(line: u64, problem: &LineProblem) -> Self {
        let said = problem.to_string();
        let length = said.floor_char_boundary(WORDS);
        let mut words = [0; WORDS];
        words[..length].copy_from_slice(&said.as_bytes()[..length]);
        Self { line, words, length }
    }
}

impl fmt::Display for FirstMalformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = String::from_utf8_lossy(&self.words[..self.length]);
        write!(f, "line {}: {words}", self.line)
    }
}

/// Form in which a log was read: its format, its separator, and what was converted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LogForm {
    /// Format of the log.
    pub format: JobsFormat,
    /// The separator of the fields of an SWF log.
    pub separator: Separator,
    /// True if the first line was skipped as a column heading.
    pub heading: bool,
    /// Number of names (of users, groups, queues) that were replaced by numbers, in order of
    /// appearance.
    pub names: u64,
    /// Number of jobs that were submitted before the job above them, in a format whose jobs the reader sorts.
    pub sorted: u64,
    /// True if jobs were numbered in file order, as their ids are not numbers.
    pub numbered: bool,
}

impl LogForm {
    /// True if the log is plain SWF without any conversion.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for LogForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = vec![format!("read as {}", self.format.in_words())];
        match self.separator {
            Separator::Blanks => {}
            Separator::Tabs => said.push("with tabs between its fields".to_owned()),
            Separator::Semicolons => said.push("with semicolons between its fields".to_owned()),
            Separator::Commas => said.push("with commas between its fields".to_owned()),
        }
        if self.heading && self.format == JobsFormat::Swf {
            said.push("its first line the names of its columns".to_owned());
        }
        if self.names > 0 {
            said.push(format!("{} names numbered in order of appearance", self.names));
        }
        if self.sorted > 0 {
            let places = if self.sorted == 1 { "place" } else { "places" };
            said.push(format!("out of order at {} {places} and sorted by submission", self.sorted));
        }
        if self.numbered {
            said.push("jobs numbered in the order of the file".to_owned());
        }
        f.write_str(&said.join(", "))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Skipped {
    /// Number of malformed jobs, without jobs that never ran.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.unreadable + self.impossible + self.too_large + self.unsorted + self.by_rule
    }

    /// True if something was skipped or changed that affects the run; oddities that every log has
    /// don't count.
    #[must_use]
    pub fn is_worth_telling(&self) -> bool {
        let left_out = self.malformed() + self.never_ran + self.partial + self.steps;
        left_out + self.unfinished + self.no_processor + self.requeued > 0
            || self.odd.changes_the_run()
            || !self.taken_for.is_plain()
    }

    pub(super) fn count(&mut self, line: u64, problem: &LineProblem) {
        self.first.get_or_insert_with(|| FirstMalformed::new(line, problem));
        *match problem {
            LineProblem::TooFewFields { .. }
            | LineProblem::TooManyFields
            | LineProblem::NotANumber { .. }
            | LineProblem::OtherCells { .. }
            | LineProblem::Value { .. }
            | LineProblem::NoJob { .. }
            | LineProblem::Profile { .. }
            | LineProblem::TooLong => &mut self.unreadable,
            LineProblem::Negative { .. } | LineProblem::NoSubmission | LineProblem::TooLate => {
                &mut self.impossible
            }
            LineProblem::LargerThanMachine { .. } | LineProblem::MoreThanMemory { .. } => {
                &mut self.too_large
            }
            LineProblem::Unsorted { .. } => &mut self.unsorted,
            LineProblem::NoEstimate | LineProblem::Repeated { .. } | LineProblem::Fractions => {
                &mut self.by_rule
            }
        } += 1;
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unreadable, impossible, too_large, unsorted, never_ran, by_rule, .. } = self;
        let reasons = [
            (unreadable, "unreadable"),
            (impossible, "with impossible values"),
            (too_large, "larger than the machine"),
            (unsorted, "out of order"),
            (by_rule, "by the rules for oddities"),
        ];
        let reasons = reasons.iter().filter(|(n, _)| **n > 0);
        let reasons: Vec<_> = reasons.map(|(n, what)| format!("{n} {what}")).collect();
        let mut left_out = Vec::new();
        if !reasons.is_empty() {
            let first = self.first.map_or(String::new(), |first| format!("; the first on {first}"));
            let reasons = reasons.join(", ");
            left_out.push(format!("{} malformed jobs ({reasons}{first})", self.malformed()));
        }
        if *never_ran > 0 {
            left_out.push(format!("{never_ran} that never ran"));
        }
        match &left_out[..] {
            [] => f.write_str("left out no malformed jobs")?,
            some => write!(f, "left out {}", some.join(" and "))?,
        }
        for (n, what) in [
            (self.partial, "lines of partial executions left out"),
            (self.steps, "steps of jobs left out"),
            (self.unfinished, "jobs left out that had not ended"),
            (self.no_processor, "jobs left out that took none of the processors that are counted"),
        ] {
            match n {
                0 => {}
                1 => write!(f, "; 1 of the {what}")?,
                _ => write!(f, "; {n} {what}")?,
            }
        }
        if self.requeued > 0 {
            let (n, cpu_s) = (self.requeued, self.requeued_cpu_s);
            let executions = if n == 1 { "execution" } else { "executions" };
            write!(f, "; {n} {executions} of jobs that were requeued left out ({cpu_s} CPU s)")?;
        }
        if !self.odd.is_none() {
            write!(f, "; of those taken {}", self.odd)?;
        }
        if !self.taken_for.is_plain() {
            write!(f, "; {}", self.taken_for)?;
        }
        Ok(())
    }
}
