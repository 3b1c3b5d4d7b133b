//! Tests of the scheduler of parallel jobs without an engine.

use std::collections::BTreeSet;

use dormouse_units::{Ppm, RandomStream, Usage};

use super::*;
use crate::batch::Algorithm;

/// A random job of one to eight processes, for a machine of eight processors.
fn job(id: u32, stream: &mut RandomStream) -> Job {
    let processes = 1 + stream.draw_below(8) as u32;
    let share = Ppm::new(400_000 + stream.draw_below(600_001) as u32);
    let usage = if processes == 1 { Usage::FULL } else { Usage::Uniform(share) };
    let estimate = Span::from_secs(1 + stream.draw_below(300) as u64);
    let priority = stream.draw_below(3) as i64;
    Job { id: TaskId::new(id), number: id.into(), processes, estimate, usage, priority }
}

/// A scheduler whose machine, of eight processors, is ready.
fn scheduler(algorithm: Algorithm) -> BatchScheduler {
    let mut made = BatchScheduler::new(Config::new(algorithm, 8), TypeName::from("machine"));
    let mut out = Vec::new();
    made.handle(Time::ZERO, &[Notice::Begin], &mut out);
    let [Decision::Launch { vm, .. }] = out[..] else { panic!("{out:?}") };
    made.handle(Time::ZERO, &[Notice::VmReady { vm }], &mut Vec::new());
    made
}

/// A scheduler that keeps the findings of its last pass makes the same decisions as one that forgets them,
/// whatever happens to jobs.
#[test]
fn a_pass_decides_as_one_that_remembers_nothing() {
    for (algorithm, seed) in Algorithm::ALL.into_iter().flat_map(|a| (0..40).map(move |s| (a, s))) {
        let mut stream = RandomStream::new(seed, "scheduler test", 0);
        let mut scheduler = scheduler(algorithm);
        let (mut forgetful, vm) = (scheduler.clone(), VmId::new(0));
        let (mut next, mut running) = (0, BTreeSet::new());
        for at in 0..400 {
            let notice = if running.is_empty() || stream.draw_below(5) < 3 {
                next += 1;
                Notice::Submitted { job: job(next, &mut stream) }
            } else {
                let chosen = stream.draw_below(running.len());
                let task = *running.iter().nth(chosen).unwrap();
                running.remove(&task);
                match stream.draw_below(6) {
                    0 => Notice::TaskFailed { task, vm, why: String::new() },
                    _ => Notice::TaskFinished { task, vm },
                }
            };
            let now = Time::from_secs(at * 7);
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            scheduler.handle(now, std::slice::from_ref(&notice), &mut ours);
            forgetful.scanned = None;
            forgetful.handle(now, &[notice], &mut theirs);
            assert_eq!(ours, theirs, "{algorithm}, seed {seed}, at {now}");
            running.extend(ours.iter().filter_map(Decision::task));
        }
    }
}

#[test]
fn a_job_that_always_fails_is_given_up_and_that_is_said() {
    let mut scheduler = scheduler(Algorithm::Fcfs);
    let job = job(1, &mut RandomStream::new(1, "scheduler test", 0));
    let (task, vm, mut out) = (job.id, VmId::new(0), Vec::new());
    scheduler.handle(Time::ZERO, &[Notice::Submitted { job }], &mut out);
    for starts in 1..=MOST_STARTS {
        let is_started =
            |it: &Decision| matches!(it, Decision::Start { task: t, .. } if *t == task);
        assert_eq!(out.iter().filter(|it| is_started(it)).count(), starts as usize);
        assert_eq!(scheduler.given_up(), None);
        let failed = Notice::TaskFailed { task, vm, why: String::new() };
        scheduler.handle(Time::from_secs(starts.into()), &[failed], &mut out);
    }
    assert_eq!(scheduler.given_up(), Some(GivenUp::Work));
}

#[test]
fn a_lost_machine_is_launched_again_and_its_jobs_start_on_it() {
    for algorithm in Algorithm::ALL {
        let mut scheduler = scheduler(algorithm);
        let mut stream = RandomStream::new(1, "scheduler test", 0);
        let submitted: Vec<_> =
            (1..12).map(|n| Notice::Submitted { job: job(n, &mut stream) }).collect();
        let mut first = Vec::new();
        scheduler.handle(Time::ZERO, &submitted, &mut first);
        let mut out = Vec::new();
        scheduler.handle(Time::from_secs(5), &[Notice::VmLost { vm: VmId::new(0) }], &mut out);
        let [Decision::Launch { vm, .. }] = out[..] else { panic!("{out:?}") };
        assert_eq!(vm, VmId::new(1));
        scheduler.handle(
            Time::from_secs(6),
            &[Notice::LaunchRefused { vm, why: String::new(), unavailable: false }],
            &mut out,
        );
        assert!(matches!(out.last(), Some(Decision::Wake { .. })), "{out:?}");
        scheduler.handle(Time::from_secs(66), &[Notice::Wake { token: 0 }], &mut out);
        let vm = VmId::new(2);
        assert!(matches!(out.last(), Some(Decision::Launch { vm: new, .. }) if *new == vm));
        let mut again = Vec::new();
        scheduler.handle(Time::ZERO, &[Notice::VmReady { vm }], &mut again);
        for decision in &mut again {
            if let Decision::Start { on, .. } = decision {
                on.vm = VmId::new(0);
            }
        }
        assert_eq!(first, again, "{algorithm}");
    }
}
