//! What the jobs of a simulation run on.

use dormouse_units::{Attempt, Span, Time};

use crate::decision::{Move, Tier};
use crate::job::{JobId, Placement, Usage};

/// What a job has to do.
#[derive(Clone, Debug)]
pub struct Work {
    /// The job, by its place in the order of submission.
    pub job: JobId,
    /// How long it runs on processors of its own.
    pub runtime: Span,
    /// CPU usage of its processes, in truth.
    pub usage: Usage,
}

/// Processors that jobs run on in virtual time: it obeys decisions and knows when jobs end.
///
/// Times never go back from one call to the next.
pub trait Executor {
    /// Starts a job and tells its slot, its name here until it ends.
    fn start(
        &mut self,
        now: Time,
        work: Work,
        attempt: Attempt,
        tier: Tier,
        on: Placement,
    ) -> usize;

    /// Brings the background job in `slot` to the foreground; moving it costs `cost`, a
    /// time in which it holds its new processors and makes no progress.
    fn promote(&mut self, now: Time, slot: usize, attempt: Attempt, by: &Move, cost: Span);

    /// Works out what placements and ends have changed; called after the last of an instant and
    /// before the next end is asked for.
    fn settle(&mut self, now: Time);

    /// When the next job ends.
    fn next_end(&mut self) -> Option<Time>;

    /// Takes the next job that ends by `now` off its processors.
    fn take_ended(&mut self, now: Time) -> Option<(JobId, Attempt)>;
}
