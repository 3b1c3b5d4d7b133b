//! The interface between the server and the cloud behind it.

use dormouse_ec2::{InstanceAnnouncement, RoleKey};
use dormouse_ec2_wire::{ApiError, ApiRequest, WireValue};
use dormouse_units::Time;

/// The answer to a call, which may be sent once everything that it depends on is durable.
pub struct AwaitedAnswer(Box<dyn FnOnce() -> Result<WireValue, ApiError> + Send>);

impl AwaitedAnswer {
    /// Makes the answer that `wait` returns, which may block until it can be sent.
    pub fn new(wait: impl FnOnce() -> Result<WireValue, ApiError> + Send + 'static) -> Self {
        Self(Box::new(wait))
    }

    /// Waits until the answer can be sent; meanwhile the cloud takes other calls.
    ///
    /// # Errors
    ///
    /// EC2's refusal.
    pub fn wait(self) -> Result<WireValue, ApiError> {
        (self.0)()
    }
}

impl std::fmt::Debug for AwaitedAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AwaitedAnswer")
    }
}

/// A cloud that answers EC2's calls; its time advances only when the caller says so.
pub trait CloudSession: Send {
    /// Takes a call of an account in a region, at the instant [`now`](Self::now).
    fn begin_call(&mut self, account: &str, region: &str, request: &ApiRequest) -> AwaitedAnswer;

    /// Answers a call, and takes no other one meanwhile.
    ///
    /// # Errors
    ///
    /// EC2's refusal.
    fn call(
        &mut self,
        account: &str,
        region: &str,
        request: &ApiRequest,
    ) -> Result<WireValue, ApiError> {
        self.begin_call(account, region, request).wait()
    }

    /// The credentials of an instance's role with this access key; `None`: there are none.
    fn role_key(&self, _access_key: &str) -> Option<RoleKey> {
        None
    }

    /// Makes the provider give a running spot instance its notice now, for a reason that the log keeps; false if the
    /// instance is not a running spot instance.
    fn interrupt(&mut self, instance: &str, why: &str) -> bool;

    /// Announcements about instances from the `from`-th on.
    fn announced(&self, from: usize) -> Vec<InstanceAnnouncement>;

    /// Writes a record of a service beside EC2 durably to the run's log; false if it can't be written.
    fn keep_record(&mut self, line: &str) -> bool;

    /// The records that were kept before the run was resumed, oldest first.
    fn kept_records(&self) -> Vec<String>;

    /// The present time of the run's clock.
    fn now(&self) -> Time;

    /// The date of the run's beginning, in microseconds since 1970 (UTC).
    fn begins_at(&self) -> i64;

    /// Time of the cloud's next event if no call comes before; `None`: without a call there will be no event.
    fn next_event_at(&mut self) -> Option<Time>;

    /// Advances the run's clock to an instant, with all events until then; an earlier instant changes nothing.
    fn advance_to(&mut self, to: Time);
}
