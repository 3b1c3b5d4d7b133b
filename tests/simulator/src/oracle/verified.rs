//! Checks that a task counts as verified only if a machine has done its work.

use std::collections::BTreeSet;

use dormouse_model::{Effect, Event, Report, Step};
use dormouse_units::{Attempt, TaskId};

use super::Broken;
use super::hosts::LyingHosts;
use crate::invariant::Invariant;
use crate::witness::Deed;

/// The attempts whose work was done, and the tasks whose answers can't be checked.
#[derive(Debug, Default)]
pub(super) struct Verified {
    done: BTreeSet<(TaskId, Attempt)>,
    /// The numbers of the jobs whose answers can't be checked.
    unchecked_jobs: BTreeSet<u64>,
    /// The tasks of the durable log that belong to those jobs.
    unchecked: BTreeSet<TaskId>,
}

impl Verified {
    /// A record with no work done; the answers of the jobs with these numbers can't be checked.
    pub(super) fn new(unchecked_jobs: BTreeSet<u64>) -> Self {
        Self { unchecked_jobs, ..Self::default() }
    }

    /// Forgets the content of the log, which begins again from nothing; the work that machines have done stays.
    pub(super) fn log_begins_anew(&mut self) {
        self.unchecked.clear();
    }

    pub(super) fn did(&mut self, deed: &Deed) {
        if let Deed::WorkDone { task, attempt } = deed {
            self.done.insert((*task, *attempt));
        }
    }

    /// Checks a durable step.
    pub(super) fn see(&mut self, step: &Step, lying: &LyingHosts) -> Result<(), Broken> {
        if let Event::Submitted { task, job, .. } = &step.event
            && self.unchecked_jobs.contains(&job.number)
        {
            self.unchecked.insert(*task);
        }
        let Event::Machine { report, .. } = &step.event else { return Ok(()) };
        let Report::TaskFinished { task, attempt, verified, reported, .. } = report else {
            return Ok(());
        };
        if step.effects.contains(&Effect::Stale) {
            return Ok(());
        }
        let seq = step.seq;
        let can_check = !self.unchecked.contains(task);
        let is_done = self.done.contains(&(*task, *attempt));
        let why = match (can_check, *reported) {
            _ if !*verified && !is_done && !lying.says(step) => {
                "is said to be finished by an honest worker, and nobody did its work"
            }
            _ if !*verified => return Ok(()),
            // A liar must not choose that nobody checks its answer.
            (true, true) => "is right by its worker's word",
            (false, false) => "is verified, which nobody can do",
            (true, false) if !is_done => "is verified, and nobody did its work",
            (false, true) if !is_done && !lying.says(step) => {
                "is right by an honest worker's word, and nobody did its work"
            }
            _ => return Ok(()),
        };
        Err((Invariant::Verified, format!("{task}, {attempt}: at step {seq} it {why}")))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dormouse_cloud::ResourceVector;
    use dormouse_model::Submission;
    use dormouse_units::{Bytes, HostId, Ppm, Span, Time, Usage, VmId};

    use super::*;

    const TASK: TaskId = TaskId::new(1);
    const ATTEMPT: Attempt = Attempt::new(2);

    fn step(event: Event) -> Step {
        let mut step = Step::blank();
        step.begin_step(0, Time::ZERO, event);
        step
    }

    fn finished(reported: bool) -> Step {
        let report = Report::TaskFinished {
            vm: VmId::new(3),
            task: TASK,
            attempt: ATTEMPT,
            verified: true,
            reported,
            program_failed: false,
            result: None,
            real_cpu_us: 0,
        };
        step(Event::Machine { host: HostId::new(1), number: 1, report })
    }

    fn submitted(number: u64) -> Step {
        let job = Submission {
            number,
            submitted: Time::ZERO,
            processes: 4,
            runtime: Span::from_secs(120),
            estimate: Span::from_secs(120),
            usage: Usage::Uniform(Ppm::ONE),
            memory: Bytes::ZERO,
            priority: 0,
            after: None,
            is_cut: false,
            fails: false,
        };
        step(Event::Submitted { task: TASK, key: None, job: Arc::new(job) })
    }

    #[test]
    fn neither_work_that_nobody_did_nor_a_liars_word_counts() {
        let (mut all, honest) = (Verified::default(), LyingHosts::default());
        assert!(all.see(&finished(false), &honest).is_err(), "nobody did it");
        let unverified = || {
            let mut step = finished(false);
            if let Event::Machine { report: Report::TaskFinished { verified, .. }, .. } =
                &mut step.event
            {
                *verified = false;
            }
            step
        };
        assert!(all.see(&unverified(), &honest).is_err(), "nobody did it, whoever looked");
        all.did(&Deed::WorkDone { task: TASK, attempt: ATTEMPT });
        assert_eq!(all.see(&finished(false), &honest), Ok(()));
        assert_eq!(all.see(&unverified(), &honest), Ok(()));
        assert!(all.see(&finished(true), &honest).is_err(), "nobody checked it");
        let mut stale = finished(true);
        stale.effects.push(Effect::Stale);
        assert_eq!(all.see(&stale, &honest), Ok(()));
    }

    #[test]
    fn only_a_job_that_nobody_can_check_counts_by_a_word() {
        let mut lying = LyingHosts::new(["w".to_owned()].into());
        let (host, name) = (HostId::new(1), "w@1".to_owned());
        let joined = step(Event::HostJoined { host, name, offer: ResourceVector::of_vcpus(1) });
        let mut all = Verified::new([7].into());
        assert_eq!(all.see(&submitted(6), &lying), Ok(()));
        all.did(&Deed::WorkDone { task: TASK, attempt: ATTEMPT });
        assert!(all.see(&finished(true), &lying).is_err(), "it can be checked");
        let mut all = Verified::new([7].into());
        assert_eq!(all.see(&submitted(7), &lying), Ok(()));
        assert!(all.see(&finished(true), &lying).is_err(), "an honest worker did nothing");
        assert_eq!(lying.see(&joined), Ok(()));
        assert_eq!(all.see(&finished(true), &lying), Ok(()), "a liar's word is all there is");
        all.did(&Deed::WorkDone { task: TASK, attempt: ATTEMPT });
        assert_eq!(all.see(&finished(true), &LyingHosts::default()), Ok(()));
        assert!(all.see(&finished(false), &lying).is_err(), "nobody can have checked it");
        all.log_begins_anew();
        assert!(all.see(&finished(true), &lying).is_err(), "the log has no such job");
    }
}
