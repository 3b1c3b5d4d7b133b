//! What can differ between two simulations of a workload at one load under one scheduler.

use dormouse_engine::jobs::Simulation;
use dormouse_policies::batch::{Algorithm, Fill, Submission};
use dormouse_units::{Ppm, Span};
use dormouse_vm::Sharing;
use dormouse_workload::{Targets, UsageRule};

use crate::experiment::{Batch, BatchScheduler, Information};

/// A setting; the standard one is the paper's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// What users say of their jobs.
    pub estimates: Estimates,
    /// CPU usage of the processes of larger jobs.
    pub usage: Usage,
    /// What the scheduler knows of it.
    pub information: Information,
    /// Who draws a utilisation of idle cycles.
    pub draws: Draws,
    /// Where a background VM is of use.
    pub room: Room,
    /// When the background is filled.
    pub fill: BackgroundFill,
    /// The shape of generated workloads.
    pub shape: Shape,
    /// What a migration costs.
    pub cost: Cost,
}

/// What users say of their jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Estimates {
    /// What the log has; of generated workloads what Tsafrir's model gives.
    #[default]
    Given,
    /// The run time.
    Exact,
    /// Twice the run time.
    Double,
}

/// CPU usage of the processes of larger jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usage {
    /// Each process draws its own, 40 to 100 %.
    #[default]
    EachProcess,
    /// All processes of a job have the same, drawn so.
    EachJob,
    /// 100 % (section 3.5.2).
    Full,
}

/// Who draws a utilisation of idle cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Draws {
    /// A background job, one for all its processes.
    #[default]
    EachJob,
    /// Each of its processes; the job advances with the least.
    EachProcess,
    /// A background job of several processes, around .30 instead of .43: that mean is not in the
    /// text as it has come down to us.
    Low,
}

/// Where a background VM is of use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// Where the foreground uses less than 96 %.
    #[default]
    Below96,
    /// Where it uses less than 100 %.
    BelowAll,
    /// Where there is no foreground.
    WhereIdle,
    /// Where there is one, and it uses less than 96 %.
    WhereBusy,
}

/// When the background is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackgroundFill {
    /// In every pass (Algorithm 1).
    #[default]
    EveryPass,
    /// After a job left the background (section 2.2.1).
    AfterDeparture,
}

/// The shape of generated workloads, whose means are the paper's in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// As `fw-like` and `jw-like` are.
    #[default]
    Standard,
    /// A long run is 150 times as long as a short one, not 15, and both are exponential: so more
    /// jobs are short.
    ManyShort,
    /// No job runs for more than 6 h, not 18.
    SixHours,
    /// Poisson arrivals.
    Steady,
    /// The larger a job, the less likely it is a long one: so more jobs make the same load.
    SmallRunLong,
}

impl Shape {
    /// `targets` in this shape.
    pub(super) fn of(self, targets: Targets) -> Targets {
        match self {
            Self::Standard => targets,
            Self::ManyShort => Targets { long_over_short: 150.0, stages: 1, ..targets },
            Self::SixHours => Targets { longest: Span::from_secs(21_600), ..targets },
            Self::Steady => Targets { bursts: None, ..targets },
            Self::SmallRunLong => Targets { long: (0.6, -0.6), ..targets },
        }
    }
}

/// Seconds that a migration takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(pub u32);

impl Default for Cost {
    fn default() -> Self {
        Self(20)
    }
}

impl Setting {
    /// Its name in tables: in what it differs from the standard.
    #[must_use]
    pub fn name(&self) -> String {
        let mut differences = Vec::new();
        let mut add = |differs: bool, name: &str| {
            if differs {
                differences.push(name.to_owned());
            }
        };
        add(self.estimates == Estimates::Exact, "exact-estimates");
        add(self.estimates == Estimates::Double, "double-estimates");
        add(self.usage == Usage::EachJob, "usage-each-job");
        add(self.usage == Usage::Full, "full-usage");
        add(self.information == Information::Absent, "no-usage-information");
        add(self.draws == Draws::EachProcess, "utilisation-each-process");
        add(self.draws == Draws::Low, "utilisation-low");
        add(self.room == Room::BelowAll, "no-96-rule");
        add(self.room == Room::WhereIdle, "background-where-idle");
        add(self.room == Room::WhereBusy, "background-where-busy");
        add(self.fill == BackgroundFill::AfterDeparture, "fill-after-departure");
        add(self.shape == Shape::ManyShort, "many-short-jobs");
        add(self.shape == Shape::SixHours, "at-most-6h");
        add(self.shape == Shape::Steady, "poisson-arrivals");
        add(self.shape == Shape::SmallRunLong, "small-run-long");
        add(self.cost != Cost::default(), &format!("migration-cost-{}s", self.cost.0));
        if differences.is_empty() { "standard".to_owned() } else { differences.join("+") }
    }

    /// A job as it is under this setting; `one_tier`: a scheduler that never asks for usage.
    pub(super) fn job(&self, mut job: Submission, one_tier: bool, seed: u64) -> Submission {
        match self.estimates {
            Estimates::Given => {}
            Estimates::Exact => job.estimate = job.runtime,
            Estimates::Double => job.estimate = job.runtime + job.runtime,
        }
        let rule = UsageRule::paper(seed);
        match self.usage {
            _ if one_tier => UsageRule::full().assign(job),
            Usage::Full => UsageRule::full().assign(job),
            Usage::EachProcess => rule.assign(job),
            Usage::EachJob => rule.assign_one(job),
        }
    }

    /// A simulation of it under `algorithm`, on the machine of `batch`.
    pub(super) fn simulation(
        &self,
        batch: &Batch,
        algorithm: Algorithm,
        sharing: Sharing,
        seed: u64,
    ) -> Simulation {
        let scheduler = BatchScheduler {
            name: algorithm,
            migration_cost: Span::from_secs(u64::from(self.cost.0)),
            usage_information: self.information,
        };
        let batch = Batch { scheduler, sharing: self.sharing(sharing), ..batch.clone() };
        let mut simulation = batch.simulation(seed);
        let config = &mut simulation.config;
        config.usable_below = match self.room {
            Room::Below96 | Room::WhereBusy => config.usable_below,
            Room::BelowAll => Ppm::ONE,
            // A foreground uses at least 40 %.
            Room::WhereIdle => Ppm::new(1),
        };
        config.usable_idle = self.room != Room::WhereBusy;
        config.fill = match self.fill {
            BackgroundFill::EveryPass => Fill::EveryPass,
            BackgroundFill::AfterDeparture => Fill::AfterDeparture,
        };
        simulation
    }
}
