//! A cloud behind EC2's API whose instances run on the workers of a live run.

use dormouse_coordinator::{DeskLook, DeskRequest};
use dormouse_ec2::{ApiDesk, InstanceAnnouncement, RoleKey, call_event};
use dormouse_ec2_server::{AwaitedAnswer, CloudSession};
use dormouse_ec2_wire::{ApiError, ApiRequest};
use dormouse_units::Time;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::kept_lines::KeptLines;

/// A cloud whose calls are events of a live run.
#[derive(Debug)]
pub(crate) struct LiveCloud {
    requests: UnboundedSender<DeskRequest>,
    /// The date of the run's beginning, microseconds since 1970.
    begins_us: i64,
    beside: KeptLines,
}

impl LiveCloud {
    /// Makes the cloud whose calls go to a live run through `requests`.
    pub(crate) const fn new(
        requests: UnboundedSender<DeskRequest>,
        begins_us: i64,
        beside: KeptLines,
    ) -> Self {
        Self { requests, begins_us, beside }
    }

    /// Calls a function with the run's desk, which answers calls of the API, at the present time; `None`: the run is over.
    fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut ApiDesk, Time) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let look = DeskLook::new(move |desk, now| drop(reply.send(look(desk, now))));
        self.requests.send(DeskRequest::Look(look)).ok()?;
        answer.blocking_recv().ok()
    }
}

/// The error of a call that the run can't take any more.
fn run_ended() -> ApiError {
    ApiError::new("Unavailable", "The run is over.")
}

impl CloudSession for LiveCloud {
    fn begin_call(&mut self, account: &str, region: &str, request: &ApiRequest) -> AwaitedAnswer {
        let Some(event) = call_event(account, region, request) else {
            let (account, region) = (account.to_owned(), region.to_owned());
            let (action, input) = (request.action.clone(), request.input.clone());
            let read = self.look(move |desk, _| desk.read(&account, &region, &action, &input));
            return AwaitedAnswer::new(|| read.unwrap_or_else(|| Err(run_ended())));
        };
        let (reply, answer) = oneshot::channel();
        // A run that is over drops the reply.
        let _ = self.requests.send(DeskRequest::Call { event, reply });
        AwaitedAnswer::new(|| match answer.blocking_recv() {
            Ok(Ok(answer)) => answer,
            Ok(Err(why)) => Err(ApiError::new("Unavailable", why)),
            Err(_) => Err(run_ended()),
        })
    }

    fn role_key(&self, access_key: &str) -> Option<RoleKey> {
        let access_key = access_key.to_owned();
        self.look(move |desk, _| desk.role_key(&access_key)).flatten()
    }

    fn interrupt(&mut self, instance: &str, why: &str) -> bool {
        let (reply, answer) = oneshot::channel();
        let (instance, why) = (instance.to_owned(), why.to_owned());
        let sent = self.requests.send(DeskRequest::Interrupt { instance, why, reply });
        sent.is_ok() && answer.blocking_recv().unwrap_or(false)
    }

    fn announced(&self, from: usize) -> Vec<InstanceAnnouncement> {
        self.look(move |desk, _| desk.announced(from).to_vec()).unwrap_or_default()
    }

    fn keep_record(&mut self, line: &str) -> bool {
        self.beside.keep(line)
    }

    fn kept_records(&self) -> Vec<String> {
        self.beside.before.clone()
    }

    fn now(&self) -> Time {
        self.look(|_, now| now).unwrap_or(Time::ZERO)
    }

    fn begins_at(&self) -> i64 {
        self.begins_us
    }

    fn next_event_at(&mut self) -> Option<Time> {
        // Processes do what they want, and nobody knows when.
        None
    }

    fn advance_to(&mut self, _: Time) {}
}
