//! Announcements to a VM at their times.

use std::time::Duration;

use dormouse_metadata::VmAnnouncement;
use dormouse_worker::metadata::Endpoint;
use tokio::time::{Instant, sleep_until};

use crate::said;

/// An announcement to a VM, with its time.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    /// Real time from the beginning of the scenario to the announcement.
    pub(crate) after: Duration,
    /// The announcement; `None`: nothing is announced to the VM, and only time passes.
    pub(crate) what: Option<VmAnnouncement>,
    /// The announcement in words.
    pub(crate) words: String,
}

/// Makes an endpoint make the announcements `acts`, which are in order of time, each at its time after `begun`.
pub(crate) async fn play(endpoint: &Endpoint, begun: Instant, acts: impl Iterator<Item = Act>) {
    for Act { after, what, words } in acts {
        // What is further off than any clock goes is never announced.
        let Some(due) = begun.checked_add(after) else { return };
        sleep_until(due).await;
        if let Some(what) = what {
            endpoint.announce_event(what);
            said::note(&words);
        }
    }
}
