//! Estimates from samples: means with confidence intervals, of independent samples and of batches of one long run, and
//! verdicts on claims about them. All tables and host measurements use this crate.

mod amounts;
mod batch_means;
mod estimate;
mod extremes;
mod paired_means;
mod resamples;
mod series;
mod verdict;

pub use amounts::FEWEST;
pub use batch_means::{BATCHES, BatchMeans, rises};
pub use estimate::{Estimate, jackknife, normal};
pub use extremes::{Extreme, extreme};
pub use paired_means::pseudo_values;
pub use resamples::middle95;
pub use series::Series;
pub use verdict::{RULE, Said, Verdict};
