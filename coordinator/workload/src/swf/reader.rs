//! Reading a log line by line.

use std::fmt;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use dormouse_units::Bytes;
use serde::Serialize;

use super::header::Header;
use super::job::SwfJob;
use super::rules::{Fractions, LogRules, Odd, OnMalformed};
use dormouse_input::{LONGEST_LINE, Line, Text};

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The line has fewer than 18 fields.
    #[error("it has {found} fields, not 18")]
    TooFewFields {
        /// Number of fields that the line has.
        found: usize,
    },
    /// The line has more than 18 fields.
    #[error("it has more than 18 fields")]
    TooManyFields,
    /// A field is not a number.
    #[error("its field {field} is no number")]
    NotANumber {
        /// The number of the field, from 1.
        field: usize,
    },
    /// A field is below −1, which stands for "not known".
    #[error("its field {field} is {value}: below -1, which stands for not known")]
    Negative {
        /// The number of the field, from 1.
        field: usize,
        /// The value that stands there.
        value: i64,
    },
    /// The line is longer than `LONGEST_LINE` bytes: this is no SWF log.
    #[error("it is longer than {LONGEST_LINE} bytes: this is no SWF log")]
    TooLong,
    /// The job has no submission time, and so no place in the order.
    #[error("its submission time is not known")]
    NoSubmission,
    /// The job wants more processors than the machine has: it could never run.
    #[error("it wants {processes} processors; the machine has {machine}")]
    LargerThanMachine {
        /// Number of processors that the job wants.
        processes: i64,
        /// Number of processors of the machine.
        machine: u32,
    },
    /// Each process wants more memory than it can have: none could ever run.
    #[error("it wants {memory} for each process; a process can have {most}")]
    MoreThanMemory {
        /// Memory that each of its processes wants.
        memory: Bytes,
        /// Memory that a process can have.
        most: Bytes,
    },
    /// The job was submitted before the job above it.
    #[error(
        "it was submitted at {submitted} s, before the job above it ({before} s); sort the log"
    )]
    Unsorted {
        /// Submission time of the job, in seconds.
        submitted: i64,
        /// Submission time of the job above it, in seconds.
        before: i64,
    },
    /// The job's times are beyond what a simulation can count.
    #[error("its times are too large")]
    TooLate,
    /// Nobody said how long the job would run, and the run time may not stand for that.
    #[error("nobody said how long it would run (field 9)")]
    NoEstimate,
    /// The job has the number of an earlier one, which the rules do not allow.
    #[error("a job above it has its number, {number}")]
    Repeated {
        /// The number of both jobs.
        number: i64,
    },
    /// The job's times have parts of a second, which the rules do not allow.
    #[error("its times have parts of a second")]
    Fractions,
}

/// Jobs that were left out, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Number of lines that are no job: too few or too many fields, no numbers, too long.
    pub unreadable: u64,
    /// Number of jobs with values below −1, times that are too large, or no submission time.
    pub impossible: u64,
    /// Number of jobs that are larger than the machine, or their processes than its memory.
    pub too_large: u64,
    /// Number of jobs that go back in time.
    pub unsorted: u64,
    /// Number of well-formed jobs whose run time or size is not known: cancelled before they
    /// started.
    pub never_ran: u64,
    /// Number of jobs that the rules for oddities leave out.
    #[serde(skip_serializing_if = "is_zero")]
    pub by_rule: u64,
    /// Oddities of the jobs that were not left out.
    #[serde(skip_serializing_if = "Odd::is_none")]
    pub odd: Odd,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Skipped {
    /// Number of malformed jobs, without those that merely never ran.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.unreadable + self.impossible + self.too_large + self.unsorted + self.by_rule
    }

    pub(crate) fn count(&mut self, problem: Problem) {
        *match problem {
            Problem::TooFewFields { .. }
            | Problem::TooManyFields
            | Problem::NotANumber { .. }
            | Problem::TooLong => &mut self.unreadable,
            Problem::Negative { .. } | Problem::NoSubmission | Problem::TooLate => {
                &mut self.impossible
            }
            Problem::LargerThanMachine { .. } | Problem::MoreThanMemory { .. } => {
                &mut self.too_large
            }
            Problem::Unsorted { .. } => &mut self.unsorted,
            Problem::NoEstimate | Problem::Repeated { .. } | Problem::Fractions => {
                &mut self.by_rule
            }
        } += 1;
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unreadable, impossible, too_large, unsorted, never_ran, by_rule, odd } = self;
        write!(
            f,
            "left out {} malformed jobs ({unreadable} unreadable, {impossible} with impossible \
             values, {too_large} larger than the machine, {unsorted} out of order) and \
             {never_ran} that never ran",
            self.malformed()
        )?;
        if *by_rule > 0 {
            write!(f, "; {by_rule} of the malformed by the rules for oddities")?;
        }
        if !odd.is_none() {
            write!(f, "; of those taken {odd}")?;
        }
        Ok(())
    }
}

/// Why a log can't be read.
#[derive(Debug, thiserror::Error)]
pub enum SwfError {
    /// The file can't be read.
    #[error("can't read {}", path.display())]
    Io {
        /// The file of the log.
        path: PathBuf,
        /// The system's own error.
        source: io::Error,
    },
    /// A job of the log is malformed.
    #[error("{}, line {line}: {problem}; mend the line, or have malformed jobs skipped", path.display())]
    Malformed {
        /// The file of the log.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// What is wrong with the job's line.
        problem: Problem,
    },
    /// The log has no job that can be run.
    #[error("{} has no job that can be run: {skipped}; give a log with jobs", path.display())]
    Empty {
        /// The file of the log.
        path: PathBuf,
        /// Jobs that were left out, by reason.
        skipped: Box<Skipped>,
    },
    /// The log does not say how large its machine is.
    #[error("{} does not say how many processors its machine has (MaxProcs); give the number", path.display())]
    NoMachine {
        /// The file of the log.
        path: PathBuf,
    },
}

/// The jobs of a log, one after the other.
#[derive(Debug)]
pub struct SwfReader {
    path: PathBuf,
    text: Text,
    header: Header,
    rules: LogRules,
    skipped: Skipped,
    /// Result of reading the first job's line, which was read with the header and is still to be
    /// given.
    pending: Option<Line>,
}

impl SwfReader {
    /// Reads the header of a log, plain or gzipped (its first bytes tell); `file` is the result of
    /// opening it at `path`.
    ///
    /// # Errors
    ///
    /// The file can't be read.
    pub fn of<F: Read + Send + 'static>(
        path: &Path,
        file: io::Result<F>,
        rules: impl Into<LogRules>,
    ) -> Result<Self, SwfError> {
        let io = |source| SwfError::Io { path: path.to_owned(), source };
        let text = file.and_then(Text::of).map_err(io)?;
        Self::of_text(path, text, rules.into())
    }

    /// Reads a log from `input`; errors name it by `path`.
    ///
    /// # Errors
    ///
    /// The input can't be read.
    pub fn new(
        path: &Path,
        input: Box<dyn BufRead + Send>,
        rules: impl Into<LogRules>,
    ) -> Result<Self, SwfError> {
        Self::of_text(path, Text::new(input), rules.into())
    }

    fn of_text(path: &Path, text: Text, rules: LogRules) -> Result<Self, SwfError> {
        let (header, skipped) = (Header::default(), Skipped::default());
        let mut reader =
            Self { path: path.to_owned(), text, header, rules, skipped, pending: None };
        loop {
            let got = reader.read_line()?;
            match (got, reader.text.line().trim_ascii()) {
                (Line::Read, []) => {}
                (Line::Read, [b';', comment @ ..]) => reader.header.add(comment),
                // Left for the first call of `next`, which reports it if it is too long.
                _ => {
                    reader.pending = Some(got);
                    return Ok(reader);
                }
            }
        }
    }

    /// The directives at the head of the log.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Jobs that were left out so far, by reason.
    #[must_use]
    pub const fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Path of the log.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Counts a malformed job, or returns it as an error, as the user chose.
    pub(crate) fn malformed(&mut self, problem: Problem) -> Result<(), SwfError> {
        match self.rules.on_malformed {
            OnMalformed::Skip => {
                self.skipped.count(problem);
                Ok(())
            }
            OnMalformed::Fail => Err(SwfError::Malformed {
                path: self.path.clone(),
                line: self.text.number(),
                problem,
            }),
        }
    }

    /// Rules for the log's oddities.
    pub(crate) const fn rules(&self) -> LogRules {
        self.rules
    }

    /// Counts of oddities, to be raised for a job that is taken.
    pub(crate) const fn odd(&mut self) -> &mut Odd {
        &mut self.skipped.odd
    }

    pub(crate) fn never_ran(&mut self) {
        self.skipped.never_ran += 1;
    }

    fn read_line(&mut self) -> Result<Line, SwfError> {
        let read = self.text.read_line();
        read.map_err(|source| SwfError::Io { path: self.path.clone(), source })
    }
}

impl Iterator for SwfReader {
    type Item = Result<SwfJob, SwfError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let got = match self.pending.take().map_or_else(|| self.read_line(), Ok) {
                Ok(got) => got,
                Err(error) => return Some(Err(error)),
            };
            let parsed = match got {
                Line::End => return None,
                Line::TooLong => Err(Problem::TooLong),
                Line::Read => match self.text.line().trim_ascii() {
                    // Some logs have comments between jobs.
                    [] | [b';', ..] => continue,
                    line => match SwfJob::parse(line) {
                        Ok(job) if !job.had_fractions => Ok(job),
                        Ok(_) if self.rules.fractions == Fractions::Malformed => {
                            Err(Problem::Fractions)
                        }
                        parsed => parsed,
                    },
                },
            };
            match parsed {
                Ok(job) => return Some(Ok(job)),
                Err(problem) => match self.malformed(problem) {
                    Ok(()) => {}
                    Err(error) => return Some(Err(error)),
                },
            }
        }
    }
}
