//! Expected cost of preemptions for a job without checkpoints that is preempted at most once. Times
//! are hours.

use dormouse_cloud::Lifetime;

/// Expected loss ∫ (t − from) f(t) dt over a job that begins on a VM of the age `from`.
#[must_use]
pub fn lost(law: &dyn Lifetime, from: f64, job: f64) -> f64 {
    let to = from + job;
    law.hours_lived(to) - law.hours_lived(from) - from * (law.cdf(to) - law.cdf(from))
}

/// Expected work that a preemption of a job on a new VM wastes, given that there is one (Eq. 5);
/// `None`: there can be none.
#[must_use]
pub fn wasted(law: &dyn Lifetime, job: f64) -> Option<f64> {
    let failed = law.cdf(job);
    (failed > 0.0).then(|| law.hours_lived(job) / failed)
}

/// Expected running time of a job on a new VM (Eq. 7).
#[must_use]
pub fn running_time(law: &dyn Lifetime, job: f64) -> f64 {
    job + law.hours_lived(job)
}
