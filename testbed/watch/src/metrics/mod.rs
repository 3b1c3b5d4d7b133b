//! Metrics of a run for Prometheus: a fold of its log in bounded memory, and the coordinator's own
//! figures.

mod exposition;
mod families;
mod fleet;
mod histogram;
mod measured;
mod run_metrics;
#[cfg(test)]
mod tests;
mod text;
mod work_state;

pub use families::{RunName, UnloggedFacts};
pub use run_metrics::RunMetrics;
pub use text::MetricFormat;
