//! The batch service as a state machine (bathtub paper, section 5).

use std::collections::BTreeSet;

use dormouse_cloud::Lifetimes;
use dormouse_model::{Decision, Notice, StartReason};
use dormouse_units::{Mode, Seats, Span, TaskId, Time, TypeName, VmId};

use super::ServiceConfig;
use super::bags::SubmittedBags;
use super::cluster::{ClusterVm, ServiceCluster};
use super::job::{JobPhase, ServiceJob};
use crate::{BagSchedulerConfig, GivenUp, Policy};

/// Token of the wake-up for refused launches. The wake-up for a spare VM has the VM's number, which is
/// less. The largest `u64` can't be used here, because tokens are multiplied in runs with several tenants.
pub(super) const RETRY: u64 = 1 << 32;

/// Token of the wake-up for the next bag.
pub(super) const NEXT_BAG: u64 = RETRY + 1;

/// Runs the submitted jobs in their order. A job starts once it has all its VMs: idle ones that by their age are at least as good
/// as new ones, then new ones. If it loses a VM, its other tasks are stopped and it comes first again: its tasks that have ended
/// stay so, and the rest continue from their checkpoints where they have any. Idle VMs that are worse than new ones are given back,
/// and so are spare VMs after a time.
#[derive(Debug)]
pub(crate) struct BatchServicePolicy {
    config: ServiceConfig,
    kind: TypeName,
    jobs: Vec<ServiceJob>,
    waiting: BTreeSet<usize>,
    cluster: ServiceCluster,
    bags: SubmittedBags,
    max_failures: u32,
    retry_after: Span,
    max_retries: u32,
    retries: u32,
    /// True if a launch was refused: nothing is launched until the next try.
    is_refused: bool,
    /// Time at which refused launches are tried again; `None`: no try is pending.
    retry: Option<Time>,
}

impl BatchServicePolicy {
    /// A service for tasks that are submitted at these times, on VMs of this type whose lifetimes follow this law; without a law,
    /// VMs are never preempted.
    pub(crate) fn new(
        general: &BagSchedulerConfig,
        config: ServiceConfig,
        submitted: &[Time],
        (kind, law): (TypeName, Option<Lifetimes>),
    ) -> Self {
        let (all, per_job) = ((0_u32..).map(TaskId::new), config.vms_per_job.max(1) as usize);
        let all: Vec<TaskId> = all.take(submitted.len()).collect();
        let jobs =
            all.chunks(per_job).map(|tasks| ServiceJob::new(tasks.iter().copied().collect()));
        // A job can start once its last task has been submitted.
        let each = submitted.chunks(per_job).filter_map(|of_job| of_job.iter().copied().max());
        let mut bags = SubmittedBags::new(&each.collect::<Vec<_>>(), config.first_estimate);
        Self {
            kind,
            waiting: bags.take_submitted(Time::ZERO).into_iter().collect(),
            jobs: jobs.collect(),
            cluster: ServiceCluster::new(config.vms as usize, config.reuse, law),
            bags,
            max_failures: general.max_failures,
            retry_after: general.retry_after,
            max_retries: general.max_retries,
            retries: 0,
            is_refused: false,
            retry: None,
            config,
        }
    }

    /// Index of the job that a task belongs to.
    fn job_of(&self, task: TaskId) -> usize {
        (task.get() / self.config.vms_per_job.max(1)) as usize
    }

    /// Gives waiting jobs their VMs as long as there are enough, and terminates VMs that no job
    /// needs.
    fn assign_vms(&mut self, now: Time, out: &mut Vec<Decision>) {
        if self.jobs.iter().all(|job| job.phase == JobPhase::Over) {
            for (vm, _) in std::mem::take(&mut self.cluster.vms) {
                out.push(Decision::Terminate { vm, reason: None });
            }
            return;
        }
        let mut declined = 0;
        while let Some(place) = self.waiting.first().copied() {
            let (need, kept) = (self.jobs[place].left.len(), self.jobs[place].least_kept());
            let expected = self.bags.length_of(place).remaining_length(kept);
            declined += self.give_back_the_bad(now, expected, out);
            let (mut good, _) = self.cluster.free_vms(now, expected);
            good.truncate(need);
            let new = need - good.len();
            if new > 0 && (self.is_refused || new > self.cluster.launchable_vms()) {
                break;
            }
            self.waiting.remove(&place);
            self.take_vms(now, place, (good, declined, expected), out);
        }
        if self.waiting.is_empty() {
            self.give_back_the_bad(now, self.bags.latest_length(), out);
        }
        if self.config.spare == Span::ZERO {
            let is_idle = |vm: &ClusterVm| vm.is_free() && vm.ready.is_some();
            let idle = self.cluster.vms.iter().filter(|(_, vm)| is_idle(vm));
            for vm in idle.map(|(&id, _)| id).collect::<Vec<_>>() {
                self.give_back(vm, out);
            }
        }
    }

    /// Gives a job the idle VMs in `good`, and new VMs for the rest of its tasks.
    fn take_vms(
        &mut self,
        now: Time,
        place: usize,
        (good, declined, expected): (Vec<VmId>, u32, Option<Span>),
        out: &mut Vec<Decision>,
    ) {
        let job = u32::try_from(place).unwrap_or(u32::MAX);
        let mut good = good.into_iter();
        for task in self.jobs[place].left.clone() {
            let mut reason = StartReason::NewVm { job, declined, expected };
            let vm = match good.next() {
                Some(id) => {
                    if let Some(vm) = self.cluster.vms.get_mut(&id) {
                        vm.job = Some(place);
                        if vm.used {
                            reason = StartReason::Reused { job, age: vm.age_of_vm(now), expected };
                        }
                    }
                    id
                }
                None => {
                    let vm = self.cluster.add(now, place);
                    let (kind, market) = (self.kind.clone(), self.config.market);
                    out.push(Decision::Launch { vm, kind, market, bid: None });
                    vm
                }
            };
            self.jobs[place].on.insert(vm, (task, reason));
        }
        self.jobs[place].phase = JobPhase::Forming;
        self.start_if_ready(now, place, out);
    }

    /// Starts the tasks of a job all of whose VMs are ready.
    fn start_if_ready(&mut self, now: Time, place: usize, out: &mut Vec<Decision>) {
        let job = &mut self.jobs[place];
        let vms = &mut self.cluster.vms;
        let is_ready = |vm| vms.get(vm).is_some_and(|vm| vm.ready.is_some());
        if job.phase != JobPhase::Forming || !job.on.keys().all(is_ready) {
            return;
        }
        (job.phase, job.begun) = (JobPhase::Running, now);
        self.retries = 0;
        // Launches that were given up are tried again: VMs were granted since.
        self.is_refused &= self.retry.is_some();
        for (&vm, &(task, reason)) in &job.on {
            if let Some(vm) = vms.get_mut(&vm) {
                vm.used = true;
            }
            out.push(Decision::Start {
                task,
                on: Seats::first_free(vm),
                mode: Mode::Burst,
                reason,
            });
        }
    }

    /// Gives back the idle VMs that are worse than new ones for a job of this expected length;
    /// returns their number.
    fn give_back_the_bad(
        &mut self,
        now: Time,
        expected: Option<Span>,
        out: &mut Vec<Decision>,
    ) -> u32 {
        let (_, bad) = self.cluster.free_vms(now, expected);
        for vm in &bad {
            self.give_back(*vm, out);
        }
        u32::try_from(bad.len()).unwrap_or(u32::MAX)
    }

    fn give_back(&mut self, vm: VmId, out: &mut Vec<Decision>) {
        if self.cluster.vms.remove(&vm).is_some() {
            out.push(Decision::Terminate { vm, reason: None });
        }
    }

    /// Takes all VMs from a job: those that still exist are idle from now on.
    fn release_vms(&mut self, now: Time, place: usize, out: &mut Vec<Decision>) {
        for id in std::mem::take(&mut self.jobs[place].on).into_keys() {
            self.set_idle(now, id, out);
        }
    }

    fn set_idle(&mut self, now: Time, id: VmId, out: &mut Vec<Decision>) {
        let Some(vm) = self.cluster.vms.get_mut(&id) else { return };
        (vm.job, vm.idle) = (None, now);
        if vm.leaves {
            self.give_back(id, out);
        } else if self.config.spare > Span::ZERO {
            let (at, token) = (now + self.config.spare, u64::from(id.get()));
            out.push(Decision::Wake { at, token });
        }
    }

    /// Lets a job that lacks a VM wait: its other VMs go back to the cluster.
    fn let_job_wait(&mut self, now: Time, place: usize, out: &mut Vec<Decision>) {
        self.jobs[place].phase = JobPhase::Waiting;
        self.waiting.insert(place);
        self.release_vms(now, place, out);
    }

    /// Interrupts a running job that lost a VM, or of which a task failed: the job's other tasks are
    /// stopped, and the job returns to the head of the queue. A job that was interrupted too often is given
    /// up.
    fn interrupt_job(&mut self, now: Time, place: usize, out: &mut Vec<Decision>) {
        let job = &mut self.jobs[place];
        let running = job.on.iter().filter(|(_, (task, _))| job.left.contains(task));
        out.extend(running.map(|(&vm, &(task, _))| Decision::Stop { task, vm, keep: false }));
        if job.preemptions < self.config.max_preemptions && job.failures < self.max_failures {
            self.let_job_wait(now, place, out);
        } else {
            job.phase = JobPhase::Over;
            self.release_vms(now, place, out);
        }
    }

    /// Handles the loss of a VM with the task that it ran.
    fn on_vm_lost(&mut self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        let Some(lost) = self.cluster.vms.remove(&vm) else { return };
        let Some(place) = lost.job else { return };
        let job = &mut self.jobs[place];
        let Some((task, _)) = job.on.remove(&vm) else { return };
        match job.phase {
            JobPhase::Forming => self.let_job_wait(now, place, out),
            JobPhase::Running if job.left.contains(&task) => {
                job.preemptions += 1;
                self.interrupt_job(now, place, out);
            }
            JobPhase::Running | JobPhase::Waiting | JobPhase::Over => {}
        }
    }

    /// Handles a notice that a VM will be preempted: the VM gets no more tasks.
    fn on_vm_leaving(&mut self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        let Some(state) = self.cluster.vms.get_mut(&vm) else { return };
        state.leaves = true;
        match state.job {
            None => self.give_back(vm, out),
            Some(place) if self.jobs[place].phase == JobPhase::Forming => {
                self.let_job_wait(now, place, out);
            }
            // The job may be done by then.
            Some(_) => {}
        }
    }

    /// Takes the task off a frozen VM, and gives the VM back.
    fn on_vm_frozen(&mut self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        if let Some((task, place)) = self.task_on_vm(vm)
            && self.jobs[place].left.contains(&task)
        {
            out.push(Decision::Stop { task, vm, keep: false });
        }
        if self.cluster.vms.contains_key(&vm) {
            out.push(Decision::Terminate { vm, reason: None });
            self.on_vm_lost(now, vm, out);
        }
    }

    /// The task that runs or ran on a VM of a running job, and the job's index; `None`: no running job has the VM.
    fn task_on_vm(&self, vm: VmId) -> Option<(TaskId, usize)> {
        let place = self.cluster.vms.get(&vm)?.job?;
        let job = self.jobs.get(place).filter(|job| job.phase == JobPhase::Running)?;
        Some((job.on.get(&vm)?.0, place))
    }

    /// Index of the job of a task, if the task runs on this VM.
    fn job_of_running(&self, task: TaskId, vm: VmId) -> Option<usize> {
        self.task_on_vm(vm).filter(|(on_it, _)| *on_it == task).map(|(_, place)| place)
    }

    /// Records that a task has ended; if it was the last of its job, the job has ended, too.
    fn on_task_finished(&mut self, now: Time, task: TaskId, place: usize, out: &mut Vec<Decision>) {
        let job = &mut self.jobs[place];
        job.left.remove(&task);
        if job.left.is_empty() {
            if !job.was_broken() {
                let took = now.since(job.begun);
                self.bags.length_of(place).add_length(took);
            }
            self.jobs[place].phase = JobPhase::Over;
            self.release_vms(now, place, out);
        }
    }

    /// Asks to be woken when the next bag is submitted.
    fn wake_for_the_next_bag(&self, out: &mut Vec<Decision>) {
        out.extend(self.bags.next_at().map(|at| Decision::Wake { at, token: NEXT_BAG }));
    }

    fn handle_notice(&mut self, now: Time, notice: &Notice, out: &mut Vec<Decision>) {
        match *notice {
            Notice::Begin => self.wake_for_the_next_bag(out),
            Notice::VmReady { vm } => {
                let Some(state) = self.cluster.vms.get_mut(&vm) else { return };
                state.ready = Some(now);
                if let Some(place) = state.job {
                    self.start_if_ready(now, place, out);
                }
            }
            Notice::LaunchRefused { vm, .. } => {
                let is_first = !std::mem::replace(&mut self.is_refused, true);
                self.on_vm_lost(now, vm, out);
                if is_first && self.retries < self.max_retries {
                    let at = now + self.retry_after.times(1 << self.retries.min(32));
                    self.retry = Some(at);
                    out.push(Decision::Wake { at, token: RETRY });
                }
            }
            // A launch that was refused may be granted now.
            Notice::HostJoined | Notice::Available { .. } | Notice::Price { .. } => {
                self.is_refused = false;
            }
            Notice::VmPreempting { vm, .. } | Notice::VmHibernating { vm } => {
                self.on_vm_leaving(now, vm, out);
            }
            Notice::VmHibernated { vm } => self.on_vm_frozen(now, vm, out),
            Notice::VmLost { vm } => self.on_vm_lost(now, vm, out),
            Notice::TaskFinished { task, vm } => {
                if let Some(place) = self.job_of_running(task, vm) {
                    self.on_task_finished(now, task, place, out);
                }
            }
            Notice::TaskFailed { task, vm, .. } => {
                if let Some(place) = self.job_of_running(task, vm) {
                    let job = &mut self.jobs[place];
                    job.failures += 1;
                    // The attempt on this VM is over already.
                    job.on.remove(&vm);
                    self.set_idle(now, vm, out);
                    self.interrupt_job(now, place, out);
                }
            }
            Notice::Checkpointed { task, done, .. } => {
                let place = self.job_of(task);
                if let Some(job) = self.jobs.get_mut(place) {
                    job.keep_work(task, done);
                }
            }
            Notice::Wake { token: RETRY } => {
                if self.retry.take_if(|at| *at <= now).is_some() {
                    self.is_refused = false;
                    self.retries += 1;
                }
            }
            Notice::Wake { token: NEXT_BAG } => {
                self.waiting.extend(self.bags.take_submitted(now));
                // Refusals for earlier bags do not count for this one.
                (self.is_refused, self.retries) = (false, 0);
                self.wake_for_the_next_bag(out);
            }
            Notice::Wake { token } => {
                let spare = self.config.spare;
                let is_due =
                    |vm: &ClusterVm| vm.is_free() && vm.ready.is_some() && vm.idle + spare <= now;
                if let Ok(vm) = u32::try_from(token).map(VmId::new)
                    && self.cluster.vms.get(&vm).is_some_and(is_due)
                {
                    self.give_back(vm, out);
                }
            }
            Notice::VmResumed { .. }
            | Notice::VmRebalance { .. }
            | Notice::Submitted { .. }
            | Notice::Requested { .. }
            | Notice::TaskStarted { .. }
            | Notice::TaskStopped { .. }
            | Notice::Credits { .. }
            | Notice::TaskDue { .. }
            | Notice::Rejected { .. } => {}
        }
    }
}

impl Policy for BatchServicePolicy {
    fn given_up(&self) -> Option<GivenUp> {
        if self.is_refused && self.retries >= self.max_retries && !self.waiting.is_empty() {
            return Some(GivenUp::Launches);
        }
        let is_given_up = |job: &ServiceJob| job.phase == JobPhase::Over && !job.left.is_empty();
        self.jobs.iter().any(is_given_up).then_some(GivenUp::Work)
    }

    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            self.handle_notice(now, notice, out);
            self.assign_vms(now, out);
        }
    }
}
