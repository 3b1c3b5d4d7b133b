//! State of a VM, as the checker of a bag of tasks tracks it.

use std::collections::BTreeMap;
use std::fmt;

use dormouse_cloud::{BillingMeter, InstanceType, Market, ResourceVector};
use dormouse_units::{Bytes, Credits, HostId, Money, Ppm, Price, Span, TaskId, Tier, Time};

use super::balance::{BalanceBounds, UseBounds};
use super::declared_use::DeclaredUse;

/// Stage of a VM's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VmStage {
    Booting,
    Running,
    /// The VM was commanded to hibernate and is not frozen yet; its scheduler does not know of it.
    Freezing,
    Frozen,
    Ended,
}

impl fmt::Display for VmStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Booting => "booting",
            Self::Running => "running",
            Self::Freezing => "about to hibernate",
            Self::Frozen => "hibernated",
            Self::Ended => "gone",
        })
    }
}

/// State of a VM, according to the log.
#[derive(Clone, Debug)]
pub(super) struct CheckedVm {
    pub(super) kind: InstanceType,
    pub(super) market: Market,
    pub(super) bid: Option<Price>,
    pub(super) host: HostId,
    /// Room that the VM takes on its host.
    pub(super) room: ResourceVector,
    /// True if the VM waits for other VMs to leave the room that it is to get.
    pub(super) waits: bool,
    /// Time at which the VM got notice of its end, and whether the VM had booted by then; `None` without a notice.
    pub(super) notice: Option<(Time, bool)>,
    /// The VM is hibernating or hibernated, and another VM has its room or may have it.
    pub(super) is_displaced: bool,
    /// True if the VM has been commanded to resume.
    pub(super) resumes: bool,
    /// Tier and processors of its host that the VM has; `None` until the log says.
    pub(super) places: Option<(Tier, Vec<u32>)>,
    pub(super) life: VmStage,
    pub(super) launched: Time,
    /// Charges for the VM.
    pub(super) meter: BillingMeter,
    /// Time for which the VM was frozen in completed hibernations; the present one began at `frozen_since`.
    pub(super) frozen: Span,
    pub(super) frozen_since: Option<Time>,
    /// Tasks on the VM with their memory.
    pub(super) tasks: BTreeMap<TaskId, Bytes>,
    pub(super) credits: Option<BalanceBounds>,
    /// Money charged for the VM's surplus credits so far.
    pub(super) surcharge: Money,
    /// Credits by the VM's declared use; `None`: the type is not burstable.
    pub(super) declared: Option<DeclaredUse>,
}

impl CheckedVm {
    /// Passes the time until `now` on the VM's declared use.
    pub(super) fn pass_use(&mut self, now: Time) {
        let ran = matches!(self.life, VmStage::Running | VmStage::Freezing);
        if let Some(declared) = &mut self.declared {
            declared.pass(now, ran);
        }
    }

    pub(super) fn freeze(&mut self, now: Time) {
        self.pass_use(now);
        self.life = VmStage::Frozen;
        self.places = None;
        self.frozen_since = Some(now);
        self.meter.pause_charging(now);
    }

    pub(super) fn thaw(&mut self, now: Time) {
        self.pass_use(now);
        self.life = VmStage::Running;
        (self.resumes, self.is_displaced) = (false, false);
        self.frozen = self.frozen_until(now);
        self.frozen_since = None;
        self.meter.start_charging(now);
    }

    /// Room on the VM's host that the VM certainly has now.
    pub(super) fn held(&self) -> ResourceVector {
        match self.life {
            VmStage::Ended => ResourceVector::of_vcpus(0),
            VmStage::Frozen if !self.resumes => {
                self.room.minus_room(&self.room.left_while_hibernated())
            }
            _ if self.waits => ResourceVector::of_vcpus(0),
            _ => self.room,
        }
    }

    /// Total time for which the VM was frozen by `now`.
    pub(super) fn frozen_until(&self, now: Time) -> Span {
        self.frozen + self.frozen_since.map_or(Span::ZERO, |since| now.since(since))
    }

    /// Checks a reported credit balance (with the time that it was valid at) and returns what is wrong with it. The previous report
    /// and the present one may be late by the first span of `late`; the present one may be late by the second span in addition.
    pub(super) fn credit_error(
        &mut self,
        now: Time,
        (balance, as_of): (Credits, Option<Time>),
        late: (Span, Span),
    ) -> Option<String> {
        let Some(burstable) = self.kind.burstable else {
            return Some(format!("{} has credits but is not burstable", self.kind.name));
        };
        let most = u64::from(self.kind.vcpus) * u64::from(Ppm::ONE.get());
        let launched = self.launched;
        let credits = self
            .credits
            .get_or_insert_with(|| BalanceBounds::new(burstable.of_machine(), launched));
        credits.pass(now, UseBounds { least: 0, most });
        credits.error_in(now, (balance, as_of), late)
    }
}
