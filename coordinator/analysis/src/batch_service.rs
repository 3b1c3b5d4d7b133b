//! Account of the batch service scheduler: the jobs that it made of a bag's tasks and the VMs that
//! they ran on.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_model::{Effect, Event, Report, Setup, StartReason, Step, VmEnd};
use dormouse_units::{Money, Span, TaskId, Time, VmId};

/// Jobs and VMs of the batch service, counted step by step; empty under any other scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceTally {
    jobs: BTreeMap<u32, ServiceJob>,
    vms: BTreeMap<VmId, ServiceVm>,
    /// Number of times that a running job lost one of its VMs.
    hits: u32,
    /// Number of times that a job started, restarts included.
    starts: u32,
    /// Number of tasks that started on a VM which an earlier job had used.
    reused: u32,
    /// Time for which VMs stood idle after their first job, summed over the VMs. VMs that never had a job are left out: they may
    /// belong to another tenant.
    spare: Span,
    /// Submission times of the tasks that are not submitted at time zero.
    submitted: BTreeMap<TaskId, Time>,
    /// Sum of the response times (submission to end) of the finished jobs.
    responses: Span,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ServiceJob {
    tasks: BTreeSet<TaskId>,
    finished: BTreeSet<TaskId>,
    /// VMs of the job's present run.
    vms: BTreeSet<VmId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ServiceVm {
    /// Time since which no job has the VM.
    idle: Time,
    /// Whether any job has had the VM.
    used: bool,
    /// Job and task that run on the VM; `None` while the VM is idle.
    on: Option<(u32, TaskId)>,
}

impl ServiceTally {
    /// An empty tally for a run of this setup.
    #[must_use]
    pub fn new(setup: &Setup) -> Self {
        let all = (0_u32..).map(TaskId::new).take(setup.bag.tasks.len());
        let submitted = all.map(|task| (task, setup.submission_time(task)));
        Self {
            submitted: submitted.filter(|(_, at)| *at > Time::ZERO).collect(),
            ..Self::default()
        }
    }

    /// Counts the next step of the run. Steps must come in order.
    pub fn see(&mut self, step: &Step) {
        if let Event::Machine { report, .. } = &step.event
            && !step.effects.contains(&Effect::Stale)
        {
            match report {
                Report::TaskFinished { vm, task, verified: true, .. } => {
                    self.on_task_finished(step.at, *vm, *task);
                }
                Report::TaskFinished { vm, task, .. } | Report::TaskFailed { vm, task, .. } => {
                    if let Some((job, on_it)) = self.task_on(*vm)
                        && on_it == *task
                    {
                        self.release_vms(step.at, job);
                    }
                }
                _ => {}
            }
        }
        for effect in &step.effects {
            match effect {
                Effect::VmReady { vm } => {
                    self.vms.insert(*vm, ServiceVm { idle: step.at, used: false, on: None });
                }
                Effect::VmHibernated { vm, .. } => self.on_vm_lost(step.at, *vm),
                Effect::VmEnded { vm, why, .. } => {
                    self.on_vm_ended(step.at, *vm, *why);
                }
                Effect::TaskSent { task, vm, reason, .. } => {
                    self.on_task_sent(step.at, *vm, *task, *reason);
                }
                _ => {}
            }
        }
    }

    fn task_on(&self, vm: VmId) -> Option<(u32, TaskId)> {
        self.vms.get(&vm)?.on
    }

    fn on_task_sent(&mut self, now: Time, id: VmId, task: TaskId, reason: StartReason) {
        let (job, is_reused) = match reason {
            StartReason::Reused { job, .. } => (job, true),
            StartReason::NewVm { job, .. } => (job, false),
            _ => return,
        };
        self.reused += u32::from(is_reused);
        if let Some(vm) = self.vms.get_mut(&id) {
            self.spare += now.since(vm.idle);
            (vm.used, vm.on) = (true, Some((job, task)));
        }
        let of = self.jobs.entry(job).or_default();
        self.starts += u32::from(of.vms.is_empty());
        of.tasks.insert(task);
        of.vms.insert(id);
    }

    fn on_task_finished(&mut self, now: Time, vm: VmId, task: TaskId) {
        let Some((job, _)) = self.task_on(vm).filter(|(_, on_it)| *on_it == task) else { return };
        let Some(of) = self.jobs.get_mut(&job) else { return };
        of.finished.insert(task);
        if of.finished.len() == of.tasks.len() {
            let submitted = of.tasks.iter().filter_map(|task| self.submitted.get(task));
            self.responses += now.since(submitted.max().copied().unwrap_or(Time::ZERO));
            self.release_vms(now, job);
        }
    }

    /// Records that a job gives up its VMs at `now`.
    fn release_vms(&mut self, now: Time, job: u32) {
        let Some(of) = self.jobs.get_mut(&job) else { return };
        for id in std::mem::take(&mut of.vms) {
            if let Some(vm) = self.vms.get_mut(&id) {
                (vm.idle, vm.on) = (now, None);
            }
        }
    }

    /// Adds 1 to `hits` and releases the job's VMs, if a VM was lost while its task was not finished.
    fn on_vm_lost(&mut self, now: Time, vm: VmId) {
        if let Some((job, task)) = self.task_on(vm)
            && self.jobs.get(&job).is_some_and(|of| !of.finished.contains(&task))
        {
            self.hits += 1;
            self.release_vms(now, job);
        }
    }

    fn on_vm_ended(&mut self, now: Time, id: VmId, why: VmEnd) {
        if !matches!(why, VmEnd::Terminated | VmEnd::RunOver | VmEnd::WorkDone) {
            self.on_vm_lost(now, id);
        }
        if let Some(vm) = self.vms.remove(&id)
            && vm.on.is_none()
            && vm.used
        {
            self.spare += now.since(vm.idle);
        }
    }

    /// Number of finished jobs.
    #[must_use]
    pub fn finished_jobs(&self) -> u32 {
        let is_finished = |job: &&ServiceJob| job.finished.len() == job.tasks.len();
        u32::try_from(self.jobs.values().filter(is_finished).count()).unwrap_or(u32::MAX)
    }

    /// Mean response time (submission to end) of the finished jobs, in seconds; `None` if no job finished.
    fn mean_response_s(&self) -> Option<f64> {
        let finished = self.finished_jobs();
        (finished > 0).then(|| self.responses.as_secs_f64() / f64::from(finished))
    }

    /// One sentence on the jobs and VMs; `None` if no job was started.
    #[must_use]
    pub fn in_words(&self) -> Option<String> {
        let Self { starts, hits, reused, spare, .. } = self;
        let jobs = u32::try_from(self.jobs.len()).ok().filter(|jobs| *jobs > 0)?;
        let (finished, again) = (self.finished_jobs(), starts.saturating_sub(jobs));
        let idle = spare.as_secs_f64() / 3_600.0;
        let response = self
            .mean_response_s()
            .map_or(String::new(), |s| format!(" {s:.0} s after their submission"));
        Some(format!(
            "{finished} jobs finished{response}, {hits} hit by a preemption, {again} started again, \
             {reused} times a VM reused, {idle:.1} h of VMs idle"
        ))
    }

    /// Figures of the batch service by their names in `table.csv`, in a run that cost `cost`. Empty
    /// if no job was started.
    pub fn figures(&self, cost: Money) -> impl Iterator<Item = (&'static str, f64)> {
        let jobs = u32::try_from(self.jobs.len()).unwrap_or(u32::MAX);
        let finished = self.finished_jobs();
        let all = [
            ("jobs_finished", Some(f64::from(finished))),
            ("job_restarts", Some(f64::from(self.starts.saturating_sub(jobs)))),
            ("job_preemptions", Some(f64::from(self.hits))),
            ("job_failure_share", Some(f64::from(self.hits) / f64::from(self.starts.max(1)))),
            ("vms_reused", Some(f64::from(self.reused))),
            ("job_response_s", self.mean_response_s()),
            ("spare_h", Some(self.spare.as_secs_f64() / 3_600.0)),
            ("cost_per_job_usd", (finished > 0).then(|| cost.as_usd() / f64::from(finished))),
        ];
        let is_its = !self.jobs.is_empty();
        all.into_iter().filter(move |_| is_its).filter_map(|(name, of)| Some((name, of?)))
    }
}
