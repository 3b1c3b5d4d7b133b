//! FCFS and EASY against an independent implementation: slow, obvious, second by second
//! lists and no state but the jobs themselves.

use std::convert::Infallible;

use dormouse_analysis::jobs::simulate;
use dormouse_analysis::{RunRecord as Record, carried_out};
use dormouse_engine::jobs::JobSimulation;
use dormouse_model::{Decision, Step, Submission};
use dormouse_policies::batch::{Algorithm, Config};
use dormouse_units::{Bytes, RandomStream, Span, Time, Usage};
use proptest::prelude::*;

/// A job of a small workload, in whole seconds.
#[derive(Clone, Copy, Debug)]
struct Plain {
    submitted: u64,
    processes: u32,
    runtime: u64,
    estimate: u64,
}

/// Returns start times by the definition in the crate's documentation, recomputed at each pass: the running jobs are
/// those that have started and not ended.
fn obviously(machine: u32, jobs: &[Plain], backfills: bool) -> Vec<u64> {
    let mut starts: Vec<Option<u64>> = vec![None; jobs.len()];
    let mut now = 0;
    loop {
        let is_running =
            |starts: &[Option<u64>], j: usize| starts[j].is_some_and(|s| s + jobs[j].runtime > now);
        let free = |starts: &[Option<u64>]| -> u32 {
            machine
                - (0..jobs.len())
                    .filter(|&j| is_running(starts, j))
                    .map(|j| jobs[j].processes)
                    .sum::<u32>()
        };
        // A job of no run time ends in the instant it starts, but after the pass that starts
        // it: until then it holds its processors. So passes repeat until nothing starts.
        loop {
            let mut fresh = Vec::new();
            let taken = |fresh: &[usize]| -> u32 {
                fresh.iter().filter(|&&j| jobs[j].runtime == 0).map(|&j| jobs[j].processes).sum()
            };
            let waiting: Vec<usize> = (0..jobs.len())
                .filter(|&j| jobs[j].submitted <= now && starts[j].is_none())
                .collect();
            let mut rest = waiting.as_slice();
            while let Some((&first, others)) = rest.split_first() {
                if jobs[first].processes > free(&starts) - taken(&fresh) {
                    break;
                }
                starts[first] = Some(now);
                fresh.push(first);
                rest = others;
            }
            if let Some((&head, others)) = rest.split_first()
                && backfills
            {
                for &j in others {
                    // The head's reservation, from nothing each time: at which expected end
                    // are enough free, and how many beyond.
                    let idle = free(&starts) - taken(&fresh);
                    let mut ends: Vec<(u64, u32)> = (0..jobs.len())
                        .filter(|&k| is_running(&starts, k) || fresh.contains(&k))
                        .map(|k| {
                            let start = starts[k].unwrap_or(now);
                            ((start + jobs[k].estimate).max(now), jobs[k].processes)
                        })
                        .collect();
                    ends.sort_unstable();
                    let free_by = |t: u64| -> u32 {
                        idle + ends.iter().filter(|e| e.0 <= t).map(|e| e.1).sum::<u32>()
                    };
                    let shadow = ends
                        .iter()
                        .map(|e| e.0)
                        .find(|&t| free_by(t) >= jobs[head].processes)
                        .unwrap_or(now);
                    let extra = free_by(shadow) - jobs[head].processes;
                    let fits = jobs[j].processes <= idle;
                    let ends_before = now + jobs[j].estimate <= shadow;
                    if fits && (ends_before || jobs[j].processes <= extra) {
                        starts[j] = Some(now);
                        fresh.push(j);
                    }
                }
            }
            if !fresh.iter().any(|&j| jobs[j].runtime == 0) {
                break;
            }
        }
        let next = (0..jobs.len())
            .flat_map(|j| match starts[j] {
                None => Some(jobs[j].submitted),
                Some(s) => Some(s + jobs[j].runtime),
            })
            .filter(|&t| t > now)
            .min();
        match next {
            Some(t) => now = t,
            None => break,
        }
    }
    starts.into_iter().map(|s| s.expect("every job starts")).collect()
}

/// Collects start times by job number, and checks that no processor is ever given twice.
#[derive(Default)]
struct Starts {
    at: Vec<(u64, u64)>,
    held: Vec<(Time, Time, Vec<u32>)>,
}

impl Starts {
    /// Checks the decisions of a step that `record` has already taken in.
    fn see(&mut self, record: &Record, step: &Step) -> Result<(), Infallible> {
        for decision in carried_out(step).into_iter().filter(|it| it.task().is_some()) {
            assert!(
                matches!(decision, Decision::Start { .. }),
                "one tier only starts: {decision:?}"
            );
        }
        for job in &record.closed().jobs {
            let (started, ended) = (job.started().expect("it ran"), job.ended.expect("it ended"));
            self.at.push((job.job.number, started.as_micros() / 1_000_000));
            assert_eq!(job.on().len(), job.job.processes as usize);
            self.held.push((started, ended, job.on().to_vec()));
        }
        Ok(())
    }
}

fn ours(machine: u32, jobs: &[Plain], algorithm: Algorithm) -> Starts {
    let submissions = jobs.iter().zip(0..).map(|(job, number)| {
        Ok(Submission {
            number,
            submitted: Time::from_secs(job.submitted),
            processes: job.processes,
            runtime: Span::from_secs(job.runtime),
            estimate: Span::from_secs(job.estimate),
            usage: Usage::FULL,
            memory: Bytes::ZERO,
            priority: 0,
            after: None,
            is_cut: false,
            fails: false,
        })
    });
    let mut starts = Starts::default();
    let setup = JobSimulation::new(Config::new(algorithm, machine), 1);
    let see = |record: &Record, step: &Step| starts.see(record, step);
    simulate(submissions, &setup, see).expect("it plays to the end");
    starts.at.sort_unstable();
    starts
}

fn assert_equal(machine: u32, jobs: &[Plain]) {
    for (algorithm, backfills) in [(Algorithm::Fcfs, false), (Algorithm::Easy, true)] {
        let theirs = obviously(machine, jobs, backfills);
        let ours = ours(machine, jobs, algorithm);
        let ours_at: Vec<u64> = ours.at.iter().map(|&(_, at)| at).collect();
        assert_eq!(ours_at, theirs, "{algorithm} on {machine} processors: {jobs:?}");
        for (n, (from, to, on)) in ours.held.iter().enumerate() {
            for (other_from, other_to, other_on) in &ours.held[..n] {
                if from < other_to && other_from < to {
                    assert!(on.iter().all(|p| !other_on.contains(p)), "a processor given twice");
                }
            }
        }
    }
}

fn random_jobs(seed: u64, count: usize, machine: u32) -> Vec<Plain> {
    let mut stream = RandomStream::new(seed, "reference", 0);
    let mut submitted = 0;
    (0..count)
        .map(|_| {
            submitted += stream.draw_below(12) as u64;
            let runtime = stream.draw_below(60) as u64;
            // Mostly too long, sometimes exact, sometimes outlived.
            let estimate = match stream.draw_below(4) {
                0 => runtime.max(1),
                1 => (runtime / 2).max(1),
                _ => runtime + 1 + stream.draw_below(60) as u64,
            };
            let processes = 1 + stream.draw_below(machine as usize) as u32;
            Plain { submitted, processes, runtime, estimate }
        })
        .collect()
}

#[test]
fn a_thousand_small_workloads_are_scheduled_as_by_the_reference() {
    for seed in 0..1000 {
        let machine = 1 + (seed % 17) as u32;
        assert_equal(machine, &random_jobs(seed, 40, machine));
    }
}

/// The reference itself on a case worked out by hand, with four processors: job 0 holds three of them until 10; job 1
/// wants all four and is the head; job 2 ends by 10 and may overtake the head; job 3 wouldn't.
#[test]
fn the_reference_does_a_case_by_hand() {
    let job =
        |submitted, processes, runtime, estimate| Plain { submitted, processes, runtime, estimate };
    let jobs = [job(0, 3, 10, 10), job(1, 4, 5, 5), job(2, 1, 8, 8), job(2, 1, 9, 9)];
    assert_eq!(obviously(4, &jobs, true), [0, 10, 2, 15]);
    assert_eq!(obviously(4, &jobs, false), [0, 10, 15, 15]);
    assert_equal(4, &jobs);
}

proptest! {
    #[test]
    fn any_small_workload_is_scheduled_as_by_the_reference(
        machine in 1_u32..20,
        raw in proptest::collection::vec((0_u64..9, 1_u32..20, 0_u64..30, 1_u64..40), 1..30),
    ) {
        let mut at = 0;
        let jobs: Vec<_> = raw
            .into_iter()
            .map(|(after, processes, runtime, estimate)| {
                at += after;
                let processes = processes.min(machine);
                Plain { submitted: at, processes, runtime, estimate }
            })
            .collect();
        assert_equal(machine, &jobs);
    }
}
