//! The state with which a conductor starts.

use std::collections::BTreeSet;
use std::sync::Arc;

use dormouse_analysis::{Evidence, LiveFacts};
use dormouse_engine::Run;
use dormouse_engine::drive::WaitingFollowers;
use dormouse_log::HeaderText;
use dormouse_model::{Submission, VmRequest};
use dormouse_units::{HostId, Time};
use ractor::{ActorCell, ActorRef};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tracing::Span;

use crate::CoordinatorError;
use crate::admission::WorkerOffer;
use crate::conductor::outstanding::Outstanding;
use crate::log::journal::JournalMsg;
use crate::messages::outside::JobIntake;
use crate::plan::ConductorPlan;
use crate::sessions::lives::SessionRegistry;
use crate::status::progress::{PostedProgress, RunProgress};
use crate::status::vitals::CoordinatorVitals;
use crate::storage::store::CheckpointFolder;
use crate::time::outage::ClockAnchor;

/// A host of a resumed run, restored from the log.
#[derive(Debug)]
pub(crate) struct RestoredHost {
    pub(crate) host: HostId,
    pub(crate) worker: String,
    pub(crate) incarnation: u64,
    pub(crate) room: WorkerOffer,
    pub(crate) lost: Option<String>,
    /// Numbers of the host's durable reports.
    pub(crate) heard: BTreeSet<u64>,
}

/// State with which a conductor starts.
#[derive(Debug)]
pub(crate) struct ConductorArgs {
    pub(crate) plan: ConductorPlan,
    pub(crate) run: Run,
    pub(crate) facts: LiveFacts,
    /// The coordinator's own records, restored from the log, against which workers' reports are checked.
    pub(crate) evidence: Evidence,
    pub(crate) last: Time,
    /// Last recorded relation of the run's clock to the wall clock; `None`: the run isn't resumed.
    pub(crate) anchor: Option<ClockAnchor>,
    /// Number of the experiment's faults that were injected.
    pub(crate) faults_asked: usize,
    pub(crate) begun: bool,
    /// Header for a log that has none yet; `None`: the log has one.
    pub(crate) header: Option<HeaderText>,
    pub(crate) hosts: Vec<RestoredHost>,
    /// Parallel jobs without predecessors, in order of submission.
    pub(crate) submissions: Vec<Submission>,
    /// Parallel jobs that follow others and aren't submitted yet.
    pub(crate) followers: WaitingFollowers,
    /// Number of all parallel jobs of the workload.
    pub(crate) jobs: usize,
    /// Highest number of a parallel job of the workload.
    pub(crate) last_number: u64,
    /// VM requests of customers, in order of time.
    pub(crate) requests: Vec<(Time, VmRequest)>,
    /// Jobs submitted so far, from the workload and from outside.
    pub(crate) door: JobIntake,
    /// Commands in the log that hosts haven't answered; all commands count as unsent.
    pub(crate) outstanding: Outstanding,
    /// Host and number of each report that a crash separated from its account of CPU time, which is in the log.
    pub(crate) parted: BTreeSet<(HostId, u64)>,
    pub(crate) journal: ActorRef<JournalMsg>,
    pub(crate) vitals: CoordinatorVitals,
    /// Tracing span of the run.
    pub(crate) span: Span,
    pub(crate) store: Arc<CheckpointFolder>,
    pub(crate) warden: ActorCell,
    /// Runtime of all other actors.
    pub(crate) runtime: Handle,
    pub(crate) lives: Arc<SessionRegistry>,
    pub(crate) board: watch::Sender<PostedProgress>,
    pub(crate) progress: Option<watch::Sender<RunProgress>>,
    pub(crate) failed: UnboundedSender<CoordinatorError>,
}
