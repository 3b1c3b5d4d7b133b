//! Background VMs of a live run: the processor time that they were left, and the time that a task
//! there should take.

use std::iter::once;

use dormouse_units::{Attempt, Bytes, Mode, Ppm, Span, TaskId, Tier, Time, Usage};
use dormouse_vm::{CheckpointHold, MachineSpec, ModelTask, VmModel, WorkEvent};
use serde_json::{Value, json};

use crate::{AttemptHistory, RunRecord, VmHistory};

/// CPU time that all background VMs of a run got, beside the time for which they ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackgroundSupply {
    /// Number of background VMs.
    pub vms: usize,
    /// Time for which the background VMs existed, summed over their vCPUs, without hibernations.
    pub there: Span,
    /// Part of `there` in which the vCPUs could use their processors.
    pub supplied: Span,
}

impl BackgroundSupply {
    /// Sums the supply of the background VMs in a record; `None` if the record has no such VM.
    #[must_use]
    pub fn from_record(record: &RunRecord) -> Option<Self> {
        let vms = record.vms.values().filter(|vm| vm.is_background);
        let all = vms.map(|vm| vm.supplied(record.end())).fold(Self::default(), |all, one| Self {
            vms: all.vms + 1,
            there: all.there + one.0,
            supplied: all.supplied + one.1,
        });
        (all.vms > 0).then_some(all)
    }

    /// Fraction of their processors that the background VMs could use, from 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.supplied.fraction_of(self.there).as_f64()
    }

    /// The number of VMs, their time and their share as JSON, for `summary.json`.
    #[must_use]
    pub fn summary(&self) -> Value {
        json!({
            "vms": self.vms,
            "vcpu_s": self.there.as_secs_f64(),
            "supplied_vcpu_s": self.supplied.as_secs_f64(),
            "share": self.share(),
        })
    }

    /// A sentence with the number of background VMs, their time and their share.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!(
            "{} spot VMs were in the background of others' processors: of the {:.0} s for which \
             their vCPUs were there, the VMs in the foreground left them {:.1} %.",
            self.vms,
            self.there.as_secs_f64(),
            self.share() * 100.0
        )
    }
}

/// A change of state of a background VM.
enum SupplyChange {
    Supply(Ppm),
    Freeze,
    Thaw,
}

/// Time that an undisturbed task on a background VM should take, without hibernations, given the
/// supply of its vCPU: computed with the same model that its worker runs. `runtime` is its full
/// work and `done` the part done before; `points` are its checkpoints, each of which takes `cost`.
/// `None` if the task would never end.
pub(super) fn owed(
    (runtime, done): (Span, Ppm),
    (points, cost): (Vec<Ppm>, Span),
    attempt: &AttemptHistory,
    vm: &VmHistory,
) -> Option<Span> {
    let (began, vcpu) = (attempt.started?, u32::try_from(attempt.lane).ok()?);
    let spec = MachineSpec { vcpus: 1, memory: Bytes::ZERO, credits: None };
    let mut model = VmModel::new(began, spec);
    model.set_supply(began, 0, vm.supply_at(began, vcpu));
    let work = ModelTask {
        task: TaskId::new(0),
        attempt: Attempt::new(1),
        memory: Bytes::ZERO,
        runtime,
        done,
        mode: Mode::Burst,
        on: [0].into(),
        tier: Tier::Foreground,
        usage: Usage::FULL,
        checkpoints: points,
        checkpoint_cost: cost,
        hold: CheckpointHold::WhenDue,
    };
    model.start_task(began, work).ok()?;
    let supplies = vm.supplies.iter().filter(|(_, cpu, _)| *cpu == vcpu);
    let supplies = supplies.map(|(at, _, share)| (*at, SupplyChange::Supply(*share)));
    let frozen = vm.hibernations.iter().flat_map(|h| {
        once((h.frozen, SupplyChange::Freeze))
            .chain(h.resumed.map(|(_, at)| (at, SupplyChange::Thaw)))
    });
    let mut changes: Vec<_> = supplies.chain(frozen).filter(|(at, _)| *at > began).collect();
    changes.sort_by_key(|(at, _)| *at);
    for (at, change) in changes {
        if let Some(end) = finish_time(&mut model, at) {
            return Some(vm.awake(began, end));
        }
        match change {
            SupplyChange::Supply(share) => model.set_supply(at, 0, share),
            SupplyChange::Freeze => model.freeze_vm(at),
            SupplyChange::Thaw => model.thaw_vm(at),
        }
    }
    let end = finish_time(&mut model, Time::from_micros(u64::MAX))?;
    Some(vm.awake(began, end))
}

/// Runs the VM model up to `until`; returns the time at which its task finishes, `None` if the task
/// does not finish by then.
fn finish_time(model: &mut VmModel, until: Time) -> Option<Time> {
    let mut told = Vec::new();
    while let Some(at) = model.next_at().filter(|at| *at <= until) {
        model.step_until(at, &mut told);
        if told.iter().any(|event| matches!(event, WorkEvent::Finished { .. })) {
            return Some(at);
        }
    }
    None
}
