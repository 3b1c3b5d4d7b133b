//! VMs in the background of others: what they were left of their processors, and what a task there
//! is owed.

use std::iter::once;

use dormouse_units::{Attempt, Bytes, Mode, Ppm, Span, TaskId, Tier, Time, Usage};
use dormouse_vm::{Hold, MachineSpec, Model, Work, WorkEvent};
use serde_json::{Value, json};

use crate::{AttemptHistory, Record, VmHistory};

/// The fate of all VMs in the background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Background {
    /// How many there were.
    pub vms: usize,
    /// Time for which their vCPUs were there, hibernations left out.
    pub there: Span,
    /// What of that the processors were theirs.
    pub supplied: Span,
}

impl Background {
    /// `None` where spot VMs have processors of their own.
    #[must_use]
    pub fn from_record(record: &Record) -> Option<Self> {
        let vms = record.vms.values().filter(|vm| vm.is_background);
        let all = vms.map(|vm| vm.supplied(record.end())).fold(Self::default(), |all, one| Self {
            vms: all.vms + 1,
            there: all.there + one.0,
            supplied: all.supplied + one.1,
        });
        (all.vms > 0).then_some(all)
    }

    /// The part of their processors that they were left.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.supplied.fraction_of(self.there).as_f64()
    }

    /// These figures as JSON, for `summary.json`.
    #[must_use]
    pub fn summary(&self) -> Value {
        json!({
            "vms": self.vms,
            "vcpu_s": self.there.as_secs_f64(),
            "supplied_vcpu_s": self.supplied.as_secs_f64(),
            "share": self.share(),
        })
    }

    /// A sentence for people.
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

/// What changes for a VM in the background.
enum Change {
    Supply(Ppm),
    Freeze,
    Thaw,
}

/// The time that a task that runs undisturbed on a VM in the background should take, hibernations left
/// out, given what its vCPU was left: as the model has it that its worker runs, too.
pub(super) fn owed(
    (runtime, done): (Span, Ppm),
    (points, cost): (Vec<Ppm>, Span),
    attempt: &AttemptHistory,
    vm: &VmHistory,
) -> Option<Span> {
    let (began, vcpu) = (attempt.started?, u32::try_from(attempt.lane).ok()?);
    let spec = MachineSpec { vcpus: 1, memory: Bytes::ZERO, credits: None };
    let mut model = Model::new(began, spec);
    model.set_supply(began, 0, vm.supply_at(began, vcpu));
    let work = Work {
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
        hold: Hold::WhenDue,
    };
    model.start(began, work).ok()?;
    let supplies = vm.supplies.iter().filter(|(_, cpu, _)| *cpu == vcpu);
    let supplies = supplies.map(|(at, _, share)| (*at, Change::Supply(*share)));
    let frozen = vm.hibernations.iter().flat_map(|h| {
        once((h.frozen, Change::Freeze)).chain(h.resumed.map(|(_, at)| (at, Change::Thaw)))
    });
    let mut changes: Vec<_> = supplies.chain(frozen).filter(|(at, _)| *at > began).collect();
    changes.sort_by_key(|(at, _)| *at);
    for (at, change) in changes {
        if let Some(end) = finishes(&mut model, at) {
            return Some(vm.awake(began, end));
        }
        match change {
            Change::Supply(share) => model.set_supply(at, 0, share),
            Change::Freeze => model.freeze(at),
            Change::Thaw => model.thaw(at),
        }
    }
    let end = finishes(&mut model, Time::from_micros(u64::MAX))?;
    Some(vm.awake(began, end))
}

/// The time at which the task of a model finishes, if that is by `until`.
fn finishes(model: &mut Model, until: Time) -> Option<Time> {
    let mut told = Vec::new();
    while let Some(at) = model.next_at().filter(|at| *at <= until) {
        model.step(at, &mut told);
        if told.iter().any(|event| matches!(event, WorkEvent::Finished { .. })) {
            return Some(at);
        }
    }
    None
}
