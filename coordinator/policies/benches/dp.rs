//! Benchmark of the dynamic program: a job of 24 h at one-minute steps, and how its time grows.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a benchmark reads the clock and prints; the program does neither"
)]

use std::time::Instant;

use dormouse_model::DpMode;
use dormouse_policies::dp::{Plan, Problem, Rules, Survival};
use dormouse_samples::{ReportError, Samples, median};
use dormouse_units::Span;

/// How often each plan is computed for one measurement.
const PLANS: usize = 5;

fn main() -> Result<(), ReportError> {
    let bathtub = |hours: f64| {
        let f = 0.4137 * (1.0 - (-hours / 0.9).exp() + ((hours - 24.0) / 0.76).exp());
        f.clamp(0.0, 1.0)
    };
    let mut conditional = Vec::new();
    for (mode, name, jobs) in [
        (
            DpMode::Conditional,
            "conditional",
            [(360, 60), (720, 60), (1_440, 60), (2_880, 30), (4_320, 20)],
        ),
        (DpMode::Artifact, "artifact", [(180, 60), (360, 60), (720, 60), (1_440, 60), (720, 120)]),
    ] {
        for (job, seconds) in jobs {
            let step = Span::from_secs(seconds);
            let checkpoint = usize::try_from((60 / seconds).max(1)).unwrap_or(1);
            let survival =
                Survival::new(&bathtub, step, Problem::ages(job, checkpoint, checkpoint, 0));
            let rules = Rules::from(mode);
            let problem = Problem {
                job,
                checkpoint,
                restart: checkpoint,
                age: 0,
                rules,
                survival: &survival,
            };
            let mut times = Vec::new();
            for _ in 0..PLANS {
                let begin = Instant::now();
                match Plan::solve(&problem) {
                    Ok(plan) => {
                        times.push(begin.elapsed().as_secs_f64() * 1e3);
                        if times.len() == PLANS {
                            let (ms, more) = (median(&times), plan.overhead() * 100.0);
                            println!(
                                "{name}: {job} steps of {seconds} s: {ms:.1} ms, +{more:.3} %"
                            );
                        }
                    }
                    Err(error) => println!("{name}: {job} steps of {seconds} s: {error}"),
                }
            }
            if matches!(mode, DpMode::Conditional) {
                conditional.push(times);
            }
        }
    }
    // Twice the steps of the job, of which there are pairs.
    let [_, half, day, ..] = &conditional[..] else { return Ok(()) };
    let quarters = day.iter().map(|ms| ms / 4.0).collect();
    Samples { ours: quarters, peer: half.clone() }.report_costs("dp-growth")
}
