//! A scheduler of parallel jobs by its name, with its parameters.

use dormouse_model::UsageInformation;
use dormouse_units::{Ppm, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Algorithm, BackgroundFill, Config, ExpectedEnd};
use crate::Own;

/// Configuration of a scheduler of parallel jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BatchSchedulerConfig {
    /// The scheduler's algorithm.
    pub name: Algorithm,
    /// Emulated time that a migration is expected to cost the migrated job.
    #[serde(default = "paper_migration")]
    pub migration_cost: Span,
    /// The scheduler's knowledge of the jobs' CPU usage.
    #[serde(default)]
    pub usage_information: UsageKnowledge,
    /// CPU usage of a foreground process below which a background VM may use its processor too; if not given, the paper's 96 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable_below: Option<Ppm>,
    /// Whether a background VM may be used on a processor whose foreground is idle; if not given, it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable_idle: Option<bool>,
    /// When the background is filled; if not given, in every pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<BackgroundFill>,
    /// Expected end of a job that comes to the foreground with work done; if not given, its whole estimate from
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

/// A scheduler's knowledge of the CPU usage of parallel jobs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Information")]
pub enum UsageKnowledge {
    /// The scheduler knows the true CPU usage of all jobs.
    #[default]
    Exact,
    /// The scheduler does not know the CPU usage of jobs of several processes (section 3.5.1).
    Absent,
}

/// CPU usage that is assumed for a process whose usage the scheduler does not know: the mean of the range of usages.
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
