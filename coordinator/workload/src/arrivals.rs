//! Load, and how to change it.

use dormouse_policies::batch::Submission;
use dormouse_units::{Span, Time};

/// Work offered over work possible: Σ processors × run time over the machine's processors ×
/// the time from the first submission to the last. Zero where there is no such time.
#[must_use]
pub fn offered_load<'a>(jobs: impl IntoIterator<Item = &'a Submission>, machine: u32) -> f64 {
    let mut first = None;
    let (mut last, mut area) = (Time::ZERO, 0.0);
    for job in jobs {
        first = first.or(Some(job.submitted));
        last = last.max(job.submitted);
        area += f64::from(job.processes) * job.runtime.as_secs_f64();
    }
    let span = last.since(first.unwrap_or(last)).as_secs_f64();
    if span > 0.0 { area / (f64::from(machine) * span) } else { 0.0 }
}

/// `job` submitted at `factor` times its submission time: applied to all jobs, every
/// inter-arrival time is multiplied and the load divided by it.
#[must_use]
pub fn scale_arrivals(job: Submission, factor: f64) -> Submission {
    let at = Span::from_secs_f64(job.submitted.as_secs_f64() * factor);
    let submitted = at.map_or(job.submitted, |at| Time::ZERO + at);
    Submission { submitted, ..job }
}
