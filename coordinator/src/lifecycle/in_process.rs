//! A coordinator whose workers are in the same process: without a server, and without threads if its world has none.
//! Simulations use it, with the time of their runtime.

use std::sync::Arc;

use dormouse_proto::v1;
use tonic::Status;

use crate::CoordinatorError;
use crate::lifecycle::beginning::begin_run;
use crate::lifecycle::live::{LiveOutcome, LiveRunPlan};
use crate::lifecycle::service::RunActors;
use crate::lifecycle::stops::RunStops;
use crate::observers::observe;
use crate::server::desk::WorkerDesk;
use crate::status::vitals::CoordinatorVitals;

/// A coordinator without a server; workers in the same process call its `WorkerDesk` directly.
#[derive(Debug)]
pub struct InProcess {
    service: RunActors,
    desk: Arc<WorkerDesk>,
    stops: RunStops,
    workers_stay: bool,
    log: std::path::PathBuf,
}

impl LiveRunPlan {
    /// Begins or resumes the run without a server: it doesn't listen, and no caller has to prove who it is.
    ///
    /// # Errors
    ///
    /// The parameters contradict each other, or the log belongs to another coordinator or can't be resumed.
    pub async fn in_process(self) -> Result<InProcess, CoordinatorError> {
        self.check_particulars()?;
        let (out, stops, entries) = (self.out.clone(), self.stops(), self.entry_count());
        let (experiment, workers_stay) = (self.experiment.clone(), self.workers_stay);
        let (beginning, observer) = begin_run(self).await?;
        let (service, args) = beginning
            .start_actors(&out, observer, CoordinatorVitals::default(), &experiment)
            .await?;
        let desk = service.open(args, entries).await?;
        let log = out.join(dormouse_log::FILE);
        Ok(InProcess { service, desk, stops, workers_stay, log })
    }
}

impl WorkerDesk {
    /// Submits a parallel job to a run that is open, as the API does; returns once the submission is durable.
    ///
    /// # Errors
    ///
    /// The job is invalid, the run doesn't accept it, or the coordinator ends.
    pub async fn submit_job(&self, request: v1::SubmitRequest) -> Result<v1::SubmitReply, Status> {
        observe::submit_job(&self.conductor, request).await
    }

    /// Closes a run that is open to more jobs, as the API does; returns once that is durable.
    ///
    /// # Errors
    ///
    /// The run was never open or has not begun, or the coordinator ends.
    pub async fn close_run(&self) -> Result<v1::CloseReply, Status> {
        observe::close_run(&self.conductor).await
    }
}

impl InProcess {
    /// Returns the desk that serves the coordinator's workers.
    #[must_use]
    pub fn worker_desk(&self) -> Arc<WorkerDesk> {
        Arc::clone(&self.desk)
    }

    /// Waits for the end of the run.
    ///
    /// # Errors
    ///
    /// The run failed or was paused: see [`CoordinatorError`].
    pub async fn wait_end(&mut self) -> Result<LiveOutcome, CoordinatorError> {
        let Self { service, desk, stops, workers_stay, log } = self;
        let last = service.await_outcome(desk, stops.clone(), *workers_stay).await?;
        let (run, facts) = service.close(last).await?.into_outcome();
        Ok(LiveOutcome { run, facts, log: log.clone() })
    }

    /// Kills all actors as if their process had been killed. The caller's network and disk must drop what blocking work
    /// of the actors still sends and writes.
    pub fn kill_actors(self) {
        self.service.kill_actors(&self.desk);
    }
}
