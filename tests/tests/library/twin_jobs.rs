//! A run of parallel jobs beside its twin.

use std::fs;
use std::path::Path;

use dormouse_analysis::RunMode;
use dormouse_analysis::twin::{TaskStanding, TwinComparison};
use dormouse_experiment::Experiment;
use dormouse_policies::batch::Algorithm;
use dormouse_report::output::LogHeader;
use dormouse_report::results::virtual_results;
use dormouse_report::twin::{TwinError, twin_of};
use serde_json::{Value, json};

use super::runs::under;

fn experiment(scheduler: Algorithm, seed: u64) -> Experiment {
    under("batch-small", scheduler.name(), seed, &[])
}

fn header(mode: RunMode, experiment: &Experiment) -> LogHeader {
    LogHeader::new(mode, "a test".to_owned(), experiment.clone())
}

/// Makes a run in virtual time in this folder.
fn run(experiment: &Experiment, folder: &Path) {
    let header = header(RunMode::Virtual, experiment);
    virtual_results(&header, (None, None), folder, |_| {}).unwrap();
}

/// Changes the log of a run to say that it was a live run of this experiment.
fn call_live(experiment: &Experiment, folder: &Path) {
    let path = folder.join("events.jsonl");
    let log = fs::read_to_string(&path).unwrap();
    let (_, steps) = log.split_once('\n').unwrap();
    let first = serde_json::to_string(&header(RunMode::Live, experiment)).unwrap();
    fs::write(&path, format!("{first}\n{steps}")).unwrap();
}

fn assert_identical(twin: &TwinComparison, what: &str) {
    assert_eq!(twin.divergence, None, "{what}");
    for row in &twin.tasks {
        assert_eq!(row.sides.live, row.sides.twin, "{what}: job {}", row.number);
        assert!(row.sides.live.finished.is_some(), "{what}: job {}", row.number);
    }
    for count in &twin.counts {
        assert_eq!(count.sides.live, count.sides.twin, "{what}: {}", count.name);
    }
    assert_eq!((twin.makespan.live, twin.cost), (twin.makespan.twin, None), "{what}");
    assert!(twin.makespan.live.is_some(), "{what}");
}

#[test]
fn a_run_of_virtual_time_is_its_own_twin() {
    for scheduler in Algorithm::ALL {
        for seed in 1..4 {
            let folder = tempfile::tempdir().unwrap();
            run(&experiment(scheduler, seed), folder.path());
            let twin = twin_of(folder.path()).unwrap();
            let what = format!("{scheduler} {seed}");
            assert_identical(&twin, &what);
            assert_eq!(twin.tasks.len(), 40, "{what}");
            let count = |standing: &TaskStanding| {
                twin.tasks.iter().filter(|row| row.standing == *standing).count()
            };
            let alone = count(&TaskStanding::Undisturbed);
            assert_eq!(alone, twin.undisturbed.as_ref().unwrap().tasks(), "{what}");
            let below = twin.background.as_ref().map_or(0, |spread| spread.tasks());
            assert_eq!(count(&TaskStanding::Background), below, "{what}");
            assert_eq!(alone == 40, scheduler.promotion().is_none(), "{what}: {alone}");
        }
    }
}

/// The phases of a twin are as long as the log of the live run says; no summary is needed.
#[test]
fn the_twin_of_a_live_run_has_its_phases_and_no_chance() {
    let (folder, reasy) = (tempfile::tempdir().unwrap(), experiment(Algorithm::Reasy, 1));
    run(&reasy, folder.path());
    call_live(&reasy, folder.path());
    let path = folder.path().join("events.jsonl");
    let log = fs::read_to_string(&path).unwrap();
    let with_phases = |us: u64| {
        let mut first: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        first["live"] = json!({ "phase_us": us });
        let (_, steps) = log.split_once('\n').unwrap();
        fs::write(&path, format!("{first}\n{steps}")).unwrap();
        twin_of(folder.path()).unwrap()
    };
    let short = with_phases(100_000);
    assert_eq!(short, with_phases(100_000));
    let ends = |of: &TwinComparison| {
        of.tasks.iter().map(|row| row.sides.twin.finished).collect::<Vec<_>>()
    };
    assert_ne!(ends(&short), ends(&with_phases(4_000_000)));
    // Whoever is alone takes no other time for that.
    let alone = short.tasks.iter().filter(|row| row.standing == TaskStanding::Undisturbed);
    assert!(alone.clone().count() > 3 && alone.clone().any(|row| row.difference == Some(0.0)));
    // The chance of the model made the run that was called live; the twin has none.
    assert_ne!(short.divergence, None);
}

#[test]
fn on_one_tier_the_model_and_exact_processors_are_the_same() {
    let (folder, easy) = (tempfile::tempdir().unwrap(), experiment(Algorithm::Easy, 1));
    run(&easy, folder.path());
    call_live(&easy, folder.path());
    assert_identical(&twin_of(folder.path()).unwrap(), "easy");
}

/// In a live run that its user ended, the jobs that had ended are compared, and the others are named.
#[test]
fn jobs_that_a_run_left_are_said() {
    let (folder, easy) = (tempfile::tempdir().unwrap(), experiment(Algorithm::Easy, 1));
    run(&easy, folder.path());
    call_live(&easy, folder.path());
    let path = folder.path().join("events.jsonl");
    let log = fs::read_to_string(&path).unwrap();
    let half: Vec<_> = log.lines().take(log.lines().count() / 2).collect();
    fs::write(&path, half.join("\n") + "\n").unwrap();
    let twin = twin_of(folder.path()).unwrap();
    let left = twin.tasks.iter().filter(|row| row.sides.live.finished.is_none()).count();
    assert!(left > 5 && left < 35, "{left}");
    assert_eq!(twin.ended_early.live, Some(format!("{} of 40 jobs ended", 40 - left)));
    assert_eq!((twin.ended_early.twin.as_ref(), twin.makespan.live), (None, None));
    let spread = twin.undisturbed.as_ref().unwrap();
    assert_eq!((spread.tasks(), spread.worst()), (40 - left, 0.0));
    let words = twin.tasks.iter().filter(|row| match &row.standing {
        TaskStanding::Disturbed(why) => why == "not finished live" || why == "never started live",
        _ => false,
    });
    assert_eq!(words.count(), left);
    fs::write(&path, log.lines().next().unwrap().to_owned() + "\n").unwrap();
    assert!(matches!(twin_of(folder.path()), Err(TwinError::NeverBegan(_))));
}
