//! Repeating calls to a coordinator that can't be reached, until it answers: a run may be resumed at any time while its
//! VMs are kept, and relies on the reports and files that its workers still have to deliver.

use std::error::Error as _;
use std::time::Duration;

use tokio::time::sleep;
use tonic::{Code, Status};

use super::gate::{LaunchPass, RevokedLaunch};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Returns whether a status means that the coordinator was away, or went away during the call.
#[must_use]
pub(super) fn is_unanswered(status: &Status) -> bool {
    // What the coordinator says itself has no cause here.
    status.code() == Code::Unavailable || status.source().is_some()
}

/// Growing pauses between attempts at a call.
#[derive(Debug)]
pub(super) struct RetryPauses {
    next: Duration,
}

impl Default for RetryPauses {
    fn default() -> Self {
        Self { next: FIRST_PAUSE }
    }
}

impl RetryPauses {
    /// Returns the next pause: twice as long each time, up to some seconds.
    fn next_pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (2 * pause).min(LONGEST_PAUSE);
        pause
    }

    /// Waits for the next pause.
    ///
    /// # Errors
    ///
    /// The launch was revoked.
    pub(super) async fn wait_pause(&mut self, pass: &LaunchPass) -> Result<(), RevokedLaunch> {
        pass.unless_revoked(sleep(self.next_pause())).await
    }
}
