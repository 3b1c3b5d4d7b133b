//! A schedule made before anything runs: the primary map of the papers.

use dormouse_cloud::Catalogue;
use dormouse_model::{Bag, CheckpointConfig, PlannedTask, PlannedVm, Task};
use dormouse_units::{Money, Span, Time};
use serde::{Deserialize, Serialize};

use crate::problem::SchedulingProblem;
use crate::{BagSchedulerConfig, BagSchedulerName, PlanError};

/// Schedule of a bag: on which VMs and in what order tasks run, with the expected time and cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Plan {
    /// Scheduler that the plan belongs to.
    pub scheduler: BagSchedulerName,
    /// When the tasks of spot VMs should be done (`D_spot`), from the beginning.
    pub spot_limit: Span,
    /// When the last task ends, from the beginning, boot included.
    pub makespan: Span,
    /// Cost of the VMs, each charged from the end of its boot to the end of its last task.
    pub cost: Money,
    /// Number of fitness evaluations that the ILS made for the plan.
    pub evaluations: u64,
    /// VMs to launch at the beginning, with their tasks.
    pub vms: Vec<PlannedVm>,
}

impl Plan {
    /// A plan of these VMs without makespan and cost, which [`Self::reckoned`] computes.
    #[must_use]
    pub const fn unreckoned(scheduler: BagSchedulerName, vms: Vec<PlannedVm>) -> Self {
        let (makespan, cost) = (Span::ZERO, Money::ZERO);
        Self { scheduler, spot_limit: makespan, makespan, cost, evaluations: 0, vms }
    }

    /// True if any task is planned to take less than its run time, or more than its run time with checkpoints.
    fn contradicts_bag(&self, problem: &SchedulingProblem) -> bool {
        self.vms.iter().any(|vm| {
            let kind = problem.kinds.iter().position(|kind| kind.name == vm.kind);
            kind.is_some_and(|kind| {
                let on = (kind, vm.market);
                vm.vcpus.iter().flatten().any(|planned| {
                    let takes = planned.end.since(planned.start);
                    problem.planned_time(planned, on).is_some_and(|(least, most)| {
                        takes < least || takes > most + Span::from_secs(1)
                    })
                })
            })
        })
    }

    /// The plan with makespan and cost recomputed, as the stored values may come from another plan. A task's time contradicts
    /// the bag if it is less than its run time, or more than its run time with checkpoints. Then the times of all tasks are
    /// recomputed as well, on every vCPU one task after the other from the end of the boot. Also returns true if times were
    /// recomputed.
    #[must_use]
    pub fn reckoned(
        mut self,
        config: &BagSchedulerConfig,
        catalogue: &Catalogue,
        bag: &Bag,
        checkpoints: &CheckpointConfig,
    ) -> (Self, bool) {
        let problem = SchedulingProblem::new(catalogue, bag, checkpoints, config.time_allowances());
        let again = self.contradicts_bag(&problem);
        let (mut makespan, mut cost) = (Span::ZERO, Money::ZERO);
        for vm in &mut self.vms {
            let found = problem.kinds.iter().position(|kind| kind.name == vm.kind);
            let Some(kind) = found else { continue };
            for lane in vm.vcpus.iter_mut().filter(|_| again) {
                let mut at = Time::ZERO + problem.boot;
                for planned in lane {
                    let takes = problem
                        .planned_time(planned, (kind, vm.market))
                        .map_or(Span::ZERO, |(_, most)| most);
                    (planned.start, planned.end) = (at, at + takes);
                    at = planned.end;
                }
            }
            let tasks = || vm.vcpus.iter().flatten();
            let (first, last) =
                (tasks().map(|task| task.start).min(), tasks().map(|task| task.end).max());
            let (Some(first), Some(last)) = (first, last) else { continue };
            makespan = makespan.max(last.since(Time::ZERO));
            if let Some(price) = problem.kinds[kind].price(vm.market) {
                cost += price.for_span(last.since(first));
            }
        }
        (self.makespan, self.cost) = (makespan, cost);
        (self, again)
    }

    /// Checks that the plan can be run: it has each task of the bag once, on types that are sold and have
    /// enough memory. In a workflow, tasks that can't start at once may be left out: they are placed when
    /// they come due.
    ///
    /// # Errors
    ///
    /// [`PlanError::BadPlan`] with the first mistake.
    pub fn check(&self, catalogue: &Catalogue, bag: &Bag) -> Result<(), PlanError> {
        let bad = |why: String| Err(PlanError::BadPlan(why));
        let mut seen = vec![false; bag.tasks.len()];
        for (n, vm) in self.vms.iter().enumerate() {
            let (kind, market) = (&vm.kind, vm.market);
            let Some(offer) = catalogue.get(kind) else {
                return bad(format!(
                    "VM {n} is a {kind}, which the catalogue doesn't have ({})",
                    catalogue.list_names()
                ));
            };
            let alike = |v: &&PlannedVm| v.kind == *kind && v.market == market;
            let (count, limit) = (self.vms.iter().filter(alike).count(), offer.vm_limit(market));
            if count > limit as usize {
                return bad(format!(
                    "it has {count} {market} VMs of type {kind}; the limit is {limit}"
                ));
            }
            for PlannedTask { task, .. } in vm.vcpus.iter().flatten() {
                let Some((known, once)) =
                    bag.tasks.get(task.get() as usize).zip(seen.get_mut(task.get() as usize))
                else {
                    return bad(format!(
                        "{task} on VM {n} is not one of the {} tasks of the bag",
                        seen.len()
                    ));
                };
                if std::mem::replace(once, true) {
                    return bad(format!("{task} is in the plan twice"));
                }
                if !known.runtime.contains_key(kind) {
                    return bad(format!("{task} on VM {n} has no runtime for {kind}"));
                }
                if known.memory > offer.memory {
                    return bad(format!(
                        "{task} on VM {n} needs {} of memory; a {kind} has {}",
                        known.memory, offer.memory
                    ));
                }
            }
        }
        let is_workflow = bag.is_workflow();
        let may_come = |task: &Task| is_workflow && !task.is_due_at_once();
        let is_missing = |(once, task): (&bool, &Task)| !once && !may_come(task);
        match seen.iter().zip(bag.tasks.iter()).position(is_missing) {
            Some(task) => bad(format!("task {task} of the bag is not in the plan")),
            None => Ok(()),
        }
    }
}
