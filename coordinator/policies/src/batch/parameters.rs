//! A scheduler of parallel jobs by its name, with its parameters.

use dormouse_model::UsageInformation;
use dormouse_units::{Ppm, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Algorithm, BackgroundFill, Config, ExpectedEnd};
use crate::Own;

/// Who schedules parallel jobs, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BatchSchedulerConfig {
    /// The scheduler's algorithm.
    pub name: Algorithm,
    /// What a migration costs the job that is moved, in virtual time.
    #[serde(default = "paper_migration")]
    pub migration_cost: Span,
    /// What it knows of CPU usage.
    #[serde(default)]
    pub usage_information: UsageKnowledge,
    /// A background VM is of use below a foreground that uses less than this; `None`: than the
    /// paper's 96 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable_below: Option<Ppm>,
    /// Whether a background VM is of use where no foreground runs; `None`: it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable_idle: Option<bool>,
    /// When the background is filled; `None`: in every pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<BackgroundFill>,
    /// Expected end of a job that comes to the foreground with work done; `None`: its whole estimate from
    /// then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_end: Option<ExpectedEnd>,
    /// Parameters of a scheduler that is a program of its own.
    #[serde(default, skip_serializing_if = "Own::is_empty")]
    #[schemars(skip)]
    pub own: Own,
}

/// A migration of the MEASY paper: 20 s.
const fn paper_migration() -> Span {
    Span::from_secs(20)
}

/// What the scheduler knows of CPU usage.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Information")]
pub enum UsageKnowledge {
    /// The truth.
    #[default]
    Exact,
    /// Nothing of jobs of several processes (section 3.5.1).
    Absent,
}

/// CPU usage that a process of unknown usage is taken to have: the mean of the range.
const TAKEN_FOR: Ppm = Ppm::new(700_000);

impl BatchSchedulerConfig {
    /// Configuration of the scheduler for a machine of `processors` processors.
    #[must_use]
    pub fn on(&self, processors: u32) -> Config {
        let standard = Config::new(self.name, processors);
        Config {
            usable_below: self.usable_below.unwrap_or(standard.usable_below),
            usable_idle: self.usable_idle.unwrap_or(standard.usable_idle),
            fill: self.fill.unwrap_or(standard.fill),
            expected_end: self.expected_end.unwrap_or(standard.expected_end),
            migration_cost: self.migration_cost,
            ..standard
        }
    }

    /// Information on the jobs' CPU usage that the scheduler gets.
    #[must_use]
    pub const fn information(&self) -> UsageInformation {
        match self.usage_information {
            UsageKnowledge::Exact => UsageInformation::Exact,
            UsageKnowledge::Absent => UsageInformation::Absent(TAKEN_FOR),
        }
    }
}
