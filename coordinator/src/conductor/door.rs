//! Parallel jobs from outside: put into the order of the run's events, and answered once they are in the log.

use std::sync::Arc;

use dormouse_model::Event;
use dormouse_proto::v1;
use ractor::RpcReplyPort;

use super::ConductorState;
use crate::messages::outside::{DurableAnswer, JobSubmission, submit_reply};

/// Number of unfinished jobs from which on jobs from outside are refused.
const MOST_UNFINISHED: usize = 100_000;

type Reply<T> = RpcReplyPort<Result<T, String>>;

impl ConductorState {
    /// Submits a job from outside now.
    pub(super) fn take_job(&mut self, asked: &JobSubmission, to: Reply<v1::SubmitReply>) {
        match self.try_take(asked) {
            // Where it was taken before, that is as durable as what is appended after it.
            Ok(say) => self.batch.then.push(Box::new(DurableAnswer { to, say })),
            Err(why) => drop(to.send(Err(why))),
        }
    }

    fn try_take(&mut self, asked: &JobSubmission) -> Result<v1::SubmitReply, String> {
        self.must_go_on()?;
        if let Some(known) = self.door.find_known(asked)? {
            return Ok(known);
        }
        self.must_be_open()?;
        let now = self.clock.show_now();
        self.hear_until(now, None);
        // That may have ended it.
        self.must_go_on()?;
        self.must_be_open()?;
        if self.run.unfinished_count() >= MOST_UNFINISHED {
            return Err(format!(
                "{MOST_UNFINISHED} jobs wait or run already: submit it again later"
            ));
        }
        let number = self.last_number.saturating_add(self.door.outside_count() as u64 + 1);
        let at = self.last.max(now);
        let job = Arc::new(asked.make_submission(number, at));
        job.check_fits(self.run.setup().space_of_jobs())
            .map_err(|why| format!("the job can't be run: {why}"))?;
        let (task, key) = (self.run.next_task(), Arc::clone(&asked.key));
        self.door.note_submitted(Some(&key), &job);
        self.feed_event(at, Event::Submitted { task, key: Some(key), job: Arc::clone(&job) });
        self.must_go_on()?;
        Ok(submit_reply(&job, false))
    }

    /// Closes the run to jobs from outside.
    pub(super) fn close_intake(&mut self, to: Reply<v1::CloseReply>) {
        if let Err(why) = self.must_go_on() {
            return drop(to.send(Err(why)));
        }
        // One that is shut is shut.
        if self.plan.is_open && self.begun && !self.door.is_open {
            return self.batch.then.push(Box::new(DurableAnswer { to, say: v1::CloseReply {} }));
        }
        let now = self.clock.show_now();
        self.hear_until(now, None);
        // That may have ended it.
        if let Err(why) = self.must_go_on().and_then(|()| self.must_be_open()) {
            return drop(to.send(Err(why)));
        }
        // The log says so before it has what follows from it, that all jobs are submitted: of both a crash may keep the first alone.
        self.feed_event(now, Event::Closed);
        self.door.is_open = false;
        match self.must_go_on() {
            Ok(()) => self.batch.then.push(Box::new(DurableAnswer { to, say: v1::CloseReply {} })),
            Err(why) => drop(to.send(Err(why))),
        }
    }

    /// Checks that the scheduler hasn't failed, since nothing is logged after that.
    pub(super) fn must_go_on(&self) -> Result<(), String> {
        match &self.broken {
            None => Ok(()),
            Some(why) => {
                Err(format!("the run has stopped: {why}; ask again once it has been resumed"))
            }
        }
    }

    fn must_be_open(&self) -> Result<(), String> {
        let why = if !self.plan.is_open {
            "this run takes no jobs from outside: begin one that does with --open"
        } else if !self.begun {
            "the run has not begun: its workers are not all there; come again when they are"
        } else if self.run.over_at().is_some() {
            "the run is over"
        } else if !self.door.is_open {
            "the run has been closed: it takes no more jobs"
        } else {
            return Ok(());
        };
        Err(why.to_owned())
    }
}
