//! `dormouse check`, `replay`, `explain` and `twin`: questions about a recorded run, finished or killed.

use std::path::Path;

use dormouse_analysis::RuleViolation;
use dormouse_experiment::command_line;
use serde_json::json;

use super::args::{RecordedArgs, TwinArgs};
use super::failure::Failure;
use super::print::show;
use super::{run_folders, terminal};
use crate::said;
use dormouse_report::binding::{resealed, unbound, unsealed};
use dormouse_report::check::{CheckResult, check as check_rules};
use dormouse_report::explain::{ask_for, explain as explain_one};
use dormouse_report::output::{OutputError, RunLog, is_unfinished, write_in};
use dormouse_report::replay::{ReplayError, ReplayResult, recorded_digest, replay as play_again};
use dormouse_report::twin::{csv, table, twin_of};

/// Checks a run against the rules: status 1 if it breaks one.
pub(crate) fn check(RecordedArgs { dir, json }: &RecordedArgs) -> Result<(), Failure> {
    let ended = !is_unfinished(dir);
    let log = read_log(dir)?;
    let CheckResult { steps, jobs, requests, violations } =
        check_rules(&log, ended).map_err(not_again(dir))?;
    let unbound = unbound(dir, &log, ended).map_err(not_again(dir))?;
    let found =
        |v: &RuleViolation| json!({ "step": v.seq, "at_s": v.at.as_secs_f64(), "what": v.what });
    let found: Vec<_> = violations.iter().map(found).collect();
    let mut all = json!({ "events": steps, "jobs": jobs, "ended": ended, "violations": found });
    all["unbound"] = json!(unbound);
    all["resealed"] = json!(resealed(dir));
    let unsealed = unsealed(&log);
    all["unsealed"] = json!(unsealed);
    if let Some(requests) = requests {
        all["requests"] = json!(requests);
    }
    show(*json, all, || match violations.as_slice() {
        _ if !violations.is_empty() || !unbound.is_empty() => {
            let broken = violations.iter().map(ToString::to_string);
            broken.chain(unbound.iter().cloned()).collect::<Vec<_>>().join("\n")
        }
        _ => {
            let of = [(jobs, "jobs"), (requests, "requests")];
            let of = of.iter().filter_map(|(n, what)| Some(format!("{} {what}", (*n)?)));
            let of = of.collect::<Vec<_>>().join(" and ");
            let jobs = if of.is_empty() { of } else { format!(" of {of}") };
            let so_far = if ended { "" } else { " so far; the run did not come to its end" };
            let unsealed = unsealed.map(|why| format!("; {why}")).unwrap_or_default();
            format!("no rule broken in {steps} events{jobs}{so_far}{unsealed}")
        }
    })?;
    match (violations.len(), unbound.len()) {
        (0, 0) => Ok(()),
        (0, n) => Err(Failure::Broken(format!(
            "{}: {n} differences from what the run left",
            dir.display()
        ))),
        (n, _) => Err(Failure::Broken(format!("{}: {n} violations", dir.display()))),
    }
}

/// Recomputes the decisions of a run; the command's status is 1 if one differs.
pub(crate) fn replay(RecordedArgs { dir, json }: &RecordedArgs) -> Result<(), Failure> {
    let log = read_log(dir)?;
    let ReplayResult { steps, decisions, digest, difference } =
        play_again(&log).map_err(not_again(dir))?;
    let (difference, recorded_digest) = (difference.as_deref(), recorded_digest(dir)?);
    let is_other = recorded_digest.as_ref().is_some_and(|recorded| *recorded != digest);
    let wrong = match difference {
        Some((recorded, _)) => Some(format!("step {} comes out otherwise", recorded.seq)),
        None => is_other.then(|| "the decisions come out otherwise".to_owned()),
    };
    let all = json!({
        "steps": steps,
        "decisions": decisions,
        "digest": digest,
        "recorded_digest": recorded_digest,
        "difference": difference,
        "has_programs": log.header.experiment.has_programs(),
    });
    show(*json, all, || {
        if let Some((recorded, again)) = difference {
            let json = |step| serde_json::to_string(step).unwrap_or_default();
            format!("recorded: {}\nreplayed: {}", json(recorded), json(again))
        } else if let Some(recorded) = recorded_digest.filter(|_| wrong.is_some()) {
            format!("recorded: {recorded}\nreplayed: {digest}")
        } else {
            // Nobody can ask a program again: that it decided so is not shown.
            let of_programs = match log.header.experiment.has_programs() {
                true => "; what a program decided was taken from the log",
                false => "",
            };
            format!("{steps} steps, {decisions} decisions: all as recorded{of_programs}\n{digest}")
        }
    })?;
    let Some(what) = wrong else { return Ok(()) };
    Err(Failure::Broken(format!(
        "{}: {what}; it was made by version {}, this is {}",
        dir.display(),
        log.header.dormouse,
        env!("CARGO_PKG_VERSION")
    )))
}

/// Explains what happened to a task, VM or job.
pub(crate) fn explain(of: &RecordedArgs, what: &str) -> Result<(), Failure> {
    let RecordedArgs { dir, json } = of;
    if !run_folders::is_a_run(dir) && run_folders::is_a_run(Path::new(what)) {
        let line = command_line(["dormouse", "explain", what, &dir.to_string_lossy()]);
        let why = "is no folder of a run; the folder comes first";
        return Err(Failure::BadInput(format!("{} {why}: {line}", dir.display())));
    }
    let log = read_log(dir)?;
    let told = explain_one(&log, what).map_err(not_again(dir))?.ok_or_else(|| {
        let experiment = &log.header.experiment;
        let of_jobs = experiment.scheduler.is_none() && experiment.jobs.is_some();
        let job = if of_jobs { "job " } else { "" };
        Failure::BadInput(format!(
            "{}: there is no {job}'{what}' in this run; ask for {}",
            dir.display(),
            ask_for(experiment)
        ))
    })?;
    show(*json, &told, || told.to_string())
}

/// Compares a live run with its twin; the command's status is 0 whatever the result.
pub(crate) fn twin(args: &TwinArgs) -> Result<(), Failure> {
    run_folders::check(&args.dir)?;
    let twin = twin_of(&args.dir)?;
    if let Some(out) = &args.out {
        if out.is_file() {
            return Err(OutputError::is_a_file(out).into());
        }
        write_in(out, "twin.csv", csv(&twin))?;
    }
    show(args.json, &twin, || table(&twin, terminal::stdout(), args.all))
}

/// Reads the log of a run's folder. A torn last line is reported on standard error; in a finished run, whose log was
/// once complete, it is an error.
pub(super) fn read_log(dir: &Path) -> Result<RunLog, Failure> {
    run_folders::check(dir)?;
    let log = RunLog::read(dir)?;
    log.header.check_inputs()?;
    if !log.torn {
        return Ok(log);
    }
    if !is_unfinished(dir) {
        let log = dir.join(dormouse_log::FILE);
        return Err(Failure::BadInput(format!(
            "{}: its last line is incomplete, though the run had ended; give the folder of a run \
             whose files are unchanged",
            log.display()
        )));
    }
    let what = "the last line of its log is torn, as a kill leaves it, and is left out";
    said::note(&format!("{}: {what}", dir.display()));
    Ok(log)
}

/// The failure for a folder whose run can't be repeated.
pub(super) fn not_again(dir: &Path) -> impl FnOnce(ReplayError) -> Failure {
    move |error| match error {
        ReplayError::Jobs(error) => error.into(),
        error @ ReplayError::Scheduler(_) => {
            Failure::BadInput(format!("{}: {error}", dir.display()))
        }
    }
}
