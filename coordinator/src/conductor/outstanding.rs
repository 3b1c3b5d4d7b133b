//! What workers were told and have not done, in one table that every command and every report goes through: for how
//! long a worker may be silent, what is under way, of which instant a report is, which VMs are there, and whose
//! checkpoints are taken in. Pure but for what it publishes of the last.
//!
//! A run that is gone on with makes the same table of its log, by the same two calls: [`Outstanding::assign_attempt`] and
//! [`Outstanding::heard`].
//!
//! What happens on two VMs at the same instant is heard of within some milliseconds, in whatever order threads,
//! timers and networks make of it, and a scheduler that heard of it in that order would decide by chance what it
//! decides by rule beside modelled machines. So every report has the time of what it reports: a task ends when its
//! VM should have had it done, a VM freezes, thaws or stops a task when that was decided.

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

/// The real time that a worker without tasks may take to answer a command. By itself it
/// gives up a program's birth, a kill and a freeze after 10 s each, and waits for a checkpoint's
/// turn at the coordinator for 5 minutes.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(600);
/// Further real time that a worker may take for each of its tasks, whose turn at CRIU may come before: it gives up a
/// dump and a restore after 30 s each.
const EACH_TASK: Duration = Duration::from_secs(60);
/// Lowest speed at which tasks' memory is copied, or sent over a network, in bytes a second.
const SLOWEST: u64 = 1 << 20;

/// The instants between which a report that has come may be heard of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// A report that was due before this is of when it came.
    pub(crate) earliest: Time,
    /// The instant at which it came.
    pub(crate) now: Time,
    /// A report of what is yet to come is of this instant at the latest.
    pub(crate) latest: Time,
}

/// The orders of one worker, by its VMs.
#[derive(Debug, Default)]
struct Worker {
    /// Number of the last command that it was told.
    told: u64,
    vms: BTreeMap<VmId, OutstandingVm>,
}

impl Worker {
    /// The time that it may take to answer, with its tasks.
    fn patience(&self, within: Duration) -> Duration {
        let attempts = || self.vms.values().flat_map(|vm| vm.attempts.values());
        let memory: u64 = attempts().map(|attempt| attempt.memory.get() / SLOWEST).sum();
        let tasks = u32::try_from(attempts().count()).unwrap_or(u32::MAX);
        within + EACH_TASK.saturating_mul(tasks) + Duration::from_secs(memory)
    }
}

/// What all workers were told and have not done.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    workers: BTreeMap<HostId, Worker>,
    /// The orders that are carried out as soon as they come, in the order of their decisions.
    under_way: BTreeSet<(Time, HostId, VmId, WorkerOrder)>,
    /// VMs that were ordered and not heard of as destroyed.
    there: BTreeSet<(HostId, VmId)>,
    /// The host of every VM that was ever ordered.
    host_of_vm: BTreeMap<VmId, HostId>,
    /// Commands that are not with their sessions yet, each with the instant at which it was decided on.
    unsent: BTreeMap<HostId, Vec<(Command, Time)>>,
    /// What hosts may store and fetch for the attempts that they were told to run.
    assignments: Arc<AttemptAssignments>,
}

impl Outstanding {
    /// Nobody was told anything yet.
    pub(crate) fn new(assignments: Arc<AttemptAssignments>) -> Self {
        Self { assignments, ..Self::default() }
    }

    /// The table of who may store and fetch what, for those who ask.
    pub(crate) const fn assignments(&self) -> &Arc<AttemptAssignments> {
        &self.assignments
    }

    /// Workers are told what a step of the run at `at` has them do.
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

    /// A worker is told this, decided on at `at`.
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

    /// A worker has said this, which is of the instant `of`; of an attempt that has begun, where, if it says so.
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

    /// The instant that a report is of, which has come with what it says of that itself, and by what was told. A balance
    /// of credits that is learned of later than it is of says so from then on.
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

    /// The instant of the oldest order that is still under way: what is not heard of yet is of then or later. An order
    /// that is older than `earliest` is not waited for.
    pub(crate) fn under_way_since(&mut self, earliest: Time) -> Option<Time> {
        while self.under_way.first().is_some_and(|(at, ..)| *at < earliest) {
            self.under_way.pop_first();
        }
        self.under_way.first().map(|(at, ..)| *at)
    }

    /// A worker does not know the command of this number: what was asked has failed, as its VM or
    /// task would report it. `None` where nothing hangs on it.
    ///
    /// # Errors
    ///
    /// A worker that can't even give back a VM has to be given up: why.
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

    /// Looks at all orders, as is done every so often: who has not answered for too long, and
    /// what. Time is counted in these looks, not read off a clock: a coordinator that was starved
    /// itself has missed as many of them.
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

    /// A worker is gone, and all that it had.
    pub(crate) fn forget(&mut self, host: HostId) {
        self.workers.remove(&host);
        self.under_way.retain(|(_, on, ..)| *on != host);
        self.there.retain(|(on, _)| *on != host);
        self.unsent.remove(&host);
    }

    /// The run has heard that a VM is destroyed.
    pub(crate) fn destroyed(&mut self, host: HostId, vm: VmId) {
        self.there.remove(&(host, vm));
    }

    /// Number of VMs that were ordered and are not heard of as destroyed.
    pub(crate) fn vms(&self) -> usize {
        self.there.len()
    }

    /// Nobody waits any longer for VMs to be destroyed.
    pub(crate) fn give_up_vms(&mut self) {
        self.there.clear();
    }

    /// The host that a VM was ordered on, whatever became of it since.
    pub(crate) fn host_of(&self, vm: VmId) -> Option<HostId> {
        self.host_of_vm.get(&vm).copied()
    }

    /// The commands that are not with their sessions yet, by their hosts, each with the instant at which it was
    /// decided on; from now on they are there.
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

/// The attempt that a report is about.
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

/// Whether the attempt that a report is about is over with it.
const fn is_last_of_attempt(report: &Report) -> bool {
    use Report::{TaskFailed, TaskFinished, TaskStopped};
    matches!(report, TaskFinished { .. } | TaskFailed { .. } | TaskStopped { .. })
}
