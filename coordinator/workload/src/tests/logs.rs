//! EASY and FCFS on a real log, compared job by job with a slow reference scheduler.
//!
//! The tests need the data folder: `DORMOUSE_DATA`, or `../shared/data` beside the workspace.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "the crate does no I/O, its tests do"
)]

use std::convert::Infallible;
use std::fs::File;
use std::path::PathBuf;

use dormouse_analysis::jobs::simulate;
use dormouse_engine::jobs::JobSimulation;
use dormouse_model::Submission;
use dormouse_policies::batch::{Algorithm, Config};
use dormouse_units::{Span, Time, Usage};

use crate::{OnMalformed, Statistics, Trace};

fn log(name: &str) -> Option<PathBuf> {
    let data = std::env::var_os("DORMOUSE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = data.join("swf").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: there is no {}; set DORMOUSE_DATA", path.display());
    None
}

/// A slow scheduler: running and waiting jobs as plain lists searched from end to end; each pass computes everything
/// from these lists.
struct Reference {
    machine: u64,
    backfills: bool,
    /// Running jobs: (end, expected end, processes).
    running: Vec<(u64, u64, u64)>,
    /// Indices of the waiting jobs.
    waiting: Vec<usize>,
}

impl Reference {
    fn idle(&self) -> u64 {
        self.machine - self.running.iter().map(|r| r.2).sum::<u64>()
    }

    fn start(&mut self, now: u64, job: &Submission) {
        let (runtime, estimate) = (seconds(job.runtime), seconds(job.estimate));
        self.running.push((now + runtime, now + estimate, u64::from(job.processes)));
    }

    /// Starts jobs at `now`, in order, and returns their indices.
    fn pass(&mut self, now: u64, jobs: &[Submission]) -> Vec<usize> {
        let mut started = Vec::new();
        let size = |j: usize| u64::from(jobs[j].processes);
        while !self.waiting.is_empty() && size(self.waiting[0]) <= self.idle() {
            let first = self.waiting.remove(0);
            self.start(now, &jobs[first]);
            started.push(first);
        }
        if !self.backfills || self.waiting.is_empty() {
            return started;
        }
        let head = self.waiting[0];
        for j in self.waiting.clone().into_iter().skip(1) {
            let idle = self.idle();
            if size(j) > idle {
                continue;
            }
            let ends: Vec<(u64, u64)> = self.running.iter().map(|r| (r.1.max(now), r.2)).collect();
            let free_by =
                |t: u64| idle + ends.iter().filter(|e| e.0 <= t).map(|e| e.1).sum::<u64>();
            let shadow = ends.iter().map(|e| e.0).filter(|&t| free_by(t) >= size(head)).min();
            let shadow = shadow.expect("the head fits an empty machine");
            let extra = free_by(shadow) - size(head);
            if now + seconds(jobs[j].estimate) <= shadow || size(j) <= extra {
                self.waiting.retain(|&k| k != j);
                self.start(now, &jobs[j]);
                started.push(j);
            }
        }
        started
    }
}

fn seconds(span: Span) -> u64 {
    span.as_micros() / 1_000_000
}

fn reference(machine: u32, jobs: &[Submission], backfills: bool) -> Vec<Time> {
    let mut starts = vec![Time::ZERO; jobs.len()];
    let machine = u64::from(machine);
    let mut world = Reference { machine, backfills, running: Vec::new(), waiting: Vec::new() };
    let mut next = 0;
    loop {
        let arrival = jobs.get(next).map(|j| j.submitted.as_micros() / 1_000_000);
        let end = world.running.iter().map(|r| r.0).min();
        let Some(now) = arrival.into_iter().chain(end).min() else { break };
        world.running.retain(|r| r.0 > now);
        while next < jobs.len() && jobs[next].submitted <= Time::from_secs(now) {
            world.waiting.push(next);
            next += 1;
        }
        for j in world.pass(now, jobs) {
            starts[j] = Time::from_secs(now);
        }
    }
    starts
}

fn assert_as_reference(machine: u32, jobs: &[Submission]) {
    for (algorithm, backfills) in [(Algorithm::Fcfs, false), (Algorithm::Easy, true)] {
        let mut ours = Vec::new();
        let simulation = JobSimulation::new(Config::new(algorithm, machine), 1);
        simulate(jobs.iter().cloned().map(Ok::<_, Infallible>), &simulation, |record, _| {
            ours.extend(record.closed().jobs.iter().map(|job| (job.id, job.started())));
            Ok(())
        })
        .expect("it plays to the end");
        ours.sort_unstable();
        let theirs = reference(machine, jobs, backfills);
        assert_eq!(ours.len(), jobs.len());
        for (n, ((_, ours), theirs)) in ours.iter().zip(theirs).enumerate() {
            assert_eq!(*ours, Some(theirs), "{algorithm}: job {} starts elsewhen", jobs[n].number);
        }
    }
}

#[test]
fn kth_sp2_is_scheduled_as_by_the_reference() {
    let Some(path) = log("KTH-SP2-1996-2.1-cln.swf.gz") else { return };
    let mut trace =
        Trace::from_file(&path, File::open(&path), None, OnMalformed::Fail).expect("it opens");
    let jobs: Vec<_> = trace.by_ref().collect::<Result<_, _>>().expect("well-formed");
    assert_eq!((trace.machine(), jobs.len()), (100, 28_475));
    let mut statistics = Statistics::new(100);
    jobs.iter().for_each(|j| statistics.add(j));
    assert!((0.32..0.34).contains(&statistics.serial_share()), "{}", statistics.serial_share());
    assert_as_reference(100, &jobs);
}

#[test]
fn a_lublin_log_is_scheduled_as_by_the_reference() {
    let Some(path) = log("dirlab-lublin_256.swf.gz") else { return };
    let trace =
        Trace::from_file(&path, File::open(&path), None, OnMalformed::Fail).expect("it opens");
    let jobs: Vec<_> = trace.collect::<Result<_, _>>().expect("well-formed");
    assert_eq!(jobs.len(), 10_000);
    assert_as_reference(256, &jobs);
}

/// Statistics of our jobs of Lublin's model agree with those of the archive's sample of the model (one stream, 256
/// processors). The mean gap between submissions is only compared roughly, since it varies much between samples of ten
/// thousand jobs.
#[test]
fn lublin_typeless_is_like_the_archives_sample() {
    let Some(path) = log("dirlab-lublin_256.swf.gz") else { return };
    let trace =
        Trace::from_file(&path, File::open(&path), None, OnMalformed::Fail).expect("it opens");
    let (mut theirs, mut ours) = (Statistics::new(256), Statistics::new(256));
    trace.for_each(|job| theirs.add(&job.expect("well-formed")));
    let made = crate::Model::LublinTypeless.generate(10_000, 256, 1);
    made.expect("it generates").iter().for_each(|job| ours.add(job));
    for (what, ours, theirs, by) in [
        ("serial", ours.serial_share(), theirs.serial_share(), 0.05),
        ("powers of two", ours.power_of_two_share(), theirs.power_of_two_share(), 0.03),
        ("size", ours.size.mean(), theirs.size.mean(), 0.05),
        ("size's deviation", ours.size.deviation(), theirs.size.deviation(), 0.05),
        ("run time", ours.runtime.mean(), theirs.runtime.mean(), 0.05),
        ("run time's deviation", ours.runtime.deviation(), theirs.runtime.deviation(), 0.05),
        ("gap", ours.gap.mean(), theirs.gap.mean(), 0.25),
    ] {
        assert!((ours / theirs - 1.0).abs() < by, "{what}: {ours}, theirs {theirs}");
    }
}

/// Jobs generated by a model are scheduled as by the slow reference; this test needs no data folder.
#[test]
fn a_generated_workload_is_scheduled_as_by_the_reference() {
    let jobs = crate::Model::Lublin.generate(4_000, 64, 9).expect("it generates");
    let jobs: Vec<_> = jobs
        .into_iter()
        .map(|j| Submission { estimate: j.estimate + Span::from_secs(1), usage: Usage::FULL, ..j })
        .map(|j| crate::scale_arrivals(j, Time::ZERO, 0.5).expect("it fits"))
        .map(|j| Submission {
            submitted: Time::from_secs(j.submitted.as_micros() / 1_000_000),
            ..j
        })
        .collect();
    assert_as_reference(64, &jobs);
}
