//! Requests of the user of a run to end it before its time: to cancel or to pause it.

use ractor::ActorRef;
use tokio_util::sync::CancellationToken;

use crate::messages::message::ConductorMsg;

/// Reason of a pause by the run's user.
pub const STOPPED_BY_USER: &str = "its user wanted it so";

/// The two ways in which a user stops a run.
#[derive(Clone, Debug)]
pub(crate) struct RunStops {
    /// Cancels the run.
    pub(crate) cancel: CancellationToken,
    /// Pauses the run, so that it can be resumed.
    pub(crate) pause: CancellationToken,
}

impl RunStops {
    /// Informs the conductor when the user stops the run.
    pub(crate) async fn tell_conductor(self, conductor: ActorRef<ConductorMsg>) {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {}
            () = self.pause.cancelled() => {
                let why = STOPPED_BY_USER.to_owned();
                let _ = conductor.cast(ConductorMsg::Pause { why });
                self.cancel.cancelled().await;
            }
        }
        let why = "the user ended it".to_owned();
        let _ = conductor.cast(ConductorMsg::Cancel { why });
    }
}
