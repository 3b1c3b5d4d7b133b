//! The batch service of the bathtub paper, section 5.

use dormouse_cloud::{Lifetimes, Market};
use dormouse_model::{CheckpointScheme, OfType};
use dormouse_units::{Span, TaskId, Time, TypeName};

use super::{ListedBagScheduler, SchedulerInput};
use crate::dynamic::{BagScheduler, SchedulerParts};
use crate::parameters::ParameterSchema;
use crate::problem::{KindId, KnownType};
use crate::service::{BatchServicePolicy, ServiceConfig};
use crate::{BagSchedulerConfig, Plan, PlanError, Policy, feasibility};

/// Runs jobs of one or more VMs each, on VMs that are chosen by their age. If a plan is given, the
/// scheduler only carries out the plan.
pub(super) struct BatchService;

impl ListedBagScheduler for BatchService {
    fn name(&self) -> &'static str {
        "batch-service"
    }

    fn about(&self) -> &'static str {
        "jobs of one or more VMs each, which are reused or not by their age (bathtub paper)"
    }

    fn parameters(&self) -> ParameterSchema {
        ParameterSchema::from_type::<ServiceConfig>()
    }

    fn build(
        &self,
        given: SchedulerInput<'_>,
        plan: Option<Plan>,
    ) -> Result<Box<dyn Policy>, PlanError> {
        if plan.is_some() {
            return BagScheduler::boxed_scheduler(given, plan, SchedulerParts::NONE);
        }
        let own: ServiceConfig = given.config.own.read()?;
        let kind = choose_type(&given, &own)?;
        let limit = given.problem.kinds[kind].limit(own.market);
        let tasks = u32::try_from(given.problem.task_count()).unwrap_or(u32::MAX);
        let wrong = |key, value: String, want| Err(PlanError::Parameter { key, value, want });
        if own.vms < own.vms_per_job {
            let want = "it has to be at least vms-per-job, or no job ever starts";
            return wrong("vms", own.vms.to_string(), want);
        }
        if limit < own.vms_per_job {
            let value = format!("{}, of a type of which {limit} can be had", own.vms_per_job);
            return wrong(
                "vms-per-job",
                value,
                "a job needs all its VMs at the same time: ask for no more than can be had",
            );
        }
        if !tasks.is_multiple_of(own.vms_per_job) {
            let value = format!("{} for {tasks} tasks", own.vms_per_job);
            return wrong("vms-per-job", value, "it has to divide the number of tasks");
        }
        let submitted: Vec<Time> =
            given.bag.tasks.iter().map(|task| Time::ZERO + task.submitted).collect();
        let are_one = |job: &[Time]| job.iter().all(|at| *at == job[0]);
        if !submitted.chunks(own.vms_per_job as usize).all(are_one) {
            let value = own.vms_per_job.to_string();
            let want = "it has to divide the number of tasks that are submitted at each time";
            return wrong("vms-per-job", value, want);
        }
        let own = ServiceConfig { vms: own.vms.min(limit), ..own };
        let name = given.problem.kinds[kind].name.clone();
        let law = lifetime_law(given.config, own.market, &name);
        if let (Some(law), Some(length)) = (&law, own.first_estimate)
            && law.law().cdf(dormouse_cloud::lifetimes::hours(length)) >= 1.0
        {
            let want = "no VM lives so long: such a job never ends";
            return wrong("first-estimate", length.to_string(), want);
        }
        if let Some(law) = &law {
            check_lifetimes(&given, law, &name)?;
        }
        Ok(Box::new(BatchServicePolicy::new(given.config, own, &submitted, (name, law))))
    }

    fn reckons_with_lifetimes(&self) -> bool {
        true
    }

    fn takes_later_tasks(&self) -> bool {
        true
    }

    fn takes_workflows(&self) -> bool {
        false
    }

    fn markets(&self, config: &BagSchedulerConfig) -> Vec<Market> {
        let own: Result<ServiceConfig, _> = config.own.read();
        own.map_or_else(|_| Vec::new(), |own| vec![own.market])
    }
}

/// Lifetime law of VMs of a type; `None`: the provider never preempts them.
fn lifetime_law(config: &BagSchedulerConfig, market: Market, kind: &TypeName) -> Option<Lifetimes> {
    let place = OfType::find_place(&config.laws, Some(kind)).filter(|_| market == Market::Spot);
    place.map(|place| config.laws[place].of.clone())
}

/// Checks that each task can end on a VM with its type's lifetime law, if tasks are never checkpointed.
fn check_lifetimes(
    given: &SchedulerInput<'_>,
    law: &Lifetimes,
    kind: &TypeName,
) -> Result<(), PlanError> {
    if !matches!(given.checkpoints.scheme, CheckpointScheme::None {}) {
        return Ok(());
    }
    let lives = |length: Span| law.law().cdf(dormouse_cloud::lifetimes::hours(length)) < 1.0;
    for (task, of) in (0_u32..).map(TaskId::new).zip(given.bag.tasks.iter()) {
        if let Some(length) = of.runtime.get(kind).copied().filter(|length| !lives(*length)) {
            let (name, kind) = (of.name.clone(), kind.clone());
            return Err(PlanError::OutlivesVms { task, name, length, kind });
        }
    }
    Ok(())
}

/// The instance type that the service launches.
fn choose_type(given: &SchedulerInput<'_>, own: &ServiceConfig) -> Result<KindId, PlanError> {
    let SchedulerInput { config, problem, catalogue, bag, .. } = given;
    let is_meant = |kind: &KnownType| own.kind.as_ref().is_none_or(|name| kind.name == *name);
    let offered: Vec<KindId> = (0..problem.kinds.len())
        .filter(|&id| is_meant(&problem.kinds[id]) && problem.kinds[id].limit(own.market) > 0)
        .collect();
    if offered.is_empty() {
        if let Some(name) = &own.kind {
            let value = format!("{} {name}", own.market);
            let want = "it has to be a type of the catalogue that is sold in this market";
            return Err(PlanError::Parameter { key: "type", value, want });
        }
        let (scheduler, known) = (config.name.as_str(), catalogue.list_names());
        return Err(PlanError::NothingOffered { scheduler, what: "a type in its market", known });
    }
    feasibility::check_tasks(problem, bag, &offered)?;
    let runs_all =
        |kind: &KindId| problem.by_length().iter().all(|&task| problem.runs_on(task, *kind));
    let price = |kind: &KindId| problem.kinds[*kind].price(own.market);
    let cheapest = offered.iter().copied().filter(runs_all).min_by_key(price);
    cheapest.ok_or_else(|| PlanError::NothingOffered {
        scheduler: config.name.as_str(),
        what: "one type on which all tasks can run",
        known: catalogue.list_names(),
    })
}
