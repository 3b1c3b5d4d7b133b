//! The last moments of a bag on spot VMs: the times until which a task may start on a spot VM, and until
//! which on-demand VMs alone could still do all remaining work in time.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dormouse_cloud::Market;
use dormouse_units::{Span, TaskId, Time};

use crate::problem::SchedulingProblem;
use crate::provision::BuyingOrder;

/// Times of one task that decide how long it may stay with spot VMs.
#[derive(Clone, Copy, Debug)]
struct RescueTimes {
    /// Time that the task takes on the slowest on-demand type.
    on_demand: Span,
    /// The last moment at which the task may start on a spot VM. If the VM is then preempted just before the task ends, an
    /// on-demand VM launched at that time can still run the whole task by the deadline.
    last_spot_start: Time,
    /// Time before the deadline that the task and those that follow it need on on-demand VMs.
    need: Span,
}

/// The last moments of a bag, updated as its tasks end one after the other.
#[derive(Clone, Debug)]
pub(super) struct LastMoments {
    of_tasks: Vec<RescueTimes>,
    /// Number of vCPUs that on-demand VMs may have at the same time; 0 if none is sold on demand.
    vcpus: u64,
    /// Time that an on-demand VM takes to boot (ω).
    boot: Span,
    deadline: Time,
    /// Time that all tasks that have not ended take on on-demand VMs, in microseconds of one vCPU.
    work: u128,
    /// Unfinished tasks by the time that they and the tasks which follow them need before the deadline.
    by_need: BTreeSet<(Span, TaskId)>,
}

impl LastMoments {
    pub(super) fn new(problem: &SchedulingProblem, order: &BuyingOrder) -> Self {
        let types = |market| match order.types_to_buy(market) {
            (sold, kinds) if sold == market => kinds,
            _ => &[],
        };
        let longest = |task: TaskId, market: Market| {
            let times =
                types(market).iter().filter_map(|&kind| problem.whole_time(task, (kind, market)));
            times.max()
        };
        let memory = problem.most_memory().get().max(1);
        let vcpus = types(Market::OnDemand).iter().map(|&kind| {
            let kind = &problem.kinds[kind];
            let together = (kind.memory.get() / memory).min(kind.vcpus as u64);
            together * u64::from(kind.limit(Market::OnDemand))
        });
        let vcpus: u64 = vcpus.sum();
        let boot = problem.takeover_boot;
        let tasks = (0_u32..).take(problem.task_count()).map(TaskId::new);
        let of_tasks: Vec<RescueTimes> = tasks
            .map(|task| {
                let on_spot = longest(task, Market::Spot);
                let on_demand = longest(task, Market::OnDemand);
                let last_spot_start = match (on_spot, on_demand) {
                    // Spot VMs are all there is: the task that takes longest comes first.
                    (Some(on_spot), None) => Time::from_micros(u64::MAX - on_spot.as_micros()),
                    (Some(on_spot), Some(on_demand)) => {
                        let needs = on_spot + boot + on_demand;
                        Time::ZERO + problem.latest_end(task).saturating_sub(needs)
                    }
                    (None, _) => Time::ZERO,
                };
                let on_demand = on_demand.unwrap_or_default();
                let need = on_demand + problem.deadline.saturating_sub(problem.latest_end(task));
                RescueTimes { on_demand, last_spot_start, need }
            })
            .collect();
        let needs = (0_u32..).map(TaskId::new).zip(&of_tasks);
        Self {
            by_need: needs.map(|(task, times)| (times.need, task)).collect(),
            work: of_tasks.iter().map(|times| u128::from(times.on_demand.as_micros())).sum(),
            of_tasks,
            vcpus,
            boot,
            deadline: Time::ZERO + problem.deadline,
        }
    }

    /// Removes a task that has ended or was given up from the work that is left.
    pub(super) fn remove_task(&mut self, task: TaskId) {
        let Some(times) = self.of_tasks.get(task.get() as usize) else { return };
        if self.by_need.remove(&(times.need, task)) {
            self.work = self.work.saturating_sub(u128::from(times.on_demand.as_micros()));
        }
    }

    /// The last moment at which a task may start on a spot VM.
    pub(super) fn last_spot_start(&self, task: TaskId) -> Time {
        self.of_tasks.get(task.get() as usize).map_or(Time::ZERO, |times| times.last_spot_start)
    }

    /// Sort key of a waiting task among tasks that may start on a spot VM until the same moment: the
    /// longest comes first.
    pub(super) fn length_order(&self, task: TaskId) -> Reverse<Span> {
        Reverse(self.of_tasks.get(task.get() as usize).map_or(Span::ZERO, |times| times.on_demand))
    }

    /// The last moment at which newly launched on-demand VMs are sure to do all remaining work by the deadline, whatever the order
    /// of the tasks. `None`: nothing is left, or no VM is sold on demand.
    ///
    /// If each task has a vCPU of its own, the longest task decides. Else no list schedule on m vCPUs ends
    /// later than the work divided by m plus the longest task (Graham 1966).
    pub(super) fn last_moment_for_all(&self) -> Option<Time> {
        let (longest, _) = *self.by_need.last()?;
        if self.vcpus == 0 {
            return None;
        }
        let queued = match self.by_need.len() as u64 {
            tasks if tasks <= self.vcpus => Span::ZERO,
            _ => {
                let each = self.work.div_ceil(u128::from(self.vcpus));
                Span::from_micros(u64::try_from(each).unwrap_or(u64::MAX))
            }
        };
        let needs = self.boot + queued + longest;
        Some(Time::ZERO + self.deadline.since(Time::ZERO).saturating_sub(needs))
    }
}
