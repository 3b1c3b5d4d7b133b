//! Output of Slurm's `sacct`: cells between bars (`-P`, or `-p`, which also ends rows with one) or
//! another separator, or columns whose widths a line of dashes shows.

use std::cell::OnceCell;

use dormouse_input::{Line, Moment, Text};

use super::format::JobsFormat;
use super::job::{NumberedNames, SwfJob};
use super::listing::{JobListing, UnusableLog};
use super::problem::LineProblem;

/// Reads the jobs of `sacct` output; `text` has just read the heading.
pub(super) fn read(mut text: Text) -> Result<JobListing, UnusableLog> {
    let heading = text.line().to_vec();
    let layout = match b"|\t;,".iter().find(|byte| heading.contains(byte)) {
        Some(separator) => SacctLayout::Separated(*separator),
        None => SacctLayout::of_dashes(&mut text)?,
    };
    let columns = ColumnIndices::from_heading(&layout.split_cells(&heading))?;
    let mut listing = JobListing::default();
    listing.skipped.taken_for.format = JobsFormat::Sacct;
    listing.header.set("UnixStartTime", 0);
    let mut names = NumberedNames::default();
    let mut is_numbered = true;
    loop {
        match text.read_line()? {
            Line::End => break,
            Line::TooLong => {
                listing.jobs.push((text.number(), Err(LineProblem::TooLong)));
                continue;
            }
            Line::Read if text.line().trim_ascii().is_empty() => continue,
            Line::Read => {}
        }
        let cells = layout.split_cells(text.line());
        let row = SacctRow { cells: &cells, columns: &columns };
        let job = match row.check_width() {
            Err(problem) => Err(problem),
            // A step, which is a part of a job: 123.batch, 123.0.
            Ok(())
                if [SacctColumn::Id, SacctColumn::RawId]
                    .iter()
                    .any(|id| row.cell_text(*id).contains('.')) =>
            {
                listing.skipped.steps += 1;
                continue;
            }
            Ok(()) => row.read_job(&mut names),
        };
        match job {
            Ok(RowKind::Unfinished) => listing.skipped.unfinished += 1,
            Ok(RowKind::Requeued { cpu_s }) => {
                listing.skipped.requeued += 1;
                listing.skipped.requeued_cpu_s =
                    listing.skipped.requeued_cpu_s.saturating_add(cpu_s);
            }
            Ok(RowKind::Job(job)) => {
                is_numbered &= job.number >= 0;
                listing.jobs.push((text.number(), Ok(*job)));
            }
            Err(problem) => listing.jobs.push((text.number(), Err(problem))),
        }
    }
    if !is_numbered {
        // Parts of an array have names such as 123_4.
        for (number, (_, job)) in (1..).zip(&mut listing.jobs) {
            job.iter_mut().for_each(|job| job.number = number);
        }
    }
    listing.skipped.taken_for.numbered = !is_numbered;
    listing.skipped.taken_for.names = names.len();
    listing.sort_jobs();
    Ok(listing)
}

/// Layout of the rows of `sacct` output, by which a row is split into cells.
enum SacctLayout {
    /// Cells are separated by this byte, wherever it occurs.
    Separated(u8),
    /// Fields are at fixed positions: first byte and end of each column.
    Wide(Vec<(usize, usize)>),
}

impl SacctLayout {
    /// Reads the column positions from the line of dashes.
    fn of_dashes(text: &mut Text) -> Result<Self, UnusableLog> {
        let read = text.read_line()?;
        let line = text.line().trim_ascii_end();
        let is_of_dashes = line.contains(&b'-') && line.iter().all(|byte| b"- ".contains(byte));
        if read != Line::Read || !is_of_dashes {
            let what = "it looks like sacct's output, without a line of dashes under its heading";
            let remedy = "print it with bars between its cells: sacct -P --format=JobID,Submit,...";
            return Err(UnusableLog::unusable_file(what, remedy));
        }
        let mut columns = Vec::new();
        let mut from = None;
        for (at, byte) in line.iter().chain(b" ").enumerate() {
            match (byte, from) {
                (b'-', None) => from = Some(at),
                (b' ', Some(first)) => {
                    columns.push((first, at));
                    from = None;
                }
                _ => {}
            }
        }
        Ok(Self::Wide(columns))
    }

    /// Cells of a row, trimmed.
    fn split_cells(&self, line: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\n', '\r']);
        match self {
            Self::Separated(byte) => {
                text.split(char::from(*byte)).map(|cell| cell.trim().to_owned()).collect()
            }
            // Widths are in characters.
            Self::Wide(columns) => {
                let letters: Vec<char> = text.chars().collect();
                let cell = |(from, to): &(usize, usize)| {
                    let to = (*to).min(letters.len());
                    let cell: String = letters.get(*from..to).unwrap_or_default().iter().collect();
                    cell.trim().to_owned()
                };
                columns.iter().map(cell).collect()
            }
        }
    }
}

/// Columns of `sacct` output that are used.
#[derive(Clone, Copy)]
enum SacctColumn {
    Id,
    RawId,
    Submit,
    Start,
    End,
    ElapsedRaw,
    Elapsed,
    LimitRaw,
    Limit,
    Allocated,
    Requested,
    Nodes,
    State,
    User,
    Account,
    Partition,
    Memory,
    Priority,
}

impl SacctColumn {
    /// Heading names of each column, in the order of the enumeration.
    const NAMES: [&[&str]; 18] = [
        &["jobid"],
        &["jobidraw"],
        &["submit"],
        &["start"],
        &["end"],
        &["elapsedraw"],
        &["elapsed"],
        &["timelimitraw"],
        &["timelimit"],
        &["alloccpus", "ncpus"],
        &["reqcpus"],
        &["nnodes", "allocnodes"],
        &["state"],
        &["user"],
        &["account", "group"],
        &["partition"],
        &["reqmem"],
        &["priority"],
    ];
}

/// Index of each column in a row.
struct ColumnIndices {
    places: [Option<usize>; SacctColumn::NAMES.len()],
    width: usize,
    /// True if rows end with a bar that the heading lacks.
    end_with_bars: OnceCell<bool>,
}

impl ColumnIndices {
    fn from_heading(heading: &[String]) -> Result<Self, UnusableLog> {
        let heading: Vec<String> = heading.iter().map(|name| name.to_ascii_lowercase()).collect();
        let place = |name: &&str| heading.iter().position(|it| it == name);
        let places = SacctColumn::NAMES.map(|names| names.iter().find_map(place));
        let columns = Self { places, width: heading.len(), end_with_bars: OnceCell::new() };
        let has = |cell: SacctColumn| columns.places[cell as usize].is_some();
        let missing = if !has(SacctColumn::Id) && !has(SacctColumn::RawId) {
            "JobID"
        } else if !has(SacctColumn::Submit) {
            "Submit"
        } else if !(has(SacctColumn::Elapsed)
            || has(SacctColumn::ElapsedRaw)
            || has(SacctColumn::Start) && has(SacctColumn::End))
        {
            "ElapsedRaw"
        } else if !has(SacctColumn::Allocated) && !has(SacctColumn::Requested) {
            "AllocCPUS"
        } else {
            return Ok(columns);
        };
        let what = format!("it is what sacct prints, and has no column {missing}");
        let remedy = "print it with: sacct -X -P --format=JobID,Submit,Start,ElapsedRaw,TimelimitRaw,\
                      AllocCPUS,ReqCPUS,NNodes,State,User,ReqMem";
        Err(UnusableLog::unusable_file(what, remedy))
    }
}

/// Content of a row of `sacct` output.
enum RowKind {
    /// A job that ended, or never ran.
    Job(Box<SwfJob>),
    /// The row is of a job that had not ended when `sacct` was run.
    Unfinished,
    /// An execution after which the job was queued again; later executions have rows of their own
    /// (`sacct -D`).
    Requeued {
        /// Processor time of the execution in seconds.
        cpu_s: u64,
    },
}

/// A row with the column indices.
struct SacctRow<'a> {
    cells: &'a [String],
    columns: &'a ColumnIndices,
}

impl SacctRow<'_> {
    /// Text of a column's cell; empty if the column is missing.
    fn cell_text(&self, column: SacctColumn) -> &str {
        let place = self.columns.places[column as usize];
        place.and_then(|place| self.cells.get(place)).map_or("", String::as_str)
    }

    /// Checks that the row has as many cells as the heading. With `-p` rows end with a bar that
    /// some headings lack.
    fn check_width(&self) -> Result<(), LineProblem> {
        let (found, wanted) = (self.cells.len(), self.columns.width);
        // The first row decides: in a later row with an extra cell, a bar may also be part of a
        // cell.
        let ends_so = || found == wanted + 1 && self.cells.last().is_some_and(String::is_empty);
        let is_ended = *self.columns.end_with_bars.get_or_init(ends_so) && ends_so();
        if found == wanted || is_ended {
            Ok(())
        } else {
            Err(LineProblem::OtherCells { found, wanted })
        }
    }

    fn read_job(&self, names: &mut NumberedNames) -> Result<RowKind, LineProblem> {
        let state = self.cell_text(SacctColumn::State).to_ascii_uppercase();
        let submitted =
            self.parse_moment("Submit", SacctColumn::Submit)?.ok_or(LineProblem::NoSubmission)?;
        let allocated = self.count("AllocCPUS", SacctColumn::Allocated)?;
        let requested = self.count("ReqCPUS", SacctColumn::Requested)?;
        let start = self.cell_text(SacctColumn::Start);
        // A cancelled job that had not begun has a start in some versions: that of its end.
        let elapsed = self.elapsed_seconds()?;
        let is_cancelled = state.starts_with("CANCELLED") && elapsed == Some(0);
        let never_ran = is_nothing(start)
            && self.columns.places[SacctColumn::Start as usize].is_some()
            || state.starts_with("PENDING")
            || is_cancelled
            || allocated == 0;
        let has_end = self.columns.places[SacctColumn::End as usize].is_some();
        let is_requeued = state.starts_with("REQUEUED");
        let has_not_ended = ["RUNNING", "SUSPENDED", "RESIZING", "COMPLETING", "STOPPED"]
            .iter()
            .any(|it| state.starts_with(it))
            || has_end && is_nothing(self.cell_text(SacctColumn::End))
            || is_requeued && !has_end;
        if !never_ran && has_not_ended {
            return Ok(RowKind::Unfinished);
        }
        if is_requeued {
            let seconds = |value: i64| u64::try_from(value).unwrap_or(0);
            let cpu_s = seconds(elapsed.unwrap_or(0)).saturating_mul(seconds(allocated));
            return Ok(RowKind::Requeued { cpu_s });
        }
        let run_time = if never_ran { -1 } else { elapsed.unwrap_or(-1) };
        let processors = if allocated > 0 { allocated } else { requested };
        let mut numbered = |field, cell| match self.cell_text(cell) {
            "" => -1,
            name => names.number_of_name(field, name.as_bytes()),
        };
        let (user, group) = (numbered(12, SacctColumn::User), numbered(13, SacctColumn::Account));
        let partition = numbered(16, SacctColumn::Partition);
        let wait = self
            .parse_moment("Start", SacctColumn::Start)?
            .map_or(-1, |at| (at - submitted).max(-1));
        Ok(RowKind::Job(Box::new(SwfJob {
            number: self.job_number(),
            submitted,
            wait,
            run_time,
            allocated,
            requested,
            requested_time: self.limit_seconds()?,
            requested_memory: self.memory_kib(processors)?,
            status: match state.as_str() {
                "COMPLETED" => 1,
                "" => -1,
                _ if state.starts_with("CANCELLED") => 5,
                _ => 0,
            },
            user,
            group,
            partition,
            // A job that was held has no number there.
            priority: self.cell_text(SacctColumn::Priority).parse().unwrap_or(0),
            ..SwfJob::unknown()
        })))
    }

    /// The job's id if it is a whole number.
    fn job_number(&self) -> i64 {
        let whole = |cell| self.cell_text(cell).parse().ok().filter(|number: &i64| *number >= 0);
        whole(SacctColumn::RawId).or_else(|| whole(SacctColumn::Id)).unwrap_or(-1)
    }

    /// Parses a time to seconds since 1970; `None` if it is not known yet.
    fn parse_moment(
        &self,
        name: &'static str,
        column: SacctColumn,
    ) -> Result<Option<i64>, LineProblem> {
        let cell = self.cell_text(column);
        if is_nothing(cell) {
            return Ok(None);
        }
        let read = Moment::read(cell);
        let right = "write a date such as 2024-06-24T12:33:26";
        read.map(|moment| Some(moment.second)).ok_or_else(|| value_problem(name, cell, right))
    }

    /// Number of processors or nodes in a column of the row; −1: not recorded.
    fn count(&self, name: &'static str, column: SacctColumn) -> Result<i64, LineProblem> {
        let cell = self.cell_text(column);
        if cell.is_empty() {
            return Ok(-1);
        }
        // Large ones are written 1.5K in columns.
        let number = cell.parse().ok().filter(|number: &i64| *number >= 0);
        number.ok_or_else(|| value_problem(name, cell, "write a whole number"))
    }

    /// Run time of the row's job in seconds; `None`: not recorded.
    fn elapsed_seconds(&self) -> Result<Option<i64>, LineProblem> {
        let right = "write seconds, or [days-]hours:minutes:seconds";
        let (raw, elapsed) =
            (self.cell_text(SacctColumn::ElapsedRaw), self.cell_text(SacctColumn::Elapsed));
        if let Ok(seconds) = raw.parse::<u32>() {
            return Ok(Some(seconds.into()));
        }
        if !is_nothing(elapsed) {
            return Ok(Some(
                parse_clock(elapsed).ok_or_else(|| value_problem("Elapsed", elapsed, right))?,
            ));
        }
        if !is_nothing(raw) {
            return Err(value_problem("ElapsedRaw", raw, right));
        }
        let (start, end) = (
            self.parse_moment("Start", SacctColumn::Start)?,
            self.parse_moment("End", SacctColumn::End)?,
        );
        Ok(start.zip(end).map(|(start, end)| (end - start).max(0)))
    }

    /// Time limit of the row's job in seconds; −1: none.
    fn limit_seconds(&self) -> Result<i64, LineProblem> {
        let right = "write minutes, or [days-]hours:minutes:seconds, or UNLIMITED";
        let (raw, limit) =
            (self.cell_text(SacctColumn::LimitRaw), self.cell_text(SacctColumn::Limit));
        if let Ok(minutes) = raw.parse::<u32>() {
            return Ok(i64::from(minutes) * 60);
        }
        let has_none = |cell: &str| {
            let none = ["unlimited", "partition_limit", "infinite", "invalid"];
            is_nothing(cell) || none.iter().any(|it| cell.eq_ignore_ascii_case(it))
        };
        match (has_none(limit), has_none(raw)) {
            (true, true) => Ok(-1),
            (true, false) => Err(value_problem("TimelimitRaw", raw, right)),
            (false, _) => {
                parse_clock(limit).ok_or_else(|| value_problem("Timelimit", limit, right))
            }
        }
    }

    /// Requested memory in KiB per processor; −1: not recorded.
    fn memory_kib(&self, processors: i64) -> Result<i64, LineProblem> {
        let cell = self.cell_text(SacctColumn::Memory).trim_end_matches('?');
        if is_nothing(cell) || processors <= 0 {
            return Ok(-1);
        }
        // Before Slurm 21.08 the memory is per CPU or per node, marked by a suffix; later it is the
        // total.
        let (size, of) = match cell.strip_suffix('c') {
            Some(size) => (size, 1.0),
            None => match cell.strip_suffix('n') {
                Some(size) => {
                    let nodes = self.count("NNodes", SacctColumn::Nodes)?.max(1);
                    (size, to_float(nodes) / to_float(processors))
                }
                None => (cell, 1.0 / to_float(processors)),
            },
        };
        let wrong = || value_problem("ReqMem", cell, "write a size such as 4000M, 16Gn or 100Mc");
        let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let scale = match size.get(digits.len()..).unwrap_or_default() {
            "K" => 1.0,
            // Without a unit it is in megabytes.
            "M" | "" => 1024.0,
            "G" => 1024.0 * 1024.0,
            "T" => 1024.0 * 1024.0 * 1024.0,
            "P" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
            _ => return Err(wrong()),
        };
        let kib = digits.parse::<f64>().map_err(|_| wrong())? * scale * of;
        if !(0.0..1e15).contains(&kib) {
            return Err(wrong());
        }
        #[expect(clippy::cast_possible_truncation, reason = "its range was looked at")]
        let kib = kib.round() as i64;
        // All of a node's, however much that is.
        Ok(if kib == 0 { -1 } else { kib })
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of processors and nodes")]
const fn to_float(n: i64) -> f64 {
    n as f64
}

fn value_problem(name: &'static str, value: &str, right: &'static str) -> LineProblem {
    let value: String = value.chars().take(40).collect();
    LineProblem::Value { name, value: value.into(), right }
}

/// True if a cell has no value.
fn is_nothing(cell: &str) -> bool {
    cell.is_empty() || ["unknown", "none"].iter().any(|it| cell.eq_ignore_ascii_case(it))
}

/// Parses `[days-]hours:minutes[:seconds[.part]]`, Slurm's form of durations, to seconds; without
/// days, two numbers are minutes and seconds.
fn parse_clock(text: &str) -> Option<i64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(parse_number(days)?), rest),
        None => (None, text),
    };
    let rest = rest.split_once('.').map_or(rest, |(whole, _)| whole);
    let parts = rest.split(':').map(parse_number).collect::<Option<Vec<i64>>>()?;
    let seconds = match (days, &parts[..]) {
        (_, [hours, minutes, seconds]) => hours * 3_600 + minutes * 60 + seconds,
        (Some(_), [hours, minutes]) => hours * 3_600 + minutes * 60,
        (Some(_), [hours]) => hours * 3_600,
        (None, [minutes, seconds]) => minutes * 60 + seconds,
        _ => return None,
    };
    Some(days.unwrap_or(0) * 86_400 + seconds)
}

/// Parses a number of at most eight digits.
fn parse_number(text: &str) -> Option<i64> {
    let fine = (1..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if fine { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_as_slurm_writes_them() {
        for (text, seconds) in [
            ("00:31:28", 1_888),
            ("03:31:28", 12_688),
            ("3-00:00:00", 259_200),
            ("1-00:00", 86_400),
            ("7-4", 619_200),
            ("02:30", 150),
            ("00:03.559", 3),
        ] {
            assert_eq!(parse_clock(text), Some(seconds), "{text}");
        }
        for text in ["", "UNLIMITED", "5", "1-", "1:2:3:4", "-1:00", "1:00+"] {
            assert_eq!(parse_clock(text), None, "{text}");
        }
    }
}
