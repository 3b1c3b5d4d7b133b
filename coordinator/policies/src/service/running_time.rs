//! Expected cost of preemptions for a job without checkpoints that is preempted at most once. Times
//! are hours.

use dormouse_cloud::Lifetime;

/// Expected loss ∫ (t − from) f(t) dt, in hours, of a job of `job` hours that begins on a VM of the age
/// `from`.
#[must_use]
pub fn lost(law: &dyn Lifetime, from: f64, job: f64) -> f64 {
    let to = from + job;
    law.hours_lived(to) - law.hours_lived(from) - from * (law.cdf(to) - law.cdf(from))
}

/// Expected work in hours that is lost if a job of `job` hours on a new VM is preempted (Eq. 5); `None`:
/// the job can't be preempted.
#[must_use]
pub fn wasted(law: &dyn Lifetime, job: f64) -> Option<f64> {
    let failed = law.cdf(job);
    (failed > 0.0).then(|| law.hours_lived(job) / failed)
}

/// Expected running time in hours of a job of `job` hours on a new VM (Eq. 7).
#[must_use]
pub fn running_time(law: &dyn Lifetime, job: f64) -> f64 {
    job + law.hours_lived(job)
}
