//! Checks that the folder of a run is unchanged since the run: the log against its seal, the header
//! against the submitted one, checked answers, and every other file against the log that it is made
//! from.

mod left_files;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use dormouse_analysis::{Evidence, HostEvidence, RunMode};
use dormouse_engine::drive::WaitingFollowers;
use dormouse_log::{Head, LogReader, Resealed, Seal};
use dormouse_model::{Effect, Event, ProgramEnd, Report, Step, Submission};
use dormouse_tasks::answer::{self, Verdict};
use dormouse_tasks::own::TaskProgram;
use dormouse_units::{HostId, TaskId, VmId};
use dormouse_vm::ideal::phases_of;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::jobs::{JobsError, refused_io};
use crate::output::{LiveHeader, LogHeader, OutputError, RunLog, StagedFolder, live_header};
use crate::replay::{ReplayError, replay};
use crate::results::remade_results;
use crate::run_view::RunResults;
use crate::verdict::live_results;
use left_files::left_files;

/// Files of a run's folder that are not made from the log's steps alone: the seal and the log itself.
const NOT_COMPARED: [&str; 2] = [dormouse_log::SEAL, dormouse_log::FILE];
/// Files that commands may add to the folder of a finished run.
const LATER: [&str; 2] = ["http", "twin.csv"];
/// Greatest length of a line that is quoted in the description of a difference, in characters.
const LONGEST: usize = 80;

/// The reason for which the folder can't be checked against its seal, if there is one.
#[must_use]
pub fn unsealed(log: &RunLog) -> Option<&'static str> {
    let why = "its log has no hash chain, as those of older versions have none: whether something in it or \
               beside it was changed since can't be told";
    log.header.chain.is_none().then_some(why)
}

/// One sentence for each difference between the folder and what the run left. A log without a hash
/// chain can hardly be checked: see [`unsealed`].
///
/// # Errors
///
/// The run can't be repeated, or a file can't be read.
pub fn unbound(folder: &Path, log: &RunLog, ended: bool) -> Result<Vec<String>, ReplayError> {
    let header = &log.header;
    let mut found = Vec::new();
    if header.chain.is_none() {
        let summary = summary_of(folder, ended, &mut found)?;
        let is_named = summary.is_some_and(|summary| summary.get("log").is_some());
        if is_named || folder.join(dormouse_log::SEAL).exists() {
            found.push("its log has no hash chain, though there is a seal of one".to_owned());
        }
        return Ok(found);
    }
    if header.submitted.as_deref() != Some(&header.hash_of_experiment()) {
        found.push(
            "the experiment in the log's header is not the one that was submitted".to_owned(),
        );
    }
    let summary = summary_of(folder, ended, &mut found)?;
    check_seal(folder, summary.as_ref(), ended, &mut found)?;
    if let Some(steps) = &log.steps {
        if header.mode == RunMode::Live {
            let live = live_header(folder).map_err(JobsError::from)?;
            of_workers(header, &live, steps, &mut found);
            check_arrivals(header, steps, &mut found)?;
            left_files(folder, steps, ended, &mut found);
        }
        if let Some(difference) = replay(log)?.difference {
            let (recorded, _) = *difference;
            found.push(format!("step {} does not follow from what was before it", recorded.seq));
        }
    }
    // If the log was changed, every other file differs as well.
    if let Some(summary) = summary.filter(|_| found.is_empty()) {
        check_rebuilt_files(folder, log, &summary, &mut found)?;
    }
    Ok(found)
}

/// The summary of a run that ended; a missing or damaged one is noted in `found`.
fn summary_of(
    folder: &Path,
    ended: bool,
    found: &mut Vec<String>,
) -> Result<Option<Value>, ReplayError> {
    if !ended {
        return Ok(None);
    }
    let path = folder.join("summary.json");
    let text = fs::read_to_string(&path).map_err(refused_io("read", &path))?;
    let summary = serde_json::from_str::<Value>(&text).ok();
    if summary.is_none() {
        found.push("summary.json is not JSON".to_owned());
    }
    Ok(summary)
}

/// Compares the log and the other files with the hashes of the seal.
fn check_seal(
    folder: &Path,
    summary: Option<&Value>,
    ended: bool,
    found: &mut Vec<String>,
) -> Result<(), ReplayError> {
    let seal = match Seal::read(folder) {
        Ok(Some(seal)) => seal,
        Ok(None) => {
            found.push(format!("{} is missing", dormouse_log::SEAL));
            return Ok(());
        }
        Err(error) => {
            found.push(format!("{} can't be read: {error}", dormouse_log::SEAL));
            return Ok(());
        }
    };
    let path = folder.join(dormouse_log::FILE);
    let damaged = |error| ReplayError::from(JobsError::from(OutputError::from(error)));
    let mut log = LogReader::open(&path).map_err(damaged)?;
    log.expect(seal.log.clone());
    while log.next_step::<IgnoredAny>().map_err(damaged)?.is_some() {}
    let (is_as_sealed, head) = (log.is_as_sealed(), log.head());
    if !is_as_sealed || (ended && head != seal.log) {
        let (lines, was) = (head.lines, seal.log.lines);
        found.push(format!(
            "events.jsonl is not as it was written: the chain over its {lines} lines does not come to the \
             head that is sealed, of {was}"
        ));
    }
    if let Some(summary) = summary {
        let named =
            summary.get("log").cloned().and_then(|log| serde_json::from_value::<Head>(log).ok());
        if named.as_ref() != Some(&head) {
            found.push("summary.json names another head of the log's chain".to_owned());
        }
    }
    for lines in seal.resealed.iter().filter(|lines| lines.is_forced) {
        found.push(format!(
            "events.jsonl was sealed again when the run was resumed, though it had been changed: its first \
             {} lines may have been changed before (--reseal)",
            lines.through
        ));
    }
    if let Some(beside) = seal.beside.as_ref().filter(|_| ended) {
        added_files(folder, (&seal, beside), found)?;
    }
    for (name, hash) in &seal.files {
        let now = Seal::hash(&folder.join(name)).ok();
        match now {
            None => found.push(format!("{name} is missing")),
            Some(now) if now != *hash => found.push(format!("{name} is not as it was written")),
            Some(_) => {}
        }
    }
    Ok(())
}

/// Notes each file that was added after the run ended.
fn added_files(
    folder: &Path,
    (seal, beside): (&Seal, &[String]),
    found: &mut Vec<String>,
) -> Result<(), ReplayError> {
    let entries = fs::read_dir(folder).map_err(refused_io("look into", folder))?;
    let mut names: Vec<_> =
        entries.flatten().map(|it| it.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let is_own = |name: &String| {
        seal.files.contains_key(name)
            || NOT_COMPARED.contains(&name.as_str())
            || beside.contains(name)
            || LATER.contains(&name.as_str())
    };
    for name in names.iter().filter(|name| !is_own(name)) {
        found.push(format!("{name} was added since the run's end"));
    }
    Ok(())
}

/// The parts of a log that were sealed only when its run was resumed.
#[must_use]
pub fn resealed(folder: &Path) -> Vec<Resealed> {
    Seal::read(folder).ok().flatten().map(|seal| seal.resealed).unwrap_or_default()
}

/// Compares the workers' reports with facts that the coordinator knows by itself.
fn of_workers(header: &LogHeader, live: &LiveHeader, steps: &[Step], found: &mut Vec<String>) {
    let experiment = &header.experiment;
    let setup = experiment.whole_setup();
    let evidence = Evidence::from_steps(&setup, experiment.live.speedup, steps);
    for (seq, early) in evidence.early() {
        found.push(format!("step {seq}: {early}"));
    }
    let mut facts = HostEvidence::default();
    steps.iter().for_each(|step| facts.see(step));
    found.extend(facts.differences());
    // Missing checkpoints make a run unfaithful, which its summary tells; they break no rule.
    let mut hosts = BTreeMap::<VmId, HostId>::new();
    let mut jobs = BTreeMap::<TaskId, &Submission>::new();
    let programs = experiment.programs();
    let mut ends = BTreeMap::<TaskId, &ProgramEnd>::new();
    for step in steps {
        match &step.event {
            Event::Submitted { task, job, .. } => {
                jobs.insert(*task, job);
            }
            Event::Disbelieved { host, why } => {
                found.push(format!("step {}: {host} is not believed: {why}", step.seq));
            }
            Event::Machine { host, report, .. } => {
                let vm = report.vm();
                if hosts.get(&vm).is_some_and(|on| on != host) {
                    found.push(format!(
                        "step {}: {host} reports of {vm}, which is not its own",
                        step.seq
                    ));
                }
                if let Report::Ledger { task, own: Some(end), .. } = report {
                    ends.insert(*task, end);
                }
                let &Report::TaskFinished {
                    task, verified: true, reported: false, ref result, ..
                } = report
                else {
                    continue;
                };
                let nonce = answer::nonce(live.answer_seed(), task);
                let program = programs.get(task.get() as usize);
                let verdict = match (program.and_then(TaskProgram::own), result, jobs.get(&task)) {
                    (Some(own), ..) => match ends.remove(&task) {
                        Some(end) => own.check(end.is_success(), end.verify_status, |path| {
                            end.find_output(path)
                        }),
                        None => Verdict::Unchecked("the end of its program is not known"),
                    },
                    (None, None, _) => Verdict::Unchecked("its worker reported no answer"),
                    (None, Some(result), Some(job)) => {
                        let real = experiment.live.speedup.to_real(job.runtime);
                        let phases = phases_of(real, live.phase());
                        answer::check_job(job.processes, phases, (job.number, nonce), result)
                    }
                    (None, Some(result), None) => match program {
                        Some(program) => answer::check(program.kernel(), nonce, result),
                        None => Verdict::Unchecked("its program is not known"),
                    },
                };
                if verdict != Verdict::Right {
                    let seq = step.seq;
                    found
                        .push(format!("step {seq}: the answer of {task} is not as it was checked"));
                }
            }
            _ => {}
        }
        for effect in &step.effects {
            if let Effect::VmLaunched { vm, host, .. } = effect {
                hosts.insert(*vm, *host);
            }
        }
    }
}

/// Checks that the submitted jobs and requests are those of the experiment.
fn check_arrivals(
    header: &LogHeader,
    steps: &[Step],
    found: &mut Vec<String>,
) -> Result<(), ReplayError> {
    let experiment = &header.experiment;
    let own = experiment.submissions().map_err(JobsError::from)?;
    let own = own.into_iter().flatten().collect::<Result<Vec<_>, _>>().map_err(JobsError::from)?;
    // The submission time of a job that follows others depends on their ends, not on the trace.
    let (followers, mut own): (Vec<_>, Vec<_>) = own.into_iter().partition(|it| it.after.is_some());
    let mut followers: WaitingFollowers = followers.into_iter().collect();
    let requests = experiment.requests().map_err(JobsError::from)?;
    let requests = requests.into_iter().flatten().collect::<Result<Vec<_>, _>>();
    let requests = requests.map_err(JobsError::from)?;
    for step in steps {
        let seq = step.seq;
        match &step.event {
            Event::Submitted { key: None, job, .. } => {
                let is_own = match &job.after {
                    Some(_) => followers.take_again(job),
                    None => {
                        let place = own.iter().position(|own| *own == **job);
                        place.map(|place| own.swap_remove(place)).is_some()
                    }
                };
                if !is_own {
                    found.push(format!(
                        "step {seq}: job {} is not one of the experiment's",
                        job.number
                    ));
                }
            }
            Event::Requested { request, asks } => {
                let own = requests.get(request.get() as usize);
                if own.is_none_or(|(_, own)| own != asks) {
                    found.push(format!("step {seq}: {request} is not the experiment's"));
                }
            }
            _ => {}
        }
        followers.take_step(step);
    }
    Ok(())
}

/// Recreates every file of the run from the run's log, and compares it with the file in the folder.
fn check_rebuilt_files(
    folder: &Path,
    log: &RunLog,
    summary: &Value,
    found: &mut Vec<String>,
) -> Result<(), ReplayError> {
    let header = &log.header;
    let scratch =
        tempfile::tempdir().map_err(refused_io("make a folder in", &std::env::temp_dir()))?;
    // The remains of a former run go beside the target.
    let target = scratch.path().join("run");
    let staging = StagedFolder::begin_in_place(&target, crate::output::ReplacedContent::Anything)
        .map_err(JobsError::from)?;
    let results = match header.mode {
        RunMode::Virtual => {
            let planned = header.experiment.planned()?;
            remade_results(header, planned, staging.path(), log.steps.clone())?
        }
        RunMode::Live => {
            let live = live_header(folder).map_err(JobsError::from)?;
            let steps = log.steps.as_deref().unwrap_or_default();
            live_results(header, &live, steps, staging.path())?.0
        }
    };
    let wall_s = summary.get("wall_s").and_then(Value::as_f64).unwrap_or_default();
    let head = summary.get("log").cloned().and_then(|log| serde_json::from_value(log).ok());
    let head = results.log.clone().or(head);
    let view = RunResults { wall_s, log: head, ..results }.view();
    view.write(staging).map_err(JobsError::from)?;
    let entries = fs::read_dir(&target).map_err(refused_io("look into", &target))?;
    let mut names: Vec<_> =
        entries.flatten().filter_map(|it| it.file_name().into_string().ok()).collect();
    names.sort();
    for name in names {
        let is_log_of_live = name == dormouse_log::FILE && header.mode == RunMode::Live;
        if is_log_of_live || (NOT_COMPARED.contains(&name.as_str()) && name != dormouse_log::FILE) {
            continue;
        }
        let again = fs::read(target.join(&name)).map_err(refused_io("read", &target))?;
        match fs::read(folder.join(&name)) {
            Err(_) => found.push(format!("{name} is missing")),
            Ok(is) if is == again => {}
            Ok(is) => found.push(format!(
                "{name} is not what the log gives: {}",
                first_difference(&is, &again)
            )),
        }
    }
    Ok(())
}

/// A sentence with the first line that differs and the right line.
fn first_difference(is: &[u8], should: &[u8]) -> String {
    let lines =
        |of: &[u8]| String::from_utf8_lossy(of).lines().map(str::to_owned).collect::<Vec<_>>();
    let (is, should) = (lines(is), lines(should));
    let place = is.iter().zip(&should).position(|(a, b)| a != b);
    let place = place.unwrap_or(is.len().min(should.len()));
    let short = |of: &[String]| {
        of.get(place)
            .map_or("nothing".to_owned(), |line| line.trim().chars().take(LONGEST).collect())
    };
    format!("line {} is `{}`, not `{}`", place + 1, short(&is), short(&should))
}
