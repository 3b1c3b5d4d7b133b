//! `dormouse calibrate`.

use dormouse_coordinator::Signals;
use dormouse_host::calibration::{
    Calibration, CalibrationError, Found, HostIdentity, Wanted, default_path, find, write,
};
use dormouse_host::doctor::{State, examine};
use serde_json::json;

use super::args::CalibrateArgs;
use super::failure::Failure;
use super::print::print;
use crate::calibrate::{Bench, CalibrateError, CellPlan, Measured, conditions};
use crate::calibration::table;

/// Why a calibration ends that was told to.
const TOLD: &str = "the user ended it";

/// Measures, and keeps every cell as soon as it is there.
pub(crate) fn run(args: &CalibrateArgs) -> Result<(), Failure> {
    let path = args.out.clone().unwrap_or_else(default_path);
    let host = HostIdentity::of_this();
    let plans = plans(args, host.millicores)?;
    let diagnosis = examine();
    if let Some(missing) = diagnosis.missing() {
        return Err(Failure::Broken(format!("this host can't be calibrated: {missing}")));
    }
    let say = |text: String| {
        if !args.say.quiet {
            eprintln!("dormouse: {text}");
        }
    };
    let doubtful = diagnosis.findings.iter().filter(|f| f.state == State::Doubtful);
    for finding in doubtful.filter(|f| f.fix.is_some() && f.name == "free CPU") {
        let fix = finding.fix.as_deref().unwrap_or_default();
        say(format!("{}: {fix}", finding.found));
    }
    let former = match find(&path, || host.clone()) {
        Found::Current(former) => Some(*former),
        Found::None => None,
        Found::Unusable(why) => {
            say(format!("what was there is replaced: {why}"));
            None
        }
    };
    let bench = Bench::beside(&path, args.repeat)?;
    let mut seconds = 0.0;
    for plan in &plans {
        seconds += bench.estimate_s(plan)?;
    }
    let cells = if plans.len() == 1 { "cell" } else { "cells" };
    say(format!(
        "{} {cells}, some {:.0} s; ctrl-c ends it and keeps what was measured in {}",
        plans.len(),
        (seconds / 10.0_f64).round().max(1.0) * 10.0,
        path.display()
    ));
    super::log::begin(false);
    let calibration = Calibration::begin(host, conditions(), former);
    let (calibration, ended) =
        measure(args, &plans, &bench, calibration, |calibration| write(&path, calibration))?;
    show(args, &calibration, &path)?;
    match ended {
        None => Ok(()),
        Some((done, why)) => Err(Failure::Broken(format!(
            "calibrating was ended after {done} of {} cells: {why}; these are kept in {}",
            plans.len(),
            path.display()
        ))),
    }
}

/// What is to be measured: the highest load first, because what it shows holds for lower ones.
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

/// Measures cell by cell; also gives after how many it was ended and why, if it was.
fn measure(
    args: &CalibrateArgs,
    plans: &[CellPlan],
    bench: &Bench,
    mut calibration: Calibration,
    mut keep: impl FnMut(&Calibration) -> Result<(), CalibrationError>,
) -> Result<(Calibration, Option<(usize, String)>), Failure> {
    let stop = Signals::of_this_process()
        .map_err(|error| Failure::Broken(format!("cannot listen for signals: {error}")))?;
    let mut progress = args.say.progress(plans.len(), "cells");
    let mut ended = None;
    for (n, plan) in plans.iter().enumerate() {
        if stop.any() {
            ended = Some((n, TOLD.to_owned()));
            break;
        }
        let CellPlan { speedup, load, .. } = *plan;
        let (cell, cells) = (n as u64, plans.len() as u64);
        let told = || stop.any().then(|| TOLD.to_owned());
        let measured = bench.measure(plan, &told, &mut |now| {
            let (done, of) = (now.completed, now.tasks);
            let how = format!("speed-up {speedup}, load {load}: {done}/{of} tasks");
            progress.show(cell, cells, &how, None);
        });
        match measured {
            Ok(Measured::Cell(cell)) => {
                calibration.add(cell);
                keep(&calibration)?;
            }
            Ok(Measured::Ended(why)) => ended = Some((n, why)),
            // A terminal tells the worker, too: without one the run breaks.
            Err(_) if stop.any() => ended = Some((n, TOLD.to_owned())),
            Err(error) => return Err(error.into()),
        }
        if ended.is_some() {
            break;
        }
    }
    drop(progress);
    Ok((calibration, ended))
}

fn show(
    args: &CalibrateArgs,
    calibration: &Calibration,
    path: &std::path::Path,
) -> Result<(), Failure> {
    let wanted = Wanted { worst: args.error, mean: args.mean };
    if args.say.json {
        let highest =
            |load: f64| json!({ "load": load, "speedup": calibration.highest(load, &wanted) });
        let highest: Vec<_> = calibration.loads().into_iter().map(highest).collect();
        let mut all = json!(calibration);
        if let Some(object) = all.as_object_mut() {
            object.insert("wanted".into(), json!({ "worst": wanted.worst, "mean": wanted.mean }));
            object.insert("highest".into(), json!(highest));
        }
        return print(&format!("{all:#}"));
    }
    if args.say.quiet {
        return Ok(());
    }
    let mut text = table(calibration).to_text(super::terminal::stdout());
    for line in calibration.highest_in_words(&wanted) {
        text += &format!("\n  {line}");
    }
    print(&text)?;
    print(&format!("  kept in {}", path.display()))
}

impl From<CalibrationError> for Failure {
    fn from(error: CalibrationError) -> Self {
        Self::BadInput(crate::chain::chain(&error))
    }
}

impl From<CalibrateError> for Failure {
    fn from(error: CalibrateError) -> Self {
        match error {
            CalibrateError::Live(error) => error.into(),
            error if error.is_bad_input() => Self::BadInput(crate::chain::chain(&error)),
            error => Self::Broken(crate::chain::chain(&error)),
        }
    }
}
