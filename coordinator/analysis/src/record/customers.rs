//! Parallel jobs and requests in a record.

use std::sync::Arc;

use dormouse_model::{Event, Notice, Step, Submission, TenantWork, VmRequest};
use dormouse_units::{RequestId, TaskId, Time, VmId};

use super::{AttemptEnd, JobHistory, RecordChange, RequestHistory, RunRecord, SpellEnd};

impl RunRecord {
    /// Adds a submitted parallel job.
    pub(super) fn submitted(&mut self, task: TaskId, job: &Arc<Submission>) {
        // Ids of jobs increase; a log in which they don't is damaged.
        if self.jobs.end_id().is_none_or(|end| task <= end) {
            self.jobs.insert(task, JobHistory::new(task, job.clone()));
        }
    }

    /// Adds the notices that the scheduler of parallel jobs got at the end of an instant, and its
    /// decisions.
    pub(super) fn instant(&mut self, step: &Step) {
        debug_assert_eq!(step.event, Event::InstantOver);
        let (now, mut came) = (step.at, 0);
        for notice in &step.notices {
            match notice {
                Notice::Submitted { job } => {
                    if let Some(history) = self.jobs.get_mut(job.id) {
                        history.heard = Some(now);
                        came += 1;
                        self.changes.push(RecordChange::JobHeard(job.id));
                    }
                }
                Notice::TaskFinished { task, .. } => self.job_ends(now, *task),
                Notice::TaskFailed { task, .. } => {
                    if let Some(job) = self.jobs.get_mut(*task) {
                        job.leaves(now, SpellEnd::Failed);
                    }
                }
                // All jobs are on one machine.
                Notice::VmLost { vm } if self.tenants.owns_vm(TenantWork::Jobs, *vm) => {
                    self.jobs.values_mut().for_each(|job| job.loses_its_machine(now));
                }
                _ => {}
            }
        }
        self.jobs_heard += came;
        self.most_jobs = self.most_jobs.max(self.jobs_heard);
        for (n, decision) in step.decisions.iter().enumerate() {
            if let Some(task) = decision.task()
                && let Some(job) = self.jobs.get_mut(task)
                && !step.effects.iter().any(|effect| effect.refuses_decision(n))
            {
                job.decided(now, decision);
            }
        }
    }

    fn job_ends(&mut self, now: Time, id: TaskId) {
        // The report of its end is not seen where only the jobs' own steps are.
        self.end_attempt(now, id, AttemptEnd::Finished);
        let Some(mut job) = self.jobs.remove(id) else { return };
        self.jobs_heard = self.jobs_heard.saturating_sub(1);
        job.leaves(now, SpellEnd::Done);
        job.ended = Some(now);
        self.closed.jobs.push(job);
    }

    /// Adds a customer's request for a VM.
    pub(super) fn requested(&mut self, now: Time, request: RequestId, asks: &VmRequest) {
        let Some(vm) = self.tenants.vm_of(request) else { return };
        let (asks, arrived) = (asks.clone(), now);
        let history = RequestHistory { request, asks, arrived, vm, is_granted: false };
        self.requests.insert(vm, history);
        self.changes.push(RecordChange::Requested(vm));
    }

    pub(super) fn request_is_granted(&mut self, vm: VmId) {
        if let Some(request) = self.requests.get_mut(&vm) {
            request.is_granted = true;
            self.changes.push(RecordChange::Granted(vm));
        }
    }

    /// Closes a request whose VM is gone or was refused.
    pub(super) fn request_is_over(&mut self, vm: VmId) {
        self.closed.requests.extend(self.requests.remove(&vm));
    }
}
