//! A batch of parallel jobs on real processors, from its experiment to its outcome.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dormouse_batch::{Decision, Event, JobId, Observer, Record, Submission};
use dormouse_coordinator::{BatchConducted, BatchLive, BatchStep, Progress, Speedup};
use dormouse_units::{Span, Time};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::LiveError;
use super::attend::{Attendance, attend, runtime};
use super::consolidation::Consolidation;
use super::kept::Kept;
use super::pace::{PHASE, Pace};
use super::promises::{Promise, promises};
use super::utilisation::utilisations;
use crate::batch::{BatchError, BatchHeader, BatchLog, BatchOutcome, Recorder};

/// How a live batch run is to be conducted.
#[derive(Debug)]
pub struct BatchConduct<'a> {
    /// The first line of its log.
    pub header: &'a BatchHeader,
    /// Its jobs, in order of submission.
    pub submissions: Vec<Submission>,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Whether the machine is a worker on this host, to be started; else it dials from elsewhere.
    pub local: bool,
    /// The folder for the results.
    pub out: PathBuf,
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
    let runtime = runtime()?;
    let (header, out) = (conduct.header, conduct.out.clone());
    let submissions = conduct.submissions.clone();
    let conducted = runtime.block_on(to_the_end(conduct, show))?;
    let steps = BatchLog::read(&out)?.steps.unwrap_or_default();
    let speed = header.experiment.live.speedup;
    let pace = Pace::at(speed).ok_or(LiveError::Speedup(speed))?;
    let promises = promises(&steps, &submissions, &conducted.facts, pace);
    let mut outcome = recorded(header, &submissions, &steps, &promises, &out)?;
    outcome.verified = conducted.facts.verified;
    outcome.failed = submissions.len() as u64 - outcome.figures.jobs();
    let utilisations = utilisations(&steps, &submissions, &conducted.facts, speed);
    let kept = Kept::of(&promises, &conducted.facts, &header.experiment.live);
    let consolidation = Consolidation::of(&conducted.facts, utilisations, kept);
    let fidelity = consolidation.fidelity(&conducted.facts);
    outcome.fidelity = Some(match &conducted.cancelled {
        Some(why) => fidelity.denied(format!("the run was ended before its time: {why}")),
        None => fidelity,
    });
    outcome.consolidation = Some(consolidation);
    Ok((outcome, conducted.cancelled))
}

async fn to_the_end(
    conduct: BatchConduct<'_>,
    mut show: impl FnMut(&Progress),
) -> Result<BatchConducted, LiveError> {
    let BatchConduct { header, submissions, listen, local, out } = conduct;
    let experiment = &header.experiment;
    let live = &experiment.live;
    let cancel = CancellationToken::new();
    let (progress, seen) = watch::channel(Progress::default());
    let setup = experiment.setup(header.machine);
    let bound = BatchLive {
        config: setup.config,
        information: setup.information,
        limit: limit(&submissions),
        submissions,
        experiment: experiment.name.clone(),
        // A header holds only text and numbers: this can't fail.
        header: serde_json::to_value(header).unwrap_or_default(),
        listen,
        speedup: Speedup::from_f64(live.speedup).ok_or(LiveError::Speedup(live.speedup))?,
        reserve: live.reserve,
        phase: PHASE,
        needs_criu: experiment.needs_criu(),
        out: out.clone(),
        lost_after: Duration::from_micros(live.lost_after.as_micros()),
        progress: Some(progress),
        cancel: cancel.clone(),
    }
    .bind()
    .await?;
    let (address, secret) = (bound.address(), bound.secret_file());
    let local_workers = u32::from(local);
    // It can't be gone on with: it is ended at once, and so it is without its machine.
    let (pause, revive, out) = (cancel.clone(), false, &out);
    let attendance =
        Attendance { address, secret, local_workers, out, pause, cancel, revive, seen };
    attend(bound.conduct(), attendance, &mut show).await
}

/// Ten times what the jobs take one after the other: by then something is wrong.
fn limit(submissions: &[Submission]) -> Time {
    let work = submissions.iter().fold(Span::ZERO, |sum, job| sum + job.runtime);
    let last = submissions.last().map_or(Time::ZERO, |job| job.submitted);
    last + work.times(10) + Span::from_secs(3_600)
}

/// Leaves what is made of the log of a run beside it.
fn recorded<'a>(
    header: &'a BatchHeader,
    submissions: &[Submission],
    steps: &[BatchStep],
    promises: &[Promise],
    out: &Path,
) -> Result<BatchOutcome<'a>, LiveError> {
    let write = |error: BatchError| LiveError::Batch(Box::new(error));
    let mut recorder = Recorder::begin(out, header, Some(submissions.len() as u64))?;
    recorder.promise(promises.iter().map(|promise| (promise.job, promise.promised)));
    let mut records = BTreeMap::<JobId, Record>::new();
    let (mut inside, mut most) = (0_usize, 0);
    for step in steps {
        if step.events.is_empty() {
            continue;
        }
        recorder.heard(step.at, &step.events).map_err(write)?;
        for event in &step.events {
            match event {
                Event::Submitted(_) => inside += 1,
                Event::Finished { job, .. } => {
                    inside = inside.saturating_sub(1);
                    if let Some(record) = records.remove(job) {
                        recorder.ended(Record { ended: step.at, ..record }).map_err(write)?;
                    }
                }
            }
            most = most.max(inside);
        }
        for decision in &step.decisions {
            recorder.decided(step.at, 0, decision).map_err(write)?;
            match decision {
                Decision::Start { job, tier, on, .. } => {
                    if let Some(submission) = submissions.get(job.get() as usize) {
                        let record = Record::begun(*job, submission, step.at, *tier, on.clone());
                        records.insert(*job, record);
                    }
                }
                Decision::Promote { job, by, .. } => {
                    if let Some(record) = records.get_mut(job) {
                        record.promoted(step.at, by);
                    }
                }
            }
        }
    }
    let mut outcome = recorder.finish(header)?;
    outcome.most_in_system = Some(most);
    Ok(outcome)
}
