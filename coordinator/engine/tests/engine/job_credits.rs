//! Parallel jobs on a burstable machine, in virtual time.

use std::convert::Infallible;

use dormouse_cloud::BurstableTerms;
use dormouse_engine::drive::ModelledMachines;
use dormouse_engine::jobs::{JobSimulation, simulate_on};
use dormouse_model::{
    CheckpointConfig, CheckpointOn, CheckpointScheme, Event, Report, Step, Submission,
};
use dormouse_policies::batch::{Algorithm, Config};
use dormouse_units::{Bytes, Credits, Ppm, Span, Time, Usage};
use dormouse_vm::ProcessorSharing;

/// Makes a simulation of two processors with 300 s of credits, none earned, and a quarter of the speed without credits.
fn simulation(algorithm: Algorithm) -> JobSimulation {
    let seconds = |s: u64| Credits::from_vcpu_micros(s * 1_000_000);
    let mut simulation = JobSimulation::new(Config::new(algorithm, 2), 1);
    simulation.sharing = ProcessorSharing::PERFECT;
    simulation.burstable = Some(BurstableTerms {
        baseline: Ppm::new(250_000),
        earned_per_hour: Credits::ZERO,
        initial: seconds(300),
        cap: seconds(600),
        surplus: None,
    });
    simulation
}

fn job(number: u64, processes: u32, runtime: u64, usage: u32) -> Submission {
    let runtime = Span::from_secs(runtime);
    let usage = Usage::each_process(vec![Ppm::new(usage); processes as usize]);
    let (submitted, estimate, memory) = (Time::ZERO, runtime, Bytes::ZERO);
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

fn steps(simulation: &JobSimulation, jobs: &[Submission]) -> Vec<Step> {
    let mut steps = Vec::new();
    let jobs = jobs.iter().map(|job| Ok::<_, Infallible>(job.clone()));
    let run = simulate_on(
        &mut ModelledMachines::new(simulation.two_tier_law()),
        jobs,
        simulation,
        |step| {
            steps.push(step.clone());
            Ok(())
        },
    );
    assert_eq!(run.expect("all are taken").counts().rejected, 0);
    steps
}

/// Returns the time in seconds at which each job ended, and the machine's credits then.
fn ends(steps: &[Step]) -> Vec<(u64, f64)> {
    let (mut credits, mut ends) = (f64::NAN, Vec::new());
    for step in steps {
        match step.event {
            Event::Machine { report: Report::Credits { balance, .. }, .. } => {
                credits = balance.as_f64() * 60.0;
            }
            Event::Machine { report: Report::TaskFinished { .. }, .. } => {
                ends.push((step.at.as_micros() / 1_000_000, credits.round()));
            }
            _ => {}
        }
    }
    ends
}

#[test]
fn jobs_burst_while_there_are_credits_and_are_at_the_baseline_after_that() {
    for algorithm in Algorithm::ALL {
        // 150 s of two processors, and the other 50 four times as slowly.
        let found = ends(&steps(&simulation(algorithm), &[job(1, 2, 200, 1_000_000)]));
        assert_eq!(found, [(350, 0.0)], "{algorithm}");
        // Enough for a job whose processes compute for half of its time.
        let found = ends(&steps(&simulation(algorithm), &[job(1, 2, 200, 500_000)]));
        assert_eq!(found.iter().map(|end| end.0).collect::<Vec<_>>(), [200], "{algorithm}");
    }
    let mut poor = simulation(Algorithm::Easy);
    if let Some(burstable) = &mut poor.burstable {
        burstable.initial = Credits::ZERO;
    }
    // One of the two computes at any time.
    assert_eq!(ends(&steps(&poor, &[job(1, 2, 200, 500_000)])), [(800, 0.0)]);
    // Half of each second takes 2 s, and the other half, in which nobody computes, no longer.
    assert_eq!(ends(&steps(&poor, &[job(1, 1, 200, 500_000)])), [(500, 0.0)]);
}

#[test]
fn a_checkpoint_takes_credits_for_its_time() {
    let mut simulation = simulation(Algorithm::Easy);
    simulation.checkpoint = Some(CheckpointConfig {
        scheme: CheckpointScheme::Points([Ppm::new(500_000)].into()),
        fixed: Span::from_secs(50),
        per_megabyte: Span::ZERO,
        on: CheckpointOn::All,
        ..CheckpointConfig::NONE
    });
    // 50 s of work, 50 s of checkpoint and 50 s of work use up all. The other job takes four times
    // as long then, but for its checkpoint.
    let found = ends(&steps(&simulation, &[job(1, 2, 100, 1_000_000), job(2, 1, 5, 1_000_000)]));
    assert_eq!(found, [(150, 0.0), (220, 0.0)]);
}

#[test]
fn a_machine_that_is_not_burstable_says_nothing_of_credits() {
    let plain = JobSimulation { burstable: None, ..simulation(Algorithm::Measy) };
    let steps = steps(&plain, &[job(1, 2, 200, 1_000_000)]);
    assert!(!steps.iter().any(|step| {
        matches!(step.event, Event::Machine { report: Report::Credits { .. }, .. })
    }));
    assert_eq!(plain.make_setup().credits_of_jobs(), None);
}
