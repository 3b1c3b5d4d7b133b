//! Checks before any search: what is impossible, with the arithmetic that shows it.

use dormouse_cloud::Market;
use dormouse_model::Bag;
use dormouse_units::{Span, TaskId};

use crate::PlanError;
use crate::planner::PrimarySchedule;
use crate::problem::{KindId, Offer, SchedulingProblem};
use crate::scheduler_input::SchedulerInput;

/// Parts of a lower bound on the end of any schedule.
pub(crate) struct EndBound {
    boot: Span,
    work: Span,
    vcpus: u64,
}

impl EndBound {
    /// The time before which no schedule ends.
    pub(crate) fn earliest_end(&self) -> Span {
        let even = self.work.as_micros().div_ceil(self.vcpus.max(1));
        self.boot + Span::from_micros(even)
    }
}

/// The types a scheduler can run a task on at full speed, and how many VMs of each it may have. A
/// scheduler that plans spot VMs can fall back on on-demand ones.
fn usable_offers(problem: &SchedulingProblem, market: Market) -> Vec<(Offer, u64)> {
    let of = |market: Market| {
        problem
            .regular_types(market)
            .map(move |(id, kind)| ((id, market), u64::from(kind.limit(market))))
    };
    match market {
        Market::Spot => of(Market::Spot).chain(of(Market::OnDemand)).collect(),
        Market::OnDemand => of(Market::OnDemand).collect(),
    }
}

/// The lower bound of this problem: the work of all tasks, each on its fastest type, spread evenly
/// over all vCPUs that can be had.
pub(crate) fn bound_of(problem: &SchedulingProblem, how: PrimarySchedule) -> EndBound {
    let PrimarySchedule { market, burstable, .. } = how;
    let usable = usable_offers(problem, market);
    let bursting = || {
        problem
            .burstable_types()
            .filter(move |_| burstable)
            .map(|(kind, _)| (kind, Market::OnDemand))
    };
    let shortest = |task| {
        let offers = usable.iter().map(|u| u.0).chain(bursting());
        offers.filter_map(|on| problem.whole_time(task, on)).min()
    };
    let work = problem.by_memory().into_iter().filter_map(shortest).sum();
    let vcpus =
        usable.iter().map(|&((kind, _), n)| n * problem.kinds[kind].vcpus as u64).sum::<u64>()
            + problem
                .burstable_types()
                .filter(|_| burstable)
                .map(|(_, kind)| kind.vcpus as u64 * u64::from(kind.limit(Market::OnDemand)))
                .sum::<u64>();
    EndBound { boot: problem.boot, work, vcpus }
}

/// Checks that a primary schedule of this kind may exist.
///
/// # Errors
///
/// The first reason found why there can't be one.
pub(crate) fn check_problem(
    given: &SchedulerInput<'_>,
    how: PrimarySchedule,
) -> Result<(), PlanError> {
    let SchedulerInput { config, problem, catalogue, bag, .. } = given;
    if problem.regular_types(how.market).next().is_none() {
        let what = match how.market {
            Market::OnDemand => "a non-burstable on-demand type",
            Market::Spot => "a non-burstable spot type",
        };
        let (scheduler, known) = (config.name.as_str(), catalogue.list_names());
        return Err(PlanError::NothingOffered { scheduler, what, known });
    }
    let offers: Vec<Offer> = usable_offers(problem, how.market).into_iter().map(|u| u.0).collect();
    let runs_on: Vec<KindId> = offers.iter().map(|&(kind, _)| kind).collect();
    check_tasks(problem, bag, &runs_on)?;
    for (id, task) in tasks_with_ids(bag) {
        let fastest =
            offers.iter().filter_map(|&on| Some((problem.whole_time(id, on)?, on.0))).min();
        if let Some((length, kind)) = fastest
            && problem.boot + length > problem.deadline
        {
            return Err(PlanError::TaskTooLong {
                task: id,
                name: task.name.clone(),
                deadline: problem.deadline,
                shortest: problem.boot + length,
                boot: problem.boot,
                length,
                fastest: problem.kinds[kind].name.clone(),
            });
        }
    }
    check_chains(problem, bag, &offers)?;
    let bound = bound_of(problem, how);
    if bound.earliest_end() > problem.deadline {
        let (deadline, shortest) = (problem.deadline, bound.earliest_end());
        let EndBound { boot, work, vcpus } = bound;
        return Err(PlanError::TooMuchWork { deadline, work, vcpus, boot, shortest });
    }
    Ok(())
}

/// Checks that the tasks that come one after the other can be done by the deadline, where each is on
/// its fastest type.
fn check_chains(problem: &SchedulingProblem, bag: &Bag, offers: &[Offer]) -> Result<(), PlanError> {
    let length = |task: TaskId| {
        let lengths = offers.iter().filter_map(|&on| problem.whole_time(task, on));
        lengths.min().unwrap_or_default()
    };
    let path = problem.followers().critical_path(length);
    let shortest = problem.boot + path.iter().map(|&task| length(task)).sum::<Span>();
    if path.is_empty() || shortest <= problem.deadline {
        return Ok(());
    }
    let name = |task: &TaskId| bag.tasks.get(task.get() as usize).map(|t| format!("'{}'", t.name));
    let names: Vec<String> = path.iter().filter_map(name).collect();
    let chain = match names.as_slice() {
        [first, second, .., last] if names.len() > 4 => {
            format!("{first}, {second} and {} more up to {last}", names.len() - 3)
        }
        names => names.join(", "),
    };
    let (deadline, boot) = (problem.deadline, problem.boot);
    Err(PlanError::ChainTooLong { chain, deadline, shortest, boot })
}

fn tasks_with_ids(bag: &Bag) -> impl Iterator<Item = (TaskId, &dormouse_model::Task)> {
    (0_u32..).map(TaskId::new).zip(bag.tasks.iter())
}

/// Checks that every task fits one of the types and has a runtime there.
///
/// # Errors
///
/// The first task that can run on none of the types.
pub(crate) fn check_tasks(
    problem: &SchedulingProblem,
    bag: &Bag,
    runs_on: &[KindId],
) -> Result<(), PlanError> {
    for (id, task) in tasks_with_ids(bag) {
        if runs_on.iter().any(|&kind| problem.runs_on(id, kind)) {
            continue;
        }
        let name = task.name.clone();
        let list = |names: &mut dyn Iterator<Item = &str>| names.collect::<Vec<_>>().join(", ");
        let known: Vec<_> = runs_on
            .iter()
            .map(|&kind| &problem.kinds[kind])
            .filter(|kind| task.runtime.contains_key(&kind.name))
            .collect();
        let Some(largest) = known.iter().max_by_key(|kind| kind.memory) else {
            let given = list(&mut task.runtime.keys().map(|k| k.as_str()));
            let offered = list(&mut runs_on.iter().map(|&k| problem.kinds[k].name.as_str()));
            return Err(PlanError::NoRuntime { task: id, name, given, offered });
        };
        let (largest, most) = (largest.name.clone(), largest.memory);
        return Err(PlanError::TaskTooLarge { task: id, name, memory: task.memory, largest, most });
    }
    Ok(())
}

/// Checks `scheduler.fleet`.
///
/// # Errors
///
/// The fleet's VMs can't be had, or can't run some task.
pub(crate) fn check_fleet(given: &SchedulerInput<'_>) -> Result<(), PlanError> {
    let SchedulerInput { config, problem, bag, .. } = given;
    let mut runs_on = Vec::new();
    for fleet in config.fleet.iter().filter(|fleet| fleet.count > 0) {
        let found = problem.kinds.iter().position(|kind| kind.name == fleet.kind);
        match found {
            Some(kind) if problem.kinds[kind].price(fleet.market).is_some() => runs_on.push(kind),
            Some(_) => {
                let want = "its type has to be sold in its market";
                let value = format!("{} {}", fleet.market, fleet.kind);
                return Err(PlanError::Parameter { key: "fleet", value, want });
            }
            None => {
                let (value, want) =
                    (fleet.kind.to_string(), "it has to name a type of the catalogue");
                return Err(PlanError::Parameter { key: "fleet", value, want });
            }
        }
    }
    if runs_on.is_empty() {
        let (value, want) = ("no VMs".to_owned(), "it has to have at least one VM");
        return Err(PlanError::Parameter { key: "fleet", value, want });
    }
    check_tasks(problem, bag, &runs_on)
}
