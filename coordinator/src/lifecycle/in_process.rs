//! A coordinator whose workers are of the same process: without a server, and without the threads that its world
//! lacks. Simulations run it, with the time of their runtime.

use std::sync::Arc;

use crate::CoordinatorError;
use crate::lifecycle::beginning::begin_run;
use crate::lifecycle::live::{LiveOutcome, LiveRunPlan};
use crate::lifecycle::service::RunActors;
use crate::lifecycle::stops::RunStops;
use crate::server::desk::WorkerDesk;
use crate::status::vitals::CoordinatorVitals;

/// A coordinator that conducts a run, and is reached by its desk alone.
#[derive(Debug)]
pub struct InProcess {
    service: RunActors,
    desk: Arc<WorkerDesk>,
    stops: RunStops,
    workers_stay: bool,
    log: std::path::PathBuf,
}

impl LiveRunPlan {
    /// Begins the run, or goes on with it, without a server: its address is not listened on, and nobody has to
    /// prove who he is.
    ///
    /// # Errors
    ///
    /// The particulars contradict each other, or the log is another coordinator's or can't be gone on with.
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

impl InProcess {
    /// The desk at which its workers are served.
    #[must_use]
    pub fn worker_desk(&self) -> Arc<WorkerDesk> {
        Arc::clone(&self.desk)
    }

    /// Waits for the end of the run.
    ///
    /// # Errors
    ///
    /// The run broke, or was paused: see [`CoordinatorError`].
    pub async fn wait_end(&mut self) -> Result<LiveOutcome, CoordinatorError> {
        let Self { service, desk, stops, workers_stay, log } = self;
        let last = service.await_outcome(desk, stops.clone(), *workers_stay).await?;
        let (run, facts) = service.close(last).await?.into_outcome();
        Ok(LiveOutcome { run, facts, log: log.clone() })
    }

    /// Kills all its actors, as if their process had been killed; what their work in place still says and
    /// writes until the runtime has seen to that is for the caller's network and disk to keep away.
    pub fn kill_actors(self) {
        self.service.kill_actors(&self.desk);
    }
}
