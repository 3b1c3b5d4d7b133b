//! Parallel jobs that follow others: held until their predecessors have ended, then submitted.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_model::{Effect, Event, Report, Step, Submission};
use dormouse_units::{TaskId, Time};

/// Jobs that are submitted some time after the end of other jobs, their predecessors. The struct holds only these jobs,
/// and the numbers of predecessors in the system.
///
/// Use: `hold_job` for each job before the run, `take_step` for each step, `take_due` when `next` is due.
#[derive(Clone, Debug, Default)]
pub struct WaitingFollowers {
    /// Indices in `held` of the jobs that wait for a predecessor, by the predecessor's number in the trace.
    waiting: BTreeMap<u64, Vec<usize>>,
    held: Vec<Option<HeldJob>>,
    /// Indices in `held` of jobs whose predecessors have all ended, by the time of their submission.
    due: BTreeMap<(Time, usize), Submission>,
    /// Trace numbers of those jobs in the system for which others wait, by the job's task.
    inside: BTreeMap<TaskId, u64>,
    /// Number of jobs in `held` that aren't submitted yet.
    left: usize,
}

/// A job that waits for the end of other jobs.
#[derive(Clone, Debug)]
struct HeldJob {
    job: Submission,
    /// Number of the job's predecessors that haven't ended.
    waits_for: usize,
    /// Latest time at which one of the job's predecessors ended.
    last: Time,
}

impl WaitingFollowers {
    /// Holds a job until its predecessors have ended. A job without predecessors is due at its submission time in the
    /// trace.
    pub fn hold_job(&mut self, job: Submission) {
        let place = self.held.len();
        let mut jobs = job.after.as_ref().map(|after| after.jobs.clone()).unwrap_or_default();
        jobs.sort_unstable();
        jobs.dedup();
        if jobs.is_empty() {
            self.held.push(None);
            self.due.insert((job.submitted, place), job);
            return;
        }
        for number in &jobs {
            self.waiting.entry(*number).or_default().push(place);
        }
        self.held.push(Some(HeldJob { job, waits_for: jobs.len(), last: Time::ZERO }));
        self.left += 1;
    }

    /// Returns whether every job has been submitted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left == 0 && self.due.is_empty()
    }

    /// Returns the number of jobs that aren't submitted yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.left + self.due.len()
    }

    /// Returns the time of the next submission; `None` if that time isn't known yet.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the next job to be submitted, with the time of its submission set.
    pub fn take_due(&mut self) -> Option<Submission> {
        self.due.pop_first().map(|(_, job)| job)
    }

    /// Removes the held job that a log records as already submitted, `job`; returns false if no such job is held.
    pub fn take_again(&mut self, job: &Submission) -> bool {
        let known = self.due.iter().find(|(_, due)| *due == job).map(|(key, _)| *key);
        known.is_some_and(|key| self.due.remove(&key).is_some())
    }

    /// Takes note of a step of the run: the jobs that it submits and those that end in it.
    pub fn take_step(&mut self, step: &Step) {
        if self.left == 0 {
            return;
        }
        match &step.event {
            Event::Submitted { task, job, .. } if self.waiting.contains_key(&job.number) => {
                self.inside.insert(*task, job.number);
            }
            Event::Machine {
                report: Report::TaskFinished { task, verified: true, .. }, ..
            } if !step.effects.contains(&Effect::Stale) => {
                // Where several have a number, it is over with the last of them.
                if let Some(number) = self.inside.remove(task)
                    && !self.inside.values().any(|other| *other == number)
                {
                    self.job_ended(number, step.at);
                }
            }
            _ => {}
        }
    }

    fn job_ended(&mut self, number: u64, at: Time) {
        for place in self.waiting.remove(&number).into_iter().flatten() {
            let Some(held) = self.held.get_mut(place).and_then(Option::as_mut) else { continue };
            held.last = held.last.max(at);
            held.waits_for -= 1;
            if held.waits_for > 0 {
                continue;
            }
            let Some(HeldJob { job, last, .. }) = self.held[place].take() else { continue };
            self.left -= 1;
            let submitted = last + job.after.as_ref().map(|after| after.think).unwrap_or_default();
            self.due.insert((submitted, place), Submission { submitted, ..job });
        }
    }

    /// Makes the event that submits a job as this task of the run.
    #[must_use]
    pub fn submission_event(task: TaskId, job: Submission) -> Event {
        Event::Submitted { task, key: None, job: Arc::new(job) }
    }
}

impl FromIterator<Submission> for WaitingFollowers {
    fn from_iter<I: IntoIterator<Item = Submission>>(jobs: I) -> Self {
        let mut followers = Self::default();
        jobs.into_iter().for_each(|job| followers.hold_job(job));
        followers
    }
}

#[cfg(test)]
mod tests {
    use dormouse_model::JobPredecessors;
    use dormouse_units::{Attempt, Bytes, HostId, Span, Usage, VmId};

    use super::*;

    fn job(number: u64, after: &[u64], think: u64) -> Submission {
        let (submitted, runtime) = (Time::from_secs(7), Span::from_secs(60));
        let after = JobPredecessors { jobs: after.to_vec(), think: Span::from_secs(think) };
        Submission {
            number,
            submitted,
            processes: 1,
            runtime,
            estimate: runtime,
            usage: Usage::FULL,
            memory: Bytes::ZERO,
            priority: 0,
            after: (!after.jobs.is_empty()).then(|| Arc::new(after)),
            is_cut: false,
            fails: false,
        }
    }

    fn step(at: u64, event: Event) -> Step {
        let mut step = Step::blank();
        step.begin_step(0, Time::from_secs(at), event);
        step
    }

    fn comes(at: u64, task: u32, number: u64) -> Step {
        step(at, WaitingFollowers::submission_event(TaskId::new(task), job(number, &[], 0)))
    }

    fn ends(at: u64, task: u32, verified: bool) -> Step {
        let (vm, task, attempt) = (VmId::new(0), TaskId::new(task), Attempt::new(1));
        let report = Report::TaskFinished {
            vm,
            task,
            attempt,
            verified,
            reported: false,
            program_failed: false,
            result: None,
            real_cpu_us: 0,
        };
        step(at, Event::Machine { host: HostId::new(0), number: 0, report })
    }

    #[test]
    fn a_job_comes_after_the_last_that_it_follows() {
        let mut all: WaitingFollowers =
            [job(3, &[1, 2, 1], 5), job(4, &[3], 0), job(9, &[8], 0)].into_iter().collect();
        let see = |all: &mut WaitingFollowers, step: Step| {
            all.take_step(&step);
            all.next()
        };
        assert_eq!(see(&mut all, comes(0, 0, 1)), None);
        assert_eq!(see(&mut all, comes(0, 1, 2)), None);
        assert_eq!(see(&mut all, ends(10, 1, true)), None);
        // It failed, and is tried again.
        assert_eq!(see(&mut all, ends(20, 0, false)), None);
        assert_eq!(see(&mut all, ends(30, 0, true)), Some(Time::from_secs(35)));
        let again = all.clone();
        let third = all.take_due().expect("it is due");
        assert_eq!((third.number, third.submitted), (3, Time::from_secs(35)));
        // From a log it is taken as it was submitted then, and as nothing else.
        let mut restored = again;
        assert!(!restored.take_again(&job(3, &[1, 2, 1], 5)));
        assert!(restored.take_again(&third) && !restored.take_again(&third));
        assert_eq!((restored.len(), all.len()), (2, 2));
        assert_eq!(
            see(&mut all, step(35, WaitingFollowers::submission_event(TaskId::new(2), third))),
            None
        );
        assert_eq!(see(&mut all, ends(95, 2, true)), Some(Time::from_secs(95)));
        assert_eq!(all.take_due().map(|job| job.number), Some(4));
        assert!(!all.is_empty(), "nobody has ended job 8");
    }
}
