//! A batch of parallel jobs on real processors, from its experiment to its outcome.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use dormouse_coordinator::admission::Demand;
use dormouse_coordinator::{Conducted, LiveRun, Progress};
use dormouse_engine::jobs::Told;
use dormouse_engine::{Step, Work};
use dormouse_policies::Policy;
use dormouse_policies::batch::Submission;
use dormouse_units::{Span, Time};

use super::LiveError;
use super::attend::to_the_end;
use super::conduct::{Place, live_run};
use crate::batch::{BatchError, BatchHeader, BatchLog, BatchOutcome, Recorder};
use crate::fidelity::{
    Consolidation, Kept, Pace, Promise, Submitted, expected, jobs_in, promises, troubles,
    utilisations,
};

/// How a live batch run is to be conducted.
#[derive(Debug)]
pub struct BatchConduct<'a> {
    /// The first line of its log.
    pub header: &'a BatchHeader,
    /// Its jobs, in order of submission.
    pub submissions: Vec<Submission>,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Workers to start on this host; the others dial from elsewhere.
    pub local_workers: u32,
    /// The folder for the results.
    pub out: PathBuf,
    /// Go on with the run whose log is in that folder.
    pub resume: bool,
}

/// Conducts a run to its end; `show` is called with how it goes, several times a second. The
/// reason why it was ended with jobs left, if it was, comes with the outcome.
///
/// # Errors
///
/// The host can't hold it, or it broke.
pub fn conduct_batch<'a>(
    conduct: BatchConduct<'a>,
    show: impl FnMut(&Progress),
) -> Result<(BatchOutcome<'a>, Option<String>), LiveError> {
    let BatchConduct { header, submissions, listen, local_workers, out, resume } = conduct;
    let place = Place { listen, out: out.clone(), resume };
    let run = run_of(header, submissions.clone(), place)?;
    let conducted = to_the_end(run, local_workers, show)?;
    let outcome = judged(header, &submissions, &conducted, &out)?;
    Ok((outcome, conducted.run.cancelled().map(str::to_owned)))
}

fn run_of(
    header: &BatchHeader,
    submissions: Vec<Submission>,
    place: Place,
) -> Result<LiveRun, LiveError> {
    let experiment = &header.experiment;
    let simulation = experiment.simulation(header.machine);
    let setup = simulation.setup();
    let policies = vec![(Work::All, simulation.policy() as Box<dyn Policy>)];
    let kinds = setup.catalogue.types.keys().cloned().collect();
    let of_any = live_run((&experiment.name, header), &experiment.live, setup, policies, place)?;
    Ok(LiveRun {
        limit: limit(&submissions),
        submissions,
        demand: Demand { vms: vec![header.machine], kinds, most: None },
        needs_criu: experiment.needs_criu(),
        ..of_any
    })
}

/// Ten times what the jobs take one after the other: by then something is wrong.
pub(super) fn limit(submissions: &[Submission]) -> Time {
    let work = submissions.iter().fold(Span::ZERO, |sum, job| sum + job.runtime);
    let last = submissions.last().map_or(Time::ZERO, |job| job.submitted);
    last + work.times(10) + Span::from_secs(3_600)
}

/// What came of a run that is over, with what is made of its log left beside it.
fn judged<'a>(
    header: &'a BatchHeader,
    submissions: &[Submission],
    conducted: &Conducted,
    out: &Path,
) -> Result<BatchOutcome<'a>, LiveError> {
    let (live, facts, run) = (&header.experiment.live, &conducted.facts, &conducted.run);
    let steps = BatchLog::read(out)?.steps.unwrap_or_default();
    let pace = Pace::at(live.speedup).ok_or(LiveError::Speedup(live.speedup))?;
    let all = jobs_in(&steps);
    let submitted = Submitted::alone(&all);
    let promises = promises(&steps, submitted, &facts.jobs, pace);
    let mut outcome = recorded(header, &steps, &promises, run.digest(), out)?;
    outcome.verified = facts.jobs.verified;
    outcome.failed = expected(&steps, submissions).saturating_sub(outcome.figures.jobs());
    let utilisations = utilisations(&steps, submitted, facts, live.speedup);
    let kept = Kept::of(&promises, facts, live);
    let consolidation = Consolidation::of(facts, utilisations, kept);
    let noticed = troubles(run.cancelled(), run.counts(), facts);
    outcome.fidelity = Some(consolidation.fidelity(facts, noticed));
    outcome.consolidation = Some(consolidation);
    Ok(outcome)
}

/// Leaves what is made of the log of a run beside it.
fn recorded<'a>(
    header: &'a BatchHeader,
    steps: &[Step],
    promises: &[Promise],
    digest: String,
    out: &Path,
) -> Result<BatchOutcome<'a>, LiveError> {
    let write = |error: BatchError| LiveError::Batch(Box::new(error));
    let mut recorder = Recorder::begin(out, header)?;
    recorder.promise(promises.iter().map(|promise| (promise.job, promise.promised)));
    let mut told = Told::default();
    for step in steps {
        told.see(step, &mut recorder).map_err(write)?;
    }
    let mut outcome = recorder.finish(header, digest)?;
    outcome.most_in_system = Some(told.totals().most_in_system);
    Ok(outcome)
}
