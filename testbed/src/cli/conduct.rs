//! Live runs: begun by `dormouse run --live` and `dormouse coordinator`, gone on with by
//! `dormouse resume`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Instant;

use dormouse_coordinator::Progress;
use dormouse_policies::batch::Submission;
use dormouse_workload::Skipped;

use super::args::ResumeArgs;
use super::batch;
use super::failure::Failure;
use super::preflight;
use super::run::{Say, end};
use crate::batch::{BatchError, BatchHeader, Jobs};
use crate::experiment::{Kind, Live};
use crate::live::{
    self, BatchConduct, Conduct, LiveError, Rehearsal, conduct, conduct_batch, rehearse,
};
use crate::output::{Header, Mode, Outcome, Staging, is_unfinished, read_header};

/// Where to listen for workers of this host.
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Why no plan can be made of an experiment that was checked before.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn cannot(error: dormouse_policies::PlanError) -> Failure {
    Failure::BadInput(error.to_string())
}

/// Conducts a run to its end and writes what came of it; without `listen`, on workers of its own;
/// without `takes`, which says how long it takes, it is gone on with.
pub(super) fn conduct_live(
    header: &Header,
    (rehearsal, LiveJobs { submissions, skipped }): (Rehearsal, LiveJobs),
    takes: Option<String>,
    listen: Option<SocketAddr>,
    mut staging: Staging,
    say: Say,
) -> Result<(), Failure> {
    let (experiment, began, resume) = (&header.experiment, Instant::now(), takes.is_none());
    let scheduler = experiment.scheduler().map_err(cannot)?;
    let plan = experiment.plan().map_err(cannot)?;
    super::log::begin(listen.is_some() && !say.quiet);
    let folder = staging.path().to_path_buf();
    let progress = say.progress(experiment.setup.bag.tasks.len(), "tasks");
    // Said once the hosts hold it: what is refused has one line.
    let speedup = header.speedup.as_ref().map(ToString::to_string);
    let open = open_at(&experiment.live, &folder);
    let mut news =
        takes.filter(|_| !say.quiet).map(|takes| speedup.into_iter().chain([takes]).chain(open));
    let conducted = conduct(
        Conduct {
            header,
            scheduler,
            rehearsal,
            submissions,
            skipped,
            listen: listen.unwrap_or(ANY_PORT),
            local_workers: if listen.is_none() { experiment.live.workers } else { 0 },
            out: folder.clone(),
            resume,
        },
        |now| {
            for line in news.take_if(|_| now.begun).into_iter().flatten() {
                progress.suspend(|| eprintln!("dormouse: {line}"));
            }
            show(&progress, now);
        },
    );
    progress.finish_and_clear();
    let live::Outcome { record, fidelity, jobs, .. } =
        unless_broken(conducted, &mut staging, resume)?;
    let broke = record.cancelled.clone();
    let wall_s = began.elapsed().as_secs_f64();
    let fidelity = Some(&fidelity);
    let (plan, jobs) = (plan.as_ref(), jobs.as_ref());
    let outcome = Outcome { header, record: &record, plan, fidelity, jobs, wall_s };
    end(say, &outcome, staging, broke)
}

/// Parallel jobs of a run that is made live.
#[derive(Default)]
pub(super) struct LiveJobs {
    /// In order of submission.
    pub(super) submissions: Vec<Submission>,
    /// What was left out of the log that they are of.
    pub(super) skipped: Option<Skipped>,
}

impl LiveJobs {
    pub(super) fn of(mut jobs: Jobs) -> Result<Self, BatchError> {
        let submissions = jobs.by_ref().collect::<Result<Vec<_>, _>>()?;
        Ok(Self { submissions, skipped: jobs.skipped() })
    }
}

/// The same of a run of parallel jobs.
pub(super) fn conduct_jobs(
    header: &BatchHeader,
    LiveJobs { submissions, skipped }: LiveJobs,
    takes: Option<String>,
    listen: Option<SocketAddr>,
    mut staging: Staging,
    say: Say,
) -> Result<(), Failure> {
    let (began, resume) = (Instant::now(), takes.is_none());
    super::log::begin(listen.is_some() && !say.quiet);
    let progress = say.progress(submissions.len(), "jobs");
    let conduct = BatchConduct {
        header,
        submissions,
        listen: listen.unwrap_or(ANY_PORT),
        local_workers: if listen.is_none() { header.experiment.live.workers } else { 0 },
        out: staging.path().to_path_buf(),
        resume,
    };
    let (live, folder) = (&header.experiment.live, staging.path().to_path_buf());
    let notes = standing_by(live, header.machine).into_iter().chain(open_at(live, &folder));
    let mut news = (!say.quiet).then(|| takes.into_iter().chain(notes));
    let conducted = conduct_batch(conduct, |now| {
        for line in news.take_if(|_| now.begun).into_iter().flatten() {
            progress.suspend(|| eprintln!("dormouse: {line}"));
        }
        progress.set_length(u64::from(now.tasks));
        progress.set_position(u64::from(now.completed));
        progress.set_message(match now.begun {
            true => format!("{:.0} s, {} in the machine", now.now.as_secs_f64(), now.running),
            false => waiting(now),
        });
    });
    progress.finish_and_clear();
    let (mut outcome, broke) = unless_broken(conducted, &mut staging, resume)?;
    outcome.skipped = skipped;
    outcome.wall_s = began.elapsed().as_secs_f64();
    let folder = batch::end(say, &outcome, staging)?;
    match broke {
        None => Ok(()),
        Some(why) => {
            Err(Failure::Broken(format!("the run broke: {why}; see {}", folder.display())))
        }
    }
}

/// That only one of several workers has work at a time.
fn standing_by(live: &Live, machine: u32) -> Option<String> {
    let others = live.workers.saturating_sub(1);
    let stand = if others == 1 { "the other stands" } else { "the others stand" };
    (others > 0).then(|| {
        format!(
            "a job's processes share memory, so that the machine of {machine} processors is on one of \
             the {} workers; {stand} by: it is made again there if that one is lost",
            live.workers
        )
    })
}

/// How jobs are given to a run that takes them.
fn open_at(live: &Live, dir: &Path) -> Option<String> {
    let dir = dir.display();
    live.open.then(|| {
        format!(
            "it takes jobs: `dormouse submit {dir} --processors 1 --runtime 60s`; it ends after \
             `dormouse close {dir}`"
        )
    })
}

fn waiting(now: &Progress) -> String {
    format!("{} of {} workers are here", now.workers, now.workers_wanted)
}

/// What was conducted. A run that broke off after it had begun stays where it is, to be gone on
/// with.
fn unless_broken<T>(
    conducted: Result<T, LiveError>,
    staging: &mut Staging,
    resume: bool,
) -> Result<T, Failure> {
    conducted.map_err(|error| {
        let begun = resume || crate::output::has_steps(staging.path());
        if !begun || error.is_bad_input() {
            return error.into();
        }
        staging.settle();
        let dir = staging.path().display();
        Failure::Broken(format!("{error}; `dormouse resume {dir}` goes on with the run"))
    })
}

/// Goes on with a live run whose coordinator was killed: its log is replayed, workers that are
/// still there are taken back, and tasks of the others restart from their last checkpoints, and
/// parallel jobs from the beginning.
pub(crate) fn resume(args: &ResumeArgs) -> Result<(), Failure> {
    let ResumeArgs { dir, listen, quiet, json } = args;
    let (listen, say) = (*listen, Say { quiet: *quiet, json: *json });
    match crate::output::kind_of(dir)? {
        Kind::Bag => {
            let header = read_header(dir)?;
            check(dir, header.mode)?;
            let experiment = &header.experiment;
            if listen.is_none() {
                preflight::check(&experiment.name, experiment.needs_criu())?;
            }
            let rehearsal = rehearse(experiment, experiment.scheduler().map_err(cannot)?);
            let jobs = experiment.jobs.as_deref();
            let jobs = jobs.map(|jobs| LiveJobs::of(Jobs::open(jobs)?)).transpose()?;
            let begun = (rehearsal, jobs.unwrap_or_default());
            conduct_live(&header, begun, None, listen, Staging::go_on(dir)?, say)
        }
        Kind::Batch => {
            let header = BatchHeader::read(dir)?;
            check(dir, header.mode)?;
            let experiment = &header.experiment;
            if listen.is_none() {
                preflight::check(&experiment.name, experiment.needs_criu())?;
            }
            let jobs = LiveJobs::of(Jobs::open(experiment)?)?;
            conduct_jobs(&header, jobs, None, listen, Staging::go_on(dir)?, say)
        }
    }
}

fn check(dir: &Path, mode: Mode) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::BadInput(format!("{}: {why}", dir.display())));
    if mode == Mode::Virtual {
        return refuse("it is a run of virtual time; make it again with `dormouse run`");
    }
    if !is_unfinished(dir) {
        return refuse("this run came to its end; there is nothing left to go on with");
    }
    Ok(())
}

/// One line of how a live run goes.
fn show(bar: &indicatif::ProgressBar, now: &Progress) {
    bar.set_position(u64::from(now.completed));
    bar.set_message(if now.begun {
        format!(
            "{:.0} s, {} running on {} VMs, {} hibernations, {} migrations, ${:.4}",
            now.now.as_secs_f64(),
            now.running,
            now.vms,
            now.counts.hibernations,
            now.counts.migrations,
            now.cost.as_usd()
        )
    } else {
        waiting(now)
    });
}
