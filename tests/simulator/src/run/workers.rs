//! The workers' processes: under each name, one process after the other.

use std::time::Duration;

use dormouse_identity::WorkerLife;
use tokio::time::Instant;

use crate::network::Network;
use crate::plan::PlannedWorker;
use crate::stage::Stage;
use crate::witness::Witness;
use crate::worker::{Leftovers, SimulatedWorker, WorkerPlan};
use crate::worker_end::WorkerEnd;

/// Time until a worker that ended by itself is started again, if the run is not over.
const STARTED_AGAIN: Duration = Duration::from_millis(500);

/// A worker's name, and the process that has this name at present.
#[derive(Debug)]
pub(super) struct Slot {
    planned: PlannedWorker,
    process: Option<SimulatedWorker>,
    former: Option<WorkerLife>,
    /// When the next process is started; `None`: never.
    comes: Option<Instant>,
    pub(super) started: u64,
}

impl Slot {
    pub(super) fn new(planned: PlannedWorker, comes: Instant) -> Self {
        Self { planned, process: None, former: None, comes: Some(comes), started: 0 }
    }

    pub(super) fn name(&self) -> &str {
        &self.planned.worker.name
    }

    /// The worker's properties.
    pub(super) const fn plan(&self) -> &WorkerPlan {
        &self.planned.worker
    }

    /// When the next process must be started; `None` if there is a process, or never.
    pub(super) const fn due(&self) -> Option<Instant> {
        match self.process {
            None => self.comes,
            Some(_) => None,
        }
    }

    /// Starts the next process if its time has come.
    pub(super) fn come(&mut self, network: &Network, witness: &Witness, stage: &Stage) {
        if self.process.is_some() || self.comes.is_none_or(|comes| comes > Instant::now()) {
            return;
        }
        self.comes = None;
        self.started += 1;
        let name = self.name().to_owned();
        stage.note(format_args!("{name} is started, showing {:?}", self.former));
        let port = network.port(&name);
        let (plan, former) = (&self.planned.worker, self.former.clone());
        self.process = Some(SimulatedWorker::start(plan, port, former, witness.clone()));
    }

    /// Kills the process, if there is one; the next is started after `down`, or never. Returns whether there was a
    /// process.
    pub(super) fn kill(
        &mut self,
        network: &Network,
        down: Option<Duration>,
        has_certificate: bool,
    ) -> bool {
        let Some(process) = self.process.take() else { return false };
        self.former = process.life().or(self.former.take()).filter(|_| has_certificate);
        process.kill();
        network.closed(self.name());
        self.comes = down.map(|down| Instant::now() + down);
        true
    }

    /// Suspends the process for this time, if there is one. Returns whether there is.
    pub(super) fn pause(&self, lasts: Duration) -> bool {
        let Some(process) = &self.process else { return false };
        process.pause(lasts);
        true
    }

    /// How the worker's process ended and what it left behind, if it has ended by itself.
    pub(super) fn look(
        &mut self,
        (stage, network): (&Stage, &Network),
        goes_on: bool,
    ) -> Option<(WorkerEnd, Leftovers)> {
        let process = self.process.take_if(|process| process.is_over())?;
        let ended = process.ended();
        match &ended {
            Some((how, _)) => stage.note(format_args!("{} has ended: {how}", self.name())),
            // A fault of the experiment killed it.
            None => {
                stage.note(format_args!("{} is gone", self.name()));
                network.closed(self.name());
            }
        }
        self.former = process.life().or(self.former.take());
        self.comes = goes_on.then(|| Instant::now() + STARTED_AGAIN);
        ended
    }

    /// Whether the worker has no process at present.
    pub(super) const fn is_away(&self) -> bool {
        self.process.is_none()
    }
}
