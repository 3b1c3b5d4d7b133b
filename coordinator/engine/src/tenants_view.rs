//! A run as one of its tenants sees it.

use dormouse_cloud::{InterruptionAction, InterruptionTarget};
use dormouse_model::{Decision, Effect, Event, Notice, Step, TenantNumbers, TenantWork, Tenants};
use dormouse_units::{TaskId, TenantId, Time, VmId};

use crate::tenants::own_notice;

/// Returns a step as one tenant saw it, with its own numbers of VMs and wake-ups. Notices to other tenants, their
/// decisions and reports about them are left out; an event that concerned only other tenants becomes passing time. With
/// a single tenant it is the step itself.
#[must_use]
pub fn tenants_view(step: &Step, tenants: &Tenants, tenant: TenantId) -> Step {
    view_step(step, tenants, tenant, tenants.tenant_numbers(tenant))
}

/// Returns the part of a step that belongs to one tenant, with the run's numbers of VMs and wake-ups.
#[must_use]
pub fn tenants_part(step: &Step, tenants: &Tenants, tenant: TenantId) -> Step {
    view_step(step, tenants, tenant, TenantNumbers::SAME)
}

fn view_step(step: &Step, tenants: &Tenants, tenant: TenantId, numbers: TenantNumbers) -> Step {
    if !tenants.are_several() {
        return step.clone();
    }
    let is_own = |vm: VmId| tenants.vm_owner(vm) == tenant;
    let is_own_token = |token: u64| tenants.wake_owner(token) == tenant;
    let work = tenants.work_of(tenant);
    let has_bag = work.is_some_and(TenantWork::has_bag);
    let has_jobs = work.is_some_and(TenantWork::has_jobs);
    let has_requests = work == Some(TenantWork::Requests);
    let event = match step.event.clone() {
        Event::Machine { report, .. } if !is_own(report.vm()) => Event::Tick,
        Event::Machine { host, number, mut report } => {
            let vm = report.vm_mut();
            *vm = numbers.own_vm(*vm);
            Event::Machine { host, number, report }
        }
        Event::Submitted { .. } | Event::Closed | Event::AllSubmitted if !has_jobs => Event::Tick,
        Event::Requested { .. } | Event::AllRequested if !has_requests => Event::Tick,
        Event::Interrupt { target: InterruptionTarget::Vm(vm), .. } if !is_own(vm) => Event::Tick,
        Event::Interrupt { target: InterruptionTarget::Vm(vm), action, why } => {
            Event::Interrupt { target: InterruptionTarget::Vm(numbers.own_vm(vm)), action, why }
        }
        event => event,
    };
    let heard = |notice: &Notice| {
        let hears = match notice.clone() {
            Notice::Begin | Notice::HostJoined | Notice::Available { .. } => true,
            Notice::Price { .. } | Notice::TaskDue { .. } => has_bag,
            Notice::Submitted { .. } => has_jobs,
            Notice::Requested { .. } => has_requests,
            mut other => match other.token_mut() {
                Some(token) => is_own_token(*token),
                None => other.vm_mut().is_some_and(|vm| is_own(*vm)),
            },
        };
        hears.then(|| own_notice(numbers, notice))
    };
    let (mut decisions, mut places) = (Vec::new(), Vec::new());
    for decision in &step.decisions {
        let mut own = decision.clone();
        let is_its = match &mut own {
            Decision::Wake { token, .. } => {
                let is_its = is_own_token(*token);
                *token = numbers.own_wake(*token);
                is_its
            }
            other => other.vm_mut().is_some_and(|vm| {
                let is_its = is_own(*vm);
                *vm = numbers.own_vm(*vm);
                is_its
            }),
        };
        // Where it is among the tenant's own.
        places.push(is_its.then_some(decisions.len()));
        decisions.extend(is_its.then_some(own));
    }
    let effect = |effect: &Effect| {
        let mut own = effect.clone();
        let is_its = match &mut own {
            Effect::VmLaunched { vm, .. }
            | Effect::VmReady { vm }
            | Effect::VmHibernated { vm, .. }
            | Effect::VmResumed { vm, .. }
            | Effect::VmEnded { vm, .. }
            | Effect::Placed { vm, .. }
            | Effect::Supplied { vm, .. }
            | Effect::TaskSent { vm, .. }
            | Effect::CheckpointAsked { vm, .. } => {
                let is_its = is_own(*vm);
                *vm = numbers.own_vm(*vm);
                is_its
            }
            Effect::Moot { index, .. } | Effect::Rejected { index, .. } => {
                let place = places.get(*index).copied().flatten();
                *index = place.unwrap_or_default();
                place.is_some()
            }
            Effect::Interrupted { target, vms, left, .. } => {
                for vms in [vms, left] {
                    vms.retain(|vm| is_own(*vm));
                    vms.iter_mut().for_each(|vm| *vm = numbers.own_vm(*vm));
                }
                match target {
                    InterruptionTarget::Type(_)
                    | InterruptionTarget::Zone(_)
                    | InterruptionTarget::All => true,
                    InterruptionTarget::Vm(vm) => {
                        let is_its = is_own(*vm);
                        *vm = numbers.own_vm(*vm);
                        is_its
                    }
                }
            }
            Effect::RestoreFellBack { task, .. } => vm_of(step, *task).is_some_and(is_own),
            Effect::SurplusCharged { vm, .. }
            | Effect::Outbid { vm }
            | Effect::Reclaimed { vm }
            | Effect::GivenBack { vm } => {
                let is_its = is_own(*vm);
                *vm = numbers.own_vm(*vm);
                is_its
            }
            Effect::Displaced { vm, by, action } => {
                let (is_its, foreign) = (is_own(*vm), !is_own(*by));
                (*vm, *by) = (numbers.own_vm(*vm), numbers.own_vm(*by));
                // For whom the provider takes it away is not its owner's to know.
                if foreign && !numbers.are_same() {
                    own = taken_away(step.at, *vm, *action);
                }
                is_its
            }
            Effect::PriceChanged { .. }
            | Effect::AvailabilityChanged { .. }
            | Effect::Stale
            | Effect::Answered { .. }
            | Effect::Over { .. } => true,
        };
        is_its.then_some(own)
    };
    Step {
        seq: step.seq,
        at: step.at,
        event,
        notices: step.notices.iter().filter_map(heard).collect(),
        effects: step.effects.iter().filter_map(effect).collect(),
        decisions,
        // Who saw a part of a run can't ask its programs again.
        answers: Vec::new(),
    }
}

/// Returns the VM to which this step sends a task that falls back to another checkpoint; if it sends the task to none, the VM of
/// the worker's report that this step handles.
fn vm_of(step: &Step, task: TaskId) -> Option<VmId> {
    let sent = step.effects.iter().find_map(|effect| match effect {
        Effect::TaskSent { task: of, vm, .. } if *of == task => Some(*vm),
        _ => None,
    });
    let reported = || match &step.event {
        Event::Machine { report, .. } => Some(report.vm()),
        _ => None,
    };
    sent.or_else(reported)
}

/// Makes the effect of an interruption that takes a VM away.
fn taken_away(asked: Time, vm: VmId, action: InterruptionAction) -> Effect {
    let target = InterruptionTarget::Vm(vm);
    Effect::Interrupted { asked, action, target, vms: vec![vm], left: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_run_has_the_runs_numbers_and_nothing_of_others() {
        let ready = |vm| Notice::VmReady { vm: VmId::new(vm) };
        let (at, event) = (Time::ZERO, Event::Tick);
        let effects = vec![Effect::VmReady { vm: VmId::new(2) }];
        let step = |notices: &[u32], effects: &[Effect]| Step {
            seq: 7,
            at,
            event: event.clone(),
            notices: notices.iter().map(|vm| ready(*vm)).collect(),
            decisions: Vec::new(),
            answers: Vec::new(),
            effects: effects.to_vec(),
        };
        let (all, tenants) =
            (step(&[1, 2, 3], &effects), Tenants::from([TenantWork::Bag, TenantWork::Jobs]));
        let [bag, jobs] = [0, 1].map(TenantId::new);
        assert_eq!(tenants_part(&all, &tenants, bag), step(&[2], &effects));
        assert_eq!(tenants_part(&all, &tenants, jobs), step(&[1, 3], &[]));
        let own = [Effect::VmReady { vm: VmId::new(1) }];
        assert_eq!(tenants_view(&all, &tenants, bag), step(&[1], &own));
    }
}
