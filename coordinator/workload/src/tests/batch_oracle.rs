//! The five schedulers against an independent implementation (the oracle), job by job and to the microsecond: on a
//! generated log, and on the first jobs of the log of KTH if it is installed.
//!
//! KTH's log is looked for in the data folder: `DORMOUSE_DATA`, or `../shared/data` beside the workspace.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "the crate does no I/O, its tests do"
)]

mod machine;
mod pass;
mod swf;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::File;
use std::io::{Cursor, Read as _};
use std::path::{Path, PathBuf};

use dormouse_analysis::SpellEnd;
use dormouse_analysis::jobs::simulate;
use dormouse_engine::jobs::JobSimulation;
use dormouse_policies::batch::{Algorithm, Config};

use machine::{Machine, Outcome, Scheduler};
use swf::{Job, SECOND};

use crate::{OnMalformed, Trace, UsageRule};

/// Number of jobs that are compared.
const JOBS: usize = 3_000;
/// Number of processors of the machine.
const PROCESSORS: u32 = 100;
/// Seed of all random draws.
const SEED: u64 = 7;

/// Outcome of the jobs of a log under the crate's scheduler for this algorithm.
fn ours(algorithm: Algorithm, text: &str) -> Outcome {
    let file = Ok(Cursor::new(text.to_owned().into_bytes()));
    let trace = Trace::from_file(Path::new("log.swf"), file, Some(PROCESSORS), OnMalformed::Fail);
    let usage = UsageRule::paper_rule(SEED);
    let jobs =
        trace.expect("it opens").take(JOBS).map(|job| job.map(|job| usage.assign_usage(job)));
    let jobs: Vec<_> = jobs.collect::<Result<_, _>>().expect("well-formed");
    let (mut ends, mut moves) = (BTreeMap::new(), [0; 3]);
    let simulation = JobSimulation::new(Config::new(algorithm, PROCESSORS), SEED);
    let all = [SpellEnd::Swapped, SpellEnd::Killed, SpellEnd::Migrated];
    simulate(jobs.into_iter().map(Ok::<_, Infallible>), &simulation, |record, step| {
        for job in &record.closed().jobs {
            ends.insert(job.id, step.at.as_micros());
            for (sum, how) in moves.iter_mut().zip(all) {
                *sum += u64::from(job.left_by(how));
            }
        }
        Ok(())
    })
    .expect("it ends");
    let [swaps, kills, migrations] = moves;
    Outcome { ends: ends.into_values().collect(), swaps, kills, migrations }
}

/// The mean response time in whole microseconds.
fn mean_response(jobs: &[Job], outcome: &Outcome) -> u64 {
    let of = |(job, end): (&Job, &u64)| end - job.submitted;
    let sum: u64 = jobs.iter().zip(&outcome.ends).map(of).sum();
    sum / jobs.len() as u64
}

/// Compares the crate's five schedulers with the oracle on a log, and returns their mean response times in
/// microseconds.
fn compared(text: &str) -> [u64; 5] {
    let jobs = swf::read(text, JOBS, SEED);
    assert_eq!(jobs.len(), JOBS);
    let all = [
        (Algorithm::Fcfs, Scheduler::Fcfs),
        (Algorithm::Easy, Scheduler::Easy),
        (Algorithm::Keasy, Scheduler::Keasy),
        (Algorithm::Reasy, Scheduler::Reasy),
        (Algorithm::Measy, Scheduler::Measy),
    ];
    all.map(|(algorithm, scheduler)| {
        let theirs = Machine::run(scheduler, PROCESSORS as usize, &jobs, SEED);
        let ours = ours(algorithm, text);
        let first = ours.ends.iter().zip(&theirs.ends).position(|(ours, theirs)| ours != theirs);
        assert_eq!(first, None, "{algorithm}: this job ends elsewhen");
        assert_eq!(ours, theirs, "{algorithm}");
        let mean = mean_response(&jobs, &theirs);
        println!(
            "{algorithm}: mean response {}.{:06} s, {} swaps, {} kills, {} migrations",
            mean / SECOND,
            mean % SECOND,
            theirs.swaps,
            theirs.kills,
            theirs.migrations
        );
        mean
    })
}

#[test]
fn a_generated_log_is_scheduled_as_by_the_oracle() {
    let means = [286_364_529_000, 24_125_271_333, 20_240_991_524, 26_537_400_491, 17_513_482_487];
    assert_eq!(compared(&swf::generated(JOBS, 1)), means);
}

#[test]
fn kth_sp2_is_scheduled_as_by_the_oracle() {
    let data = std::env::var_os("DORMOUSE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = data.join("swf/KTH-SP2-1996-2.1-cln.swf.gz");
    let Ok(file) = File::open(&path) else {
        println!("skipped: there is no {}; set DORMOUSE_DATA", path.display());
        return;
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it is whole");
    let means = [91_851_851_666, 14_529_696_000, 12_706_987_066, 13_816_248_865, 11_349_830_329];
    assert_eq!(compared(&text), means);
}

/// A case on two processors, worked out by hand. Job 1 holds both until 100 s; job 2 waits for both and job 3 for one,
/// for 40 s. Under EASY they run after each other. With two tiers job 3, the shorter one, runs in the background of one
/// processor. Since job 1 uses 40 % of the processor, job 3 gets from .80 to .92 of the remaining 60 %, and job 1 loses
/// from .5 to 4 % meanwhile.
#[test]
fn the_oracle_does_a_case_by_hand() {
    let job = |submitted: u64, usage: &[u64], runtime: u64| Job {
        submitted: submitted * SECOND,
        processes: usage.len(),
        runtime: runtime * SECOND,
        estimate: runtime * SECOND,
        usage: usage.to_vec(),
    };
    let both: &[u64] = &[400_000, 400_000];
    let jobs = [job(0, both, 100), job(1, both, 100), job(1, &[1_000_000], 40)];
    let ends = |scheduler| Machine::run(scheduler, 2, &jobs, SEED).ends;
    assert_eq!(ends(Scheduler::Fcfs), [100, 200, 240].map(|s| s * SECOND));
    assert_eq!(ends(Scheduler::Easy), [100, 200, 240].map(|s| s * SECOND));
    for scheduler in [Scheduler::Keasy, Scheduler::Reasy, Scheduler::Measy] {
        let ends = ends(scheduler);
        let (soonest, latest) = (40 * SECOND * 1_000 / 552, 40 * SECOND * 1_000 / 480);
        let ran = ends[2] - SECOND;
        assert!((soonest..=latest + 1).contains(&ran), "{ends:?}");
        let late = ends[0] - 100 * SECOND;
        assert!((ran * 5 / 1_000..=ran * 40 / 1_000 + 1).contains(&late), "{ends:?}");
        // Job 2 has the background of both from then on, at from .297 of full speed to all of it, and
        // goes on in the foreground where it is.
        let below = ends[0] - ends[2];
        let ahead = ends[0] + 100 * SECOND - ends[1];
        assert!((below * 297 / 1_000..=below).contains(&ahead), "{ends:?}");
    }
}
