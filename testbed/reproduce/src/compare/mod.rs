//! `dormouse compare`: schedulers on the same experiments under the same seeds, paired seed by seed.

mod comparison;
mod page;
mod pair;
mod plots;
mod sentence;
mod tables;

pub use comparison::SchedulerComparison;
pub use pair::FigurePair;
