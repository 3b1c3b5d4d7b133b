//! One instant of a run in words without times, so that two runs can be compared.

use dormouse_units::Time;

/// What was heard at an instant and what was decided on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The instant, in emulated time.
    pub at: Time,
    /// What the scheduler heard, such as `task7 finished on vm3`.
    pub heard: Vec<String>,
    /// What it decided, such as `start task20 on vm3, as its turn had come`.
    pub decided: Vec<String>,
}
