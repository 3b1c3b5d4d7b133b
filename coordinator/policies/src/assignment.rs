//! Assignments of tasks to VMs, with their makespans and costs.

use dormouse_cloud::Market;
use dormouse_model::{PlannedTask, PlannedVm};
use dormouse_units::{Money, Ppm, Span, TaskId, Time};

use crate::packing::{TaskSlot, VcpuPacking};
use crate::problem::{KindId, Offer, SchedulingProblem};
use crate::{BagSchedulerName, Plan};
use dormouse_units::Mode;

/// A VM and its tasks, in the order in which they are put on its vCPUs.
#[derive(Clone, Debug)]
pub(crate) struct AssignedVm {
    pub(crate) kind: KindId,
    pub(crate) market: Market,
    pub(crate) mode: Mode,
    pub(crate) tasks: Vec<TaskId>,
}

/// A solution: the VMs used, each with its tasks.
#[derive(Clone, Debug)]
pub(crate) struct TaskAssignment {
    pub(crate) vms: Vec<AssignedVm>,
}

impl AssignedVm {
    pub(crate) const fn new(kind: KindId, market: Market) -> Self {
        Self { kind, market, mode: Mode::Burst, tasks: Vec::new() }
    }

    /// Instance type and market of the VM.
    pub(crate) const fn offer_of_vm(&self) -> Offer {
        (self.kind, self.market)
    }

    /// Time that a task takes on this VM.
    fn task_length(&self, problem: &SchedulingProblem, task: TaskId) -> Span {
        let speed = match self.mode {
            Mode::Burst => Ppm::ONE,
            Mode::Baseline => problem.kinds[self.kind].baseline(),
        };
        problem
            .remaining_time(task, self.offer_of_vm(), Ppm::ZERO, speed)
            .unwrap_or(problem.deadline)
    }

    /// The slot (vCPU, start and end) of each task of the VM, in the order of `tasks`.
    pub(crate) fn task_slots(&self, problem: &SchedulingProblem) -> Vec<TaskSlot> {
        let kind = &problem.kinds[self.kind];
        let mut packing =
            VcpuPacking::new(kind.vcpus, Time::ZERO + problem.boot, kind.memory_limit);
        self.tasks
            .iter()
            .map(|&task| packing.push(self.task_length(problem, task), problem.task_memory(task)))
            .collect()
    }

    /// When the VM's last task ends; the end of the boot if it has no task.
    pub(crate) fn last_end(&self, problem: &SchedulingProblem) -> Time {
        let ends = self.task_slots(problem).into_iter().map(|slot| slot.end);
        ends.max().unwrap_or(Time::ZERO + problem.boot)
    }

    /// Cost of the VM from the end of its boot to the end of its last task.
    pub(crate) fn cost(&self, problem: &SchedulingProblem) -> Money {
        let used = self.last_end(problem).since(Time::ZERO + problem.boot);
        let price = problem.kinds[self.kind].price(self.market);
        price.map_or(Money::ZERO, |price| price.for_span(used))
    }
}

impl TaskAssignment {
    /// When the last task of all VMs ends, from the beginning, boot included.
    pub(crate) fn makespan(&self, problem: &SchedulingProblem) -> Span {
        let used = self.vms.iter().filter(|vm| !vm.tasks.is_empty());
        used.map(|vm| vm.last_end(problem).since(Time::ZERO)).max().unwrap_or(Span::ZERO)
    }

    /// Cost of all VMs together.
    pub(crate) fn cost(&self, problem: &SchedulingProblem) -> Money {
        self.vms.iter().map(|vm| vm.cost(problem)).sum()
    }

    /// The assignment as a plan for people and schedulers. VMs without tasks are left out, except
    /// burstable ones, which stand by.
    pub(crate) fn into_plan(
        self,
        problem: &SchedulingProblem,
        scheduler: BagSchedulerName,
        spot_limit: Span,
        evaluations: u64,
    ) -> Plan {
        let (makespan, cost) = (self.makespan(problem), self.cost(problem));
        let stands_by = |vm: &AssignedVm| problem.kinds[vm.kind].burstable.is_some();
        let vms = self
            .vms
            .iter()
            .filter(|vm| !vm.tasks.is_empty() || stands_by(vm))
            .map(|vm| {
                let kind = &problem.kinds[vm.kind];
                let mut vcpus = vec![Vec::new(); kind.vcpus];
                for (&task, slot) in vm.tasks.iter().zip(vm.task_slots(problem)) {
                    let (start, end, mode) = (slot.start, slot.end, vm.mode);
                    vcpus[slot.lane].push(PlannedTask { task, start, end, mode });
                }
                PlannedVm { kind: kind.name.clone(), market: vm.market, vcpus }
            })
            .collect();
        Plan { scheduler, spot_limit, makespan, cost, evaluations, vms }
    }
}
