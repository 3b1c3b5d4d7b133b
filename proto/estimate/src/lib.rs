//! What samples say: means with their confidence intervals, of independent samples and of batches
//! of one long run. All tables and all measurements of hosts take theirs from here.

mod batch_means;
mod estimate;
mod series;

pub use batch_means::{BATCHES, BatchMeans, rises};
pub use estimate::{Estimate, jackknife, normal};
pub use series::Series;
