//! Records of accounting files, and how batch systems write durations, sizes and numbers.

use super::job::{NumberedNames, SwfJob};
use super::problem::LineProblem;

/// How a job ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum JobOutcome {
    Completed,
    #[default]
    Failed,
    Cancelled,
}

impl JobOutcome {
    /// Returns the outcome completed if the job's program succeeded, else the outcome failed.
    pub(super) const fn of_success(succeeded: bool) -> Self {
        if succeeded { Self::Completed } else { Self::Failed }
    }
}

/// Record of a job that ended or never ran. Times are seconds, since 1970 where the file has dates.
#[derive(Debug, Default)]
pub(super) struct JobRecord {
    /// The job's number, if it is unique.
    pub(super) number: Option<i64>,
    pub(super) submitted: i64,
    /// Begin and end of the job; `None`: it never ran.
    pub(super) ran: Option<(i64, i64)>,
    /// Number of processors that the job requested; 0: not recorded.
    pub(super) requested: i64,
    pub(super) allocated: i64,
    /// Run time that the job requested, in seconds; 0: none.
    pub(super) limit: i64,
    /// Memory that the whole job requested, in KiB; 0: not recorded.
    pub(super) memory_kib: i64,
    pub(super) outcome: JobOutcome,
    pub(super) user: String,
    pub(super) group: String,
    pub(super) queue: String,
    /// Number of earlier executions, after each of which the job was queued again.
    pub(super) requeued: u64,
    /// Processor time of the requeued executions, in seconds.
    pub(super) requeued_cpu_s: u64,
    /// Numbers of the jobs that this one follows.
    pub(super) preceding: Vec<i64>,
    /// Seconds from the end of the last preceding job to the submission; unused if there is none.
    pub(super) think_time: i64,
}

/// Content of one line of an accounting file.
#[derive(Debug)]
pub(super) enum AccountingLine {
    Job(Box<JobRecord>),
    /// An execution after which the job was queued again, with its processor time in seconds.
    Requeued(u64),
    /// A step of a job that has a record of its own.
    Step,
    /// The line is of a job that had not ended when the file was written.
    Unfinished,
    /// A job that took none of the machine's processors: in a log of GPUs a job without GPUs, in a log of HTCondor a
    /// job that ran on the access point.
    NoProcessor,
    /// A line that describes no job.
    Other,
}

impl JobRecord {
    /// Converts the accounting record to a job with SWF's fields; `names` numbers its user, group and queue.
    pub(super) fn into_job(self, names: &mut NumberedNames) -> Result<SwfJob, LineProblem> {
        if let Some((began, ended)) = self.ran
            && ended < began
        {
            return Err(LineProblem::Value {
                name: "end",
                value: ended.to_string().into(),
                right: "write an end that is not before the start",
            });
        }
        let given = |number: i64| if number > 0 { number } else { -1 };
        let mut named = |field, name: &str| match name {
            "" => -1,
            name => names.number_of_name(field, name.as_bytes()),
        };
        let processors = if self.allocated > 0 { self.allocated } else { self.requested };
        let memory = match (self.memory_kib, processors) {
            (1.., 1..) => self.memory_kib.saturating_add(processors - 1) / processors,
            _ => -1,
        };
        Ok(SwfJob {
            number: self.number.unwrap_or(-1),
            submitted: self.submitted,
            wait: self.ran.map_or(-1, |(began, _)| (began - self.submitted).max(-1)),
            run_time: self.ran.map_or(-1, |(began, ended)| ended - began),
            allocated: given(processors),
            requested: given(if self.requested > 0 { self.requested } else { processors }),
            requested_time: given(self.limit),
            requested_memory: memory,
            status: match (self.ran, self.outcome) {
                (None, _) | (_, JobOutcome::Cancelled) => 5,
                (Some(_), outcome) => i64::from(outcome == JobOutcome::Completed),
            },
            user: named(12, &self.user),
            group: named(13, &self.group),
            queue: named(15, &self.queue),
            preceding: self.preceding.first().copied().unwrap_or(-1),
            preceding_others: self.preceding.iter().skip(1).copied().collect(),
            think_time: if self.preceding.is_empty() { -1 } else { self.think_time },
            ..SwfJob::unknown()
        })
    }
}

/// Parses a duration `[[hours:]minutes:]seconds` to seconds; `None` for any other text.
pub(super) fn parse_duration(text: &str) -> Option<i64> {
    let text = text.split_once('.').map_or(text, |(whole, _)| whole);
    let parts: Option<Vec<i64>> = text.split(':').map(parse_whole).collect();
    match parts?[..] {
        [seconds] => Some(seconds),
        [minutes, seconds] => Some(minutes * 60 + seconds),
        [hours, minutes, seconds] => Some(hours * 3_600 + minutes * 60 + seconds),
        _ => None,
    }
}

/// Parses a whole number of at most twelve digits.
pub(super) fn parse_whole(text: &str) -> Option<i64> {
    let fine = (1..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if fine { text.parse().ok() } else { None }
}

/// Parses a size such as `4gb`, `512mb`, `100kb` or `2G` to KiB; a plain number is in bytes.
pub(super) fn parse_kib(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match text.get(digits.len()..)?.to_ascii_lowercase().trim_end_matches('b') {
        "" => 1.0 / 1024.0,
        "k" => 1.0,
        "m" => 1024.0,
        "g" => 1_048_576.0,
        "t" => 1_073_741_824.0,
        _ => return None,
    };
    let kib = (digits.parse::<f64>().ok()? * scale).ceil();
    #[expect(clippy::cast_possible_truncation, reason = "its range was looked at")]
    (0.0..1e15).contains(&kib).then_some(kib as i64)
}

/// The problem of a field that can't be read: its name, its value and the expected form.
pub(super) fn value_problem(name: &'static str, value: &str, right: &'static str) -> LineProblem {
    let value: String = value.chars().take(40).collect();
    LineProblem::Value { name, value: value.into(), right }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_sizes_are_read_as_batch_systems_write_them() {
        assert_eq!(
            ["01:00:00", "90", "02:30", "100:00:00"].map(parse_duration),
            [Some(3_600), Some(90), Some(150), Some(360_000)]
        );
        assert_eq!(["", "1:2:3:4", "-5", "a"].map(parse_duration), [None; 4]);
        assert_eq!(
            ["4gb", "512mb", "100kb", "2G", "2048", "1.5g"].map(parse_kib),
            [Some(4_194_304), Some(524_288), Some(100), Some(2_097_152), Some(2), Some(1_572_864)]
        );
        assert_eq!(["", "4x", "gb", "-1gb"].map(parse_kib), [None; 4]);
    }
}
