//! The command `dormouse calibrate`.

use std::path::Path;

use dormouse_coordinator::ProcessSignals;
use dormouse_host::calibration::{
    Calibration, HostIdentity, StoredCalibration, WantedErrors, default_path, find, write,
};
use dormouse_host::doctor::{ExaminationDepth, Finding, FindingState, examine};
use serde_json::json;

use super::args::CalibrateArgs;
use super::failure::Failure;
use super::print::print;
use crate::calibrate::{Bench, CalibrateError, CellPlan, Measured, conditions};
use crate::said;
use dormouse_report::calibration::table;

/// Message for a calibration that was ended by the user.
const TOLD: &str = "the user ended it";

/// Measures this host, and saves the figures of each cell as soon as they are measured.
pub(crate) fn run(args: &CalibrateArgs) -> Result<(), Failure> {
    let path = args.out.clone().unwrap_or_else(default_path);
    let host = HostIdentity::of_this();
    let plans = plans(args, host.millicores)?;
    let diagnosis = examine(ExaminationDepth::Prove);
    if let Some(missing) = diagnosis.missing() {
        let fix = diagnosis.lacking(true).and_then(|finding| finding.fix.as_ref());
        let fix = fix.map(|fix| format!("; fix: {fix}")).unwrap_or_default();
        let more = "`dormouse doctor` says more";
        return Err(Failure::Broken(format!(
            "this host can't be calibrated: {missing}{fix}; {more}"
        )));
    }
    let say = |text: String| {
        if !args.say.quiet {
            said::note(&text);
        }
    };
    for Finding { name, state, found, fix, .. } in &diagnosis.findings {
        if let (FindingState::Doubtful, "free CPU", Some(fix)) = (state, name.as_ref(), fix) {
            say(format!("{found}: {fix}"));
        }
    }
    let mut former = None;
    match find(&path, || host.clone()) {
        StoredCalibration::Current(found) => former = Some(*found),
        StoredCalibration::None => {}
        StoredCalibration::Unusable(why) => say(format!("what was there is replaced: {why}")),
    }
    let bench = Bench::beside(&path, args.repeat)?;
    let seconds: f64 = plans.iter().map(|plan| bench.estimate_s(plan)).sum::<Result<_, _>>()?;
    let cells = if plans.len() == 1 { "cell" } else { "cells" };
    say(format!(
        "{} {cells}, some {:.0} s; ctrl-c ends it and keeps what was measured in {}",
        plans.len(),
        (seconds / 10.0_f64).round().max(1.0) * 10.0,
        path.display()
    ));
    super::log::begin(false, None);
    let calibration = Calibration::begin(host, conditions(), former);
    let (calibration, ended) = measure(args, &plans, &bench, calibration, &path)?;
    show(args, &calibration, &path)?;
    let Some((done, why)) = ended else { return Ok(()) };
    Err(Failure::Broken(format!(
        "calibration ended after {done} of {} cells: {why}; these are kept in {}",
        plans.len(),
        path.display()
    )))
}

/// The cells to measure: the highest load first, because its result also limits lower loads.
fn plans(args: &CalibrateArgs, millicores: u32) -> Result<Vec<CellPlan>, Failure> {
    let (speedups, loads): (&[f64], &[f64]) = match args.quick {
        false => (&[10.0, 20.0, 30.0, 50.0, 100.0, 200.0], &[0.25, 0.5, 1.0]),
        true => (&[20.0, 50.0, 100.0], &[0.5, 1.0]),
    };
    let sorted = |given: &[f64], standard: &[f64]| {
        let mut list = if given.is_empty() { standard.to_vec() } else { given.to_vec() };
        list.sort_by(f64::total_cmp);
        list.dedup();
        list
    };
    let (speedups, loads) = (sorted(&args.speedups, speedups), sorted(&args.loads, loads));
    let cells = loads.iter().rev().flat_map(|&load| speedups.iter().map(move |&s| (s, load)));
    let plan = |(speedup, load)| CellPlan::new(speedup, load, millicores, args.quick);
    Ok(cells.map(plan).collect::<Result<_, _>>()?)
}

/// Measures one cell after the other, and writes each to the file. Also returns the number of measured cells and the
/// reason, if the calibration was ended early.
fn measure(
    args: &CalibrateArgs,
    plans: &[CellPlan],
    bench: &Bench,
    mut calibration: Calibration,
    file: &Path,
) -> Result<(Calibration, Option<(usize, String)>), Failure> {
    let stop = ProcessSignals::of_this_process()
        .map_err(|error| Failure::Broken(format!("can't listen for signals: {error}")))?;
    let mut progress = args.say.progress(plans.len(), "cells");
    for (n, plan) in plans.iter().enumerate() {
        if stop.any_came() {
            return Ok((calibration, Some((n, TOLD.to_owned()))));
        }
        let CellPlan { speedup, load, .. } = *plan;
        let (cell, cells) = (n as u64, plans.len() as u64);
        let told = || stop.any_came().then(|| TOLD.to_owned());
        let measured = bench.measure(plan, &told, &mut |now| {
            let (done, of) = (now.completed, now.tasks);
            let how = format!("speed-up {speedup}, load {load}: {done}/{of} tasks");
            progress.show(cell, cells, &how, None);
        });
        match measured {
            Ok(Measured::Cell(cell)) => {
                calibration.add(cell);
                write(file, &calibration).map_err(CalibrateError::from)?;
            }
            Ok(Measured::Ended(why)) => return Ok((calibration, Some((n, why)))),
            // A terminal tells the worker, too: without one the run breaks.
            Err(_) if stop.any_came() => return Ok((calibration, Some((n, TOLD.to_owned())))),
            Err(error) => return Err(error.into()),
        }
    }
    Ok((calibration, None))
}

fn show(args: &CalibrateArgs, calibration: &Calibration, path: &Path) -> Result<(), Failure> {
    let wanted = WantedErrors { worst: args.error, mean: args.mean };
    if args.say.json {
        let highest =
            |load: f64| json!({ "load": load, "speedup": calibration.highest(load, &wanted) });
        let highest: Vec<_> = calibration.loads().into_iter().map(highest).collect();
        let mut all = json!(calibration);
        all["wanted"] = json!({ "worst": wanted.worst, "mean": wanted.mean });
        all["highest"] = json!(highest);
        return print(&format!("{all:#}"));
    }
    if args.say.quiet {
        return Ok(());
    }
    print(&table(calibration).to_text(super::terminal::stdout()))?;
    for line in calibration.highest_in_words(&wanted) {
        print(&format!("  {line}"))?;
    }
    print(&format!("  kept in {}", path.display()))
}
