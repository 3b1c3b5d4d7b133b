//! The save that a program makes of its work at an interruption notice.

use dormouse_proto::v1::{StopTask, TaskRef};
use dormouse_units::Ppm;

use tokio::time::Instant;

use super::clock::CommandStamp;

/// A request to stop or checkpoint a program that is saving its work, put off until the save is over.
#[derive(Debug)]
pub(crate) enum DeferredRequest {
    Checkpoint(TaskRef),
    Stop(StopTask, CommandStamp),
}

/// Save that a program makes of its work at an interruption notice.
#[derive(Debug)]
pub(crate) struct NoticeSave {
    /// Instant at which the save counts as done.
    until: Instant,
    /// Part of the work that was done at the notice; work done later may not be saved.
    done: Ppm,
    /// Request that came while the program saved its work, and is delayed; `None`: no request came.
    put_off: Option<DeferredRequest>,
}

impl NoticeSave {
    /// Begins a save of the part `done` of the work; the save counts as complete at the instant `until`.
    pub(crate) const fn new(until: Instant, done: Ppm) -> Self {
        Self { until, done, put_off: None }
    }

    /// Returns the part of the work that was done at the notice.
    pub(crate) const fn work_done(&self) -> Ppm {
        self.done
    }

    /// Puts off a request while the save is under way; returns the request if the save is over already.
    pub(crate) fn put_off(
        &mut self,
        now: Instant,
        request: DeferredRequest,
    ) -> Option<DeferredRequest> {
        if now >= self.until {
            return Some(request);
        }
        // A program that is stopped is kept thereby.
        if !matches!(self.put_off, Some(DeferredRequest::Stop(..))) {
            self.put_off = Some(request);
        }
        None
    }

    /// Returns when the put-off request is to be handled; `None`: no request was put off.
    pub(crate) fn put_off_until(&self) -> Option<Instant> {
        self.put_off.as_ref().map(|_| self.until)
    }

    /// Takes the put-off request if the save is over by `now`.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<DeferredRequest> {
        self.put_off.take_if(|_| self.until <= now)
    }
}
