//! Parallel jobs for live runs.

use std::fmt::Write as _;

/// A job: submitted after so many seconds, processes, run time and estimate in seconds, and the
/// fraction of a processor that each process uses.
pub type Job = (u32, u32, u32, u32, f64);

/// On four processors five seconds of real time. When job 2 ends, after one of them, job 3 has to
/// move and job 4 begins in the background.
pub const JOBS: [Job; 5] = [
    (0, 2, 240, 300, 0.5),
    (0, 1, 60, 60, 1.0),
    (0, 2, 240, 300, 0.6),
    (60, 4, 120, 180, 0.5),
    (90, 1, 60, 120, 1.0),
];

/// The text of an experiment: these jobs on four processors, a fifth of a core each, sixty times as fast as real time.
#[must_use]
pub fn jobs_experiment(name: &str, scheduler: &str, jobs: &[Job]) -> String {
    let mut lines = String::new();
    for (submitted, processes, runtime, estimate, usage) in jobs {
        // Writing to a string cannot fail.
        let _ = writeln!(
            lines,
            "  {{ submitted = \"{submitted}s\", processes = {processes}, runtime = \"{runtime}s\", \
             estimate = \"{estimate}s\", usage = {usage:?} }},"
        );
    }
    format!(
        r#"name = "{name}"
[workload]
kind = "jobs"
processors = 4
job = [
{lines}]
[scheduler]
name = "{scheduler}"
[live]
speedup = 60
share = 0.18
"#
    )
}
