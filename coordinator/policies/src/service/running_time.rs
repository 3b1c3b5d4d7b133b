//! What preemptions cost a job without checkpoints, if it is preempted once at most. Times are hours.

use dormouse_cloud::Lifetime;

/// ∫ (t − from) f(t) dt over a job that begins at the age `from`: what is lost, times how likely.
#[must_use]
pub fn lost(law: &dyn Lifetime, from: f64, job: f64) -> f64 {
    let to = from + job;
    law.lived(to) - law.lived(from) - from * (law.cdf(to) - law.cdf(from))
}

/// The work that a preemption of a job on a new VM wastes, if there is one (Eq. 5); `None`: there is none.
#[must_use]
pub fn wasted(law: &dyn Lifetime, job: f64) -> Option<f64> {
    let failed = law.cdf(job);
    (failed > 0.0).then(|| law.lived(job) / failed)
}

/// How long a job on a new VM is expected to take (Eq. 7).
#[must_use]
pub fn running_time(law: &dyn Lifetime, job: f64) -> f64 {
    job + law.lived(job)
}
