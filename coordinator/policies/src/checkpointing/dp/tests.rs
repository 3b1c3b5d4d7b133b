//! The dynamic program against the reference values, by itself, and against simulations.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests read files and may fail loudly"
)]

use dormouse_units::Span;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::testing::data_folder;

/// Probability that a VM has been preempted after this number of hours: the bathtub distribution of the
/// authors' own simulations.
fn bathtub(hours: f64) -> f64 {
    let f = 0.4137 * (1.0 - (-hours / 0.9).exp() + ((hours - 24.0) / 0.76).exp());
    f.clamp(0.0, 1.0)
}

fn minutes(cdf: &dyn Fn(f64) -> f64, ages: usize) -> Survival {
    Survival::new(cdf, Span::from_secs(60), ages)
}

fn problem(survival: &Survival, job: usize, age: usize, rules: Rules) -> Problem<'_> {
    Problem { job, checkpoint: 1, restart: 1, age, rules, survival }
}

fn chunks(plan: &Plan, job: usize, age: usize) -> Vec<usize> {
    plan.schedule(job, age).iter().map(|chunk| chunk.work).collect()
}

const ALL: Rules = Rules { last_checkpoint: true, ..Rules::CONDITIONAL };

#[test]
fn the_optimum_of_the_five_hour_job_is_not_the_schedule_that_is_printed() {
    let survival = minutes(&bathtub, 3_000);
    let problem = problem(&survival, 300, 0, Rules::ARTIFACT);
    let plan = Plan::solve(&problem).unwrap();
    assert_eq!(chunks(&plan, 300, 0), [15, 18, 22, 28, 38, 59, 120]);
    assert!((plan.makespan() - 310.068_716_435).abs() < 1e-6, "{}", plan.makespan());

    // What is printed is the same table, read out another way: the longest chunk at each age, whatever is
    // left. From the second on they are whole jobs of so many minutes.
    let printed = [15, 28, 38, 59, 128];
    assert_eq!(plan.as_read_out(), printed);
    for (age, whole) in [(15, 28), (43, 38), (81, 59), (140, 128)] {
        assert_eq!(plan.next(whole, age), whole);
    }
    // The printed schedule adds up to 268 minutes, and the chunks of the job itself are others.
    assert_eq!(printed.iter().sum::<usize>(), 268);
    assert_eq!([285, 257, 219, 160].map(|left| plan.next(left, 300 - left)), [18, 28, 38, 55]);
}

#[test]
fn every_stored_value_comes_out() {
    let Some(folder) = data_folder("preemptions") else { return };
    let text = std::fs::read_to_string(folder.join("dp_reference.json")).unwrap();
    let stored: Value = serde_json::from_str(&text).unwrap();
    let survival = minutes(&bathtub, 3_000);
    let check = |want: &Value, job, age, rules, path: &str| {
        let plan = Plan::solve(&problem(&survival, job, age, rules)).unwrap();
        let (ours, theirs) = (plan.makespan(), want["E"].as_f64().unwrap());
        assert!((ours - theirs).abs() < 0.01, "{job} {age}: {ours} {theirs}");
        assert_eq!(serde_json::json!(chunks(&plan, job, age)), want[path], "{job} {age}");
    };
    let mut seen = 0;
    for (job, want) in stored["J_by_s0"].as_object().unwrap() {
        check(want, job.parse().unwrap(), 0, Rules::ARTIFACT, "path");
        seen += 1;
    }
    for (hour, want) in stored["J240_by_start_hour"].as_object().unwrap() {
        check(want, 240, 60 * hour.parse::<usize>().unwrap(), Rules::ARTIFACT, "path");
        seen += 1;
    }
    for (conditional, probability) in
        [(0, FailureProbability::Unconditional), (1, FailureProbability::Conditional)]
    {
        for (exact, loss) in [(0, FailureLoss::Half), (1, FailureLoss::Exact)] {
            let rules = Rules { probability, loss, ..ALL };
            let want = &stored["principled_J300_s0"]
                [format!("conditional={conditional},exact_loss={exact}")];
            check(want, 300, 0, rules, "path");
            seen += 1;
        }
    }
    assert_eq!(seen, 34);
}

#[test]
fn the_last_checkpoint_is_left_out_where_it_keeps_nothing() {
    let survival = minutes(&bathtub, 3_000);
    let of = |rules| Plan::solve(&problem(&survival, 300, 0, rules)).unwrap().makespan();
    let (with, without) = (of(ALL), of(Rules::CONDITIONAL));
    assert!((with - 317.076).abs() < 0.01 && (315.9..316.1).contains(&without), "{with} {without}");
}

/// The makespan that a plan states equals the expected makespan computed from the plan's schedule by
/// `expected`.
#[test]
fn what_a_plan_says_is_what_its_schedule_is_expected_to_take() {
    let survival = minutes(&bathtub, 3_000);
    for age in [0, 60, 600, 1_200] {
        let problem = problem(&survival, 240, age, Rules::CONDITIONAL);
        let plan = Plan::solve(&problem).unwrap();
        let ours = expected(&problem, &|left, age| plan.next(left, age)).unwrap();
        assert!((ours - plan.makespan()).abs() < 1e-6, "{ours} {}", plan.makespan());
        // No other schedule is expected to take less.
        for tau in [5, 11, 40, 240] {
            assert!(expected(&problem, &|_, _| tau).unwrap() > plan.makespan() - 1e-9);
        }
    }
    // What the authors' schedule really takes is more than they say, and more than the best.
    let theirs = Plan::solve(&problem(&survival, 300, 0, Rules::ARTIFACT)).unwrap();
    let really = problem(&survival, 300, 0, ALL);
    let takes = expected(&really, &|left, age| theirs.next(left, age)).unwrap();
    let best = Plan::solve(&really).unwrap().makespan();
    assert!(
        takes > best && takes < best + 1.0 && takes > theirs.makespan() + 6.0,
        "{takes} {best}"
    );
}

/// Simulations of 100,000 jobs each agree with the expected makespans.
#[test]
fn simulated_jobs_take_what_is_expected() {
    let survival = minutes(&bathtub, 3_000);
    for (rules, age) in [(Rules::CONDITIONAL, 0), (Rules::CONDITIONAL, 1_140), (Rules::ARTIFACT, 0)]
    {
        let problem = problem(&survival, 300, age, rules);
        let plan = Plan::solve(&problem).unwrap();
        let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for took in simulate(&problem, &plan, 100_000, 1) {
            n += 1.0;
            let off = took - mean;
            mean += off / n;
            squares += off * (took - mean);
        }
        let half = 1.96 * (squares / (n - 1.0) / n).sqrt();
        let off = (mean - plan.makespan()).abs();
        assert!(half < 0.4 && off < half, "{rules:?}: {mean} +- {half}, {}", plan.makespan());
    }
}

#[test]
fn vms_that_always_fail_or_never_do() {
    let never = minutes(&|_| 0.0, 500);
    let plan = Plan::solve(&problem(&never, 100, 3, Rules::CONDITIONAL)).unwrap();
    assert_eq!((plan.makespan(), chunks(&plan, 100, 3)), (100.0, vec![100]));
    let at_once = minutes(&|hours| f64::from(u8::from(hours > 0.02)), 500);
    for rules in [Rules::CONDITIONAL, ALL] {
        let error = Plan::solve(&problem(&at_once, 100, 0, rules)).unwrap_err();
        assert!(matches!(error, ProblemError::NeverEnds { .. }), "{error}");
    }
    let minute = minutes(&|hours| f64::from(u8::from(hours > 0.06)), 500);
    let plan = Plan::solve(&problem(&minute, 10, 0, Rules::CONDITIONAL)).unwrap();
    // A VM lives for three and a half minutes: two of work and a checkpoint are always kept.
    assert_eq!(chunks(&plan, 10, 0)[0], 2);
    assert!((20.0..30.0).contains(&plan.makespan()), "{}", plan.makespan());
    let old = problem(&minute, 10, 4, Rules::CONDITIONAL);
    assert!(matches!(Plan::solve(&old), Err(ProblemError::TooOld { .. })));
    assert_eq!(
        Plan::solve(&problem(&never, 0, 0, Rules::CONDITIONAL)).unwrap_err(),
        ProblemError::NoWork
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The fast solver and the plain one agree, whatever the VMs.
    #[test]
    fn the_envelope_is_the_recursion(
        (a, t1, t2, b) in (0.05..0.9_f64, 0.2..4.0_f64, 0.1..2.0_f64, 2.0..12.0_f64), job in 1_usize..90, checkpoint in 0_usize..5, restart in 0_usize..9,
        age in 0_usize..120, last_checkpoint: bool,
    ) {
        let cdf = |h: f64| (a * (1.0 - (-h / t1).exp() + ((h - b) / t2).exp())).clamp(0.0, 1.0);
        let survival = minutes(&cdf, Problem::ages(job, checkpoint, restart, age));
        let rules = Rules { last_checkpoint, ..Rules::CONDITIONAL };
        let problem = Problem { job, checkpoint, restart, age, rules, survival: &survival };
        match (envelope::solve(&problem), plain::solve(&problem)) {
            (Ok(quick), Ok(plain)) => {
                for left in 1..=job {
                    let (a, b) = (quick.makespan_after_failure(left), plain.makespan_after_failure(left));
                    prop_assert!((a - b).abs() < 1e-9 * b, "{left}: {a} {b}");
                }
                if survival.alive(age) > 0.0 {
                    let (a, b) = (quick.makespan(), plain.makespan());
                    prop_assert!((a - b).abs() < 1e-8 * b, "{a} {b}");
                    let really = expected(&problem, &|l, a| quick.next(l, a)).unwrap();
                    prop_assert!((really - b).abs() < 1e-6 * b, "{really} {b}");
                }
            }
            (quick, plain) => prop_assert_eq!(quick.err(), plain.err()),
        }
    }
}
