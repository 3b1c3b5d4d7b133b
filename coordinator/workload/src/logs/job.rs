//! A job as a line of an SWF log, and how the line is read.

use std::collections::BTreeMap;

use dormouse_model::Submission;

use serde::Serialize;

use super::problem::LineProblem;

/// A job of an SWF log: its eighteen fields, in seconds, processors and kilobytes; −1 is
/// "not known". Fractions, which some SWF logs have, are cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwfJob {
    /// Field 1: the job's number in the log.
    pub number: i64,
    /// Field 2: submission time, in seconds.
    pub submitted: i64,
    /// Field 3: time that the job waited, in seconds.
    pub wait: i64,
    /// Field 4: time that the job ran, in seconds.
    pub run_time: i64,
    /// Field 5: processors that the job had.
    pub allocated: i64,
    /// Field 6: mean CPU time of the job's processors, in seconds.
    pub cpu_time: i64,
    /// Field 7: mean memory used on each of the job's processors, in kilobytes.
    pub memory: i64,
    /// Field 8: number of processors that the job requested.
    pub requested: i64,
    /// Field 9: run time that the job's user requested, in seconds.
    pub requested_time: i64,
    /// Field 10: memory for each processor that the job requested, in kilobytes.
    pub requested_memory: i64,
    /// Field 11: how the job ended: 1 completed, 0 failed, 5 cancelled.
    pub status: i64,
    /// Field 12: number of the user.
    pub user: i64,
    /// Field 13: number of the user's group.
    pub group: i64,
    /// Field 14: number of the program.
    pub program: i64,
    /// Field 15: number of the queue.
    pub queue: i64,
    /// Field 16: number of the partition.
    pub partition: i64,
    /// Field 17: number of the job that this job follows; if there are several, the first of their numbers.
    pub preceding: i64,
    /// Other jobs that this job follows: field 17 of some logs is a list such as `1&2&3`.
    pub preceding_others: Box<[i64]>,
    /// Field 18: seconds from the end of the preceding job to this job's submission.
    pub think_time: i64,
    /// True if a used time (fields 2, 4 and 9) had a fraction of a second, which was cut off.
    pub had_fractions: bool,
    /// True if the job's program is to fail at its end, whatever status the log has; SWF has no
    /// field for that.
    pub fails: bool,
    /// Priority of the job in a log that has a column for priorities; 0 in others. SWF has no field for that.
    pub priority: i64,
    /// True if the line had more than 18 fields.
    pub had_more_fields: bool,
    /// Microseconds of fields 2, 4 and 9 beyond their whole seconds; SWF itself has none.
    pub micros: [u32; 3],
}

impl SwfJob {
    /// A job without any known value: all 18 fields are −1.
    #[must_use]
    pub fn unknown() -> Self {
        Self::from_fields([-1; 18])
    }

    /// The job with the given 18 fields.
    #[must_use]
    pub fn from_fields(f: [i64; 18]) -> Self {
        Self {
            number: f[0],
            submitted: f[1],
            wait: f[2],
            run_time: f[3],
            allocated: f[4],
            cpu_time: f[5],
            memory: f[6],
            requested: f[7],
            requested_time: f[8],
            requested_memory: f[9],
            status: f[10],
            user: f[11],
            group: f[12],
            program: f[13],
            queue: f[14],
            partition: f[15],
            preceding: f[16],
            preceding_others: Box::default(),
            think_time: f[17],
            had_fractions: false,
            fails: false,
            priority: 0,
            had_more_fields: false,
            micros: [0; 3],
        }
    }

    /// The job's fields in the order of the format.
    #[must_use]
    pub const fn fields(&self) -> [i64; 18] {
        [
            self.number,
            self.submitted,
            self.wait,
            self.run_time,
            self.allocated,
            self.cpu_time,
            self.memory,
            self.requested,
            self.requested_time,
            self.requested_memory,
            self.status,
            self.user,
            self.group,
            self.program,
            self.queue,
            self.partition,
            self.preceding,
            self.think_time,
        ]
    }

    /// Reads the line of a job, whose fields have blanks or tabs between them.
    ///
    /// # Errors
    ///
    /// What is wrong with the line.
    pub fn parse(line: &[u8]) -> Result<Self, LineProblem> {
        Self::read(line, Separator::Blanks, &mut NumberedNames::default())
    }

    /// Reads the line of a job, with this separator between its fields; names of users, groups and the like are
    /// replaced by the numbers in `names`.
    pub(super) fn read(
        line: &[u8],
        separator: Separator,
        names: &mut NumberedNames,
    ) -> Result<Self, LineProblem> {
        if separator == Separator::Blanks
            && let Some(fields) = parse_plain(line)
        {
            return Ok(Self::from_fields(fields));
        }
        let mut fields = [-1; 18];
        let (mut count, mut had_fractions) = (0, false);
        let mut others = Vec::new();
        let mut cells = separator.split_cells(line);
        for (field, word) in fields.iter_mut().zip(&mut cells) {
            count += 1;
            // A cell of nothing between two separators: not known.
            if word.is_empty() {
                continue;
            }
            let (value, is_cut) = match parse_number(word) {
                Some(read) => read,
                None if count == 17 => (parse_several(word, &mut others).ok_or(NAN_17)?, false),
                None if NAMED.contains(&count) && is_name(word) => {
                    (names.number_of_name(count, word), false)
                }
                None => return Err(LineProblem::NotANumber { field: count }),
            };
            *field = value;
            had_fractions |= is_cut && [2, 4, 9].contains(&count);
            if *field < -1 {
                return Err(LineProblem::Negative { field: count, value: *field });
            }
        }
        if count < 18 {
            return Err(LineProblem::TooFewFields { found: count });
        }
        let had_more_fields = cells.any(|cell| !cell.is_empty());
        let preceding_others = others.into();
        Ok(Self { had_fractions, had_more_fields, preceding_others, ..Self::from_fields(fields) })
    }
}

const NAN_17: LineProblem = LineProblem::NotANumber { field: 17 };

/// Indices of the fields in which some logs have names: user, group, program, queue and partition.
const NAMED: std::ops::RangeInclusive<usize> = 12..=16;

/// The separator of the fields of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Separator {
    /// Any number of blanks or tabs.
    #[default]
    Blanks,
    /// One tab between two fields.
    Tabs,
    /// One semicolon between two fields.
    Semicolons,
    /// One comma between two fields.
    Commas,
}

impl Separator {
    /// Detects the separator from the first line of a log, a heading or a job.
    pub(super) fn from_line(line: &[u8]) -> Self {
        let count = |byte| line.iter().filter(|b| **b == byte).count();
        // Columns that are aligned by several tabs have blanks, in effect.
        if count(b';') >= 17 {
            Self::Semicolons
        } else if count(b'\t') >= 17 && !line.windows(2).any(|two| two == b"\t\t") {
            Self::Tabs
        } else if count(b',') >= 17 {
            Self::Commas
        } else {
            Self::Blanks
        }
    }

    /// The cells of a line, without the blanks around them.
    pub(super) fn split_cells(self, line: &[u8]) -> impl Iterator<Item = &[u8]> {
        let is_between = move |byte: &u8| match self {
            Self::Blanks => byte.is_ascii_whitespace(),
            Self::Tabs => *byte == b'\t',
            Self::Semicolons => *byte == b';',
            Self::Commas => *byte == b',',
        };
        let cells = line.split(is_between).map(<[u8]>::trim_ascii);
        cells.filter(move |cell| self != Self::Blanks || !cell.is_empty())
    }
}

/// Names of users, groups, programs, queues and partitions, numbered in order of appearance.
#[derive(Clone, Debug, Default)]
pub(super) struct NumberedNames {
    /// The names of each field, from field 12 on.
    all: [BTreeMap<Box<[u8]>, i64>; 5],
}

impl NumberedNames {
    /// The number of a name in this field.
    pub(super) fn number_of_name(&mut self, field: usize, name: &[u8]) -> i64 {
        let Some(names) = self.all.get_mut(field - NAMED.start()) else { return -1 };
        if let Some(number) = names.get(name) {
            return *number;
        }
        let number = i64::try_from(names.len()).unwrap_or(i64::MAX - 1) + 1;
        names.insert(name.into(), number);
        number
    }

    /// Number of distinct names so far.
    pub(super) fn len(&self) -> u64 {
        self.all.iter().map(|names| names.len() as u64).sum()
    }
}

/// True if a word can be a name: it begins with a letter.
pub(super) fn is_name(word: &[u8]) -> bool {
    word.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_' || !byte.is_ascii())
}

/// Parses a list such as `1&2&3`: returns the first number and appends the rest to `others`.
fn parse_several(word: &[u8], others: &mut Vec<i64>) -> Option<i64> {
    let mut numbers =
        word.split(|byte| *byte == b'&').map(|one| match parse_number(one.trim_ascii()) {
            Some((number @ 0.., false)) => Some(number),
            _ => None,
        });
    let first = numbers.next()??;
    for number in numbers {
        others.push(number?);
    }
    Some(first)
}

impl From<&Submission> for SwfJob {
    /// A job yet to be scheduled; its submission time is cut to whole seconds.
    fn from(job: &Submission) -> Self {
        let seconds = |us: u64| i64::try_from(us / 1_000_000).unwrap_or(i64::MAX);
        Self {
            number: i64::try_from(job.number).unwrap_or(-1),
            submitted: seconds(job.submitted.as_micros()),
            run_time: seconds(job.runtime.as_micros()),
            allocated: i64::from(job.processes),
            requested: i64::from(job.processes),
            requested_time: seconds(job.estimate.as_micros()),
            requested_memory: match job.memory.get() {
                0 => -1,
                bytes => i64::try_from(bytes.div_ceil(1024)).unwrap_or(i64::MAX),
            },
            status: i64::from(!job.fails),
            fails: job.fails,
            ..followed_job(job)
        }
    }
}

/// A job of which only the preceding jobs and the think time are known, as in `job`.
fn followed_job(job: &Submission) -> SwfJob {
    let mut follows = SwfJob::unknown();
    if let Some(after) = &job.after {
        let number = |number: &u64| i64::try_from(*number).unwrap_or(-1);
        let mut jobs = after.jobs.iter().map(number);
        follows.preceding = jobs.next().unwrap_or(-1);
        follows.preceding_others = jobs.collect();
        let think = after.think.as_micros() / 1_000_000;
        follows.think_time = i64::try_from(think).unwrap_or(i64::MAX);
    }
    follows
}

/// Fast path for the usual line: eighteen whole numbers, short enough not to overflow, or −1, with
/// blanks between them. It takes one pass; `None` for other lines.
fn parse_plain(line: &[u8]) -> Option<[i64; 18]> {
    const MAX_DIGITS: usize = 18;
    let mut fields = [-1; 18];
    let mut rest = line;
    for (n, field) in fields.iter_mut().enumerate() {
        if let [b'-', b'1', after @ ..] = rest {
            rest = after;
        } else {
            let (mut value, mut length) = (0_i64, 0);
            while let Some(byte @ b'0'..=b'9') = rest.get(length) {
                value = value.wrapping_mul(10).wrapping_add(i64::from(byte - b'0'));
                length += 1;
            }
            if !(1..=MAX_DIGITS).contains(&length) {
                return None;
            }
            (*field, rest) = (value, &rest[length..]);
        }
        if n < 17 {
            rest = rest.strip_prefix(b" ")?.trim_ascii_start();
        }
    }
    rest.is_empty().then_some(fields)
}

/// Parses a decimal number to its whole part, and true if its fraction is above zero.
fn parse_number(word: &[u8]) -> Option<(i64, bool)> {
    let (is_negative, digits) = match word {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (mut value, mut seen, mut is_fraction, mut is_cut) = (0_i64, false, false, false);
    for &byte in digits {
        match byte {
            b'0'..=b'9' => {
                seen = true;
                if is_fraction {
                    is_cut |= byte != b'0';
                } else {
                    value = value.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
                }
            }
            b'.' if !is_fraction => is_fraction = true,
            _ => return None,
        }
    }
    seen.then_some((if is_negative { -value } else { value }, is_cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fast path and the general parser read the same values from a line.
    #[test]
    fn plain_lines_are_read_as_all_are() {
        let rest = " 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 -1";
        for first in ["1", "0", "-1", "000123", "999999999999999999"] {
            let line = format!("{first}{rest}");
            let fields = parse_plain(line.as_bytes()).expect("it is plain");
            assert_eq!(Some((fields[0], false)), parse_number(first.as_bytes()));
            assert_eq!((&fields[1..4], fields[17]), (&[2, 3, 4][..], -1));
            assert_eq!(parse_plain(line.replace(' ', "   ").as_bytes()), Some(fields));
            // A line with tabs is not plain.
            let wide = line.replace(' ', "\t ");
            assert_eq!(parse_plain(wide.as_bytes()), None);
            assert_eq!(SwfJob::parse(wide.as_bytes()), Ok(SwfJob::from_fields(fields)));
        }
        for first in ["", "-", "-0", "-12", "+3", "7.9", "1e3", "--1", "9223372036854775807"] {
            assert_eq!(parse_plain(format!("{first}{rest}").as_bytes()), None, "{first}");
        }
        for line in [&rest[1..], &format!("1{rest} 19"), &format!("1{rest}0"), "1", ""] {
            assert_eq!(parse_plain(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn numbers_are_read_as_logs_write_them() {
        let whole = [("12", 12), ("-1", -1), ("+3", 3), ("8.", 8), ("8.00", 8)];
        let cut = [("7.9", 7), (".5", 0), ("1.05", 1)];
        let cut = cut.map(|(text, value)| (text, (value, true)));
        for (text, value) in
            whole.map(|(text, value)| (text, (value, false))).into_iter().chain(cut)
        {
            assert_eq!(parse_number(text.as_bytes()), Some(value), "{text}");
        }
        for text in ["", "-", ".", "1e3", "0x1", "1.2.3", "99999999999999999999"] {
            assert_eq!(parse_number(text.as_bytes()), None, "{text}");
        }
    }
}
