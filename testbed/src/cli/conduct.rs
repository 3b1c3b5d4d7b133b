//! Live runs: started by `dormouse run --live` and `dormouse coordinator`, continued by `dormouse resume`.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use dormouse_analysis::RunMode;
use dormouse_coordinator::{AwaitedWorkers, CoordinatorError, RunProgress, STOPPED_BY_USER};
use dormouse_log::ForcedSeal;
use dormouse_model::Calendar;
use dormouse_units::Time;

use super::args::{ResumeArgs, Say};
use super::begun::forgets_unbegun;
use super::failure::Failure;
use super::preflight::{ANY_PORT, Rehearsed};
use super::progress::counted;
use super::run::{end, resume_virtually};
use super::{memory_need, preflight, run_folders};
use crate::live::{Conduct, LiveError, Page, StoppedTasks, conduct};
use dormouse_experiment::command_line;
use dormouse_experiment::{Experiment, Live};
use dormouse_report::output::{
    LogHeader, OutputError, RunBeginning, StagedFolder, has_steps, is_unfinished, read_header,
};
use dormouse_report::run_view::RunResults;

/// Conducts a live run to its end and writes its results. Without `listen`, the run gets workers of its own; without
/// `takes`, which is its expected duration, a run is resumed.
pub(super) fn conduct_live(
    header: &LogHeader,
    Rehearsed { rehearsal, submissions, requests, sources }: Rehearsed,
    takes: Option<String>,
    (listen, page): (Option<SocketAddr>, Option<Page>),
    mut staging: StagedFolder,
    say: Say,
) -> Result<(), Failure> {
    let (experiment, began, resume) = (&header.experiment, Instant::now(), takes.is_none());
    memory_need::note_need(experiment, say);
    let (scheduler, _) = experiment.planned()?;
    let folder = staging.path().to_path_buf();
    super::log::begin(listen.is_some() && !say.quiet, Some(&folder));
    let has_bag = experiment.scheduler.is_some() || experiment.jobs.is_none();
    let ends = Time::ZERO + rehearsal.takes;
    let left_s = |now: Time| experiment.live.speedup.to_real(ends.since(now)).as_secs_f64();
    let count = if has_bag { experiment.setup.bag.tasks.len() } else { submissions.len() };
    let mut progress = say.progress(count, counted(experiment));
    // Said once the hosts hold it: what is refused has one line.
    let speedup = header.speedup.as_ref().map(ToString::to_string);
    let notes = standing_by(experiment).into_iter().chain(open_at(&experiment.live, &folder));
    let mut news =
        takes.filter(|_| !say.quiet).map(|takes| speedup.into_iter().chain([takes]).chain(notes));
    let conducted = conduct(
        Conduct {
            header,
            scheduler,
            rehearsal,
            submissions,
            requests,
            listen: listen.unwrap_or(ANY_PORT),
            local_workers: if listen.is_none() { experiment.live.workers } else { 0 },
            out: folder.clone(),
            resume,
            page,
            sources,
        },
        |now| {
            for line in news.take_if(|_| now.begun).into_iter().flatten() {
                progress.say(&line);
            }
            let left_s = (now.begun && now.now < ends).then(|| left_s(now.now));
            // Before the coordinator is there it has counted nothing.
            let tasks = if now.tasks == 0 { count as u64 } else { now.tasks.into() };
            progress.show(now.completed.into(), tasks, &how(now, has_bag, header.calendar), left_s);
        },
    );
    drop(progress);
    let (results, _) = unless_broken(conducted, &mut staging, (resume, listen))?;
    let wall_s = began.elapsed().as_secs_f64();
    end(say, &RunResults { wall_s, ..results }, staging)
}

/// A note that only one of several workers will have work at a time; `None` if several workers will have work.
fn standing_by(experiment: &Experiment) -> Option<String> {
    let Experiment { scheduler: None, jobs: Some(jobs), live, .. } = experiment else {
        return None;
    };
    let (machine, others) = (jobs.workload.processors, live.workers.saturating_sub(1));
    let stand = if others == 1 { "the other stands" } else { "the others stand" };
    (others > 0).then(|| {
        format!(
            "a job's processes share memory, so that the machine of {machine} processors is on one of \
             the {} workers; {stand} by: it is made again there if that one is gone",
            live.workers
        )
    })
}

/// A sentence on how to submit jobs to a run; `None` if the run accepts no jobs.
fn open_at(live: &Live, dir: &Path) -> Option<String> {
    let dir = dir.to_string_lossy();
    live.open.then(|| {
        let submit =
            command_line(["dormouse", "submit", &dir, "--processors", "1", "--runtime", "60s"]);
        let close = command_line(["dormouse", "close", &dir]);
        format!("it takes jobs: `{submit}`; it ends after `{close}`")
    })
}

/// The outcome of a conducted run. The folder of a run that failed after its beginning is kept, so that the run can be
/// resumed.
fn unless_broken<T>(
    conducted: Result<T, LiveError>,
    staging: &mut StagedFolder,
    (resume, listen): (bool, Option<SocketAddr>),
) -> Result<T, Failure> {
    conducted.map_err(|error| {
        let never_began = RunBeginning::read(staging.path()) == RunBeginning::Unbegun;
        // Workers had joined a run whose log has steps: it goes on, with others, though it had not begun.
        let is_kept = if resume { !never_began } else { has_steps(staging.path()) };
        if resume {
            forgets_unbegun(staging.path());
        }
        if let LiveError::NotBegun = error {
            return Failure::Paused(error.to_string());
        }
        if !is_kept || error.is_bad_input() {
            return error.into();
        }
        staging.settle();
        let dir = staging.path().to_string_lossy().into_owned();
        let are_elsewhere = listen.is_some();
        let listen = listen.into_iter().flat_map(|at| ["--listen".to_owned(), at.to_string()]);
        let words = ["dormouse", "resume", &dir].map(str::to_owned).into_iter().chain(listen);
        let resume = command_line(words.collect::<Vec<_>>());
        let goes_on = format!("`{resume}` continues the run");
        match error {
            LiveError::Coordinator(CoordinatorError::Paused { why }) if why == STOPPED_BY_USER => {
                let left = standing(staging.path(), are_elsewhere);
                Failure::Paused(format!(
                    "the run is paused, stopped by you (Ctrl-C): {left}; {goes_on}"
                ))
            }
            LiveError::Coordinator(CoordinatorError::Paused { .. }) => {
                Failure::Paused(format!("{error}; {goes_on}"))
            }
            error => Failure::Broken(format!("{error}; {goes_on}")),
        }
    })
}

/// Describes what is kept and what is lost of a stopped run, whose workers run on other hosts or ran on this one.
fn standing(folder: &Path, are_elsewhere: bool) -> String {
    if are_elsewhere {
        let live = read_header(folder).map(|header| header.experiment.live);
        let holds = live.map(|live| live.patience.max(live.lost_after).to_string());
        let holds = holds.unwrap_or_else(|_| "some time".to_owned());
        return format!("its workers keep their VMs for {holds}");
    }
    let gone = "the VMs of this host are gone with its workers";
    match StoppedTasks::read(folder) {
        Some(tasks) => format!("{gone}, {tasks}"),
        None => gone.to_owned(),
    }
}

/// Resumes a live run whose coordinator was killed: replays its log, accepts workers that still run, restarts the tasks
/// of the others from their last checkpoints, and parallel jobs from the beginning.
pub(crate) fn resume(args: &ResumeArgs) -> Result<(), Failure> {
    let ResumeArgs { dir, listen, reseal, page, say } = args;
    run_folders::check(dir)?;
    let header = read_header(dir)?;
    let experiment = &header.experiment;
    check(dir, &header)?;
    header.check_inputs()?;
    if *reseal {
        let sealed = dormouse_log::reseal(&dir.join(dormouse_log::FILE));
        if let Some(forced) = sealed.map_err(OutputError::from)?.filter(|_| !say.quiet) {
            crate::said::note(&sealed_as_it_is(&forced));
        }
    }
    if header.mode == RunMode::Virtual {
        if page.page().is_some() {
            let why = "its page is shown by `dormouse watch`: it is a run in virtual time";
            return Err(Failure::BadInput(format!("{}: {why}", dir.display())));
        }
        return resume_virtually(&header, dir, *say);
    }
    if listen.is_none() {
        preflight::check(&experiment.name, experiment.needs_criu(), *say)?;
    }
    go_on_live((&header, dir), (*listen, page.page()), *say)
}

/// Resumes the live run in a folder; without `listen`, on workers that this process starts.
pub(super) fn go_on_live(
    (header, dir): (&LogHeader, &Path),
    (listen, page): (Option<SocketAddr>, Option<Page>),
    say: Say,
) -> Result<(), Failure> {
    header.check_inputs()?;
    let rehearsed = Rehearsed::rehearse(&header.experiment)?;
    conduct_live(header, rehearsed, None, (listen, page), StagedFolder::go_on(dir)?, say)
}

/// Says which part of a log was sealed without a check, and what was cut off because it has no readable step.
fn sealed_as_it_is(forced: &ForcedSeal) -> String {
    let lines = format!(
        "sealed the {} lines of the log that can be read as they are",
        forced.lines.through
    );
    match forced.left_out {
        0 => lines,
        bytes => format!("{lines}; the {bytes} bytes after them are no steps, and are cut off"),
    }
}

fn check(dir: &Path, header: &LogHeader) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::BadInput(format!("{}: {why}", dir.display())));
    if header.mode == RunMode::Virtual && !header.experiment.has_programs() {
        let again =
            format!("it is a virtual run, which can't be resumed; `{}` repeats it", header.command);
        return refuse(&again);
    }
    if !is_unfinished(dir) {
        let check = command_line(["dormouse", "check", &dir.to_string_lossy()]);
        let over = "this run came to its end; there is nothing left to resume";
        return refuse(&format!("{over}; `{check}` checks it, `{}` runs it again", header.command));
    }
    Ok(())
}

/// The progress of a live run in a few words.
fn how(now: &RunProgress, has_bag: bool, calendar: Calendar) -> String {
    let date = calendar.in_brackets(now.now);
    if let Some(AwaitedWorkers { back, of }) = now.awaited {
        return format!("{back} of {of} workers are back");
    }
    match (now.begun, has_bag) {
        (false, _) if now.workers_wanted == 0 => "starting".to_owned(),
        (false, _) => format!("{} of {} workers are here", now.workers, now.workers_wanted),
        (true, false) => {
            format!("{:.0} s{date}, {} in the machine", now.now.as_secs_f64(), now.running)
        }
        (true, true) => format!(
            "{:.0} s{date}, {} running on {} VMs, {} hibernations, {} migrations, ${:.4}",
            now.now.as_secs_f64(),
            now.running,
            now.vms,
            now.counts.hibernations,
            now.counts.migrations,
            now.cost.as_usd()
        ),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use dormouse_experiment::{ExperimentSource, LoadedExperiment, open};
    use dormouse_units::Span;

    use super::*;

    /// The clock of a live run begins at zero, even for a log of jobs whose times are seconds since 1970.
    #[test]
    fn nobody_waits_half_a_century_for_the_first_job() {
        let folder = tempfile::tempdir().unwrap();
        let (log, file) = (folder.path().join("log.swf"), folder.path().join("e.toml"));
        let jobs = "1 1356996147 0 100 2 -1 -1 2 100 -1 1 1 1 -1 1 1 -1 -1\n\
                    2 1356996157 0 100 2 -1 -1 2 100 -1 1 1 1 -1 1 1 -1 -1\n";
        std::fs::write(log, format!("; MaxProcs: 2\n{jobs}")).unwrap();
        let text = "name = \"e\"\n[workload]\nkind = \"swf\"\nlog = \"log.swf\"\n[scheduler]\nname = \"easy\"\n";
        std::fs::write(&file, text).unwrap();
        let source = ExperimentSource { experiment: file.to_str(), ..ExperimentSource::default() };
        let LoadedExperiment { experiment, .. } = open(&source).unwrap();
        let rehearsed = Rehearsed::rehearse(&experiment).unwrap();
        let submitted: Vec<_> = rehearsed.submissions.iter().map(|job| job.submitted).collect();
        assert_eq!(submitted, [Time::ZERO, Time::from_secs(10)]);
        assert_eq!(rehearsed.rehearsal.takes, Span::from_secs(200));
        let header = LogHeader::new(RunMode::Live, String::new(), experiment);
        assert_eq!(how(&RunProgress::default(), true, header.calendar), "starting");
        let now = RunProgress { begun: true, now: Time::from_secs(10), ..RunProgress::default() };
        let says = how(&now, false, header.calendar);
        assert_eq!(says, "10 s (2012-12-31 23:22:37 UTC), 0 in the machine");
        let awaited = Some(AwaitedWorkers { back: 1, of: 3 });
        let waits = RunProgress { awaited, ..now };
        assert_eq!(how(&waits, true, header.calendar), "1 of 3 workers are back");
    }
}
