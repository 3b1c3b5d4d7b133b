//! How a run is ended or stopped before its time.

use std::time::Duration;

use dormouse_model::Event;
use ractor::rpc::CallResult;

use super::{CLEAN_UP, ConductorState};
use crate::CoordinatorError;
use crate::log::journal::{JournalBatch, JournalMsg};

impl ConductorState {
    /// Cancels the run, unless reports that have arrived end it anyway.
    pub(super) fn cancel_run(&mut self, why: impl FnOnce(&Self) -> String) {
        let now = self.clock.show_now();
        self.hear_until(now, None);
        if self.run.over_at().is_none() {
            let why = why(self);
            self.feed_event(now, Event::Cancel { why });
        }
    }

    /// Pauses the run so that it can be resumed: the log gets all reports that have arrived, the time, and for how long
    /// workers keep the run's VMs. A run that hasn't begun is ended.
    pub(super) async fn pause_run(&mut self, why: String) {
        if !self.begun {
            return self.cancel_run(|_| why);
        }
        if self.returning.is_some() {
            // It has not gone on: its log says all.
            let _ = self.failed.send(CoordinatorError::Paused { why });
            return;
        }
        self.hear_until(self.clock.show_now(), None);
        if self.run.over_at().is_some() || self.broken.is_some() {
            return;
        }
        self.say_clock_and_hold(if self.plan.workers_stay {
            self.plan.hold
        } else {
            Duration::ZERO
        });
        let steps = std::mem::take(&mut self.batch.steps);
        // What was decided by it is decided again when the run goes on: nobody is told now.
        let _ = self
            .journal
            .cast(JournalMsg::Append(JournalBatch { steps, ..JournalBatch::default() }));
        drop(self.outstanding.take_unsent());
        match self.journal.call(JournalMsg::Flush, Some(CLEAN_UP)).await {
            Ok(CallResult::Success(())) => {
                let _ = self.failed.send(CoordinatorError::Paused { why });
            }
            // The journal has said why.
            _ => tracing::error!("the last steps of the log could not be made durable"),
        }
    }

    /// Stops the service after its scheduler has failed, once all earlier steps are in the log: the run can be
    /// resumed.
    pub(super) async fn break_off(&mut self) {
        let Some(why) = self.broken.clone() else { return };
        match self.journal.call(JournalMsg::Flush, Some(CLEAN_UP)).await {
            Ok(CallResult::Success(())) => {
                let _ = self.failed.send(CoordinatorError::Scheduler { why });
            }
            // The journal has said why.
            _ => tracing::error!("the last steps of the log could not be made durable"),
        }
    }
}
