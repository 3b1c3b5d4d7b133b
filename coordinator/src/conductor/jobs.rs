//! Events that arrive during a run: parallel jobs and VM requests; and the ends of instants, which only runs with
//! parallel jobs need.

use std::sync::Arc;

use dormouse_cloud::ProviderVmState;
use dormouse_engine::Run;
use dormouse_engine::drive::WaitingFollowers;
use dormouse_model::Event;
use dormouse_units::{Span, Time};

use super::ConductorState;

/// Returns whether the clock must be stopped until the machine for parallel jobs is ready, whose boot takes no
/// emulated time.
pub(super) fn waits_for_machine(run: &Run) -> bool {
    let setup = run.setup();
    let at_once = setup.jobs.is_some() && setup.catalogue.boot == Span::ZERO;
    let mut machines = run.provider().vms().filter(|(_, vm)| setup.is_two_tier(&vm.kind));
    at_once
        && machines.all(|(_, vm)| vm.state == ProviderVmState::Booting)
        && run.counts().launches_refused == 0
}

impl ConductorState {
    /// Returns the times of the next event from outside (a job without predecessors, a VM request, or the end of
    /// either) and of the next job whose predecessors have ended.
    pub(super) fn next_arrivals(&self) -> (Option<Time>, Option<Time>) {
        if !self.begun || self.run.over_at().is_some() {
            return (None, None);
        }
        let follower = if self.run.all_submitted() { None } else { self.followers.next() };
        (Time::sooner_of(self.next_submission(), self.next_request()), follower)
    }

    fn next_request(&self) -> Option<Time> {
        // Callers of the provider's API have no list.
        if self.run.all_requested() || self.plan.api.is_some() {
            return None;
        }
        let next = self.requests.get(self.run.next_request().get() as usize);
        let last = self.requests.last();
        Some(next.or(last).map_or(Time::ZERO, |(at, _)| *at))
    }

    fn next_submission(&self) -> Option<Time> {
        if self.run.all_submitted() {
            return None;
        }
        let last = self.submissions.last().map_or(Time::ZERO, |job| job.submitted);
        match self.submissions.get(self.door.own) {
            Some(job) => Some(job.submitted),
            // More may come.
            None if self.door.is_open || !self.followers.is_empty() => None,
            None => Some(last),
        }
    }

    /// Returns whether work is left, but nothing will ever happen again. Jobs whose predecessors will never end count as work
    /// that is left, and not as something that will happen.
    pub(super) fn is_stuck(&self) -> bool {
        let more_come = self.door.is_open || self.next_arrivals() != (None, None);
        match self.followers.is_empty() || more_come {
            true => self.run.is_stuck(),
            false => self.run.is_stuck_unless_submitted_to(),
        }
    }

    /// Feeds the next event from outside; of equal times jobs come first, as in virtual time.
    pub(super) fn submit_next(&mut self, at: Time) {
        let request = self.next_request();
        match self.next_submission() {
            Some(job) if request.is_none_or(|request| job <= request) => self.submit_job(at),
            _ => self.request_next(at),
        }
    }

    /// Feeds the next VM request, or the end of requests.
    fn request_next(&mut self, at: Time) {
        let request = self.run.next_request();
        match self.requests.get(request.get() as usize) {
            Some((_, asks)) => {
                let asks = asks.clone();
                self.feed_event(at, Event::Requested { request, asks });
            }
            None => self.feed_event(at, Event::AllRequested),
        }
    }

    /// Feeds the next submission, or the end of submissions.
    fn submit_job(&mut self, at: Time) {
        let task = self.run.next_task();
        let Some(job) = self.submissions.get(self.door.own) else {
            return self.feed_event(at, Event::AllSubmitted);
        };
        let job = Arc::new(job.clone());
        self.door.note_submitted(None, &job);
        self.feed_event(at, Event::Submitted { task, key: None, job });
    }

    /// Submits the next job whose predecessors have ended.
    pub(super) fn submit_follower(&mut self, at: Time) {
        let task = self.run.next_task();
        if let Some(job) = self.followers.take_due() {
            self.feed_event(at, WaitingFollowers::submission_event(task, job));
        }
    }

    /// Starts the clock, which is stopped until the first machine is ready or refused, and in a resumed run until the
    /// workers are back.
    pub(super) fn start_clock(&mut self) {
        if self.begun
            && self.returning.is_none()
            && !self.clock.is_running()
            && !waits_for_machine(&self.run)
        {
            self.clock.run();
        }
    }
}
