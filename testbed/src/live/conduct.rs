//! From an experiment to the log of its live run.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dormouse_coordinator::admission::Demand;
use dormouse_coordinator::{
    ANSWER_WITHIN, Conducted, CoordinatorError, LiveFacts, LiveRun, Observer, Progress, Speedup,
};
use dormouse_policies::Scheduler;
use dormouse_units::{Span, Time};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::attend::{Attendance, attend, runtime};
use super::faithful::notes;
use super::host_load::other_load;
use super::rehearsal::Rehearsal;
use crate::output::{Fidelity, Header, RunLog};
use crate::record::Record;

/// How a live run is to be conducted.
#[derive(Debug)]
pub struct Conduct<'a> {
    /// The first line of its log.
    pub header: &'a Header,
    /// The policy.
    pub scheduler: Box<dyn Scheduler>,
    /// What the policy wanted in virtual time.
    pub rehearsal: Rehearsal,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Workers to start on this host; the others dial from elsewhere.
    pub local_workers: u32,
    /// The folder for the log and the checkpoints.
    pub out: PathBuf,
    /// Go on with the run whose log is in that folder.
    pub resume: bool,
}

/// Why there is no live run, or no end of it.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The coordinator refused or broke.
    #[error("{}", crate::cli::chain(.0))]
    Coordinator(#[from] CoordinatorError),
    /// A worker can't be started.
    #[error("cannot start a worker on this host: {0}")]
    Start(std::io::Error),
    /// No worker is left to run anything.
    #[error("no worker is left: {0}")]
    NoWorkers(String),
    /// The runtime could not be made.
    #[error("cannot start the coordinator: {0}")]
    Runtime(std::io::Error),
    /// The speed-up is none.
    #[error("a speed-up of {0} can't be run: it must be between 0.001 and 1,000,000")]
    Speedup(f64),
    /// The log of the run can't be read back.
    #[error(transparent)]
    Log(#[from] crate::output::OutputError),
    /// What became of the jobs can't be written.
    #[error(transparent)]
    Batch(Box<crate::batch::BatchError>),
}

impl LiveError {
    /// Whether the input must change, not the system be mended.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        use CoordinatorError::{Admission, Invalid, Listen, Secret};
        let Self::Coordinator(error) = self else { return false };
        matches!(error, Listen { .. } | Invalid { .. } | Secret { .. } | Admission(_))
    }
}

/// What came of a live run.
#[derive(Debug)]
pub struct Outcome {
    /// What happened, read back from its log.
    pub record: Record,
    /// How true it was.
    pub fidelity: Fidelity,
    /// What was measured.
    pub facts: LiveFacts,
}

/// Conducts a run to its end; `show` is called with how it goes, several times a second.
///
/// # Errors
///
/// The hosts can't hold it, or it broke. A run that was cancelled is no error: its record says so.
pub fn conduct(conduct: Conduct<'_>, show: impl FnMut(&Progress)) -> Result<Outcome, LiveError> {
    let runtime = runtime()?;
    let header = conduct.header;
    let conducted = runtime.block_on(to_the_end(conduct, show))?;
    let (record, fidelity) = judge(header, &conducted)?;
    Ok(Outcome { record, fidelity, facts: conducted.facts })
}

fn judge(header: &Header, conducted: &Conducted) -> Result<(Record, Fidelity), LiveError> {
    let folder = conducted.log.parent().unwrap_or(Path::new("."));
    let RunLog { steps, .. } = RunLog::read(folder)?;
    let mut record = header.record();
    for step in &steps {
        record.see(step);
    }
    let (experiment, facts) = (&header.experiment, &conducted.facts);
    let noticed = notes(experiment, &record, facts);
    let fidelity = Fidelity::of(experiment, &record, noticed, other_load(facts.loads.values()));
    Ok((record, fidelity))
}

async fn to_the_end(
    conduct: Conduct<'_>,
    mut show: impl FnMut(&Progress),
) -> Result<Conducted, LiveError> {
    let Conduct { header, scheduler, rehearsal, listen, local_workers, out, resume } = conduct;
    let (pause, cancel) = (CancellationToken::new(), CancellationToken::new());
    let (progress, seen) = watch::channel(Progress::default());
    let mut live =
        live_run(header, scheduler, rehearsal.demand, listen, &out, progress, cancel.clone())?;
    (live.resume, live.pause) = (resume, pause.clone());
    let bound = live.bind().await?;
    let (address, secret) = (bound.address(), bound.secret_file());
    let (out, revive) = (&out, true);
    let attendance =
        Attendance { address, secret, local_workers, out, pause, cancel, revive, seen };
    attend(bound.conduct(), attendance, &mut show).await
}

fn live_run(
    header: &Header,
    scheduler: Box<dyn Scheduler>,
    demand: Demand,
    listen: SocketAddr,
    out: &Path,
    progress: watch::Sender<Progress>,
    cancel: CancellationToken,
) -> Result<LiveRun, LiveError> {
    let experiment = &header.experiment;
    let live = &experiment.live;
    let setup = &experiment.setup;
    let speedup = Speedup::from_f64(live.speedup).ok_or(LiveError::Speedup(live.speedup))?;
    Ok(LiveRun {
        setup: setup.clone(),
        scheduler,
        experiment: experiment.name.clone(),
        // A header holds only text and numbers: this can't fail.
        header: serde_json::to_value(header).unwrap_or_default(),
        listen,
        workers: live.workers,
        speedup,
        demand,
        reserve: live.reserve,
        share: live.share,
        programs: live.tasks.all(&setup.bag),
        needs_criu: experiment.needs_criu(),
        hold_checkpoints: true,
        noop: false,
        out: out.to_path_buf(),
        lost_after: Duration::from_micros(live.lost_after.as_micros()),
        answer_within: ANSWER_WITHIN,
        limit: Time::ZERO + setup.bag.deadline.times(10) + Span::from_secs(3_600),
        observer: Observer { steps: None, progress: Some(progress) },
        cancel,
        pause: CancellationToken::new(),
        resume: false,
    })
}
