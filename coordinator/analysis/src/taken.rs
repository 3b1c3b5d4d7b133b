//! The VMs that the provider took from one tenant for another: whose launch took which, and what that
//! cost its owner and gave the taker.

use dormouse_cloud::{Action, Charge};
use dormouse_model::{Tenants, VmEnd, Work};
use dormouse_units::{Money, Ppm, RequestId, Span, TaskId, Time, VmId};

use crate::{AttemptEnd, AttemptHistory, Displaced, Record, TaskHistory, VmHistory};

/// A VM that made room for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken<'a> {
    /// The time at which its owner was told.
    pub at: Time,
    /// VM that was taken.
    pub vm: &'a VmHistory,
    /// Tenant that had the VM that was taken.
    pub owner: Party,
    /// The VM that got its room.
    pub by: &'a VmHistory,
    /// Tenant that has the VM that got the room.
    pub taker: Party,
    /// How it ended.
    pub ending: Ending,
    /// The tasks of a bag that were on it when its owner was told. Parallel jobs are on on-demand
    /// machines, which nobody takes.
    pub tasks: Vec<LeftBehind>,
}

/// A tenant with one of its VMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// What work it has.
    pub work: Work,
    /// The request that the VM was launched for, if a customer of the provider requested it.
    pub request: Option<RequestId>,
}

/// How a VM that made room ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The VM still booted, and was ended at once.
    Booting(Time),
    /// The VM was ended when its notice was over.
    NoticeOver(Time),
    /// The VM was gone before that by itself.
    Itself(Time, VmEnd),
    /// The VM froze, and, if it did, ran again.
    Hibernated(Time, Option<Time>),
    /// The run was over before.
    Open,
}

/// A task that was on a VM that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftBehind {
    /// Task that was left behind.
    pub task: TaskId,
    /// The time at which it ran there no more: it was stopped, its VM froze or was gone.
    pub left: Time,
    /// What of its work was kept then.
    pub kept: Ppm,
    /// What it had computed since its last checkpoint, and computes again.
    pub lost: Span,
    /// What its vCPU cost for as long as it computed that.
    pub charged: Money,
    /// The VM on which it ran again, and from when on; `None`: it never did.
    pub went_on: Option<(VmId, Time)>,
}

impl LeftBehind {
    /// For how long it did not run.
    #[must_use]
    pub fn stood(&self) -> Option<Span> {
        self.went_on.map(|(_, at)| at.since(self.left))
    }
}

impl Ending {
    /// In a word or two.
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

    /// The time at which it left its processors.
    #[must_use]
    pub const fn at(&self) -> Option<Time> {
        match *self {
            Self::Booting(at) | Self::NoticeOver(at) => Some(at),
            Self::Itself(at, _) | Self::Hibernated(at, _) => Some(at),
            Self::Open => None,
        }
    }
}

impl Taken<'_> {
    /// What its owner's tasks had computed for nothing.
    #[must_use]
    pub fn lost(&self) -> Span {
        self.tasks.iter().map(|task| task.lost).sum()
    }

    /// What the owner paid for that.
    #[must_use]
    pub fn charged(&self) -> Money {
        self.tasks.iter().map(|task| task.charged).sum()
    }

    /// For how long its tasks did not run, together, as far as they ran again.
    #[must_use]
    pub fn stood(&self) -> Span {
        self.tasks.iter().filter_map(LeftBehind::stood).sum()
    }

    /// The time for which the taker waited from its launch until its VM was ready.
    #[must_use]
    pub fn waited(&self) -> Option<Span> {
        self.by.ready.map(|ready| ready.since(self.by.launched))
    }
}

/// The VMs that were taken in a run of these tenants, in order of time.
#[must_use]
pub fn taken<'a>(record: &'a Record, tenants: &Tenants) -> Vec<Taken<'a>> {
    let of_vm = |vm: &'a VmHistory| vm.displaced.iter().map(move |how| (vm, how));
    let all = record.vms.values().flat_map(of_vm);
    let mut all: Vec<_> = all.filter_map(|(vm, how)| one(record, tenants, vm, how)).collect();
    all.sort_by_key(|it| (it.at, it.vm.id));
    all
}

fn one<'a>(
    record: &'a Record,
    tenants: &Tenants,
    vm: &'a VmHistory,
    how: &Displaced,
) -> Option<Taken<'a>> {
    let by = record.vms.get(&how.by).or_else(|| record.takers.get(&how.by))?;
    let (owner, taker) = (party(vm.id, tenants)?, party(by.id, tenants)?);
    let ending = ending(vm, how);
    let until = ending.at().unwrap_or(record.end());
    let tasks = (0..).map(TaskId::new).zip(&record.tasks);
    let behind = tasks.filter_map(|(id, task)| left_behind(record, vm, (how.at, until), id, task));
    Some(Taken { at: how.at, vm, owner, by, taker, ending, tasks: behind.collect() })
}

fn party(vm: VmId, tenants: &Tenants) -> Option<Party> {
    Some(Party { work: tenants.work_on(vm)?, request: tenants.request_of(vm) })
}

fn ending(vm: &VmHistory, how: &Displaced) -> Ending {
    if how.action == Action::Hibernate {
        let froze = vm.hibernations.iter().find(|it| it.asked >= how.at);
        if let Some(froze) = froze {
            return Ending::Hibernated(froze.frozen, froze.resumed.map(|(_, at)| at));
        }
    }
    match vm.ended {
        Some((at, VmEnd::Preempted, _)) if vm.ready.is_none() => Ending::Booting(at),
        Some((at, VmEnd::Preempted, _)) => Ending::NoticeOver(at),
        Some((_, VmEnd::RunOver, _)) | None => Ending::Open,
        Some((at, why, _)) => Ending::Itself(at, why),
    }
}

/// A task that was on `vm` when that was told to make room, and had not finished when it did.
fn left_behind(
    record: &Record,
    vm: &VmHistory,
    (told, until): (Time, Time),
    id: TaskId,
    task: &TaskHistory,
) -> Option<LeftBehind> {
    let was_there =
        |is: &AttemptHistory| is.vm == vm.id && is.sent <= told && is.end_or(until) >= told;
    // The last: a task can be sent to where it was a moment ago.
    let n = task.attempts.iter().rposition(was_there)?;
    let is = &task.attempts[n];
    // What ended after the VM had left its processors stood there frozen until then.
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
    // One that goes on where it froze has lost nothing.
    let stays = went_on.is_some_and(|(on, _)| on == vm.id) && end.is_none();
    let lost = if stays { Span::ZERO } else { record.lost(is) };
    let (kept, charged) = (is.kept(), charged(vm, lost));
    Some(LeftBehind { task: id, left, kept, lost, charged, went_on })
}

/// What a vCPU of this VM cost for so long: its part of all that the VM cost, by whichever tariff.
fn charged(vm: &VmHistory, lost: Span) -> Money {
    let ran: Span = vm.charges().iter().map(Charge::duration).sum();
    let all = u128::from(ran.as_micros()) * u128::from(vm.vcpus.max(1));
    let cost = u128::try_from(vm.cost().as_nanos()).unwrap_or(0);
    let part = (cost * u128::from(lost.as_micros())).checked_div(all).unwrap_or(0);
    Money::from_nanos(i64::try_from(part).unwrap_or(i64::MAX))
}

/// What it came to for a tenant that VMs were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Toll {
    /// What work the tenant has.
    pub work: Work,
    /// The tenant's VMs that were taken.
    pub vms_lost: usize,
    /// Tasks that were on them.
    pub tasks: usize,
    /// Those of them that went on from a checkpoint.
    pub from_checkpoints: usize,
    /// What they had computed for nothing.
    pub work_lost: Span,
    /// What their owner paid for that.
    pub charged: Money,
    /// For how long they did not run, together.
    pub stood: Span,
    /// VMs that were taken for it.
    pub vms_taken: usize,
    /// The longest that a VM of its waited until it was ready, of those that others made room for.
    pub waited: Option<Span>,
    /// What it paid for these.
    pub paid: Money,
}

/// What it came to for each of these tenants.
#[must_use]
pub fn tolls(taken: &[Taken<'_>], tenants: &Tenants) -> Vec<Toll> {
    tenants.work().iter().map(|work| toll(taken, *work)).collect()
}

fn toll(taken: &[Taken<'_>], work: Work) -> Toll {
    let lost = || taken.iter().filter(move |it| it.owner.work == work);
    let took: Vec<_> = taken.iter().filter(|it| it.taker.work == work).collect();
    let tasks = || lost().flat_map(|it| &it.tasks);
    let restored = |task: &&LeftBehind| task.went_on.is_some() && task.kept > Ppm::ZERO;
    // Several can make room for one.
    let mut takers: Vec<&VmHistory> = took.iter().map(|it| it.by).collect();
    takers.sort_by_key(|vm| vm.id);
    takers.dedup_by_key(|vm| vm.id);
    Toll {
        work,
        vms_lost: lost().count(),
        tasks: tasks().count(),
        from_checkpoints: tasks().filter(restored).count(),
        work_lost: lost().map(Taken::lost).sum(),
        charged: lost().map(Taken::charged).sum(),
        stood: lost().map(Taken::stood).sum(),
        vms_taken: took.len(),
        waited: took.iter().filter_map(|it| it.waited()).max(),
        paid: takers.iter().map(|vm| vm.cost()).sum(),
    }
}

#[cfg(test)]
mod tests;
