//! Offered load, and how to change it.

use dormouse_model::Submission;
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

/// Least time that these jobs take on a machine of `machine` processors: until the last of them has
/// run, and as long as all their work takes.
#[must_use]
pub fn least_makespan(jobs: &[Submission], machine: u32) -> Span {
    let alone = jobs.iter().map(|job| (job.submitted + job.runtime).since(Time::ZERO)).max();
    let work = |job: &Submission| u128::from(job.runtime.as_micros()) * u128::from(job.processes);
    let together = jobs.iter().map(work).sum::<u128>() / u128::from(machine.max(1));
    let together = Span::from_micros(u64::try_from(together).unwrap_or(u64::MAX));
    alone.unwrap_or_default().max(together)
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Bytes, Ppm, Usage};

    use super::*;

    fn job(submitted_s: u64, processes: u32, runtime_s: u64) -> Submission {
        let runtime = Span::from_secs(runtime_s);
        let (submitted, usage) = (Time::from_secs(submitted_s), Usage::each(vec![Ppm::ONE]));
        let (number, estimate, memory) = (1, runtime, Bytes::ZERO);
        Submission { number, submitted, processes, runtime, estimate, usage, memory }
    }

    #[test]
    fn jobs_take_until_the_last_has_run_and_as_long_as_all_their_work() {
        assert_eq!(least_makespan(&[], 4), Span::ZERO);
        assert_eq!(least_makespan(&[job(0, 1, 500), job(100, 2, 50)], 4), Span::from_secs(500));
        assert_eq!(least_makespan(&[job(0, 1, 500), job(900, 2, 50)], 4), Span::from_secs(950));
        assert_eq!(least_makespan(&[job(0, 4, 500), job(0, 2, 400)], 4), Span::from_secs(700));
    }
}
