//! The save that a program makes of its work at a notice.

use dormouse_proto::v1::{StopTask, TaskRef};
use dormouse_units::Ppm;

use tokio::time::Instant;

use super::clock::CommandStamp;

/// What is asked of a program that saves its work.
#[derive(Debug)]
pub(crate) enum DeferredRequest {
    Checkpoint(TaskRef),
    Stop(StopTask, CommandStamp),
}

/// The save that a program makes at a notice.
#[derive(Debug)]
pub(crate) struct NoticeSave {
    /// The time at which it is taken for done.
    until: Instant,
    /// What of its work was done at the notice: what comes later may not be saved.
    done: Ppm,
    /// What is asked meanwhile.
    put_off: Option<DeferredRequest>,
}

impl NoticeSave {
    /// A save that begins with so much of the work done, and is taken for done at this time.
    pub(crate) const fn new(until: Instant, done: Ppm) -> Self {
        Self { until, done, put_off: None }
    }

    /// What of its work was done at the notice.
    pub(crate) const fn work_done(&self) -> Ppm {
        self.done
    }

    /// Puts off what is asked as long as the save goes on; gives it back if that is over.
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

    /// The time at which what is put off is due, if anything is.
    pub(crate) fn put_off_until(&self) -> Option<Instant> {
        self.put_off.as_ref().map(|_| self.until)
    }

    /// Takes what was put off and is due by now.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<DeferredRequest> {
        self.put_off.take_if(|_| self.until <= now)
    }
}
