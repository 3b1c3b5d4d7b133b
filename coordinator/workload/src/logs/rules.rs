//! Rules for a log's oddities: every oddity has a rule, is counted, and is reported at the end.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::job::SwfJob;

/// What to do with a job that can't be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnMalformed {
    /// Stop with an error that names the line.
    #[default]
    Fail,
    /// Leave the job out and count it.
    Skip,
}

/// How to handle a job that ran longer than its user estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RanOver {
    /// The job runs as long as in the log; the scheduler plans with the user's estimate.
    #[default]
    Keep,
    /// The job runs as long as its user's estimate, as on machines that end such jobs.
    Cut,
    /// The estimate is raised to the run time of the job.
    Raise,
}

/// What replaces the user's estimate of the run time where the log has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoEstimate {
    /// The job's run time replaces the missing estimate.
    #[default]
    RunTime,
    /// A job without an estimate counts as malformed.
    Malformed,
}

/// Which number of processors counts as the size of a job that requested a different number than it was allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobSize {
    /// The number of processors that the job requested (field 8).
    #[default]
    Requested,
    /// The number of processors that were allocated to the job (field 5).
    Allocated,
}

/// How to handle a job whose number an earlier job of the log has already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Repeated {
    /// A job with a repeated number counts as a further job.
    #[default]
    Keep,
    /// A job with a repeated number counts as malformed.
    Malformed,
}

/// How to handle times of a log that have fractions of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fractions {
    /// Fractions of a second are cut off.
    #[default]
    Cut,
    /// A job whose times have fractions of a second counts as malformed.
    Malformed,
}

/// How to handle lines of partial executions. For a job that was checkpointed or swapped out, SWF has one line for
/// the whole job and one for each execution (status 2; 3 or 4 for the last). Studies of workloads should not count
/// the latter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartialExecutions {
    /// Lines of partial executions are left out and counted if a line above describes the whole job; otherwise each
    /// counts as a job.
    #[default]
    LeftOut,
    /// Each line of a partial execution counts as a job.
    Kept,
}

/// How to handle a job that follows other jobs (fields 17 and 18).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FollowUps {
    /// The job is submitted its think time after the last of its preceding jobs ends in the run. If a preceding job
    /// is not above it in the log, or was left out, the job is submitted at its logged time.
    #[default]
    Kept,
    /// The job is submitted at its logged time, whatever jobs it follows.
    Ignored,
}

/// Field of a log that has the priorities of its jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogPriority {
    /// All jobs have priority 0.
    #[default]
    None,
    /// The column `Priority` of sacct; 0 where a log has none.
    Column,
    /// The number of the job's queue (field 15).
    HighestQueue,
    /// The number of the job's queue, negated: queue 0 goes first.
    LowestQueue,
    /// The number of the job's partition (field 16).
    HighestPartition,
    /// The number of the job's partition, negated.
    LowestPartition,
}

impl LogPriority {
    /// Priority of a job; a queue or partition that is not known counts as the last.
    pub(super) const fn read(self, job: &SwfJob) -> i64 {
        let (number, sign) = match self {
            Self::None => return 0,
            Self::Column => return job.priority,
            Self::HighestQueue => (job.queue, 1),
            Self::LowestQueue => (job.queue, -1),
            Self::HighestPartition => (job.partition, 1),
            Self::LowestPartition => (job.partition, -1),
        };
        if number < 0 { i64::MIN } else { sign * number }
    }
}

/// How to handle a line with more than 18 fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExtraFields {
    /// The fields of a line beyond the 18th are ignored.
    #[default]
    Ignored,
    /// A job whose line has more than 18 fields counts as malformed.
    Malformed,
}

fn is_default<T: Default + PartialEq>(rule: &T) -> bool {
    *rule == T::default()
}

/// How the oddities of a log are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct LogRules {
    /// How to handle a job that can't be used.
    pub on_malformed: OnMalformed,
    /// How to handle a job that ran longer than its user estimated.
    pub ran_over: RanOver,
    /// How to handle a job without a user's estimate.
    pub no_estimate: NoEstimate,
    /// Which number of processors counts as the size of a job that requested a different number than it was
    /// allocated.
    pub size: JobSize,
    /// How to handle a job whose number an earlier job of the log has already.
    pub repeated: Repeated,
    /// How to handle fractions of a second in the times of a job.
    pub fractions: Fractions,
    /// How to handle lines of partial executions.
    #[serde(skip_serializing_if = "is_default")]
    pub partial_executions: PartialExecutions,
    /// How to handle a job that follows other jobs.
    #[serde(skip_serializing_if = "is_default")]
    pub follow_ups: FollowUps,
    /// How to handle a line with more than 18 fields.
    #[serde(skip_serializing_if = "is_default")]
    pub extra_fields: ExtraFields,
    /// Which field of a job is its priority.
    #[serde(skip_serializing_if = "is_default")]
    pub priority: LogPriority,
}

impl From<OnMalformed> for LogRules {
    fn from(on_malformed: OnMalformed) -> Self {
        Self { on_malformed, ..Self::default() }
    }
}

/// Counts of oddities among the accepted jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OddJobs {
    /// Jobs that ran longer than their estimate.
    pub ran_over: u64,
    /// Jobs without an estimate.
    pub no_estimate: u64,
    /// Number of jobs that had a different number of processors than they requested.
    pub other_size: u64,
    /// Jobs whose number an earlier job of the log has already.
    pub repeated: u64,
    /// Jobs whose times had parts of a second.
    pub fractions: u64,
    /// Jobs whose lines had more than 18 fields.
    #[serde(skip_serializing_if = "is_zero")]
    pub extra_fields: u64,
    /// Jobs that were submitted their think time after the end of preceding jobs.
    #[serde(skip_serializing_if = "is_zero")]
    pub follow_ups: u64,
    /// Jobs that follow another job, but are submitted at their logged time since that other job is missing.
    #[serde(skip_serializing_if = "is_zero")]
    pub follow_none: u64,
    /// Jobs that were not made to follow any job, since all jobs of the log name the same preceding job, even that
    /// job itself: the field is a filler.
    #[serde(skip_serializing_if = "is_zero")]
    pub follow_one: u64,
    /// Partial executions without a line for the whole job, which are treated as jobs.
    #[serde(skip_serializing_if = "is_zero")]
    pub partial: u64,
    /// Jobs whose programs fail at their end.
    #[serde(skip_serializing_if = "is_zero")]
    pub fails: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl OddJobs {
    /// True if there are no odd jobs.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// True if oddities changed the run compared with what the log's reader may expect.
    pub(super) const fn changes_the_run(&self) -> bool {
        let follow = self.follow_ups + self.follow_none + self.follow_one;
        self.extra_fields + follow + self.partial > 0
    }
}

impl fmt::Display for OddJobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = [
            (self.ran_over, "ran longer than estimated"),
            (self.no_estimate, "had no estimate"),
            (self.other_size, "had other processors than they asked for"),
            (self.repeated, "had a number that another had"),
            (self.fractions, "had parts of a second"),
            (self.extra_fields, "had more than 18 fields"),
            (self.follow_ups, "followed others (field 17) and wait for their end"),
            (
                self.follow_none,
                "followed a job that is not there or not above them, and keep their times",
            ),
            (self.follow_one, "followed one job that follows itself, and keep their times"),
            (self.partial, "were partial executions without a line for the whole job"),
            (self.fails, "fail at their end ('ret' of their profiles)"),
        ];
        let said = said.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
        f.write_str(&said.collect::<Vec<_>>().join(", "))
    }
}

/// Set of job numbers, kept as ranges, so that a log in order needs no memory.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenNumbers {
    /// The last number of each range of job numbers, by the range's first number.
    ranges: BTreeMap<i64, i64>,
}

impl SeenNumbers {
    /// True if the set has this number.
    pub(super) fn has_number(&self, number: i64) -> bool {
        let before = self.ranges.range(..=number).next_back();
        before.is_some_and(|(_, last)| *last >= number)
    }

    /// Adds a number to the set; true if the set had it before.
    pub(super) fn is_repeated(&mut self, number: i64) -> bool {
        let before = self.ranges.range(..=number).next_back().map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, last)| last >= number) {
            return true;
        }
        let first = match before {
            Some((first, last)) if last.checked_add(1) == Some(number) => first,
            _ => number,
        };
        let after = number.checked_add(1).and_then(|after| self.ranges.remove(&after));
        let last = after.unwrap_or(number);
        self.ranges.insert(first, last);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_seen_once_in_whatever_order() {
        let mut numbers = SeenNumbers::default();
        let repeated: Vec<_> =
            [3, 1, 2, 2, 9, 3, 8, 7, 1, 10, 8].map(|n| numbers.is_repeated(n)).into();
        let f = false;
        assert_eq!(repeated, [f, f, f, true, f, true, f, f, true, f, true]);
        assert_eq!(numbers.ranges, [(1, 3), (7, 10)].into());
        let (least, most) = (i64::MIN, i64::MAX);
        let repeated = [most, most - 1, most, least].map(|n| numbers.is_repeated(n));
        assert_eq!(repeated, [f, f, true, f]);
        assert_eq!(numbers.ranges, [(least, least), (1, 3), (7, 10), (most - 1, most)].into());
    }

    #[test]
    fn only_what_is_odd_is_said() {
        assert_eq!(OddJobs::default().to_string(), "");
        let odd = OddJobs { ran_over: 2, fractions: 1, ..OddJobs::default() };
        assert_eq!(odd.to_string(), "2 ran longer than estimated, 1 had parts of a second");
    }
}
