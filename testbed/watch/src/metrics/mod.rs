//! Metrics of a run for Prometheus: what its log tells, folded in bounded memory, and what only its
//! coordinator knows.

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

pub use families::{Beside, RunName};
pub use run_metrics::RunMetrics;
pub use text::Format;
