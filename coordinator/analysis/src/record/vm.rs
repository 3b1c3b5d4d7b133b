//! The fate of a VM.

use std::collections::BTreeSet;

use dormouse_cloud::{Action, Charge, Market, Meter, TariffName};
use dormouse_model::VmEnd;
use dormouse_units::{Credits, HostId, Money, Ppm, Price, Span, Time, TypeName, VmId};
use thin_vec::ThinVec;

use super::lanes::Lanes;

/// One VM, from its launch to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmHistory {
    /// Id of the VM.
    pub id: VmId,
    /// Instance type of the VM.
    pub kind: TypeName,
    /// How it was bought.
    pub market: Market,
    /// At what price it was launched.
    pub price: Price,
    /// Number of vCPUs of the VM.
    pub vcpus: u32,
    /// The host that carried it.
    pub host: HostId,
    /// The time at which it was granted.
    pub launched: Time,
    /// The time at which it had booted.
    pub ready: Option<Time>,
    /// The time and the reason of its end, and what the engine says it cost.
    pub ended: Option<(Time, VmEnd, Money)>,
    /// Hibernations of the VM, in order.
    pub hibernations: ThinVec<Hibernation>,
    /// The time at which others got its room, in order.
    pub displaced: ThinVec<Displaced>,
    /// The VMs whose room it waited for when it was launched.
    pub waited_for: ThinVec<VmId>,
    /// Why it is about to leave, if the provider has said so for a reason of its own.
    pub leaving: Option<Leaving>,
    /// Whether it was given notice of its end.
    pub has_notice: bool,
    /// The act, a hibernation or a resume, that it was told and has not carried out.
    pub told: Option<Action>,
    /// Credit balance of the VM, whenever it was reported.
    pub credits: ThinVec<(Time, Credits)>,
    /// CPU time promised and received, real microseconds, as last reported.
    pub share: Option<(u64, u64)>,
    /// Whether it is in the background of other VMs' processors.
    pub is_background: bool,
    /// From when on which of its vCPUs had what share of its processor, in order; all of it before.
    pub supplies: ThinVec<(Time, u32, Ppm)>,
    /// What was charged for credits that it spent beyond what it had earned.
    pub surcharge: Money,
    pub(super) meter: Meter,
    pub(crate) tariff: TariffName,
    /// The attempt on each vCPU, by task.
    pub(super) lanes: Lanes,
}

/// Why a spot VM is about to leave: to end, or to hibernate for another's sake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// The VM costs more than its bid.
    Outbid,
    /// Fewer of its type can be had than there are.
    Reclaimed,
    /// The room of the VM goes to another.
    For(VmId),
}

/// One hibernation of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hibernation {
    /// The time at which it was asked for.
    pub asked: Time,
    /// The time at which it took effect.
    pub frozen: Time,
    /// The time at which a resume was asked for and when it took effect.
    pub resumed: Option<(Time, Time)>,
}

/// A VM makes room for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Displaced {
    /// The time at which it was told to.
    pub at: Time,
    /// The one that waited for its room.
    pub by: VmId,
    /// Whether it was given notice to end, or hibernated.
    pub action: Action,
    /// The time at which it had its room again, if it hibernated, and was told to resume.
    pub given_back: Option<Time>,
}

impl VmHistory {
    /// Whether it runs: it has booted, and is neither hibernated nor gone.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let is_frozen = self.hibernations.last().is_some_and(|last| last.resumed.is_none());
        self.ready.is_some() && self.ended.is_none() && !is_frozen
    }

    /// The meter of what it is charged.
    #[must_use]
    pub const fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Since when it is charged without a break, also where it ends now; `None`: it is not charged.
    #[must_use]
    pub fn charged_since(&self, now: Time) -> Option<Time> {
        let ends_now = || self.charges().last().filter(|charge| charge.until == now);
        self.meter.runs_since().or_else(|| ends_now().map(|charge| charge.from))
    }

    /// The time for which it ran until `now`: from when it was ready, without that in which it was hibernated.
    #[must_use]
    pub fn ran(&self, now: Time) -> Span {
        self.ready.map_or(Span::ZERO, |ready| self.awake(ready, self.end_or(now)))
    }

    /// What was charged, in order.
    #[must_use]
    pub fn charges(&self) -> &[Charge] {
        self.meter.charges()
    }

    /// What it cost, for as long as it was charged; what it goes on with is not in it.
    #[must_use]
    pub fn cost(&self) -> Money {
        self.meter.settled(self.tariff) + self.surcharge
    }

    /// The cost of the VM up to `now`; one that is still charged counts as ended by its user at `now`.
    #[must_use]
    pub fn owed(&self, now: Time) -> Money {
        self.meter.owed(now, self.tariff) + self.surcharge
    }

    /// Whether it was frozen at `at`; not at the very moment it froze or thawed.
    #[must_use]
    pub fn is_frozen_at(&self, at: Time) -> bool {
        self.hibernations
            .iter()
            .any(|h| h.frozen < at && h.resumed.is_none_or(|(_, resumed)| at < resumed))
    }

    /// How much of the time from `from` to `until` it was not frozen.
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

    /// The time at which it was gone, or `now` if it still is there.
    #[must_use]
    pub fn end_or(&self, now: Time) -> Time {
        self.ended.map_or(now, |(at, ..)| at)
    }

    /// What a vCPU has of its processor at `at`, which may be its last moment with it.
    #[must_use]
    pub fn supply_at(&self, at: Time, vcpu: u32) -> Ppm {
        let of = self.supplies.iter().rev().find(|(from, cpu, _)| *cpu == vcpu && *from <= at);
        of.map_or(Ppm::ONE, |(_, _, share)| *share)
    }

    /// For how long its vCPUs were there while it ran until `now`, and for how long of that their
    /// processors were.
    #[must_use]
    pub fn supplied(&self, now: Time) -> (Span, Span) {
        let Some(ready) = self.ready else { return (Span::ZERO, Span::ZERO) };
        let end = self.end_or(now).max(ready);
        // Only of some vCPUs is anything known, however many there are.
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
