//! History of a VM.

use std::collections::BTreeSet;

use dormouse_cloud::{BillingMeter, ChargedInterval, InterruptionAction, Market, TariffName};
use dormouse_model::VmEnd;
use dormouse_units::{Credits, HostId, Money, Ppm, Price, Span, Time, TypeName, VmId};
use thin_vec::ThinVec;

use super::vm_life::VcpuLanes;

/// One VM from its launch to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmHistory {
    /// Id of the VM.
    pub id: VmId,
    /// Instance type of the VM.
    pub kind: TypeName,
    /// Market on which the VM was bought.
    pub market: Market,
    /// Price per hour at the VM's launch.
    pub price: Price,
    /// Number of vCPUs of the VM.
    pub vcpus: u32,
    /// Host that carried the VM.
    pub host: HostId,
    /// Time at which the VM was granted.
    pub launched: Time,
    /// Time at which the VM had booted; `None` if it has not booted.
    pub ready: Option<Time>,
    /// Time and reason of the VM's end, and its cost by the engine's bill; `None` while the VM exists.
    pub ended: Option<(Time, VmEnd, Money)>,
    /// Hibernations of the VM, in order.
    pub hibernations: ThinVec<VmHibernation>,
    /// The times at which the VM's room went to other VMs, in order.
    pub displaced: ThinVec<VmDisplacement>,
    /// VMs whose room this VM waited for after its launch.
    pub waited_for: ThinVec<VmId>,
    /// The provider's reason for which the VM will soon end or hibernate; `None` if it has none.
    pub leaving: Option<LeaveReason>,
    /// Whether the VM has notice of its end.
    pub has_notice: bool,
    /// A hibernation or resume that was commanded and has not taken effect on the VM yet; `None` if there is none.
    pub told: Option<InterruptionAction>,
    /// Credit balances as reported, each with its time.
    pub credits: ThinVec<(Time, Credits)>,
    /// CPU time that the VM was promised and that it received, in real microseconds, as last reported; `None` if nothing was
    /// reported.
    pub share: Option<(u64, u64)>,
    /// Whether the VM is in the background of other VMs' processors.
    pub is_background: bool,
    /// Changes of supply in order: the time of the change, the index of a vCPU, and the share of
    /// its processor that the vCPU has from then on. Before the first change a vCPU has its whole
    /// processor.
    pub supplies: ThinVec<(Time, u32, Ppm)>,
    /// Charge for credits spent beyond what the VM had earned.
    pub surcharge: Money,
    /// Declared use of each vCPU by programs of which the VM's machine knows nothing, in order: the time of the change, the part of
    /// each vCPU from then on, and whether the VM is in unlimited mode.
    pub declared_uses: ThinVec<(Time, Ppm, bool)>,
    pub(super) meter: BillingMeter,
    pub(crate) tariff: TariffName,
    /// Tasks on the vCPUs of the VM.
    pub(super) lanes: VcpuLanes,
}

/// Reason why a spot VM is about to end or to hibernate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// The VM costs more than its bid.
    Outbid,
    /// The limit of the VM's type has fallen below the number of existing VMs.
    Reclaimed,
    /// The room of the VM goes to this other VM.
    For(VmId),
}

/// One hibernation of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmHibernation {
    /// Time at which the hibernation was requested.
    pub asked: Time,
    /// Time at which the hibernation took effect.
    pub frozen: Time,
    /// Times at which the resume after this hibernation was requested and took effect; `None` if the VM has not resumed.
    pub resumed: Option<(Time, Time)>,
}

/// A VM makes room for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmDisplacement {
    /// Time at which the VM was commanded to make room.
    pub at: Time,
    /// VM for which the room was made.
    pub by: VmId,
    /// Action on the displaced VM: notice of its end, or hibernation.
    pub action: InterruptionAction,
    /// Time at which the VM got its room back after a hibernation and was commanded to resume; `None` if it has not got it back.
    pub given_back: Option<Time>,
}

impl VmHistory {
    /// Whether the VM has booted and is neither hibernated nor gone.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let is_frozen = self.hibernations.last().is_some_and(|last| last.resumed.is_none());
        self.ready.is_some() && self.ended.is_none() && !is_frozen
    }

    /// Meter of the VM's charges.
    #[must_use]
    pub const fn meter(&self) -> &BillingMeter {
        &self.meter
    }

    /// Beginning of the present uninterrupted charge, even if the charge ends at `now`; `None` if the VM is not
    /// charged.
    #[must_use]
    pub fn charged_since(&self, now: Time) -> Option<Time> {
        let ends_now = || self.charges().last().filter(|charge| charge.until == now);
        self.meter.runs_since().or_else(|| ends_now().map(|charge| charge.from))
    }

    /// Time for which the VM ran until `now`, from its boot on and without hibernations.
    #[must_use]
    pub fn ran(&self, now: Time) -> Span {
        self.ready.map_or(Span::ZERO, |ready| self.awake(ready, self.end_or(now)))
    }

    /// Intervals for which the VM is charged, in order.
    #[must_use]
    pub fn charges(&self) -> &[ChargedInterval] {
        self.meter.charges()
    }

    /// Cost of all completed charges, without a charge that still runs.
    #[must_use]
    pub fn cost(&self) -> Money {
        self.meter.settled_cost(self.tariff) + self.surcharge
    }

    /// Cost up to `now`; a charge that still runs counts as ended by the user at `now`.
    #[must_use]
    pub fn owed(&self, now: Time) -> Money {
        self.meter.owed_at(now, self.tariff) + self.surcharge
    }

    /// Whether the VM was frozen at `at`; false at the very moments at which it froze or thawed.
    #[must_use]
    pub fn is_frozen_at(&self, at: Time) -> bool {
        self.hibernations
            .iter()
            .any(|h| h.frozen < at && h.resumed.is_none_or(|(_, resumed)| at < resumed))
    }

    /// Time between `from` and `until` for which the VM was not frozen.
    #[must_use]
    pub fn awake(&self, from: Time, until: Time) -> Span {
        let frozen: Span = self
            .hibernations
            .iter()
            .map(|h| {
                let end = h.resumed.map_or(until, |(_, resumed)| resumed.min(until));
                end.since(h.frozen.max(from))
            })
            .sum();
        until.since(from).saturating_sub(frozen)
    }

    /// Time of the VM's end, or `now` if the VM still exists.
    #[must_use]
    pub fn end_or(&self, now: Time) -> Time {
        self.ended.map_or(now, |(at, ..)| at)
    }

    /// Share of its processor that a vCPU can use at the time `at`; if the share changes at that time, the share before
    /// the change.
    #[must_use]
    pub fn supply_at(&self, at: Time, vcpu: u32) -> Ppm {
        let of = self.supplies.iter().rev().find(|(from, cpu, _)| *cpu == vcpu && *from <= at);
        of.map_or(Ppm::ONE, |(_, _, share)| *share)
    }

    /// Time for which the VM's vCPUs existed while the VM ran until `now`, summed over the vCPUs, and the part of it in
    /// which they could use their processors.
    #[must_use]
    pub fn supplied(&self, now: Time) -> (Span, Span) {
        let Some(ready) = self.ready else { return (Span::ZERO, Span::ZERO) };
        let end = self.end_or(now).max(ready);
        // Changes are known for some of the vCPUs only, however many there are.
        let known: BTreeSet<u32> = self.supplies.iter().map(|(_, vcpu, _)| *vcpu).collect();
        let known = known.range(..self.vcpus);
        let others = u64::from(self.vcpus) - known.clone().count() as u64;
        let others = self.awake(ready, end).times(others);
        let (mut there, mut had) = (others, others);
        for &vcpu in known {
            let own = self.supplies.iter().filter(|(_, cpu, _)| *cpu == vcpu);
            let changes: Vec<_> = own.map(|(at, _, _)| (*at).clamp(ready, end)).collect();
            let from = std::iter::once(ready).chain(changes.iter().copied());
            let until = changes.iter().copied().chain([end]);
            for (from, until) in from.zip(until) {
                let span = self.awake(from, until);
                there += span;
                had += span.part(self.supply_at(from, vcpu));
            }
        }
        (there, had)
    }
}
