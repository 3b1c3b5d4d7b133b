use super::*;
use crate::calibration::table::tests::{calibration, cell};
use crate::calibration::{CalibrationCell, CellOutcome};

const WANTED: WantedErrors = WantedErrors { worst: 0.05, mean: 0.005 };

/// Demand of an experiment with a load of 0.9 and a speed-up of 30, on a host that holds the experiment at any
/// speed-up.
const DEMAND: ExperimentDemand = ExperimentDemand {
    load: 0.9,
    shortest_s: 119.0,
    reserve: 0.25,
    wanted: WANTED,
    admitted: Some(1e6),
    speedup: 30.0,
    said: SpeedupSaid::Experiment,
    no_faster: false,
};

/// A calibration with these worst errors at a load of 1, by speed-up; mean errors are a twentieth of them.
fn measured(cells: &[(f64, f64)]) -> Calibration {
    calibration(cells.iter().map(|&(speedup, worst)| cell(speedup, 1.0, worst)).collect())
}

fn chosen(cells: &[(f64, f64)], demand: ExperimentDemand) -> SpeedupVerdict {
    let found = StoredCalibration::Current(measured(cells).into());
    choose(found, demand.speedup, demand.said, || Some(demand))
}

fn taken(choice: &SpeedupVerdict) -> (f64, &str) {
    match choice {
        SpeedupVerdict::Run(taken) => (taken.speedup, &taken.why),
        SpeedupVerdict::Refuse(why) => panic!("refused: {why}"),
    }
}

fn speedup(cells: &[(f64, f64)], demand: ExperimentDemand) -> f64 {
    taken(&chosen(cells, demand)).0
}

const STEEP: [(f64, f64); 6] =
    [(10.0, 0.01), (20.0, -0.02), (30.0, 0.04), (50.0, -0.09), (100.0, 0.3), (200.0, -0.8)];
const UNSAID: ExperimentDemand = ExperimentDemand { said: SpeedupSaid::Nobody, ..DEMAND };

#[test]
fn the_highest_within_what_is_wanted_is_taken() {
    assert_eq!(speedup(&STEEP, UNSAID), 30.0);
    let stricter = WantedErrors { worst: 0.02, mean: 0.005 };
    assert_eq!(speedup(&STEEP, ExperimentDemand { wanted: stricter, ..UNSAID }), 20.0);
    // Here it is the mean that binds: a twentieth of the worst.
    let unbiased = WantedErrors { worst: 1.0, mean: 0.0009 };
    assert_eq!(speedup(&STEEP, ExperimentDemand { wanted: unbiased, ..UNSAID }), 10.0);
    // What was refused when it was measured is not within anything.
    let mut table = measured(&STEEP[..3]);
    let why = "it would be given 11 µs".to_owned();
    table.add(CalibrationCell { came: CellOutcome::Refused { why }, ..cell(50.0, 1.0, 0.0) });
    let choice =
        choose(StoredCalibration::Current(table.into()), 30.0, UNSAID.said, || Some(UNSAID));
    let (speedup, why) = taken(&choice);
    assert_eq!(speedup, 30.0);
    assert!(why.contains("at 50 it can't be run"), "{why}");
}

#[test]
fn beyond_one_that_errs_none_is_taken() {
    let bumpy = [(10.0, 0.01), (20.0, 0.06), (30.0, 0.03), (50.0, 0.2)];
    assert_eq!(speedup(&bumpy, UNSAID), 10.0);
    let choice = chosen(&bumpy, DEMAND);
    let (speedup_, why) = taken(&choice);
    assert_eq!(speedup_, 10.0);
    assert!(why.contains("; at 20 +6.0 % at worst"), "{why}");
    // Measured again without whatever disturbed it, it is in nobody's way.
    assert_eq!(speedup(&[(10.0, 0.01), (20.0, 0.02), (30.0, 0.03), (50.0, 0.2)], UNSAID), 30.0);
    let lowest = [(10.0, 0.08), (20.0, 0.03)];
    let SpeedupVerdict::Refuse(why) = chosen(&lowest, DEMAND) else { panic!("run") };
    assert!(why.contains("10: +8.0 % at worst") && why.contains("20: +3.0 % at worst"), "{why}");
}

#[test]
fn what_the_experiment_says_is_the_most() {
    let exact = STEEP.map(|(speedup, worst)| (speedup, worst / 100.0));
    let choice = chosen(&exact, DEMAND);
    let (speedup_, why) = taken(&choice);
    assert_eq!(speedup_, 30.0);
    assert!(why.starts_with("as in the experiment: at load 1, +0.0 %"), "{why}");
    // One that was not measured is as exact as the next higher that was.
    assert_eq!(speedup(&exact, ExperimentDemand { speedup: 25.0, ..DEMAND }), 25.0);
    assert_eq!(speedup(&STEEP, ExperimentDemand { speedup: 40.0, ..DEMAND }), 30.0);
    assert_eq!(speedup(&exact, ExperimentDemand { speedup: 500.0, ..DEMAND }), 200.0);
    // Nobody said so, but nobody knows what fits beyond.
    assert_eq!(speedup(&exact, ExperimentDemand { no_faster: true, ..UNSAID }), 30.0);
    assert_eq!(speedup(&exact, UNSAID), 200.0);
}

#[test]
fn what_the_host_holds_is_the_most() {
    let exact = STEEP.map(|(speedup, worst)| (speedup, worst / 100.0));
    assert_eq!(speedup(&exact, ExperimentDemand { admitted: Some(143.0), ..UNSAID }), 143.0);
    assert_eq!(speedup(&exact, ExperimentDemand { admitted: Some(4.0), ..DEMAND }), 4.0);
    // Below all that was measured there is no ground to refuse it.
    let bad = [(10.0, 0.5)];
    let low = chosen(&bad, ExperimentDemand { admitted: Some(4.0), ..DEMAND });
    assert_eq!(taken(&low).0, 4.0);
    assert!(taken(&low).1.contains("no speed-up that low was measured"), "{low:?}");
    assert_eq!(speedup(&bad, ExperimentDemand { speedup: 5.0, ..DEMAND }), 5.0);
}

#[test]
fn a_lower_one_than_the_experiments_is_taken_with_the_reason() {
    let steeper = STEEP.map(|(speedup, worst)| (speedup, worst * 2.0));
    let choice = chosen(&steeper, DEMAND);
    let (speedup, why) = taken(&choice);
    assert_eq!(speedup, 20.0);
    for part in ["-4.0 % at worst", "load 0.90", "2026-11-22", "at 30 +8.0 %", "at most 5 % and"] {
        assert!(why.contains(part), "'{part}' is not in: {why}");
    }
}

#[test]
fn none_is_refused_with_the_arithmetic() {
    let bad = STEEP.map(|(speedup, worst)| (speedup, worst * 10.0));
    let SpeedupVerdict::Refuse(why) = chosen(&bad, DEMAND) else { panic!("run") };
    for part in [
        "load 0.90, measured at 1",
        "10: +10.0 % at worst and +0.50 % on average; 20: -20.0 %",
        "30: +40.0 %",
        "at most 5 % and 0.5 % on average are wanted",
        "--set live.worst-error=X",
        "--speedup X",
        "dormouse calibrate --speedups 5",
        "more cores",
    ] {
        assert!(why.contains(part), "'{part}' is not in: {why}");
    }
    assert!(!why.contains('\n') && !why.contains("50:"), "{why}");
}

#[test]
fn errors_of_shorter_tasks_are_a_larger_part_of_them() {
    let half = ExperimentDemand { shortest_s: 55.0, ..UNSAID };
    assert_eq!(speedup(&STEEP, half), 20.0);
    assert_eq!(speedup(&STEEP, ExperimentDemand { shortest_s: 1_000.0, ..UNSAID }), 30.0);
}

#[test]
fn what_was_asked_for_is_obeyed() {
    let asked = |speedup| ExperimentDemand { speedup, said: SpeedupSaid::CommandLine, ..DEMAND };
    assert_eq!(taken(&chosen(&STEEP, asked(25.0))), (25.0, "as asked for"));
    let choice = chosen(&STEEP, asked(60.0));
    let (speedup, why) = taken(&choice);
    assert_eq!(speedup, 60.0);
    for part in ["as asked for, though at 100, at load 1, +30.0 % at worst", "at most 5 %"] {
        assert!(why.contains(part), "'{part}' is not in: {why}");
    }
    // Beyond all that was measured, it is at least as bad as the highest.
    assert!(taken(&chosen(&STEEP, asked(900.0))).1.contains("though at 200"));
}

#[test]
fn without_a_calibration_of_this_host_and_load_it_is_the_experiments() {
    let none = || panic!("it is not asked for");
    let choice = choose(StoredCalibration::None, 30.0, SpeedupSaid::Experiment, none);
    let (speedup, why) = taken(&choice);
    assert_eq!(speedup, 30.0);
    assert!(why.contains("as in the experiment: this host is not calibrated"), "{why}");
    let choice = choose(StoredCalibration::None, 30.0, SpeedupSaid::CommandLine, none);
    assert_eq!(taken(&choice).1, "as asked for");
    let stale = StoredCalibration::Unusable("the calibration is stale".into());
    let choice = choose(stale, 30.0, SpeedupSaid::Nobody, none);
    assert_eq!(taken(&choice).1, "the standard one: the calibration is stale");

    // An empty one, a load beyond it, less kept free than it was measured with.
    for (cells, demand, why) in [
        (&[][..], DEMAND, "up to a load of 0, and this one is 0.90"),
        (
            &STEEP[..],
            ExperimentDemand { load: 1.31, ..DEMAND },
            "`dormouse calibrate --loads 1.35`",
        ),
        (
            &STEEP[..],
            ExperimentDemand { reserve: 0.1, ..DEMAND },
            "25 % of its cores kept free, not 10 %",
        ),
    ] {
        let choice = chosen(cells, demand);
        assert_eq!(taken(&choice).0, 30.0);
        assert!(taken(&choice).1.contains(why), "'{why}' is not in {choice:?}");
    }
    // What can't be held at any speed-up is for the host to refuse.
    let found = StoredCalibration::Current(measured(&STEEP).into());
    let choice = choose(found, 30.0, SpeedupSaid::Experiment, || None);
    assert_eq!(taken(&choice), (30.0, "as in the experiment"));
}

/// A run is continued only if its header, read and written again, is still the same.
#[test]
fn a_choice_is_the_same_after_it_was_read_from_a_log() {
    let odd = [(10.0, -0.009_914_997_550_135_39), (20.0, 1.0 / 3.0), (30.0, 0.1 + 0.2)];
    let SpeedupVerdict::Run(choice) = chosen(&odd, ExperimentDemand { speedup: 10.0, ..DEMAND })
    else {
        panic!("refused")
    };
    let text = serde_json::to_string(&choice).unwrap_or_default();
    let in_log: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    let read: Option<SpeedupChoice> = serde_json::from_str(&text).ok();
    assert!(in_log.is_some());
    assert_eq!(read.and_then(|read| serde_json::to_value(read).ok()), in_log);
}
