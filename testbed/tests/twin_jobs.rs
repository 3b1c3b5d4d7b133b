//! A run of parallel jobs beside its twin.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::fs;
use std::path::Path;

use dormouse::batch::{BatchExperiment, BatchHeader, Jobs, virtual_run};
use dormouse::experiment::{Opened, Override, Source, open};
use dormouse::live::{Consolidation, measured_sharing};
use dormouse::output::Mode;
use dormouse::twin::{Standing, Twin, TwinError, twin_of};
use dormouse_batch::{Algorithm, Sharing};
use dormouse_units::Span;
use serde_json::json;

fn experiment(scheduler: Algorithm, seed: u64) -> BatchExperiment {
    let overrides = vec![
        Override::text("--scheduler", "scheduler.name", scheduler.name()),
        Override::set(&format!("seed={seed}")).unwrap(),
    ];
    let source = Source { experiment: Some("batch-small"), overrides, ..Source::default() };
    match open(&source).unwrap() {
        Opened::Batch(batch) => *batch,
        Opened::Bag(_) => panic!("batch-small is no batch"),
    }
}

fn header(mode: Mode, experiment: &BatchExperiment) -> BatchHeader {
    let machine = Jobs::open(experiment).unwrap().machine();
    BatchHeader::new(mode, "a test".to_owned(), machine, experiment.clone())
}

/// A run in virtual time in this folder.
fn run(experiment: &BatchExperiment, folder: &Path) {
    let jobs = Jobs::open(experiment).unwrap();
    virtual_run(&header(Mode::Virtual, experiment), jobs, folder).unwrap();
}

/// Makes its log say that it was a live run of this experiment.
fn call_live(experiment: &BatchExperiment, folder: &Path) {
    let path = folder.join("events.jsonl");
    let log = fs::read_to_string(&path).unwrap();
    let (_, steps) = log.split_once('\n').unwrap();
    let first = serde_json::to_string(&header(Mode::Live, experiment)).unwrap();
    fs::write(&path, format!("{first}\n{steps}")).unwrap();
}

fn assert_identical(twin: &Twin, what: &str) {
    assert_eq!(twin.parting, None, "{what}");
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
            let count = |standing: &Standing| {
                twin.tasks.iter().filter(|row| row.standing == *standing).count()
            };
            let alone = count(&Standing::Undisturbed);
            assert_eq!(alone, twin.undisturbed.as_ref().unwrap().tasks(), "{what}");
            let below = twin.background.as_ref().map_or(0, |spread| spread.tasks());
            assert_eq!(count(&Standing::Background), below, "{what}");
            assert_eq!(alone == 40, scheduler.promotion().is_none(), "{what}: {alone}");
        }
    }
}

/// A live run says in its summary what sharing cost in it: its twin shares as it did.
#[test]
fn a_live_run_s_twin_shares_as_was_measured_in_it() {
    let measured = (0.03, vec![(1, 0.7), (1, 0.8), (4, 0.5), (6, 0.55)]);
    let mut consolidation = Consolidation::default();
    consolidation.foreground_mean_loss = measured.0;
    consolidation.background_utilisations.clone_from(&measured.1);
    let summary = json!({ "consolidation": {
        "foreground_mean_loss": measured.0,
        "background_utilisations": measured.1,
        "migration_mean_s": 0.5,
    } });
    let as_written = experiment(Algorithm::Measy, 2);
    let mut as_measured = as_written.clone();
    as_measured.sharing = measured_sharing(&[&consolidation]);
    as_measured.scheduler.migration_cost = Span::from_secs(30);
    assert_ne!(as_measured.sharing, Sharing::default());

    // What a live run would have come to whose host shares exactly so.
    let folder = tempfile::tempdir().unwrap();
    run(&as_measured, folder.path());
    call_live(&as_written, folder.path());
    let refused = twin_of(folder.path()).unwrap_err();
    assert!(matches!(refused, TwinError::NotMeasured { .. }), "{refused}");
    fs::write(folder.path().join("summary.json"), "{}").unwrap();
    assert!(matches!(twin_of(folder.path()), Err(TwinError::NotMeasured { .. })));
    fs::write(folder.path().join("summary.json"), summary.to_string()).unwrap();
    let twin = twin_of(folder.path()).unwrap();
    assert_identical(&twin, "as measured");
    assert!(twin.counts.iter().any(|count| count.name == "migrations" && count.sides.twin > 0));
}

#[test]
fn one_tier_shares_nothing_and_needs_no_measurement() {
    let (folder, easy) = (tempfile::tempdir().unwrap(), experiment(Algorithm::Easy, 1));
    run(&easy, folder.path());
    call_live(&easy, folder.path());
    assert_identical(&twin_of(folder.path()).unwrap(), "easy");
}

/// A live run that its user ended: what had ended by then is compared.
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
        Standing::Disturbed(why) => why == "not finished live" || why == "never started live",
        _ => false,
    });
    assert_eq!(words.count(), left);
    fs::write(&path, log.lines().next().unwrap().to_owned() + "\n").unwrap();
    assert!(matches!(twin_of(folder.path()), Err(TwinError::NeverBegan(_))));
}
