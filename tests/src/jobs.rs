//! Parallel jobs for live runs.

use std::fmt::Write as _;

/// A parallel job: seconds until its submission, number of processes, run time and estimate in seconds, and the part
/// of a processor that each process uses.
pub type Job = (u32, u32, u32, u32, f64);

/// Five jobs for four processors, which take five seconds of real time. When job 2 ends after one second, job 3 has to
/// move and job 4 begins in the background.
pub const JOBS: [Job; 5] = [
    (0, 2, 240, 300, 0.5),
    (0, 1, 60, 60, 1.0),
    (0, 2, 240, 300, 0.6),
    (60, 4, 120, 180, 0.5),
    (90, 1, 60, 120, 1.0),
];

/// The text of an experiment with these jobs on four processors of a fifth of a core each, at speed-up 60.
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
