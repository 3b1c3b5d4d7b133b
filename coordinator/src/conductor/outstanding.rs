//! Commands that workers haven't answered, in one table through which every command and every report passes. It says
//! for how long a worker may be silent, which commands are under way, to which instant a report belongs, which VMs
//! exist, and whose checkpoints are accepted. Pure, except that it publishes the assignments of attempts to hosts.
//!
//! A resumed run makes the same table from its log, by the same two calls: [`Outstanding::assign_attempt`] and
//! [`Outstanding::heard`].
//!
//! Reports of one instant from two VMs arrive within some milliseconds, in whatever order threads, timers and networks
//! cause. A scheduler that got them in that order would decide by chance what it decides by rule on modelled machines.
//! So every report gets the time of the event that it reports: a task ends when its VM should have finished it; a VM
//! freezes, thaws or stops a task when that was decided.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dormouse_engine::{Run, TaskRecord};
use dormouse_model::{Command, Report};
use dormouse_units::{Attempt, HostId, Seats, TaskId, Time, VmId};

use crate::protocol::wire::ReportTime;
use crate::storage::assignments::AttemptAssignments;
use order::WorkerOrder;
use vm::{OnVm, OpenOrder, OutstandingVm};

mod order;
#[cfg(test)]
mod tests;
mod vm;

/// Real time within which a worker without tasks must answer a command. A worker itself gives up the start of a
/// program, a kill and a freeze after 10 s each, and waits up to 5 minutes for its turn to send a checkpoint to the
/// coordinator.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(600);
/// Additional real time that a worker may take for each of its tasks, as other tasks may use CRIU first: the worker
/// gives up a dump and a restore after 30 s each.
const EACH_TASK: Duration = Duration::from_secs(60);
/// Lowest speed at which tasks' memory is copied, or sent over a network, in bytes per second.
const SLOWEST: u64 = 1 << 20;

/// Range of instants that an arrived report may be given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Earliest instant of a report: one that was due before it is given the instant of its arrival.
    pub(crate) earliest: Time,
    /// Instant at which the report arrived.
    pub(crate) now: Time,
    /// Latest instant of a report about an event in the future.
    pub(crate) latest: Time,
}

/// Unanswered commands to one worker, by VM.
#[derive(Debug, Default)]
struct Worker {
    /// Number of the last command to the worker.
    told: u64,
    vms: BTreeMap<VmId, OutstandingVm>,
}

impl Worker {
    /// Returns the real time that the worker may take to answer, given its tasks; `within` is the time for a worker
    /// without tasks.
    fn patience(&self, within: Duration) -> Duration {
        let attempts = || self.vms.values().flat_map(|vm| vm.attempts.values());
        let memory: u64 = attempts().map(|attempt| attempt.memory.get() / SLOWEST).sum();
        let tasks = u32::try_from(attempts().count()).unwrap_or(u32::MAX);
        within + EACH_TASK.saturating_mul(tasks) + Duration::from_secs(memory)
    }
}

/// Commands that workers haven't answered, and the VMs and attempts that they are about.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    workers: BTreeMap<HostId, Worker>,
    /// Unanswered commands that take effect on arrival, in the order of their decisions.
    under_way: BTreeSet<(Time, HostId, VmId, WorkerOrder)>,
    /// VMs whose creation was commanded and whose end hasn't been reported.
    there: BTreeSet<(HostId, VmId)>,
    /// Host of every VM whose creation was ever commanded.
    host_of_vm: BTreeMap<VmId, HostId>,
    /// Commands that haven't been handed to their hosts' sessions, each with the instant of its decision.
    unsent: BTreeMap<HostId, Vec<(Command, Time)>>,
    /// Attempts assigned to hosts, which decide what each host may store and fetch.
    assignments: Arc<AttemptAssignments>,
}

impl Outstanding {
    /// Makes the table without any commands.
    pub(crate) fn new(assignments: Arc<AttemptAssignments>) -> Self {
        Self { assignments, ..Self::default() }
    }

    /// Returns the attempts assigned to hosts, which decide what each host may store and fetch.
    pub(crate) const fn assignments(&self) -> &Arc<AttemptAssignments> {
        &self.assignments
    }

    /// Records the commands of a step of the run at `at`, and updates the assignments of attempts.
    pub(crate) fn told(&mut self, commands: impl Iterator<Item = Command>, at: Time, run: &Run) {
        for command in commands {
            if let Command::StartTask(start) = &command {
                let record = run.tasks().get(start.task);
                let logged = record.into_iter().flat_map(TaskRecord::checkpoints);
                self.assignments.assign_attempt(start, logged);
            }
            self.order(&command, at);
            self.unsent.entry(command.host()).or_default().push((command, at));
        }
        // An attempt that has ended, or was given up, stores and fetches nothing any more.
        let goes_on = |task: &TaskId| {
            let record = run.tasks().get(*task)?;
            record.vm().map(|_| record.attempt)
        };
        let left = run.tasks().left_vms().iter();
        self.assignments.drop_attempts(left.map(|task| (*task, goes_on(task))));
    }

    /// Records a command that was decided at `at`.
    pub(super) fn order(&mut self, command: &Command, at: Time) {
        let host = command.host();
        let worker = self.workers.entry(host).or_default();
        worker.told += 1;
        let number = worker.told;
        let Some((vm, order)) = WorkerOrder::from_command(command) else { return };
        if order == WorkerOrder::Destroy {
            // Of all that is there nothing more need be said.
            self.forget_vm(host, vm);
        }
        if order == WorkerOrder::Create {
            self.there.insert((host, vm));
            self.host_of_vm.insert(vm, host);
        }
        let worker = self.workers.entry(host).or_default();
        let on = worker.vms.entry(vm).or_default();
        match command {
            Command::CreateVm { two_tier, .. } => on.is_two_tier = *two_tier,
            Command::FreezeVm { .. } => on.is_frozen = true,
            Command::ThawVm { .. } => on.is_frozen = false,
            Command::StartTask(start) => {
                let attempt = OnVm { memory: start.memory, decided: at, heard: at };
                on.attempts.insert((start.task, start.attempt), attempt);
            }
            // Of one that has said its last word nothing more need be said.
            _ if order.order_attempt().is_some_and(|of| !on.attempts.contains_key(&of)) => return,
            _ => {}
        }
        let is_at_once = match *command {
            Command::FreezeVm { .. } | Command::ThawVm { .. } => true,
            // To keep its work takes time.
            Command::StopTask { keep, .. } => !keep && !on.is_two_tier,
            _ => false,
        };
        let to = match command {
            Command::MoveTask { on, .. } => Some(on.clone()),
            _ => None,
        };
        let at_once = is_at_once.then_some(at);
        let open = OpenOrder { number, waited: Duration::ZERO, at_once, to };
        let before = on.orders.insert(order, open);
        if let Some(since) = before.and_then(|before| before.at_once) {
            self.under_way.remove(&(since, host, vm, order));
        }
        self.under_way.extend(at_once.map(|since| (since, host, vm, order)));
    }

    /// Records a report of the instant `of`; `began` are the seats at which a reported attempt began, if the worker
    /// names them.
    pub(crate) fn heard(&mut self, host: HostId, report: &Report, began: Option<&Seats>, of: Time) {
        let vm = report.vm();
        let Some(on) = self.on_vm(host, vm) else { return };
        let attempt = attempt_of(report);
        if let Some(attempt) = attempt.and_then(|of| on.attempts.get_mut(&of)) {
            attempt.heard = of;
        }
        match (report, attempt) {
            (Report::VmDestroyed { .. } | Report::VmFailed { .. }, _) => self.forget_vm(host, vm),
            (Report::Credits { .. }, _) => on.balance = of,
            (Report::TaskStarted { .. }, Some(of)) => {
                for order in on.done_with_beginning(of, began) {
                    self.answered(host, vm, order);
                }
            }
            (_, Some(of)) if is_last_of_attempt(report) => {
                on.attempts.remove(&of);
                for order in OutstandingVm::orders_to(of) {
                    self.answered(host, vm, order);
                }
            }
            _ => {
                if let Some(order) = WorkerOrder::from_report(report) {
                    self.answered(host, vm, order);
                }
            }
        }
    }

    /// Returns the instant of a report that has arrived: by the time `said` in it, if any, and by the commands to its
    /// host. Sets `as_of` of a credit balance that is given a later instant than its own.
    pub(crate) fn date(
        &self,
        host: HostId,
        report: &mut Report,
        said: Option<ReportTime>,
        window: Window,
    ) -> Time {
        let Window { earliest, now, latest } = window;
        let on = self.workers.get(&host).and_then(|worker| worker.vms.get(&report.vm()));
        let order = WorkerOrder::from_report(report);
        let at_once = on.and_then(|on| on.orders.get(&order?)?.at_once);
        let mut due = match (at_once, said) {
            (Some(at), _) | (None, Some(ReportTime::At(at))) => at.min(now),
            (None, Some(ReportTime::Ahead(at))) => at.min(latest),
            _ => now,
        };
        let attempt = attempt_of(report);
        if let Some(attempt) = attempt.and_then(|of| on?.attempts.get(&of)) {
            if let Some(ReportTime::After(after)) = said {
                due = attempt.decided + after;
            }
            // A job's end is due by itself, whenever its beginning was heard of.
            if !matches!(said, Some(ReportTime::Ahead(_))) {
                due = due.clamp(attempt.heard.min(now), now);
            }
        }
        let of = due;
        if due < earliest {
            due = now;
        }
        if let Report::Credits { as_of, .. } = report {
            // The one before it may have been late, and this one not.
            due = on.map_or(due, |on| due.max(on.balance));
            *as_of = (of < due).then_some(of);
        }
        due
    }

    /// Returns the instant of the oldest command that takes effect on arrival and hasn't been answered: reports still
    /// to come are of this instant or later. Commands from before `earliest` are no longer waited for.
    pub(crate) fn under_way_since(&mut self, earliest: Time) -> Option<Time> {
        while self.under_way.first().is_some_and(|(at, ..)| *at < earliest) {
            self.under_way.pop_first();
        }
        self.under_way.first().map(|(at, ..)| *at)
    }

    /// Makes the report of failure for a command number that a worker doesn't know, as the command's VM or task would
    /// send it; `None`: nothing depends on the command.
    ///
    /// # Errors
    ///
    /// The worker can't destroy a VM, so that it must be given up; the text says why.
    pub(crate) fn unsupported(
        &self,
        host: HostId,
        number: u64,
        what: &str,
    ) -> Option<Result<Report, String>> {
        let vms = &self.workers.get(&host)?.vms;
        let mut open = vms.iter().flat_map(|(vm, on)| on.orders.iter().map(|it| (*vm, it)));
        let (vm, (&order, _)) = open.find(|(_, (_, open))| open.number == number)?;
        let why = format!("its worker can't {}: {what}", order.describe_order(vm));
        Some(match order {
            WorkerOrder::Start(task, attempt) => Ok(Report::TaskFailed {
                vm,
                task,
                attempt,
                why,
                real_cpu_us: 0,
                could_not_restore: false,
            }),
            WorkerOrder::Destroy => Err(why),
            // A VM that does not do as it is told is of no use.
            WorkerOrder::Create
            | WorkerOrder::Freeze
            | WorkerOrder::Thaw
            | WorkerOrder::Stop(..)
            | WorkerOrder::Promote(..)
            | WorkerOrder::Move(..) => Ok(Report::VmFailed { vm, why }),
        })
    }

    /// Returns the workers that have left a command unanswered for too long, with an explanation; called every `every`
    /// of real time. Time is counted in these calls and not by a clock: a coordinator that was starved of CPU time has
    /// missed calls too.
    pub(crate) fn look(&mut self, every: Duration, within: Duration) -> Vec<(HostId, String)> {
        let mut late = Vec::new();
        for (&host, worker) in &mut self.workers {
            let patience = worker.patience(within);
            let mut longest: Option<(Duration, VmId, WorkerOrder)> = None;
            for (&vm, on) in &mut worker.vms {
                for (&order, open) in &mut on.orders {
                    if !(order.waits_while_frozen() && on.is_frozen) {
                        open.waited += every;
                    }
                    longest = longest.max(Some((open.waited, vm, order)));
                }
            }
            let Some((_, vm, order)) = longest.filter(|(waited, ..)| *waited > patience) else {
                continue;
            };
            let (what, s) = (order.describe_order(vm), patience.as_secs());
            late.push((host, format!("it was told to {what} and has not answered for {s} s")));
        }
        late
    }

    /// Removes a lost host with all its commands and VMs.
    pub(crate) fn forget(&mut self, host: HostId) {
        self.workers.remove(&host);
        self.under_way.retain(|(_, on, ..)| *on != host);
        self.there.retain(|(on, _)| *on != host);
        self.unsent.remove(&host);
    }

    /// Removes a VM that is reported as destroyed.
    pub(crate) fn destroyed(&mut self, host: HostId, vm: VmId) {
        self.there.remove(&(host, vm));
    }

    /// Returns the number of VMs whose creation was commanded and whose end hasn't been reported.
    pub(crate) fn vms(&self) -> usize {
        self.there.len()
    }

    /// Stops waiting for VMs to be destroyed.
    pub(crate) fn give_up_vms(&mut self) {
        self.there.clear();
    }

    /// Returns the host on which a VM was created, even if the VM has ended since.
    pub(crate) fn host_of(&self, vm: VmId) -> Option<HostId> {
        self.host_of_vm.get(&vm).copied()
    }

    /// Takes the commands that haven't been handed to their sessions, by host, each with the instant of its decision.
    pub(crate) fn take_unsent(&mut self) -> BTreeMap<HostId, Vec<(Command, Time)>> {
        std::mem::take(&mut self.unsent)
    }

    fn on_vm(&mut self, host: HostId, vm: VmId) -> Option<&mut OutstandingVm> {
        self.workers.get_mut(&host)?.vms.get_mut(&vm)
    }

    fn answered(&mut self, host: HostId, vm: VmId, order: WorkerOrder) {
        let open = self.on_vm(host, vm).and_then(|on| on.orders.remove(&order));
        if let Some(since) = open.and_then(|open| open.at_once) {
            self.under_way.remove(&(since, host, vm, order));
        }
    }

    fn forget_vm(&mut self, host: HostId, vm: VmId) {
        let on = self.workers.get_mut(&host).and_then(|worker| worker.vms.remove(&vm));
        for (order, open) in on.map(|on| on.orders).unwrap_or_default() {
            if let Some(since) = open.at_once {
                self.under_way.remove(&(since, host, vm, order));
            }
        }
    }
}

/// Returns the attempt that a report is about.
pub(crate) const fn attempt_of(report: &Report) -> Option<(TaskId, Attempt)> {
    match *report {
        Report::TaskStarted { task, attempt, .. }
        | Report::TaskFinished { task, attempt, .. }
        | Report::TaskFailed { task, attempt, .. }
        | Report::TaskStopped { task, attempt, .. }
        | Report::CheckpointTaken { task, attempt, .. }
        | Report::CheckpointFailed { task, attempt, .. }
        | Report::TaskIdle { task, attempt, .. }
        | Report::TaskCompared { task, attempt, .. } => Some((task, attempt)),
        _ => None,
    }
}

/// Returns whether a report ends the attempt that it is about.
const fn is_last_of_attempt(report: &Report) -> bool {
    use Report::{TaskFailed, TaskFinished, TaskStopped};
    matches!(report, TaskFinished { .. } | TaskFailed { .. } | TaskStopped { .. })
}
