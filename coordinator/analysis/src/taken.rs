//! VMs that the provider took from one tenant for another: which launch took which VM, the cost for
//! the owner and the benefit for the taker.

use dormouse_cloud::{ChargedInterval, InterruptionAction};
use dormouse_model::{TenantWork, Tenants, VmEnd};
use dormouse_units::{Money, Ppm, RequestId, Span, TaskId, Time, VmId};

use crate::{AttemptEnd, AttemptHistory, RunRecord, TaskHistory, VmDisplacement, VmHistory};

/// A VM that was preempted to make room for another VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenVm<'a> {
    /// Time at which the preempted VM's owner got the notice.
    pub at: Time,
    /// The VM that was preempted.
    pub vm: &'a VmHistory,
    /// Tenant of the VM that was preempted.
    pub owner: VmTenant,
    /// The VM that got the preempted VM's room.
    pub by: &'a VmHistory,
    /// Tenant of the VM that got the room.
    pub taker: VmTenant,
    /// How the VM that was preempted ended.
    pub ending: DisplacementEnd,
    /// Tasks of a bag that were on the preempted VM at the notice. Parallel jobs have on-demand machines, which are
    /// never preempted.
    pub tasks: Vec<DisplacedTask>,
}

/// The tenant of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmTenant {
    /// The tenant's part of the run's work.
    pub work: TenantWork,
    /// The customer's request that the VM was launched for; `None` if the VM is not a customer's.
    pub request: Option<RequestId>,
}

/// How a VM that made room ended; the times are those at which it freed its processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplacementEnd {
    /// The VM was still booting, and was ended at once, at this time.
    Booting(Time),
    /// The VM was ended at this time, when its notice had run out.
    NoticeOver(Time),
    /// The VM ended before its notice ran out, at this time and for this other reason.
    Itself(Time, VmEnd),
    /// The VM hibernated at the first time and ran again from the second on; `None` if the VM never ran again.
    Hibernated(Time, Option<Time>),
    /// The run was over before the VM that made room had ended or resumed.
    Open,
}

/// A task that was on a VM when the VM was preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisplacedTask {
    /// Task that was on the preempted VM.
    pub task: TaskId,
    /// Time from which the task did not run on the VM any more: it was stopped, or the VM froze or ended.
    pub left: Time,
    /// Part of the task's work that a checkpoint held at the time `left`.
    pub kept: Ppm,
    /// Time that the task had computed since its last checkpoint and has to compute again.
    pub lost: Span,
    /// Price of the task's vCPU for the time `lost`.
    pub charged: Money,
    /// VM on which the task ran again, and the time from which it ran there; `None` if the task never ran again.
    pub went_on: Option<(VmId, Time)>,
}

impl DisplacedTask {
    /// Time from when the task left the VM until it ran again; `None` if the task never ran again.
    #[must_use]
    pub fn stood(&self) -> Option<Span> {
        self.went_on.map(|(_, at)| at.since(self.left))
    }
}

impl DisplacementEnd {
    /// How the VM ended, in a word or two.
    #[must_use]
    pub const fn words(&self) -> &'static str {
        match self {
            Self::Booting(_) => "killed as it booted",
            Self::NoticeOver(_) => "notice used up",
            Self::Itself(_, VmEnd::HostLost | VmEnd::Failed) => "lost with its host",
            Self::Itself(..) => "given back before",
            Self::Hibernated(_, Some(_)) => "hibernated and resumed",
            Self::Hibernated(_, None) => "hibernated for good",
            Self::Open => "open",
        }
    }

    /// Time at which the VM freed its processors; `None` if the VM never freed them.
    #[must_use]
    pub const fn at(&self) -> Option<Time> {
        match *self {
            Self::Booting(at) | Self::NoticeOver(at) => Some(at),
            Self::Itself(at, _) | Self::Hibernated(at, _) => Some(at),
            Self::Open => None,
        }
    }
}

impl TakenVm<'_> {
    /// Time that the tasks of the preempted VM had computed in vain.
    #[must_use]
    pub fn lost(&self) -> Span {
        self.tasks.iter().map(|task| task.lost).sum()
    }

    /// Price of the time that the tasks of the preempted VM had computed in vain.
    #[must_use]
    pub fn charged(&self) -> Money {
        self.tasks.iter().map(|task| task.charged).sum()
    }

    /// Time for which the tasks of the preempted VM did not run, summed over the tasks that ran again.
    #[must_use]
    pub fn stood(&self) -> Span {
        self.tasks.iter().filter_map(DisplacedTask::stood).sum()
    }

    /// Time from the launch of the VM that got the room until that VM was ready; `None` if it never was.
    #[must_use]
    pub fn waited(&self) -> Option<Span> {
        self.by.ready.map(|ready| ready.since(self.by.launched))
    }
}

/// All VMs that were preempted to make room in a run of these tenants, in order of time.
#[must_use]
pub fn taken<'a>(record: &'a RunRecord, tenants: &Tenants) -> Vec<TakenVm<'a>> {
    let of_vm = |vm: &'a VmHistory| vm.displaced.iter().map(move |how| (vm, how));
    let all = record.vms.values().flat_map(of_vm);
    let mut all: Vec<_> = all.filter_map(|(vm, how)| taken_vm(record, tenants, vm, how)).collect();
    all.sort_by_key(|it| (it.at, it.vm.id));
    all
}

fn taken_vm<'a>(
    record: &'a RunRecord,
    tenants: &Tenants,
    vm: &'a VmHistory,
    how: &VmDisplacement,
) -> Option<TakenVm<'a>> {
    let by = record.vms.get(&how.by).or_else(|| record.takers.get(&how.by))?;
    let (owner, taker) = (tenant_of(vm.id, tenants)?, tenant_of(by.id, tenants)?);
    let ending = displacement_end(vm, how);
    let until = ending.at().unwrap_or(record.end());
    let tasks = (0..).map(TaskId::new).zip(&record.tasks);
    let behind = tasks.filter_map(|(id, task)| left_behind(record, vm, (how.at, until), id, task));
    Some(TakenVm { at: how.at, vm, owner, by, taker, ending, tasks: behind.collect() })
}

fn tenant_of(vm: VmId, tenants: &Tenants) -> Option<VmTenant> {
    Some(VmTenant { work: tenants.work_on(vm)?, request: tenants.request_of(vm) })
}

fn displacement_end(vm: &VmHistory, how: &VmDisplacement) -> DisplacementEnd {
    if how.action == InterruptionAction::Hibernate {
        let froze = vm.hibernations.iter().find(|it| it.asked >= how.at);
        if let Some(froze) = froze {
            return DisplacementEnd::Hibernated(froze.frozen, froze.resumed.map(|(_, at)| at));
        }
    }
    match vm.ended {
        Some((at, VmEnd::Preempted, _)) if vm.ready.is_none() => DisplacementEnd::Booting(at),
        Some((at, VmEnd::Preempted, _)) => DisplacementEnd::NoticeOver(at),
        Some((_, VmEnd::RunOver, _)) | None => DisplacementEnd::Open,
        Some((at, why, _)) => DisplacementEnd::Itself(at, why),
    }
}

/// The entry for a task that was on `vm` when the VM was commanded to make room (`told`), and had not
/// finished by `until`.
fn left_behind(
    record: &RunRecord,
    vm: &VmHistory,
    (told, until): (Time, Time),
    id: TaskId,
    task: &TaskHistory,
) -> Option<DisplacedTask> {
    let was_there =
        |is: &AttemptHistory| is.vm == vm.id && is.sent <= told && is.end_or(until) >= told;
    // The last one: a task can be sent to the VM that it was on a moment ago.
    let n = task.attempts.iter().rposition(was_there)?;
    let is = &task.attempts[n];
    // A task that ended after the VM had left its processors was frozen until then.
    let end = is.ended.as_ref().filter(|(at, _)| *at <= until);
    if matches!(end, Some((_, AttemptEnd::Finished))) {
        return None;
    }
    let left = end.map_or(until, |(at, _)| *at);
    let ran = |is: &AttemptHistory| Some((is.vm, is.started?));
    let elsewhere = || task.attempts.iter().skip(n + 1).find_map(ran);
    let thawed = || {
        let froze = vm.hibernations.iter().find(|it| it.frozen >= told && it.frozen <= until)?;
        let (_, at) = froze.resumed?;
        (is.end_or(at) >= at).then_some((vm.id, at))
    };
    let went_on = match end {
        Some(_) => elsewhere(),
        None => thawed().or_else(elsewhere),
    };
    // A task that continues where it froze has lost nothing.
    let stays = went_on.is_some_and(|(on, _)| on == vm.id) && end.is_none();
    let lost = if stays { Span::ZERO } else { record.lost(is) };
    let (kept, charged) = (is.kept(), price_of_time(vm, lost));
    Some(DisplacedTask { task: id, left, kept, lost, charged, went_on })
}

/// Price of one vCPU of this VM for the time `lost`: its part of the VM's cost, under any tariff.
fn price_of_time(vm: &VmHistory, lost: Span) -> Money {
    let ran: Span = vm.charges().iter().map(ChargedInterval::duration).sum();
    let all = u128::from(ran.as_micros()) * u128::from(vm.vcpus.max(1));
    let cost = u128::try_from(vm.cost().as_nanos()).unwrap_or(0);
    let part = (cost * u128::from(lost.as_micros())).checked_div(all).unwrap_or(0);
    Money::from_nanos(i64::try_from(part).unwrap_or(i64::MAX))
}

/// Costs and benefits that preemptions bring to one tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantToll {
    /// The tenant's part of the run's work.
    pub work: TenantWork,
    /// Number of the tenant's VMs that were preempted to make room.
    pub vms_lost: usize,
    /// Number of tasks that were on the tenant's preempted VMs.
    pub tasks: usize,
    /// Number of the displaced tasks that continued from a checkpoint.
    pub from_checkpoints: usize,
    /// Time that the displaced tasks had computed in vain.
    pub work_lost: Span,
    /// Price of the time that the displaced tasks had computed in vain.
    pub charged: Money,
    /// Time for which the displaced tasks did not run, summed.
    pub stood: Span,
    /// Number of VMs that were preempted to make room for VMs of the tenant.
    pub vms_taken: usize,
    /// Longest time from the launch of a VM of the tenant until that VM was ready, among the VMs for which other VMs made room;
    /// `None` if no such VM was ready.
    pub waited: Option<Span>,
    /// Cost of the tenant's VMs for which other VMs made room.
    pub paid: Money,
}

/// Costs and benefits of preemptions for each of these tenants.
#[must_use]
pub fn tolls(taken: &[TakenVm<'_>], tenants: &Tenants) -> Vec<TenantToll> {
    tenants.all_work().iter().map(|work| toll_of(taken, *work)).collect()
}

fn toll_of(taken: &[TakenVm<'_>], work: TenantWork) -> TenantToll {
    let lost = || taken.iter().filter(move |it| it.owner.work == work);
    let took: Vec<_> = taken.iter().filter(|it| it.taker.work == work).collect();
    let tasks = || lost().flat_map(|it| &it.tasks);
    let restored = |task: &&DisplacedTask| task.went_on.is_some() && task.kept > Ppm::ZERO;
    // Several VMs can make room for one.
    let mut takers: Vec<&VmHistory> = took.iter().map(|it| it.by).collect();
    takers.sort_by_key(|vm| vm.id);
    takers.dedup_by_key(|vm| vm.id);
    TenantToll {
        work,
        vms_lost: lost().count(),
        tasks: tasks().count(),
        from_checkpoints: tasks().filter(restored).count(),
        work_lost: lost().map(TakenVm::lost).sum(),
        charged: lost().map(TakenVm::charged).sum(),
        stood: lost().map(TakenVm::stood).sum(),
        vms_taken: took.len(),
        waited: took.iter().filter_map(|it| it.waited()).max(),
        paid: takers.iter().map(|vm| vm.cost()).sum(),
    }
}

#[cfg(test)]
mod tests;
