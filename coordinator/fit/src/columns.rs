//! Columns of lifetime files, units of their numbers, and parsing of times.

use std::str::FromStr;

use dormouse_input::{Moment, WantedColumn};

/// Index in [`COLUMNS`] of the column of lifetimes.
pub(crate) const LIFETIME: usize = 0;
pub(crate) const END: usize = 1;
pub(crate) const TYPE: usize = 2;
pub(crate) const ZONE: usize = 3;
pub(crate) const WORKLOAD: usize = 4;
pub(crate) const HOUR: usize = 5;
pub(crate) const CREATED: usize = 6;
pub(crate) const DELETED: usize = 7;

const fn wanted_column(name: &'static str, known_as: &'static [&'static str]) -> WantedColumn {
    WantedColumn { name, known_as, is_needed: false }
}

/// The columns that are looked for in a lifetime file.
pub(crate) const COLUMNS: [WantedColumn; 8] = [
    wanted_column(
        "lifetime",
        &[
            "lifetime_s",
            "lifetime",
            "lifetime_sec",
            "lifetime_secs",
            "lifetime_seconds",
            "time_in_sec",
            "lifetime_ms",
            "lifetime_h",
            "lifetime_hr",
            "lifetime_hrs",
            "lifetime_hour",
            "lifetime_hours",
            "hours",
            "lifetime_m",
            "lifetime_min",
            "lifetime_mins",
            "lifetime_minutes",
            "lifetime_d",
            "lifetime_days",
            "uptime",
            "uptime_s",
            "uptime_sec",
            "uptime_seconds",
            "uptime_ms",
            "uptime_h",
            "uptime_hours",
            "uptime_min",
            "uptime_minutes",
            "duration_s",
            "duration_sec",
            "duration_seconds",
            "duration_ms",
            "duration_h",
            "duration_hours",
            "duration_min",
            "duration_minutes",
            "time_to_preemption_s",
        ],
    ),
    wanted_column(
        "end",
        &[
            "end_event",
            "end_reason",
            "ended_by",
            "preempted",
            "was_preempted",
            "is_preempted",
            "interrupted",
            "was_interrupted",
            "evicted",
            "termination_reason",
            "reason",
            "event",
        ],
    ),
    wanted_column("type", &["machine_type", "instance_type", "vm_type", "type", "vm_size"]),
    wanted_column("zone", &["zone", "availability_zone", "az"]),
    wanted_column("workload", &["workload", "idle_vs_nonidle"]),
    wanted_column("hour", &["hr_of_day", "hour_of_day", "launch_hour", "hour"]),
    wanted_column(
        "created",
        &[
            "insert_time",
            "created",
            "created_at",
            "creation_time",
            "launched",
            "launch_time",
            "launched_at",
            "started",
            "start_time",
            "start_date",
            "start",
            "vmcreated",
        ],
    ),
    wanted_column(
        "deleted",
        &[
            "deleted",
            "deleted_at",
            "deletion_time",
            "terminated",
            "terminated_at",
            "termination_time",
            "ended",
            "ended_at",
            "end_time",
            "end_date",
            "stopped",
            "stop_time",
            "end",
            "preempted_at",
            "preemption_time",
            "vmdeleted",
        ],
    ),
];

/// Unit of a number in a file of lifetimes that is a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The number is in thousandths of a second.
    Millisecond,
    /// The number is in seconds.
    Second,
    /// The number is in minutes.
    Minute,
    /// The number is in hours.
    Hour,
    /// The number is in days of 24 hours.
    Day,
}

impl Unit {
    /// Number of seconds in one unit.
    #[must_use]
    pub const fn seconds(self) -> f64 {
        match self {
            Self::Millisecond => 0.001,
            Self::Second => 1.0,
            Self::Minute => 60.0,
            Self::Hour => 3_600.0,
            Self::Day => 86_400.0,
        }
    }

    /// The name of the unit, in the plural.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Millisecond => "milliseconds",
            Self::Second => "seconds",
            Self::Minute => "minutes",
            Self::Hour => "hours",
            Self::Day => "days",
        }
    }
}

impl FromStr for Unit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "ms" | "msec" | "millis" | "milliseconds" => Ok(Self::Millisecond),
            "s" | "sec" | "secs" | "second" | "seconds" => Ok(Self::Second),
            "m" | "min" | "mins" | "minute" | "minutes" => Ok(Self::Minute),
            "h" | "hr" | "hrs" | "hour" | "hours" => Ok(Self::Hour),
            "d" | "day" | "days" => Ok(Self::Day),
            _ => Err("write s, m, h or d, or ms".to_owned()),
        }
    }
}

/// Unit that a heading ends with, as in `lifetime_h`, `Lifetime (hours)`, `lifetimeHours` or `hours`; `None` if the
/// heading names none.
pub(crate) fn unit_of_heading(heading: &str) -> Option<Unit> {
    let heading = heading.trim_end_matches(|c: char| !c.is_alphanumeric());
    let begins = |(at, c): (usize, char)| {
        let before = heading[..at].chars().next_back()?;
        let is_new = !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase());
        is_new.then_some(if c.is_alphanumeric() { at } else { at + c.len_utf8() })
    };
    // A heading of one word may be the unit itself.
    let at = heading.char_indices().rev().find_map(begins).unwrap_or(0);
    heading[at..].parse().ok()
}

/// An instant read from a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FileInstant {
    /// Seconds since 1970, or since the origin of a plain number.
    pub(crate) second: f64,
    pub(crate) is_date: bool,
}

impl FileInstant {
    /// For a number too large to be in seconds, its probable unit and the divisor that makes it seconds; `None`: the
    /// number is plausible.
    pub(crate) fn likely_unit(&self) -> Option<(&'static str, &'static str)> {
        const LAST: f64 = (1_u64 << 40) as f64;
        match self.second.abs() {
            _ if self.is_date => None,
            second if second <= LAST => None,
            second if second <= LAST * 1e3 => Some(("milliseconds", "1000")),
            second if second <= LAST * 1e6 => Some(("microseconds", "1000000")),
            _ => Some(("nanoseconds", "1000000000")),
        }
    }
}

/// True if a cell has no time.
pub(crate) fn is_nothing(text: &str) -> bool {
    let known = ["", "-", "none", "null", "nan", "nat", "na", "n/a", "running"];
    known.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Parses an instant: a date, or a number of this unit.
#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are below 2^53")]
pub(crate) fn parse_instant(text: &str, unit: Option<Unit>) -> Option<FileInstant> {
    if let Some(at) = Moment::read(text).filter(|at| at.has_zone.is_some()) {
        let rest = text.split_once('.').map_or("", |(_, rest)| rest);
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let part: f64 = format!("0.{digits}0").parse().ok()?;
        return Some(FileInstant { second: at.second as f64 + part, is_date: true });
    }
    let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite())?;
    let second = number * unit.map_or(1.0, Unit::seconds);
    Some(FileInstant { second, is_date: false })
}
