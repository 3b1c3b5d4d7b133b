//! Reading a log job by job.

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use dormouse_input::{Line, Source, Text};

use super::detect::is_sacct_heading;
use super::error::SwfError;
use super::format::JobsFormat;
use super::header::Header;
use super::job::{NumberedNames, Separator, SwfJob, is_name};
use super::listing::{JobListing, UnusableLog};
use super::problem::LineProblem;
use super::rules::{ExtraFields, Fractions, LogRules, OddJobs, OnMalformed};
use super::sacct;
use super::skipped::{LogForm, Skipped};
use super::{accounting, batsim, clusters, condor, philly};

/// Longest JSON file that is read, in bytes: the whole file is held in memory.
const LONGEST_JSON: u64 = 1 << 29;

/// Reads the jobs of a log one by one. The format is detected from the first bytes. Jobs of other
/// formats than SWF are converted to SWF's fields and held in memory, in order of submission.
///
/// Use: open it, then read job by job; [`SwfReader::skipped`] tells at any time what was left out
/// so far.
#[derive(Debug)]
pub struct SwfReader {
    path: PathBuf,
    input: JobInput,
    header: Header,
    rules: LogRules,
    skipped: Skipped,
    /// True if a job that was read so far names a preceding job.
    has_predecessors: bool,
}

/// Input of jobs: a stream of SWF lines, or a list that was read as a whole.
#[derive(Debug)]
enum JobInput {
    Lines(SwfLines),
    Listed { jobs: std::vec::IntoIter<(u64, Result<SwfJob, LineProblem>)>, line: u64 },
}

/// The lines of an SWF log.
#[derive(Debug)]
struct SwfLines {
    text: Text,
    separator: Separator,
    names: NumberedNames,
    /// Result of reading the first job's line, which was read together with the header and not
    /// returned yet.
    pending: Option<Line>,
}

impl SwfReader {
    /// Reads the header of a log, which may be packed (its first bytes tell); `file` is the result of
    /// opening it at `path`.
    ///
    /// # Errors
    ///
    /// The file can't be read, or is of a format that can't be used.
    pub fn from_file<F: Read + Send + 'static>(
        path: &Path,
        file: io::Result<F>,
        rules: impl Into<LogRules>,
    ) -> Result<Self, SwfError> {
        let io = |source| SwfError::Io { path: path.to_owned(), source };
        let mut source = file.and_then(Source::new).map_err(io)?;
        let is_json = source.is_json().map_err(io)?;
        let read = match JobsFormat::detect(source.next_bytes().map_err(io)?) {
            Some(JobsFormat::Condor) if is_json => condor::read_json(source),
            Some(JobsFormat::Philly) => philly::read(source),
            Some(
                format @ (JobsFormat::Helios | JobsFormat::Alibaba2018 | JobsFormat::Alibaba2020),
            ) => clusters::read(source, format),
            Some(JobsFormat::Condor) => {
                let mut text = Text::new(source.into_input());
                text.read_line().map_err(io)?;
                condor::read_long(text)
            }
            _ if is_json => {
                let text = source.into_text(LONGEST_JSON).map_err(io)?;
                batsim::read(&text)
            }
            _ => return Self::of_text(path, Text::new(source.into_input()), rules.into()),
        };
        Self::read_listing(path, read, rules.into())
    }

    /// Reads a log from `input`, which must not be packed and has lines of SWF, of `sacct` or of an accounting file;
    /// errors name the log by `path`.
    ///
    /// # Errors
    ///
    /// The input can't be read, or is of a format that can't be used.
    pub fn new(
        path: &Path,
        input: Box<dyn BufRead + Send>,
        rules: impl Into<LogRules>,
    ) -> Result<Self, SwfError> {
        Self::of_text(path, Text::new(input), rules.into())
    }

    fn read_listing(
        path: &Path,
        read: Result<JobListing, UnusableLog>,
        rules: LogRules,
    ) -> Result<Self, SwfError> {
        let path = path.to_owned();
        match read {
            Ok(JobListing { header, skipped, jobs }) => {
                let input = JobInput::Listed { jobs: jobs.into_iter(), line: 0 };
                Ok(Self { path, input, header, rules, skipped, has_predecessors: false })
            }
            Err(UnusableLog::Io(source)) => Err(SwfError::Io { path, source }),
            Err(UnusableLog::Flaw { what, remedy }) => {
                Err(SwfError::Unusable { path, what, remedy })
            }
        }
    }

    fn of_text(path: &Path, mut text: Text, rules: LogRules) -> Result<Self, SwfError> {
        let io = |source| SwfError::Io { path: path.to_owned(), source };
        let (mut header, mut skipped) = (Header::default(), Skipped::default());
        let mut separator = Separator::default();
        let pending = loop {
            let got = text.read_line().map_err(io)?;
            match (got, text.line().trim_ascii()) {
                (Line::Read, []) => {}
                (Line::Read, [b';', comment @ ..]) => header.add(comment),
                // As Grid Engine begins its files.
                (Line::Read, [b'#', ..]) if !skipped.taken_for.heading => {}
                (Line::Read, line) if !skipped.taken_for.heading => {
                    if is_sacct_heading(line) {
                        return Self::read_listing(path, sacct::read(text), rules);
                    }
                    if let Some(format) = JobsFormat::of_accounting(line) {
                        return Self::read_listing(path, accounting::read(text, format), rules);
                    }
                    separator = Separator::from_line(line);
                    if !is_heading(line, separator) {
                        break got;
                    }
                    skipped.taken_for.heading = true;
                }
                // Left for the first call of `next`, which reports it if it is too long.
                _ => break got,
            }
        };
        skipped.taken_for.separator = separator;
        let names = NumberedNames::default();
        let input = JobInput::Lines(SwfLines { text, separator, names, pending: Some(pending) });
        let path = path.to_owned();
        Ok(Self { path, input, header, rules, skipped, has_predecessors: false })
    }

    /// The directives at the head of the log.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Format of the log.
    #[must_use]
    pub const fn format(&self) -> JobsFormat {
        self.skipped.taken_for.format
    }

    /// Jobs that were left out so far, by reason.
    #[must_use]
    pub fn skipped(&self) -> Skipped {
        let mut skipped = self.skipped;
        if let JobInput::Lines(lines) = &self.input {
            skipped.taken_for = LogForm { names: lines.names.len(), ..skipped.taken_for };
        }
        skipped
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if any job of the log, including those already read, names a preceding job. Read errors
    /// are ignored here: they come up again when the jobs are read.
    pub(super) fn names_predecessors(mut self) -> bool {
        while !self.has_predecessors && matches!(self.read_but(follows_none), Ok(Some(_))) {}
        self.has_predecessors
    }

    /// Counts a malformed job or returns it as an error, depending on the rules.
    pub(super) fn on_malformed(&mut self, problem: LineProblem) -> Result<(), SwfError> {
        let line = match &self.input {
            JobInput::Lines(lines) => lines.text.number(),
            JobInput::Listed { line, .. } => *line,
        };
        match self.rules.on_malformed {
            OnMalformed::Skip => {
                self.skipped.count(line, &problem);
                Ok(())
            }
            OnMalformed::Fail => {
                Err(SwfError::Malformed { path: self.path.clone(), line, problem })
            }
        }
    }

    /// Rules for the log's oddities.
    pub(super) const fn rules(&self) -> LogRules {
        self.rules
    }

    /// Counts of oddities among the accepted jobs, for the caller to increase.
    pub(super) const fn odd_jobs(&mut self) -> &mut OddJobs {
        &mut self.skipped.odd
    }

    pub(super) const fn never_ran(&mut self) {
        self.skipped.never_ran += 1;
    }

    pub(super) const fn count_partial(&mut self) {
        self.skipped.partial += 1;
    }

    /// Reads the next job without checking it by the rules; `None` at the end of the log.
    fn read(&mut self) -> Result<Option<Result<SwfJob, LineProblem>>, SwfError> {
        self.read_but(|_, _| false)
    }

    /// Reads the next job without checking it by the rules; lines for which `is_passed_over(line, separator)` holds
    /// are skipped. `None`: the log has ended.
    fn read_but(
        &mut self,
        is_passed_over: impl Fn(&[u8], Separator) -> bool,
    ) -> Result<Option<Result<SwfJob, LineProblem>>, SwfError> {
        let read = match &mut self.input {
            JobInput::Listed { jobs, line } => jobs.next().map(|(at, job)| {
                *line = at;
                job
            }),
            JobInput::Lines(lines) => {
                let io = |source| SwfError::Io { path: self.path.clone(), source };
                lines.read_but(is_passed_over).map_err(io)?
            }
        };
        self.has_predecessors |= matches!(&read, Some(Ok(job)) if job.preceding >= 0);
        Ok(read)
    }

    /// Returns the job, or a problem if the job is odd in a way that the rules do not allow.
    fn check_rules(&self, job: SwfJob) -> Result<SwfJob, LineProblem> {
        if job.had_fractions && self.rules.fractions == Fractions::Malformed {
            return Err(LineProblem::Fractions);
        }
        if job.had_more_fields && self.rules.extra_fields == ExtraFields::Malformed {
            return Err(LineProblem::TooManyFields);
        }
        Ok(job)
    }
}

impl SwfLines {
    /// Reads the next job from the lines of an SWF log, in the form in which [`SwfReader::read_but`] returns it.
    fn read_but(
        &mut self,
        is_passed_over: impl Fn(&[u8], Separator) -> bool,
    ) -> io::Result<Option<Result<SwfJob, LineProblem>>> {
        loop {
            let got = match self.pending.take() {
                Some(got) => got,
                None => self.text.read_line()?,
            };
            let line = match got {
                Line::End => return Ok(None),
                Line::TooLong => return Ok(Some(Err(LineProblem::TooLong))),
                Line::Read => self.text.line().trim_ascii(),
            };
            // Some logs have comments between jobs.
            if matches!(line, [] | [b';', ..]) || is_passed_over(line, self.separator) {
                continue;
            }
            let line = match self.separator {
                // The last cells of a line may be empty.
                Separator::Tabs => without_break(self.text.line()),
                Separator::Blanks | Separator::Semicolons | Separator::Commas => line,
            };
            return Ok(Some(SwfJob::read(line, self.separator, &mut self.names)));
        }
    }
}

/// True if the last two fields of a line are unknown, so that the job follows no other job. This test makes the search
/// for preceding jobs fast, which reads a log of a million jobs before the first job runs.
fn follows_none(line: &[u8], separator: Separator) -> bool {
    // Separators are blanks or control characters, which no cell contains: there are at most
    // eighteen cells.
    let is_not_in_cells = |byte: &&u8| **byte <= b' ';
    separator == Separator::Blanks
        && line.ends_with(b" -1 -1")
        && line.iter().filter(is_not_in_cells).count() <= 17
}

/// A line without its trailing line break.
fn without_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// True if a line is a column heading: none of its cells is a number.
fn is_heading(line: &[u8], separator: Separator) -> bool {
    let mut cells = 0;
    separator.split_cells(line).filter(|cell| !cell.is_empty()).all(|cell| {
        cells += 1;
        is_name(cell)
    }) && cells >= 18
}

impl Iterator for SwfReader {
    type Item = Result<SwfJob, SwfError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let read = match self.read() {
                Ok(read) => read?,
                Err(error) => return Some(Err(error)),
            };
            match read.and_then(|job| self.check_rules(job)) {
                Ok(job) => return Some(Ok(job)),
                Err(problem) => match self.on_malformed(problem) {
                    Ok(()) => {}
                    Err(error) => return Some(Err(error)),
                },
            }
        }
    }
}
