//! What a conductor begins with.

use std::collections::BTreeSet;
use std::sync::Arc;

use dormouse_analysis::{Evidence, LiveFacts};
use dormouse_engine::Run;
use dormouse_engine::drive::WaitingFollowers;
use dormouse_model::{Submission, VmRequest};
use dormouse_units::{HostId, Time};
use ractor::{ActorCell, ActorRef};
use serde_json::Value;
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

/// A host of a run that is resumed.
#[derive(Debug)]
pub(crate) struct RestoredHost {
    pub(crate) host: HostId,
    pub(crate) worker: String,
    pub(crate) incarnation: u64,
    pub(crate) room: WorkerOffer,
    pub(crate) lost: Option<String>,
    /// The numbers of its reports that are durable.
    pub(crate) heard: BTreeSet<u64>,
}

/// What the conductor begins with.
#[derive(Debug)]
pub(crate) struct ConductorArgs {
    pub(crate) plan: ConductorPlan,
    pub(crate) run: Run,
    pub(crate) facts: LiveFacts,
    /// What was reckoned of it beside what workers say.
    pub(crate) evidence: Evidence,
    pub(crate) last: Time,
    /// What the clock last showed beside the wall clock, of a run that is resumed.
    pub(crate) anchor: Option<ClockAnchor>,
    /// Number of the experiment's faults that have been asked for.
    pub(crate) faults_asked: usize,
    pub(crate) begun: bool,
    /// The header, for a log that has none yet.
    pub(crate) header: Option<Value>,
    pub(crate) hosts: Vec<RestoredHost>,
    /// Parallel jobs, in order of submission, without those that follow others.
    pub(crate) submissions: Vec<Submission>,
    /// Parallel jobs that follow others, and have not been submitted.
    pub(crate) followers: WaitingFollowers,
    /// Number of all parallel jobs of the workload.
    pub(crate) jobs: usize,
    /// Highest number of a parallel job of the workload.
    pub(crate) last_number: u64,
    /// The VMs that customers request, in order of time.
    pub(crate) requests: Vec<(Time, VmRequest)>,
    /// What has been submitted of them, and from outside.
    pub(crate) door: JobIntake,
    /// What the hosts were told by the log and have not done; all that they were ever told is unsent.
    pub(crate) outstanding: Outstanding,
    /// Reports that a crash parted from their accounts, which the log has: their hosts and numbers.
    pub(crate) parted: BTreeSet<(HostId, u64)>,
    pub(crate) journal: ActorRef<JournalMsg>,
    pub(crate) vitals: CoordinatorVitals,
    /// The run, for whoever traces it.
    pub(crate) span: Span,
    pub(crate) store: Arc<CheckpointFolder>,
    pub(crate) warden: ActorCell,
    /// Where all other actors run.
    pub(crate) runtime: Handle,
    pub(crate) lives: Arc<SessionRegistry>,
    pub(crate) board: watch::Sender<PostedProgress>,
    pub(crate) progress: Option<watch::Sender<RunProgress>>,
    pub(crate) failed: UnboundedSender<CoordinatorError>,
}
