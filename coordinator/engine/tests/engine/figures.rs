//! The paper's Figures 1 to 5 as cases worked out by hand. The figures' drawings aren't in the paper's text, so sizes
//! are reconstructed from the text; processors are numbered from 0 and taken lowest first, so the paper's P4-5 are 0-1
//! here, P2-3 are 2-3 and P1 is 4.

use std::convert::Infallible;

use dormouse_analysis::jobs::simulate;
use dormouse_analysis::{RunRecord as Record, carried_out};
use dormouse_engine::jobs::JobSimulation;
use dormouse_model::{Decision, PromotionMethod, Step, Submission};
use dormouse_policies::batch::{Algorithm, Config};
use dormouse_units::{Bytes, Ppm, Span, Tier, Time, Usage};
use dormouse_vm::ProcessorSharing;

/// Records all decisions and ends of jobs as lines, with jobs by their number in the trace.
#[derive(Default)]
struct Log(Vec<String>);

impl Log {
    /// Adds the lines of a step that `record` has already taken in.
    fn see(&mut self, record: &Record, step: &Step) -> Result<(), Infallible> {
        for job in &record.closed().jobs {
            self.0.push(format!("{} J{} ends", step.at, job.job.number));
        }
        for decision in carried_out(step) {
            if let Some(job) = decision.task().and_then(|task| record.jobs.get(task)) {
                self.decided(step.at, job.job.number, decision);
            }
        }
        Ok(())
    }

    fn decided(&mut self, now: Time, job: u64, decision: &Decision) {
        let did = match decision {
            Decision::Start { on, .. } => match on.tier {
                Tier::Foreground => format!("fg {:?}", on.cpus),
                Tier::Background => format!("bg {:?}", on.cpus),
            },
            Decision::Promote { by: PromotionMethod::Swap, .. } => "swap".to_owned(),
            Decision::Promote { by: PromotionMethod::Kill { on }, .. } => format!("kill {on:?}"),
            Decision::Promote { by: PromotionMethod::Migrate { on }, .. } => {
                format!("migrate {on:?}")
            }
            other => panic!("no batch scheduler decides that: {other:?}"),
        };
        self.0.push(format!("{now} J{job} {did}"));
    }
}

/// Makes a job submitted at the beginning; a job of several processes uses `usage` percent of its processors.
fn job(number: u64, processes: u32, runtime: u64, estimate: u64, usage: u32) -> Submission {
    let usage = if processes == 1 { Usage::FULL } else { Usage::Uniform(Ppm::new(usage * 10_000)) };
    Submission {
        number,
        submitted: Time::ZERO,
        processes,
        runtime: Span::from_secs(runtime),
        estimate: Span::from_secs(estimate),
        usage,
        memory: Bytes::ZERO,
        priority: 0,
        after: None,
        is_cut: false,
        fails: false,
    }
}

fn play(algorithm: Algorithm, processors: u32, cost: u64, jobs: &[Submission]) -> Vec<String> {
    let mut setup = JobSimulation::new(Config::new(algorithm, processors), 1);
    setup.sharing = ProcessorSharing::PERFECT;
    setup.migration_cost = Span::from_secs(cost);
    let mut log = Log::default();
    let see = |record: &Record, step: &Step| log.see(record, step);
    simulate(jobs.iter().cloned().map(Ok), &setup, see).expect("it plays to the end");
    log.0
}

/// Makes the jobs of Figure 1: at 60 % in the foreground, a background process advances 2 units in 5.
fn figure_1(j10_runs: u64) -> Vec<Submission> {
    vec![
        job(1, 2, 10, 10, 60),
        job(2, 4, 6, 6, 60),
        job(3, 2, 5, 5, 60),
        job(4, 1, 11, 11, 60),
        job(5, 1, 2, 2, 60),
        job(6, 1, 3, 3, 60),
        job(7, 1, 5, 5, 60),
        job(8, 1, 4, 4, 60),
        job(9, 1, 5, 5, 60),
        job(10, 1, j10_runs, 6, 60),
        job(11, 5, 2, 2, 60),
        job(12, 4, 3, 3, 60),
    ]
}

/// Figure 1 (a), KEASY: J6 is killed, J7 is swapped, J8 ends in the background although it can't be backfilled, J9 is
/// killed, and J11 runs because J10 ended before 16.
#[test]
fn figure_1_keasy() {
    let log = play(Algorithm::Keasy, 5, 0, &figure_1(4));
    assert_eq!(
        log,
        [
            "0s J1 fg [0, 1]",
            "0s J3 fg [2, 3]",
            "0s J4 fg [4]",
            "0s J5 bg [0]",
            "0s J6 bg [1]",
            "0s J8 bg [2]",
            "0s J7 bg [3]",
            "5s J3 ends",
            "5s J5 ends",
            "5s J6 kill [2]",
            "5s J7 swap",
            "5s J9 bg [0]",
            "5s J10 bg [1]",
            "8s J6 ends",
            "8s J7 ends",
            "10s J1 ends",
            "10s J8 ends",
            "10s J2 fg [2, 3, 0, 1]",
            "11s J4 ends",
            "11s J9 kill [4]",
            "15s J10 ends",
            "15s J12 bg [0, 1, 2, 3]",
            "16s J2 ends",
            "16s J9 ends",
            "16s J11 fg [4, 0, 1, 2, 3]",
            "18s J11 ends",
            "18s J12 swap",
            // Two units done below 60 %, at a rate of 2/3 rounded down to a millionth.
            "19.000002s J12 ends",
        ]
    );
}

/// The other case of Figure 1 (a): J10 isn't done by 16 and is promoted to the foreground; J11 is then the head of the
/// queue, and J12 overtakes J11.
#[test]
fn figure_1_keasy_with_a_long_j10() {
    let log = play(Algorithm::Keasy, 5, 0, &figure_1(6));
    let from = log.iter().position(|line| line == "16s J9 ends").expect("J9 ends at 16");
    assert_eq!(log[from + 1..from + 3], ["16s J10 swap", "16s J12 fg [0, 2, 3, 4]"]);
}

/// Figure 1 (b), REASY: no job is killed; at 5 J6 stays where it is, at 11 J9 has a reservation but stays.
#[test]
fn figure_1_reasy() {
    let log = play(Algorithm::Reasy, 5, 0, &figure_1(4));
    assert!(log.iter().all(|line| !line.contains("kill") && !line.contains("migrate")), "{log:?}");
    assert!(log.contains(&"5s J7 swap".to_owned()));
    assert!(log.contains(&"7.5s J6 ends".to_owned()), "{log:?}");
    assert!(log.iter().all(|line| !line.starts_with("11s J9")), "{log:?}");
    // At 11 J9 is the head: no foreground but that of its own processor will do.
    let of_j9: Vec<_> = log.iter().filter(|line| line.contains("J9 ")).collect();
    assert_eq!(of_j9, ["5s J9 bg [0]", "16s J9 swap", "16.6s J9 ends"]);
}

/// MEASY moves J6 at 5, with two units of its work done: one unit is left, and the migration cost.
#[test]
fn figure_1_measy() {
    let log = play(Algorithm::Measy, 5, 1, &figure_1(4));
    assert!(log.contains(&"5s J6 migrate [2]".to_owned()), "{log:?}");
    assert!(log.contains(&"7s J6 ends".to_owned()), "{log:?}");
}

fn end_of(log: &[String], job: &str) -> String {
    let line = log.iter().find(|line| line.ends_with(&format!(" {job} ends")));
    line.and_then(|line| line.split(' ').next()).unwrap_or("never").to_owned()
}

/// Figure 2: all jobs use 100 %. J3 can't be backfilled, but runs in the background of the idle processor until the
/// head needs that processor, and later continues where it was.
#[test]
fn figure_2_background_of_an_idle_processor() {
    let jobs = [job(1, 1, 10, 10, 100), job(2, 2, 5, 5, 100), job(3, 1, 12, 12, 100)];
    let easy = play(Algorithm::Easy, 2, 0, &jobs);
    assert_eq!((end_of(&easy, "J2"), end_of(&easy, "J3")), ("15s".into(), "27s".into()));
    for algorithm in [Algorithm::Keasy, Algorithm::Reasy, Algorithm::Measy] {
        let log = play(algorithm, 2, 20, &jobs);
        assert!(log.contains(&"0s J3 bg [1]".to_owned()) && log.contains(&"15s J3 swap".into()));
        assert_eq!((end_of(&log, "J2"), end_of(&log, "J3")), ("15s".into(), "17s".into()));
    }
}

/// Figure 3: as Figure 2, but the processor is idle again before the background job is the head: the job advances in
/// two gaps without ever having a foreground.
#[test]
fn figure_3_two_holes() {
    let jobs = [
        job(1, 1, 10, 10, 100),
        job(2, 2, 5, 5, 100),
        job(3, 2, 20, 20, 100),
        job(4, 1, 10, 11, 100),
    ];
    let easy = play(Algorithm::Easy, 2, 0, &jobs);
    let keasy = play(Algorithm::Keasy, 2, 0, &jobs);
    assert_eq!(end_of(&easy, "J4"), "45s");
    assert_eq!(end_of(&keasy, "J4"), "10s");
    assert!(keasy.contains(&"0s J4 bg [1]".to_owned()));
    assert_eq!(end_of(&keasy, "J3"), end_of(&easy, "J3"));
}

/// Figure 4: J3's user overestimates; EASY doesn't backfill J3, but J3 finishes in the background.
#[test]
fn figure_4_overestimated_run_time() {
    let jobs = [job(1, 1, 10, 10, 100), job(2, 2, 5, 5, 100), job(3, 1, 8, 30, 100)];
    assert_eq!(end_of(&play(Algorithm::Easy, 2, 0, &jobs), "J3"), "23s");
    assert_eq!(end_of(&play(Algorithm::Keasy, 2, 0, &jobs), "J3"), "8s");
}

/// Figure 5: three processors. J1 holds 1 and 2 until 10, J2 holds 0 until 3; J3 sits in
/// the background of 1 and 2. From 3 on J3 is the head: shadow time 10, and the one extra
/// foreground is that of processor 0, which J4 may use past 10 although it ends at 23.
#[test]
fn figure_5_reservation_of_a_background_job() {
    let jobs =
        [job(2, 1, 3, 3, 60), job(1, 2, 10, 10, 60), job(3, 2, 12, 12, 60), job(4, 1, 20, 20, 60)];
    let log = play(Algorithm::Reasy, 3, 0, &jobs);
    assert_eq!(
        log,
        [
            "0s J2 fg [0]",
            "0s J1 fg [1, 2]",
            "0s J3 bg [1, 2]",
            "3s J2 ends",
            "3s J4 fg [0]",
            "10s J1 ends",
            "10s J3 swap",
            // Seven seconds at 2/3 of the speed, rounded down to a millionth.
            "15.33334s J3 ends",
            "23s J4 ends",
        ]
    );
}
