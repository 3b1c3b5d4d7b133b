//! One instant of a run in words without times, so that two runs can be compared.

use dormouse_units::Time;

/// Notices and decisions at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionMoment {
    /// Emulated time of the instant.
    pub at: Time,
    /// Notices to the scheduler, such as `task7 finished on vm3`.
    pub heard: Vec<String>,
    /// Its decisions, such as `start task20 on vm3, as its turn had come`.
    pub decided: Vec<String>,
}
