//! A schedule made before anything runs: the primary map of the papers.

use dormouse_cloud::Catalogue;
use dormouse_model::{Bag, CheckpointConfig, PlannedTask, PlannedVm};
use dormouse_units::{Money, Span, Time};
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::{BagSchedulerConfig, BagSchedulerName, PlanError};

/// Schedule of a bag: where and in what order tasks run, with the expected time and cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Plan {
    /// Scheduler that the plan belongs to.
    pub scheduler: BagSchedulerName,
    /// When the spot VMs' tasks should be done (`D_spot`), from the beginning.
    pub spot_limit: Span,
    /// When the last task ends, from the beginning, boot included.
    pub makespan: Span,
    /// What the VMs cost, each charged from the end of its boot to its last task's end.
    pub cost: Money,
    /// Fitness evaluations the ILS made for it.
    pub evaluations: u64,
    /// VMs to launch at the beginning, with their tasks.
    pub vms: Vec<PlannedVm>,
}

impl Plan {
    /// These VMs as a plan that does not know yet what it takes and costs: [`Self::reckoned`] says it.
    #[must_use]
    pub const fn unreckoned(scheduler: BagSchedulerName, vms: Vec<PlannedVm>) -> Self {
        let (makespan, cost) = (Span::ZERO, Money::ZERO);
        Self { scheduler, spot_limit: makespan, makespan, cost, evaluations: 0, vms }
    }

    /// Whether a task is planned to take less than it does, or more than with its checkpoints.
    fn contradicts(&self, problem: &Problem) -> bool {
        self.vms.iter().any(|vm| {
            let kind = problem.kinds.iter().position(|kind| kind.name == vm.kind);
            kind.is_some_and(|kind| {
                vm.vcpus.iter().flatten().any(|planned| {
                    let takes = planned.end.since(planned.start);
                    problem.takes(planned, kind).is_some_and(|(least, most)| {
                        takes < least || takes > most + Span::from_secs(1)
                    })
                })
            })
        })
    }

    /// The plan as it comes to be: where a task's time contradicts the bag (less than it takes, or more than
    /// with its checkpoints), every vCPU's tasks one after the other from the end of the boot, each with the
    /// time that it takes; its makespan and cost in any case, of which it may have been stored with another
    /// plan's. `true`: times were made again.
    #[must_use]
    pub fn reckoned(
        mut self,
        config: &BagSchedulerConfig,
        catalogue: &Catalogue,
        bag: &Bag,
        checkpoints: &CheckpointConfig,
    ) -> (Self, bool) {
        let problem = Problem::new(catalogue, bag, checkpoints, config.restore, config.margin);
        let again = self.contradicts(&problem);
        let (mut makespan, mut cost) = (Span::ZERO, Money::ZERO);
        for vm in &mut self.vms {
            let found = problem.kinds.iter().position(|kind| kind.name == vm.kind);
            let Some(kind) = found else { continue };
            for lane in vm.vcpus.iter_mut().filter(|_| again) {
                let mut at = Time::ZERO + problem.boot;
                for planned in lane {
                    let takes = problem.takes(planned, kind).map_or(Span::ZERO, |(_, most)| most);
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

    /// Whether it can be run: each task of the bag once, on types that are sold and have room.
    ///
    /// # Errors
    ///
    /// [`PlanError::BadPlan`] with the first thing that is wrong.
    pub fn check(&self, catalogue: &Catalogue, bag: &Bag) -> Result<(), PlanError> {
        let bad = |why: String| Err(PlanError::BadPlan(why));
        let mut seen = vec![false; bag.tasks.len()];
        for (n, vm) in self.vms.iter().enumerate() {
            let (kind, market) = (&vm.kind, vm.market);
            let Some(offer) = catalogue.get(kind) else {
                return bad(format!(
                    "VM {n} is a {kind}, which the catalogue doesn't have ({})",
                    catalogue.names()
                ));
            };
            let alike = |v: &&PlannedVm| v.kind == *kind && v.market == market;
            let (count, limit) = (self.vms.iter().filter(alike).count(), offer.limit(market));
            if count > limit as usize {
                return bad(format!("it has {count} {market} {kind}, the limit is {limit}"));
            }
            for PlannedTask { task, .. } in vm.vcpus.iter().flatten() {
                let Some((known, once)) =
                    bag.tasks.get(task.get() as usize).zip(seen.get_mut(task.get() as usize))
                else {
                    return bad(format!("{task} on VM {n} is not one of the bag's {}", seen.len()));
                };
                if std::mem::replace(once, true) {
                    return bad(format!("{task} is in it twice"));
                }
                if !known.runtime.contains_key(kind) {
                    return bad(format!("{task} on VM {n} has no runtime for {kind}"));
                }
                if known.memory > offer.memory {
                    return bad(format!(
                        "{task} on VM {n} needs {}, a {kind} has {}",
                        known.memory, offer.memory
                    ));
                }
            }
        }
        match seen.iter().position(|&once| !once) {
            Some(task) => bad(format!("task {task} of the bag is not in it")),
            None => Ok(()),
        }
    }
}
