//! The interface between the server and the cloud behind it.

use dormouse_ec2::InstanceAnnouncement;
use dormouse_ec2_wire::{ApiError, ApiRequest, WireValue};
use dormouse_units::Time;

/// A cloud that answers EC2's calls; its time advances only when the caller says so.
pub trait CloudSession: Send {
    /// Answers a call of an account in a region, at the instant [`now`](Self::now).
    ///
    /// # Errors
    ///
    /// EC2's refusal.
    fn call(
        &mut self,
        account: &str,
        region: &str,
        request: &ApiRequest,
    ) -> Result<WireValue, ApiError>;

    /// Makes the provider give a running spot instance its notice now, for a reason that the log keeps; false if the
    /// instance is not a running spot instance.
    fn interrupt(&mut self, instance: &str, why: &str) -> bool;

    /// Announcements about instances from the `from`-th on.
    fn announced(&self, from: usize) -> Vec<InstanceAnnouncement>;

    /// Keeps a line of the services beside EC2 durably with the run; false if it can't be written.
    fn keep_record(&mut self, line: &str) -> bool;

    /// The records that were kept before the run was resumed, oldest first.
    fn kept_records(&self) -> Vec<String>;

    /// The run's time.
    fn now(&self) -> Time;

    /// The date of the run's beginning, in microseconds since 1970 (UTC).
    fn begins_at(&self) -> i64;

    /// Time of the next event without a call; `None`: there will be none.
    fn next_event_at(&mut self) -> Option<Time>;

    /// Advances the time to an instant, with all events until then; an earlier instant changes nothing.
    fn advance_to(&mut self, to: Time);
}
