//! The bag and the catalogue as tables, indexed by small numbers.

use std::cmp::Reverse;

use dormouse_cloud::{BurstableTerms, Catalogue, Market, VmLimits};
use dormouse_model::{Bag, CheckpointConfig, PlannedTask, Task, TaskFollowers};
use dormouse_units::{Bytes, Mode, Ppm, Price, Span, TaskId, TypeName};

use crate::{CheckpointPlan, CheckpointPlanning};

/// An instance type, by its index in [`SchedulingProblem::kinds`].
pub(crate) type KindId = usize;

/// A type, and the market in which it is bought.
pub(crate) type Offer = (KindId, Market);

/// Times that a scheduler adds to the times of the tasks and of the cloud.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimeAllowances {
    /// Time that a restart from a checkpoint takes.
    pub(crate) restore: Span,
    /// Time to keep free before the deadline.
    pub(crate) margin: Span,
    /// Time for the boot of a VM that takes tasks over (ω); `None`: the boot time of the cloud.
    pub(crate) boot: Option<Span>,
}

/// An instance type with the figures that scheduling needs.
#[derive(Clone, Debug)]
pub(crate) struct KnownType {
    pub(crate) name: TypeName,
    pub(crate) vcpus: usize,
    pub(crate) memory: Bytes,
    pub(crate) mflops: u64,
    pub(crate) burstable: Option<BurstableTerms>,
    /// The memory of the VM if it can keep a vCPU idle; `None` if any tasks of the bag, one per
    /// vCPU, fit together.
    pub(crate) memory_limit: Option<Bytes>,
    prices: [Option<Price>; 2],
    limits: VmLimits,
}

/// The work of a task on a type.
#[derive(Clone, Copy, Debug)]
struct TaskWork {
    runtime: Span,
    /// Index of the task's checkpoint plan in [`SchedulingProblem::checkpoints`].
    checkpoints: usize,
}

/// The scheduling problem: instance types, and the times that tasks take on them.
#[derive(Clone, Debug)]
pub(crate) struct SchedulingProblem {
    pub(crate) kinds: Vec<KnownType>,
    /// The deadline (D), less the safety margin.
    pub(crate) deadline: Span,
    /// Time from the request for a VM of the plan until it can be used.
    pub(crate) boot: Span,
    /// Time kept free for the boot of a VM that takes tasks over (ω): in `D_spot` and in migrations.
    pub(crate) takeover_boot: Span,
    /// Time that a restart from a checkpoint takes.
    restore: Span,
    memory: Vec<Bytes>,
    most_memory: Bytes,
    work: Vec<Option<TaskWork>>,
    /// The different checkpoint plans; tasks refer to them by index, and consecutive tasks with the same
    /// plan share one.
    checkpoints: Vec<CheckpointPlan>,
    /// True if tasks on on-demand VMs are checkpointed, too.
    is_checkpointed_on_demand: bool,
    /// Time of each whole task at full speed on VMs where it is checkpointed, in the order of `work`;
    /// `None`: the task can't run on the type. A table of its own, as this value is read most often.
    whole: Vec<Option<Span>>,
    longest: Vec<Span>,
    /// The tasks to plan, the longest first: all tasks, or in a first wave those that can start at the
    /// beginning.
    by_length: Vec<TaskId>,
    followers: TaskFollowers,
    /// Time that each task has to end before the deadline to leave room for its successors; empty
    /// where no task follows another.
    behind: Vec<Span>,
    /// The tasks that can't start at the beginning, by id; empty where no task follows another.
    later: Vec<TaskId>,
}

impl KnownType {
    pub(crate) fn price(&self, market: Market) -> Option<Price> {
        self.prices[usize::from(market == Market::OnDemand)]
    }

    pub(crate) fn limit(&self, market: Market) -> u32 {
        match (self.price(market), market) {
            (None, _) => 0,
            (_, Market::Spot) => self.limits.spot,
            (_, Market::OnDemand) => self.limits.on_demand,
        }
    }

    /// True if the type is offered in `market` and not burstable (M^s or M^o of the paper).
    pub(crate) fn is_regular(&self, market: Market) -> bool {
        self.burstable.is_none() && self.limit(market) > 0
    }

    /// The speed of a vCPU in baseline mode.
    pub(crate) fn baseline(&self) -> Ppm {
        self.burstable.map_or(Ppm::ONE, |b| b.baseline)
    }
}

impl SchedulingProblem {
    pub(crate) fn new(
        catalogue: &Catalogue,
        bag: &Bag,
        checkpoints: &CheckpointConfig,
        TimeAllowances { restore, margin, boot: takeover_boot }: TimeAllowances,
    ) -> Self {
        let largest = bag.tasks.iter().map(|t| t.memory).max().unwrap_or(Bytes::ZERO);
        let kinds: Vec<KnownType> = catalogue
            .types
            .values()
            .map(|kind| {
                let together = largest.get().saturating_mul(u64::from(kind.vcpus));
                KnownType {
                    name: kind.name.clone(),
                    vcpus: kind.vcpus as usize,
                    memory: kind.memory,
                    mflops: kind.mflops,
                    burstable: kind.burstable,
                    memory_limit: (together > kind.memory.get()).then_some(kind.memory),
                    prices: [kind.spot, kind.on_demand],
                    limits: kind.limits,
                }
            })
            .collect();
        let mut planner = checkpoints.planner();
        let mut plans = Vec::new();
        let mut work: Vec<Option<TaskWork>> = Vec::with_capacity(bag.tasks.len() * kinds.len());
        for task in bag.tasks.iter() {
            for kind in &kinds {
                let fits = task.memory <= kind.memory && kind.vcpus > 0;
                let runtime = task.runtime.get(&kind.name).copied().filter(|_| fits);
                let before = work.len().checked_sub(kinds.len()).and_then(|place| work[place]);
                work.push(runtime.map(|runtime| {
                    let plan = planner.plan(task.memory, runtime);
                    let shared = before.map(|before| before.checkpoints);
                    let checkpoints = shared.filter(|&place| plans[place] == plan);
                    let checkpoints = checkpoints.unwrap_or_else(|| {
                        plans.push(plan);
                        plans.len() - 1
                    });
                    TaskWork { runtime, checkpoints }
                }));
            }
        }
        let whole = |TaskWork { runtime, checkpoints }: TaskWork| {
            let CheckpointPlan { cost, .. } = plans[checkpoints];
            runtime + cost.times(u64::from(plans[checkpoints].left_after(Ppm::ZERO)))
        };
        let whole: Vec<_> = work.iter().map(|work| work.map(whole)).collect();
        let is_checkpointed_on_demand = checkpoints.is_planned_on(Market::OnDemand);
        // Tasks are taken over by on-demand VMs, where there are any.
        let is_rescued = kinds.iter().any(|kind| kind.is_regular(Market::OnDemand));
        let is_bare = is_rescued && !is_checkpointed_on_demand;
        let taken_over = |(work, &whole): (&Option<TaskWork>, &Option<Span>)| {
            if is_bare { work.map(|work| work.runtime) } else { whole }
        };
        let of_kinds: Vec<_> = work.iter().zip(&whole).map(taken_over).collect();
        let of_task = of_kinds.chunks(kinds.len().max(1));
        let longest_of = |of: &[Option<Span>]| of.iter().flatten().max().copied();
        let mut longest: Vec<_> = of_task.map(|of| longest_of(of).unwrap_or_default()).collect();
        longest.resize(bag.tasks.len(), Span::ZERO);
        let mut by_length: Vec<_> = (0_u32..).map(TaskId::new).zip(&longest).collect();
        by_length.sort_by_key(|&(task, length)| (Reverse(length), task));
        let followers = TaskFollowers::new(&bag.tasks);
        let boot = catalogue.boot;
        let takeover_boot = takeover_boot.unwrap_or(boot);
        let length = |task: TaskId| longest.get(task.get() as usize).copied().unwrap_or_default();
        let chain = followers.longest_behind(length).into_iter();
        // Where followers get a VM of their own it has to boot first.
        let with_boot = |chain| if chain == Span::ZERO { chain } else { chain + takeover_boot };
        let behind = chain.map(with_boot).collect();
        let waits = |&(_, task): &(TaskId, &Task)| !followers.is_empty() && !task.is_due_at_once();
        let later = (0_u32..).map(TaskId::new).zip(bag.tasks.iter()).filter(waits);
        let later = later.map(|(task, _)| task).collect();
        Self {
            deadline: bag.deadline.saturating_sub(margin),
            boot,
            takeover_boot,
            restore,
            memory: bag.tasks.iter().map(|t| t.memory).collect(),
            most_memory: largest,
            work,
            checkpoints: plans,
            is_checkpointed_on_demand,
            whole,
            by_length: by_length.into_iter().map(|(task, _)| task).collect(),
            longest,
            kinds,
            followers,
            behind,
            later,
        }
    }

    /// Number of tasks in the bag.
    pub(crate) fn task_count(&self) -> usize {
        self.memory.len()
    }

    pub(crate) fn task_memory(&self, task: TaskId) -> Bytes {
        self.memory[task.get() as usize]
    }

    /// Memory of the task that needs most.
    pub(crate) fn most_memory(&self) -> Bytes {
        self.most_memory
    }

    /// True if a task can run on a type.
    pub(crate) fn runs_on(&self, task: TaskId, kind: KindId) -> bool {
        self.whole_time(task, (kind, Market::Spot)).is_some()
    }

    /// Time that a whole task keeps a vCPU busy at full speed, including checkpoints if tasks are
    /// checkpointed in the offer's market; `None` if the task can't run on the type.
    pub(crate) fn whole_time(&self, task: TaskId, on: Offer) -> Option<Span> {
        self.remaining_time(task, on, Ppm::ZERO, Ppm::ONE)
    }

    /// Time that the rest of a task keeps a vCPU of this speed busy when `done` of its work is kept; `None`
    /// if the task can't run on the type.
    pub(crate) fn remaining_time(
        &self,
        task: TaskId,
        (kind, market): Offer,
        done: Ppm,
        speed: Ppm,
    ) -> Option<Span> {
        let place = task.get() as usize * self.kinds.len() + kind;
        let is_checkpointed = market == Market::Spot || self.is_checkpointed_on_demand;
        if is_checkpointed && (done, speed) == (Ppm::ZERO, Ppm::ONE) {
            return *self.whole.get(place)?;
        }
        let TaskWork { runtime, checkpoints } = (*self.work.get(place)?)?;
        let checkpoints = self.checkpoints.get(checkpoints).filter(|_| is_checkpointed);
        let computing = runtime.saturating_sub(runtime.part(done)).at_speed(speed)?;
        let writing = checkpoints.map_or(Span::ZERO, |checkpoints| {
            checkpoints.cost.times(u64::from(checkpoints.left_after(done)))
        });
        let restoring = if done == Ppm::ZERO { Span::ZERO } else { self.restore };
        Some(restoring + computing + writing)
    }

    /// Time that a checkpoint of a task takes.
    pub(crate) fn checkpoint_time(&self, task: TaskId, kind: KindId) -> Span {
        let work = self.work.get(task.get() as usize * self.kinds.len() + kind).copied().flatten();
        let plan = work.and_then(|work| self.checkpoints.get(work.checkpoints));
        plan.map_or(Span::ZERO, |plan| plan.cost)
    }

    /// The longest time that a task takes at full speed on any type. Checkpoints count if tasks are checkpointed in the market in
    /// which tasks are taken over: on demand, if regular types are sold there.
    pub(crate) fn longest_time(&self, task: TaskId) -> Span {
        self.longest.get(task.get() as usize).copied().unwrap_or_default()
    }

    /// The tasks that are planned, the longest first.
    pub(crate) fn by_length(&self) -> &[TaskId] {
        &self.by_length
    }

    /// Time that a planned task takes on a type in its mode: first without checkpoints, then with those of
    /// the offer's market. `None`: the task can't run on the type.
    pub(crate) fn planned_time(&self, planned: &PlannedTask, on: Offer) -> Option<(Span, Span)> {
        let (kind, _) = on;
        let speed = match planned.mode {
            Mode::Burst => Ppm::ONE,
            Mode::Baseline => self.kinds[kind].baseline(),
        };
        let with = self.remaining_time(planned.task, on, Ppm::ZERO, speed)?;
        let place = planned.task.get() as usize * self.kinds.len() + kind;
        let bare = (*self.work.get(place)?)?.runtime.at_speed(speed)?;
        Some((bare.min(with), with))
    }

    /// The tasks to plan, by descending memory (Algorithm 2, line 2), then by length.
    pub(crate) fn by_memory(&self) -> Vec<TaskId> {
        let mut tasks = self.by_length.clone();
        tasks.sort_by_key(|&t| (Reverse((self.task_memory(t), self.longest_time(t))), t));
        tasks
    }

    /// The regular types of a market.
    pub(crate) fn regular_types(
        &self,
        market: Market,
    ) -> impl Iterator<Item = (KindId, &KnownType)> {
        self.kinds.iter().enumerate().filter(move |(_, kind)| kind.is_regular(market))
    }

    /// The burstable types, which are sold on demand only.
    pub(crate) fn burstable_types(&self) -> impl Iterator<Item = (KindId, &KnownType)> {
        let offered = |k: &&KnownType| k.burstable.is_some() && k.limit(Market::OnDemand) > 0;
        self.kinds.iter().enumerate().filter(move |(_, kind)| offered(kind))
    }

    /// Dependencies between tasks: the followers of each.
    pub(crate) fn followers(&self) -> &TaskFollowers {
        &self.followers
    }

    /// True if a task can start as soon as the run begins.
    pub(crate) fn is_due_at_once(&self, task: TaskId) -> bool {
        self.later.binary_search(&task).is_err()
    }

    /// Number of tasks that have predecessors, in a bag with dependencies.
    pub(crate) fn to_come(&self) -> usize {
        self.later.len()
    }

    /// Latest end of a task, counted from the beginning, that leaves its successors enough time
    /// before the deadline.
    pub(crate) fn latest_end(&self, task: TaskId) -> Span {
        let behind = self.behind.get(task.get() as usize).copied().unwrap_or_default();
        self.deadline.saturating_sub(behind)
    }

    /// The problem of the tasks that can start at the beginning, with the earliest of their limits
    /// as the deadline; `None`: no task has predecessors.
    pub(crate) fn first_wave(&self) -> Option<Self> {
        if self.later.is_empty() {
            return None;
        }
        let mut wave = self.clone();
        wave.by_length.retain(|&task| self.is_due_at_once(task));
        let limits = wave.by_length.iter().map(|&task| self.latest_end(task));
        wave.deadline = limits.min().unwrap_or(self.deadline);
        Some(wave)
    }
}
