//! A coordinator whose workers are of the same process: without a server, and without the threads that its world
//! lacks. Simulations run it, with the time of their runtime.

use std::sync::Arc;

use dormouse_proto::v1;
use tonic::Status;

use crate::CoordinatorError;
use crate::lifecycle::beginning::begin;
use crate::lifecycle::live::{Conducted, LiveRun};
use crate::lifecycle::service::Service;
use crate::lifecycle::stops::Stops;
use crate::observers::observe;
use crate::server::desk::Desk;
use crate::status::vitals::Vitals;

/// A coordinator that conducts a run, and is reached by its desk alone.
#[derive(Debug)]
pub struct InProcess {
    service: Service,
    desk: Arc<Desk>,
    stops: Stops,
    workers_stay: bool,
    log: std::path::PathBuf,
}

impl LiveRun {
    /// Begins the run, or goes on with it, without a server: its address is not listened on, and nobody has to
    /// prove who he is.
    ///
    /// # Errors
    ///
    /// The particulars contradict each other, or the log is another coordinator's or can't be gone on with.
    pub async fn in_process(self) -> Result<InProcess, CoordinatorError> {
        self.check()?;
        let (out, stops, entries) = (self.out.clone(), self.stops(), self.entries());
        let (experiment, workers_stay) = (self.experiment.clone(), self.workers_stay);
        let (beginning, observer) = begin(self).await?;
        let (service, args) =
            beginning.serve(&out, observer, Vitals::default(), &experiment).await?;
        let desk = service.open(args, entries).await?;
        let log = out.join(dormouse_log::FILE);
        Ok(InProcess { service, desk, stops, workers_stay, log })
    }
}

impl Desk {
    /// Submits a parallel job to a run that is open, as the API does; answered once that is durable.
    ///
    /// # Errors
    ///
    /// There can be no such job, the run does not take it, or its coordinator ends.
    pub async fn submit_job(&self, request: v1::SubmitRequest) -> Result<v1::SubmitReply, Status> {
        observe::submit_job(&self.conductor, request).await
    }

    /// Closes a run that is open to more jobs, as the API does; answered once that is durable.
    ///
    /// # Errors
    ///
    /// The run was never open or has not begun, or its coordinator ends.
    pub async fn close_run(&self) -> Result<v1::CloseReply, Status> {
        observe::close_run(&self.conductor).await
    }
}

impl InProcess {
    /// The desk at which its workers are served.
    #[must_use]
    pub fn desk(&self) -> Arc<Desk> {
        Arc::clone(&self.desk)
    }

    /// Waits for the end of the run.
    ///
    /// # Errors
    ///
    /// The run broke, or was paused: see [`CoordinatorError`].
    pub async fn ended(&mut self) -> Result<Conducted, CoordinatorError> {
        let Self { service, desk, stops, workers_stay, log } = self;
        let last = service.outcome(desk, stops.clone(), *workers_stay).await?;
        let (run, facts) = service.close(last).await?.into_outcome();
        Ok(Conducted { run, facts, log: log.clone() })
    }

    /// Kills all its actors, as if their process had been killed; what their work in place still says and
    /// writes until the runtime has seen to that is for the caller's network and disk to keep away.
    pub fn kill(self) {
        self.service.kill(&self.desk);
    }
}
