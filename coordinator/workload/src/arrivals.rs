//! Offered load, and how to change it.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_model::{JobPredecessors, Submission};
use dormouse_units::{Span, Time};

use crate::SwfJob;

/// Offered load: Σ processors × run time of all jobs over the machine's processors × the time from
/// the first submission to the last. Zero if that time is zero.
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

/// Error: a time between submissions is too large once it is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "job {number} was submitted {after} after the first, which can't be multiplied by {factor:e}: no time is \
     so large; use a smaller factor"
)]
pub struct UnscalableArrival {
    /// Number of the job whose submission time can't be multiplied.
    pub number: u64,
    /// Time from the first submission to the job's, or the job's think time.
    pub after: Span,
    /// Factor by which `after` was to be multiplied.
    pub factor: f64,
}

/// The job with its time since `first` multiplied by `factor`, and likewise its delay after the
/// jobs that it follows. Applied to all jobs, this divides the offered load by `factor`.
///
/// # Errors
///
/// A time becomes too large.
pub fn scale_arrivals(
    job: Submission,
    first: Time,
    factor: f64,
) -> Result<Submission, UnscalableArrival> {
    let Submission { number, .. } = job;
    let scaled = |after: Span| {
        let scaled = Span::from_secs_f64(after.as_secs_f64() * factor);
        scaled.ok_or(UnscalableArrival { number, after, factor })
    };
    let submitted = first + scaled(job.submitted.since(first))?;
    let after = match &job.after {
        None => None,
        Some(after) => {
            let think = scaled(after.think)?;
            Some(Arc::new(JobPredecessors { jobs: after.jobs.clone(), think }))
        }
    };
    Ok(Submission { submitted, after, ..job })
}

/// A logged job with its time since `first` multiplied by `factor`, in whole seconds. All other fields stay, including
/// the think time, which is the user's own and not a time between submissions.
///
/// # Errors
///
/// A time becomes too large.
pub fn scale_logged_arrival(
    job: SwfJob,
    first: i64,
    factor: f64,
) -> Result<SwfJob, UnscalableArrival> {
    let after = Span::from_secs(u64::try_from(job.submitted - first).unwrap_or(0))
        + Span::from_micros(u64::from(job.micros[0]));
    let scaled = Span::from_secs_f64(after.as_secs_f64() * factor);
    let seconds = scaled.and_then(|scaled| i64::try_from(scaled.as_micros() / 1_000_000).ok());
    let number = u64::try_from(job.number).unwrap_or(0);
    let submitted = seconds.and_then(|seconds| first.checked_add(seconds));
    let submitted = submitted.ok_or(UnscalableArrival { number, after, factor })?;
    let [_, run_time, requested] = job.micros;
    Ok(SwfJob { submitted, micros: [0, run_time, requested], ..job })
}

/// Lower bound of the makespan of these jobs on `machine` processors: the last end if each job began at its submission,
/// or the jobs' processor time divided by `machine`, whichever is greater.
#[must_use]
pub fn least_makespan(jobs: &[Submission], machine: u32) -> Span {
    // Jobs that follow others need the ends of those, so these come first.
    let (followers, others): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| job.after.is_some());
    let mut ends = BTreeMap::new();
    let mut end = |job: &Submission| {
        let of = |after: &JobPredecessors| {
            let last = after.jobs.iter().filter_map(|number| ends.get(number).copied()).max();
            last.map(|last: Time| last + after.think)
        };
        let begin = job.after.as_deref().and_then(of).unwrap_or(job.submitted);
        let end = begin + job.runtime;
        if !followers.is_empty() {
            ends.insert(job.number, end);
        }
        end.since(Time::ZERO)
    };
    let alone = others.iter().chain(&followers).map(|job| end(job)).max();
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
        let (submitted, usage) =
            (Time::from_secs(submitted_s), Usage::each_process(vec![Ppm::ONE]));
        let (number, estimate, memory) = (1, runtime, Bytes::ZERO);
        Submission {
            number,
            submitted,
            processes,
            runtime,
            estimate,
            usage,
            memory,
            priority: 0,
            after: None,
            is_cut: false,
            fails: false,
        }
    }

    #[test]
    fn a_logged_job_keeps_all_but_its_submission() {
        let fields = [7, 110, 3, 10, 1, 5, 6, 1, 20, 9, 5, 7, 8, 9, 1, 2, 6, 40];
        let job = SwfJob::from_fields(fields);
        let scaled = scale_logged_arrival(job.clone(), 100, 2.5).expect("it fits");
        let mut wanted = fields;
        wanted[1] = 125;
        assert_eq!(scaled.fields(), wanted);
        assert_eq!(scale_logged_arrival(job.clone(), 110, 1e300).map(|it| it.submitted), Ok(110));
        let error = scale_logged_arrival(job, 100, 1e300).expect_err("too large");
        assert!(error.to_string().contains("job 7 was submitted 10s after the first"), "{error}");
    }

    #[test]
    fn jobs_take_until_the_last_has_run_and_as_long_as_all_their_work() {
        assert_eq!(least_makespan(&[], 4), Span::ZERO);
        assert_eq!(least_makespan(&[job(0, 1, 500), job(100, 2, 50)], 4), Span::from_secs(500));
        assert_eq!(least_makespan(&[job(0, 1, 500), job(900, 2, 50)], 4), Span::from_secs(950));
        assert_eq!(least_makespan(&[job(0, 4, 500), job(0, 2, 400)], 4), Span::from_secs(700));
    }
}
