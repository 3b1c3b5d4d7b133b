//! A second computation of the credits of VMs whose use their policy declares.

use dormouse_cloud::InstanceType;
use dormouse_units::{Credits, Ppm, Price, Time};

/// Millionths of a vCPU-microsecond in a credit rate of one vCPU-microsecond an hour.
const FINE: i128 = 3_600_000_000 * 1_000_000;

/// Credits of a burstable VM without tasks, computed from its type's rates, its running time and its declared use.
#[derive(Clone, Debug)]
pub(super) struct DeclaredUse {
    /// Credits earned an hour, in vCPU-microseconds.
    hourly: i128,
    /// The most credits of the VM, in vCPU-microseconds times `FINE`.
    most: i128,
    vcpus: u32,
    /// Credits less surplus credits, in vCPU-microseconds times `FINE`.
    balance: i128,
    /// Surplus credits to be charged so far, in vCPU-microseconds times `FINE`.
    charged: i128,
    since: Time,
    /// Declared part of each vCPU; `None`: no use was declared.
    pub(super) used: Option<Ppm>,
    /// Price of a surplus vCPU-hour; `None`: standard mode.
    pub(super) price: Option<Price>,
    /// The price of a surplus vCPU-hour when the VM was in unlimited mode last; `None`: it never was.
    pub(super) last_price: Option<Price>,
}

impl DeclaredUse {
    /// The credits of a VM launched now; `None`: its type is not burstable.
    pub(super) fn launched(now: Time, kind: &InstanceType) -> Option<Self> {
        let burstable = kind.burstable?;
        let whole = |credits: Credits| i128::from(credits.as_vcpu_micros()) * FINE;
        Some(Self {
            hourly: burstable.earned_per_hour.as_vcpu_micros().into(),
            most: whole(burstable.cap),
            vcpus: kind.vcpus,
            balance: whole(burstable.initial.min(burstable.cap)),
            charged: 0,
            since: now,
            used: None,
            price: burstable.surplus,
            last_price: burstable.surplus,
        })
    }

    /// Passes the time until `now`, in which the VM ran or not.
    pub(super) fn pass(&mut self, now: Time, ran: bool) {
        let span = i128::from(now.since(self.since).as_micros());
        self.since = now;
        if !ran {
            return;
        }
        let used = i128::from(self.used.unwrap_or(Ppm::ZERO).get()) * i128::from(self.vcpus);
        let balance = self.balance + span * (self.hourly * 1_000_000 - used * 3_600_000_000);
        let least = if self.price.is_some() { -self.most } else { 0 };
        if self.price.is_some() && balance < least {
            self.charged += least - balance;
        }
        self.balance = balance.max(least).min(self.most);
    }

    /// Charges all surplus; returns the total so far, rounded up.
    pub(super) fn charge_all(&mut self) -> Credits {
        self.charged += (-self.balance).max(0);
        self.balance = self.balance.max(0);
        let charged = self.charged.unsigned_abs().div_ceil(FINE.unsigned_abs());
        Credits::from_vcpu_micros(u64::try_from(charged).unwrap_or(u64::MAX))
    }
}
